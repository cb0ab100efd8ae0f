//! LSNVMM: lookups, reads from the log, collections, and what a commit costs.
//!
//! Bug class: a miss reads a version that is not the newest; a collection takes an older version home, frees what is
//! still read, or leaves an older version where recovery finds it; a commit record is durable before its entries.

use crate::common::campaign::{Campaign, demand};
use crate::common::churn::CHURN;
use crate::common::registry;
use crate::common::script::{compute, load, script_on, store};
use crate::common::shared_lines::SHARED_LINES;
use crate::common::statistics;
use crate::common::{finished, refusal, tiny_config};
use graven::config::{Config, ControllerConfig};
use graven::design::{DesignInfo, MutantSet};
use graven::memory::{Addr, LineAddr};
use graven::program::{Disturbance, Op};
use graven::sim::{SimError, Simulation};
use graven::stats::Counts;

fn lsm() -> &'static DesignInfo {
    registry().find_design("lsm").expect("registered")
}

/// Caches that keep everything, so that lines leave when they are told to.
const ROOMY: [(&str, &str); 3] =
    [("l1.bytes", "32 KB"), ("l2.bytes", "64 KB"), ("llc.bytes", "1 MB")];

fn roomy(settings: &[(&str, &str)]) -> Config {
    tiny_config(&[&ROOMY, settings].concat())
}

fn simulate(config: &Config, threads: &[&[Op]]) -> Simulation {
    finished(script_on(config, "lsm", threads))
}

fn counters(config: &Config, threads: &[&[Op]]) -> Counts {
    simulate(config, threads).counts()
}

/// What the operations after a point add to a run's counters.
fn added<T>(config: &Config, program: &[Op], from: usize, of: impl Fn(&Counts) -> T) -> (T, T) {
    let before = counters(config, &[&program[..from]]);
    (of(&before), of(&counters(config, &[program])))
}

const A: u64 = 8192;
const EVICT: Op = Op::Disturb(Disturbance::Evict(LineAddr(A / 64), 3));
const COLLECT: Op = Op::Disturb(Disturbance::Maintenance);
const SETTLE: Op = Op::Disturb(Disturbance::Settle);

/// One transaction.
fn commit(words: &[(u64, u64)]) -> Vec<Op> {
    let stores = words.iter().map(|&(at, value)| store(at, value));
    [Op::TxBegin].into_iter().chain(stores).chain([Op::TxEnd]).collect()
}

/// Loads of so many words of as many entries, in a mixed order.
fn lookups(entries: u64, promotion: &str) -> f64 {
    let config = roomy(&[
        ("dram.capacity_bytes", "64 MB"),
        ("lsm.index_promotion", promotion),
        ("lsm.segment_bytes", "1 MB"),
    ]);
    const LOADS: u64 = 256;
    // Every other word: each is an entry of its own.
    let word = |n: u64| A + n * 16;
    let mut program = Vec::new();
    for first in (0..entries).step_by(64) {
        let words: Vec<(u64, u64)> = (first..first + 64).map(|n| (word(n), n)).collect();
        program.extend(commit(&words));
    }
    let from = program.len();
    program.extend((0..LOADS).map(|n| load(word(n * 40_503 % entries))));
    let of = |c: &Counts| [c["index_lookups"], c["index_nodes_visited"], c["mapping_entries_max"]];
    let (before, after) = added(&config, &program, from, of);
    assert_eq!((before[0], before[2]), (entries, entries), "one update for each entry");
    assert_eq!(after[0] - before[0], LOADS, "one lookup for each load");
    (after[1] - before[1]) as f64 / LOADS as f64
}

/// Claim `hoop-lsnvmm-index`: O(log N) memory accesses for each data read, N the number of log entries.
#[test]
fn a_lookup_visits_as_many_nodes_as_the_logarithm_of_the_entries() {
    for promotion in ["1/2", "1/4"] {
        let nodes = [64, 512, 4096, 32_768].map(|entries| lookups(entries, promotion));
        println!("nodes visited, promotion {promotion}: {nodes:?}");
        for (nodes, doublings) in nodes.iter().zip([6.0, 9.0, 12.0, 15.0]) {
            assert!(*nodes > 0.6 * doublings && *nodes < 3.0 * doublings, "{promotion}: {nodes}");
        }
        for pair in nodes.windows(2) {
            let more = pair[1] - pair[0];
            assert!(more > 1.0 && more < 9.0, "eight times the entries: {more} more nodes");
        }
    }
}

