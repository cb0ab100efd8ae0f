//! The part that recoveries after neighbouring power failures have in common, done once and laid over the durable bytes.
//!
//! A recovery that replays a log writes the same words for the oldest records after one power failure as after the next. A design
//! that says which these are (`DesignInfo::settle`) has them written once, and its log shortened by them. The words lie above the
//! durable bytes from one power failure to the next; each recovery replays only the records that are left.
//!
//! - What becomes durable in a word that is covered so does so below.
//! - What becomes durable in a word on which the records depend ends it: everything is uncovered.
//! - The bytes as they really are come back by setting all of it aside, at a cost of what is covered.

use std::collections::BTreeMap;
use std::ops::Range;

use graven_base::memory::{Addr, Image};
use graven_base::surviving::Written;
use rustc_hash::FxHashMap;

/// The part of a recovery that was done ahead (`DesignInfo::settle`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The words on which it depends, in ranges: what they hold says what is written. The word that shortens the log is one.
    pub depends_on: Vec<Range<Addr>>,
    /// Stores that a recovery makes for it.
    pub stores: Stores,
    /// True if words outside the programs' data were written to hide records, which is not what a recovery leaves there.
    pub hides_records: bool,
}

/// Stores that a recovery makes for records of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Recovery makes this number of stores, one for each record, before those for later records.
    OfRecords(u64),
    /// Recovery stores each word of the programs' data once, however many records of the log have it.
    OfWords,
}

/// Words that are written whichever of the next power failures happens.
#[derive(Debug, Default)]
pub struct Settled {
    /// Each covered word, with what is durable there; while they are set aside, with what covers it.
    words: FxHashMap<Addr, u64>,
    /// Words on which that depends, in ranges that do not touch: the end of each, by its start.
    depends: BTreeMap<Addr, Addr>,
    /// Stores by which a recovery writes them, if it makes one for each record.
    stores: u64,
    /// True if a recovery makes one for each word instead.
    once_per_word: bool,
    /// The region of the programs' data, and the number of covered words there.
    data: Range<Addr>,
    in_data: u64,
    hides_records: bool,
    is_aside: bool,
}

impl Settled {
    /// Returns true if nothing is covered.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns true if all of it is set aside: the image holds the durable bytes.
    pub fn is_aside(&self) -> bool {
        self.is_aside
    }

    /// Returns true if a word is covered.
    #[inline]
    pub fn covers(&self, addr: Addr) -> bool {
        self.words.contains_key(&addr)
    }

    /// Returns true if a word of the programs' data is covered.
    pub fn covers_data(&self, addr: Addr) -> bool {
        self.data.contains(&addr) && self.covers(addr)
    }

    /// The covered words that a recovery leaves as they are.
    pub fn covered(&self) -> impl Iterator<Item = Addr> {
        let is_left = |addr: &Addr| !self.hides_records || self.data.contains(addr);
        self.words.keys().copied().filter(is_left)
    }

    /// Returns true if it depends on a word.
    #[inline]
    pub fn depends_on(&self, addr: Addr) -> bool {
        self.depends.range(..=addr).next_back().is_some_and(|(_, &end)| addr < end)
    }

    /// Stores that a recovery makes for it.
    pub fn stores(&self) -> u64 {
        if self.once_per_word { self.in_data } else { self.stores }
    }

    /// The same less those that a recovery leaves out because it writes the word for later records, too: `words` are those it
    /// writes for these.
    pub fn stores_beside(&self, words: &[Written]) -> u64 {
        if !self.once_per_word {
            return self.stores;
        }
        self.in_data - words.iter().filter(|w| self.covers(w.addr)).count() as u64
    }

    /// Returns true if a recovery has written another value to a word on which it depends: to the head of a log.
    pub fn is_undone(&self, w: &Written) -> bool {
        w.old != w.new && self.depends_on(w.addr)
    }

    /// Returns true if words outside the programs' data hide records: a recovery leaves others there.
    pub fn hides_records(&self) -> bool {
        self.hides_records
    }

    /// Something is to become durable in a covered word: returns what is durable there, to be replaced.
    #[inline]
    pub(super) fn below(&mut self, addr: Addr) -> Option<&mut u64> {
        self.words.get_mut(&addr)
    }

    /// Covers the words that were written, too. `data`: where the programs' data lie.
    pub(super) fn add(&mut self, written: &[Written], settlement: Settlement, data: Range<Addr>) {
        self.data = data;
        for w in written {
            if let std::collections::hash_map::Entry::Vacant(entry) = self.words.entry(w.addr) {
                entry.insert(w.old);
                self.in_data += u64::from(self.data.contains(&w.addr));
            }
        }
        match settlement.stores {
            Stores::OfRecords(count) => self.stores += count,
            Stores::OfWords => self.once_per_word = true,
        }
        self.hides_records |= settlement.hides_records;
        settlement.depends_on.into_iter().for_each(|range| self.depend_on(range));
    }

    fn depend_on(&mut self, mut range: Range<Addr>) {
        // From the last one that begins before its end back, as long as they touch.
        while let Some((&start, &end)) = self.depends.range(..=range.end).next_back()
            && end >= range.start
        {
            self.depends.remove(&start);
            range = start.min(range.start)..end.max(range.end);
        }
        self.depends.insert(range.start, range.end);
    }

    /// Sets everything aside, or covers the words again. `each` is told of each word, with what the image held and holds now.
    pub(super) fn turn(&mut self, image: &mut Image, mut each: impl FnMut(Addr, u64, u64)) {
        for (&addr, other) in &mut self.words {
            let held = image.store(addr, *other);
            each(addr, held, *other);
            *other = held;
        }
        self.is_aside = !self.is_aside;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut settled = Settled::default();
        for (start, end) in [(0, 8), (32, 64), (16, 24), (24, 32), (64, 72)] {
            settled.depend_on(Addr(start)..Addr(end));
        }
        let ranges: Vec<_> = settled.depends.iter().map(|(start, end)| (start.0, end.0)).collect();
        assert_eq!(ranges, [(0, 8), (16, 72)]);
        assert!(settled.depends_on(Addr(64)) && !settled.depends_on(Addr(8)));
    }
}
