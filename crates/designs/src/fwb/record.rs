//! The bits of a record in a slot of its own (the tables in [`super`]): of both values, or of one.

use crate::fields::{HOME, THREAD_BITS, TX_BITS};
use crate::mechanisms::torn;
use crate::packed_log::{Kind, Record};
use graven_base::choice;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Field, WORD_BYTES};

choice! {
    /// Values of a word that a record holds.
    pub enum LogValues {
        /// The old and the new word (§III-B).
        Both = "both",
        /// The new word alone: hardware redo logging (§VI).
        Redo = "redo",
        /// The old word alone: hardware undo logging (§VI).
        Undo = "undo",
    }
}

choice! {
    /// Words that share a record, where records hold both values and lie in slots.
    pub enum RecordFormat {
        /// Each word has a record of its own: "log records maintain undo and redo information of a single update (e.g.,
        /// store A1)" (§III-A), as words (§I: "update the log with word-size values").
        Word = "word",
        /// All words of a line that a transaction stores to while the record is in the log buffer: "The log buffer coalesces
        /// the log updates of any writes to the same cache line" (§III-E, step 6).
        Line = "line",
    }
}

/// Words of the longest record of a word.
pub const RECORD_WORDS_MAX: usize = 4;

/// Bits of a transaction's id in a record of one value.
pub const SHORT_ID_BITS: u32 = 8;

/// Transaction id in the first word, where there are both values.
pub(super) const TX: Field = Field::new("transaction", TX_BITS, 0);
pub(super) const THREAD: Field = TX.then("thread", THREAD_BITS);
pub(super) const KIND: Field = THREAD.then("kind", 2);
const UNDO_TOP: Field = KIND.then("bit 63 of the undo word", 1);
const REDO_TOP: Field = UNDO_TOP.then("bit 63 of the redo word", 1);

/// Kinds of records; 0: there is none.
pub(super) const ENTRY: u64 = 1;
pub(super) const COMMIT: u64 = 2;

/// Transaction id of a record of one value, in its first word.
const SHORT_TX: Field = Field::new("transaction", SHORT_ID_BITS, 0);
const SHORT_THREAD: Field = SHORT_TX.then("thread", THREAD_BITS);
const SHORT_ADDR: Field = SHORT_THREAD.then("home address in words", 45);
const SHORT_COMMIT: Field = SHORT_ADDR.then("commit", 1);
const SHORT_TOP: Field = SHORT_COMMIT.then("bit 63 of the value", 1);

impl LogValues {
    /// Words of a record.
    #[inline]
    pub fn record_words(self) -> usize {
        if self == LogValues::Both { RECORD_WORDS_MAX } else { 2 }
    }

    /// Bytes of a record.
    pub fn record_bytes(self) -> u64 {
        self.record_words() as u64 * WORD_BYTES
    }

    /// A record's words, each with the torn bit as given; behind them, zeroes.
    pub fn words_of(self, record: &Record, torn: bool) -> [u64; RECORD_WORDS_MAX] {
        let value = match self {
            LogValues::Both => return words_of_both(record, torn),
            LogValues::Redo => record.redo,
            LogValues::Undo => record.undo,
        };
        let [first, second] = words_of_one(record, value, torn);
        [first, second, 0, 0]
    }

    /// The record of these words, if it is one and all of them carry this torn bit. The value that it does not
    /// hold is 0.
    pub fn parse(self, words: [u64; RECORD_WORDS_MAX], torn: bool) -> Option<Record> {
        if self == LogValues::Both {
            return parse_both(words, torn);
        }
        let (record, value) = parse_one([words[0], words[1]], torn)?;
        Some(match self {
            LogValues::Undo => Record { undo: value, ..record },
            _ => Record { redo: value, ..record },
        })
    }
}

fn words_of_both(record: &Record, torn: bool) -> [u64; RECORD_WORDS_MAX] {
    let Record { kind, thread, tx, addr, undo, redo, .. } = *record;
    let kind = match kind {
        Kind::UndoRedo => ENTRY,
        Kind::Commit => COMMIT,
        Kind::Redo | Kind::InPlace => unreachable!("slots hold entries and commit records"),
    };
    let first = TX.put(tx.into())
        | THREAD.put(thread.into())
        | KIND.put(kind)
        | UNDO_TOP.put(torn::top(undo))
        | REDO_TOP.put(torn::top(redo));
    torn::mark([first, HOME.put(addr.0), undo, redo], torn)
}

