//! Records from the bytes that survived.

use std::ops::Range;

use super::record::Metadata;
use super::slot;
use super::{Format, Kind, Log, METADATA_WORDS, RECORDS_PER_GROUP, Record, TORN, WORDS_PER_BLOCK};
use crate::mechanisms::torn;
use graven_base::codecs::slde::{pair_of_flag, redo_of_flag};
use graven_base::codecs::{Coding, mask_of_bytes};
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES};
use graven_base::surviving::{SurvivingImage, Work};

/// Records of a log for which memory is allocated at once.
const RECORDS_EXPECTED: usize = 64;

/// Words of a metadata block and the data block behind it.
const GROUP_WORDS: usize = 2 * WORDS_PER_BLOCK as usize;

/// Content of a log.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Records from the head to the first hole, each with its group.
    pub records: Vec<(u64, Record)>,
    /// The first group behind them.
    pub end: u64,
    /// Metadata blocks examined.
    pub blocks: u64,
}

/// The words of an entry: if one has come back without its clean bytes, it takes them from the other, for
/// they are the same.
fn completed((undo, redo): (u64, u64), encoding: u8, dirty: u8) -> (u64, u64) {
    match pair_of_flag(encoding, dirty) {
        Some((undo_coding, _)) if undo_coding.is_dldc() => {
            let mask = mask_of_bytes(dirty);
            (redo & !mask | undo & mask, redo)
        }
        Some((_, redo_coding)) if redo_coding.is_dldc() => {
            let mask = mask_of_bytes(dirty);
            (undo, undo & !mask | redo & mask)
        }
        _ => (undo, redo),
    }
}

impl Log {
    /// Reads from the head on, until a block is not there or not whole.
    pub fn scan(&self, image: &mut SurvivingImage) -> Scan {
        let head = image.load(self.head());
        let records = Vec::with_capacity(RECORDS_EXPECTED);
        let mut scan = Scan { records, end: head, blocks: 0 };
        let mut next_word = 0;
        for group in head..head + self.groups {
            scan.blocks += 1;
            let before = scan.records.len();
            let whole = self.read_block(image, group, &mut next_word, &mut scan.records);
            if scan.records.len() > before {
                scan.end = group + 1;
            }
            if !whole && !self.faults.holes_are_skipped {
                break;
            }
        }
        scan
    }

    /// Returns true if a log can begin with a group: its data words do not lie behind those of the group before it.
    pub fn can_begin(&self, image: &mut SurvivingImage, group: u64) -> bool {
        if self.format == Format::Slots {
            return true;
        }
        let first = self.read_metadata(image, self.metadata(group), self.torn(group), 0);
        first.is_some_and(|metadata| !metadata.continues)
    }

    /// The head, and the bytes of the groups from one to before another.
    pub fn bytes_of(&self, groups: (u64, u64)) -> Vec<Range<Addr>> {
        super::bytes_of(self.start, (self.groups, self.format.group_bytes()), groups)
    }

    /// Makes sure that nothing is there from a group on to which the head is about to move, behind what was
    /// read. The first hole may lie in the middle of a block, and the blocks behind that one may be whole.
    pub fn seal(&self, image: &mut SurvivingImage, group: u64) {
        let at = self.metadata(group);
        let word = image.load(at);
        if word & TORN == self.torn(group) {
            image.store(at, word ^ TORN);
            image.fence();
        }
    }

    /// Reads the records of a block up to the first that is not whole; returns whether all were.
    /// `next_word`: where the next data word of the batch lies, counted from group 0.
    fn read_block(
        &self,
        image: &mut SurvivingImage,
        group: u64,
        next_word: &mut u64,
        records: &mut Vec<(u64, Record)>,
    ) -> bool {
        if self.format == Format::Slots {
            let record = self.read_slot(image, group);
            records.extend(record.map(|record| (group, record)));
            return record.is_some();
        }
        let (at, torn) = (self.metadata(group), self.torn(group));
        if !self.faults.one_torn_bit
            && let Some(words) = image.unwatched(at)
        {
            let (whole, loads) =
                self.read_unwatched_block(image, (group, torn), words, next_word, records);
            image.count_loads(loads);
            return whole;
        }
        let mut count = 1;
        for place in 0..RECORDS_PER_GROUP {
            if place >= count {
                return true;
            }
            let Some(metadata) = self.read_metadata(image, at, torn, place) else { return false };
            if place == 0 {
                count = metadata.count;
                if !metadata.continues {
                    *next_word = group * WORDS_PER_BLOCK;
                }
            }
            let mut record = metadata.record;
            let first = *next_word;
            *next_word += Record::data_words(record.kind) as u64;
            match record.kind {
                Kind::UndoRedo => {
                    let are_in_line = first % WORDS_PER_BLOCK + 1 < WORDS_PER_BLOCK;
                    let [undo, redo] = match are_in_line {
                        true => image.load_words(self.data_word_from(group, at, first)),
                        false => [first, first + 1].map(|word| image.load(self.data_word(word))),
                    };
                    let words = (undo, redo);
                    (record.undo, record.redo) = completed(words, metadata.encoding, record.dirty);
                }
                Kind::Redo => {
                    record.redo = image.load(self.data_word_from(group, at, first));
                    let coding = redo_of_flag(metadata.encoding, record.dirty);
                    record.partial = coding.is_some_and(Coding::is_dldc);
                }
                Kind::Commit | Kind::InPlace => {}
            }
            records.push((group, record));
        }
        true
    }

