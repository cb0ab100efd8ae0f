//! Repairs of a violation: a flush, a fence, a call or another order of two stores, put into the story and tried.

use std::time::Duration;

use graven_base::control::Control;
use graven_base::memory::{Image, LINE_BYTES, LineAddr};
use graven_persistency::happening::{Fence, Path, Persist, Point as Depth};
use graven_persistency::model::{Domain, Model};
use rustc_hash::FxHashSet;

use crate::choice::{Key, Keys};
use crate::explore::{Explorer, Found, Options};
use crate::frontier::Rules;
use crate::judge::{Judge, Verdicts};
use crate::panel::Refusal;
use crate::points::Points;
use crate::shrink::Shrunk;
use crate::story::{Event, EventId, Story, What};

/// Most images with which a repair is tried.
const IMAGES: u64 = 2_000;
/// Most time for that.
const TIME: Duration = Duration::from_secs(20);

/// A repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// A flush of the missing store's line and a fence, before the store that is left.
    FlushAndFence,
    /// A fence: the line is flushed.
    Fence,
    /// A call that synchronises the missing store's page.
    Sync,
    /// The store that is left comes after the missing one, which is flushed and fenced, or synchronised, before.
    LaterStore,
    /// The two must become durable together.
    Together,
}

/// A repair, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The repair.
    pub repair: Repair,
    /// Images that were judged with the repair in the story; 0: it was not tried.
    pub images: u64,
    /// With the repair no image fails as before.
    pub helps: bool,
    /// The repair stands before the end of the operation, not before the store that is left.
    pub before_end: bool,
}

/// Finds what mends a violation.
///
/// # Errors
/// The judge cannot judge.
pub fn mend(
    (story, points, keys): (&Story, &Points, &Keys),
    before: &mut Image,
    (shrunk, all): (&Shrunk, &[Found]),
    (judge, verdicts): (&dyn Judge, &Verdicts),
    options: &Options,
    control: &Control,
) -> Result<Mended, Refusal> {
    let edge = Edge::of(story, keys, shrunk, points.all[shrunk.candidate.point].at);
    let repairs = edge.repairs(story, options.rules);
    let before_end = edge.present.is_none();
    let untried = Mended { repair: Repair::Together, images: 0, helps: false, before_end };
    // What a kill leaves anyway is no fault of the repair.
    let kills: Vec<_> = all
        .iter()
        .filter(|found| found.shrunk.missing.is_empty())
        .map(|found| keys.set(&found.shrunk.present))
        .collect();
    if shrunk.missing.is_empty() {
        return Ok(untried);
    }
    let mut last = untried;
    for repair in repairs {
        let mended = edge.put(story, before, options.rules, keys, repair);
        let options = Options {
            images: IMAGES,
            time: TIME.min(options.time),
            violations: usize::MAX,
            is_trial: true,
            ..options.clone()
        };
        let points = Points::of(&mended, options.rules, judge.compares_states(), control);
        let keys = keys.again(&mended);
        let mut explorer =
            Explorer::new((&mended, &points, &keys), before, (judge, verdicts), &options, control);
        let outcome = match explorer.run() {
            Ok(outcome) => outcome,
            // Stores in another order may not be what the program would have done.
            Err(Refusal::After(_)) => continue,
            Err(refusal) => return Err(refusal),
        };
        let is_known = |found: &Found| {
            found.shrunk.missing.is_empty() && kills.contains(&keys.set(&found.shrunk.present))
        };
        let is_same = |found: &Found| !is_known(found) && edge.is_of(&keys, &found.shrunk);
        let fails = outcome.found.iter().any(is_same);
        last = Mended { repair, images: outcome.images, helps: !fails, before_end };
        if last.helps {
            return Ok(last);
        }
    }
    Ok(Mended { repair: Repair::Together, helps: false, ..last })
}

/// Lines whose stores are in the wrong order.
struct Edge {
    /// The instant of the violation.
    at: EventId,
    /// The first missing store.
    missing: EventId,
    /// The store that is left; none: it is durable anyhow, or the end of an operation.
    present: Option<EventId>,
    missing_keys: FxHashSet<Key>,
    present_keys: FxHashSet<Key>,
}

