//! The log in slots: where they lie, and which records take how many. What is in a record is [`super::record`]'s and
//! [`super::line_record`]'s business.
//!
//! Slots are numbered from 0, over all passes. Slot `n` lies at `n mod slots`; its torn bit is 1 in even passes and 0 in
//! odd ones, so that neither zeroes (a log that was just created) nor what the pass before left can be taken for
//! its content. A record begins with a slot and takes as many as it needs: one, or, with a record for each line, up to
//! what the old and the new content of a line need. Each of its slots has the torn bit of its own pass.

use super::line_record::{self, HEADER_WORDS, LINE_RECORD_WORDS_MAX};
use super::record::{LogValues, RECORD_WORDS_MAX, RecordFormat};
use super::{FwbConfig, Rules};
use crate::mechanisms::torn;
use crate::mechanisms::torn::TORN;
use crate::packed_log::{Kind, Record};
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::DesignContext;
use graven_machine::request::{Write, WriteClass};

/// Records of a log for which memory is allocated at once.
const RECORDS_EXPECTED: usize = 512;

/// Format of records, and the room that they take.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Bytes from one slot to the next.
    pub bytes: u64,
    /// Values that records hold of a word.
    values: LogValues,
    /// True if the words of a line share a record.
    by_line: bool,
}

impl Layout {
    /// That of a configuration whose log is in slots.
    pub fn of(fwb: &FwbConfig) -> Layout {
        let by_line = fwb.record_format == RecordFormat::Line && fwb.log_values == LogValues::Both;
        Layout { bytes: fwb.slot_bytes.into(), values: fwb.log_values, by_line }
    }

    /// Fewest bytes of a slot.
    pub fn slot_bytes_min(&self) -> u64 {
        if self.by_line { 2 * WORD_BYTES } else { self.values.record_bytes() }
    }

    /// True if the words of a line share a record.
    #[inline]
    pub fn is_by_line(&self) -> bool {
        self.by_line
    }

    /// Slots of a record of `words` words of a line; of a commit record, of none.
    #[inline]
    pub fn slots_of(&self, words: usize) -> u64 {
        if !self.by_line {
            return 1;
        }
        (line_record::record_words(words) as u64 * WORD_BYTES).div_ceil(self.bytes)
    }

    /// Slots of a log line.
    #[inline]
    pub fn slots_per_line(&self) -> u64 {
        LINE_BYTES / self.bytes
    }

    /// Returns true if an entry goes into the same record as the one before it in the log.
    fn together(&self, before: &Record, record: &Record) -> bool {
        self.by_line
            && (before.kind, record.kind) == (Kind::UndoRedo, Kind::UndoRedo)
            && (before.thread, before.tx) == (record.thread, record.tx)
            && before.addr.line() == record.addr.line()
    }

    /// The words of a record, without torn bits if it is one of a line, and how many there are.
    fn words_of(&self, records: &[Record], torn: bool) -> ([u64; LINE_RECORD_WORDS_MAX], usize) {
        if self.by_line {
            return line_record::words_of(records);
        }
        let mut words = [0; LINE_RECORD_WORDS_MAX];
        words[..RECORD_WORDS_MAX].copy_from_slice(&self.values.words_of(&records[0], torn));
        (words, self.values.record_words())
    }
}

/// The slots of a log.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    start: Addr,
    pub count: u64,
    pub layout: Layout,
    rules: Rules,
}

impl Slots {
    /// Places a header line at the start of the log region, then the slots: `lines` lines in all.
    pub fn of(context: &DesignContext, lines: u64) -> Slots {
        let layout = Layout::of(context.config.get::<FwbConfig>());
        let count = lines.saturating_sub(1) * LINE_BYTES / layout.bytes;
        Slots { start: context.log_start, count, layout, rules: Rules::of(context) }
    }

    /// Address of the head pointer: the number of the oldest live slot.
    pub fn head(&self) -> Addr {
        self.start
    }

