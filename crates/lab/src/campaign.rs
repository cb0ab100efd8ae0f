//! Campaigns: a run that is crashed everywhere, or many schedules of the adversary, with what is to be
//! reported of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::adversary::schedule;
use crate::case::{Case, LitmusError};
use crate::explorer::{CrashRun, Outcome, STATES, Tally, Thoroughness, Violation};
use crate::litmus::{CrashAt, FailureMode, Litmus};
use crate::minimise::minimise_observed;
use crate::recording::Recording;
use crate::timeline::{Timeline, tell};
use graven_base::config::ConfigError;
use graven_base::control::Control;
use graven_base::memory::Addr;
use graven_machine::design::{DesignInfo, Guarantee};
use graven_machine::registry::Registry;
use graven_machine::sim::{SimError, Spec};

/// A violation with its story.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was broken, in the shrunk program if there is one.
    pub violation: Violation,
    /// What led to it.
    pub timeline: Timeline,
    /// A program that replays it exactly.
    pub replay: Option<Litmus>,
    /// The adversary's seed, if it was one of its schedules.
    pub seed: Option<u64>,
}

/// What a campaign has found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was judged.
    pub tally: Tally,
    /// Violations.
    pub findings: Vec<Finding>,
    /// How often each state worth reaching was reached: those of all designs, then this one's.
    pub coverage: Vec<(&'static str, &'static str, u64)>,
    /// Runs that the design refused to go on with, with its reason the first time.
    pub refused: u64,
    /// That reason.
    pub refusal: Option<String>,
    /// Runs.
    pub runs: u64,
    /// The next seed, of an adversary's campaign.
    pub next_seed: u64,
}

impl Report {
    /// An empty one for a design.
    pub fn new(design: &DesignInfo) -> Report {
        let named = STATES.iter().chain(design.cover_points);
        Report {
            coverage: named.map(|state| (state.name, state.summary, 0)).collect(),
            ..Report::default()
        }
    }

    /// Adds a run.
    pub fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.tally.add(&outcome.tally);
        let counts = outcome.coverage.counts().iter().chain(&outcome.cover_points);
        self.coverage.iter_mut().zip(counts).for_each(|(state, n)| state.2 += n);
        if let Some(why) = &outcome.refused {
            self.refused += 1;
            self.refusal.get_or_insert_with(|| why.clone());
        }
    }

    /// Adds a violation that its own program replays.
    pub fn add_story(&mut self, violation: Violation, timeline: Timeline) {
        self.findings.push(Finding { violation, timeline, replay: None, seed: None });
    }

    /// As JSON: `crash_points`, `recoveries`, `modes`, `violations`, `reached`, `not_covered`, `runs`,
    /// `refused`, `refusal`, `next_seed`.
    pub fn to_json(&self) -> Value {
        let reached: BTreeMap<&str, u64> = self.coverage.iter().map(|s| (s.0, s.2)).collect();
        let not: Vec<&str> = self.coverage.iter().filter(|s| s.2 == 0).map(|s| s.0).collect();
        json!({
            "crash_points": self.tally.crash_points,
            "recoveries": self.tally.recoveries(),
            "failure_modes": {
                "plain": self.tally.plain, "torn": self.tally.torn,
                "in_flight": self.tally.in_flight, "recovery": self.tally.recovery,
                "structures": self.tally.structures,
            },
            "violations": self.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
            "covered": reached, "not_covered": not,
            "runs": self.runs, "refused": self.refused, "refusal": self.refusal,
            "next_seed": self.next_seed,
        })
    }
}

impl Finding {
    fn to_json(&self) -> Value {
        let row =
            |r: &crate::timeline::Row| json!({ "cycle": r.cycle, "who": r.who, "what": r.what });
        json!({
            "point": self.violation.point,
            "failure_mode": failure_mode_text(self.violation.mode),
            "cycle": self.violation.cycle,
            "what": self.violation.what,
            "seed": self.seed,
            "timeline": self.timeline.rows.iter().map(row).collect::<Vec<_>>(),
            "left_out": self.timeline.left_out,
            "replay": self.replay.as_ref().map(Litmus::to_string),
        })
    }
}

