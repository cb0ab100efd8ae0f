//! The lines that a transaction has stored to.

use super::layout::Slot;
use crate::memory::{LineAddr, WordMask};

/// A line that an open transaction has stored to: a bit of the published *updated* bitmap, with the words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) line: LineAddr,
    pub(super) slot: Slot,
    pub(super) words: WordMask,
    /// The controller has read the committed line, for the words of others.
    pub(super) committed_read: bool,
    /// It has read the uncommitted line, which had left the caches.
    pub(super) current_read: bool,
}

/// What an open transaction has stored, by line; kept from one transaction to the next for its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteSet {
    pub(super) lines: Vec<Written>,
    /// Index of the line stored to last.
    last: usize,
}

impl WriteSet {
    pub(super) fn find(&self, line: LineAddr) -> Option<&Written> {
        self.index(line).ok().map(|at| &self.lines[at])
    }

    pub(super) fn find_mut(&mut self, line: LineAddr) -> Option<&mut Written> {
        self.index(line).ok().map(|at| &mut self.lines[at])
    }

    #[inline]
    fn index(&self, line: LineAddr) -> Result<usize, usize> {
        if self.lines.get(self.last).is_some_and(|w| w.line == line) {
            return Ok(self.last);
        }
        self.lines.binary_search_by_key(&line, |w| w.line)
    }

    /// Takes in a store to a word. Returns whether it is the first to its line.
    #[inline]
    pub(super) fn store(&mut self, line: LineAddr, slot: Slot, word: usize) -> bool {
        let (at, first) = match self.index(line) {
            Ok(at) => (at, false),
            Err(at) => {
                let (committed_read, current_read) = (false, false);
                let written = Written { line, slot, words: 0, committed_read, current_read };
                self.lines.insert(at, written);
                (at, true)
            }
        };
        self.last = at;
        self.lines[at].words |= 1 << word;
        first
    }

    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.last = 0;
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
