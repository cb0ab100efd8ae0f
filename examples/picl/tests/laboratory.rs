//! Findings of the laboratory in the design, and in its mutants on litmus programs.

use graven::{Registry, contract};

const PROGRAMS: [&str; 7] = [
    include_str!("../litmus/snapshots.litmus"),
    include_str!("../litmus/entry-before-its-line.litmus"),
    include_str!("../litmus/oldest-entry-counts.litmus"),
    include_str!("../litmus/stored-ahead-of-the-scan.litmus"),
    include_str!("../litmus/tag-comes-round.litmus"),
    include_str!("../litmus/flush-promises-nothing.litmus"),
    include_str!("../litmus/transaction-cut.litmus"),
];

fn registry() -> Registry {
    let mut registry = graven::standard();
    graven_picl::register(&mut registry);
    registry
}

#[test]
fn schedules_find_no_violation_and_reach_every_cover_point() {
    let failures = contract::exploration(&registry(), &graven_picl::INFO, 250);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Each program says whether the design keeps its guarantee in it; one that names a mutant does it no harm without.
#[test]
fn litmus_programs_come_out_as_they_say() {
    let failures = contract::programs(&registry(), &PROGRAMS);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
