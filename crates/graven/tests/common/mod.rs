//! What several test files share: a workload small enough to reason about, and configurations.

#![allow(dead_code)]

pub mod campaign;
pub mod churn;
pub mod forgetful;
pub mod memory;
pub mod script;
pub mod shared_lines;
pub mod sweep;
pub mod traces;

use graven::config::validate;
use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use graven::Registry;
use graven::config::{Config, ConfigError};
use graven::design::DesignInfo;
use graven::memory::{Addr, Image};
use graven::program::{Load, Memory, Program, Ptr, spawn};
use graven::sim::{CrashOptions, Simulation, Spec};
use graven::stats::{Counts, Stats};
use graven::workload::{BrokenInvariant, Request, Workload, WorkloadInfo};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// All that ships.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(graven::standard)
}

/// The design of a name.
pub fn find(name: &str) -> Result<&'static DesignInfo, ConfigError> {
    registry().find_design(name)
}

/// The statistics of a run, with all counters by name.
pub struct Statistics {
    /// The machine's and the design's.
    pub counters: Counts,
    machine: Stats,
}

impl std::ops::Deref for Statistics {
    type Target = Stats;

    fn deref(&self) -> &Stats {
        &self.machine
    }
}

/// The statistics of a simulation so far.
pub fn statistics(simulation: &Simulation) -> Statistics {
    Statistics { counters: simulation.counts(), machine: simulation.stats().clone() }
}

/// The part of a test's cases that runs: those of every edit, or in a longer test all others, so that none runs twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Every n-th case, or the first cases.
    Edit,
    /// The rest.
    Long,
}

impl Part {
    /// Returns whether the part has a case of this number, if every edit runs one case in `one_in`.
    pub fn has(self, number: usize, one_in: usize) -> bool {
        number.is_multiple_of(one_in) == (self == Part::Edit)
    }

    /// Returns the first seed of the part, and how many it has, if every edit runs the first `edit` of `all`.
    pub fn seeds(self, edit: u64, all: u64) -> (u64, u64) {
        match self {
            Part::Edit => (1, edit),
            Part::Long => (edit + 1, all - edit),
        }
    }
}

/// Does the same with each of some items, on as many threads as the host has cores: for tests that take minutes.
pub fn with_each<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(items.len()) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

/// A preset with settings, and otherwise as it ships.
pub fn machine(name: &str, settings: &[(&str, &str)]) -> Config {
    changed(registry().machine(name).expect("the preset loads"), settings)
}

/// A configuration with settings.
pub fn changed(mut config: Config, settings: &[(&str, &str)]) -> Config {
    for (key, value) in settings {
        config.set(key, value).unwrap_or_else(|e| panic!("{key}: {e}"));
    }
    config
}

/// A preset with settings. Unless they say otherwise writes are issued whenever no read waits, so that what a test looks
/// for in PM is there when memory is idle, a bank is held for as long as a read takes, and rows are hit without limit: the
/// campaigns' sizes of logs, and the crash points after which they find their mutants, are those of such schedules.
pub fn preset(name: &str, settings: &[(&str, &str)]) -> Config {
    machine(name, &[&SIMPLE[..], settings].concat())
}

const SIMPLE: [(&str, &str); 3] = [
    ("controller.scheduler", "reads-first"),
    ("controller.row_hit_limit", "0"),
    ("pm.column_ns", "10000"),
];

/// Databases as small as the structures of small footprints.
pub const SMALL_DATABASES: [(&str, &str); 7] = [
    ("smallbank.customers", "96"),
    ("smallbank.hotspot_customers", "32"),
    ("tatp.subscribers", "48"),
    ("tpcc.items", "40"),
    ("tpcc.districts", "2"),
    ("tpcc.customers_per_district", "12"),
    ("tpcc.orders_per_district", "10"),
];

