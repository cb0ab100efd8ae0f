//! The contract that every design keeps, and every workload, for the tests of those who add one.
//!
//! A design is run, crashed, attacked by the adversary, and made worse by each of its mutants; its commits take what its entry
//! declares ([`crate::acknowledgement`]). Each failure is a
//! sentence; a test demands that there are none:
//!
//! ```ignore
//! #[test]
//! fn the_design_keeps_the_contract() {
//!     let mut registry = graven::standard();
//!     undo::register(&mut registry);
//!     let failures = graven::contract::design(&registry, &undo::INFO, &Effort::QUICK);
//!     assert!(failures.is_empty(), "{}", failures.join("\n"));
//! }
//! ```

use crate::acknowledgement;
use graven_base::config::{Config, ConfigError};
use graven_lab::campaign::{Report, RunCampaign, Schedules};
use graven_lab::case::{self, Case};
use graven_lab::explorer::Thoroughness;
use graven_lab::litmus::{self, Litmus};
use graven_machine::design::{DesignInfo, MutantSet};
use graven_machine::registry::Registry;
use graven_machine::sim::{SimError, Simulation};
use graven_machine::workload::WorkloadInfo;

/// The laboratory's machine: everything is as small as it can be.
const MACHINE: &str = "cramped";
/// Workloads in which designs are run and crashed: an array, nodes with pointers, and elements that are handed over.
const WORKLOADS: [&str; 3] = ["array", "hash", "queue"];
/// Designs under which workloads are run and crashed: without logging, with the plainest, with buffers that overflow.
const DESIGNS: [&str; 3] = ["ideal", "base", "silo"];
/// Threads of the runs.
const THREADS: u64 = 4;

/// Sizes of the runs, and numbers of crash points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Transactions of each run that is crashed.
    pub transactions: u64,
    /// The adversary's schedules.
    pub schedules: u64,
    /// Schedules within which each mutant must be killed.
    pub schedules_for_mutant: u64,
}

impl Effort {
    /// Seconds: for the tests that every edit runs.
    pub const QUICK: Effort =
        Effort { transactions: 60, schedules: 300, schedules_for_mutant: 1000 };
    /// Minutes.
    pub const THOROUGH: Effort =
        Effort { transactions: 400, schedules: 10_000, schedules_for_mutant: 10_000 };
}

/// Lists the clauses of the contract that a design breaks.
pub fn design(registry: &Registry, design: &'static DesignInfo, effort: &Effort) -> Vec<String> {
    let mut failures = Vec::new();
    let sound = design.is_sound(&registry.defaults());
    if design.inherent == MutantSet::NONE {
        failures.extend(acknowledgement::failures(registry, design));
    }
    for workload in WORKLOADS {
        failures.extend(same_data(registry, design.name, workload, effort).err());
        match crash(registry, design.name, workload, effort) {
            Ok(report) => failures.extend(violations(design.name, workload, &report, sound)),
            Err(error) => failures.push(format!("{} on {workload}: {error}", design.name)),
        }
    }
    match attack(registry, design, None, effort.schedules) {
        Ok(report) if sound => {
            failures.extend(violations(design.name, "the adversary", &report, sound));
        }
        Ok(report) if report.findings.is_empty() => {
            failures.push(format!("{} claims no soundness, and was never violated", design.name));
        }
        Ok(_) => {}
        Err(error) => failures.push(format!("{} under the adversary: {error}", design.name)),
    }
    for mutant in design.mutants {
        match attack(registry, design, Some(mutant.name), effort.schedules_for_mutant) {
            Ok(report) if report.findings.is_empty() => {
                let schedules = report.runs;
                failures.push(format!(
                    "the mutant {} of {} survived {schedules} schedules",
                    mutant.name, design.name
                ));
            }
            Ok(_) => {}
            Err(error) => failures.push(format!("{} with {}: {error}", design.name, mutant.name)),
        }
    }
    failures
}

/// Lists the clauses of the contract that a workload breaks: it runs to its end under every kind of design, leaves the
/// same data, and its structures hold after every power failure.
pub fn workload(
    registry: &Registry,
    workload: &'static WorkloadInfo,
    effort: &Effort,
) -> Vec<String> {
    let mut failures = Vec::new();
    for design in DESIGNS {
        failures.extend(same_data(registry, design, workload.name, effort).err());
        if design == "ideal" {
            continue;
        }
        match crash(registry, design, workload.name, effort) {
            Ok(report) => failures.extend(violations(design, workload.name, &report, true)),
            Err(error) => failures.push(format!("{design} on {}: {error}", workload.name)),
        }
    }
    failures
}

/// Lists what schedules of the adversary show of a sound design: violations, states worth reaching that none has reached, and
/// refusals, if there are many.
pub fn exploration(
    registry: &Registry,
    design: &'static DesignInfo,
    schedules: u64,
) -> Vec<String> {
    let report = match attack(registry, design, None, schedules) {
        Ok(report) => report,
        Err(error) => return vec![format!("{} under the adversary: {error}", design.name)],
    };
    let mut failures = violations(design.name, "the adversary", &report, true);
    for point in design.covered() {
        let times = report.coverage.iter().find(|(name, ..)| *name == point.name);
        if times.is_none_or(|&(.., times)| times == 0) {
            failures.push(format!("no schedule has reached {} of {}", point.name, design.name));
        }
    }
    failures
}

