//! Closed-form timing of whole machines: threads that run given operations, to the cycle.
//!
//! Bug class: a core that overlaps what it must wait for, waits for what it need not, or pays for a
//! level of the hierarchy twice. All clocks run at 1 GHz, so that a nanosecond is a cycle.

use crate::common::ROUND_DRAM;
use crate::common::memory::{line_of, quiet};
use crate::common::script::{compute, cycles_of, load, load_after, run, script, store};
use graven::config::Config;
use graven::memory::Addr;
use graven::program::Op;
use graven::time::Cycle;

const L1: Cycle = 4;
const L2: Cycle = 12;
const LLC: Cycle = 28;
/// Through all levels, which is what a miss spends before memory sees it.
const TRAVERSAL: Cycle = L1 + L2 + LLC;
/// A read of PM with the row closed, and its burst.
const PM: Cycle = 50 + 4;
/// A read of PM with the row open, and its burst.
const PM_HIT: Cycle = 10 + 4;
const BURST: Cycle = 4;
const DRAM: Cycle = 28 + 3;

fn config(settings: &[(&str, &str)]) -> Config {
    let round = [
        ("core.frequency_mhz", "1000"),
        ("pm.row_hit_ns", "10"),
        ("pm.read_ns", "50"),
        ("pm.precharge_ns", "20"),
        ("pm.write_ns", "200"),
        ("pm.burst_ns", "4"),
    ];
    let settings: Vec<_> = round.iter().chain(&ROUND_DRAM).chain(settings).copied().collect();
    quiet(&settings)
}

fn out_of_order(settings: &[(&str, &str)]) -> Config {
    let wide = [("core.model", "out-of-order"), ("core.issue_width", "4")];
    let settings: Vec<_> = wide.iter().chain(settings).copied().collect();
    config(&settings)
}

/// An address in a row of a bank.
fn at(bank: u64, row: u64, column: u64) -> u64 {
    // Page 0 belongs to nobody: take rows from the second page of each bank on.
    line_of(bank, row + 2, column).addr().0
}

// ---- in-order ---------------------------------------------------------------------------------

#[test]
fn a_load_takes_the_sum_of_the_levels_it_visits() {
    let (a, b, c) = (at(1, 0, 0), at(1, 0, 1), at(1, 0, 2));
    // One line in the L1, two in the L2, four in the LLC.
    let small = config(&[
        ("l1.bytes", "64"),
        ("l1.ways", "1"),
        ("l2.bytes", "128"),
        ("l2.ways", "2"),
        ("llc.bytes", "256"),
        ("llc.ways", "4"),
    ]);
    let mut expected = 0;
    let mut ops = Vec::new();
    let steps = [
        (a, TRAVERSAL + PM, "memory, closed row"),
        (a + 8, L1, "L1"),
        (b, TRAVERSAL + PM_HIT, "memory, open row"),
        (a, L1 + L2, "L2"),
        (c, TRAVERSAL + PM_HIT, "memory again"),
        (b, TRAVERSAL, "LLC"),
        (b, L1, "L1 at last"),
    ];
    for (addr, latency, what) in steps {
        ops.push(load(addr));
        expected += latency;
        assert_eq!(run(&small, &[&ops]), [expected], "after a load from {what}");
    }
}

#[test]
fn instructions_take_a_cycle_each_and_two_threads_of_a_core_share_its_slots() {
    assert_eq!(run(&config(&[]), &[&[compute(100)]]), [100]);
    let wide = config(&[("core.issue_width", "4")]);
    assert_eq!(run(&wide, &[&[compute(100)]]), [25]);
    let shared = config(&[("core.count", "1"), ("core.threads_per_core", "2")]);
    let mut simulation = script(&shared, &[&[compute(100)], &[compute(60)]]);
    simulation.run().expect("nothing can go wrong");
    assert_eq!(simulation.stats().core_cycles, [200], "every other slot is the other thread's");
    assert_eq!(simulation.stats().core_instructions, [160]);
}

