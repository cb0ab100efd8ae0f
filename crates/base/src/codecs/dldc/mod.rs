//! Differential log data compression (DLDC): MorLog §IV-A, Table II.
//!
//! The input is an undo or redo word and its dirty flag, one bit for each byte (bit `i`: byte `i`). Clean
//! bytes are discarded; the dirty ones, in their order, are a number of N bits. If it matches a pattern,
//! the code is the pattern's tag and a payload:
//!
//! | tag | pattern | coded bits |
//! |---|---|---|
//! | 000 | all zero | 3 |
//! | 001 | every byte 2-bit sign-extended | N/4 + 3 |
//! | 010 | every byte 4-bit sign-extended | N/2 + 3 |
//! | 011 | 1-byte sign-extended | 11 |
//! | 100 | 2-byte sign-extended | 19 |
//! | 101 | 4-byte sign-extended | 35 |
//! | 110 | every byte a 4-bit number, padded with zero below | N/2 + 3 |
//! | 111 | the least significant byte is zero | N - 5 |
//!
//! Decided here, where the paper is silent: of the patterns that match, the smallest code is taken (ties:
//! the lowest tag), if it is smaller than N bits. Otherwise the dirty bytes are stored as they are and
//! without a tag. All eight tags are taken, so it is the encoding type flag that distinguishes this
//! ([`super::slde`]).
//!
//! In the bit string the tag comes first and the least significant byte of the payload next; Table II
//! prints the tag as the most significant digits ([`Pattern::code`]).

mod tables;

use super::bits::{Bits, Code, Reader, low};
use super::bytes;
use tables::{CHOICE, Choice, RAW, RECIPES};

/// Bits of a tag.
pub const TAG_BITS: u32 = 3;

/// A data pattern; the discriminant is the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Pattern {
    /// All zero.
    Zero = 0b000,
    /// Every byte is a 2-bit number, sign-extended.
    TwoBitsEach = 0b001,
    /// Every byte is a 4-bit number, sign-extended.
    FourBitsEach = 0b010,
    /// The whole is a 1-byte number, sign-extended.
    OneByte = 0b011,
    /// The whole is a 2-byte number, sign-extended.
    TwoBytes = 0b100,
    /// The whole is a 4-byte number, sign-extended.
    FourBytes = 0b101,
    /// Every byte has a zero lower half.
    UpperHalves = 0b110,
    /// The least significant byte is zero.
    LowByteZero = 0b111,
}

impl Pattern {
    /// Every pattern, by tag.
    pub const ALL: [Pattern; 8] = [
        Pattern::Zero,
        Pattern::TwoBitsEach,
        Pattern::FourBitsEach,
        Pattern::OneByte,
        Pattern::TwoBytes,
        Pattern::FourBytes,
        Pattern::UpperHalves,
        Pattern::LowByteZero,
    ];

    /// Payload bits for an input of some bytes.
    #[inline]
    pub const fn payload_bits(self, input_bytes: u32) -> u32 {
        match self {
            Pattern::Zero => 0,
            Pattern::TwoBitsEach => 2 * input_bytes,
            Pattern::FourBitsEach | Pattern::UpperHalves => 4 * input_bytes,
            Pattern::OneByte => 8,
            Pattern::TwoBytes => 16,
            Pattern::FourBytes => 32,
            Pattern::LowByteZero => 8 * input_bytes.saturating_sub(1),
        }
    }

    /// Bits of a code with this pattern, for an input of some bytes.
    #[inline]
    pub const fn coded_bits(self, input_bytes: u32) -> u32 {
        TAG_BITS + self.payload_bits(input_bytes)
    }

    /// The payload of an input that matches.
    #[inline]
    fn payload(self, input: Input) -> u64 {
        RECIPES[self as usize].payload(input) & low(self.payload_bits(input.bytes))
    }

    /// The input that had this payload.
    #[inline]
    fn restore(self, payload: u64, input_bytes: u32) -> u64 {
        let value = match self {
            Pattern::Zero => 0,
            Pattern::TwoBitsEach => bytes::sign_extend_2(bytes::scatter_2(payload)),
            Pattern::FourBitsEach => bytes::sign_extend_4(bytes::scatter_4(payload)),
            Pattern::OneByte => payload as i8 as u64,
            Pattern::TwoBytes => payload as i16 as u64,
            Pattern::FourBytes => payload as i32 as u64,
            Pattern::UpperHalves => bytes::scatter_4(payload) << 4,
            Pattern::LowByteZero => payload << 8,
        };
        value & low(8 * input_bytes)
    }

    /// The code as Table II prints it: the tag, then the payload.
    pub fn code(self, input: Input) -> u64 {
        (self as u64) << self.payload_bits(input.bytes) | self.payload(input)
    }
}

/// Rest of a word when its clean bytes are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// The dirty bytes, the lowest in the lowest place.
    pub value: u64,
    /// Number of them (0..=8).
    pub bytes: u32,
}

