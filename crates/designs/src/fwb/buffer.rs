//! The volatile log buffer of §IV-C: a FIFO in the memory controller.
//!
//! An entry of a buffer of N moves on by one place per cycle and so leaves after N cycles, one write of
//! records per cycle: those that share a 64 B log line, or a group of packed blocks, leave together if the
//! buffer has them. The oldest leaves earlier when the buffer is full, or when a thread waits for it (a strict
//! commit). While the write queue has no place it stays. Without a buffer (N = 0), a latch of one entry
//! takes its place, in which nothing is coalesced.
//!
//! An entry is a word's, or, where records are those of lines (§III-E, step 6), all of a line's that its
//! transaction has stored since the entry came. Its words stand together, and count for one entry.

use std::collections::VecDeque;

use super::Rules;
use super::slots::Layout;
use crate::packed_log::{Kind, Record, dirty_bytes};
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, WORDS_PER_LINE};
use graven_base::time::Cycle;
use graven_machine::design::Store;

/// A word's record, or a commit record, on its way to the log.
#[derive(Clone, Copy, Debug)]
struct Buffered {
    record: Record,
    /// The number of its entry: words of one have the same.
    entry: u64,
    /// When that came.
    entered: Cycle,
}

/// Places of the log that may be filled together: those of a log line, or of a group.
#[derive(Clone, Copy, Debug)]
pub struct Together {
    /// Places that are left of the line at hand, one at least.
    pub rest: u64,
    /// Places of a line.
    pub per_line: u64,
}

impl Buffered {
    /// Returns true for a commit record of a thread: records behind it belong to the thread's next
    /// transactions. (Ids cannot tell, since they come round.)
    fn ends(&self, thread: ThreadId) -> bool {
        self.record.kind == Kind::Commit && self.record.thread == thread
    }
}

/// Records that have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Words and commit records.
    pub records: usize,
    /// Lines of the log that they take.
    pub lines: u64,
}

/// The buffer.
#[derive(Debug)]
pub struct LogBuffer {
    fifo: VecDeque<Buffered>,
    /// Entries of it, at most `capacity`.
    entries: usize,
    /// Places of the log that they need.
    places: u64,
    capacity: usize,
    residence: Cycle,
    /// Number of slots of a record, where the log has slots.
    layout: Option<Layout>,
    /// True if entries have dirty flags: the bytes in which their words differ.
    dirty_flags: bool,
    /// Words' and commit records that ever entered.
    entered: u64,
    /// Entries that ever did.
    entries_entered: u64,
    /// Number of records, from the oldest on, that leave as soon as they can.
    in_a_hurry: u64,
    /// When the next may leave.
    next_leave: Cycle,
    rules: Rules,
}

impl LogBuffer {
    /// Makes an empty buffer of `entries` entries.
    pub fn new(entries: u32, dirty_flags: bool, layout: Option<Layout>, rules: Rules) -> Self {
        let capacity = entries.max(1) as usize;
        let words = if layout.is_some_and(|l| l.is_by_line()) { WORDS_PER_LINE } else { 1 };
        Self {
            fifo: VecDeque::with_capacity(capacity * words),
            entries: 0,
            places: 0,
            capacity,
            residence: entries.into(),
            layout,
            dirty_flags,
            entered: 0,
            entries_entered: 0,
            in_a_hurry: 0,
            next_leave: 0,
            rules,
        }
    }

    /// Entries that are here.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Places of the log that what is here needs; of packed groups, one for each.
    #[inline]
    pub fn places(&self) -> u64 {
        self.places
    }

