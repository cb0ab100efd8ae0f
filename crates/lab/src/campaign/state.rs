//! The document from which a campaign continues: what was asked, and what is known of each design. No reader trusts
//! it: whatever it says, it is accepted or refused with the reason.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::request::AdversaryRequest;
use super::totals::{AdversaryReport, Settings};
use graven_base::VERSION;

/// Version of the document's layout.
pub const STATE_FORMAT: u32 = 1;

/// Why a campaign cannot continue from a document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// The document is not JSON.
    #[error("it cannot be read: {0}")]
    Syntax(String),
    /// The document has another layout.
    #[error("it has format {0}, this is Graven {VERSION} with format {STATE_FORMAT}")]
    Format(String),
    /// The document is of another version.
    #[error(
        "it is of Graven {0}, this is {VERSION}; results of different versions are not added up"
    )]
    Version(String),
    /// Something else was asked for; the text says what differs.
    #[error("it is of another campaign: {0}")]
    OtherCampaign(String),
    /// The document is of another shape, or contradicts itself.
    #[error("it is not the state of a campaign ({0})")]
    Shape(String),
}

impl From<serde_json::Error> for StateError {
    fn from(error: serde_json::Error) -> StateError {
        if error.is_data() {
            StateError::Shape(error.to_string())
        } else {
            StateError::Syntax(error.to_string())
        }
    }
}

/// The part that says whether the rest can be read.
#[derive(Deserialize)]
struct Header {
    format: Value,
    version: Value,
}

#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    version: String,
    arguments: Arguments,
    reports: BTreeMap<String, AdversaryReport>,
}

/// The arguments that must be the same for a campaign to continue, by the option that gives each.
#[derive(Serialize, Deserialize)]
struct Arguments {
    #[serde(rename = "--design")]
    designs: Vec<String>,
    #[serde(rename = "--seeds")]
    seeds: u64,
    #[serde(rename = "--first-seed")]
    first_seed: u64,
    #[serde(rename = "--mutant")]
    mutant: Option<String>,
    #[serde(rename = "--set")]
    settings: Settings,
    #[serde(rename = "--draw", default)]
    draws: Vec<(String, u64)>,
    #[serde(rename = "--violations")]
    violations_max: usize,
    #[serde(rename = "--minimise", default)]
    minimise: Option<u32>,
}

impl Arguments {
    fn new(request: &AdversaryRequest) -> Arguments {
        Arguments {
            designs: request.designs.clone(),
            seeds: request.seeds,
            first_seed: request.first_seed,
            mutant: request.mutant.clone(),
            settings: request.settings.iter().cloned().collect(),
            draws: request.draws.clone(),
            violations_max: request.violations_max,
            minimise: request.minimise,
        }
    }

    /// The arguments that were given and are not now.
    fn differences(&self, now: &Arguments) -> Vec<String> {
        let or_nothing = |text: String| if text.is_empty() { "not given".into() } else { text };
        let set = |settings: &Settings| pairs_text(settings.iter());
        let drawn =
            |draws: &Vec<(String, u64)>| pairs_text(draws.iter().map(|(name, n)| (name, n)));
        let mut found = Vec::new();
        let mut compare = |option: &str, is_same: bool, was: String, is: String| {
            if !is_same {
                found.push(format!("{option} was {}, is {}", or_nothing(was), or_nothing(is)));
            }
        };
        macro_rules! compare {
            ($option:literal, $field:ident, $text:expr) => {
                let text = $text;
                let is_same = self.$field == now.$field;
                compare($option, is_same, text(&self.$field), text(&now.$field));
            };
        }
        compare!("--design", designs, |names: &Vec<String>| names.join(","));
        compare!("--seeds", seeds, u64::to_string);
        compare!("--first-seed", first_seed, u64::to_string);
        compare!("--mutant", mutant, |name: &Option<String>| name.clone().unwrap_or_default());
        compare!("--set", settings, set);
        compare!("--draw", draws, drawn);
        compare!("--violations", violations_max, usize::to_string);
        compare!("--minimise", minimise, |runs: &Option<u32>| {
            runs.map(|runs| runs.to_string()).unwrap_or_default()
        });
        found
    }
}

