//! Each mechanism, with its parameter and its statistic, in runs that arithmetic can follow.

mod script;

use graven::memory::Addr;
use graven::program::{Op, Persist};
use graven::sim::Simulation;
use graven::stats::Counts;
use script::{evict, load, registry, script, settle, silo, transaction};

const LINE: u64 = 64;

/// First words of some lines.
fn lines(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|line| line * LINE)
}

/// A run of one thread whose first 32 lines are in its L1 when the operations begin.
fn warm(settings: &[(&str, &str)], operations: Vec<Op>) -> Simulation {
    let before = lines(32).map(load).chain([settle()]);
    finished(settings, before.chain(operations).collect())
}

fn finished(settings: &[(&str, &str)], operations: Vec<Op>) -> Simulation {
    let mut simulation = script(&silo(settings), "atom", &[operations]);
    simulation.run().unwrap_or_else(|e| panic!("{e}"));
    simulation
}

fn counts(settings: &[(&str, &str)], operations: Vec<Op>) -> Counts {
    warm(settings, operations).counts()
}

fn cycles(settings: &[(&str, &str)], operations: Vec<Op>) -> u64 {
    warm(settings, operations).stats().core_cycles[0]
}

/// A posted store waits for nothing; one that awaits its entry waits for a message, a line, its header, and a message.
#[test]
fn only_awaited_log_writes_delay_a_store() {
    let with = |writes, stores| {
        let settings = [("atom.log_writes", writes), ("controller.bypass_cycles", "100")];
        let more = cycles(&settings, transaction(lines(stores)));
        (more, counts(&settings, transaction(lines(stores)))["log_store_waits"])
    };
    let ((posted_1, none), (posted_4, _)) = (with("posted", 1), with("posted", 4));
    let ((awaited_1, one), (awaited_4, four)) = (with("awaited", 1), with("awaited", 4));
    assert_eq!((none, one, four), (0, 1, 4));
    assert!(posted_4 - posted_1 < 100, "{posted_1}, {posted_4}");
    assert!(awaited_4 - awaited_1 >= 3 * 200, "{awaited_1}, {awaited_4}");
}

/// The first store to a line logs it, and later ones join its entry; the next transaction logs it anew.
#[test]
fn a_line_is_logged_once_in_a_transaction() {
    let twice = || [transaction([0, 8, 0, LINE, 8]), transaction([0])].concat();
    let counts = counts(&[], twice());
    assert_eq!((counts["log_entries"], counts["log_entries_merged"]), (3, 1));
}

/// Seven entries share a header. Truncation writes nothing.
#[test]
fn entries_share_a_header() {
    let written = |entries: &str, stores| {
        let settings = [("atom.entries_per_record", entries)];
        counts(&settings, transaction(lines(stores)))["log_bytes_written"] / LINE
    };
    assert_eq!([written("7", 7), written("7", 8), written("1", 7)], [7 + 1, 8 + 2, 7 + 7]);
}

/// Lines that a store misses are logged where they are read; those that the caches have come from the L1.
#[test]
fn misses_are_logged_at_their_source() {
    let of = |counts: Counts| {
        ["log_entries", "log_entries_at_source", "log_entries_unused", "fill_reads"]
            .map(|name| counts[name])
    };
    let cold = |settings: &[(&str, &str)]| finished(settings, transaction(lines(5))).counts();
    assert_eq!(of(cold(&[])), [5, 5, 0, 5]);
    assert_eq!(of(cold(&[("atom.source", "not-logged")])), [5, 0, 0, 5]);
    assert_eq!(of(counts(&[], transaction(lines(5))))[..3], [5, 0, 0]);
}

/// A line that is logged and read by the controller arrives as soon as one that is only read.
#[test]
fn source_logging_does_not_delay_a_miss() {
    let with = |source| {
        let settings = [("atom.source", source)];
        finished(&settings, transaction([0])).stats().core_cycles[0]
    };
    assert_eq!(with("logged"), with("not-logged"));
}

