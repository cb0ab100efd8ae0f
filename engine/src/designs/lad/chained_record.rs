//! LALEA's log records with undo data, and recovery along their chains (LALEA §III-A, Fig. 2b).
//!
//! A record is a header of two lines in one bank and up to seven undo blocks of one line, each in any bank.
//!
//! | line | word | bits | content |
//! |---|---|---|---|
//! | 0 | 0-6 | 0-47 | home address of a block |
//! | 0 | 0-6 | 48-55 | which words of the line are the transaction's |
//! | 0 | 7 | 0-2 | `valid_cnt`: blocks of the record |
//! | 1 | 0-6 | 0-47 | address of a block |
//! | 1 | 7 | 0-47 | `next_ptr`: first line of the next header, NULL (0) after the last |
//!
//! The words of blocks that a record does not have are 0. Recovery comes to headers that were durable
//! before the LR register led to them, and to no others; they need no torn bits.

use super::Sabotage;
use crate::crash::Medium;
use crate::designs::lalea::{LaleaConfig, Regions};
use crate::designs::{RecoveryReport, Site};
use crate::memory::{Addr, LineAddr, LineData, WordMask};

/// Blocks of a record at most.
pub(super) const BLOCKS_MAX: usize = 7;
const ADDRESS_MASK: u64 = (1 << 48) - 1;
/// Word of each header line that is no block's.
const LAST: usize = BLOCKS_MAX;

/// A block as its header has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) home: LineAddr,
    pub(super) words: WordMask,
    pub(super) block: LineAddr,
}

/// An LR register or a `next_ptr`.
pub(super) fn pointer(header: Option<LineAddr>) -> u64 {
    header.map_or(0, |first| first.addr().0)
}

/// The lines of a header.
pub(super) fn header(
    entries: impl ExactSizeIterator<Item = Entry>,
    next: Option<LineAddr>,
) -> [LineData; 2] {
    let mut lines = [LineData::default(); 2];
    lines[0][LAST] = entries.len() as u64;
    lines[1][LAST] = pointer(next);
    for (at, entry) in entries.enumerate() {
        lines[0][at] = entry.home.addr().0 | u64::from(entry.words) << 48;
        lines[1][at] = entry.block.addr().0;
    }
    lines
}

fn line(address: u64) -> LineAddr {
    Addr(address & ADDRESS_MASK).line()
}

/// A block from the words of its header.
fn parse(home: u64, block: u64) -> Entry {
    let words = (home >> 48) as WordMask;
    Entry { home: line(home), words, block: line(block) }
}

/// Follows each register's chain and writes back the words of its records.
pub(super) fn recover(site: &Site, registers: &[u64], medium: &mut Medium) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    if registers.iter().all(|&lr| lr == 0) {
        return report;
    }
    let regions = Regions::of(site);
    let headers = site.config.get::<LaleaConfig>().fh_entries as usize * regions.banks();
    for (thread, &lr) in registers.iter().enumerate() {
        let (mut next, mut left) = (lr, headers);
        while next != 0 && left > 0 {
            let first = line(next);
            let second = regions.second_line(first);
            report.records_scanned += 1;
            for at in 0..medium.load(first.word(LAST)).min(BLOCKS_MAX as u64) as usize {
                let (home, block) = (medium.load(first.word(at)), medium.load(second.word(at)));
                let Entry { home, mut words, block } = parse(home, block);
                if site.sabotages.has(Sabotage::WholeLinesUndone) {
                    words = WordMask::MAX;
                }
                medium.note(|| {
                    format!("log of thread {thread}: words {words:#010b} of {}", home.addr())
                });
                report.words_undone += medium.copy_words(block, home, words);
            }
            next = medium.load(second.word(LAST));
            left -= 1;
            if site.sabotages.has(Sabotage::NextPointerIgnored) {
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
        (0..=ADDRESS_MASK / 64, any::<WordMask>(), 0..=ADDRESS_MASK / 64).prop_map(
            |(home, words, block)| Entry { home: LineAddr(home), words, block: LineAddr(block) },
        )
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
        assert_eq!(header([0, 1, 2, 3, 4, 5, 6].into_iter().map(entry), None)[1][LAST], 0);
    }

    proptest! {
        #[test]
        fn blocks_come_back_from_their_header(entries in prop::collection::vec(any_entry(), 1..=7)) {
            let [first, second] = header(entries.iter().copied(), None);
            let back: Vec<Entry> =
                (0..first[LAST] as usize).map(|at| parse(first[at], second[at])).collect();
            prop_assert_eq!(back, entries);
        }
    }
}
