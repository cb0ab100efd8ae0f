//! A circular log with log packing (ReDU's, as MorLog §II-C and §IV-B take it over): what entries say about
//! themselves goes into metadata blocks, the words that they hold into data blocks, 64 B each, so that an
//! encoder can distinguish the two and a write carries several entries. FWB and MorLog share it. Where there is no
//! encoder (`pm.log_packing`), MorLog's records lie in it whole, a slot each, as FWB's do in slots of its own.
//!
//! | file | what |
//! |---|---|
//! | `mod` | where the log lies |
//! | `record` | records and their bits |
//! | `slot` | records in slots and their bits |
//! | `send` | records into blocks, blocks into writes |
//! | `read` | records from the bytes that survived |
//! | `event` | what is counted of records that are coded |
//!
//! **On the image.** A header line, whose word 0 is the head pointer: the number of the first group that
//! matters. Then groups, numbered from 0 over all passes; number / groups is the pass, number mod groups the
//! place. A group is a metadata block of four records of two words, and a data block of eight words. A
//! batch of records takes as many groups as its records fill; its words lie one after the other in the
//! data blocks of these groups, and the data blocks that it does not need are not written. No block is
//! ever written in part: what is left of a batch's last blocks is zero, but for the torn bits.
//!
//! | metadata word | bits | content |
//! |---|---|---|
//! | 0 | 0-47 | home address of the word (in place: of the line); commit: when it committed, as a number |
//! | 0 | 48-49 | type: 0 undo+redo, 1 redo, 2 commit, 3 in place |
//! | 0 | 50-57 | thread id |
//! | 0 | 58-60 | encoding type flag |
//! | 0 | 61-62 | records in this block, less one |
//! | 1 | 0-15 | transaction id |
//! | 1 | 16-23 | dirty flag: bytes of the word that changed; in place: which words of the line |
//! | 1 | 24-36 | commit: ulog counter |
//! | 1 | 37 | the words of this block's records follow those of the block before |
//! | 1 | 38 | late: the record follows its transaction's commit record |
//! | 0, 1 | 63 | torn bit: 1 in even passes over the log, 0 in odd ones |
//!
//! The fields are MorLog's (§III-B, Fig. 7; §IV): 2 + 8 + 16 + 48 bits, the torn bit, the dirty flag, the
//! encoding type flag. Places, counts and the last two flags are ours. An undo+redo record has two words of data,
//! undo first; a redo record one; the others none.
//!
//! **Slots.** A group is then a slot of 32 B: a record's two metadata words, its undo word and its redo word, each with the
//! torn bit. Bits 39 and 40 of metadata word 1 are the words' bits 63. Slots of a batch that share a line are one write.
//! It waits for what the design says, not for other writes of the log.
//!
//! **Encoding** (MorLog §IV). Where the memory modules know DLDC, the words of a record are coded by it if that is
//! shorter, and then only their dirty bytes are there when they are read back. Of an undo+redo record at most
//! one word is, so that both can be had whole; the clean bytes of a lone redo word must come from what it
//! is redone over.
//!
//! **Order.** A batch's metadata waits until its data is durable, so data needs no torn bits, and a record
//! that is whole has its words. All writes are ordered writes: whatever waits for a record waits for
//! all before it, so that recovery may stop at the first hole.

mod event;
mod read;
mod record;
mod send;
mod slot;
#[cfg(test)]
mod tests;

pub use event::{Counters, Event};
pub use read::Scan;
pub use record::{Kind, Record, TYPE_BITS, ULOG_BITS, ULOG_MAX, dirty_bytes};
pub use send::Packer;

use std::ops::Range;

use crate::mechanisms::torn;
use crate::mechanisms::torn::TORN;
use graven_base::config::Config;
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES};
use graven_base::surviving::SurvivingImage;
use graven_machine::config::PmConfig;

/// Bytes of a packed group: a metadata block and a data block.
const PACKED_GROUP_BYTES: u64 = 2 * LINE_BYTES;
/// Records of a metadata block.
pub const RECORDS_PER_GROUP: usize = 4;

/// Layouts of records in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// In groups of a metadata block and a data block.
    Packed,
    /// In a slot each, which is a group by itself.
    Slots,
}

impl Format {
    /// That of a machine's logs.
    pub fn of(config: &Config) -> Format {
        if config.get::<PmConfig>().packs_logs() { Format::Packed } else { Format::Slots }
    }

