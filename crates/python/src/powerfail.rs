//! Power failures of captured programs: what may be left of their files, and what the user's commands say of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use graven::control::Control;
use graven::memory::Image;
use graven::persistency::model::Model;
use graven::powerfail::candidate::{Candidate, Name};
use graven::powerfail::choice::Keys;
use graven::powerfail::explore::{End, Explorer, Found, Options, Outcome};
use graven::powerfail::frontier::{Cursor, Rules};
use graven::powerfail::judge::{Fault, Judge, Verdicts};
use graven::powerfail::mend::mend;
use graven::powerfail::panel::{Panel, Refusal};
use graven::powerfail::points::Points;
use graven::powerfail::story::{Story, StoryFile, What};
use graven::powerfail::told::{Teller, Violation};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::image_files::{self, ImageFile};
use crate::left_behind::{Commands, FilesJudge};
use crate::program_trace::{failure, open};
use crate::seam::{Failure, Task, parse};

/// The name of the page cache among the models.
const PAGE_CACHE: &str = "page-cache";
/// Bytes of its sectors.
const SECTORS: [u64; 2] = [512, 4096];
/// Most images that are named as samples of those that the judge finds good.
const SAMPLES: usize = 64;

/// The request of an exploration.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PowerfailSpec {
    trace: String,
    model: String,
    /// Bytes of the page cache's sectors.
    sector: u64,
    /// Operations that are over must survive.
    acknowledges: bool,
    verify: Vec<String>,
    kept: Option<String>,
    dump: Option<String>,
    serve: Option<String>,
    ask: Option<String>,
    /// Verdicts of an earlier exploration of the same request; then all are returned.
    known: Option<BTreeMap<u64, Option<Fault>>>,
    /// Longest time of each command.
    verify_seconds: f64,
    images: u64,
    /// Longest time of the exploration.
    seconds: f64,
    violations: usize,
    seed: u64,
    workers: usize,
    mend: bool,
    /// One image, by its name.
    only: Option<String>,
    /// A folder where the files of the first violation are kept, or of the one image.
    keep: Option<PathBuf>,
}

impl PowerfailSpec {
    fn rules(&self) -> Result<Rules, Failure> {
        if self.model != PAGE_CACHE {
            let model = Model::find(&self.model)
                .map_err(|error| Failure::Config(format!("model: {error}, {PAGE_CACHE}")))?;
            return Ok(Rules::Processor(model));
        }
        if !SECTORS.contains(&self.sector) {
            let [small, large] = SECTORS;
            return Err(Failure::Config(format!(
                "sector: {} is not allowed; allowed: {small}, {large}",
                self.sector
            )));
        }
        Ok(Rules::PageCache { sector: self.sector })
    }

    fn options(&self, rules: Rules) -> Options {
        Options {
            rules,
            acknowledges: self.acknowledges,
            images: self.images,
            time: Duration::from_secs_f64(self.seconds),
            violations: self.violations.max(1),
            is_trial: false,
            seed: self.seed,
            workers: self.workers.max(1),
        }
    }

    fn judge(&self, files: Vec<ImageFile>) -> Arc<FilesJudge> {
        let commands = Commands {
            verify: self.verify.clone(),
            kept: self.kept.clone(),
            dump: self.dump.clone(),
            serve: self.serve.clone(),
            ask: self.ask.clone(),
            limit: Duration::from_secs_f64(self.verify_seconds),
        };
        Arc::new(FilesJudge::new(commands, files, self.workers))
    }
}

/// A story, its memory as it begins, and its files.
struct Given {
    story: Story,
    before: Image,
    files: Vec<ImageFile>,
}

fn read(path: &str, control: &Control) -> Result<Given, Failure> {
    let reader = open(path)?;
    let capture = reader.contents().header.capture.clone().unwrap_or_default();
    let files = image_files::of(&capture).unwrap_or_default();
    let of_story =
        |file: &ImageFile| StoryFile { start: file.start, bytes: file.bytes, length: file.length };
    let story_files = files.iter().map(of_story).collect();
    let mut before = Image::new();
    let story = Story::read(&reader, story_files, &mut before, control)
        .map_err(|error| failure(path, error))?;
    Ok(Given { story, before, files })
}

