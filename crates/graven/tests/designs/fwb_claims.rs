//! What FWB (HPCA'18) prints that can be checked without a workload of its own, claim by claim: its machine, its
//! hardware, and its worked examples.
//!
//! Bug class: a preset, a bit layout or an order that the paper states is another one here.
//!
//! Elsewhere: the record's fields (`fwb-entry-fields`) in `designs/fwb/record.rs`; the log's size (`fwb-log-64k-4mb`), ids
//! (`fwb-txid-256`) in `designs/fwb/log.rs`; the state machine (`fwb-fsm`), the interval of scans (`fwb-freq-3m-cycles`,
//! `fwb-freq-trend`) and the log's lifetime (`fwb-log-lifetime-15-days`) in `designs/force_write_back.rs`; the bound
//! of the log buffer (`fwb-bound-15-entries`) in `fwb.rs`.

use crate::common::find;
use crate::common::registry;
use crate::common::script::{load, script_on, settle, transaction};
use crate::common::statistics;
use std::collections::BTreeSet;

use crate::common::{CELLS, changed, programs, refusal, simulation, test_workload, tiny_config};
use graven::config::{
    Config, ControllerConfig, CoreConfig, CoreModel, L1Config, L2Config, LlcConfig, PmConfig, Size,
};
use graven::cost::Sheet;
use graven::lab::campaign::guarantee_text;

use graven::memory::{Addr, Image, words_in};
use graven::program::{Load, Memory, Ptr, spawn};
use graven::sim::Simulation;
use graven::trace_event::TraceEvent;
use graven::workload::WorkloadInfo;

fn machine() -> Config {
    registry().machine("fwb").expect("the preset loads")
}

// ---- Table II --------------------------------------------------------------------------------

/// `fwb-cfg-cores`, `fwb-cfg-dl1`, `fwb-cfg-l2`. Instruction caches (`fwb-cfg-il1`) and the processor's power
/// (`fwb-cfg-power`) are not modelled.
#[test]
fn cores_and_caches_are_those_of_table_ii() {
    let config = machine();
    let core = config.get::<CoreConfig>();
    assert_eq!((core.count, core.frequency_mhz, core.threads_per_core), (4, 2500, 2));
    assert_eq!(core.model, CoreModel::OutOfOrder);
    let (l1, llc) = (config.get::<L1Config>(), config.get::<LlcConfig>());
    let cycles = |ns: f64| (ns * 2.5).round() as u32;
    assert_eq!((l1.bytes, l1.ways, l1.latency_cycles), (Size::kb(32), 8, cycles(1.6)));
    assert_eq!((llc.bytes, llc.ways, llc.latency_cycles), (Size::mb(8), 16, cycles(4.4)));
    assert_eq!(config.get::<L2Config>().bytes, Size(0), "two levels");
}

/// `fwb-cfg-mc`, `fwb-cfg-nvram`, `fwb-cfg-nvram-latency`, `fwb-cfg-energy-rowbuffer`, `fwb-cfg-energy-array`.
#[test]
fn controller_and_memory_are_those_of_table_ii() {
    let config = machine();
    let (controller, pm) = (config.get::<ControllerConfig>(), config.get::<PmConfig>());
    assert_eq!((controller.read_queue_entries, controller.write_queue_entries), (64, 64));
    assert_eq!((pm.capacity_bytes, pm.banks, pm.row_bytes), (Size::gb(8), 8, Size::kb(2)));
    assert_eq!((pm.row_hit_ns, pm.read_ns, pm.write_ns), (36.0, 100.0, 300.0));
    assert_eq!((pm.row_read_pj_per_bit, pm.row_write_pj_per_bit), (0.93, 1.02));
    assert_eq!((pm.array_read_pj_per_bit, pm.array_write_pj_per_bit), (2.47, 16.82));
}

