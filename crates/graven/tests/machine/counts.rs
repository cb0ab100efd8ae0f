//! What is counted of the accesses to caches: each event once.
//!
//! Bug class: an operation that waits, and is tried again, is counted again at every level that it passes.

use crate::common::memory::quiet;
use crate::common::script::{load, script, store};
use crate::common::shared_lines::{SHARED_LINES, THREADS};
use crate::common::{finished, preset, registry, simulation, tiny_config};
use graven::config::Config;
use graven::design::MutantSet;
use graven::memory::LINE_BYTES;
use graven::program::Op;
use graven::stats::Counters;
use proptest::prelude::*;

const MODELS: [&str; 2] = ["in-order", "out-of-order"];

fn config(model: &str, settings: &[(&str, &str)]) -> Config {
    quiet(&[&[("core.model", model)], settings].concat())
}

fn counters(config: &Config, threads: &[&[Op]]) -> Counters {
    let simulation = finished(script(config, threads));
    simulation.stats().counters.clone()
}

/// A line of PM, far from its neighbours.
fn line(number: u64) -> u64 {
    (1 << 20) + number * 3 * 4096
}

/// Accesses to the L1, and to the LLC: hits, misses, joins.
fn at_l1_and_llc(c: &Counters) -> [[u64; 3]; 2] {
    [[c.l1_hits, c.l1_misses, c.l1_joins], [c.llc_hits, c.llc_misses, c.llc_joins]]
}

/// A store that waits behind others asks for its line ahead, and waits for it again in its turn.
#[test]
fn a_line_that_is_fetched_is_one_miss() {
    let loads: Vec<Op> = (0..1000).map(|n| load(line(n))).collect();
    let stores: Vec<Op> = (0..1000).map(|n| store(line(n), n + 1)).collect();
    for model in MODELS {
        for (name, ops) in [("loads", &loads), ("stores", &stores)] {
            let c = counters(&config(model, &[]), &[ops]);
            let expected = [[0, 1000, 0], [0, 1000, 0]];
            assert_eq!(at_l1_and_llc(&c), expected, "{name}, {model}");
            assert_eq!((c.l2_hits, c.l2_misses), (0, 1000), "{name}, {model}");
            assert_eq!((c.fills, c.controller_read_requests), (1000, 1000), "{name}, {model}");
        }
    }
}

/// Eight stores to a line: the first is a miss, and all others hit when it has come.
#[test]
fn stores_behind_a_miss_to_their_line_hit() {
    for model in MODELS {
        let ops: Vec<Op> = (0..80).map(|n| store(line(n / 8) + n % 8 * 8, n + 1)).collect();
        let c = counters(&config(model, &[]), &[&ops]);
        assert_eq!(at_l1_and_llc(&c), [[70, 10, 0], [0, 10, 0]], "{model}");
    }
}

/// A store whose line comes from the LLC before its turn has been there once.
#[test]
fn a_store_that_asks_the_llc_ahead_is_one_access() {
    // An L1 of a line, no L2: the second round finds all lines in the LLC.
    let small = [("l1.bytes", "64"), ("l1.ways", "1"), ("l2.bytes", "0 B")];
    let ops: Vec<Op> = (0..200).map(|n| store(line(n % 100), n + 1)).collect();
    for model in MODELS {
        let c = counters(&config(model, &small), &[&ops]);
        let [[hits, misses, joins], of_llc] = at_l1_and_llc(&c);
        assert_eq!(of_llc[1..], [100, 0], "{model}");
        assert_eq!(hits + misses + joins, 200, "{model}: one access each");
        assert_eq!(misses, of_llc[0] + of_llc[1], "{model}");
    }
}