/// An exploration; everything is checked here, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn powerfail(spec_json: &str) -> Result<Task, Failure> {
    let spec: PowerfailSpec = parse(spec_json)?;
    let rules = spec.rules()?;
    let only = spec.only.as_deref().map(str::parse::<Name>).transpose().map_err(Failure::Config)?;
    let commands = [&spec.kept, &spec.dump, &spec.serve];
    if spec.verify.is_empty() && commands.iter().all(|command| command.is_none()) && only.is_none()
    {
        let why = "no judge is named: verify, loop, serve or dump";
        return Err(Failure::Config(why.into()));
    }
    Ok(Task::new(move |watch| {
        let control = watch.begin(spec.images)?;
        let Given { story, mut before, files } = read(&spec.trace, &control)?;
        if spec.dump.is_some() {
            refuse_states(&story)?;
        }
        let judge = spec.judge(files);
        judge.follow(Arc::clone(&control));
        let points = Points::of(&story, rules, judge.compares_states(), &control);
        let keys = Keys::of(&story);
        let exploration = Exploration {
            spec: &spec,
            story: &story,
            points: &points,
            keys: &keys,
            judge: &judge,
            verdicts: Verdicts::new(spec.known.clone().unwrap_or_default()),
            options: spec.options(rules),
            control: &control,
        };
        match &only {
            Some(name) => exploration.one(&mut before, name),
            None => exploration.all(&mut before),
        }
    }))
}

/// States are compared with those between operations of one thread.
fn refuse_states(story: &Story) -> Result<(), Failure> {
    if story.operations() == 0 {
        return Err(Failure::Config(
            "dump: the trace has no operations to compare states of; name them when the program is captured (--tx FUNCTION)"
                .into(),
        ));
    }
    let threads: BTreeSet<u32> =
        story.events.iter().filter(|event| event.what == What::Begins).map(|e| e.thread).collect();
    if threads.len() > 1 {
        return Err(Failure::Config(format!(
            "dump: {} threads have operations; the states between them are not those of one order; allowed: 1",
            threads.len()
        )));
    }
    Ok(())
}

struct Exploration<'a> {
    spec: &'a PowerfailSpec,
    story: &'a Story,
    points: &'a Points,
    keys: &'a Keys,
    judge: &'a Arc<FilesJudge>,
    verdicts: Verdicts,
    options: Options,
    control: &'a Arc<Control>,
}