/// Names with their values, as a message has them.
fn pairs_text<N: Display, V: Display>(pairs: impl Iterator<Item = (N, V)>) -> String {
    pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

/// The document of a campaign.
pub(super) fn write<'a>(
    request: &AdversaryRequest,
    reports: impl Iterator<Item = &'a AdversaryReport>,
) -> String {
    let document = Document {
        format: STATE_FORMAT,
        version: VERSION.into(),
        arguments: Arguments::new(request),
        reports: reports.map(|report| (report.design.clone(), report.clone())).collect(),
    };
    serde_json::to_string_pretty(&document).expect("texts and numbers can be written") + "\n"
}

/// The part of a document about the designs of a request; `nothing` is the report of each at first.
pub(super) fn read(
    text: &str,
    request: &AdversaryRequest,
    nothing: Vec<AdversaryReport>,
) -> Result<Vec<AdversaryReport>, StateError> {
    let header: Header = serde_json::from_str(text)?;
    if header.format != STATE_FORMAT {
        return Err(StateError::Format(shown(&header.format)));
    }
    if header.version != VERSION {
        return Err(StateError::Version(shown(&header.version)));
    }
    let mut document: Document = serde_json::from_str(text)?;
    let differences = document.arguments.differences(&Arguments::new(request));
    if !differences.is_empty() {
        return Err(StateError::OtherCampaign(differences.join("; ")));
    }
    let mut known = Vec::with_capacity(nothing.len());
    for nothing in nothing {
        let Some(report) = document.reports.remove(&nothing.design) else {
            known.push(nothing);
            continue;
        };
        if let Some(why) = report.contradiction(&nothing, request.violations_max) {
            return Err(StateError::Shape(why));
        }
        known.push(report);
    }
    match document.reports.into_keys().next() {
        Some(name) => {
            Err(StateError::Shape(format!("a report of {name}, which was not asked for")))
        }
        None => Ok(known),
    }
}

