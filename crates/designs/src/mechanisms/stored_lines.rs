//! The lines that an open transaction has stored to, with what a design keeps of each.

use graven_base::memory::LineAddr;

/// State that is kept of a line.
pub trait Stored {
    /// The line.
    fn line(&self) -> LineAddr;
}

/// Lines by address; kept from one transaction to the next for its memory.
#[derive(Clone, Debug)]
pub struct StoredLines<T> {
    /// State of each line, by address.
    pub lines: Vec<T>,
    /// Index of the line stored to last.
    last: usize,
}

impl<T> Default for StoredLines<T> {
    fn default() -> Self {
        Self { lines: Vec::new(), last: 0 }
    }
}

impl<T: Stored> StoredLines<T> {
    /// The state of a line, if the transaction has stored to it.
    pub fn find(&self, line: LineAddr) -> Option<&T> {
        self.index(line).ok().map(|at| &self.lines[at])
    }

    /// The same, to be changed.
    pub fn find_mut(&mut self, line: LineAddr) -> Option<&mut T> {
        self.index(line).ok().map(|at| &mut self.lines[at])
    }

    #[inline]
    fn index(&self, line: LineAddr) -> Result<usize, usize> {
        if self.lines.get(self.last).is_some_and(|stored| stored.line() == line) {
            return Ok(self.last);
        }
        self.lines.binary_search_by_key(&line, T::line)
    }

    /// The line that a store goes to, and whether it is the first to it.
    #[inline]
    pub fn of_store(&mut self, line: LineAddr, new: impl FnOnce() -> T) -> (&mut T, bool) {
        let found = self.index(line);
        self.last = found.unwrap_or_else(|at| {
            self.lines.insert(at, new());
            at
        });
        (&mut self.lines[self.last], found.is_err())
    }

    /// The transaction is over.
    pub fn clear(&mut self) {
        self.lines.clear();
    }
}