impl Edge {
    fn of(story: &Story, keys: &Keys, shrunk: &Shrunk, at: EventId) -> Edge {
        let missing = shrunk.missing.iter().copied().min().unwrap_or(at);
        let later = shrunk.present.iter().copied().filter(|&event| event > missing).min();
        let ends = |event: &Event| event.what == What::Ends;
        let is_over =
            story.events[(missing as usize).min(at as usize)..at as usize].iter().any(ends);
        let earlier = shrunk.present.iter().copied().max().filter(|_| !is_over);
        let present = later.or(earlier);
        Edge {
            at,
            missing,
            present,
            missing_keys: keys.set(&shrunk.missing),
            present_keys: keys.set(&shrunk.present),
        }
    }

    /// Tells whether a violation is of the same lines, in either order.
    fn is_of(&self, keys: &Keys, shrunk: &Shrunk) -> bool {
        let (missing, present) = (keys.set(&shrunk.missing), keys.set(&shrunk.present));
        let overlaps = |a: &FxHashSet<Key>, b: &FxHashSet<Key>| !a.is_disjoint(b);
        let is_same = overlaps(&missing, &self.missing_keys)
            && (present == self.present_keys || overlaps(&present, &self.present_keys));
        let is_reversed =
            overlaps(&missing, &self.present_keys) && overlaps(&present, &self.missing_keys);
        // What is visible may now be what only a power failure left before.
        is_same || is_reversed || missing.is_empty()
    }

    /// Tells whether one instruction has made both stores.
    fn is_one_instruction(&self, story: &Story) -> bool {
        let Some(present) = self.present else { return false };
        let (first, last) = (self.missing.min(present), self.missing.max(present));
        let thread = story.events[first as usize].thread;
        let mut later = story.events[first as usize + 1..=last as usize].iter();
        later.all(|event| {
            event.thread != thread || matches!(event.what, What::Store { continues: true, .. })
        })
    }

    /// The repairs that are worth a trial.
    fn repairs(&self, story: &Story, rules: Rules) -> Vec<Repair> {
        if self.missing as usize >= story.events.len() {
            return Vec::new();
        }
        let end = self.present.filter(|&event| event > self.missing).unwrap_or(self.at);
        let word = |event: EventId| story.address(event);
        let is_one_word = self.present.is_some_and(|event| word(event) == word(self.missing));
        if is_one_word || self.is_one_instruction(story) {
            return Vec::new();
        }
        let is_behind = self.present.is_some_and(|event| event < self.missing);
        if is_behind {
            return vec![Repair::LaterStore];
        }
        match rules {
            Rules::PageCache { .. } => vec![Repair::Sync],
            Rules::Processor(_) => {
                let Some(addr) = story.address(self.missing) else { return vec![Repair::Sync] };
                let between = &story.events[self.missing as usize..end as usize];
                let flushes = |event: &Event| match event.what {
                    What::Persist(
                        Persist::WriteBack(line) | Persist::Flush(line) | Persist::Clean(line, _),
                    ) => line == addr.line(),
                    _ => false,
                };
                let is_uncached = matches!(
                    story.events[self.missing as usize].what,
                    What::Store { path: Path::NonTemporal, .. }
                );
                if is_uncached {
                    vec![Repair::Fence]
                } else if between.iter().any(flushes) {
                    vec![Repair::Fence, Repair::FlushAndFence]
                } else {
                    vec![Repair::FlushAndFence]
                }
            }
        }
    }

