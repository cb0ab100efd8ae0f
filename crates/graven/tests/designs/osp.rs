//! OSP: two places for each line, the journal that says which is committed, and what it costs to change it.
//!
//! Bug class: a version goes to the place that is still committed; a bitmap is durable before the lines it speaks of, or
//! after they have been overwritten; a shadow page serves two pages at once.

use crate::common::campaign::{Campaign, demand_of_programs};
use crate::common::find;
use crate::common::registry;
use crate::common::script::{compute, load, script_on, store};
use crate::common::shared_lines::SHARED_LINES;
use crate::common::{CELLS, finished, preset, refusal, tiny_config};
use crate::common::{Statistics, statistics};
use graven::config::{Config, ControllerConfig, L1Config, L2Config, LlcConfig};
use graven::design::MutantSet;

use graven::memory::Addr;
use graven::program::{Disturbance, Op};
use graven::sim::{SimError, Simulation};

/// Three words in three pages of 4 KB.
const A: u64 = 0x10_0000;
const B: u64 = 0x10_1000;
const C: u64 = 0x10_2000;
const BEGIN: Op = Op::TxBegin;
const END: Op = Op::TxEnd;
const SETTLE: Op = Op::Disturb(Disturbance::Settle);

fn evict(addr: u64) -> Op {
    Op::Disturb(Disturbance::Evict(Addr(addr).line(), 3))
}

fn config(settings: &[(&str, &str)]) -> Config {
    preset("silo", settings)
}

fn run(settings: &[(&str, &str)], threads: &[&[Op]]) -> Simulation {
    finished(script_on(&config(settings), "osp", threads))
}

fn stats(settings: &[(&str, &str)], threads: &[&[Op]]) -> Statistics {
    statistics(&run(settings, threads))
}

/// How often a state was reached.
fn reached(simulation: &Simulation, cover: &str) -> u64 {
    let cover_points = find("osp").expect("registered").cover_points;
    let at = cover_points.iter().position(|c| c.name == cover).expect("a cover point of osp");
    simulation.machine().cover_points()[at]
}

/// Claim `hoop-tab1-ssp`: on the critical path, with flushes; low write traffic: one line and 128 bits.
#[test]
fn a_commit_flushes_its_line_to_the_other_place_and_nothing_is_copied() {
    let simulation = run(&[], &[&[load(A), BEGIN, store(A, 1), store(A + 8, 2), END]]);
    let (c, config) = (&simulation.counts(), config(&[]));
    assert_eq!((c["lines_remapped"], c["forced_writebacks"]), (1, 1));
    assert_eq!(c["controller_write_requests_data"], 1);
    // The home word of the shadow page, and one journal entry.
    assert_eq!((c["controller_write_requests_metadata"], c["log_bytes_written"]), (2, 8 + 16));
    assert_eq!((c["log_entries"], c["controller_write_requests_gc"]), (1, 0));
    // The miss of the program, and no other read.
    assert_eq!((c["controller_read_requests"], c["fills"], c["fill_reads"]), (1, 1, 1));
    // The fall through all levels, a message to the core, one with the commit, the acknowledgement.
    let caches = config.get::<L1Config>().latency_cycles
        + config.get::<L2Config>().latency_cycles
        + config.get::<LlcConfig>().latency_cycles;
    let messages = 3 * config.get::<ControllerConfig>().bypass_cycles;
    assert_eq!(simulation.stats().commit_latency.max(), u64::from(caches + messages));
}

#[test]
fn lines_leave_the_l1_at_the_flush_interval() {
    let latency = |interval: &str| {
        let ops = [load(A), load(A + 64), load(A + 128), BEGIN, store(A, 1), store(A + 64, 1)];
        let ops = [&ops[..], &[store(A + 128, 1), END]].concat();
        stats(&[("osp.flush_interval_cycles", interval)], &[&ops]).commit_latency.max()
    };
    assert_eq!(latency("20"), latency("0") + 2 * 20);
}

