//! A region of a run in steady state: what it counts, what comes before it, and when it says that it is none.
//!
//! Bug class: a statistic that is of another part of the run than the others; transactions without time that leave caches, PM or
//! threads in a state that no run reaches; a transient that is taken for a steady state.

use crate::common::{Part, SMALL_DATABASES, preset, registry, with_each};
use graven::config::{Config, ConfigError};
use graven::design::{DesignInfo, Leaves, MutantSet};
use graven::sim::{Beginning, Simulation, Spec};
use graven::stats::{Kind, RegionConfig};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Small caches and structures, so that a few thousand transactions fill and turn over everything.
const SMALL: &[(&str, &str)] = &[
    ("core.count", "4"),
    ("l1.bytes", "4 KB"),
    ("l2.bytes", "0 B"),
    ("llc.bytes", "128 KB"),
    ("workload.footprint_bytes", "2 MB"),
    ("region.kind", "steady"),
    ("region.fast_forward_transactions", "3000"),
    ("region.warm_up_transactions", "500"),
    ("region.transactions_max", "6000"),
    ("fwb.log_bytes", "256 KB"),
];

pub fn config(machine: &str, settings: &[(&str, &str)]) -> Config {
    preset(machine, &[SMALL, settings].concat())
}

pub fn spec_of(
    config: Config,
    design: &'static DesignInfo,
    workload: &str,
    transactions: u64,
) -> Spec {
    let workload = registry().find_workload(workload).unwrap_or_else(|e| panic!("{e}"));
    Spec::new(config, design, workload, None, Some(transactions), 1)
        .unwrap_or_else(|e| panic!("{e}"))
}

/// A specification that leaves the length of the region open.
pub fn open_spec(design: &str, workload: &str, config: Config) -> Result<Spec, ConfigError> {
    let design = registry().find_design(design).unwrap_or_else(|e| panic!("{e}"));
    let workload = registry().find_workload(workload).unwrap_or_else(|e| panic!("{e}"));
    Spec::new(config, design, workload, None, None, 1)
}

pub fn spec(design: &str, workload: &str, transactions: u64, settings: &[(&str, &str)]) -> Spec {
    let design = registry().find_design(design).unwrap_or_else(|e| panic!("{e}"));
    spec_of(config("silo", settings), design, workload, transactions)
}

/// All designs but readings of papers that lose data even while power is there.
pub fn sound() -> Vec<&'static DesignInfo> {
    let all = registry().designs().iter().copied();
    all.filter(|design| design.inherent == MutantSet::NONE).collect()
}

pub fn record(spec: &Spec) -> Value {
    record_of(spec, None)
}

/// The same of one that may begin like others.
pub fn record_of(spec: &Spec, beginning: Option<Arc<Beginning>>) -> Value {
    let mut simulation = Simulation::begun(spec, beginning).unwrap_or_else(|e| panic!("{e}"));
    let digest = simulation.run().unwrap_or_else(|e| panic!("{}: {e}", spec.design.name));
    simulation.record(digest)
}

fn reasons(record: &Value) -> String {
    record["measured"]["reasons"].to_string()
}

/// What a statistic came to per transaction, and half of its interval over it.
pub fn estimate(record: &Value, name: &str) -> (f64, f64) {
    let of = &record["measured"]["estimates"][name];
    let number = |at: usize| of[at].as_f64().unwrap_or_else(|| panic!("an estimate of {name}"));
    (number(0), number(1))
}

#[test]
fn every_design_has_a_region_of_the_length_that_was_asked_for_and_loses_nothing_before_or_after() {
    let designs = sound();
    with_each(&designs, |design| {
        let record = record(&spec_of(config("silo", &[]), design, "hash", 700));
        assert_eq!(record["transactions"], 700, "{}", design.name);
        assert_eq!(record["stats"]["committed_transactions"], 700, "{}", design.name);
        assert_eq!(record["measured"]["windows"], 48, "{}", design.name);
    });
}

