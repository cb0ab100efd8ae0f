//! A thread's log: its bytes, and the code that writes it.

use super::SoftwareLogConfig;
use crate::mechanisms::torn;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Field, LINE_BYTES, WORD_BYTES};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{Code, DesignContext};
use graven_machine::request::WriteClass;

const RECORD_BYTES: u64 = 16;
const RECORDS_PER_LINE: u64 = LINE_BYTES / RECORD_BYTES;

const VALUE_TOP: Field = Field::new("bit 63 of the value", 1, 0);
const COMMIT: Field = VALUE_TOP.then("commit", 1);
const UNUSED: Field = COMMIT.then("unused", 1);
const HOME: Field = UNUSED.then("home address in words", 45);
const BEHIND: Field = HOME.then("unused", 15);

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A word's home address, and its old or new content.
    Word(Addr, u64),
    /// The log of the transaction of this number is complete.
    Commit(u64),
}

impl Record {
    fn words(self, torn: bool) -> [u64; 2] {
        let (head, value) = match self {
            Record::Word(home, value) => {
                assert!(home.0.is_multiple_of(WORD_BYTES), "words have aligned addresses");
                (HOME.put(home.0 / WORD_BYTES), value)
            }
            Record::Commit(number) => (COMMIT.put(1), number),
        };
        torn::mark([head | VALUE_TOP.put(torn::top(value)), value], torn)
    }

    /// The record of a pass with this torn bit, if it is one and was written whole.
    fn parse(words: [u64; 2], torn: bool) -> Option<Record> {
        let [head, value] = torn::whole(words)?;
        let has_torn_bit = (words[0] & torn::TORN != 0) == torn;
        if !has_torn_bit || UNUSED.get(head) != 0 || BEHIND.get(head) != 0 {
            return None;
        }
        let value = torn::with_top(value, VALUE_TOP.get(head));
        Some(match COMMIT.is_set(head) {
            false => Record::Word(Addr(HOME.get(head) * WORD_BYTES), value),
            true => Record::Commit(value),
        })
    }
}

/// The rules of both designs that are about the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogRules {
    pub every_word_has_torn_bit: bool,
    pub torn_bit_turns: bool,
    /// A log is cleared before it is put to use.
    pub is_cleared: bool,
    /// Recovery begins at the head.
    pub head_is_respected: bool,
}

/// The log area of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    head: Addr,
    start: Addr,
    pub slots: u64,
    rules: LogRules,
}

impl Area {
    /// That of a thread.
    pub fn of(context: &DesignContext, thread: ThreadId, rules: LogRules) -> Area {
        let slots = Area::slots_of(context);
        let head = context.thread_area(thread, LINE_BYTES + slots * RECORD_BYTES);
        Area { head, start: head.plus(LINE_BYTES), slots, rules }
    }

    /// Slots of each: what whole lines behind the head hold.
    pub fn slots_of(context: &DesignContext) -> u64 {
        let bytes = context.config.get::<SoftwareLogConfig>().log_bytes_per_thread.0;
        (bytes / LINE_BYTES - 1) * RECORDS_PER_LINE
    }

    /// Those of all threads.
    pub fn all(context: &DesignContext, rules: LogRules) -> impl Iterator<Item = Area> {
        (0..context.threads).map(move |thread| Area::of(context, thread, rules))
    }

    fn slot(&self, number: u64) -> Addr {
        self.start.plus(number % self.slots * RECORD_BYTES)
    }

    fn torn(&self, number: u64) -> bool {
        torn::of_pass(number, self.slots) || !self.rules.torn_bit_turns
    }

    /// Clears it, so that the first records written there are distinguishable from earlier content.
    pub fn format(&self, image: &mut SurvivingImage) {
        if self.rules.is_cleared {
            image.clear(self.head, self.slot(self.slots - 1).plus(RECORD_BYTES));
        }
    }

    /// The records from the head on until the first that is not there, oldest first.
    pub fn read(&self, image: &mut SurvivingImage) -> Vec<Record> {
        let head = if self.rules.head_is_respected { image.load(self.head) } else { 0 };
        let mut records = Vec::new();
        for number in head..head.saturating_add(self.slots) {
            let slot = self.slot(number);
            let mut words = image.load_words(slot);
            image.work(Work::Record, 1);
            if !self.rules.every_word_has_torn_bit {
                words = torn::as_the_first(words);
            }
            let Some(record) = Record::parse(words, self.torn(number)) else { break };
            records.push(record);
        }
        records
    }
}

