//! FWB under conditions that the default log is too large to meet: a log that wraps, fills and is
//! truncated all the time, without ADR, without a buffer, with a record per line, with packed records.

use crate::common::campaign;
use crate::common::find;
use crate::common::registry;
use std::collections::BTreeSet;

use crate::common::churn::{CHURN, WIDE_CHURN};
use crate::common::{
    CELLS, finished, machine, programs, refusal, spec_of, test_workload, tiny_config,
};
use graven::config::Config;
use graven::design::{Guarantee, MutantSet, RecoveryReport};

use graven::lab::case::Case;
use graven::lab::explorer::{CrashRun, Outcome, Thoroughness};
use graven::lab::litmus::parse;
use graven::memory::Addr;
use graven::program::{Load, Memory, Ptr, spawn};
use graven::sim::{CrashOptions, SimError, Simulation, Spec};
use graven::stats::Counts;
use graven::workload::WorkloadInfo;

/// A log of 511 records and a scan every 2,000 cycles.
const SMALL_LOG: [(&str, &str); 2] =
    [("fwb.log_bytes", "16 KB"), ("fwb.scan_interval_cycles", "2000")];

fn small(settings: &[(&str, &str)]) -> Config {
    tiny_config(&[&SMALL_LOG, settings].concat())
}

fn simulation(
    config: &Config,
    workload: &'static WorkloadInfo,
    transactions: u64,
    seed: u64,
) -> Simulation {
    simulation_of("fwb", config, workload, transactions, seed)
}

fn simulation_of(
    design: &str,
    config: &Config,
    workload: &'static WorkloadInfo,
    transactions: u64,
    seed: u64,
) -> Simulation {
    let threads = if workload.name == CELLS.name { 4 } else { 1 };
    crate::common::simulation(config, design, workload, threads, transactions, seed)
}

/// Crashes at random cycles all the way and returns how often, what was broken, and the counters.
fn crash_often(
    config: &Config,
    transactions: u64,
    seed: u64,
    step_max: u64,
) -> (u32, Vec<String>, Counts) {
    let mut simulation = simulation(config, &CELLS, transactions, seed);
    let crashes = crate::common::crash_often(&mut simulation, seed, step_max);
    assert_eq!(crashes.recovered_again, 0, "the log is empty after recovery");
    (crashes.number, crashes.broken, simulation.counts())
}

fn must_survive(name: &str, config: &Config) -> Counts {
    let mut sum = Counts::default();
    for seed in 0..2 {
        let (crashes, broken, counters) = crash_often(config, 200, seed, 1500);
        assert!(crashes > 50, "{name}: only {crashes} crashes");
        assert!(broken.is_empty(), "{name}, seed {seed}: {:#?}", &broken[..broken.len().min(3)]);
        sum = counters;
    }
    sum
}

/// Machines on which a log has a hard time.
const HOSTILE: [(&str, &[(&str, &str)]); 8] = [
    ("tiny caches", &[]),
    ("roomy caches", &[("l1.bytes", "32 KB"), ("l2.bytes", "64 KB"), ("llc.bytes", "1 MB")]),
    ("no ADR", &[("controller.adr", "false"), ("pm.buffer_lines", "0")]),
    (
        "no ADR, four channels, short queues",
        &[
            ("controller.adr", "false"),
            ("pm.buffer_lines", "0"),
            ("controller.channels", "4"),
            ("controller.interleave", "line"),
            ("controller.write_queue_entries", "2"),
            ("controller.drain_low_percent", "0"),
        ],
    ),
    (
        "no buffer, two writes queued",
        &[
            ("controller.write_queue_entries", "2"),
            ("controller.drain_low_percent", "0"),
            ("pm.buffer_lines", "0"),
        ],
    ),
    ("no log buffer", &[("fwb.log_buffer_entries", "0")]),
    ("largest log buffer", &[("fwb.log_buffer_entries", "44")]),
    ("a long way to the controller", &[("controller.bypass_cycles", "500")]),
];

#[test]
fn a_small_log_wraps_and_is_truncated_without_losing_anything() {
    const LAPS: u64 = 511 * 2;
    let a_record_per_line: &[(&str, &str)] =
        &[("fwb.slot_bytes", "64"), ("fwb.log_bytes", "32 KB")];
    for (name, settings) in HOSTILE.into_iter().chain([("a record per line", a_record_per_line)]) {
        let c = must_survive(name, &small(settings));
        assert!(c["log_entries"] > LAPS, "{name}: the log did not wrap twice");
        assert!(c["log_records_truncated"] > LAPS, "{name}: {}", c["log_records_truncated"]);
        assert!(c["scans"] > 10 && c["scan_dirty_lines"] > 100, "{name}");
    }
}