#[test]
fn every_workload_has_a_region_with_locks_and_without() {
    let workloads: Vec<&str> = registry().workloads().iter().map(|w| w.name).collect();
    with_each(&workloads, |workload| {
        for sharing in ["private", "shared"] {
            let small = [
                ("region.fast_forward_transactions", "200"),
                ("region.warm_up_transactions", "20"),
            ];
            let sharing = [("workload.sharing", sharing), ("workload.footprint_bytes", "1 MB")];
            let settings = [&small[..], &sharing, &SMALL_DATABASES].concat();
            let record = record(&spec("fwb", workload, 100, &settings));
            assert_eq!(record["measured"]["kind"], "steady");
            let is_over = record["measured"]["reasons"].to_string().contains("the program ended");
            assert!(is_over || record["transactions"] == 100, "{workload}: {record}");
        }
    });
}

/// The windows of a long region are those of shorter ones: nothing is counted twice, and nothing is left out.
#[test]
fn two_regions_that_follow_each_other_add_up_to_one() {
    for design in ["fwb", "silo", "redo-clwb"] {
        let region = |warm_up: &str, transactions: u64| {
            let settings =
                [("region.warm_up_transactions", warm_up), ("fwb.scan_interval_cycles", "20000")];
            let mut spec = spec(design, "btree", transactions, &settings);
            spec.transactions = 20_000;
            let mut simulation = Simulation::new(&spec).unwrap_or_else(|e| panic!("{e}"));
            let digest = simulation.run().unwrap_or_else(|e| panic!("{e}"));
            let record = simulation.record(digest);
            let began = &record["measured"]["warm_up_transactions"];
            assert_eq!(began.to_string(), warm_up, "{design}: its rounds have come by then");
            simulation.counts()
        };
        let (first, second, both) = (region("1600", 500), region("2100", 300), region("1600", 800));
        let declared = registry().statistics();
        let counted = declared.iter().filter(|d| d.kind == Kind::Count && !d.name.contains('*'));
        for name in counted.map(|d| d.name).filter(|name| first.get(name).is_some()) {
            let sum = first[name] + second[name];
            assert_eq!(sum, both[name], "{design}: {name}");
        }
        assert_eq!(first["cycles"] + second["cycles"], both["cycles"], "{design}");
    }
}

/// Each design declares what it leaves in the caches: caches that are filled without time are as it would have left them.
#[test]
fn caches_stay_as_dirty_as_they_are_after_transactions_without_time() {
    let designs = sound();
    let rounds = [("fwb.scan_interval_cycles", "20000"), ("morlog.scan_interval_cycles", "20000")];
    with_each(&designs, |design| {
        let record = record(&spec_of(config("silo", &rounds), design, "hash", 3_000));
        assert!(!reasons(&record).contains("dirty"), "{}: {}", design.name, reasons(&record));
    });
}

#[test]
fn a_design_that_declares_the_wrong_thing_is_not_in_steady_state() {
    let lad = registry().find_design("lad").expect("it is there");
    // Early enough that what was there at first is not gone.
    let early = [
        ("region.warm_up_transactions", "20"),
        ("region.fast_forward_transactions", "8000"),
        ("llc.bytes", "1 MB"),
        ("workload.footprint_bytes", "8 MB"),
    ];
    let wrong = DesignInfo { leaves: |_| Leaves::Dirty, ..graven::designs::lad::INFO };
    let wrong = spec_of(config("silo", &early), Box::leak(Box::new(wrong)), "hash", 800);
    assert!(
        reasons(&record(&wrong)).contains("fewer lines are dirty"),
        "{}",
        reasons(&record(&wrong))
    );
    let right = spec_of(config("silo", &early), lad, "hash", 800);
    assert!(!reasons(&record(&right)).contains("dirty"));
}

/// Transactions without time lead to where as many with time lead.
#[test]
fn fast_forward_and_a_timed_warm_up_lead_to_the_same_windows() {
    with_each(
        &["ideal", "base", "silo", "lad", "fwb", "morlog", "redo-clwb", "opt-undo"],
        |design| {
            let rounds =
                [("fwb.scan_interval_cycles", "20000"), ("morlog.scan_interval_cycles", "20000")];
            let without = record(&spec(design, "hash", 9_000, &rounds));
            let timed = [
                ("region.fast_forward_transactions", "0"),
                ("region.warm_up_transactions", "3500"),
            ];
            let timed = record(&spec(design, "hash", 9_000, &[&rounds[..], &timed].concat()));
            for name in ["cycles", "media_write_requests", "llc_misses", "write_energy_pj"] {
                let ((a, half_a), (b, half_b)) = (estimate(&without, name), estimate(&timed, name));
                let apart = (a - b).abs() / a;
                assert!(
                    apart <= half_a + half_b + 0.02,
                    "{design}: {name} {a} ±{half_a}, {b} ±{half_b}"
                );
            }
        },
    );
}

