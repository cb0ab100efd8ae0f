//! LAD: pools that overflow, lines that transactions share, and what a commit costs.
//!
//! Bug class: a word reaches PM with a line that was pushed for another transaction; a place of the pool is
//! given away while it holds the only copy; an undo record and the line that it protects pass each
//! other.

use crate::common::campaign::{Campaign, demand, demand_of_programs};
use crate::common::registry;
use crate::common::script::{load, script_on, transaction};
use crate::common::shared_lines::{LINES, SHARED_LINES, THREADS};
use crate::common::sweep::sweep;
use crate::common::{CELLS, Crashes, crash_often, finished, simulation, tiny_config};
use crate::common::{Statistics, statistics};
use graven::config::{
    Config, ControllerConfig, CoreConfig, L1Config, L2Config, LlcConfig, PmConfig,
};
use graven::design::MutantSet;
use graven::sim::{SimError, Simulation};

/// Crashes on the way at random cycles; panics at a broken guarantee.
fn crash_on_the_way(mut simulation: Simulation, what: &str, seed: u64) -> Statistics {
    let Crashes { number, broken, .. } = crash_often(&mut simulation, seed, 400);
    assert!(broken.is_empty(), "{what}, seed {seed}: {:#?}", broken.first());
    assert!(number > 50, "{what}: only {number} crashes");
    statistics(&finished(simulation))
}

const ROOMY: &[(&str, &str)] =
    &[("l1.bytes", "32 KB"), ("l2.bytes", "64 KB"), ("llc.bytes", "1 MB")];
/// Fewer lines than the workload has fit.
const CRAMPED: &[(&str, &str)] = &[
    ("l1.bytes", "128 B"),
    ("l1.ways", "1"),
    ("l2.bytes", "256 B"),
    ("llc.bytes", "2 KB"),
    ("llc.ways", "2"),
];

fn hostile(settings: &[(&str, &str)]) -> Config {
    tiny_config(&[&[("lad.log_bytes_per_thread", "16 KB")], settings].concat())
}

/// Two places, so that most lines overflow.
const OVERFLOWING: Campaign = Campaign {
    workload: &SHARED_LINES,
    settings: &[
        ("controller.write_queue_entries", "4"),
        ("pm.buffer_lines", "2"),
        ("controller.adr_entries", "2"),
        ("lad.log_bytes_per_thread", "8 KB"),
    ],
    transactions: 56,
    first_transaction: (1 << 32) - 4,
    runs: 8,
};

/// A few places, whole transactions logged.
const GIVING_UP: Campaign = Campaign {
    settings: &[
        ("controller.write_queue_entries", "4"),
        ("pm.buffer_lines", "2"),
        ("controller.adr_entries", "6"),
        ("lad.overflow_log", "transaction"),
        ("lad.log_bytes_per_thread", "8 KB"),
    ],
    transactions: 112,
    first_transaction: (1 << 47) - 4,
    ..OVERFLOWING
};

/// Places enough for versions of a line to drain side by side, which take their time.
const DRAINING: Campaign = Campaign {
    settings: &[
        ("controller.write_queue_entries", "4"),
        ("pm.buffer_lines", "2"),
        ("controller.adr_entries", "16"),
        ("lad.log_bytes_per_thread", "8 KB"),
    ],
    ..OVERFLOWING
};

/// The undo log in LALEA's blocks, on banks that make a write durable when they have it.
const CHAINS: Campaign = Campaign {
    settings: &[
        ("controller.adr", "false"),
        ("controller.write_queue_entries", "4"),
        ("pm.buffer_lines", "0"),
        ("controller.adr_entries", "6"),
        ("lad.overflow_log", "transaction"),
        ("lad.load_aware_log", "true"),
    ],
    ..OVERFLOWING
};

