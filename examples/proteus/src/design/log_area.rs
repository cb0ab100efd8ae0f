//! Log entries: a block of 32 B as it was, and whose it is, in a slot of a circular log area.

use std::fmt;

use graven::design::DesignContext;
use graven::ids::ThreadId;
use graven::memory::{Addr, LINE_BYTES, WORD_BYTES};

use super::ProteusConfig;

/// What a log-load reads.
pub(super) const BLOCK_BYTES: u64 = 32;
/// Words of it.
pub(super) const BLOCK_WORDS: usize = (BLOCK_BYTES / WORD_BYTES) as usize;
/// An entry takes a line of PM, so that it is one write.
pub(super) const SLOT_BYTES: u64 = LINE_BYTES;
/// Words of a slot that are written.
pub(super) const ENTRY_WORDS: usize = 2 + BLOCK_WORDS;
/// Of the index of an entry.
pub(super) const INDEX_BITS: u32 = 16;
/// Slots of a log area, at most.
pub(super) const SLOTS_MAX: u64 = 1 << INDEX_BITS;

const INDEX_SHIFT: u32 = 48;
const FROM_MASK: u64 = (1 << INDEX_SHIFT) - BLOCK_BYTES;
const END: u64 = 1 << 63;
const NUMBER_MASK: u64 = (1 << 62) - 1;

/// Words of a block; bit `i` is word `i`.
pub(super) type BlockWords = u8;

/// All words of a block.
pub(super) const WHOLE_BLOCK: BlockWords = (1 << BLOCK_WORDS) - 1;

/// The block of a word, and which of its words that is.
pub(super) fn block_of(addr: Addr) -> (Addr, BlockWords) {
    let offset = addr.0 % BLOCK_BYTES;
    (Addr(addr.0 - offset), 1 << (offset / WORD_BYTES))
}

/// Word 0 of an entry: what makes it one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    /// Number of the transaction.
    pub(super) transaction: u64,
    /// It is the last entry of one that has ended.
    pub(super) end: bool,
}

impl Number {
    pub(super) fn word(self) -> u64 {
        assert!(self.transaction < NUMBER_MASK, "numbers of transactions have 62 bits");
        (self.transaction + 1) | if self.end { END } else { 0 }
    }

    pub(super) fn parse(word: u64) -> Option<Number> {
        let transaction = (word & NUMBER_MASK).checked_sub(1)?;
        Some(Number { transaction, end: word & END != 0 })
    }
}

/// A log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) number: Number,
    /// Its place among those of its transaction.
    pub(super) index: u64,
    /// The block that was read.
    pub(super) from: Addr,
    /// The words of it that are undone.
    pub(super) words: BlockWords,
    /// What the block held.
    pub(super) old: [u64; BLOCK_WORDS],
}

impl Entry {
    pub(super) fn encode(&self) -> [u64; ENTRY_WORDS] {
        assert!(self.index < SLOTS_MAX && self.from.0 & !FROM_MASK == 0);
        let mut words = [0; ENTRY_WORDS];
        words[0] = self.number.word();
        words[1] = self.from.0 | u64::from(self.words) | self.index << INDEX_SHIFT;
        words[2..].copy_from_slice(&self.old);
        words
    }

    pub(super) fn parse(words: [u64; ENTRY_WORDS]) -> Option<Entry> {
        Some(Entry {
            number: Number::parse(words[0])?,
            index: words[1] >> INDEX_SHIFT,
            from: Addr(words[1] & FROM_MASK),
            words: (words[1] as BlockWords) & WHOLE_BLOCK,
            old: std::array::from_fn(|word| words[2 + word]),
        })
    }

    /// The words that are undone, with what they held.
    pub(super) fn old_words(&self) -> impl Iterator<Item = (Addr, u64)> + '_ {
        let is_undone = |word: &usize| self.words >> word & 1 == 1;
        let old = |word: usize| (self.from.plus(word as u64 * WORD_BYTES), self.old[word]);
        (0..BLOCK_WORDS).filter(is_undone).map(old)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { number, index, from, words, old } = self;
        let end = if number.end { ", the end" } else { "" };
        write!(
            f,
            "transaction {}{end}, entry {index}: words {words:#06b} of {from}: {old:x?}",
            number.transaction
        )
    }
}

/// Where the log of a thread lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    start: Addr,
    /// Entries that it holds.
    pub(super) slots: u64,
}

impl Area {
    pub(super) fn of(context: &DesignContext, thread: ThreadId) -> Area {
        let bytes = context.config.get::<ProteusConfig>().log_bytes_per_thread.0;
        Area { start: context.thread_area(thread, bytes), slots: bytes / SLOT_BYTES }
    }

    pub(super) fn all(context: &DesignContext) -> impl Iterator<Item = Area> + '_ {
        (0..context.threads).map(|thread| Area::of(context, thread))
    }

    /// A slot, numbered from 0 over all passes.
    pub(super) fn slot(self, number: u64) -> Addr {
        self.start.plus(number % self.slots * SLOT_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            number: Number { transaction: 0x1234_5678_9abc, end: false },
            index: 0xfedc,
            from: Addr(0x7654_3210_9aa0),
            words: 0b1010,
            old: [u64::MAX, 1, 0, 0x8000_0000_0000_0001],
        }
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let mut entry = entry();
        let words = entry.encode();
        assert_eq!(words[..2], [0x1234_5678_9abd, 0xfedc_7654_3210_9aaa]);
        assert_eq!(words[2..], entry.old);
        entry.number.end = true;
        assert_eq!(entry.encode()[0], 0x8000_1234_5678_9abd);
    }

    #[test]
    fn an_entry_comes_back_from_its_words() {
        for (index, words, end) in [(0, 0b1, false), (0xffff, WHOLE_BLOCK, true), (7, 0b110, false)]
        {
            let number = Number { transaction: u64::from(words) << 40, end };
            let entry = Entry { index, words, number, ..entry() };
            assert_eq!(Entry::parse(entry.encode()), Some(entry));
        }
        assert_eq!(Entry::parse([0; ENTRY_WORDS]), None);
    }

    #[test]
    fn an_entry_is_about_the_words_of_its_mask() {
        let entry = entry();
        let start = entry.from;
        let old: Vec<(Addr, u64)> = entry.old_words().collect();
        assert_eq!(old, [(start.plus(8), 1), (start.plus(24), 0x8000_0000_0000_0001)]);
    }

    #[test]
    fn blocks_have_four_words() {
        assert_eq!(block_of(Addr(0x1000)), (Addr(0x1000), 0b1));
        assert_eq!(block_of(Addr(0x1018)), (Addr(0x1000), 0b1000));
        assert_eq!(block_of(Addr(0x1020)), (Addr(0x1020), 0b1));
    }

    #[test]
    fn slots_come_round() {
        let area = Area { start: Addr(4096), slots: 2 };
        assert_eq!([0, 1, 2, 3].map(|n| area.slot(n).0), [4096, 4160, 4096, 4160]);
    }
}
