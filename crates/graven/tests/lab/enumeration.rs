//! All small programs.
//!
//! Bug class: what is left out, because something like it was examined, hides a violation; a sound design violates its
//! guarantee in a program that is small enough to be listed.

use std::collections::BTreeMap;

use crate::common::{Part, registry, with_each};
use crate::{find, outcome_of, read, sound};
use graven::design::DesignInfo;
use graven::lab::campaign::Finding;
use graven::lab::enumeration::{Bound, Checked, Enumeration, LifeBound, Scale};

fn enumeration(
    design: &'static DesignInfo,
    mutant: Option<&str>,
    bound: &Bound,
) -> Enumeration<'static> {
    scaled(design, mutant, Scale::Down, bound)
}

fn scaled(
    design: &'static DesignInfo,
    mutant: Option<&str>,
    scale: Scale,
    bound: &Bound,
) -> Enumeration<'static> {
    let mutant = mutant.map(str::to_owned);
    Enumeration::new(registry(), design, mutant, (scale, Vec::new()), bound.clone())
        .unwrap_or_else(|e| panic!("{}: {e}", design.name))
}

fn run(enumeration: &Enumeration<'_>) -> Checked {
    enumeration.run(0..enumeration.program_count()).unwrap_or_else(|e| panic!("{e}"))
}

/// The first finding, if there is one. Programs are executed in so many parts, up to that which has it.
fn first_finding(enumeration: &Enumeration<'_>, parts: usize) -> Option<Finding> {
    let count = enumeration.program_count();
    let part = count.div_ceil(parts).max(1);
    (0..count).step_by(part).find_map(|start| {
        let checked = enumeration.run(start..count.min(start + part));
        checked.unwrap_or_else(|e| panic!("{e}")).findings.into_iter().next()
    })
}

fn keeps_its_guarantee(design: &'static DesignInfo, bound: &Bound) {
    let checked = run(&enumeration(design, None, bound));
    if let Some(finding) = checked.findings.first() {
        panic!("{}:\n{}", design.name, finding.timeline);
    }
    assert_eq!(checked.refused, 0, "{}: {:?}", design.name, checked.refusal);
    // Where caches survive, hardly anything is on its way.
    let keeps_caches = design.settings.contains(&("domain.caches", "all"));
    let has_parts = checked.landed + checked.torn > 0 || keeps_caches;
    assert!(checked.lives > 0 && has_parts, "{}", design.name);
}

#[test]
fn sound_designs_keep_their_guarantee_in_all_programs_of_a_transaction() {
    let bound = Bound { transactions: 1, departures: 2, ..Bound::default() };
    with_each(&sound(), |&design| keeps_its_guarantee(design, &bound));
}

#[test]
#[ignore = "long: minutes of schedules"]
fn sound_designs_keep_their_guarantee_in_all_programs_of_two_transactions() {
    let bound = Bound { transactions: 2, departures: 1, ..Bound::default() };
    with_each(&sound(), |&design| keeps_its_guarantee(design, &bound));
}

/// Says which mutants are violated, of those whose numbers are taken.
fn violated(
    design: &'static DesignInfo,
    takes: impl Fn(usize) -> bool,
    bound: &Bound,
    change: impl Fn(Enumeration<'static>) -> Enumeration<'static>,
) -> BTreeMap<&'static str, bool> {
    let numbered = design.mutants.iter().enumerate();
    let own = numbered.filter(|&(number, _)| takes(number)).map(|(_, mutant)| {
        let all = change(enumeration(design, Some(mutant.name), bound));
        (mutant.name, first_finding(&all, 4).is_some())
    });
    own.collect()
}

/// Designs of several kinds, of whose mutants even the smallest programs show some.
const SAMPLE: [&str; 4] = ["undo-clwb", "silo", "osp", "hoop"];

#[test]
fn what_symmetry_leaves_out_is_violated_too() {
    let bound = Bound {
        transactions: 2,
        stores: 1,
        departures: 1,
        life: LifeBound { transactions: 0, stores: 1 },
        ..Bound::default()
    };
    with_each(&SAMPLE, |name| {
        let design = find(name);
        let least = violated(design, |_| true, &bound, |e| e);
        let all = violated(design, |_| true, &bound, Enumeration::without_symmetry);
        assert_eq!(least, all, "{name}");
        assert!(least.values().any(|&is_violated| is_violated), "{name}");
    });
}

