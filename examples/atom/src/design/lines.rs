//! The lines that a transaction has stored to, and the log bits that the L1 keeps of them.

use graven::mechanisms::stored_lines::{Stored, StoredLines};
use graven::memory::{LineAddr, WordMask};

/// A line that an open transaction has stored to, or has missed on in order to store to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredLine {
    line: LineAddr,
    /// The log bit: the L1 knows that an entry of the line was made.
    pub(super) logged: bool,
    /// Words that the controller knows of, as the L1 remembers.
    pub(super) known: WordMask,
    /// Place of the line's newest entry in the record that is being collected.
    pub(super) entry: Option<usize>,
}

impl Stored for StoredLine {
    fn line(&self) -> LineAddr {
        self.line
    }
}

/// Lines of an open transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(pub(super) StoredLines<StoredLine>);

impl Lines {
    /// The line, new or not, of a store or of a miss.
    pub(super) fn take_in(&mut self, line: LineAddr) -> &mut StoredLine {
        let new = || StoredLine { line, logged: false, known: 0, entry: None };
        self.0.of_store(line, new).0
    }

    pub(super) fn has(&self, line: LineAddr) -> bool {
        self.0.find(line).is_some()
    }

    /// The L1 loses what it remembers of a line. Returns true if it remembered anything.
    pub(super) fn forget(&mut self, line: LineAddr) -> bool {
        self.0.find_mut(line).is_some_and(|stored| {
            stored.known = 0;
            std::mem::take(&mut stored.logged)
        })
    }

    /// The record that was being collected is closed.
    pub(super) fn close(&mut self, line: LineAddr) {
        if let Some(stored) = self.0.find_mut(line) {
            stored.entry = None;
        }
    }
}

/// The line at a place among those of a transaction.
pub(super) fn line_at(lines: &Lines, place: usize) -> LineAddr {
    lines.0.lines[place].line
}
