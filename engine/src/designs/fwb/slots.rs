//! The log in slots of a record each: where they lie, and their bits (the table in [`super`]).
//!
//! Records are numbered from 0 in the order of the stores, over all passes. Record `n` lies in slot
//! `n mod slots`; its torn bit is 1 in even passes and 0 in odd ones, so that neither zeroes (a log that
//! was just created) nor what the pass before left can be taken for it.

use super::{FwbConfig, Sabotage};
use crate::crash::Medium;
use crate::designs::packed_log::{Kind, Record};
use crate::designs::torn::{self, TORN};
use crate::designs::{Sabotages, Site};
use crate::machine::{Write, WriteClass};
use crate::memory::{Addr, LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

/// Bytes of a record.
pub const RECORD_BYTES: u64 = 32;
/// Words of a record.
const RECORD_WORDS: usize = (RECORD_BYTES / WORD_BYTES) as usize;

const ADDR_MASK: u64 = (1 << 48) - 1;
const UNDO_TOP: u32 = 26;
const REDO_TOP: u32 = 27;

const ENTRY: u64 = 1;
const COMMIT: u64 = 2;

/// A record's words, each with the torn bit as given.
fn words_of(record: &Record, torn: bool) -> [u64; RECORD_WORDS] {
    let Record { kind, thread, tx, addr, undo, redo, .. } = *record;
    debug_assert!(addr.0 <= ADDR_MASK, "home addresses have 48 bits");
    let kind = match kind {
        Kind::UndoRedo => ENTRY,
        Kind::Commit => COMMIT,
        Kind::Redo | Kind::InPlace => unreachable!("slots hold entries and commit records"),
    };
    let first = u64::from(tx)
        | u64::from(thread) << 16
        | kind << 24
        | (undo >> 63) << UNDO_TOP
        | (redo >> 63) << REDO_TOP;
    torn::mark([first, addr.0, undo, redo], torn)
}

/// The record of these words, if it is one and all of them carry this torn bit.
fn parse(words: [u64; RECORD_WORDS], torn: bool) -> Option<Record> {
    let is_torn_bit = |_: &_| (words[0] & TORN != 0) == torn;
    let [first, addr, undo, redo] = torn::whole(words).filter(is_torn_bit)?;
    let kind = match first >> 24 & 3 {
        ENTRY => Kind::UndoRedo,
        COMMIT => Kind::Commit,
        _ => return None,
    };
    Some(Record {
        kind,
        thread: (first >> 16) as u8,
        tx: first as u16,
        addr: Addr(addr & ADDR_MASK),
        undo: undo | (first >> UNDO_TOP & 1) << 63,
        redo: redo | (first >> REDO_TOP & 1) << 63,
        ..Record::BLANK
    })
}

/// Where the slots lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    start: Addr,
    /// How many there are.
    pub count: u64,
    /// Bytes from one to the next.
    bytes: u64,
    sabotages: Sabotages,
}

impl Slots {
    /// A header line at the start of the log region, then the slots: so many lines in all.
    pub fn of(site: &Site, lines: u64) -> Slots {
        let bytes = u64::from(site.config.get::<FwbConfig>().slot_bytes);
        let count = lines.saturating_sub(1) * LINE_BYTES / bytes;
        Slots { start: site.log_start, count, bytes, sabotages: site.sabotages }
    }

    /// Where the number of the oldest live record is kept (the head pointer).
    pub fn head(&self) -> Addr {
        self.start
    }

    /// Where a record lies.
    #[inline]
    pub fn slot(&self, number: u64) -> Addr {
        self.start.plus(LINE_BYTES + number % self.count * self.bytes)
    }

    /// The torn bit of a record.
    #[inline]
    fn torn(&self, number: u64) -> bool {
        torn::of_pass(number, self.count) || self.sabotages.has(Sabotage::TornBitStays)
    }

    /// How many records from this one on share its log line.
    #[inline]
    pub fn rest_of_line(&self, number: u64) -> usize {
        ((LINE_BYTES - self.slot(number).0 % LINE_BYTES) / self.bytes) as usize
    }

    /// The write of records that share a log line; the first has this number.
    pub fn write(&self, first: u64, records: &[Record]) -> Write {
        debug_assert!(records.len() <= self.rest_of_line(first), "they share a line");
        let slot_words = (self.bytes / WORD_BYTES) as usize;
        let mut words = [0; WORDS_PER_LINE];
        for ((record, slot), number) in
            records.iter().zip(words.chunks_mut(slot_words)).zip(first..)
        {
            slot[..RECORD_WORDS].copy_from_slice(&words_of(record, self.torn(number)));
        }
        let only_commits = records.iter().all(|record| record.kind == Kind::Commit);
        let class = if only_commits { WriteClass::Metadata } else { WriteClass::Log };
        Write::words(class, self.slot(first), &words[..records.len() * slot_words])
    }

    /// Reads a record; `None` if the slot does not hold it (whole).
    fn read(&self, medium: &mut Medium, number: u64) -> Option<Record> {
        let slot = self.slot(number);
        let mut words: [u64; RECORD_WORDS] =
            std::array::from_fn(|i| medium.load(slot.plus(i as u64 * WORD_BYTES)));
        if self.sabotages.has(Sabotage::OneTornBit) {
            words = torn::as_the_first(words);
        }
        parse(words, self.torn(number))
    }