#[test]
fn a_line_that_is_evicted_before_its_commit_goes_to_the_shadow_and_is_read_from_there() {
    let ops = [BEGIN, store(A, 1), evict(A), load(A), END, evict(A), load(A), SETTLE];
    let simulation = run(&[], &[&ops]);
    let c = &simulation.counts();
    assert_eq!(reached(&simulation, "evicted-before-commit"), 1);
    assert_eq!(reached(&simulation, "read-from-shadow"), 2);
    assert_eq!((c["fills"], c["fill_reads"], c["reads_checked"]), (3, 3, 3));
    // What has left before need not be flushed.
    assert_eq!((c["forced_writebacks"], c["controller_write_requests_data"]), (0, 1));
}

#[test]
fn every_second_commit_of_a_line_is_at_home() {
    let once = [BEGIN, store(A, 1), END, evict(A), load(A)];
    let twice = [&once[..], &[BEGIN, store(A, 2), END, evict(A), load(A)]].concat();
    assert_eq!(reached(&run(&[], &[&once]), "read-from-shadow"), 1);
    assert_eq!(reached(&run(&[], &[&twice]), "read-from-shadow"), 1, "the second was at home");
}

/// Claim `hoop-writes-osp`: whole lines, and 128 bits for each page and commit.
#[test]
fn a_commit_of_several_pages_is_one_record() {
    for (pages, lines) in [(2, 1), (4, 1), (5, 2), (9, 3)] {
        let mut ops = vec![BEGIN];
        ops.extend((0..pages).map(|page| store(A + page * 4096, page + 1)));
        ops.extend([END, SETTLE]);
        let simulation = run(&[], &[&ops]);
        let c = &simulation.counts();
        assert_eq!(c["log_entries"], pages);
        assert_eq!(c["controller_write_requests_metadata"], pages + lines, "home words and record");
        assert_eq!(c["log_bytes_written"], pages * (8 + 16));
        assert_eq!(reached(&simulation, "record-of-lines"), u64::from(lines > 1));
        assert_eq!(c["mapping_entries_max"], pages);
    }
}

fn await_signal(number: u32) -> Op {
    Op::Disturb(Disturbance::Await(number))
}

fn signal(number: u32) -> Op {
    Op::Disturb(Disturbance::Signal(number))
}

/// Claims `hoop-thr-osp`, `hoop-lat-osp`: what HOOP charges OSP with on multicore machines.
#[test]
fn a_commit_shoots_down_the_other_cores_translations_of_its_pages() {
    let first = [BEGIN, store(A, 1), END, signal(1), compute(100_000)];
    let two = [store(A + 64, 1), store(A + 128, 1)];
    let second =
        [&[load(A + 64), load(A + 128), await_signal(1), BEGIN], &two[..], &[END]].concat();
    let with = |shootdown: &str, wait: &str| {
        let settings = [
            ("osp.shootdown", shootdown),
            ("osp.shootdown_cycles", "70"),
            ("osp.shootdown_wait_cycles", wait),
        ];
        let stats = stats(&settings, &[&first, &second]);
        let c = &stats.counters;
        (
            c["interrupts"],
            c["stall_interrupt_cycles"],
            stats.commit_latency.max(),
            c["lines_remapped"],
        )
    };
    let (interrupts, cycles, never, flips) = with("never", "300");
    assert_eq!((interrupts, cycles, flips), (0, 0, 3));
    assert_eq!(with("commit", "300"), (1, 70, never + 300, 3));
    assert_eq!(with("commit", "0"), (1, 70, never, 3));
    // At a store, which the first core's translation does not survive; the second finds none.
    let (interrupts, cycles, _, _) = with("store", "300");
    assert_eq!((interrupts, cycles), (1, 70));
}

#[test]
fn a_translation_that_was_shot_down_is_fetched_again() {
    let again = [BEGIN, store(A, 2), END];
    let first = [&[BEGIN, store(A, 1), END, signal(1), await_signal(2)], &again[..]].concat();
    let second = [await_signal(1), BEGIN, store(A + 64, 1), END, signal(2)];
    let misses = |shootdown| {
        let settings = [("osp.shootdown", shootdown)];
        stats(&settings, &[&first, &second]).counters["translation_misses"]
    };
    assert_eq!(misses("never"), 2);
    assert_eq!(misses("commit"), 3);
}

