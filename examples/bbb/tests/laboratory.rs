//! What the laboratory makes of the designs.

use graven::{Registry, contract};

const PROGRAMS: [&str; 4] = [
    include_str!("../litmus/taken-line.litmus"),
    include_str!("../litmus/read-line.litmus"),
    include_str!("../litmus/full-buffer.litmus"),
    include_str!("../litmus/undo.litmus"),
];

fn registry() -> Registry {
    let mut registry = graven::standard();
    graven_bbb::register(&mut registry);
    registry
}

#[test]
fn schedules_find_no_violation_and_reach_every_cover_point() {
    let failures = contract::exploration(&registry(), &graven_bbb::INFO, 1500);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn litmus_programs_come_out_as_they_say() {
    let failures = contract::programs(&registry(), &PROGRAMS);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
