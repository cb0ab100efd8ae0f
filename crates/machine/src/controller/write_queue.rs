//! The write queue of a channel, and the writes that wait for a place in it.
//!
//! A write that finds no place, or is held back for ordered writes, waits outside the queue and is volatile there.
//! Writes of one line are accepted in the order of their arrival; those of other lines may go past one that is
//! held back.

use graven_base::memory::{LineAddr, WordMask};
use graven_base::time::{Cycle, NEVER};

use super::lists::{Candidate, Lists, Request, Wait, keep};
use super::waiting_writes::WaitingWrites;
use crate::device::{Banks, PmBuffer};
use crate::media::overlay;
use crate::request::{Place, Write};

/// The arrival of a request at its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// When.
    pub at: Cycle,
    /// Place among all requests that reached the channel.
    pub number: u64,
}

/// The queue. What the scheduler asks of it is kept up to date at every change.
#[derive(Debug)]
pub struct WriteQueue {
    /// Targets of the writes, for the scheduler. The writes themselves lie elsewhere, so that all
    /// of this fits into few lines of the host's cache. Those of the on-PM buffer are those of
    /// which it has the media line: it takes them even when it is full.
    lists: Lists,
    /// The writes themselves, by slot; a slot that was never taken has none.
    writes: Vec<Write>,
    /// When each entered the queue, by slot.
    entered: Vec<Cycle>,
    /// Their places among all requests that reached the channel, by slot.
    numbers: Vec<u64>,
    waiting: WaitingWrites,
}

impl WriteQueue {
    /// Makes an empty queue of `entries` places, before `banks` banks, or before an on-PM buffer
    /// that lies before these.
    pub fn new(entries: usize, banks: usize, buffered: bool) -> WriteQueue {
        let wait = if buffered { Wait::Buffer } else { Wait::BanksInOrder(banks) };
        WriteQueue {
            lists: Lists::new(entries, wait),
            writes: Vec::with_capacity(entries),
            entered: vec![0; entries],
            numbers: vec![0; entries],
            waiting: WaitingWrites::new(banks),
        }
    }

    /// Returns true if a place is free.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.lists.has_room()
    }

    /// Returns true if the queue is empty; writes may wait outside.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queued writes.
    #[inline]
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Targets of the writes, and which were given to their banks.
    #[inline]
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// The write in a slot. A write that was removed stays there until the slot is taken again.
    #[inline]
    pub fn get(&self, slot: u32) -> &Write {
        &self.writes[slot as usize]
    }

    /// When the write in a slot entered the queue: later than it arrived, if it waited outside.
    #[inline]
    pub fn entered(&self, slot: u32) -> Cycle {
        self.entered[slot as usize]
    }

    /// The place of the write in a slot among all requests that reached the channel.
    #[inline]
    pub fn number(&self, slot: u32) -> u64 {
        self.numbers[slot as usize]
    }

    /// When the oldest entered; [`NEVER`] if there is none.
    #[inline]
    pub fn oldest_entered(&self) -> Cycle {
        self.lists.oldest_first().next().map_or(NEVER, |slot| self.entered(slot))
    }

    /// All that are queued, in order of acceptance.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.lists.oldest_first().map(|slot| self.get(slot))
    }

    /// Queued writes of a line, oldest first.
    pub fn of_line(&self, line: LineAddr) -> impl Iterator<Item = &Write> {
        self.lists.of_line(line).map(|slot| self.get(slot))
    }

    /// The newest queued write of a line that has not been given to a bank.
    pub fn newest_unissued(&self, line: LineAddr) -> Option<u32> {
        self.lists.of_line_newest_first(line).find(|&slot| !self.lists.is_issued(slot))
    }

    /// The newest queued write of a line.
    pub fn newest_mut(&mut self, line: LineAddr) -> Option<&mut Write> {
        let newest = self.lists.of_line_newest_first(line).next()?;
        Some(&mut self.writes[newest as usize])
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

    /// Puts a write last, which enters now. `buffered`: the on-PM buffer has its media line.
    pub fn push(
        &mut self,
        write: &Write,
        arrival: Arrived,
        now: Cycle,
        place: &Place,
        buffered: bool,
    ) {
        assert!(write.mask != 0, "a write writes something");
        let slot = self.lists.insert(write.line, place, buffered) as usize;
        self.entered[slot] = now;
        self.numbers[slot] = arrival.number;
        keep(&mut self.writes, slot, Write { arrived: arrival.at, ..*write });
    }

    /// Lays a write over one of the same line that is queued.
    pub fn merge(&mut self, slot: u32, newer: &Write) {
        let older = &mut self.writes[slot as usize];
        assert_eq!(older.line, newer.line, "only writes of one line are merged");
        assert!(!self.lists.is_issued(slot), "what a bank has got does not change any more");
        overlay(&mut older.data, &newer.data, newer.mask);
        older.codings.overlay(&newer.codings, newer.mask);
        older.mask |= newer.mask;
        older.class = older.class.min(newer.class);
    }

    /// Gives a write to its bank; it stays queued until the cells have it.
    pub fn issue(&mut self, slot: u32) {
        self.lists.issue(slot);
    }

    /// Takes a write out, which is in its slot until another comes. Returns where it wanted to go.
    pub fn remove(&mut self, slot: u32) -> Request {
        self.lists.remove(slot)
    }

    /// The on-PM buffer has taken, spilled or dropped parts of a media line.
    #[inline]
    pub fn buffer_changed(&mut self, buffer: &PmBuffer, media_line: u64) {
        self.lists.buffer_changed(media_line, |line| buffer.holds(line));
    }

    // ---- outside the queue ---------------------------------------------------------------------

    /// The writes that wait outside.
    #[inline]
    pub fn waiting(&self) -> &WaitingWrites {
        &self.waiting
    }

    /// The same, to let one wait or to take one in.
    #[inline]
    pub fn waiting_mut(&mut self) -> &mut WaitingWrites {
        &mut self.waiting
    }

    /// Words of a line that are in the queue or outside it.
    pub fn words_of(&self, line: LineAddr) -> WordMask {
        self.of_line(line).fold(self.waiting.mask(line), |mask, w| mask | w.mask)
    }
}
