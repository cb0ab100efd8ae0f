//! Campaigns: a run that is crashed everywhere, or many schedules of the adversary, with what is to be
//! reported of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::adversary::schedule;
use crate::case::{Case, LitmusError};
use crate::explorer::{Conviction, Exhaustion, Outcome, STATES, Tally, Thoroughness};
use crate::litmus::{CrashAt, Form, Litmus};
use crate::minimise::shrink_watched;
use crate::recording::Recording;
use crate::timeline::{Timeline, tell};
use graven_base::config::ConfigError;
use graven_base::control::Control;
use graven_base::memory::Addr;
use graven_machine::design::{Entry, Promise};
use graven_machine::registry::Registry;
use graven_machine::sim::{SimError, Spec};

/// A conviction with its story.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was broken, in the shrunk program if there is one.
    pub conviction: Conviction,
    /// What led to it.
    pub timeline: Timeline,
    /// A program that replays it exactly.
    pub replay: Option<Litmus>,
    /// The adversary's seed, if it was one of its schedules.
    pub seed: Option<u64>,
}

/// What a campaign has found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was judged.
    pub tally: Tally,
    /// Convictions.
    pub findings: Vec<Finding>,
    /// How often each state worth reaching was reached: those of all designs, then this one's.
    pub reached: Vec<(&'static str, &'static str, u64)>,
    /// Runs that the design refused to go on with, with its reason the first time.
    pub refused: u64,
    /// That reason.
    pub refusal: Option<String>,
    /// Runs.
    pub runs: u64,
    /// The next seed, of an adversary's campaign.
    pub next_seed: u64,
}

impl Report {
    /// An empty one for a design.
    pub fn new(design: &Entry) -> Report {
        let named = STATES.iter().chain(design.corners);
        Report {
            reached: named.map(|state| (state.name, state.summary, 0)).collect(),
            ..Report::default()
        }
    }

    /// Adds a run.
    pub fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.tally.add(&outcome.tally);
        let counts = outcome.reached.counts().iter().chain(&outcome.corners);
        self.reached.iter_mut().zip(counts).for_each(|(state, n)| state.2 += n);
        if let Some(why) = &outcome.refused {
            self.refused += 1;
            self.refusal.get_or_insert_with(|| why.clone());
        }
    }

    /// Adds a conviction that its own program replays.
    pub fn add_story(&mut self, conviction: Conviction, timeline: Timeline) {
        self.findings.push(Finding { conviction, timeline, replay: None, seed: None });
    }

    /// As JSON: `crash_points`, `recoveries`, `forms`, `convictions`, `reached`, `not_reached`, `runs`,
    /// `refused`, `refusal`, `next_seed`.
    pub fn to_json(&self) -> Value {
        let reached: BTreeMap<&str, u64> = self.reached.iter().map(|s| (s.0, s.2)).collect();
        let not: Vec<&str> = self.reached.iter().filter(|s| s.2 == 0).map(|s| s.0).collect();
        json!({
            "crash_points": self.tally.crash_points,
            "recoveries": self.tally.recoveries(),
            "forms": {
                "plain": self.tally.plain, "torn": self.tally.torn,
                "in_flight": self.tally.in_flight, "recovery": self.tally.recovery,
                "structures": self.tally.structures,
            },
            "convictions": self.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
            "reached": reached, "not_reached": not,
            "runs": self.runs, "refused": self.refused, "refusal": self.refusal,
            "next_seed": self.next_seed,
        })
    }
}

impl Finding {
    fn to_json(&self) -> Value {
        let row =
            |r: &crate::timeline::Row| json!({ "cycle": r.cycle, "who": r.who, "what": r.what });
        json!({
            "point": self.conviction.point,
            "form": form_text(self.conviction.form),
            "cycle": self.conviction.cycle,
            "what": self.conviction.what,
            "seed": self.seed,
            "timeline": self.timeline.rows.iter().map(row).collect::<Vec<_>>(),
            "left_out": self.timeline.left_out,
            "replay": self.replay.as_ref().map(Litmus::to_string),
        })
    }
}

