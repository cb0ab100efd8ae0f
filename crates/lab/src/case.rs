//! Litmus programs, run: on a design, with power failing where they say.

use std::sync::Arc;

use thiserror::Error;

use crate::checker;
use crate::explorer::{
    CrashRun, Deadlock, Expect, Known, LivesAfter, NextLife, Outcome, Thoroughness, Violation,
    add_counts, caught,
};
use crate::litmus::{
    Choices, Circle, CrashAt, Departure, Expectation, Layout, LayoutError, Life, Litmus,
    LitmusWorkload, MACHINE, WORKLOAD, When, Word, crash_steps, waits_with_a_lock,
};
use graven_base::config::{Config, ConfigError};
use graven_base::control::Control;
use graven_base::memory::{Addr, Image};
use graven_base::time::NEVER;
use graven_machine::design::operators::Profile;
use graven_machine::design::{DesignContext, DesignInfo, Guarantee, MutantSet, Room};
use graven_machine::registry::Registry;
use graven_machine::sim::{Crash, CrashOptions, Observer, Recovered, SimError, Simulation, Spec};

/// Why a program cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LitmusError {
    /// The designs, machine, settings or mutant.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The variables.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

impl LitmusError {
    /// Tells whether values do not fit each other, or the design: with another design they may.
    pub fn is_misfit(&self) -> bool {
        matches!(self, LitmusError::Config(ConfigError::Inconsistent { .. }))
    }
}

/// The origin of a refusal of a value that the adversary has drawn.
pub(crate) const DRAWN: &str = "drawn";

/// Whoever has set the values that a program sets, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy<'a> {
    /// The program, by its statements `set`.
    Program,
    /// The command line.
    Arguments,
    /// The adversary, but for these last ones, which are of the command line.
    Adversary {
        /// By `SECTION.KEY`.
        on_top: &'a [(String, String)],
    },
}

impl SetBy<'_> {
    /// Sets what a program sets. Of values that do not fit each other, the one that is set last is refused; the adversary's are
    /// set last, since what it has drawn is at fault.
    fn set(self, config: &mut Config, settings: &[(String, String)]) -> Result<(), ConfigError> {
        let mut all = |origin: &str, settings: &[(String, String)]| {
            settings.iter().try_for_each(|(key, value)| config.set_by(origin, key, value))
        };
        match self {
            SetBy::Program => all("statement `set`", settings),
            SetBy::Arguments => all("--set", settings),
            SetBy::Adversary { on_top } => {
                all("--set", on_top)?;
                let mut drawn = settings[..settings.len() - on_top.len()].to_vec();
                drawn.retain(|(key, _)| on_top.iter().all(|(of, _)| of.trim() != key));
                all(DRAWN, &drawn)
            }
        }
    }
}

/// A program and a design that it is to be run on.
#[derive(Clone)]
pub struct Case {
    /// One for each life.
    specs: Vec<Spec>,
    layout: Layout,
    litmus: Litmus,
    how: Thoroughness,
    parent: Option<Arc<Control>>,
}

/// The designs that a program is for, and whether each must violate their guarantee.
///
/// # Errors
/// Names that do not exist.
pub fn designs_of(
    registry: &Registry,
    litmus: &Litmus,
) -> Result<Vec<(&'static DesignInfo, bool)>, ConfigError> {
    let find = |name: &String| registry.find_design(name);
    let mut all: Vec<(&DesignInfo, bool)> = if litmus.designs.is_empty()
        && litmus.violates.is_empty()
    {
        // What is expected at some point is there if commits are durable.
        let fits = |d: &DesignInfo, config: &Config| {
            d.is_sound(config)
                && (litmus.expectations.is_empty() || d.guarantee_in(config) == Guarantee::Durable)
        };
        let config = registry.defaults();
        registry.designs().iter().filter(|d| fits(d, &config)).map(|&d| (d, false)).collect()
    } else {
        let found: Result<Vec<_>, _> = litmus.designs.iter().map(find).collect();
        found?.into_iter().map(|d| (d, false)).collect()
    };
    for name in &litmus.violates {
        all.push((registry.find_design(name)?, true));
    }
    Ok(all)
}

impl Case {
    /// Checks everything; nothing runs.
    ///
    /// # Errors
    /// Whatever does not exist or fit.
    pub fn new(
        registry: &Registry,
        litmus: &Litmus,
        design: &'static DesignInfo,
    ) -> Result<Case, LitmusError> {
        let machine = registry.machine(litmus.machine.as_deref().unwrap_or(MACHINE))?;
        Case::on(machine, litmus, design, SetBy::Program)
    }

