//! A run that is crashed wherever it can be.

use std::sync::Arc;

use thiserror::Error;

use super::assertion::caught;
use super::complete::Known;
use super::coverage::{Coverage, add_counts};
use super::points::{CrashExplorer, Expect, NextLife, Reports, Tally, Thoroughness, Violation};
use super::sharing::Sharers;
use crate::checker::{self, Race};
use graven_base::config::ConfigError;
use graven_base::control::Control;
use graven_base::time::{Cycle, NEVER};
use graven_machine::design::operators::Profile;
use graven_machine::sim::{ProgramDeadlock, Recovered, SimError, Simulation, Spec};
use graven_machine::trace_event::TraceEvent;
use graven_machine::workload::Workload;

/// Threads of a program that wait for each other for ever.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the program's threads wait for each other for ever, under any design: {threads}")]
pub struct Deadlock {
    /// The number of lives between the run that tells of it and this one.
    pub lives_later: usize,
    /// The threads.
    pub threads: ProgramDeadlock,
}

impl Deadlock {
    /// One of the run itself.
    pub(super) fn of(threads: ProgramDeadlock) -> Deadlock {
        Deadlock { lives_later: 0, threads }
    }

    /// The same, told by the life before.
    pub(super) fn before(self) -> Deadlock {
        Deadlock { lives_later: self.lives_later + 1, ..self }
    }
}

/// The result of a run in the laboratory.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Guarantees that were broken.
    pub violations: Vec<Violation>,
    /// The checks.
    pub tally: Tally,
    /// The states that were reached.
    pub coverage: Coverage,
    /// The frequency of each cover point of the design.
    pub cover_points: Vec<u64>,
    /// The counts of machine and design, if they are wanted.
    pub counts: Vec<u64>,
    /// The design refused to continue as configured: nothing was broken, but the run did not end.
    pub refused: Option<String>,
    /// Threads of the program wait for each other for ever, whatever the design does; `refused` says so, too.
    pub deadlock: Option<Deadlock>,
    /// The program broke its part of the contract by this store; `refused` says so, too.
    pub race: Option<Race>,
    /// Words that the program stored to outside transactions, in this life: they were held to nothing until a transaction stored
    /// to them.
    pub words_stored_outside: u64,
    /// The design's actions at its boundary with the machine, if a profile is wanted.
    pub profile: Option<Profile>,
    /// Options of each of the adversary's choices, if they were listed.
    pub options: Vec<u8>,
    /// The states that were examined, if that is to be complete.
    pub known: Option<Known>,
    /// Power failures of this life that shared work of recovery with others.
    pub sharers: Sharers,
    /// All trace events, if they were to be recorded.
    pub trace: Vec<(Cycle, TraceEvent)>,
    /// Events before those, which were recorded and are no longer there.
    pub trace_dropped: usize,
}

impl Outcome {
    /// With what the laboratory has found.
    fn with(self, laboratory: CrashExplorer<'_>) -> Outcome {
        Outcome {
            violations: laboratory.violations,
            tally: laboratory.tally,
            coverage: laboratory.coverage,
            known: laboratory.known,
            deadlock: laboratory.deadlock,
            sharers: laboratory.shared.sharers,
            trace: laboratory.trace.unwrap_or_default(),
            trace_dropped: laboratory.trace_dropped,
            ..self
        }
    }

    /// The frequency of each state that can be reached: states of any design, cover points, and counts.
    pub fn reached(&self) -> Vec<u64> {
        let all = self.coverage.counts().iter().chain(&self.cover_points).chain(&self.counts);
        all.copied().collect()
    }
}

/// A run, ready to be crashed.
pub struct CrashRun {
    simulation: Simulation,
    how: Thoroughness,
    seed: u64,
    keeps_trace: bool,
    trace_last: usize,
    known: Option<Known>,
    keeps_counts: bool,
    reports: Option<Reports>,
}

impl CrashRun {
    /// A run of a specification. `workload`: built already, or the specification's.
    ///
    /// # Errors
    /// Parameters that design or workload cannot work with.
    pub fn new(
        spec: &Spec,
        workload: Option<Box<dyn Workload>>,
        how: Thoroughness,
    ) -> Result<CrashRun, ConfigError> {
        let simulation = match workload {
            Some(workload) => Simulation::with_workload(spec, workload)?,
            None => Simulation::new(spec)?,
        };
        Ok(CrashRun::of(simulation, how))
    }

    /// A run on a machine that is switched on again after a recovery.
    ///
    /// # Errors
    /// Parameters that the design cannot work with.
    pub fn again(
        spec: &Spec,
        workload: Box<dyn Workload>,
        recovered: Recovered,
        how: Thoroughness,
    ) -> Result<CrashRun, ConfigError> {
        Ok(CrashRun::of(Simulation::again(spec, workload, recovered)?, how))
    }

    fn of(mut simulation: Simulation, how: Thoroughness) -> CrashRun {
        checker::attach(&mut simulation);
        if how.is_complete {
            simulation.follow_digests();
        }
        simulation.keep_trace();
        let seed = simulation.spec().seed;
        CrashRun {
            simulation,
            how,
            seed,
            keeps_trace: false,
            trace_last: usize::MAX,
            known: None,
            keeps_counts: false,
            reports: None,
        }
    }

