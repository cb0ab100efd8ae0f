//! Persistency models: litmus programs for them, and their agreement with the enumerator on all small programs.

use graven::lab::persistency::{self, Answer, ModelLitmus};
use graven::persistency::agreement::{Difference, Programs};
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
    /// Programs whose first thread has one of `count` step sequences from this on; or `count` programs that a seed draws.
    first: Option<usize>,
    seed: Option<u64>,
    count: u64,
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
    if given.first.is_some() == given.seed.is_some() {
        return Err(Failure::Config("one of `first` and `seed` must be given".into()));
    }
    Ok(Task::new(move |watch| compared(&given, model, watch)))
}

fn compared(given: &AgreementSpec, model: &Model, watch: &TaskControl) -> Result<Value, Failure> {
    let control = watch.begin(given.count)?;
    let programs = Programs::new(model, given.steps);
    let mut compared = 0;
    let mut difference = None;
    for number in 0..given.count {
        if control.report(number) {
            return Err(SimError::Cancelled.into());
        }
        let (count, found) = match (given.first, given.seed) {
            (Some(first), _) => {
                let first = first + number as usize;
                programs.compare(model, first..(first + 1).min(programs.sequences()))
            }
            (None, seed) => {
                let seed = seed.unwrap_or_default();
                (1, programs.compare_drawn(model, seed.wrapping_add(number), 1))
            }
        };
        compared += count;
        if let Some(found) = found {
            difference = Some(told(&found));
            break;
        }
    }
    control.report(given.count);
    Ok(json!({
        "model": model.name, "sequences": programs.sequences(), "programs": compared,
        "of": programs.count(), "difference": difference,
    }))
}

fn told(difference: &Difference) -> String {
    format!("{difference:?}")
}
