//! Software logging on x86: what is written, in which order, by which instructions.
//!
//! Bug class: a store is performed before its record is durable, or a word is at home before the log is; a program
//! does not find what it has stored; the software costs other instructions than it executes.

use crate::common::registry;
use crate::common::script::{compute, load, script_on, settle, store, transaction};
use crate::common::{CELLS, refusal, simulation, tiny_config};
use graven::config::Config;
use graven::memory::Addr;
use graven::program::Op;
use graven::sim::{Observer, Simulation};
use graven::stats::Counts;
use graven::time::NEVER;

const A: u64 = 8192;
/// In another line, and in A's.
const B: u64 = 8192 + 4096;
const A1: u64 = A + 8;
/// Head and first slot of the first thread's log.
const HEAD: u64 = 60 << 20;
const SLOTS: u64 = HEAD + 64;
const TORN: u64 = 1 << 63;

fn config(settings: &[(&str, &str)]) -> Config {
    let slow = [("controller.adr", "false"), ("pm.buffer_lines", "0")];
    tiny_config(&[&slow, settings].concat())
}

fn run(config: &Config, design: &str, threads: &[&[Op]]) -> (Simulation, Counts) {
    let mut simulation = script_on(config, design, threads);
    simulation.run().unwrap_or_else(|e| panic!("{design}: {e}"));
    let counters = simulation.counts();
    (simulation, counters)
}

fn counters(design: &str, ops: &[Op]) -> Counts {
    run(&config(&[]), design, &[ops]).1
}

/// Words as they are durable when a program has ended and memory is idle.
fn left<const N: usize>(design: &str, words: [u64; N], ops: &[Op]) -> [u64; N] {
    let ops = [ops, &[settle()]].concat();
    let mut simulation = script_on(&config(&[]), design, &[&ops]);
    graven::lab::checker::attach(&mut simulation);
    simulation.advance(NEVER).unwrap_or_else(|e| panic!("{e}"));
    let crash = simulation.crash();
    words.map(|word| crash.image.peek(Addr(word)))
}

#[test]
fn undo_records_and_the_head_lie_in_the_log_as_documented() {
    let top = 1 << 63 | 7;
    let ops = [transaction(&[(A, top)]), transaction(&[(A, 5), (A1, 6), (A, 8)])].concat();
    let words =
        [HEAD, SLOTS, SLOTS + 8, SLOTS + 16, SLOTS + 24, SLOTS + 32, SLOTS + 40, SLOTS + 48];
    let expected = [3, TORN | A, TORN, TORN | A | 1, TORN | 7, TORN | A1, TORN, 0];
    assert_eq!(left("undo-clwb", words, &ops), expected);
    assert_eq!(left("undo-clwb", [A, A1], &ops), [8, 6]);
}

#[test]
fn redo_records_lie_in_the_log_as_documented() {
    let top = 1 << 63 | 7;
    let ops = transaction(&[(A, top), (A1, 6), (A, 8)]);
    let words: [u64; 9] = std::array::from_fn(|word| SLOTS + 8 * word as u64);
    let (a, a1) = (TORN | A, TORN | A1);
    let expected = [a | 1, TORN | 7, a1, TORN | 6, a, TORN | 8, TORN | 2, TORN, 0];
    assert_eq!(left("redo-clwb", words, &ops), expected);
    assert_eq!(left("redo-clwb", [HEAD, A, A1], &ops), [0, 8, 6], "truncated when it must be");
}

/// Looks when a word is durable in the log, when another has been stored to, and when that is durable.
struct Order {
    log: u64,
    word: u64,
    logged: Option<u64>,
    stored: Option<u64>,
    at_home: Option<u64>,
    acknowledged: Option<u64>,
}

impl Order {
    fn of(config: &Config, design: &str, log: u64, word: u64, ops: &[Op]) -> Order {
        let mut simulation = script_on(config, design, &[ops]);
        graven::lab::checker::attach(&mut simulation);
        let mut order =
            Order { log, word, logged: None, stored: None, at_home: None, acknowledged: None };
        simulation.advance_observed(NEVER, &mut order).unwrap_or_else(|e| panic!("{e}"));
        simulation.finish_observed(&mut order).unwrap_or_else(|e| panic!("{e}"));
        order
    }
}

