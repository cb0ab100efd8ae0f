//! Persistency models: litmus programs for them, and their agreement with the enumerator on all small programs.

use graven::lab::persistency::{self, Answer, ModelLitmus};
use graven::persistency::agreement::{Compared, Difference, Programs};
use graven::persistency::model::Model;
use graven::sim::SimError;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::seam::{Failure, Task, TaskControl, parse};

/// Most steps of a thread of the programs that are compared.
const STEPS_MAX: usize = 4;

/// A litmus program under its models, or under others; everything is checked here.
///
/// # Errors
/// Syntax errors as FILE:LINE:COLUMN, models that do not exist or have other instructions, a program that is too large.
pub fn litmus(file: &str, text: &str, models: &[String]) -> Result<Task, Failure> {
    let litmus = persistency::parse(text).map_err(|error| {
        Failure::Config(format!("{file}:{}:{}: {}", error.line, error.column, error.message))
    })?;
    let models =
        models.iter().map(|name| asked(file, &litmus, name)).collect::<Result<Vec<_>, _>>()?;
    let file = file.to_owned();
    Ok(Task::new(move |watch| {
        let control = watch.begin(1)?;
        let answers = persistency::answers(&litmus, &models)
            .map_err(|error| Failure::Config(format!("{file}: {error}")))?;
        control.report(1);
        let results: Vec<Value> = answers.iter().map(result).collect();
        Ok(json!({ "title": litmus.title, "results": results }))
    }))
}

fn asked(file: &str, litmus: &ModelLitmus, name: &str) -> Result<&'static Model, Failure> {
    let model = Model::find(name).map_err(Failure::config)?;
    let of = litmus.models[0];
    if model.is_arm() != of.is_arm() {
        return Err(Failure::Config(format!(
            "{file}: {name} has other instructions than {}, which the program is for",
            of.name
        )));
    }
    Ok(model)
}

fn result(answer: &Answer) -> Value {
    let word = |is_allowed: bool| if is_allowed { "allowed" } else { "forbidden" };
    json!({
        "model": answer.model.name,
        "image": answer.image,
        "answer": word(answer.is_allowed),
        "order": answer.order,
        "expected": answer.expected.map(word),
        "as_expected": answer.is_as_expected(),
    })
}

/// Programs on which a model and the enumerator are compared.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgreementSpec {
    model: String,
    /// Steps of each thread, at most.
    steps: usize,
    /// Programs whose first thread has one of `count` step sequences from this on; `count` families of programs, from one
    /// on and some apart; or `count` programs that a seed draws.
    first: Option<usize>,
    families: Option<Families>,
    seed: Option<u64>,
    count: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Families {
    first: usize,
    apart: usize,
}

/// A comparison of a model with the enumerator; everything is checked here, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn agreement(spec_json: &str) -> Result<Task, Failure> {
    let given: AgreementSpec = parse(spec_json)?;
    let model = Model::find(&given.model).map_err(Failure::config)?;
    if !(1..=STEPS_MAX).contains(&given.steps) {
        return Err(Failure::Config(format!(
            "steps: {} is not allowed; allowed: 1 to {STEPS_MAX}",
            given.steps
        )));
    }
    let ways = [given.first.is_some(), given.families.is_some(), given.seed.is_some()];
    if ways.into_iter().filter(|&is_given| is_given).count() != 1 {
        return Err(Failure::Config("one of `first`, `families` and `seed` must be given".into()));
    }
    Ok(Task::new(move |watch| compared(&given, model, watch)))
}

fn compared(given: &AgreementSpec, model: &Model, watch: &TaskControl) -> Result<Value, Failure> {
    let control = watch.begin(given.count)?;
    let programs = Programs::new(model, given.steps);
    let mut sum = Compared::default();
    for number in 0..given.count {
        if control.report(number) {
            return Err(SimError::Cancelled.into());
        }
        let of_number = match (given.first, &given.families, given.seed) {
            (Some(first), ..) => {
                let first = first + number as usize;
                let next = (first + 1).min(programs.sequences());
                let (compared, difference) = programs.compare(model, first.min(next)..next);
                Compared { compared, covered: compared, difference }
            }
            (_, Some(families), _) => {
                let family = families.first + number as usize * families.apart;
                if family >= programs.families() {
                    break;
                }
                programs.compare_family(model, family)
            }
            (.., seed) => {
                let seed = seed.unwrap_or_default().wrapping_add(number);
                let difference = programs.compare_drawn(model, seed, 1);
                Compared { compared: 1, covered: 1, difference }
            }
        };
        sum.compared += of_number.compared;
        sum.covered += of_number.covered;
        if of_number.difference.is_some() {
            sum.difference = of_number.difference;
            break;
        }
    }
    control.report(given.count);
    Ok(json!({
        "model": model.name, "sequences": programs.sequences(), "families": programs.families(),
        "programs": sum.covered, "compared": sum.compared, "of": programs.count(),
        "difference": sum.difference.as_ref().map(told),
    }))
}

fn told(difference: &Difference) -> String {
    format!("{difference:?}")
}
