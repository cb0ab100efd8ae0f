//! Log buffers at the L1: stores to a line share an entry until it is sent.

use super::cover::Cover;
use super::record::RECORDS_MAX;
use super::transaction::{LogEntry, Transaction, TxId};
use super::{About, Hold, Mutant, Redu};
use crate::lalea::ENTRIES;
use graven_base::ids::{ThreadId, Tx};
use graven_machine::design::Store;
use graven_machine::machine::Machine;

/// A log entry on its way to the controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) id: TxId,
    pub(super) entry: LogEntry,
}

impl Redu {
    /// Puts a store into the entry of its line. Returns whether there is one.
    pub(super) fn merge(&mut self, m: &mut Machine, store: &Store) -> bool {
        let buffer = &mut self.threads[store.tx.thread as usize].buffer;
        let mut of_line = buffer.iter_mut().filter(|entry| entry.home == store.addr.line());
        let Some(entry) = of_line.next() else { return false };
        if !self.mutants.has(Mutant::MergedWordForgotten) {
            entry.words |= store.addr.word_mask();
        }
        entry.data[store.addr.word_in_line()] = store.new;
        m.cover(Cover::StoreMerged as usize);
        m.count().log_entries_merged += 1;
        true
    }

    /// Why a store must wait before it can have an entry of its own.
    pub(super) fn must_wait(&mut self, m: &mut Machine, tx: Tx) -> Option<Hold> {
        let thread = &self.threads[tx.thread as usize];
        let made = thread.current.map_or(0, |id| self.transactions[&id].made);
        if !self.has_space(m, tx, made) {
            return Some(Hold::Space);
        }
        let full = thread.buffer.len() == self.config.log_buffer_entries as usize;
        if full && thread.outside > 0 {
            return Some(Hold::Queue);
        }
        (self.victims.has_waiting() && self.finishes_something()).then_some(Hold::Victims)
    }

    /// Whether blocks of the log are free for one more entry of a transaction that has made so many.
    fn has_space(&self, m: &mut Machine, tx: Tx, made: usize) -> bool {
        let (thread, records) = (&self.threads[tx.thread as usize], made / ENTRIES);
        let opens = made.is_multiple_of(ENTRIES);
        let Some(blocks) = &self.blocks else {
            let most = (thread.area.slots as usize).min(RECORDS_MAX);
            if opens && records == most {
                m.fail(format!(
                    "transaction {} of thread {} has more log records than redu.log_bytes_per_thread holds ({most})",
                    tx.number, tx.thread
                ));
            }
            return !opens || thread.reserved - thread.head < thread.area.slots;
        };
        let free = blocks.free_entries() > self.reserved_entries
            && (!opens || blocks.free_headers() > self.reserved_headers);
        if opens && records == RECORDS_MAX || !free && !self.finishes_something() {
            m.fail(format!(
                "transactions in progress have more log records than lalea.fle_entries = {}, lalea.fh_entries = {} and {RECORDS_MAX} records per transaction allow",
                self.lalea.fle_entries, self.lalea.fh_entries
            ));
        }
        free
    }

    /// Makes a store's entry; a full buffer sends its oldest first.
    pub(super) fn log(&mut self, m: &mut Machine, store: &Store) {
        let t = store.tx.thread as usize;
        if self.threads[t].buffer.len() == self.config.log_buffer_entries as usize {
            m.cover(Cover::EntryEvicted as usize);
            self.send_oldest(m, t);
        }
        let id = self.threads[t].current.unwrap_or_else(|| self.begin(store.tx));
        let transaction = self.transactions.get_mut(&id).expect("the current one");
        let opens = transaction.made.is_multiple_of(ENTRIES);
        transaction.made += 1;
        let thread = &mut self.threads[t];
        thread.reserved += u64::from(opens);
        if self.blocks.is_some() {
            self.reserved_entries += 1;
            self.reserved_headers += usize::from(opens);
        } else if opens && thread.reserved > thread.area.slots {
            m.cover(Cover::AreaWrapped as usize);
        }
        let home = store.addr.line();
        let mut data = m.line(home);
        data[store.addr.word_in_line()] = store.new;
        thread.buffer.push_back(LogEntry { home, words: store.addr.word_mask(), data });
        let c = m.count();
        c.log_entries += 1;
        c.log_buffer_max = c.log_buffer_max.max(thread.buffer.len() as u64);
    }

    fn begin(&mut self, tx: Tx) -> TxId {
        self.last_id += 1;
        let thread = &mut self.threads[tx.thread as usize];
        thread.current = Some(self.last_id);
        let transaction = Transaction::new(tx.thread, tx.number, thread.reserved);
        self.transactions.insert(self.last_id, transaction);
        self.last_id
    }

    /// The oldest entry of a thread's buffer leaves for the controller.
    pub(super) fn send_oldest(&mut self, m: &mut Machine, t: usize) {
        let thread = &mut self.threads[t];
        let id = thread.current.expect("an entry is that of a transaction");
        let entry = thread.buffer.pop_front().expect("the caller saw one");
        m.note(|| format!("thread {t} sends words {:#010b} of {}", entry.words, entry.home));
        self.travelling.push_back(Message { id, entry });
        m.set_timer(m.now() + m.bypass_cycles(), About::Arrival.of(0, 0));
    }

    /// The oldest message has reached the controller.
    pub(super) fn arrives(&mut self, m: &mut Machine) {
        let message = self.travelling.pop_front().expect("each has its timer");
        let thread = self.transactions[&message.id].thread;
        self.threads[thread as usize].outside += 1;
        self.request(m, super::queue::Request::Entry(message));
    }

    /// Lets threads look again that wait for this.
    pub(super) fn wake(&mut self, m: &mut Machine, holds: &[Hold]) {
        for (t, thread) in self.threads.iter_mut().enumerate() {
            if thread.asleep && thread.held.is_some_and(|hold| holds.contains(&hold)) {
                thread.asleep = false;
                m.release(t as ThreadId);
            }
        }
    }
}
