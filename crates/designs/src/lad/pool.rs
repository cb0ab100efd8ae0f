//! Lines in the controller's protected pool, and on their way into it.

use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE, WordMask};
use graven_base::thread_set::ThreadSet;
use graven_base::time::Cycle;

/// The threads whose open transactions stored the words of a line.
pub(super) type Owners = [Option<u8>; WORDS_PER_LINE];

pub(super) fn words_owned(owners: &Owners, owned: impl Fn(u8) -> bool) -> WordMask {
    (0..WORDS_PER_LINE).filter(|&w| owners[w].is_some_and(&owned)).fold(0, |mask, w| mask | 1 << w)
}

/// Few things, found by their line, in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct ByLine<T> {
    pub(super) lines: Vec<LineAddr>,
    pub(super) values: Vec<T>,
}

impl<T> ByLine<T> {
    pub(super) const fn new() -> Self {
        Self { lines: Vec::new(), values: Vec::new() }
    }

    pub(super) fn index(&self, line: LineAddr) -> Option<usize> {
        self.lines.iter().position(|&l| l == line)
    }

    pub(super) fn get(&self, line: LineAddr) -> Option<&T> {
        self.index(line).map(|i| &self.values[i])
    }

    pub(super) fn get_mut(&mut self, line: LineAddr) -> Option<&mut T> {
        self.index(line).map(|i| &mut self.values[i])
    }

    pub(super) fn insert(&mut self, line: LineAddr, value: T) {
        assert!(self.index(line).is_none(), "a line has one entry");
        self.lines.push(line);
        self.values.push(value);
    }

    pub(super) fn remove(&mut self, line: LineAddr) -> Option<T> {
        let at = self.index(line)?;
        self.lines.remove(at);
        Some(self.values.remove(at))
    }
}

/// A place of the pool that gathers a line with uncommitted words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathered {
    pub(super) data: LineData,
    pub(super) owners: Owners,
}

impl Gathered {
    /// Returns true if several open transactions have words in it.
    pub(super) fn is_shared(&self) -> bool {
        let mut owners = self.owners.iter().flatten();
        owners.next().is_some_and(|first| owners.any(|owner| owner != first))
    }
}

/// A committed line of the pool, being written to PM.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draining {
    pub(super) line: LineAddr,
    pub(super) mask: WordMask,
    pub(super) data: LineData,
    pub(super) room: Room,
    /// The thread whose commit it belongs to.
    pub(super) committed_by: usize,
}

/// Whose place a draining line takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Own,
    /// That of the line's gathered entry, from which it came.
    Gathered,
    /// That of a younger draining one of the line.
    Younger,
}

/// Stages of a line that has left the caches and is not received yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Between the caches and the controller.
    Travelling,
    /// At the controller, for a place that a draining line will leave.
    Waiting,
    /// For the old line, to be logged.
    Reading,
    /// Waits for undo records, of which this number is not durable.
    Logging(u32),
    /// For itself to be durable at home.
    Writing,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Coming {
    pub(super) data: LineData,
    pub(super) arrives: Cycle,
    /// Threads whose commit must wait for it.
    pub(super) threads: ThreadSet,
    pub(super) stage: Stage,
    /// Newer content has joined it.
    pub(super) newer: bool,
    /// When it found no place: how often the transactions had changed until then in what decides that (see
    /// `Lad::decided`); 0: it has not, or waits for the place of its gathered version.
    pub(super) refused: u64,
}
