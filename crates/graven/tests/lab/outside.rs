//! Programs that store outside transactions, on every design.
//!
//! Bug class: a design is convicted of what no hardware promises, or the laboratory is blind where such stores are near.

use std::time::Duration;

use crate::adversary::cramped;
use crate::common::script::{evict, store, transaction};
use crate::common::{Part, registry, tiny_config, with_each};
use crate::{find, outcome_of, read, sound};
use graven::lab::adversary::{Draws, schedule};
use graven::lab::campaign::{AdversaryCampaign, AdversaryReport, AdversaryRequest};
use graven::lab::litmus::Step;
use graven::program::Op;
use graven::sim::SimError;

/// Designs that refuse such programs: what leaves their caches is dropped, or what is stored is kept elsewhere.
const REFUSE: [&str; 8] =
    ["hoop", "lsm", "opt-redo", "redo-clwb", "redu", "lalea", "blom", "lalea-blom"];

/// Designs that log nothing of a transactional store that changes nothing: what it finds may have been stored outside
/// transactions and be durable nowhere. With their keys that have everything logged.
const LOG_CHANGES: [(&str, &str); 4] = [
    ("silo", "silo.log_ignorance"),
    ("fwb-slde", "fwb.dirty_flags"),
    ("morlog-slde", "morlog.dirty_flags"),
    ("morlog-dp", "morlog.dirty_flags"),
];

/// The adversary's schedules with stores outside transactions.
fn attack(
    design: &str,
    mutant: Option<&str>,
    settings: &[(&str, &str)],
    (first_seed, seeds): (u64, u64),
) -> AdversaryReport {
    let request = AdversaryRequest {
        designs: vec![design.into()],
        seeds,
        first_seed,
        mutant: mutant.map(str::to_owned),
        settings: settings.iter().map(|&(key, value)| (key.into(), value.into())).collect(),
        draws: vec![("outside".into(), OUTSIDE_PERCENT), ("varied".into(), 0)],
        violations_max: 1,
        minimise: None,
    };
    let campaign =
        AdversaryCampaign::new(registry(), request, None).unwrap_or_else(|e| panic!("{e}"));
    campaign.run(1, &|| Duration::ZERO);
    campaign.reports().swap_remove(0)
}

const OUTSIDE_PERCENT: u64 = 40;

fn draws() -> Draws {
    let draws = Draws::with(&[("outside".into(), OUTSIDE_PERCENT), ("varied".into(), 0)]);
    draws.unwrap_or_else(|e| panic!("{e}"))
}

/// Everything is logged.
const LOG_ALL: [(&str, &str); 3] = [
    ("silo.log_ignorance", "false"),
    ("fwb.dirty_flags", "false"),
    ("morlog.dirty_flags", "false"),
];

/// Programs of each sound design.
const PROGRAMS_ALL: u64 = 200;

/// How many of them every edit runs.
const PROGRAMS_EDIT: u64 = 20;

#[test]
fn sound_designs_keep_their_guarantee_in_some_programs() {
    keep(Part::Edit);
}

#[test]
#[ignore = "long: minutes of schedules"]
fn sound_designs_keep_their_guarantee_in_many_programs() {
    keep(Part::Long);
}

fn keep(part: Part) {
    let (first, schedules) = part.seeds(PROGRAMS_EDIT, PROGRAMS_ALL);
    with_each(&sound(), |design| {
        let report = attack(design.name, None, &LOG_ALL, (first, schedules));
        if let Some(violation) = report.violations.first() {
            let replay = violation.replay.as_deref().unwrap_or_default();
            panic!("{}: {}\n{replay}", design.name, violation.what);
        }
        let refused = report.refused as f64 / schedules as f64;
        if REFUSE.contains(&design.name) {
            let why = report.refusal.expect("it was refused");
            assert!(why.contains("outside"), "{}: {why}", design.name);
            assert!(refused > 0.5, "{}: {refused}", design.name);
        } else {
            assert!(refused < 0.2, "{}: {refused}: {:?}", design.name, report.refusal);
            assert!(report.recoveries > 100 * schedules, "{}: {report:?}", design.name);
        }
    });
}

/// The hole of designs that log changes only: with everything logged they keep their guarantee, too.
#[test]
fn designs_without_logs_of_silent_stores_lose_what_was_stored_outside() {
    let program = |outside: u64, value: u64| {
        format!(
            "graven litmus 1\ntitle \"x\"\nA = 0\nB = 0\nthread\n  outside A = {outside}\n  begin\n  A = {value}\n  commit\n  \
                begin\n  B = 1\n  commit\n  settle\n  evict B\n"
        )
    };
    let verdict = |design: &str, text: &str, log_all: Option<&str>| {
        let mut litmus = read(text);
        litmus.settings.extend(log_all.map(|key| (key.into(), "false".into())));
        let design = find(design);
        let outcome = outcome_of(&litmus, design);
        assert_eq!(outcome.refused, None, "{}", design.name);
        outcome.violations.first().map(|violation| violation.what.clone())
    };
    for (design, log_all) in LOG_CHANGES {
        let silent = verdict(design, &program(0x1122, 0x1122), None);
        let what = silent.unwrap_or_else(|| panic!("{design} keeps what it does not log"));
        assert!(what.contains("0x1122") && what.contains("holds 0x0"), "{design}: {what}");
        assert_eq!(verdict(design, &program(0x1122, 0x3344), None), None, "{design}");
        // Clean bytes of a word that changes are there.
        assert_eq!(verdict(design, &program(0x1122, 0x1133), None), None, "{design}");
        for value in [0x1122, 0x1133] {
            let kept = verdict(design, &program(0x1122, value), Some(log_all));
            assert_eq!(kept, None, "{design} with {log_all} = false");
        }
    }
}

