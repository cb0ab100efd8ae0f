//! The crash laboratory's side of the seam: campaigns and litmus programs from JSON, reports to JSON.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use graven::config::{Config, ConfigError};
use graven::design::DesignInfo;
use graven::lab::adversary::Draws;
use graven::lab::campaign::{
    AdversaryCampaign, AdversaryRequest, HOST_BYTES, Report, RunCampaign, Schedules,
    guarantee_text, replayed_timeline,
};
use graven::lab::case::{Case, LitmusError, designs_of};
use graven::lab::enumeration::{Bound, Enumeration, Scale};
use graven::lab::explorer::{Deadlock, Thoroughness};
use graven::lab::faults::{FaultKind, survey};
use graven::lab::litmus::{self, Circle, CrashAt, Failure as Failed, Litmus, ParseError, Places};
use graven::lab::minimise::RUNS;
use graven::lab::mutants::{Mutant, TrialError, mutants_of, try_mutant};
use graven::lab::persistency::is_for_models;
use graven::memory::Image;
use graven::sim::{Others, SimError, Simulation, Spec};
use graven::stats::region::RegionConfig;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::facade::memory_bytes;
use crate::persistency;
use crate::program_trace::{knows_lengths, spec_of, verified};
use crate::seam::{Failure, MachineSpec, Task, TaskControl, parse, registry};
use crate::verification::{Asked, Verdict, Verification};

