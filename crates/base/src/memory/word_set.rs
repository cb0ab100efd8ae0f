//! A set of words.

use super::{Addr, Image, WORD_BYTES};

/// Words, a bit for each: for sets that many stores change. Host memory is a sixty-fourth of what an [`Image`] of them would take.
#[derive(Clone, Default)]
pub struct WordSet {
    bits: Image,
    count: u64,
}

impl WordSet {
    /// The word with a word's bit, and that bit.
    #[inline]
    fn locate(addr: Addr) -> (Addr, u64) {
        let word = addr.0 / WORD_BYTES;
        let bits = u64::from(u64::BITS);
        (Addr(word / bits * WORD_BYTES), 1 << (word % bits))
    }

    /// Returns true if a word is in it.
    #[inline]
    pub fn contains(&self, addr: Addr) -> bool {
        let (at, bit) = Self::locate(addr);
        self.bits.load(at) & bit != 0
    }

    /// Adds a word.
    #[inline]
    pub fn insert(&mut self, addr: Addr) {
        let (at, bit) = Self::locate(addr);
        let old = self.bits.load(at);
        if old & bit == 0 {
            self.bits.store(at, old | bit);
            self.count += 1;
        }
    }

    /// Removes a word; returns true if it was in the set.
    #[inline]
    pub fn remove(&mut self, addr: Addr) -> bool {
        if self.count == 0 {
            return false;
        }
        let (at, bit) = Self::locate(addr);
        let old = self.bits.load(at);
        if old & bit != 0 {
            self.bits.store(at, old & !bit);
            self.count -= 1;
        }
        old & bit != 0
    }

    /// The one with the lowest address.
    pub fn first(&self) -> Option<Addr> {
        let bits = u64::from(u64::BITS);
        let word =
            |(at, old): (Addr, u64)| at.0 / WORD_BYTES * bits + u64::from(old.trailing_zeros());
        self.bits.nonzero_words().next().map(|found| Addr(word(found) * WORD_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_a_set_of_addresses_is(
            steps in prop::collection::vec((any::<bool>(), prop_oneof![0u64..200, 0u64..1 << 32]), 0..200),
        ) {
            let (mut words, mut set) = (WordSet::default(), BTreeSet::new());
            for (is_added, word) in steps {
                let addr = Addr(word * WORD_BYTES);
                if is_added {
                    words.insert(addr);
                    set.insert(addr);
                } else {
                    prop_assert_eq!(words.remove(addr), set.remove(&addr));
                }
                prop_assert_eq!(words.contains(addr), set.contains(&addr));
                prop_assert_eq!(words.first(), set.first().copied());
            }
        }
    }
}
