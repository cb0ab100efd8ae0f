//! LALEA's log records with undo data, and recovery along their chains (LALEA §III-A, Fig. 2b).
//!
//! A record is a header of two lines in one bank and up to seven undo blocks of one line, each in any bank.
//!
//! | line | word | bits | content |
//! |---|---|---|---|
//! | 0 | 0-6 | 0-47 | home address of a block |
//! | 0 | 0-6 | 48-55 | which words of the line are the transaction's |
//! | 0 | 7 | 0-2 | `valid_cnt`: blocks of the record |
//! | 1 | | | addresses of blocks; `next_ptr`: the next older record's header ([`Links`]) |
//!
//! The words of blocks that a record does not have are 0. Recovery comes to headers that were durable
//! before the LR register led to them, and to no others; they need no torn bits.

use super::Rules;
use crate::fields::{HOME, WORDS};
use crate::lalea::{ENTRIES, LaleaConfig, Links, line_at, second_line};
use graven_base::memory::{Field, LineAddr, LineData, WordMask};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport};
use graven_machine::request::Mapping;

/// The word of the first line that is no block's.
const VALID_COUNT: usize = ENTRIES;
const VALID: Field = Field::new("valid count", 3, 0);

/// A block as its header has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) home: LineAddr,
    pub(super) words: WordMask,
    pub(super) block: LineAddr,
}

/// The lines of a header.
pub(super) fn header(
    entries: impl ExactSizeIterator<Item = Entry>,
    next: Option<LineAddr>,
) -> [LineData; 2] {
    let mut first = LineData::default();
    let mut links = Links { next: next.unwrap_or_default(), ..Links::default() };
    first[VALID_COUNT] = VALID.put(entries.len() as u64);
    for (at, entry) in entries.enumerate() {
        first[at] = HOME.put(entry.home.addr().0) | WORDS.put(entry.words.into());
        links.entries[at] = entry.block;
    }
    [first, links.line()]
}

/// The blocks of a header.
fn parse(first: LineData, links: &Links) -> impl Iterator<Item = Entry> {
    let valid = first[VALID_COUNT].min(ENTRIES as u64) as usize;
    let entry = |(home, &block): (u64, &LineAddr)| Entry {
        home: line_at(home),
        words: WORDS.get(home) as WordMask,
        block,
    };
    first.into_iter().zip(&links.entries).take(valid).map(entry)
}

/// Follows each register's chain and writes back the words of its records.
pub(super) fn recover(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    if registers.iter().all(|&lr| lr == 0) {
        return report;
    }
    let mapping = Mapping::of(&context.config);
    let banks = (mapping.channels * mapping.banks) as usize;
    let headers = context.config.get::<LaleaConfig>().fh_entries as usize * banks;
    for (thread, &lr) in registers.iter().enumerate() {
        let (mut next, mut left) = (line_at(lr), headers);
        image.addresses_known();
        while next != LineAddr(0) && left > 0 {
            let first = image.load_line(next);
            let links = Links::parse(image.load_line(second_line(&mapping, next)));
            image.work(Work::Record, 1);
            // The addresses of blocks and of the next header are in these links.
            image.follow();
            report.records_scanned += 1;
            for Entry { home, mut words, block } in parse(first, &links) {
                if !Rules::of(context).only_own_words_are_undone() {
                    words = WordMask::MAX;
                }
                image.note(|| {
                    format!("log of thread {thread}: words {words:#010b} of {}", home.addr())
                });
                report.words_undone += image.copy_words(block, home, words);
            }
            next = links.next;
            left -= 1;
            if !Rules::of(context).next_pointer_is_followed() {
                break;
            }
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_entry() -> impl Strategy<Value = Entry> {
        (0..1u64 << 42, any::<WordMask>(), 0..1u64 << 42).prop_map(|(home, words, block)| Entry {
            home: LineAddr(home),
            words,
            block: LineAddr(block),
        })
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let entry = |n: u64| Entry {
            home: LineAddr(0x12_3456_7890 + n),
            words: 0xa5,
            block: LineAddr(0x77_0000 + n),
        };
        let [first, second] = header([0, 1].into_iter().map(entry), Some(LineAddr(0x99)));
        assert_eq!(first, [0x00a5_048d_159e_2400, 0x00a5_048d_159e_2440, 0, 0, 0, 0, 0, 2]);
        assert_eq!(second, [0x1dc0_0000, 0x1dc0_0040, 0, 0, 0, 0, 0, 0x2640]);
        assert_eq!(header([0, 1, 2, 3, 4, 5, 6].into_iter().map(entry), None)[1][VALID_COUNT], 0);
    }

    proptest! {
        #[test]
        fn blocks_come_back_from_their_header(entries in prop::collection::vec(any_entry(), 1..=7)) {
            let [first, second] = header(entries.iter().copied(), None);
            let back: Vec<Entry> = parse(first, &Links::parse(second)).collect();
            prop_assert_eq!(back, entries);
        }
    }
}
