//! Bit strings on the stack.
//!
//! Bit `k` of a string is bit `k mod 64` of word `k / 64`. A value is appended with its least significant
//! bit first, so a tag that is pushed before its payload is read before it.

/// Bits that a [`Bits`] holds at most: nine words, room for a line of eight 67-bit codes.
pub const CAPACITY_BITS: u32 = 576;

/// Two words beyond the capacity, so that a push can touch the next ones without asking.
const WORDS: usize = CAPACITY_BITS as usize / 64 + 2;

/// Bits of a [`Code`] at most.
pub const CODE_BITS: u32 = 67;

/// The code of one word: a tag and its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// Bits 0 to 63.
    low: u64,
    /// Bits 64 to 66.
    high: u64,
    len: u32,
}

impl Code {
    /// A tag of `tag_bits` (0..=3), then a payload of `payload_bits` (0..=64); neither has further bits.
    #[inline]
    pub fn new(tag: u64, tag_bits: u32, payload: u64, payload_bits: u32) -> Code {
        assert!(tag_bits <= 3 && tag & !low(tag_bits) == 0, "tag {tag:#x}");
        assert!(payload & !low(payload_bits) == 0, "payload {payload:#x}");
        let high = payload >> 1 >> (63 - tag_bits);
        Code { low: payload << tag_bits | tag, high, len: tag_bits + payload_bits }
    }

    /// Length in bits.
    #[inline]
    pub const fn len(self) -> u32 {
        self.len
    }

    /// Returns true if there is nothing to store.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// A bit string; zero beyond its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: [u64; WORDS],
    len: u32,
}

impl Bits {
    /// An empty string.
    pub const fn new() -> Bits {
        Bits { words: [0; WORDS], len: 0 }
    }

    /// The 512 bits of a line, word 0 first.
    pub fn of_line(line: &[u64; 8]) -> Bits {
        let mut words = [0; WORDS];
        words[..8].copy_from_slice(line);
        Bits { words, len: 512 }
    }

    /// A string of `len` bits, given in words; bits beyond are dropped.
    pub fn of_words(source: &[u64; 9], len: u32) -> Bits {
        assert!(len <= CAPACITY_BITS, "a bit string holds {CAPACITY_BITS} bits");
        let mut words = [0; WORDS];
        let (whole, rest) = (len as usize / 64, len % 64);
        words[..whole].copy_from_slice(&source[..whole]);
        if rest > 0 {
            words[whole] = source[whole] & low(rest);
        }
        Bits { words, len }
    }

    /// Length in bits.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Returns true if nothing was pushed.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words, zero beyond the end.
    #[inline]
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// Appends the `len` (0..=64) low bits of `value`, which has no others.
    ///
    /// # Panics
    /// If the string is full.
    #[inline]
    pub fn push(&mut self, value: u64, len: u32) {
        assert!(len <= 64 && value & !low(len) == 0, "{value:#x} has more than {len} bits");
        let (word, shift) = (self.len as usize / 64, self.len % 64);
        self.words[word] |= value << shift;
        // Two shifts: one by 64 is none.
        self.words[word + 1] |= value >> 1 >> (63 - shift);
        self.len += len;
        assert!(self.len <= CAPACITY_BITS, "a bit string holds {CAPACITY_BITS} bits");
    }

    /// Appends a code.
    #[inline]
    pub fn push_code(&mut self, code: Code) {
        self.push(code.low, code.len.min(64));
        self.push(code.high, code.len.saturating_sub(64));
    }

    /// Appends eight codes, one after another.
    #[inline]
    pub fn push_codes(&mut self, codes: &[Code; 8]) {
        // The word at the end of the string so far.
        let mut last = self.words[self.len as usize / 64];
        for code in codes {
            let (word, shift) = (self.len as usize / 64, self.len % 64);
            // At most 130 bits from that word on; two shifts, because one by 64 is none.
            let first = last | code.low << shift;
            let second = code.low >> 1 >> (63 - shift) | code.high << shift;
            let third = code.high >> 1 >> (63 - shift);
            self.words[word..word + 3].copy_from_slice(&[first, second, third]);
            let end = shift + code.len;
            last = if end < 64 { first } else { second };
            last = if end < 128 { last } else { third };
            self.len += code.len;
        }
    }