#[test]
fn a_full_store_queue_holds_the_next_store() {
    let two = config(&[("core.store_queue_entries", "2")]);
    let a = at(1, 0, 0);
    let three = [store(a, 1), store(a + 8, 2), store(a + 16, 3)];
    // The line comes at `filled`; the first store is performed then and makes room for the third, and
    // one more is performed in each following cycle.
    let filled = TRAVERSAL + PM;
    assert_eq!(run(&two, &[&three]), [filled + 2]);
    let mut simulation = script(&two, &[&three]);
    simulation.run().expect("nothing can go wrong");
    let c = &simulation.stats().counters;
    // Two issue in cycles 0 and 1; the third waits from 2 on, and after it the end waits for the queue.
    assert_eq!(c.stall_store_cycles, (filled - 2) + 1);
    assert_eq!(simulation.machine().load(Addr(a + 16)), 3);
    // With room for all three nothing but the end waits.
    let roomy = config(&[("core.store_queue_entries", "4")]);
    assert_eq!(run(&roomy, &[&three]), [filled + 2]);
}

#[test]
fn a_load_of_a_queued_store_does_not_wait_for_the_line() {
    let a = at(1, 0, 0);
    let mut simulation = script(&config(&[]), &[&[store(a, 7), load(a), compute(1000)]]);
    simulation.run().expect("nothing can go wrong");
    let stats = simulation.stats();
    assert_eq!(stats.counters.store_forwards, 1);
    assert_eq!(stats.core_cycles[0], 1 + L1 + 1000);
}

// ---- out-of-order -----------------------------------------------------------------------------

#[test]
fn independent_misses_overlap_and_dependent_ones_do_not() {
    let machine = out_of_order(&[]);
    let (a, b) = (at(1, 0, 0), at(2, 0, 0));
    let one = TRAVERSAL + PM;
    assert_eq!(run(&machine, &[&[load(a), load(b)]]), [one + BURST]);
    assert_eq!(run(&machine, &[&[load(a), load_after(1, b)]]), [2 * one]);
    // In order they never overlap.
    assert_eq!(run(&config(&[]), &[&[load(a), load(b)]]), [2 * one]);
}

#[test]
fn a_load_that_waits_for_nothing_passes_one_that_does() {
    let machine = out_of_order(&[]);
    let (a, b, c) = (at(1, 0, 0), at(2, 0, 0), at(3, 0, 0));
    let one = TRAVERSAL + PM;
    // c is known from the start, but follows b in the program, whose address is not: dispatch waits.
    assert_eq!(run(&machine, &[&[load(a), load(c), load_after(1, b)]]), [2 * one]);
    assert_eq!(run(&machine, &[&[load(a), load_after(1, b), load(c)]]), [2 * one + BURST]);
}

#[test]
fn misses_beyond_the_miss_registers_wait() {
    let one = TRAVERSAL + PM;
    let misses = [load(at(1, 0, 0)), load(at(2, 0, 0)), load(at(3, 0, 0))];
    let run_with = |mshrs| run(&out_of_order(&[("core.mshrs", mshrs)]), &[&misses]);
    assert_eq!(run_with("3"), [one + 2 * BURST]);
    assert_eq!(run_with("2"), [2 * one]);
    assert_eq!(run_with("1"), [3 * one]);
}

#[test]
fn two_loads_of_a_line_need_one_register_and_one_read() {
    let machine = out_of_order(&[("core.mshrs", "1")]);
    let a = at(1, 0, 0);
    let mut simulation = script(&machine, &[&[load(a), load(a + 8)]]);
    simulation.run().expect("nothing can go wrong");
    assert_eq!(simulation.stats().core_cycles[0], TRAVERSAL + PM);
    assert_eq!(simulation.stats().counters.controller_read_requests, 1);
}

#[test]
fn a_full_reorder_buffer_waits_for_its_oldest_load() {
    let machine = out_of_order(&[("core.rob_entries", "8"), ("core.issue_width", "1")]);
    let ready = TRAVERSAL + PM;
    // The load is instruction 1; seven more fit beside it, the eighth issues when it has retired.
    assert_eq!(run(&machine, &[&[load(at(1, 0, 0)), compute(7)]]), [ready]);
    assert_eq!(run(&machine, &[&[load(at(1, 0, 0)), compute(8)]]), [ready + 1]);
    assert_eq!(run(&machine, &[&[load(at(1, 0, 0)), compute(8), compute(9)]]), [ready + 1 + 9]);
}