/// Lists the litmus programs that do not come out as they say: each names the designs that keep their guarantee in it, and those
/// that do not. A program that names a mutant is tried without it, too: then the designs that it violates must keep theirs.
///
/// # Panics
/// If a text is no litmus program, or names a design that does not exist.
pub fn programs(registry: &Registry, texts: &[&str]) -> Vec<String> {
    let mut failures = Vec::new();
    let written = texts.iter().map(|text| litmus::parse(text).unwrap_or_else(|e| panic!("{e}")));
    for litmus in written.flat_map(|litmus| without_mutant(&litmus).into_iter().chain([litmus])) {
        for (design, violates) in case::designs_of(registry, &litmus).expect("they exist") {
            let case = Case::new(registry, &litmus, design).unwrap_or_else(|e| panic!("{e}"));
            let what = match case.run() {
                Ok(outcome) => outcome.violations.into_iter().next().map(|v| v.what),
                Err(error) => {
                    failures.push(format!("{} in `{}`: {error}", design.name, litmus.title));
                    continue;
                }
            };
            if what.is_some() != violates {
                let what = what.unwrap_or_else(|| "no violation was found".into());
                failures.push(format!("{} in `{}`: {what}", design.name, litmus.title));
            }
        }
    }
    failures
}

/// A program that names a mutant, without it: the designs that it violates are to keep their guarantee.
fn without_mutant(litmus: &Litmus) -> Option<Litmus> {
    litmus.mutant.as_ref()?;
    let title = format!("{}, without its mutant", litmus.title);
    let designs = [&litmus.designs[..], &litmus.violates[..]].concat();
    Some(Litmus { title, designs, violates: Vec::new(), mutant: None, ..litmus.clone() })
}

fn config(registry: &Registry) -> Result<Config, ConfigError> {
    let mut config = registry.machine(MACHINE)?;
    let settings = [
        ("workload.footprint_bytes", "64 KB"),
        ("workload.insert_percent", "50"),
        ("workload.remove_percent", "30"),
    ];
    for (key, value) in settings {
        config.set(key, value)?;
    }
    Ok(config)
}

/// Two runs are the same run, and leave what they leave without any design.
fn same_data(
    registry: &Registry,
    design: &str,
    workload: &str,
    effort: &Effort,
) -> Result<(), String> {
    let run = |design: &str| -> Result<(u64, String), String> {
        let named = |error: &dyn std::fmt::Display| format!("{design} on {workload}: {error}");
        let config = config(registry).map_err(|e| named(&e))?;
        let (threads, transactions) = (Some(THREADS), Some(effort.transactions));
        let spec = registry.spec(config, design, workload, threads, transactions, 7);
        let spec = spec.map_err(|e| named(&e))?;
        let mut simulation = Simulation::new(&spec).map_err(|e| named(&e))?;
        let digest = simulation.run().map_err(|e| named(&e))?;
        let counted: Vec<_> = simulation.design_counts().iter().map(|(d, _)| d.name).collect();
        let declared: Vec<_> = (spec.design.counters)().iter().map(|d| d.name).collect();
        if counted != declared {
            return Err(format!(
                "{design} counts {counted:?}, and its entry declares {declared:?}"
            ));
        }
        Ok((digest, simulation.record(digest).to_string()))
    };
    let (digest, record) = run(design)?;
    if run(design)?.1 != record {
        return Err(format!("{design} on {workload}: the same run gives two results"));
    }
    if run("ideal")?.0 != digest {
        return Err(format!("{design} on {workload}: it leaves other data than without a design"));
    }
    Ok(())
}

/// A run that is crashed at every crash point.
fn crash(
    registry: &Registry,
    design: &str,
    workload: &str,
    effort: &Effort,
) -> Result<Report, String> {
    let config = config(registry).map_err(|e| e.to_string())?;
    let (threads, transactions) = (Some(THREADS), Some(effort.transactions));
    let spec = registry.spec(config, design, workload, threads, transactions, 7);
    let mut spec = spec.map_err(|e| e.to_string())?;
    spec.crash_options.garbage = Some(3);
    let how = Thoroughness { recovery_every: 64, structures_every: 64, ..Thoroughness::LONG };
    let campaign = RunCampaign::new(registry, spec, how).and_then(|run| run.going_on(1));
    campaign.map_err(|e| e.to_string())?.run().map_err(|e| e.to_string())
}

fn attack(
    registry: &Registry,
    design: &'static DesignInfo,
    mutant: Option<&str>,
    schedules: u64,
) -> Result<Report, String> {
    // Of what must be violated nobody reads the program, and to minimise it takes hundreds of runs.
    let is_shown = mutant.is_none() && design.is_sound(&registry.defaults());
    let mutant = mutant.map(str::to_owned);
    let campaign = Schedules::new(registry, design, mutant, Vec::new(), (1, schedules), 1);
    let campaign = campaign.map_err(|e| e.to_string())?;
    let campaign = if is_shown { campaign } else { campaign.as_drawn() };
    campaign.run().map_err(|e: SimError| e.to_string())
}

/// Lists the findings of a report that a design which is to keep its guarantee must not have.
fn violations(design: &str, under: &str, report: &Report, sound: bool) -> Vec<String> {
    let mut found = Vec::new();
    if sound && let Some(finding) = report.findings.first() {
        let replay = finding.replay.as_ref().map(ToString::to_string).unwrap_or_default();
        let what = &finding.violation.what;
        found.push(format!("{design} under {under}: {what}\n{replay}\n{}", finding.timeline));
    }
    if report.tally.crash_points == 0 {
        found.push(format!("{design} under {under}: there was no crash point"));
    }
    if report.refused * 5 > report.runs.max(1) {
        let (refused, why) = (report.refused, report.refusal.as_deref().unwrap_or_default());
        found.push(format!("{design} under {under}: it refused {refused} runs: {why}"));
    }
    found
}
