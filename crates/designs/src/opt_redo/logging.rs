//! The front end: update records from stores, and commit records.

use super::event::Event;
use super::protocol::{Committed, Hold, OptRedo, Phase, Port, Timer, Write};
use super::record::{Kind, Metadata};
use graven_base::ids::Tx;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::time::Cycle;
use graven_machine::design::Store;
use graven_machine::request::{self, WriteClass};

/// A record that was not sent: stores can be merged into it.
#[derive(Clone, Copy, Debug)]
struct OpenRecord {
    home: LineAddr,
    words: WordMask,
    data: LineData,
    number: u64,
}

/// An entry of a thread's log buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogEntry {
    /// Lines of its record that are not durable; 0: it is free.
    lines: u8,
    open: Option<OpenRecord>,
}

impl LogEntry {
    const fn is_free(&self) -> bool {
        self.lines == 0
    }
}

impl OptRedo {
    // ---- update records ------------------------------------------------------------------------

    /// Puts a store into a record of its line that was not sent. Returns whether there is one.
    pub(super) fn merge(&mut self, port: &mut Port<'_>, store: &Store) -> bool {
        let entries = &mut self.threads[store.tx.thread as usize].entries;
        let mut open = entries.iter_mut().filter_map(|entry| entry.open.as_mut());
        let Some(open) = open.find(|open| open.home == store.addr.line()) else { return false };
        open.data[store.addr.word_in_line()] = store.new;
        open.words |= store.addr.word_mask();
        port.emit(Event::Merged);
        true
    }

    /// Why a store must wait before it can have a record of its own.
    pub(super) fn must_wait(&self, port: &mut Port<'_>, tx: Tx) -> Option<Hold> {
        let thread = &self.threads[tx.thread as usize];
        let slots = thread.area.slots;
        // One for this record, one for the commit record.
        if thread.updates + 2 > slots {
            port.fail(format!(
                "transaction {} of thread {} has more records than opt-redo.log_bytes_per_thread = {} holds ({slots})",
                tx.number, tx.thread, self.config.log_bytes_per_thread
            ));
            return Some(Hold::Area);
        }
        if thread.occupied == thread.entries.len() {
            return Some(Hold::Buffer);
        }
        if thread.number + 2 - thread.head > slots {
            return Some(Hold::Area);
        }
        (self.victims.has_waiting() && self.back_end_has_work()).then_some(Hold::Victims)
    }

    /// Makes a store's record. It is sent at once, unless later stores may be merged into it.
    pub(super) fn log(&mut self, port: &mut Port<'_>, store: &Store) {
        let t = store.tx.thread as usize;
        let mut data = port.cached_line(store.addr.line());
        data[store.addr.word_in_line()] = store.new;
        let thread = &mut self.threads[t];
        let free = thread.entries.iter().position(LogEntry::is_free);
        let entry = free.expect("the caller has seen that there is one");
        let number = thread.number;
        thread.number += 1;
        thread.updates += 1;
        thread.tx = store.tx.number;
        let words = store.addr.word_mask();
        let record = OpenRecord { home: store.addr.line(), words, data, number };
        // Its two lines have to become durable.
        thread.entries[entry] = LogEntry { lines: 2, open: Some(record) };
        thread.lines_on_their_way += 2;
        thread.occupied += 1;
        let occupied = thread.occupied;
        port.emit(Event::Recorded { wraps: number >= thread.area.slots, occupied });
        if !self.config.merge_updates || occupied == thread.entries.len() {
            self.send_oldest(port, t);
        }
    }

    /// All records that were not sent are.
    pub(super) fn send_all(&mut self, port: &mut Port<'_>, t: usize) {
        while self.send_oldest(port, t) {}
    }