impl From<LitmusError> for Failure {
    fn from(error: LitmusError) -> Failure {
        Failure::config(error)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunSpec {
    design: String,
    workload: String,
    machine: MachineSpec,
    threads: Option<u64>,
    transactions: Option<u64>,
    seed: u64,
    set: Vec<(String, String)>,
    mutant: Option<String>,
    /// Every n-th crash point.
    every: u64,
    /// The modes of each crash point: every n-th, 0 for none.
    torn_every: u64,
    in_flight_every: u64,
    recovery_every: u64,
    recovery_depth: u32,
    structures_every: u64,
    /// Lives that may follow a recovery.
    lives: u32,
    /// The log region holds noise at first.
    garbage: bool,
    violations: usize,
    /// Most runs that minimising takes, if not as many as by default.
    #[serde(default)]
    minimise: Option<u32>,
    /// A command that checks the recovered files of a captured program.
    #[serde(default)]
    verify: Option<String>,
    /// Limit of the checker's time, in seconds.
    #[serde(default)]
    verify_seconds: Option<f64>,
    /// The folder where the recovered files of the first violation are kept.
    #[serde(default)]
    keep: Option<PathBuf>,
    /// The only crash point at which power fails, and only plainly.
    #[serde(default)]
    at: Option<u64>,
}

/// Default limit of a checker's time, in seconds.
const VERIFY_SECONDS: f64 = 60.0;

/// Largest limit of a checker's time, in seconds: a day.
const VERIFY_SECONDS_MAX: f64 = 86_400.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AdversarySpec {
    design: String,
    set: Vec<(String, String)>,
    mutant: Option<String>,
    first_seed: u64,
    seeds: u64,
    violations: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LitmusSpec {
    /// Name of the file in messages.
    file: String,
    text: String,
    /// Instead of the designs that the program names.
    designs: Vec<String>,
    /// Instead of the persistency models that the program names.
    #[serde(default)]
    models: Vec<String>,
}

/// Returns the fields that all reports have.
fn report_json(design: &DesignInfo, config: &Config, report: &Report) -> Value {
    let mut value = json!({
        "design": design.name,
        "guarantee": guarantee_text(design.guarantee_in(config)),
        "safe": design.is_safe(config),
        "sound": design.is_sound(config),
    });
    let Value::Object(more) = report.to_json() else { unreachable!("a report is an object") };
    value.as_object_mut().expect("just made").extend(more);
    value
}

impl RunSpec {
    /// Returns the specification of the simulation, and the checker of its files.
    fn spec(&self) -> Result<(Spec, Option<Arc<Verification>>), Failure> {
        let config = self.machine.config(&self.set)?;
        RegionConfig::require_whole(&config, &[])?;
        let (threads, transactions) = (self.threads, self.transactions);
        let spec = spec_of(config, &self.design, &self.workload, threads, transactions, self.seed)?;
        let Some(command) = self.verify.clone() else { return Ok((spec, None)) };
        if self.lives > 0 {
            return Err(Failure::Config(format!(
                "lives: {} is not allowed with verify: in a later life the trace begins again with its first transaction, on \
                 files that have it already, which no run of the program leaves; allowed: 0",
                self.lives
            )));
        }
        let seconds = self.verify_seconds.unwrap_or(VERIFY_SECONDS);
        if !(seconds > 0.0 && seconds <= VERIFY_SECONDS_MAX) {
            return Err(Failure::Config(format!(
                "verify_seconds: {seconds} is not allowed; allowed: above 0, at most {VERIFY_SECONDS_MAX}"
            )));
        }
        let limit = Duration::from_secs_f64(seconds);
        let asked = Asked { command, limit, keep: self.keep.clone() };
        let (spec, verification) = verified(spec, &self.workload, asked)?;
        Ok((spec, Some(verification)))
    }
}

/// A run that is crashed everywhere; everything is checked here, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn run(spec_json: &str) -> Result<Task, Failure> {
    let given: RunSpec = parse(spec_json)?;
    let (mut spec, verification) = given.spec()?;
    if let Some(name) = &given.mutant {
        (spec.crash_options.mutants, spec.crash_options.operator) = spec.design.mutation(name)?;
    }
    spec.crash_options.garbage = given.garbage.then_some(given.seed);
    spec.check()?;
    let how = Thoroughness {
        every: given.every.max(1),
        torn_every: given.torn_every,
        in_flight_every: given.in_flight_every,
        recovery_every: given.recovery_every,
        recovery_depth: given.recovery_depth,
        structures_every: given.structures_every,
        violations_max: given.violations.max(1),
        ..Thoroughness::LONG
    };
    let how = match given.at {
        None => how,
        Some(number) => Thoroughness {
            at: CrashAt::Point { number, failure: Failed::default() },
            structures_every: 1,
            ..how
        },
    };
    let (needed, lives) = (spec.clone(), given.lives);
    let minimising_runs = given.minimise.unwrap_or(RUNS);
    let others = Others { crashes: true, lives, begin_alike: false };
    let campaign = move |watch: &TaskControl| {
        let campaign = RunCampaign::new(registry(), spec.clone(), how.clone())?.going_on(lives)?;
        watch.follow(campaign.control(), spec.transactions)?;
        if let Some(verification) = &verification {
            verification.follow(campaign.control());
        }
        let checker = verification.clone();
        let is_faulty = move || checker.as_ref().is_some_and(|checker| checker.fault().is_some());
        let campaign = campaign.minimising(minimising_runs).disregarding(is_faulty);
        let report = campaign.run()?;
        if let Some(fault) = verification.as_ref().and_then(|v| v.fault()) {
            return Err(Failure::Simulation(format!("verify: {fault}")));
        }
        let points = report.tally.crash_points;
        if let CrashAt::Point { number, .. } = how.at
            && number >= points
            && report.refused == 0
            && report.findings.is_empty()
        {
            return Err(Failure::Config(format!(
                "at: there is no crash point {number}: the run of {} has {points}, from 0",
                spec.design.name
            )));
        }
        let mut value = report_json(spec.design, &spec.config, &report);
        let more = json!({
            "workload": spec.workload.name, "machine": spec.config.machine,
            "threads": spec.threads, "transactions": spec.transactions, "seed": spec.seed,
            "mutant": given.mutant, "every": how.every,
        });
        extend(&mut value, more);
        if report.words_stored_outside > 0 {
            let words = report.words_stored_outside;
            extend(&mut value, json!({ "words_stored_outside": words }));
        }
        Ok(value)
    };
    Ok(Task::new(campaign).needing(move |_| memory_bytes(&needed, others)))
}

/// A trial of a run's checker, on files that are good: those with which the trace begins, and those after a run in which power
/// does not fail. Everything is checked here, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn trial(spec_json: &str) -> Result<Task, Failure> {
    let given: RunSpec = parse(spec_json)?;
    let (spec, verification) = given.spec()?;
    let Some(verification) = verification else {
        return Err(Failure::Config("verify: a trial is of a command".into()));
    };
    let knows_lengths = knows_lengths(&given.workload)?;
    let needed = spec.clone();
    let task = Task::new(move |watch| try_checker(&spec, &verification, knows_lengths, watch));
    Ok(task.needing(move |_| memory_bytes(&needed, Others::default())))
}

/// Runs a trial. `knows_lengths`: the trace says how long files were.
fn try_checker(
    spec: &Spec,
    verification: &Verification,
    knows_lengths: bool,
    watch: &TaskControl,
) -> Result<Value, Failure> {
    let workload = spec.build_workload()?;
    let mut image = Image::new();
    workload.populate(&mut image);
    let mut simulation = Simulation::with_workload(spec, workload)?;
    let control = simulation.control();
    watch.follow(Arc::clone(&control), spec.transactions)?;
    verification.follow(Arc::clone(&control));
    let judged = |image: &Image| match verification.judge(image) {
        _ if control.is_cancelled() => Err(Failure::Cancelled),
        Verdict::Passed => Ok(None),
        Verdict::Impossible(why) => Ok(Some((true, why))),
        Verdict::Failed(ended) => Ok(Some((false, verification.told(&ended)))),
    };
    let (mut when, mut refused) = ("before", None);
    let mut failed = judged(&image)?;
    if failed.is_none() {
        when = "after";
        match simulation.run() {
            Err(SimError::Design { why, .. }) => refused = Some(why),
            ended => {
                ended?;
                failed = judged(simulation.machine().architectural())?;
            }
        }
    }
    let failed = failed
        .map(|(is_missing, what)| json!({ "when": when, "is_missing": is_missing, "what": what }));
    Ok(json!({
        "failed": failed, "refused": refused, "knows_lengths": knows_lengths,
        "threads": spec.threads,
    }))
}

fn extend(value: &mut Value, more: Value) {
    let Value::Object(more) = more else { unreachable!("an object is given") };
    value.as_object_mut().expect("reports are objects").extend(more);
}

/// Schedules of the adversary on several designs and host threads; everything is checked here, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed, or why it cannot continue from the state.
pub fn adversary_campaign(
    request_json: &str,
    state: Option<&str>,
) -> Result<AdversaryCampaign<'static>, Failure> {
    let request: AdversaryRequest = parse(request_json)?;
    AdversaryCampaign::new(registry(), request, state).map_err(Failure::config)
}

