//! Headers of log records: ATOM's of one line, LALEA's of two, and where they and their entries lie.

use super::{ReduConfig, Rules};
use crate::fields::{HOME, WORDS};
use crate::lalea::{ENTRIES, line_at};
use crate::mechanisms::torn;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Field, LINE_BYTES, LineAddr, LineData, WordMask};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::DesignContext;

/// Bytes of a record in the log area of a thread: a header, and its entries after it.
pub(super) const RECORD_BYTES: u64 = (1 + ENTRIES as u64) * LINE_BYTES;
/// Most records of a transaction.
pub(super) const RECORDS_MAX: usize = 1 << INDEX.bits();
/// No commit has this number.
pub(super) const SEQUENCE_MAX: u64 = SEQUENCE.max();

/// Bits of the mask that says which words of a line are a transaction's.
pub(super) const WORDS_MASK_BITS: u32 = WORDS.bits();
/// A record's number, and the part of it that each of the seven words has.
const NUMBER: Field = Field::new("number of the record", ENTRIES as u32 * NUMBER_PART.bits(), 0);
const NUMBER_PART: Field = WORDS.then("part of the number", 7);
/// Fields of the last word.
const VALID: Field = Field::new("valid count", 3, 0);
const LAST: Field = VALID.then("last", 1);
const INDEX: Field = LAST.then("index", 12);
pub(super) const SEQUENCE: Field = INDEX.then("commit sequence number", 47);

/// A log entry's place in its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Logged {
    pub(super) home: LineAddr,
    /// Words of the transaction.
    pub(super) words: WordMask,
}

/// The line that all headers have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) logged: [Logged; ENTRIES],
    /// `valid_cnt`: how many of them are log entries.
    pub(super) valid: usize,
    /// The transaction's last record.
    pub(super) last: bool,
    /// Place among the transaction's records.
    pub(super) index: u64,
    /// Commit sequence number of the transaction, in the last record.
    pub(super) sequence: u64,
    /// Number among the thread's records.
    pub(super) number: u64,
}

impl Header {
    pub(super) fn line(&self, torn: bool) -> LineData {
        let (mut words, mut number) = ([0; ENTRIES + 1], NUMBER.put(self.number));
        for (i, logged) in self.logged.iter().enumerate() {
            words[i] = HOME.put(logged.home.addr().0)
                | WORDS.put(logged.words.into())
                | NUMBER_PART.wrapped(number);
            number >>= NUMBER_PART.bits();
        }
        words[ENTRIES] = VALID.put(self.valid as u64)
            | LAST.put(self.last.into())
            | INDEX.put(self.index)
            | SEQUENCE.put(self.sequence);
        torn::mark(words, torn)
    }

    /// The header, if these words are one and were written together.
    pub(super) fn parse(line: LineData) -> Option<Header> {
        let words = torn::whole(line)?;
        let valid = VALID.get(words[ENTRIES]) as usize;
        if valid == 0 {
            return None;
        }
        let mut header = Header {
            valid,
            last: LAST.is_set(words[ENTRIES]),
            index: INDEX.get(words[ENTRIES]),
            sequence: SEQUENCE.get(words[ENTRIES]),
            ..Header::default()
        };
        for (i, word) in words[..ENTRIES].iter().enumerate() {
            let words = WORDS.get(*word) as WordMask;
            header.logged[i] = Logged { home: line_at(*word), words };
            header.number |= NUMBER_PART.get(*word) << (i as u32 * NUMBER_PART.bits());
        }
        Some(header)
    }
}

/// The circular log area of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    start: Addr,
    pub(super) slots: u64,
    rules: Rules,
}

impl Area {
    pub(super) fn of(context: &DesignContext, thread: ThreadId) -> Area {
        let bytes = context.config.get::<ReduConfig>().log_bytes_per_thread.0;
        let start = context.thread_area(thread, bytes);
        Area { start, slots: bytes / RECORD_BYTES, rules: Rules::of(context) }
    }

