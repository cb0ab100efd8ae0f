//! A workload that is a list of operations for each thread.

use std::cell::RefCell;

use graven::Registry;
use graven::config::{Config, validate};
use graven::memory::{Addr, Image};
use graven::program::{Disturbance, Op, Program, Ptr};
use graven::sim::{CrashOptions, Simulation, Spec};
use graven::workload::{BrokenInvariant, Workload, WorkloadInfo};

pub fn registry() -> Registry {
    let mut registry = graven::standard();
    graven_proteus::register(&mut registry);
    registry
}

thread_local! {
    /// What the next script that is built will do: an entry has no room for parameters of its own.
    static OPERATIONS: RefCell<Vec<Vec<Op>>> = const { RefCell::new(Vec::new()) };
}

static SCRIPT: WorkloadInfo = WorkloadInfo {
    name: "script",
    group: "test",
    sections: &[],
    settings: &[],
    summary: "given operations",
    build: |_| Ok(Box::new(Script { threads: OPERATIONS.take() })),
};

struct Script {
    threads: Vec<Vec<Op>>,
}

struct Run(std::vec::IntoIter<Op>);

impl Program for Run {
    fn next(&mut self, _value: u64) -> Op {
        self.0.next().unwrap_or(Op::Done)
    }
}

impl Workload for Script {
    fn populate(&mut self, _image: &mut Image) {}

    fn program(&self, thread: u32) -> Box<dyn Program> {
        Box::new(Run(self.threads[thread as usize].clone().into_iter()))
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// The machine of Silo's paper with settings.
pub fn silo(settings: &[(&str, &str)]) -> Config {
    let mut config = registry().machine("silo").expect("it ships");
    for (key, value) in settings {
        config.set(key, value).unwrap_or_else(|e| panic!("{e}"));
    }
    config
}

/// A run of one list of operations for each thread.
pub fn script(config: &Config, design: &str, threads: &[Vec<Op>]) -> Simulation {
    let design = registry().find_design(design).unwrap_or_else(|e| panic!("{e}"));
    let config = design.configured(config.clone());
    validate(&config).unwrap_or_else(|e| panic!("{e}"));
    OPERATIONS.set(threads.to_vec());
    let (workload, threads, crash_options) =
        (&SCRIPT, threads.len() as u32, CrashOptions::default());
    let spec = Spec { config, design, workload, threads, transactions: 1, seed: 0, crash_options };
    Simulation::new(&spec).unwrap_or_else(|e| panic!("{e}"))
}

pub fn load(addr: u64) -> Op {
    Op::Load { at: Ptr::known(Addr(addr)) }
}

pub fn store(addr: u64, value: u64) -> Op {
    Op::Store { at: Ptr::known(Addr(addr)), value }
}

/// A transaction that stores a new value to each of some words.
pub fn transaction(words: impl IntoIterator<Item = u64>) -> Vec<Op> {
    let stores = words.into_iter().map(|addr| store(addr, addr + 1));
    std::iter::once(Op::TxBegin).chain(stores).chain([Op::TxEnd]).collect()
}

/// The thread waits until neither memory nor the design has anything left to do.
pub fn settle() -> Op {
    Op::Disturb(Disturbance::Settle)
}
