//! The volatile log buffer of §IV-C: a FIFO in the memory controller.
//!
//! An entry of a buffer of N moves on by one place per cycle and so leaves after N cycles, one write of
//! records per cycle: those that share a 64 B log line, or a group of packed blocks, leave together if they
//! are there. The oldest leaves earlier when the buffer is full, or when somebody waits for it (a strict
//! commit). While the write queue has no place it stays. Without a buffer (N = 0), a latch of one entry
//! takes its place, in which nothing is coalesced.

use std::collections::VecDeque;

use super::Mutant;
use crate::packed_log::{Kind, Record, dirty_bytes};
use graven_base::ids::Tx;
use graven_base::memory::LineAddr;
use graven_base::time::Cycle;
use graven_machine::design::{Mutants, Store};

/// A record on its way to the log.
#[derive(Clone, Copy, Debug)]
struct Buffered {
    record: Record,
    tx: Tx,
    entered: Cycle,
}

/// The buffer.
#[derive(Debug)]
pub struct LogBuffer {
    fifo: VecDeque<Buffered>,
    capacity: usize,
    residence: Cycle,
    /// Whether entries have dirty flags: the bytes in which their words differ.
    dirty_flags: bool,
    /// Records that ever entered.
    entered: u64,
    /// The first so many of them leave as soon as they can.
    in_a_hurry: u64,
    /// When the next may leave.
    next_leave: Cycle,
    mutants: Mutants<Mutant>,
}

impl LogBuffer {
    /// An empty buffer of so many entries.
    pub fn new(entries: u32, dirty_flags: bool, mutants: Mutants<Mutant>) -> Self {
        let capacity = entries.max(1) as usize;
        Self {
            fifo: VecDeque::with_capacity(capacity),
            capacity,
            residence: entries.into(),
            dirty_flags,
            entered: 0,
            in_a_hurry: 0,
            next_leave: 0,
            mutants,
        }
    }