/// A large index does not fit into the caches: its nodes come from DRAM, and reads wait for them.
#[test]
fn a_lookup_costs_cycles_in_a_large_index_more_than_in_a_small_one() {
    let load_cycles = |entries: u64| {
        let config =
            tiny_config(&[("dram.capacity_bytes", "64 MB"), ("lsm.segment_bytes", "1 MB")]);
        let words: Vec<(u64, u64)> = (0..entries).map(|n| (A + n * 16, n)).collect();
        let mut program = commit(&words);
        let from = program.len();
        program.extend((0..200).map(|n| load(A + n * 7919 % entries * 16)));
        let of = |c: &Counts| (c["cycles"], c["dram_reads"]);
        let (before, after) = added(&config, &program, from, of);
        (after.0 - before.0, after.1 - before.1)
    };
    let (small, large) = (load_cycles(16), load_cycles(8192));
    assert!(small.1 <= 17, "sixteen nodes and the head stay in the caches: {small:?}");
    assert!(large.1 > 400, "{large:?}");
    assert!(large.0 > 4 * small.0, "{small:?} {large:?}");
}

#[test]
fn stores_look_up_only_if_told_to_and_a_transaction_finds_its_own() {
    let program = [Op::TxBegin, load(A), store(A, 1), load(A), load(A + 8), store(A, 2), Op::TxEnd];
    for (lookups, expected) in [("loads", 3), ("all", 5)] {
        let c = counters(&roomy(&[("lsm.lookups", lookups)]), &[&program]);
        // Two loads and an update of the index; the load after the store finds the write set.
        assert_eq!(
            (c["index_lookups"], c["log_entries"], c["log_entries_merged"]),
            (expected, 1, 1)
        );
    }
}

/// Words stored by transactions before; the line leaves the caches and is read again.
fn reads_of_a_miss(transactions: &[&[(u64, u64)]]) -> (u64, u64) {
    let mut program: Vec<Op> = transactions.iter().flat_map(|words| commit(words)).collect();
    program.push(EVICT);
    let from = program.len();
    program.push(load(A));
    let of = |c: &Counts| [c["fills"], c["fill_reads"], c["fills_parallel"]];
    let (before, after) = added(&roomy(&[]), &program, from, of);
    assert_eq!(after[0] - before[0], 1);
    (after[1] - before[1], after[2] - before[2])
}

#[test]
fn a_miss_reads_the_log_and_the_home_in_parallel_where_it_needs_both() {
    assert_eq!(reads_of_a_miss(&[]), (1, 0), "at home");
    assert_eq!(reads_of_a_miss(&[&[(A + 64, 1)]]), (1, 0), "another line is in the log");
    assert_eq!(reads_of_a_miss(&[&[(A, 1), (A + 24, 2)]]), (2, 1), "two entries in one line");
    assert_eq!(reads_of_a_miss(&[&[(A, 1)], &[(A + 8, 2)], &[(A + 8, 3)]]), (3, 1));
    let whole: Vec<(u64, u64)> = (0..8).map(|n| (A + n * 8, n)).collect();
    assert_eq!(reads_of_a_miss(&[&whole]), (2, 0), "one entry over two lines of the log");
    assert_eq!(reads_of_a_miss(&[&whole, &[(A + 16, 9)]]), (3, 0), "a newer word among older ones");
}

#[test]
fn a_miss_finds_words_of_running_transactions() {
    let program =
        [Op::TxBegin, store(A, 7), EVICT, load(A), compute(10), store(A + 8, 8), Op::TxEnd];
    let simulation = simulate(&roomy(&[]), &[&program]);
    let c = &simulation.counts();
    // The store's miss reads the home; the load's the home and the write set's line.
    assert_eq!((c["fills"], c["fill_reads"], c["fills_parallel"]), (2, 3, 1));
    assert_eq!(
        (c["llc_writebacks"], c["controller_write_requests_data"]),
        (1, 0),
        "it was dropped"
    );
}

