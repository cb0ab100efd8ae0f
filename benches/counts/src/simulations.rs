//! Simulations: streams through the caches, the commit paths of all designs, workloads under some of them, and some on the
//! machines of papers whose cores are out-of-order.
//!
//! Not counted: building the machine, populating PM, and a first part of the run, in which caches, logs and the host's
//! tables fill.

use graven::sim::Simulation;
use graven::time::NEVER;
use graven::workload::WorkloadInfo;

use crate::case::{Case, counted};
use crate::common::{FRIENDLY, MISSING, machine, registry, simulation};
use crate::{DESIGNS, WORKLOADS};

/// Simulated cycles between looks at how much of the first part is done.
const STEP_CYCLES: u64 = 1000;

/// Streams, in loads and stores; commit paths, workloads and machines, in transactions.
pub fn cases() -> impl Iterator<Item = Case> {
    streams().chain(commits()).chain(workloads()).chain(machines())
}

/// Streams without a design, on one thread and on eight.
fn streams() -> impl Iterator<Item = Case> {
    let streams: [(&'static WorkloadInfo, u64); 2] = [(&FRIENDLY, 400_000), (&MISSING, 4000)];
    streams.into_iter().flat_map(|(workload, operations)| {
        [1, 8].into_iter().map(move |threads| {
            let name = format!("stream/{}/{threads}", workload.name);
            Case::new(name, "operation", move || {
                let config = machine("silo", &[]);
                let simulation = simulation(&config, "ideal", workload, threads, operations);
                rest(simulation, operations / 4, operations_of)
            })
        })
    })
}

/// The shortest transactions that there are: appending to a vector is one load and nine stores, on eight threads.
fn commits() -> impl Iterator<Item = Case> {
    registry().designs().iter().map(|design| {
        let name = format!("commit/{}", design.name);
        Case::new(name, "transaction", || transactions("silo", design.name, "vector", 1200))
    })
}

/// Eight threads.
fn workloads() -> impl Iterator<Item = Case> {
    WORKLOADS.into_iter().flat_map(|workload| {
        DESIGNS.into_iter().map(move |design| {
            let name = format!("workload/{workload}/{design}");
            Case::new(name, "transaction", move || transactions("silo", design, workload, 600))
        })
    })
}

/// Eight threads on out-of-order cores, under the design of the machine's paper and those that it is compared with and that
/// have most to do: logs of lines for each store, indices, software.
fn machines() -> impl Iterator<Item = Case> {
    let designs = [
        ("fwb", "fwb"),
        ("fwb", "undo-clwb"),
        ("hoop", "hoop"),
        ("hoop", "lsm"),
        ("hoop", "opt-redo"),
        ("hoop", "osp"),
    ];
    designs.into_iter().map(|(preset, design)| {
        let name = format!("machine/{preset}/{design}");
        Case::new(name, "transaction", move || transactions(preset, design, "hash", 600))
    })
}

/// Runs transactions on a preset; returns how many of them are counted.
fn transactions(preset: &str, design: &str, workload: &str, transactions: u64) -> u64 {
    let config = machine(preset, &[("workload.footprint_bytes", "4 MB")]);
    let workload = registry().find_workload(workload).unwrap_or_else(|e| panic!("{e}"));
    let simulation = simulation(&config, design, workload, 8, transactions);
    rest(simulation, transactions / 3, committed)
}

fn operations_of(simulation: &Simulation) -> u64 {
    let counters = &simulation.stats().counters;
    counters.loads + counters.stores
}

/// Transactions that were committed so far.
pub fn committed(simulation: &Simulation) -> u64 {
    simulation.stats().counters.committed_transactions
}

/// Runs until `much` of something is done.
pub fn advance_until(simulation: &mut Simulation, much: u64, done: fn(&Simulation) -> u64) {
    while done(simulation) < much {
        let to = simulation.machine().now() + STEP_CYCLES;
        let finished = simulation.advance(to).unwrap_or_else(|e| panic!("{e}"));
        assert!(!finished, "the run is longer than its first part");
    }
}

/// Counts a run from when it has done `first` of something on; returns how much of that was left.
fn rest(mut simulation: Simulation, first: u64, done: fn(&Simulation) -> u64) -> u64 {
    advance_until(&mut simulation, first, done);
    let before = done(&simulation);
    counted(|| simulation.advance(NEVER)).unwrap_or_else(|e| panic!("{e}"));
    done(&simulation) - before
}
