//! The end of a transaction, and the instant at which it commits.

use super::cover::Cover;
use super::transaction::{Phase, TxId, Written};
use super::{About, Mutant, Redu};
use crate::lalea::Lr;
use graven_machine::machine::Machine;

impl Redu {
    /// The controller has heard that a thread's transaction has ended.
    pub(super) fn ended(&mut self, m: &mut Machine, t: usize) {
        let id = self.threads[t].current.expect("it was told so by a transaction");
        let transaction = self.transactions.get_mut(&id).expect("the current one");
        transaction.phase = Phase::Ended;
        if transaction.durable < transaction.made {
            m.cover(Cover::CommitWaits as usize);
        }
        if self.mutants.has(Mutant::UpdatedBeforeCommit) {
            self.send_updates(m, id);
        }
        if let Some(last) = self.transactions[&id].records.len().checked_sub(1) {
            self.write_header_if_ready(m, id, last);
        }
        self.commit_if_ready(m, id);
    }

    /// Commits a transaction if everything is where recovery will find it: its entries in PM, and its headers in PM or in
    /// ADR entries.
    pub(super) fn commit_if_ready(&mut self, m: &mut Machine, id: TxId) {
        let Some(transaction) = self.transactions.get(&id) else { return };
        if !matches!(transaction.phase, Phase::Ended | Phase::Deciding)
            || !transaction.is_complete()
            || !self.has_durable_entries(id)
        {
            return;
        }
        let (last, others) = transaction.records.split_last().expect("it has an entry");
        let (thread, last_record) = (transaction.thread as usize, others.len());
        let others_safe = others.iter().all(|record| record.is_safe());
        if self.blocks.is_some() {
            let all_safe = others_safe && last.is_safe();
            if !all_safe && !self.mutants.has(Mutant::LrBeforeHeaders) {
                return;
            }
            if self.threads[thread].chain.len() >= self.lalea.chained_transactions as usize {
                return m.cover(Cover::ChainFull as usize);
            }
            return self.commit(m, id);
        }
        if !others_safe && !self.mutants.has(Mutant::LastHeaderOvertakes) {
            return;
        }
        match last.written {
            Written::No if !last.buffered => {
                let buffered = others.iter().any(|record| record.buffered);
                self.transactions.get_mut(&id).expect("it was found").phase = Phase::Deciding;
                m.durable_state_changed();
                if buffered {
                    m.cover(Cover::LastHeaderUnbuffered as usize);
                }
                self.write_header(m, id, last_record);
                if self.mutants.has(Mutant::CommitNotAwaited) {
                    self.commit(m, id);
                }
            }
            Written::Underway(_) => {}
            Written::No | Written::Durable => self.commit(m, id),
        }
    }

    fn has_durable_entries(&self, id: TxId) -> bool {
        let transaction = &self.transactions[&id];
        let not_awaited = if self.config.buffered_headers {
            Mutant::EntriesNotAwaited
        } else {
            Mutant::HeaderOvertakesEntries
        };
        transaction.durable == transaction.made || self.mutants.has(not_awaited)
    }

    /// Gives a transaction its place in commit order, when its last header is made or counts, whichever is first.
    pub(super) fn enter_commit_order(&mut self, id: TxId) {
        let transaction = self.transactions.get_mut(&id).expect("the caller has it");
        if transaction.sequence != 0 {
            return;
        }
        self.sequence += 1;
        transaction.sequence = self.sequence;
        self.ordered.push_back(id);
        let before = self.threads[transaction.thread as usize].chain.back();
        if !self.mutants.has(Mutant::BeforeNotLinked) {
            let first = before.and_then(|before| self.transactions[before].records[0].place);
            let transaction = self.transactions.get_mut(&id).expect("the caller has it");
            transaction.before = first.unwrap_or_default();
        }
    }

    /// The commit point.
    fn commit(&mut self, m: &mut Machine, id: TxId) {
        self.enter_commit_order(id);
        let transaction = self.transactions.get_mut(&id).expect("the caller has it");
        let (t, sequence) = (transaction.thread as usize, transaction.sequence);
        transaction.phase = Phase::Committed;
        if transaction.records.iter().all(|record| record.buffered) {
            m.cover(Cover::HeaderBuffered as usize);
        }
        if transaction.records.len() > 1 {
            m.cover(Cover::SeveralRecords as usize);
        }
        let (number, records) = (transaction.number, transaction.records.len() as u64);
        m.note(|| {
            format!("thread {t} commits transaction {number} as {sequence}: {records} records")
        });
        let thread = &mut self.threads[t];
        if !thread.chain.is_empty() {
            m.cover(Cover::Chained as usize);
        }
        thread.chain.push_back(id);
        thread.current = None;
        if !self.mutants.has(Mutant::LrAtAcknowledgement) {
            self.move_lr(m, t);
        }
        m.durable_state_changed();
        let c = m.count();
        c.log_headers += records;
        c.ordering_points += 1;
        self.victims.committed(t as u32, sequence);
        if self.mutants.has(Mutant::BlocksFreedAtCommit) {
            self.free_blocks(id);
        }
        if self.mutants.has(Mutant::HeadersDiscardedAtCommit) {
            self.discard_headers(m, id);
        }
        m.set_timer(m.now() + m.bypass_cycles(), About::Acknowledgement.of(0, t));
        if !self.mutants.has(Mutant::UpdatedBeforeCommit) {
            self.send_updates(m, id);
        }
        self.at_home_if_durable(m, id);
    }

    /// The register of a thread says what its chain is.
    pub(super) fn move_lr(&mut self, m: &mut Machine, t: usize) {
        if self.blocks.is_none() {
            return;
        }
        let thread = &mut self.threads[t];
        if let Some(newest) = thread.chain.back() {
            let first = self.transactions[newest].records[0].place;
            thread.lr.newest = first.unwrap_or_default();
        }
        thread.lr = Lr { count: thread.chain.len() as u16, ..thread.lr };
        m.durable_state_changed();
    }

    /// The core hears of the commit.
    pub(super) fn acknowledge(&mut self, m: &mut Machine, t: usize) {
        if self.mutants.has(Mutant::LrAtAcknowledgement) {
            self.move_lr(m, t);
        }
        m.release(t as u32);
    }
}
