//! The behaviour of a design when its machine does not work as it should: no design promises anything then, but some
//! notice, some survive, and some lose data silently.
//!
//! Schedules of the adversary run; at each crash point power fails with each kind of fault, once as the fault is drawn.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Serialize;

use crate::adversary::{Draws, schedule};
use crate::case::Case;
use crate::checker;
use crate::litmus::MACHINE;
use graven_base::control::Control;
use graven_base::memory::{Addr, spread};
use graven_base::time::NEVER;
use graven_machine::config::{ControllerConfig, PmConfig};
use graven_machine::design::DesignInfo;
use graven_machine::registry::Registry;
use graven_machine::sim::{Crash, Fault, Observer, SimError, Simulation};

/// Actions after which a schedule is left.
const ACTIONS_MAX: u64 = 1_000_000;

/// Faults of each kind in a schedule at most.
const FAULTS_OF_SCHEDULE: u64 = 400;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The newest accepted write is not drained.
    LostDrain1,
    /// The newest four are not.
    LostDrain4,
    /// No accepted write to one bank is drained.
    StuckBank,
    /// A word of the log region that is not zero has an uncorrectable error.
    PoisonedLog,
    /// A word of the programs' data that is not zero has one.
    PoisonedData,
}

impl FaultKind {
    /// All, by name.
    pub const ALL: [(FaultKind, &'static str); 5] = [
        (FaultKind::LostDrain1, "lost-drain-1"),
        (FaultKind::LostDrain4, "lost-drain-4"),
        (FaultKind::StuckBank, "stuck-bank"),
        (FaultKind::PoisonedLog, "poisoned-log"),
        (FaultKind::PoisonedData, "poisoned-data"),
    ];
}

/// The results of power failures with a kind of fault that changed what survived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultCounts {
    /// The guarantee was kept, and the fault was not noticed.
    pub kept: u64,
    /// An uncorrectable error was, or will be, reported to who reads the word.
    pub reported: u64,
    /// The guarantee is broken, and the fault was not noticed.
    pub lost: u64,
}

/// The results of a design under each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// Schedules that ran.
    pub schedules: u64,
    /// By kind, in the order of [`FaultKind::ALL`].
    pub counts: [FaultCounts; FaultKind::ALL.len()],
}

/// Has power fail with faults in schedules of the adversary, `seeds` from `first_seed` on.
///
/// # Errors
/// [`SimError::Cancelled`].
pub fn survey(
    registry: &Registry,
    design: &'static DesignInfo,
    draws: &Draws,
    (first_seed, seeds): (u64, u64),
    control: &Arc<Control>,
) -> Result<Survey, SimError> {
    let mut survey = Survey::default();
    let machine = registry.machine(MACHINE).expect("the laboratory's machine is built in");
    for seed in first_seed..first_seed + seeds {
        if control.report(seed - first_seed) {
            return Err(SimError::Cancelled);
        }
        let Ok(case) = Case::new(registry, &schedule(&machine, design, seed, draws), design) else {
            continue;
        };
        let mut simulation = case.simulation();
        let random = Pcg64::seed_from_u64(spread(seed, 0x6661));
        let mut observer =
            Faults { random, seen: 0, actions: 0, drawn: 0, counts: &mut survey.counts };
        // A design that refuses, or a run that is left, has met its faults before.
        drop(simulation.advance_observed(NEVER, &mut observer));
        survey.schedules += 1;
    }
    Ok(survey)
}

/// Looks on and lets power fail.
struct Faults<'a> {
    random: Pcg64,
    /// Changes of the durable state.
    seen: u64,
    actions: u64,
    drawn: u64,
    counts: &'a mut [FaultCounts],
}

impl Observer for Faults<'_> {
    fn after_action(&mut self, simulation: &mut Simulation) {
        self.actions += 1;
        let changes = simulation.machine().memory.shared.durability.changes;
        if changes == self.seen || simulation.machine().failure().is_some() {
            return;
        }
        self.seen = changes;
        simulation.durable_changes();
        if checker::race(simulation).is_some() {
            return;
        }
        self.drawn += 1;
        for (number, (kind, _)) in FaultKind::ALL.into_iter().enumerate() {
            let Some(fault) = self.draw(kind, simulation) else { continue };
            let Some(mut crash) = simulation.crash_with(fault) else { continue };
            crash.recover();
            let counts = &mut self.counts[number];
            match verdict(&mut crash) {
                Verdict::Kept => counts.kept += 1,
                Verdict::Reported => counts.reported += 1,
                Verdict::Lost => counts.lost += 1,
            }
        }
    }

    fn stops(&self) -> bool {
        self.actions >= ACTIONS_MAX || self.drawn >= FAULTS_OF_SCHEDULE
    }
}

enum Verdict {
    Kept,
    Reported,
    Lost,
}

fn verdict(crash: &mut Crash<'_>) -> Verdict {
    if crash.image.met_poison() {
        return Verdict::Reported;
    }
    let keeps =
        |crash: &Crash<'_>| crash.image.out_of_bounds().is_none() && checker::check(crash).is_ok();
    if keeps(crash) {
        return Verdict::Kept;
    }
    // Who reads the word is told: all else must be as it would be without the fault.
    let Some(addr) = crash.image.poisoned() else { return Verdict::Lost };
    let before = crash.image.written().iter().rev().find(|written| written.addr == addr);
    let before = before.expect("it was poisoned").old;
    crash.image.store(addr, before);
    if keeps(crash) { Verdict::Reported } else { Verdict::Lost }
}

impl Faults<'_> {
    fn draw(&mut self, kind: FaultKind, simulation: &mut Simulation) -> Option<Fault> {
        match kind {
            FaultKind::LostDrain1 => Some(Fault::LostDrain(1)),
            FaultKind::LostDrain4 => Some(Fault::LostDrain(4)),
            FaultKind::StuckBank => {
                let config = &simulation.spec().config;
                let pm = config.get::<PmConfig>();
                let channels = config.get::<ControllerConfig>().channels;
                let banks = u64::from(channels) * u64::from(pm.banks) * u64::from(pm.ranks);
                Some(Fault::StuckBank(self.random.random_range(0..banks) as usize))
            }
            FaultKind::PoisonedLog | FaultKind::PoisonedData => {
                let (start, log_start) = simulation.data_region();
                let in_log = kind == FaultKind::PoisonedLog;
                let is_there = |addr: Addr| {
                    if in_log { addr >= log_start } else { (start..log_start).contains(&addr) }
                };
                let crash = simulation.crash();
                // One of them, each as likely, without a list of all.
                let mut chosen = None;
                let words = crash.image.image().nonzero_words().filter(|&(a, _)| is_there(a));
                for (met, (addr, _)) in words.enumerate() {
                    if self.random.random_range(0..=met) == 0 {
                        chosen = Some(addr);
                    }
                }
                chosen.map(|addr| Fault::Poison(addr, self.random.random()))
            }
        }
    }
}
