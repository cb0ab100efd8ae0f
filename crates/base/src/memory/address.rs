//! Newtypes for the two address granularities, so that a line number cannot be passed as an address.

use std::fmt;

/// Bytes of one word: the unit of a store, of logging, and of atomicity at the media.
pub const WORD_BYTES: u64 = 8;
/// Bytes of one cache line, the unit of a request to memory.
pub const LINE_BYTES: u64 = 64;
/// Words of one cache line.
pub const WORDS_PER_LINE: usize = (LINE_BYTES / WORD_BYTES) as usize;
/// Bytes of one media line, the unit in which a PM device reads and programs its cells.
pub const MEDIA_LINE_BYTES: u64 = 256;

/// Set of words of a line: bit `i` is word `i`.
pub type WordMask = u8;

/// The words of a mask, in order.
#[inline]
pub fn words_in(
    mask: WordMask,
) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone {
    WordsIn(mask)
}

/// The words of a mask that are still to come.
#[derive(Clone)]
struct WordsIn(WordMask);

impl Iterator for WordsIn {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let word = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(word as usize)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let words = self.0.count_ones() as usize;
        (words, Some(words))
    }
}

impl DoubleEndedIterator for WordsIn {
    #[inline]
    fn next_back(&mut self) -> Option<usize> {
        let word = self.0.checked_ilog2()?;
        self.0 ^= 1 << word;
        Some(word as usize)
    }
}

impl ExactSizeIterator for WordsIn {}

/// A physical byte address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(pub u64);

/// A physical line number: the byte address divided by 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineAddr(pub u64);

impl Addr {
    /// The line that holds this byte.
    #[inline]
    pub const fn line(self) -> LineAddr {
        LineAddr(self.0 / LINE_BYTES)
    }

    /// Index (0..8) of the word that holds this byte, within its line.
    #[inline]
    pub const fn word_in_line(self) -> usize {
        (self.0 / WORD_BYTES) as usize % WORDS_PER_LINE
    }

    /// The mask of the word that holds this byte, within its line.
    #[inline]
    pub const fn word_mask(self) -> WordMask {
        1 << self.word_in_line()
    }

    /// Returns true if a word may be loaded or stored here.
    #[inline]
    pub const fn is_word_aligned(self) -> bool {
        self.0.is_multiple_of(WORD_BYTES)
    }

    /// Returns true if `count` words from here on may be loaded or stored, and all lie in one line.
    #[inline]
    pub const fn has_words_in_line(self, count: usize) -> bool {
        self.is_word_aligned() && self.0 % LINE_BYTES + count as u64 * WORD_BYTES <= LINE_BYTES
    }

    /// The address `bytes` further up.
    #[inline]
    pub const fn plus(self, bytes: u64) -> Addr {
        Addr(self.0 + bytes)
    }
}

impl LineAddr {
    /// Address of the line's first byte.
    #[inline]
    pub const fn addr(self) -> Addr {
        Addr(self.0 * LINE_BYTES)
    }

    /// Address of word `index` (0..8) of this line.
    #[inline]
    pub const fn word(self, index: usize) -> Addr {
        Addr(self.0 * LINE_BYTES + index as u64 * WORD_BYTES)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for LineAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_mask_are_its_bits_from_either_end() {
        for mask in WordMask::MIN..=WordMask::MAX {
            let bits = (0..WORDS_PER_LINE).filter(|word| mask >> word & 1 != 0);
            assert!(words_in(mask).eq(bits.clone()) && words_in(mask).rev().eq(bits.rev()));
            let mut words = words_in(mask);
            while let (left, Some(_)) = (words.len(), words.next()) {
                assert_eq!((words.len(), words.clone().count()), (left - 1, left - 1));
            }
        }
    }

    #[test]
    fn an_address_knows_its_line_and_word() {
        let addr = Addr(0x1078);
        assert_eq!(addr.line(), LineAddr(0x41));
        assert_eq!(addr.word_in_line(), 7);
        assert_eq!(addr.line().word(7), addr);
        assert!(words_in(addr.word_mask() | 0b101).eq([0, 2, 7]));
        assert!(addr.is_word_aligned());
        assert!(!addr.plus(4).is_word_aligned());
        assert!(addr.has_words_in_line(1) && !addr.has_words_in_line(2));
        assert!(
            addr.line().addr().has_words_in_line(8)
                && !addr.line().addr().plus(4).has_words_in_line(1)
        );
    }
}
