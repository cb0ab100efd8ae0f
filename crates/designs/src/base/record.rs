//! Records and log areas, byte by byte.

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, WORD_BYTES};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, Mutants, Store};

use super::{BaseConfig, Mutant};
use crate::torn;

/// Bytes of a record.
const RECORD_BYTES: u64 = 32;
/// Words of a record.
pub const RECORD_WORDS: usize = (RECORD_BYTES / WORD_BYTES) as usize;

const UNDO_TOP: u32 = 2;
const REDO_TOP: u32 = 3;
const ADDR_MASK: u64 = (1 << 48) - 1;
const KIND_MASK: u64 = 3;
const NUMBER_LOW: u32 = 31;
const NUMBER_LOW_MASK: u64 = (1 << NUMBER_LOW) - 1;
const NUMBER_MASK: u64 = (1 << 46) - 1;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The undo+redo entry of a store.
    Entry = 1,
    /// The end of a transaction.
    Commit = 2,
}

/// A record of a thread's log area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: Kind,
    thread: u8,
    pub tx: u16,
    pub number: u64,
    pub addr: Addr,
    pub undo: u64,
    redo: u64,
}

impl Record {
    /// The undo+redo entry of a store.
    pub fn entry(number: u64, store: &Store) -> Record {
        let Store { tx, addr, old, new, .. } = *store;
        Record { kind: Kind::Entry, addr, undo: old, redo: new, ..Record::commit(number, tx) }
    }

    /// The record that ends a transaction.
    pub fn commit(number: u64, tx: Tx) -> Record {
        Record {
            kind: Kind::Commit,
            thread: tx.thread as u8,
            tx: tx.number as u16,
            number,
            addr: Addr(0),
            undo: 0,
            redo: 0,
        }
    }

    /// Its bytes, with this torn bit in each word.
    pub fn words(&self, torn: bool) -> [u64; RECORD_WORDS] {
        assert!(self.addr.0 <= ADDR_MASK, "home addresses have 48 bits");
        assert!(self.number <= NUMBER_MASK, "no thread writes 2^46 records");
        let head = self.kind as u64
            | (self.undo >> 63) << UNDO_TOP
            | (self.redo >> 63) << REDO_TOP
            | u64::from(self.thread) << 8
            | u64::from(self.tx) << 16
            | (self.number & NUMBER_LOW_MASK) << 32;
        let home = self.addr.0 | self.number >> NUMBER_LOW << 48;
        torn::mark([head, home, self.undo, self.redo], torn)
    }

    /// The record, if it is one and was written whole.
    fn parse(words: [u64; RECORD_WORDS]) -> Option<Record> {
        let [head, home, undo, redo] = torn::whole(words)?;
        let kind = match head & KIND_MASK {
            1 => Kind::Entry,
            2 => Kind::Commit,
            _ => return None,
        };
        Some(Record {
            kind,
            thread: (head >> 8) as u8,
            tx: (head >> 16) as u16,
            number: head >> 32 | home >> 48 << NUMBER_LOW,
            addr: Addr(home & ADDR_MASK),
            undo: undo | (head >> UNDO_TOP & 1) << 63,
            redo: redo | (head >> REDO_TOP & 1) << 63,
        })
    }
}

/// One thread's circular log area.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub start: Addr,
    /// Records that it holds.
    pub slots: u64,
    mutants: Mutants<Mutant>,
}

impl Area {
    pub fn of(context: &DesignContext, thread: ThreadId) -> Area {
        let bytes =
            context.config.get::<BaseConfig>().log_bytes_per_thread.0 / RECORD_BYTES * RECORD_BYTES;
        let start = context.thread_area(thread, bytes);
        Area { start, slots: bytes / RECORD_BYTES, mutants: context.mutants() }
    }

    /// Where a record lies.
    pub fn slot(&self, number: u64) -> Addr {
        self.start.plus(number % self.slots * RECORD_BYTES)
    }

    /// The torn bit of a record.
    pub fn torn(&self, number: u64) -> bool {
        torn::of_pass(number, self.slots) || self.mutants.has(Mutant::TornBitNeverFlips)
    }

    /// The record in the slot of a number, if there is one.
    pub fn read(&self, image: &mut SurvivingImage, number: u64) -> Option<Record> {
        let slot = self.slot(number);
        let head = image.load(slot);
        image.work(Work::Record, 1);
        if head & KIND_MASK == 0 {
            return None;
        }
        let mut words = [head, 0, 0, 0];
        for (i, word) in words.iter_mut().enumerate().skip(1) {
            *word = image.load(slot.plus(i as u64 * WORD_BYTES));
        }
        if self.mutants.has(Mutant::TornBitInFirstWordOnly) {
            words = torn::as_the_first(words);
        }
        Record::parse(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_machine::design::MutantSet;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let kind = prop_oneof![Just(Kind::Entry), Just(Kind::Commit)];
        let head = (kind, any::<u8>(), any::<u16>(), 0..=NUMBER_MASK);
        (head, 0..=ADDR_MASK, any::<u64>(), any::<u64>()).prop_map(
            |((kind, thread, tx, number), addr, undo, redo)| Record {
                kind,
                thread,
                tx,
                number,
                addr: Addr(addr),
                undo,
                redo,
            },
        )
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let record = Record {
            kind: Kind::Commit,
            thread: 0xa5,
            tx: 0xbeef,
            number: 3 << 31 | 0x1234_5678,
            addr: Addr(0x1234_5678_9abc),
            undo: 1 << 63 | 7,
            redo: 9,
        };
        let words = [0x1234_5678_beef_a506, 0x3_1234_5678_9abc, 7, 9];
        assert_eq!(record.words(false), words);
        assert_eq!(record.words(true), words.map(|word| word | 1 << 63));
        assert_eq!(Record { redo: 1 << 63, ..record }.words(false)[0], words[0] | 8);
        assert_eq!(Record { redo: 1 << 63, ..record }.words(false)[3], 0);
    }

    proptest! {
        #[test]
        fn a_record_comes_back_from_its_bytes(record in any_record(), torn: bool) {
            prop_assert_eq!(Record::parse(record.words(torn)), Some(record));
        }

        #[test]
        fn a_record_that_is_partly_written_is_none(
            new in any_record(), old in any_record(), written in 1u8..15, torn: bool,
        ) {
            let (new, old) = (new.words(torn), old.words(!torn));
            let words = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { old[i] });
            prop_assert_eq!(Record::parse(words), None);
        }

        #[test]
        fn a_record_that_is_partly_written_over_zeroes_is_none(
            new in any_record(), written in 0u8..15,
        ) {
            let new = new.words(true);
            let words = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { 0 });
            prop_assert_eq!(Record::parse(words), None);
        }

        #[test]
        fn flipping_any_used_bit_changes_the_record(record in any_record(), bit in 0usize..256) {
            let mut words = record.words(true);
            words[bit / 64] ^= 1 << (bit % 64);
            let unused = matches!(bit, 4..8);
            prop_assert_eq!(Record::parse(words) == Some(record), unused);
        }
    }

    #[test]
    fn passes_alternate_and_slots_come_round() {
        let area = Area { start: Addr(4096), slots: 3, mutants: Mutants::of(MutantSet::NONE) };
        let places: Vec<(u64, bool)> = (0..7).map(|n| (area.slot(n).0, area.torn(n))).collect();
        let [a, b, c] = [4096, 4096 + 32, 4096 + 64];
        let expected =
            [(a, true), (b, true), (c, true), (a, false), (b, false), (c, false), (a, true)];
        assert_eq!(places, expected);
    }
}
