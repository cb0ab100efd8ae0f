//! A filter that tells at a glance which words may be among many.

use graven_base::memory::{Addr, WORD_BYTES};

/// Places of a filter.
const PLACES: usize = 256;

/// Counts words that come and go, by some bits of their addresses: a word of which nothing is counted is not among them.
#[derive(Clone, Debug)]
pub struct WordFilter {
    counts: Box<[u32; PLACES]>,
}

impl Default for WordFilter {
    fn default() -> WordFilter {
        WordFilter { counts: Box::new([0; PLACES]) }
    }
}

impl WordFilter {
    #[inline]
    fn place(addr: Addr) -> usize {
        let word = addr.0 / WORD_BYTES;
        // Higher bits count, too: words of structures of one size lie far apart.
        (word ^ word >> 8 ^ word >> 16) as usize % PLACES
    }

    /// A word comes.
    #[inline]
    pub fn add(&mut self, addr: Addr) {
        self.counts[Self::place(addr)] += 1;
    }

    /// One that came goes.
    #[inline]
    pub fn remove(&mut self, addr: Addr) {
        self.counts[Self::place(addr)] -= 1;
    }

    /// Returns true if a word may be among those that came and have not gone.
    #[inline]
    pub fn may_have(&self, addr: Addr) -> bool {
        self.counts[Self::place(addr)] > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_misses_none_of_a_list_and_is_empty_when_the_list_is(
            steps in prop::collection::vec((0..3000u64, any::<bool>()), 0..200),
        ) {
            let (mut filter, mut list) = (WordFilter::default(), Vec::new());
            for (word, comes) in steps {
                let addr = Addr(word * WORD_BYTES);
                if comes || list.is_empty() {
                    filter.add(addr);
                    list.push(addr);
                } else {
                    filter.remove(list.swap_remove(word as usize % list.len()));
                }
                prop_assert!(list.iter().all(|&addr| filter.may_have(addr)));
            }
            for addr in list {
                filter.remove(addr);
            }
            prop_assert!((0..3000).all(|word| !filter.may_have(Addr(word * WORD_BYTES))));
        }
    }
}
