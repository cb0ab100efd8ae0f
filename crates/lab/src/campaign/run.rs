//! A run that is crashed at every crash point, its first violation reduced to a program.

use std::cell::RefCell;
use std::sync::Arc;

use super::lives::{Lives, specs_of};
use super::report::{
    Finding, Report, as_claimed, replayed_timeline, timeline_without_program, violation_text,
};
use crate::explorer::{CrashRun, LivesAfter, Thoroughness, Violation};
use crate::litmus::CrashAt;
use crate::minimise::{RUNS, minimise_observed};
use crate::ordered::order_without_transactions;
use crate::recording::to_litmus;
use crate::timeline::{ROWS_MAX, Timeline, timeline_of};
use graven_base::config::ConfigError;
use graven_base::control::Control;
use graven_base::memory::Addr;
use graven_machine::registry::Registry;
use graven_machine::sim::{SimError, Spec};

/// One run, crashed at every crash point.
pub struct RunCampaign<'r> {
    registry: &'r Registry,
    /// One for each life.
    specs: Vec<Spec>,
    how: Thoroughness,
    run: CrashRun,
    minimising_runs: u32,
    /// Says whether nothing that is found counts any more.
    disregards: Box<dyn Fn() -> bool>,
}

/// Returns true if a run's design promises an order of stores, and the workload's transactions mean nothing to it.
fn is_without_transactions(spec: &Spec) -> bool {
    order_without_transactions(spec.design.guarantee_in(&spec.config)).is_some()
}

impl<'r> RunCampaign<'r> {
    /// Checks everything; nothing runs.
    ///
    /// # Errors
    /// Parameters that design or workload cannot work with.
    pub fn new(
        registry: &'r Registry,
        spec: Spec,
        mut how: Thoroughness,
    ) -> Result<RunCampaign<'r>, ConfigError> {
        if is_without_transactions(&spec) {
            how.structures_every = 0;
        }
        let run = CrashRun::new(&spec, None, how.clone())?;
        let (specs, disregards) = (vec![spec], Box::new(|| false));
        Ok(RunCampaign { registry, specs, how, run, minimising_runs: RUNS, disregards })
    }

    /// The same; after some recoveries the workload begins again on what they have left, at most `lives` times, unless it cannot
    /// ([`Workload::begins_again`](graven_machine::workload::Workload::begins_again)), or the design promises no transactions: then its
    /// structures may be torn.
    ///
    /// # Errors
    /// Parameters that design or workload cannot work with.
    pub fn going_on(self, lives: u32) -> Result<RunCampaign<'r>, ConfigError> {
        let lives = if is_without_transactions(&self.specs[0]) { 0 } else { lives };
        let specs = specs_of(&self.specs[0], lives)?;
        let lives_after = if lives == 0 { LivesAfter::None } else { LivesAfter::Some };
        let how = Thoroughness { lives_after, ..self.how };
        let first = |_| how.clone();
        let lives =
            Lives { specs: &specs, how: &first, control: &Arc::default(), logs: None, next: 0 };
        let run = lives.first()?;
        Ok(RunCampaign { specs, how, run, ..self })
    }

    /// The same, whose violation's program is minimised in this many runs at most; with none, it stays as it was found.
    pub fn minimising(self, runs_max: u32) -> RunCampaign<'r> {
        RunCampaign { minimising_runs: runs_max, ..self }
    }

    /// The same, whose violations are not reported as they are found while `disregards` says that they do not count.
    pub fn disregarding(self, disregards: impl Fn() -> bool + 'static) -> RunCampaign<'r> {
        RunCampaign { disregards: Box::new(disregards), ..self }
    }

    /// For watching and cancelling from another thread: transactions, and power failures.
    pub fn control(&self) -> Arc<Control> {
        self.run.control()
    }

    /// Runs it. Violations are reported as they are found; the first is repeated with every operation recorded, reduced, and
    /// told.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn run(self) -> Result<Report, SimError> {
        let first = &self.specs[0];
        let mut report = Report::new(first.design);
        let control = self.run.control();
        let how = |_| self.how.clone();
        let lives = Lives { specs: &self.specs, how: &how, control: &control, logs: None, next: 0 };
        let (reports, disregards) = (Arc::clone(&control), self.disregards);
        let found = move |violation: &Violation| {
            if !disregards() {
                reports.found(violation_text(violation, None));
            }
        };
        let outcome = lives.run(self.run.reporting(Box::new(found)))?;
        control.minimising(!outcome.violations.is_empty() && self.minimising_runs > 0);
        report.add(&outcome);
        for (i, violation) in outcome.violations.iter().enumerate() {
            let finding = match i {
                0 if !violation.is_structural => {
                    let runs_max = self.minimising_runs;
                    reduced(self.registry, &self.specs, &self.how, violation, runs_max, &control)
                }
                _ => None,
            };
            let told = || {
                let retold = if i == 0 {
                    retold(&self.specs[0], &self.how, violation, &control)
                } else {
                    None
                };
                Finding {
                    timeline: retold.unwrap_or_else(|| timeline_without_program(violation)),
                    violation: violation.clone(),
                    replay: None,
                    seed: None,
                    minimised: None,
                }
            };
            report.findings.push(finding.unwrap_or_else(told));
        }
        Ok(report)
    }
}

