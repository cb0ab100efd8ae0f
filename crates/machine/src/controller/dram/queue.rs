//! Requests that wait, oldest first, with what the scheduler asks about the banks that they wait for.

use graven_base::memory::{LineAddr, WordMask};
use graven_base::time::Cycle;

use super::device::Device;
use crate::device::Found;

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The line.
    pub line: LineAddr,
    /// The bank that the line is in.
    pub bank: u32,
    /// The row of the bank.
    pub row: u64,
    /// When it arrived at the controller.
    pub arrived: Cycle,
    /// State in which it found the bank: open until a row is opened for it, or another is closed.
    pub found: Found,
    /// True from when its row is opened for it.
    pub opened: bool,
    /// Words of a write.
    pub mask: WordMask,
    /// Number of a read among those that have no data yet.
    pub read: u32,
}

/// Requests that wait for a bank.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    all: u32,
    /// Those whose row was opened for them.
    opened: u32,
    /// Others that want the row that is open.
    hits: u32,
    /// Those that had another row closed, and have got none opened yet.
    closers: u32,
}

/// The reads, or the writes, of a channel.
#[derive(Clone, Debug)]
pub struct Queue {
    entries: Vec<Entry>,
    capacity: usize,
    of_bank: Vec<Wanted>,
    opened: usize,
}

impl Queue {
    /// Makes an empty queue of `capacity` places, before `banks` banks.
    pub fn new(capacity: usize, banks: usize) -> Queue {
        Queue {
            entries: Vec::with_capacity(capacity),
            capacity,
            of_bank: vec![Wanted::default(); banks],
            opened: 0,
        }
    }

    /// Returns true if a place is free.
    pub fn has_place(&self) -> bool {
        self.entries.len() < self.capacity
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of requests for which no row was opened.
    pub fn unopened(&self) -> usize {
        self.entries.len() - self.opened
    }

    /// All of them, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The newest request of a line.
    pub fn of_line_mut(&mut self, line: LineAddr) -> Option<&mut Entry> {
        self.entries.iter_mut().rev().find(|entry| entry.line == line)
    }

    /// Returns true if a row was opened for any request that waits for a bank.
    #[inline]
    pub fn has_opened(&self, bank: u32) -> bool {
        self.of_bank[bank as usize].opened > 0
    }

    /// Returns true if any other request wants the row that is open in a bank.
    #[inline]
    pub fn has_hits(&self, bank: u32) -> bool {
        self.of_bank[bank as usize].hits > 0
    }

    /// Returns true if any request wants another row of a bank than the one that is open.
    #[inline]
    pub fn has_misses(&self, bank: u32) -> bool {
        let of_bank = &self.of_bank[bank as usize];
        of_bank.all > of_bank.opened + of_bank.hits
    }

    /// Returns true if a closed bank is kept for a request that had a row closed.
    #[inline]
    pub fn is_kept(&self, bank: u32) -> bool {
        self.of_bank[bank as usize].closers > 0
    }

    /// Puts a request last.
    pub fn push(&mut self, entry: Entry, device: &Device) {
        let of_bank = &mut self.of_bank[entry.bank as usize];
        of_bank.all += 1;
        of_bank.hits += u32::from(device.is_open(entry.bank, entry.row));
        self.entries.push(entry);
    }

    /// Takes out the request at a place, which has been given to the device.
    pub fn remove(&mut self, at: usize) -> Entry {
        let entry = self.entries.remove(at);
        let of_bank = &mut self.of_bank[entry.bank as usize];
        of_bank.all -= 1;
        if entry.opened {
            of_bank.opened -= 1;
            self.opened -= 1;
        } else {
            of_bank.hits -= 1;
            of_bank.closers -= u32::from(entry.found == Found::Conflict);
        }
        entry
    }

    /// A row is closed for the request at a place.
    pub fn close(&mut self, at: usize) {
        let entry = &mut self.entries[at];
        let is_first = entry.found != Found::Conflict;
        entry.found = Found::Conflict;
        self.of_bank[entry.bank as usize].closers += u32::from(is_first);
    }

    /// A row is opened for the request at a place.
    pub fn open(&mut self, at: usize) {
        let entry = &mut self.entries[at];
        let of_bank = &mut self.of_bank[entry.bank as usize];
        entry.opened = true;
        match entry.found {
            Found::Conflict => of_bank.closers -= 1,
            Found::Open | Found::Closed => entry.found = Found::Closed,
        }
        self.opened += 1;
        of_bank.opened += 1;
    }

    /// A bank has a row open now that it had not, or none.
    pub fn row_changed(&mut self, bank: u32, device: &Device) {
        let hits = self
            .entries
            .iter()
            .filter(|entry| entry.bank == bank && !entry.opened && device.is_open(bank, entry.row));
        self.of_bank[bank as usize].hits = hits.count() as u32;
    }
}
