//! FWB as MorLog compares with it: packed records, CRADE or SLDE, a buffer that is too large.
//!
//! Bug class: a variant is not what MorLog §VI-A says it is, or logs more or less than its mechanism should.

use crate::common::find;
use crate::common::registry;
use crate::common::{CELLS, counts_of, machine, simulation, test_workload, tiny_config};
use graven::config::ConfigError;
use graven::design::Guarantee;

use graven::memory::{Addr, Image};

use graven::program::{Load, Memory, Program, Ptr, spawn};
use graven::sim::Simulation;
use graven::stats::Counts;
use graven::workload::{BrokenInvariant, Request, Workload, WorkloadInfo};

const VARIANTS: [&str; 3] = ["fwb-crade", "fwb-unsafe", "fwb-slde"];

/// One thread that brings a few lines into its L1, waits, and runs one transaction, whose stores the seed says.
struct Steps {
    start: Addr,
    stores: Vec<(u64, u64)>,
}

const WORDS: u64 = 64;

/// What a word holds at first: nothing that FPC has a pattern for.
fn initial(word: u64) -> u64 {
    (word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Workload for Steps {
    fn populate(&self, image: &mut Image) {
        for i in 0..WORDS {
            image.store(Ptr::known(self.start).word(i).addr, initial(i));
        }
    }

    fn program(&self, _thread: u32) -> Box<dyn Program> {
        let (at, stores) = (Ptr::known(self.start), self.stores.clone());
        spawn(move |memory| {
            for i in 0..WORDS {
                memory.load(at.word(i));
            }
            memory.tx_begin();
            stores.iter().for_each(|&(word, value)| memory.store(at.word(word), value));
            memory.tx_end();
            memory.compute(10_000);
        })
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// A word, so many others, and the word again, each with a new value.
static AT_A_DISTANCE: WorkloadInfo =
    test_workload("at-a-distance", "two stores to a word with others between", |request| {
        build(request, distance(request.seed))
    });

/// Every word is stored what it holds.
static SILENT: WorkloadInfo = test_workload("silent", "stores that change nothing", |request| {
    build(request, (0..16).map(|i| (i, initial(i))).collect())
});

/// Every word is stored something else, and at once what it held.
static THERE_AND_BACK: WorkloadInfo =
    test_workload("there-and-back", "stores that are taken back", |request| {
        build(request, (0..16).flat_map(|i| [(i, 99), (i, initial(i))]).collect())
    });

fn build(request: &Request, stores: Vec<(u64, u64)>) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(Steps { start: request.start, stores }))
}

fn distance(between: u64) -> Vec<(u64, u64)> {
    let others = (1..=between).map(|i| (i, initial(i) ^ 0xff00));
    [(0, initial(0) ^ 1)].into_iter().chain(others).chain([(0, initial(0) ^ 2)]).collect()
}

/// What a run of one transaction counts on MorLog's machine.
fn count(
    design: &str,
    workload: &'static WorkloadInfo,
    seed: u64,
    settings: &[(&str, &str)],
) -> Counts {
    counts_of(&machine("morlog", settings), design, workload, 1, 1, seed)
}

/// `morlog-fwb-per-write-log` (§II-B): an entry per store; only stores at a distance of less than N, the entries of
/// the buffer, are coalesced.
#[test]
fn every_store_makes_an_entry_unless_the_one_before_is_still_in_the_buffer() {
    for (entries, setting) in [(4, "4"), (16, "16"), (32, "32")] {
        for between in 0..48 {
            let settings = [("fwb.log_buffer_entries", setting)];
            let c = count("fwb-crade", &AT_A_DISTANCE, between, &settings);
            let merged = u64::from(between + 1 < entries);
            assert_eq!(c["transactional_stores"], between + 2);
            assert_eq!(
                (c["log_entries"], c["log_entries_merged"]),
                (between + 2 - merged, merged),
                "{entries} entries, {between} stores between"
            );
        }
    }
}

/// `morlog-silent-log-writes` (§IV-A): entries whose data is clean are not written.
#[test]
fn stores_that_change_nothing_leave_no_entry_where_there_are_dirty_flags() {
    let c = count("fwb-slde", &SILENT, 0, &[]);
    assert_eq!((c["log_entries"], c["log_entries_ignored"], c["log_bytes_written"]), (0, 16, 0));
    let c = count("fwb-crade", &SILENT, 0, &[]);
    assert_eq!((c["log_entries"], c["log_entries_ignored"]), (16, 0));
    // The entries leave without a trace; the transaction still has a commit record, in a block of its own.
    let c = count("fwb-slde", &THERE_AND_BACK, 0, &[]);
    assert_eq!((c["log_entries"], c["log_entries_merged"], c["log_entries_ignored"]), (16, 16, 16));
    assert_eq!(c["log_bytes_written"], 64);
    let c = count("fwb-crade", &THERE_AND_BACK, 0, &[]);
    assert_eq!((c["log_entries"], c["log_entries_merged"], c["log_entries_ignored"]), (16, 16, 0));
}

/// Sixteen entries and their commit record: five metadata blocks and four of data, if the buffer fills up first.
#[test]
fn four_records_that_leave_together_share_two_blocks() {
    let c = count("fwb-crade", &AT_A_DISTANCE, 15, &[("fwb.log_buffer_entries", "44")]);
    assert_eq!((c["log_entries"], c["log_entries_merged"]), (16, 1));
    assert_eq!(c["log_bytes_written"], (5 + 4) * 64);
    let one_by_one = [("fwb.log_buffer_entries", "0")];
    let c = count("fwb-crade", &AT_A_DISTANCE, 15, &one_by_one);
    assert_eq!((c["log_entries"], c["log_entries_merged"]), (17, 0));
    assert_eq!(c["log_bytes_written"], (17 * 2 + 1) * 64, "a group each; a commit has no data");
}

#[test]
fn log_words_are_coded_by_dirty_bytes_under_slde_only() {
    let slde = count("fwb-slde", &AT_A_DISTANCE, 8, &[]);
    assert_eq!((slde["log_words"], slde["log_entries"]), (2 * slde["log_entries"], 9));
    assert_eq!(slde["log_entries_differential"], 9, "one byte of each has changed");
    let crade = count("fwb-crade", &AT_A_DISTANCE, 8, &[]);
    assert_eq!((crade["log_words"], crade["log_entries"]), (0, 9));
}

/// `morlog-cfg-fwb-unsafe-buffer` (§VI-A): 16 + 32 entries exceed the bound.
#[test]
fn the_buffer_of_fwb_unsafe_is_too_large_on_every_machine() {
    let design = find("fwb-unsafe").expect("registered");
    // The machine of small programs says itself how large buffers are.
    for preset in registry().presets().iter().filter(|preset| preset.name != "miniature") {
        let config = registry().machine(preset.name).expect("the preset loads");
        assert_eq!(design.guarantee_in(&config), Guarantee::None, "{}", preset.name);
    }
    let large = [("fwb.log_buffer_entries", "48"), ("pm.log_packing", "always")];
    let config = machine("morlog", &large);
    let spec =
        registry().spec(config, "fwb", "array", Some(1), Some(1), 0).expect("names that exist");
    let Err(error) = Simulation::new(&spec) else { panic!("it was accepted") };
    assert!(error.to_string().contains("in 44 cycles"), "{error}");
}

#[test]
fn they_are_what_the_paper_says_unless_told_otherwise() {
    let config = registry().machine("morlog").expect("the preset loads");
    let of = |design: &str, key: &str| {
        let configured = find(design).expect("registered").configured(config.clone());
        let annotations = configured.annotations();
        annotations.into_iter().find(|a| a.key == key).expect("a key that exists").value
    };
    let expected = [("crade", "false", "16"), ("crade", "false", "48"), ("slde", "true", "16")];
    for (design, (codec, flags, entries)) in VARIANTS.into_iter().zip(expected) {
        assert_eq!(of(design, "pm.log_packing"), "with-codec", "{design}");
        assert_eq!(of(design, "pm.codec"), codec, "{design}: packed");
        assert_eq!(of(design, "fwb.dirty_flags"), flags, "{design}");
        assert_eq!(of(design, "fwb.log_buffer_entries"), entries, "{design}");
        assert_eq!(of(design, "fwb.scan_interval_cycles"), "3000000", "{design}");
        assert_eq!(of(design, "fwb.instant_commit"), "false", "{design}");
    }
    assert_eq!(find("fwb-slde").expect("registered").guarantee_in(&config), Guarantee::Durable);
}

/// Recovery reads the same records out of either format.
#[test]
fn all_of_them_leave_the_same_data() {
    let config = tiny_config(&[("fwb.log_bytes", "64 KB"), ("fwb.scan_interval_cycles", "2000")]);
    let digest = |design| {
        let mut simulation = simulation(&config, design, &CELLS, 4, 200, 3);
        simulation.run().unwrap_or_else(|e| panic!("{e}"))
    };
    let plain = digest("fwb");
    for design in VARIANTS {
        assert_eq!(digest(design), plain, "{design}");
    }
}
