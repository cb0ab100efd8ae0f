//! Steps of recoveries on the machine: what they take, worked out by hand, to the cycle.
//!
//! Bug class: a recovery that is timed by something else than the machine's own rules, or whose threads do not wait where
//! they must. The machine's clock runs at 1 GHz, so that a nanosecond is a cycle.

use std::sync::Arc;

use crate::common::memory::ROUND;
use crate::common::{machine, registry};
use graven::config::Config;
use graven::memory::{Addr, Image};
use graven::recovery::{Executed, execute};
use graven::recovery_steps::{RecoverySteps, Work};

/// Latencies of L1, L2 and LLC together: what a miss takes before it reaches memory.
const PATH: u64 = 2 + 3 + 5;
/// Reading with the row closed, and the line on the bus.
const READ: u64 = 50 + 4;
/// Reading from an open row.
const HIT: u64 = 10 + 4;

fn config(settings: &[(&str, &str)]) -> Config {
    let own = [
        ("core.count", "8"),
        ("core.issue_width", "1"),
        ("l1.latency_cycles", "2"),
        ("l2.latency_cycles", "3"),
        ("llc.latency_cycles", "5"),
        ("controller.bypass_cycles", "7"),
        ("recovery.record_instructions", "8"),
    ];
    machine("silo", &[&ROUND[..], &own, settings].concat())
}

const OUT_OF_ORDER: [(&str, &str); 1] = [("core.model", "out-of-order")];

/// Executes steps from an empty PM on; what they store is what recovery is said to have left.
fn run(settings: &[(&str, &str)], steps: RecoverySteps, left: &[(u64, u64)]) -> Executed {
    let registry = registry();
    let spec =
        registry.spec(config(settings), "base", "array", Some(1), Some(1), 1).expect("it fits");
    let mut recovered = Image::new();
    for &(addr, value) in left {
        recovered.store(Addr(addr), value);
    }
    let survived = Image::new();
    execute(&spec, survived, steps.into_threads(), &recovered, &Arc::default())
        .unwrap_or_else(|e| panic!("{e}"))
}

/// An address in a bank and a row of it; pages of 4 KB go round the 8 banks, and a row has 2 KB.
fn place(bank: u64, page: u64, line: u64) -> Addr {
    Addr((page * 8 + bank) * 4096 + line * 64)
}

/// Loads of the first words of lines; `chained`: each address is in the line before.
fn reads(lines: impl IntoIterator<Item = Addr>, chained: bool) -> RecoverySteps {
    let mut steps = RecoverySteps::default();
    for line in lines {
        steps.main().load(line);
        if chained {
            steps.main().follow();
        }
    }
    steps
}

#[test]
fn nothing_takes_no_time() {
    let nothing = Executed { threads: 1, ..Executed::default() };
    assert_eq!(run(&[], RecoverySteps::default(), &[]), nothing);
}

#[test]
fn a_chain_of_lines_takes_so_many_reads_on_either_core() {
    // Each in a row of its own, so that all but the first find another one open or their bank closed.
    let chain = || reads((0..16).map(|n| place(n % 8, n / 8, 0)), true);
    let cycles = 8 * (PATH + READ) + 8 * (PATH + READ + 20);
    for settings in [&[][..], &OUT_OF_ORDER] {
        let executed = run(settings, chain(), &[]);
        assert_eq!(executed.cycles, cycles, "{settings:?}");
        assert_eq!((executed.bytes_read, executed.instructions), (16 * 64, 16));
    }
}

#[test]
fn reads_whose_addresses_are_known_overlap_out_of_order_only() {
    let scan = || reads((0..8).map(|bank| place(bank, 0, 0)), false);
    let in_order = run(&[], scan(), &[]);
    assert_eq!(in_order.cycles, 8 * (PATH + READ));
    let overlapping = run(&OUT_OF_ORDER, scan(), &[]);
    // The bus takes one line every 4 ns: the last of eight begins 7 bursts after the first.
    assert_eq!(overlapping.cycles, PATH + READ + 7 * 4);
    let one_register = [OUT_OF_ORDER[0], ("core.mshrs", "1")];
    assert!(run(&one_register, scan(), &[]).cycles >= 8 * READ, "one miss at a time");
}

#[test]
fn words_of_a_line_that_is_there_take_an_access_of_the_l1() {
    let words = (0..8).map(|word| place(0, 0, 0).plus(word * 8));
    let executed = run(&[], reads(words, false), &[]);
    assert_eq!(executed.cycles, PATH + READ + 7 * 2);
    assert_eq!(executed.bytes_read, 64);
}

