//! 64-bit frequent pattern compression (FPC), the compressor of CompEx (HPCA'16) and CRADE (ICCD'17) and
//! so the one beside DLDC in MorLog (§II-C, §IV-B).
//!
//! MorLog names it and does not define it. FPC itself is by Alameldeen and Wood (UW-Madison TR1500, 2004),
//! for 32-bit words. The 64-bit patterns, their prefixes and their order are those on which three public
//! NVMain-based simulators agree (data encoders `FPCompress` in two versions, and `aFNW`, "64-bit FPC then
//! Flip-N-Write"):
//!
//! | prefix | pattern | payload bits | coded bits |
//! |---|---|---|---|
//! | 000 | all zero | 0 | 3 |
//! | 001 | 8-bit sign-extended | 8 | 11 |
//! | 010 | 16-bit sign-extended | 16 | 19 |
//! | 011 | 32-bit sign-extended | 32 | 35 |
//! | 100 | upper half, the lower one zero | 32 | 35 |
//! | 101 | two halves, each 16-bit sign-extended | 2 × 16 | 35 |
//! | 110 | four times the same 16 bits | 16 | 19 |
//! | 111 | anything else, as it is | 64 | 67 |
//!
//! The lowest prefix that matches is also the shortest code. Decided here: every word has its prefix (one
//! version drops that of uncompressed words, and could not be decoded without a further mark); words are
//! coded one by one, without TR1500's runs of zero words; of the two halves of 101 the lower comes first.

use super::bits::{Bits, Code, Reader};
use super::bytes;

/// Bits of a prefix.
pub const PREFIX_BITS: u32 = 3;

/// Coded size of a word that has no pattern.
pub const WORST_BITS: u32 = PREFIX_BITS + 64;

/// Bits whose equality with the bit below them makes both halves 16-bit sign-extended.
const HALVES: u64 = 0xffff_0000_ffff_0000;

/// Forms of a word; the discriminant is the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Pattern {
    /// All zero.
    Zero = 0b000,
    /// 8-bit sign-extended.
    Byte = 0b001,
    /// 16-bit sign-extended.
    TwoBytes = 0b010,
    /// 32-bit sign-extended.
    Half = 0b011,
    /// The lower half is zero.
    UpperHalf = 0b100,
    /// Two halves, each 16-bit sign-extended.
    TwoHalves = 0b101,
    /// Four times the same 16 bits.
    Repeated = 0b110,
    /// None of these.
    Uncompressed = 0b111,
}

impl Pattern {
    /// Every pattern, by prefix.
    pub const ALL: [Pattern; 8] = [
        Pattern::Zero,
        Pattern::Byte,
        Pattern::TwoBytes,
        Pattern::Half,
        Pattern::UpperHalf,
        Pattern::TwoHalves,
        Pattern::Repeated,
        Pattern::Uncompressed,
    ];

    /// The pattern by which a word is coded: the first that it matches.
    #[inline]
    pub fn of(word: u64) -> Pattern {
        Pattern::ALL[prefix(word)]
    }

    /// Bits after the prefix.
    #[inline]
    pub const fn payload_bits(self) -> u32 {
        PAYLOAD_BITS[self as usize]
    }

    /// Bits of a code with this pattern.
    #[inline]
    pub const fn coded_bits(self) -> u32 {
        PREFIX_BITS + self.payload_bits()
    }
}

const PAYLOAD_BITS: [u32; 8] = [0, 8, 16, 32, 32, 32, 16, 64];

/// The lowest prefix that matches, without branches.
#[inline]
fn prefix(word: u64) -> usize {
    let matches = u32::from(word == 0)
        | u32::from(bytes::signed_widths(word)) << 1
        | u32::from(word as u32 == 0) << 4
        | u32::from((word ^ word << 1) & HALVES == 0) << 5
        | u32::from(word.rotate_left(16) == word) << 6
        | 1 << 7;
    matches.trailing_zeros() as usize & 7
}

/// Size of a word's code.
#[inline]
pub fn coded_bits(word: u64) -> u32 {
    PREFIX_BITS + PAYLOAD_BITS[prefix(word)]
}

/// A word's code, without branches.
#[inline]
pub fn code(word: u64) -> Code {
    let prefix = prefix(word);
    let Source { shift, low, high } = SOURCES[prefix];
    let payload = word >> shift & low | word >> 16 & high;
    Code::new(prefix as u64, PREFIX_BITS, payload, PAYLOAD_BITS[prefix])
}

/// Source of a payload: bits of the word shifted down, and of the upper of two halves.
struct Source {
    shift: u32,
    low: u64,
    high: u64,
}

