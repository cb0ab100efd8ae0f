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

/// The same byte eight times.
const fn all(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// A line of memory, first byte first. Eight digits are one number, so that a few additions say of all of them what they are.
#[inline]
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
#[inline]
fn half_word(digits: u64) -> (u64, u64) {
    // Bytes below 128 reach that with what is added if they are at least 128 less it.
    let lower = digits | all(0x20);
    let is_digit =
        (digits.wrapping_add(all(0x80 - b'0'))) & !(digits.wrapping_add(all(0x7f - b'9')));
    let is_letter =
        (lower.wrapping_add(all(0x80 - b'a'))) & !(lower.wrapping_add(all(0x7f - b'f')));
    let strange = digits | !(is_digit | is_letter);
    // A letter has bit 6, and the low bits of 1 to 6.
    let nibbles = (digits & all(0x0f)) + 9 * (digits >> 6 & all(1));
    // The first digit of a pair is the high half of a byte.
    let bytes = (nibbles << 4 | nibbles >> 8) & 0x00ff_00ff_00ff_00ff;
    let pairs = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    ((pairs | pairs >> 16) & 0xffff_ffff, strange)
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
            for at in [0, 63, 127] {
                let mut text = good;
                text[at] = byte;
                assert_eq!(line(&text).is_some(), byte.is_ascii_hexdigit(), "{byte:#x} at {at}");
            }
        }
    }
}
