//! x86's persistence instructions: write-backs, fences, and uncacheable stores through the write-combining buffer.
//!
//! Bug class: a fence lets something go past it that it must hold, or holds what it need not; a write-back is sent
//! twice, or not waited for because an eviction came first; what lies in the write-combining buffer survives.

use crate::common::finished;
use crate::common::registry;
use crate::common::script::{compute, evict, load, script, store};
use crate::common::tiny_config;
use graven::config::{Config, CoreConfig};
use graven::memory::Addr;
use graven::program::{Op, Persist};
use graven::request::WriteClass;
use graven::sim::{Observer, Simulation};
use graven::stats::Counters;
use graven::time::NEVER;

const A: u64 = 8192;
const B: u64 = 8192 + 64 * 1024;
/// The tiny machine's log region begins here; lines of it in banks of their own.
const LOG: u64 = 60 << 20;
const OTHER: u64 = LOG + 4096;

fn clwb(addr: u64) -> Op {
    Op::Persist(Persist::WriteBack(Addr(addr).line()))
}

const FENCE: Op = Op::Persist(Persist::Fence);

fn uncached(addr: u64, value: u64) -> Op {
    Op::Persist(Persist::StoreUncached { addr: Addr(addr), value, class: WriteClass::Log })
}

/// A whole line, which leaves the write-combining buffer at once.
fn uncached_line(addr: u64) -> impl Iterator<Item = Op> {
    (0..8).map(move |word| uncached(addr + 8 * word, 1))
}

/// Without ADR, so that a write takes its time to be durable.
fn config(settings: &[(&str, &str)]) -> Config {
    let slow = [("controller.adr", "false"), ("pm.buffer_lines", "0")];
    tiny_config(&[&slow, settings].concat())
}

/// Which of two words is durable first.
struct Order {
    words: [u64; 2],
    at: [Option<u64>; 2],
}

impl Observer for Order {
    fn after_action(&mut self, simulation: &mut Simulation) {
        let now = simulation.machine().now();
        let crash = simulation.crash();
        for (at, &word) in self.at.iter_mut().zip(&self.words) {
            if at.is_none() && crash.image.peek(Addr(word)) != 0 {
                *at = Some(now);
            }
        }
    }
}

/// Runs a program, without what follows its end; when each of two words became durable.
fn durable_at(config: &Config, words: [u64; 2], threads: &[&[Op]]) -> ([Option<u64>; 2], Counters) {
    let mut simulation = script(config, threads);
    graven::lab::checker::attach(&mut simulation);
    let mut order = Order { words, at: [None; 2] };
    simulation.advance_observed(NEVER, &mut order).unwrap_or_else(|e| panic!("{e}"));
    simulation.advance(simulation.machine().now() + 10_000).unwrap_or_else(|e| panic!("{e}"));
    simulation.finish_observed(&mut order).unwrap_or_else(|e| panic!("{e}"));
    (order.at, simulation.stats().counters.clone())
}

/// Runs a program; the counters as they are when its last write is durable or lost.
fn counters(config: &Config, threads: &[&[Op]]) -> Counters {
    let simulation = finished(script(config, threads));
    simulation.stats().counters.clone()
}

/// What is durable when the threads are done and memory is idle, and the write-combining buffers are not emptied.
fn left(config: &Config, words: &[u64], program: &[Op]) -> Vec<u64> {
    let mut program = program.to_vec();
    program.push(crate::common::script::settle());
    let mut simulation = script(config, &[&program]);
    graven::lab::checker::attach(&mut simulation);
    simulation.advance(NEVER).unwrap_or_else(|e| panic!("{e}"));
    let crash = simulation.crash();
    words.iter().map(|&word| crash.image.peek(Addr(word))).collect()
}

fn program(parts: &[&[Op]]) -> Vec<Op> {
    parts.concat()
}

#[test]
fn each_is_one_instruction() {
    let ops = [store(A, 1), clwb(A), FENCE, uncached(LOG, 1), uncached(LOG + 8, 2), FENCE];
    let c = counters(&config(&[]), &[&ops]);
    assert_eq!(c.instructions, 6);
    assert_eq!((c.stores, c.clwb_instructions, c.fences, c.uncached_stores), (1, 1, 2, 2));
    assert_eq!((c.clwb_of_clean_lines, c.forced_writebacks), (0, 1));
    assert_eq!(c.write_combining_flushes_fence, 1);
    assert_eq!(c.controller_write_requests_log, 1, "both words in one line");
}