static SOURCES: [Source; 8] = [
    Source { shift: 0, low: 0, high: 0 },
    Source { shift: 0, low: 0xff, high: 0 },
    Source { shift: 0, low: 0xffff, high: 0 },
    Source { shift: 0, low: 0xffff_ffff, high: 0 },
    Source { shift: 32, low: 0xffff_ffff, high: 0 },
    Source { shift: 0, low: 0xffff, high: 0xffff_0000 },
    Source { shift: 0, low: 0xffff, high: 0 },
    Source { shift: 0, low: u64::MAX, high: 0 },
];

/// Appends a word's code.
#[inline]
pub fn encode(word: u64, bits: &mut Bits) {
    bits.push_code(code(word));
}

/// Reads a word's code.
#[inline]
pub fn decode(reader: &mut Reader<'_>) -> u64 {
    let pattern = Pattern::ALL[reader.read(PREFIX_BITS) as usize];
    let payload = reader.read(pattern.payload_bits());
    match pattern {
        Pattern::Zero => 0,
        Pattern::Byte => payload as i8 as u64,
        Pattern::TwoBytes => payload as i16 as u64,
        Pattern::Half => payload as i32 as u64,
        Pattern::UpperHalf => payload << 32,
        Pattern::TwoHalves => {
            u64::from(payload as i16 as u32) | u64::from((payload >> 16) as i16 as u32) << 32
        }
        Pattern::Repeated => payload * 0x0001_0001_0001_0001,
        Pattern::Uncompressed => payload,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::any_word;
    use super::*;
    use proptest::prelude::*;

    fn coded(word: u64) -> Bits {
        let mut bits = Bits::new();
        encode(word, &mut bits);
        bits
    }

    #[test]
    fn each_pattern_has_its_prefix_and_payload() {
        let cases = [
            (0, 0b000, 0),
            (0x7f, 0b001, 0x7f),
            (-128i64 as u64, 0b001, 0x80),
            (0xffff_ffff_ffff_b6b6, 0b010, 0xb6b6),
            (0x7654_3210, 0b011, 0x7654_3210),
            (0x7654_3210_0000_0000, 0b100, 0x7654_3210),
            (0xffff_beef_0000_3cab, 0b101, 0xbeef_3cab),
            (0xcafe_cafe_cafe_cafe, 0b110, 0xcafe),
            (0x8000_0000, 0b111, 0x8000_0000),
            (0x1234_5678_9abc_def0, 0b111, 0x1234_5678_9abc_def0),
        ];
        for (word, prefix, payload) in cases {
            let bits = coded(word);
            let mut reader = bits.reader();
            assert_eq!(reader.read(PREFIX_BITS), prefix, "{word:#x}");
            assert_eq!(reader.read(64), payload, "{word:#x}");
        }
        assert_eq!(coded(0x1234_5678_9abc_def0).len(), WORST_BITS);
    }

    /// Every pattern's own test, plainly.
    fn matches(pattern: Pattern, word: u64) -> bool {
        let fits = |value: i64, bits: u32| value << (64 - bits) >> (64 - bits) == value;
        let (low, high) = (i64::from(word as i32), i64::from((word >> 32) as i32));
        match pattern {
            Pattern::Zero => word == 0,
            Pattern::Byte => fits(word as i64, 8),
            Pattern::TwoBytes => fits(word as i64, 16),
            Pattern::Half => fits(word as i64, 32),
            Pattern::UpperHalf => low == 0,
            Pattern::TwoHalves => fits(low, 16) && fits(high, 16),
            Pattern::Repeated => (0..4).all(|i| word >> (16 * i) & 0xffff == word & 0xffff),
            Pattern::Uncompressed => true,
        }
    }

    proptest! {
        #[test]
        fn every_word_comes_back(words in prop::collection::vec(any_word(), 1..8)) {
            let mut bits = Bits::new();
            let mut sum = 0;
            for &word in &words {
                encode(word, &mut bits);
                sum += coded_bits(word);
                prop_assert_eq!(bits.len(), sum);
                prop_assert_eq!(Pattern::of(word).coded_bits(), coded_bits(word));
            }
            let mut reader = bits.reader();
            for &word in &words {
                prop_assert_eq!(decode(&mut reader), word);
            }
            prop_assert_eq!(reader.position(), sum);
        }

        #[test]
        fn the_first_that_matches_is_the_shortest(word in any_word()) {
            let all = Pattern::ALL.into_iter().filter(|&p| matches(p, word));
            let first = all.clone().next().expect("the last pattern matches any word");
            prop_assert_eq!(Pattern::of(word), first);
            prop_assert!(all.clone().all(|p| p.coded_bits() >= first.coded_bits()));
        }
    }
}
