//! Recoveries of all designs in simulated time.
//!
//! Bug class: a design whose recovery does something that the machine is not told of, or that is something else when
//! its steps are kept; a time that has nothing to do with how much there is to recover.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{CELLS, registry, simulation, tiny_config};
use graven::config::Config;
use graven::design::{DesignInfo, MutantSet, RecoveryReport};
use graven::memory::Addr;
use graven::recovery::time_recoveries;
use graven::sim::Crash;
use graven::stats::{RECOVERY_TRANSACTIONS, RecoveryTime};

fn config(settings: &[(&str, &str)]) -> Config {
    tiny_config(&[&[("recovery.points", "4")], settings].concat())
}

/// Recoveries after four power failures of a run of random words.
fn times(config: &Config, design: &str, transactions: u64) -> Vec<RecoveryTime> {
    let mut run = simulation(config, design, &CELLS, 4, transactions, 3);
    run.run().unwrap_or_else(|e| panic!("{design}: {e}"));
    let cycles = run.stats().counters.cycles;
    let fresh = simulation(config, design, &CELLS, 4, transactions, 3);
    let times = time_recoveries(fresh, cycles, &Arc::default());
    times.unwrap_or_else(|e| panic!("{design}: {e}"))
}

/// All but the readings that lose data while they run.
fn designs() -> impl Iterator<Item = &'static DesignInfo> {
    registry().designs().iter().copied().filter(|d| d.inherent == MutantSet::NONE)
}

/// Each executes on the machine what it does to the surviving bytes (or the execution fails), twice the same.
#[test]
fn every_design_has_a_recovery_time_wherever_power_fails() {
    let config = config(&[]);
    for design in designs() {
        let times = times(&config, design.name, 200);
        assert_eq!(times.len(), 4, "{}", design.name);
        assert!(times.is_sorted_by_key(|t| t.failed_at), "{}: {times:?}", design.name);
        for time in &times {
            let moved = time.words_redone + time.words_undone;
            // A word that goes home was read somewhere, took a load and a store, and is written.
            assert!(time.bytes_written >= 8 * u64::from(moved > 0), "{}: {time:?}", design.name);
            assert!(time.bytes_read >= 64 * u64::from(moved > 0), "{}: {time:?}", design.name);
            assert!(time.instructions >= moved, "{}: {time:?}", design.name);
            assert_eq!(time.cycles > 0, time.instructions > 0, "{}: {time:?}", design.name);
            let at_least = time.records_scanned * u64::from(time.bytes_read > 0);
            assert!(time.instructions >= at_least, "{}: {time:?}", design.name);
        }
    }
}

/// Progress that stands still, or is at its end, while recoveries are executed, tells nobody how long they take.
#[test]
fn recoveries_are_a_part_of_the_progress() {
    let config = config(&[]);
    let mut run = simulation(&config, "fwb", &CELLS, 4, 200, 3);
    run.run().expect("it runs");
    let (control, cycles) = (run.control(), run.stats().counters.cycles);
    assert_eq!(control.done(), 200);
    let fresh = simulation(&config, "fwb", &CELLS, 4, 200, 3);
    time_recoveries(fresh, cycles, &control).expect("it recovers");
    let all = run.spec().expected_work();
    assert_eq!(all, 2 * 200 + 4 * RECOVERY_TRANSACTIONS);
    assert!((all - 200..=all).contains(&control.done()), "{} of {all}", control.done());
}

#[test]
fn the_same_run_has_the_same_times() {
    let config = config(&[]);
    for design in ["fwb", "hoop", "lsm", "silo", "redo-clwb"] {
        assert_eq!(times(&config, design, 200), times(&config, design, 200), "{design}");
    }
}

/// What a recovery says, what it leaves, and how many words it has read and written.
fn recovered(crash: &mut Crash<'_>) -> (RecoveryReport, BTreeMap<Addr, u64>, [u64; 2]) {
    let used = |crash: &Crash<'_>| [crash.image.words_read(), crash.image.words_written()];
    let before = used(crash);
    let report = crash.recover();
    let after = used(crash);
    (report, crash.image.newest(crash.saved()), [after[0] - before[0], after[1] - before[1]])
}

