//! The exploration: images are chosen, judged side by side, and what a judge refuses is made short.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use graven_base::control::Control;
use graven_base::memory::Image;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::candidate::{Candidate, Name};
use crate::choice::{Chooser, Key, Keys};
use crate::frontier::{Cursor, Rules};
use crate::judge::{Fault, Judge, Left, Verdict, Verdicts};
use crate::points::Points;
use crate::shrink::{Shrunk, shrink};
use crate::story::{EventId, Story, What};

/// Images that are judged between two looks at what they have shown.
const BATCH: usize = 256;
/// Most shortened violations with the same missing lines.
const SHRUNK_MAX: u32 = 3;
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
    /// The point from which on the judge finds the undisturbed files good.
    pub first_good: usize,
    /// The reason of the end.
    pub end: End,
}

/// Nothing can be explored, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The judge cannot judge.
    Judge(String),
    /// The judge refuses the files after a run in which power did not fail.
    After(Fault),
    /// The judge refuses the files of all instants.
    Never(Fault),
    /// There is no image of this name.
    NoImage(Name),
    /// The caller cancels.
    Cancelled,
}

/// An exploration of a story.
pub struct Explorer<'a> {
    pub(crate) story: &'a Story,
    pub(crate) points: &'a Points,
    judge: &'a dyn Judge,
    verdicts: &'a Verdicts,
    options: &'a Options,
    control: &'a Control,
    /// One for each worker.
    cursors: Vec<Mutex<Cursor>>,
    /// The explorer's own.
    cursor: Cursor,
    /// Identities of images that were chosen.
    known: FxHashSet<u64>,
    keys: Keys,
    begun: Instant,
    judged: u64,
}

