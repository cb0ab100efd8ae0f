//! Records in slots, and their bits (the tables in [`super`]).

use super::record::Metadata;
use super::{METADATA_WORDS, Record};
use crate::torn::{self, LOW_63};
use graven_base::memory::WORD_BYTES;

/// Words of a slot: metadata, the undo word, the redo word.
pub const SLOT_WORDS: usize = METADATA_WORDS + 2;
/// Bytes of a slot.
pub const SLOT_BYTES: u64 = SLOT_WORDS as u64 * WORD_BYTES;

/// Bits 63 of the undo word and of the redo word, in the second metadata word.
const UNDO_TOP: u32 = 39;
const REDO_TOP: u32 = 40;

/// A record's words, each with the torn bit as given.
pub fn words_of(record: &Record, torn: bool) -> [u64; SLOT_WORDS] {
    let metadata = Metadata { record: *record, encoding: 0, count: 1, continues: false };
    let [first, second] = metadata.words(0);
    let Record { undo, redo, .. } = *record;
    let second = second | (undo >> 63) << UNDO_TOP | (redo >> 63) << REDO_TOP;
    torn::mark([first, second, undo, redo], torn)
}

/// The record of a slot's words, if all of them carry this torn bit.
pub fn parse(words: [u64; SLOT_WORDS], torn: bool) -> Option<Record> {
    if (words[0] & torn::TORN != 0) != torn {
        return None;
    }
    let [first, second, undo, redo] = torn::whole(words)?;
    let record = Metadata::parse([first, second], 0)?.record;
    let top = |at: u32| (second >> at & 1) << 63;
    let (undo, redo) = (undo & LOW_63 | top(UNDO_TOP), redo & LOW_63 | top(REDO_TOP));
    Some(Record { undo, redo, ..record })
}
