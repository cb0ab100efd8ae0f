//! Words that survive in caches: where all caches survive a power failure, a store is durable when it is performed, above whatever
//! memory holds.
//!
//! A word is kept here from its store until a write crosses the boundary below the caches while no cache, and no other write on
//! its way, has the line: the write is then the newest there is. What would survive without the caches is kept beside it: where
//! their energy does not suffice, that is all there is.

use graven_base::memory::{Addr, LineAddr, LineData, WORDS_PER_LINE, WordMask, words_in};
use rustc_hash::FxHashMap;

/// Words that caches keep, with what would survive without them.
#[derive(Default)]
pub struct CachedWords {
    below: FxHashMap<Addr, u64>,
}

impl CachedWords {
    /// Returns true if caches keep a word.
    pub fn keeps(&self, addr: Addr) -> bool {
        self.below.contains_key(&addr)
    }

    /// A word was stored to, that holds `durable` otherwise.
    pub fn store(&mut self, addr: Addr, durable: u64) {
        self.below.entry(addr).or_insert(durable);
    }

    /// A write crosses the boundary below. `is_newer_above`: a cache, or another write on its way, has the line. Returns the words
    /// that survive from now on as the write has them.
    pub fn write(
        &mut self,
        (line, mask, data): (LineAddr, WordMask, &LineData),
        is_newer_above: bool,
    ) -> WordMask {
        let mut visible = mask;
        for word in words_in(mask) {
            let addr = line.word(word);
            if !is_newer_above {
                self.below.remove(&addr);
            } else if let Some(below) = self.below.get_mut(&addr) {
                *below = data[word];
                visible &= !(1 << word);
            }
        }
        visible
    }

    /// The words of a line that would not survive without the caches, with what would.
    pub fn without(&self, line: LineAddr) -> impl Iterator<Item = (Addr, u64)> + '_ {
        let words = (0..WORDS_PER_LINE).map(move |word| line.word(word));
        words.filter_map(|addr| self.below.get(&addr).map(|&below| (addr, below)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: LineAddr = LineAddr(3);

    fn words(first: u64) -> LineData {
        [first, 0, 0, 0, 0, 0, 0, 0]
    }

    /// Class of bug: content that comes back (A, B, A) is taken for the newest.
    #[test]
    fn a_write_survives_only_if_nothing_newer_has_its_line() {
        let mut cached = CachedWords::default();
        let word = LINE.word(0);
        cached.store(word, 1);
        cached.store(word, 2);
        let below = |cached: &CachedWords| cached.without(LINE).collect::<Vec<_>>();
        assert_eq!(below(&cached), [(word, 1)], "as memory had it at the first store");
        assert_eq!(cached.write((LINE, 3, &words(5)), true), 2, "word 1 is not kept");
        assert_eq!(below(&cached), [(word, 5)]);
        assert_eq!(cached.write((LINE, 1, &words(6)), false), 1);
        assert!(!cached.keeps(word));
    }
}
