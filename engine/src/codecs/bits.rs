//! Bit strings on the stack.
//!
//! Bit `k` of a string is bit `k mod 64` of word `k / 64`. A value is appended with its least significant
//! bit first, so a tag that is pushed before its payload is read before it.

/// Bits that a [`Bits`] holds at most: nine words, room for a line of eight 67-bit codes.
pub const CAPACITY_BITS: u32 = 576;

/// One word beyond the capacity, so that a push can always touch two.
const WORDS: usize = CAPACITY_BITS as usize / 64 + 1;

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

    /// Whether nothing was pushed.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words, zero beyond the end; the last is always zero.
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
        debug_assert!(len <= 64 && value & !low(len) == 0, "{value:#x} has more than {len} bits");
        let (word, shift) = (self.len as usize / 64, self.len % 64);
        self.words[word] |= value << shift;
        // Two shifts: one by 64 is none.
        self.words[word + 1] |= value >> 1 >> (63 - shift);
        self.len += len;
        debug_assert!(self.len <= CAPACITY_BITS, "a bit string holds {CAPACITY_BITS} bits");
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

    /// How many bits were read.
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
        assert_eq!((bits.words()[0], bits.len()), (0b0101_011, 7));
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
    }
}
