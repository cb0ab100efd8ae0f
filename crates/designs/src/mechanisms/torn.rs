//! Torn bits: bit 63 of each word of a record in a circular log.
//!
//! A write may be there in part, word by word. The bit is 1 in even passes over the log and 0 in odd ones; before
//! the first pass the system clears the log. So a record of which only some words were written has both.

use graven_base::memory::Field;

const CONTENT: Field = Field::new("content", 63, 0);
const BIT: Field = CONTENT.then("torn bit", 1);

/// The torn bit of a word.
pub const TORN: u64 = BIT.wrapped(1);
/// The other bits.
pub const LOW_63: u64 = CONTENT.max();

/// Bit 63 of a value, which the torn bit takes the place of: the record keeps it elsewhere.
#[inline]
pub const fn top(value: u64) -> u64 {
    BIT.get(value)
}

/// A value from its low bits and bit 63.
#[inline]
pub const fn with_top(content: u64, top: u64) -> u64 {
    content | BIT.wrapped(top)
}

/// Torn bit of a record, numbered from 0 over all passes, in a log of `records` records.
#[inline]
pub fn of_pass(number: u64, records: u64) -> bool {
    (number / records).is_multiple_of(2)
}

/// Puts this torn bit into each word, whatever it was.
#[inline]
pub fn mark<const N: usize>(words: [u64; N], torn: bool) -> [u64; N] {
    let bit = BIT.put(torn.into());
    words.map(|word| CONTENT.wrapped(word) | bit)
}

/// The words without their torn bits, if these are all the same: they were written together.
#[inline]
pub fn whole<const N: usize>(words: [u64; N]) -> Option<[u64; N]> {
    let same = words.iter().all(|word| (word ^ words[0]) & TORN == 0);
    same.then(|| words.map(|word| CONTENT.get(word)))
}

/// The words as if the first one's torn bit were in all of them: for mutants that do not look at the others.
pub fn as_the_first<const N: usize>(words: [u64; N]) -> [u64; N] {
    mark(words, words[0] & TORN != 0)
}
