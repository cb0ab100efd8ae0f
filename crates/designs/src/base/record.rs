//! Records and log areas, byte by byte.

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, Field, WORD_BYTES};
use graven_base::surviving::{Slots, SurvivingImage, Work};
use graven_machine::design::{DesignContext, Store};

use super::{BaseConfig, Rules};
use crate::fields::{HOME, THREAD_BITS, TX_BITS};
use crate::mechanisms::torn;

/// Bytes of a record.
const RECORD_BYTES: u64 = 32;
/// Words of a record.
pub const RECORD_WORDS: usize = (RECORD_BYTES / WORD_BYTES) as usize;

const KIND: Field = Field::new("kind", 2, 0);
const UNDO_TOP: Field = KIND.then("bit 63 of the undo word", 1);
const REDO_TOP: Field = UNDO_TOP.then("bit 63 of the redo word", 1);
const THREAD: Field = Field::new("thread", THREAD_BITS, 8);
const TX: Field = THREAD.then("transaction", TX_BITS);
const NUMBER_LOW: Field = TX.then("low part of the number", 31);
/// Behind the home address.
const NUMBER_HIGH: Field = HOME.then("high part of the number", 15);

/// Kinds of records.
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
    thread: ThreadId,
    /// The transaction's number; read back, what the record has of it.
    pub tx: u64,
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
            thread: tx.thread,
            tx: tx.number,
            number,
            addr: Addr(0),
            undo: 0,
            redo: 0,
        }
    }

    /// Encodes the record with this torn bit in each word.
    pub fn words(&self, torn: bool) -> [u64; RECORD_WORDS] {
        // Transaction numbers come round: of adjacent records, they distinguish one transaction from the next.
        let head = KIND.put(self.kind as u64)
            | UNDO_TOP.put(torn::top(self.undo))
            | REDO_TOP.put(torn::top(self.redo))
            | THREAD.put(self.thread.into())
            | TX.wrapped(self.tx)
            | NUMBER_LOW.wrapped(self.number);
        let home = HOME.put(self.addr.0) | NUMBER_HIGH.put(self.number >> NUMBER_LOW.bits());
        torn::mark([head, home, self.undo, self.redo], torn)
    }

    /// The number of the record that these words are, if they were written whole, without the rest of it.
    #[inline]
    fn number_of(words: &[u64; RECORD_WORDS]) -> Option<u64> {
        let [head, home, ..] = torn::whole(*words)?;
        let is_record = matches!(KIND.get(head), 1 | 2);
        is_record.then(|| NUMBER_LOW.get(head) | NUMBER_HIGH.get(home) << NUMBER_LOW.bits())
    }

    /// The record, if it is one and was written whole.
    #[inline]
    fn parse(words: [u64; RECORD_WORDS]) -> Option<Record> {
        let [head, home, undo, redo] = torn::whole(words)?;
        let kind = match KIND.get(head) {
            1 => Kind::Entry,
            2 => Kind::Commit,
            _ => return None,
        };
        Some(Record {
            kind,
            thread: THREAD.get(head) as ThreadId,
            tx: TX.get(head),
            number: NUMBER_LOW.get(head) | NUMBER_HIGH.get(home) << NUMBER_LOW.bits(),
            addr: Addr(HOME.get(home)),
            undo: torn::with_top(undo, UNDO_TOP.get(head)),
            redo: torn::with_top(redo, REDO_TOP.get(head)),
        })
    }
}

/// One thread's circular log area.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub start: Addr,
    /// Records that it holds.
    pub slots: u64,
    rules: Rules,
}

impl Area {
    pub fn of(context: &DesignContext, thread: ThreadId) -> Area {
        let bytes =
            context.config.get::<BaseConfig>().log_bytes_per_thread.0 / RECORD_BYTES * RECORD_BYTES;
        let start = context.thread_area(thread, bytes);
        Area { start, slots: bytes / RECORD_BYTES, rules: Rules::of(context) }
    }

    /// Address of a record.
    pub fn slot(&self, number: u64) -> Addr {
        self.start.plus(number % self.slots * RECORD_BYTES)
    }

