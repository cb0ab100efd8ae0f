//! A 64 B block in TLC cells: coded, expanded, and back.
//!
//! A block has 171 cells for its 512 bits and one *tag cell*, whose state says whether the block is encoded
//! and at which level (MorLog §IV-B has an "encoding tag bit"; CRADE needs to know the level as well, and a
//! cell has states enough for both). Raw is state 000, so cells that were never written hold a raw block
//! of zeros. The levels have the cheaper states.
//!
//! The codes of the eight words follow each other without gaps. Cells behind the last of them carry no
//! data and are left as they are: a [`Block`] knows how many it uses, and [`Block::over`] is what the
//! cells hold when it has been written. A block whose codes take 512 bits or more is stored raw.

use super::bits::{Bits, Code, Reader};
use super::expansion::{self, BLOCK_BITS, DATA_CELLS, Level};
use super::planes::Planes;
use super::slde::Coding;
use super::{Codings, dldc, fpc, slde};
use crate::choice;
use crate::memory::LineData;

/// Cells of a block: its data cells and the tag cell.
pub const BLOCK_CELLS: u32 = DATA_CELLS + 1;

/// The tag cell is cell 171.
const TAG_WORD: usize = DATA_CELLS as usize / 64;
const TAG_SHIFT: u32 = DATA_CELLS % 64;

/// States of the tag cell: raw, then the levels from `Two` to `Whole`.
const TAGS: [u8; 6] = [0b000, 0b111, 0b001, 0b110, 0b010, 0b101];

choice! {
    /// Compressors of a memory module.
    pub enum Codec {
        /// None: data are stored as they are.
        Raw = "none",
        /// FPC and expansion coding.
        Crade = "crade",
        /// FPC or, for log data, DLDC; and expansion coding.
        Slde = "slde",
    }
}

impl Codec {
    /// Returns true if blocks are compressed.
    pub const fn compresses(self) -> bool {
        !matches!(self, Codec::Raw)
    }

    /// Returns true if log data may be coded by DLDC.
    pub const fn has_dldc(self) -> bool {
        matches!(self, Codec::Slde)
    }
}

/// The cells of a 64 B block, as bit planes; cell 171 is the tag cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    planes: Planes,
    /// Data cells that carry data.
    used: u8,
}

/// Size of an encoded line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedSize {
    /// Bits of the codes with their tags; 512 for a raw block.
    pub bits: u32,
    /// Use of the cells.
    pub level: Level,
}

impl EncodedSize {
    /// A block that is stored as it is.
    pub const RAW: EncodedSize = EncodedSize { bits: BLOCK_BITS, level: Level::Whole };

    /// Returns true if the block is stored as it is.
    pub const fn is_raw(self) -> bool {
        self.bits == BLOCK_BITS
    }
}

impl Block {
    /// The bit planes.
    #[inline]
    pub const fn planes(&self) -> &Planes {
        &self.planes
    }

    /// State of a cell (0..172).
    pub const fn state(&self, cell: u32) -> u8 {
        let (word, shift) = (cell as usize / 64, cell % 64);
        let [low, middle, high] = &self.planes;
        (low[word] >> shift & 1 | (middle[word] >> shift & 1) << 1 | (high[word] >> shift & 1) << 2)
            as u8
    }

    /// The cells that carry data, and the tag cell.
    #[inline]
    pub fn used(&self) -> [u64; 3] {
        let mut mask = expansion::used_mask(u32::from(self.used));
        mask[TAG_WORD] |= 1 << TAG_SHIFT;
        mask
    }

    /// Returns the content of the cells after this block was written over another.
    #[inline]
    pub fn over(&self, old: &Block) -> Block {
        let used = self.used();
        let planes = std::array::from_fn(|bit| {
            std::array::from_fn(|j| self.planes[bit][j] | old.planes[bit][j] & !used[j])
        });
        Block { planes, used: self.used }
    }

    #[inline]
    fn new(bits: &Bits, level: Level, tag: usize) -> Block {
        let mut planes = expansion::expand(level, bits);
        for (bit, plane) in planes.iter_mut().enumerate() {
            plane[TAG_WORD] |= u64::from(TAGS[tag] >> bit & 1) << TAG_SHIFT;
        }
        Block { planes, used: level.cells(bits.len()) as u8 }
    }

    /// The data cells' planes and the level; `None` for a raw block.
    fn level(&self) -> (Planes, Option<Level>) {
        let state = self.state(DATA_CELLS);
        let tag =
            TAGS.iter().position(|&tag| tag == state).expect("the tag cell has a known state");
        let mut planes = self.planes;
        for plane in &mut planes {
            plane[TAG_WORD] &= !(1 << TAG_SHIFT);
        }
        (planes, tag.checked_sub(1).map(|level| Level::ALL[level]))
    }
}

#[inline]
fn decode_word(reader: &mut Reader<'_>, coding: Coding) -> u64 {
    match coding {
        Coding::Fpc => fpc::decode(reader),
        Coding::Dldc { dirty } => dldc::decode(reader, dirty, false),
        Coding::DldcRaw { dirty } => dldc::decode(reader, dirty, true),
    }
}