/// The timeline of a violation that no program shows: the run once more, up to the same crash point.
fn retold(
    spec: &Spec,
    how: &Thoroughness,
    violation: &Violation,
    control: &Arc<Control>,
) -> Option<Timeline> {
    let failure = violation.failure.clone()?;
    if !violation.before.is_empty() {
        return None;
    }
    let at = CrashAt::Point { number: violation.point, failure };
    let structures_every = u64::from(violation.is_structural);
    let how = Thoroughness { at, structures_every, violations_max: 1, ..how.clone() };
    let run = CrashRun::new(spec, None, how).ok()?.under(control).traced_last(ROWS_MAX);
    let outcome = run.run(None).ok()?;
    let again = outcome.violations.first()?;
    let post_crash = &again.post_crash;
    let is_short = post_crash.saved.len() + post_crash.recovered.len() <= ROWS_MAX;
    let (start, end) = spec.data_region();
    let name = |addr: Addr| (is_short && addr >= start && addr < end).then(|| addr.to_string());
    let mut timeline = timeline_of(&outcome.trace, again, &name);
    timeline.left_out += outcome.trace_dropped;
    Some(timeline)
}

/// The run as a litmus program, reduced if only part of it is needed.
fn reduced(
    registry: &Registry,
    specs: &[Spec],
    how: &Thoroughness,
    violation: &Violation,
    runs_max: u32,
    control: &Arc<Control>,
) -> Option<Finding> {
    let spec = &specs[0];
    let failed = |life: usize| match violation.before.get(life) {
        Some((point, failure)) => (*point, failure.clone()),
        None => (violation.point, violation.failure.clone().unwrap_or_default()),
    };
    // Each life ends as it did.
    let how = |life: usize| {
        let (number, failure) = failed(life);
        Thoroughness { at: CrashAt::Point { number, failure }, ..how.clone() }
    };
    let logs = RefCell::new(Vec::new());
    let lives = Lives {
        specs: &specs[..=violation.before.len()],
        how: &how,
        control,
        logs: Some(&logs),
        next: 0,
    };
    lives.run(lives.first().ok()?.under(control)).ok()?;
    let litmus = to_litmus(&logs.into_inner(), registry, spec, &violation.what)?;
    let least = if runs_max == 0 {
        None
    } else {
        let seed = spec.seed;
        minimise_observed(registry, &litmus, spec.design, violation, seed, runs_max, control)
    };
    let minimised = least.as_ref().map(|least| least.effort);
    let replay = least.map_or_else(
        || {
            let mut litmus = litmus.clone();
            let lives = litmus.lives.iter_mut().enumerate();
            lives.for_each(|(number, life)| life.crash = how(number).at);
            litmus
        },
        |least| least.litmus,
    );
    let (violation, timeline) = replayed_timeline(registry, &replay, spec.design).ok()??;
    Some(Finding {
        violation,
        timeline,
        replay: Some(as_claimed(registry, replay, spec.design)),
        seed: None,
        minimised,
    })
}
