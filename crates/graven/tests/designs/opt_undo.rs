//! Opt-Undo: log records that fill up, are forced and wrap around, data that waits for them, and what the laboratory
//! makes of it when one of its rules is broken.
//!
//! Bug class: a line reaches PM before a log entry of one of its words; a header that is half written, or tells of
//! entries that are not there, is taken for one; an entry has too few words, or too many.

use crate::common::campaign::{Campaign, demand, demand_enough_room, demand_of_programs};
use crate::common::churn::CHURN;
use crate::common::find;
use crate::common::registry;
use crate::common::script::{compute, load, script_on, store};
use crate::common::shared_lines::SHARED_LINES;
use crate::common::{CELLS, finished, preset, refusal, tiny_config};
use crate::common::{Statistics, statistics};
use graven::config::{Config, ControllerConfig, L1Config, L2Config, LlcConfig, PmConfig};
use graven::design::MutantSet;

use graven::designs::opt_undo::OptUndoConfig;
use graven::memory::Addr;
use graven::program::{Disturbance, Op};

/// Fewer lines than the workload has fit, and a transaction fills most of an area.
const CRAMPED: Campaign = Campaign {
    workload: &SHARED_LINES,
    settings: &[
        ("l1.bytes", "512 B"),
        ("l1.ways", "2"),
        ("l2.bytes", "1 KB"),
        ("llc.bytes", "2 KB"),
        ("llc.ways", "2"),
        ("controller.write_queue_entries", "4"),
        ("pm.buffer_lines", "2"),
        ("opt-undo.entries_per_record", "3"),
        ("opt-undo.log_bytes_per_thread", "24 KB"),
    ],
    transactions: 56,
    first_transaction: (1 << 43) - 4,
    runs: 6,
};

/// Records stay open until their transactions end.
const ROOMY: Campaign = Campaign {
    settings: &[
        ("controller.write_queue_entries", "4"),
        ("pm.buffer_lines", "2"),
        ("opt-undo.log_bytes_per_thread", "20 KB"),
    ],
    ..CRAMPED
};

/// Words are logged again and again, over the end of the area.
const WRAPPING: Campaign = Campaign {
    workload: &CHURN,
    settings: &[
        ("l1.bytes", "128 B"),
        ("l1.ways", "1"),
        ("l2.bytes", "256 B"),
        ("llc.bytes", "2 KB"),
        ("llc.ways", "2"),
        ("controller.write_queue_entries", "4"),
        ("opt-undo.entries_per_record", "1"),
        ("opt-undo.log_bytes_per_thread", "8 KB"),
    ],
    transactions: 160,
    first_transaction: 0,
    runs: 6,
};

const SETTLED: [&str; 2] = [
    include_str!("../../../../litmus/opt-undo/line-undone-whole.litmus"),
    include_str!("../../../../litmus/opt-undo/entries-of-two-threads.litmus"),
];

#[test]
fn every_mutant_is_killed_and_the_design_is_not() {
    let cramped = [
        ("lines-logged-whole", 500),
        ("eviction-overtakes-header", 500),
        ("header-not-forced", 500),
        ("header-overtakes-entries", 500),
        ("joined-word-not-masked", 500),
        ("evicted-line-not-awaited", 10_000),
        ("log-not-cleared", 500),
    ];
    let roomy = [
        ("write-back-overtakes-header", 500),
        ("neighbour-overtaken", 500),
        ("closed-record-joined", 2000),
        ("lines-not-awaited", 500),
        ("oldest-content-awaited", 2000),
        ("log-removed-early", 500),
        ("committed-undone", 500),
    ];
    let wrapping = [
        ("undo-oldest-first", 2000),
        ("newest-by-place", 20_000),
        ("torn-bits-ignored", 20_000),
        ("torn-bit-never-flips", 20_000),
    ];
    let campaigns: [(Campaign, &[(&str, u64)]); 3] =
        [(CRAMPED, &cramped), (ROOMY, &roomy), (WRAPPING, &wrapping)];
    let programs = [include_str!("../../../../litmus/opt-undo/two-threads-of-an-l1.litmus")];
    demand("opt-undo", &campaigns, &programs);
}