    /// Address of a slot.
    #[inline]
    pub fn slot(&self, number: u64) -> Addr {
        self.start.plus(LINE_BYTES + number % self.count * self.layout.bytes)
    }

    /// The torn bit of a slot.
    #[inline]
    fn torn(&self, number: u64) -> bool {
        torn::of_pass(number, self.count) || !self.rules.torn_bit_turns()
    }

    /// Number of slots from this one on that share its log line.
    #[inline]
    pub fn rest_of_line(&self, number: u64) -> u64 {
        (LINE_BYTES - self.slot(number).0 % LINE_BYTES) / self.layout.bytes
    }

    /// The writes of records, the first of which begins with this slot: one for each log line. Returns the slot behind
    /// them.
    pub fn write(&self, first: u64, records: &[Record], mut send: impl FnMut(Write)) -> u64 {
        let slot_words = self.slot_words();
        let (mut line, mut at) = ([0; WORDS_PER_LINE], self.slot(first));
        let (mut used, mut only_commits, mut number) = (0, true, first);
        for record in records.chunk_by(|before, record| self.layout.together(before, record)) {
            let (words, length) = self.layout.words_of(record, self.torn(number));
            for slot in 0..length.div_ceil(slot_words) {
                let from = slot * slot_words;
                self.fill(number, &words[from..length.min(from + slot_words)], &mut line[used..]);
                used += slot_words;
                only_commits &= record[0].kind == Kind::Commit;
                if at.word_in_line() + used == WORDS_PER_LINE {
                    send(Write::words(class(only_commits), at, &line[..used]));
                    (line, at) = ([0; WORDS_PER_LINE], self.slot(number + 1));
                    (used, only_commits) = (0, true);
                }
                number += 1;
            }
        }
        if used > 0 {
            send(Write::words(class(only_commits), at, &line[..used]));
        }
        number
    }

    fn slot_words(&self) -> usize {
        (self.layout.bytes / WORD_BYTES) as usize
    }

    /// Puts a slot's words into it. All words of a slot of a line's record have its torn bit, used or not: what is a
    /// word of a record in one pass is none in another, and must not be taken for one then.
    fn fill(&self, number: u64, words: &[u64], slot: &mut [u64]) {
        slot[..words.len()].copy_from_slice(words);
        if self.layout.by_line {
            let bit = if self.torn(number) { TORN } else { 0 };
            slot[..self.slot_words()].iter_mut().for_each(|word| *word |= bit);
        }
    }

    /// Reads the record that begins with a slot; returns the slot behind it, `None` if it is not there, or not whole.
    fn read(
        &self,
        image: &mut SurvivingImage,
        number: u64,
        into: &mut Vec<(u64, Record)>,
    ) -> Option<u64> {
        if self.layout.by_line {
            return self.read_line_record(image, number, into);
        }
        let mut words = [0; RECORD_WORDS_MAX];
        let length = self.layout.values.record_words();
        image.load_while(self.slot(number), length, |at, word| {
            words[at] = word;
            true
        });
        if !self.rules.every_word_has_torn_bit() {
            words = torn::as_the_first(words);
        }
        into.push((number, self.layout.values.parse(words, self.torn(number))?));
        Some(number + 1)
    }

