//! A workload that is a list of operations per thread.

use std::cell::RefCell;

use graven_engine::config::Config;
use graven_engine::memory::{Addr, Image};
use graven_engine::program::{Op, Program, Ptr};
use graven_engine::sim::Simulation;
use graven_engine::workloads::{Entry, Violation, Workload};

thread_local! {
    /// What the next script that is built will do: an entry has no room for parameters of its own.
    static OPERATIONS: RefCell<Vec<Vec<Op>>> = const { RefCell::new(Vec::new()) };
}

static SCRIPT: Entry = Entry {
    name: "script",
    group: "test",
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

    fn check(&self, _image: &Image) -> Result<(), Violation> {
        Ok(())
    }
}

/// A simulation of one list of operations per thread, without any persistence.
pub fn script(config: &Config, threads: &[&[Op]]) -> Simulation {
    script_on(config, "ideal", threads)
}

/// The same under a design.
pub fn script_on(config: &Config, design: &str, threads: &[&[Op]]) -> Simulation {
    OPERATIONS.set(threads.iter().map(|ops| ops.to_vec()).collect());
    super::simulation(config, design, &SCRIPT, threads.len() as u32, 1, 0)
}

/// Runs lists of operations; when each core had finished.
pub fn run(config: &Config, threads: &[&[Op]]) -> Vec<u64> {
    let mut simulation = script(config, threads);
    simulation.run().unwrap_or_else(|e| panic!("{e}"));
    simulation.stats().core_cycles[..threads.len()].to_vec()
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

/// Instructions that touch no memory.
pub fn compute(instructions: u32) -> Op {
    Op::Compute { instructions }
}
