//! The bits of a record of a line: one header for all words of a line that met in the log buffer (the table in
//! [`super`]).

use super::record::{COMMIT, ENTRY, KIND, THREAD, TX};
use crate::fields::{HOME, WORDS};
use crate::mechanisms::torn;
use crate::packed_log::{Kind, Record};
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Field, WORDS_PER_LINE, WordMask, words_in};

/// Words of a header.
pub const HEADER_WORDS: usize = 2;
/// Words of the longest record: a header, and the old and the new content of a line.
pub const LINE_RECORD_WORDS_MAX: usize = HEADER_WORDS + 2 * WORDS_PER_LINE;

/// Bits 63 of the words of data, in the order in which these lie.
const TOPS: Field = KIND.then("bits 63 of the words", 2 * WORDS_PER_LINE as u32);

/// Words of a record that holds the old and the new content of `words` words of a line; of a commit
/// record, of none.
#[inline]
pub const fn record_words(words: usize) -> usize {
    HEADER_WORDS + 2 * words
}

/// The words of a record without their torn bits, and how many there are. Its records are one commit record, or entries
/// of words of one line, each word once.
pub fn words_of(records: &[Record]) -> ([u64; LINE_RECORD_WORDS_MAX], usize) {
    let mut words = [0; LINE_RECORD_WORDS_MAX];
    let Record { kind, thread, tx, addr, .. } = records[0];
    let first = TX.put(tx.into()) | THREAD.put(thread.into());
    if kind == Kind::Commit {
        words[0] = first | KIND.put(COMMIT);
        return (words, HEADER_WORDS);
    }
    let mut tops = 0;
    let mask = records.iter().fold(0, |mask, record| mask | record.addr.word_mask());
    for record in records {
        let below = mask & (record.addr.word_mask() - 1);
        let at = 2 * below.count_ones();
        for (value, place) in [(record.undo, at), (record.redo, at + 1)] {
            words[HEADER_WORDS + place as usize] = value & torn::LOW_63;
            tops |= torn::top(value) << place;
        }
    }
    words[0] = first | KIND.put(ENTRY) | TOPS.put(tops);
    words[1] = HOME.put(addr.line().addr().0) | WORDS.put(mask.into());
    (words, record_words(records.len()))
}

/// Number of words of the record that begins with these two, if one does.
#[inline]
pub fn length(header: [u64; 2]) -> Option<usize> {
    match KIND.get(header[0]) {
        ENTRY => {
            let mask = mask_of(header[1]);
            (mask != 0).then(|| record_words(mask.count_ones() as usize))
        }
        COMMIT => Some(HEADER_WORDS),
        _ => None,
    }
}

/// The records of a record's words, whose number [`length`] has told; their torn bits are of no account.
#[inline]
pub fn parse(words: &[u64], mut each: impl FnMut(Record)) {
    let first = words[0];
    let (thread, tx) = (THREAD.get(first) as ThreadId, TX.get(first) as u16);
    let record = Record { thread, tx, ..Record::BLANK };
    if words.len() == HEADER_WORDS {
        each(Record { kind: Kind::Commit, ..record });
        return;
    }
    let (line, tops) = (Addr(HOME.get(words[1])).line(), TOPS.get(first));
    for (i, word) in words_in(mask_of(words[1])).enumerate() {
        let value = |place: usize| {
            torn::with_top(words[HEADER_WORDS + place] & torn::LOW_63, tops >> place & 1)
        };
        let addr = line.word(word);
        let (undo, redo) = (value(2 * i), value(2 * i + 1));
        each(Record { kind: Kind::UndoRedo, addr, undo, redo, ..record });
    }
}

/// Mask of the words of its line that a record has, by the second word of its header.
fn mask_of(second: u64) -> WordMask {
    WORDS.get(second) as WordMask
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::memory::WORD_BYTES;
    use proptest::prelude::*;

    fn entry(addr: u64, undo: u64, redo: u64) -> Record {
        let (kind, thread, tx) = (Kind::UndoRedo, 0xa5, 0xbeef);
        Record { kind, thread, tx, addr: Addr(addr), undo, redo, ..Record::BLANK }
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        // Words 6 and 1 of a line, in the order of their stores.
        let stored = [entry(0x1234_5678_9af0, 1 << 63 | 7, 9), entry(0x1234_5678_9ac8, 3, 1 << 63)];
        let (words, length) = words_of(&stored);
        assert_eq!(length, 6);
        assert_eq!(words[0], 0xbeef | 0xa5 << 16 | 1 << 24 | 1 << 27 | 1 << 28);
        assert_eq!(words[1], 0x1234_5678_9ac0 | 0b0100_0010 << 48);
        assert_eq!(words[2..6], [3, 0, 7, 9]);
        let commit = Record { kind: Kind::Commit, ..entry(0, 0, 0) };
        let (words, length) = words_of(&[commit]);
        assert_eq!((words[..2].to_vec(), length), (vec![0xbeef | 0xa5 << 16 | 2 << 24, 0], 2));
    }

    /// FWB §III-E, step 6, against a record per word: a line is 144 B, its eight words are 256 B.
    #[test]
    fn a_whole_line_has_one_header() {
        let bytes = |words| record_words(words) as u64 * WORD_BYTES;
        assert_eq!((bytes(1), bytes(8), bytes(0)), (32, 144, 16));
        assert_eq!(record_words(WORDS_PER_LINE), LINE_RECORD_WORDS_MAX);
        assert!(TOPS.end() <= 63, "the torn bit is left");
    }

    #[test]
    fn zeroes_are_no_record() {
        assert_eq!(length([0; 2]), None);
        assert_eq!(length([KIND.put(ENTRY), 0]), None, "of no word");
    }

    proptest! {
        #[test]
        fn a_record_comes_back_from_its_bytes(
            line in 0u64..1 << 42,
            mask in 1u8..,
            values in proptest::collection::vec(any::<(u64, u64)>(), 8),
            reversed: bool,
        ) {
            let mut stored: Vec<Record> = words_in(mask)
                .zip(&values)
                .map(|(word, &(undo, redo))| entry(line * 64 + word as u64 * 8, undo, redo))
                .collect();
            let sorted = stored.clone();
            if reversed {
                stored.reverse();
            }
            let (words, len) = words_of(&stored);
            prop_assert!(words.iter().all(|word| word >> 63 == 0), "room for torn bits");
            prop_assert_eq!(length([words[0], words[1]]), Some(len));
            let mut read = Vec::new();
            parse(&words[..len], |record| read.push(record));
            prop_assert_eq!(read, sorted);
        }
    }
}