/// A text without its quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::chunks::ChunkAccumulator;
    use super::super::chunks::testing::{chunk_report, nothing, request};
    use super::*;
    use serde_json::json;

    /// The state of a campaign on `a`, half done with a violation, and `b`, not begun.
    fn half_done() -> (AdversaryRequest, Vec<AdversaryReport>, String) {
        let request = request(&["a", "b"], 1000, 2);
        let nothing = vec![nothing("a", &request), nothing("b", &request)];
        let mut chunks = ChunkAccumulator::new(&request, nothing[0].clone());
        for index in 0..2 {
            chunks.begin(index);
            chunks.add(index, chunk_report(request.chunk(index), &[300], 2));
        }
        let text = write(&request, [chunks.report()].into_iter());
        (request, nothing, text)
    }

    #[test]
    fn a_state_is_read_back_as_it_was_written() {
        let (request, nothing, text) = half_done();
        let known = read(&text, &request, nothing.clone()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((known[0].schedules(), known[0].violations.len()), (500, 1));
        assert_eq!(known[1], nothing[1]);
        assert_eq!(write(&request, known[..1].iter()), text);
    }

    #[test]
    fn a_state_of_other_arguments_is_refused_with_what_differs() {
        let (mut request, nothing, text) = half_done();
        request.designs.pop();
        request.seeds = 999;
        request.mutant = Some("no-tuple".into());
        request.settings.clear();
        let error = read(&text, &request, nothing).expect_err("another campaign").to_string();
        assert_eq!(
            error,
            "it is of another campaign: --design was a,b, is a; --seeds was 1000, is 999; \
             --mutant was not given, is no-tuple; --set was pm.banks=2, is not given"
        );
    }

    #[test]
    fn settings_keep_their_order_and_are_equal_in_any() {
        let read = |text| serde_json::from_str::<Settings>(text);
        let text = r#"{"pm.write_ns":"5","core.count":"2"}"#;
        let settings = read(text).expect("an object of texts");
        assert_eq!(serde_json::to_string(&settings).ok().as_deref(), Some(text));
        let turned = read(r#"{"core.count":"2","pm.write_ns":"9","pm.write_ns":"5"}"#);
        assert_eq!(turned.expect("the last counts"), settings);
        assert_ne!(read("{}").expect("an object"), settings);
        assert!(read(r#"{"core.count":2}"#).is_err() && read("[]").is_err());
    }

    /// Bug class: a damaged or foreign document is added up, or panics.
    #[test]
    fn whatever_else_a_state_says_is_refused_with_the_reason() {
        let (request, nothing, text) = half_done();
        let whole: Value = serde_json::from_str(&text).expect("JSON");
        let said = |pointer: &str, value: Value| {
            let mut changed = whole.clone();
            *changed.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
            let error = read(&changed.to_string(), &request, nothing.clone());
            error.expect_err(pointer).to_string()
        };
        assert!(said("/format", json!(0)).starts_with("it has format 0, this is Graven "));
        assert!(said("/format", json!(null)).starts_with("it has format null"));
        assert!(said("/version", json!("0.0")).starts_with("it is of Graven 0.0, this is "));
        for (pointer, value, why) in [
            ("/arguments", json!(null), "invalid type: null"),
            ("/arguments/--seeds", json!(-1), "invalid value: integer `-1`"),
            ("/reports", json!(5), "invalid type: integer `5`"),
            ("/reports/a", json!({}), "missing field `design`"),
            ("/reports/a/design", json!("b"), "the report of a is of something else"),
            ("/reports/a/first_seed", json!(9), "the report of a is of something else"),
            ("/reports/a/covered", json!({"other": 1}), "the report of a is of something else"),
            ("/reports/a/next_seed", json!(7), "a goes on at seed 7"),
            ("/reports/a/next_seed", json!(1009), "a goes on at seed 1009"),
            ("/reports/a/next_seed", json!(507), "a has 1 violations at seed 507"),
            ("/reports/a/runs", json!(u64::MAX), "a has counts above"),
            ("/reports/a/covered/odd-seed", json!(u64::MAX), "a has counts above"),
            ("/reports/a/runs", json!(501), "the counts of a do not add up"),
            ("/reports/a/recoveries", json!(1), "the counts of a do not add up"),
            ("/reports/a/seconds", json!(-1.0), "-1 s is no host time"),
            ("/reports/a/seconds", json!(1e300), " s is no host time"),
            ("/reports/a/violations/0/cycle", json!("x"), "invalid type: string"),
        ] {
            let error = said(pointer, value);
            assert!(error.starts_with("it is not the state of a campaign ("), "{error}");
            assert!(error.contains(why), "{pointer}: {error}");
        }
        let mut stranger = whole.clone();
        stranger["reports"]["c"] = whole["reports"]["a"].clone();
        let error = read(&stranger.to_string(), &request, nothing.clone()).expect_err("unasked");
        assert!(error.to_string().contains("a report of c, which was not asked for"), "{error}");
    }

    #[test]
    fn a_state_that_is_cut_off_anywhere_is_refused() {
        let (request, nothing, text) = half_done();
        for length in 0..text.trim_end().len() {
            let error = read(&text[..length], &request, nothing.clone()).expect_err("cut off");
            assert!(error.to_string().starts_with("it cannot be read: "), "{length}: {error}");
        }
        let nested = "[".repeat(1 << 20);
        assert!(matches!(
            read(&nested, &request, nothing),
            Err(StateError::Syntax(_) | StateError::Shape(_))
        ));
    }
}
