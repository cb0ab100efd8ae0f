//! The volatile log buffer of §IV-C: a FIFO in the memory controller.
//!
//! An entry of a buffer of N moves on by one place per cycle and so leaves after N cycles, one log line
//! per cycle; two records that share a 64 B log line leave together if both are there. The oldest leaves
//! earlier when the buffer is full, or when somebody waits for it (a strict commit). While the write
//! queue has no place it stays. Without a buffer (N = 0), a latch of one entry takes its place.

use std::collections::VecDeque;

use super::Sabotage;
use super::log::{Kind, Log, RECORD_WORDS, Record};
use crate::designs::{Sabotages, Store, Tx};
use crate::machine::{Cycle, Write, WriteClass};
use crate::memory::{LINE_BYTES, LineAddr, WORDS_PER_LINE};

/// A record on its way to the log.
#[derive(Clone, Copy, Debug)]
struct Buffered {
    record: Record,
    tx: Tx,
    /// Its number in the log.
    number: u64,
    entered: Cycle,
}

/// The buffer.
#[derive(Debug)]
pub struct LogBuffer {
    fifo: VecDeque<Buffered>,
    capacity: usize,
    residence: Cycle,
    /// Records before this number leave as soon as they can.
    hurry_before: u64,
    /// When the next may leave.
    next_leave: Cycle,
    sabotages: Sabotages,
}

/// What leaves in one cycle.
#[derive(Debug)]
pub struct Batch {
    /// To be sent.
    pub write: Write,
    /// Number of the first record in it.
    pub first: u64,
    /// Records in it.
    pub records: usize,
    /// Commit records among them.
    pub commits: usize,
}

