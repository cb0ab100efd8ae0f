//! Update records and commit records, and their places in a log area.

use super::{OptRedoConfig, Rules};
use crate::fields::{HOME, THREAD_BITS};
use crate::mechanisms::torn;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Field, LINE_BYTES, LineAddr, LineData, WORD_BYTES, WordMask};
use graven_base::surviving::{Slots, SurvivingImage, Work};
use graven_machine::design::DesignContext;

/// One line of data, one of metadata.
pub(super) const SLOT_BYTES: u64 = 2 * LINE_BYTES;
/// The area's first slot is its header.
pub(super) const HEADER_BYTES: u64 = SLOT_BYTES;
/// Words of a metadata line that are used.
const METADATA_WORDS: usize = 4;

const KIND: Field = Field::new("kind", 8, 0);
const KIND_UPDATE: u64 = 1;
const KIND_COMMIT: u64 = 2;
const WORDS: Field = KIND.then("words", WordMask::BITS);
const THREAD: Field = WORDS.then("thread", THREAD_BITS);
const TX: Field = THREAD.then("transaction", 39);
/// Commit sequence number: a whole word behind the first, but for the torn bit.
pub(super) const SEQUENCE: Field = Field::new("commit sequence number", 63, 0);
const NUMBER: Field = Field::new("number of the record", 63, 0);
const UPDATES: Field = Field::new("number of update records", 63, 0);

/// Kinds of metadata lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The data line of this slot holds new words of the home line.
    Update { home: LineAddr, words: WordMask },
    /// The update records in the `updates` slots before this one are those of a committed transaction.
    Commit { sequence: u64, updates: u64 },
}

/// A metadata line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) kind: Kind,
    pub(super) thread: ThreadId,
    /// The transaction's number; read back, what the record has of it.
    pub(super) tx: u64,
    /// The record's number among the thread's.
    pub(super) number: u64,
}

impl Metadata {
    pub(super) fn line(&self, torn: bool) -> LineData {
        // Transaction numbers come round: they are for whoever looks at the log, recovery does without them.
        let head = THREAD.put(self.thread.into()) | TX.wrapped(self.tx);
        let number = NUMBER.put(self.number);
        let words = match self.kind {
            Kind::Update { home, words } => {
                let head = head | KIND.put(KIND_UPDATE) | WORDS.put(words.into());
                [head, HOME.put(home.addr().0), number, 0]
            }
            Kind::Commit { sequence, updates } => {
                let head = head | KIND.put(KIND_COMMIT);
                [head, SEQUENCE.put(sequence), number, UPDATES.put(updates)]
            }
        };
        let mut line = [0; 8];
        line[..METADATA_WORDS].copy_from_slice(&torn::mark(words, torn));
        line
    }

    /// The metadata, if these words are some and were written whole.
    pub(super) fn parse(words: [u64; METADATA_WORDS]) -> Option<Metadata> {
        let [head, second, number, fourth] = torn::whole(words)?;
        let kind = match KIND.get(head) {
            KIND_UPDATE => Kind::Update {
                home: Addr(HOME.get(second)).line(),
                words: WORDS.get(head) as WordMask,
            },
            KIND_COMMIT => {
                Kind::Commit { sequence: SEQUENCE.get(second), updates: UPDATES.get(fourth) }
            }
            _ => return None,
        };
        let (thread, tx) = (THREAD.get(head) as ThreadId, TX.get(head));
        Some(Metadata { kind, thread, tx, number: NUMBER.get(number) })
    }

    /// The metadata of a line that was read.
    pub(super) fn of_line(line: &LineData) -> Option<Metadata> {
        let words = line[..METADATA_WORDS].try_into().expect("a line has more words than that");
        Metadata::parse(words)
    }
}

/// One thread's log area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    start: Addr,
    pub(super) slots: u64,
    rules: Rules,
}

impl Area {
    pub(super) fn of(context: &DesignContext, thread: ThreadId) -> Area {
        let bytes = context.config.get::<OptRedoConfig>().log_bytes_per_thread.0;
        let start = context.thread_area(thread, bytes);
        let slots = (bytes - HEADER_BYTES) / SLOT_BYTES;
        Area { start, slots, rules: Rules::of(context) }
    }

    /// The word that truncates: everything up to the commit sequence number in it is at home.
    pub(super) fn header(&self) -> Addr {
        self.start
    }

    /// Data line of a record; its metadata line follows.
    pub(super) fn data(&self, number: u64) -> LineAddr {
        self.start.plus(HEADER_BYTES + number % self.slots * SLOT_BYTES).line()
    }

    /// Metadata line of a record.
    pub(super) fn metadata(&self, number: u64) -> LineAddr {
        LineAddr(self.data(number).0 + 1)
    }

    /// All its slots, by the first words of their metadata.
    fn all(&self) -> Slots {
        Slots::new(self.metadata(0).addr(), SLOT_BYTES, self.slots)
    }

    pub(super) fn torn(&self, number: u64) -> bool {
        torn::of_pass(number, self.slots)
    }

    /// Reads the metadata in a slot, whatever its record's number.
    pub(super) fn read(&self, image: &mut SurvivingImage, slot: u64) -> Option<Metadata> {
        let line = self.metadata(slot);
        let head = image.load(line.word(0));
        image.work(Work::Record, 1);
        if KIND.get(head) == 0 {
            return None;
        }
        let [home, sequence, number] = image.load_words(line.word(1));
        Metadata::parse(self.as_checked([head, home, sequence, number]))
    }

