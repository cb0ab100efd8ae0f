//! Programs that the adversary draws.
//!
//! Bug class: a drawn program breaks its part of the contract, depends on more than its seed, or never comes where faults are.

use crate::common::registry;
use crate::{case_of, find};
use graven::config::Config;
use graven::design::{Capacity, DesignInfo, Room, TakenBy};
use graven::lab::adversary::{Adversary, Draws, schedule};
use graven::lab::campaign::Schedules;
use graven::lab::case::Case;
use graven::lab::explorer::Thoroughness;
use graven::lab::litmus::isolation::is_isolated;
use graven::lab::litmus::{Litmus, MACHINE, Step, parse};

/// The machine of programs that name none.
pub(crate) fn cramped() -> Config {
    registry().machine(MACHINE).unwrap_or_else(|e| panic!("{e}"))
}

fn drawn(design: &'static DesignInfo, seed: u64) -> Litmus {
    schedule(&cramped(), design, seed, &Draws::default())
}

#[test]
fn bounds_of_what_is_drawn_hold() {
    let names = ["threads", "transactions", "lives", "value-bits", "pm-gb"];
    let bounds = names.map(|name| (name.to_owned(), 1)).to_vec();
    let draws = Draws::with(&bounds).unwrap_or_else(|e| panic!("{e}"));
    for seed in 1..=400 {
        let litmus = schedule(&cramped(), find("silo"), seed, &draws);
        let begins = |steps: &Vec<Step>| steps.iter().filter(|s| **s == Step::Begin).count();
        let values = litmus.steps().filter_map(|step| match step.action() {
            Step::Store(_, value) | Step::StoreNonTemporal(_, value) => Some(*value),
            _ => None,
        });
        assert!(values.max() <= Some(1), "{litmus}");
        let [life] = &litmus.lives[..] else { panic!("one life: {litmus}") };
        let [thread] = &life.threads[..] else { panic!("one thread: {litmus}") };
        assert_eq!(begins(thread), 1, "{litmus}");
        assert!(!litmus.to_string().contains("300 GB"));
    }
}

/// Variations are programs as legal as those that they vary, and depend on no more than the seed.
#[test]
fn variations_keep_the_contract_and_come_again() {
    let silo = find("silo");
    let (mut adversary, mut varied) = (Adversary::new(cramped(), silo, Draws::default()), 0);
    let mut drawn = Vec::new();
    for seed in 1..=200 {
        let litmus = adversary.schedule(seed);
        assert_eq!(parse(&litmus.to_string()).ok().as_ref(), Some(&litmus), "{litmus}");
        assert!(is_isolated(&litmus), "{litmus}");
        varied += u32::from(litmus != schedule(&cramped(), silo, seed, &Draws::default()));
        if let Ok(case) = Case::new(registry(), &litmus, silo) {
            let outcome =
                case.examined(Thoroughness::DRAWN).run().unwrap_or_else(|e| panic!("{e}"));
            assert_eq!((outcome.race, outcome.violations.len()), (None, 0), "{litmus}");
            adversary.learn(&outcome.reached());
        }
        drawn.push(litmus);
    }
    assert!(varied > 30, "{varied} of 200 are variations");
    let texts = |first, seeds| {
        let schedules = Schedules::new(registry(), silo, None, Vec::new(), (first, seeds), 1);
        let schedules = schedules.unwrap_or_else(|e| panic!("{e}"));
        let report = schedules.run().unwrap_or_else(|e| panic!("{e}"));
        (report.tally.crash_points, report.runs)
    };
    let (all, some, rest) = (texts(1, 200), texts(1, 120), texts(121, 80));
    assert_eq!((some.0 + rest.0, some.1 + rest.1), all, "a campaign may be cut anywhere");
}

#[test]
fn schedules_depend_on_their_seeds() {
    let silo = find("silo");
    let draws = Draws::default();
    assert_eq!(schedule(&cramped(), silo, 5, &draws), schedule(&cramped(), silo, 5, &draws));
    assert_ne!(schedule(&cramped(), silo, 5, &draws), schedule(&cramped(), silo, 6, &draws));
}

