//! Updates in place, and what they make room for.

use std::collections::BTreeMap;

use super::event::Event;
use super::protocol::{Hold, Port, Redu, Write};
use super::transaction::{Phase, TxId, Written};
use graven_base::memory::{LineAddr, WordMask};
use graven_machine::request::{self, WriteClass};

impl Redu {
    // ---- updates in place ----------------------------------------------------------------------

    /// Sends the words of a transaction home, as the caches hold them at this instant.
    pub(super) fn send_updates(&mut self, port: &mut Port<'_>, id: TxId) {
        let lines = self.logged_lines(port, id);
        self.transactions[id].updates = lines.len();
        for (line, mut words) in lines {
            let shared = self.threads.iter().any(|t| t.buffer.iter().any(|e| e.home == line));
            if !self.rules.only_own_words_are_updated() {
                words = WordMask::MAX;
            }
            port.emit(Event::UpdateSent { line, words, shared });
            let write = request::Write::line(WriteClass::Data, line, port.cached_line(line));
            let write = write.masked(words);
            port.write_reported(write, Write::Update { id }, 0);
        }
    }

    /// The lines that a transaction has logged, with its words in them.
    fn logged_lines(&self, port: &mut Port<'_>, id: TxId) -> BTreeMap<LineAddr, WordMask> {
        let mut lines: BTreeMap<LineAddr, WordMask> = BTreeMap::new();
        let records = self.transactions[id].records.iter();
        for logged in records.flat_map(|record| &record.logged[..record.len]) {
            let words = lines.entry(logged.home).or_default();
            if *words != 0 {
                port.emit(Event::LineLoggedAgain);
            }
            *words |= logged.words;
        }
        lines
    }

    /// A line is durable in place.
    pub(super) fn update_durable(&mut self, port: &mut Port<'_>, id: TxId) {
        let Some(transaction) = self.transactions.find_mut(id) else { return };
        transaction.updates -= 1;
        self.at_home_if_durable(port, id);
    }

    /// When all updates of a transaction that has committed are durable, it is at home.
    pub(super) fn at_home_if_durable(&mut self, port: &mut Port<'_>, id: TxId) {
        let transaction = &mut self.transactions[id];
        let durable = transaction.updates == 0 || !self.rules.retired_when_durable();
        if transaction.phase != Phase::Committed || !durable {
            return;
        }
        transaction.phase = Phase::Home;
        if self.ordered.front() != Some(&id) {
            port.emit(Event::HomeOutOfOrder);
        }
        self.retire(port);
    }

    // ---- the end of a log ----------------------------------------------------------------------

    /// Transactions that are at home, with all before them in commit order, need no log any more.
    pub(super) fn retire(&mut self, port: &mut Port<'_>) {
        while let Some(at) = self.next_to_retire() {
            let id = self.ordered.remove(at).expect("it was found there");
            self.retire_one(port, id);
        }
    }

    /// Finds the next transaction whose log is dead, by its place in commit order. The log of one
    /// that is at home is kept while recovery might redo an older one over it, and while headers
    /// are on their way to where others may soon be.
    fn next_to_retire(&self) -> Option<usize> {
        let is_done = |&id: &TxId| {
            let transaction = &self.transactions[id];
            transaction.phase == Phase::Home && !transaction.is_written()
        };
        if !self.rules.retired_in_order() {
            let oldest = |id: &TxId| {
                self.threads[self.transactions[*id].thread as usize].chain.front() == Some(id)
            };
            return self.ordered.iter().position(|id| is_done(id) && oldest(id));
        }
        self.ordered.front().filter(|id| is_done(id)).map(|_| 0)
    }

    /// The log of a transaction is dead: its register moves, and then its blocks, ADR entries and victims are free.
    fn retire_one(&mut self, port: &mut Port<'_>, id: TxId) {
        let transaction = &self.transactions[id];
        let (t, sequence) = (transaction.thread as usize, transaction.sequence);
        let records = transaction.records.len();
        let never_written = transaction.records.iter().filter(|r| r.written == Written::No);
        let headers_avoided = never_written.count();
        port.emit(Event::Retired { thread: t, sequence, records, headers_avoided });
        let next = self.ordered.front().map(|&id| self.transactions[id].sequence);
        self.retired = next.map_or(self.sequence, |next| next - 1);
        port.durable_state_changed();
        self.threads[t].chain.pop_front();
        if self.rules.lr_lowered_at_once() {
            self.move_lr(port, t);
        }
        if self.rules.blocks_stay_until_home() {
            self.free_blocks(id);
        }
        self.discard_headers(port, id);
        self.transactions.remove(id);
        self.victims.retired(self.retired);
        self.wake(port, &[Hold::Space, Hold::Victims]);
        if let Some(next) = self.threads[t].current {
            // It may have waited for its place in the chain.
            self.commit_if_ready(port, next);
        }
        self.fail_if_victims_wait_for_ever(port);
    }

    /// Other records may have the blocks, or slots, of a transaction's.
    pub(super) fn free_blocks(&mut self, id: TxId) {
        let transaction = &self.transactions[id];
        let Some(blocks) = &mut self.blocks else {
            let head = &mut self.threads[transaction.thread as usize].head;
            *head = transaction.first + transaction.records.len() as u64;
            return;
        };
        for record in &transaction.records {
            let entries = &record.entries[..record.len];
            entries.iter().for_each(|&entry| blocks.release_entry(entry));
            record.place.into_iter().for_each(|header| blocks.release_header(header));
        }
    }
}
