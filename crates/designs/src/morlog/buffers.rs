//! The two log buffers (§III-B): volatile FIFOs beside the memory controller.

use std::collections::VecDeque;

use graven_base::memory::{Addr, LineAddr};
use graven_base::time::Cycle;

use super::line_state::Owner;
use super::protocol::DataWriteNumber;

/// Content of the undo+redo buffer's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// An undo+redo entry.
    Entry {
        /// Home of the word.
        addr: Addr,
        /// The oldest value of the word.
        undo: u64,
        /// The newest.
        redo: u64,
        /// Newer redo data than the log has was dropped in favour of this: it is logged even if unchanged.
        owes: bool,
    },
    /// A commit record (delay-persistence commit), with the ulog counter.
    Commit {
        /// Words whose redo data comes later.
        ulog: u32,
        /// Number among commits.
        number: u64,
    },
}

/// An entry of the undo+redo buffer.
#[derive(Clone, Copy, Debug)]
pub struct UndoRedo {
    pub owner: Owner,
    pub core: u32,
    pub what: Waiting,
    entered: Cycle,
}

/// The undo+redo buffer: an entry of a buffer of N leaves after N cycles, or when the buffer is full.
#[derive(Debug)]
pub struct UndoRedoBuffer {
    fifo: VecDeque<UndoRedo>,
    capacity: usize,
}

impl UndoRedoBuffer {
    pub fn new(entries: u32) -> Self {
        let capacity = entries as usize;
        Self { fifo: VecDeque::with_capacity(capacity), capacity }
    }

    pub fn len(&self) -> usize {
        self.fifo.len()
    }

    pub fn is_full(&self) -> bool {
        self.fifo.len() >= self.capacity
    }

    /// The entry of a transaction for a word.
    #[inline]
    pub fn find(&mut self, addr: Addr, owner: Owner) -> Option<&mut UndoRedo> {
        let same = |e: &&mut UndoRedo| {
            matches!(e.what, Waiting::Entry { addr: a, .. } if a == addr) && e.owner == owner
        };
        self.fifo.iter_mut().rev().find(same)
    }

    pub fn push(&mut self, owner: Owner, core: u32, what: Waiting, now: Cycle) {
        assert!(!self.is_full(), "the caller looks for room first");
        self.fifo.push_back(UndoRedo { owner, core, what, entered: now });
    }

    /// When the oldest leaves.
    pub fn due(&self) -> Option<Cycle> {
        let oldest = self.fifo.front()?;
        Some(if self.is_full() { 0 } else { oldest.entered + self.capacity as Cycle })
    }

    /// Number of entries that must leave for none of a line's entries to be here.
    pub fn ahead_of_line(&self, line: LineAddr) -> usize {
        let of_line =
            |e: &UndoRedo| matches!(e.what, Waiting::Entry { addr, .. } if addr.line() == line);
        self.fifo.iter().rposition(of_line).map_or(0, |last| last + 1)
    }

    /// Number of entries that must leave for none of a transaction's to be here.
    pub fn ahead_of(&self, owner: Owner) -> usize {
        self.fifo.iter().rposition(|e| e.owner == owner).map_or(0, |last| last + 1)
    }

    pub fn pop(&mut self) -> Option<UndoRedo> {
        self.fifo.pop_front()
    }
}

/// State of a buffered redo word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The word is nowhere else.
    Here,
    /// The word is on its way home, in a data write of this number.
    Leaving(DataWriteNumber),
    /// The word is durable at home: no data need be logged, only that.
    Home,
}

/// An entry of the redo buffer.
#[derive(Clone, Copy, Debug)]
pub struct Redo {
    pub owner: Owner,
    pub addr: Addr,
    pub value: u64,
    /// Bytes that changed since the word's last record.
    pub dirty: u8,
    /// True if its transaction has committed.
    pub late: bool,
    pub place: Place,
}

/// The redo buffer: an entry leaves when the buffer is full, or its transaction commits.
#[derive(Debug)]
pub struct RedoBuffer {
    fifo: VecDeque<Redo>,
    capacity: usize,
}

impl RedoBuffer {
    pub fn new(entries: u32) -> Self {
        let capacity = entries as usize;
        Self { fifo: VecDeque::with_capacity(capacity), capacity }
    }

    pub fn len(&self) -> usize {
        self.fifo.len()
    }

    pub fn is_full(&self) -> bool {
        self.fifo.len() >= self.capacity
    }

    pub fn push(&mut self, redo: Redo) {
        assert!(!self.is_full(), "the caller makes room first");
        self.fifo.push_back(redo);
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Redo> {
        self.fifo.iter_mut()
    }

    /// Takes the oldest entries, at most `at_most`.
    pub fn take_oldest(&mut self, at_most: usize, into: &mut Vec<Redo>) {
        into.extend(self.fifo.drain(..at_most.min(self.fifo.len())));
    }

    /// Takes out those that are wanted, in their order.
    pub fn take(&mut self, wanted: impl Fn(&Redo) -> bool, into: &mut Vec<Redo>) {
        self.fifo.retain(|redo| {
            let take = wanted(redo);
            if take {
                into.push(*redo);
            }
            !take
        });
    }

    /// Drops those that are not wanted; returns how many.
    pub fn discard(&mut self, unwanted: impl Fn(&Redo) -> bool) -> usize {
        let before = self.fifo.len();
        self.fifo.retain(|redo| !unwanted(redo));
        before - self.fifo.len()
    }
}