#[test]
fn a_fence_keeps_uncacheable_stores_in_order() {
    let line: Vec<Op> = uncached_line(OTHER).collect();
    let (without, _) =
        durable_at(&config(&[]), [LOG, OTHER], &[&program(&[&[uncached(LOG, 1)], &line])]);
    assert!(without[0].is_none() && without[1].is_some(), "the word stays: {without:?}");
    let fenced = program(&[&[uncached(LOG, 1), FENCE], &line]);
    let (with, _) = durable_at(&config(&[]), [LOG, OTHER], &[&fenced]);
    assert!(with[0].is_some() && with[0] < with[1], "{with:?}");
}

#[test]
fn a_fence_keeps_write_backs_before_uncacheable_stores_and_stores() {
    let line: Vec<Op> = uncached_line(LOG).collect();
    let (without, _) =
        durable_at(&config(&[]), [A, LOG], &[&program(&[&[store(A, 1), clwb(A)], &line])]);
    assert!(without[0] > without[1], "the way through the caches is longer: {without:?}");
    let (with, _) =
        durable_at(&config(&[]), [A, LOG], &[&program(&[&[store(A, 1), clwb(A), FENCE], &line])]);
    assert!(with[0].is_some() && with[0] < with[1], "{with:?}");
    // A store behind the fence is performed when the write-back is durable, and evicted after that.
    let ops = [store(A, 1), clwb(A), FENCE, store(B, 1), clwb(B)];
    let (with, _) = durable_at(&config(&[]), [A, B], &[&ops]);
    let write = 300;
    assert!(with[1].expect("written") >= with[0].expect("written") + write, "{with:?}");
}

#[test]
fn a_full_line_leaves_at_once_and_others_stay_until_they_must_go() {
    // Words 0 to 7 of a line, one word of two others.
    let line: Vec<Op> = uncached_line(LOG).collect();
    let ops = program(&[&[uncached(OTHER, 5), uncached(OTHER + 64, 6)], &line]);
    let words = [LOG, LOG + 56, OTHER, OTHER + 64];
    assert_eq!(left(&config(&[]), &words, &ops), [1, 1, 0, 0], "power loses the buffer");
    let c = counters(&config(&[]), &[&ops]);
    assert_eq!((c.write_combining_flushes_full, c.write_combining_flushes_evicted), (1, 0));
}

/// `fwb-cfg-wcb`: four to six lines.
#[test]
fn the_oldest_line_makes_room_for_a_new_one() {
    for lines in [1, 2, 4, 6] {
        let config = config(&[("core.write_combining_lines", &lines.to_string())]);
        let words: Vec<u64> = (0..=lines).map(|n| LOG + 64 * n).collect();
        let ops: Vec<Op> = words.iter().map(|&word| uncached(word, 1)).collect();
        let mut expected = vec![0; words.len()];
        expected[0] = 1;
        assert_eq!(left(&config, &words, &ops), expected, "{lines} lines");
        assert_eq!(counters(&config, &[&ops]).write_combining_flushes_evicted, 1);
    }
    let fwb = registry().machine("fwb").expect("the preset loads");
    let lines = fwb.get::<CoreConfig>().write_combining_lines;
    assert!((4..=6).contains(&lines), "{lines}");
}

#[test]
fn a_clean_line_costs_the_issue_only() {
    let hot = [load(A), compute(1000), clwb(A), FENCE];
    let c = counters(&config(&[]), &[&hot]);
    assert_eq!((c.clwb_of_clean_lines, c.forced_writebacks), (1, 0));
    assert_eq!(c.controller_write_requests, 0);
    let bare = counters(&config(&[]), &[&hot[..2]]);
    assert!(c.cycles <= bare.cycles + 4, "{} and {}", c.cycles, bare.cycles);
    assert_eq!(c.stall_fence_cycles, 0);
}

#[test]
fn a_line_that_was_evicted_is_waited_for_and_not_sent_again() {
    for reload in [false, true] {
        let mut ops = vec![store(A, 1), evict(A)];
        ops.extend(reload.then_some(load(A)));
        ops.extend([clwb(A), clwb(A), FENCE]);
        ops.extend(uncached_line(LOG));
        let (at, c) = durable_at(&config(&[]), [A, LOG], &[&ops]);
        assert!(at[0].is_some() && at[0] < at[1], "{at:?}");
        assert_eq!(c.controller_write_requests_data, 1, "the eviction");
        assert_eq!((c.clwb_of_clean_lines, c.forced_writebacks), (2, 0));
        assert!(c.stall_fence_cycles > 100, "{}", c.stall_fence_cycles);
    }
}

#[test]
fn a_line_that_another_thread_writes_back_is_waited_for() {
    let ops = [store(A, 1), clwb(A), FENCE];
    // The other thread comes when the line is clean and its write is on its way.
    let others = [load(B), compute(620), clwb(A), FENCE];
    let other: Vec<Op> = others.into_iter().chain(uncached_line(LOG)).collect();
    let mine = [&[load(B), compute(380)], &ops[..]].concat();
    let (at, c) = durable_at(&config(&[]), [A, LOG], &[&mine, &other]);
    assert_eq!(c.controller_write_requests_data, 1);
    assert!(at[0].is_some() && at[0] < at[1], "{at:?}");
}