fn parse_both(words: [u64; RECORD_WORDS_MAX], torn: bool) -> Option<Record> {
    let [first, addr, undo, redo] = of_pass(words, torn)?;
    let kind = match KIND.get(first) {
        ENTRY => Kind::UndoRedo,
        COMMIT => Kind::Commit,
        _ => return None,
    };
    Some(Record {
        kind,
        thread: THREAD.get(first) as ThreadId,
        tx: TX.get(first) as u16,
        addr: Addr(HOME.get(addr)),
        undo: torn::with_top(undo, UNDO_TOP.get(first)),
        redo: torn::with_top(redo, REDO_TOP.get(first)),
        ..Record::BLANK
    })
}

fn words_of_one(record: &Record, value: u64, torn: bool) -> [u64; 2] {
    let Record { kind, thread, tx, addr, .. } = *record;
    // Ids come round (§IV-B), here earlier than in longer records.
    let first = SHORT_TX.wrapped(tx.into())
        | SHORT_THREAD.put(thread.into())
        | SHORT_ADDR.put(addr.0 / WORD_BYTES)
        | SHORT_COMMIT.put((kind == Kind::Commit).into())
        | SHORT_TOP.put(torn::top(value));
    torn::mark([first, value], torn)
}

/// The record but for its value, and that.
fn parse_one(words: [u64; 2], torn: bool) -> Option<(Record, u64)> {
    let [first, value] = of_pass(words, torn)?;
    let record = Record {
        kind: if SHORT_COMMIT.is_set(first) { Kind::Commit } else { Kind::UndoRedo },
        thread: SHORT_THREAD.get(first) as ThreadId,
        tx: SHORT_TX.get(first) as u16,
        addr: Addr(SHORT_ADDR.get(first) * WORD_BYTES),
        ..Record::BLANK
    };
    Some((record, torn::with_top(value, SHORT_TOP.get(first))))
}

