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

/// A number of up to 16 digits, with or without `0x`.
pub fn number(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut value = 0;
    for &byte in digits {
        let digit = DIGIT[byte as usize];
        if digit == NONE {
            return None;
        }
        value = value << 4 | u64::from(digit);
    }
    Some(value)
}

/// A line of memory, first byte first. Written without branches, for the compiler's vectors.
pub fn line(text: &[u8]) -> Option<LineData> {
    let text: &[u8; LINE_DIGITS] = text.try_into().ok()?;
    let mut nibbles = [0u8; LINE_DIGITS];
    let mut bad = 0;
    for (nibble, &byte) in nibbles.iter_mut().zip(text) {
        let digit = byte.wrapping_sub(b'0');
        let letter = (byte | 0x20).wrapping_sub(b'a');
        let is_digit = u8::from(digit < 10);
        let is_letter = u8::from(letter < 6);
        bad |= (is_digit | is_letter) ^ 1;
        *nibble = if is_digit != 0 { digit } else { letter.wrapping_add(10) };
    }
    if bad != 0 {
        return None;
    }
    let mut bytes = [0u8; LINE_BYTES as usize];
    for (byte, pair) in bytes.iter_mut().zip(nibbles.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    let mut data = LineData::default();
    for (word, bytes) in data.iter_mut().zip(bytes.chunks_exact(WORD_BYTES as usize)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
    }
    Some(data)
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
        assert_eq!(line(&good[1..]), None);
    }
}
