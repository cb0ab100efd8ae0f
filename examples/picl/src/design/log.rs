//! The log in PM: records of undo entries, bit by bit, and the superblocks that they are allocated in.

use std::collections::VecDeque;

use graven::design::DesignContext;
use graven::memory::{Addr, LINE_BYTES, LineAddr, LineData};

use super::PiclConfig;
use super::undo_buffer::Entry;

/// Entries that share a header.
pub(super) const ENTRIES: usize = 6;
/// Bytes of a record: a header and the entries' lines.
pub(super) const RECORD_BYTES: u64 = (1 + ENTRIES as u64) * LINE_BYTES;

/// Bytes of the log where the number of its superblocks is not set, if the log region has as many: those of FWB's log (FWB §IV-C).
const BYTES_UNLESS_SET: u64 = 4 << 20;

/// Undo entries that go to the log together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Number among all records.
    pub(super) number: u32,
    /// Oldest first, up to [`ENTRIES`].
    pub(super) entries: Vec<Entry>,
}

impl Record {
    /// The header's words. 0: checksum of all that follows, the lines included; 1: the record's number, and the newest epoch that
    /// overwrites one of its entries; then an entry each: line, by how many epochs it was overwritten before that one (8 bits), epochs
    /// that it was valid for (8 bits). Neither is more than twice the epochs under way: each scan empties the undo buffer.
    pub(super) fn header(&self) -> LineData {
        let newest = self.newest();
        let mut words = [0; 8];
        words[1] = u64::from(self.number) << 32 | newest;
        for (word, entry) in words[2..].iter_mut().zip(&self.entries) {
            let [back, age] = [newest - entry.till, entry.till - entry.from].map(|n| n.min(255));
            *word = entry.line.0 << 16 | back << 8 | age;
        }
        words[0] = checksum(&words[1..], self.entries.iter().map(|entry| &entry.old));
        words
    }

    /// The newest epoch that overwrites an entry.
    pub(super) fn newest(&self) -> u64 {
        self.entries.iter().map(|entry| entry.till).max().expect("a record has an entry")
    }

    /// The record that a header and the lines behind it are, and whether it is whole.
    pub(super) fn parse(words: LineData, lines: &[LineData; ENTRIES]) -> (Record, bool) {
        let newest = words[1] & 0xffff_ffff;
        let of = |(&word, &old): (&u64, &LineData)| {
            let till = newest.saturating_sub(word >> 8 & 255);
            let from = till.saturating_sub(word & 255);
            (word != 0).then_some(Entry { line: LineAddr(word >> 16), from, till, old })
        };
        let entries: Vec<Entry> = words[2..].iter().zip(lines).map_while(of).collect();
        let whole = words[0] == checksum(&words[1..], entries.iter().map(|entry| &entry.old));
        (Record { number: (words[1] >> 32) as u32, entries }, whole)
    }
}

fn checksum<'a>(words: &'a [u64], lines: impl Iterator<Item = &'a LineData>) -> u64 {
    words.iter().chain(lines.flatten()).fold(0x9e37_79b9_7f4a_7c15, |sum: u64, word| {
        (sum ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
    })
}

/// The places of the log region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The word that has the persisted epoch.
    pub(super) persisted: Addr,
    /// The first record.
    pub(super) start: Addr,
    pub(super) superblocks: u64,
    pub(super) records: u64,
}

impl Layout {
    pub(super) fn of(context: &DesignContext) -> Layout {
        let config = context.config.get::<PiclConfig>();
        let start = context.log_start.plus(LINE_BYTES);
        let each = u64::from(config.superblock_records);
        let superblocks = match u64::from(config.superblocks) {
            0 => (context.log_end.0 - start.0).min(BYTES_UNLESS_SET) / (each * RECORD_BYTES),
            given => given,
        };
        Layout { persisted: context.log_start, start, superblocks, records: superblocks * each }
    }

    pub(super) fn end(&self) -> Addr {
        self.start.plus(self.records * RECORD_BYTES)
    }

    /// The header's line in a record's place.
    pub(super) fn header(&self, place: u64) -> LineAddr {
        self.start.plus(place * RECORD_BYTES).line()
    }
}

