//! The log lookup table: what a transaction has logged, as far as its core remembers.

use graven::memory::Addr;

use super::log_area::BlockWords;

/// Blocks with the words that were logged, the most recently used last.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    blocks: Vec<(Addr, BlockWords)>,
    places: usize,
}

impl Filter {
    pub(super) fn new(places: usize) -> Filter {
        Filter { blocks: Vec::with_capacity(places), places }
    }

    /// Looks a block up, which makes it the most recently used: its words that were logged.
    pub(super) fn look_up(&mut self, block: Addr) -> BlockWords {
        let Some(at) = self.place(block) else { return 0 };
        self.blocks[at..].rotate_left(1);
        self.blocks.last().expect("it has the block").1
    }

    /// Words of a block have been logged. Returns whether another block was replaced.
    pub(super) fn insert(&mut self, block: Addr, words: BlockWords) -> bool {
        if let Some(at) = self.place(block) {
            self.blocks[at].1 |= words;
            self.blocks[at..].rotate_left(1);
            return false;
        }
        let full = self.blocks.len() == self.places;
        if full {
            self.blocks.remove(0);
        }
        self.blocks.push((block, words));
        full
    }

    pub(super) fn has(&self, block: Addr) -> bool {
        self.place(block).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
    }

    fn place(&self, block: Addr) -> Option<usize> {
        self.blocks.iter().rposition(|&(known, _)| known == block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_block_is_replaced() {
        let mut filter = Filter::new(2);
        assert!(!filter.insert(Addr(0), 0b1) && !filter.insert(Addr(32), 0b10));
        assert_eq!(filter.look_up(Addr(0)), 0b1);
        assert!(!filter.insert(Addr(0), 0b100), "it is there already");
        assert!(filter.insert(Addr(64), 0b1));
        assert_eq!([0, 32, 64].map(|block| filter.look_up(Addr(block))), [0b101, 0, 0b1]);
        filter.clear();
        assert!(!filter.has(Addr(0)));
    }
}
