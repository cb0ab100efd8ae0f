//! What the laboratory makes of the designs.

use graven::{Registry, contract};

const PROGRAMS: [&str; 5] = [
    include_str!("../litmus/epochs.litmus"),
    include_str!("../litmus/dependence-by-load.litmus"),
    include_str!("../litmus/dfence.litmus"),
    include_str!("../litmus/later-thread-survives.litmus"),
    include_str!("../litmus/lock-is-not-in-the-order.litmus"),
];

fn registry() -> Registry {
    let mut registry = graven::standard();
    graven_hops::register(&mut registry);
    registry
}

#[test]
fn schedules_find_no_violation_and_reach_every_cover_point() {
    let failures = contract::exploration(&registry(), &graven_hops::INFO, 1500);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Locks lie in DRAM, and no order of stores to PM knows of them.
#[test]
fn buffered_commits_lose_what_later_transactions_depend_on() {
    let failures = contract::exploration(&registry(), &graven_hops::BUFFERED, 300);
    let of_order = |failure: &String| failure.contains("`transactions-buffered` puts");
    assert!(failures.iter().any(of_order), "{failures:?}");
}

#[test]
fn litmus_programs_come_out_as_they_say() {
    let failures = contract::programs(&registry(), &PROGRAMS);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