#[test]
fn every_mutant_is_killed_and_the_design_is_not() {
    let overflowing = [
        ("whole-lines-committed", 500),
        ("whole-lines-undone", 500),
        ("commit-before-lines", 50),
        ("home-not-awaited", 500),
        ("line-not-committed", 500),
        ("register-early", 500),
        ("register-late", 500),
        ("early-push-final", 1000),
        ("newer-forgotten", 3000),
        ("records-not-awaited", 50),
        ("header-not-awaited", 50),
        ("header-overtakes-data", 50),
        ("overflow-not-logged", 50),
        ("one-transaction-logged", 50),
        ("place-freed-at-sending", 500),
        ("youngest-not-saved", 500),
        ("uncommitted-saved", 50),
        ("committed-undone", 500),
        ("torn-bits-ignored", 2000),
        ("log-not-cleared", 50),
    ];
    let chains = [
        ("chain-before-header", 500),
        ("second-line-not-awaited", 500),
        ("line-before-chain", 2000),
        ("chain-not-cleared", 500),
        ("chain-runs-on", 500),
        ("next-pointer-ignored", 500),
        ("header-not-awaited", 500),
        ("header-overtakes-data", 500),
        ("records-not-awaited", 500),
        ("register-early", 500),
        ("register-late", 500),
    ];
    let giving_up = [("shared-places-given-up", 10_000)];
    let draining = [("newest-version-drained", 2000), ("saved-newest-first", 2000)];
    let campaigns: [(Campaign, &[(&str, u64)]); 4] = [
        (OVERFLOWING, &overflowing),
        (GIVING_UP, &giving_up),
        (DRAINING, &draining),
        (CHAINS, &chains),
    ];
    let programs = [
        include_str!("../../../../litmus/lad/places-of-a-committing-transaction.litmus"),
        include_str!("../../../../litmus/lad/block-of-an-open-transaction.litmus"),
    ];
    demand("lad", &campaigns, &programs);
}

/// Other machines: without ADR, four channels, lines that fall out of all caches.
#[test]
fn no_crash_point_of_any_machine_breaks_a_promise() {
    const MACHINES: [&[(&str, &str)]; 3] = [
        &[("controller.adr", "false"), ("pm.buffer_lines", "0"), SMALL_LOG, PLACES],
        &[("controller.channels", "4"), ("controller.interleave", "line"), SMALL_LOG, PLACES],
        &[
            ("l1.bytes", "128 B"),
            ("l1.ways", "1"),
            ("l2.bytes", "256 B"),
            ("llc.bytes", "2 KB"),
            SMALL_LOG,
            PLACES,
        ],
    ];
    const SMALL_LOG: (&str, &str) = ("lad.log_bytes_per_thread", "8 KB");
    const PLACES: (&str, &str) = ("controller.adr_entries", "3");
    let lad = registry().find_design("lad").expect("registered");
    for settings in MACHINES {
        let campaign = Campaign { settings, ..OVERFLOWING };
        let found = campaign.examine(lad, MutantSet::NONE);
        assert_eq!(found.what(), None, "{settings:?}");
        assert!(found.tally.torn > 1000 && found.tally.in_flight > 500, "{:?}", found.tally);
    }
}

/// Lines are the papers' granularity. It is enough as long as no two open transactions share one and none
/// overflows twice.
#[test]
fn the_literal_design_loses_data_where_lines_are_shared_or_logged_twice() {
    let literal = registry().find_design("lad-literal").expect("registered");
    let shared = DRAINING.examine(literal, MutantSet::NONE);
    assert!(shared.violation.is_some(), "lines are shared");
    assert!(shared.tally.crash_points < 1000, "{:?}", shared.tally);
    let own_lines = |settings| {
        let campaign = Campaign { workload: &CELLS, settings, runs: 4, ..OVERFLOWING };
        campaign.examine(literal, MutantSet::NONE).what().map(str::to_owned)
    };
    let few = own_lines(&[("controller.adr_entries", "4"), ("lad.log_bytes_per_thread", "16 KB")]);
    assert!(few.is_some(), "lines are logged twice");
    assert_eq!(own_lines(&[("controller.adr_entries", "512")]), None);
}

#[test]
fn what_the_papers_leave_out_is_shown_by_the_shortest_programs() {
    demand_of_programs(&[
        include_str!("../../../../litmus/lad/line-committed-whole.litmus"),
        include_str!("../../../../litmus/lad/line-undone-whole.litmus"),
        include_str!("../../../../litmus/lad/line-logged-twice.litmus"),
    ]);
}

