//! The end of a transaction, and the instant at which it commits.

use super::event::Event;
use super::protocol::{Port, Redu, Timer};
use super::transaction::{Phase, Record, Transaction, TxId, Written};
use crate::lalea::Lr;

impl Redu {
    /// The controller has heard that a thread's transaction has ended.
    pub(super) fn ended(&mut self, port: &mut Port<'_>, t: usize) {
        let id = self.threads[t].current.expect("it was told so by a transaction");
        let transaction = &mut self.transactions[id];
        transaction.phase = Phase::Ended;
        if transaction.durable < transaction.made {
            port.emit(Event::CommitWaits);
        }
        if !self.rules.updates_follow_commit() {
            self.send_updates(port, id);
        }
        if let Some(last) = self.transactions[id].records.len().checked_sub(1) {
            self.write_header_if_ready(port, id, last);
        }
        self.commit_if_ready(port, id);
    }

    /// Commits a transaction if everything is where recovery will find it: its entries in PM, and its headers in PM or in
    /// ADR entries.
    pub(super) fn commit_if_ready(&mut self, port: &mut Port<'_>, id: TxId) {
        let Some(transaction) = self.transactions.find(id) else { return };
        let is_ending = matches!(transaction.phase, Phase::Ended | Phase::Deciding);
        if !is_ending || !transaction.is_complete() || !self.has_durable_entries(transaction) {
            return;
        }
        if self.blocks.is_some() {
            self.commit_by_register(port, id);
        } else {
            self.commit_by_last_header(port, id);
        }
    }

    fn has_durable_entries(&self, transaction: &Transaction) -> bool {
        let awaited = if self.config.buffered_headers {
            self.rules.entries_are_awaited()
        } else {
            self.rules.headers_follow_entries()
        };
        transaction.durable == transaction.made || !awaited
    }

    /// With LALEA, the LR register makes a transaction's headers count when all are safe; as many
    /// transactions of the thread as it can count may be not at home.
    fn commit_by_register(&mut self, port: &mut Port<'_>, id: TxId) {
        let transaction = &self.transactions[id];
        let all_safe = transaction.records.iter().all(Record::is_safe);
        if !all_safe && self.rules.lr_follows_headers() {
            return;
        }
        let chain = &self.threads[transaction.thread as usize].chain;
        if chain.len() >= self.lalea.chained_transactions as usize {
            return port.emit(Event::ChainFull);
        }
        self.commit(port, id);
    }

    /// In a circular area, the last header makes the others count: it is sent when these are safe, unless it is in an
    /// ADR entry.
    fn commit_by_last_header(&mut self, port: &mut Port<'_>, id: TxId) {
        let transaction = &mut self.transactions[id];
        let (last, others) = transaction.records.split_last().expect("it has an entry");
        let others_safe = others.iter().all(Record::is_safe);
        if !others_safe && self.rules.last_header_follows_others() {
            return;
        }
        match last.written {
            Written::No if !last.buffered => {
                let (last, others_buffered) = (others.len(), others.iter().any(|r| r.buffered));
                transaction.phase = Phase::Deciding;
                port.durable_state_changed();
                if others_buffered {
                    port.emit(Event::LastHeaderUnbuffered);
                }
                self.write_header(port, id, last);
                if !self.rules.commit_is_awaited() {
                    self.commit(port, id);
                }
            }
            Written::Underway(_) => {}
            Written::No | Written::Durable => self.commit(port, id),
        }
    }

    /// Gives a transaction its place in commit order, when its last header is made or counts, whichever is first.
    pub(super) fn enter_commit_order(&mut self, id: TxId) {
        let transaction = &mut self.transactions[id];
        if transaction.sequence != 0 {
            return;
        }
        self.sequence += 1;
        transaction.sequence = self.sequence;
        self.ordered.push_back(id);
        if self.rules.earlier_transaction_is_linked() {
            let before = self.threads[transaction.thread as usize].chain.back();
            let first = before.and_then(|&before| self.transactions[before].records[0].place);
            self.transactions[id].before = first.unwrap_or_default();
        }
    }

    /// The commit point.
    fn commit(&mut self, port: &mut Port<'_>, id: TxId) {
        self.enter_commit_order(id);
        let transaction = &mut self.transactions[id];
        transaction.phase = Phase::Committed;
        let (t, sequence) = (transaction.thread as usize, transaction.sequence);
        let thread = &mut self.threads[t];
        port.emit(Event::Committed {
            thread: t,
            number: transaction.number,
            sequence,
            records: transaction.records.len(),
            buffered: transaction.records.iter().all(|record| record.buffered),
            chained: !thread.chain.is_empty(),
        });
        thread.chain.push_back(id);
        thread.current = None;
        if self.rules.lr_moves_before_acknowledgement() {
            self.move_lr(port, t);
        }
        port.durable_state_changed();
        self.victims.committed(t as u32, sequence);
        if !self.rules.blocks_stay_until_home() {
            self.free_blocks(id);
        }
        if !self.rules.headers_stay_until_home() {
            self.discard_headers(port, id);
        }
        port.send_to_core(0, Timer::Acknowledgement { thread: t });
        if self.rules.updates_follow_commit() {
            self.send_updates(port, id);
        }
        self.at_home_if_durable(port, id);
    }

    /// The register of a thread says what its chain is.
    pub(super) fn move_lr(&mut self, port: &mut Port<'_>, t: usize) {
        if self.blocks.is_none() {
            return;
        }
        let thread = &mut self.threads[t];
        if let Some(&newest) = thread.chain.back() {
            let first = self.transactions[newest].records[0].place;
            thread.lr.newest = first.unwrap_or_default();
        }
        thread.lr = Lr { count: thread.chain.len() as u64, ..thread.lr };
        port.durable_state_changed();
    }

    /// The core hears of the commit.
    pub(super) fn acknowledge(&mut self, port: &mut Port<'_>, t: usize) {
        if !self.rules.lr_moves_before_acknowledgement() {
            self.move_lr(port, t);
        }
        port.release_here(t as u32);
    }
}
