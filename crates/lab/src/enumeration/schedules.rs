//! The runs of a program: every set of departures that is small enough.
//!
//! The usual run is the first. Its choices are numbered as they come; a run that departs from it at one of them is the
//! same before that, and has choices of its own afterwards, from which runs with two departures come; and so on. So each
//! set of departures is run once, those with fewer first.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use thiserror::Error;

use super::bound::{Bound, BoundError};
use super::programs::{Program, lives, programs};
use crate::campaign::Finding;
use crate::case::{Case, LitmusError, SetBy};
use crate::explorer::{Known, Outcome, Tally, Thoroughness, add_counts};
use crate::litmus::{Choices, Departure, Litmus};
use crate::ordered::{Choose, order_without_transactions, without_transactions};
use graven_base::config::ConfigError;
use graven_base::control::Control;
use graven_machine::design::{DesignInfo, Order};
use graven_machine::registry::Registry;
use graven_machine::sim::SimError;

/// The machine on which programs are enumerated.
pub const MACHINE: &str = "miniature";

/// Takes one operation after the other.
struct Alternately(u32);

impl Choose for Alternately {
    fn one_of(&mut self, count: u32) -> u32 {
        self.0 += 1;
        (self.0 - 1) % count
    }
}

/// The size of a design's structures, logs and fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As the design declares for small programs ([`DesignInfo::scaled_down`]): they fill, overflow and come round.
    Down,
    /// By default, as on other machines: in small programs few of them fill.
    Full,
}

impl Scale {
    /// The design's parameters at this scale, without those that the user sets.
    fn settings(self, design: &DesignInfo, set: &[(String, String)]) -> Vec<(String, String)> {
        let scaled = match self {
            Scale::Down => design.scaled_down,
            Scale::Full => &[],
        };
        let is_set = |key: &str| set.iter().any(|(own, _)| own.trim() == key);
        let left = scaled.iter().filter(|(key, _)| !is_set(key));
        left.map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }
}

/// All programs within a bound, for a design.
pub struct Enumeration<'r> {
    registry: &'r Registry,
    design: &'static DesignInfo,
    mutant: Option<String>,
    /// Those of the scale, then the user's.
    settings: Vec<(String, String)>,
    /// The order that programs are for, if they have no transactions.
    order: Option<&'static Order>,
    bound: Bound,
    programs: Vec<Program>,
    lives: Vec<Program>,
    /// The states that a program's first run has reached.
    known: Known,
    control: Arc<Control>,
}