/// A mode as a litmus program writes it.
pub fn failure_mode_text(mode: FailureMode) -> String {
    match mode {
        FailureMode::Plain => "plain".into(),
        FailureMode::Torn(mask) => format!("torn {mask:#x}"),
        FailureMode::InFlight(seed) => format!("in-flight {seed}"),
        FailureMode::Recovery(writes) => format!("recovery {writes}"),
    }
}

/// What a design guarantees, in a word.
pub fn guarantee_text(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::None => "none",
        Guarantee::Prefix => "prefix",
        Guarantee::Durable => "durable",
    }
}

/// The story of a program's violation.
///
/// # Errors
/// Whatever does not exist or fit.
pub fn story_of(
    registry: &Registry,
    litmus: &Litmus,
    design: &'static DesignInfo,
) -> Result<Option<(Violation, Timeline)>, LitmusError> {
    let case = Case::new(registry, litmus, design)?;
    let Ok(mut told) = case.tell() else { return Ok(None) };
    if told.violations.is_empty() {
        return Ok(None);
    }
    let violation = told.violations.remove(0);
    let name = |addr: Addr| case.layout().name(addr).map(str::to_owned);
    let timeline = tell(&told.story, &violation, &name);
    Ok(Some((violation, timeline)))
}

/// One run, crashed at every crash point.
pub struct RunCampaign<'r> {
    registry: &'r Registry,
    spec: Spec,
    how: Thoroughness,
    run: CrashRun,
}

impl<'r> RunCampaign<'r> {
    /// Checks everything; nothing runs.
    ///
    /// # Errors
    /// Parameters that design or workload cannot work with.
    pub fn new(
        registry: &'r Registry,
        spec: Spec,
        how: Thoroughness,
    ) -> Result<RunCampaign<'r>, ConfigError> {
        let run = CrashRun::new(&spec, None, how)?;
        Ok(RunCampaign { registry, spec, how, run })
    }

    /// For watching and cancelling from another thread: transactions, and power failures.
    pub fn control(&self) -> Arc<Control> {
        self.run.control()
    }

    /// Runs it. The first violation is repeated with every operation recorded, reduced, and told.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn run(self) -> Result<Report, SimError> {
        let mut report = Report::new(self.spec.design);
        let control = self.run.control();
        let outcome = self.run.run(None)?;
        control.minimising(!outcome.violations.is_empty());
        report.add(&outcome);
        for (i, violation) in outcome.violations.iter().enumerate() {
            let finding = if i == 0 {
                self::reduced(self.registry, &self.spec, self.how, violation, &control)
            } else {
                None
            };
            report.findings.push(finding.unwrap_or_else(|| Finding {
                timeline: untold(violation),
                violation: violation.clone(),
                replay: None,
                seed: None,
            }));
        }
        Ok(report)
    }
}

/// Without a program to replay, what is known is its end.
fn untold(violation: &Violation) -> Timeline {
    tell(&[], violation, &|_| None)
}

/// The run as a litmus program, reduced if only part of it is needed.
fn reduced(
    registry: &Registry,
    spec: &Spec,
    how: Thoroughness,
    violation: &Violation,
    control: &Arc<Control>,
) -> Option<Finding> {
    let only = CrashAt::Point { number: violation.point, mode: violation.mode };
    let recording = Recording::new(spec).ok()?;
    let log = recording.log();
    let run = CrashRun::new(spec, Some(Box::new(recording)), Thoroughness { at: only, ..how });
    run.ok()?.run(None).ok()?;
    let litmus = log.to_litmus(registry, spec, &violation.what)?;
    let least =
        minimise_observed(registry, &litmus, spec.design, violation.mode, spec.seed, control);
    let replay = least.map_or_else(|| Litmus { crash: only, ..litmus }, |least| least.litmus);
    let (violation, timeline) = story_of(registry, &replay, spec.design).ok()??;
    Some(Finding {
        violation,
        timeline,
        replay: Some(as_claimed(registry, replay, spec.design)),
        seed: None,
    })
}