/// Schedules of the adversary on one design, one after the other; everything is checked here, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn adversary(spec_json: &str) -> Result<Task, Failure> {
    let given: AdversarySpec = parse(spec_json)?;
    let design = registry().find_design(&given.design)?;
    let config = MachineSpec::Preset { preset: litmus::MACHINE.into() }.config(&given.set)?;
    let (seeds, first_seed, mutant) = (given.seeds, given.first_seed, given.mutant.clone());
    let schedules = Schedules::new(
        registry(),
        design,
        given.mutant,
        given.set,
        (first_seed, seeds),
        given.violations.max(1),
    )?;
    let task = Task::new(move |watch| {
        watch.follow(schedules.control(), seeds)?;
        let mut value = report_json(design, &config, &schedules.run()?);
        let more = json!({
            "workload": "adversary", "machine": litmus::MACHINE, "mutant": mutant,
            "first_seed": first_seed, "seeds": seeds,
        });
        extend(&mut value, more);
        Ok(value)
    });
    Ok(task.needing(|_| HOST_BYTES))
}

/// A program on the designs that it is for.
struct LitmusTask {
    /// Name of the file in messages.
    file: String,
    litmus: Litmus,
    places: Places,
    designs: Vec<(&'static DesignInfo, bool)>,
    /// Names of designs that the program does not fit, with the reason.
    left_out: Vec<(&'static str, String)>,
}

/// Returns the refusal of a program with its place in the file, in the form that editors find.
fn misread(file: &str, error: &ParseError) -> Failure {
    Failure::Config(format!("{file}:{}:{}: {}", error.line, error.column, error.message))
}

impl LitmusTask {
    /// Threads that wait for each other are refused where they wait, as what cannot be read is.
    fn refusal(&self, deadlock: &Deadlock) -> Failure {
        match Circle::of_run(&self.litmus, deadlock.lives_later, &deadlock.threads) {
            Some(circle) => misread(&self.file, &circle.refusal(&self.places)),
            None => Failure::Config(format!("{}: {deadlock}", self.file)),
        }
    }
}

/// A litmus program; everything is checked here. Nothing runs but programs whose threads might wait for each other for ever,
/// once and without power failures.
///
/// # Errors
/// Syntax errors as FILE:LINE:COLUMN, so that editors find the place; names and values that do not exist or fit.
pub fn litmus_program(spec_json: &str) -> Result<Task, Failure> {
    let given: LitmusSpec = parse(spec_json)?;
    let named = |error: &dyn std::fmt::Display| Failure::Config(format!("{}: {error}", given.file));
    if is_for_models(&given.text) {
        if let Some(name) = given.designs.first() {
            return Err(named(&format!(
                "the program is for persistency models, {name} is a design"
            )));
        }
        return persistency::litmus(&given.file, &given.text, &given.models);
    }
    if let Some(name) = given.models.first() {
        return Err(named(&format!(
            "the program is for designs, {name} is a persistency model; a program for models has the statement `model`"
        )));
    }
    let (litmus, places) =
        litmus::parse_placed(&given.text).map_err(|e| misread(&given.file, &e))?;
    let names_none =
        given.designs.is_empty() && litmus.designs.is_empty() && litmus.violates.is_empty();
    let designs = if given.designs.is_empty() {
        designs_of(registry(), &litmus).map_err(|e| named(&e))?
    } else {
        let one = |name: &String| -> Result<(&'static DesignInfo, bool), ConfigError> {
            Ok((registry().find_design(name)?, litmus.violates.contains(name)))
        };
        given.designs.iter().map(one).collect::<Result<_, _>>()?
    };
    let (mut fitting, mut refused) = (Vec::new(), Vec::new());
    for (design, must_violate) in designs {
        match Case::new(registry(), &litmus, design) {
            Ok(case) => fitting.push((design, must_violate, case)),
            Err(error) if error.is_misfit() => refused.push((design.name, error.to_string())),
            Err(error) => return Err(named(&error)),
        }
    }
    let may_leave_out = names_none && !fitting.is_empty();
    if !refused.is_empty() && !may_leave_out {
        return Err(named(&misfit(&refused, fitting.len() + refused.len())));
    }
    let designs = fitting.iter().map(|&(design, must_violate, _)| (design, must_violate));
    let designs = designs.collect();
    let task = LitmusTask { file: given.file.clone(), litmus, places, designs, left_out: refused };
    for (_, _, case) in &fitting {
        if let Some(deadlock) = case.rehearse()? {
            return Err(task.refusal(&deadlock));
        }
    }
    Ok(Task::new(move |watch| task.run(watch)))
}

/// Why a program does not fit the designs that it is for, `of` in all: the common reason, or that of the first.
fn misfit(refused: &[(&'static str, String)], of: usize) -> String {
    let (design, why) = &refused[0];
    match refused.iter().all(|(_, other)| other == why) {
        true if refused.len() == of => why.clone(),
        _ if refused.len() == of => format!("it fits none of {of} designs; {design}: {why}"),
        _ => format!("{design}: {why}"),
    }
}

impl LitmusTask {
    fn run(&self, watch: &TaskControl) -> Result<Value, Failure> {
        let control = watch.begin(self.designs.len() as u64)?;
        let (mut results, mut checked) = (Vec::new(), 0);
        for (done, (design, must_violate)) in self.designs.iter().enumerate() {
            if control.report(done as u64) {
                return Err(SimError::Cancelled.into());
            }
            let case = Case::new(registry(), &self.litmus, design)?.under(&control);
            let outcome = case.run()?;
            if let Some(deadlock) = &outcome.deadlock {
                return Err(self.refusal(deadlock));
            }
            let mut report = Report::new(design);
            report.add(&outcome);
            checked += report.tally.recoveries();
            control.checked(checked);
            if !outcome.violations.is_empty()
                && let Some((violation, timeline)) =
                    replayed_timeline(registry(), &self.litmus, design)?
            {
                report.add_story(violation, timeline);
            }
            let violated = !outcome.violations.is_empty();
            let mut value = report_json(design, case.config(), &report);
            let more = json!({
                "expected": if *must_violate { "violated" } else { "kept" },
                "as_expected": violated == *must_violate && outcome.refused.is_none(),
            });
            extend(&mut value, more);
            results.push(value);
        }
        control.report(self.designs.len() as u64);
        let left_out = Value::from_iter(self.left_out.iter().cloned());
        Ok(json!({ "title": self.litmus.title, "results": results, "left_out": left_out }))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MutantsSpec {
    design: String,
}

/// The mutants of a design: its own, and those that operators make of it, as runs of it have shown.
///
/// # Errors
/// A design that does not exist.
pub fn mutants(spec_json: &str) -> Result<Task, Failure> {
    let given: MutantsSpec = parse(spec_json)?;
    let design = registry().find_design(&given.design)?;
    Ok(Task::new(move |watch| {
        let all = mutants_of(registry(), design, &watch.begin(1)?)?;
        Ok(all.iter().map(|m| json!({ "name": m.name, "class": m.class })).collect())
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MutantSpec {
    design: String,
    mutant: String,
    /// Bounds of what is drawn, by name.
    draw: Vec<(String, u64)>,
    first_seed: u64,
    seeds: u64,
}

/// Schedules of the adversary on a mutant, until it is killed; everything is checked here, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn mutant(spec_json: &str) -> Result<Task, Failure> {
    let given: MutantSpec = parse(spec_json)?;
    let design = registry().find_design(&given.design)?;
    let (_, operator) = design.mutation(&given.mutant)?;
    let class = operator.map(|operator| operator.class().to_string());
    let mutant = Mutant { name: given.mutant, class };
    let draws = Draws::with(&given.draw).map_err(Failure::config)?;
    let seeds = (given.first_seed, given.seeds);
    Ok(Task::new(move |watch| {
        let control = watch.begin(seeds.1)?;
        let trial = try_mutant(registry(), design, &mutant, draws, seeds, &control);
        let trial = trial.map_err(|error| match error {
            TrialError::Unknown(error) => Failure::from(error),
            TrialError::Stopped(error) => Failure::from(error),
        })?;
        let kill = trial
            .kill
            .map(|kill| json!({ "by": kill.by.name(), "what": kill.what, "seed": kill.seed }));
        Ok(json!({
            "design": design.name, "mutant": trial.mutant.name, "class": trial.mutant.class,
            "schedules": trial.schedules, "refused": trial.refused, "kill": kill,
        }))
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckSpec {
    design: String,
    bound: Bound,
    mutant: Option<String>,
    set: Vec<(String, String)>,
    /// True if the design has its default parameters instead of those for small programs.
    full_size: bool,
    /// The number of the first program, and how many; `programs` ignores both.
    first: usize,
    count: usize,
}

fn enumeration(given: CheckSpec) -> Result<Enumeration<'static>, Failure> {
    let design = registry().find_design(&given.design)?;
    let scale = if given.full_size { Scale::Full } else { Scale::Down };
    let settings = (scale, given.set);
    let all = Enumeration::new(registry(), design, given.mutant, settings, given.bound);
    all.map_err(Failure::config)
}

/// Counts the programs within a bound, and tells the settings with which they run; everything is checked here, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn programs(spec_json: &str) -> Result<Task, Failure> {
    let enumeration = enumeration(parse(spec_json)?)?;
    Ok(Task::new(move |_| {
        let settings = enumeration.settings();
        Ok(json!({ "programs": enumeration.program_count(), "settings": settings }))
    }))
}

/// Some of the programs within a bound, executed and judged in every way; everything is checked here, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn check(spec_json: &str) -> Result<Task, Failure> {
    let given: CheckSpec = parse(spec_json)?;
    let (first, count) = (given.first, given.count);
    let design = registry().find_design(&given.design)?;
    let enumeration = enumeration(given)?;
    let all = enumeration.program_count();
    let Some(end) = first.checked_add(count).filter(|&end| end <= all) else {
        return Err(Failure::Config(format!(
            "first: program {first} and {count} in all is not allowed; there are {all}"
        )));
    };
    Ok(Task::new(move |watch| {
        watch.follow(enumeration.control(), count as u64)?;
        let checked = enumeration.run(first..end)?;
        let mut value = serde_json::to_value(&checked).expect("counts are numbers");
        let finding = checked.findings.first().map(|finding| {
            json!({
                "what": finding.violation.what,
                "program": finding.replay.as_ref().map(ToString::to_string),
                "timeline": finding.timeline.to_string(),
            })
        });
        let named = design.covered().zip(&checked.covered);
        let covered: Map<String, Value> =
            named.map(|(point, &n)| (point.name.to_owned(), n.into())).collect();
        extend(&mut value, json!({ "violation": finding, "covered": covered }));
        Ok(value)
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultsSpec {
    design: String,
    /// Bounds of what is drawn, by name.
    draw: Vec<(String, u64)>,
    first_seed: u64,
    seeds: u64,
}

/// Power failures with faults in schedules of the adversary; everything is checked here, nothing runs.
///
/// # Errors
/// A design or a bound that does not exist.
pub fn faults(spec_json: &str) -> Result<Task, Failure> {
    let given: FaultsSpec = parse(spec_json)?;
    let design = registry().find_design(&given.design)?;
    let draws = Draws::with(&given.draw).map_err(Failure::config)?;
    let seeds = (given.first_seed, given.seeds);
    Ok(Task::new(move |watch| {
        let found = survey(registry(), design, &draws, seeds, &watch.begin(seeds.1)?)?;
        let kinds = FaultKind::ALL.iter().zip(&found.counts);
        let kinds = kinds.map(|((_, name), counts)| {
            json!({
                "fault": name, "kept": counts.kept, "reported": counts.reported, "lost": counts.lost,
            })
        });
        Ok(json!({
            "design": design.name, "schedules": found.schedules, "faults": Value::from_iter(kinds),
        }))
    }))
}
