//! The report of a run, or of schedules one after the other: what was checked and covered, and each violation with its
//! timeline.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::case::{Case, LitmusError};
use crate::explorer::{Outcome, STATES, Tally, Violation};
use crate::litmus::Litmus;
use crate::minimise::Effort;
use crate::timeline::{Row, Timeline, timeline_of};
use graven_base::memory::Addr;
use graven_machine::design::{DesignInfo, Guarantee};
use graven_machine::registry::Registry;

/// A violation with what led to it.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The violated guarantee, in the minimised program if there is one.
    pub violation: Violation,
    /// The events that led to the violation.
    pub timeline: Timeline,
    /// A program that replays it exactly.
    pub replay: Option<Litmus>,
    /// The adversary's seed, if it was one of its schedules.
    pub seed: Option<u64>,
    /// The work of minimising the program; none if it is as it was found.
    pub minimised: Option<Effort>,
}

/// The result of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The checks.
    pub tally: Tally,
    /// Violations.
    pub findings: Vec<Finding>,
    /// Times that each state worth reaching was reached: those of all designs, then this one's.
    pub coverage: Vec<(&'static str, &'static str, u64)>,
    /// Runs that the design refused to continue with, with its reason the first time.
    pub refused: u64,
    /// That reason.
    pub refusal: Option<String>,
    /// Runs.
    pub runs: u64,
    /// The next seed, of an adversary's campaign.
    pub next_seed: u64,
    /// Words that programs stored to outside transactions, in their first lives.
    pub words_stored_outside: u64,
}

impl Report {
    /// An empty one for a design.
    pub fn new(design: &DesignInfo) -> Report {
        let named = STATES.iter().chain(design.covered());
        Report {
            coverage: named.map(|state| (state.name, state.summary, 0)).collect(),
            ..Report::default()
        }
    }

    /// Adds a run.
    pub fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.tally.add(&outcome.tally);
        self.words_stored_outside += outcome.words_stored_outside;
        let counts = outcome.coverage.counts().iter().chain(&outcome.cover_points);
        self.coverage.iter_mut().zip(counts).for_each(|(state, n)| state.2 += n);
        if let Some(why) = &outcome.refused {
            self.refused += 1;
            self.refusal.get_or_insert_with(|| why.clone());
        }
    }

    /// Adds a violation that its own program replays.
    pub fn add_story(&mut self, violation: Violation, timeline: Timeline) {
        self.findings.push(Finding {
            violation,
            timeline,
            replay: None,
            seed: None,
            minimised: None,
        });
    }

    /// As JSON: `crash_points`, `recoveries`, `modes`, `violations`, `reached`, `not_covered`, `runs`,
    /// `refused`, `refusal`, `next_seed`.
    pub fn to_json(&self) -> Value {
        let reached: BTreeMap<&str, u64> = self.coverage.iter().map(|s| (s.0, s.2)).collect();
        let not: Vec<&str> = self.coverage.iter().filter(|s| s.2 == 0).map(|s| s.0).collect();
        json!({
            "crash_points": self.tally.crash_points,
            "recoveries": self.tally.recoveries(),
            "failure_modes": self.tally,
            "violations": self.findings.iter().map(Finding::record).collect::<Vec<_>>(),
            "covered": reached, "not_covered": not,
            "runs": self.runs, "refused": self.refused, "refusal": self.refusal,
            "next_seed": self.next_seed,
        })
    }
}

/// A violation as front ends and states write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViolationRecord {
    /// The violated guarantee, and a word that shows it.
    pub what: String,
    /// Number of the crash point in the program of `replay`, else in the run.
    pub point: u64,
    /// The mode, as a litmus program writes it.
    pub failure_mode: String,
    /// When, in cycles.
    pub cycle: u64,
    /// The adversary's seed, if it was one of its schedules.
    pub seed: Option<u64>,
    /// The events that led to the violation.
    pub timeline: Vec<Row>,
    /// Rows that the timeline leaves out.
    pub left_out: usize,
    /// The text of a program that replays it.
    pub replay: Option<String>,
    /// The work of minimising that program; none if it is as it was found.
    #[serde(default)]
    pub minimised: Option<Effort>,
}

