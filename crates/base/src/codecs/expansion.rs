//! Expansion coding: what compression saves is spent on using only the cheap states of a cell.
//!
//! CRADE (ICCD'17) expands a compressed block with the incomplete data mapping (IDM, ICCD'13) that its
//! compression ratio p/q allows (MorLog §IV-B): the IDM with the fewest states whose expanded size still
//! fits the block. MorLog gives neither the mappings nor the thresholds. Here:
//!
//! | level | states | a symbol is | bits in 171 cells |
//! |---|---|---|---|
//! | `Two` | 2 | 1 bit in 1 cell | 171 |
//! | `Three` | 3 | 3 bits in 2 cells | 255 |
//! | `Four` | 4 | 2 bits in 1 cell | 342 |
//! | `Six` | 6 | 5 bits in 2 cells | 425 |
//! | `Whole` | 8 | 3 bits in 1 cell | 513 |
//!
//! A level uses the cheapest states, in [`CHEAPEST_FIRST`] order. Value `v` of a symbol in one cell is the
//! `v`-th cheapest state; in two cells of `s` states it is the `v / s`-th and the `v mod s`-th. With all
//! eight states a cell holds its three bits as they are, so raw data behave as in a plain TLC array.
//! The odd cell of a level that uses pairs is left alone.

use super::bits::Bits;
use super::pairs;
use super::planes::{self, Planes};

/// Cells that hold a 64 B block: ⌈512 / 3⌉ (MorLog §IV-C).
pub const DATA_CELLS: u32 = 171;

/// Bits of a 64 B block.
pub const BLOCK_BITS: u32 = 512;

/// The states of a TLC cell by write cost, the cheapest first; the orders by latency and by energy agree
/// (MorLog Table III).
pub const CHEAPEST_FIRST: [u8; 8] = [0b111, 0b000, 0b001, 0b110, 0b010, 0b101, 0b011, 0b100];

/// Number of states of a cell that are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// Two states: 1 bit in 1 cell.
    Two,
    /// Three states: 3 bits in 2 cells.
    Three,
    /// Four states: 2 bits in 1 cell.
    Four,
    /// Six states: 5 bits in 2 cells.
    Six,
    /// All eight states: 3 bits in 1 cell.
    #[default]
    Whole,
}

impl Level {
    /// Every level, the fewest states first.
    pub const ALL: [Level; 5] = [Level::Two, Level::Three, Level::Four, Level::Six, Level::Whole];

    /// The level with the fewest states that holds a block of `q` coded bits.
    ///
    /// # Panics
    /// If no level does: `q` is more than 513.
    #[inline]
    pub fn for_bits(q: u32) -> Level {
        assert!(q <= Level::Whole.capacity_bits(), "{q} bits do not fit a block");
        let smaller = Level::ALL[..4].iter().filter(|level| level.capacity_bits() < q).count();
        Level::ALL[smaller]
    }

    /// Bits that a block's cells hold.
    #[inline]
    pub const fn capacity_bits(self) -> u32 {
        CAPACITIES[self as usize]
    }

    /// States in use.
    pub const fn states(self) -> u32 {
        match self {
            Level::Two => 2,
            Level::Three => 3,
            Level::Four => 4,
            Level::Six => 6,
            Level::Whole => 8,
        }
    }

    /// Bits of a symbol.
    #[inline]
    pub const fn symbol_bits(self) -> u32 {
        [1, 3, 2, 5, 3][self as usize]
    }

    /// Cells of a symbol.
    #[inline]
    pub const fn symbol_cells(self) -> u32 {
        [1, 2, 1, 2, 1][self as usize]
    }

    /// Cells that hold `q` bits.
    #[inline]
    pub const fn cells(self, q: u32) -> u32 {
        // Divisions by constants.
        match self {
            Level::Two => q,
            Level::Three => q.div_ceil(3) * 2,
            Level::Four => q.div_ceil(2),
            Level::Six => q.div_ceil(5) * 2,
            Level::Whole => q.div_ceil(3),
        }
    }
}

const CAPACITIES: [u32; 5] = {
    let mut bits = [0; 5];
    let mut level = 0;
    while level < 5 {
        let symbols = DATA_CELLS / Level::ALL[level].symbol_cells();
        bits[level] = symbols * Level::ALL[level].symbol_bits();
        level += 1;
    }
    bits
};

/// Compression ratio p/q: bits before compression by bits after, tags included (MorLog §IV-B).
pub fn ratio(p: u32, q: u32) -> f64 {
    f64::from(p) / f64::from(q)
}

/// The cells that hold a bit string; cells beyond it are all in state 000.
///
/// # Panics
/// If the level does not hold the string.
#[inline]
pub fn expand(level: Level, bits: &Bits) -> Planes {
    assert!(bits.len() <= level.capacity_bits(), "{} bits do not fit {level:?}", bits.len());
    let mut planes = match level {
        Level::Two => expand_two(bits),
        Level::Three => pairs::expand::<3>(&pairs::THREE, bits),
        Level::Four => expand_four(bits),
        Level::Six => pairs::expand::<5>(&pairs::SIX, bits),
        Level::Whole => return planes::split_3(bits),
    };
    let used = used_mask(level.cells(bits.len()));
    for plane in &mut planes {
        for (cells, used) in plane.iter_mut().zip(used) {
            *cells &= used;
        }
    }
    planes
}