    /// Reads from a record on, until a slot does not hold the one that it should. The records with their
    /// numbers, and how many slots were read.
    pub fn scan(&self, medium: &mut Medium, head: u64) -> (Vec<(u64, Record)>, u64) {
        let mut records = Vec::new();
        for number in head..head + self.count {
            match self.read(medium, number) {
                Some(record) => records.push((number, record)),
                None if self.sabotages.has(Sabotage::HolesAreSkipped) => {}
                None => return (records, number - head + 1),
            }
        }
        (records, self.count)
    }

    /// Makes an empty log of whatever the region holds (`log_create`, §IV-A): the head is 0, and no slot
    /// has a word that could belong to the first pass, so that nothing there completes a torn record.
    pub fn create(&self, medium: &mut Medium) {
        medium.store(self.head(), 0);
        if self.sabotages.has(Sabotage::LogNotCleared) {
            return;
        }
        for slot in (0..self.count).map(|number| self.slot(number)) {
            for addr in (0..RECORD_WORDS as u64).map(|i| slot.plus(i * WORD_BYTES)) {
                if medium.load(addr) & TORN != 0 {
                    medium.store(addr, 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let kind = prop_oneof![Just(Kind::UndoRedo), Just(Kind::Commit)];
        (kind, any::<u8>(), any::<u16>(), 0..=ADDR_MASK, any::<u64>(), any::<u64>()).prop_map(
            |(kind, thread, tx, addr, undo, redo)| Record {
                kind,
                thread,
                tx,
                addr: Addr(addr),
                undo,
                redo,
                ..Record::BLANK
            },
        )
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let record = Record {
            kind: Kind::Commit,
            thread: 0xa5,
            tx: 0xbeef,
            addr: Addr(0x1234_5678_9abc),
            undo: 1 << 63 | 7,
            redo: 9,
            ..Record::BLANK
        };
        assert_eq!(words_of(&record, false), [0x6a5_beef, 0x1234_5678_9abc, 7, 9]);
        assert_eq!(words_of(&Record { redo: 1 << 63, ..record }, true)[0], 1 << 63 | 0xea5_beef);
        assert_eq!(words_of(&Record { redo: 1 << 63, ..record }, true)[3], 1 << 63);
    }

    proptest! {
        #[test]
        fn a_record_comes_back_from_its_bytes(record in any_record(), torn: bool) {
            prop_assert_eq!(parse(words_of(&record, torn), torn), Some(record));
            prop_assert_eq!(parse(words_of(&record, torn), !torn), None);
        }

        #[test]
        fn a_record_that_is_partly_written_is_none(
            new in any_record(), old in any_record(), written in 0u8..15, torn: bool,
        ) {
            let (new, old) = (words_of(&new, torn), words_of(&old, !torn));
            let words = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { old[i] });
            prop_assert_eq!(parse(words, torn), None);
        }

        #[test]
        fn flipping_any_used_bit_changes_the_record(record in any_record(), bit in 0usize..256) {
            let mut words = words_of(&record, true);
            words[bit / 64] ^= 1 << (bit % 64);
            let unused = matches!(bit, 28..63 | 112..127);
            prop_assert_eq!(parse(words, true) == Some(record), unused);
        }
    }

    #[test]
    fn zeroes_are_no_record_in_any_pass() {
        assert_eq!(parse([0; 4], false), None);
        assert_eq!(parse([0; 4], true), None);
    }

    #[test]
    fn a_new_log_holds_no_word_of_the_first_pass() {
        let sabotages = Sabotages::NONE;
        let slots = Slots { start: Addr(4096), count: 3, bytes: 64, sabotages };
        let mut medium = Medium::default();
        (0..32).for_each(|word| medium.store(Addr(4096 + word * 8), !word));
        slots.create(&mut medium);
        assert_eq!(medium.peek(slots.head()), 0);
        for number in 0..3 {
            let words = (0..4).map(|word| medium.peek(slots.slot(number).plus(word * 8)));
            assert!(words.fold(0, |any, word| any | word) & TORN == 0, "slot {number}");
        }
    }

    #[test]
    fn passes_alternate_and_slots_come_round() {
        let sabotages = Sabotages::NONE;
        let slots = Slots { start: Addr(4096), count: 3, bytes: 32, sabotages };
        assert_eq!(slots.head(), Addr(4096));
        let places: Vec<(u64, bool)> = (0..7).map(|n| (slots.slot(n).0, slots.torn(n))).collect();
        let [a, b, c] = [4096 + 64, 4096 + 96, 4096 + 128];
        let expected =
            [(a, true), (b, true), (c, true), (a, false), (b, false), (c, false), (a, true)];
        assert_eq!(places, expected);
    }

    #[test]
    fn neighbours_in_a_log_line_are_one_write() {
        let slots =
            |bytes| Slots { start: Addr(4096), count: 4, bytes, sabotages: Sabotages::NONE };
        let entry = |undo| Record { kind: Kind::UndoRedo, undo, ..Record::BLANK };
        let (wide, narrow) = (slots(64), slots(32));
        assert_eq!([0, 1, 2, 3].map(|n| narrow.rest_of_line(n)), [2, 1, 2, 1]);
        assert_eq!([0, 1, 2, 3].map(|n| wide.rest_of_line(n)), [1; 4]);
        let write = narrow.write(2, &[entry(2), entry(3)]);
        assert_eq!((write.line, write.mask), (narrow.slot(2).line(), 0xff));
        assert_eq!(write.data[..4], words_of(&entry(2), true));
        assert_eq!(write.data[4..], words_of(&entry(3), true));
        assert_eq!(narrow.write(3, &[entry(3)]).mask, 0xf0, "the second half of a line");
        assert_eq!(wide.write(1, &[entry(1)]).mask, 0xff, "a record of 64 B is a line");
    }
}