#[test]
fn pools_of_any_size_keep_transactions_whole_although_they_share_lines() {
    for caches in [ROOMY, CRAMPED] {
        for entries in ["1", "2", "4", "16", "64"] {
            for overflow in ["lines", "transaction"] {
                for (proactive, adr, queue) in
                    [("true", "true", "64"), ("false", "true", "4"), ("true", "false", "4")]
                {
                    let settings = [
                        ("controller.adr_entries", entries),
                        ("lad.overflow_log", overflow),
                        ("lad.proactive_flush", proactive),
                        ("lad.recent_lines", "2"),
                        ("controller.adr", adr),
                        ("controller.write_queue_entries", queue),
                    ];
                    let config = hostile(&[caches, &settings].concat());
                    let what = format!("{settings:?} {caches:?}");
                    let simulation = simulation(&config, "lad", &SHARED_LINES, THREADS, 28, 3);
                    let counters = crash_on_the_way(simulation, &what, 5).counters;
                    let places: u64 = entries.parse().expect("a number");
                    assert!(counters["log_buffer_max"] <= places, "{what}");
                    if places <= 16 {
                        assert!(counters["log_overflows"] > 0, "{what}");
                        assert!(counters["log_entries"] >= counters["log_overflows"], "{what}");
                    }
                    assert_eq!(
                        counters["log_entries"], counters["log_records_truncated"],
                        "{what}"
                    );
                }
            }
        }
    }
}

/// A line that is logged although an older version of it, or another committed line, is about to leave the pool.
#[test]
fn a_line_that_does_not_wait_for_a_place_is_logged() {
    let overflows = ["true", "false"].map(|waits| {
        let settings = [
            ("controller.adr_entries", "8"),
            ("lad.wait_for_place", waits),
            ("controller.adr", "false"),
            ("pm.buffer_lines", "0"),
        ];
        let config = hostile(&[ROOMY, &settings].concat());
        let simulation = simulation(&config, "lad", &SHARED_LINES, THREADS, 56, 1);
        crash_on_the_way(simulation, "wait_for_place", 7).counters["log_overflows"]
    });
    assert!(overflows[1] > overflows[0], "{overflows:?}");
}

#[test]
fn an_undo_record_is_whole_although_its_lines_go_to_different_channels() {
    let settings = [
        ("controller.adr_entries", "2"),
        ("controller.channels", "4"),
        ("controller.interleave", "line"),
        ("controller.write_queue_entries", "4"),
        ("pm.buffer_lines", "0"),
    ];
    for seed in 0..4 {
        let config = hostile(&[ROOMY, &settings].concat());
        let simulation = simulation(&config, "lad", &SHARED_LINES, THREADS, 56, seed);
        let counters = crash_on_the_way(simulation, "four channels", seed).counters;
        assert!(counters["log_entries"] > 100 && counters["write_queue_full"] > 0);
    }
}

#[test]
fn a_pool_that_holds_everything_writes_no_log() {
    let config = hostile(&[ROOMY, &[("controller.adr_entries", "192")]].concat());
    let simulation = simulation(&config, "lad", &SHARED_LINES, THREADS, 28, 1);
    let counters = crash_on_the_way(simulation, "large pool", 2).counters;
    assert!(counters["log_buffer_max"] >= LINES);
    assert_eq!((counters["log_overflows"], counters["log_bytes_written"]), (0, 0));
}

/// The fall through all levels, the controller's message, the commit message, the acknowledgement.
fn commit_of_one_line(config: &Config) -> u64 {
    let caches = config.get::<L1Config>().latency_cycles
        + config.get::<L2Config>().latency_cycles
        + config.get::<LlcConfig>().latency_cycles;
    u64::from(caches + 3 * config.get::<ControllerConfig>().bypass_cycles)
}

#[test]
fn a_commit_takes_the_traversal_and_three_messages() {
    let (config, stats) = sweep("lad", "1", &[]);
    assert_eq!(stats.commit_latency.max(), commit_of_one_line(&config));
    assert_eq!(stats.counters["forced_writebacks"], 1);
    assert_eq!(stats.counters["controller_write_requests_data"], 1);
    assert_eq!(stats.counters["controller_write_requests"], 1);
}

/// The place is taken from the line's arrival until it drains, with the commit message: after the controller's message and the
/// core's.
#[test]
fn a_place_is_in_use_until_its_line_drains() {
    let (config, stats) = sweep("lad", "1", &[]);
    let path = u64::from(config.get::<ControllerConfig>().bypass_cycles);
    assert_eq!(
        (stats.counters["adr_entries_max"], stats.counters["adr_entry_cycles"]),
        (1, 2 * path)
    );
    assert_eq!(stats.counters["adr_overflows"], 0);
}

