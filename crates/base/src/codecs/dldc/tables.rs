//! Tables of DLDC: which pattern to take, and how its code is made.

use super::{Input, Pattern, TAG_BITS};
use crate::codecs::bytes;

/// In place of a tag: no pattern.
pub(super) const RAW: u8 = 8;

/// A tag (or [`RAW`]) and the coded size.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    pub(super) tag: u8,
    pub(super) bits: u8,
}

/// By number of bytes and matching patterns: the pattern to take. Rows 9 and up are never used.
pub(super) static CHOICE: [[Choice; 256]; 16] = choices();

const fn choices() -> [[Choice; 256]; 16] {
    let mut table = [[Choice { tag: RAW, bits: 0 }; 256]; 16];
    let mut input_bytes = 0;
    while input_bytes <= 8 {
        let mut matching = 0;
        while matching < 256 {
            let mut best = Choice { tag: RAW, bits: 8 * input_bytes as u8 };
            let mut tag = 0;
            while tag < 8 {
                let bits = Pattern::ALL[tag].coded_bits(input_bytes as u32) as u8;
                if matching >> tag & 1 == 1 && bits < best.bits {
                    best = Choice { tag: tag as u8, bits };
                }
                tag += 1;
            }
            table[input_bytes][matching] = best;
            matching += 1;
        }
        input_bytes += 1;
    }
    table
}

/// Steps that make the code of a pattern (the last: raw). The input is shifted down, then all of it
/// is taken, or two bits of each byte, or four.
pub(super) struct Recipe {
    pub(super) tag: u8,
    pub(super) tag_bits: u8,
    shift: u32,
    whole: u64,
    twos: u64,
    fours: u64,
}

pub(super) static RECIPES: [Recipe; 9] = {
    const ALL: u64 = u64::MAX;
    const fn whole(tag: u8) -> Recipe {
        Recipe { tag, tag_bits: TAG_BITS as u8, shift: 0, whole: ALL, twos: 0, fours: 0 }
    }
    const fn twos(tag: u8) -> Recipe {
        Recipe { whole: 0, twos: ALL, ..whole(tag) }
    }
    const fn fours(tag: u8) -> Recipe {
        Recipe { whole: 0, fours: ALL, ..whole(tag) }
    }
    [
        whole(0b000),
        twos(0b001),
        fours(0b010),
        whole(0b011),
        whole(0b100),
        whole(0b101),
        Recipe { shift: 4, ..fours(0b110) },
        Recipe { shift: 8, ..whole(0b111) },
        Recipe { tag_bits: 0, ..whole(0) },
    ]
};

impl Recipe {
    /// The payload, without branches; it may have more bits than belong to it.
    #[inline]
    pub(super) fn payload(&self, input: Input) -> u64 {
        let value = input.value >> self.shift;
        value & self.whole
            | bytes::gather_2(value) & self.twos
            | bytes::gather_4(value) & self.fours
    }
}
