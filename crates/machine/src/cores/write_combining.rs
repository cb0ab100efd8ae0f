//! The write-combining buffer of a core: where uncacheable stores gather to lines.
//!
//! FWB §II-B: "four to six cache-line sized entry write-combining buffer in x86 processors". A
//! store fills its line's entry. A line leaves for the controller when all its words have come,
//! when a store to another line needs its place (the oldest goes), or when the buffer is emptied:
//! by a fence, or by an atomic operation (Intel SDM vol. 3, buffering of write-combining memory).
//! The buffer is volatile. Left out: interrupts, which empty it, too.

use std::collections::VecDeque;

use crate::request::{Write, WriteClass};
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LineAddr, LineData, WORDS_PER_LINE, WordMask};

/// A line in the buffer, or on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combined {
    /// The thread whose stores these are.
    pub thread: ThreadId,
    line: LineAddr,
    mask: WordMask,
    data: LineData,
    class: WriteClass,
}

impl Combined {
    /// The write that it becomes.
    pub fn write(&self) -> Write {
        let Combined { line, mask, data, class, .. } = *self;
        Write { mask, ..Write::line(class, line, data) }
    }

    fn put(&mut self, addr: Addr, value: u64, class: WriteClass) {
        let word = addr.word_in_line();
        self.data[word] = value;
        self.mask |= 1 << word;
        self.class = self.class.min(class);
    }
}

/// Why a line leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// All its words have come.
    Full,
    /// Another line needs its place.
    Evicted,
}

/// The buffer of one core.
#[derive(Clone, Debug)]
pub struct WriteCombining {
    /// Oldest first.
    lines: VecDeque<Combined>,
    lines_max: usize,
}

impl WriteCombining {
    /// Makes an empty buffer of `lines_max` lines.
    pub fn new(lines_max: u32) -> Self {
        assert!(lines_max > 0, "a store has a line to go to");
        Self { lines: VecDeque::new(), lines_max: lines_max as usize }
    }

    /// Takes a store. Returns the line that leaves for it, if any. A line has the stores of one thread only.
    pub fn store(
        &mut self,
        thread: ThreadId,
        addr: Addr,
        value: u64,
        class: WriteClass,
    ) -> Option<(Combined, Cause)> {
        let line = addr.line();
        let found = self.lines.iter().position(|l| l.line == line);
        if let Some(at) = found.filter(|&at| self.lines[at].thread == thread) {
            self.lines[at].put(addr, value, class);
            let full = self.lines[at].mask == WordMask::MAX;
            return if full { self.lines.remove(at).map(|l| (l, Cause::Full)) } else { None };
        }
        let leaves = match found {
            Some(at) => self.lines.remove(at),
            None if self.lines.len() == self.lines_max => self.lines.pop_front(),
            None => None,
        };
        let mut new = Combined { thread, line, mask: 0, data: [0; WORDS_PER_LINE], class };
        new.put(addr, value, class);
        self.lines.push_back(new);
        leaves.map(|l| (l, Cause::Evicted))
    }

    /// The oldest line leaves.
    pub fn take_oldest(&mut self) -> Option<Combined> {
        self.lines.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: WriteClass = WriteClass::Log;

    fn words(left: Option<(Combined, Cause)>) -> Option<(LineAddr, WordMask, Cause)> {
        left.map(|(combined, cause)| (combined.line, combined.mask, cause))
    }

    #[test]
    fn a_full_line_leaves_at_once_with_the_newest_words() {
        let mut buffer = WriteCombining::new(2);
        assert_eq!(buffer.store(0, Addr(64), 9, LOG), None);
        for word in 0..7 {
            assert_eq!(buffer.store(0, Addr(64 + 8 * word), word, LOG), None);
        }
        let (full, cause) = buffer.store(0, Addr(120), 7, LOG).expect("it is full");
        let write = full.write();
        assert_eq!((write.line, write.mask, cause), (LineAddr(1), WordMask::MAX, Cause::Full));
        assert_eq!(write.data, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(buffer.take_oldest(), None);
    }

    #[test]
    fn the_oldest_line_makes_room_and_not_the_one_that_was_used_last() {
        let mut buffer = WriteCombining::new(2);
        assert_eq!(buffer.store(0, Addr(0), 1, LOG), None);
        assert_eq!(buffer.store(0, Addr(64), 2, LOG), None);
        assert_eq!(buffer.store(0, Addr(8), 3, LOG), None, "it has a place");
        let left = words(buffer.store(0, Addr(128), 4, LOG));
        assert_eq!(left, Some((LineAddr(0), 0b11, Cause::Evicted)));
        assert_eq!(buffer.take_oldest().map(|l| l.line), Some(LineAddr(1)));
        assert_eq!(buffer.take_oldest().map(|l| l.line), Some(LineAddr(2)));
        assert_eq!(buffer.take_oldest(), None);
    }

    #[test]
    fn threads_do_not_share_a_line_and_classes_do() {
        let mut buffer = WriteCombining::new(4);
        assert_eq!(buffer.store(0, Addr(0), 1, WriteClass::Metadata), None);
        assert_eq!(buffer.store(0, Addr(8), 1, LOG), None);
        let (left, cause) = buffer.store(1, Addr(16), 2, LOG).expect("the other's line leaves");
        assert_eq!((left.thread, left.write().mask, cause), (0, 0b11, Cause::Evicted));
        assert_eq!(left.write().class, LOG, "as in the write queue");
        assert_eq!(buffer.take_oldest().map(|l| (l.thread, l.mask)), Some((1, 0b100)));
    }
}