/// Every edit tries one mutant in this number, of each design of the sample.
const MUTANTS_ONE_IN: usize = 6;

#[test]
fn what_memory_leaves_out_is_violated_with_some_mutants_too() {
    leave_out_by_memory(Part::Edit);
}

#[test]
#[ignore = "long: all other mutants of the sample"]
fn what_memory_leaves_out_is_violated_too() {
    leave_out_by_memory(Part::Long);
}

fn leave_out_by_memory(part: Part) {
    let bound = Bound {
        transactions: 1,
        departures: 0,
        life: LifeBound { transactions: 1, stores: 1 },
        ..Bound::default()
    };
    with_each(&SAMPLE, |name| {
        let design = find(name);
        // Everything that happens to two words of a line takes minutes there, and violates the same mutants.
        let words = if *name == "osp" { vec![1, 1] } else { bound.words.clone() };
        let bound = Bound { words, ..bound.clone() };
        let takes = |number| part.has(number, MUTANTS_ONE_IN);
        let with = violated(design, takes, &bound, |e| e);
        let without = violated(design, takes, &bound, Enumeration::without_memory);
        assert_eq!(with, without, "{name}");
        // Among few mutants there may be none.
        let is_shown = with.values().any(|&is_violated| is_violated);
        assert!(is_shown || part == Part::Edit, "{name}");
    });
}

/// A torn write is known by its digest before it is laid: no part of it may be passed over for that, with records of two
/// words, of eight, and with batteries that write beside it.
#[test]
fn as_many_writes_are_torn_whether_equal_states_are_known_or_not() {
    let bound = Bound {
        transactions: 1,
        departures: 1,
        life: LifeBound { transactions: 0, stores: 1 },
        ..Bound::default()
    };
    with_each(&["undo-clwb", "redu", "lad", "fwb-slde"], |name| {
        let design = find(name);
        let with = run(&enumeration(design, None, &bound));
        let without = run(&enumeration(design, None, &bound).without_memory());
        let counts = |c: &Checked| (c.programs, c.schedules, c.torn, c.landed, c.findings.len());
        assert_eq!(counts(&with), counts(&without), "{name}");
        assert!(with.torn > 0 && without.equal == 0, "{name}: {} {}", with.torn, without.equal);
    });
}

#[test]
fn a_violation_is_replayed_by_its_program() {
    let bound = Bound { transactions: 2, departures: 1, ..Bound::default() };
    let (mut later, mut departing) = (0, 0);
    for name in ["hoop", "silo", "undo-clwb"] {
        let design = find(name);
        let violated = design.mutants.iter().filter_map(|mutant| {
            let all = enumeration(design, Some(mutant.name), &bound);
            first_finding(&all, 64).map(|finding| (mutant, finding))
        });
        for (mutant, finding) in violated.take(5) {
            let text = finding.replay.as_ref().expect("a program").to_string();
            let litmus = read(&text);
            let outcome = outcome_of(&litmus, design);
            let violation = outcome.violations.first();
            let violation = violation.unwrap_or_else(|| panic!("{}: kept\n{text}", mutant.name));
            assert_eq!(violation.what, finding.violation.what, "{text}");
            later += usize::from(litmus.lives.len() > 1);
            departing += usize::from(!text.contains("adversary departs\n"));
        }
    }
    assert!(later > 0 && departing > 0, "{later} in a second life, {departing} with departures");
}

#[test]
fn bounds_are_refused_with_what_is_allowed() {
    let refused = |bound: Bound| {
        let silo = find("silo");
        match Enumeration::new(registry(), silo, None, (Scale::Down, Vec::new()), bound) {
            Ok(_) => panic!("it was accepted"),
            Err(error) => error.to_string(),
        }
    };
    let default = Bound::default;
    let text = refused(Bound { threads: 5, ..default() });
    assert_eq!(text, "threads: 5 is not allowed; from 1 to 4");
    let text = refused(Bound { words: vec![4, 8], ..default() });
    assert_eq!(text, "words: 12 is not allowed; from 1 to 8");
    let text = refused(Bound { transactions: 6, stores: 4, ..default() });
    assert!(text.contains("more than 4000000 programs"), "{text}");
}

