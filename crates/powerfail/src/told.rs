//! The outcome with source lines: what a person reads.

use std::collections::BTreeSet;

use graven_persistency::happening::{Fence, Persist, Point as Depth};
use graven_trace::hygiene::{Blamed, Frame, Places};
use serde::Serialize;

use crate::choice::places;
use crate::explore::Found;
use crate::frontier::Rules;
use crate::mend::{Mended, Repair};
use crate::points::Points;
use crate::story::{EventId, Story, What};

/// Most steps of a timeline.
const STEPS_MAX: usize = 40;

/// A store of the program.
#[derive(Clone, Debug, Serialize)]
pub struct Stored {
    /// The position in the program's order.
    pub event: EventId,
    /// The line.
    pub place: Frame,
    /// The calls that led to it, the innermost first.
    pub calls: Vec<Frame>,
    /// The thread.
    pub thread: u32,
    /// The address in the trace; none: it is the length of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// The word, or the length, before.
    pub old: u64,
    /// The word, or the length, afterwards.
    pub new: u64,
}

/// A step of a timeline.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The position in the program's order.
    pub event: EventId,
    /// The line.
    pub place: Frame,
    /// The thread.
    pub thread: u32,
    /// The deed, in words.
    pub what: String,
    /// The address in the trace that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// `missing` or `present`, of such stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<&'static str>,
}

/// A repair.
#[derive(Clone, Debug, Serialize)]
pub struct Repaired {
    /// The repair: `flush-and-fence`, `fence`, `sync`, `later-store`, `together`.
    pub kind: &'static str,
    /// With the repair no image failed as before.
    pub helps: bool,
    /// Images that were judged with the repair in the story.
    pub images: u64,
    /// The repair stands before the end of the operation, not before the store that is left.
    pub before_end: bool,
}

/// A violation.
#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    /// The name of the image.
    pub image: String,
    /// The answer of the judge.
    pub said: String,
    /// Images in which the same lines were missing.
    pub count: u64,
    /// The place of the last thing that the program did before power failed.
    pub after: Option<Frame>,
    /// Operations that were over.
    pub operations: u32,
    /// The stores that are missing: the first one of each unit.
    pub missing: Vec<Stored>,
    /// The stores that are left.
    pub present: Vec<Stored>,
    /// Steps from the first of these stores to the power failure.
    pub timeline: Vec<Step>,
    /// The repair.
    pub repair: Option<Repaired>,
}

/// Tells violations of a story.
pub struct Teller<'a> {
    story: &'a Story,
    points: &'a Points,
    rules: Rules,
    places: Places,
}