/// A form as a litmus program writes it.
pub fn form_text(form: Form) -> String {
    match form {
        Form::Plain => "plain".into(),
        Form::Torn(mask) => format!("torn {mask:#x}"),
        Form::InFlight(seed) => format!("in-flight {seed}"),
        Form::Recovery(writes) => format!("recovery {writes}"),
    }
}

/// What a design promises, in a word.
pub fn promise_text(promise: Promise) -> &'static str {
    match promise {
        Promise::Nothing => "nothing",
        Promise::CommitOrder => "commit-order",
        Promise::Durable => "durable",
    }
}

/// The story of a program's conviction.
///
/// # Errors
/// Whatever does not exist or fit.
pub fn story_of(
    registry: &Registry,
    litmus: &Litmus,
    design: &'static Entry,
) -> Result<Option<(Conviction, Timeline)>, LitmusError> {
    let case = Case::new(registry, litmus, design)?;
    let Ok(mut told) = case.tell() else { return Ok(None) };
    if told.convictions.is_empty() {
        return Ok(None);
    }
    let conviction = told.convictions.remove(0);
    let name = |addr: Addr| case.layout().name(addr).map(str::to_owned);
    let timeline = tell(&told.story, &conviction, &name);
    Ok(Some((conviction, timeline)))
}

/// One run, crashed at every crash point.
pub struct RunCampaign<'r> {
    registry: &'r Registry,
    spec: Spec,
    how: Thoroughness,
    run: Exhaustion,
}

impl<'r> RunCampaign<'r> {
    /// Checks everything; nothing runs.
    ///
    /// # Errors
    /// Parameters that design or workload cannot work with.
    pub fn new(
        registry: &'r Registry,
        spec: Spec,
        how: Thoroughness,
    ) -> Result<RunCampaign<'r>, ConfigError> {
        let run = Exhaustion::new(&spec, None, how)?;
        Ok(RunCampaign { registry, spec, how, run })
    }

    /// For watching and cancelling from another thread: transactions, and power failures.
    pub fn control(&self) -> Arc<Control> {
        self.run.control()
    }

    /// Runs it. The first conviction is repeated with every operation recorded, reduced, and told.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn run(self) -> Result<Report, SimError> {
        let mut report = Report::new(self.spec.design);
        let control = self.run.control();
        let outcome = self.run.run(None)?;
        control.reducing(!outcome.convictions.is_empty());
        report.add(&outcome);
        for (i, conviction) in outcome.convictions.iter().enumerate() {
            let finding = if i == 0 {
                self::reduced(self.registry, &self.spec, self.how, conviction, &control)
            } else {
                None
            };
            report.findings.push(finding.unwrap_or_else(|| Finding {
                timeline: untold(conviction),
                conviction: conviction.clone(),
                replay: None,
                seed: None,
            }));
        }
        Ok(report)
    }
}

/// Without a program to replay, what is known is its end.
fn untold(conviction: &Conviction) -> Timeline {
    tell(&[], conviction, &|_| None)
}

/// The run as a litmus program, reduced if only part of it is needed.
fn reduced(
    registry: &Registry,
    spec: &Spec,
    how: Thoroughness,
    conviction: &Conviction,
    control: &Arc<Control>,
) -> Option<Finding> {
    let only = CrashAt::Point { number: conviction.point, form: conviction.form };
    let recording = Recording::new(spec).ok()?;
    let log = recording.log();
    let run = Exhaustion::new(spec, Some(Box::new(recording)), Thoroughness { at: only, ..how });
    run.ok()?.run(None).ok()?;
    let litmus = log.to_litmus(registry, spec, &conviction.what)?;
    let least = shrink_watched(registry, &litmus, spec.design, conviction.form, spec.seed, control);
    let replay = least.map_or_else(|| Litmus { crash: only, ..litmus }, |least| least.litmus);
    let (conviction, timeline) = story_of(registry, &replay, spec.design).ok()??;
    Some(Finding {
        conviction,
        timeline,
        replay: Some(as_claimed(registry, replay, spec.design)),
        seed: None,
    })
}