/// A packed log, a packed log with flags, and one whose words are coded by them.
const PACKED: [&[(&str, &str)]; 3] = [
    &[("pm.log_packing", "always")],
    &[("pm.log_packing", "always"), ("fwb.dirty_flags", "true")],
    &[("pm.log_packing", "always"), ("fwb.dirty_flags", "true"), ("pm.codec", "slde")],
];

#[test]
fn a_small_packed_log_wraps_and_is_truncated_without_losing_anything() {
    // 383 groups.
    let log = [("fwb.log_bytes", "48 KB")];
    for packed in PACKED {
        for (name, settings) in HOSTILE {
            let config = small(&[&log, packed, settings].concat());
            let c = must_survive(name, &config);
            // Hence some 200 more were sent: the log wrapped around.
            assert!(c["log_groups_truncated"] > 300, "{name}: {}", c["log_groups_truncated"]);
            assert_eq!(c["log_records_truncated"], 0, "{name}");
            assert!(c["scans"] > 2 && c["scan_dirty_lines"] > 100, "{name}");
        }
    }
}

#[test]
fn ids_of_eight_bits_come_round() {
    let config = small(&[("fwb.transaction_id_bits", "8")]);
    let (crashes, broken, _) = crash_often(&config, 4 * 300, 1, 20_000);
    assert!(crashes > 50 && broken.is_empty(), "{crashes} crashes: {broken:#?}");
}

#[test]
fn a_full_log_makes_stores_wait_and_loses_nothing() {
    // 383 records: the large transactions of four threads fit, but hardly anything beside them.
    let full = [("fwb.log_bytes", "12 KB"), ("fwb.scan_interval_cycles", "1000000")];
    for (name, settings) in [
        ("ADR", [("controller.adr", "true"), ("pm.buffer_lines", "64")]),
        ("no ADR", [("controller.adr", "false"), ("pm.buffer_lines", "0")]),
    ] {
        let c = must_survive(name, &tiny_config(&[full.as_slice(), &settings].concat()));
        assert!(c["log_overflows"] > 3, "{name}: {}", c["log_overflows"]);
        assert!(c["stall_log_cycles"] > 0 && c["scans"] >= c["log_overflows"], "{name}");
        // 319 groups: some of it is only kept for records that then share a group.
        let packed = [("fwb.log_bytes", "40 KB"), ("pm.log_packing", "always")];
        let settings = [full.as_slice(), &settings, &packed].concat();
        let c = must_survive(name, &tiny_config(&settings));
        assert!(
            c["log_overflows"] > 3 && c["stall_log_cycles"] > 0,
            "{name}, packed: {}",
            c["log_overflows"]
        );
    }
}

#[test]
fn a_transaction_that_the_log_cannot_hold_ends_the_run() {
    // 31 records: a transaction of 70 stores does not fit.
    for (format, capacity) in [("word", "30 records"), ("line", "30 slots")] {
        let config = tiny_config(&[("fwb.log_bytes", "1 KB"), ("fwb.record_format", format)]);
        let error = simulation(&config, &CELLS, 400, 1).run().expect_err("it cannot fit");
        let SimError::Design { design: "fwb", why } = &error else { panic!("{error}") };
        assert!(why.contains(capacity) && why.contains("fwb.log_bytes"), "{why}");
    }
    // 18 groups: 72 records at most.
    let config = tiny_config(&[("fwb.log_bytes", "2400"), ("pm.log_packing", "always")]);
    let error = simulation(&config, &CELLS, 400, 1).run().expect_err("it cannot fit");
    let SimError::Design { design: "fwb", why } = &error else { panic!("{error}") };
    assert!(why.contains("18 groups") && why.contains("fwb.log_bytes"), "{why}");
}

#[test]
fn an_instant_commit_keeps_commit_order_and_promises_no_more() {
    let config = small(&[("fwb.instant_commit", "true"), ("controller.adr", "false")]);
    let guarantee = find("fwb").expect("registered").guarantee;
    // A transaction has two records at least, of 16 B: a log that is truncated bounds how many are lost.
    assert_eq!(guarantee(&config), Guarantee::Prefix { lost_max: (16 << 10) / 32 });
    for seed in 0..3 {
        assert_eq!(crash_often(&config, 200, seed, 300).1, [""; 0]);
    }
}

