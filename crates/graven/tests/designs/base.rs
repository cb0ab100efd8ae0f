//! Base: log areas that wrap around, lines that threads share, and what the laboratory makes of it when one
//! of its rules is broken.
//!
//! Bug class: a line reaches PM before the record of one of its words; what was half written, or was there
//! before, is taken for a record.

use crate::common::campaign::{Campaign, demand, demand_enough_room};
use crate::common::find;
use crate::common::registry;
use crate::common::shared_lines::SHARED_LINES;
use crate::common::statistics;
use crate::common::{CELLS, finished, simulation};
use graven::config::ControllerConfig;
use graven::design::MutantSet;

use graven::stats::Value;

/// Fewer lines than the workload has fit, and a transaction fills most of an area.
const CRAMPED: Campaign = Campaign {
    workload: &SHARED_LINES,
    settings: &[
        ("l1.bytes", "128 B"),
        ("l1.ways", "1"),
        ("l2.bytes", "256 B"),
        ("llc.bytes", "1 KB"),
        ("llc.ways", "2"),
        ("controller.write_queue_entries", "4"),
        ("pm.buffer_lines", "2"),
        ("base.log_bytes_per_thread", "3 KB"),
    ],
    transactions: 56,
    first_transaction: 0,
    runs: 6,
};

#[test]
fn every_mutant_is_killed_and_the_design_is_not() {
    let mutants = [
        ("flush-overtakes-record", 500),
        ("eviction-overtakes-record", 500),
        ("flush-not-awaited", 500),
        ("evicted-line-not-awaited", 1000),
        ("commit-not-awaited", 500),
        ("commit-record-missing", 500),
        ("committed-undone", 500),
        ("undo-oldest-first", 500),
        ("first-record-not-undone", 50),
        ("newest-by-place", 2000),
        ("torn-bit-in-first-word-only", 50),
        ("torn-bit-never-flips", 2000),
        ("log-not-cleared", 50),
    ];
    demand("base", &[(CRAMPED, &mutants)], &[]);
}

#[test]
fn no_line_overtakes_a_record_of_any_thread() {
    const WITHOUT_ADR: &[(&str, &str)] = &[
        ("controller.adr", "false"),
        ("pm.buffer_lines", "0"),
        ("base.log_bytes_per_thread", "3 KB"),
    ];
    const FOUR_CHANNELS: &[(&str, &str)] = &[
        ("controller.adr", "false"),
        ("controller.channels", "4"),
        ("controller.interleave", "line"),
        ("base.log_bytes_per_thread", "3 KB"),
    ];
    for workload in [&SHARED_LINES, &CELLS] {
        for settings in [WITHOUT_ADR, FOUR_CHANNELS] {
            let campaign = Campaign { workload, settings, ..CRAMPED };
            let found = campaign.examine(find("base").expect("registered"), MutantSet::NONE);
            assert_eq!(found.what(), None, "{} on {settings:?}", workload.name);
            assert!(found.tally.torn > 1000 && found.tally.in_flight > 500, "{:?}", found.tally);
        }
    }
}

#[test]
fn an_area_that_just_holds_the_largest_transaction_is_enough() {
    let enough = demand_enough_room("base", "base.log_bytes_per_thread", 32, &[], 4..96);
    assert!(enough > 49, "the largest transaction stores to 48 lines");
}

/// Also `hoop-writes-definition` (HOOP §IV-D): write traffic is all that is written over the number of transactions.
#[test]
fn each_store_costs_a_record_and_a_line_and_a_commit_takes_the_path() {
    let config = registry().machine("silo").expect("the preset loads");
    let simulation = finished(simulation(&config, "base", &SHARED_LINES, 1, 28, 1));
    let (stats, path) = (statistics(&simulation), config.get::<ControllerConfig>().bypass_cycles);
    let c = &stats.counters;
    assert_eq!(c["log_entries"], c["transactional_stores"]);
    assert_eq!(c["log_bytes_written"], 32 * (c["transactional_stores"] + 28));
    assert_eq!(c["controller_write_requests_data"], c["transactional_stores"]);
    assert_eq!(c["forced_writebacks"], c["transactional_stores"]);
    assert_eq!(c["written_bytes_data"], 64 * c["transactional_stores"]);
    let values = stats.record(2000, 0, 0);
    let value = |name| match values.iter().find(|(n, _)| n == name) {
        Some((_, Value::Number(value))) => *value,
        other => panic!("{name} is {other:?}"),
    };
    let per_transaction = (c["log_bytes_written"] + c["written_bytes_data"]) as f64 / 28.0;
    assert_eq!(value("written_bytes_per_transaction"), per_transaction);
    let energy = value("read_energy_pj") + value("write_energy_pj");
    assert!((value("pm_energy_pj") - energy).abs() < 1e-3, "{energy} pJ, but for rounding");
    let reached = c["llc_hits"] + c["llc_misses"];
    assert_eq!(value("llc_miss_ratio"), c["llc_misses"] as f64 / reached as f64);
    assert_eq!(stats.commit_latency.max(), u64::from(2 * path), "the record, and its answer");
}

/// No design at all, on caches that evict: the laboratory need not look far.
#[test]
fn ideal_violates_within_a_hundred_crash_points() {
    for workload in registry().programs().chain([&CELLS, &SHARED_LINES]) {
        let campaign = Campaign {
            workload,
            settings: &[("llc.bytes", "2 KB"), ("workload.footprint_bytes", "128 KB")],
            transactions: 200,
            first_transaction: 0,
            runs: 1,
        };
        let found = campaign.examine(find("ideal").expect("registered"), MutantSet::NONE);
        assert!(found.violation.is_some(), "not in {}", workload.name);
        assert!(found.tally.crash_points <= 100, "{}: {:?}", workload.name, found.tally);
    }
}