    fn read_line_record(
        &self,
        image: &mut SurvivingImage,
        number: u64,
        into: &mut Vec<(u64, Record)>,
    ) -> Option<u64> {
        let only_first = !self.rules.every_word_has_torn_bit();
        if !only_first && let Some(next) = self.read_whole_line_record(image, number, into) {
            return Some(next);
        }
        let slot_words = self.slot_words();
        // Words of slots of one log line, which are of the same pass; whether they are there.
        let mut read = |words: &mut [u64], at: usize, addr: Addr, torn: u64| {
            let length = words.len();
            let is_there = |i: usize, word| {
                words[i] = word & !TORN;
                word & TORN == torn || only_first && at + i > 0
            };
            image.load_while(addr, length, is_there) == length
        };
        let mut words = [0; LINE_RECORD_WORDS_MAX];
        let torn = |slot| if self.torn(slot) { TORN } else { 0 };
        let (mut addr, mut bit) = (self.slot(number), torn(number));
        // The first slot has room for the words that tell how many there are.
        if !read(&mut words[..HEADER_WORDS], 0, addr, bit) {
            return None;
        }
        let length = line_record::length([words[0], words[1]])?;
        let mut at = HEADER_WORDS;
        addr = addr.plus(HEADER_WORDS as u64 * WORD_BYTES);
        while at < length {
            if addr.word_in_line() == 0 && at.is_multiple_of(slot_words) {
                let slot = number + (at / slot_words) as u64;
                (addr, bit) = (self.slot(slot), torn(slot));
            }
            let end = length.min(at + WORDS_PER_LINE - addr.word_in_line());
            if !read(&mut words[at..end], at, addr, bit) {
                return None;
            }
            addr = addr.plus((end - at) as u64 * WORD_BYTES);
            at = end;
        }
        line_record::parse(&words[..length], |record| into.push((number, record)));
        Some(number + length.div_ceil(slot_words) as u64)
    }

    /// Reads a record that is there and whole, without a watcher; `None` otherwise, and nothing is
    /// read.
    #[inline]
    fn read_whole_line_record(
        &self,
        image: &mut SurvivingImage,
        number: u64,
        into: &mut Vec<(u64, Record)>,
    ) -> Option<u64> {
        let addr = self.slot(number);
        let header = image.unwatched::<HEADER_WORDS>(addr)?;
        let length = line_record::length(header.map(|word| word & !TORN))?;
        let next = number + length.div_ceil(self.slot_words()) as u64;
        let words = image.unwatched_words(addr, length)?;
        let torn = if self.torn(number) { TORN } else { 0 };
        let differ = words.iter().fold(0, |differ, word| differ | (word ^ torn));
        // Slots behind the log's end are its first ones, and of another pass.
        if differ & TORN != 0 || number / self.count != (next - 1) / self.count {
            return None;
        }
        line_record::parse(words, |record| into.push((number, record)));
        image.count_loads(length as u64);
        Some(next)
    }

    /// Reads from a slot on, until a record is not there that should be.
    pub fn scan(&self, image: &mut SurvivingImage, head: u64) -> Scan {
        let records = Vec::with_capacity(RECORDS_EXPECTED);
        let mut scan = Scan { records, end: head, examined: 0 };
        let mut number = head;
        while number < head + self.count {
            scan.examined += 1;
            image.work(Work::Record, 1);
            let before = scan.records.len();
            let next = self.read(image, number, &mut scan.records);
            if let Some(next) = next.filter(|&next| next <= head + self.count) {
                (number, scan.end) = (next, next);
                continue;
            }
            scan.records.truncate(before);
            if self.rules.holes_end_the_log() {
                break;
            }
            number += 1;
        }
        scan
    }

    /// Makes an empty log of whatever the region holds (`log_create`, §IV-A): the head is 0, and no slot
    /// has a word that could belong to the first pass, so that nothing there completes a torn record.
    pub fn create(&self, image: &mut SurvivingImage) {
        image.store(self.head(), 0);
        if !self.rules.log_is_cleared() {
            return;
        }
        let by_line = self.layout.by_line;
        let words = if by_line { self.slot_words() } else { self.layout.values.record_words() };
        let shape = (self.slot_words(), words);
        if let Some(marked) = image.find_marked(self.slot(0), self.count, shape, TORN) {
            image.store_all(marked.into_iter().map(|addr| (addr, 0)));
            return;
        }
        for slot in (0..self.count).map(|number| self.slot(number)) {
            let (mut addr, end) = (slot, slot.plus(words as u64 * WORD_BYTES));
            while addr < end {
                let left = ((end.0 - addr.0) / WORD_BYTES) as usize;
                let clear = image.load_while(addr, left, |_, word| word & TORN == 0);
                addr = addr.plus(clear as u64 * WORD_BYTES);
                if addr < end {
                    image.store(addr, 0);
                    addr = addr.plus(WORD_BYTES);
                }
            }
        }
    }
}

