//! Triple-level-cell (TLC) RRAM: what it costs to program cells (MorLog §IV-C, §VI-A, Table III).
//!
//! Writes compare first (data-comparison write, DCW): only cells whose state changes are programmed. They
//! are programmed in parallel, each until its state verifies, so a block takes as long as its slowest
//! programmed cell; the paper does not say so, but it is the usual reading of latencies by state. The
//! energies add up. The tag cell is a cell like the others.

use graven_base::codecs::Block;

/// States of a cell.
pub const STATES: usize = 8;

/// Cost of programming a cell, by the state that it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlcTable {
    /// Write latency.
    pub latency_ps: [u32; STATES],
    /// Write energy per cell.
    pub energy_fj: [u64; STATES],
}

impl TlcTable {
    /// TLC RRAM of MorLog's Table III, states 000 to 111.
    pub const MORLOG: TlcTable = TlcTable {
        latency_ps: [15_200, 46_800, 98_300, 143_000, 150_000, 101_000, 52_700, 12_100],
        energy_fj: [2_000, 6_700, 19_300, 35_100, 35_600, 19_600, 8_500, 1_500],
    };
}

impl Default for TlcTable {
    fn default() -> Self {
        TlcTable::MORLOG
    }
}

/// Cells that one write of a block programmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Programming {
    /// Cells programmed.
    pub cells: u32,
    /// Latency of the slowest of them; 0 if there was none.
    pub latency_ps: u32,
    /// Energy of all of them.
    pub energy_fj: u64,
    /// Number of cells that got each state.
    pub by_state: [u32; STATES],
}

/// The cells (bit `k` of word `j`: cell `64 j + k`) that a write of one block over another programs.
#[inline]
pub fn changed(old: &Block, new: &Block) -> [u64; 3] {
    let (used, old, new) = (new.used(), old.planes(), new.planes());
    std::array::from_fn(|j| {
        let differs = (0..3).fold(0, |any, bit| any | old[bit][j] ^ new[bit][j]);
        differs & used[j]
    })
}

/// Programs a block over another: data-comparison write, by cells.
#[inline]
pub fn program(old: &Block, new: &Block, table: &TlcTable) -> Programming {
    let changed = changed(old, new);
    if changed == [0; 3] {
        return Programming::default();
    }
    program_cells(&changed, new, table)
}