#[test]
fn a_tlb_miss_takes_the_time_of_fetching_the_metadata() {
    let ops = |n: u64| {
        let mut ops = vec![load(A), load(B), BEGIN];
        ops.extend((0..n).map(|i| store(if i % 2 == 0 { A } else { B }, i + 1)));
        ops.extend([END, SETTLE]);
        ops
    };
    let with = |entries: &str, cycles: &str, n| {
        let settings = [("osp.tlb_entries", entries), ("osp.metadata_cycles", cycles)];
        let stats = stats(&settings, &[&ops(n)]);
        (stats.counters["translation_misses"], stats.transaction_latency.max())
    };
    assert_eq!((with("2", "0", 20).0, with("1", "0", 20).0), (2, 20));
    let (misses, slow) = with("1", "100", 20);
    // The store after a miss waits; the last one's is waited for at the end of the transaction.
    assert!(slow - with("1", "0", 20).1 >= (misses - 1) * 99, "{slow}");
    assert!(slow - with("1", "0", 20).1 <= misses * 100, "{slow}");
}

#[test]
fn a_flip_takes_its_time() {
    let ops = [load(A), load(A + 64), BEGIN, store(A, 1), store(A + 64, 1), END, SETTLE];
    let latency = |cycles| {
        let settings = [("osp.flip_cycles", cycles), ("osp.metadata_cycles", "0")];
        stats(&settings, &[&ops]).transaction_latency.max()
    };
    let more = latency("101") - latency("1");
    assert!((100..=200).contains(&more), "{more}");
}

#[test]
fn the_journal_comes_round_when_checkpoints_have_made_room() {
    let mut ops = Vec::new();
    for i in 0..20 {
        ops.extend([BEGIN, store(A, i + 1), END]);
    }
    let settings = [("osp.journal_bytes", "64"), ("osp.checkpoint_percent", "75")];
    let simulation = run(&settings, &[&ops]);
    let c = &simulation.counts();
    assert_eq!(c["log_entries"], 20);
    assert_eq!(reached(&simulation, "journal-wrapped"), 16);
    assert!(c["log_records_truncated"] >= 16, "{}", c["log_records_truncated"]);
    // Three of four entries are used when one begins.
    assert_eq!((c["gc_passes"], c["gc_on_demand"]), (6, 0));
    assert_eq!(c["controller_write_requests_gc"], 12, "one line of the table each, and the header");
    // Nothing is checkpointed before its time.
    assert_eq!(stats(&[], &[&ops]).counters["gc_passes"], 0);
}

#[test]
fn a_commit_waits_for_room_in_the_journal() {
    let two_pages = [BEGIN, store(A, 1), store(B, 1), store(C, 1), END];
    let ops = [&two_pages[..], &[BEGIN, store(A, 2), store(B, 2), END, SETTLE]].concat();
    let settings = [("osp.journal_bytes", "64"), ("osp.checkpoint_percent", "100")];
    let without_adr = [&settings[..], &[("controller.adr", "false")]].concat();
    let simulation = run(&without_adr, &[&ops]);
    let c = &simulation.counts();
    assert_eq!(reached(&simulation, "journal-full"), 1);
    assert_eq!((c["gc_passes"], c["gc_on_demand"]), (1, 1));
    assert!(c["gc_stall_cycles"] > 0);
}

#[test]
fn a_page_that_no_tlb_holds_is_copied_home() {
    let first = [BEGIN, store(A, 1), store(A + 64, 1), store(A + 640, 1), END];
    let ops = [&first[..], &[BEGIN, store(B, 1), END, SETTLE, load(C)]].concat();
    let with = |consolidation: &str| {
        let settings = [("osp.tlb_entries", "1"), ("osp.consolidation", consolidation)];
        let simulation = run(&settings, &[&ops]);
        let c = simulation.counts();
        assert_eq!(c["mapping_entries_max"], 2);
        (
            c["gc_passes"],
            c["gc_words_migrated"],
            c["controller_write_requests_gc"],
            c["log_entries"],
        )
    };
    // Three lines home, and a journal entry beside those of the two commits.
    assert_eq!(with("inactive"), (1, 24, 3, 3));
    assert_eq!(with("demand"), (0, 0, 0, 2));
}