#[test]
fn a_region_without_a_scan_says_so() {
    let record = record(&spec("fwb", "hash", 300, &[]));
    assert_eq!(record["measured"]["steady"], false);
    assert!(reasons(&record).contains("scans before the region"), "{}", reasons(&record));
}

#[test]
fn a_region_whose_length_is_not_given_ends_when_it_is_precise() {
    let of = |precision: &str| {
        let settings = [
            ("region.transactions_min", "1000"),
            ("region.transactions_max", "100000"),
            ("region.precision_percent", precision),
        ];
        record(&open_spec("ideal", "array", config("silo", &settings)).expect("it fits"))
    };
    let (coarse, fine) = (of("5"), of("1"));
    let transactions = |record: &Value| record["transactions"].as_u64().expect("a number");
    assert!(estimate(&coarse, "cycles").1 <= 0.05 && estimate(&fine, "cycles").1 <= 0.01);
    assert!(
        transactions(&fine) > transactions(&coarse),
        "{} {}",
        transactions(&fine),
        transactions(&coarse)
    );
    let within = (estimate(&coarse, "cycles").0 / estimate(&fine, "cycles").0 - 1.0).abs();
    assert!(within <= 0.055, "{within}");
}

/// In the long run as many lines are written back as become dirty: a run that is drained at its end wrote as much.
#[test]
fn a_run_that_is_drained_writes_as_much_as_the_region_says() {
    for design in ["ideal", "fwb"] {
        let settings = [("fwb.scan_interval_cycles", "20000"), ("pm.buffer_lines", "0")];
        let steady = record(&spec(design, "array", 4_000, &settings));
        let whole = [("region.kind", "whole")];
        let whole = record(&spec(design, "array", 20_000, &[&settings[..], &whole].concat()));
        let data = |name: &str| whole["stats"][name].as_f64().expect("a number") / 20_000.0;
        let drained = data("controller_write_requests_data") + data("residual_dirty_lines");
        let (said, half) = estimate(&steady, "controller_write_requests_data");
        assert!((said / drained - 1.0).abs() <= half + 0.03, "{design}: {said} ±{half}, {drained}");
    }
}

/// Power fails in whole runs: a region beside it is refused, and not measured as something else.
#[test]
fn a_region_and_a_recovery_that_is_timed_exclude_each_other() {
    let settings = [("recovery.points", "2")];
    let refused = open_spec("silo", "array", config("silo", &settings));
    let refused = refused.err().expect("it is refused").to_string();
    assert!(refused.contains("region.kind"), "{refused}");
    assert!(refused.contains("power fails in whole runs, from their beginning"), "{refused}");
}

/// Laws of conservation hold between the two instants, whatever is under way at each: a run that breaks one ends with an error.
#[test]
fn laws_of_conservation_hold_for_the_region_of_every_design() {
    let config = config("silo", &[]);
    for design in registry().designs().iter().filter(|design| !design.name.contains("literal")) {
        for workload in ["hash", "queue"] {
            record(&spec_of(config.clone(), design, workload, 700));
        }
    }
}

/// Many operations in few transactions are as long a region as few operations in many.
#[test]
fn a_region_of_large_transactions_needs_fewer_of_them() {
    let of = |operations: &str| {
        let settings = [
            ("region.transactions_min", "4000"),
            ("region.operations_min", operations),
            ("region.precision_percent", "100"),
        ];
        let spec = open_spec("ideal", "array", config("silo", &settings)).expect("it fits");
        record(&spec)["transactions"].as_u64().expect("a number")
    };
    // A swap has 32 loads and stores.
    assert_eq!(of("1000000"), 4000);
    assert_eq!(of("32000"), 992, "windows are of whole transactions");
}