/// A DRAM of one clock per nanosecond, which is never refreshed: a line of an open row takes 14 ns, of a closed one 28 ns,
/// and 3 ns on the bus.
pub const ROUND_DRAM: [(&str, &str); 8] = [
    ("dram.clock_mhz", "1000"),
    ("dram.cl_clocks", "14"),
    ("dram.rcd_clocks", "14"),
    ("dram.rp_clocks", "13"),
    ("dram.burst_clocks", "3"),
    ("dram.ccd_s_clocks", "3"),
    ("dram.ccd_l_clocks", "3"),
    ("dram.refi_clocks", "1000000000"),
];

/// The silo machine with caches so small that everything is evicted all the time.
pub fn tiny_config(settings: &[(&str, &str)]) -> Config {
    let tiny = [
        ("l1.bytes", "1 KB"),
        ("l1.ways", "2"),
        ("l2.bytes", "2 KB"),
        ("l2.ways", "2"),
        ("llc.bytes", "16 KB"),
        ("llc.ways", "4"),
        ("pm.capacity_bytes", "64 MB"),
        ("pm.log_region_bytes", "4 MB"),
        ("dram.capacity_bytes", "1 MB"),
        ("hoop.block_bytes", "16 KB"),
    ];
    preset("silo", &[&tiny[..], &SMALL_DATABASES, settings].concat())
}

/// A simulation of a registered design on any workload entry.
pub fn simulation(
    config: &Config,
    design: &str,
    workload: &'static WorkloadInfo,
    threads: u32,
    transactions: u64,
    seed: u64,
) -> Simulation {
    let design = find(design).unwrap_or_else(|e| panic!("{e}"));
    let spec = spec_of(config, design, workload, threads, transactions, seed);
    Simulation::new(&spec).unwrap_or_else(|e| panic!("{e}"))
}

/// A simulation at its end.
pub fn finished(mut simulation: Simulation) -> Simulation {
    simulation.run().unwrap_or_else(|e| panic!("{e}"));
    simulation
}

/// The counters of a simulation at its end.
pub fn counts_of(
    config: &Config,
    design: &str,
    workload: &'static WorkloadInfo,
    threads: u32,
    transactions: u64,
    seed: u64,
) -> Counts {
    let mut simulation = simulation(config, design, workload, threads, transactions, seed);
    simulation.run().unwrap_or_else(|e| panic!("{design}: {e}"));
    simulation.counts()
}

/// Why a machine of such a configuration is not built for a design.
pub fn refusal(config: &Config, design: &str) -> String {
    let design = find(design).expect("registered");
    let spec = unchecked_spec(config.clone(), design, &CELLS, 4, 1, 0);
    let Err(error) = Simulation::new(&spec) else { panic!("it was accepted") };
    assert!(matches!(error, ConfigError::Inconsistent { .. }), "{error}");
    error.to_string()
}

/// The specification of a run on a machine that is valid, with the parameter set of the design.
pub fn spec_of(
    config: &Config,
    design: &'static DesignInfo,
    workload: &'static WorkloadInfo,
    threads: u32,
    transactions: u64,
    seed: u64,
) -> Spec {
    let config = design.configured(config.clone());
    validate(&config).unwrap_or_else(|e| panic!("{e}"));
    unchecked_spec(config, design, workload, threads, transactions, seed)
}

fn unchecked_spec(
    config: Config,
    design: &'static DesignInfo,
    workload: &'static WorkloadInfo,
    threads: u32,
    transactions: u64,
    seed: u64,
) -> Spec {
    let crash_options = CrashOptions::default();
    Spec { config, design, workload, threads, transactions, seed, crash_options, programs: None }
}

/// Crashes of a simulation on its way.
#[derive(Default)]
pub struct Crashes {
    /// How many there were.
    pub number: u32,
    /// What was broken after them: by the verdict of the durability checker, of the structures, or of the image after a
    /// second recovery.
    pub broken: Vec<String>,
    /// Words that second recoveries redid or undid: none where the first empties the log.
    pub recovered_again: u64,
}

