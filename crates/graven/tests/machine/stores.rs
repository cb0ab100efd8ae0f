//! What is counted of transactional stores: clean bytes and bits, and write distances.
//!
//! Bug class: a count of what every result on logging rests on is off by one, or taken where stores are
//! issued and not where they are performed.

use crate::common::registry;
use crate::common::script::{load, script, store};
use crate::common::{changed, finished, tiny_config};
use graven::config::Config;
use graven::design::MutantSet;
use graven::program::Op;
use graven::stats::CounterSet;
use graven::stats::Counters;

const A: u64 = 8192;
const B: u64 = 8200;

fn config(write_distances: bool) -> Config {
    tiny_config(&[("statistics.write_distances", &write_distances.to_string())])
}

fn counters(config: &Config, threads: &[&[Op]]) -> Counters {
    let simulation = finished(script(config, threads));
    simulation.stats().counters.clone()
}

/// 31 words, each in a line of its own.
fn others() -> impl Iterator<Item = Op> {
    (0..31).map(|i| store(A + 64 + 64 * i, i + 1))
}

fn program() -> Vec<Op> {
    let mut ops = vec![store(A, 1), Op::TxBegin, store(A, 2), store(A, 3), store(B, 1), load(B)];
    ops.push(store(A, 4));
    ops.extend(others());
    // 31 stores since the last one to A, 33 to B, 32 to the first of the others.
    ops.extend([store(A, 5), store(B, 2), store(A + 64, 9), Op::TxEnd]);
    // In another transaction everything is for the first time again.
    ops.extend([Op::TxBegin, store(A, 6), Op::TxEnd, store(A, 7)]);
    ops
}

#[test]
fn write_distances_are_those_of_the_program() {
    let program = program();
    let c = counters(&config(true), &[&program]);
    let found = [
        c.write_distance_first,
        c.write_distance_0,
        c.write_distance_1,
        c.write_distance_2_3,
        c.write_distance_4_7,
        c.write_distance_8_15,
        c.write_distance_16_31,
        c.write_distance_over_31,
    ];
    assert_eq!(found, [33 + 1, 1, 1, 0, 0, 0, 1, 2]);
    assert_eq!(found.iter().sum::<u64>(), c.transactional_stores);
    assert_eq!((c.words_written, c.words_written_again), (34, 3));
}

/// The first transaction stores to A, B and 31 others, the second to A; one that only reads is left out.
#[test]
fn stored_bytes_are_those_of_different_words() {
    let mut program = program();
    program.extend([Op::TxBegin, load(A), Op::TxEnd]);
    for (followed, expected) in [(true, (2, 33 * 8, 17 * 8)), (false, (0, 0, 0))] {
        let simulation = finished(script(&config(followed), &[&program]));
        let stats = simulation.stats();
        assert_eq!(stats.counters.committed_transactions, 3);
        let stored = &stats.stored_bytes;
        assert_eq!((stored.count(), stored.max(), stored.mean() as u64), expected);
    }
}

#[test]
fn threads_do_not_see_each_others_distances() {
    let far = |op: &Op| match *op {
        Op::Store { at, value } => store(at.addr.0 + (1 << 20), value),
        Op::Load { at } => load(at.addr.0 + (1 << 20)),
        op => op,
    };
    let one = program();
    let other: Vec<Op> = one.iter().map(far).collect();
    let alone = counters(&config(true), &[&one]);
    let both = counters(&config(true), &[&one, &other]);
    assert_eq!(both.write_distance_first, 2 * alone.write_distance_first);
    assert_eq!(both.write_distance_16_31, 2 * alone.write_distance_16_31);
    assert_eq!(both.write_distance_over_31, 2 * alone.write_distance_over_31);
    assert_eq!(both.words_written_again, 2 * alone.words_written_again);
}

#[test]
fn following_changes_nothing_else() {
    let program = program();
    let (followed, plain) =
        (counters(&config(true), &[&program]), counters(&config(false), &[&program]));
    for ((declared, one), other) in
        Counters::DECLARATIONS.iter().zip(followed.values()).zip(plain.values())
    {
        if declared.name.starts_with("write_distance_") || declared.name.starts_with("words_") {
            assert_eq!(other, 0, "{}", declared.name);
        } else {
            assert_eq!(one, other, "{}", declared.name);
        }
    }
}

#[test]
fn clean_bytes_and_bits_are_those_that_kept_their_value() {
    // New values over what the word held before; bytes and bits that differ.
    let cases = [
        (0x0000_0000_0000_0000, 0, 0),
        (0x0000_0000_0000_0001, 1, 1),
        (0x8000_0000_0000_0001, 1, 1),
        (0x8001_0000_0000_0001, 1, 1),
        (0x80ff_0000_0000_0000, 2, 8),
        (u64::MAX, 7, 64 - 9),
        (0, 8, 64),
        (0, 0, 0),
        (0x1020_4080_0102_0408, 8, 8),
    ];
    let mut program = vec![Op::TxBegin];
    program.extend(cases.iter().map(|&(value, ..)| store(A, value)));
    program.push(Op::TxEnd);
    let c = counters(&config(false), &[&program]);
    let dirty = |pick: fn(&(u64, u64, u64)) -> u64| cases.iter().map(pick).sum::<u64>();
    assert_eq!(c.transactional_stores, 9);
    assert_eq!(c.silent_stores, 2);
    assert_eq!(8 * 9 - c.transactional_bytes_clean, dirty(|case| case.1));
    assert_eq!(64 * 9 - c.transactional_bits_clean, dirty(|case| case.2));
}

/// A store that the design holds is counted once, when it is performed.
#[test]
fn every_design_counts_the_same_stores() {
    let small =
        [("workload.footprint_bytes", "1 MB"), ("workload.operations_per_transaction", "4")];
    let config = changed(config(true), &small);
    // Literal readings may lose data in an orderly shutdown, even.
    let repaired = registry().designs().iter().filter(|d| d.inherent == MutantSet::NONE);
    let counts = repaired.map(|design| {
        let workload = registry().find_workload("btree").expect("registered");
        let mut simulation = crate::common::simulation(&config, design.name, workload, 4, 200, 1);
        simulation.run().unwrap_or_else(|e| panic!("{}: {e}", design.name));
        let c = simulation.stats().counters.clone();
        (
            [c.transactional_stores, c.transactional_bytes_clean, c.transactional_bits_clean],
            [c.write_distance_first, c.write_distance_over_31, c.words_written_again],
        )
    });
    let counts: Vec<_> = counts.collect();
    assert!(counts.iter().flat_map(|(clean, far)| clean.iter().chain(far)).all(|&n| n > 100));
    assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "{counts:?}");
}
