//! LAD's undo log in LALEA's blocks: how records are filled, what they cost, and what happens when there is no block.
//!
//! Bug class: a line goes home before LR leads to its undo data; a block is handed out while a transaction that
//! could be undone has it; a chain names what is not there.

use crate::common::campaign::Campaign;
use crate::common::registry;
use crate::common::shared_lines::{SHARED_LINES, THREADS};
use crate::common::statistics;
use crate::common::sweep::sweep;
use crate::common::{finished, refusal, simulation, tiny_config};
use graven::design::MutantSet;
use graven::sim::SimError;

const LATE: (&str, &str) = ("lad.proactive_flush", "false");
const TWO_PLACES: (&str, &str) = ("controller.adr_entries", "2");

/// The old lines of a commit are all being read when the first of them is there.
#[test]
fn lines_that_overflow_together_share_records_of_seven() {
    for (lines, mode, entries, headers) in [
        ("3", "lines", 1, 1),
        ("6", "lines", 4, 1),
        ("6", "transaction", 6, 1),
        ("7", "transaction", 7, 1),
        ("8", "transaction", 8, 2),
        ("16", "transaction", 16, 3),
    ] {
        let settings = [TWO_PLACES, LATE, ("lad.overflow_log", mode)];
        let (_, stats) = sweep("lalea-lad", lines, &settings);
        let c = &stats.counters;
        let what = format!("{lines} lines, {mode}");
        assert_eq!((c["log_entries"], c["log_headers"]), (entries, headers), "{what}");
        assert_eq!(c["log_bytes_written"], entries * 64 + headers * 128, "{what}");
        assert_eq!(c["controller_write_requests_log"], entries, "{what}");
        assert_eq!(c["controller_write_requests_metadata"], 2 * headers, "{what}");
        assert_eq!((c["log_records_truncated"], c["log_space_waits"]), (headers, 0), "{what}");
        assert_eq!(c["adr_overflows"], c["log_overflows"], "{what}");
        assert_eq!(c["adr_entries_max"], 2, "{what}");
    }
}

/// Each old line was read long before the next line overflows.
#[test]
fn lines_that_overflow_one_after_the_other_have_records_of_their_own() {
    let settings = [TWO_PLACES, LATE, ("lad.push_interval_cycles", "1000")];
    let (_, stats) = sweep("lalea-lad", "6", &settings);
    assert_eq!((stats.counters["log_entries"], stats.counters["log_headers"]), (4, 4));
}

/// LALEA's machine: each header waits for its blocks, each line for its header, and the commit for the lines.
/// The conventional log has a header per line, and consecutive records lie in one bank.
#[test]
fn a_commit_that_overflows_is_faster_where_banks_share_the_log() {
    let latency = |design| {
        let mut config = registry().machine("lalea").expect("the preset loads");
        config.set("workload.footprint_bytes", "1 MB").expect("in range");
        let simulation = finished(simulation(&config, design, &SHARED_LINES, THREADS, 56, 1));
        let stats = statistics(&simulation);
        assert!(stats.counters["log_overflows"] > 0, "{design}");
        stats.commit_latency.mean()
    };
    let (lad, lalea) = (latency("lad"), latency("lalea-lad"));
    assert!(lalea < lad, "{lalea} against {lad} cycles");
}

/// Other machines than the campaign of all mutants has.
#[test]
fn no_crash_point_of_any_machine_breaks_a_promise() {
    const MACHINES: [&[(&str, &str)]; 3] = [
        &[
            ("controller.adr", "false"),
            ("controller.channels", "4"),
            ("controller.interleave", "line"),
            ("pm.buffer_lines", "0"),
            ("controller.adr_entries", "3"),
        ],
        &[("controller.adr", "false"), ("pm.banks", "1"), ("controller.adr_entries", "1")],
        &[
            ("controller.write_queue_entries", "4"),
            ("controller.adr_entries", "4"),
            ("lad.overflow_log", "transaction"),
            ("l1.bytes", "128 B"),
            ("l1.ways", "1"),
            ("l2.bytes", "256 B"),
            ("llc.bytes", "2 KB"),
        ],
    ];
    let design = registry().find_design("lalea-lad").expect("registered");
    for settings in MACHINES {
        let campaign = Campaign {
            workload: &SHARED_LINES,
            settings,
            transactions: 56,
            first_transaction: 0,
            runs: 6,
        };
        let found = campaign.examine(design, MutantSet::NONE);
        assert_eq!(found.what(), None, "{settings:?}");
        assert!(found.tally.torn > 500 && found.tally.in_flight > 500, "{:?}", found.tally);
    }
}

#[test]
fn transactions_that_hold_all_blocks_and_need_more_end_the_run_with_the_reason() {
    for key in ["lalea.fle_entries", "lalea.fh_entries"] {
        let settings = [("controller.adr_entries", "1"), LATE, ("pm.banks", "1"), (key, "2")];
        let config = tiny_config(&settings);
        let error =
            simulation(&config, "lalea-lad", &SHARED_LINES, THREADS, 28, 0).run().expect_err(key);
        let SimError::Design { design: "lalea-lad", why } = &error else { panic!("{error}") };
        assert!(why.contains(key), "{why}");
    }
}

#[test]
fn a_log_region_without_room_in_each_bank_is_refused() {
    let message = refusal(&tiny_config(&[("pm.log_region_bytes", "16 KB")]), "lalea-lad");
    assert!(message.contains("pm.log_region_bytes"), "{message}");
}
