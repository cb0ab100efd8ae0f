//! Pieces of a region in steady state.
//!
//! Bug class: a piece that measures another part of the run than its own, results that depend on the host's threads, a statistic that
//! does not add up over pieces.

use std::sync::Arc;

use crate::common::{registry, with_each};
use crate::region::{config, estimate, open_spec, record, sound, spec, spec_of};
use graven::config::ConfigError;
use graven::sim::{Beginning, Control, SimError, Simulation, Spec, in_pieces};
use serde_json::Value;

/// Errors of a simulation.
#[derive(Debug, PartialEq)]
enum Failure {
    Config(String),
    Simulation(SimError),
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::Config(error.to_string())
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        Failure::Simulation(error)
    }
}

fn run(spec: &Spec, threads: usize) -> Result<Value, Failure> {
    let beginning = Beginning::of(spec);
    let results = in_pieces::<Failure>(spec, beginning.as_ref(), threads, &Arc::default());
    results.map(|results| results.record())
}

fn pieces_of(spec: &Spec, threads: usize) -> Value {
    run(spec, threads).unwrap_or_else(|e| panic!("{}: {e:?}", spec.design.name))
}

const FIVE: (&str, &str) = ("region.pieces", "5");

#[test]
fn results_are_the_same_on_any_number_of_threads() {
    let spec = spec("morlog-slde", "hash", 1_003, &[FIVE]);
    let alone = pieces_of(&spec, 1);
    assert_eq!(alone["transactions"], 1_003);
    assert_eq!(alone["measured"]["pieces"], 5);
    assert_eq!(alone["measured"]["windows"], 50);
    for threads in [2, 3, 9] {
        assert_eq!(pieces_of(&spec, threads), alone, "{threads} threads");
    }
}

#[test]
fn every_design_counts_all_transactions_of_all_pieces_once() {
    let designs = sound();
    let short = [
        ("region.pieces", "3"),
        ("region.fast_forward_transactions", "300"),
        ("region.warm_up_transactions", "100"),
    ];
    with_each(&designs, |design| {
        let record = pieces_of(&spec_of(config("silo", &short), design, "hash", 302), 2);
        assert_eq!(record["stats"]["committed_transactions"], 302, "{}", design.name);
        let latency = record["stats"]["transaction_latency_cycles_mean"].as_f64();
        assert!(latency > Some(0.0), "{}", design.name);
        let [pending, footprint] =
            [&record["measured"]["pending_lines"], &record["measured"]["footprint_bytes"]];
        assert!(pending.is_array() && footprint[1].as_u64() > footprint[0].as_u64(), "{footprint}");
    });
}

/// The last piece of a program of one thread ends where the region in one go ends, so that PM holds the same.
#[test]
fn a_piece_is_the_part_of_the_program_that_the_region_has_there() {
    for workload in ["hash", "btree", "rbtree", "tpcc"] {
        let with = |pieces| {
            let settings = [("core.count", "1"), ("region.pieces", pieces)];
            spec("silo", workload, 600, &settings)
        };
        let whole = record(&with("1"));
        let of_pieces = pieces_of(&with("4"), 2);
        // One thread executes the same operations in the region, in whatever caches.
        for name in [
            "image_digest",
            "footprint_bytes",
            "loads",
            "transactional_stores",
            "committed_transactions",
        ] {
            assert_eq!(of_pieces["stats"][name], whole["stats"][name], "{workload}: {name}");
        }
        let end = |record: &Value| record["measured"]["footprint_bytes"][1].clone();
        assert_eq!(end(&of_pieces), end(&whole), "{workload}");
    }
}

#[test]
fn a_region_of_one_piece_is_the_region() {
    let spec = spec("fwb", "hash", 700, &[]);
    assert_eq!(pieces_of(&spec, 3), record(&spec));
}

/// Whoever runs such a specification in one go has the region as it is, and no piece of it.
#[test]
fn a_simulation_by_itself_measures_all_of_the_region() {
    let record = record(&spec("silo", "hash", 700, &[FIVE]));
    assert_eq!(record["transactions"], 700);
    assert_eq!(record["measured"].get("pieces"), None);
    assert_eq!(record["measured"]["windows"], 48);
}