/// The controller holds back the line whose entry is on its way, and no other.
#[test]
fn only_a_locked_line_is_held_back() {
    let evicted = |addr: u64| {
        let stores = [script::store(0, 1), evict(addr)];
        let before = [script::store(LINE, 1), Op::TxBegin];
        let operations = before.into_iter().chain(stores).chain([settle(), Op::TxEnd]);
        let counts = counts(&[], operations.collect());
        (counts["lines_held_back"], counts["log_headers_hurried"])
    };
    // The other way, the line is held back when the transaction has ended.
    assert_eq!((evicted(0), evicted(LINE)), ((1, 1), (1, 0)));
}

/// At the end of a transaction its header is not written yet, so its lines wait for it, as long as there is one.
#[test]
fn lines_of_a_commit_wait_for_their_header() {
    assert_eq!(counts(&[], transaction(lines(3)))["lines_held_back"], 3);
    let awaited = [("atom.log_writes", "awaited")];
    assert_eq!(counts(&awaited, transaction(lines(3)))["lines_held_back"], 0);
}

/// A `clwb` in the transaction sends its line behind the lock, where the fence finds it.
#[test]
fn a_fence_waits_for_the_lock() {
    let held = |addr: u64| {
        let write_back = Op::Persist(Persist::WriteBack(Addr(addr).line()));
        let fence = Op::Persist(Persist::Fence);
        let settings = [("controller.bypass_cycles", "100")];
        let stores = [script::store(0, 1), script::store(LINE, 1)];
        let operations = [Op::TxBegin].into_iter().chain(stores).chain([write_back, fence]);
        let more = operations.chain([Op::TxEnd]).collect();
        counts(&settings, more)["lines_held_back"]
    };
    // At the end of the transaction the header has been written for the one line, so that it counts for the other one, too.
    assert_eq!((held(0), held(LINE)), (1, 1));
}

/// With one context, transactions of two threads come one after the other.
#[test]
fn a_transaction_waits_for_a_context() {
    let waits = |contexts| {
        let settings = [("atom.contexts", contexts)];
        let one = |thread: u64| transaction(lines(20).map(|addr| addr + (thread << 16)));
        let mut simulation = script(&silo(&settings), "atom", &[one(0), one(1)]);
        simulation.run().unwrap_or_else(|e| panic!("{e}"));
        simulation.counts()["context_waits"]
    };
    assert_eq!((waits("1"), waits("2")), (1, 0));
}

/// Two buckets of a record each have room for fourteen lines, for whichever transactions run.
#[test]
fn a_transaction_that_finds_no_bucket_is_refused() {
    let settings = [("atom.buckets", "2"), ("atom.bucket_bytes", "512")];
    let run = |count| script(&silo(&settings), "atom", &[transaction(lines(count))]).run();
    assert!(run(14).is_ok());
    let refusal = run(15).expect_err("it does not fit").to_string();
    assert!(refusal.contains("atom.buckets"), "{refusal}");
}

#[test]
fn buckets_that_the_log_region_does_not_hold_are_refused() {
    let config = silo(&[("atom.bucket_bytes", "8 MB")]);
    let design = registry().find_design("atom").expect("it is registered");
    let refusal = graven::script::simulation(&config, design, &[&transaction([0])]).err();
    let refusal = refusal.expect("64 of them are too many").to_string();
    assert!(refusal.contains("atom.bucket_bytes"), "{refusal}");
}

#[test]
fn the_cost_sheet_counts_what_the_parameters_say() {
    let mut config = registry().machine("silo").expect("it ships");
    config.set("atom.contexts", "5").expect("a valid number");
    let items = (graven_atom::INFO.cost.items)(&config);
    let of =
        |name: &str| items.iter().find(|item| item.name == name).expect("an item of the sheet");
    assert_eq!(of("headers").value(), 5.0 * 64.0);
    assert_eq!(of("locked-addresses").value(), 5.0 * 2.0 * 7.0 * 42.0);
    assert_eq!(of("bucket-bits").value(), 5.0 * 64.0);
    assert_eq!(of("log-ends").value(), 5.0 * 26.0);
    assert_eq!(of("log-region").value(), 256.0);
}