impl LogBuffer {
    /// An empty buffer of so many entries.
    pub fn new(entries: u32, sabotages: Sabotages) -> Self {
        let capacity = entries.max(1) as usize;
        Self {
            fifo: VecDeque::with_capacity(capacity),
            capacity,
            residence: entries.into(),
            hurry_before: 0,
            next_leave: 0,
            sabotages,
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

    /// Number of the oldest record.
    pub fn oldest(&self) -> Option<u64> {
        self.fifo.front().map(|e| e.number)
    }

    /// Puts a store into the entry that the same transaction already has here for the word: the undo
    /// word stays, the redo word is replaced. Returns the number of that entry's record, if there is one.
    #[inline]
    pub fn merge(&mut self, store: &Store) -> Option<u64> {
        let has = |sabotage| self.sabotages.has(sabotage);
        let same = |e: &&mut Buffered| {
            e.record.addr == store.addr
                && (e.tx == store.tx || has(Sabotage::MergesAcrossTransactions))
                && e.record.kind == Kind::Entry
        };
        let entry = self.fifo.iter_mut().rev().find(same)?;
        entry.record.redo = store.new;
        if has(Sabotage::MergeTakesUndo) {
            entry.record.undo = store.old;
        }
        Some(entry.number)
    }

    /// Appends a record.
    pub fn push(&mut self, record: Record, tx: Tx, number: u64, now: Cycle) {
        debug_assert!(!self.is_full(), "the caller looks for room first");
        self.fifo.push_back(Buffered { record, tx, number, entered: now });
    }

    /// Lets everything that is here now leave as soon as it can.
    pub fn hurry(&mut self) {
        self.hurry_before = self.fifo.back().map_or(0, |e| e.number + 1);
    }

    /// Whether the oldest record has been here for longer than its time.
    pub fn is_late(&self, now: Cycle) -> bool {
        self.fifo.front().is_some_and(|oldest| now > oldest.entered + self.residence)
    }

    /// When the oldest record leaves.
    pub fn due(&self) -> Option<Cycle> {
        let oldest = self.fifo.front()?;
        let hurries = self.is_full() || oldest.number < self.hurry_before;
        let by_age = if hurries { 0 } else { oldest.entered + self.residence };
        Some(by_age.max(self.next_leave))
    }

    /// How many records would have to leave for none of a line's entries to be here.
    pub fn ahead_of_line(&self, line: LineAddr) -> usize {
        let of_line = |e: &Buffered| e.record.kind == Kind::Entry && e.record.addr.line() == line;
        self.fifo.iter().rposition(of_line).map_or(0, |last| last + 1)
    }

    /// Takes out the oldest record, with its successor if that lies in the same log line.
    pub fn take(&mut self, log: &Log, now: Cycle) -> Option<Batch> {
        let first = self.fifo.pop_front()?;
        self.next_leave = self.next_leave.max(now + 1);
        let at = log.slot(first.number);
        let mut words = [0; WORDS_PER_LINE];
        let mut used = (log.slot_bytes / 8) as usize;
        words[..RECORD_WORDS].copy_from_slice(&first.record.words(log.torn(first.number)));
        let is_commit = |e: &Buffered| usize::from(e.record.kind == Kind::Commit);
        let (mut records, mut commits) = (1, is_commit(&first));
        let next = self.fifo.front().copied();
        if let Some(next) = next.filter(|n| log.slot(n.number).line() == at.line()) {
            debug_assert!(at.0.is_multiple_of(LINE_BYTES), "records come in the order of slots");
            words[RECORD_WORDS..].copy_from_slice(&next.record.words(log.torn(next.number)));
            used = WORDS_PER_LINE;
            records += 1;
            commits += is_commit(&next);
            self.fifo.pop_front();
        }
        let class = if records == commits { WriteClass::Metadata } else { WriteClass::Log };
        let write = Write::words(class, at, &words[..used]);
        Some(Batch { write, first: first.number, records, commits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::designs::Site;
    use crate::memory::Addr;

    fn log(slot_bytes: &str) -> Log {
        let mut config = Config::defaults();
        config.set("fwb.slot_bytes", slot_bytes).expect("a valid size");
        Log::of(&Site::new(config, 1, Addr(0), Addr(4 << 20)))
    }

    const TX: Tx = Tx { thread: 0, number: 5 };

    fn entry(addr: u64, undo: u64, redo: u64) -> Record {
        Record { kind: Kind::Entry, thread: 0, tx: 5, addr: Addr(addr), undo, redo }
    }

    #[test]
    fn an_entry_leaves_after_as_many_cycles_as_there_are_places() {
        let mut buffer = LogBuffer::new(15, Sabotages::NONE);
        assert_eq!(buffer.due(), None);
        buffer.push(entry(64, 1, 2), TX, 0, 100);
        buffer.push(entry(128, 1, 2), TX, 1, 100);
        assert_eq!(buffer.due(), Some(115));
        assert!(buffer.take(&log("64"), 115).is_some());
        assert_eq!(buffer.due(), Some(116), "one per cycle");
        for number in 2..16 {
            assert!(!buffer.is_full());
            buffer.push(entry(number * 64, 1, 2), TX, number, 110);
        }
        assert!(buffer.is_full());
        assert_eq!(buffer.due(), Some(116), "full");
    }

    #[test]
    fn without_a_buffer_an_entry_leaves_at_once() {
        let mut buffer = LogBuffer::new(0, Sabotages::NONE);
        buffer.push(entry(64, 1, 2), TX, 0, 100);
        assert!(buffer.is_full());
        assert!(buffer.due().is_some_and(|at| at <= 100));
    }

    #[test]
    fn only_the_same_transaction_merges_and_the_oldest_undo_word_stays() {
        let mut buffer = LogBuffer::new(15, Sabotages::NONE);
        buffer.push(entry(64, 1, 2), TX, 0, 0);
        let mut merge = |tx: Tx, addr: u64| {
            buffer.merge(&Store { tx, core: 0, addr: Addr(addr), old: 2, new: 9 })
        };
        assert_eq!(merge(TX, 72), None, "another word of the line");
        assert_eq!(merge(Tx { number: 5 + (1 << 16), ..TX }, 64), None, "same 16-bit id");
        assert_eq!(merge(Tx { thread: 1, ..TX }, 64), None);
        assert_eq!(merge(TX, 64), Some(0));
        let batch = buffer.take(&log("32"), 0).expect("one entry");
        assert_eq!(batch.write.data[..4], entry(64, 1, 9).words(true));
    }

    #[test]
    fn neighbours_in_a_log_line_leave_together() {
        let mut buffer = LogBuffer::new(15, Sabotages::NONE);
        for number in 0..4 {
            buffer.push(entry(64, number, 0), TX, number, 0);
        }
        let packed = log("32");
        let batch = buffer.take(&packed, 0).expect("four entries");
        assert_eq!((batch.records, batch.commits, batch.write.mask), (2, 0, 0xff));
        assert_eq!(batch.write.line, packed.slot(0).line());
        let batch = buffer.take(&log("64"), 1).expect("two entries");
        assert_eq!((batch.records, batch.write.mask), (1, 0xff), "a 64 B record is a line");
        let batch = buffer.take(&packed, 2).expect("one entry");
        assert_eq!((batch.records, batch.write.mask), (1, 0xf0), "the second half of a line");
    }

    #[test]
    fn a_line_waits_for_its_youngest_entry() {
        let mut buffer = LogBuffer::new(15, Sabotages::NONE);
        for (number, addr) in [64, 128, 72, 192].into_iter().enumerate() {
            buffer.push(entry(addr, 0, 0), TX, number as u64, 0);
        }
        assert_eq!(buffer.ahead_of_line(LineAddr(1)), 3);
        assert_eq!(buffer.ahead_of_line(LineAddr(7)), 0);
    }
}
