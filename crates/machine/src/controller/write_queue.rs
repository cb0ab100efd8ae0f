//! The write queue of a channel, and the writes that wait for a place in it.
//!
//! A write that finds no place, or is held back for ordered writes, waits outside the queue and is volatile there.
//! Writes of one line are accepted in the order of their arrival; those of other lines may go past one that is
//! held back.

use std::ops::Range;

use graven_base::memory::{LineAddr, WordMask};

use super::waiting_writes::WaitingWrites;
use crate::device::{LineIndex, PmBuffer};
use crate::media::overlay;
use crate::request::{Place, Write};

/// A place in the queue: what the scheduler looks at. The write itself lies elsewhere, so that
/// the whole queue fits into few lines of the host's cache.
#[derive(Clone, Copy, Debug)]
pub struct QueuedWrite {
    /// Its line.
    pub line: LineAddr,
    /// Its row of the bank.
    pub row: u64,
    /// Its bank.
    pub bank: u32,
    /// Where the write itself is.
    pub slot: u32,
    /// Given to a bank; it leaves when the cells have it.
    pub issued: bool,
    /// The on-PM buffer has its media line and takes it even when it is full.
    pub buffered: bool,
}

/// The queue. What the scheduler asks of it is kept up to date at every change.
#[derive(Debug)]
pub struct WriteQueue {
    entries: usize,
    /// Places in order of acceptance.
    places: Vec<QueuedWrite>,
    /// Their line numbers.
    lines: LineIndex,
    writes: slab::Slab<Write>,
    /// Per bank, the queued writes that have not been given to it.
    of_bank: Vec<u32>,
    /// How many writes find their media line in the on-PM buffer.
    buffered: usize,
    waiting: WaitingWrites,
}

impl WriteQueue {
    /// An empty queue of so many places, before so many banks.
    pub fn new(entries: usize, banks: usize) -> WriteQueue {
        WriteQueue {
            entries,
            places: Vec::with_capacity(entries),
            lines: LineIndex::with_capacity(entries),
            writes: slab::Slab::with_capacity(entries),
            of_bank: vec![0; banks],
            buffered: 0,
            waiting: WaitingWrites::new(banks),
        }
    }

    /// Whether there is a place.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.places.len() < self.entries
    }

    /// Whether the queue is empty; writes may wait outside.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Queued writes.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Places in order of acceptance.
    #[inline]
    pub fn places(&self) -> &[QueuedWrite] {
        &self.places
    }

    /// The write in a place.
    #[inline]
    pub fn write(&self, place: &QueuedWrite) -> &Write {
        &self.writes[place.slot as usize]
    }

    /// All that are queued, in order of acceptance.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.places.iter().map(|place| self.write(place))
    }

    /// Per bank, the queued writes that have not been given to it.
    #[inline]
    pub fn of_bank(&self) -> &[u32] {
        &self.of_bank
    }

    /// How many queued writes find their media line in the on-PM buffer.
    #[inline]
    pub fn buffered(&self) -> usize {
        self.buffered
    }

    /// Whether an older write of the line of a place is queued.
    #[inline]
    pub fn has_older(&self, index: usize) -> bool {
        self.lines.has_before(index)
    }

    /// Queued writes of a line, oldest first.
    pub fn of_line(&self, line: LineAddr) -> impl Iterator<Item = &Write> {
        let first = self.lines.position(line.0).unwrap_or(self.places.len());
        self.places[first..].iter().filter(move |w| w.line == line).map(|w| self.write(w))
    }

    /// The newest queued write of a line that has not been given to a bank.
    pub fn newest_unissued(&self, line: LineAddr) -> Option<usize> {
        let first = self.lines.position(line.0)?;
        let newest = self.places[first..].iter().rposition(|w| w.line == line && !w.issued)?;
        Some(first + newest)
    }

    /// The newest queued write of a line.
    pub fn newest_mut(&mut self, line: LineAddr) -> Option<&mut Write> {
        let newest = self.lines.last_position(line.0)?;
        Some(&mut self.writes[self.places[newest].slot as usize])
    }

    /// Puts a write last.
    pub fn push(&mut self, write: &Write, place: Place, buffered: bool) {
        assert!(self.has_room(), "a write is accepted only where there is a place");
        assert!(write.mask != 0, "a write writes something");
        self.buffered += usize::from(buffered);
        self.of_bank[place.bank as usize] += 1;
        self.lines.push(write.line.0);
        self.places.push(QueuedWrite {
            line: write.line,
            row: place.row,
            bank: place.bank,
            slot: self.writes.insert(*write) as u32,
            issued: false,
            buffered,
        });
    }

    /// Lays a write over one of the same line that is queued.
    pub fn merge(&mut self, index: usize, newer: &Write) {
        let older = &mut self.writes[self.places[index].slot as usize];
        assert_eq!(older.line, newer.line, "only writes of one line are merged");
        assert!(!self.places[index].issued, "what a bank has got does not change any more");
        overlay(&mut older.data, &newer.data, newer.mask);
        older.codings.overlay(&newer.codings, newer.mask);
        older.mask |= newer.mask;
        older.class = older.class.min(newer.class);
    }

    /// Gives a write to its bank; it stays queued until the cells have it.
    pub fn issue(&mut self, index: usize) -> QueuedWrite {
        let place = &mut self.places[index];
        assert!(!place.issued, "a write is given to its bank once");
        place.issued = true;
        self.of_bank[place.bank as usize] -= 1;
        *place
    }

    /// The place of the write in a slot.
    pub fn index_of(&self, slot: u32) -> Option<usize> {
        self.places.iter().position(|w| w.slot == slot)
    }

    /// Takes a write out.
    pub fn take(&mut self, index: usize) -> (Write, QueuedWrite) {
        let place = self.places.remove(index);
        self.lines.remove(index);
        self.buffered -= usize::from(place.buffered);
        self.of_bank[place.bank as usize] -= u32::from(!place.issued);
        assert_eq!(
            self.places.len(),
            self.lines.numbers().len(),
            "each write has its line among the lines"
        );
        (self.writes.remove(place.slot as usize), place)
    }

    /// The on-PM buffer has taken, spilled or dropped parts of a media line, which has these lines.
    #[inline]
    pub fn buffer_changed(&mut self, buffer: &PmBuffer, lines: Range<u64>) {
        if !self.lines.may_have_any(lines.clone()) {
            return;
        }
        for place in self.places.iter_mut().filter(|w| lines.contains(&w.line.0)) {
            self.buffered -= usize::from(place.buffered);
            place.buffered = buffer.holds(place.line);
            self.buffered += usize::from(place.buffered);
        }
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

    /// Which words of a line are here, in the queue or outside it.
    pub fn words_of(&self, line: LineAddr) -> WordMask {
        self.of_line(line).fold(self.waiting.mask(line), |mask, w| mask | w.mask)
    }
}