/// The codes of a line's words, one after another. All are coded by FPC first, which is cheaper than a
/// branch for each word.
#[inline]
fn compress(line: &LineData, codings: &Codings, bits: &mut Bits) {
    let mut codes = [Code::default(); 8];
    for (code, &word) in codes.iter_mut().zip(line) {
        *code = fpc::code(word);
    }
    let mut left = codings.dldc();
    while left != 0 {
        let index = left.trailing_zeros() as usize;
        left &= left - 1;
        let (word, dirty) = (line[index], codings.dirty(index));
        let (code, raw) = dldc::code(word, dirty);
        // Two assignments, so that the code is stored from registers.
        if raw == codings.is_raw(index) {
            codes[index] = code;
        } else {
            codes[index] = other_way(word, dirty, raw);
        }
    }
    bits.push_codes(&codes);
}

/// A word that has a DLDC pattern and is to be stored raw all the same; the reverse cannot be.
#[cold]
fn other_way(word: u64, dirty: u8, raw: bool) -> Code {
    assert!(!raw, "{word:#x} (dirty: {dirty:#04x}) has no pattern of DLDC");
    dldc::raw_code(word, dirty)
}

/// Encodes a line: compressed as the codings say (`compress`), with the fewest states that hold the
/// result (`expand`), or raw.
///
/// # Panics
/// If a word is to be coded by a DLDC pattern and matches none.
#[inline]
pub fn encode(
    line: &LineData,
    codings: &Codings,
    compress: bool,
    expand: bool,
) -> (Block, EncodedSize) {
    if compress {
        let mut bits = Bits::new();
        self::compress(line, codings, &mut bits);
        if bits.len() < BLOCK_BITS {
            let level = if expand { Level::for_bits(bits.len()) } else { Level::Whole };
            let block = Block::new(&bits, level, 1 + level as usize);
            return (block, EncodedSize { bits: bits.len(), level });
        }
    }
    (Block::new(&Bits::of_line(line), Level::Whole, 0), EncodedSize::RAW)
}

/// Returns the line as it is read back: clean bytes of words that are coded by DLDC are zero.
pub fn decode(block: &Block, codings: &Codings) -> LineData {
    let (planes, level) = block.level();
    let bits = expansion::contract(level.unwrap_or(Level::Whole), &planes);
    let mut reader = bits.reader();
    std::array::from_fn(|index| match level {
        Some(_) => decode_word(&mut reader, codings.get(index)),
        None => slde::kept(bits.words()[index], codings.get(index)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::any_coded_line;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_block_is_small_and_all_zero_at_first() {
        assert_eq!(size_of::<Block>(), 80);
        assert_eq!(decode(&Block::default(), &Codings::default()), [0; 8]);
    }

    #[test]
    fn zeros_take_24_cells_and_leave_the_rest_alone() {
        let (zeros, size) = encode(&[0; 8], &Codings::default(), true, true);
        assert_eq!(size, EncodedSize { bits: 24, level: Level::Two });
        let text = std::array::from_fn(|i| 0x6867_6665_6463_6261 + i as u64);
        let (raw, raw_size) = encode(&text, &Codings::default(), true, true);
        assert!(raw_size.is_raw());
        let after = zeros.over(&raw);
        assert!((0..24).all(|cell| after.state(cell) == zeros.state(cell)));
        assert!((24..171).all(|cell| after.state(cell) == raw.state(cell)));
        assert_eq!(decode(&after, &Codings::default()), [0; 8]);
    }

    #[test]
    fn raw_cells_hold_three_bits_each() {
        let line = std::array::from_fn(|i| 0x0123_4567_89ab_cdef << i);
        let (block, _) = encode(&line, &Codings::default(), false, true);
        for cell in 0..170u32 {
            let bit = |at: u32| line[at as usize / 64] >> (at % 64) & 1;
            let state = bit(3 * cell) | bit(3 * cell + 1) << 1 | bit(3 * cell + 2) << 2;
            assert_eq!(u64::from(block.state(cell)), state);
        }
    }

    proptest! {
        #[test]
        fn every_line_comes_back(
            (line, codings) in any_coded_line(), (before, other) in any_coded_line(),
            compress: bool, expand: bool,
        ) {
            let (block, size) = encode(&line, &codings, compress, expand);
            let (old, _) = encode(&before, &other, true, true);
            let expected: LineData =
                std::array::from_fn(|i| slde::kept(line[i], codings.get(i)));
            prop_assert_eq!(decode(&block, &codings), expected);
            prop_assert_eq!(decode(&block.over(&old), &codings), expected);

            let coded: u32 = (0..8).map(|i| codings.get(i).coded_bits(line[i])).sum();
            if compress && coded < BLOCK_BITS {
                let level = if expand { Level::for_bits(coded) } else { Level::Whole };
                prop_assert_eq!(size, EncodedSize { bits: coded, level });
            } else {
                prop_assert_eq!(size, EncodedSize::RAW);
            }
            prop_assert_eq!(u32::from(block.used), size.level.cells(size.bits));
        }

        #[test]
        fn writing_the_same_again_changes_nothing((line, codings) in any_coded_line()) {
            let (block, _) = encode(&line, &codings, true, true);
            prop_assert_eq!(block.over(&block), block);
        }
    }
}
