//! The log in slots of a record each: where they lie. What is in them is [`super::record`]'s business.
//!
//! Records are numbered from 0 in the order of the stores, over all passes. Record `n` lies in slot
//! `n mod slots`; its torn bit is 1 in even passes and 0 in odd ones, so that neither zeroes (a log that
//! was just created) nor what the pass before left can be taken for it.

use super::record::{LogValues, RECORD_WORDS_MAX};
use super::{FwbConfig, Mutant};
use crate::packed_log::{Kind, Record};
use crate::torn;
use crate::torn::TORN;
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};
use graven_base::surviving::SurvivingImage;
use graven_machine::design::{DesignContext, Mutants};
use graven_machine::request::{Write, WriteClass};

/// Where the slots lie.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    start: Addr,
    /// How many there are.
    pub count: u64,
    /// Bytes from one to the next.
    bytes: u64,
    /// What its records hold.
    values: LogValues,
    mutants: Mutants<Mutant>,
}

impl Slots {
    /// A header line at the start of the log region, then the slots: so many lines in all.
    pub fn of(context: &DesignContext, lines: u64) -> Slots {
        let fwb = context.config.get::<FwbConfig>();
        let bytes = u64::from(fwb.slot_bytes);
        let count = lines.saturating_sub(1) * LINE_BYTES / bytes;
        let (values, mutants) = (fwb.log_values, context.mutants());
        Slots { start: context.log_start, count, bytes, values, mutants }
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
        torn::of_pass(number, self.count) || self.mutants.has(Mutant::TornBitStays)
    }

    /// How many records from this one on share its log line.
    #[inline]
    pub fn rest_of_line(&self, number: u64) -> usize {
        ((LINE_BYTES - self.slot(number).0 % LINE_BYTES) / self.bytes) as usize
    }

    /// The write of records that share a log line; the first has this number.
    pub fn write(&self, first: u64, records: &[Record]) -> Write {
        assert!(records.len() <= self.rest_of_line(first), "they share a line");
        let slot_words = (self.bytes / WORD_BYTES) as usize;
        let mut words = [0; WORDS_PER_LINE];
        for ((record, slot), number) in
            records.iter().zip(words.chunks_mut(slot_words)).zip(first..)
        {
            let length = self.values.record_words();
            let record = self.values.words_of(record, self.torn(number));
            slot[..length].copy_from_slice(&record[..length]);
        }
        let only_commits = records.iter().all(|record| record.kind == Kind::Commit);
        let class = if only_commits { WriteClass::Metadata } else { WriteClass::Log };
        Write::words(class, self.slot(first), &words[..records.len() * slot_words])
    }

    /// Reads a record; `None` if the slot does not hold it (whole).
    fn read(&self, image: &mut SurvivingImage, number: u64) -> Option<Record> {
        let slot = self.slot(number);
        let mut words = [0; RECORD_WORDS_MAX];
        for (i, word) in words[..self.values.record_words()].iter_mut().enumerate() {
            *word = image.load(slot.plus(i as u64 * WORD_BYTES));
        }
        if self.mutants.has(Mutant::OneTornBit) {
            words = torn::as_the_first(words);
        }
        self.values.parse(words, self.torn(number))
    }

    /// Reads from a record on, until a slot does not hold the one that it should. The records with their
    /// numbers, and how many slots were read.
    pub fn scan(&self, image: &mut SurvivingImage, head: u64) -> (Vec<(u64, Record)>, u64) {
        let mut records = Vec::new();
        for number in head..head + self.count {
            match self.read(image, number) {
                Some(record) => records.push((number, record)),
                None if self.mutants.has(Mutant::HolesAreSkipped) => {}
                None => return (records, number - head + 1),
            }
        }
        (records, self.count)
    }

