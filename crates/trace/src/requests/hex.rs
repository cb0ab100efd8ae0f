//! Hexadecimal digits.

use graven_base::memory::{LINE_BYTES, LineData, WORD_BYTES};

/// Digits of one line of memory.
pub const LINE_DIGITS: usize = LINE_BYTES as usize * 2;

const NONE: u8 = 0xff;

/// Value of each byte as a hexadecimal digit, or [`NONE`].
const DIGIT: [u8; 256] = {
    let mut table = [NONE; 256];
    let mut i = 0;
    while i < 10 {
        table[b'0' as usize + i] = i as u8;
        i += 1;
    }
    let mut i = 0;
    while i < 6 {
        table[b'a' as usize + i] = 10 + i as u8;
        table[b'A' as usize + i] = 10 + i as u8;
        i += 1;
    }
    table
};

/// The value of a digit.
#[inline]
pub fn digit(byte: u8) -> Option<u64> {
    let value = DIGIT[byte as usize];
    (value != NONE).then_some(value.into())
}

/// A number of up to 16 digits, with or without `0x`.
pub fn number(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut value = 0;
    for &byte in digits {
        value = value << 4 | digit(byte)?;
    }
    Some(value)
}

/// A line of memory, first byte first.
#[inline]
pub fn line(text: &[u8; LINE_DIGITS]) -> Option<LineData> {
    // Much of what a trace carries is zero: reads for which nobody has data, and what was there before.
    if *text == [b'0'; LINE_DIGITS] {
        return Some(LineData::default());
    }
    // SAFETY: every processor of this kind has SSE2.
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    return unsafe { vectors::line(text) };
    #[cfg(not(target_arch = "x86_64"))]
    numbers::line(text)
}

/// Sixteen digits at a time: a request with two lines takes 530 instructions of the host less than with [`numbers`].
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_and_si128, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_min_epu8,
        _mm_movemask_epi8, _mm_or_si128, _mm_packus_epi16, _mm_set_epi64x, _mm_set1_epi8,
        _mm_set1_epi16, _mm_slli_epi16, _mm_srli_epi16, _mm_sub_epi8,
    };

    use super::{LINE_DIGITS, LineData};

    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn line(text: &[u8; LINE_DIGITS]) -> Option<LineData> {
        let mut are_digits = _mm_set1_epi8(-1);
        let mut data = LineData::default();
        for (word, digits) in data.iter_mut().zip(text.as_chunks().0) {
            let digits = u128::from_le_bytes(*digits);
            let digits = _mm_set_epi64x((digits >> 64) as i64, digits as i64);
            *word = self::word(digits, &mut are_digits);
        }
        (_mm_movemask_epi8(are_digits) == 0xffff).then_some(data)
    }

    /// A word. Where a byte is no digit, that of `are_digits` is 0 afterwards.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn word(digits: __m128i, are_digits: &mut __m128i) -> u64 {
        let of_digit = _mm_sub_epi8(digits, _mm_set1_epi8(b'0' as i8));
        let is_digit = _mm_cmpeq_epi8(_mm_min_epu8(of_digit, _mm_set1_epi8(9)), of_digit);
        let lower = _mm_or_si128(digits, _mm_set1_epi8(0x20));
        let of_letter = _mm_sub_epi8(lower, _mm_set1_epi8(b'a' as i8));
        let is_letter = _mm_cmpeq_epi8(_mm_min_epu8(of_letter, _mm_set1_epi8(5)), of_letter);
        *are_digits = _mm_and_si128(*are_digits, _mm_or_si128(is_digit, is_letter));
        let of_letter = _mm_add_epi8(of_letter, _mm_set1_epi8(10));
        let values =
            _mm_or_si128(_mm_and_si128(is_digit, of_digit), _mm_and_si128(is_letter, of_letter));
        // The first digit of a pair is the high half of a byte.
        let pairs = _mm_or_si128(_mm_slli_epi16(values, 4), _mm_srli_epi16(values, 8));
        let pairs = _mm_and_si128(pairs, _mm_set1_epi16(0xff));
        _mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs)) as u64
    }
}

/// Eight digits at a time, as one number.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod numbers {
    use super::{LINE_DIGITS, LineData};

    /// The same byte eight times.
    const fn all(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }

    pub fn line(text: &[u8; LINE_DIGITS]) -> Option<LineData> {
        let digits_of_words = text.as_chunks::<16>().0;
        let mut strange = 0;
        let data = std::array::from_fn(|word| {
            let digits = u128::from_le_bytes(digits_of_words[word]);
            let (low, strange_low) = half_word(digits as u64);
            let (high, strange_high) = half_word((digits >> 64) as u64);
            strange |= strange_low | strange_high;
            low | high << 32
        });
        (strange & all(0x80) == 0).then_some(data)
    }

    /// The 32 bits that eight digits say. The highest bit of a byte of the other number is set where no digit is.
    fn half_word(digits: u64) -> (u64, u64) {
        // Bytes below 128 reach that with what is added if they are at least 128 less it.
        let is_between = |bytes: u64, first: u8, last: u8| {
            bytes.wrapping_add(all(0x80 - first)) & !bytes.wrapping_add(all(0x7f - last))
        };
        let lower = digits | all(0x20);
        let is_digit = is_between(digits, b'0', b'9') | is_between(lower, b'a', b'f');
        let strange = digits | !is_digit;
        // A letter has bit 6, and the low bits of 1 to 6.
        let values = (digits & all(0x0f)) + 9 * (digits >> 6 & all(1));
        // The first digit of a pair is the high half of a byte.
        let bytes = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
        let pairs = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
        ((pairs | pairs >> 16) & 0xffff_ffff, strange)
    }
}

/// The digits of a line of memory, first byte first.
pub fn digits(data: &LineData) -> [u8; LINE_DIGITS] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; LINE_DIGITS];
    for (word, text) in data.iter().zip(text.chunks_exact_mut(2 * WORD_BYTES as usize)) {
        for (byte, pair) in word.to_le_bytes().iter().zip(text.chunks_exact_mut(2)) {
            pair[0] = DIGITS[(byte >> 4) as usize];
            pair[1] = DIGITS[(byte & 15) as usize];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_spelling() {
        assert_eq!(number(b"0x1fC0"), Some(0x1fc0));
        assert_eq!(number(b"ffffffffffffffff"), Some(u64::MAX));
        for wrong in [&b""[..], b"0x", b"1g", b"-1", b"0x0x1", b"10000000000000000"] {
            assert_eq!(number(wrong), None);
        }
    }

    #[test]
    fn every_byte_that_is_no_digit_is_seen_wherever_it_stands() {
        let good = digits(&[0x0123_4567_89ab_cdef; 8]);
        assert_eq!(line(&good), Some([0x0123_4567_89ab_cdef; 8]));
        assert_eq!(&good[..4], b"efcd", "the byte at the lowest address comes first");
        for byte in 0..=255u8 {
            for at in 0..LINE_DIGITS {
                let mut text = good;
                text[at] = byte;
                let found = line(&text);
                assert_eq!(found.is_some(), byte.is_ascii_hexdigit(), "{byte:#x} at {at}");
                assert_eq!(found, numbers::line(&text), "{byte:#x} at {at}");
                if let Some(found) = found {
                    assert_eq!(digits(&found), text.map(|digit| digit.to_ascii_lowercase()));
                }
            }
        }
    }
}