    /// The story with a repair wherever the same lines are in it.
    fn put(
        &self,
        story: &Story,
        before: &mut Image,
        rules: Rules,
        keys: &Keys,
        repair: Repair,
    ) -> Story {
        let events = &story.events;
        // Of each event of the new story, the one that it is of the old one.
        let mut new: Vec<(Event, Option<EventId>)> = Vec::with_capacity(events.len() + 64);
        let mut stored: Vec<EventId> = Vec::new();
        let mut held: Vec<EventId> = Vec::new();
        let is_store =
            |event: &Event| matches!(event.what, What::Store { .. } | What::Length { .. });
        for (id, event) in (0..).zip(events) {
            let key = keys.key(id);
            let is_there = is_store(event) && self.present_keys.contains(&key);
            let is_missing = is_store(event) && self.missing_keys.contains(&key);
            if repair == Repair::LaterStore {
                if is_there {
                    held.push(id);
                    continue;
                }
                // The missing stores are over: they become durable, and then the other one is stored.
                let is_over = !stored.is_empty() && !is_missing;
                if is_over && !held.is_empty() {
                    order(story, rules, *event, &mut stored, &mut new, repair);
                    new.extend(held.drain(..).map(|id| (events[id as usize], Some(id))));
                }
            } else {
                let is_end = matches!(event.what, What::Ends | What::Told);
                let is_due = if self.present.is_none() { is_end } else { is_there };
                if is_due && !stored.is_empty() {
                    order(story, rules, *event, &mut stored, &mut new, repair);
                }
            }
            if is_missing {
                stored.push(id);
            }
            new.push((*event, Some(id)));
        }
        if let Some(&last) = events.last()
            && !stored.is_empty()
        {
            order(story, rules, last, &mut stored, &mut new, repair);
        }
        new.extend(held.drain(..).map(|id| (events[id as usize], Some(id))));
        renumbered(story, before, new)
    }
}

/// Makes stores durable, by the thread of an event that comes next.
fn order(
    story: &Story,
    rules: Rules,
    next: Event,
    stored: &mut Vec<EventId>,
    new: &mut Vec<(Event, Option<EventId>)>,
    repair: Repair,
) {
    // Parts of one instruction stay together.
    let mut at = new.len();
    let continues = |event: &Event| matches!(event.what, What::Store { continues: true, .. });
    let mut part = next;
    while continues(&part) && at > 0 {
        at -= 1;
        part = new[at].0;
    }
    let mut lines: Vec<LineAddr> =
        stored.drain(..).filter_map(|id| story.address(id).map(|addr| addr.line())).collect();
    lines.sort_unstable_by_key(|line| line.0);
    lines.dedup();
    let of = |what: What| (Event { what, ..next }, None);
    let mut more = Vec::new();
    match rules {
        Rules::PageCache { .. } => {
            let all = u64::MAX;
            if lines.is_empty() {
                more.push(of(What::Synced { start: 0, end: all, before: EventId::MAX }));
            }
            more.extend(lines.iter().map(|line| {
                let start = line.addr().0;
                of(What::Synced { start, end: start + LINE_BYTES, before: EventId::MAX })
            }));
        }
        Rules::Processor(model) => {
            if repair != Repair::Fence {
                more.extend(lines.iter().map(|&line| of(What::Persist(flush(model, line)))));
            }
            let fence = if model.is_arm() { Fence::Dsb } else { Fence::Store };
            more.push(of(What::Persist(Persist::Fence(fence))));
        }
    }
    new.splice(at..at, more);
}

fn flush(model: &Model, line: LineAddr) -> Persist {
    match model.domain {
        Domain::Reached(Depth::DeepPersistence) => Persist::Clean(line, Depth::DeepPersistence),
        Domain::Reached(_) => Persist::Clean(line, Depth::Persistence),
        _ => Persist::WriteBack(line),
    }
}

/// The story of these events, some of which are new.
fn renumbered(story: &Story, before: &mut Image, new: Vec<(Event, Option<EventId>)>) -> Story {
    let mut numbers = vec![0; story.events.len() + 1];
    for (number, (_, old)) in (0..).zip(&new) {
        if let Some(old) = old {
            numbers[*old as usize] = number;
        }
    }
    numbers[story.events.len()] = new.len() as EventId;
    let mut visible = before.share();
    let mut lengths = story.lengths();
    let events = (0..).zip(new).map(|(number, (mut event, _))| {
        match &mut event.what {
            What::Store { addr, old, new, .. } => *old = visible.store(*addr, *new),
            What::Length { file, old, new } => {
                *old = std::mem::replace(&mut lengths[*file as usize], *new);
            }
            // A call of the repair covers all that comes before it.
            What::Synced { before: before @ EventId::MAX, .. } => *before = number,
            What::Synced { before, .. } => *before = numbers[*before as usize],
            _ => {}
        }
        event
    });
    Story { events: events.collect(), ..story.clone() }
}
