//! Runs of scripts on what ships.

use graven::config::Config;
use graven::design::DesignInfo;
use graven::program::Op;
#[allow(unused_imports, reason = "each test binary uses some")]
pub use graven::script::{compute, evict, load, load_after, settle, store, transaction};
use graven::sim::Simulation;

use super::registry;

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
pub fn script_with(config: &Config, design: &'static DesignInfo, threads: &[&[Op]]) -> Simulation {
    graven::script::simulation(config, design, threads).unwrap_or_else(|e| panic!("{e}"))
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
