//! Campaigns: runs that are crashed wherever they can be, and what they must find.

use super::registry;
use std::collections::BTreeSet;

use graven::design::MutantSet;
use graven::lab::case::{Case, designs_of};
use graven::lab::explorer::{CrashRun, Outcome, Tally, Thoroughness, Violation};
use graven::lab::litmus::{Choices, Litmus, parse};
use graven::sim::{CrashOptions, Spec};
use graven::workload::WorkloadInfo;

use super::shared_lines::SHARED_LINES;
use super::{changed, spec_of, tiny_config};

/// Runs of one kind, one for each seed from 1 on: the workload's, that of the delays and orders in memory,
/// and that of the bytes which the log region holds at first.
pub struct Campaign {
    /// What runs.
    pub workload: &'static WorkloadInfo,
    /// On the tiny machine with these settings.
    pub settings: &'static [(&'static str, &'static str)],
    /// Transactions of a run, over four threads.
    pub transactions: u64,
    /// Number of each thread's first.
    pub first_transaction: u64,
    /// How many runs.
    pub runs: u64,
}

/// What a campaign came to.
#[derive(Default)]
pub struct Found {
    /// The first broken guarantee, with which the campaign ends.
    pub violation: Option<Violation>,
    /// What was checked until then.
    pub tally: Tally,
    /// How often each cover of the design was reached.
    pub cover_points: Vec<u64>,
}

impl Found {
    /// The broken guarantee, in words.
    pub fn what(&self) -> Option<&str> {
        self.violation.as_ref().map(|c| c.what.as_str())
    }
}

impl Campaign {
    /// Examines a design.
    pub fn examine(
        &self,
        design: &'static graven::design::DesignInfo,
        mutants: MutantSet,
    ) -> Found {
        let mut found =
            Found { cover_points: vec![0; design.cover_points.len()], ..Found::default() };
        for seed in 1..=self.runs {
            let crash_options = CrashOptions {
                mutants,
                operator: None,
                first_transaction: self.first_transaction,
                garbage: Some(seed),
                adversary: Some(Choices::Drawn(seed)),
            };
            let config = tiny_config(self.settings);
            let spec = spec_of(&config, design, self.workload, 4, self.transactions, seed);
            let spec = Spec { crash_options, ..spec };
            let run = CrashRun::new(&spec, None, Thoroughness::LONG);
            let outcome = run.unwrap_or_else(|e| panic!("{e}")).run(None).expect("not cancelled");
            assert_eq!(outcome.refused, None, "{}", design.name);
            found.tally.add(&outcome.tally);
            found.cover_points.iter_mut().zip(&outcome.cover_points).for_each(|(sum, n)| *sum += n);
            found.violation = outcome.violations.into_iter().next();
            if found.violation.is_some() {
                break;
            }
        }
        found
    }
}

/// A run over four threads that is crashed wherever `how` says, on a machine that is smaller still than the tiny one.
/// Settings are `KEY=VALUE` with keys of the configuration, `adversary` and `garbage` (seeds), and `first` (the number of
/// each thread's first transaction).
pub fn exhaust(
    design: &str,
    workload: &'static WorkloadInfo,
    transactions: u64,
    (mutants, settings, seed): (MutantSet, &str, u64),
    how: Thoroughness,
) -> Outcome {
    let mut config = tiny_config(&[
        ("l1.bytes", "512"),
        ("l2.bytes", "1 KB"),
        ("llc.bytes", "4 KB"),
        ("controller.write_queue_entries", "4"),
        ("pm.buffer_lines", "2"),
        ("pm.log_region_bytes", "256 KB"),
    ]);
    let mut crash_options = CrashOptions { mutants, ..CrashOptions::default() };
    for setting in settings.split_whitespace() {
        let (key, value) = setting.split_once('=').expect("KEY=VALUE");
        let number = || value.parse().unwrap_or_else(|e| panic!("{setting}: {e}"));
        match key {
            "adversary" => crash_options.adversary = Some(Choices::Drawn(number())),
            "garbage" => crash_options.garbage = Some(number()),
            "first" => crash_options.first_transaction = number(),
            _ => config = changed(config, &[(key, value)]),
        }
    }
    let design = registry().find_design(design).unwrap_or_else(|e| panic!("{e}"));
    let spec = spec_of(&config, design, workload, 4, transactions, seed);
    let run = CrashRun::new(&Spec { crash_options, ..spec }, None, how);
    run.unwrap_or_else(|e| panic!("{e}")).run(None).unwrap_or_else(|e| panic!("{e}"))
}

/// Settings, and one more: `N` in all.
pub const fn with<const N: usize>(
    settings: &[(&'static str, &'static str)],
    one: (&'static str, &'static str),
) -> [(&'static str, &'static str); N] {
    assert!(settings.len() + 1 == N);
    let mut all = [one; N];
    all.split_at_mut(N - 1).0.copy_from_slice(settings);
    all
}

