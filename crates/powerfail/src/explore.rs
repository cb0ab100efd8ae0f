//! The exploration: images are chosen, judged side by side, and what a judge refuses is made short.

use std::time::{Duration, Instant};

use graven_base::control::Control;
use graven_base::memory::Image;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::candidate::Candidate;
use crate::choice::{Chooser, Key, Keys};
use crate::frontier::Rules;
use crate::judge::{Fault, Judge, Verdicts};
use crate::panel::{Panel, Refusal};
use crate::points::Points;
use crate::shrink::{Shrunk, shrink};
use crate::story::Story;

/// Images that are judged between two looks at what they have shown.
const BATCH: usize = 256;
/// Most shortened violations with the same missing lines.
const SHRUNK_MAX: u32 = 3;
/// Images on which the judge may contradict itself before the exploration is refused.
const UNSTEADY_MAX: u64 = 3;
/// Rounds of drawing that bring nothing new, after which it ends.
const IDLE_ROUNDS: u32 = 3;

/// The limits of an exploration.
#[derive(Clone, Debug)]
pub struct Options {
    /// The rules of what may be missing.
    pub rules: Rules,
    /// Operations that are over must survive.
    pub acknowledges: bool,
    /// Most images that are judged.
    pub images: u64,
    /// Most time.
    pub time: Duration,
    /// Most violations, after which it ends.
    pub violations: usize,
    /// The story is one with a repair: only pairs of lines are tried, and the judge learns no states of it.
    pub is_trial: bool,
    /// The seed of what is drawn.
    pub seed: u64,
    /// Judges side by side.
    pub workers: usize,
}

/// The reason for which an exploration has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All images were judged.
    All,
    /// Nothing new was drawn any more.
    NothingNew,
    /// As many images as were allowed.
    Images,
    /// The time is over.
    Time,
    /// As many violations as were allowed.
    Violations,
    /// The caller has cancelled it.
    Cancelled,
}

/// A violation: an image that a judge refuses.
#[derive(Clone, Debug)]
pub struct Found {
    /// The violation, as short as it was made.
    pub shrunk: Shrunk,
    /// Images in which the same lines were missing, and the judge said the same.
    pub count: u64,
}

/// The outcome of an exploration.
#[derive(Debug)]
pub struct Outcome {
    /// The violations.
    pub found: Vec<Found>,
    /// Images that were judged, without those of shortening.
    pub images: u64,
    /// All images that were judged.
    pub judged: u64,
    /// Pairs of source lines that were tried.
    pub pairs: u64,
    /// Images on which the judge contradicted itself.
    pub unsteady: u64,
    /// The point from which on the judge finds the undisturbed files good.
    pub first_good: usize,
    /// The reason of the end.
    pub end: End,
}

/// An exploration of a story.
pub struct Explorer<'a> {
    panel: Panel<'a>,
    options: &'a Options,
    control: &'a Control,
    /// Identities of images that were chosen.
    known: FxHashSet<u64>,
    keys: Keys,
    begun: Instant,
}

