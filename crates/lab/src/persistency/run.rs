//! A program under its models.

use graven_persistency::model::Model;
use graven_persistency::orders::{Acted, explore, witness};
use graven_persistency::program::{Outcome, TooLarge};

use super::{Asked, ModelLitmus};

/// The answer of a model to one image.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The model.
    pub model: &'static Model,
    /// The image, as the program has it.
    pub image: String,
    /// True if some execution leaves it.
    pub is_allowed: bool,
    /// A shortest execution that leaves it, a sentence for each step: none if no execution does.
    pub order: Vec<String>,
    /// The answer that the program expects, if it says one for this model.
    pub expected: Option<bool>,
}

impl Answer {
    /// Tells if the program expects this answer, or none.
    pub fn is_as_expected(&self) -> bool {
        self.expected.is_none_or(|expected| expected == self.is_allowed)
    }
}

/// Returns the answers of some models, or of the program's own if there are none, to all images of a program.
///
/// # Errors
/// A program that is too large.
pub fn answers(litmus: &ModelLitmus, models: &[&'static Model]) -> Result<Vec<Answer>, TooLarge> {
    let models = if models.is_empty() { &litmus.models } else { models };
    let of_model = |&model| Ok((model, explore(model, &litmus.program)?));
    let outcomes = models.iter().map(of_model).collect::<Result<Vec<_>, TooLarge>>()?;
    let mut images: Vec<&Asked> = Vec::new();
    for claim in &litmus.claims {
        if !images.contains(&&claim.image) {
            images.push(&claim.image);
        }
    }
    let mut answers = Vec::new();
    for image in images {
        for (model, outcomes) in &outcomes {
            let says = litmus.claims.iter().find(|claim| {
                claim.image == *image && claim.models.iter().any(|other| other.name == model.name)
            });
            answers.push(Answer {
                order: order(litmus, model, image)?,
                model,
                image: image.text.clone(),
                is_allowed: outcomes.iter().any(|outcome| image.is_left_by(outcome)),
                expected: says.map(|claim| claim.is_allowed),
            });
        }
    }
    Ok(answers)
}

/// A shortest execution that leaves an image.
fn order(litmus: &ModelLitmus, model: &Model, image: &Asked) -> Result<Vec<String>, TooLarge> {
    let found = witness(model, &litmus.program, |outcome| image.is_left_by(outcome))?;
    let Some((steps, outcome)) = found else { return Ok(Vec::new()) };
    let step = |acted: &Acted| {
        let text = &litmus.steps[acted.thread][acted.op];
        format!("thread {}: {text}", acted.thread)
    };
    let mut order: Vec<String> = steps.iter().map(step).collect();
    let left = litmus.words.iter().zip(outcome.image);
    let left: Vec<String> = left.map(|(name, value)| format!("{name} = {value}")).collect();
    order.push(format!("power fails, and leaves {}", left.join(", ")));
    Ok(order)
}

impl Asked {
    /// Tells if an outcome is the image that is asked for.
    pub fn is_left_by(&self, outcome: &Outcome) -> bool {
        let holds = |values: &[u8], asked: &[(u8, u8)]| {
            asked.iter().all(|&(at, value)| values[usize::from(at)] == value)
        };
        outcome.done == self.is_done
            && holds(&outcome.image, &self.words)
            && holds(&outcome.registers, &self.registers)
    }
}
