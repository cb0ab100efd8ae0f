//! A workload that is a list of operations per thread.

use super::registry;
use graven::config::validate;
use std::cell::RefCell;

use graven::config::Config;
use graven::memory::{Addr, Image};
use graven::program::{Disturbance, Op, Program, Ptr};
use graven::sim::{CrashOptions, Simulation, Spec};
use graven::workload::{BrokenInvariant, Workload, WorkloadInfo};

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

/// A simulation of one list of operations per thread, without any persistence.
pub fn script(config: &Config, threads: &[&[Op]]) -> Simulation {
    script_on(config, "ideal", threads)
}

/// The same under a design.
pub fn script_on(config: &Config, design: &str, threads: &[&[Op]]) -> Simulation {
    let design = registry().find_design(design).unwrap_or_else(|e| panic!("{e}"));
    script_with(config, design, threads)
}

/// The same under a design that need not be registered.
pub fn script_with(
    config: &Config,
    design: &'static graven::design::DesignInfo,
    threads: &[&[Op]],
) -> Simulation {
    let config = design.configured(config.clone());
    validate(&config).unwrap_or_else(|e| panic!("{e}"));
    OPERATIONS.set(threads.iter().map(|ops| ops.to_vec()).collect());
    let (workload, threads, crash_options) =
        (&SCRIPT, threads.len() as u32, CrashOptions::default());
    let spec = Spec { config, design, workload, threads, transactions: 1, seed: 0, crash_options };
    Simulation::new(&spec).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs lists of operations; when each core had finished.
pub fn run(config: &Config, threads: &[&[Op]]) -> Vec<u64> {
    cycles_of(script(config, threads), threads.len())
}

/// Runs a simulation; when each of the first cores had finished.
pub fn cycles_of(mut simulation: Simulation, cores: usize) -> Vec<u64> {
    simulation.run().unwrap_or_else(|e| panic!("{e}"));
    simulation.stats().core_cycles[..cores].to_vec()
}

/// A load from an address that the thread knows.
pub fn load(addr: u64) -> Op {
    Op::Load { at: Ptr::known(Addr(addr)) }
}

/// A load from an address that load number `origin` has returned.
pub fn load_after(origin: u32, addr: u64) -> Op {
    Op::Load { at: Ptr { addr: Addr(addr), origin } }
}

/// A store to an address that the thread knows.
pub fn store(addr: u64, value: u64) -> Op {
    Op::Store { at: Ptr::known(Addr(addr)), value }
}

/// A transaction of these stores.
pub fn transaction(stores: &[(u64, u64)]) -> Vec<Op> {
    let stores = stores.iter().map(|&(addr, value)| store(addr, value));
    std::iter::once(Op::TxBegin).chain(stores).chain([Op::TxEnd]).collect()
}

/// A line leaves all caches.
pub fn evict(addr: u64) -> Op {
    Op::Disturb(Disturbance::Evict(Addr(addr).line(), 3))
}

/// The thread waits until neither memory nor the design has anything left to do.
pub fn settle() -> Op {
    Op::Disturb(Disturbance::Settle)
}

/// Instructions that touch no memory.
pub fn compute(instructions: u32) -> Op {
    Op::Compute { instructions }
}