/// Mutants that lose committed data, bring back what was before it, or undo whole lines, of designs that take such programs.
const MUTANTS: [(&str, &str); 9] = [
    ("base", "flush-not-awaited"),
    ("base", "committed-undone"),
    ("undo-clwb", "write-back-missing"),
    ("undo-clwb", "newest-not-undone"),
    ("lad", "line-not-committed"),
    ("lad", "whole-lines-undone"),
    ("lad", "committed-undone"),
    ("fwb", "commit-does-not-wait"),
    ("opt-undo", "committed-undone"),
];

#[test]
fn mutants_are_killed_by_programs_with_stores_outside() {
    let draws = draws();
    with_each(&MUTANTS, |&(design, mutant)| {
        let report = attack(design, Some(mutant), &LOG_ALL, (1, 400));
        let violation = report.violations.first();
        let violation = violation.unwrap_or_else(|| panic!("{design} with {mutant} survived"));
        let design = find(design);
        let program =
            schedule(&cramped(), design, violation.seed.expect("a schedule has one"), &draws);
        let has_outside = program.steps().any(Step::is_outside);
        assert!(has_outside, "{mutant} was killed by a program without such stores");
    });
}

#[test]
fn a_design_that_cannot_take_such_programs_says_so() {
    let outside = vec![store(0x2000, 7), evict(0x2000)];
    let both: Vec<Op> = transaction(&[(0x3000, 1)]).into_iter().chain(outside.clone()).collect();
    let neither = transaction(&[(0x3000, 1)]);
    for design in registry().designs() {
        let run = |program: &[Op]| {
            let simulation = graven::script::simulation(&tiny_config(&[]), design, &[program]);
            simulation.unwrap_or_else(|e| panic!("{e}")).run()
        };
        assert!(run(&neither).is_ok(), "{}", design.name);
        let name = design.name.trim_end_matches("-literal");
        let refuses = REFUSE.contains(&name) || name == "unsafe-redo";
        match run(&both) {
            Ok(_) => assert!(!refuses, "{}", design.name),
            Err(SimError::Design { design: named, why }) => {
                assert!(refuses && named == design.name, "{}: {why}", design.name);
                assert!(why.contains("0x2000 outside"), "{why}");
            }
            Err(error) => panic!("{}: {error}", design.name),
        }
    }
}

/// A recovery redoes the last transaction that stored to a word: after an orderly shutdown, too.
#[test]
fn an_orderly_shutdown_promises_no_more_than_a_power_failure() {
    let program = |values: [u64; 2]| {
        let [inside, outside] = values.map(|value| (0x3000, value));
        transaction(&[inside]).into_iter().chain([store(outside.0, outside.1)]).collect::<Vec<Op>>()
    };
    for design in sound().into_iter().filter(|design| !REFUSE.contains(&design.name)) {
        let program = program([1, 2]);
        let simulation =
            || graven::script::simulation(&tiny_config(&[]), design, &[&program]).expect("it fits");
        simulation().run().unwrap_or_else(|e| panic!("{}: {e}", design.name));
        let mut followed = simulation();
        graven::lab::checker::attach(&mut followed);
        followed.run().unwrap_or_else(|e| panic!("{}: {e}", design.name));
        assert_eq!(graven::lab::checker::words_stored_outside(&followed), 1);
    }
}

/// What a later life begins with is promised to it, whichever of the allowed values recovery has left.
#[test]
fn a_later_life_is_held_to_what_recovery_has_left() {
    let text = "graven litmus 1\ntitle \"x\"\nA = 1\nB = 0 with A\nthread\n  outside A = 2\n  evict A\n  outside A = 3\n  evict A\n\
        life\nthread\n  outside A = 4\n  evict A\n  begin\n  B = 1\n  commit\nexpect everywhere: A = 1 | A = 2 | A = 3 | A = 4\n";
    let litmus = read(text);
    for design in sound().into_iter().filter(|design| !REFUSE.contains(&design.name)) {
        let outcome = outcome_of(&litmus, design);
        assert_eq!(outcome.violations, [], "{}", design.name);
        assert!(outcome.refused.is_none() && outcome.tally.lives > 1, "{}", design.name);
    }
}

/// The programs that are drawn have such stores, and none by default.
#[test]
fn stores_outside_are_drawn_if_they_are_asked_for() {
    let base = find("base");
    let draws = draws();
    let count = |draws: &Draws| {
        let steps = |seed| {
            schedule(&cramped(), base, seed, draws).steps().filter(|s| s.is_outside()).count()
        };
        (1..=20).filter(|&seed| steps(seed) > 0).count()
    };
    assert_eq!(count(&Draws::default()), 0);
    assert!(count(&draws) > 15);
}
