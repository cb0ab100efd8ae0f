//! Mutants of a design, and which of them the adversary kills: the measure of the laboratory.
//!
//! A design has mutants of its own ([`DesignInfo::mutants`]), and those that mutation operators make of it at its
//! boundary with the machine ([`operators`](graven_machine::design::operators)): of these, the ones that there is a place
//! for, as runs of the design itself have shown. Each is given to the adversary until its guarantee is broken. A mutant
//! that survives is equivalent to the design, or shows what the adversary does not draw.

use std::ops::ControlFlow;
use std::sync::Arc;

use graven_base::control::Control;
use graven_machine::design::DesignInfo;
use graven_machine::design::operators::Profile;
use graven_machine::registry::Registry;
use graven_machine::sim::SimError;

use crate::adversary::{Draws, schedule};
use crate::campaign::Schedules;
use crate::case::{Case, LitmusError};
use crate::explorer::{Violation, is_assertion};
use crate::litmus::{FailureMode, MACHINE};

/// Schedules in which it is seen what a design does at its boundary.
const PROFILED_SCHEDULES: u64 = 200;

/// A mutant of a design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The name in campaigns and litmus programs.
    pub name: String,
    /// The class of faults; none for the design's own mutants.
    pub class: Option<String>,
}

/// The evidence that a mutant breaks its guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KilledBy {
    /// A power failure that found what was accepted.
    Plain,
    /// One with a torn write.
    Torn,
    /// One with writes on their way.
    InFlight,
    /// One in recovery.
    Recovery,
    /// One in a life after a recovery.
    LaterLife,
    /// The run without a power failure: stale data, or no progress.
    Run,
    /// An assertion of the design or the machine.
    Assertion,
}

impl KilledBy {
    /// All, in the order of columns.
    pub const ALL: [(KilledBy, &'static str); 7] = [
        (KilledBy::Plain, "plain"),
        (KilledBy::Torn, "torn"),
        (KilledBy::InFlight, "in-flight"),
        (KilledBy::Recovery, "recovery"),
        (KilledBy::LaterLife, "later life"),
        (KilledBy::Run, "run"),
        (KilledBy::Assertion, "assertion"),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        KilledBy::ALL[self as usize].1
    }

    fn of(violation: &Violation) -> KilledBy {
        if is_assertion(&violation.what) {
            return KilledBy::Assertion;
        }
        let Some(failure) = &violation.failure else { return KilledBy::Run };
        match failure.mode {
            _ if !violation.before.is_empty() => KilledBy::LaterLife,
            _ if !failure.cuts.is_empty() => KilledBy::Recovery,
            FailureMode::Plain => KilledBy::Plain,
            FailureMode::Torn(_) => KilledBy::Torn,
            FailureMode::InFlight(_) | FailureMode::Landed(_) => KilledBy::InFlight,
        }
    }
}

/// The end of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    /// By what.
    pub by: KilledBy,
    /// The guarantee that was broken, or the assertion.
    pub what: String,
    /// The seed of the schedule.
    pub seed: u64,
}

/// The result of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The mutant.
    pub mutant: Mutant,
    /// Schedules that it ran.
    pub schedules: u64,
    /// Those among them that it refused.
    pub refused: u64,
    /// The end; none: it survived.
    pub kill: Option<Kill>,
}

/// The mutants of a design: its own, then those that operators make of it.
///
/// # Errors
/// [`SimError::Cancelled`].
pub fn mutants_of(
    registry: &Registry,
    design: &'static DesignInfo,
    control: &Arc<Control>,
) -> Result<Vec<Mutant>, SimError> {
    let own = design.mutants.iter().map(|m| Mutant { name: m.name.into(), class: None });
    let made = profile(registry, design, control)?.operators().into_iter().map(|operator| Mutant {
        name: operator.to_string(),
        class: Some(operator.class().to_string()),
    });
    Ok(own.chain(made).collect())
}

/// The profile of a design at its boundary with the machine in the adversary's first schedules.
fn profile(
    registry: &Registry,
    design: &'static DesignInfo,
    control: &Arc<Control>,
) -> Result<Profile, SimError> {
    let mut profile = Profile::default();
    let machine = registry.machine(MACHINE).expect("the laboratory's machine is built in");
    for seed in 1..=PROFILED_SCHEDULES {
        if let Ok(case) =
            Case::new(registry, &schedule(&machine, design, seed, &Draws::default()), design)
        {
            profile.add(&case.under(control).profile()?);
        }
    }
    Ok(profile)
}

/// Gives a mutant to the adversary, schedule after schedule from `first_seed` on, until it is killed.
///
/// # Errors
/// A mutant that does not exist; [`SimError::Cancelled`].
pub fn try_mutant(
    registry: &Registry,
    design: &'static DesignInfo,
    mutant: &Mutant,
    draws: Draws,
    seeds: (u64, u64),
    control: &Arc<Control>,
) -> Result<Trial, TrialError> {
    let schedules =
        Schedules::new(registry, design, Some(mutant.name.clone()), Vec::new(), seeds, 1)?;
    let mut trial = Trial { mutant: mutant.clone(), schedules: 0, refused: 0, kill: None };
    schedules.within(draws).under(control).each(|seed, _, outcome| {
        trial.schedules += 1;
        let Ok(outcome) = outcome else {
            trial.refused += 1;
            return Ok(ControlFlow::Continue(()));
        };
        trial.refused += u64::from(outcome.refused.is_some());
        let Some(violation) = outcome.violations.first() else {
            return Ok(ControlFlow::Continue(()));
        };
        let (by, what) = (KilledBy::of(violation), violation.what.clone());
        trial.kill = Some(Kill { by, what, seed });
        Ok(ControlFlow::Break(()))
    })?;
    Ok(trial)
}

/// Why a mutant was not tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// There is no such mutant.
    #[error(transparent)]
    Unknown(#[from] LitmusError),
    /// The trial was cancelled.
    #[error(transparent)]
    Stopped(#[from] SimError),
}
