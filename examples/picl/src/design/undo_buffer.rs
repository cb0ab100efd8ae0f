//! The undo buffer beside the LLC, and the filter that tells whether a line's entry may be in it.

use graven::memory::{LineAddr, LineData};

/// An old line: its content at the ends of the epochs from `from` up to, and without, `till`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) line: LineAddr,
    /// The first epoch at whose end the line had this content.
    pub(super) from: u64,
    /// The epoch that overwrites it.
    pub(super) till: u64,
    pub(super) old: LineData,
}

/// Entries that are not in the log yet, oldest first.
pub(super) struct UndoBuffer {
    places: usize,
    entries: Vec<Entry>,
    filter: Filter,
}

impl UndoBuffer {
    pub(super) fn new(places: u32, filter_bits: u32) -> UndoBuffer {
        let filter = Filter { bits: vec![false; filter_bits as usize] };
        UndoBuffer { places: places as usize, entries: Vec::new(), filter }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() == self.places
    }

    /// Takes an entry in.
    pub(super) fn push(&mut self, entry: Entry) {
        self.filter.add(entry.line);
        self.entries.push(entry);
    }

    /// The oldest entry is lost.
    pub(super) fn drop_oldest(&mut self) {
        self.entries.remove(0);
    }

    /// All entries; none is left, and the filter is empty.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        self.filter.bits.fill(false);
        std::mem::take(&mut self.entries)
    }

    /// Returns true if the filter has the line: an entry of it may be here.
    pub(super) fn may_have(&self, line: LineAddr) -> bool {
        self.filter.may_have(line)
    }

    /// Returns true if an entry of the line is here.
    pub(super) fn has(&self, line: LineAddr) -> bool {
        self.entries.iter().any(|entry| entry.line == line)
    }
}

/// A Bloom filter of lines, with two bits for each.
struct Filter {
    bits: Vec<bool>,
}

impl Filter {
    fn places(&self, line: LineAddr) -> [usize; 2] {
        // The halves of a product with an odd number without pattern (2^64 over the golden ratio).
        let hash = line.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        [hash >> 32, (hash >> 8) & 0xff_ffff].map(|part| part as usize % self.bits.len())
    }

    fn add(&mut self, line: LineAddr) {
        for place in self.places(line) {
            self.bits[place] = true;
        }
    }

    fn may_have(&self, line: LineAddr) -> bool {
        self.places(line).iter().all(|&place| self.bits[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(line: u64) -> Entry {
        Entry { line: LineAddr(line), from: 0, till: 1, old: [line; 8] }
    }

    #[test]
    fn the_filter_has_every_entry_and_is_empty_when_the_buffer_is() {
        let mut buffer = UndoBuffer::new(32, 4096);
        for line in 0..32 {
            assert!(!buffer.is_full());
            buffer.push(entry(line * 77));
        }
        assert!(buffer.is_full());
        assert!((0..32).all(|line| buffer.may_have(LineAddr(line * 77))));
        let others = (100_000..101_000).filter(|&line| buffer.may_have(LineAddr(line))).count();
        assert!(others < 10, "{others} of 1,000 other lines hit 64 of 4,096 bits");
        assert_eq!(buffer.take().len(), 32);
        assert!((0..32).all(|line| !buffer.may_have(LineAddr(line * 77))));
    }

    #[test]
    fn a_filter_of_one_bit_has_all_lines() {
        let mut buffer = UndoBuffer::new(2, 1);
        assert!(!buffer.may_have(LineAddr(5)));
        buffer.push(entry(1));
        assert!(buffer.may_have(LineAddr(5)) && !buffer.has(LineAddr(5)));
    }
}