impl Observer for Order {
    fn after_action(&mut self, simulation: &mut Simulation) {
        let now = simulation.machine().now();
        let stored = simulation.machine().architectural().load(Addr(self.word)) != 0;
        let committed = simulation.counts()["committed_transactions"] > 0;
        let crash = simulation.crash();
        let is = |word| crash.image.peek(Addr(word)) != 0;
        let seen = [is(self.log), stored, is(self.word), committed];
        let times = [&mut self.logged, &mut self.stored, &mut self.at_home, &mut self.acknowledged];
        for (time, _) in times.into_iter().zip(seen).filter(|(_, seen)| *seen) {
            time.get_or_insert(now);
        }
    }
}

#[test]
fn a_store_waits_for_its_undo_record_and_the_literal_one_does_not() {
    let ops = transaction(&[(A, 1)]);
    for core in ["in-order", "out-of-order"] {
        let config = config(&[("core.model", core)]);
        let order = Order::of(&config, "undo-clwb", SLOTS, A, &ops);
        assert!(order.logged.is_some() && order.logged <= order.stored, "{core}");
        assert!(order.at_home < order.acknowledged, "{core}: written back before the commit");
        let order = Order::of(&config, "undo-clwb-literal", SLOTS, A, &ops);
        assert!(order.stored < order.logged, "{core}: the record is in the buffer");
        assert!(order.at_home < order.acknowledged, "{core}");
    }
}

#[test]
fn redo_stores_in_place_when_the_log_is_durable_and_does_not_wait_for_write_backs() {
    let ops = transaction(&[(A, 1)]);
    for core in ["in-order", "out-of-order"] {
        let config = config(&[("core.model", core)]);
        // The commit record is the second one.
        let order = Order::of(&config, "redo-clwb", SLOTS + 16, A, &ops);
        assert!(order.logged.is_some() && order.logged <= order.stored, "{core}");
        assert!(order.stored <= order.acknowledged, "{core}: before its locks are let go");
        assert!(order.acknowledged < order.at_home, "{core}");
    }
}

#[test]
fn a_program_finds_what_it_has_stored() {
    let ops = [
        vec![load(A), Op::TxBegin, load(A), store(A, 1), load(A), load(B), store(A, 2), load(A)],
        vec![Op::TxEnd, load(A), Op::TxBegin, load(A), Op::TxEnd],
    ]
    .concat();
    // Values are compared by the simulation.
    let c = counters("redo-clwb", &ops);
    assert_eq!((c["transactional_stores"], c["log_entries"]), (2, 2));
    let own = c["loads"] - counters("redo-clwb", &transaction(&[(A, 1), (A, 2)]))["loads"];
    // Two find their word: bucket, key and value. One looks at an empty bucket.
    assert_eq!(own, 4 + 2 * 3 + 2, "four are outside a transaction, or before its first store");
}

/// What a transaction of one store executes beside its own begin, store and end.
fn instructions(design: &str, stores: &[(u64, u64)]) -> (u64, Counts) {
    let ops = transaction(stores);
    let c = counters(design, &ops);
    (c["instructions"] - counters("ideal", &ops)["instructions"], c)
}

