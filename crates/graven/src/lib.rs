//! Graven: a deterministic simulator of hardware-assisted crash consistency in persistent memory, and a crash laboratory
//! that crashes every run everywhere, recovers from the surviving bytes alone, and says whether the guarantee held.
//!
//! This crate puts the others together: the [`Registry`] of all that ships ([`standard`]), machines of the papers and
//! comparisons on them, cost sheets, the catalogue. A design or workload outside this repository depends on this crate
//! alone, which has the modules of the others under their names. See `docs/explanation/architecture.md` for the picture.
//!
//! There is no I/O: no files, no terminal, no wall clock.

pub mod acknowledgement;
pub mod catalogue;
pub mod comparison;
pub mod contract;
pub mod cost;
mod presets;
pub mod script;

pub use graven_base::{
    VERSION, choice, codecs, control, counters, host, ids, memory, recovery_steps, section,
    surviving, thread_set, time,
};
pub use graven_designs as designs;
pub use graven_designs::mechanisms;
pub use graven_lab as lab;
pub use graven_machine::registry::{Alias, PARTS, Preset, Registry};
pub use graven_machine::{
    caches, clock, controller, cores, cover_points, design, device, layered, machine, media,
    mutants, program, quantities, recovery, registry, request, sim, trace_event, workload,
};
pub use graven_persistency as persistency;
pub use graven_powerfail as powerfail;
pub use graven_trace as trace;
pub use graven_workloads as workloads;

/// Parameters: the mechanism, and the machine's own.
pub mod config {
    pub use graven_base::config::*;
    pub use graven_machine::config::*;
}

/// Statistics: the mechanism, and the machine's own.
pub mod stats {
    pub use graven_base::stats::*;
    pub use graven_machine::stats::*;
}

/// All designs, workloads and machines that ship with Graven.
pub fn standard() -> Registry {
    let mut registry = Registry::new();
    graven_workloads::register(&mut registry);
    graven_designs::register(&mut registry);
    presets::register(&mut registry);
    registry.other_table(comparison::TABLE);
    registry
}

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