impl Finding {
    /// Tells a violation by a program: as that replays it, or else as it was found.
    pub(crate) fn of(
        registry: &Registry,
        replay: Litmus,
        design: &'static DesignInfo,
        violation: Violation,
        seed: Option<u64>,
    ) -> Finding {
        let (violation, timeline) = match replayed_timeline(registry, &replay, design) {
            Ok(Some(told)) => told,
            _ => {
                let timeline = timeline_without_program(&violation);
                (violation, timeline)
            }
        };
        let replay = Some(as_claimed(registry, replay, design));
        Finding { violation, timeline, replay, seed, minimised: None }
    }

    /// As it is written.
    pub fn record(&self) -> ViolationRecord {
        ViolationRecord {
            what: self.violation.what.clone(),
            point: self.violation.point,
            failure_mode: failure_text(&self.violation),
            cycle: self.violation.cycle,
            seed: self.seed,
            timeline: self.timeline.rows.clone(),
            left_out: self.timeline.left_out,
            replay: self.replay.as_ref().map(Litmus::to_string),
            minimised: self.minimised,
        }
    }
}

/// The power failure of a violation as a litmus program writes it, and in which life of the machine it came.
pub fn failure_text(violation: &Violation) -> String {
    let failure = match &violation.failure {
        Some(failure) => failure.to_string(),
        None => "no power failure".into(),
    };
    match violation.before.len() {
        0 => failure,
        lives => format!("{failure}, in life {}", lives + 1),
    }
}

/// A violation as it is found, in a line: what was broken, and where.
pub(crate) fn violation_text(violation: &Violation, seed: Option<u64>) -> String {
    let what = violation.what.lines().next().unwrap_or_default();
    let seed = seed.map_or_else(String::new, |seed| format!("seed {seed}, "));
    let (point, mode) = (violation.point, failure_text(violation));
    format!("{what} ({seed}crash point {point}, {mode}, cycle {})", violation.cycle)
}

/// The guarantee of a design, in a word.
pub fn guarantee_text(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::None => "none",
        Guarantee::Prefix { .. } => "prefix",
        Guarantee::Durable => "durable",
        Guarantee::Order(order) => order.name,
    }
}

/// The violation of a program, and its timeline.
///
/// # Errors
/// Whatever does not exist or fit.
pub fn replayed_timeline(
    registry: &Registry,
    litmus: &Litmus,
    design: &'static DesignInfo,
) -> Result<Option<(Violation, Timeline)>, LitmusError> {
    let case = Case::new(registry, litmus, design)?;
    let Ok(mut outcome) = case.traced() else { return Ok(None) };
    if outcome.violations.is_empty() {
        return Ok(None);
    }
    let violation = outcome.violations.remove(0);
    let name = |addr: Addr| case.layout().name(addr).map(str::to_owned);
    let timeline = timeline_of(&outcome.trace, &violation, &name);
    Ok(Some((violation, timeline)))
}

/// Without a program to replay, what is known is its end.
pub(crate) fn timeline_without_program(violation: &Violation) -> Timeline {
    timeline_of(&[], violation, &|_| None)
}

/// With what is expected of the design: of one that is not sound, or mutated, that it violates its guarantee.
pub(crate) fn as_claimed(
    registry: &Registry,
    mut litmus: Litmus,
    design: &'static DesignInfo,
) -> Litmus {
    let claims = |case: Case| litmus.mutant.is_none() && design.is_sound(case.config());
    if !Case::new(registry, &litmus, design).is_ok_and(claims) {
        litmus.violates = std::mem::take(&mut litmus.designs);
    }
    litmus
}
