//! What every workload must keep: see `graven::contract`.

use graven::contract::{self, Effort};

#[test]
fn the_workload_keeps_the_contract() {
    let mut registry = graven::standard();
    graven_skip_list::register(&mut registry);
    let failures = contract::workload(&registry, &graven_skip_list::INFO, &Effort::QUICK);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