impl<'a> Teller<'a> {
    /// A teller of a story's violations.
    pub fn new(story: &'a Story, points: &'a Points, rules: Rules) -> Teller<'a> {
        let places = places(story);
        Teller { story, points, rules, places }
    }

    fn place(&mut self, event: EventId) -> Frame {
        let of = self.story.events[event as usize];
        match self.places.blamed(of.site, of.stack, of.deed()).0 {
            Blamed::Place(at) => self.places.frames[at as usize].clone(),
            Blamed::Runtime => {
                self.places.calls(of.site, of.stack).into_iter().next().unwrap_or_default()
            }
        }
    }

    fn stored(&mut self, event: EventId) -> Stored {
        let of = self.story.events[event as usize];
        let (address, old, new) = match of.what {
            What::Store { addr, old, new, .. } => (Some(addr.0), old, new),
            What::Length { old, new, .. } => (None, old, new),
            _ => (None, 0, 0),
        };
        let calls = self.places.calls(of.site, of.stack);
        Stored { event, place: self.place(event), calls, thread: of.thread, address, old, new }
    }

    /// Tells a violation.
    pub fn told(&mut self, found: &Found, mended: Option<Mended>) -> Violation {
        let shrunk = &found.shrunk;
        let point = &self.points.all[shrunk.candidate.point];
        let missing: Vec<Stored> = shrunk.missing.iter().map(|&e| self.stored(e)).collect();
        let present: Vec<Stored> = shrunk.present.iter().map(|&e| self.stored(e)).collect();
        let last = point.at.checked_sub(1);
        Violation {
            image: shrunk.candidate.name(point).to_string(),
            said: shrunk.fault.what.clone(),
            count: found.count,
            after: last.map(|event| self.place(event)),
            operations: point.ended,
            timeline: self.timeline(&shrunk.missing, &shrunk.present, point.at),
            missing,
            present,
            repair: mended.map(repaired),
        }
    }

    /// Steps about the units of these stores, up to the power failure.
    fn timeline(&mut self, missing: &[EventId], present: &[EventId], at: EventId) -> Vec<Step> {
        let all = || missing.iter().chain(present).copied();
        let Some(first) = all().min() else { return Vec::new() };
        let unit = |address: u64| match self.rules {
            Rules::Processor(_) => address / graven_base::memory::LINE_BYTES,
            Rules::PageCache { sector } => address / sector,
        };
        let of = |event: EventId| self.story.address(event).map(|addr| unit(addr.0));
        let units: BTreeSet<u64> = all().filter_map(of).collect();
        let is_told = |event: EventId| match self.story.events[event as usize].what {
            What::Store { addr, .. } => units.contains(&unit(addr.0)),
            What::Persist(
                Persist::WriteBack(line) | Persist::Flush(line) | Persist::Clean(line, _),
            ) => units.contains(&unit(line.addr().0)),
            What::Load { .. } => false,
            _ => true,
        };
        let mut chosen: Vec<EventId> = (first..at).filter(|&event| is_told(event)).collect();
        if chosen.len() > STEPS_MAX {
            // The stores that matter, and the last steps.
            let from = chosen.len() - STEPS_MAX / 2;
            let matters: BTreeSet<EventId> = all().collect();
            let head = chosen[..STEPS_MAX / 2].to_vec();
            let more = chosen[STEPS_MAX / 2..].iter().enumerate();
            let tail: Vec<EventId> = more
                .filter(|(number, event)| number + STEPS_MAX / 2 >= from || matters.contains(event))
                .map(|(_, &event)| event)
                .collect();
            chosen = [head, tail].concat();
        }
        let step = |event: EventId| {
            let of = self.story.events[event as usize];
            let is = if missing.contains(&event) {
                Some("missing")
            } else {
                present.contains(&event).then_some("present")
            };
            let (what, address) = words(of.what);
            Step { event, place: self.place(event), thread: of.thread, what, address, is }
        };
        chosen.into_iter().map(step).collect()
    }
}

fn repaired(mended: Mended) -> Repaired {
    let kind = match mended.repair {
        Repair::FlushAndFence => "flush-and-fence",
        Repair::Fence => "fence",
        Repair::Sync => "sync",
        Repair::LaterStore => "later-store",
        Repair::Together => "together",
    };
    let Mended { helps, images, before_end, .. } = mended;
    Repaired { kind, helps, images, before_end }
}

/// A deed in words, and the address that it is about.
fn words(what: What) -> (String, Option<u64>) {
    let about = |words: &str, address: u64| (words.to_owned(), Some(address));
    let plain = |words: &str| (words.to_owned(), None);
    match what {
        What::Store { addr, old, new, .. } => {
            about(&format!("stores {new:#x} (was {old:#x})"), addr.0)
        }
        What::Load { addr } => about("loads", addr.0),
        What::Persist(Persist::WriteBack(line)) => about("writes back the line", line.addr().0),
        What::Persist(Persist::Flush(line)) => about("flushes the line", line.addr().0),
        What::Persist(Persist::Clean(line, depth)) => {
            let to = match depth {
                Depth::Coherence => "coherence",
                Depth::Persistence => "persistence",
                Depth::DeepPersistence => "deep persistence",
            };
            about(&format!("cleans the line to the point of {to}"), line.addr().0)
        }
        What::Persist(Persist::Fence(fence)) => plain(match fence {
            Fence::Store => "sfence",
            Fence::Full => "mfence",
            Fence::Locked => "locked instruction",
            Fence::Dmb => "dmb",
            Fence::DmbStore => "dmb st",
            Fence::DmbLoad => "dmb ld",
            Fence::Dsb => "dsb",
        }),
        What::Told => plain("sends something out"),
        What::Synced { end: u64::MAX, .. } => plain("synchronises all"),
        What::Synced { start, end, .. } => {
            about(&format!("synchronises {} bytes", end.saturating_sub(start)), start)
        }
        What::Length { old, new, .. } => {
            plain(&format!("sets the file's length to {new} (was {old})"))
        }
        What::Begins => plain("an operation begins"),
        What::Ends => plain("the operation is over"),
    }
}
