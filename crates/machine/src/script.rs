//! Scripts: a workload that is a list of operations for each thread, for tests of what a design does with each of them.

use graven_base::config::{Config, ConfigError};
use graven_base::memory::{Addr, Image};

use crate::design::DesignInfo;
use crate::program::{Disturbance, Op, Program, Ptr};
use crate::sim::{Programs, Simulation, Spec};
use crate::workload::{BrokenInvariant, Workload, WorkloadInfo};

static SCRIPT: WorkloadInfo = WorkloadInfo {
    name: "script",
    group: "test",
    sections: &[],
    settings: &[],
    summary: "given operations",
    build: |_| unreachable!("scripts are given as programs"),
};

/// The operations of each thread.
struct Script(Vec<Vec<Op>>);

struct Run(std::vec::IntoIter<Op>);

impl Program for Run {
    fn next(&mut self, _value: u64) -> Op {
        self.0.next().unwrap_or(Op::Done)
    }
}

impl Workload for Script {
    fn populate(&self, _image: &mut Image) {}

    fn program(&self, thread: u32) -> Box<dyn Program> {
        Box::new(Run(self.0[thread as usize].clone().into_iter()))
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// A simulation of one list of operations for each thread, under a design that need not be registered.
///
/// # Errors
/// A configuration that cannot be simulated, or that the design refuses.
pub fn simulation(
    config: &Config,
    design: &'static DesignInfo,
    threads: &[&[Op]],
) -> Result<Simulation, ConfigError> {
    let config = design.configured(config.clone());
    let mut spec = Spec::checked(config, design, &SCRIPT, Some(threads.len() as u64), 1, 0)?;
    let threads: Vec<Vec<Op>> = threads.iter().map(|ops| ops.to_vec()).collect();
    spec.programs = Some(Programs::new(move || Ok(Box::new(Script(threads.clone())))));
    Simulation::new(&spec)
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