    /// Visits the metadata of all slots, in their order: each recovery reads them all.
    pub(super) fn visit_all(&self, image: &mut SurvivingImage, mut visit: impl FnMut(Metadata)) {
        let is_used = |head| KIND.get(head) != 0;
        self.all().visit_used(image, is_used, |words| {
            if let Some(metadata) = Metadata::parse(self.as_checked(*words)) {
                visit(metadata);
            }
        });
    }

    /// Words of metadata for the check of torn bits: if only the first is checked, all others get its bit.
    #[inline]
    fn as_checked(&self, words: [u64; METADATA_WORDS]) -> [u64; METADATA_WORDS] {
        if self.rules.torn_bits_are_checked() { words } else { torn::as_the_first(words) }
    }

    /// Makes an area of unknown content one without records, of which nothing is at home.
    pub(super) fn clear(&self, image: &mut SurvivingImage) {
        image.store(self.header(), 0);
        for slot in 0..self.slots {
            let first = self.metadata(slot).addr();
            let words = (0..METADATA_WORDS as u64).map(|at| first.plus(at * WORD_BYTES));
            words.for_each(|word| image.store(word, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanisms::torn::LOW_63;
    use graven_base::memory::Image;
    use proptest::prelude::*;

    fn any_metadata() -> impl Strategy<Value = Metadata> {
        let update = (0..=HOME.max() / LINE_BYTES, any::<WordMask>())
            .prop_map(|(home, words)| Kind::Update { home: LineAddr(home), words });
        let commit = (0..=LOW_63, 0..=LOW_63)
            .prop_map(|(sequence, updates)| Kind::Commit { sequence, updates });
        let kind = prop_oneof![update, commit];
        (kind, any::<u8>(), 0..=TX.max(), 0..=LOW_63).prop_map(|(kind, thread, tx, number)| {
            Metadata { kind, thread: thread.into(), tx, number }
        })
    }

    fn words(metadata: &Metadata, torn: bool) -> [u64; METADATA_WORDS] {
        metadata.line(torn)[..METADATA_WORDS].try_into().expect("a line is longer")
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let home = LineAddr(0x12_3456_789a);
        let update = Metadata {
            kind: Kind::Update { home, words: 0xa5 },
            thread: 0x7e,
            tx: 0x12_3456_789a,
            number: 77,
        };
        let expected = [0x1234_5678_9a7e_a501, 0x048d_159e_2680, 77, 0];
        assert_eq!(words(&update, false), expected);
        assert_eq!(words(&update, true), expected.map(|word| word | 1 << 63));
        let commit = Metadata { kind: Kind::Commit { sequence: 9, updates: 3 }, ..update };
        assert_eq!(words(&commit, false), [0x1234_5678_9a7e_0002, 9, 77, 3]);
    }

    proptest! {
        #[test]
        fn metadata_comes_back_from_its_line(metadata in any_metadata(), torn: bool) {
            prop_assert_eq!(Metadata::of_line(&metadata.line(torn)), Some(metadata));
        }

        #[test]
        fn metadata_of_all_slots_are_those_that_would_be_read_one_by_one(
            records in prop::collection::vec((0u64..6, any_metadata(), any::<u8>(), any::<bool>()), 0..9),
        ) {
            let area = Area { start: Addr(4096), slots: 6, rules: Rules::default() };
            let mut image = SurvivingImage::new(Image::of_bytes(1 << 16));
            for (slot, metadata, written, torn) in records {
                image.store_line(area.metadata(slot), written, &metadata.line(torn));
            }
            let before = image.words_read();
            let (mut found, mut one_by_one) = (Vec::new(), Vec::new());
            area.visit_all(&mut image, |metadata| found.push(metadata));
            let read = image.words_read() - before;
            image.keep_steps();
            area.visit_all(&mut image, |metadata| one_by_one.push(metadata));
            prop_assert_eq!(found, one_by_one);
            prop_assert_eq!(read, image.words_read() - before - read);
        }

        #[test]
        fn metadata_that_is_partly_written_is_none(
            new in any_metadata(), old in any_metadata(), written in 1u8..15, torn: bool,
        ) {
            let (new, old) = (words(&new, torn), words(&old, !torn));
            let mixed = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { old[i] });
            prop_assert_eq!(Metadata::parse(mixed), None);
        }

        #[test]
        fn metadata_that_is_partly_written_over_zeroes_is_none(
            new in any_metadata(), written in 0u8..15,
        ) {
            let new = words(&new, true);
            let mixed = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { 0 });
            prop_assert_eq!(Metadata::parse(mixed), None);
        }
    }

    #[test]
    fn slots_come_round_behind_the_header_and_passes_alternate() {
        let area = Area { start: Addr(4096), slots: 2, rules: Rules::default() };
        let places: Vec<(u64, bool)> =
            (0..5).map(|n| (area.data(n).addr().0 - 4096, area.torn(n))).collect();
        assert_eq!(places, [(128, true), (256, true), (128, false), (256, false), (128, true)]);
        assert_eq!(area.metadata(1).addr(), Addr(4096 + 256 + 64));
    }
}