/// Claim `hoop-tab1-lsnvmm`: an update is written once, to the log, and reads are what it costs.
#[test]
fn a_commit_takes_two_barriers_and_writes_each_word_once() {
    for words in [1, 7, 40] {
        let stored: Vec<(u64, u64)> = (0..words).map(|n| (A + n * 8, n + 1)).collect();
        let config = roomy(&[("lsm.entry_words_max", "512")]);
        let simulation = simulate(&config, &[&commit(&stored)]);
        let (stats, path) =
            (statistics(&simulation), u64::from(config.get::<ControllerConfig>().bypass_cycles));
        // The entries go, and their barrier ends; then the record, and its own.
        assert_eq!(stats.commit_latency.max(), 4 * path, "{words} words");
        // The words, one header, the commit record.
        assert_eq!(stats.counters["log_bytes_written"], (words + 2) * 8);
        assert_eq!(stats.counters["controller_write_requests_data"], 0);
        assert_eq!(stats.counters["controller_write_requests_metadata"], 1);
        assert_eq!(stats.counters["controller_write_requests_log"], (words + 1).div_ceil(7));
    }
    let c = counters(&roomy(&[]), &[&[Op::TxBegin, load(A), Op::TxEnd]]);
    assert_eq!(
        (c["log_bytes_written"], c["committed_transactions"]),
        (0, 1),
        "it has stored nothing"
    );
}

#[test]
fn entries_are_as_long_as_allowed() {
    let words: Vec<(u64, u64)> = (0..20).map(|n| (A + n * 8, n)).collect();
    for (longest, entries) in [("1", 20), ("8", 3), ("512", 1)] {
        let c = counters(&roomy(&[("lsm.entry_words_max", longest)]), &[&commit(&words)]);
        assert_eq!((c["log_entries"], c["mapping_entries_max"]), (entries, entries), "{longest}");
    }
}

#[test]
fn a_collection_writes_the_newest_version_of_each_word_home_once() {
    let mut program: Vec<Op> =
        (0..10).flat_map(|n| commit(&[(A, n), (A + 16, n + 100), (A + 64 * n, 5)])).collect();
    program.extend([COLLECT, SETTLE, EVICT, load(A)]);
    let simulation = simulate(&roomy(&[]), &[&program]);
    let c = &simulation.counts();
    // The first transaction's third word is its first.
    assert_eq!((c["gc_passes"], c["gc_on_demand"]), (1, 0));
    assert_eq!((c["gc_words_found"], c["gc_words_migrated"]), (29, 11));
    assert_eq!(c["controller_write_requests_gc"], 10, "ten lines");
    assert_eq!(c["log_records_truncated"], 10);
    // At home again: the last load reads one line.
    let missed = counters(&roomy(&[]), &[&program[..program.len() - 1]]);
    assert_eq!((c["fills"] - missed["fills"], c["fill_reads"] - missed["fill_reads"]), (1, 1));
}

#[test]
fn the_newest_version_wins_whichever_threads_segment_has_it() {
    let lock = |body: Vec<Op>| {
        let (lock, unlock) = ([Op::Lock { lock: 0 }], [Op::Unlock { lock: 0 }]);
        [&lock[..], &body, &unlock].concat()
    };
    let signal = |n| Op::Disturb(Disturbance::Signal(n));
    let wait = |n| Op::Disturb(Disturbance::Await(n));
    let first = [lock(commit(&[(A, 1)])), vec![signal(1), wait(2)], lock(commit(&[(A, 3)]))];
    let second = [vec![wait(1)], lock(commit(&[(A, 2)])), vec![signal(2)]];
    let (first, second) = (first.concat(), second.concat());
    let [mut first_collects, mut second_collects] = [first.clone(), second.clone()];
    first_collects.extend([COLLECT, SETTLE, EVICT, load(A)]);
    second_collects.extend([COLLECT, SETTLE, EVICT, load(A)]);
    for threads in [[&first_collects, &second], [&first, &second_collects]] {
        let threads: Vec<&[Op]> = threads.iter().map(|t| t.as_slice()).collect();
        // Reads and the image after shutdown are checked in every run.
        let simulation = simulate(&roomy(&[]), &threads);
        assert_eq!(simulation.machine().architectural().load(Addr(A)), 3);
        assert!(simulation.counts()["gc_words_found"] >= 2);
    }
}