#[test]
fn lines_leave_the_l1_at_the_push_interval() {
    let late = [("lad.proactive_flush", "false"), ("lad.push_interval_cycles", "7")];
    let (config, stats) = sweep("lad", "20", &late);
    assert_eq!(stats.commit_latency.max(), commit_of_one_line(&config) + 19 * 7);
    // All but the four most recent have been pushed long before the end.
    let (config, stats) = sweep("lad", "20", &[("lad.push_interval_cycles", "7")]);
    assert_eq!(stats.commit_latency.max(), commit_of_one_line(&config) + 3 * 7);
    assert_eq!(stats.counters["forced_writebacks"], 20);
    assert_eq!(stats.counters["forced_writebacks_in_vain"], 0);
}

#[test]
fn an_early_push_is_in_vain_if_its_line_is_stored_to_again() {
    // 0 1 2 3 4 0: the fifth line displaces line 0, which then displaces line 1.
    let (_, stats) = sweep("lad", "5", &[("lad.recent_lines", "4")]);
    assert_eq!(stats.counters["forced_writebacks"], 6);
    assert_eq!(stats.counters["forced_writebacks_in_vain"], 1);
    assert_eq!(stats.counters["controller_write_requests_data"], 5);
}

#[test]
fn what_overflows_is_logged_and_the_rest_as_configured() {
    let small = [("controller.adr_entries", "2"), ("lad.proactive_flush", "false")];
    for (mode, overflows, entries) in [("lines", 4, 4), ("transaction", 1, 6)] {
        let (_, stats) = sweep("lad", "6", &[&small[..], &[("lad.overflow_log", mode)]].concat());
        let c = &stats.counters;
        assert_eq!((c["log_overflows"], c["log_entries"]), (overflows, entries), "{mode}");
        assert_eq!((c["adr_overflows"], c["log_headers"]), (overflows, entries), "{mode}");
        assert_eq!(c["log_bytes_written"], entries * 80, "{mode}");
        assert_eq!(c["log_records_truncated"], entries, "{mode}");
        assert_eq!(c["controller_write_requests_data"], 6, "{mode}");
        // One of each line by the program, one of each old line by the controller.
        assert_eq!(c["controller_read_requests"], 6 + entries, "{mode}");
        assert_eq!(c["log_buffer_max"], 2, "{mode}");
    }
}

#[test]
fn more_records_than_the_log_area_holds_end_the_run_with_the_reason() {
    let mut config = hostile(&[("controller.adr_entries", "1"), ("lad.proactive_flush", "false")]);
    config.set("lad.log_bytes_per_thread", "512 B").expect("in range");
    let error = simulation(&config, "lad", &SHARED_LINES, 1, 9, 0).run().expect_err("too many");
    let SimError::Design { design: "lad", why } = &error else { panic!("{error}") };
    assert!(why.contains("lad.log_bytes_per_thread holds (4)"), "{why}");
}

#[test]
fn a_log_region_too_small_for_all_threads_is_refused() {
    let config = hostile(&[("lad.log_bytes_per_thread", "2 MB")]);
    let mut spec =
        registry().spec(config, "lad", "array", Some(4), Some(1), 0).expect("known names");
    spec.workload = &SHARED_LINES;
    let Err(error) = Simulation::new(&spec) else { panic!("4 x 2 MB do not fit into 4 MB") };
    assert!(error.to_string().contains("pm.log_region_bytes"), "{error}");
    assert!(registry().find_design("lad").expect("registered").is_safe(&hostile(&[])));
}

/// HOOP §IV-A, where a commit waits for NVM: without ADR and buffer for the programming of its line, with ADR for
/// nothing, as a write is accepted at once.
#[test]
fn a_commit_waits_for_nvm_only_if_asked_to() {
    let program = [vec![load(4096)], transaction(&[(4096, 1)])].concat();
    let cycles = |adr: &str, waits: &str| {
        let settings = [
            ("controller.adr", adr),
            ("pm.buffer_lines", "0"),
            ("lad.commit_waits_for_nvm", waits),
        ];
        let config = tiny_config(&settings);
        let (core, pm) = (config.get::<CoreConfig>(), config.get::<PmConfig>());
        let write = (pm.write_ns * f64::from(core.frequency_mhz) / 1000.0).ceil() as u64;
        let mut run = script_on(&config, "lad", &[&program]);
        run.run().unwrap_or_else(|e| panic!("{e}"));
        (run.stats().core_cycles[0], write)
    };
    let (with_adr, _) = cycles("true", "false");
    assert_eq!(cycles("true", "true").0, with_adr);
    let (without, write) = cycles("false", "false");
    assert_eq!(without, with_adr, "the pool is persistent");
    assert_eq!(cycles("false", "true").0 - without, write);
}
