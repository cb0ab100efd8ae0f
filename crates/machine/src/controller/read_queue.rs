//! The read queue of a channel, and the reads that wait for a place in it.

use std::collections::VecDeque;

use graven_base::memory::{LineAddr, WordMask};
use graven_base::time::{Cycle, NEVER};

use super::lists::{Candidate, Lists, Wait, keep};
use crate::device::{Banks, PmBuffer};
use crate::request::{Place, Read};

/// A read in the queue, or waiting for it.
#[derive(Clone, Copy, Debug)]
pub struct QueuedRead {
    /// The request.
    pub read: Read,
    /// Place of its line.
    pub place: Place,
    /// The write queue has it.
    pub forwarded: bool,
    /// Place among all requests that reached the channel.
    pub number: u64,
}

/// The queue. What the scheduler asks of it is kept up to date at every change.
#[derive(Debug)]
pub struct ReadQueue {
    /// Targets of the reads. Those of the on-PM buffer are those of which it has the whole line.
    lists: Lists,
    /// The reads themselves, by slot; a slot that was never taken has none.
    reads: Vec<QueuedRead>,
    waiting: VecDeque<QueuedRead>,
}

impl ReadQueue {
    /// Makes an empty queue of `entries` places, before `banks` banks.
    pub fn new(entries: usize, banks: usize) -> ReadQueue {
        ReadQueue {
            lists: Lists::new(entries, Wait::Banks(banks)),
            reads: Vec::with_capacity(entries),
            waiting: VecDeque::new(),
        }
    }

    /// Returns true if a read that arrives now would find a place.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.waiting.is_empty() && self.has_place()
    }

    /// Returns true if a place is free for the oldest that waits.
    #[inline]
    pub fn has_place(&self) -> bool {
        self.lists.has_room()
    }

    /// Returns true if the queue is empty; reads may wait outside only while it is full.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queued reads.
    #[inline]
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// The one in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> &QueuedRead {
        &self.reads[slot as usize]
    }

    /// Banks that reads wait for, a bit for each. (Those that the on-PM buffer serves wait for none.)
    #[inline]
    pub fn waited_for(&self) -> u64 {
        self.lists.banks()
    }

    /// Banks whose lines are read, a bit for each.
    #[inline]
    pub fn banks(&self) -> u64 {
        self.lists.buffered().fold(self.lists.banks(), |banks, read| banks | 1 << read.bank)
    }

    /// The oldest that the on-PM buffer serves.
    #[inline]
    pub fn oldest_buffered(&self) -> Candidate {
        self.lists.oldest_buffered()
    }

    /// Returns true if the on-PM buffer serves any.
    #[inline]
    pub fn has_buffered(&self) -> bool {
        self.lists.has_buffered()
    }

    /// When the oldest arrived; [`NEVER`] if there is none.
    #[inline]
    pub fn oldest_arrival(&self) -> Cycle {
        self.lists.oldest_first().next().map_or(NEVER, |slot| self.get(slot).read.arrived)
    }

    /// Those that arrived at a time or before, oldest first.
    fn overdue(&self, since: Cycle) -> impl Iterator<Item = u32> {
        self.lists.oldest_first().take_while(move |&slot| self.get(slot).read.arrived <= since)
    }

    /// The oldest of those that arrived at a time or before and can go now.
    pub fn first_overdue(&self, since: Cycle, banks: &Banks) -> Option<u32> {
        self.overdue(since).find(|&slot| {
            self.lists.is_buffered(slot) || banks.free() >> self.lists.get(slot).bank & 1 != 0
        })
    }

    /// Banks that those wait for, a bit for each.
    #[inline]
    pub fn overdue_banks(&self, since: Cycle) -> u64 {
        if self.oldest_arrival() > since {
            return 0;
        }
        let wait = self.overdue(since).filter(|&slot| !self.lists.is_buffered(slot));
        wait.fold(0, |banks, slot| banks | 1 << self.lists.get(slot).bank)
    }

    /// See [`Lists::first_of_free`].
    #[inline(always)]
    pub fn first_of_free(&mut self, banks: &Banks, row_hit_limit: u32) -> Candidate {
        self.lists.first_of_free(banks, row_hit_limit)
    }

    /// These banks, a bit for each, have another row open, or have hit it once more.
    #[inline]
    pub fn banks_changed(&mut self, banks: u64) {
        self.lists.banks_changed(banks);
    }

    /// Returns true if any reads wait outside the queue.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Those outside the queue, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = &QueuedRead> {
        self.waiting.iter()
    }

    /// Puts a read last. `buffered`: the on-PM buffer has the whole line.
    pub fn push(&mut self, read: QueuedRead, buffered: bool) {
        let slot = self.lists.insert(read.read.line, &read.place, buffered) as usize;
        keep(&mut self.reads, slot, read);
    }

    /// Lets a read wait outside.
    pub fn wait(&mut self, read: QueuedRead) {
        self.waiting.push_back(read);
    }

    /// The oldest read outside, which goes into the queue now.
    pub fn take_waiting(&mut self) -> Option<QueuedRead> {
        self.waiting.pop_front()
    }

    /// Takes a read out. Returns it, and whether the on-PM buffer serves it.
    pub fn take(&mut self, slot: u32) -> (&QueuedRead, bool) {
        let buffered = self.lists.is_buffered(slot);
        self.lists.remove(slot);
        (&self.reads[slot as usize], buffered)
    }

    /// The on-PM buffer has taken, spilled or dropped parts of a media line.
    #[inline]
    pub fn buffer_changed(&mut self, buffer: &PmBuffer, media_line: u64) {
        self.lists.buffer_changed(media_line, |line| serves(buffer, line));
    }
}

/// Returns true if the on-PM buffer has all words of a line.
#[inline]
pub fn serves(buffer: &PmBuffer, line: LineAddr) -> bool {
    buffer.mask(line) == WordMask::MAX
}
