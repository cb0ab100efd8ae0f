//! What the laboratory makes of the design, and of its literal reading.

use graven::Registry;
use graven::design::DesignInfo;
use graven::lab::campaign::{Report, Schedules};
use graven::lab::case::{Case, designs_of};
use graven::lab::litmus::parse;

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
    campaign.expect("it is registered").run().expect("no run fails")
}

#[test]
fn schedules_find_no_violation_and_reach_every_cover_point() {
    let report = campaign(&graven_proteus::INFO, 1500);
    let first = report.findings.first().map(|finding| &finding.violation.what);
    assert_eq!(first, None);
    for point in graven_proteus::INFO.cover_points {
        let times = report.coverage.iter().find(|(name, ..)| *name == point.name);
        assert!(times.is_some_and(|&(.., times)| times > 0), "{} was not reached", point.name);
    }
    assert!(report.refused * 5 < report.runs, "{} of {} refused", report.refused, report.runs);
}

#[test]
fn without_a_log_pending_queue_schedules_find_no_violation() {
    assert!(campaign(&graven_proteus::WITHOUT_LPQ, 500).findings.is_empty());
}

#[test]
fn the_literal_reading_loses_data() {
    assert!(!campaign(&graven_proteus::LITERAL, 300).findings.is_empty());
}

/// Each program names the designs that keep their guarantee in it, and those that do not.
#[test]
fn litmus_programs_come_out_as_they_say() {
    let registry = registry();
    for text in PROGRAMS {
        let litmus = parse(text).unwrap_or_else(|e| panic!("{e}"));
        for (design, violates) in designs_of(&registry, &litmus).expect("they are registered") {
            let case = Case::new(&registry, &litmus, design).unwrap_or_else(|e| panic!("{e}"));
            let violated = !case.run().expect("it runs").violations.is_empty();
            assert_eq!(violated, violates, "{}: {}", design.name, litmus.title);
        }
    }
}