#[test]
fn computation_takes_its_instructions() {
    let mut steps = RecoverySteps::default();
    steps.main().work(Work::Record, 5);
    steps.main().work(Work::Table, 2);
    steps.main().work(Work::Comparison, 3);
    assert_eq!(run(&[], steps, &[]).cycles, 5 * 8 + 2 * 10 + 3 * 4);
}

#[test]
fn threads_fill_the_bus_and_no_more_threads_help() {
    // 64 lines for each thread, all row hits but the first of each row: the bus alone limits many threads.
    let of = |threads: u64| {
        let mut steps = RecoverySteps::default();
        for line in 0..256 {
            let thread = steps.thread((line % threads) as usize);
            thread.load(place(line / 32, 0, line % 32));
            thread.follow();
        }
        run(&OUT_OF_ORDER, steps, &[]).cycles
    };
    let times = [1, 2, 4, 8].map(of);
    assert!(times.is_sorted_by(|a, b| a > b), "{times:?}");
    let chain = 256 * (PATH + HIT) + 8 * (READ - HIT);
    assert_eq!(times[0], chain, "one thread waits for each line");
    assert!(times[0] < 2 * times[1] + 200, "two threads take half: {times:?}");
    assert!(times[3] >= 256 * 4, "a line has its time on the bus: {times:?}");
}

#[test]
fn threads_without_cores_of_their_own_take_turns() {
    let of = |threads: usize, cores: &str| {
        let mut steps = RecoverySteps::default();
        (0..threads).for_each(|thread| steps.thread(thread).work(Work::Record, 100));
        run(&[("core.count", cores)], steps, &[])
    };
    assert_eq!(of(8, "8").cycles, 800);
    assert_eq!(of(8, "2").cycles, 4 * 800);
    assert_eq!((of(8, "2").threads, of(8, "2").instructions), (8, 6400));
}

#[test]
fn nobody_passes_a_barrier_before_the_last_has_come() {
    let steps = |late: u64| {
        let mut steps = RecoverySteps::default();
        steps.thread(1).work(Work::Record, late);
        steps.barrier();
        steps.main().work(Work::Record, 10);
        steps
    };
    let (early, late) = (run(&[], steps(100), &[]).cycles, run(&[], steps(1100), &[]).cycles);
    assert_eq!(late - early, 8 * 1000, "the first thread waits for the second");
    assert!(early > 100 * 8 + 10 * 8, "a barrier takes its time: {early}");
}

#[test]
fn a_store_reads_its_line_and_ends_when_it_is_durable() {
    let mut steps = RecoverySteps::default();
    steps.main().store(place(0, 0, 0), 5, false);
    let left = [(place(0, 0, 0).0, 5)];
    let adr = run(&[], steps.clone(), &left);
    assert_eq!((adr.bytes_read, adr.bytes_written), (64, 64));
    // Without ADR it is durable when the cells are programmed.
    let cells = run(&[("controller.adr", "false")], steps.clone(), &left);
    assert!(cells.cycles >= adr.cycles + 200, "{adr:?} {cells:?}");
    // Past the caches nothing is read, and only the word is written.
    let mut past = RecoverySteps::default();
    past.main().store(place(0, 0, 0), 5, true);
    let past = run(&[], past, &left);
    assert_eq!((past.bytes_read, past.bytes_written), (0, 8));
    assert!(past.cycles < adr.cycles);
}

#[test]
fn a_fence_keeps_what_comes_later_from_being_written_earlier() {
    let two = |fence: bool| {
        let mut steps = RecoverySteps::default();
        steps.main().store(place(0, 0, 0), 1, true);
        if fence {
            steps.main().fence();
        }
        steps.main().store(place(1, 0, 0), 2, true);
        let left = [(place(0, 0, 0).0, 1), (place(1, 0, 0).0, 2)];
        run(&[("controller.adr", "false")], steps, &left).cycles
    };
    assert!(two(true) >= two(false) + 190, "{} {}", two(true), two(false));
}

#[test]
fn what_the_machine_leaves_is_compared() {
    let mut steps = RecoverySteps::default();
    steps.main().store(Addr(8192), 5, false);
    let registry = registry();
    let spec = registry.spec(config(&[]), "base", "array", Some(1), Some(1), 1).expect("it fits");
    let threads = steps.into_threads();
    let error = execute(&spec, Image::new(), threads, &Image::new(), &Arc::default()).unwrap_err();
    assert!(error.to_string().contains("leaves 0x5 in word 0x2000"), "{error}");
}