    /// The 64 bits from `at` (0..576) on.
    #[inline]
    pub(super) fn window(&self, at: u32) -> u64 {
        let (word, shift) = (at as usize / 64, at % 64);
        self.words[word] >> shift | self.words[word + 1] << 1 << (63 - shift)
    }

    /// Reads from the start.
    #[inline]
    pub const fn reader(&self) -> Reader<'_> {
        Reader { bits: self, at: 0 }
    }
}

/// Reads a bit string from its start.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bits: &'a Bits,
    at: u32,
}

impl Reader<'_> {
    /// The next `len` (0..=64) bits; zeros where the string has ended.
    #[inline]
    pub fn read(&mut self, len: u32) -> u64 {
        let (word, shift) = (self.at as usize / 64, self.at % 64);
        let at = |index: usize| self.bits.words.get(index).copied().unwrap_or(0);
        let value = at(word) >> shift | at(word + 1) << 1 << (63 - shift);
        self.at += len;
        value & low(len)
    }

    /// Number of bits that were read.
    #[inline]
    pub const fn position(&self) -> u32 {
        self.at
    }
}

/// A number with the `len` (0..=64) lowest bits set.
#[inline]
pub(super) const fn low(len: u32) -> u64 {
    if len == 0 { 0 } else { u64::MAX >> (64 - len) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_bit_pushed_is_bit_0() {
        let mut bits = Bits::new();
        bits.push(0b011, 3);
        bits.push(0x5, 4);
        assert_eq!((bits.words()[0], bits.len()), (0b10_1011, 7));
    }

    #[test]
    fn a_string_of_words_ends_where_told() {
        let bits = Bits::of_words(&[u64::MAX; 9], 67);
        assert_eq!((bits.words()[0], bits.words()[1], bits.words()[2]), (u64::MAX, 7, 0));
        assert_eq!(Bits::of_words(&[u64::MAX; 9], CAPACITY_BITS).words()[9], 0);
    }

    proptest! {
        #[test]
        fn what_is_pushed_is_read(pieces in prop::collection::vec((any::<u64>(), 0u32..=64), 0..9)) {
            let mut bits = Bits::new();
            for &(value, len) in &pieces {
                bits.push(value & low(len), len);
            }
            let mut reader = bits.reader();
            for &(value, len) in &pieces {
                prop_assert_eq!(reader.read(len), value & low(len));
            }
            prop_assert_eq!(reader.position(), bits.len());
            prop_assert_eq!(reader.read(64), 0);
        }

        #[test]
        fn codes_follow_each_other(
            parts in prop::array::uniform8((0u64..8, 0u32..=3, any::<u64>(), 0u32..=64)),
        ) {
            let parts = parts.map(|(tag, tags, payload, payloads)| {
                (tag & low(tags), tags, payload & low(payloads), payloads)
            });
            let codes = parts.map(|(tag, tags, payload, payloads)| {
                Code::new(tag, tags, payload, payloads)
            });
            let (mut one_by_one, mut in_pieces) = (Bits::new(), Bits::new());
            for (code, (tag, tags, payload, payloads)) in codes.into_iter().zip(parts) {
                prop_assert_eq!(code.len(), tags + payloads);
                one_by_one.push_code(code);
                in_pieces.push(tag, tags);
                in_pieces.push(payload, payloads);
            }
            let mut at_once = Bits::new();
            at_once.push_codes(&codes);
            prop_assert_eq!(at_once, in_pieces);
            prop_assert_eq!(one_by_one, in_pieces);
            let mut reader = in_pieces.reader();
            let mut at = 0;
            while at < in_pieces.len() {
                prop_assert_eq!(in_pieces.window(at), reader.read(64));
                at += 64;
            }
        }
    }
}