/// The reason why an enumeration is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EnumerationError {
    /// The size of programs.
    #[error(transparent)]
    Bound(#[from] BoundError),
    /// The design's mutant, or its settings.
    #[error(transparent)]
    Litmus(#[from] LitmusError),
}

impl From<ConfigError> for EnumerationError {
    fn from(error: ConfigError) -> EnumerationError {
        LitmusError::from(error).into()
    }
}

/// The runs that were executed and judged, and their results.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Checked {
    /// Programs.
    pub programs: u64,
    /// Runs of them.
    pub schedules: u64,
    /// Choices of the longest usual run.
    pub choices_max: u64,
    /// Power failures, those included that found what an earlier one had found.
    pub failures: u64,
    /// Those that did.
    pub equal: u64,
    /// Those failures with a torn write.
    pub torn: u64,
    /// With writes that were under way.
    pub landed: u64,
    /// In recovery.
    pub recovery: u64,
    /// Second lives.
    pub lives: u64,
    /// Crash points at which more writes were under way than sets are made of.
    pub crowded: u64,
    /// Runs that the design refuses, as configured, and programs.
    pub refused: u64,
    /// Why the first was.
    pub refusal: Option<String>,
    /// Frequency of each state worth reaching ([`DesignInfo::covered`]).
    pub covered: Vec<u64>,
    /// Guarantees that were broken.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

impl Checked {
    fn add(&mut self, outcome: &Outcome) {
        let Tally { torn, in_flight, recovery, lives, equal, .. } = outcome.tally;
        self.schedules += 1;
        self.failures += outcome.tally.recoveries();
        self.equal += equal;
        self.torn += torn;
        self.landed += in_flight;
        self.recovery += recovery;
        self.lives += lives;
        add_counts(&mut self.covered, &outcome.cover_points);
    }
}

impl<'r> Enumeration<'r> {
    /// Checks everything; nothing runs. What `set` says goes before the scale.
    ///
    /// # Errors
    /// A bound, mutant or settings that are refused.
    pub fn new(
        registry: &'r Registry,
        design: &'static DesignInfo,
        mutant: Option<String>,
        (scale, set): (Scale, Vec<(String, String)>),
        bound: Bound,
    ) -> Result<Enumeration<'r>, EnumerationError> {
        bound.check()?;
        if let Some(name) = &mutant {
            design.mutation(name)?;
        }
        let mut settings = scale.settings(design, &set);
        settings.extend(set);
        let programs = programs(&bound, true);
        let lives = lives(&bound);
        let mut config = registry.machine(MACHINE)?;
        for (key, value) in &settings {
            config.set(key, value)?;
        }
        let guarantee = design.guarantee_in(&config);
        let enumeration = Enumeration {
            registry,
            design,
            mutant,
            settings,
            order: order_without_transactions(guarantee),
            bound,
            programs,
            lives,
            known: Known::default(),
            control: Arc::default(),
        };
        let first = enumeration.programs.last().expect("a bound has programs");
        enumeration.cases(first)?;
        Ok(enumeration)
    }

    /// With all programs, also those that are symmetrical to others.
    pub fn without_symmetry(mut self) -> Enumeration<'r> {
        self.programs = programs(&self.bound, false);
        self
    }

    /// With every power failure examined, also those that find what an earlier one has found; recovery is cut off twice at
    /// most. Only what happens in the first life is.
    pub fn without_memory(mut self) -> Enumeration<'r> {
        self.known = Known::forgetful(2);
        self
    }

    /// The number of programs.
    pub fn program_count(&self) -> usize {
        self.programs.len()
    }

    /// Settings on top of the machine: those of the scale, then the user's.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// For observing and cancelling from another thread: programs, and power failures.
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    fn litmus(&self, program: &Program, life: Option<&Program>) -> Litmus {
        let mut litmus = program.litmus(&self.bound, life);
        litmus.title = "a program of the enumeration".into();
        litmus.designs = vec![self.design.name.into()];
        litmus.machine = Some(MACHINE.into());
        litmus.settings.clone_from(&self.settings);
        litmus.mutant.clone_from(&self.mutant);
        if let Some(order) = self.order {
            without_transactions(&mut litmus, order, false, &mut Alternately(0));
        }
        litmus
    }

    /// A program, with each of the second lives.
    fn cases(&self, program: &Program) -> Result<Vec<Case>, LitmusError> {
        let case = |life: Option<&Program>| {
            let (machine, litmus) = (self.registry.machine(MACHINE)?, self.litmus(program, life));
            let case = Case::on(machine, &litmus, self.design, SetBy::Arguments)?;
            Ok(case.examined(Thoroughness::COMPLETE).under(&self.control))
        };
        match self.lives.as_slice() {
            [] => Ok(vec![case(None)?]),
            lives => lives.iter().map(|life| case(Some(life))).collect(),
        }
    }

    /// Executes and judges these programs, by their numbers, up to the first violation.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    ///
    /// # Panics
    /// The range has more programs than there are.
    pub fn run(&self, range: Range<usize>) -> Result<Checked, SimError> {
        let mut checked = Checked::default();
        for (done, program) in self.programs[range].iter().enumerate() {
            if self.control.report(done as u64) {
                return Err(SimError::Cancelled);
            }
            checked.programs += 1;
            self.schedules(program, &mut checked)?;
            if !checked.findings.is_empty() {
                break;
            }
        }
        Ok(checked)
    }

    /// Every run of a program.
    fn schedules(&self, program: &Program, checked: &mut Checked) -> Result<(), SimError> {
        let cases = match self.cases(program) {
            Ok(cases) => cases,
            Err(error) => {
                checked.refused += 1;
                checked.refusal.get_or_insert_with(|| error.to_string());
                return Ok(());
            }
        };
        let mut known = self.known.clone();
        let mut parents: Vec<Vec<Departure>> = vec![Vec::new()];
        for departures in 0..=self.bound.departures {
            let mut next = Vec::new();
            for run in mem::take(&mut parents) {
                let (outcome, life) = Case::run_departing(&cases, &run, mem::take(&mut known))?;
                checked.add(&outcome);
                self.control.checked(checked.failures);
                if run.is_empty() {
                    checked.choices_max = checked.choices_max.max(outcome.options.len() as u64);
                }
                if let Some(why) = outcome.refused {
                    checked.refused += 1;
                    checked.refusal.get_or_insert(why);
                }
                if let Some(violation) = outcome.violations.into_iter().next() {
                    let mut replay = self.litmus(program, self.lives.get(life));
                    replay.lives[0].adversary = Some(Choices::Listed(run));
                    violation.pin(&mut replay);
                    let finding = Finding::of(self.registry, replay, self.design, violation, None);
                    checked.findings.push(finding);
                    return Ok(());
                }
                known = outcome.known.expect("it was asked for");
                if departures < self.bound.departures {
                    let first = run.last().map_or(0, |last| last.choice as usize + 1);
                    for (choice, &options) in outcome.options.iter().enumerate().skip(first) {
                        next.extend((1..options).map(|option| {
                            let departure = Departure { choice: choice as u32, option };
                            [run.as_slice(), &[departure]].concat()
                        }));
                    }
                }
            }
            parents = next;
        }
        checked.crowded += known.crowded;
        Ok(())
    }
}