/// Class of bug: a design whose structures never fill in small programs, so that nothing is said of what happens then.
#[test]
fn every_design_that_guarantees_anything_is_scaled_down() {
    for &design in registry().designs() {
        if !design.is_safe(&registry().defaults()) {
            continue;
        }
        assert!(!design.scaled_down.is_empty(), "{}", design.name);
        let all = enumeration(design, None, &Bound::default());
        assert_eq!(all.settings().len(), design.scaled_down.len(), "{}", design.name);
        for (key, value) in design.scaled_down {
            assert!(all.settings().contains(&((*key).into(), (*value).into())), "{key}");
        }
        let full = scaled(design, None, Scale::Full, &Bound::default());
        assert!(full.settings().is_empty(), "{}", design.name);
    }
}

#[test]
fn settings_of_the_user_go_before_the_scale() {
    let set = vec![("silo.log_buffer_entries".to_owned(), "3".to_owned())];
    let bound = Bound { transactions: 1, ..Bound::default() };
    let all = Enumeration::new(registry(), find("silo"), None, (Scale::Down, set), bound);
    let all = all.unwrap_or_else(|e| panic!("{e}"));
    let of_buffer = all.settings().iter().filter(|(key, _)| key == "silo.log_buffer_entries");
    let values: Vec<&str> = of_buffer.map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["3"]);
    assert_eq!(all.settings().len(), find("silo").scaled_down.len());
}

/// States that small programs reach on a design that is scaled down, and do not where it has its default sizes: logs come
/// round, and structures are full.
const FULL: [(&str, &[&str]); 18] = [
    ("base", &["area-wrapped"]),
    ("fwb", &["log-wrapped", "log-full", "head-moved"]),
    ("fwb-crade", &["log-wrapped", "log-full", "head-moved"]),
    ("fwb-slde", &["log-wrapped", "log-full", "head-moved"]),
    ("hwl", &["log-wrapped", "log-full", "head-moved"]),
    ("hoop", &["region-wrapped"]),
    ("lad", &["log-wrapped", "overflow"]),
    ("lalea-lad", &["overflow"]),
    ("lsm", &["segment-full", "segment-reused", "waits-for-segment"]),
    ("morlog", &["log-wrapped", "log-full"]),
    ("opt-redo", &["area-wrapped", "area-full"]),
    ("opt-undo", &["log-wrapped"]),
    ("osp", &["journal-wrapped", "shadow-page-reused"]),
    ("redu", &["area-wrapped"]),
    ("blom", &["area-wrapped"]),
    ("silo", &["area-wrapped", "log-buffer-exactly-full"]),
    ("redo-clwb", &["log-wrapped"]),
    ("undo-clwb", &["log-wrapped"]),
];

/// Class of bug: a wrap, a reused place or a full structure that is wrong, and that no small program comes to.
#[test]
fn logs_come_round_and_structures_fill_within_small_programs() {
    let bound = Bound {
        words: vec![1, 1],
        departures: 0,
        life: LifeBound { transactions: 0, stores: 1 },
        ..Bound::default()
    };
    with_each(&FULL, |&(name, points)| {
        let design = find(name);
        let counts = |scale| {
            let checked = run(&scaled(design, None, scale, &bound));
            let refused = (checked.refused, &checked.refusal);
            assert!(checked.refused * 10 < checked.schedules, "{name}: {refused:?}");
            assert!(checked.findings.is_empty(), "{name}");
            let named = design.covered().map(|point| point.name).zip(checked.covered);
            named.collect::<BTreeMap<&str, u64>>()
        };
        let (down, full) = (counts(Scale::Down), counts(Scale::Full));
        for point in points {
            assert!(down[point] > 0, "{name}: {point}");
            assert_eq!(full[point], 0, "{name}: {point}");
        }
    });
}