#[test]
fn a_page_that_is_at_home_is_free_without_a_copy() {
    let twice = [BEGIN, store(A, 1), END, BEGIN, store(A, 2), END];
    let ops = [&twice[..], &[BEGIN, store(B, 1), END, SETTLE]].concat();
    let simulation = run(&[("osp.tlb_entries", "1")], &[&ops]);
    assert_eq!(simulation.counts()["gc_passes"], 0);
    assert_eq!(reached(&simulation, "freed-uncopied"), 1);
}

#[test]
fn lines_are_copied_home_so_many_at_a_time() {
    let mut ops = vec![BEGIN];
    ops.extend((0..32).map(|i| store(A + i * 64, 1)));
    ops.extend([END, BEGIN, store(B, 1), END, SETTLE, compute(1)]);
    let cycles = |lines| {
        let settings = [("osp.tlb_entries", "1"), ("osp.copies_in_flight", lines)];
        let stats = stats(&settings, &[&ops]);
        assert_eq!(stats.counters["gc_words_migrated"], 32 * 8);
        stats.counters["cycles"]
    };
    assert!(cycles("1") > cycles("8"));
}

#[test]
fn a_store_without_a_shadow_page_waits_for_the_page_not_stored_to_for_longest() {
    let tx = |addr| [BEGIN, store(addr, 1), END];
    let ops = [tx(A), tx(B), tx(C)].concat();
    let simulation = run(&[("osp.shadow_pages", "2")], &[&ops]);
    let c = &simulation.counts();
    assert_eq!(reached(&simulation, "store-waits-for-page"), 1);
    assert_eq!(reached(&simulation, "shadow-page-reused"), 1);
    assert_eq!((c["gc_passes"], c["gc_on_demand"], c["gc_words_migrated"]), (1, 1, 8));
    assert!(c["gc_stall_cycles"] > 0);
    assert_eq!(c["mapping_entries_max"], 2);
}

#[test]
fn transactions_that_need_more_shadow_pages_than_there_are_end_the_run_with_the_reason() {
    let config = config(&[("osp.shadow_pages", "1")]);
    let ops = [BEGIN, store(A, 1), store(B, 1), END];
    let error = script_on(&config, "osp", &[&ops]).run().expect_err("too many");
    let SimError::Design { design: "osp", why } = &error else { panic!("{error}") };
    assert!(why.contains("osp.shadow_pages = 1"), "{why}");
}

#[test]
fn a_record_longer_than_the_journal_ends_the_run_with_the_reason() {
    let config = config(&[("osp.journal_bytes", "64")]);
    let mut ops = vec![BEGIN];
    ops.extend((0..5).map(|page| store(A + page * 4096, 1)));
    ops.push(END);
    let error = script_on(&config, "osp", &[&ops]).run().expect_err("too long");
    let SimError::Design { design: "osp", why } = &error else { panic!("{error}") };
    assert!(why.contains("changes 5 pages") && why.contains("osp.journal_bytes"), "{why}");
}

#[test]
fn what_cannot_work_is_refused() {
    let why = refusal(&tiny_config(&[("osp.shadow_pages", "1024")]), "osp");
    assert!(why.contains("osp.shadow_pages") && why.contains("pm.log_region_bytes"), "{why}");
    let why = refusal(&tiny_config(&[("osp.page_bytes", "3 KB")]), "osp");
    assert!(why.contains("power of two"), "{why}");
}

#[test]
fn a_commit_leaves_the_words_of_another_open_transaction_out() {
    let first = [load(A), BEGIN, store(A, 1), signal(1), await_signal(2), END, signal(3)];
    let second = [await_signal(1), BEGIN, store(A + 8, 1), signal(2), await_signal(3), END];
    let simulation = run(&[], &[&first, &second]);
    let c = &simulation.counts();
    assert_eq!(reached(&simulation, "shared-line-committed"), 1);
    // The program's miss, and the committed line; the first flip, and the one at the commit.
    assert_eq!((c["controller_read_requests"], c["fills"], c["lines_remapped"]), (2, 1, 2));
    assert_eq!(c["controller_write_requests_data"], 2);
}

