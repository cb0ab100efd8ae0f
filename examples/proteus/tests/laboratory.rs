//! What the laboratory makes of the design, and of its literal reading.

use graven::design::DesignInfo;
use graven::lab::campaign::{Report, Schedules};
use graven::{Registry, contract};

const PROGRAMS: [&str; 3] = [
    include_str!("../litmus/block-undone-whole.litmus"),
    include_str!("../litmus/entries-of-two-threads.litmus"),
    include_str!("../litmus/word-stored-to-since.litmus"),
];

fn registry() -> Registry {
    let mut registry = graven::standard();
    graven_proteus::register(&mut registry);
    registry
}

fn campaign(design: &'static DesignInfo, schedules: u64) -> Report {
    let registry = registry();
    let campaign = Schedules::new(&registry, design, None, Vec::new(), (1, schedules), 1);
    campaign.expect("it is registered").as_drawn().run().expect("no run fails")
}

#[test]
fn schedules_find_no_violation_and_reach_every_cover_point() {
    let failures = contract::exploration(&registry(), &graven_proteus::INFO, 500);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn without_a_log_pending_queue_schedules_find_no_violation() {
    assert!(campaign(&graven_proteus::WITHOUT_LPQ, 300).findings.is_empty());
}

#[test]
fn the_literal_reading_loses_data() {
    assert!(!campaign(&graven_proteus::LITERAL, 300).findings.is_empty());
}

#[test]
fn litmus_programs_come_out_as_they_say() {
    let failures = contract::programs(&registry(), &PROGRAMS);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
