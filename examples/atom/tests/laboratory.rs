//! Findings of the laboratory in the design, in its variants, and in its mutants on litmus programs.

use graven::Registry;
use graven::acknowledgement;
use graven::design::DesignInfo;
use graven::lab::campaign::{Report, Schedules};
use graven::lab::case::{Case, designs_of};
use graven::lab::litmus::parse;

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
    campaign.expect("it is registered").run().expect("no run fails")
}

#[test]
fn schedules_find_no_violation_and_reach_every_cover_point() {
    let report = campaign(&graven_atom::INFO, 400);
    let first = report.findings.first().map(|finding| &finding.violation.what);
    assert_eq!(first, None);
    for point in graven_atom::INFO.covered() {
        let times = report.coverage.iter().find(|(name, ..)| *name == point.name);
        assert!(times.is_some_and(|&(.., times)| times > 0), "{} was not reached", point.name);
    }
    assert!(report.refused * 5 < report.runs, "{} of {} refused", report.refused, report.runs);
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

fn comes_out_as_it_says(text: &str) {
    let registry = registry();
    let litmus = parse(text).unwrap_or_else(|e| panic!("{e}"));
    for (design, violates) in designs_of(&registry, &litmus).expect("they are registered") {
        let case = Case::new(&registry, &litmus, design).unwrap_or_else(|e| panic!("{e}"));
        let outcome = case.run().expect("it runs");
        let what = outcome.violations.first().map(|violation| violation.what.clone());
        assert_eq!(what.is_some(), violates, "{}: {}: {what:?}", design.name, litmus.title);
    }
}

/// Each program says which designs keep their guarantee in it, and which do not; one that names a mutant does it no harm without.
#[test]
fn litmus_programs_come_out_as_they_say() {
    for text in PROGRAMS {
        comes_out_as_it_says(text);
        let without: Vec<&str> = text.lines().filter(|line| !line.starts_with("mutant ")).collect();
        if without.len() < text.lines().count() {
            comes_out_as_it_says(&without.join("\n").replace("violates atom", "design atom"));
        }
    }
}
