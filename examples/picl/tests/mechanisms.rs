//! Each mechanism, with its parameter and its statistic, in runs that arithmetic can follow.

use graven::program::Op;
use graven::script::{compute, evict, load, settle, simulation, store};
use graven::sim::Simulation;
use graven::stats::Counts;

const LINE: u64 = 64;

/// A run of one thread, on Silo's machine, whose first 64 lines are in its L1 when the operations begin.
fn finished(settings: &[(&str, &str)], operations: impl IntoIterator<Item = Op>) -> Simulation {
    let mut registry = graven::standard();
    graven_picl::register(&mut registry);
    let mut config = registry.machine("silo").expect("it is there");
    for (key, value) in settings {
        config.set(key, value).unwrap_or_else(|e| panic!("{e}"));
    }
    let before = (0..64).map(|line| load(line * LINE)).chain([settle()]);
    let operations: Vec<Op> = before.chain(operations).collect();
    let simulation = simulation(&config, &graven_picl::INFO, &[&operations]);
    let mut simulation = simulation.unwrap_or_else(|e| panic!("{e}"));
    simulation.run().unwrap_or_else(|e| panic!("{e}"));
    simulation
}

fn counts(settings: &[(&str, &str)], operations: impl IntoIterator<Item = Op>) -> Counts {
    finished(settings, operations).counts()
}

fn of(counts: &Counts, names: &[&str]) -> Vec<u64> {
    names.iter().map(|&name| counts[name]).collect()
}

/// Stores to the first words of lines.
fn stores(lines: impl IntoIterator<Item = u64>) -> Vec<Op> {
    lines.into_iter().map(|line| store(line * LINE, line + 1)).collect()
}

/// The first store of an epoch to a line makes an entry, of the line's content since the epoch that stored to it last.
#[test]
fn the_first_store_of_an_epoch_to_a_line_makes_an_undo_entry() {
    let three_epochs = stores([0, 0, 1, 1, 0, 1, 2, 2, 2, 2, 2, 2]);
    let counts = counts(&[("picl.epoch_stores", "4")], three_epochs);
    let found = of(&counts, &["snapshots", "undo_entries", "undo_entries_across"]);
    assert_eq!(
        found,
        [2, 2 + 3 + 1, 2 + 1],
        "lines 0 and 1 in the second epoch, line 2 in the third"
    );
}

/// Old lines are read from the caches: logging adds no read of PM.
#[test]
fn undo_entries_come_from_the_caches() {
    let reads = |lines: u64| counts(&[], stores(0..lines))["controller_read_requests"];
    assert_eq!(reads(0), reads(64));
}

/// Entries go to the log when the buffer is full: six share a header.
#[test]
fn a_full_undo_buffer_goes_to_the_log_in_a_burst() {
    let written = |entries: &str, lines| {
        let settings = [("picl.buffer_entries", entries)];
        let counts = counts(&settings, stores(0..lines).into_iter().chain([settle()]));
        of(&counts, &["undo_bursts", "log_records", "controller_write_requests_log"])
    };
    assert_eq!(written("32", 32), [0, 0, 0], "the next entry finds the buffer full");
    assert_eq!(written("32", 33), [1, 6, 32 + 6]);
    assert_eq!(written("6", 13), [2, 2, 2 * 7]);
    assert_eq!(written("1", 4), [3, 3, 3 * 2]);
}

/// A line that leaves the caches takes the buffer to the log if the filter has it; with one bit the filter has every line.
#[test]
fn a_line_that_leaves_takes_its_entry_ahead() {
    let leaves = |bits: &str, line: u64| {
        // Line 9 is dirty since an epoch whose entries are in the log.
        let before = stores([9]).into_iter().chain([evict(9 * LINE), load(9 * LINE), settle()]);
        let then = stores([0, 1, 2]).into_iter().chain([evict(line * LINE), settle()]);
        let counts = counts(&[("picl.filter_bits", bits)], before.chain(then));
        of(&counts, &["undo_bursts_for_line", "undo_filter_false_hits", "log_records"])
    };
    assert_eq!(leaves("4096", 1), [2, 0, 2]);
    assert_eq!(leaves("4096", 9), [1, 0, 1], "line 9 is clean: nothing goes home");
    assert_eq!(leaves("1", 1), [2, 0, 2]);
}