#[test]
fn an_access_that_joins_a_miss_is_neither_hit_nor_miss() {
    let one = [load(line(0))];
    let c = counters(&config("in-order", &[]), &[&one, &one]);
    // The second core's load goes down to the LLC, where it finds that the line is on its way; it is not counted again
    // when it has come.
    assert_eq!(at_l1_and_llc(&c), [[0, 2, 0], [0, 1, 1]]);
    assert_eq!((c.l2_misses, c.loads, c.fills, c.snoops), (2, 2, 1, 1));
    // Its own core's miss is met beside the L1.
    let two = [load(line(0)), load(line(0) + 8), store(line(0) + 16, 1)];
    let c = counters(&config("out-of-order", &[]), &[&two]);
    assert_eq!(at_l1_and_llc(&c)[1], [0, 1, 0]);
    assert_eq!((c.l1_misses, c.l1_hits + c.l1_joins), (1, 2));
    assert!(c.l1_joins >= 1);
}

#[test]
fn a_lock_is_one_access_to_take_and_one_to_give_back() {
    let ops = [Op::Lock { lock: 1 }, Op::Unlock { lock: 1 }];
    for model in MODELS {
        let c = counters(&config(model, &[]), &[&ops]);
        assert_eq!(at_l1_and_llc(&c), [[1, 1, 0], [0, 1, 0]], "{model}");
        assert_eq!((c.dram_fills, c.dram_reads, c.fills), (1, 1, 0), "{model}");
    }
}

fn each_level_asks_the_next(c: &Counters) {
    let of_llc = c.llc_hits + c.llc_misses + c.llc_joins;
    let of_l2 = c.l2_hits + c.l2_misses;
    assert_eq!(c.l1_misses, if of_l2 > 0 { of_l2 } else { of_llc });
    assert!(of_l2 == 0 || c.l2_misses == of_llc);
    assert_eq!(c.llc_misses, c.fills + c.dram_fills);
}

/// Of designs that store to PM as the program does, and read it for misses alone.
#[test]
fn memory_is_read_once_for_each_miss() {
    for design in ["ideal", "base", "silo", "fwb", "morlog", "lad"] {
        for l2 in ["0 B", "2 KB"] {
            let config = tiny_config(&[("l2.bytes", l2)]);
            let mut run = simulation(&config, design, &SHARED_LINES, THREADS, 200, 1);
            run.run().unwrap_or_else(|e| panic!("{design}: {e}"));
            let c = &run.stats().counters;
            each_level_asks_the_next(c);
            assert_eq!(c.fills, c.fill_reads, "{design}");
            assert!(c.llc_joins > 0 && c.upgrades > 0 && c.dram_fills > 0, "{design}");
        }
    }
}

#[test]
fn levels_agree_under_every_design() {
    for model in MODELS {
        let settings = [("core.model", model), ("workload.footprint_bytes", "1 MB")];
        let config = preset("silo", &settings);
        for design in registry().designs().iter().filter(|d| d.inherent == MutantSet::NONE) {
            let workload = registry().find_workload("hash").expect("registered");
            let mut run = simulation(&config, design.name, workload, 4, 100, 1);
            run.run().unwrap_or_else(|e| panic!("{}: {e}", design.name));
            each_level_asks_the_next(&run.stats().counters);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Nobody takes a line from a thread that is alone with caches that hold everything.
    #[test]
    fn an_operation_is_an_access(
        ops in prop::collection::vec((any::<bool>(), 0..40u64, 0..8u64), 1..300),
        model in prop::sample::select(&MODELS[..]),
    ) {
        let op = |&(stores, at, word): &(bool, u64, u64)| {
            let at = line(at) + word * 8;
            if stores { store(at, word + 1) } else { load(at) }
        };
        let all: Vec<Op> = ops.iter().map(op).collect();
        let c = counters(&config(model, &[]), &[&all]);
        let mut lines: Vec<u64> = ops.iter().map(|&(_, at, _)| line(at) / LINE_BYTES).collect();
        lines.sort_unstable();
        lines.dedup();
        prop_assert_eq!(c.llc_misses, lines.len() as u64);
        let accesses = c.l1_hits + c.l1_misses + c.l1_joins;
        prop_assert_eq!(accesses, c.loads - c.store_forwards + c.stores);
        each_level_asks_the_next(&c);
    }
}
