//! The crash laboratory itself, every design in it, and the litmus programs that ship.

#[path = "../common/mod.rs"]
mod common;

mod adversary;
mod campaigns;
mod deadlocks;
mod enumeration;
mod laboratory;
mod litmus;
mod outside;
mod sharing;

use common::registry;
use graven::design::DesignInfo;
use graven::lab::case::Case;
use graven::lab::explorer::Outcome;
use graven::lab::litmus::{Litmus, parse};

/// Returns the designs that keep their guarantee as far as is known.
fn sound() -> Vec<&'static DesignInfo> {
    let defaults = registry().defaults();
    registry().designs().iter().copied().filter(|d| d.is_sound(&defaults)).collect()
}

fn find(name: &str) -> &'static DesignInfo {
    registry().find_design(name).unwrap_or_else(|e| panic!("{e}"))
}

fn read(text: &str) -> Litmus {
    parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn case_of(litmus: &Litmus, design: &'static DesignInfo) -> Case {
    Case::new(registry(), litmus, design)
        .unwrap_or_else(|e| panic!("{e}\n{litmus} on {}", design.name))
}

/// Runs a program on a design.
fn outcome_of(litmus: &Litmus, design: &'static DesignInfo) -> Outcome {
    case_of(litmus, design).run().unwrap_or_else(|e| panic!("{e}\n{litmus} on {}", design.name))
}