#[test]
fn a_small_filter_hits_falsely() {
    let with = |bits: &str| {
        // Line 0 is dirty, and its entry is in the log when lines 1 to 4 have theirs in the buffer.
        let settings = [("picl.filter_bits", bits), ("picl.buffer_entries", "4")];
        let operations = stores([0, 1, 2, 3, 4, 5]).into_iter().chain([evict(0), settle()]);
        let counts = counts(&settings, operations);
        of(&counts, &["undo_bursts", "undo_bursts_for_line", "undo_filter_false_hits"])
    };
    assert_eq!(with("4096"), [1, 0, 0]);
    assert_eq!(with("1"), [2, 1, 1]);
}

/// An epoch is scanned when `gap` more have ended, and a scan writes the lines home that no later epoch has stored to.
#[test]
fn a_scan_takes_the_lines_of_an_old_epoch_home() {
    let after = |gap: &str| {
        // Epochs of four stores; line 0 is stored to in each of them, so that the executing epoch has it.
        let epochs = (0..6).flat_map(|e| {
            stores([0, 3 * e + 1, 3 * e + 2, 3 * e + 3]).into_iter().chain([settle()])
        });
        let settings = [("picl.epoch_stores", "4"), ("picl.gap", gap)];
        let counts = counts(&settings, epochs);
        of(&counts, &["snapshots", "scans", "snapshots_persisted", "scan_lines"])
    };
    assert_eq!(after("3"), [5, 2, 2, 2 * 3]);
    assert_eq!(after("0"), [5, 5, 5, 5 * 3]);
    assert_eq!(after("12"), [5, 0, 0, 0]);
}

/// A scan visits a set of a cache per cycle.
#[test]
fn a_scan_takes_as_long_as_all_sets() {
    let duration = |llc: &str| {
        let settings = [("picl.epoch_stores", "1"), ("picl.gap", "0"), ("llc.bytes", llc)];
        let scanned = finished(&settings, stores([0, 1]).into_iter().chain([settle()]));
        scanned.stats().core_cycles[0]
    };
    // 8 MB more in sets of 16 lines.
    let (small, large) = (duration("8 MB"), duration("16 MB"));
    assert_eq!(large - small, (8 << 20) / LINE / 16, "{small}, {large}");
}

/// No store waits for the end of an epoch, nor for its scan, as long as scans keep up.
#[test]
fn snapshots_stall_nobody() {
    let run = |epoch_stores: &str| {
        let settings = [("picl.epoch_stores", epoch_stores), ("picl.buffer_entries", "4096")];
        let operations = (0..4)
            .flat_map(|_| stores((0..64).map(|n| n % 64)).into_iter().chain([compute(200_000)]));
        let finished = finished(&settings, operations);
        let counts = finished.counts();
        (finished.stats().core_cycles[0], counts["snapshots"], counts["snapshot_waits"])
    };
    let (long, none, _) = run("1000000");
    let (short, some, waits) = run("64");
    assert_eq!((none, some, waits), (0, 3, 0));
    assert_eq!(long, short);
}

/// More epochs than the gap and one more are never under way: then a store waits for a scan.
#[test]
fn a_store_waits_for_the_scan_of_the_oldest_epoch() {
    let waits = |gap: &str| {
        let settings = [("picl.epoch_stores", "1"), ("picl.gap", gap)];
        counts(&settings, stores([0, 1, 2, 3, 4, 5]))["snapshot_waits"]
    };
    assert_eq!((waits("5"), waits("4"), waits("3"), waits("0")), (0, 0, 1, 4));
}

/// A store that finds the log full ends the epoch; a scan takes all lines home, and superblocks are free.
#[test]
fn a_full_log_is_freed_by_a_scan_of_all_epochs() {
    let settings =
        [("picl.buffer_entries", "6"), ("picl.superblock_records", "2"), ("picl.superblocks", "3")];
    let of_lines = |lines| {
        let counts = counts(&settings, stores(0..lines).into_iter().chain([settle()]));
        of(&counts, &["log_full", "log_superblocks_freed", "snapshots", "scan_lines"])
    };
    assert_eq!(of_lines(36), [0, 0, 0, 0], "six records of six entries");
    // A line becomes dirty when its store comes to the L1, so that of the store that waits goes home, too.
    assert_eq!(of_lines(37), [1, 3, 1, 37]);
}