impl<'a> Explorer<'a> {
    /// Prepares an exploration of a story, whose memory is `before` as it begins.
    pub fn new(
        (story, points, keys): (&'a Story, &'a Points, &Keys),
        before: &mut Image,
        (judge, verdicts): (&'a dyn Judge, &'a Verdicts),
        options: &'a Options,
        control: &'a Control,
    ) -> Explorer<'a> {
        let mut cursor = Cursor::new(story, before.share());
        let workers = options.workers.max(1);
        let cursors = (0..workers).map(|_| Mutex::new(cursor.share())).collect();
        Explorer {
            story,
            points,
            judge,
            verdicts,
            options,
            control,
            cursors,
            cursor,
            known: FxHashSet::default(),
            keys: keys.clone(),
            begun: Instant::now(),
            judged: 0,
        }
    }

    /// Judges one image.
    ///
    /// # Errors
    /// The judge cannot judge.
    pub fn judge(&mut self, candidate: &Candidate) -> Result<Option<Fault>, Refusal> {
        let verdicts = self.judge_all(std::slice::from_ref(candidate))?;
        Ok(verdicts.into_iter().next().flatten())
    }

    /// Judges one image whether or not it was judged before.
    ///
    /// # Errors
    /// The judge cannot judge.
    pub fn judge_again(&mut self, candidate: &Candidate) -> Result<Option<Fault>, Refusal> {
        let verdicts = self.ask_all(std::slice::from_ref(candidate), None)?;
        Ok(verdicts.into_iter().next().flatten().flatten())
    }

    /// Judges images.
    fn judge_all(&mut self, all: &[Candidate]) -> Result<Vec<Option<Fault>>, Refusal> {
        let judged = self.judge_until(all, None)?;
        Ok(judged.into_iter().map(|verdict| verdict.expect("there is no deadline")).collect())
    }

    /// Judges images of which no verdict is known, and begins none after a deadline: those have no verdict.
    fn judge_until(
        &mut self,
        all: &[Candidate],
        deadline: Option<Instant>,
    ) -> Result<Vec<Option<Option<Fault>>>, Refusal> {
        let identities: Vec<u64> = all.iter().map(|candidate| self.identity(candidate)).collect();
        let is_new = |identity: &u64| self.verdicts.get(*identity).is_none();
        let numbers: Vec<usize> =
            (0..all.len()).filter(|&number| is_new(&identities[number])).collect();
        let new: Vec<Candidate> = numbers.iter().map(|&number| all[number].clone()).collect();
        for (number, fault) in numbers.into_iter().zip(self.ask_all(&new, deadline)?) {
            if let Some(fault) = fault {
                self.verdicts.put(identities[number], fault);
            }
        }
        Ok(identities.iter().map(|&identity| self.verdicts.get(identity)).collect())
    }

    /// Asks the judge about images side by side.
    fn ask_all(
        &mut self,
        all: &[Candidate],
        deadline: Option<Instant>,
    ) -> Result<Vec<Option<Option<Fault>>>, Refusal> {
        let next = AtomicUsize::new(0);
        let verdicts = Mutex::new(vec![None; all.len()]);
        let work = |worker: usize| {
            let mut cursor = self.cursors[worker].lock().expect("no worker panics with it");
            loop {
                let number = next.fetch_add(1, Relaxed);
                let Some(candidate) = all.get(number) else { break };
                let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
                if self.control.is_cancelled() || is_late() {
                    break;
                }
                let point = &self.points.all[candidate.point];
                cursor.seek(self.story, point.at);
                let acknowledges = self.options.acknowledges;
                let verdict =
                    candidate.left(self.story, point, &mut cursor, acknowledges, |left| {
                        self.judge.judge(worker, left)
                    });
                verdicts.lock().expect("no worker panics with it")[number] = Some(verdict);
            }
        };
        match self.cursors.len().min(all.len()) {
            0 | 1 => work(0),
            workers => thread::scope(|scope| {
                let work = &work;
                (0..workers).for_each(|worker| {
                    scope.spawn(move || work(worker));
                });
            }),
        }
        self.judged += all.len() as u64;
        self.control.checked(self.judged);
        let verdicts = verdicts.into_inner().expect("no worker panics with it");
        let said = |verdict: Option<Verdict>| match verdict {
            Some(Verdict::Good) => Ok(Some(None)),
            Some(Verdict::Bad(fault)) => Ok(Some(Some(fault))),
            Some(Verdict::Impossible(why)) => Err(Refusal::Judge(why)),
            None if self.control.is_cancelled() => Err(Refusal::Cancelled),
            None => Ok(None),
        };
        verdicts.into_iter().map(said).collect()
    }

    fn identity(&mut self, candidate: &Candidate) -> u64 {
        let point = &self.points.all[candidate.point];
        self.cursor.seek(self.story, point.at);
        candidate.identity(self.story, point, &self.cursor)
    }

    /// The first point of which images are judged: the first of all, if the judge finds the files good with which the story begins.
    /// Files that are being made are not good yet: then it is the point behind the first at which the undisturbed ones are good.
    /// Those of the last point must be good.
    fn first_good(&mut self) -> Result<usize, Refusal> {
        let last = self.points.all.len() - 1;
        let newest = |number: usize| Candidate::newest(number, &self.points.all[number]);
        if let Some(fault) = self.judge(&newest(last))? {
            return Err(Refusal::After(fault));
        }
        if self.is_good_at_first()? {
            return Ok(0);
        }
        for number in 0..last {
            if self.judge(&newest(number))?.is_none() {
                return Ok(number + 1);
            }
        }
        Ok(last)
    }

    /// Tells whether the judge finds the files good with which the story begins.
    fn is_good_at_first(&mut self) -> Result<bool, Refusal> {
        self.cursor.seek(self.story, 0);
        let Cursor { image, lengths, .. } = &self.cursor;
        self.judged += 1;
        match self.judge.judge(0, &Left { image, lengths, acknowledged: 0, begun: 0 }) {
            Verdict::Good => Ok(true),
            Verdict::Bad(_) => Ok(false),
            Verdict::Impossible(why) => Err(Refusal::Judge(why)),
        }
    }

    /// The judge learns the states between operations.
    ///
    /// # Errors
    /// A state cannot be had.
    pub fn learn(&mut self) -> Result<(), Refusal> {
        if !self.judge.compares_states() {
            return Ok(());
        }
        let mut cursor = self.cursor.share();
        let (mut operations, mut begun) = (0, 0);
        for id in 0..self.story.events.len() {
            let is_end = match self.story.events[id].what {
                What::Begins => {
                    begun += 1;
                    begun == 1
                }
                What::Ends => {
                    operations += 1;
                    true
                }
                _ => false,
            };
            if !is_end {
                continue;
            }
            cursor.seek(self.story, id as EventId);
            let Cursor { image, lengths, .. } = &cursor;
            let left = Left { image, lengths, acknowledged: operations, begun: operations };
            self.judge.learn(operations, &left).map_err(Refusal::Judge)?;
            if self.control.is_cancelled() {
                return Err(Refusal::Cancelled);
            }
        }
        Ok(())
    }

    /// Explores.
    ///
    /// # Errors
    /// The judge cannot judge, or does not find good what is good.
    pub fn run(&mut self) -> Result<Outcome, Refusal> {
        if !self.options.is_trial {
            self.learn()?;
        }
        let first_good = self.first_good()?;
        let mut run = Run {
            chooser: Chooser::new(self.keys.clone(), self.options.seed),
            found: Vec::new(),
            shrunk: FxHashMap::default(),
            pending: Vec::new(),
            images: 0,
            end: None,
            first_good,
        };
        match self.explore(&mut run) {
            // What was found until then stands.
            Err(_) if self.control.is_cancelled() => run.end = Some(End::Cancelled),
            explored => explored?,
        }
        let Run { found, images, chooser, end, .. } = run;
        let end = end.unwrap_or(End::NothingNew);
        Ok(Outcome { found, images, judged: self.judged, pairs: chooser.pairs(), first_good, end })
    }

    /// Images that cover pairs of lines, at all points; then others.
    fn explore(&mut self, run: &mut Run) -> Result<(), Refusal> {
        let points = run.first_good..self.points.all.len();
        for number in points.clone() {
            let point = &self.points.all[number];
            let chosen = run.chooser.guided(self.story, number, point);
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
            match Chooser::all(self.story, number, &self.points.all[number]) {
                Some(all) => self.offer(run, all)?,
                None => large.push(number),
            }
        }
        self.flush(run)?;
        if large.is_empty() && self.points.left_out == 0 && run.end.is_none() {
            run.end = Some(End::All);
        }
        let mut idle = 0;
        while run.end.is_none() && idle < IDLE_ROUNDS && !large.is_empty() {
            let before = run.images;
            for &number in &large {
                let drawn = run.chooser.drawn(self.story, number, &self.points.all[number]);
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
            let identity = self.identity(&candidate);
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
        if pending.len() as u64 >= room {
            pending.truncate(room as usize);
            run.end.get_or_insert(End::Images);
        }
        let faults = self.judge_until(&pending, Some(self.begun + self.options.time))?;
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
        } else if self.begun.elapsed() >= self.options.time {
            run.end.get_or_insert(End::Time);
        }
        Ok(())
    }

    /// A judge has refused an image.
    fn take_in(
        &mut self,
        run: &mut Run,
        candidate: &Candidate,
        fault: Fault,
    ) -> Result<(), Refusal> {
        let point = &self.points.all[candidate.point];
        let missing = self.keys.set(&candidate.missing(point));
        // Where nothing need be missing, what is visible at this point must be refused, too.
        let newest = Candidate::newest(candidate.point, point);
        let is_visible = self.judge(&newest)?.is_some_and(|visible| visible.kind == fault.kind);
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
        let shrunk = shrink(self, candidate, fault, run.first_good)?;
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
    end: Option<End>,
    first_good: usize,
}
