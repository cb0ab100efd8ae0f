//! The front end: update records from stores, and commit records.

use super::cover::Cover;
use super::record::{Kind, Metadata};
use super::{About, Committed, Hold, Mutant, OptRedo, Phase};
use graven_base::ids::Tx;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::time::Cycle;
use graven_machine::design::Store;
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

/// A record that was not sent: stores can be merged into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenRecord {
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
    /// Puts a store into a record of its line that was not sent. Returns whether there is one.
    pub(super) fn merge(&mut self, m: &mut Machine, store: &Store) -> bool {
        let entries = &mut self.threads[store.tx.thread as usize].entries;
        let mut open = entries.iter_mut().filter_map(|entry| entry.open.as_mut());
        let Some(open) = open.find(|open| open.home == store.addr.line()) else { return false };
        let word = store.addr.word_in_line();
        open.data[word] = store.new;
        open.words |= 1 << word;
        m.cover(Cover::UpdateMerged as usize);
        m.count().log_entries_merged += 1;
        true
    }

    /// Why a store must wait before it can have a record of its own.
    pub(super) fn must_wait(&self, m: &mut Machine, tx: Tx) -> Option<Hold> {
        let thread = &self.threads[tx.thread as usize];
        let slots = thread.area.slots;
        // One for this record, one for the commit record.
        if thread.updates + 2 > slots {
            m.fail(format!(
                "transaction {} of thread {} has more records than opt-redo.log_bytes_per_thread = {} holds ({slots})",
                tx.number, tx.thread, self.config.log_bytes_per_thread
            ));
            return Some(Hold::Area);
        }
        if thread.entries.iter().all(|entry| !entry.is_free()) {
            return Some(Hold::Buffer);
        }
        if thread.number + 2 - thread.head > slots {
            return Some(Hold::Area);
        }
        (self.victims.has_waiting() && self.back_end_has_work()).then_some(Hold::Victims)
    }

    /// Makes a store's record.
    pub(super) fn log(&mut self, m: &mut Machine, store: &Store) {
        let t = store.tx.thread as usize;
        let mut data = m.line(store.addr.line());
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
        let used = thread.entries.iter().filter(|entry| !entry.is_free()).count();
        if number >= thread.area.slots {
            m.cover(Cover::AreaWrapped as usize);
        }
        let c = m.count();
        c.log_entries += 1;
        c.log_buffer_max = c.log_buffer_max.max(used as u64);
        if !self.config.merge_updates || used == thread.entries.len() {
            self.send_oldest(m, t);
        }
    }

    /// All records that were not sent are.
    pub(super) fn send_all(&mut self, m: &mut Machine, t: usize) {
        while self.send_oldest(m, t) {}
    }

    /// Sends the oldest record that was not. Returns whether there was one.
    fn send_oldest(&mut self, m: &mut Machine, t: usize) -> bool {
        let thread = &mut self.threads[t];
        let entries = thread.entries.iter_mut().enumerate();
        let open = entries.filter_map(|(at, e)| e.open.map(|open| (open.number, at)));
        let Some((number, entry)) = open.min() else { return false };
        let open = thread.entries[entry].open.take();
        let OpenRecord { home, words, data, .. } = open.expect("it was found");
        let kind = Kind::Update { home, words };
        let metadata = Metadata { kind, thread: t as u8, tx: thread.tx, number };
        let metadata = metadata.line(thread.area.torn(number));
        let token = About::Record.of_entry(t, entry);
        m.note(|| {
            format!("thread {t} logs words {words:#010b} of {} (record {number})", home.addr())
        });
        let data = Write::line(WriteClass::Log, thread.area.data(number), data);
        m.write(Write { token, ..data }, m.bypass_cycles());
        let metadata = Write::line(WriteClass::Metadata, thread.area.metadata(number), metadata);
        m.write(Write { token, ..metadata }, m.bypass_cycles());
        true
    }

    /// A line of a record is durable.
    pub(super) fn record_durable(&mut self, m: &mut Machine, t: usize, entry: usize) {
        let thread = &mut self.threads[t];
        thread.entries[entry].lines -= 1;
        thread.lines_on_their_way -= 1;
        if thread.entries[entry].is_free() && thread.held == Some(Hold::Buffer) {
            thread.held = None;
            m.release(t as u32);
        }
        self.commit_if_durable(m, t);
    }

    /// The controller has heard that the transaction has ended.
    pub(super) fn ended(&mut self, m: &mut Machine, t: usize) {
        self.threads[t].phase = Phase::Ended;
        if self.threads[t].lines_on_their_way > 0 {
            m.cover(Cover::CommitWaits as usize);
        }
        self.commit_if_durable(m, t);
    }

    /// When all records of an ending transaction are durable, its commit record is sent.
    fn commit_if_durable(&mut self, m: &mut Machine, t: usize) {
        let thread = &mut self.threads[t];
        let durable = thread.lines_on_their_way == 0 || self.mutants.has(Mutant::LogNotAwaited);
        if thread.phase != Phase::Ended || !durable {
            return;
        }
        thread.phase = Phase::Running;
        let (number, updates) = (thread.number, thread.updates);
        thread.number += 1;
        thread.updates = 0;
        self.sequence += 1;
        let sequence = self.sequence;
        let kind = Kind::Commit { sequence, updates };
        let metadata = Metadata { kind, thread: t as u8, tx: thread.tx, number };
        let line = metadata.line(thread.area.torn(number));
        let write = Write::line(WriteClass::Metadata, thread.area.metadata(number), line);
        m.count().ordering_points += 1;
        m.note(|| format!("thread {t}: {updates} records are durable, sends commit {sequence}"));
        self.victims.committed(t as u32, sequence);
        if self.mutants.has(Mutant::VictimsDroppedAtCommit) {
            self.victims.retired(sequence);
        }
        let (thread, first) = (t as u32, number - updates);
        self.committed.push_back(Committed { sequence, thread, first, updates, due: None });
        if self.mutants.has(Mutant::CommitRecordMissing) {
            return self.commit_durable(m, t);
        }
        m.write(Write { token: About::Commit.of(t), ..write }, 0);
        if self.mutants.has(Mutant::CommitNotAwaited) {
            m.set_timer(m.now() + m.bypass_cycles(), About::Acknowledgement.of(t));
        }
    }

    pub(super) fn commit_durable(&mut self, m: &mut Machine, t: usize) {
        let due = m.now() + Cycle::from(self.config.checkpoint_delay_cycles);
        let mut earlier = self.committed.iter_mut();
        let mine = earlier.find(|c| c.thread == t as u32 && c.due.is_none());
        // A mutant takes transactions earlier than that.
        if let Some(mine) = mine {
            mine.due = Some(due);
            let sequence = mine.sequence;
            if self.committed.iter().any(|c| c.sequence < sequence && c.due.is_none()) {
                m.cover(Cover::CommitsOutOfOrder as usize);
            }
        }
        m.set_timer(due, About::Due.of(0));
        if !self.mutants.has(Mutant::CommitNotAwaited) {
            m.set_timer(m.now() + m.bypass_cycles(), About::Acknowledgement.of(t));
        }
        self.begin_checkpoint_if_due(m);
    }
}