#[test]
fn collections_come_at_their_period() {
    // 2 GHz: a period of 10 us has 20,000 cycles.
    let config = roomy(&[("lsm.gc_period_us", "10")]);
    let mut program = Vec::new();
    for n in 0..5 {
        program.extend(commit(&[(A, n)]));
        program.push(compute(20_000));
    }
    let c = counters(&config, &[&program]);
    assert!((4..=5).contains(&c["gc_passes"]) && c["gc_on_demand"] == 0, "{}", c["gc_passes"]);
    let idle = counters(&config, &[&[compute(100_000)]]);
    assert_eq!(idle["gc_passes"], 0, "there was nothing to collect");
}

#[test]
fn a_full_log_is_collected_while_threads_wait() {
    // Two segments of four lines: each transaction takes two.
    let config = roomy(&[("lsm.segment_bytes", "256"), ("lsm.log_bytes", "512")]);
    let words = |n: u64| (0..5).map(|i| (A + i * 16, n)).collect::<Vec<_>>();
    let program: Vec<Op> = (0..12).flat_map(|n| commit(&words(n))).collect();
    let c = counters(&config, &[&program]);
    // Four fit; then each collection makes room for four.
    assert_eq!((c["gc_passes"], c["gc_on_demand"]), (2, 2));
    assert_eq!((c["gc_words_found"], c["gc_words_migrated"]), (40, 10));
    assert!(c["gc_stall_cycles"] > 100 && c["gc_stall_cycles"] <= c["stall_commit_cycles"]);
    assert_eq!(c["mapping_entries_max"], 5);
}

#[test]
fn a_full_index_is_collected_while_threads_wait() {
    let config = roomy(&[("lsm.index_bytes", "4 KB"), ("lsm.entry_words_max", "1")]);
    let words = |n: u64| (0..16).map(|i| (A + n * 1024 + i * 16, n)).collect::<Vec<_>>();
    let program: Vec<Op> = (0..8).flat_map(|n| commit(&words(n))).collect();
    let c = counters(&config, &[&program]);
    assert!(c["gc_on_demand"] >= 2 && c["gc_passes"] == c["gc_on_demand"], "{}", c["gc_passes"]);
    assert!(
        c["mapping_entries_max"] < 64 && c["gc_stall_cycles"] > 0,
        "{}",
        c["mapping_entries_max"]
    );
}

fn failure(config: &Config, program: &[Op]) -> String {
    let error = script_on(config, "lsm", &[program]).run().expect_err("it cannot work");
    let SimError::Design { design: "lsm", why } = error else { panic!("{error}") };
    why
}

#[test]
fn what_cannot_fit_is_refused_with_the_reason() {
    let many: Vec<(u64, u64)> = (0..200).map(|n| (A + n * 16, n)).collect();
    let why = failure(&roomy(&[("lsm.segment_bytes", "1 KB")]), &commit(&many));
    assert_eq!(
        why,
        "transaction 0 of thread 0 has 400 words of log entries, and lsm.segment_bytes = 1 KB holds 112"
    );
    let why = failure(&roomy(&[("lsm.index_bytes", "4 KB")]), &commit(&many));
    assert!(
        why.contains("200 entries, more than the index has nodes for (lsm.index_bytes)"),
        "{why}"
    );
    let why = failure(&roomy(&[]), &[store(A, 1)]);
    assert_eq!(why, "thread 0 stores to 0x2000 outside a transaction");
    let why = refusal(&tiny_config(&[("lsm.segment_bytes", "2 MB")]), "lsm");
    assert!(why.contains("4 threads need a segment of 2 MB each, and the log has 1"), "{why}");
    let why = refusal(&tiny_config(&[("lsm.write_set_slots", "65536")]), "lsm");
    assert!(why.contains("lsm.write_set_slots") && why.contains("DRAM has 512 KB"), "{why}");
}