/// The superblocks of the log: one is free again when recovery needs none of its entries, all at once.
pub(super) struct Superblocks {
    blocks: u64,
    records_each: u64,
    /// The number of the next record.
    next: u64,
    /// Superblocks in use, oldest first: the newest epoch that overwrites an entry in each.
    used: VecDeque<u64>,
}

impl Superblocks {
    pub(super) fn new(layout: &Layout) -> Superblocks {
        let Layout { superblocks: blocks, records, .. } = *layout;
        let records_each = records.checked_div(blocks).unwrap_or(0);
        Superblocks { blocks, records_each, next: 0, used: VecDeque::new() }
    }

    /// The number of the next record.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Records that superblocks in use have no room for any more.
    pub(super) fn taken(&self) -> u64 {
        self.blocks * self.records_each - self.free()
    }

    /// Records that there is room for.
    pub(super) fn free(&self) -> u64 {
        let unused = (self.blocks - self.used.len() as u64) * self.records_each;
        unused + (self.records_each - self.next % self.records_each) % self.records_each
    }

    /// Returns true if as many undo entries find room.
    pub(super) fn have_room(&self, entries: usize) -> bool {
        entries.div_ceil(ENTRIES) as u64 <= self.free()
    }

    /// A record takes the next place; `newest`: its newest epoch.
    pub(super) fn take(&mut self, newest: u64) {
        if self.next.is_multiple_of(self.records_each) {
            self.used.push_back(0);
        }
        self.next += 1;
        let block = self.used.back_mut().expect("a record lies in a superblock");
        *block = newest.max(*block);
    }

    /// Frees the superblocks that are full of entries for epochs up to the persisted one. Returns their number.
    pub(super) fn free_up_to(&mut self, persisted: u64) -> usize {
        let mut freed = 0;
        while self.used.front().is_some_and(|&newest| newest <= persisted) && self.oldest_is_full()
        {
            self.used.pop_front();
            freed += 1;
        }
        freed
    }

    fn oldest_is_full(&self) -> bool {
        self.used.len() > 1 || self.next.is_multiple_of(self.records_each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(line: u64, from: u64, till: u64) -> Entry {
        Entry { line: LineAddr(line), from, till, old: [line + 1; 8] }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_any_word_missing_shows() {
        let entries = vec![entry(5, 1, 3), entry(1 << 41, 3, 4), entry(0, 0, 14)];
        let record = Record { number: 70_000, entries };
        let mut lines = [[0; 8]; ENTRIES];
        for (line, entry) in lines.iter_mut().zip(&record.entries) {
            *line = entry.old;
        }
        let header = record.header();
        assert_eq!(Record::parse(header, &lines), (record.clone(), true));
        for word in (0..8).filter(|&word| header[word] != 0) {
            let mut torn = header;
            torn[word] = 0;
            assert!(!Record::parse(torn, &lines).1, "word {word} of the header");
        }
        for line in 0..record.entries.len() {
            for word in 0..8 {
                let mut torn = lines;
                torn[line][word] = 0;
                assert!(!Record::parse(header, &torn).1, "word {word} of line {line}");
            }
        }
    }

    #[test]
    fn a_superblock_is_free_when_it_is_full_and_its_newest_epoch_is_persisted() {
        let layout = Layout { persisted: Addr(0), start: Addr(64), superblocks: 3, records: 6 };
        let mut log = Superblocks::new(&layout);
        assert_eq!((log.free(), log.taken()), (6, 0));
        for newest in [1, 2, 2, 3, 4] {
            log.take(newest);
        }
        assert_eq!((log.free(), log.taken()), (1, 5));
        assert!(log.have_room(ENTRIES) && !log.have_room(ENTRIES + 1));
        assert_eq!(log.free_up_to(1), 0, "the first block has an entry for epoch 2");
        assert_eq!(log.free_up_to(2), 1);
        assert_eq!(log.free_up_to(4), 1, "the third block is not full");
        assert_eq!((log.free(), log.taken()), (5, 1));
        log.take(4);
        assert_eq!(log.free_up_to(4), 1);
        assert_eq!((log.free(), log.taken()), (6, 0));
    }
}
