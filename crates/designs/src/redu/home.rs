//! Updates in place, and what they make room for.

use std::collections::BTreeMap;

use super::cover::Cover;
use super::transaction::{Phase, Record, TxId, Written};
use super::{About, Hold, Mutant, Redu};
use graven_base::memory::{LineAddr, WordMask};
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

impl Redu {
    /// Sends the words of a transaction home, as architectural memory has them at this instant.
    pub(super) fn send_updates(&mut self, m: &mut Machine, id: TxId) {
        let mut lines: BTreeMap<LineAddr, WordMask> = BTreeMap::new();
        for record in &self.transactions[&id].records {
            for logged in &record.logged[..record.len] {
                let words = lines.entry(logged.home).or_default();
                if *words != 0 {
                    m.cover(Cover::LineLoggedAgain as usize);
                }
                *words |= logged.words;
            }
        }
        let transaction = self.transactions.get_mut(&id).expect("the caller has it");
        transaction.updates = lines.len();
        for (line, mut words) in lines {
            if self.threads.iter().any(|t| t.buffer.iter().any(|entry| entry.home == line)) {
                m.cover(Cover::SharedLineUpdated as usize);
            }
            if self.mutants.has(Mutant::WholeLinesUpdated) {
                words = WordMask::MAX;
            }
            m.count().in_place_updates += u64::from(words.count_ones());
            m.note(|| format!("words {words:#010b} of {line} are updated in place"));
            let write = Write::line(WriteClass::Data, line, m.line(line));
            m.write(Write { mask: words, token: About::Home.of(id, 0), ..write }, 0);
        }
    }

    /// A line is durable in place.
    pub(super) fn update_durable(&mut self, m: &mut Machine, id: TxId) {
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        transaction.updates -= 1;
        self.at_home_if_durable(m, id);
    }

    pub(super) fn at_home_if_durable(&mut self, m: &mut Machine, id: TxId) {
        let transaction = self.transactions.get_mut(&id).expect("the caller has it");
        let durable = transaction.updates == 0 || self.mutants.has(Mutant::RetiredAtSending);
        if transaction.phase != Phase::Committed || !durable {
            return;
        }
        transaction.phase = Phase::Home;
        if self.ordered.front() != Some(&id) {
            m.cover(Cover::RetiredLate as usize);
        }
        self.retire(m);
    }

    /// Transactions that are at home, with all before them in commit order, need no log any more.
    pub(super) fn retire(&mut self, m: &mut Machine) {
        while let Some(at) = self.next_to_retire() {
            let id = self.ordered.remove(at).expect("it was found there");
            self.retire_one(m, id);
        }
    }

    /// Its place in commit order. The log of one that is at home is kept while recovery might redo an older one over it,
    /// and while headers are on their way to where others may soon be.
    fn next_to_retire(&self) -> Option<usize> {
        let is_done = |id: &TxId| {
            let transaction = &self.transactions[id];
            transaction.phase == Phase::Home && !transaction.is_written()
        };
        if self.mutants.has(Mutant::RetiredInAnyOrder) {
            let oldest = |id: &TxId| {
                self.threads[self.transactions[id].thread as usize].chain.front() == Some(id)
            };
            return self.ordered.iter().position(|id| is_done(id) && oldest(id));
        }
        self.ordered.front().filter(|id| is_done(id)).map(|_| 0)
    }

    fn retire_one(&mut self, m: &mut Machine, id: TxId) {
        let transaction = &self.transactions[&id];
        let (t, sequence) = (transaction.thread as usize, transaction.sequence);
        let never_written = |r: &&Record| r.written == Written::No;
        let records = &transaction.records;
        let avoided = records.iter().filter(never_written).count() as u64;
        let c = m.count();
        c.log_headers_avoided += avoided;
        c.log_records_truncated += records.len() as u64;
        m.note(|| format!("thread {t}: commit {sequence} is at home"));
        let next = self.ordered.front().map(|id| self.transactions[id].sequence);
        self.retired = next.map_or(self.sequence, |next| next - 1);
        m.durable_state_changed();
        self.threads[t].chain.pop_front();
        if !self.mutants.has(Mutant::LrLoweredLate) {
            self.move_lr(m, t);
        }
        if !self.mutants.has(Mutant::BlocksFreedAtCommit) {
            self.free_blocks(id);
        }
        self.discard_headers(m, id);
        self.transactions.remove(&id);
        self.victims.retired(self.retired);
        self.wake(m, &[Hold::Space, Hold::Victims]);
        if let Some(next) = self.threads[t].current {
            // It may have waited for its place in the chain.
            self.commit_if_ready(m, next);
        }
        self.fail_if_victims_wait_for_ever(m);
    }

    /// Other records may have the blocks, or slots, of a transaction's.
    pub(super) fn free_blocks(&mut self, id: TxId) {
        let transaction = &self.transactions[&id];
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