#[test]
fn an_unsafe_buffer_is_refused_unless_asked_for_and_then_violated() {
    let unsafe_buffer = [("fwb.log_buffer_entries", "256")];
    let allowed = small(&[unsafe_buffer[0], ("fwb.allow_unsafe_buffer", "true")]);
    let broken: usize = (0..3).map(|seed| crash_often(&allowed, 200, seed, 300).1.len()).sum();
    assert!(broken > 0, "data never overtook its log entry");
    let why = refusal(&small(&unsafe_buffer), "fwb");
    assert!(why.contains("44 cycles") && why.contains("allow_unsafe_buffer"), "{why}");
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    for (settings, word) in [
        ([("fwb.log_bytes", "8 MB")], "pm.log_region_bytes = 4 MB"),
        ([("fwb.log_bytes", "512")], "at least 16"),
        ([("fwb.slot_bytes", "48")], "32 or 64"),
    ] {
        let why = refusal(&tiny_config(&settings), "fwb");
        assert!(why.contains(word), "{why}");
    }
    let why = refusal(&tiny_config(&[("fwb.dirty_flags", "true")]), "fwb");
    assert!(why.contains("fwb.dirty_flags") && why.contains("pm.log_packing"), "{why}");
    let why =
        refusal(&tiny_config(&[("fwb.log_bytes", "2 KB"), ("pm.log_packing", "always")]), "fwb");
    assert!(why.contains("15 groups"), "{why}");
}

/// `fwb-bound-15-entries` (§IV-C, §VI-A): 4 + 11 cycles on FWB's machine.
#[test]
fn the_bound_of_the_log_buffer_is_the_way_through_the_caches() {
    for (preset, bound) in [("fwb", 15), ("silo", 44), ("morlog", 44)] {
        let mut config = registry().machine(preset).expect("the preset loads");
        let mut entries = |n: u32| {
            config.set("fwb.log_buffer_entries", &n.to_string()).expect("in range");
            config.clone()
        };
        assert!(refusal(&entries(bound + 1), "fwb").contains(&format!("in {bound} cycles")));
        let simulation = simulation(&entries(bound), &CELLS, 1, 0);
        assert_eq!(simulation.machine().caches.miss_path_cycles(), u64::from(bound));
    }
}

/// Fig. 11(a): buffers of up to 256 entries can be asked for; larger ones than the bound are not safe, and said so.
#[test]
fn buffers_of_the_papers_study_can_be_asked_for() {
    let fwb = find("fwb").expect("registered");
    for entries in [0, 8, 15, 16, 32, 64, 128, 256u64] {
        let mut config = registry().machine("fwb").expect("the preset loads");
        config.set("fwb.log_buffer_entries", &entries.to_string()).expect("in range");
        let is_safe = entries <= 15;
        assert_eq!(fwb.is_safe(&config), is_safe, "{entries}");
        if !is_safe {
            config.set("fwb.allow_unsafe_buffer", "true").expect("a switch");
        }
        let mut simulation = simulation(&config, &CELLS, 400, 3);
        simulation.run().unwrap_or_else(|e| panic!("{entries}: {e}"));
        let c = &simulation.counts();
        assert!(c["log_buffer_max"] <= entries.max(1), "{entries}: {}", c["log_buffer_max"]);
        assert_eq!(c["log_entries_merged"] > 0, entries > 0, "{entries}");
    }
}

#[test]
fn it_runs_on_its_own_machine() {
    let settings = [
        ("fwb.slot_bytes", "64"),
        ("fwb.instant_commit", "true"),
        ("fwb.scan_interval_cycles", "0"),
    ];
    let config = machine("fwb", &settings);
    let simulation = finished(simulation(&config, &CELLS, 2000, 3));
    let c = &simulation.counts();
    assert_eq!(c["committed_transactions"], 2000);
    let entries = c["log_entries"] + c["log_words_joined"] + c["log_entries_merged"];
    assert_eq!(entries, c["transactional_stores"]);
    assert!(c["log_words_joined"] > 0 && c["log_buffer_max"] <= 15);
    assert_eq!(c["log_overflows"], 0);
}

// ---- crashes by hand --------------------------------------------------------------------------

/// One thread: a transaction stores 11, 12, 13 over 1, 2, 3 in three lines, reads many others between
/// its stores and its end, and then nothing happens for long.
static BY_HAND: WorkloadInfo = test_workload("by-hand", "one transaction", |request| {
    programs(
        request,
        |request, image| (0..3).for_each(|i| _ = image.store(word(request.start, i).addr, i + 1)),
        |request, _thread| {
            let start = request.start;
            spawn(move |memory| {
                memory.tx_begin();
                (0..3).for_each(|i| memory.store(word(start, i), 11 + i));
                // One after the other, each waits: 20,000 cycles and more.
                (0..300).for_each(|i| _ = memory.load(word(start, 100 + i)));
                memory.tx_end();
                memory.compute(100_000);
            })
        },
    )
});