/// The string that a block's cells hold, zeros after its end included; only states of the level count.
#[inline]
pub fn contract(level: Level, cells: &Planes) -> Bits {
    let words = match level {
        Level::Two => {
            let [low, _, _] = cells;
            [!low[0], !low[1], !low[2], 0, 0, 0, 0, 0, 0]
        }
        Level::Three => pairs::contract::<3>(&pairs::THREE_INVERSE, cells),
        Level::Four => {
            let [low, middle, _] = cells;
            let first = std::array::from_fn(|j| !low[j]);
            planes::join_2(&[first, std::array::from_fn(|j| !(middle[j] ^ first[j]))])
        }
        Level::Six => pairs::contract::<5>(&pairs::SIX_INVERSE, cells),
        Level::Whole => planes::join_3(cells),
    };
    Bits::of_words(&words, level.capacity_bits())
}

/// The first `count` cells.
#[inline]
pub(super) fn used_mask(count: u32) -> [u64; 3] {
    std::array::from_fn(|j| {
        let here = count.saturating_sub(64 * j as u32).min(64);
        super::bits::low(here)
    })
}

/// 0: 111, 1: 000.
#[inline]
fn expand_two(bits: &Bits) -> Planes {
    let words = bits.words();
    [[!words[0], !words[1], !words[2]]; 3]
}

/// 0: 111, 1: 000, 2: 001, 3: 110, in bits of the symbol.
#[inline]
fn expand_four(bits: &Bits) -> Planes {
    let [first, second] = planes::split_2(bits);
    let upper = std::array::from_fn(|j| !(first[j] ^ second[j]));
    [first.map(|word| !word), upper, upper]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_level_uses_as_many_states_as_it_needs() {
        let mut last = None;
        for q in 0..=513 {
            let level = Level::for_bits(q);
            assert!(level.capacity_bits() >= q);
            assert!(level.cells(q) <= DATA_CELLS);
            assert_eq!(level.cells(q), q.div_ceil(level.symbol_bits()) * level.symbol_cells());
            let smaller = Level::ALL.into_iter().filter(|l| l.states() < level.states());
            assert!(smaller.clone().all(|l| l.capacity_bits() < q), "{q} bits at {level:?}");
            assert!(last <= Some(level));
            last = Some(level);
        }
        let capacities = Level::ALL.map(Level::capacity_bits);
        assert_eq!(capacities, [171, 255, 342, 425, 513]);
        for level in Level::ALL {
            let values = 1 << level.symbol_bits();
            assert!(level.states().pow(level.symbol_cells()) >= values, "{level:?}");
        }
    }

    /// Claim `morlog-compression-ratio-def`: p bits before, q after, and the levels by p/q.
    #[test]
    fn levels_by_compression_ratio() {
        assert_eq!(ratio(BLOCK_BITS, 256), 2.0);
        let least = Level::ALL.map(|level| ratio(BLOCK_BITS, level.capacity_bits()));
        let rounded = least.map(|r| format!("{r:.2}"));
        assert_eq!(rounded, ["2.99", "2.01", "1.50", "1.20", "1.00"]);
    }

    fn state(planes: &Planes, cell: usize) -> u8 {
        let bit = |b: usize| (planes[b][cell / 64] >> (cell % 64) & 1) as u8;
        bit(0) | bit(1) << 1 | bit(2) << 2
    }

    fn any_bits() -> impl Strategy<Value = (Level, Bits)> {
        (prop::sample::select(Level::ALL.to_vec()), prop::array::uniform9(any::<u64>()), 0u32..=513)
            .prop_map(|(level, words, len)| {
                (level, Bits::of_words(&words, len.min(level.capacity_bits())))
            })
    }

    proptest! {
        #[test]
        fn every_string_comes_back((level, bits) in any_bits()) {
            let back = contract(level, &expand(level, &bits));
            let mut words = [0; 9];
            words.copy_from_slice(&back.words()[..9]);
            prop_assert_eq!(Bits::of_words(&words, bits.len()), bits);
        }

        #[test]
        fn symbols_lie_in_the_cheapest_states((level, bits) in any_bits()) {
            let planes = expand(level, &bits);
            let mut reader = bits.reader();
            let (states, used) = (level.states() as usize, level.cells(bits.len()) as usize);
            let mut cell = 0;
            while cell < used {
                let value = reader.read(level.symbol_bits()) as usize;
                if level == Level::Whole {
                    prop_assert_eq!(state(&planes, cell) as usize, value);
                } else if level.symbol_cells() == 1 {
                    prop_assert_eq!(state(&planes, cell), CHEAPEST_FIRST[value]);
                } else {
                    prop_assert_eq!(state(&planes, cell), CHEAPEST_FIRST[value / states]);
                    prop_assert_eq!(state(&planes, cell + 1), CHEAPEST_FIRST[value % states]);
                }
                cell += level.symbol_cells() as usize;
            }
            prop_assert!((used..192).all(|idle| state(&planes, idle) == 0));
        }
    }
}
