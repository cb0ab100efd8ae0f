//! The contract of all designs: see `graven::contract`.

use graven::contract::{self, Effort};

#[test]
fn the_design_keeps_the_contract() {
    let mut registry = graven::standard();
    graven_picl::register(&mut registry);
    let failures = contract::design(&registry, &graven_picl::INFO, &Effort::QUICK);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