    /// All its slots.
    fn all(&self) -> Slots {
        Slots::new(self.start, RECORD_BYTES, self.slots)
    }

    /// The torn bit of a record.
    pub fn torn(&self, number: u64) -> bool {
        torn::of_pass(number, self.slots) || !self.rules.torn_bit_turns()
    }

    /// The record with the highest number, of those in all slots: each recovery reads them all.
    pub fn newest(&self, image: &mut SurvivingImage) -> Option<Record> {
        let by_place = !self.rules.newest_by_number();
        let mut newest: Option<(u64, [u64; RECORD_WORDS])> = None;
        let is_used = |head| KIND.get(head) != 0;
        self.all().visit_used(image, is_used, |words| {
            let words = self.as_checked(*words);
            if let Some(number) = Record::number_of(&words)
                && (by_place || newest.is_none_or(|(highest, _)| number >= highest))
            {
                newest = Some((number, words));
            }
        });
        newest.and_then(|(_, words)| Record::parse(words))
    }

    /// A record's words for the check of torn bits: if only the first is checked, all others get its bit.
    #[inline]
    fn as_checked(&self, words: [u64; RECORD_WORDS]) -> [u64; RECORD_WORDS] {
        if self.rules.every_word_has_torn_bit() { words } else { torn::as_the_first(words) }
    }

    /// The record in the slot of a number, if there is one.
    #[inline]
    pub fn read(&self, image: &mut SurvivingImage, number: u64) -> Option<Record> {
        let slot = self.slot(number);
        let head = image.load(slot);
        image.work(Work::Record, 1);
        if KIND.get(head) == 0 {
            return None;
        }
        let [home, undo, redo] = image.load_words(slot.plus(WORD_BYTES));
        Record::parse(self.as_checked([head, home, undo, redo]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::memory::Image;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let kind = prop_oneof![Just(Kind::Entry), Just(Kind::Commit)];
        let head = (kind, any::<u8>(), any::<u16>(), 0u64..1 << 46);
        (head, 0..=HOME.max(), any::<u64>(), any::<u64>()).prop_map(
            |((kind, thread, tx, number), addr, undo, redo)| Record {
                kind,
                thread: thread.into(),
                tx: tx.into(),
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
        fn the_newest_record_is_the_one_that_would_be_found_one_by_one(
            records in prop::collection::vec((0u64..8, any_record(), 1u8..16, any::<bool>()), 0..8),
            numbers in prop::collection::vec(0u64..6, 8),
        ) {
            let mut config = crate::testing::defaults();
            config.set("base.log_bytes_per_thread", "256").expect("a valid size");
            let context = DesignContext::new(config, 1, Addr(1 << 20), Addr((1 << 20) + 4096));
            let area = Area::of(&context, 0);
            prop_assert_eq!(area.slots, 8);
            let mut image = SurvivingImage::new(Image::of_bytes(2 << 20));
            for ((slot, record, written, torn), number) in records.into_iter().zip(numbers) {
                // Numbers that several have, and words that are not those of a record.
                let words = Record { number, ..record }.words(torn);
                for word in (0..RECORD_WORDS).filter(|word| written >> word & 1 != 0) {
                    image.store(area.slot(slot).plus(word as u64 * WORD_BYTES), words[word]);
                }
            }
            let before = image.words_read();
            let found = area.newest(&mut image);
            let read = image.words_read() - before;
            image.keep_steps();
            prop_assert_eq!(found, area.newest(&mut image), "loads are watched");
            prop_assert_eq!(read, image.words_read() - before - read);
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
        let area = Area { start: Addr(4096), slots: 3, rules: Rules::default() };
        let places: Vec<(u64, bool)> = (0..7).map(|n| (area.slot(n).0, area.torn(n))).collect();
        let [a, b, c] = [4096, 4096 + 32, 4096 + 64];
        let expected =
            [(a, true), (b, true), (c, true), (a, false), (b, false), (c, false), (a, true)];
        assert_eq!(places, expected);
    }
}