#[test]
fn instructions_are_those_of_the_documented_code() {
    let bucket = 1 + 4;
    let (search, insert, record) = (3 + bucket, 3 + 2, 8 + 2);
    let clwb = 1 + 7 + 1;
    let undo = search + insert + 1 + record + 1;
    let head = 1 + 1;
    let (found, c) = instructions("undo-clwb", &[(A, 1)]);
    assert_eq!(found, undo + clwb + 1 + head + 1);
    assert_eq!((c["fences"], c["clwb_instructions"], c["uncached_stores"]), (3, 1, 3));
    // Again to the same word: a bucket and an entry.
    let (again, c) = instructions("undo-clwb", &[(A, 1), (A, 2)]);
    assert_eq!(again - found, search + 1 + 3);
    assert_eq!((c["fences"], c["log_entries"]), (3, 1));
    // The program's own store is executed at the end instead.
    let redo = search + insert + 1 + record;
    let home = 2 + 3;
    let (found, c) = instructions("redo-clwb", &[(A, 1)]);
    assert_eq!(found, redo + record + 1 + home + clwb);
    assert_eq!((c["fences"], c["clwb_instructions"], c["uncached_stores"]), (1, 1, 4));
    let (again, c) = instructions("redo-clwb", &[(A, 1), (A, 2)]);
    // An update is one store; the second store to the word is not executed.
    assert_eq!(again - found, search + 1 + 3 + 1 + record - 1);
    assert_eq!(c["log_entries"], 2);
}

#[test]
fn lines_are_written_back_once_if_their_words_come_together() {
    for design in ["redo-clwb", "undo-clwb"] {
        let c = counters(design, &transaction(&[(A, 1), (A1, 2), (B, 3), (B + 16, 4)]));
        assert_eq!((c["clwb_instructions"], c["forced_writebacks"]), (2, 2), "{design}");
        let c = counters(design, &transaction(&[(A, 1), (B, 3), (A1, 2)]));
        assert_eq!((c["clwb_instructions"], c["clwb_of_clean_lines"]), (3, 1), "{design}");
        assert_eq!(c["forced_writebacks"], 2, "{design}");
    }
}

/// `fwb-nonpers-ideal-def`: unsafe-base is software logging without forced write-backs.
#[test]
fn the_unsafe_ones_log_and_force_nothing() {
    for design in ["unsafe-redo", "unsafe-undo"] {
        let c = counters(design, &transaction(&[(A, 1), (B, 3)]));
        assert_eq!((c["fences"], c["clwb_instructions"], c["log_entries"]), (0, 0, 2), "{design}");
        assert!(c["uncached_stores"] >= 5, "{design}");
        assert!(!registry().find_design(design).expect("registered").default);
    }
}

#[test]
fn a_transaction_that_stores_nothing_logs_nothing() {
    for design in ["redo-clwb", "undo-clwb"] {
        let c = counters(design, &[Op::TxBegin, load(A), Op::TxEnd]);
        assert_eq!((c["fences"], c["uncached_stores"], c["instructions"]), (0, 0, 3), "{design}");
    }
}