    /// Line of the header of a record.
    pub(super) fn header(&self, number: u64) -> LineAddr {
        self.start.plus(number % self.slots * RECORD_BYTES).line()
    }

    /// Line of a log entry of it.
    pub(super) fn entry(&self, number: u64, index: usize) -> LineAddr {
        LineAddr(self.header(number).0 + 1 + index as u64)
    }

    /// Reads the header in a slot, whatever its record's number.
    pub(super) fn read(&self, image: &mut SurvivingImage, slot: u64) -> Option<Header> {
        let line = self.header(slot);
        image.work(Work::Record, 1);
        // The word that says whether there is one comes first.
        let last = image.load(line.word(ENTRIES));
        if VALID.get(last) == 0 {
            return None;
        }
        let entries: [u64; ENTRIES] = image.load_words(line.addr());
        let mut words = [0; ENTRIES + 1];
        words[..ENTRIES].copy_from_slice(&entries);
        words[ENTRIES] = last;
        if !self.rules.torn_bits_are_checked() {
            words = torn::as_the_first(words);
        }
        Header::parse(words)
    }

    /// Makes an area of unknown content one without headers.
    pub(super) fn clear(&self, image: &mut SurvivingImage) {
        for slot in 0..self.slots {
            image.store_line(self.header(slot), WordMask::MAX, &[0; 8]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_header() -> impl Strategy<Value = Header> {
        let logged = (0..1u64 << 42, any::<WordMask>())
            .prop_map(|(home, words)| Logged { home: LineAddr(home), words });
        let what = (any::<bool>(), 0..RECORDS_MAX as u64, 0..=SEQUENCE_MAX, 0..1u64 << 49);
        (prop::array::uniform7(logged), 1..=ENTRIES, what).prop_map(
            |(logged, valid, (last, index, sequence, number))| Header {
                logged,
                valid,
                last,
                index,
                sequence,
                number,
            },
        )
    }

    /// Claim `lalea-lec-header`: seven addresses of 8 B and 8 B of other fields are the 64 B of a header.
    #[test]
    fn every_bit_lies_where_the_table_says() {
        let mut header = Header { valid: 2, index: 5, number: 3 << 7 | 0x7f, ..Header::default() };
        header.logged[0] = Logged { home: LineAddr(0x8d_159e_2680), words: 0xa5 };
        let line = header.line(false);
        assert_eq!(line[..3], [0x7fa5_2345_6789_a000, 3 << 56, 0]);
        assert_eq!(line[7], 2 | 5 << 4);
        let last = Header { last: true, sequence: 9, ..header }.line(true);
        assert_eq!(last[7], 1 << 63 | 9 << 16 | 5 << 4 | 1 << 3 | 2);
        assert!(last.iter().all(|word| word >> 63 == 1));
        assert_eq!(size_of_val(&line), 64);
    }

    proptest! {
        #[test]
        fn a_header_comes_back_from_its_line(header in any_header(), torn: bool) {
            prop_assert_eq!(Header::parse(header.line(torn)), Some(header));
        }

        #[test]
        fn a_header_that_is_partly_written_is_none(
            new in any_header(), old in any_header(), written in 1u8..255, torn: bool,
        ) {
            let (new, old) = (new.line(torn), old.line(!torn));
            let mixed = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { old[i] });
            prop_assert_eq!(Header::parse(mixed), None);
        }

        #[test]
        fn a_header_that_is_partly_written_over_zeroes_is_none(
            new in any_header(), written in 0u8..255,
        ) {
            let new = new.line(true);
            let mixed = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { 0 });
            prop_assert_eq!(Header::parse(mixed), None);
        }
    }

    #[test]
    fn slots_come_round() {
        let area = Area { start: Addr(4096), slots: 2, rules: Rules::default() };
        let places: Vec<u64> = (0..3).map(|n| area.header(n).addr().0 - 4096).collect();
        assert_eq!(places, [0, 512, 0]);
        assert_eq!(area.entry(3, 6).addr(), Addr(4096 + 512 + 7 * 64));
    }
}