    /// The same of a program for this machine, whose values were set by someone.
    ///
    /// # Errors
    /// Whatever does not exist or fit.
    pub fn on(
        machine: Config,
        litmus: &Litmus,
        design: &'static DesignInfo,
        set_by: SetBy<'_>,
    ) -> Result<Case, LitmusError> {
        let mut config = machine;
        set_by.set(&mut config, &litmus.settings)?;
        let (mutants, operator) = match &litmus.mutant {
            Some(name) => design.mutation(name)?,
            None => (MutantSet::NONE, None),
        };
        let spec = |life: &Life| {
            let (config, threads) = (config.clone(), life.threads.len() as u64);
            let mut spec = Spec::new(config, design, &WORKLOAD, Some(threads), Some(1), 0)?;
            spec.crash_options = CrashOptions {
                mutants,
                operator: operator.clone(),
                first_transaction: life.first_transaction,
                garbage: litmus.garbage,
                adversary: life.adversary.clone(),
            };
            spec.check_design()?;
            Ok(spec)
        };
        let specs = litmus.lives.iter().map(spec).collect::<Result<Vec<_>, LitmusError>>()?;
        let (start, end) = specs[0].data_region();
        let layout = Layout::new(litmus, start, end)?;
        Ok(Case { specs, layout, litmus: litmus.clone(), how: Thoroughness::SHORT, parent: None })
    }

    /// The guarantee to which it is held.
    pub fn guarantee(&self) -> Guarantee {
        let spec = &self.specs[0];
        spec.design.guarantee_in(&spec.config)
    }

    /// The same, examined differently.
    pub fn examined(mut self, how: Thoroughness) -> Case {
        self.how = how;
        self
    }

    /// As part of a computation: its run is cancelled with that.
    pub fn under(mut self, parent: &Arc<Control>) -> Case {
        self.parent = Some(Arc::clone(parent));
        self
    }

    /// With what is torn and what lands drawn from this seed instead of 0.
    pub fn drawing(mut self, seed: u64) -> Case {
        self.specs.iter_mut().for_each(|spec| spec.seed = seed);
        self
    }

    /// Machine and parameters.
    pub fn config(&self) -> &Config {
        &self.specs[0].config
    }

    /// The places of the structures that the design declares.
    pub fn rooms(&self) -> Vec<Room> {
        let context = self.specs[0].context();
        self.specs[0].design.capacities.iter().map(|capacity| (capacity.room)(&context)).collect()
    }