/// `fwb-cfg-threads` (§VI-A): one, two, four and eight threads.
#[test]
fn the_machine_runs_up_to_eight_threads() {
    for threads in [1, 2, 4, 8] {
        let mut run = simulation(&machine(), "fwb", &CELLS, threads, 160, 1);
        run.run().unwrap_or_else(|e| panic!("{threads} threads: {e}"));
        assert_eq!(run.counts()["committed_transactions"], 160, "{threads} threads");
        let busy = run.stats().core_instructions.iter().filter(|&&n| n > 0).count();
        assert_eq!(busy, threads.min(4) as usize, "eight threads are two on each core");
    }
    let error = registry().spec(machine(), "fwb", "hash", Some(9), Some(1), 0).map(|_| ());
    assert!(error.is_err(), "a ninth thread has no place");
}

// ---- Table I ---------------------------------------------------------------------------------

/// `fwb-tab1-fwb-bits`: a bit per line. The paper prints 768 B, which are the lines of 384 KB of cache; its own caches
/// have 2,080 lines of 64 B for each of these bytes and more.
#[test]
fn a_bit_per_line_of_the_caches_is_more_than_table_i_says() {
    let caches = simulation(&machine(), "fwb", &CELLS, 1, 1, 0);
    let caches = &caches.machine().caches;
    let lines: usize = (0..caches.cache_count()).map(|c| caches.cache(c).slots()).sum();
    let entry = find("fwb").unwrap_or_else(|e| panic!("{e}"));
    let sheet = Sheet::of(registry(), entry, machine()).unwrap_or_else(|e| panic!("{e}"));
    let bits = sheet.item("fwb-bits").map(|item| item.bits_built());
    assert_eq!(bits, Some(lines as f64), "a bit for each line that the simulated caches have");
    assert_eq!(lines / 8, 16_640, "the L2's 16,384 B and 256 B of the data L1s");
}

/// `fwb-nonpers-ideal-def` (§VI), as far as hardware logs: hwl logs both values, hw-rlog and hw-ulog one, and what
/// forces lines home. On the paper's machine commits are instant (§III-D), so that the last of them may be lost.
#[test]
fn the_baselines_are_what_the_paper_says_they_are() {
    let expected = [
        ("fwb", "both", "scan", ["prefix", "durable"]),
        ("hwl", "both", "clwb", ["prefix", "durable"]),
        ("hw-rlog", "redo", "none", ["none"; 2]),
        ("hw-ulog", "undo", "none", ["none"; 2]),
    ];
    let mut strict = machine();
    strict.set("fwb.instant_commit", "false").unwrap_or_else(|e| panic!("{e}"));
    for (name, values, write_back, guarantees) in expected {
        let design = find(name).expect("registered");
        let annotations = design.configured(machine()).annotations();
        let of = |key: &str| annotations.iter().find(|a| a.key == key).map(|a| a.value.as_str());
        assert_eq!(of("fwb.log_values"), Some(values), "{name}");
        assert_eq!(of("fwb.write_back"), Some(write_back), "{name}");
        assert_eq!(of("fwb.log_buffer_entries"), Some("15"), "{name}");
        let guaranteed =
            [machine(), strict.clone()].map(|config| guarantee_text(design.guarantee_in(&config)));
        assert_eq!(guaranteed, guarantees, "{name}");
    }
}

#[test]
fn records_of_one_value_are_refused_where_they_have_no_layout() {
    let with = |settings: &[(&str, &str)]| tiny_config(settings);
    let why = refusal(&with(&[("fwb.slot_bytes", "16"), ("fwb.record_format", "word")]), "fwb");
    assert!(why.contains("16 for records of lines and of one value"), "{why}");
    // Where logs are packed, those of one value are not.
    for packing in ["always", "never"] {
        let config = with(&[("fwb.log_values", "redo"), ("pm.log_packing", packing)]);
        let mut run = simulation(&config, "fwb", &CELLS, 1, 20, 1);
        run.run().unwrap_or_else(|e| panic!("{packing}: {e}"));
        let metadata = run.counts()["controller_write_requests_metadata"];
        assert!(metadata <= 20, "{packing}: blocks of metadata");
    }
}