impl Input {
    /// The dirty bytes of a word.
    #[inline]
    pub fn of(word: u64, dirty: u8) -> Input {
        Input { value: bytes::compress(word, dirty), bytes: bytes::count(dirty) }
    }

    /// Returns true if it matches a pattern (which may yet be no gain).
    pub fn matches(self, pattern: Pattern) -> bool {
        self.matching() >> pattern as u8 & 1 == 1
    }

    /// The patterns that it matches: bit `i` is tag `i`.
    #[inline]
    fn matching(self) -> usize {
        let value = self.value;
        let unused = (64 - 8 * self.bytes) & 63;
        let signed = ((value << unused) as i64 >> unused) as u64;
        let runs = value ^ value << 1;
        usize::from(value == 0)
            | usize::from(runs & 0xfcfc_fcfc_fcfc_fcfc == 0) << 1
            | usize::from(runs & 0xf0f0_f0f0_f0f0_f0f0 == 0) << 2
            | usize::from(bytes::signed_widths(signed)) << 3
            | usize::from(value & 0x0f0f_0f0f_0f0f_0f0f == 0) << 6
            | usize::from(value as u8 == 0) << 7
    }

    #[inline]
    fn choice(self) -> Choice {
        CHOICE[self.bytes as usize & 15][self.matching()]
    }

    /// The pattern by which it is coded, if one makes it smaller, and the coded size.
    #[inline]
    pub fn measure(self) -> (Option<Pattern>, u32) {
        let choice = self.choice();
        (Pattern::ALL.get(choice.tag as usize).copied(), u32::from(choice.bits))
    }
}

/// The pattern (`None`: raw) by which a word's dirty bytes are coded, and the coded size.
#[inline]
pub fn measure(word: u64, dirty: u8) -> (Option<Pattern>, u32) {
    Input::of(word, dirty).measure()
}

/// The code of a word's dirty bytes, and whether it has no pattern.
#[inline]
pub fn code(word: u64, dirty: u8) -> (Code, bool) {
    let input = Input::of(word, dirty);
    let Choice { tag, bits } = input.choice();
    let recipe = &RECIPES[tag as usize];
    let tag_bits = u32::from(recipe.tag_bits);
    let payload_bits = u32::from(bits) - tag_bits;
    let payload = recipe.payload(input) & low(payload_bits);
    (Code::new(u64::from(recipe.tag), tag_bits, payload, payload_bits), tag == RAW)
}

/// The dirty bytes of a word as they are.
#[inline]
pub fn raw_code(word: u64, dirty: u8) -> Code {
    Code::new(0, 0, bytes::compress(word, dirty), 8 * bytes::count(dirty))
}

/// Returns the coded size of a word, and true before it if its dirty bytes have no pattern (are
/// stored raw).
#[inline]
pub fn size(word: u64, dirty: u8) -> (bool, u32) {
    let Choice { tag, bits } = Input::of(word, dirty).choice();
    (tag == RAW, u32::from(bits))
}

/// Appends the code of a word's dirty bytes; returns whether it has no pattern.
#[inline]
pub fn encode(word: u64, dirty: u8, bits: &mut Bits) -> bool {
    let (code, raw) = code(word, dirty);
    bits.push_code(code);
    raw
}

/// Reads the code of a word's dirty bytes; clean bytes come back zero.
#[inline]
pub fn decode(reader: &mut Reader<'_>, dirty: u8, raw: bool) -> u64 {
    let input_bytes = bytes::count(dirty);
    let value = if raw {
        reader.read(8 * input_bytes)
    } else {
        let pattern = Pattern::ALL[reader.read(TAG_BITS) as usize];
        pattern.restore(reader.read(pattern.payload_bits(input_bytes)), input_bytes)
    };
    bytes::expand(value, dirty)
}

#[cfg(test)]
mod tests {
    use super::super::testing::any_word;
    use super::*;
    use proptest::prelude::*;

    /// A row of Table II: input and its bits, tag, printed code, printed reduction in bits.
    const TABLE_II: [(u64, u32, u8, u64, u32); 8] = [
        (0x0000_0000, 32, 0b000, 0x0, 32 - 3),
        // Printed as 0x01F20101; see the test below.
        (0x01fe_0101, 32, 0b001, 0x165, 3 * 32 / 4 - 3),
        (0x03f9_05fe, 32, 0b010, 0x2395e, 32 / 2 - 3),
        (0xff_ffff_ff80, 40, 0b011, 0x380, 40 - 11),
        (0x0000_7fff, 32, 0b100, 0x47fff, 32 - 19),
        (0xff_8000_0000, 40, 0b101, 0x5_8000_0000, 40 - 35),
        (0x1020_3040, 32, 0b110, 0x61234, 32 / 2 - 3),
        (0x12_3456_7800, 40, 0b111, 0x7_1234_5678, 5),
    ];

