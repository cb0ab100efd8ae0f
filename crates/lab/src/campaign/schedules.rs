//! Schedules of the adversary on one design, one after the other: a chunk of a campaign, or a small campaign by itself.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::report::{Finding, Report, violation_text};
use super::request::Chunk;
use crate::adversary::{Adversary, Draws};
use crate::case::{Case, DRAWN, LitmusError, SetBy};
use crate::explorer::{Outcome, Thoroughness, Violation};
use crate::litmus::{Life, Litmus, MACHINE};
use crate::minimise::{Minimised, RUNS, minimise_observed};
use graven_base::config::{Config, ConfigError};
use graven_base::control::Control;
use graven_machine::design::DesignInfo;
use graven_machine::registry::Registry;
use graven_machine::sim::SimError;

/// Memory of the host that schedules take at most, one at a time, in bytes. By the end of 1,500
/// schedules a host used up to 250 MB for silo, hoop and osp, and 380 MB for lsm (seed 947, with 300 GB of PM). Machines and
/// programs of all designs are drawn within the same bounds.
pub const HOST_BYTES: u64 = 400 << 20;

/// Schedules with consecutive seeds.
#[derive(Clone)]
pub struct Schedules<'r> {
    registry: &'r Registry,
    /// That of programs that name none.
    machine: Config,
    design: &'static DesignInfo,
    mutant: Option<String>,
    settings: Vec<(String, String)>,
    draws: Draws,
    first_seed: u64,
    seeds: u64,
    violations_max: usize,
    /// Most runs that minimising a violation's program takes; 0: it stays as it was drawn.
    minimising_runs: u32,
    control: Arc<Control>,
}

