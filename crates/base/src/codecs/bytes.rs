//! Bit tricks on the eight bytes of a word: dropping some, and packing a part of each.

const LOW_2: u64 = 0x0303_0303_0303_0303;
const LOW_4: u64 = 0x0f0f_0f0f_0f0f_0f0f;
const ONES: u64 = 0x0101_0101_0101_0101;

/// For each set of bytes: its mask, and which of them move down by one place, then two, then four, so that
/// they lie side by side from byte 0 on ("compress" of Hacker's Delight §7-4, on bytes).
static MOVES: [[u64; 4]; 256] = moves();

/// Number of bytes in each set.
static COUNTS: [u8; 256] = counts();

const fn counts() -> [u8; 256] {
    let mut table = [0; 256];
    let mut set = 0;
    while set < 256 {
        table[set] = set.count_ones() as u8;
        set += 1;
    }
    table
}

const fn moves() -> [[u64; 4]; 256] {
    let mut table = [[0; 4]; 256];
    let mut set = 0;
    while set < 256 {
        table[set][0] = mask(set as u8);
        let (mut byte, mut below) = (0, 0);
        while byte < 8 {
            if set >> byte & 1 == 1 {
                let (mut at, distance) = (byte, byte - below);
                let mut step = 0;
                while step < 3 {
                    if distance >> step & 1 == 1 {
                        table[set][step + 1] |= 0xff << (8 * at);
                        at -= 1 << step;
                    }
                    step += 1;
                }
                below += 1;
            }
            byte += 1;
        }
        set += 1;
    }
    table
}

/// All ones in the bytes of the set, zero elsewhere.
#[inline]
pub const fn mask(set: u8) -> u64 {
    // Bit i into byte i, then any nonzero byte into 0xff.
    let spread = (set as u64 * ONES) & 0x8040_2010_0804_0201;
    ((spread + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & ONES) * 0xff
}

/// The bytes of the set, side by side from byte 0 on.
#[inline]
pub(super) fn compress(word: u64, set: u8) -> u64 {
    let [mask, one, two, four] = MOVES[set as usize];
    let mut word = word & mask;
    for (moving, shift) in [(one, 8), (two, 16), (four, 32)] {
        let moved = word & moving;
        word = word ^ moved | moved >> shift;
    }
    word
}

/// The inverse of [`compress`]: bytes outside the set become zero.
#[inline]
pub(super) fn expand(packed: u64, set: u8) -> u64 {
    let [mask, one, two, four] = MOVES[set as usize];
    let mut word = packed;
    for (moving, shift) in [(four, 32), (two, 16), (one, 8)] {
        let moved = word & moving >> shift;
        word = word ^ moved | moved << shift;
    }
    word & mask
}

/// Counts the bytes of a set by a table: where the compiler may not assume a population count,
/// computing it takes a dozen instructions.
#[inline]
pub(super) fn count(set: u8) -> u32 {
    u32::from(COUNTS[set as usize])
}

/// By the leading bits that are not the sign's: whether a number is 8-, 16-, 32-bit sign-extended.
static WIDTHS: [u8; 64] = widths();

const fn widths() -> [u8; 64] {
    let mut table = [0; 64];
    let mut zeros = 0;
    while zeros < 64 {
        table[zeros] =
            (zeros >= 57) as u8 | ((zeros >= 49) as u8) << 1 | ((zeros >= 33) as u8) << 2;
        zeros += 1;
    }
    table
}

/// Returns the widths from which a number can be sign-extended: bit 0 for 8, bit 1 for 16, bit 2
/// for 32 bits.
#[inline]
pub(super) fn signed_widths(word: u64) -> u8 {
    let size = word ^ (word as i64 >> 63) as u64;
    WIDTHS[(size | 1).leading_zeros() as usize & 63]
}

/// The low two bits of each byte, side by side.
#[inline]
pub(super) const fn gather_2(word: u64) -> u64 {
    let word = word & LOW_2;
    let word = (word | word >> 6) & 0x000f_000f_000f_000f;
    let word = (word | word >> 12) & 0x0000_00ff_0000_00ff;
    (word | word >> 24) & 0xffff
}

/// The inverse of [`gather_2`].
#[inline]
pub(super) const fn scatter_2(packed: u64) -> u64 {
    let word = (packed | packed << 24) & 0x0000_00ff_0000_00ff;
    let word = (word | word << 12) & 0x000f_000f_000f_000f;
    (word | word << 6) & LOW_2
}

/// The low four bits of each byte, side by side.
#[inline]
pub(super) const fn gather_4(word: u64) -> u64 {
    let word = word & LOW_4;
    let word = (word | word >> 4) & 0x00ff_00ff_00ff_00ff;
    let word = (word | word >> 8) & 0x0000_ffff_0000_ffff;
    (word | word >> 16) & 0xffff_ffff
}

/// The inverse of [`gather_4`].
#[inline]
pub(super) const fn scatter_4(packed: u64) -> u64 {
    let word = (packed | packed << 16) & 0x0000_ffff_0000_ffff;
    let word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    (word | word << 4) & LOW_4
}

/// Sign-extends the 2-bit number in each byte.
#[inline]
pub(super) const fn sign_extend_2(word: u64) -> u64 {
    word | ((word >> 1 & ONES) * 0xfc)
}

/// Sign-extends the 4-bit number in each byte.
#[inline]
pub(super) const fn sign_extend_4(word: u64) -> u64 {
    word | ((word >> 3 & ONES) * 0xf0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tricks_do_what_they_say(word: u64, set: u8) {
            let bytes = word.to_le_bytes();
            let mut packed = [0; 8];
            let kept = (0..8).filter(|i| set >> i & 1 == 1).map(|i| bytes[i]);
            kept.enumerate().for_each(|(at, byte)| packed[at] = byte);
            prop_assert_eq!(compress(word, set).to_le_bytes(), packed);
            prop_assert_eq!(expand(compress(word, set), set), word & mask(set));
            for (i, &byte) in bytes.iter().enumerate() {
                let expected = if set >> i & 1 == 1 { 0xff } else { 0 };
                prop_assert_eq!(mask(set).to_le_bytes()[i], expected);
                prop_assert_eq!(gather_2(word) >> (2 * i) & 3, u64::from(byte) & 3);
                prop_assert_eq!(gather_4(word) >> (4 * i) & 15, u64::from(byte) & 15);
            }
            prop_assert_eq!(count(set), set.count_ones());
            let number = word as i64 >> (set & 63);
            let widths = u8::from(number == i64::from(number as i8))
                | u8::from(number == i64::from(number as i16)) << 1
                | u8::from(number == i64::from(number as i32)) << 2;
            prop_assert_eq!(signed_widths(number as u64), widths);
            prop_assert_eq!(scatter_2(gather_2(word)), word & LOW_2);
            prop_assert_eq!(scatter_4(gather_4(word)), word & LOW_4);
            let twos = sign_extend_2(word & LOW_2).to_le_bytes();
            let fours = sign_extend_4(word & LOW_4).to_le_bytes();
            for (i, &byte) in bytes.iter().enumerate() {
                prop_assert_eq!(twos[i] as i8, (byte << 6) as i8 >> 6);
                prop_assert_eq!(fours[i] as i8, (byte << 4) as i8 >> 4);
            }
        }
    }
}