    /// Claims `morlog-dldc-000-example`, `morlog-dldc-001-example`, `morlog-dldc-010-example`, `morlog-dldc-011-example`,
    /// `morlog-dldc-100-example`, `morlog-dldc-101-example`, `morlog-dldc-110-example`, `morlog-dldc-111-example`,
    /// `morlog-dldc-tag-space`.
    #[test]
    fn table_ii_bit_for_bit() {
        for (tag, (value, n, printed_tag, code, reduction)) in TABLE_II.into_iter().enumerate() {
            let (input, pattern) = (Input { value, bytes: n / 8 }, Pattern::ALL[tag]);
            assert_eq!(pattern as u8, printed_tag);
            assert_eq!(input.measure().0, Some(pattern), "{value:#x}");
            assert_eq!(pattern.code(input), code, "{value:#x}");
            assert_eq!(n - input.measure().1, reduction, "{value:#x}");
            let payload = code & low(pattern.payload_bits(n / 8));
            assert_eq!(pattern.restore(payload, n / 8), value);
        }
    }

    /// Claim `morlog-dldc-001-example`: 0xF2 is no 2-bit number; with 0xFE the printed code comes out.
    #[test]
    fn row_001_is_a_misprint() {
        let printed = Input { value: 0x01f2_0101, bytes: 4 };
        assert!(!printed.matches(Pattern::TwoBitsEach));
        assert_eq!(printed.measure(), (None, 32));
        let corrected = Input { value: 0x01fe_0101, bytes: 4 };
        assert_eq!(Pattern::TwoBitsEach.code(corrected), 0x165);
    }

    /// Claim `morlog-dldc-cumulative`.
    #[test]
    fn the_shares_of_table_ii_add_up() {
        let tenths: u32 = [93, 45, 59, 44, 14, 38, 104, 28].into_iter().sum();
        assert_eq!(tenths, 425);
    }

    /// The patterns, plainly: a list of bytes or a sign-extended whole.
    fn plainly(pattern: Pattern, input: Input) -> bool {
        let all = input.value.to_le_bytes();
        let dirty = &all[..input.bytes as usize];
        let whole = |bits: u32| {
            let top = 8 * input.bytes;
            let shift = 64 - top.max(1);
            let value = (input.value << shift) as i64 >> shift;
            value << (64 - bits) >> (64 - bits) == value
        };
        match pattern {
            Pattern::Zero => dirty.iter().all(|&byte| byte == 0),
            Pattern::TwoBitsEach => dirty.iter().all(|&b| (-2..2).contains(&(b as i8))),
            Pattern::FourBitsEach => dirty.iter().all(|&b| (-8..8).contains(&(b as i8))),
            Pattern::OneByte => whole(8),
            Pattern::TwoBytes => whole(16),
            Pattern::FourBytes => whole(32),
            Pattern::UpperHalves => dirty.iter().all(|&byte| byte & 15 == 0),
            Pattern::LowByteZero => all[0] == 0,
        }
    }

    proptest! {
        #[test]
        fn dirty_bytes_come_back_and_clean_ones_are_zero(word in any_word(), dirty: u8) {
            let mut bits = Bits::new();
            let raw = encode(word, dirty, &mut bits);
            let (pattern, coded) = measure(word, dirty);
            prop_assert_eq!((raw, bits.len()), (pattern.is_none(), coded));
            prop_assert_eq!(size(word, dirty), (raw, coded));
            let mut reader = bits.reader();
            let expected = word & bytes::mask(dirty);
            prop_assert_eq!(decode(&mut reader, dirty, raw), expected);
            prop_assert_eq!(reader.position(), bits.len());

            let mut raw = Bits::new();
            raw.push_code(raw_code(word, dirty));
            prop_assert_eq!(raw.len(), 8 * dirty.count_ones());
            prop_assert_eq!(decode(&mut raw.reader(), dirty, true), expected);
        }

        #[test]
        fn the_smallest_pattern_that_gains_is_taken(word in any_word(), dirty: u8) {
            let input = Input::of(word, dirty);
            let gains = Pattern::ALL.into_iter().filter(|&p| {
                plainly(p, input) && p.coded_bits(input.bytes) < 8 * input.bytes
            });
            let best = gains.min_by_key(|&p| (p.coded_bits(input.bytes), p));
            let bits = best.map_or(8 * input.bytes, |p| p.coded_bits(input.bytes));
            prop_assert_eq!(input.measure(), (best, bits));
            for pattern in Pattern::ALL.into_iter().filter(|_| dirty != 0) {
                prop_assert_eq!(input.matches(pattern), plainly(pattern, input));
            }
        }

        #[test]
        fn every_match_can_be_undone(word in any_word(), dirty: u8) {
            let input = Input::of(word, dirty);
            for pattern in Pattern::ALL.into_iter().filter(|&p| input.matches(p)) {
                prop_assert_eq!(pattern.restore(pattern.payload(input), input.bytes), input.value);
            }
        }
    }
}
