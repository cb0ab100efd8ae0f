//! Bit planes: the states of a block's cells, sliced by bit, and the shuffles between a bit string and them.

use super::bits::Bits;

/// Bit `b` of the state of cell `64 j + k` is bit `k` of `planes[b][j]`.
pub type Planes = [[u64; 3]; 3];

/// Every third bit of a word, from bit 0 on, side by side (22 of them).
#[inline]
const fn gather_third(word: u64) -> u64 {
    let word = word & 0x9249_2492_4924_9249;
    let word = (word ^ word >> 2) & 0x30c3_0c30_c30c_30c3;
    let word = (word ^ word >> 4) & 0xf00f_00f0_0f00_f00f;
    let word = (word ^ word >> 8) & 0x00ff_0000_ff00_00ff;
    let word = (word ^ word >> 16) & 0xffff_0000_0000_ffff;
    (word ^ word >> 32) & 0x003f_ffff
}

/// The inverse of [`gather_third`].
#[inline]
const fn scatter_third(packed: u64) -> u64 {
    let word = packed & 0x003f_ffff;
    let word = (word ^ word << 32) & 0xffff_0000_0000_ffff;
    let word = (word ^ word << 16) & 0x00ff_0000_ff00_00ff;
    let word = (word ^ word << 8) & 0xf00f_00f0_0f00_f00f;
    let word = (word ^ word << 4) & 0x30c3_0c30_c30c_30c3;
    (word ^ word << 2) & 0x9249_2492_4924_9249
}

/// Every second bit of a word, from bit 0 on, side by side (32 of them).
#[inline]
const fn gather_second(word: u64) -> u64 {
    let word = word & 0x5555_5555_5555_5555;
    let word = (word ^ word >> 1) & 0x3333_3333_3333_3333;
    let word = (word ^ word >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    let word = (word ^ word >> 4) & 0x00ff_00ff_00ff_00ff;
    let word = (word ^ word >> 8) & 0x0000_ffff_0000_ffff;
    (word ^ word >> 16) & 0xffff_ffff
}

/// The inverse of [`gather_second`].
#[inline]
const fn scatter_second(packed: u64) -> u64 {
    let word = packed & 0xffff_ffff;
    let word = (word ^ word << 16) & 0x0000_ffff_0000_ffff;
    let word = (word ^ word << 8) & 0x00ff_00ff_00ff_00ff;
    let word = (word ^ word << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let word = (word ^ word << 2) & 0x3333_3333_3333_3333;
    (word ^ word << 1) & 0x5555_5555_5555_5555
}

/// Bits 3k, 3k+1 and 3k+2 of the string become bit k of three planes. The first 64 cells take words 0 to 2,
/// of which 64 is no multiple of 3, so the phase turns from word to word.
#[inline]
pub(super) fn split_3(bits: &Bits) -> Planes {
    let mut planes = [[0; 3]; 3];
    for (cells, words) in bits.words().chunks_exact(3).enumerate() {
        for (bit, plane) in planes.iter_mut().enumerate() {
            plane[cells] = gather_third(words[0] >> bit)
                | gather_third(words[1] >> SECOND[bit]) << COUNT_1[bit]
                | gather_third(words[2] >> THIRD[bit]) << COUNT_2[bit];
        }
    }
    planes
}

/// Positions of bits 0, 1 and 2 of a cell in the second and third of three words; and the numbers of
/// these bits in the words before.
const SECOND: [u32; 3] = [2, 0, 1];
const THIRD: [u32; 3] = [1, 2, 0];
const COUNT_1: [u32; 3] = [22, 21, 21];
const COUNT_2: [u32; 3] = [43, 43, 42];

/// The inverse of [`split_3`].
#[inline]
pub(super) fn join_3(planes: &Planes) -> [u64; 9] {
    let mut words = [0; 9];
    for (cells, words) in words.chunks_exact_mut(3).enumerate() {
        for (bit, plane) in planes.iter().enumerate() {
            words[0] |= scatter_third(plane[cells]) << bit;
            words[1] |= scatter_third(plane[cells] >> COUNT_1[bit]) << SECOND[bit];
            words[2] |= scatter_third(plane[cells] >> COUNT_2[bit]) << THIRD[bit];
        }
    }
    words
}

/// Bits 2k and 2k+1 of the string become bit k of two planes.
#[inline]
pub(super) fn split_2(bits: &Bits) -> [[u64; 3]; 2] {
    let words = bits.words();
    std::array::from_fn(|bit| {
        std::array::from_fn(|cells| {
            gather_second(words[2 * cells] >> bit)
                | gather_second(words[2 * cells + 1] >> bit) << 32
        })
    })
}

/// The inverse of [`split_2`].
#[inline]
pub(super) fn join_2(planes: &[[u64; 3]; 2]) -> [u64; 9] {
    let mut words = [0; 9];
    for (bit, plane) in planes.iter().enumerate() {
        for (cells, &states) in plane.iter().enumerate() {
            words[2 * cells] |= scatter_second(states) << bit;
            words[2 * cells + 1] |= scatter_second(states >> 32) << bit;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bit(words: &[u64], at: usize) -> u64 {
        words.get(at / 64).map_or(0, |word| word >> (at % 64) & 1)
    }

    proptest! {
        #[test]
        fn every_bit_goes_to_its_cell(words: [u64; 9], len in 0u32..=513) {
            let bits = Bits::of_words(&words, len);
            let (threes, twos) = (split_3(&bits), split_2(&bits));
            for cell in 0..192 {
                for (b, plane) in threes.iter().enumerate() {
                    prop_assert_eq!(bit(plane, cell), bit(bits.words(), 3 * cell + b));
                }
                for (b, plane) in twos.iter().enumerate() {
                    prop_assert_eq!(bit(plane, cell), bit(bits.words(), 2 * cell + b));
                }
            }
            prop_assert_eq!(&join_3(&threes)[..], &bits.words()[..9]);
            prop_assert_eq!(&join_2(&twos)[..6], &bits.words()[..6]);
        }
    }
}