impl<'a> Explorer<'a> {
    /// Prepares an exploration of a story, whose memory is `before` as it begins.
    pub fn new(
        (story, points, keys): (&'a Story, &'a Points, &Keys),
        before: &mut Image,
        judge: (&'a dyn Judge, &'a Verdicts),
        options: &'a Options,
        control: &'a Control,
    ) -> Explorer<'a> {
        let how = (options.workers, options.acknowledges);
        let panel = Panel::new((story, points), before, judge, how, control);
        let (known, keys, begun) = (FxHashSet::default(), keys.clone(), Instant::now());
        Explorer { panel, options, control, known, keys, begun }
    }

    /// Explores.
    ///
    /// # Errors
    /// The judge cannot judge, or does not find good what is good.
    pub fn run(&mut self) -> Result<Outcome, Refusal> {
        if !self.options.is_trial {
            self.panel.learn()?;
        }
        let first_good = self.panel.first_good()?;
        let mut run = Run {
            chooser: Chooser::new(self.keys.clone(), self.options.seed),
            found: Vec::new(),
            shrunk: FxHashMap::default(),
            pending: Vec::new(),
            images: 0,
            unsteady: 0,
            end: None,
            first_good,
        };
        match self.explore(&mut run) {
            // What was found until then stands.
            Err(_) if self.control.is_cancelled() => run.end = Some(End::Cancelled),
            explored => explored?,
        }
        let Run { found, images, unsteady, chooser, end, .. } = run;
        let end = end.unwrap_or(End::NothingNew);
        let (judged, pairs) = (self.panel.judged, chooser.pairs());
        Ok(Outcome { found, images, judged, pairs, unsteady, first_good, end })
    }

    /// Images that cover pairs of lines, at all points; then others.
    fn explore(&mut self, run: &mut Run) -> Result<(), Refusal> {
        let points = run.first_good..self.panel.points.all.len();
        for number in points.clone() {
            let point = &self.panel.points.all[number];
            let chosen = run.chooser.guided(self.panel.story, number, point);
            self.offer(run, chosen)?;
            if run.end.is_some() {
                break;
            }
        }
        self.flush(run)?;
        if self.options.is_trial { Ok(()) } else { self.deepen(run, points) }
    }

    /// All images of points that have few, and drawn ones of the others.
    fn deepen(&mut self, run: &mut Run, points: std::ops::Range<usize>) -> Result<(), Refusal> {
        let mut large = Vec::new();
        for number in points {
            if run.end.is_some() {
                return Ok(());
            }
            match Chooser::all(self.panel.story, number, &self.panel.points.all[number]) {
                Some(all) => self.offer(run, all)?,
                None => large.push(number),
            }
        }
        self.flush(run)?;
        if large.is_empty() && self.panel.points.left_out == 0 && run.end.is_none() {
            run.end = Some(End::All);
        }
        let mut idle = 0;
        while run.end.is_none() && idle < IDLE_ROUNDS && !large.is_empty() {
            let before = run.images;
            for &number in &large {
                let drawn =
                    run.chooser.drawn(self.panel.story, number, &self.panel.points.all[number]);
                self.offer(run, drawn)?;
                if run.end.is_some() {
                    break;
                }
            }
            self.flush(run)?;
            idle = if run.images == before { idle + 1 } else { 0 };
        }
        Ok(())
    }

    /// Takes candidates that are new, and judges them when there are many.
    fn offer(&mut self, run: &mut Run, candidates: Vec<Candidate>) -> Result<(), Refusal> {
        for candidate in candidates {
            let identity = self.panel.identity(&candidate);
            if !self.known.insert(identity) {
                continue;
            }
            run.pending.push(candidate);
            if run.pending.len() >= BATCH {
                self.flush(run)?;
            }
            if run.end.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn flush(&mut self, run: &mut Run) -> Result<(), Refusal> {
        let mut pending = std::mem::take(&mut run.pending);
        let room = self.options.images.saturating_sub(run.images);
        let is_last = pending.len() as u64 >= room;
        if is_last {
            pending.truncate(room as usize);
        }
        let faults = self.panel.judge_until(&pending, Some(self.begun + self.options.time))?;
        for (candidate, fault) in pending.iter().zip(faults) {
            let Some(fault) = fault else { continue };
            run.images += 1;
            if let Some(fault) = fault {
                self.take_in(run, candidate, fault)?;
            }
        }
        self.control.report(run.images);
        if run.found.len() >= self.options.violations {
            run.end = Some(End::Violations);
        } else if self.is_late() {
            run.end.get_or_insert(End::Time);
        } else if is_last {
            run.end.get_or_insert(End::Images);
        }
        Ok(())
    }

    fn is_late(&self) -> bool {
        self.begun.elapsed() >= self.options.time
    }

    /// A judge has refused an image.
    fn take_in(
        &mut self,
        run: &mut Run,
        candidate: &Candidate,
        fault: Fault,
    ) -> Result<(), Refusal> {
        let point = &self.panel.points.all[candidate.point];
        let missing = self.keys.set(&candidate.missing(point));
        // Where nothing need be missing, what is visible at this point must be refused, too.
        let newest = Candidate::newest(candidate.point, point);
        let is_visible =
            self.panel.judge(&newest)?.is_some_and(|visible| visible.kind == fault.kind);
        let (keys, most) = (&self.keys, self.options.violations);
        let contains = |found: &&mut Found| {
            let of = &found.shrunk;
            let are_missing = match of.missing.is_empty() {
                true => is_visible,
                false => keys.set(&of.missing).is_subset(&missing),
            };
            of.fault.kind == fault.kind && are_missing
        };
        let known = run.found.iter_mut().find(contains);
        let is_counted = known.is_some();
        if let Some(known) = known {
            known.count += 1;
            let mut lines: Vec<Key> = keys.set(&known.shrunk.missing).into_iter().collect();
            lines.sort_unstable();
            let times = run.shrunk.entry(lines).or_default();
            if *times >= SHRUNK_MAX || run.found.len() >= most {
                return Ok(());
            }
            *times += 1;
        }
        if self.is_late() && !run.found.is_empty() {
            // No time is left to make it short.
            return Ok(());
        }
        let shrunk = match shrink(&mut self.panel, candidate, fault, run.first_good) {
            Err(Refusal::Unsteady(_)) if run.unsteady < UNSTEADY_MAX => {
                run.unsteady += 1;
                return Ok(());
            }
            shrunk => shrunk?,
        };
        let keys = &self.keys;
        let is_same = |found: &&mut Found| {
            let of = &found.shrunk;
            keys.set(&of.missing) == keys.set(&shrunk.missing)
                && keys.set(&of.present) == keys.set(&shrunk.present)
        };
        match run.found.iter_mut().find(is_same) {
            Some(known) => known.count += u64::from(!is_counted),
            None => run.found.push(Found { shrunk, count: 1 }),
        }
        Ok(())
    }
}

/// State of a run.
struct Run {
    chooser: Chooser,
    found: Vec<Found>,
    /// The number of times that a violation with these missing lines was made short again.
    shrunk: FxHashMap<Vec<Key>, u32>,
    pending: Vec<Candidate>,
    images: u64,
    unsteady: u64,
    end: Option<End>,
    first_good: usize,
}
