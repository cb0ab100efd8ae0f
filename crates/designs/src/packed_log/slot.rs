//! Records in slots, and their bits (the tables in [`super`]).

use super::record::{LATE, Metadata};
use super::{METADATA_WORDS, Record};
use crate::mechanisms::torn;
use graven_base::memory::{Field, WORD_BYTES};

/// Words of a slot: metadata, the undo word, the redo word.
pub const SLOT_WORDS: usize = METADATA_WORDS + 2;
/// Bytes of a slot.
pub const SLOT_BYTES: u64 = SLOT_WORDS as u64 * WORD_BYTES;

/// Bits 63 of the undo word and of the redo word, in the second metadata word.
const UNDO_TOP: Field = LATE.then("bit 63 of the undo word", 1);
const REDO_TOP: Field = UNDO_TOP.then("bit 63 of the redo word", 1);

/// A record's words, each with the torn bit as given.
pub fn words_of(record: &Record, torn: bool) -> [u64; SLOT_WORDS] {
    let metadata = Metadata { record: *record, encoding: 0, count: 1, continues: false };
    let [first, second] = metadata.words(0);
    let Record { undo, redo, .. } = *record;
    let second = second | UNDO_TOP.put(torn::top(undo)) | REDO_TOP.put(torn::top(redo));
    torn::mark([first, second, undo, redo], torn)
}

/// The record of a slot's words, if all of them carry this torn bit.
pub fn parse(words: [u64; SLOT_WORDS], torn: bool) -> Option<Record> {
    if (words[0] & torn::TORN != 0) != torn {
        return None;
    }
    let [first, second, undo, redo] = torn::whole(words)?;
    let record = Metadata::parse([first, second], 0)?.record;
    let undo = torn::with_top(undo, UNDO_TOP.get(second));
    let redo = torn::with_top(redo, REDO_TOP.get(second));
    Some(Record { undo, redo, ..record })
}