    /// Makes an empty log of whatever the region holds (`log_create`, §IV-A): the head is 0, and no slot
    /// has a word that could belong to the first pass, so that nothing there completes a torn record.
    pub fn create(&self, image: &mut SurvivingImage) {
        image.store(self.head(), 0);
        if self.mutants.has(Mutant::LogNotCleared) {
            return;
        }
        for slot in (0..self.count).map(|number| self.slot(number)) {
            for addr in (0..self.values.record_words() as u64).map(|i| slot.plus(i * WORD_BYTES)) {
                if image.load(addr) & TORN != 0 {
                    image.store(addr, 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_machine::design::MutantSet;

    /// No mutant.
    fn none() -> Mutants<Mutant> {
        Mutants::of(MutantSet::NONE)
    }

    #[test]
    fn a_new_log_holds_no_word_of_the_first_pass() {
        let mutants = none();
        let slots =
            Slots { start: Addr(4096), count: 3, bytes: 64, values: LogValues::Both, mutants };
        let mut image = SurvivingImage::default();
        (0..32).for_each(|word| image.store(Addr(4096 + word * 8), !word));
        slots.create(&mut image);
        assert_eq!(image.peek(slots.head()), 0);
        for number in 0..3 {
            let words = (0..4).map(|word| image.peek(slots.slot(number).plus(word * 8)));
            assert!(words.fold(0, |any, word| any | word) & TORN == 0, "slot {number}");
        }
    }

    #[test]
    fn passes_alternate_and_slots_come_round() {
        let mutants = none();
        let slots =
            Slots { start: Addr(4096), count: 3, bytes: 32, values: LogValues::Both, mutants };
        assert_eq!(slots.head(), Addr(4096));
        let places: Vec<(u64, bool)> = (0..7).map(|n| (slots.slot(n).0, slots.torn(n))).collect();
        let [a, b, c] = [4096 + 64, 4096 + 96, 4096 + 128];
        let expected =
            [(a, true), (b, true), (c, true), (a, false), (b, false), (c, false), (a, true)];
        assert_eq!(places, expected);
    }

    #[test]
    fn neighbours_in_a_log_line_are_one_write() {
        let (values, mutants) = (LogValues::Both, none());
        let slots = |bytes| Slots { start: Addr(4096), count: 4, bytes, values, mutants };
        let entry = |undo| Record { kind: Kind::UndoRedo, undo, ..Record::BLANK };
        let (wide, narrow) = (slots(64), slots(32));
        assert_eq!([0, 1, 2, 3].map(|n| narrow.rest_of_line(n)), [2, 1, 2, 1]);
        assert_eq!([0, 1, 2, 3].map(|n| wide.rest_of_line(n)), [1; 4]);
        let write = narrow.write(2, &[entry(2), entry(3)]);
        assert_eq!((write.line, write.mask), (narrow.slot(2).line(), 0xff));
        assert_eq!(write.data[..4], values.words_of(&entry(2), true));
        assert_eq!(write.data[4..], values.words_of(&entry(3), true));
        assert_eq!(narrow.write(3, &[entry(3)]).mask, 0xf0, "the second half of a line");
        assert_eq!(wide.write(1, &[entry(1)]).mask, 0xff, "a record of 64 B is a line");
    }

    #[test]
    fn four_records_of_one_value_share_a_line() {
        for values in [LogValues::Redo, LogValues::Undo] {
            let (start, mutants) = (Addr(4096), none());
            let slots = Slots { start, count: 8, bytes: 16, values, mutants };
            assert_eq!([0, 1, 2, 3].map(|n| slots.rest_of_line(n)), [4, 3, 2, 1]);
            let entry = Record { kind: Kind::UndoRedo, undo: 5, redo: 6, ..Record::BLANK };
            let write = slots.write(5, &[entry, entry]);
            assert_eq!((write.line, write.mask), (slots.slot(5).line(), 0b0011_1100));
            assert_eq!(write.data[2..4], values.words_of(&entry, true)[..2]);
        }
    }
}