/// Half the bytes of a record of both values, and as many records.
#[test]
fn records_of_one_value_are_half_as_long() {
    let written = |design| {
        let config = tiny_config(&[("fwb.record_format", "word")]);
        let mut run = simulation(&config, design, &CELLS, 4, 200, 3);
        let digest = run.run().unwrap_or_else(|e| panic!("{e}"));
        let c = run.counts();
        assert_eq!(
            c["log_entries"] + c["log_entries_merged"],
            c["transactional_stores"],
            "{design}"
        );
        let records = c["log_entries"] + c["committed_transactions"];
        (digest, c["log_bytes_written"] as f64 / records as f64)
    };
    let (fwb, bytes) = written("fwb");
    assert!((32.0..33.0).contains(&bytes), "{bytes}: heads are among them");
    for design in ["hw-rlog", "hw-ulog"] {
        let (digest, bytes) = written(design);
        assert_eq!(digest, fwb, "{design}");
        // Nobody waits for the last ones, which are in the buffer when the last thread has ended.
        assert!((15.9..=16.0).contains(&bytes), "{design}: {bytes}");
    }
}

/// §III-E, step 6: "The log buffer coalesces the log updates of any writes to the same cache line". A line of eight words
/// has a header of 16 B and 128 B of old and new words, against eight records of 32 B; a commit record is a slot.
#[test]
fn words_of_a_line_share_a_header() {
    let line: Vec<(u64, u64)> = (0..8).map(|word| (4096 + 8 * word, word + 1)).collect();
    let program = [vec![load(4096)], transaction(&line), vec![settle()]].concat();
    let logged = |format: &str, slot_bytes: &str| {
        let settings = [("fwb.record_format", format), ("fwb.slot_bytes", slot_bytes)];
        let mut run = script_on(&tiny_config(&settings), "fwb", &[&program]);
        run.run().unwrap_or_else(|e| panic!("{e}"));
        let c = run.counts();
        (c["log_entries"], c["log_words_joined"], c["log_bytes_written"])
    };
    assert_eq!(logged("word", "32"), (8, 0, 8 * 32 + 32));
    assert_eq!(logged("line", "16"), (1, 7, 144 + 16));
    // 144 B are five slots of 32 B, and three of 64 B.
    assert_eq!(logged("line", "32"), (1, 7, 160 + 32));
    assert_eq!(logged("line", "64"), (1, 7, 192 + 64));
}

// ---- orders ----------------------------------------------------------------------------------

/// Each thread stores ascending values to words of its own in lines that all share, and now and then has many
/// others displace them.
static ASCENDING: WorkloadInfo = test_workload("ascending", "ascending values", |request| {
    programs(
        request,
        |_, _| (),
        |request, thread| {
            let (start, transactions) = (request.start, request.transactions_of(thread));
            spawn(move |memory| {
                let mut value = first_value(thread);
                for number in 0..transactions {
                    memory.tx_begin();
                    for i in 0..6 {
                        let line = (number * 7 + i * 5) % 48;
                        value += 1;
                        memory.store(Ptr::known(start.plus(line * 64)).word(thread.into()), value);
                    }
                    memory.tx_end();
                }
            })
        },
    )
});

/// Values of a thread begin here; initial words are 0.
fn first_value(thread: u32) -> u64 {
    u64::from(thread + 1) << 32
}

const LOG_BYTES: u64 = 64 << 10;

/// Runs it with a record for each word, and returns what happened, where the log begins, and the simulation.
fn ascending(design: &str, settings: &[(&str, &str)]) -> (Vec<TraceEvent>, Addr, Simulation) {
    let log = [
        ("fwb.log_bytes", "64 KB"),
        ("fwb.scan_interval_cycles", "2000"),
        ("fwb.record_format", "word"),
    ];
    let config = tiny_config(&[&log, settings].concat());
    let mut run = simulation(&config, design, &ASCENDING, 4, 200, 1);
    graven::lab::checker::attach(&mut run);
    run.keep_trace();
    let mut trace = Vec::new();
    let mut cycle = 0;
    while !run.advance(cycle).unwrap_or_else(|e| panic!("{e}")) {
        trace.extend(run.take_trace().into_iter().map(|(_, what)| what));
        cycle += 1000;
    }
    trace.extend(run.take_trace().into_iter().map(|(_, what)| what));
    let log = run.data_region().1;
    (trace, log, run)
}

const LOW_63: u64 = !0 >> 1;
const LOW_48: u64 = (1 << 48) - 1;