/// Place of a record that was appended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Appended {
    /// Number of the record, over all passes.
    pub number: u64,
    /// True if it takes the slot of an older one.
    pub over_older: bool,
}

/// The way of records to PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    /// The write-combining buffer of the core: the log is uncacheable.
    WriteCombining,
    /// The caches.
    Caches,
}

impl Medium {
    fn store(self, addr: Addr, value: u64, class: WriteClass, code: &mut Code) {
        match self {
            Medium::WriteCombining => code.store_uncached(addr, value, class),
            Medium::Caches => code.store_own(addr, value),
        }
    }
}

/// A thread's log, as its software knows it.
#[derive(Clone, Debug)]
pub(super) struct Log {
    area: Area,
    medium: Medium,
    /// Number of the next record.
    pub next: u64,
    /// Records before this may be written over: the head is past them, and that is durable.
    truncated: u64,
}

impl Log {
    pub fn new(area: Area, medium: Medium) -> Log {
        Log { area, medium, next: 0, truncated: 0 }
    }

    /// Slots of records that may not be written over.
    pub fn taken(&self) -> u64 {
        self.next - self.truncated
    }

    /// Returns true if there is a slot for another record.
    pub fn has_room(&self) -> bool {
        self.taken() < self.area.slots
    }

    /// Records before this may be written over from now on.
    pub fn truncate(&mut self, before: u64) {
        self.truncated = before;
    }

    /// Appends a record.
    pub fn append(
        &mut self,
        config: &SoftwareLogConfig,
        record: Record,
        code: &mut Code,
    ) -> Appended {
        let class = match record {
            Record::Word(..) => WriteClass::Log,
            Record::Commit(_) => WriteClass::Metadata,
        };
        let number = self.next;
        self.next += 1;
        let slot = self.area.slot(number);
        let [head, value] = record.words(self.area.torn(number));
        code.compute(config.record_instructions);
        self.medium.store(slot, head, class, code);
        self.medium.store(slot.plus(WORD_BYTES), value, class, code);
        Appended { number, over_older: number >= self.area.slots }
    }

    /// Moves the head to a record.
    pub fn move_head(&self, config: &SoftwareLogConfig, to: u64, code: &mut Code) {
        code.compute(config.head_instructions);
        self.medium.store(self.area.head, to, WriteClass::Metadata, code);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let word = (0..=HOME.max(), any::<u64>());
        prop_oneof![
            word.prop_map(|(home, value)| Record::Word(Addr(home * WORD_BYTES), value)),
            any::<u64>().prop_map(Record::Commit),
        ]
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let word = Record::Word(Addr(0x1234_5678_9ab8), 1 << 63 | 5);
        assert_eq!(word.words(false), [0x1234_5678_9ab9, 5]);
        assert_eq!(word.words(true), [1 << 63 | 0x1234_5678_9ab9, 1 << 63 | 5]);
        assert_eq!(Record::Commit(7).words(false), [2, 7]);
        assert_eq!(Record::parse([1 << 50, 0], false), None);
        assert_eq!(Record::parse([4, 0], false), None);
    }

    proptest! {
        #[test]
        fn a_record_comes_back_from_its_bytes(record in any_record(), torn: bool) {
            prop_assert_eq!(Record::parse(record.words(torn), torn), Some(record));
            prop_assert_eq!(Record::parse(record.words(torn), !torn), None, "of another pass");
        }

        #[test]
        fn a_record_that_is_partly_written_is_none(
            new in any_record(), old in any_record(), first: bool, torn: bool,
        ) {
            let (new, old) = (new.words(torn), old.words(!torn));
            let words = if first { [new[0], old[1]] } else { [old[0], new[1]] };
            prop_assert_eq!(Record::parse(words, torn), None);
        }
    }

    #[test]
    fn a_cleared_log_has_no_records() {
        assert_eq!(Record::parse([0, 0], torn::of_pass(0, 10)), None);
    }
}