fn word(start: Addr, line: u64) -> Ptr {
    Ptr::known(start.plus(line * 64))
}

const HOME: Addr = Addr(4096);

fn homes(read: impl Fn(Addr) -> u64) -> [u64; 3] {
    [0, 1, 2].map(|i| read(word(HOME, i).addr))
}

/// Runs to a condition and crashes there: the homes before and after recovery, and its report.
fn crash_when(
    settings: &[(&str, &str)],
    condition: impl Fn(&Simulation) -> bool,
) -> ([u64; 3], [u64; 3], RecoveryReport) {
    let mut simulation = simulation(&tiny_config(settings), &BY_HAND, 1, 0);
    graven::lab::checker::attach(&mut simulation);
    let mut cycle = 0;
    while !condition(&simulation) {
        cycle += 10;
        assert!(!simulation.advance(cycle).expect("it runs"), "the moment never came");
    }
    let mut crash = simulation.crash();
    let before = homes(|addr| crash.image.peek(addr));
    let report = crash.recover();
    graven::lab::checker::check(&crash).unwrap_or_else(|verdict| panic!("{verdict}"));
    (before, homes(|addr| crash.image.peek(addr)), report)
}

#[test]
fn a_stolen_line_of_an_unfinished_transaction_is_undone() {
    let (before, after, report) = crash_when(&[], |s| {
        s.counts()["llc_writebacks"] == 3 && s.machine().memory.writes_waiting() == 0
    });
    assert_eq!(before, [11, 12, 13], "the caches had no room for them");
    assert_eq!(after, [1, 2, 3]);
    let expected = RecoveryReport { records_scanned: 4, words_redone: 0, words_undone: 3 };
    assert_eq!(report, expected, "three records and the hole behind them");
}

#[test]
fn a_committed_transaction_in_the_caches_is_redone() {
    let roomy = [("l1.bytes", "32 KB"), ("l2.bytes", "64 KB"), ("llc.bytes", "1 MB")];
    let (before, after, report) = crash_when(&roomy, |s| s.counts()["committed_transactions"] == 1);
    assert_eq!(before, [1, 2, 3], "nothing left the caches");
    assert_eq!(after, [11, 12, 13]);
    let expected = RecoveryReport { records_scanned: 5, words_redone: 3, words_undone: 0 };
    assert_eq!(report, expected, "three records, their commit, and the hole");
}

/// `fwb-fsm` (§IV-D, Fig. 5): one scan flags, the next one writes back, once.
#[test]
fn two_scans_bring_lines_home_and_a_third_is_not_needed() {
    let settings = [
        ("l1.bytes", "32 KB"),
        ("l2.bytes", "64 KB"),
        ("llc.bytes", "1 MB"),
        ("fwb.scan_interval_cycles", "20000"),
    ];
    let scans = |n| move |s: &Simulation| s.counts()["scans"] == n;
    // The transaction ends after the first scan has begun: flagged by it, home with the second.
    let (before, after, _) = crash_when(&settings, scans(1));
    assert_eq!(before, [1, 2, 3]);
    assert!(after == [1, 2, 3] || after == [11, 12, 13]);
    let (before, ..) = crash_when(&settings, |s| scans(2)(s) && s.machine().memory.is_idle());
    assert_eq!(before, [11, 12, 13]);
    // The next scan's end moves the head: recovery has nothing to do.
    let truncated = |s: &Simulation| s.counts()["log_records_truncated"] == 4;
    let (before, _, report) = crash_when(&settings, truncated);
    assert_eq!(before, [11, 12, 13]);
    assert_eq!(report, RecoveryReport { records_scanned: 1, ..Default::default() });
}

// ---- threads that wait for ever ----------------------------------------------------------------

/// Two threads. The first stores a word in a transaction, then wants the lock that the second holds while
/// that one stores a thousand words.
static CROSSED: WorkloadInfo = test_workload("crossed", "a lock and a full log", |request| {
    programs(
        request,
        |_, _| (),
        |request, thread| {
            let at = word(request.start, u64::from(thread) * 10_000);
            // Without transactions (none are asked for) both take both locks, in opposite order.
            if request.transactions == 0 {
                return spawn(move |memory| {
                    memory.lock(thread);
                    memory.compute(10_000);
                    memory.lock(1 - thread);
                });
            }
            spawn(move |memory| {
                if thread == 1 {
                    memory.lock(0);
                    memory.compute(5_000);
                    memory.tx_begin();
                    (0..1000).for_each(|i| memory.store(at.word(i), i + 1));
                    memory.tx_end();
                    memory.unlock(0);
                } else {
                    memory.compute(2_000);
                    memory.tx_begin();
                    memory.store(at, 1);
                    memory.lock(0);
                    memory.unlock(0);
                    memory.tx_end();
                }
            })
        },
    )
});