    pub fn len(&self) -> usize {
        self.fifo.len()
    }

    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.fifo.len() >= self.capacity
    }

    /// Puts a store into the entry that the same transaction already has here for the word: the undo
    /// word stays, the redo word is replaced. Returns whether there is one.
    #[inline]
    pub fn merge(&mut self, store: &Store) -> bool {
        if self.residence == 0 {
            return false;
        }
        let mutants = self.mutants;
        let same = |e: &&mut Buffered| {
            e.record.addr == store.addr
                && (e.tx == store.tx || mutants.has(Mutant::MergesAcrossTransactions))
                && e.record.kind == Kind::UndoRedo
        };
        let Some(Buffered { record, .. }) = self.fifo.iter_mut().rev().find(same) else {
            return false;
        };
        record.redo = store.new;
        if mutants.has(Mutant::MergeTakesUndo) {
            record.undo = store.old;
        }
        if self.dirty_flags && !mutants.has(Mutant::FlagOfFirstStore) {
            record.dirty = dirty_bytes(record.undo, record.redo);
        }
        true
    }

    /// Appends a record.
    pub fn push(&mut self, mut record: Record, tx: Tx, now: Cycle) {
        assert!(!self.is_full(), "the caller looks for room first");
        if self.dirty_flags && record.kind == Kind::UndoRedo {
            record.dirty = dirty_bytes(record.undo, record.redo);
        }
        self.entered += 1;
        self.fifo.push_back(Buffered { record, tx, entered: now });
    }

    /// Lets everything that is here now leave as soon as it can.
    pub fn hurry(&mut self) {
        self.in_a_hurry = self.entered;
    }

    /// Whether the oldest record has been here for longer than its time.
    pub fn is_late(&self, now: Cycle) -> bool {
        self.fifo.front().is_some_and(|oldest| now > oldest.entered + self.residence)
    }

    /// When the oldest record leaves.
    pub fn due(&self) -> Option<Cycle> {
        let oldest = self.fifo.front()?;
        let left = self.entered - self.fifo.len() as u64;
        let hurries = self.is_full() || left < self.in_a_hurry;
        let by_age = if hurries { 0 } else { oldest.entered + self.residence };
        Some(by_age.max(self.next_leave))
    }

    /// How many records would have to leave for none of a line's entries to be here.
    pub fn ahead_of_line(&self, line: LineAddr) -> usize {
        let of_line =
            |e: &Buffered| e.record.kind == Kind::UndoRedo && e.record.addr.line() == line;
        self.fifo.iter().rposition(of_line).map_or(0, |last| last + 1)
    }

    /// Takes out the oldest records, at most so many, and returns how many. Those that say something go to
    /// `into`: an entry without a dirty byte does not, for its word is as it was before.
    pub fn take(&mut self, at_most: usize, now: Cycle, into: &mut Vec<Record>) -> usize {
        self.next_leave = self.next_leave.max(now + 1);
        let count = at_most.min(self.fifo.len());
        let taken = self.fifo.drain(..count).map(|e| e.record);
        into.extend(taken.filter(|record| record.dirty != 0));
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::memory::Addr;
    use graven_machine::design::MutantSet;

    const TX: Tx = Tx { thread: 0, number: 5 };

    fn entry(addr: u64, undo: u64, redo: u64) -> Record {
        Record { kind: Kind::UndoRedo, tx: 5, addr: Addr(addr), undo, redo, ..Record::BLANK }
    }

    fn buffer(entries: u32) -> LogBuffer {
        LogBuffer::new(entries, false, Mutants::of(MutantSet::NONE))
    }

    fn take(buffer: &mut LogBuffer, at_most: usize, now: Cycle) -> Vec<Record> {
        let mut taken = Vec::new();
        buffer.take(at_most, now, &mut taken);
        taken
    }

    #[test]
    fn an_entry_leaves_after_as_many_cycles_as_there_are_places() {
        let mut buffer = buffer(15);
        assert_eq!(buffer.due(), None);
        buffer.push(entry(64, 1, 2), TX, 100);
        buffer.push(entry(128, 1, 2), TX, 100);
        assert_eq!(buffer.due(), Some(115));
        assert_eq!(take(&mut buffer, 1, 115), [entry(64, 1, 2)]);
        assert_eq!(buffer.due(), Some(116), "one write per cycle");
        for number in 2..16 {
            assert!(!buffer.is_full());
            buffer.push(entry(number * 64, 1, 2), TX, 110);
        }
        assert!(buffer.is_full());
        assert_eq!(buffer.due(), Some(116), "full");
    }

    #[test]
    fn without_a_buffer_an_entry_leaves_at_once() {
        let mut buffer = buffer(0);
        buffer.push(entry(64, 1, 2), TX, 100);
        assert!(buffer.is_full());
        assert!(buffer.due().is_some_and(|at| at <= 100));
        let again = Store { tx: TX, core: 0, addr: Addr(64), old: 2, new: 9 };
        assert!(!buffer.merge(&again), "nothing is coalesced without a buffer (§IV-C)");
    }

    #[test]
    fn whoever_waits_hurries_what_is_there_and_nothing_else() {
        let mut buffer = buffer(15);
        buffer.push(entry(64, 1, 2), TX, 100);
        buffer.hurry();
        buffer.push(entry(128, 1, 2), TX, 101);
        assert!(buffer.due().is_some_and(|at| at <= 101));
        take(&mut buffer, 1, 101);
        assert_eq!(buffer.due(), Some(116));
    }

    #[test]
    fn only_the_same_transaction_merges_and_the_oldest_undo_word_stays() {
        let mut buffer = buffer(15);
        buffer.push(entry(64, 1, 2), TX, 0);
        let mut merge = |tx: Tx, addr: u64| {
            buffer.merge(&Store { tx, core: 0, addr: Addr(addr), old: 2, new: 9 })
        };
        assert!(!merge(TX, 72), "another word of the line");
        assert!(!merge(Tx { number: 5 + (1 << 16), ..TX }, 64), "same 16-bit id");
        assert!(!merge(Tx { thread: 1, ..TX }, 64));
        assert!(merge(TX, 64));
        assert_eq!(take(&mut buffer, 4, 0), [entry(64, 1, 9)]);
    }

    #[test]
    fn flags_follow_merges_and_an_entry_without_a_dirty_byte_says_nothing() {
        let mut buffer = LogBuffer::new(15, true, Mutants::of(MutantSet::NONE));
        let store = |addr, new| Store { tx: TX, core: 0, addr: Addr(addr), old: 0, new };
        buffer.push(entry(64, 1, 2), TX, 0);
        buffer.push(entry(72, 1, 2), TX, 0);
        let commit = Record { kind: Kind::Commit, ..Record::BLANK };
        buffer.push(commit, TX, 0);
        assert!(buffer.merge(&store(64, 0x0003_0000)) && buffer.merge(&store(72, 1)));
        let mut taken = Vec::new();
        assert_eq!(buffer.take(4, 0, &mut taken), 3);
        assert_eq!(taken, [Record { dirty: 0b101, ..entry(64, 1, 0x0003_0000) }, commit]);
    }

    #[test]
    fn a_line_waits_for_its_youngest_entry() {
        let mut buffer = buffer(15);
        for addr in [64, 128, 72, 192] {
            buffer.push(entry(addr, 0, 0), TX, 0);
        }
        assert_eq!(buffer.ahead_of_line(LineAddr(1)), 3);
        assert_eq!(buffer.ahead_of_line(LineAddr(7)), 0);
    }
}