    /// The layout of the variables.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn run(&self) -> Result<Outcome, SimError> {
        let outcome = self.run_lives(self.first().counted(), 0, false)?;
        let outcome = match outcome.violations.first().cloned() {
            Some(violation) if self.may_be_at_fault(&violation) => {
                self.unless_at_fault(outcome, &violation)?
            }
            _ => outcome,
        };
        Ok(match &outcome.deadlock {
            None => outcome,
            Some(deadlock) => Outcome { refused: Some(self.told(deadlock)), ..outcome },
        })
    }

    /// Runs each life's threads without power failures, if they might wait for each other for ever, and returns whether they do.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn rehearse(&self) -> Result<Option<Deadlock>, SimError> {
        let how = Thoroughness {
            at: CrashAt::Marked,
            lives_after: LivesAfter::None,
            violations_max: usize::MAX,
            ..self.how.clone()
        };
        for (number, life) in self.litmus.lives.iter().enumerate() {
            if !waits_with_a_lock(&life.threads) {
                continue;
            }
            let outcome = self.life(number, how.clone()).run(None)?;
            if let Some(deadlock) = outcome.deadlock {
                return Ok(Some(Deadlock { lives_later: number, ..deadlock }));
            }
        }
        Ok(None)
    }

    /// The threads of the program that wait for each other, by the names and steps of the program.
    fn told(&self, deadlock: &Deadlock) -> String {
        let circle = Circle::of_run(&self.litmus, deadlock.lives_later, &deadlock.threads);
        circle.map_or_else(|| deadlock.to_string(), |circle| circle.to_string())
    }

    /// Says that the violated life may end with a race, or with threads that wait for each other: the first life with either, a
    /// later one with the latter.
    fn may_be_at_fault(&self, violation: &Violation) -> bool {
        let life = violation.before.len();
        life == 0 || waits_with_a_lock(&self.litmus.lives[life].threads)
    }

    /// Returns the outcome, or the refusal of the program if the violated life, run to its end after the same power failures, shows
    /// a race or threads that wait for each other. Such a program is refused whatever was found before: software that logs a word
    /// has read it before it is stored to, so a race may violate before it is seen.
    fn unless_at_fault(
        &self,
        outcome: Outcome,
        violation: &Violation,
    ) -> Result<Outcome, SimError> {
        let mut whole = self.clone();
        violation.pin(&mut whole.litmus);
        let violated = whole.litmus.lives.last_mut().expect("a program has a life");
        violated.crash = CrashAt::Marked;
        whole.specs.truncate(whole.litmus.lives.len());
        whole.how.violations_max = usize::MAX;
        let to_the_end = whole.run_lives(whole.first(), 0, false)?;
        let race = to_the_end.race.map(|race| race.to_string());
        match race.or_else(|| to_the_end.deadlock.as_ref().map(Deadlock::to_string)) {
            None => Ok(outcome),
            refused => {
                let deadlock = to_the_end.deadlock;
                Ok(Outcome { refused, deadlock, ..Outcome::default() })
            }
        }
    }

    /// Runs the first of these, which differ in their second lives only, with listed choices of an adversary and with what
    /// was examined in other runs of it; each of the second lives follows. Also returns which of them broke the guarantee,
    /// if one did.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    ///
    /// # Panics
    /// There is none.
    pub fn run_departing(
        cases: &[Case],
        departures: &[Departure],
        known: Known,
    ) -> Result<(Outcome, usize), SimError> {
        let first = &cases[0];
        let mut spec = first.specs[0].clone();
        spec.crash_options.adversary = Some(Choices::Listed(departures.to_vec()));
        let run = CrashRun::new(&spec, Some(first.workload(0)), first.how_in(0));
        let run = first.part_of_parent(run.expect("it was built before").knowing(known));
        let mut next = NextOfAny { cases, violated: 0 };
        let life: Option<&mut dyn NextLife> =
            if first.specs.len() > 1 { Some(&mut next) } else { None };
        let outcome = run.run_on(None, life)?;
        Ok((outcome, next.violated))
    }

    /// Runs it up to the first violation, recording all trace events.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn traced(&self) -> Result<Outcome, SimError> {
        self.run_lives(self.first(), 0, true)
    }

    /// Runs it without a power failure, and tells what the design does at its boundary with the machine.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn profile(&self) -> Result<Profile, SimError> {
        let how = Thoroughness {
            at: CrashAt::Everywhere,
            torn_every: 0,
            in_flight_every: 0,
            recovery_every: 0,
            ..self.how.clone()
        };
        let outcome = self.life(0, how).profiled().run(None)?;
        Ok(outcome.profile.unwrap_or_default())
    }

    /// The simulation of its first life, whose transactions are followed.
    ///
    /// # Panics
    /// Never: it was built before.
    pub fn simulation(&self) -> Simulation {
        let built = Simulation::with_workload(&self.specs[0], self.workload(0));
        let mut simulation = built.expect("it was built before");
        checker::attach(&mut simulation);
        simulation
    }

    /// Returns true if the design does not run one of the lives to its end, by itself on a new machine, since there is no room
    /// for it.
    ///
    /// # Panics
    /// Never: it was built before.
    pub fn is_refused(&self) -> bool {
        self.specs.iter().enumerate().any(|(life, spec)| {
            let built = Simulation::with_workload(spec, self.workload(life));
            let mut simulation = built.expect("it was built before");
            let mut first = FirstActions { left: self.how.actions_max };
            let ended = caught(|| simulation.advance_observed(NEVER, &mut first));
            matches!(ended, Ok(Err(SimError::Design { .. })))
        })
    }

    fn workload(&self, life: usize) -> Box<LitmusWorkload> {
        Box::new(LitmusWorkload::new(&self.litmus, &self.layout, life))
    }

    fn how_in(&self, life: usize) -> Thoroughness {
        Thoroughness { at: self.litmus.lives[life].crash.clone(), ..self.how.clone() }
    }

    /// Returns a run of a life's threads on a machine that nothing was done on before.
    fn life(&self, life: usize, how: Thoroughness) -> CrashRun {
        let run = CrashRun::new(&self.specs[life], Some(self.workload(life)), how);
        self.part_of_parent(run.expect("it was built before"))
    }

    /// Returns the run of the first life.
    fn first(&self) -> CrashRun {
        self.life(0, self.how_in(0))
    }

    fn part_of_parent(&self, run: CrashRun) -> CrashRun {
        match &self.parent {
            Some(parent) => run.under(parent),
            None => run,
        }
    }

    /// Runs a life, and those that follow it.
    fn run_lives(&self, run: CrashRun, life: usize, is_traced: bool) -> Result<Outcome, SimError> {
        let run = if is_traced { run.traced() } else { run };
        let mut next = Next { case: self, life: life + 1, is_traced };
        let next: Option<&mut dyn NextLife> =
            if life + 1 < self.specs.len() { Some(&mut next) } else { None };
        run.run_on(Some(&mut Expectations { case: self, life }), next)
    }
}