    /// Bytes of a group.
    pub const fn group_bytes(self) -> u64 {
        match self {
            Format::Packed => PACKED_GROUP_BYTES,
            Format::Slots => slot::SLOT_BYTES,
        }
    }

    /// Records that fill a block of metadata, or a line.
    pub const fn together(self) -> usize {
        match self {
            Format::Packed => RECORDS_PER_GROUP,
            Format::Slots => (LINE_BYTES / slot::SLOT_BYTES) as usize,
        }
    }
}
/// Metadata words of a record.
const METADATA_WORDS: usize = 2;
/// Words of a data block.
const WORDS_PER_BLOCK: u64 = LINE_BYTES / WORD_BYTES;

/// Single-point changes for the worse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The torn bit is the same in every pass over the log.
    pub torn_bit_stays: bool,
    /// Only the first word of a record has a torn bit.
    pub one_torn_bit: bool,
    /// The creation of a log sets the head and leaves the blocks as they are.
    pub not_cleared: bool,
    /// Metadata does not wait for its data.
    pub metadata_first: bool,
    /// Reading continues behind a hole.
    pub holes_are_skipped: bool,
    /// The undo and the redo word of an entry are both without their clean bytes.
    pub both_differential: bool,
}

/// A log and its places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    start: Addr,
    /// Groups that it holds.
    pub groups: u64,
    /// Layout of its records.
    pub format: Format,
    faults: Faults,
}

/// The bytes of the places from one to before another of a log of `count` places of `bytes` bytes, behind a header line at its
/// start, whose first word is the head; with that word.
pub fn bytes_of(
    start: Addr,
    (count, bytes): (u64, u64),
    (from, to): (u64, u64),
) -> Vec<Range<Addr>> {
    let place = |number: u64| start.plus(LINE_BYTES + number % count * bytes);
    let (first, last) = (place(from), place(to - 1).plus(bytes));
    let head = start..start.plus(WORD_BYTES);
    if to - from < count && first < last {
        return vec![head, first..last];
    }
    let (begin, end) = (place(0), place(count - 1).plus(bytes));
    if to - from >= count { vec![head, begin..end] } else { vec![head, first..end, begin..last] }
}

impl Log {
    /// Makes the log that fits into `bytes` bytes, its header line included.
    pub fn new(start: Addr, bytes: u64, format: Format, faults: Faults) -> Log {
        let groups = bytes.saturating_sub(LINE_BYTES) / format.group_bytes();
        Log { start, groups, format, faults }
    }

    /// Address of the head pointer: the number of the first group that matters.
    pub fn head(&self) -> Addr {
        self.start
    }

    /// Address of a group: a slot, or its metadata block; its data block follows.
    fn metadata(&self, group: u64) -> Addr {
        self.start.plus(LINE_BYTES + group % self.groups * self.format.group_bytes())
    }

    fn data(&self, group: u64) -> Addr {
        self.metadata(group).plus(LINE_BYTES)
    }

    /// The torn bit of a group.
    fn torn(&self, group: u64) -> u64 {
        let even = torn::of_pass(group, self.groups) || self.faults.torn_bit_stays;
        if even { TORN } else { 0 }
    }

    /// Makes an empty log of whatever the region holds: the head is 0, and no metadata block or slot has a word
    /// that could belong to the first pass, so that nothing there completes a torn record.
    pub fn create(&self, image: &mut SurvivingImage) {
        image.store(self.head(), 0);
        if self.faults.not_cleared {
            return;
        }
        let words = match self.format {
            Format::Packed => WORDS_PER_BLOCK as usize,
            Format::Slots => slot::SLOT_WORDS,
        };
        let shape = ((self.format.group_bytes() / WORD_BYTES) as usize, words);
        if let Some(marked) = image.find_marked(self.metadata(0), self.groups, shape, TORN) {
            image.store_all(marked.into_iter().map(|addr| (addr, 0)));
            return;
        }
        for group in 0..self.groups {
            let metadata = self.metadata(group);
            match self.format {
                Format::Packed => clear::<{ WORDS_PER_BLOCK as usize }>(image, metadata),
                Format::Slots => clear::<{ slot::SLOT_WORDS }>(image, metadata),
            }
        }
    }
}

/// Clears those of `WORDS` words from an address on that could belong to the first pass.
fn clear<const WORDS: usize>(image: &mut SurvivingImage, addr: Addr) {
    for (word, value) in (0..).zip(image.load_words::<WORDS>(addr)) {
        if value & TORN != 0 {
            image.store(addr.plus(word * WORD_BYTES), 0);
        }
    }
}