/// Content of a log.
#[derive(Debug)]
pub struct Scan {
    /// Records from the head to the first hole, each with its first slot.
    pub records: Vec<(u64, Record)>,
    /// The first slot behind them.
    pub end: u64,
    /// Records and holes that were looked at.
    pub examined: u64,
}

fn class(only_commits: bool) -> WriteClass {
    if only_commits { WriteClass::Metadata } else { WriteClass::Log }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::memory::words_in;
    use proptest::prelude::*;

    /// A log of `count` slots of a word's record.
    fn slots(count: u64, bytes: u64, values: LogValues) -> Slots {
        let layout = Layout { bytes, values, by_line: false };
        Slots { start: Addr(4096), count, layout, rules: Rules::default() }
    }

    /// A log of `count` slots of 32 B for records of lines.
    fn by_line(count: u64) -> Slots {
        let slots = slots(count, 32, LogValues::Both);
        Slots { layout: Layout { by_line: true, ..slots.layout }, ..slots }
    }

    fn writes(slots: &Slots, first: u64, records: &[Record]) -> Vec<Write> {
        let mut writes = Vec::new();
        slots.write(first, records, |write| writes.push(write));
        writes
    }

    fn entry(addr: u64, undo: u64) -> Record {
        Record {
            kind: Kind::UndoRedo,
            addr: Addr(addr),
            undo,
            redo: undo.wrapping_add(1),
            ..Record::BLANK
        }
    }

    fn store(image: &mut SurvivingImage, writes: &[Write]) {
        for write in writes {
            for word in words_in(write.mask) {
                image.store(write.line.word(word), write.data[word]);
            }
        }
    }

    #[test]
    fn a_new_log_holds_no_word_of_the_first_pass() {
        let slots = slots(3, 64, LogValues::Both);
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
        let slots = slots(3, 32, LogValues::Both);
        assert_eq!(slots.head(), Addr(4096));
        let places: Vec<(u64, bool)> = (0..7).map(|n| (slots.slot(n).0, slots.torn(n))).collect();
        let [a, b, c] = [4096 + 64, 4096 + 96, 4096 + 128];
        let expected =
            [(a, true), (b, true), (c, true), (a, false), (b, false), (c, false), (a, true)];
        assert_eq!(places, expected);
    }

    #[test]
    fn neighbours_in_a_log_line_are_one_write() {
        let values = LogValues::Both;
        let (wide, narrow) = (slots(4, 64, values), slots(4, 32, values));
        assert_eq!([0, 1, 2, 3].map(|n| narrow.rest_of_line(n)), [2, 1, 2, 1]);
        assert_eq!([0, 1, 2, 3].map(|n| wide.rest_of_line(n)), [1; 4]);
        let [write] = writes(&narrow, 2, &[entry(8, 2), entry(8, 3)])[..] else { panic!("one") };
        assert_eq!((write.line, write.mask), (narrow.slot(2).line(), 0xff));
        assert_eq!(write.data[..4], values.words_of(&entry(8, 2), true));
        assert_eq!(write.data[4..], values.words_of(&entry(8, 3), true));
        let mask = |slots: &Slots, first| writes(slots, first, &[entry(8, 3)])[0].mask;
        assert_eq!(mask(&narrow, 3), 0xf0, "the second half of a line");
        assert_eq!(mask(&wide, 1), 0xff, "a record of 64 B is a line");
    }

    #[test]
    fn four_records_of_one_value_share_a_line() {
        for values in [LogValues::Redo, LogValues::Undo] {
            let slots = slots(8, 16, values);
            assert_eq!([0, 1, 2, 3].map(|n| slots.rest_of_line(n)), [4, 3, 2, 1]);
            let [write] = writes(&slots, 5, &[entry(8, 5), entry(8, 5)])[..] else { panic!("one") };
            assert_eq!((write.line, write.mask), (slots.slot(5).line(), 0b0011_1100));
            assert_eq!(write.data[2..4], values.words_of(&entry(8, 5), true)[..2]);
        }
    }

    /// The words of a line have one header; what no word of theirs fills has the torn bit, too.
    #[test]
    fn a_line_has_one_record() {
        let slots = by_line(8);
        let words = [entry(64, 1), entry(72, 2), entry(80, 3)];
        let others = [entry(128, 4), Record { kind: Kind::Commit, ..entry(0, 0) }];
        assert_eq!([1, 2, 3, 8].map(|words| slots.layout.slots_of(words)), [1, 2, 2, 5]);
        let all = [&words[..], &others].concat();
        let writes = writes(&slots, 1, &all);
        // Slot 1; slots 2 and 3; slot 4: a line each from slot 0, 2, 4 on.
        let places: Vec<_> = writes.iter().map(|w| (w.line, w.mask)).collect();
        let line = |slot| slots.slot(slot).line();
        assert_eq!(places, [(line(1), 0xf0), (line(2), 0xff), (line(4), 0x0f)]);
        let classes = writes.iter().map(|w| w.class);
        assert!(classes.eq([WriteClass::Log, WriteClass::Log, WriteClass::Metadata]));
        assert!(writes[2].data[..4].iter().all(|word| word & TORN != 0), "of an even pass");
        let mut image = SurvivingImage::default();
        store(&mut image, &writes);
        let Scan { records, end, examined } = slots.scan(&mut image, 1);
        assert_eq!(records.iter().map(|(_, r)| *r).collect::<Vec<_>>(), {
            let commit = Record { kind: Kind::Commit, undo: 0, redo: 0, ..Record::BLANK };
            [&words[..], &[others[0], commit]].concat()
        });
        let numbers: Vec<u64> = records.iter().map(|(number, _)| *number).collect();
        assert_eq!((numbers, end, examined), (vec![1, 1, 1, 3, 4], 5, 4));
    }

    /// Class of bug: a torn bit that is not that of each slot's own pass.
    #[test]
    fn a_record_that_goes_round_the_end_of_the_log_comes_back() {
        let slots = by_line(6);
        let line: Vec<Record> = (0..8).map(|i| entry(64 + 8 * i, 10 * i)).collect();
        for first in 0..24 {
            let mut image = SurvivingImage::default();
            store(&mut image, &writes(&slots, first, &line));
            let scan = slots.scan(&mut image, first);
            let read: Vec<Record> = scan.records.iter().map(|(_, record)| *record).collect();
            assert_eq!((read, scan.end), (line.clone(), first + 5), "from slot {first}");
        }
    }

    proptest! {
        /// Class of bug: words of the passes before that complete a record of which only some words were written.
        #[test]
        fn a_record_that_is_partly_written_is_none(
            before in proptest::collection::vec((0u64..8, 1usize..=8), 0..12),
            words in 1usize..=8,
            written: [u8; 4],
        ) {
            let slots = by_line(6);
            let line = |at: u64, words: usize| -> Vec<Record> {
                (0..words as u64).map(|i| entry(64 * at + 8 * i, u64::MAX - i)).collect()
            };
            let (mut image, mut next) = (SurvivingImage::default(), 0);
            for (at, words) in before {
                let writes = writes(&slots, next, &line(at, words));
                store(&mut image, &writes);
                next += slots.layout.slots_of(words);
            }
            let mut torn = writes(&slots, next, &line(1, words));
            let whole = torn.clone();
            torn.iter_mut().zip(written).for_each(|(write, mask)| write.mask &= mask);
            store(&mut image, &torn);
            let length = line_record::record_words(words);
            let scan = slots.scan(&mut image, next);
            // What matters is that the words of the record are there, not what fills its last slot.
            let mut complete = SurvivingImage::default();
            store(&mut complete, &whole);
            let is_there = (0..length).all(|at| {
                let slot = slots.slot(next + at as u64 / 4).plus(at as u64 % 4 * WORD_BYTES);
                image.peek(slot) == complete.peek(slot)
            });
            prop_assert_eq!(scan.records.len(), if is_there { words } else { 0 });
        }
    }
}