#[test]
fn loads_and_other_instructions_go_past_a_fence() {
    for core in ["in-order", "out-of-order"] {
        let config = config(&[("core.model", core)]);
        let persist = [store(A, 1), clwb(A), FENCE];
        let rest = [compute(200), load(B), compute(100)];
        let alone = counters(&config, &[&persist]).cycles;
        let others = counters(&config, &[&rest]).cycles;
        let both = counters(&config, &[&[&persist[..], &rest[..]].concat()]);
        assert!(both.cycles < alone + others / 2, "{core}: {} {alone} {others}", both.cycles);
        // What must wait for the queue waits for the fence.
        let waits = [&persist[..], &[Op::TxBegin, Op::TxEnd]].concat();
        let c = counters(&config, &[&waits]);
        assert!(c.cycles > alone && c.stall_fence_cycles > 200, "{core}: {c:?}");
        assert!(c.stall_fence_cycles < c.cycles);
    }
}

#[test]
fn a_full_queue_behind_a_fence_stalls_for_the_fence_and_then_for_stores() {
    let config = config(&[("core.store_queue_entries", "2")]);
    let ops = [store(A, 1), clwb(A), FENCE, store(A, 2), store(A + 8, 3), store(B, 4)];
    let c = counters(&config, &[&ops]);
    assert!(c.stall_fence_cycles > 200, "{}", c.stall_fence_cycles);
    assert!(c.stall_store_cycles > 50, "B's line comes from memory: {}", c.stall_store_cycles);
    assert!(c.stall_fence_cycles + c.stall_store_cycles <= c.cycles);
}

#[test]
fn power_may_fail_between_a_write_back_and_its_fence() {
    let ops = [store(A, 1), clwb(A), compute(5)];
    let mut simulation = script(&config(&[]), &[&ops]);
    graven::lab::checker::attach(&mut simulation);
    simulation.advance(NEVER).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(simulation.stats().counters.forced_writebacks, 1);
    assert_eq!(simulation.crash().image.peek(Addr(A)), 0, "it is on its way");
    let mut simulation = script(&config(&[]), &[&[store(A, 1), clwb(A), FENCE]]);
    graven::lab::checker::attach(&mut simulation);
    simulation.advance(NEVER).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(simulation.crash().image.peek(Addr(A)), 1);
}

/// With ADR a write is durable in the queue: a fence waits for the way there only.
#[test]
fn what_durable_means_says_the_domain() {
    let ops = [store(A, 1), compute(500), clwb(A), FENCE];
    let cycles = |adr| counters(&config(&[("controller.adr", adr)]), &[&ops]).cycles;
    let (with, without) = (cycles("true"), cycles("false"));
    assert_eq!(without - with, 300, "the cells take 150 ns");
}

#[test]
fn a_fence_empties_the_buffer_of_its_core() {
    let shared = [("core.count", "1"), ("core.threads_per_core", "2")];
    let first = [uncached(LOG, 1), compute(2000)];
    let second = [compute(1000), uncached(OTHER, 1), FENCE, compute(1)];
    let (at, c) = durable_at(&config(&shared), [LOG, OTHER], &[&first, &second]);
    assert_eq!(c.write_combining_flushes_fence, 2);
    assert!(at.iter().all(|at| at.is_some_and(|at| at < 3000)), "{at:?}");
    // On cores of their own the first's word stays where it is.
    let (at, c) = durable_at(&config(&[]), [LOG, OTHER], &[&first, &second]);
    assert_eq!(c.write_combining_flushes_fence, 1);
    assert!(at[1].expect("written") < 3000 && at[0].is_none(), "{at:?}");
}

#[test]
fn an_atomic_operation_empties_the_buffer() {
    let ops = [uncached(LOG, 1), Op::Lock { lock: 0 }, Op::Unlock { lock: 0 }];
    assert_eq!(left(&config(&[]), &[LOG], &ops), [1]);
    assert_eq!(counters(&config(&[]), &[&ops]).write_combining_flushes_atomic, 1);
}

#[test]
fn an_uncacheable_store_waits_for_older_loads() {
    let config = config(&[("core.model", "out-of-order")]);
    let line: Vec<Op> = uncached_line(LOG).collect();
    let (alone, _) = durable_at(&config, [LOG, A], &[&line]);
    let (after, _) = durable_at(&config, [LOG, A], &[&program(&[&[load(B)], &line])]);
    assert!(after[0].expect("written") > alone[0].expect("written") + 100, "{after:?} {alone:?}");
}