fn run_crossed(transactions: u64) -> SimError {
    let config = tiny_config(&[("fwb.log_bytes", "16 KB")]);
    let mut simulation = crate::common::simulation(&config, "fwb", &CROSSED, 2, transactions, 0);
    simulation.run().expect_err("it cannot end")
}

#[test]
fn a_lock_that_keeps_the_log_full_ends_the_run() {
    let error = run_crossed(2);
    let SimError::Design { design: "fwb", why } = &error else { panic!("{error}") };
    assert!(why.contains("nothing can be truncated") && why.contains("fwb.log_bytes"), "{why}");
}

#[test]
fn scans_that_never_end_do_not_hide_a_deadlock() {
    let error = run_crossed(0);
    assert!(matches!(error, SimError::ProgramDeadlock(_)), "{error}");
}

/// While a log is full, lines may come home slowly, one after another: that is no standstill.
#[test]
fn slow_cells_are_not_taken_for_a_standstill() {
    let settings = [
        ("fwb.scan_interval_cycles", "1000000000"),
        ("controller.adr", "false"),
        ("pm.buffer_lines", "0"),
        ("pm.banks", "1"),
        ("pm.write_ns", "100000"),
        ("pm.write_scale", "25"),
        ("l1.bytes", "32 KB"),
        ("l2.bytes", "64 KB"),
        ("llc.bytes", "1 MB"),
    ];
    let simulation = finished(simulation(&small(&settings), &CELLS, 75, 1));
    let c = &simulation.counts();
    assert!(
        c["log_overflows"] > 0 && c["forced_writebacks"] > 4,
        "{} {}",
        c["log_overflows"],
        c["forced_writebacks"]
    );
}

// ---- every crash point --------------------------------------------------------------------------

/// A run that is crashed wherever it can be; `wide` among the settings makes values wide.
fn exhaust(design: &str, mutants: MutantSet, settings: &str, seed: u64) -> Outcome {
    let narrow = settings.replace("wide=true", "");
    let workload = if narrow == settings { &CHURN } else { &WIDE_CHURN };
    // Plain and torn crash points are enough to violate whom there is to violate.
    let how = Thoroughness { in_flight_every: 0, ..Thoroughness::LONG };
    campaign::exhaust(design, workload, 200, (mutants, &narrow, seed), how)
}

/// Seeds of a campaign, tried in this order.
const SEEDS: std::ops::Range<u64> = 0..4;

// Settings of campaigns: a log of 255 records and a scan every 2,000 cycles, …
const SMALL: &str = "fwb.log_bytes=8KB fwb.scan_interval_cycles=2000";
// … without ADR, …
const NO_ADR: &str = "fwb.log_bytes=8KB fwb.scan_interval_cycles=2000 controller.adr=false";
// … with writes delayed and reordered as far as the rules allow, …
const DELAYS: &str =
    "fwb.log_bytes=8KB fwb.scan_interval_cycles=2000 controller.adr=false adversary=1";
// … with four channels, a log line in each, …
const CHANNELS: &str =
    "fwb.log_bytes=8KB controller.channels=4 controller.interleave=line controller.adr=false";
// … with a log of 191 records that is truncated only when it is full, …
const FULL: &str = "fwb.log_bytes=6KB fwb.scan_interval_cycles=1000000";
const TIGHT: &str = "fwb.log_bytes=5504 fwb.scan_interval_cycles=1000000";
const FULL_DELAYS: &str =
    "fwb.log_bytes=6KB fwb.scan_interval_cycles=1000000 controller.adr=false adversary=1";
// … with hardly any cache, so that scans find little, …
const EVICTED: &str = "fwb.log_bytes=8KB fwb.scan_interval_cycles=500 llc.bytes=1KB l2.bytes=512 core.count=4 adversary=1";
// … with the interval that log and bandwidth ask for, …
const DERIVED: &str = "fwb.log_bytes=8KB fwb.scan_interval_cycles=0 controller.adr=false";
// … and others.
const GARBAGE: &str = "fwb.log_bytes=8KB fwb.scan_interval_cycles=2000 garbage=1";
const INSTANT: &str = "fwb.log_bytes=8KB fwb.instant_commit=true";
const FEW_IDS: &str = "fwb.log_bytes=8KB fwb.transaction_id_bits=2";
// A record for each word.
const WORDS: &str = "fwb.record_format=word fwb.log_bytes=8KB fwb.scan_interval_cycles=2000";
const WORDS_GARBAGE: &str =
    "fwb.record_format=word fwb.log_bytes=8KB fwb.scan_interval_cycles=2000 garbage=1";
