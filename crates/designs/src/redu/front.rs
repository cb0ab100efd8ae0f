//! Log buffers at the L1: stores to a line share an entry until it is sent.

use super::event::Event;
use super::protocol::{Hold, Port, Redu, Timer};
use super::queue::Request;
use super::record::RECORDS_MAX;
use super::transaction::{LogEntry, Transaction, TxId};
use crate::lalea::ENTRIES;
use graven_base::ids::{ThreadId, Tx};
use graven_machine::design::Store;

/// A log entry on its way to the controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) id: TxId,
    pub(super) entry: LogEntry,
}

impl Redu {
    /// Puts a store into the entry of its line. Returns whether there is one.
    pub(super) fn merge(&mut self, port: &mut Port<'_>, store: &Store) -> bool {
        let buffer = &mut self.threads[store.tx.thread as usize].buffer;
        let mut of_line = buffer.iter_mut().filter(|entry| entry.home == store.addr.line());
        let Some(entry) = of_line.next() else { return false };
        if self.rules.merged_word_is_marked() {
            entry.words |= store.addr.word_mask();
        }
        entry.data[store.addr.word_in_line()] = store.new;
        port.emit(Event::Merged);
        true
    }

    /// Why a store must wait before it can have an entry of its own.
    pub(super) fn must_wait(&mut self, port: &mut Port<'_>, tx: Tx) -> Option<Hold> {
        let thread = &self.threads[tx.thread as usize];
        let made = thread.current.map_or(0, |id| self.transactions[id].made);
        if !self.has_space(port, tx, made) {
            return Some(Hold::Space);
        }
        let full = thread.buffer.len() == self.config.log_buffer_entries as usize;
        if full && thread.outside > 0 {
            return Some(Hold::Queue);
        }
        (self.victims.has_waiting() && self.finishes_something()).then_some(Hold::Victims)
    }

    /// Returns true if blocks of the log are free for one more entry of a transaction that has made
    /// `made`.
    fn has_space(&self, port: &mut Port<'_>, tx: Tx, made: usize) -> bool {
        let (thread, records) = (&self.threads[tx.thread as usize], made / ENTRIES);
        let opens = made.is_multiple_of(ENTRIES);
        let Some(blocks) = &self.blocks else {
            let most = (thread.area.slots as usize).min(RECORDS_MAX);
            if opens && records == most {
                port.fail(format!(
                    "transaction {} of thread {} has more log records than redu.log_bytes_per_thread holds ({most})",
                    tx.number, tx.thread
                ));
            }
            return !opens || thread.reserved - thread.head < thread.area.slots;
        };
        let free = blocks.free_entries() > self.reserved_entries
            && (!opens || blocks.free_headers() > self.reserved_headers);
        if opens && records == RECORDS_MAX || !free && !self.finishes_something() {
            port.fail(format!(
                "transactions in progress have more log records than lalea.fle_entries = {}, lalea.fh_entries = {} and {RECORDS_MAX} records per transaction allow",
                self.lalea.fle_entries, self.lalea.fh_entries
            ));
        }
        free
    }

    /// Makes a store's entry; a full buffer sends its oldest first.
    pub(super) fn log(&mut self, port: &mut Port<'_>, store: &Store) {
        let t = store.tx.thread as usize;
        if self.threads[t].buffer.len() == self.config.log_buffer_entries as usize {
            port.emit(Event::EntryEvicted);
            self.send_oldest(port, t);
        }
        let id = self.threads[t].current.unwrap_or_else(|| self.begin(store.tx));
        let transaction = &mut self.transactions[id];
        let opens = transaction.made.is_multiple_of(ENTRIES);
        transaction.made += 1;
        let wraps = self.reserve(t, opens);
        let home = store.addr.line();
        let mut data = port.cached_line(home);
        data[store.addr.word_in_line()] = store.new;
        let buffer = &mut self.threads[t].buffer;
        buffer.push_back(LogEntry { home, words: store.addr.word_mask(), data });
        port.emit(Event::Logged { wraps, occupied: buffer.len() });
    }

    /// Guarantees a store an entry of the log, and a header if it opens a record. Returns whether the record takes
    /// the slot of an older one.
    fn reserve(&mut self, t: usize, opens: bool) -> bool {
        let thread = &mut self.threads[t];
        thread.reserved += u64::from(opens);
        if self.blocks.is_some() {
            self.reserved_entries += 1;
            self.reserved_headers += usize::from(opens);
            return false;
        }
        opens && thread.reserved > thread.area.slots
    }

    /// A transaction begins with its first store.
    fn begin(&mut self, tx: Tx) -> TxId {
        let thread = &mut self.threads[tx.thread as usize];
        let transaction = Transaction::new(tx.thread, tx.number, thread.reserved);
        let id = self.transactions.begin(transaction);
        thread.current = Some(id);
        id
    }

    /// The oldest entry of a thread's buffer leaves for the controller.
    pub(super) fn send_oldest(&mut self, port: &mut Port<'_>, t: usize) {
        let thread = &mut self.threads[t];
        let id = thread.current.expect("an entry is that of a transaction");
        let entry = thread.buffer.pop_front().expect("the caller saw one");
        port.emit(Event::EntrySent { thread: t, home: entry.home, words: entry.words });
        self.travelling.push_back(Message { id, entry });
        port.send_to_controller(0, Timer::Arrival);
    }

    /// The oldest message has reached the controller.
    pub(super) fn arrives(&mut self, port: &mut Port<'_>) {
        let message = self.travelling.pop_front().expect("each has its timer");
        let thread = self.transactions[message.id].thread;
        self.threads[thread as usize].outside += 1;
        self.request(port, Request::Entry(message));
    }

    /// Lets threads look again that wait for this.
    pub(super) fn wake(&mut self, port: &mut Port<'_>, holds: &[Hold]) {
        for (t, thread) in self.threads.iter_mut().enumerate() {
            if thread.asleep && thread.held.is_some_and(|hold| holds.contains(&hold)) {
                thread.asleep = false;
                port.release(t as ThreadId);
            }
        }
    }
}
