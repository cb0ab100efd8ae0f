//! The circular log: where its records lie, and their bits.
//!
//! Records are numbered from 0 in the order of the stores, over all passes. Record `n` lies in slot
//! `n mod slots`; its torn bit is 1 in even passes and 0 in odd ones, so that neither zeroes (a log that
//! was just created) nor what the pass before left can be taken for it.

use super::{FwbConfig, Sabotage};
use crate::config::{Config, PmConfig, Size};
use crate::crash::Medium;
use crate::designs::force_write_back::log_bytes_for;
use crate::designs::{Sabotages, Site};
use crate::memory::{Addr, LINE_BYTES, WORD_BYTES};

/// Bytes of a packed record.
pub const RECORD_BYTES: u64 = 32;
/// Words of a packed record.
pub const RECORD_WORDS: usize = (RECORD_BYTES / WORD_BYTES) as usize;

const TORN: u64 = 1 << 63;
const LOW_63: u64 = TORN - 1;
const ADDR_MASK: u64 = (1 << 48) - 1;
const UNDO_TOP: u32 = 26;
const REDO_TOP: u32 = 27;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word was stored.
    Entry = 1,
    /// The thread's transaction has ended.
    Commit = 2,
}

/// A log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Entry or commit.
    pub kind: Kind,
    /// Which thread.
    pub thread: u8,
    /// Id of its transaction.
    pub tx: u16,
    /// Home address of the word; 0 in a commit record.
    pub addr: Addr,
    /// The old word.
    pub undo: u64,
    /// The new word.
    pub redo: u64,
}

impl Record {
    /// Its bytes, with every word's torn bit as given.
    pub fn words(&self, torn: bool) -> [u64; RECORD_WORDS] {
        debug_assert!(self.addr.0 <= ADDR_MASK, "home addresses have 48 bits");
        let first = u64::from(self.tx)
            | u64::from(self.thread) << 16
            | (self.kind as u64) << 24
            | (self.undo >> 63) << UNDO_TOP
            | (self.redo >> 63) << REDO_TOP;
        let bit = if torn { TORN } else { 0 };
        [first, self.addr.0, self.undo & LOW_63, self.redo & LOW_63].map(|word| word | bit)
    }

    /// The record, if it is one and all its words carry this torn bit.
    pub fn parse(words: [u64; RECORD_WORDS], torn: bool) -> Option<Record> {
        if words.iter().any(|word| (word & TORN != 0) != torn) {
            return None;
        }
        let [first, addr, undo, redo] = words;
        let kind = match first >> 24 & 3 {
            1 => Kind::Entry,
            2 => Kind::Commit,
            _ => return None,
        };
        Some(Record {
            kind,
            thread: (first >> 16) as u8,
            tx: first as u16,
            addr: Addr(addr & ADDR_MASK),
            undo: undo & LOW_63 | (first >> UNDO_TOP & 1) << 63,
            redo: redo & LOW_63 | (first >> REDO_TOP & 1) << 63,
        })
    }
}

impl std::fmt::Display for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Record { kind, thread, tx, addr, undo, redo } = self;
        match kind {
            Kind::Entry => {
                write!(f, "transaction {tx} of thread {thread}, {addr}: {undo:#x} -> {redo:#x}")
            }
            Kind::Commit => write!(f, "commit of transaction {tx} of thread {thread}"),
        }
    }
}

/// Where the log lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    start: Addr,
    /// Records that it holds.
    pub slots: u64,
    /// Bytes from one record to the next.
    pub slot_bytes: u64,
    sabotages: Sabotages,
}

impl Log {
    /// The log of a site: a header line at the start of the log region, then the slots.
    pub fn of(site: &Site) -> Log {
        let slot_bytes = u64::from(site.config.get::<FwbConfig>().slot_bytes);
        let slots = lines(&site.config).saturating_sub(1) * LINE_BYTES / slot_bytes;
        Log { start: site.log_start, slots, slot_bytes, sabotages: site.sabotages }
    }

    /// Where the number of the oldest live record is kept (the head pointer).
    pub fn head(&self) -> Addr {
        self.start
    }

    /// Where a record lies.
    #[inline]
    pub fn slot(&self, number: u64) -> Addr {
        self.start.plus(LINE_BYTES + number % self.slots * self.slot_bytes)
    }

    /// The torn bit of a record.
    #[inline]
    pub fn torn(&self, number: u64) -> bool {
        (number / self.slots).is_multiple_of(2) || self.sabotages.has(Sabotage::TornBitStays)
    }

    /// Reads a record; `None` if the slot does not hold it (whole).
    pub fn read(&self, medium: &mut Medium, number: u64) -> Option<Record> {
        let slot = self.slot(number);
        let mut words: [u64; RECORD_WORDS] =
            std::array::from_fn(|i| medium.load(slot.plus(i as u64 * WORD_BYTES)));
        if self.sabotages.has(Sabotage::OneTornBit) {
            let bit = words[0] & TORN;
            words = words.map(|word| word & LOW_63 | bit);
        }
        Record::parse(words, self.torn(number))
    }