/// Words of arrays that are there to be filled which a transaction stores to, most of a thread's transactions.
fn filled(litmus: &Litmus) -> Option<usize> {
    let is_filled = |name: &str| {
        name.starts_with('F')
            && litmus.variables.iter().any(|v| v.name == name && v.words.is_some())
    };
    let (mut most, mut words) = (None, std::collections::BTreeSet::new());
    for step in litmus.lives[0].threads.iter().flatten() {
        match step.action() {
            Step::Begin => words.clear(),
            Step::Store(word, _) if is_filled(&word.name) => {
                words.insert(word.index);
                most = most.max(Some(words.len()));
            }
            _ => {}
        }
    }
    most
}

/// Transactions fill silo's log buffer exactly, all but one place of it, and ask for one more.
#[test]
fn structures_are_filled_exactly_and_by_one_more_and_less() {
    let silo = find("silo");
    let mut beside = std::collections::BTreeSet::new();
    for seed in 1..=400 {
        let litmus = drawn(silo, seed);
        let Some(words) = filled(&litmus) else { continue };
        for Room { places, taken_by } in case_of(&litmus, silo).rooms() {
            assert_eq!(taken_by, TakenBy::Piece(8));
            beside.insert(words as i64 - places as i64);
        }
    }
    assert!([-1, 0, 1].iter().all(|difference| beside.contains(difference)), "{beside:?}");
}

/// A transaction is held open for long while at least five threads run, and its lines are evicted.
#[test]
fn transactions_are_held_open_in_a_crowd() {
    let is_long =
        |step: &Step| matches!(step, Step::Compute(instructions) if *instructions >= 4000);
    let holds = |steps: &Vec<Step>| {
        let mut open = false;
        steps.iter().any(|step| {
            match step {
                Step::Begin => open = true,
                Step::Commit => open = false,
                _ => {}
            }
            open && is_long(step)
        })
    };
    let held = (1..=300).map(|seed| drawn(find("fwb"), seed)).filter(|litmus| {
        let threads = &litmus.lives[0].threads;
        threads.len() >= 5 && threads.iter().any(holds)
    });
    assert!(held.count() >= 5);
}

/// Two passes of the design's own work, with a wait and nothing else of the thread's between them.
#[test]
fn passes_come_twice() {
    let twice = |steps: &Vec<Step>| {
        steps
            .windows(3)
            .any(|three| matches!(three, [Step::Maintenance, Step::Compute(_), Step::Maintenance]))
    };
    let litmus = (1..=200).map(|seed| drawn(find("hoop"), seed));
    let programs = litmus.filter(|l| l.lives.iter().flat_map(|life| &life.threads).any(twice));
    assert!(programs.count() >= 10);
}

/// A program that a design has no room for says nothing about it. Before parameters were drawn again, a sixth of
/// opt-redo's programs were such.
#[test]
fn designs_have_room_for_the_programs_that_are_drawn_for_them() {
    for name in ["opt-redo", "morlog-slde", "fwb", "lsm"] {
        let design = find(name);
        let refused = |litmus: &Litmus| {
            Case::new(registry(), litmus, design).is_ok_and(|case| case.is_refused())
        };
        let refused = (1..=150).filter(|&seed| refused(&drawn(design, seed))).count();
        assert!(refused <= 1, "{name}: {refused} of 150");
    }
}

/// A design that holds more entries than it declares places for violates; a structure that is exactly full is counted.
#[test]
fn more_entries_than_places_are_a_violation() {
    fn room(places: u64) -> &'static [Capacity] {
        let of: [fn(&graven::design::DesignContext) -> Room; 2] =
            [|_| Room::of_words(19), |_| Room::of_words(20)];
        let full = find("silo").capacities[0].full;
        Box::leak(Box::new([Capacity { full, room: of[(places - 19) as usize] }]))
    }
    let program = |words: usize| {
        let stores: String = (0..words).map(|word| format!("  A[{word}] = 1\n")).collect();
        crate::read(&format!(
            "graven litmus 1\ntitle \"stores\"\nA[40] = 0\nthread\n  begin\n{stores}  commit\n"
        ))
    };
    let silo = find("silo");
    let outcome = |places, words| {
        let info = DesignInfo { capacities: room(places), ..*silo };
        let info: &'static DesignInfo = Box::leak(Box::new(info));
        crate::outcome_of(&program(words), info)
    };
    let reached = |places, words| outcome(places, words).cover_points[silo.cover_points.len()];
    assert_eq!(outcome(20, 25).violations, []);
    assert_eq!((reached(20, 19), reached(20, 20)), (0, 1));
    let broken = outcome(19, 20).violations;
    let expected = "log-buffer-exactly-full: 20 places are taken; the design declares 19";
    assert_eq!(broken[0].what, expected);
}
