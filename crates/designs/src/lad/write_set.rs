//! The lines that a transaction has stored to.

use graven_base::memory::{LineAddr, WordMask};
use graven_machine::design::Store;

/// A line that an open transaction has stored to.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenLine {
    pub(super) line: LineAddr,
    pub(super) words: WordMask,
    /// Words with an undo record.
    pub(super) logged: WordMask,
    /// True once its newest content has left the caches.
    pub(super) pushed: bool,
    /// True if it was pushed in the hope that it would not be stored to again.
    pub(super) early: bool,
}

impl WrittenLine {
    /// Those of its words that have no undo record.
    pub(super) fn unlogged(&self) -> WordMask {
        self.words & !self.logged
    }
}

/// Lines that an open transaction has stored to; kept from one transaction to the next for its
/// memory.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteSet {
    /// In the order of the first store.
    pub(super) lines: Vec<WrittenLine>,
    pub(super) by_line: Vec<(LineAddr, u32)>,
    /// Index of the line stored to last.
    pub(super) last: usize,
    /// Indices of lines that are not pushed yet, the one stored to last at the end.
    pub(super) recent: Vec<usize>,
}

impl WriteSet {
    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.by_line.clear();
        self.recent.clear();
        self.last = 0;
    }

    #[inline]
    pub(super) fn find(&self, line: LineAddr) -> Option<usize> {
        if self.lines.get(self.last).is_some_and(|l| l.line == line) {
            return Some(self.last);
        }
        let at = self.by_line.binary_search_by_key(&line, |&(line, _)| line).ok()?;
        Some(self.by_line[at].1 as usize)
    }

    /// Takes a store in and returns whether its line had been pushed early in vain.
    #[inline]
    pub(super) fn store(&mut self, store: &Store) -> bool {
        let line = store.addr.line();
        self.last = self.find(line).unwrap_or_else(|| self.add(line));
        let written = &mut self.lines[self.last];
        written.words |= store.addr.word_mask();
        written.pushed = false;
        std::mem::take(&mut written.early)
    }

    /// The words of a line that have no undo record; they get one now.
    pub(super) fn take_unlogged(&mut self, line: LineAddr) -> WordMask {
        let Some(at) = self.find(line) else { return 0 };
        let written = &mut self.lines[at];
        let words = written.unlogged();
        written.logged |= words;
        words
    }

    fn add(&mut self, line: LineAddr) -> usize {
        let at = self.by_line.partition_point(|&(other, _)| other < line);
        self.by_line.insert(at, (line, self.lines.len() as u32));
        self.lines.push(WrittenLine { line, words: 0, logged: 0, pushed: false, early: false });
        self.lines.len() - 1
    }

    /// Makes the last line the most recent one; returns which falls off the list.
    #[inline]
    pub(super) fn touch(&mut self, capacity: usize) -> Option<usize> {
        if self.recent.last() == Some(&self.last) {
            return None;
        }
        let mut off = None;
        if let Some(at) = self.recent.iter().position(|&i| i == self.last) {
            self.recent.remove(at);
        } else if self.recent.len() == capacity {
            off = Some(self.recent.remove(0));
        }
        self.recent.push(self.last);
        off
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::ids::Tx;
    use graven_base::memory::Addr;

    #[test]
    fn the_write_set_keeps_the_words_and_the_order_of_the_lines() {
        let tx = Tx { thread: 0, number: 0 };
        let store = |addr| Store { tx, core: 0, addr: Addr(addr), old: 0, new: 1 };
        let mut writes = WriteSet::default();
        for addr in [640, 64, 640, 648] {
            assert!(!writes.store(&store(addr)));
        }
        let lines: Vec<_> = writes.lines.iter().map(|l| (l.line.0, l.words)).collect();
        assert_eq!(lines, [(10, 0b11), (1, 0b1)]);
        assert_eq!((writes.find(LineAddr(1)), writes.find(LineAddr(2))), (Some(1), None));
    }

    #[test]
    fn the_line_not_stored_to_for_longest_falls_off_the_list() {
        let mut writes = WriteSet::default();
        let mut off = Vec::new();
        for last in [0, 1, 0, 2, 3] {
            writes.last = last;
            off.push(writes.touch(2));
        }
        assert_eq!(off, [None, None, None, Some(1), Some(0)]);
    }
}