/// Bug class: what is issued in a core's last cycle takes none.
#[test]
fn a_core_has_finished_at_the_end_of_its_last_cycle() {
    for model in ["in-order", "out-of-order"] {
        let machine = out_of_order(&[("core.model", model)]);
        for (instructions, cycles) in [(1, 1), (3, 1), (4, 1), (5, 2), (7, 2), (8, 2)] {
            let found = run(&machine, &[&[compute(instructions)]]);
            assert_eq!(found, [cycles], "{instructions} instructions, {model}");
        }
    }
    // Two threads of a core have a slot of three each in turn, and the last thread's last cycle counts.
    let shared =
        config(&[("core.count", "1"), ("core.threads_per_core", "2"), ("core.issue_width", "3")]);
    let threads: [&[Op]; 2] = [&[compute(1)], &[compute(2)]];
    assert_eq!(cycles_of(script(&shared, &threads), 1), [2]);
}

// ---- between cores ----------------------------------------------------------------------------

#[test]
fn a_line_that_another_core_has_changed_costs_a_probe() {
    let a = at(1, 0, 0);
    let snoop = L1 + L2;
    let writer = [store(a, 5)];
    let mut reader = vec![compute(1000), load(a)];
    let mut expected = 1000 + TRAVERSAL + snoop;
    assert_eq!(run(&config(&[]), &[&writer, &reader])[1], expected);
    // Shared now: reading it again is an L1 hit.
    reader.push(load(a));
    expected += L1;
    assert_eq!(run(&config(&[]), &[&writer, &reader])[1], expected);
    // Writing it takes it away from the other: an upgrade, which the end waits for.
    reader.push(store(a, 6));
    let mut simulation = script(&config(&[]), &[&writer, &reader]);
    simulation.run().expect("nothing can go wrong");
    let stats = simulation.stats();
    assert_eq!(stats.core_cycles[1], expected + TRAVERSAL + snoop);
    assert_eq!((stats.counters.upgrades, stats.counters.snoops), (1, 2));
    assert_eq!(simulation.machine().load(Addr(a)), 6);
}

#[test]
fn a_line_that_another_core_only_has_costs_the_probe_too() {
    let a = at(1, 0, 0);
    // Clean but exclusive: the directory does not know that it is clean.
    let threads: [&[Op]; 2] = [&[load(a)], &[compute(1000), load(a)]];
    assert_eq!(run(&config(&[]), &threads)[1], 1000 + TRAVERSAL + L1 + L2);
}

#[test]
fn locks_go_to_whoever_came_first() {
    let shared = at(1, 0, 0);
    let section = |arrival: u32, value: u64| {
        let lock = Op::Lock { lock: 0 };
        [compute(arrival), lock, store(shared, value), compute(1000), Op::Unlock { lock: 0 }]
    };
    let last = |arrivals: [u32; 3]| {
        let threads: Vec<_> =
            arrivals.iter().zip(1..).map(|(&arrival, value)| section(arrival, value)).collect();
        let threads: Vec<&[Op]> = threads.iter().map(|ops| ops.as_slice()).collect();
        let mut simulation = script(&config(&[]), &threads);
        simulation.run().expect("nothing can go wrong");
        simulation.machine().load(Addr(shared))
    };
    assert_eq!(last([1, 300, 200]), 2);
    assert_eq!(last([1, 200, 300]), 3);
    assert_eq!(last([300, 1, 200]), 1);
}

#[test]
fn a_lock_is_handed_over_with_its_line() {
    let lock = Op::Lock { lock: 0 };
    let unlock = Op::Unlock { lock: 0 };
    let dram = TRAVERSAL + DRAM;
    // Alone: the lock's line comes from DRAM once, and is in the L1 for the unlock.
    let alone: [&[Op]; 1] = [&[lock, compute(500), unlock]];
    let released = dram + L1 + 500 + L1;
    assert_eq!(run(&config(&[]), &alone), [released]);
    // The other one waits until the unlock is done and then takes the line from the first core.
    let both: [&[Op]; 2] = [&[lock, compute(500), unlock], &[compute(200), lock]];
    let cycles = run(&config(&[]), &both);
    assert_eq!(cycles[0], released);
    assert_eq!(cycles[1], released + TRAVERSAL + L1 + L2);
}