/// With what is expected of the design: of one that is not sound, or mutated, that it violates its guarantee.
fn as_claimed(registry: &Registry, mut litmus: Litmus, design: &'static DesignInfo) -> Litmus {
    let claims = |case: Case| litmus.mutant.is_none() && design.is_sound(case.config());
    if !Case::new(registry, &litmus, design).is_ok_and(claims) {
        litmus.violates = std::mem::take(&mut litmus.designs);
    }
    litmus
}

/// Many schedules of the adversary.
pub struct AdversaryCampaign<'r> {
    registry: &'r Registry,
    design: &'static DesignInfo,
    mutant: Option<String>,
    settings: Vec<(String, String)>,
    first_seed: u64,
    seeds: u64,
    violations_max: usize,
    control: Arc<Control>,
}

impl<'r> AdversaryCampaign<'r> {
    /// Schedules `first_seed..first_seed + seeds`, with these settings on top of what is drawn, up to so
    /// many violations.
    ///
    /// # Errors
    /// A mutant that the design does not have, or settings that do not fit.
    pub fn new(
        registry: &'r Registry,
        design: &'static DesignInfo,
        mutant: Option<String>,
        settings: Vec<(String, String)>,
        (first_seed, seeds): (u64, u64),
        violations_max: usize,
    ) -> Result<AdversaryCampaign<'r>, LitmusError> {
        if let Some(name) = &mutant {
            design.mutant(name)?;
        }
        let control = Arc::new(Control::default());
        let campaign = AdversaryCampaign {
            registry,
            design,
            mutant,
            settings,
            first_seed,
            seeds,
            violations_max,
            control,
        };
        // Not with what is drawn: a schedule that does not fit is counted when it is its turn.
        let plain = Litmus {
            threads: vec![Vec::new()],
            settings: campaign.settings.clone(),
            ..Litmus::default()
        };
        Case::new(registry, &plain, design)?;
        Ok(campaign)
    }

    /// For watching and cancelling from another thread: schedules, and power failures.
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    fn program(&self, seed: u64) -> Litmus {
        let mut litmus = schedule(self.design, seed);
        litmus.mutant.clone_from(&self.mutant);
        litmus.settings.extend(self.settings.iter().cloned());
        litmus
    }

    /// Runs all schedules, or until there are violations enough.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn run(self) -> Result<Report, SimError> {
        let mut report = Report::new(self.design);
        report.next_seed = self.first_seed;
        for seed in self.first_seed..self.first_seed + self.seeds {
            if self.control.report(seed - self.first_seed) {
                return Err(SimError::Cancelled);
            }
            let litmus = self.program(seed);
            report.next_seed = seed + 1;
            let case = match Case::new(self.registry, &litmus, self.design) {
                Ok(case) => case.examined(Thoroughness::SHORT).under(&self.control),
                Err(error) => {
                    report.refused += 1;
                    report.refusal.get_or_insert_with(|| error.to_string());
                    continue;
                }
            };
            let outcome = case.run()?;
            report.add(&outcome);
            self.control.judged(report.tally.recoveries());
            if let Some(violation) = outcome.violations.into_iter().next() {
                self.control.minimising(true);
                report.findings.push(self.finding(seed, &litmus, violation));
                self.control.minimising(false);
                if report.findings.len() >= self.violations_max {
                    break;
                }
            }
        }
        self.control.report(self.seeds);
        Ok(report)
    }

    fn finding(&self, seed: u64, litmus: &Litmus, violation: Violation) -> Finding {
        let least =
            minimise_observed(self.registry, litmus, self.design, violation.mode, 0, &self.control);
        let mut replay = least.map_or_else(|| litmus.clone(), |least| least.litmus);
        replay.title = format!("{}, reduced", replay.title);
        let (violation, timeline) = match story_of(self.registry, &replay, self.design) {
            Ok(Some(told)) => told,
            _ => (violation.clone(), untold(&violation)),
        };
        let replay = Some(as_claimed(self.registry, replay, self.design));
        Finding { violation, timeline, replay, seed: Some(seed) }
    }
}