const WORDS_FULL: &str =
    "fwb.record_format=word fwb.log_bytes=6KB fwb.scan_interval_cycles=1000000";
const WORDS_TIGHT: &str =
    "fwb.record_format=word fwb.log_bytes=6656 fwb.scan_interval_cycles=1000000";
// Slots of 16 B, of which a commit record needs one and a word's record two, in a log that is full.
const HALVES_FULL: &str = "fwb.slot_bytes=16 fwb.log_bytes=6KB fwb.scan_interval_cycles=1000000";
// Packed: 127 groups, …
const GROUPS: &str = "pm.log_packing=always fwb.log_bytes=16320 fwb.scan_interval_cycles=2000";
const GROUPS_NO_ADR: &str =
    "pm.log_packing=always fwb.log_bytes=16320 fwb.scan_interval_cycles=2000 controller.adr=false";
const GROUPS_DELAYS: &str = "pm.log_packing=always fwb.log_bytes=16320 fwb.scan_interval_cycles=2000 controller.adr=false adversary=1";
const GROUPS_GARBAGE: &str =
    "pm.log_packing=always fwb.log_bytes=16320 fwb.scan_interval_cycles=2000 garbage=1";
// … truncated only when they are full, …
const GROUPS_FULL: &str =
    "pm.log_packing=always fwb.log_bytes=12KB fwb.scan_interval_cycles=1000000 garbage=2";
const GROUPS_FULL_NO_ADR: &str = "pm.log_packing=always fwb.log_bytes=12KB fwb.scan_interval_cycles=1000000 controller.adr=false";
const GROUPS_FULL_DELAYS: &str = "pm.log_packing=always fwb.log_bytes=12KB fwb.scan_interval_cycles=1000000 controller.adr=false adversary=1";
// … and with dirty flags.
const FLAGS: &str =
    "pm.log_packing=always fwb.dirty_flags=true fwb.log_bytes=16320 fwb.scan_interval_cycles=2000";
const SLDE: &str =
    "pm.log_packing=always fwb.dirty_flags=true pm.codec=slde fwb.log_bytes=16320 wide=true";

// Lines are written back by instructions, and the log is truncated behind every transaction, …
const CLWB: &str = "fwb.write_back=clwb fwb.truncation_percent=0 fwb.log_bytes=8KB";
// … late and in another order.
const CLWB_DELAYS: &str = "fwb.write_back=clwb fwb.truncation_percent=0 fwb.log_bytes=8KB controller.adr=false adversary=1";
const CLWB_TIGHT: &str = "fwb.write_back=clwb fwb.truncation_percent=0 fwb.log_bytes=7KB controller.adr=false adversary=1";
const CLWB_EVICTED: &str = "fwb.write_back=clwb fwb.truncation_percent=0 fwb.log_bytes=8KB llc.bytes=1KB l2.bytes=512 core.count=4 adversary=1 controller.adr=false";
const CLWB_FULL: &str = "fwb.write_back=clwb fwb.truncation_percent=90 fwb.log_bytes=6KB controller.adr=false adversary=1";

/// MutantSet, in which campaign they violate their guarantees, and after how many crash points at most.
const KILLED: &[(&str, &str, u64)] = &[
    ("whole-means-committed", SMALL, 10),
    ("bit-stays-behind", NO_ADR, 500),
    ("data-does-not-wait", NO_ADR, 5000),
    ("log-goes-round", DERIVED, 1000),
    ("commit-does-not-wait", SMALL, 10),
    ("log-not-cleared", GARBAGE, 100),
    ("entries-stay", NO_ADR, 5000),
    ("merge-takes-undo", SMALL, 10),
    ("merges-across-transactions", INSTANT, 100),
    ("commit-waits-for-itself", CHANNELS, 250),
    ("nothing-reserved", TIGHT, 5000),
    ("torn-bit-stays", SMALL, 500),
    ("one-torn-bit", SMALL, 250),
    ("one-scan-is-enough", SMALL, 100),
    ("scans-from-outside", DELAYS, 500),
    ("nothing-is-forced", SMALL, 100),
    ("head-passes-running", SMALL, 250),
    ("head-passes-ending", DELAYS, 250),
    ("head-does-not-wait", NO_ADR, 500),
    ("head-ignores-evictions", EVICTED, 100),
    ("slots-free-early", FULL_DELAYS, 1000),
    ("home-tells-commit", SMALL, 10),
    ("id-tells-commit", FEW_IDS, 250),
    ("holes-are-skipped", SMALL, 500),
    ("redo-left-out", SMALL, 10),
    ("redo-newest-first", SMALL, 100),
    ("undo-oldest-first", SMALL, 250),
    ("recovery-moves-head-first", SMALL, 500),
    ("buffer-needs-no-room", FULL, 1000),
    ("metadata-first", GROUPS_DELAYS, 500),
    ("flag-of-first-store", SLDE, 1000),
    ("line-without-clwb", CLWB, 1000),
    ("clwb-before-store", CLWB, 1000),
    ("clwb-after-end", CLWB_DELAYS, 1000),
];