impl<'r> Schedules<'r> {
    /// Schedules `first_seed..first_seed + seeds`, with these settings on top of what is drawn, up to
    /// a number of violations.
    ///
    /// # Errors
    /// A mutant that the design does not have, or settings that do not fit.
    ///
    /// # Panics
    /// Seeds do not fit 64 bits, or no violation is allowed.
    pub fn new(
        registry: &'r Registry,
        design: &'static DesignInfo,
        mutant: Option<String>,
        settings: Vec<(String, String)>,
        (first_seed, seeds): (u64, u64),
        violations_max: usize,
    ) -> Result<Schedules<'r>, LitmusError> {
        assert!(first_seed.checked_add(seeds).is_some(), "seeds fit 64 bits");
        assert!(violations_max > 0, "schedules run until a violation");
        if let Some(name) = &mutant {
            design.mutation(name)?;
        }
        // Not with what is drawn: a schedule that does not fit is counted when it is its turn.
        let lives = vec![Life { threads: vec![Vec::new()], ..Life::default() }];
        let plain = Litmus { lives, settings: settings.clone(), ..Litmus::default() };
        Case::on(registry.machine(MACHINE)?, &plain, design, SetBy::Arguments)?;
        let control = Arc::default();
        Ok(Schedules {
            registry,
            machine: registry.machine(MACHINE)?,
            design,
            mutant,
            settings,
            draws: Draws::default(),
            first_seed,
            seeds,
            violations_max,
            minimising_runs: RUNS,
            control,
        })
    }

    /// The same, drawn within other bounds.
    pub fn within(mut self, draws: Draws) -> Schedules<'r> {
        self.draws = draws;
        self
    }

    /// The same, whose findings have the programs that were drawn, not the least that violate as they do: for who asks
    /// only whether there is a violation. To minimise takes hundreds of runs.
    pub fn as_drawn(self) -> Schedules<'r> {
        self.minimising(0)
    }

    /// The same, whose violations' programs are minimised in this many runs at most; with none, they stay as they were drawn.
    pub fn minimising(mut self, runs_max: u32) -> Schedules<'r> {
        self.minimising_runs = runs_max;
        self
    }

    /// The same, as part of a computation.
    pub(crate) fn under(mut self, control: &Arc<Control>) -> Schedules<'r> {
        self.control = Arc::clone(control);
        self
    }

    /// The schedules of a chunk instead, cancelled and observed by `control`.
    pub(super) fn over(&self, chunk: Chunk, control: &Arc<Control>) -> Schedules<'r> {
        let end = chunk.end_seed();
        assert!(self.first_seed <= chunk.first_seed && end <= self.first_seed + self.seeds);
        Schedules {
            first_seed: chunk.first_seed,
            seeds: chunk.seeds,
            control: Arc::clone(control),
            ..self.clone()
        }
    }

    /// For observing and cancelling from another thread: schedules, and power failures.
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    fn program(&self, adversary: &mut Adversary, seed: u64) -> Litmus {
        let mut litmus = adversary.schedule(seed);
        litmus.mutant.clone_from(&self.mutant);
        litmus.settings.extend(self.settings.iter().cloned());
        litmus
    }

    fn case(&self, litmus: &Litmus) -> Result<Case, LitmusError> {
        let machine = match &litmus.machine {
            None => self.machine.clone(),
            Some(name) => self.registry.machine(name)?,
        };
        let set_by = SetBy::Adversary { on_top: &self.settings };
        let case = Case::on(machine, litmus, self.design, set_by)?;
        Ok(case.examined(Thoroughness::DRAWN).under(&self.control))
    }

    /// The adversary as it is before the first schedule: it has seen those of the family that come before.
    fn adversary(&self) -> Result<Adversary, SimError> {
        let mut adversary = Adversary::new(self.machine.clone(), self.design, self.draws)
            .with(self.settings.clone());
        for seed in adversary.before(self.first_seed) {
            let litmus = self.program(&mut adversary, seed);
            if let Ok(case) = self.case(&litmus) {
                adversary.learn(&case.run()?.reached());
            }
        }
        Ok(adversary)
    }

    /// Runs one after the other, and says what came of each, until that is enough.
    ///
    /// # Errors
    /// [`SimError::Cancelled`], or what `take` returns.
    pub(crate) fn each(
        &self,
        mut take: impl FnMut(
            u64,
            &Litmus,
            Result<Outcome, LitmusError>,
        ) -> Result<ControlFlow<()>, SimError>,
    ) -> Result<(), SimError> {
        let mut adversary = self.adversary()?;
        for seed in self.first_seed..self.first_seed + self.seeds {
            if self.control.report(seed - self.first_seed) {
                return Err(SimError::Cancelled);
            }
            let litmus = self.program(&mut adversary, seed);
            let outcome = match self.case(&litmus) {
                Ok(case) => {
                    let outcome = case.run()?;
                    adversary.learn(&outcome.reached());
                    Ok(outcome)
                }
                Err(error) => Err(error),
            };
            if take(seed, &litmus, outcome)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Runs all of them, or until there are violations enough. The report is whole: when it is cancelled, there is none,
    /// also while a program is minimised.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn run(self) -> Result<Report, SimError> {
        let mut report = Report::new(self.design);
        report.next_seed = self.first_seed;
        self.each(|seed, litmus, outcome| {
            report.next_seed = seed + 1;
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(error) => {
                    report.refused += 1;
                    report.refusal.get_or_insert_with(|| self.misfit(seed, litmus, &error));
                    return Ok(ControlFlow::Continue(()));
                }
            };
            let refused = outcome.refused.as_ref().map(|why| self.refusal(seed, litmus, why));
            let outcome = Outcome { refused, ..outcome };
            report.add(&outcome);
            self.control.checked(report.tally.recoveries());
            if let Some(violation) = outcome.violations.into_iter().next() {
                self.control.found(violation_text(&violation, Some(seed)));
                report.findings.push(self.finding(seed, litmus, violation)?);
                if report.findings.len() >= self.violations_max {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.control.report(self.seeds);
        Ok(report)
    }

    /// Settings that the adversary has drawn for a schedule, without those on top of them.
    fn drawn<'l>(&self, litmus: &'l Litmus) -> &'l [(String, String)] {
        &litmus.settings[..litmus.settings.len() - self.settings.len()]
    }

    /// Refuses a schedule that does not fit the design: what was drawn is at fault, since all else fits without it.
    fn misfit(&self, seed: u64, litmus: &Litmus, error: &LitmusError) -> String {
        let LitmusError::Config(ConfigError::Inconsistent { origin, key, value, why }) = error
        else {
            return self.refusal(seed, litmus, &error.to_string());
        };
        if origin == DRAWN {
            let what = format!("drawn `{key}` = {value} does not fit: {why}");
            return self.refusal(seed, litmus, &what);
        }
        // No key that was drawn is among those that do not fit each other: the program itself is too large.
        let threads = litmus.lives.iter().map(|life| life.threads.len()).max().unwrap_or(0);
        let what =
            format!("drawn threads = {threads} does not fit `{key}` = {value} ({origin}): {why}");
        self.refusal(seed, litmus, &what)
    }

    /// Refuses a schedule for a reason, which may name keys: of those that were drawn it says so.
    fn refusal(&self, seed: u64, litmus: &Litmus, why: &str) -> String {
        let is_named = |(key, _): &&(String, String)| {
            why.contains(key.as_str()) && !why.contains(&format!("drawn `{key}`"))
        };
        let named: Vec<_> = self.drawn(litmus).iter().filter(is_named).cloned().collect();
        if named.is_empty() {
            return format!("seed {seed}: {why}");
        }
        format!("seed {seed}: {why} (drawn: {})", pairs_text(&named))
    }

    /// A violation with its program, minimised if nothing else was asked for.
    ///
    /// # Errors
    /// [`SimError::Cancelled`]: minimisation then stops with the program that it has reached, which depends on the time.
    fn finding(
        &self,
        seed: u64,
        litmus: &Litmus,
        violation: Violation,
    ) -> Result<Finding, SimError> {
        let mut replay = litmus.clone();
        let mut effort = None;
        if self.minimising_runs > 0 {
            if let Some(least) = self.least(litmus, &violation)? {
                replay = least.litmus;
                effort = Some(least.effort);
            }
            replay.title = format!("{}, reduced", replay.title);
        } else {
            violation.pin(&mut replay);
        }
        let finding = Finding::of(self.registry, replay, self.design, violation, Some(seed));
        Ok(Finding { minimised: effort, ..finding })
    }

    fn least(&self, litmus: &Litmus, violation: &Violation) -> Result<Option<Minimised>, SimError> {
        self.control.minimising(true);
        let (runs, control) = (self.minimising_runs, &self.control);
        let least =
            minimise_observed(self.registry, litmus, self.design, violation, 0, runs, control);
        self.control.minimising(false);
        if self.control.is_cancelled() {
            return Err(SimError::Cancelled);
        }
        Ok(least)
    }
}

/// Settings as a sentence has them.
fn pairs_text(settings: &[(String, String)]) -> String {
    let pairs = settings.iter().map(|(key, value)| format!("{key} = {value}"));
    pairs.collect::<Vec<_>>().join(", ")
}
