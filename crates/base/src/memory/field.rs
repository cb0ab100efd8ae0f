//! Fields of packed words: what a design's records, registers and headers consist of.

/// Some bits of a word that hold a number.
///
/// A number that does not fit is an error of whoever stores it, unless it is meant modulo the field's size: hardware has no
/// more bits than it declares.
///
/// ```
/// use graven_base::memory::Field;
/// const THREAD: Field = Field::new("thread", 8, 50);
/// const TX: Field = THREAD.then("transaction", 6);
/// let word = THREAD.put(7) | TX.wrapped(65);
/// assert_eq!((THREAD.get(word), TX.get(word)), (7, 1));
/// assert_eq!(TX.end(), 64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    name: &'static str,
    bits: u32,
    shift: u32,
}

impl Field {
    /// Makes a field of `bits` bits, from bit `shift` of the word on.
    ///
    /// # Panics
    /// It has no bits, or does not end within 64.
    pub const fn new(name: &'static str, bits: u32, shift: u32) -> Field {
        assert!(bits > 0 && shift + bits <= 64, "a field lies within a word");
        Field { name, bits, shift }
    }

    /// The field right after this one.
    ///
    /// # Panics
    /// It does not end within 64 bits.
    pub const fn then(self, name: &'static str, bits: u32) -> Field {
        Field::new(name, bits, self.end())
    }

    /// Number of bits.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// The bit of the word after its last.
    pub const fn end(self) -> u32 {
        self.shift + self.bits
    }

    /// The largest number that it holds.
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// A number, where the field is.
    ///
    /// # Panics
    /// The field does not hold it.
    #[inline]
    pub fn put(self, value: u64) -> u64 {
        if value > self.max() {
            self.overflow(value);
        }
        value << self.shift
    }

    /// A number modulo the field's size, where the field is.
    #[inline]
    pub const fn wrapped(self, value: u64) -> u64 {
        (value & self.max()) << self.shift
    }

    /// The number that a word holds there.
    #[inline]
    pub const fn get(self, word: u64) -> u64 {
        word >> self.shift & self.max()
    }

    /// Returns true if a word has the only bit of this field set.
    #[inline]
    pub const fn is_set(self, word: u64) -> bool {
        assert!(self.bits == 1, "a flag has one bit");
        self.get(word) != 0
    }

    #[cold]
    fn overflow(self, value: u64) -> ! {
        panic!("the field `{}` of {} bits cannot hold {value:#x}", self.name, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: Field = Field::new("low", 5, 0);
    const FLAG: Field = LOW.then("flag", 1);
    const HIGH: Field = FLAG.then("high", 58);

    #[test]
    fn fields_lie_side_by_side() {
        let word = LOW.put(LOW.max()) | FLAG.put(0) | HIGH.put(HIGH.max());
        assert_eq!(word, !(1 << 5));
        assert_eq!((LOW.get(word), FLAG.is_set(word), HIGH.get(word)), (31, false, HIGH.max()));
        assert_eq!(HIGH.end(), 64);
        assert_eq!(Field::new("word", 64, 0).put(u64::MAX), u64::MAX);
        assert_eq!(LOW.wrapped(33), 1);
    }

    #[test]
    #[should_panic(expected = "the field `low` of 5 bits cannot hold 0x20")]
    fn what_does_not_fit_is_an_error() {
        LOW.put(32);
    }
}