/// Those that concern the format of records: with a record for each word, and with slots of which a word needs two.
const KILLED_WORD: &[(&str, &str, u64)] = &[
    ("log-not-cleared", WORDS_GARBAGE, 10),
    ("nothing-reserved", WORDS_TIGHT, 5000),
    ("torn-bit-stays", HALVES_FULL, 5000),
    ("torn-bit-stays", WORDS, 500),
    ("one-torn-bit", WORDS, 250),
    ("holes-are-skipped", WORDS, 1000),
    ("buffer-needs-no-room", WORDS_FULL, 1000),
];

/// Those that concern a truncation behind instructions, too.
const KILLED_CLWB: &[(&str, &str, u64)] = &[
    ("data-does-not-wait", CLWB_DELAYS, 1000),
    ("entries-stay", CLWB_DELAYS, 1000),
    ("head-passes-running", CLWB, 1000),
    ("head-passes-ending", CLWB_TIGHT, 2500),
    ("head-does-not-wait", CLWB_DELAYS, 2500),
    ("head-ignores-evictions", CLWB_EVICTED, 1000),
    ("slots-free-early", CLWB_FULL, 5000),
];

/// Those that a packed log does something else about.
const KILLED_PACKED: &[(&str, &str, u64)] = &[
    ("data-does-not-wait", GROUPS_NO_ADR, 1000),
    ("log-goes-round", GROUPS_FULL, 1000),
    ("log-not-cleared", GROUPS_GARBAGE, 10),
    ("entries-stay", GROUPS_NO_ADR, 1000),
    ("torn-bit-stays", GROUPS, 1000),
    ("one-torn-bit", GROUPS_GARBAGE, 2500),
    ("one-scan-is-enough", GROUPS, 500),
    ("head-passes-running", GROUPS, 500),
    ("head-passes-ending", GROUPS_DELAYS, 2500),
    ("slots-free-early", GROUPS_FULL_DELAYS, 2500),
    ("holes-are-skipped", GROUPS_DELAYS, 500),
    ("recovery-moves-head-first", GROUPS, 500),
    ("buffer-needs-no-room", GROUPS_FULL_NO_ADR, 2000),
    ("merge-takes-undo", FLAGS, 100),
];

/// Crash points up to the first violation, over the seeds.
fn points_to_violation(design: &str, mutants: MutantSet, settings: &str) -> Option<u64> {
    let mut points = 0;
    for seed in SEEDS {
        let outcome = exhaust(design, mutants, settings, seed);
        points += outcome.tally.crash_points;
        if !outcome.violations.is_empty() {
            return Some(points);
        }
    }
    None
}

#[test]
fn every_mutant_is_killed() {
    let entry = find("fwb").expect("registered");
    let tried: Vec<&str> = KILLED.iter().map(|&(name, ..)| name).collect();
    let declared: Vec<&str> = entry.mutants.iter().map(|s| s.name).collect();
    assert_eq!(tried, declared, "each has its campaign");
    let mut late = Vec::new();
    let all = KILLED.iter().chain(KILLED_WORD).chain(KILLED_PACKED).chain(KILLED_CLWB);
    for &(name, settings, points_max) in all {
        let mutant = entry.mutant(name).expect("it was just compared");
        let points = points_to_violation("fwb", mutant, settings);
        if points.is_none_or(|n| n > points_max) {
            late.push(format!("{name}: {points:?} of {points_max}, {settings}"));
        }
    }
    assert!(late.is_empty(), "{late:#?}");
}

#[test]
fn without_a_mutant_the_same_campaigns_find_no_violation_and_reach_every_cover_point() {
    let cover_points = find("fwb").expect("registered").cover_points;
    let mut reached = vec![0; cover_points.len()];
    let rows = KILLED.iter().chain(KILLED_WORD).chain(KILLED_PACKED).chain(KILLED_CLWB);
    let settings: BTreeSet<&str> = rows.map(|&(_, settings, _)| settings).collect();
    for settings in settings {
        for seed in SEEDS {
            let outcome = exhaust("fwb", MutantSet::NONE, settings, seed);
            let found = outcome.violations.first();
            assert!(found.is_none(), "{settings}, seed {seed}: {found:#?}");
            assert_eq!(outcome.refused, None, "{settings}, seed {seed}");
            assert!(outcome.tally.crash_points > 1000, "{settings}: {:?}", outcome.tally);
            reached.iter_mut().zip(outcome.cover_points).for_each(|(sum, n)| *sum += n);
        }
    }
    for (cover, count) in cover_points.iter().zip(reached) {
        assert!(count > 0, "never reached: {}", cover.name);
    }
}

