//! What the laboratory makes of the designs.

use graven::Registry;
use graven::design::DesignInfo;
use graven::lab::campaign::{Report, Schedules};
use graven::lab::case::{Case, designs_of};
use graven::lab::litmus::parse;

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

fn campaign(design: &'static DesignInfo, schedules: u64) -> Report {
    let registry = registry();
    let campaign = Schedules::new(&registry, design, None, Vec::new(), (1, schedules), 1);
    campaign.expect("it is registered").run().expect("no run fails")
}

#[test]
fn schedules_find_no_violation_and_reach_every_cover_point() {
    let report = campaign(&graven_hops::INFO, 1500);
    let first = report.findings.first().map(|finding| &finding.violation.what);
    assert_eq!(first, None);
    for point in graven_hops::INFO.cover_points {
        let times = report.coverage.iter().find(|(name, ..)| *name == point.name);
        assert!(times.is_some_and(|&(.., times)| times > 0), "{} was not reached", point.name);
    }
    assert!(report.refused * 5 < report.runs, "{} of {} refused", report.refused, report.runs);
}

/// Locks lie in DRAM, and no order of stores to PM knows of them.
#[test]
fn buffered_commits_lose_what_later_transactions_depend_on() {
    let report = campaign(&graven_hops::BUFFERED, 300);
    assert!(!report.findings.is_empty());
}

/// Each program names the designs that keep their guarantee in it, and those that do not.
#[test]
fn litmus_programs_come_out_as_they_say() {
    let registry = registry();
    for text in PROGRAMS {
        let litmus = parse(text).unwrap_or_else(|e| panic!("{e}"));
        for (design, violates) in designs_of(&registry, &litmus).expect("they are registered") {
            let case = Case::new(&registry, &litmus, design).unwrap_or_else(|e| panic!("{e}"));
            let outcome = case.run().expect("it runs");
            let violated = !outcome.violations.is_empty();
            let what = outcome.violations.first().map(|v| v.what.clone());
            assert_eq!(violated, violates, "{}: {}: {what:?}", design.name, litmus.title);
        }
    }
}