impl Exploration<'_> {
    /// The judge, and what it has said.
    fn asked(&self) -> (&dyn Judge, &Verdicts) {
        (self.judge.as_ref(), &self.verdicts)
    }

    fn refused(&self, refusal: Refusal) -> Failure {
        if self.control.is_cancelled() {
            return Failure::Cancelled;
        }
        match refusal {
            Refusal::Cancelled => Failure::Cancelled,
            Refusal::Judge(why) | Refusal::Unsteady(why) => Failure::Simulation(why),
            Refusal::After(fault) => Failure::Config(format!(
                "the judge refuses the files after a run in which power did not fail, which are good, so that it would say \
                 nothing of others: {}",
                fault.what
            )),
        }
    }

    /// Explores all.
    fn all(&self, before: &mut Image) -> Result<Value, Failure> {
        let story = (self.story, self.points, self.keys);
        let mut explorer = Explorer::new(story, before, self.asked(), &self.options, self.control);
        let outcome = explorer.run().map_err(|refusal| self.refused(refusal))?;
        let mut mended = Vec::new();
        for found in &outcome.found {
            mended.push(match self.spec.mend && !self.control.is_cancelled() {
                true => self.mended(before, found, &outcome.found)?,
                false => None,
            });
        }
        if let (Some(folder), Some(found)) = (&self.spec.keep, outcome.found.first()) {
            self.keep(before, &found.shrunk.candidate, folder)?;
        }
        let mut teller = Teller::new(self.story, self.points, self.options.rules);
        let told: Vec<Violation> = outcome
            .found
            .iter()
            .zip(mended)
            .map(|(found, mended)| teller.told(found, mended))
            .collect();
        let mut value = self.counts(&outcome);
        value["violations"] = json!(told);
        if self.spec.known.is_some() {
            value["verdicts"] = json!(self.verdicts.all());
        }
        Ok(value)
    }

    fn mended(
        &self,
        before: &mut Image,
        found: &Found,
        all: &[Found],
    ) -> Result<Option<graven::powerfail::mend::Mended>, Failure> {
        if found.shrunk.missing.is_empty() {
            return Ok(None);
        }
        let story = (self.story, self.points, self.keys);
        let found = (&found.shrunk, all);
        match mend(story, before, found, self.asked(), &self.options, self.control) {
            Ok(mended) => Ok(Some(mended)),
            Err(Refusal::Cancelled) => Ok(None),
            Err(refusal) => Err(self.refused(refusal)),
        }
    }

    fn counts(&self, outcome: &Outcome) -> Value {
        let stores =
            |event: &&graven::powerfail::story::Event| matches!(event.what, What::Store { .. });
        let first_good = &self.points.all[outcome.first_good];
        let most = self.points.all.iter().map(|point| point.units.len()).max();
        let lines: BTreeSet<u64> = self
            .story
            .events
            .iter()
            .filter_map(|event| match event.what {
                What::Store { addr, .. } => Some(addr.line().0),
                _ => None,
            })
            .collect();
        json!({
            "events": self.story.events.len(),
            "stores": self.story.events.iter().filter(stores).count(),
            "lines": lines.len(),
            "operations": self.story.operations(),
            "threads": self.story.threads,
            "unknown_flushes": self.story.unknown_flushes,
            "points": self.points.all.len(),
            "points_left_out": self.points.left_out,
            "units_at_once": most.unwrap_or(0),
            "judged_from": first_good.at,
            "points_before": outcome.first_good,
            "images": outcome.images,
            "judged": outcome.judged,
            "pairs": outcome.pairs,
            "unsteady": outcome.unsteady,
            "end": match outcome.end {
                End::All => "all",
                End::NothingNew => "nothing-new",
                End::Images => "images",
                End::Time => "time",
                End::Violations => "violations",
                End::Cancelled => "cancelled",
            },
            "samples": self.samples(outcome),
        })
    }

    /// Names of images in which something is missing, from all over the story.
    fn samples(&self, outcome: &Outcome) -> Vec<String> {
        let points = &self.points.all[outcome.first_good..];
        let step = points.len().div_ceil(SAMPLES).max(1);
        let numbers = (outcome.first_good..self.points.all.len()).step_by(step);
        let sample = |number: usize| {
            let point = &self.points.all[number];
            Candidate::oldest(number, point).name(point).to_string()
        };
        numbers.map(sample).collect()
    }

    fn keep(
        &self,
        before: &mut Image,
        candidate: &Candidate,
        folder: &std::path::Path,
    ) -> Result<(), Failure> {
        let point = &self.points.all[candidate.point];
        let mut cursor = Cursor::new(self.story, before.share());
        cursor.seek(self.story, point.at);
        candidate
            .left(self.story, point, &mut cursor, self.options.acknowledges, |left| {
                self.judge.write(folder, left)
            })
            .map_err(Failure::Simulation)
    }

    /// Judges one image.
    fn one(&self, before: &mut Image, name: &Name) -> Result<Value, Failure> {
        let candidate = name.find(self.story, &self.points.all).ok_or_else(|| {
            Failure::Config(format!("there is no image {name} of this trace and model"))
        })?;
        if let Some(folder) = &self.spec.keep {
            self.keep(before, &candidate, folder)?;
        }
        let how = (1, self.options.acknowledges);
        let story = (self.story, self.points);
        let mut panel = Panel::new(story, before, self.asked(), how, self.control);
        panel.learn().map_err(|refusal| self.refused(refusal))?;
        let fault = panel.judge(&candidate).map_err(|refusal| self.refused(refusal))?;
        Ok(json!({ "image": name.to_string(), "said": fault.map(|fault| fault.what) }))
    }
}
