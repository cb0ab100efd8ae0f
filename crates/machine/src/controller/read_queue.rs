//! The read queue of a channel, and the reads that wait for a place in it.

use std::collections::VecDeque;
use std::ops::Range;

use graven_base::memory::{LineAddr, WordMask};

use crate::device::{LineIndex, PmBuffer};
use crate::request::{Place, Read};

/// A read in the queue, or waiting for it.
#[derive(Clone, Copy, Debug)]
pub struct QueuedRead {
    /// The request.
    pub read: Read,
    /// Where its line lies.
    pub place: Place,
    /// The on-PM buffer has the whole line.
    pub buffered: bool,
    /// The write queue has it.
    pub forwarded: bool,
}

/// The queue. What the scheduler asks of it is kept up to date at every change.
#[derive(Debug)]
pub struct ReadQueue {
    entries: usize,
    reads: Vec<QueuedRead>,
    /// Their line numbers.
    lines: LineIndex,
    /// Per bank, the queued reads.
    of_bank: Vec<u32>,
    /// How many of them the on-PM buffer serves.
    buffered: usize,
    waiting: VecDeque<QueuedRead>,
}

impl ReadQueue {
    /// An empty queue of so many places, before so many banks.
    pub fn new(entries: usize, banks: usize) -> ReadQueue {
        ReadQueue {
            entries,
            reads: Vec::with_capacity(entries),
            lines: LineIndex::with_capacity(entries),
            of_bank: vec![0; banks],
            buffered: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Whether a read that arrives now would find a place.
    pub fn has_room(&self) -> bool {
        self.waiting.is_empty() && self.has_place()
    }

    /// Whether there is a place, for the oldest that waits.
    pub fn has_place(&self) -> bool {
        self.reads.len() < self.entries
    }

    /// Whether the queue is empty; reads may wait outside only while it is full.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Queued reads.
    #[inline]
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Those that are queued, oldest first.
    #[inline]
    pub fn reads(&self) -> &[QueuedRead] {
        &self.reads
    }

    /// Per bank, the queued reads.
    #[inline]
    pub fn of_bank(&self) -> &[u32] {
        &self.of_bank
    }

    /// How many queued reads the on-PM buffer serves.
    #[inline]
    pub fn buffered(&self) -> usize {
        self.buffered
    }

    /// Those outside the queue, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = &QueuedRead> {
        self.waiting.iter()
    }

    /// Puts a read last.
    pub fn push(&mut self, read: QueuedRead) {
        assert!(self.reads.len() < self.entries, "a read enters only where there is a place");
        self.of_bank[read.place.bank as usize] += 1;
        self.buffered += usize::from(read.buffered);
        self.lines.push(read.read.line.0);
        self.reads.push(read);
    }

    /// Lets a read wait outside.
    pub fn wait(&mut self, read: QueuedRead) {
        self.waiting.push_back(read);
    }

    /// The oldest read outside, which goes into the queue now.
    pub fn take_waiting(&mut self) -> Option<QueuedRead> {
        self.waiting.pop_front()
    }

    /// Takes a read out.
    pub fn take(&mut self, index: usize) -> QueuedRead {
        let read = self.reads.remove(index);
        self.lines.remove(index);
        self.of_bank[read.place.bank as usize] -= 1;
        self.buffered -= usize::from(read.buffered);
        assert_eq!(
            self.reads.len(),
            self.lines.numbers().len(),
            "each read has its line among the lines"
        );
        read
    }

    /// The on-PM buffer has taken, spilled or dropped parts of a media line, which has these lines.
    #[inline]
    pub fn buffer_changed(&mut self, buffer: &PmBuffer, lines: Range<u64>) {
        if !self.lines.may_have_any(lines.clone()) {
            return;
        }
        for read in self.reads.iter_mut().filter(|r| lines.contains(&r.read.line.0)) {
            self.buffered -= usize::from(read.buffered);
            read.buffered = serves(buffer, read.read.line);
            self.buffered += usize::from(read.buffered);
        }
    }
}

/// Whether the on-PM buffer has all words of a line.
pub fn serves(buffer: &PmBuffer, line: LineAddr) -> bool {
    buffer.mask(line) == WordMask::MAX
}