#[test]
fn a_log_is_created_in_a_region_of_unknown_content() {
    for garbage in 0..16 {
        let either = |bit: u32, zero, one| if garbage >> bit & 1 == 0 { zero } else { one };
        let channels =
            either(0, "controller.channels=1", "controller.channels=4 controller.interleave=line");
        let adr = either(1, "true", "false");
        let slot_bytes = either(2, "32", "64");
        let format = either(3, "line", "word");
        let delays = format!("adversary={garbage}");
        let delays = either(3, "", &delays);
        let settings = format!(
            "fwb.log_bytes=16KB fwb.slot_bytes={slot_bytes} fwb.record_format={format} \
             controller.adr={adr} {channels} \
             garbage={garbage} {delays}"
        );
        let outcome = exhaust("fwb", MutantSet::NONE, &settings, garbage);
        let found = outcome.violations.first();
        assert!(found.is_none(), "{settings}: {found:#?}");
        assert!(outcome.tally.crash_points > 1000 && outcome.refused.is_none(), "{settings}");
    }
}

#[test]
fn the_text_taken_literally_violates() {
    let entry = find("fwb-literal").expect("registered");
    assert!(!entry.default && !entry.is_sound(&registry().defaults()));
    for settings in [SMALL, NO_ADR, DERIVED] {
        let points = points_to_violation("fwb-literal", MutantSet::NONE, settings);
        assert!(points.is_some_and(|n| n <= 20), "{settings}: {points:?}");
    }
}

/// Each thread stores to lines that all lie in one set of the last cache.
static ONE_SET: WorkloadInfo =
    test_workload("one-set", "lines that displace each other", |request| {
        programs(
            request,
            |_, _| (),
            |request, thread| {
                // Each thread's in another page, hence in another bank.
                let start = request.start.plus(u64::from(thread) * 4096);
                spawn(move |memory| {
                    for set in 0..4 {
                        memory.tx_begin();
                        for i in 0..24 {
                            // 8 MB in 16 ways.
                            let at = Ptr::known(start.plus(i * (512 << 10) + set * 64));
                            (0..4).for_each(|word| memory.store(at.word(word), i + 1));
                        }
                        memory.tx_end();
                    }
                })
            },
        )
    });

/// §III-B and §IV-C on the paper's own machine: no entry is still in the log buffer when its line leaves
/// the caches, and yet the line is home first. Records queue at the bank in which the log is.
#[test]
fn the_longer_way_of_data_is_no_order() {
    let config = machine("fwb", &[("fwb.slot_bytes", "64"), ("fwb.record_format", "word")]);
    let design = find("fwb").expect("registered");
    let run = |mutants| {
        let crash_options = CrashOptions { mutants, ..CrashOptions::default() };
        let spec = Spec { crash_options, ..spec_of(&config, design, &ONE_SET, 8, 8, 0) };
        let how = Thoroughness {
            torn_every: 0,
            in_flight_every: 0,
            recovery_every: 0,
            ..Thoroughness::LONG
        };
        let run = CrashRun::new(&spec, None, how).unwrap_or_else(|e| panic!("{e}"));
        run.run(None).unwrap_or_else(|e| panic!("{e}"))
    };
    let hurried =
        design.cover_points.iter().position(|c| c.name == "hurried-entry").expect("named so");
    let mutated = run(design.mutant("data-does-not-wait").expect("named so"));
    assert_eq!(mutated.violations.len(), 1);
    let faithful = run(MutantSet::NONE);
    assert_eq!(faithful.violations, []);
    assert_eq!([mutated.cover_points[hurried], faithful.cover_points[hurried]], [0, 0]);
}

#[test]
fn the_laboratory_can_ask_for_a_scan() {
    let text = "graven litmus 1\ntitle \"scans\"\nset fwb.scan_interval_cycles = 1000000000\nA = 1\n\
        thread\nbegin\nA = 2\ncommit\nmaintenance\nmaintenance\ncompute 3000\nmaintenance\n\
        compute 3000\ncrash scanned\nsurvives scanned: A = 2";
    let litmus = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let case = Case::new(registry(), &litmus, find("fwb").expect("registered"));
    let outcome = case.unwrap_or_else(|e| panic!("{e}")).run().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(outcome.violations, []);
}