/// Stops a run after a number of actions.
struct FirstActions {
    left: u64,
}

impl Observer for FirstActions {
    fn after_action(&mut self, _simulation: &mut Simulation) {
        self.left = self.left.saturating_sub(1);
    }

    fn stops(&self) -> bool {
        self.left == 0
    }
}

/// The life of a case that is next.
struct Next<'a> {
    case: &'a Case,
    life: usize,
    is_traced: bool,
}

impl NextLife for Next<'_> {
    fn context(&self) -> DesignContext {
        self.case.specs[self.life].context()
    }

    fn begin(&mut self, recovered: Recovered, seed: u64) -> Result<Outcome, SimError> {
        let (case, life) = (self.case, self.life);
        let spec = Spec { seed, ..case.specs[life].clone() };
        let run = CrashRun::again(&spec, case.workload(life), recovered, case.how_in(life));
        let run = case.part_of_parent(run.expect("it was built before"));
        case.run_lives(run, life, self.is_traced)
    }
}

/// The second lives of several cases, one after the other, each on the same bytes.
struct NextOfAny<'a> {
    cases: &'a [Case],
    violated: usize,
}

impl NextLife for NextOfAny<'_> {
    fn context(&self) -> DesignContext {
        self.cases[0].specs[1].context()
    }

    fn begin(&mut self, recovered: Recovered, seed: u64) -> Result<Outcome, SimError> {
        let mut all = Outcome::default();
        for (number, case) in self.cases.iter().enumerate() {
            let mut next = Next { case, life: 1, is_traced: false };
            let outcome = next.begin(recovered.clone(), seed)?;
            all.tally.add(&outcome.tally);
            all.coverage.add(&outcome.coverage);
            add_counts(&mut all.cover_points, &outcome.cover_points);
            all.refused = all.refused.or(outcome.refused);
            if !outcome.violations.is_empty() {
                self.violated = number;
                all.violations = outcome.violations;
                break;
            }
        }
        all.tally.lives = self.cases.len() as u64 - 1;
        Ok(all)
    }
}

struct Expectations<'a> {
    case: &'a Case,
    life: usize,
}

impl Expectations<'_> {
    fn check(&self, e: &Expectation, value: impl Fn(Addr) -> u64) -> Option<String> {
        let holds = |(word, wanted): &(Word, u64)| value(self.case.layout.addr(word)) == *wanted;
        if e.alternatives.iter().any(|all| all.iter().all(holds)) {
            return None;
        }
        let mut words: Vec<&Word> = e.alternatives.iter().flatten().map(|(word, _)| word).collect();
        words.dedup();
        let found: Vec<String> = words
            .iter()
            .map(|word| format!("{word} = {:#x}", value(self.case.layout.addr(word))))
            .collect();
        Some(format!("`{e}` does not hold: {}", found.join(", ")))
    }

    fn of(&self, when: &When, value: impl Fn(Addr) -> u64) -> Option<String> {
        let of_it = self.case.litmus.expectations.iter().filter(|e| e.when == *when);
        of_it.into_iter().find_map(|e| self.check(e, &value))
    }

    fn name(&self, step: u32) -> String {
        crash_steps(&self.case.litmus)[step as usize].into()
    }
}

impl Expect for Expectations<'_> {
    fn survives(&mut self, step: u32, crash: &Crash<'_>) -> Option<String> {
        self.of(&When::Survives(self.name(step)), |addr| crash.image.peek(addr))
    }

    fn recovered(&mut self, step: Option<u32>, crash: &Crash<'_>) -> Option<String> {
        let value = |addr| crash.image.peek(addr);
        step.and_then(|step| self.of(&When::Recovered(self.name(step)), value))
            .or_else(|| self.of(&When::Everywhere, value))
    }

    fn ended(&mut self, memory: &Image) -> Option<String> {
        if self.life + 1 < self.case.specs.len() {
            return None;
        }
        self.of(&When::End, |addr| memory.load(addr))
    }
}