#[test]
fn results_are_those_of_the_region_in_one_go_within_its_intervals() {
    let machine = [("region.warm_up_transactions", "2000"), ("region.transactions_max", "40000")];
    let cases = [("base", "hash"), ("silo", "btree"), ("hoop", "hash"), ("undo-clwb", "btree")];
    with_each(&cases, |(design, workload)| {
        let with = |pieces| {
            spec(design, workload, 8_000, &[&machine[..], &[("region.pieces", pieces)]].concat())
        };
        let (whole, of_pieces) = (record(&with("1")), pieces_of(&with("4"), 2));
        for name in
            ["cycles", "transaction_latency_cycles_mean", "media_write_requests", "write_energy_pj"]
        {
            let ((mean, half), (other, other_half)) =
                (estimate(&whole, name), estimate(&of_pieces, name));
            let allowed = half * mean + other_half * other;
            assert!(
                (mean - other).abs() <= allowed,
                "{design} on {workload}: {name} is {mean:.1} in one go and {other:.1} in pieces, {allowed:.1} apart at most"
            );
        }
    });
}

/// Cells wear in all pieces, and where the same cells do, that adds up.
#[test]
fn wear_adds_up_over_pieces() {
    let of = |pieces| {
        let machine = config("morlog", &[("region.pieces", pieces)]);
        let design = registry().find_design("morlog-slde").unwrap_or_else(|e| panic!("{e}"));
        pieces_of(&spec_of(machine, design, "hash", 2_000), 2)
    };
    let (whole, pieces) = (of("1"), of("2"));
    for name in ["peak_wear", "peak_cell_wear"] {
        let of = |record: &Value| record["stats"][name].as_f64().unwrap_or_default();
        let share = of(&pieces) / of(&whole);
        // The cells that wear most are those of the log, which every piece uses from its beginning on.
        assert!((0.8..=1.6).contains(&share), "{name}: {} and {}", of(&pieces), of(&whole));
    }
}

#[test]
fn the_error_is_that_of_the_first_piece_that_fails() {
    let mut spec = spec("silo", "hash", 700, &[FIVE]);
    let mutants = spec.design.mutants.iter();
    let failing = mutants.filter_map(|mutant| {
        spec.crash_options.mutants =
            spec.design.mutant(mutant.name).unwrap_or_else(|e| panic!("{e}"));
        let alone = run(&spec, 1).err()?;
        Some((mutant.name, alone, run(&spec, 4)))
    });
    let failing: Vec<_> = failing.collect();
    assert!(!failing.is_empty(), "a mutant is noticed without a power failure");
    for (name, alone, together) in failing {
        assert_eq!(together, Err(alone), "{name}");
    }
}

#[test]
fn whoever_watches_sees_the_progress_of_all_pieces_and_may_cancel() {
    let spec = spec("silo", "hash", 700, &[FIVE]);
    let control = Arc::<Control>::default();
    in_pieces::<Failure>(&spec, None, 2, &control).unwrap_or_else(|e| panic!("{e:?}"));
    assert!(control.done() >= 700 + 5 * 500, "warm-ups count, too: {}", control.done());
    let control = Arc::<Control>::default();
    control.cancel();
    let cancelled = in_pieces::<Failure>(&spec, None, 2, &control).err();
    assert_eq!(cancelled, Some(Failure::Simulation(SimError::Cancelled)));
}

#[test]
fn a_region_that_cannot_be_divided_is_refused() {
    let refused = |settings: &[(&str, &str)], transactions| {
        let config = config("silo", &[&[FIVE], settings].concat());
        match transactions {
            None => open_spec("silo", "hash", config).err().map(|e| e.to_string()),
            Some(given) => {
                let silo = registry().find_design("silo").ok()?;
                let hash = registry().find_workload("hash").ok()?;
                Spec::new(config, silo, hash, None, Some(given), 1).err().map(|e| e.to_string())
            }
        }
    };
    let message = refused(&[("region.kind", "whole")], Some(100)).unwrap_or_default();
    assert!(message.contains("region.kind") && message.contains("has no pieces"), "{message}");
    for given in [None, Some(4)] {
        let message = refused(&[], given).unwrap_or_default();
        assert!(message.contains("region.transactions"), "{message}");
        assert!(message.contains("5 pieces has a given length"), "{message}");
    }
    assert_eq!(refused(&[], Some(5)), None);
    let simulation = Simulation::new(&spec("silo", "hash", 5, &[FIVE]));
    assert!(simulation.is_ok());
}
