//! The rules of durability as a table: states of [`Ranges`] have numbers, and what follows an event is computed once.
//!
//! Small programs reach few states of durability, each in many of their orders; all programs of a model share them.

use graven_base::ids::ThreadId;
use rustc_hash::FxHashMap;

use crate::happening::{Fence, Path, Point};
use crate::model::Model;
use crate::ranges::{Given, Range, Ranges};

/// A step that acts, as far as durability depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A store to a line.
    Store(u8, Path),
    /// `clwb` or `clflushopt` of a line.
    WriteBack(u8),
    /// `clflush` of a line, up to its visible version.
    Flush(u8),
    /// A clean of a line.
    Clean(u8, Point),
    /// A fence.
    Fence(Fence),
    /// A system call that sends something out.
    Told,
}

/// The number of a state that nothing has happened before.
pub const NOTHING_YET: u32 = 0;

const UNKNOWN: u32 = u32::MAX;

/// The states of durability that have been reached, by number.
#[derive(Debug)]
pub struct Table {
    ranges: Vec<Ranges>,
    numbers: FxHashMap<Ranges, u32>,
    events: Vec<(ThreadId, Event)>,
    /// The state after each event, for each state, where it is known.
    after: Vec<Vec<u32>>,
}

impl Table {
    /// No event yet.
    pub fn new(model: &Model) -> Table {
        let start = Ranges::new(model, Given::Acting);
        Table {
            ranges: vec![start.clone()],
            numbers: FxHashMap::from_iter([(start, NOTHING_YET)]),
            events: Vec::new(),
            after: vec![Vec::new()],
        }
    }

    /// The number of an event of a thread.
    pub fn event(&mut self, thread: ThreadId, event: Event) -> usize {
        let wanted = (thread, event);
        self.events.iter().position(|known| *known == wanted).unwrap_or_else(|| {
            self.events.push(wanted);
            self.events.len() - 1
        })
    }

    /// The versions of a line.
    pub fn line(&self, state: u32, line: u8) -> Range {
        self.ranges[state as usize].line(u32::from(line))
    }

    /// The state after an event.
    pub fn after(&mut self, state: u32, event: usize) -> u32 {
        match self.after[state as usize].get(event) {
            Some(&after) if after != UNKNOWN => after,
            _ => self.compute(state, event),
        }
    }

    #[cold]
    fn compute(&mut self, state: u32, number: usize) -> u32 {
        let mut ranges = self.ranges[state as usize].clone();
        let (thread, event) = self.events[number];
        match event {
            Event::Store(line, path) => ranges.store(thread, u32::from(line), path),
            Event::WriteBack(line) => ranges.write_back(thread, u32::from(line)),
            Event::Flush(line) => {
                let version = ranges.line(u32::from(line)).at_most;
                ranges.flush(thread, u32::from(line), version);
            }
            Event::Clean(line, point) => ranges.clean(thread, u32::from(line), point),
            Event::Fence(fence) => ranges.fence(thread, fence, &mut |_| ()),
            Event::Told => ranges.told(thread, &mut |_| ()),
        }
        let next = self.ranges.len() as u32;
        let after = *self.numbers.entry(ranges.clone()).or_insert(next);
        if after == next {
            self.ranges.push(ranges);
            self.after.push(Vec::new());
        }
        let known = &mut self.after[state as usize];
        if known.len() <= number {
            known.resize(number + 1, UNKNOWN);
        }
        known[number] = after;
        after
    }
}