/// Without ADR a header is torn more often than not; four channels take the lines of a record in any order.
#[test]
fn no_crash_point_of_any_machine_breaks_a_promise() {
    const AREA: (&str, &str) = ("opt-undo.log_bytes_per_thread", "24 KB");
    const MACHINES: [&[(&str, &str)]; 3] = [
        &[("controller.adr", "false"), ("pm.buffer_lines", "0"), AREA],
        &[
            ("controller.adr", "false"),
            ("controller.channels", "4"),
            ("controller.interleave", "line"),
            AREA,
        ],
        &[
            ("l1.bytes", "128 B"),
            ("l1.ways", "1"),
            ("l2.bytes", "256 B"),
            ("llc.bytes", "1 KB"),
            ("llc.ways", "2"),
            ("opt-undo.log_bytes_per_thread", "64 KB"),
        ],
    ];
    for workload in [&SHARED_LINES, &CELLS] {
        for settings in MACHINES {
            let campaign = Campaign { workload, settings, ..CRAMPED };
            let found = campaign.examine(find("opt-undo").expect("registered"), MutantSet::NONE);
            assert_eq!(found.what(), None, "{} on {settings:?}", workload.name);
            assert!(found.tally.torn > 1000 && found.tally.in_flight > 500, "{:?}", found.tally);
        }
    }
}

/// Whole lines are enough as long as no two open transactions share one.
#[test]
fn the_literal_design_loses_data_where_lines_are_shared() {
    let literal = find("opt-undo-literal").expect("registered");
    let shared = ROOMY.examine(literal, MutantSet::NONE);
    assert!(shared.violation.is_some(), "lines are shared");
    assert!(shared.tally.crash_points < 500, "{:?}", shared.tally);
    let own_lines = Campaign { workload: &CELLS, runs: 2, ..ROOMY };
    assert_eq!(own_lines.examine(literal, MutantSet::NONE).what(), None);
}

#[test]
fn what_the_sources_leave_out_is_shown_by_the_shortest_programs() {
    demand_of_programs(&SETTLED);
}

/// Where the lines of a test lie.
const START: u64 = 0x10_0000;

fn word(line: u64, word: u64) -> u64 {
    START + line * 64 + word * 8
}

/// Brings lines into the L1, runs the stores as one transaction, and waits.
fn transaction(lines: u64, steps: &[Op]) -> Vec<Op> {
    let mut ops: Vec<Op> = (0..lines).map(|line| load(word(line, 0))).collect();
    ops.extend([compute(10_000), Op::TxBegin]);
    ops.extend(steps);
    // What was logged is durable when the transaction ends.
    ops.extend([compute(10_000), Op::TxEnd]);
    ops
}

/// The Silo machine; without ADR, durable means in the cells.
fn machine(settings: &[(&str, &str)]) -> Config {
    preset("silo", settings)
}

const IN_CELLS: [(&str, &str); 2] = [("controller.adr", "false"), ("pm.buffer_lines", "0")];

fn run_on(design: &str, config: &Config, ops: &[Op]) -> Statistics {
    statistics(&finished(script_on(config, design, &[ops])))
}

fn run(settings: &[(&str, &str)], ops: &[Op]) -> Statistics {
    run_on("opt-undo", &machine(settings), ops)
}

fn evict(line: u64, level: u8) -> Op {
    Op::Disturb(Disturbance::Evict(Addr(word(line, 0)).line(), level))
}

/// One store to each of so many lines.
fn sweep(lines: u64) -> Vec<Op> {
    transaction(lines, &(0..lines).map(|line| store(word(line, 0), 7)).collect::<Vec<Op>>())
}

/// Cycles that a line of the innermost cache takes to fall through all levels, and that a message takes.
fn ways(config: &Config) -> (u64, u64) {
    let caches = config.get::<L1Config>().latency_cycles
        + config.get::<L2Config>().latency_cycles
        + config.get::<LlcConfig>().latency_cycles;
    (caches.into(), config.get::<ControllerConfig>().bypass_cycles.into())
}

/// Claim `hoop-fig4-flush-counts`: undo logging has one ordering point per update. The data of each updated line is
/// held back for its log, once, however often it was stored to; beside it, each header for its entries.
#[test]
fn each_updated_line_has_one_ordering_point() {
    for lines in [1, 7, 8, 20] {
        let twice = (0..2 * lines).map(|i| store(word(i % lines, 0), i + 1));
        let mut ops = transaction(lines, &twice.collect::<Vec<Op>>());
        // At the end, all of the log is on its way.
        ops.truncate(ops.len() - 2);
        ops.push(Op::TxEnd);
        let c = run(&IN_CELLS, &ops).counters;
        let headers = lines.div_ceil(7);
        assert_eq!(c["controller_write_requests_metadata"], headers);
        assert_eq!(c["write_order_held"] - headers, lines, "one for each line");
        assert_eq!(c["controller_write_requests_log"], lines, "each line is logged once");
        assert_eq!(c["controller_write_requests_data"], lines, "each line goes home once");
        assert_eq!(c["stall_log_cycles"], 0, "no store waits for the log");
    }
}