#[test]
fn redo_is_truncated_before_a_lock_is_let_go_and_otherwise_when_the_log_is_full() {
    let (lock, unlock) = ([Op::Lock { lock: 0 }], [Op::Unlock { lock: 0 }]);
    let locked = [&lock, &transaction(&[(A, 1)])[..], &unlock].concat();
    assert_eq!(counters("redo-clwb", &locked)["fences"], 3);
    assert_eq!(left("redo-clwb", [HEAD], &locked), [2]);
    // Eight slots: four transactions of a record and a commit record.
    let config = config(&[("software_log.log_bytes_per_thread", "192")]);
    let transactions = |n: u64| (0..n).flat_map(|i| transaction(&[(A, i)])).collect::<Vec<Op>>();
    let fences = |n| run(&config, "redo-clwb", &[&transactions(n)]).1["fences"];
    assert_eq!([fences(4), fences(5), fences(8), fences(9)], [4, 5 + 2, 8 + 2, 9 + 4]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let tiny = config(&[("software_log.log_bytes_per_thread", "2 MB")]);
    for design in ["redo-clwb", "undo-clwb"] {
        let why = refusal(&tiny, design);
        assert!(why.contains("software_log.log_bytes_per_thread"), "{why}");
        let why = refusal(&config(&[("software_log.write_set_words", "100000")]), design);
        assert!(why.contains("the DRAM has"), "{why}");
        for setting in
            [("software_log.log_bytes_per_thread", "192"), ("software_log.write_set_words", "8")]
        {
            let stores: Vec<(u64, u64)> = (0..9).map(|i| (A + 8 * i, i)).collect();
            let mut simulation = script_on(&config(&[setting]), design, &[&transaction(&stores)]);
            let error = simulation.run().expect_err("it does not fit").to_string();
            assert!(error.contains(setting.0), "{design}: {error}");
        }
    }
    let mut outside = script_on(&config(&[]), "redo-clwb", &[&[store(A, 1)]]);
    let error = outside.run().expect_err("it is not logged").to_string();
    assert!(error.contains("outside a transaction"), "{error}");
}

/// The shape of a hash set whose buckets are shared: words whose searches collide are found.
#[test]
fn every_word_of_a_full_write_set_is_found() {
    for core in ["in-order", "out-of-order"] {
        let config = config(&[("software_log.write_set_words", "64"), ("core.model", core)]);
        let mut ops = vec![Op::TxBegin];
        ops.extend((0..64).map(|i| store(A + 8 * i, i + 1)));
        ops.extend((0..64).map(|i| load(A + 8 * i)));
        ops.extend((0..64).map(|i| store(A + 8 * i, i + 2)));
        ops.push(Op::TxEnd);
        for design in ["redo-clwb", "undo-clwb"] {
            let (simulation, c) = run(&config, design, &[&ops]);
            let memory = simulation.machine().architectural();
            let words = (0..64).map(|i| memory.load(Addr(A + 8 * i)));
            assert!(words.eq((0..64).map(|i| i + 2)), "{core} {design}");
            assert_eq!(c["transactional_stores"], 128, "{core} {design}");
        }
    }
}

#[test]
fn a_fence_of_the_design_does_not_stop_other_instructions() {
    let config = config(&[("core.model", "out-of-order")]);
    let cycles = |ops: &[Op]| run(&config, "undo-clwb", &[ops]).1["cycles"];
    let stores = [Op::TxBegin, store(A, 1), Op::TxEnd];
    let work = [Op::TxBegin, store(A, 1), compute(250), Op::TxEnd];
    assert!(cycles(&work) < cycles(&stores) + 50);
}

fn measured(design: &str, workload: &str) -> Counts {
    let mut config = registry().machine("fwb").expect("the preset loads");
    config.set("workload.footprint_bytes", "1 MB").expect("a valid setting");
    let workload = registry().find_workload(workload).expect("registered");
    let mut simulation = simulation(&config, design, workload, 8, 400, 1);
    simulation.run().unwrap_or_else(|e| panic!("{design}: {e}"));
    simulation.counts()
}

/// `fwb-order-instr`: hardware logging executes far fewer instructions; `fwb-instr-undo-doubles`: more than twice as many
/// as without persistence; `fwb-order-nonpers-ideal`: without persistence runs take less time than with a software log.
#[test]
fn software_logging_executes_more_instructions_than_hardware_logging() {
    for workload in ["hash", "rbtree", "sps", "btree", "sdg"] {
        let [none, hardware, redo, undo, unsafe_redo, unsafe_undo] =
            ["ideal", "fwb", "redo-clwb", "undo-clwb", "unsafe-redo", "unsafe-undo"]
                .map(|design| measured(design, workload));
        let count = |c: &Counts| c["instructions"];
        assert!(count(&undo) > 2 * count(&none), "{workload}");
        assert!(count(&redo).min(count(&undo)) > 3 * count(&hardware) / 2, "{workload}");
        assert!(count(&unsafe_redo) < count(&redo) && count(&unsafe_undo) < count(&undo));
        for c in [&redo, &undo, &unsafe_redo, &unsafe_undo] {
            assert!(c["cycles"] > none["cycles"], "{workload}");
        }
        assert!(
            unsafe_redo["cycles"] < redo["cycles"] && unsafe_undo["cycles"] < undo["cycles"],
            "{workload}"
        );
    }
}

#[test]
fn all_recover_what_a_workload_left() {
    for design in ["redo-clwb", "undo-clwb", "unsafe-redo", "unsafe-undo"] {
        let mut simulation = simulation(&config(&[]), design, &CELLS, 4, 80, 1);
        simulation.run().unwrap_or_else(|e| panic!("{design}: {e}"));
    }
}