/// Crashes a simulation at random cycles, at most `step_max` apart, until it has ended.
pub fn crash_often(simulation: &mut Simulation, seed: u64, step_max: u64) -> Crashes {
    graven::lab::checker::attach(simulation);
    let mut random = Pcg64::seed_from_u64(seed);
    let (mut crashes, mut cycle) = (Crashes::default(), 0);
    loop {
        cycle += random.random_range(1..step_max);
        if simulation.advance(cycle).unwrap_or_else(|e| panic!("{e}")) {
            return crashes;
        }
        crashes.number += 1;
        let mut crash = simulation.crash();
        crash.recover();
        let verdict = graven::lab::checker::check(&crash).map_err(|verdict| verdict.to_string());
        let verdict = verdict.and_then(|()| crash.check_structures().map_err(|e| e.to_string()));
        let mut broken = Vec::from_iter(verdict.err());
        let once = crash.image.newest(0);
        let again = crash.recover();
        if crash.image.newest(0) != once {
            broken.push("a second recovery changed the image".into());
        }
        crashes.recovered_again += again.words_redone + again.words_undone;
        crashes.broken.extend(broken.iter().map(|why| format!("cycle {cycle}: {why}")));
    }
}

/// The entry of a workload that tests bring along.
pub const fn test_workload(
    name: &'static str,
    summary: &'static str,
    build: fn(&Request) -> Result<Box<dyn Workload>, ConfigError>,
) -> WorkloadInfo {
    WorkloadInfo { name, group: "test", sections: &[], settings: &[], summary, build }
}

/// A workload that consists of programs, and checks nothing.
pub fn programs(
    request: &Request,
    populate: fn(&Request, &mut Image),
    program: fn(&Request, u32) -> Box<dyn Program>,
) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(Programs { request: request.clone(), populate, program }))
}

struct Programs {
    request: Request,
    populate: fn(&Request, &mut Image),
    program: fn(&Request, u32) -> Box<dyn Program>,
}

impl Workload for Programs {
    fn populate(&self, image: &mut Image) {
        (self.populate)(&self.request, image);
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        (self.program)(&self.request, thread)
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// Transactions that add to random words of an array of 4,096 words, each thread in a part of its own;
/// every eighth transaction is large. The sum of a part's words equals the thread's count in its first
/// word.
pub static CELLS: WorkloadInfo = WorkloadInfo {
    name: "cells",
    group: "test",
    sections: &[],
    settings: &[],
    summary: "random words",
    build: |request| build(request),
};

const WORDS_PER_THREAD: u64 = 4096;

struct Cells {
    request: Request,
}

fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(Cells { request: request.clone() }))
}

impl Cells {
    fn base(&self, thread: u32) -> Addr {
        self.request.start.plus(u64::from(thread) * WORDS_PER_THREAD * 8)
    }
}

impl Workload for Cells {
    fn populate(&self, image: &mut Image) {
        for thread in 0..self.request.threads {
            let base = self.base(thread);
            for word in 1..WORDS_PER_THREAD {
                image.store(base.plus(word * 8), word);
            }
            image.store(base, (1..WORDS_PER_THREAD).sum());
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let base = Ptr::known(self.base(thread));
        let transactions = self.request.transactions_of(thread);
        let mut random = Pcg64::seed_from_u64(self.request.seed << 8 | u64::from(thread));
        spawn(move |memory| {
            for number in 0..transactions {
                let stores = if number % 8 == 7 { 70 } else { random.random_range(1..12) };
                memory.compute(20);
                memory.tx_begin();
                let mut added = 0;
                for _ in 0..stores {
                    let at = base.word(random.random_range(1..WORDS_PER_THREAD));
                    let value = memory.load(at);
                    let more = random.random_range(0..3);
                    added += more;
                    memory.store(at, value + more);
                }
                let sum = memory.load(base);
                memory.store(base, sum + added);
                memory.tx_end();
            }
        })
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        for thread in 0..self.request.threads {
            let base = self.base(thread);
            let sum: u64 = (1..WORDS_PER_THREAD).map(|w| image.load(base.plus(w * 8))).sum();
            let stored = image.load(base);
            if sum != stored {
                let structure = format!("part {thread}");
                return Err(BrokenInvariant {
                    structure,
                    what: format!("sum is {sum}, stored {stored}"),
                });
            }
        }
        Ok(())
    }
}
