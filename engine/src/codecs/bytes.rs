//! Bit tricks on the eight bytes of a word: dropping some, and packing a part of each.

const LOW_2: u64 = 0x0303_0303_0303_0303;
const LOW_4: u64 = 0x0f0f_0f0f_0f0f_0f0f;
const ONES: u64 = 0x0101_0101_0101_0101;

/// For each set of bytes: which of them move down by one place, then two, then four, so that they lie
/// side by side from byte 0 on ("compress" of Hacker's Delight §7-4, on bytes).
static MOVES: [[u64; 3]; 256] = moves();

const fn moves() -> [[u64; 3]; 256] {
    let mut table = [[0; 3]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut byte, mut below) = (0, 0);
        while byte < 8 {
            if set >> byte & 1 == 1 {
                let (mut at, distance) = (byte, byte - below);
                let mut step = 0;
                while step < 3 {
                    if distance >> step & 1 == 1 {
                        table[set][step] |= 0xff << (8 * at);
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
pub(super) const fn mask(set: u8) -> u64 {
    // Bit i into byte i, then any nonzero byte into 0xff.
    let spread = (set as u64 * ONES) & 0x8040_2010_0804_0201;
    ((spread + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & ONES) * 0xff
}

/// The bytes of the set, side by side from byte 0 on.
#[inline]
pub(super) fn compress(word: u64, set: u8) -> u64 {
    let [one, two, four] = MOVES[set as usize];
    let mut word = word & mask(set);
    for (moving, shift) in [(one, 8), (two, 16), (four, 32)] {
        let moved = word & moving;
        word = word ^ moved | moved >> shift;
    }
    word
}

/// The inverse of [`compress`]: bytes outside the set become zero.
#[inline]
pub(super) fn expand(packed: u64, set: u8) -> u64 {
    let [one, two, four] = MOVES[set as usize];
    let mut word = packed;
    for (moving, shift) in [(four, 32), (two, 16), (one, 8)] {
        let moved = word & moving >> shift;
        word = word ^ moved | moved << shift;
    }
    word & mask(set)
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
    word | (word >> 1 & ONES) * 0xfc
}

/// Sign-extends the 4-bit number in each byte.
#[inline]
pub(super) const fn sign_extend_4(word: u64) -> u64 {
    word | (word >> 3 & ONES) * 0xf0
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
            for i in 0..8 {
                let expected = if set >> i & 1 == 1 { 0xff } else { 0 };
                prop_assert_eq!(mask(set).to_le_bytes()[i], expected);
                prop_assert_eq!(gather_2(word) >> (2 * i) & 3, u64::from(bytes[i]) & 3);
                prop_assert_eq!(gather_4(word) >> (4 * i) & 15, u64::from(bytes[i]) & 15);
            }
            prop_assert_eq!(scatter_2(gather_2(word)), word & LOW_2);
            prop_assert_eq!(scatter_4(gather_4(word)), word & LOW_4);
            let twos = sign_extend_2(word & LOW_2).to_le_bytes();
            let fours = sign_extend_4(word & LOW_4).to_le_bytes();
            for i in 0..8 {
                prop_assert_eq!(twos[i] as i8, (bytes[i] << 6) as i8 >> 6);
                prop_assert_eq!(fours[i] as i8, (bytes[i] << 4) as i8 >> 4);
            }
        }
    }
}
