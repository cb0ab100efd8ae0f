//! Words and lines of every pattern that the codecs know, from numbers: what property tests and benchmarks code.

use super::slde::{Coding, choose, choose_pair};
use super::{Codings, dldc};

/// Choices that make a word of a sampled line: a seed, two bits of shape for each byte, the
/// pattern, the dirty flags of its bytes, and the selector of its coding. All values are valid.
pub type Choice = (u64, u64, u8, u8, u8);

/// A word close to pattern `shape` modulo 16, or any.
pub fn word(seed: u64, shapes: u64, shape: u8) -> u64 {
    let shift = shapes as u32 % 64;
    match shape % 16 {
        0 => seed,
        1 => 0,
        2 => seed as i8 as u64,
        3 => seed as i16 as u64,
        4 => seed as i32 as u64,
        5 => (seed as i64 >> shift) as u64,
        6 => seed >> shift,
        7 => seed << 32,
        8 => (seed as i64 >> 48 << 32) as u64 | u64::from(seed as i16 as u32),
        9 => u64::from(seed as u16) * 0x0001_0001_0001_0001,
        10 => bytes(seed, 0),
        11 => bytes(seed, 0x5555_5555_5555_5555),
        12 => bytes(seed, u64::MAX),
        _ => bytes(seed, shapes),
    }
}

/// Bytes that are 2-bit, 4-bit or padded 4-bit numbers, or anything, by two bits of `shapes` each.
fn bytes(seed: u64, shapes: u64) -> u64 {
    let mut bytes = seed.to_le_bytes();
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = match shapes >> (8 * i) & 3 {
            0 => ((*byte as i8) >> 6) as u8,
            1 => ((*byte as i8) >> 4) as u8,
            2 => *byte,
            _ => *byte << 4,
        };
    }
    u64::from_le_bytes(bytes)
}

/// A line, and a coding of its words that could have been chosen.
pub fn coded_line(choices: [Choice; 8]) -> ([u64; 8], Codings) {
    let mut codings = Codings::default();
    let mut line = [0; 8];
    for (i, (seed, shapes, shape, dirty, way)) in choices.into_iter().enumerate() {
        let (this, other) = (word(seed, shapes, shape), word(shapes, seed, shape / 16));
        line[i] = this;
        let coding = match way % 4 {
            0 => Coding::Fpc,
            1 => choose(this, dirty).0,
            2 => choose_pair(other, this, dirty).1,
            _ => match dldc::measure(this, dirty).0 {
                Some(_) => Coding::Dldc { dirty },
                None => Coding::DldcRaw { dirty },
            },
        };
        codings.set(i, coding);
    }
    (line, codings)
}