    /// The same of a block whose words, and those of the data block behind it, are known; how many words would have been loaded
    /// is returned, too. All blocks of a log are in PM.
    fn read_unwatched_block(
        &self,
        image: &SurvivingImage,
        (group, torn): (u64, u64),
        words: &[u64; GROUP_WORDS],
        next_word: &mut u64,
        records: &mut Vec<(u64, Record)>,
    ) -> (bool, u64) {
        let (metadata, data) = words.split_at(WORDS_PER_BLOCK as usize);
        let (metadata, _) = metadata.as_chunks::<METADATA_WORDS>();
        let (mut loads, mut count) = (0, 1);
        for (place, words) in metadata.iter().enumerate() {
            if place >= count {
                break;
            }
            loads += METADATA_WORDS as u64;
            let Some(Metadata { mut record, encoding, count: of_block, continues }) =
                Metadata::parse(*words, torn)
            else {
                return (false, loads);
            };
            if place == 0 {
                count = of_block;
                if !continues {
                    *next_word = group * WORDS_PER_BLOCK;
                }
            }
            // The words that it has are those of this group's data block, or of one before it.
            let at = next_word.wrapping_sub(group * WORDS_PER_BLOCK) as usize;
            match record.kind {
                Kind::UndoRedo => {
                    let words = match data.get(at..).and_then(|data| data.first_chunk()) {
                        Some(&[undo, redo]) => (undo, redo),
                        None => {
                            let [undo, redo] = [0, 1].map(|i| self.data_word(*next_word + i));
                            (image.peek(undo), image.peek(redo))
                        }
                    };
                    (loads, *next_word) = (loads + 2, *next_word + 2);
                    (record.undo, record.redo) = completed(words, encoding, record.dirty);
                }
                Kind::Redo => {
                    record.redo = match data.get(at) {
                        Some(&redo) => redo,
                        None => image.peek(self.data_word(*next_word)),
                    };
                    (loads, *next_word) = (loads + 1, *next_word + 1);
                    let coding = redo_of_flag(encoding, record.dirty);
                    record.partial = coding.is_some_and(Coding::is_dldc);
                }
                Kind::Commit | Kind::InPlace => {}
            }
            records.push((group, record));
        }
        (true, loads)
    }

    /// The record of a slot, if it is whole.
    fn read_slot(&self, image: &mut SurvivingImage, group: u64) -> Option<Record> {
        let at = self.metadata(group);
        let mut words = image.load_words(at);
        if self.faults.one_torn_bit {
            words = torn::as_the_first(words);
        }
        slot::parse(words, self.torn(group) == TORN)
    }

    fn data_word(&self, word: u64) -> Addr {
        self.data(word / WORDS_PER_BLOCK).plus(word % WORDS_PER_BLOCK * WORD_BYTES)
    }

    /// The same, with a group whose metadata block is known.
    #[inline]
    fn data_word_from(&self, group: u64, metadata: Addr, word: u64) -> Addr {
        if word / WORDS_PER_BLOCK == group {
            return metadata.plus(LINE_BYTES + word % WORDS_PER_BLOCK * WORD_BYTES);
        }
        self.data_word(word)
    }

    fn read_metadata(
        &self,
        image: &mut SurvivingImage,
        block: Addr,
        torn: u64,
        place: usize,
    ) -> Option<Metadata> {
        let at = block.plus((place * METADATA_WORDS) as u64 * WORD_BYTES);
        let mut words = image.load_words(at);
        image.work(Work::Record, 1);
        if self.faults.one_torn_bit {
            words = torn::as_the_first(words);
        }
        Metadata::parse(words, torn)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Faults, LINE_BYTES};
    use super::*;
    use graven_base::ids::ThreadId;

    const LOG_BYTES: u64 = LINE_BYTES + 4 * Format::Packed.group_bytes();

    /// Writes a block of commit records.
    fn write_block(log: &Log, image: &mut SurvivingImage, group: u64, count: usize) {
        for place in 0..count {
            let record = Record { kind: Kind::Commit, thread: place as ThreadId, ..Record::BLANK };
            let metadata = Metadata { record, encoding: 0, count, continues: false };
            let at = log.metadata(group).plus((place * METADATA_WORDS) as u64 * WORD_BYTES);
            for (word, value) in (0..).zip(metadata.words(log.torn(group))) {
                image.store(at.plus(word * WORD_BYTES), value);
            }
        }
    }

    /// The first block has a torn record in it, the one behind is whole: what recovery has left out once it
    /// must not find later, when the head has moved behind the torn block.
    #[test]
    fn a_whole_block_behind_a_torn_one_is_never_read() {
        let log = Log::new(Addr(4096), LOG_BYTES, Format::Packed, Faults::default());
        let mut image = SurvivingImage::default();
        log.create(&mut image);
        write_block(&log, &mut image, 0, 4);
        write_block(&log, &mut image, 1, 2);
        image.store(log.metadata(0).plus(4 * WORD_BYTES), 0);
        let scan = log.scan(&mut image);
        assert_eq!((scan.records.len(), scan.end, scan.blocks), (2, 1, 1));
        log.seal(&mut image, scan.end);
        assert_eq!(log.scan(&mut image).records, scan.records, "until the head moves");
        image.store(log.head(), scan.end);
        assert_eq!(log.scan(&mut image).records, []);
    }

    #[test]
    fn what_is_a_hole_already_is_not_written() {
        let log = Log::new(Addr(4096), LOG_BYTES, Format::Packed, Faults::default());
        let mut image = SurvivingImage::default();
        log.create(&mut image);
        (0..4).for_each(|group| write_block(&log, &mut image, group, 4));
        let written = image.written().len();
        let scan = log.scan(&mut image);
        assert_eq!((scan.records.len(), scan.end), (16, 4), "the log is full");
        log.seal(&mut image, scan.end);
        assert_eq!(image.written().len(), written);
    }
}