/// Programs the given cells to their states in a block.
#[inline]
pub(super) fn program_cells(changed: &[u64; 3], new: &Block, table: &TlcTable) -> Programming {
    let [low, middle, high] = new.planes();
    let mut by_state = [0; STATES];
    for (j, &changed) in changed.iter().enumerate() {
        for (state, count) in by_state.iter_mut().enumerate() {
            let matches =
                |plane: u64, bit: usize| if state >> bit & 1 == 1 { plane } else { !plane };
            let cells = changed & matches(low[j], 0) & matches(middle[j], 1) & matches(high[j], 2);
            *count += cells.count_ones();
        }
    }
    let mut sum = Programming { by_state, ..Programming::default() };
    for (state, &count) in by_state.iter().enumerate() {
        sum.cells += count;
        sum.energy_fj += u64::from(count) * table.energy_fj[state];
        sum.latency_ps = sum.latency_ps.max(if count > 0 { table.latency_ps[state] } else { 0 });
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::testing::any_coded_line;
    use graven_base::codecs::expansion::{CHEAPEST_FIRST, DATA_CELLS};
    use graven_base::codecs::{BLOCK_CELLS, Codings, encode};
    use proptest::prelude::*;

    const TABLE: TlcTable = TlcTable::MORLOG;

    fn raw(line: [u64; 8]) -> Block {
        encode(&line, &Codings::default(), false, false).0
    }

    /// Claim `morlog-tlc-mean-energy`, and the mean latency, which the paper does not quote.
    #[test]
    fn mean_energy_and_latency_of_a_state() {
        let sum: u64 = TABLE.energy_fj.into_iter().sum();
        assert_eq!(sum as f64 / 8.0 / 1000.0, 16.0375);
        let sum: u32 = TABLE.latency_ps.into_iter().sum();
        assert_eq!(f64::from(sum) / 8.0 / 1000.0, 77.3875);
    }

    /// Claim `morlog-tlc-state-order`: latency and energy agree on it.
    #[test]
    fn states_have_one_order_of_cost() {
        let states = CHEAPEST_FIRST.map(usize::from);
        assert!(states.is_sorted_by_key(|&state| TABLE.latency_ps[state]));
        assert!(states.is_sorted_by_key(|&state| TABLE.energy_fj[state]));
        assert_eq!(states.iter().fold(0u8, |seen, state| seen | 1 << state), 0xff);
    }

    /// Claims `morlog-slde-codec-energy`, `morlog-slde-energy-share`: 1.4 pJ of encoding in a block that
    /// programs all its cells, at the mean energy.
    #[test]
    fn encoding_is_less_than_a_thousandth_of_the_write_energy() {
        let percent = |cells: u32| 100.0 * 1.4 / (f64::from(cells) * 16.0);
        assert_eq!(format!("{:.4}", percent(DATA_CELLS)), "0.0512");
        assert!(percent(DATA_CELLS) < 0.1);
        // With DCW fewer cells may be programmed; from 88 on the claim holds.
        assert!(percent(88) < 0.1 && percent(87) > 0.1);
    }

    #[test]
    fn nothing_changes_nothing_is_programmed() {
        let block = raw([0x1234; 8]);
        assert_eq!(program(&block, &block, &TABLE), Programming::default());
        assert_eq!(program(&Block::default(), &raw([0; 8]), &TABLE), Programming::default());
    }

    #[test]
    fn the_slowest_programmed_cell_is_the_latency() {
        // Cells 0, 1, 2 to 111, 001, 110; the others stay at 000.
        let write = program(&Block::default(), &raw([0b110_001_111, 0, 0, 0, 0, 0, 0, 0]), &TABLE);
        assert_eq!(write.cells, 3);
        assert_eq!(write.latency_ps, 52_700);
        assert_eq!(write.energy_fj, 1_500 + 6_700 + 8_500);
        assert_eq!(write.by_state, [0, 1, 0, 0, 0, 0, 1, 1]);
        // Back to 000 is the fast way.
        let zeros = raw([0; 8]);
        let back = program(&raw([0b110_001_111, 0, 0, 0, 0, 0, 0, 0]), &zeros, &TABLE);
        assert_eq!((back.cells, back.latency_ps, back.energy_fj), (3, 15_200, 6_000));
    }

    #[test]
    fn the_tag_cell_is_programmed_too() {
        let zeros = encode(&[0; 8], &Codings::default(), true, true).0;
        let write = program(&Block::default(), &zeros, &TABLE);
        // 24 bits of zeros, a cell each, and the tag of level `Two`: all 111.
        assert_eq!(write.cells, 25);
        assert_eq!(write.by_state[0b111], 25);
        assert_eq!(write.latency_ps, 12_100);
    }

    /// The kind of example that Fig. 4 gives: the log entry of a word programs far more bits than the
    /// word's update. The figure's operands are only in its drawing; these are our own.
    #[test]
    fn figure_4_kind_of_example() {
        let (old, new) = (0x0000_7f3a_52c4_9e18_u64, 0x0000_7f3a_52c4_1fa5_u64);
        let in_place = (old ^ new).count_ones();
        // The log's cells held other words; FPC finds no pattern in either word, and DCW compares with
        // what was there.
        let before = [0x0000_7f11_0e6d_35c7_u64, 0x0000_7f11_0e6d_b86a];
        let logged: u32 = [old, new].iter().zip(before).map(|(w, b)| (w ^ b).count_ones()).sum();
        assert_eq!(graven_base::codecs::fpc::coded_bits(old), 67);
        assert_eq!((in_place, logged), (8, 47));

        // And in cells: the log block against the data block.
        let block = |words: [u64; 2]| {
            encode(&[words[0], words[1], 0, 0, 0, 0, 0, 0], &Codings::default(), true, false).0
        };
        let entry = program(&block(before), &block([old, new]), &TABLE);
        let update = program(&block([old, 0]), &block([new, 0]), &TABLE);
        assert!(entry.cells > 3 * update.cells, "{} and {}", entry.cells, update.cells);
    }

    proptest! {
        #[test]
        fn cells_are_counted_as_one_by_one(
            (line, codings) in any_coded_line(), (other, others) in any_coded_line(),
            flags in 0u8..16,
        ) {
            let flag = |bit: u8| flags >> bit & 1 == 1;
            let old = encode(&line, &codings, flag(0), flag(1)).0;
            let new = encode(&other, &others, flag(2), flag(3)).0;
            let mut expected = Programming::default();
            let used = new.used();
            for cell in (0..BLOCK_CELLS).filter(|&c| used[c as usize / 64] >> (c % 64) & 1 == 1) {
                let state = new.state(cell) as usize;
                if state != old.state(cell) as usize {
                    expected.cells += 1;
                    expected.latency_ps = expected.latency_ps.max(TABLE.latency_ps[state]);
                    expected.energy_fj += TABLE.energy_fj[state];
                    expected.by_state[state] += 1;
                }
            }
            prop_assert_eq!(program(&old, &new, &TABLE), expected);
            let after = new.over(&old);
            prop_assert_eq!(program(&after, &new, &TABLE), Programming::default());
        }
    }
}
