//! The laboratory: recovery, crash points, the adversary's schedules.

use graven::lab::campaign::Schedules;
use graven::lab::explorer::CrashRun;
use graven::sim::{Simulation, Spec};

use crate::DESIGNS;
use crate::case::{Case, counted};
use crate::common::{CRASHED, PLAIN, machine, registry, spec};
use crate::simulations::{advance_until, committed};

/// Seeds of the adversary's schedules, from the first.
const SEEDS: (u64, u64) = (1, 40);

/// Transactions of a run that is crashed everywhere.
const TRANSACTIONS: u64 = 40;

/// Transactions of a run whose power fails once, and after how many of them it does.
const ONCE: (u64, u64) = (400, 200);

/// Recoveries, crash points and schedules of a design of each paper.
pub fn cases() -> impl Iterator<Item = Case> {
    DESIGNS.into_iter().flat_map(|design| {
        [
            Case::new(format!("recovery/{design}"), "recovery", move || recovery(design)),
            Case::new(format!("crash/{design}"), "crash point", move || crash_points(design)),
            Case::new(format!("adversary/{design}"), "schedule", move || schedules(design)),
        ]
    })
}

fn btree(design: &str, transactions: u64) -> Spec {
    let workload = registry().find_workload("btree").unwrap_or_else(|e| panic!("{e}"));
    spec(&machine("silo", &CRASHED), design, workload, 8, transactions)
}

/// Recovery from a power failure in the midst of a run, of which nothing else is counted.
fn recovery(design: &str) -> u64 {
    let (transactions, failure) = ONCE;
    let mut simulation =
        Simulation::new(&btree(design, transactions)).unwrap_or_else(|e| panic!("{e}"));
    simulation.follow_durable_bytes();
    advance_until(&mut simulation, failure, committed);
    let mut crash = simulation.crash();
    counted(|| crash.recover());
    1
}

/// A run with a power failure, a recovery and a verdict wherever something changes; the run itself is counted, too.
fn crash_points(design: &str) -> u64 {
    let run = CrashRun::new(&btree(design, TRANSACTIONS), None, PLAIN);
    let run = run.unwrap_or_else(|e| panic!("{e}"));
    let outcome = counted(|| run.run(None)).unwrap_or_else(|e| panic!("{e}"));
    assert!(outcome.violations.is_empty() && outcome.refused.is_none(), "{design} is sound");
    outcome.tally.plain
}

/// Schedules from drawing to verdict, with all power failures.
fn schedules(design: &str) -> u64 {
    let design = registry().find_design(design).unwrap_or_else(|e| panic!("{e}"));
    let schedules = Schedules::new(registry(), design, None, Vec::new(), SEEDS, 1);
    let schedules = schedules.unwrap_or_else(|e| panic!("{e}"));
    let report = counted(|| schedules.run()).unwrap_or_else(|e| panic!("{e}"));
    assert!(report.findings.is_empty(), "{} is sound", design.name);
    report.runs
}