/// The words without their torn bits, if all of them have this one.
fn of_pass<const N: usize>(words: [u64; N], torn: bool) -> Option<[u64; N]> {
    let has_torn_bit = (words[0] & torn::TORN != 0) == torn;
    torn::whole(words).filter(|_| has_torn_bit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: LogValues = LogValues::Both;

    fn any_record() -> impl Strategy<Value = Record> {
        let kind = prop_oneof![Just(Kind::UndoRedo), Just(Kind::Commit)];
        (kind, any::<u8>(), any::<u16>(), 0..=HOME.max(), any::<u64>(), any::<u64>()).prop_map(
            |(kind, thread, tx, addr, undo, redo)| Record {
                kind,
                thread: thread.into(),
                tx,
                addr: Addr(addr),
                undo,
                redo,
                ..Record::BLANK
            },
        )
    }

    /// Reduces a record to the fields that a record of one value can hold.
    fn short(record: Record, values: LogValues) -> Record {
        let addr = Addr(record.addr.0 / WORD_BYTES * WORD_BYTES);
        let record = Record { tx: record.tx & 0xff, addr, ..record };
        match values {
            LogValues::Both => unreachable!("that has two"),
            LogValues::Redo => Record { undo: 0, ..record },
            LogValues::Undo => Record { redo: 0, ..record },
        }
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
        let words_of = |record: Record, torn| BOTH.words_of(&record, torn);
        assert_eq!(words_of(record, false), [0x6a5_beef, 0x1234_5678_9abc, 7, 9]);
        assert_eq!(words_of(Record { redo: 1 << 63, ..record }, true)[0], 1 << 63 | 0xea5_beef);
        assert_eq!(words_of(Record { redo: 1 << 63, ..record }, true)[3], 1 << 63);
    }

    #[test]
    fn every_bit_of_a_record_of_one_value_lies_where_the_table_says() {
        let record = Record {
            kind: Kind::Commit,
            thread: 0xa5,
            tx: 0xbeef,
            addr: Addr(0x1234_5678_9ab8),
            undo: 1 << 63 | 7,
            redo: 9,
            ..Record::BLANK
        };
        let first = (0x1234_5678_9ab8 / 8) << 16 | 0xa5ef | 1 << 61;
        let [undo, redo] = [LogValues::Undo, LogValues::Redo];
        assert_eq!(undo.words_of(&record, false), [first | 1 << 62, 7, 0, 0]);
        assert_eq!(redo.words_of(&record, true), [first | 1 << 63, 9 | 1 << 63, 0, 0]);
        let entry = Record { kind: Kind::UndoRedo, ..record };
        assert_eq!(redo.words_of(&entry, false)[0], first & !(1 << 61));
    }

    /// `fwb-entry-fields` (§III-A): a 16-bit transaction id, an 8-bit thread id, a 48-bit address, a torn bit, and
    /// the two values.
    #[test]
    fn the_fields_of_an_entry_are_as_wide_as_the_paper_says() {
        let parse = |words| BOTH.parse(words, false).expect("a record");
        let entry = KIND.put(ENTRY) | UNDO_TOP.put(1) | REDO_TOP.put(1);
        let all = [entry | 0xff_ffff, u64::MAX >> 16, !0 >> 1, !0 >> 1];
        let record = parse(all);
        let widths = [
            u64::from(record.tx).count_ones(),
            u64::from(record.thread).count_ones(),
            record.addr.0.count_ones(),
            record.undo.count_ones(),
            record.redo.count_ones(),
        ];
        assert_eq!(widths, [16, 8, 48, 64, 64]);
        assert_eq!(BOTH.parse(torn::mark(all, true), false), None, "the torn bit is a bit");
        assert_eq!(widths.iter().sum::<u32>() + 1, 201);
    }

    proptest! {
        #[test]
        fn a_record_comes_back_from_its_bytes(record in any_record(), torn: bool) {
            prop_assert_eq!(BOTH.parse(BOTH.words_of(&record, torn), torn), Some(record));
            prop_assert_eq!(BOTH.parse(BOTH.words_of(&record, torn), !torn), None);
            for one in [LogValues::Redo, LogValues::Undo] {
                let words = one.words_of(&record, torn);
                prop_assert_eq!(one.parse(words, torn), Some(short(record, one)));
                prop_assert_eq!(one.parse(words, !torn), None);
            }
        }

        #[test]
        fn a_record_that_is_partly_written_is_none(
            new in any_record(), old in any_record(), written in 0u8..15, torn: bool,
        ) {
            for values in [BOTH, LogValues::Redo, LogValues::Undo] {
                let (new, old) = (values.words_of(&new, torn), values.words_of(&old, !torn));
                let all = (1 << values.record_words()) - 1;
                let words = std::array::from_fn(|i| {
                    if (written & all) >> i & 1 == 1 { new[i] } else { old[i] }
                });
                prop_assert!(values.parse(words, torn).is_none() || written & all == all);
            }
        }

        #[test]
        fn flipping_any_used_bit_changes_the_record(record in any_record(), bit in 0usize..256) {
            let mut words = BOTH.words_of(&record, true);
            words[bit / 64] ^= 1 << (bit % 64);
            let unused = matches!(bit, 28..63 | 112..127);
            prop_assert_eq!(BOTH.parse(words, true) == Some(record), unused);
            let record = short(record, LogValues::Redo);
            let mut words = LogValues::Redo.words_of(&record, true);
            words[bit / 64] ^= 1 << (bit % 64);
            prop_assert_eq!(LogValues::Redo.parse(words, true) == Some(record), bit >= 128);
        }
    }

    #[test]
    fn zeroes_are_no_record_in_any_pass() {
        assert_eq!(BOTH.parse([0; 4], false), None);
        assert_eq!(BOTH.parse([0; 4], true), None);
    }

    /// In an odd pass, every slot holds a record of the pass before.
    #[test]
    fn zeroes_are_no_record_of_one_value_in_the_first_pass() {
        assert_eq!(LogValues::Redo.parse([0; 4], torn::of_pass(0, 8)), None);
    }
}