/// Four segments and a few, so that collections are under way most of the time.
const CROWDED: Campaign = Campaign {
    workload: &SHARED_LINES,
    settings: &[
        ("controller.write_queue_entries", "4"),
        ("pm.buffer_lines", "2"),
        ("lsm.segment_bytes", "2 KB"),
        ("lsm.log_bytes", "12 KB"),
        ("lsm.entry_words_max", "2"),
        ("lsm.gc_requests", "2"),
    ],
    transactions: 56,
    first_transaction: 0,
    runs: 8,
};

/// Few words in few lines, stored again and again; writes that take their time.
const HURRIED: Campaign = Campaign {
    workload: &CHURN,
    settings: &[
        ("controller.write_queue_entries", "4"),
        ("controller.adr", "false"),
        ("pm.buffer_lines", "0"),
        ("lsm.segment_bytes", "1536"),
        ("lsm.log_bytes", "8 KB"),
        ("lsm.gc_period_us", "2"),
    ],
    ..CROWDED
};

/// The same words in an index that is always full.
const FULL_INDEX: Campaign = Campaign {
    settings: &[
        ("lsm.segment_bytes", "2 KB"),
        ("lsm.log_bytes", "64 KB"),
        ("lsm.index_bytes", "4 KB"),
        ("lsm.index_promotion", "1/2"),
    ],
    ..HURRIED
};

/// Room enough, four channels, collections one after the other while threads commit.
const BUSY: Campaign = Campaign {
    settings: &[
        ("controller.channels", "4"),
        ("controller.interleave", "line"),
        ("core.model", "out-of-order"),
        ("lsm.segment_bytes", "4 KB"),
        ("lsm.log_bytes", "128 KB"),
        ("lsm.gc_period_us", "1"),
        ("lsm.gc_requests", "64"),
    ],
    ..CROWDED
};

#[test]
fn every_mutant_is_killed_and_the_design_is_not() {
    let crowded = [
        ("record-overtakes-entries", 100),
        ("record-not-awaited", 50),
        ("commit-record-missing", 50),
        ("oldest-migrated", 1000),
        ("head-stays", 1000),
        ("open-words-forgotten", 500),
        ("recovery-by-place", 200),
        ("recovery-moves-head-first", 1000),
        ("head-ignored", 1000),
        ("log-not-cleared", 1000),
    ];
    let hurried = [("freed-before-head", 3000)];
    let busy = [("homes-not-awaited", 100), ("appends-not-awaited", 500), ("index-emptied", 500)];
    let campaigns: [(Campaign, &[(&str, u64)]); 4] =
        [(CROWDED, &crowded), (HURRIED, &hurried), (FULL_INDEX, &[]), (BUSY, &busy)];
    let programs = [
        include_str!("../../../../litmus/lsm/index-stays.litmus"),
        include_str!("../../../../litmus/lsm/open-segments-left-out.litmus"),
        include_str!("../../../../litmus/lsm/segment-used-while-read.litmus"),
    ];
    demand("lsm", &campaigns, &programs);
}

#[test]
fn no_crash_point_of_any_machine_breaks_a_promise() {
    const MACHINES: [&[(&str, &str)]; 3] = [
        &[("pm.buffer_lines", "0"), ("core.model", "out-of-order"), SEGMENT, LOG],
        &[("lsm.index_levels_max", "1"), ("lsm.lookups", "all"), PERIOD, SEGMENT, LOG],
        &[
            ("l1.bytes", "128 B"),
            ("l1.ways", "1"),
            ("l2.bytes", "256 B"),
            ("llc.bytes", "2 KB"),
            PERIOD,
            SEGMENT,
            LOG,
        ],
    ];
    const SEGMENT: (&str, &str) = ("lsm.segment_bytes", "2 KB");
    const LOG: (&str, &str) = ("lsm.log_bytes", "9 KB");
    const PERIOD: (&str, &str) = ("lsm.gc_period_us", "0.5");
    for settings in MACHINES {
        let campaign = Campaign { settings, runs: 4, ..CROWDED };
        let found = campaign.examine(lsm(), MutantSet::NONE);
        assert_eq!(found.what(), None, "{settings:?}");
        assert!(found.tally.torn > 500 && found.tally.in_flight > 100, "{:?}", found.tally);
    }
}