    /// Places of an entry of `words` words; a commit record has none.
    #[inline]
    pub fn places_of(&self, words: usize) -> u64 {
        self.layout.map_or(1, |layout| layout.slots_of(words))
    }

    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.entries >= self.capacity
    }

    /// Puts a store into the entry that the same transaction already has here for the word: the undo
    /// word stays, the redo word is replaced. Returns whether there is one.
    #[inline]
    pub fn merge(&mut self, store: &Store) -> bool {
        if self.residence == 0 {
            return false;
        }
        let (rules, thread) = (self.rules, store.tx.thread);
        let across = !rules.merges_within_transaction();
        let is_open = |e: &&mut Buffered| across || !e.ends(thread);
        let same = |e: &&mut Buffered| {
            e.record.addr == store.addr
                && (e.record.thread == thread || across)
                && e.record.kind == Kind::UndoRedo
        };
        let mut newest_first = self.fifo.iter_mut().rev().take_while(is_open);
        let Some(Buffered { record, .. }) = newest_first.find(same) else { return false };
        record.redo = store.new;
        if !rules.merge_keeps_undo() {
            record.undo = store.old;
        }
        if self.dirty_flags && rules.flags_add_up() {
            record.dirty = dirty_bytes(record.undo, record.redo);
        }
        true
    }

    /// The entry of a store's line that the store's transaction has here, where lines have records: behind which record its
    /// last word is, and how many places more the log must have for one more.
    pub fn entry_of_line(&self, store: &Store) -> Option<(usize, u64)> {
        if self.residence == 0 || !self.layout?.is_by_line() {
            return None;
        }
        let (line, thread) = (store.addr.line(), store.tx.thread);
        let is_of_line = |e: &Buffered| {
            e.record.kind == Kind::UndoRedo
                && e.record.thread == thread
                && e.record.addr.line() == line
        };
        let last = self.fifo.iter().rposition(|e| is_of_line(e) || e.ends(thread))?;
        if self.fifo[last].ends(thread) {
            return None;
        }
        let entry = self.fifo[last].entry;
        let words = self.fifo.range(..=last).rev().take_while(|e| e.entry == entry).count();
        Some((last, self.places_of(words + 1) - self.places_of(words)))
    }

    /// Puts a store's word into the entry whose last word is at `last`, and which has no record of
    /// it.
    pub fn join(&mut self, (last, places): (usize, u64), store: &Store) {
        let before = self.fifo[last];
        let record = Record { addr: store.addr, undo: store.old, redo: store.new, ..before.record };
        let left = self.entered - self.fifo.len() as u64;
        self.in_a_hurry += u64::from(left + (last as u64) < self.in_a_hurry);
        self.entered += 1;
        self.places += places;
        self.fifo.insert(last + 1, Buffered { record, ..before });
    }

    /// Appends a record: an entry of a word, or a commit record.
    pub fn push(&mut self, mut record: Record, now: Cycle) {
        assert!(!self.is_full(), "the caller looks for room first");
        if self.dirty_flags && record.kind == Kind::UndoRedo {
            record.dirty = dirty_bytes(record.undo, record.redo);
        }
        let entry = self.entries_entered;
        self.entered += 1;
        self.entries_entered += 1;
        self.entries += 1;
        self.places += self.places_of(usize::from(record.kind == Kind::UndoRedo));
        self.fifo.push_back(Buffered { record, entry, entered: now });
    }

    /// Lets everything that is here now leave as soon as it can.
    pub fn hurry(&mut self) {
        self.in_a_hurry = self.entered;
    }

    /// Returns true if the oldest record has been in the buffer for longer than its time.
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

    /// Number of records that would have to leave for none of a line's entries to be here.
    pub fn ahead_of_line(&self, line: LineAddr) -> usize {
        let of_line =
            |e: &Buffered| e.record.kind == Kind::UndoRedo && e.record.addr.line() == line;
        self.fifo.iter().rposition(of_line).map_or(0, |last| last + 1)
    }

    /// Takes out the oldest entry, and those behind it that share the log line in which it ends. Records that say
    /// something go to `into`: one of a word without a dirty byte does not, for its word is as it was before. A
    /// write leaves per cycle.
    pub fn take(&mut self, together: Together, now: Cycle, into: &mut Vec<Record>) -> Taken {
        let Together { rest, per_line } = together;
        let (mut end, mut lines, mut records) = (rest, 1, 0);
        let mut places = 0;
        while let Some((words, more)) = self.next_entry() {
            if records == 0 && more > end {
                lines += (more - rest).div_ceil(per_line);
                end = rest + (lines - 1) * per_line;
            }
            if places + more > end {
                break;
            }
            (places, records) = (places + more, records + words);
            self.entries -= 1;
            self.places -= more;
            let taken = self.fifo.drain(..words).map(|e| e.record);
            into.extend(taken.filter(|record| record.dirty != 0));
        }
        self.next_leave = self.next_leave.max(now + lines);
        Taken { records, lines }
    }

    /// Records of the oldest entry, and places that it needs.
    fn next_entry(&self) -> Option<(usize, u64)> {
        let oldest = self.fifo.front()?;
        if oldest.record.kind == Kind::Commit {
            return Some((1, self.places_of(0)));
        }
        let words = self.fifo.iter().take_while(|e| e.entry == oldest.entry).count();
        Some((words, self.places_of(words)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::FwbConfig;
    use super::super::record::RecordFormat;
    use super::*;
    use graven_base::ids::Tx;
    use graven_base::memory::Addr;

    const TX: Tx = Tx { thread: 0, number: 5 };

    fn entry(addr: u64, undo: u64, redo: u64) -> Record {
        Record { kind: Kind::UndoRedo, tx: 5, addr: Addr(addr), undo, redo, ..Record::BLANK }
    }

    fn buffer(entries: u32) -> LogBuffer {
        LogBuffer::new(entries, false, None, Rules::default())
    }

    /// Up to `rest` records of one place each.
    fn group(rest: u64) -> Together {
        Together { rest, per_line: rest }
    }

    fn take(buffer: &mut LogBuffer, at_most: u64, now: Cycle) -> Vec<Record> {
        let mut taken = Vec::new();
        buffer.take(group(at_most), now, &mut taken);
        taken
    }

    /// A buffer for records of lines, in slots of 32 B.
    fn by_line() -> LogBuffer {
        let fwb = FwbConfig { record_format: RecordFormat::Line, ..FwbConfig::default() };
        LogBuffer::new(15, false, Some(Layout::of(&fwb)), Rules::default())
    }

    fn store(addr: u64, old: u64, new: u64) -> Store {
        Store { tx: TX, core: 0, addr: Addr(addr), old, new }
    }

    /// FWB §III-E, step 6.
    #[test]
    fn words_of_a_line_join_its_entry() {
        let mut buffer = by_line();
        buffer.push(entry(64, 1, 2), 100);
        buffer.push(entry(128, 1, 2), 101);
        assert_eq!((buffer.entries(), buffer.places()), (2, 2));
        let other = Tx { thread: 1, ..TX };
        assert_eq!(buffer.entry_of_line(&Store { tx: other, ..store(72, 0, 0) }), None);
        for (addr, places, more) in [(80, 3, 1), (72, 3, 0), (88, 4, 1)] {
            let store = store(addr, 1, 2);
            let at = buffer.entry_of_line(&store).expect("its line is here");
            assert_eq!(at.1, more, "{addr}");
            buffer.join(at, &store);
            assert_eq!((buffer.entries(), buffer.places()), (2, places), "{addr}");
        }
        assert!(buffer.merge(&store(80, 2, 9)), "a word that is here is merged");
        assert_eq!(buffer.due(), Some(115), "as old as its first word");
        assert_eq!(buffer.ahead_of_line(LineAddr(1)), 4);
        // Four words are 80 B, three slots: one is left of the first log line, two are the next.
        let mut taken = Vec::new();
        let sent = buffer.take(Together { rest: 1, per_line: 2 }, 115, &mut taken);
        assert_eq!(sent, Taken { records: 4, lines: 2 });
        assert_eq!(taken, [entry(64, 1, 2), entry(80, 1, 9), entry(72, 1, 2), entry(88, 1, 2)]);
        assert_eq!((buffer.entries(), buffer.places()), (1, 1));
        assert_eq!(buffer.due(), Some(117), "a write per cycle");
    }

    #[test]
    fn what_joins_a_hurried_entry_hurries() {
        let mut buffer = by_line();
        buffer.push(entry(64, 1, 2), 100);
        buffer.hurry();
        buffer.push(entry(128, 1, 2), 100);
        let store = store(72, 1, 2);
        let at = buffer.entry_of_line(&store).expect("its line is here");
        buffer.join(at, &store);
        let mut taken = Vec::new();
        assert_eq!(buffer.due(), Some(0));
        let sent = buffer.take(Together { rest: 2, per_line: 2 }, 101, &mut taken);
        assert_eq!(sent.records, 2, "its record fills the log line");
        assert_eq!(buffer.due(), Some(115), "the other does not hurry");
    }

    #[test]
    fn an_entry_leaves_after_as_many_cycles_as_there_are_places() {
        let mut buffer = buffer(15);
        assert_eq!(buffer.due(), None);
        buffer.push(entry(64, 1, 2), 100);
        buffer.push(entry(128, 1, 2), 100);
        assert_eq!(buffer.due(), Some(115));
        assert_eq!(take(&mut buffer, 1, 115), [entry(64, 1, 2)]);
        assert_eq!(buffer.due(), Some(116), "one write per cycle");
        for number in 2..16 {
            assert!(!buffer.is_full());
            buffer.push(entry(number * 64, 1, 2), 110);
        }
        assert!(buffer.is_full());
        assert_eq!(buffer.due(), Some(116), "full");
    }

    #[test]
    fn without_a_buffer_an_entry_leaves_at_once() {
        let mut buffer = buffer(0);
        buffer.push(entry(64, 1, 2), 100);
        assert!(buffer.is_full());
        assert!(buffer.due().is_some_and(|at| at <= 100));
        let again = Store { tx: TX, core: 0, addr: Addr(64), old: 2, new: 9 };
        assert!(!buffer.merge(&again), "nothing is coalesced without a buffer (§IV-C)");
    }

    #[test]
    fn whoever_waits_hurries_what_is_there_and_nothing_else() {
        let mut buffer = buffer(15);
        buffer.push(entry(64, 1, 2), 100);
        buffer.hurry();
        buffer.push(entry(128, 1, 2), 101);
        assert!(buffer.due().is_some_and(|at| at <= 101));
        take(&mut buffer, 1, 101);
        assert_eq!(buffer.due(), Some(116));
    }

    #[test]
    fn only_the_same_transaction_merges_and_the_oldest_undo_word_stays() {
        let mut buffer = buffer(15);
        buffer.push(entry(64, 1, 2), 0);
        let mut merge = |tx: Tx, addr: u64| {
            buffer.merge(&Store { tx, core: 0, addr: Addr(addr), old: 2, new: 9 })
        };
        assert!(!merge(TX, 72), "another word of the line");
        assert!(!merge(Tx { thread: 1, ..TX }, 64));
        assert!(merge(TX, 64));
        // Ids come round: the commit record says that a transaction with the same id is another one.
        let commit = Record { kind: Kind::Commit, ..entry(0, 0, 0) };
        buffer.push(Record { thread: 1, ..commit }, 0);
        let store = Store { tx: TX, core: 0, addr: Addr(64), old: 2, new: 9 };
        assert!(buffer.merge(&store), "the commit is another thread's");
        buffer.push(commit, 0);
        assert!(!buffer.merge(&store));
        assert_eq!(take(&mut buffer, 1, 0), [entry(64, 1, 9)]);
    }

    #[test]
    fn flags_follow_merges_and_an_entry_without_a_dirty_byte_says_nothing() {
        let mut buffer = LogBuffer::new(15, true, None, Rules::default());
        let store = |addr, new| Store { tx: TX, core: 0, addr: Addr(addr), old: 0, new };
        buffer.push(entry(64, 1, 2), 0);
        buffer.push(entry(72, 1, 2), 0);
        assert!(buffer.merge(&store(64, 0x0003_0000)) && buffer.merge(&store(72, 1)));
        let commit = Record { kind: Kind::Commit, ..Record::BLANK };
        buffer.push(commit, 0);
        let mut taken = Vec::new();
        assert_eq!(buffer.take(group(4), 0, &mut taken).records, 3);
        assert_eq!(taken, [Record { dirty: 0b101, ..entry(64, 1, 0x0003_0000) }, commit]);
    }

    #[test]
    fn a_line_waits_for_its_youngest_entry() {
        let mut buffer = buffer(15);
        for addr in [64, 128, 72, 192] {
            buffer.push(entry(addr, 0, 0), 0);
        }
        assert_eq!(buffer.ahead_of_line(LineAddr(1)), 3);
        assert_eq!(buffer.ahead_of_line(LineAddr(7)), 0);
    }
}