    /// Sends the oldest record that was not, in two lines. Returns whether there was one.
    fn send_oldest(&mut self, port: &mut Port<'_>, t: usize) -> bool {
        let thread = &mut self.threads[t];
        let entries = thread.entries.iter_mut().enumerate();
        let open = entries.filter_map(|(at, e)| e.open.map(|open| (open.number, at)));
        let Some((number, entry)) = open.min() else { return false };
        let open = thread.entries[entry].open.take();
        let OpenRecord { home, words, data, .. } = open.expect("it was found");
        port.emit(Event::RecordSent { thread: t, home, words, number });
        let kind = Kind::Update { home, words };
        let metadata = Metadata { kind, thread: t as u32, tx: thread.tx, number };
        let metadata = metadata.line(thread.area.torn(number));
        let area = &thread.area;
        let about = Write::Record { thread: t, entry };
        let data = request::Write::line(WriteClass::Log, area.data(number), data);
        port.write_reported(data, about, port.bypass_cycles());
        let metadata = request::Write::line(WriteClass::Metadata, area.metadata(number), metadata);
        port.write_reported(metadata, about, port.bypass_cycles());
        true
    }

    /// A line of a record is durable.
    pub(super) fn record_durable(&mut self, port: &mut Port<'_>, t: usize, entry: usize) {
        let thread = &mut self.threads[t];
        thread.entries[entry].lines -= 1;
        thread.lines_on_their_way -= 1;
        if thread.entries[entry].is_free() {
            thread.occupied -= 1;
            if thread.held == Some(Hold::Buffer) {
                thread.held = None;
                port.release(t as u32);
            }
        }
        self.commit_if_durable(port, t);
    }

    // ---- commit --------------------------------------------------------------------------------

    /// The controller has heard that the transaction has ended.
    pub(super) fn ended(&mut self, port: &mut Port<'_>, t: usize) {
        self.threads[t].phase = Phase::Ended;
        if self.threads[t].lines_on_their_way > 0 {
            port.emit(Event::CommitWaits);
        }
        self.commit_if_durable(port, t);
    }

    /// When all records of an ending transaction are durable, its commit record is sent.
    fn commit_if_durable(&mut self, port: &mut Port<'_>, t: usize) {
        let thread = &self.threads[t];
        let is_durable = thread.lines_on_their_way == 0 || !self.rules.log_is_awaited();
        if thread.phase == Phase::Ended && is_durable {
            self.commit(port, t);
        }
    }

    /// Gives a transaction the next commit sequence number, and sends the commit record with it.
    fn commit(&mut self, port: &mut Port<'_>, t: usize) {
        self.sequence += 1;
        let sequence = self.sequence;
        let thread = &mut self.threads[t];
        thread.phase = Phase::Running;
        let (number, updates) = (thread.number, std::mem::take(&mut thread.updates));
        thread.number += 1;
        let kind = Kind::Commit { sequence, updates };
        let metadata = Metadata { kind, thread: t as u32, tx: thread.tx, number };
        let line = metadata.line(thread.area.torn(number));
        let write = request::Write::line(WriteClass::Metadata, thread.area.metadata(number), line);
        port.emit(Event::CommitSent { thread: t, updates, sequence });
        self.victims.committed(t as u32, sequence);
        if !self.rules.victims_stay_until_home() {
            self.victims.retired(sequence);
        }
        let (thread, first) = (t as u32, number - updates);
        self.committed.push_back(Committed { sequence, thread, first, updates, due: None });
        if !self.rules.commit_leaves_record() {
            return self.commit_durable(port, t);
        }
        port.write_reported(write, Write::Commit { thread: t }, 0);
        if !self.rules.commit_is_awaited() {
            port.release(t as u32);
        }
    }

    /// A commit record is durable: the commit is acknowledged, and the back end may take the transaction.
    pub(super) fn commit_durable(&mut self, port: &mut Port<'_>, t: usize) {
        let due = port.now() + Cycle::from(self.config.checkpoint_delay_cycles);
        let mut later = (self.durable..).zip(self.committed.range_mut(self.durable..));
        let mine = later.find(|(_, c)| c.thread == t as u32 && c.due.is_none());
        // A mutant takes transactions earlier than that.
        if let Some((place, mine)) = mine {
            mine.due = Some(due);
            if place > self.durable {
                port.emit(Event::CommitOutOfOrder);
            }
            self.count_durable();
        }
        port.set_timer(due, Timer::Due);
        if self.rules.commit_is_awaited() {
            port.release(t as u32);
        }
        self.begin_checkpoint_if_due(port);
    }
}
