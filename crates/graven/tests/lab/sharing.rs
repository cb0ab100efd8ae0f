//! Work that recoveries of neighbouring power failures share.
//!
//! Bug class: a campaign is fast because it no longer looks.

use std::sync::Mutex;

use graven::design::{DesignContext, DesignInfo, MutantSet, Settlement};
use graven::designs::fwb;
use graven::lab::explorer::{CrashRun, Outcome, Sharers, Sharing, Thoroughness};
use graven::sim::{CrashOptions, Spec};
use graven::surviving::SurvivingImage;

use crate::common::{registry, spec_of, tiny_config, with_each};
use crate::sound;

/// Transactions of a short run, and of one with a long log.
const SHORT: u64 = 48;
const LONG: u64 = 400;

/// A run that is crashed everywhere.
fn crashed(
    design: &'static DesignInfo,
    (workload, transactions): (&str, u64),
    (mutants, seed): (MutantSet, u64),
    sharing: Sharing,
) -> Outcome {
    let config = tiny_config(&[
        ("workload.footprint_bytes", "64 KB"),
        ("workload.element_bytes", "64"),
        ("fwb.scan_interval_cycles", "8000"),
        ("fwb.log_bytes", "32 KB"),
        ("workload.sharing", if seed % 2 == 0 { "private" } else { "shared" }),
    ]);
    let workload = registry().find_workload(workload).unwrap_or_else(|e| panic!("{e}"));
    let spec = spec_of(&config, design, workload, 4, transactions, seed);
    let crash_options = CrashOptions { mutants, garbage: Some(seed), ..CrashOptions::default() };
    let how = Thoroughness {
        recovery_every: 24,
        violations_max: 3,
        in_flight_every: 2,
        sharing,
        ..Thoroughness::LONG
    };
    let run = CrashRun::new(&Spec { crash_options, ..spec }, None, how);
    run.unwrap_or_else(|e| panic!("{}: {e}", design.name)).run(None).expect("not cancelled")
}

/// All that a campaign tells of a run.
fn told(outcome: &Outcome) -> impl PartialEq + std::fmt::Debug + use<> {
    (outcome.violations.clone(), outcome.tally, outcome.reached(), outcome.refused.clone())
}

#[test]
fn what_is_found_is_the_same_whether_recoveries_share_work_or_not() {
    let sum = Mutex::new(Sharers::default());
    with_each(&sound(), |&design| {
        for (workload, seed) in [("hash", 1), ("queue", 2)] {
            let run =
                |sharing| crashed(design, (workload, SHORT), (MutantSet::NONE, seed), sharing);
            let (alone, compared) = (run(Sharing::None), run(Sharing::Compared));
            let sampled = run(Sharing::Sampled);
            let what = format!("{} on {workload}", design.name);
            assert_eq!(alone.violations, [], "{what}");
            assert_eq!(told(&compared), told(&alone), "{what}, all compared");
            assert_eq!(told(&sampled), told(&alone), "{what}");
            assert_eq!(alone.sharers, Sharers::default());
            assert_eq!(compared.sharers.compared, compared.sharers.settled, "{what}");
            assert!(
                sampled.sharers.cuts > 0 || alone.tally.recovery < 64,
                "{what}: no cut is shared"
            );
            let settles = ["fwb", "hoop", "morlog", "osp"].contains(&design.name);
            assert!(compared.sharers.settled > 0 || !settles, "{what}: nothing is done ahead");
            let mut sum = sum.lock().expect("no test panics with it");
            sum.settled += compared.sharers.settled;
        }
    });
    let sum = sum.into_inner().expect("all are done");
    assert!(sum.settled > 10_000, "{sum:?}: recoveries with a part done ahead");
}

#[test]
fn mutants_of_recovery_are_found_where_they_were() {
    let design = registry().find_design("fwb").unwrap_or_else(|e| panic!("{e}"));
    for number in 0..design.mutants.len() {
        let run = |sharing| crashed(design, ("hash", SHORT), (MutantSet::only(number), 1), sharing);
        assert_eq!(
            told(&run(Sharing::Sampled)),
            told(&run(Sharing::None)),
            "{}",
            design.mutants[number].name
        );
    }
}

/// Settles as it should, and then leaves another value in a word.
fn settle_wrongly(context: &DesignContext, image: &mut SurvivingImage) -> Option<Settlement> {
    let settlement = (fwb::INFO.settle)(context, image)?;
    let word = image.written()[0];
    image.store(word.addr, !word.new);
    Some(settlement)
}

static WRONG: DesignInfo = DesignInfo { settle: settle_wrongly, ..fwb::INFO };

/// Forgets that something depends on what it has read.
fn settle_for_ever(context: &DesignContext, image: &mut SurvivingImage) -> Option<Settlement> {
    let settlement = (fwb::INFO.settle)(context, image)?;
    Some(Settlement { depends_on: Vec::new(), ..settlement })
}

static FORGETFUL: DesignInfo = DesignInfo { settle: settle_for_ever, ..fwb::INFO };

#[test]
fn a_design_that_settles_something_else_than_its_recovery_is_found_out() {
    for design in [&WRONG, &FORGETFUL] {
        for sharing in [Sharing::Sampled, Sharing::Compared] {
            let outcome = crashed(design, ("hash", LONG), (MutantSet::NONE, 1), sharing);
            let what = &outcome.violations.first().expect("it is found out").what;
            assert!(what.contains("settled a part of it ahead"), "{what}");
        }
    }
}