    /// Makes an empty log of whatever the region holds (`log_create`, §IV-A): the head is 0, and no slot
    /// has a word that could belong to the first pass, so that nothing there completes a torn record.
    pub fn create(&self, medium: &mut Medium) {
        medium.store(self.head(), 0);
        if self.sabotages.has(Sabotage::LogNotCleared) {
            return;
        }
        for slot in (0..self.slots).map(|number| self.slot(number)) {
            for addr in (0..RECORD_WORDS as u64).map(|i| slot.plus(i * WORD_BYTES)) {
                if medium.load(addr) & TORN != 0 {
                    medium.store(addr, 0);
                }
            }
        }
    }
}

/// Size of the log where neither it nor the scan interval is configured (§IV-C: 64 K entries, 4 MB).
const PAPERS_LOG: Size = Size::mb(4);

/// Bytes of the log, its header line included: as configured, or what the scan interval asks for.
pub fn bytes(config: &Config) -> u64 {
    let fwb = config.get::<FwbConfig>();
    let wanted = match (fwb.log_bytes.0, fwb.scan_interval_cycles) {
        (0, 0) => PAPERS_LOG.0,
        (0, interval) => log_bytes_for(interval, config),
        (given, _) => return given,
    };
    wanted.min(config.get::<PmConfig>().log_region_bytes.0)
}

/// Lines of the log, its header's included.
pub fn lines(config: &Config) -> u64 {
    bytes(config) / LINE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let kind = prop_oneof![Just(Kind::Entry), Just(Kind::Commit)];
        (kind, any::<u8>(), any::<u16>(), 0..=ADDR_MASK, any::<u64>(), any::<u64>()).prop_map(
            |(kind, thread, tx, addr, undo, redo)| Record {
                kind,
                thread,
                tx,
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
            addr: Addr(0x1234_5678_9abc),
            undo: 1 << 63 | 7,
            redo: 9,
        };
        assert_eq!(record.words(false), [0x6a5_beef, 0x1234_5678_9abc, 7, 9]);
        assert_eq!(Record { redo: 1 << 63, ..record }.words(true)[0], 1 << 63 | 0xea5_beef);
        assert_eq!(Record { redo: 1 << 63, ..record }.words(true)[3], 1 << 63);
    }

    proptest! {
        #[test]
        fn a_record_comes_back_from_its_bytes(record in any_record(), torn: bool) {
            prop_assert_eq!(Record::parse(record.words(torn), torn), Some(record));
            prop_assert_eq!(Record::parse(record.words(torn), !torn), None);
        }

        #[test]
        fn a_record_that_is_partly_written_is_none(
            new in any_record(), old in any_record(), written in 0u8..15, torn: bool,
        ) {
            let (new, old) = (new.words(torn), old.words(!torn));
            let words = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { old[i] });
            prop_assert_eq!(Record::parse(words, torn), None);
        }

        #[test]
        fn flipping_any_used_bit_changes_the_record(record in any_record(), bit in 0usize..256) {
            let mut words = record.words(true);
            words[bit / 64] ^= 1 << (bit % 64);
            let unused = matches!(bit, 28..63 | 112..127);
            prop_assert_eq!(Record::parse(words, true) == Some(record), unused);
        }
    }

    #[test]
    fn zeroes_are_no_record_in_any_pass() {
        assert_eq!(Record::parse([0; 4], false), None);
        assert_eq!(Record::parse([0; 4], true), None);
    }

    #[test]
    fn a_new_log_holds_no_word_of_the_first_pass() {
        let sabotages = Sabotages::NONE;
        let log = Log { start: Addr(4096), slots: 3, slot_bytes: 64, sabotages };
        let mut medium = Medium::default();
        (0..32).for_each(|word| medium.store(Addr(4096 + word * 8), !word));
        log.create(&mut medium);
        assert_eq!(medium.peek(log.head()), 0);
        for number in 0..3 {
            let words = (0..4).map(|word| medium.peek(log.slot(number).plus(word * 8)));
            assert!(words.fold(0, |any, word| any | word) & TORN == 0, "slot {number}");
        }
    }

    #[test]
    fn passes_alternate_and_slots_come_round() {
        let sabotages = Sabotages::NONE;
        let log = Log { start: Addr(4096), slots: 3, slot_bytes: 32, sabotages };
        assert_eq!(log.head(), Addr(4096));
        let places: Vec<(u64, bool)> = (0..7).map(|n| (log.slot(n).0, log.torn(n))).collect();
        let [a, b, c] = [4096 + 64, 4096 + 96, 4096 + 128];
        let expected =
            [(a, true), (b, true), (c, true), (a, false), (b, false), (c, false), (a, true)];
        assert_eq!(places, expected);
    }
}