/// LALEA §II-B: the addresses of seven log blocks share a header; eight lines are a record.
#[test]
fn entries_share_a_header() {
    for (settings, per_record) in [
        (&[][..], 7),
        (&[("opt-undo.entries_per_record", "1")][..], 1),
        (&[("opt-undo.entries_per_record", "3")][..], 3),
    ] {
        for lines in [1, 3, 6, 7, 8, 14, 15, 21] {
            let stats = run(settings, &sweep(lines));
            let (c, headers) = (&stats.counters, lines.div_ceil(per_record));
            assert_eq!(c["log_entries"], lines);
            assert_eq!(c["controller_write_requests_log"], lines);
            assert_eq!(c["controller_write_requests_metadata"], headers);
            assert_eq!(c["log_bytes_written"], 64 * (lines + headers));
            assert_eq!(c["log_buffer_max"], per_record.min(lines));
            assert_eq!(c["log_entries_hurried"], 0, "nothing left before its time");
            // The log is removed without a write.
            assert_eq!(c["log_records_truncated"], headers);
            assert_eq!(c["controller_write_requests"], 2 * lines + headers);
        }
    }
}

#[test]
fn words_of_a_line_share_an_entry_until_its_record_is_closed() {
    let mut steps: Vec<Op> = (0..8).map(|w| store(word(0, w), 7)).collect();
    let c = run(&[], &transaction(1, &steps)).counters;
    assert_eq!((c["log_entries"], c["log_entries_merged"]), (1, 7));
    // A line that leaves closes the record; the other line is in the L1 still, but its header is written.
    steps.push(store(word(1, 0), 7));
    steps.push(evict(0, 3));
    steps.push(store(word(1, 0), 8));
    let c = run(&[], &transaction(2, &steps)).counters;
    assert_eq!((c["log_entries"], c["controller_write_requests_metadata"]), (2, 1));
    steps.push(store(word(1, 1), 8));
    let c = run(&[], &transaction(2, &steps)).counters;
    assert_eq!((c["log_entries"], c["controller_write_requests_metadata"]), (3, 2));
    assert_eq!(c["log_entries_merged"], 7);
}

#[test]
fn a_line_that_leaves_forces_the_header_of_its_entry() {
    let stored = [0, 1, 2].map(|line| store(word(line, 0), 7));
    let more = [3, 4].map(|line| store(word(line, 0), 7));
    let steps = [&stored[..], &[evict(1, 3)], &more].concat();
    let c = run(&[], &transaction(5, &steps)).counters;
    assert_eq!(c["log_entries_hurried"], 3, "the record had three entries");
    assert_eq!(c["controller_write_requests_metadata"], 2);
    assert_eq!(c["log_records_truncated"], 2);
    assert_eq!(c["log_entries"], 5);
    // It forces nothing when its header is written, and nothing if it is no transaction's.
    let steps = [&stored[..], &[evict(1, 3), evict(2, 3), evict(4, 3)], &more].concat();
    assert_eq!(run(&[], &transaction(5, &steps)).counters["log_entries_hurried"], 3);
}

#[test]
fn an_l1_forgets_what_leaves_it() {
    let again = |level| {
        let steps = [store(word(0, 0), 7), evict(0, level), store(word(0, 0), 8)];
        run(&[], &transaction(1, &steps)).counters
    };
    assert_eq!(run(&[], &transaction(1, &[store(word(0, 0), 7); 2])).counters["log_entries"], 1);
    // Out of the L1 and back: a second entry in the same record.
    let c = again(1);
    assert_eq!((c["log_entries"], c["controller_write_requests_metadata"]), (2, 1));
    // Out of all caches: the record is closed.
    let c = again(3);
    assert_eq!((c["log_entries"], c["controller_write_requests_metadata"]), (2, 2));
    assert_eq!(c["controller_write_requests_data"], 2);
}

#[test]
fn a_commit_takes_the_fall_through_the_caches_and_three_messages() {
    for lines in [1, 3, 8] {
        let config = machine(&[]);
        let stats = run_on("opt-undo", &config, &sweep(lines));
        let (fall, path) = ways(&config);
        assert_eq!(stats.commit_latency.max(), fall + 3 * path, "ADR takes all at once");
        assert_eq!(stats.counters["forced_writebacks"], lines);
    }
}