/// Machines on which records and data take ways of different lengths.
const MACHINES: [&[(&str, &str)]; 4] = [
    &[],
    &[("controller.adr", "false"), ("pm.buffer_lines", "0")],
    &[("controller.adr", "false"), ("controller.channels", "4"), ("controller.interleave", "line")],
    &[("core.count", "2"), ("core.threads_per_core", "2"), ("controller.adr", "false")],
];

/// `fwb-log-before-data` (§III-E, §IV-C): no word is durable at home before its record is in the log.
#[test]
fn a_record_is_durable_before_its_data() {
    for design in ["fwb", "hwl"] {
        for settings in MACHINES {
            let (trace, log, run) = ascending(design, settings);
            let end = log.plus(LOG_BYTES);
            let mut image = Image::default();
            let (mut in_log, mut at_home) = (BTreeSet::new(), 0);
            for what in trace {
                let TraceEvent::Durable { line, mask, new, .. } = what else { continue };
                for word in words_in(mask) {
                    image.store(line.word(word), new[word]);
                }
                if line.addr() < log {
                    for word in words_in(mask).filter(|&word| new[word] != 0) {
                        at_home += 1;
                        let said = in_log.contains(&(line.word(word).0, new[word]));
                        assert!(said, "{design}: {:#x} at {}", new[word], line.word(word));
                    }
                } else if line.addr() > log && line.addr() < end {
                    for slot in [line.addr(), line.addr().plus(32)] {
                        let [addr, redo] = [8, 24].map(|at| image.load(slot.plus(at)));
                        in_log.insert((addr & LOW_48, redo & LOW_63));
                    }
                }
            }
            let c = &run.counts();
            assert!(
                at_home > 300 && c["log_entries"] > 1000,
                "{design}: {at_home} words came home"
            );
        }
    }
}

/// `fwb-fifo-commit-order` (§III-D): records lie in the log in the order of the stores.
#[test]
fn records_lie_in_the_order_of_the_stores() {
    for design in ["fwb", "hwl"] {
        for settings in MACHINES {
            let no_merges = [settings, &[("fwb.log_buffer_entries", "0")]].concat();
            let (trace, log, _) = ascending(design, &no_merges);
            let stores = trace.iter().filter_map(|what| match what {
                TraceEvent::Store { addr, new, .. } => Some((addr.0, *new)),
                _ => None,
            });
            let mut image = Image::default();
            for what in &trace {
                let TraceEvent::Durable { line, mask, new, .. } = what else { continue };
                for word in words_in(*mask) {
                    image.store(line.word(word), new[word]);
                }
            }
            let slots = (0..2047).map(|i| log.plus(64 + i * 32));
            let entries = slots
                .map(|slot| [0, 8, 24].map(|at| image.load(slot.plus(at))))
                .filter(|[first, ..]| first >> 24 & 3 == 1)
                .map(|[_, addr, redo]| (addr & LOW_48, redo & LOW_63));
            let stores: Vec<(u64, u64)> = stores.collect();
            assert_eq!(stores.len(), 1200);
            assert!(entries.eq(stores), "{design}: another order");
        }
    }
}

/// Three transactions of a store each.
static THREE: WorkloadInfo = test_workload("three", "three transactions", |request| {
    programs(
        request,
        |_, _| (),
        |request, _thread| {
            let start = request.start;
            spawn(move |memory| {
                for number in 0..3 {
                    memory.tx_begin();
                    memory.store(Ptr::known(start.plus(number * 64)), number + 1);
                    memory.tx_end();
                }
                memory.compute(2000);
            })
        },
    )
});