#[test]
fn a_program_of_which_a_region_is_measured_is_as_long_as_fits() {
    let of = |capacity: &str| {
        let settings = [("region.kind", "steady"), ("pm.capacity_bytes", capacity)];
        open_spec("ideal", "tpcc", preset("silo", &settings))
    };
    let found = of("256 GB").expect("it fits");
    let wanted = found.config.get::<RegionConfig>().program_transactions(found.threads);
    assert!(found.transactions < wanted, "the host has no room for all");
    assert!(found.check().is_ok());
    let none = of("64 MB").and_then(|spec| spec.check());
    assert!(none.is_err_and(|error| error.to_string().contains("pm.capacity_bytes")));
}

/// Threads that wait for each other's locks go on without time, too, whoever has them.
#[test]
fn threads_that_share_locks_are_fast_forwarded() {
    let settings = [("region.fast_forward_transactions", "2000"), ("llc.bytes", "256 KB")];
    let settings = [&settings[..], &[("region.fast_forward_operations", "100000000")]].concat();
    let record = record(&spec("ideal", "tpcc", 200, &settings));
    assert!(record["measured"]["fast_forward_transactions"].as_u64() >= Some(2000), "{record}");
}

/// Without a warm-up nothing is known of the size of transactions.
#[test]
fn a_region_without_a_warm_up_is_as_long_as_another() {
    let settings = [
        ("region.warm_up_transactions", "0"),
        ("region.transactions_min", "2000"),
        ("region.precision_percent", "100"),
    ];
    let spec = open_spec("ideal", "array", config("silo", &settings)).expect("it fits");
    assert_eq!(record(&spec)["transactions"], 1984, "32 windows of 62 transactions");
}

/// Every edit runs one design in this number with each program, another one with the next program, so that all run.
const DESIGNS_ONE_IN: usize = 4;

#[test]
fn what_one_executes_without_time_for_some_is_what_each_executes_alone() {
    execute_for_all(Part::Edit);
}

#[test]
#[ignore = "long: all other designs with each program"]
fn what_one_executes_without_time_for_all_is_what_each_executes_alone() {
    execute_for_all(Part::Long);
}

/// Whatever a design leaves in the caches, with threads that wait for locks, and with code of a design among the programs' operations;
/// caches of other sizes have other lines left.
fn execute_for_all(part: Part) {
    let programs =
        [("hash", "private"), ("queue", "shared"), ("tpcc", "shared"), ("btree", "private")];
    with_each(&Vec::from_iter(programs.into_iter().enumerate()), |&(at, (workload, sharing))| {
        let own = [
            ("workload.sharing", sharing),
            // Each run populates it anew.
            ("workload.footprint_bytes", "1 MB"),
            ("region.fast_forward_transactions", "300"),
            ("region.warm_up_transactions", "20"),
        ];
        let own = [&own[..], &SMALL_DATABASES].concat();
        let larger = [&own[..], &[("llc.bytes", "256 KB")]].concat();
        let mut specs = Vec::new();
        for design in sound() {
            specs.push(spec_of(config("silo", &own), design, workload, 100));
        }
        for design in ["ideal", "silo", "base"] {
            specs.push(spec(design, workload, 100, &larger));
        }
        let mut number = at..;
        specs.retain(|_| part.has(number.next().expect("it never ends"), DESIGNS_ONE_IN));
        let alone: Vec<Value> = specs.iter().map(record).collect();
        let beginnings: Vec<_> = specs.iter().map(Beginning::of).collect();
        for ((spec, beginning), alone) in specs.iter().zip(beginnings).zip(alone) {
            assert_eq!(record_of(spec, beginning), alone, "{} on {workload}", spec.design.name);
        }
    });
}

/// Who watches sees a region come nearer to its end, and never go back as statistics begin anew.
#[test]
fn progress_goes_on_when_the_region_begins() {
    let spec = spec("fwb", "array", 4000, &[]);
    assert_eq!(spec.expected_transactions(), 4500, "with the warm-up");
    let mut simulation = Simulation::new(&spec).unwrap_or_else(|e| panic!("{e}"));
    let control = simulation.control();
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = vec![control.done()];
            while !is_over.load(Relaxed) {
                seen.push(control.done());
            }
            seen
        });
        simulation.run().unwrap_or_else(|e| panic!("{e}"));
        is_over.store(true, Relaxed);
        watch.join().expect("it counts")
    });
    assert!(seen.is_sorted());
    assert!(seen.last().is_some_and(|&last| last <= 4500));
}