/// With what is expected of the design: of one that is not sound, or sabotaged, that it is convicted.
fn as_claimed(registry: &Registry, mut litmus: Litmus, design: &'static Entry) -> Litmus {
    let claims = |case: Case| litmus.sabotage.is_none() && design.is_sound(case.config());
    if !Case::new(registry, &litmus, design).is_ok_and(claims) {
        litmus.convicts = std::mem::take(&mut litmus.designs);
    }
    litmus
}

/// Many schedules of the adversary.
pub struct AdversaryCampaign<'r> {
    registry: &'r Registry,
    design: &'static Entry,
    sabotage: Option<String>,
    settings: Vec<(String, String)>,
    first_seed: u64,
    seeds: u64,
    convictions_max: usize,
    control: Arc<Control>,
}

impl<'r> AdversaryCampaign<'r> {
    /// Schedules `first_seed..first_seed + seeds`, with these settings on top of what is drawn, up to so
    /// many convictions.
    ///
    /// # Errors
    /// A sabotage that the design does not have, or settings that do not fit.
    pub fn new(
        registry: &'r Registry,
        design: &'static Entry,
        sabotage: Option<String>,
        settings: Vec<(String, String)>,
        (first_seed, seeds): (u64, u64),
        convictions_max: usize,
    ) -> Result<AdversaryCampaign<'r>, LitmusError> {
        if let Some(name) = &sabotage {
            design.sabotage(name)?;
        }
        let control = Arc::new(Control::default());
        let campaign = AdversaryCampaign {
            registry,
            design,
            sabotage,
            settings,
            first_seed,
            seeds,
            convictions_max,
            control,
        };
        // Not with what is drawn: a schedule that does not fit is counted when it is its turn.
        let plain = Litmus {
            threads: vec![Vec::new()],
            settings: campaign.settings.clone(),
            ..Litmus::default()
        };
        Case::new(registry, &plain, design)?;
        Ok(campaign)
    }

    /// For watching and cancelling from another thread: schedules, and power failures.
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    fn program(&self, seed: u64) -> Litmus {
        let mut litmus = schedule(self.design, seed);
        litmus.sabotage.clone_from(&self.sabotage);
        litmus.settings.extend(self.settings.iter().cloned());
        litmus
    }

    /// Runs all schedules, or until there are convictions enough.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn run(self) -> Result<Report, SimError> {
        let mut report = Report::new(self.design);
        report.next_seed = self.first_seed;
        for seed in self.first_seed..self.first_seed + self.seeds {
            if self.control.report(seed - self.first_seed) {
                return Err(SimError::Cancelled);
            }
            let litmus = self.program(seed);
            report.next_seed = seed + 1;
            let case = match Case::new(self.registry, &litmus, self.design) {
                Ok(case) => case.examined(Thoroughness::SHORT).under(&self.control),
                Err(error) => {
                    report.refused += 1;
                    report.refusal.get_or_insert_with(|| error.to_string());
                    continue;
                }
            };
            let outcome = case.run()?;
            report.add(&outcome);
            self.control.judged(report.tally.recoveries());
            if let Some(conviction) = outcome.convictions.into_iter().next() {
                self.control.reducing(true);
                report.findings.push(self.finding(seed, &litmus, conviction));
                self.control.reducing(false);
                if report.findings.len() >= self.convictions_max {
                    break;
                }
            }
        }
        self.control.report(self.seeds);
        Ok(report)
    }

    fn finding(&self, seed: u64, litmus: &Litmus, conviction: Conviction) -> Finding {
        let least =
            shrink_watched(self.registry, litmus, self.design, conviction.form, 0, &self.control);
        let mut replay = least.map_or_else(|| litmus.clone(), |least| least.litmus);
        replay.title = format!("{}, reduced", replay.title);
        let (conviction, timeline) = match story_of(self.registry, &replay, self.design) {
            Ok(Some(told)) => told,
            _ => (conviction.clone(), untold(&conviction)),
        };
        let replay = Some(as_claimed(self.registry, replay, self.design));
        Finding { conviction, timeline, replay, seed: Some(seed) }
    }
}
