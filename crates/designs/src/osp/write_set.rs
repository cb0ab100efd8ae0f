//! The lines that a transaction has stored to.

use super::layout::Slot;
use crate::mechanisms::stored_lines::{Stored, StoredLines};
use graven_base::memory::{LineAddr, WordMask};

/// A line that an open transaction has stored to: a bit of the published *updated* bitmap, with the words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) line: LineAddr,
    pub(super) slot: Slot,
    pub(super) words: WordMask,
    /// The controller has read the committed line, for the words of others.
    pub(super) committed_read: bool,
    /// True once it has read the uncommitted line, which had left the caches.
    pub(super) current_read: bool,
}

impl Stored for Written {
    fn line(&self) -> LineAddr {
        self.line
    }
}

/// Words that an open transaction has stored, by line.
pub(super) type WriteSet = StoredLines<Written>;

impl WriteSet {
    /// Takes in a store to a word. Returns whether it is the first to its line.
    #[inline]
    pub(super) fn store(&mut self, line: LineAddr, slot: Slot, word: usize) -> bool {
        let (committed_read, current_read) = (false, false);
        let new = || Written { line, slot, words: 0, committed_read, current_read };
        let (written, first) = self.of_store(line, new);
        written.words |= 1 << word;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_write_set_keeps_words_by_line() {
        let mut writes = WriteSet::default();
        let firsts: Vec<bool> = [(9, 1), (3, 0), (9, 7), (3, 0)]
            .into_iter()
            .map(|(line, word)| writes.store(LineAddr(line), 0, word))
            .collect();
        assert_eq!(firsts, [true, true, false, false]);
        let lines: Vec<_> = writes.lines.iter().map(|w| (w.line.0, w.words)).collect();
        assert_eq!(lines, [(3, 1), (9, 0x82)]);
        assert!(writes.find(LineAddr(4)).is_none());
    }
}
