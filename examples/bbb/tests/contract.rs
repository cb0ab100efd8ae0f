//! What every design must keep: see `graven::contract`.

use graven::Registry;
use graven::contract::{self, Effort};
use graven::design::DesignInfo;

fn registry() -> Registry {
    let mut registry = graven::standard();
    graven_bbb::register(&mut registry);
    registry
}

fn keeps_the_contract(design: &'static DesignInfo) {
    let failures = contract::design(&registry(), design, &Effort::QUICK);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_hardware_keeps_the_contract() {
    keeps_the_contract(&graven_bbb::INFO);
}

#[test]
fn software_undo_logging_over_it_keeps_the_contract() {
    keeps_the_contract(&graven_bbb::UNDO);
}