    /// With what is torn and what lands drawn from this seed instead of the specification's.
    pub fn drawing(mut self, seed: u64) -> CrashRun {
        self.seed = seed;
        self
    }

    /// Knows what was found in other runs of the same program.
    pub fn knowing(mut self, known: Known) -> CrashRun {
        self.known = Some(known);
        self
    }

    /// Records all trace events, for [`Outcome::trace`].
    pub fn traced(mut self) -> CrashRun {
        self.keeps_trace = true;
        self.simulation.keep_notes();
        self
    }

    /// The same of the last `events` events before the run stops: a long run has more than the host has memory for.
    pub fn traced_last(self, events: usize) -> CrashRun {
        CrashRun { trace_last: events, ..self.traced() }
    }

    /// Reports each violation as it is found.
    pub fn reporting(mut self, reports: Reports) -> CrashRun {
        self.reports = Some(reports);
        self
    }

    /// Tells what machine and design have counted, in [`Outcome::counts`].
    pub fn counted(mut self) -> CrashRun {
        self.keeps_counts = true;
        self
    }

    /// Takes a profile of the design, for [`Outcome::profile`].
    pub fn profiled(mut self) -> CrashRun {
        self.simulation.take_profile();
        self
    }

    /// Is part of a computation, and stops when that is cancelled.
    pub fn under(mut self, parent: &Arc<Control>) -> CrashRun {
        self.simulation.set_control(Arc::new(Control::under(parent)));
        self
    }

    /// For watching and cancelling from another thread; the units of work are transactions.
    pub fn control(&self) -> Arc<Control> {
        self.simulation.control()
    }

    /// Runs to the end, or until there are violations enough.
    ///
    /// # Errors
    /// [`SimError::Cancelled`] only: whatever else ends a run is part of the outcome.
    pub fn run(self, expectations: Option<&mut dyn Expect>) -> Result<Outcome, SimError> {
        self.run_on(expectations, None)
    }

    /// The same, with a life that follows recoveries.
    ///
    /// # Errors
    /// [`SimError::Cancelled`] only.
    pub fn run_on<'a>(
        self,
        expectations: Option<&'a mut dyn Expect>,
        next_life: Option<&'a mut dyn NextLife>,
    ) -> Result<Outcome, SimError> {
        let mut laboratory = CrashExplorer::new(self.how, self.seed);
        (laboratory.expectations, laboratory.next_life) = (expectations, next_life);
        laboratory.known = self.known.or(laboratory.known);
        laboratory.trace = self.keeps_trace.then(Vec::new);
        laboratory.trace_last = self.trace_last;
        laboratory.reports = self.reports;
        let mut simulation = self.simulation;
        let mut outcome = Outcome::default();
        let ended = caught(|| run_to_the_end(&mut simulation, &mut laboratory));
        if laboratory.cancelled {
            return Err(SimError::Cancelled);
        }
        let ended = match ended {
            Ok(ended) => ended,
            Err(what) => {
                // Nothing more is asked of a simulation that has stopped in the midst of something.
                laboratory.assertion_failed(simulation.machine().now(), what);
                outcome.cover_points = std::mem::take(&mut laboratory.cover_points);
                laboratory.report_failed_run();
                return Ok(outcome.with(laboratory));
            }
        };
        match ended {
            Ok(()) => laboratory.ended(&simulation),
            Err(SimError::Cancelled) => return Err(SimError::Cancelled),
            Err(SimError::Design { why, .. }) => outcome.refused = Some(why),
            Err(SimError::ProgramDeadlock(deadlock)) => {
                laboratory.deadlock = Some(Deadlock::of(deadlock));
            }
            Err(error) => {
                laboratory.run_failed(simulation.machine().now(), error.to_string());
            }
        }
        if let Some(race) = checker::race(&simulation) {
            // What comes of it is nobody's fault but the program's.
            laboratory.violations.retain(|violation| violation.failure.is_some());
            outcome.refused.get_or_insert_with(|| race.to_string());
            outcome.race = Some(race);
        }
        laboratory.report_failed_run();
        outcome.words_stored_outside = checker::words_stored_outside(&simulation);
        outcome.profile = simulation.profile().cloned();
        outcome.cover_points = simulation.machine().cover_points().to_vec();
        add_counts(&mut outcome.cover_points, &laboratory.cover_points);
        if self.keeps_counts {
            outcome.counts = simulation.counts().iter().map(|(_, count)| count).collect();
        }
        let deadlock = laboratory.deadlock.as_ref().map(Deadlock::to_string);
        outcome.refused = outcome.refused.or(deadlock).or_else(|| laboratory.refused.take());
        let adversary = simulation.machine().memory.shared.adversary.as_ref();
        outcome.options = adversary.map_or(Vec::new(), |adversary| adversary.options().to_vec());
        Ok(outcome.with(laboratory))
    }
}

fn run_to_the_end(
    simulation: &mut Simulation,
    laboratory: &mut CrashExplorer<'_>,
) -> Result<(), SimError> {
    if simulation.advance_observed(NEVER, laboratory)? {
        simulation.finish_observed(laboratory)?;
    }
    Ok(())
}