/// What recovery leaves does not depend on whether its steps are kept, nor on how many threads it has then.
#[test]
fn recovery_leaves_the_same_bytes_while_its_steps_are_kept() {
    for threads in ["1", "3", "8"] {
        let config = config(&[("hoop.recovery_threads", threads)]);
        for design in designs() {
            let mut simulation = simulation(&config, design.name, &CELLS, 4, 200, 5);
            simulation.follow_durable_bytes();
            for step in 1..=3 {
                simulation
                    .advance(step * 20_000)
                    .unwrap_or_else(|e| panic!("{}: {e}", design.name));
                let mut crash = simulation.crash();
                let plain = recovered(&mut crash);
                crash.unrecover();
                crash.image.keep_steps();
                assert_eq!(plain, recovered(&mut crash), "{}", design.name);
                assert!(!crash.image.take_steps().is_empty());
            }
        }
    }
}

/// Designs that look at all of their log, whatever it holds.
#[test]
fn a_longer_log_takes_longer_where_all_of_it_is_scanned() {
    for (design, key) in [
        ("base", "base.log_bytes_per_thread"),
        ("opt-redo", "opt-redo.log_bytes_per_thread"),
        ("opt-undo", "opt-undo.log_bytes_per_thread"),
        ("lad", "lad.log_bytes_per_thread"),
    ] {
        let of = |bytes: &str| times(&config(&[(key, bytes)]), design, 100);
        let sizes = ["16 KB", "64 KB", "256 KB"].map(of);
        for pair in sizes.windows(2) {
            for (shorter, longer) in pair[0].iter().zip(&pair[1]) {
                assert!(shorter.cycles < longer.cycles, "{design}: {shorter:?} {longer:?}");
                assert!(shorter.bytes_read < longer.bytes_read, "{design}: {shorter:?} {longer:?}");
            }
        }
    }
}

/// Designs that read from the head on: what there is to redo decides.
#[test]
fn an_empty_log_takes_little() {
    let empty = |design: &str| {
        let mut simulation = simulation(&config(&[]), design, &CELLS, 4, 200, 3);
        simulation.follow_durable_bytes();
        simulation.time_recovery(&Arc::default()).unwrap_or_else(|e| panic!("{design}: {e}"))
    };
    for design in ["fwb", "morlog-slde", "silo", "redo-clwb", "undo-clwb", "lsm", "hoop"] {
        let (empty, some) = (empty(design), times(&config(&[]), design, 200));
        assert_eq!(empty.words_redone + empty.words_undone, 0, "{design}");
        let most = some.iter().map(|t| t.cycles).max().expect("four failures");
        assert!(empty.cycles < most, "{design}: {empty:?} {some:?}");
    }
}

/// HOOP's recovery runs on as many threads as it is told, and takes less time on more of them while there is work.
#[test]
fn hoop_recovers_on_its_threads() {
    let of = |threads: &str| {
        let settings = [
            ("hoop.recovery_threads", threads),
            ("hoop.block_bytes", "1 KB"),
            ("hoop.gc_period_us", "1000000"),
        ];
        times(&config(&settings), "hoop", 2000).pop().expect("four failures")
    };
    let (one, four) = (of("1"), of("4"));
    assert_eq!((one.threads, four.threads), (1, 4));
    assert_eq!((one.words_redone, one.records_scanned), (four.words_redone, four.records_scanned));
    assert!(one.words_redone > 1000, "{one:?}");
    assert!(four.cycles < one.cycles, "{one:?} {four:?}");
}

#[test]
fn power_fails_in_one_way_only() {
    let both = [("recovery.at_cycle", "5")];
    let refused = registry().spec(config(&both), "base", "array", Some(1), Some(1), 1);
    let Err(error) = refused else { panic!("it was accepted") };
    assert!(error.to_string().contains("recovery.at_percent says where power fails"), "{error}");
}
