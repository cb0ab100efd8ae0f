//! Findings of the laboratory in the design, in its variants, and in its mutants on litmus programs.

use graven::design::DesignInfo;
use graven::lab::campaign::{Report, Schedules};
use graven::{Registry, acknowledgement, contract};

const PROGRAMS: [&str; 6] = [
    include_str!("../litmus/line-undone-whole.litmus"),
    include_str!("../litmus/eviction-is-held-back.litmus"),
    include_str!("../litmus/line-logged-at-its-source.litmus"),
    include_str!("../litmus/log-bits-of-the-transaction-before.litmus"),
    include_str!("../litmus/record-closed-in-between.litmus"),
    include_str!("../litmus/two-threads-of-an-l1.litmus"),
];

fn registry() -> Registry {
    let mut registry = graven::standard();
    graven_atom::register(&mut registry);
    registry
}

fn campaign(design: &'static DesignInfo, schedules: u64) -> Report {
    let registry = registry();
    let campaign = Schedules::new(&registry, design, None, Vec::new(), (1, schedules), 1);
    campaign.expect("it is registered").as_drawn().run().expect("no run fails")
}

#[test]
fn schedules_find_no_violation_and_reach_every_cover_point() {
    let failures = contract::exploration(&registry(), &graven_atom::INFO, 400);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn without_posted_logs_and_source_logging_nothing_is_lost() {
    assert!(campaign(&graven_atom::BASE, 100).findings.is_empty());
    let failures = acknowledgement::failures(&registry(), &graven_atom::BASE);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_literal_reading_loses_data() {
    assert!(!campaign(&graven_atom::LITERAL, 300).findings.is_empty());
}

/// Each program says which designs keep their guarantee in it, and which do not; one that names a mutant does it no harm without.
#[test]
fn litmus_programs_come_out_as_they_say() {
    let failures = contract::programs(&registry(), &PROGRAMS);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