/// `fwb-log-overwrite-example` (§II-C, Fig. 2(b)): a log for the records of two transactions. When the third overwrites
/// those of the first, what that one wrote is in memory.
#[test]
fn the_third_transaction_waits_until_the_first_is_home() {
    let roomy = [("l1.bytes", "32 KB"), ("l2.bytes", "64 KB"), ("llc.bytes", "1 MB")];
    for design in ["fwb", "hwl"] {
        let log = [("fwb.log_bytes", "192"), ("fwb.scan_interval_cycles", "1000000000")];
        let config = tiny_config(&[roomy.as_slice(), &log].concat());
        let mut run = simulation(&config, design, &THREE, 1, 3, 0);
        graven::lab::checker::attach(&mut run);
        let (home, log) = run.data_region();
        let (mut overwritten, mut cycle) = (false, 0);
        while !run.advance(cycle).unwrap_or_else(|e| panic!("{design}: {e}")) {
            cycle += 1;
            let crash = run.crash();
            if crash.image.peek(log.plus(64 + 8)) & LOW_48 == home.plus(128).0 {
                overwritten = true;
                assert_eq!(crash.image.peek(home), 1, "{design}, cycle {cycle}: A is home");
            }
        }
        assert!(overwritten, "{design}: the third transaction's record is in the first slot");
        // hwl's head has moved before anybody had to wait.
        let waits = run.counts()["log_overflows"] > 0;
        assert_eq!(waits, design == "fwb", "{design}");
    }
}

// ---- hardware threads --------------------------------------------------------------------------

/// Table II's four cores of two threads each, eight threads: every design runs there, and leaves the same data.
#[test]
fn every_design_runs_eight_threads_on_four_cores() {
    let threads = [
        ("pm.log_region_bytes", "64 MB"),
        ("pm.capacity_bytes", "256 MB"),
        ("controller.adr_entries", "1024"),
        ("fwb.log_buffer_entries", "15"),
        ("hoop.block_bytes", "256 KB"),
        ("morlog.undo_redo_entries", "14"),
    ];
    let config = changed(machine(), &threads);
    let mut digests = BTreeSet::new();
    for design in registry().designs() {
        let mut run = simulation(&config, design.name, &CELLS, 8, 160, 1);
        digests.insert(run.run().unwrap_or_else(|e| panic!("{}: {e}", design.name)));
        let stats = statistics(&run);
        assert_eq!(stats.counters["committed_transactions"], 160, "{}", design.name);
        assert!(stats.core_instructions.iter().all(|&n| n > 0), "{}", design.name);
    }
    assert_eq!(digests.len(), 1, "all leave the same data");
}

// ---- scans -------------------------------------------------------------------------------------

/// `fwb-scan-overhead` (§VI-A): what a scan costs is not derivable from the paper's numbers. A tag per cycle takes 4.4 % of
/// three million cycles for the 8 MB cache alone, which is what a program would lose that needs it all the time, if a
/// scan keeps everybody out; the paper says 3.6 %.
#[test]
fn scans_keep_accesses_waiting_as_far_as_they_are_told_to() {
    let run = |port: &str, tags: &str| {
        let scans = [
            ("fwb.scan_port", port),
            ("fwb.scan_tags_per_cycle", tags),
            ("fwb.scan_interval_cycles", "300000"),
            // Which rows are open depends on when the lines come; here time is to depend on the waits alone.
            ("pm.row_writes", "program"),
        ];
        let config = changed(machine(), &scans);
        let mut simulation = simulation(&config, "fwb", &CELLS, 4, 4000, 1);
        let digest = simulation.run().unwrap_or_else(|e| panic!("{e}"));
        (digest, simulation.counts())
    };
    let [own, set, cache] = ["own", "set", "cache"].map(|port| run(port, "1"));
    assert_eq!((own.0, own.0), (set.0, cache.0), "time alone differs");
    let ([own, set, cache], lines) = ([own.1, set.1, cache.1], 131_072);
    assert!(own["scans"] > 2 && own["cycles"] / own["scans"] >= 300_000, "{} scans", own["scans"]);
    assert_eq!((own["tag_port_waits"], own["tag_port_wait_cycles"]), (0, 0));
    assert!(set["tag_port_waits"] > 100, "{}", set["tag_port_waits"]);
    let mean = set["tag_port_wait_cycles"] as f64 / set["tag_port_waits"] as f64;
    assert!((1.0..=16.0).contains(&mean), "a set of the last cache has 16 tags: {mean}");
    assert!(cache["tag_port_wait_cycles"] > cache["tag_port_waits"] * 16);
    assert!(cache["tag_port_wait_cycles"] <= cache["tag_port_waits"] * lines);
    assert!(own["cycles"] < cache["cycles"], "{} {}", own["cycles"], cache["cycles"]);
}