#[test]
fn what_the_papers_leave_out_is_shown_by_the_shortest_programs() {
    demand_of_programs(&[
        include_str!("../../../../litmus/osp/line-committed-whole.litmus"),
        include_str!("../../../../litmus/osp/shared-line-evicted.litmus"),
    ]);
}

const PAGES: &[(&str, &str)] = &[
    ("controller.write_queue_entries", "4"),
    ("pm.buffer_lines", "2"),
    ("osp.page_bytes", "128 B"),
    ("osp.shadow_pages", "128"),
    ("osp.tlb_entries", "2"),
    ("osp.journal_bytes", "1 KB"),
];

const CAMPAIGN: Campaign = Campaign {
    workload: &SHARED_LINES,
    settings: PAGES,
    transactions: 56,
    first_transaction: 0,
    runs: 4,
};

#[test]
fn no_crash_point_of_any_machine_breaks_a_promise() {
    const MACHINES: [&[(&str, &str)]; 4] = [
        PAGES,
        &[
            ("controller.adr", "false"),
            ("pm.buffer_lines", "0"),
            ("osp.page_bytes", "256 B"),
            ("osp.shadow_pages", "12"),
            ("osp.journal_bytes", "256 B"),
            ("osp.shootdown", "store"),
        ],
        &[
            ("controller.channels", "4"),
            ("controller.interleave", "line"),
            ("osp.page_bytes", "128 B"),
            ("osp.tlb_entries", "1"),
            ("osp.consolidation", "demand"),
            ("osp.shadow_pages", "28"),
            ("osp.journal_bytes", "512 B"),
        ],
        &[
            ("l1.bytes", "128 B"),
            ("l1.ways", "1"),
            ("l2.bytes", "256 B"),
            ("llc.bytes", "2 KB"),
            ("osp.tlb_entries", "1"),
            ("osp.page_bytes", "512 B"),
            ("osp.journal_bytes", "128 B"),
            ("osp.shootdown", "never"),
        ],
    ];
    let osp = find("osp").expect("registered");
    let mut reached = vec![0; osp.cover_points.len()];
    for settings in MACHINES {
        let found = Campaign { settings, ..CAMPAIGN }.examine(osp, MutantSet::NONE);
        assert_eq!(found.what(), None, "{settings:?}");
        assert!(found.tally.torn > 1000 && found.tally.in_flight > 400, "{:?}", found.tally);
        reached.iter_mut().zip(&found.cover_points).for_each(|(sum, n)| *sum += n);
    }
    // Swaps all over an array of more pages than there are shadow pages.
    let settings = &[
        ("workload.footprint_bytes", "256 KB"),
        ("osp.shadow_pages", "20"),
        ("osp.consolidation", "demand"),
    ];
    let workload = registry().find_workload("sps").expect("registered");
    let found = Campaign { workload, settings, ..CAMPAIGN }.examine(osp, MutantSet::NONE);
    assert_eq!(found.what(), None, "{settings:?}");
    reached.iter_mut().zip(&found.cover_points).for_each(|(sum, n)| *sum += n);
    let missed = osp.cover_points.iter().zip(&reached).filter(|&(_, &n)| n == 0);
    let missed: Vec<&str> = missed.map(|(cover, _)| cover.name).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
}

/// Lines are the papers' granularity. It is enough as long as no two open transactions share one.
#[test]
fn the_literal_design_loses_data_where_lines_are_shared() {
    let literal = find("osp-literal").expect("registered");
    assert!(CAMPAIGN.examine(literal, MutantSet::NONE).violation.is_some(), "lines are shared");
    let settings = &[("osp.tlb_entries", "2"), ("osp.journal_bytes", "1 KB")];
    let own_lines = Campaign { workload: &CELLS, settings, runs: 2, ..CAMPAIGN };
    assert_eq!(own_lines.examine(literal, MutantSet::NONE).what(), None);
}