/// Demands that each campaign violates the mutants at its side within so many crash points, and the
/// design itself never; that all mutants of the design are among them, or each in one of the litmus
/// programs, of which the same is demanded; and that all of these together, with nothing mutated, reach all its cover_points.
pub fn demand(design: &str, campaigns: &[(Campaign, &[(&str, u64)])], programs: &[&str]) {
    let design = registry().find_design(design).unwrap_or_else(|e| panic!("{e}"));
    let (mut violated, mut cover_points) = (BTreeSet::new(), vec![0; design.cover_points.len()]);
    for (number, (campaign, mutants)) in campaigns.iter().enumerate() {
        let intact = campaign.examine(design, MutantSet::NONE);
        assert_eq!(intact.what(), None, "{}, campaign {number}", design.name);
        cover_points.iter_mut().zip(&intact.cover_points).for_each(|(sum, n)| *sum += n);
        for &(name, points_max) in *mutants {
            let mutant = design.mutant(name).unwrap_or_else(|e| panic!("{e}"));
            let found = campaign.examine(design, mutant);
            let points = found.tally.crash_points;
            assert!(found.violation.is_some(), "{name} was not violated in {points} crash points");
            assert!(
                points <= points_max,
                "{name} violated its guarantee after {points} crash points"
            );
            violated.insert(name.to_owned());
        }
    }
    for text in programs {
        let mut litmus = parse(text).unwrap_or_else(|e| panic!("{e}"));
        assert!(violates(&litmus, design), "{:?} was not violated", litmus.mutant);
        violated.extend(litmus.mutant.take());
        let intact = outcome(&litmus, design);
        assert!(intact.violations.is_empty(), "{}", litmus.title);
        cover_points.iter_mut().zip(&intact.cover_points).for_each(|(sum, n)| *sum += n);
    }
    let named: BTreeSet<String> = design.mutants.iter().map(|s| s.name.to_owned()).collect();
    assert_eq!(violated, named, "each mutant has its place in some campaign");
    let missed = design.cover_points.iter().zip(&cover_points).filter(|&(_, &n)| n == 0);
    let missed: Vec<&str> = missed.map(|(cover, _)| cover.name).collect();
    assert!(missed.is_empty(), "the campaigns and programs never reach {missed:?}");
}

/// Whether a program violates a design.
pub fn violates(litmus: &Litmus, design: &'static graven::design::DesignInfo) -> bool {
    !outcome(litmus, design).violations.is_empty()
}

fn outcome(litmus: &Litmus, design: &'static graven::design::DesignInfo) -> Outcome {
    let case = Case::new(registry(), litmus, design).unwrap_or_else(|e| panic!("{e}"));
    let outcome = case.examined(Thoroughness::SHORT).run().expect("not cancelled");
    assert_eq!(outcome.refused, None, "{}", litmus.title);
    outcome
}

/// Demands of programs that they violate exactly those designs of which they say so.
pub fn demand_of_programs(texts: &[&str]) {
    for text in texts {
        let litmus = parse(text).unwrap_or_else(|e| panic!("{e}"));
        for (design, must_violate) in designs_of(registry(), &litmus).expect("known designs") {
            let violated = violates(&litmus, design);
            assert_eq!(violated, must_violate, "{}: {}", design.name, litmus.title);
        }
    }
}

/// Demands of a design that refuses transactions which its log area (parameter `key`) does not hold: with room for one
/// record less than the largest needs, of `record_bytes` each, it gives up and has broken nothing.
/// Returns how many are enough, out of `search`.
pub fn demand_enough_room(
    design: &str,
    key: &str,
    record_bytes: u64,
    settings: &[(&str, &str)],
    mut search: std::ops::Range<u64>,
) -> u64 {
    let with_room_for = |records: u64| {
        let bytes = (records * record_bytes).to_string();
        let config = changed(tiny_config(settings), &[(key, &bytes)]);
        let spec = registry().spec(config, design, "array", Some(4), Some(56), 1);
        let mut spec = spec.expect("known names");
        spec.workload = &SHARED_LINES;
        spec.crash_options = CrashOptions {
            garbage: Some(1),
            adversary: Some(Choices::Drawn(1)),
            ..CrashOptions::default()
        };
        let run = CrashRun::new(&spec, None, Thoroughness::LONG).expect("the areas fit");
        run.run(None).expect("not cancelled")
    };
    let is_enough = |records: &u64| with_room_for(*records).refused.is_none();
    let enough = search.find(is_enough).expect("some are enough");
    assert!(with_room_for(enough).violations.is_empty());
    let refused = with_room_for(enough - 1);
    assert!(refused.violations.is_empty(), "nothing is overwritten before it gives up");
    let why = refused.refused.expect("one too few");
    assert!(why.contains(&format!("log_bytes_per_thread holds ({})", enough - 1)), "{why}");
    enough
}
