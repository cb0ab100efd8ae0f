//! Runs of scripts under ATOM, on the machine of Silo's paper.

use graven::Registry;
use graven::config::Config;
use graven::program::Op;
pub use graven::script::{evict, load, settle, store};
use graven::sim::Simulation;

pub fn registry() -> Registry {
    let mut registry = graven::standard();
    graven_atom::register(&mut registry);
    registry
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
    let threads: Vec<&[Op]> = threads.iter().map(Vec::as_slice).collect();
    graven::script::simulation(config, design, &threads).unwrap_or_else(|e| panic!("{e}"))
}

/// A transaction that stores a new value to each of some words.
pub fn transaction(words: impl IntoIterator<Item = u64>) -> Vec<Op> {
    let stores: Vec<(u64, u64)> = words.into_iter().map(|addr| (addr, addr + 1)).collect();
    graven::script::transaction(&stores)
}
