//! The lines that a transaction has stored to.

use crate::mechanisms::stored_lines::{Stored, StoredLines};
use graven_base::memory::{LineAddr, WordMask};
use graven_machine::request::WriteOrder;

/// A line that an open transaction has stored to.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredLine {
    pub(super) line: LineAddr,
    /// Words that the controller knows of, as the L1 remembers. 0 when the L1 has forgotten the
    /// line.
    pub(super) known: WordMask,
    /// Place of its newest entry in the record that is being collected.
    pub(super) entry: Option<usize>,
    /// The newest header with an entry of it in the order of writes, if one is written.
    pub(super) header: WriteOrder,
}

impl Stored for StoredLine {
    fn line(&self) -> LineAddr {
        self.line
    }
}

/// Lines that an open transaction has stored to.
pub(super) type Lines = StoredLines<StoredLine>;

impl Lines {
    /// The line, new or not, that a store goes to.
    #[inline]
    pub(super) fn take_in(&mut self, line: LineAddr) -> &mut StoredLine {
        let new = || StoredLine { line, known: 0, entry: None, header: WriteOrder::NONE };
        self.of_store(line, new).0
    }

    /// The L1 forgets what it remembers of a line; returns whether that was anything.
    pub(super) fn forget(&mut self, line: LineAddr) -> bool {
        self.find_mut(line).is_some_and(|stored| std::mem::take(&mut stored.known) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_in_whatever_order_they_came() {
        let mut lines = Lines::default();
        for line in [10, 1, 10, 5] {
            lines.take_in(LineAddr(line)).known |= 1;
        }
        let all: Vec<u64> = lines.lines.iter().map(|l| l.line.0).collect();
        assert_eq!(all, [1, 5, 10]);
        assert!(
            lines.forget(LineAddr(5)) && !lines.forget(LineAddr(5)) && !lines.forget(LineAddr(2))
        );
        let known = |line| lines.find(LineAddr(line)).map(|l| l.known);
        assert_eq!([1, 5, 10, 2].map(known), [Some(1), Some(0), Some(1), None]);
        lines.clear();
        assert_eq!(lines.take_in(LineAddr(7)).known, 0);
    }
}
