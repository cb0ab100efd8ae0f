//! Caches that survive a power failure (`domain.caches`).
//!
//! Bug class: a store that is visible does not survive; what is older, on its way to memory or accepted there, takes the place of
//! what a cache has; the energy that is stored saves other lines than it suffices for.

use crate::common::registry;
use crate::common::script::{compute, evict, load, script, settle, store};
use crate::common::tiny_config;
use graven::config::Config;
use graven::design::Operation;
use graven::memory::Addr;
use graven::program::{Disturbance, Op, Persist};
use graven::sim::{Observer, Simulation, Spec};
use graven::time::NEVER;

const A: u64 = 8192;
/// Another line in A's bank, so that their writes queue up.
const B: u64 = 8192 + 64 * 1024;

fn eadr(settings: &[(&str, &str)]) -> Config {
    tiny_config(&[&[("domain.caches", "all")], settings].concat())
}

fn order(operation: Operation) -> Op {
    Op::Persist(Persist::Order(operation))
}

/// Compares what survives with what programs see, after each action, in all ways of landing that are drawn.
#[derive(Default)]
struct Visible {
    failures: u64,
    landings: u64,
}

impl Observer for Visible {
    fn after_action(&mut self, simulation: &mut Simulation) {
        let words = [A, A + 8, B, B + 16].map(Addr);
        let seen = words.map(|word| simulation.machine().load(word));
        let plain = simulation.crash();
        assert_eq!(words.map(|word| plain.image.peek(word)), seen);
        assert_eq!(plain.different_words(), 0);
        drop(plain);
        self.failures += 1;
        for seed in 0..4 {
            let Some(landed) = simulation.crash_in_flight(seed) else { break };
            assert_eq!(words.map(|word| landed.image.peek(word)), seen, "landed by {seed}");
            self.landings += 1;
        }
    }
}

#[test]
fn what_is_visible_survives_whatever_is_on_its_way_below() {
    let settings = [
        ("controller.write_queue_entries", "4"),
        ("pm.write_ns", "900.0"),
        ("pm.buffer_lines", "0"),
    ];
    let mut ops = Vec::new();
    for value in 1..8 {
        // Lines that fill the write queue, so that those of A and B wait for a place.
        let others = (2..8).map(|n| A + n * (B - A));
        ops.extend(others.flat_map(|line| [store(line, value), evict(line)]));
        ops.extend([store(A, value), store(B, value), evict(A), evict(B)]);
        ops.extend([store(A + 8, value), store(A, 100 + value), load(B), store(B + 16, value)]);
    }
    ops.push(settle());
    let other: Vec<Op> = (0..20).flat_map(|n| [compute(40), store(A + 8, 1000 + n)]).collect();
    let mut simulation = script(&eadr(&settings), &[&ops, &other]);
    simulation.follow_durable_bytes();
    let mut visible = Visible::default();
    simulation.advance_observed(NEVER, &mut visible).unwrap_or_else(|e| panic!("{e}"));
    assert!(visible.landings > 100, "{} landings", visible.landings);
}

/// The same words without, so that the comparison is one that can fail.
#[test]
#[should_panic(expected = "assertion")]
fn without_caches_that_survive_it_does_not() {
    let mut simulation = script(&tiny_config(&[]), &[&[store(A, 1), store(B, 1)]]);
    simulation.follow_durable_bytes();
    drop(simulation.advance_observed(NEVER, &mut Visible::default()));
}

/// An L1 has A, the LLC has B: what of both the energy saves.
fn saved(energy_uj: &str, flush_order: &str) -> [u64; 2] {
    let settings = [("domain.energy_uj", energy_uj), ("domain.flush_order", flush_order)];
    let to_llc = Op::Disturb(Disturbance::Evict(Addr(B).line(), 2));
    let ops = [store(B, 2), settle(), to_llc, store(A, 1), compute(2000)];
    let mut simulation = script(&eadr(&settings), &[&ops]);
    simulation.follow_durable_bytes();
    simulation.advance(NEVER).unwrap_or_else(|e| panic!("{e}"));
    let crash = simulation.crash();
    [A, B].map(|word| crash.image.peek(Addr(word)))
}

/// A line from an L1 takes 64 x 11.839 nJ = 0.7577 uJ, from the LLC 64 x 11.228 nJ = 0.7186 uJ.
#[test]
fn energy_saves_the_lines_for_which_it_suffices_in_the_order_of_the_flush() {
    assert_eq!(saved("0", "inner-first"), [1, 2], "as much as they take");
    assert_eq!(saved("1.477", "inner-first"), [1, 2]);
    assert_eq!(saved("1.476", "inner-first"), [1, 0]);
    assert_eq!(saved("1.476", "outer-first"), [0, 2]);
    assert_eq!(
        saved("0.75", "inner-first"),
        [0, 0],
        "the first does not fit, and nothing after it"
    );
    assert_eq!(saved("0.75", "outer-first"), [0, 2]);
    assert_eq!(saved("0.7", "outer-first"), [0, 0]);
}

#[test]
fn ordering_fences_cost_an_instruction_where_caches_survive() {
    let fences = [Operation::OrderingFence, Operation::DurabilityFence].map(order);
    let ops = [store(A, 1), fences[0], store(B, 1), fences[1], store(A, 2)];
    let mut simulation = script(&eadr(&[]), &[&ops]);
    simulation.run().unwrap_or_else(|e| panic!("{e}"));
    let counters = &simulation.stats().counters;
    assert_eq!((counters.instructions, counters.stall_fence_cycles), (5, 0));
    let refused = script(&tiny_config(&[]), &[&ops]).run().expect_err("nothing executes them");
    assert!(refused.to_string().contains("`ofence`"), "{refused}");
}

fn refusal(design: &str, settings: &[(&str, &str)]) -> String {
    let mut config = registry().machine("cramped").expect("it is built in");
    for (key, value) in settings {
        config.set(key, value).expect("they exist");
    }
    let spec: Result<Spec, _> = registry().spec(config, design, "hash", Some(1), Some(1), 1);
    let checked = spec.and_then(|spec| spec.check());
    checked.expect_err("it does not fit").to_string()
}

#[test]
fn what_does_not_go_with_caches_that_survive_is_refused_by_name() {
    let why = refusal("hoop", &[("domain.caches", "all")]);
    assert!(why.contains("hoop takes dirty lines from the caches"), "{why}");
    let why = refusal("undo-eadr", &[("domain.caches", "none")]);
    assert!(why.contains("undo-eadr has no write-backs"), "{why}");
}