/// Without ADR: the header goes to the cells, then the line does, then three messages follow.
#[test]
fn a_commit_waits_until_header_and_data_are_in_the_cells() {
    let config = machine(&IN_CELLS);
    let stats = run_on("opt-undo", &config, &sweep(1));
    let ((_, path), pm) = (ways(&config), config.get::<PmConfig>());
    let cycles = |ns: f64| (ns * 2.0).round() as u64;
    let in_cells = cycles(pm.write_ns);
    assert_eq!(stats.commit_latency.max(), path + 2 * in_cells + 3 * path);
}

#[test]
fn a_commit_waits_for_what_was_evicted_before() {
    let config = machine(&IN_CELLS);
    // The line leaves right before the end: nothing is left to be written back, but it is on its way.
    let mut ops = transaction(1, &[store(word(0, 0), 7)]);
    let end = ops.pop().expect("the end");
    ops.extend([evict(0, 3), end]);
    let stats = run_on("opt-undo", &config, &ops);
    let ((_, path), in_cells) = (ways(&config), config.get::<PmConfig>().write_ns as u64 * 2);
    assert_eq!(stats.counters["forced_writebacks"], 0);
    assert_eq!(stats.counters["controller_write_requests_data"], 1, "it goes home once");
    let commit = stats.commit_latency.max();
    assert!(commit > in_cells + 3 * path && commit <= 2 * in_cells + 3 * path, "{commit}");
    // When it has arrived long before, the commit is four messages: the controller is asked, and answers.
    let ops = transaction(1, &[store(word(0, 0), 7), evict(0, 3)]);
    assert_eq!(run_on("opt-undo", &config, &ops).commit_latency.max(), 4 * path);
}

#[test]
fn a_transaction_without_stores_ends_at_once() {
    let stats = run(&[], &transaction(1, &[load(word(0, 0))]));
    assert_eq!(stats.commit_latency.max(), 0);
    assert_eq!(stats.counters["controller_write_requests"], 0);
}

/// Claim `hoop-tab1-atom`: read latency low, on the critical path, no flush and fence by the program, write traffic
/// image: reads are those of no persistence at all, commits wait, and a record adds an eighth to log and data.
#[test]
fn the_row_of_hoops_table_one() {
    let ops = sweep(14);
    let (undo, ideal) = (run(&[], &ops), run_on("ideal", &machine(&[]), &ops));
    let (undo, ideal) = (&undo.counters, &ideal.counters);
    assert_eq!(undo["controller_read_requests"], ideal["controller_read_requests"]);
    assert_eq!(undo["read_latency_cycles_sum"], ideal["read_latency_cycles_sum"]);
    assert!(undo["stall_commit_cycles"] > 0 && ideal["stall_commit_cycles"] == 0);
    assert_eq!((undo["loads"], undo["stores"]), (ideal["loads"], ideal["stores"]));
    assert_eq!(undo["controller_write_requests"], 14 + 14 * 8 / 7);
}

#[test]
fn an_area_that_just_holds_the_largest_transaction_is_enough() {
    let key = "opt-undo.log_bytes_per_thread";
    let enough = demand_enough_room("opt-undo", key, 512, &[("llc.bytes", "2 KB")], 1..96);
    assert!(enough > 48 / 7, "the largest transaction stores to 48 lines");
}

#[test]
fn a_log_region_too_small_for_all_threads_is_refused() {
    let config = tiny_config(&[("opt-undo.log_bytes_per_thread", "2 MB")]);
    let why = refusal(&config, "opt-undo");
    assert!(why.contains("opt-undo.log_bytes_per_thread"), "{why}");
    assert!(why.contains("pm.log_region_bytes"), "{why}");
    let mut config = registry().defaults();
    assert!(
        config.set("opt-undo.entries_per_record", "8").is_err(),
        "a header has seven addresses"
    );
}

#[test]
fn its_parameters_are_set_in_a_file() {
    let text = "[opt-undo]\nentries_per_record = 3\nlog_bytes_per_thread = \"64 KB\"\n";
    let config = registry().machine_file(text, "my.toml").unwrap_or_else(|e| panic!("{e}"));
    let section = config.get::<OptUndoConfig>();
    assert_eq!((section.entries_per_record, section.log_bytes_per_thread.0), (3, 64 << 10));
}
