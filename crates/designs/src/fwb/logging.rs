//! Hardware logging (HWL, §III-B, §III-D, §III-E): stores and ends of transactions into the buffer, records out
//! of it into the log, and what waits for them.

use super::{Cover, DRAIN, Ended, Fwb, Mutant};
use crate::packed_log::{Kind, Record};
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::LineAddr;
use graven_base::time::{Cycle, NEVER};
use graven_machine::design::{MutantSet, Stall, Store};
use graven_machine::machine::Machine;
use graven_machine::request::OrderSeq;

impl Fwb {
    pub(super) fn log_store(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let Store { tx, addr, old, new, .. } = *store;
        if self.dirty_flags && old == new {
            m.count().log_entries_ignored += 1;
            m.note(|| format!("a store of {new:#x} changes nothing: no entry"));
            return Stall::None;
        }
        if self.buffer.merge(store) {
            m.count().log_entries_merged += 1;
            m.cover(Cover::Merged as usize);
            m.note(|| format!("a store of {new:#x} is merged into the entry of {addr}"));
            return Stall::None;
        }
        let thread = tx.thread as usize;
        let is_first = self.running[thread].is_none();
        let reserves = !self.has(Mutant::NothingReserved);
        let reserved = if reserves { self.reserved + u64::from(is_first) } else { 0 };
        if self.free_places() < 1 + reserved {
            return self.wait_for_space(m, tx.thread);
        }
        if !self.has_place(m, tx.thread) {
            return Stall::Retry;
        }
        let record = Record { kind: Kind::UndoRedo, addr, undo: old, redo: new, ..Record::BLANK };
        let place = self.append(m, record, tx);
        if is_first {
            self.running[thread] = Some(place);
            self.reserved += 1;
        }
        m.count().log_entries += 1;
        self.drain(m);
        Stall::None
    }

    /// The commit record follows the transaction's entries. One without entries needs none; one whose entries
    /// are all dropped on their way has one.
    pub(super) fn log_commit(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        let Some(first_place) = self.running[tx.thread as usize] else { return Stall::None };
        if !self.has_place(m, tx.thread) {
            return Stall::Retry;
        }
        self.append(m, Record { kind: Kind::Commit, ..Record::BLANK }, tx);
        self.running[tx.thread as usize] = None;
        self.reserved -= 1;
        self.ended.push_back(Ended { thread: tx.thread, first_place, order: 0 });
        if self.strict {
            self.buffer.hurry();
        }
        self.drain(m);
        if self.strict { Stall::UntilReleased } else { Stall::None }
    }

    /// Whether a record finds a place in the buffer; if not, the thread waits for one.
    fn has_place(&mut self, m: &mut Machine, thread: ThreadId) -> bool {
        if self.buffer.is_full() {
            m.cover(Cover::BufferFull as usize);
            self.drain(m);
        }
        let full = self.buffer.is_full();
        if full {
            self.waiting_for_buffer.push(thread);
        }
        !full
    }

    /// Puts a transaction's record into the buffer. Returns its place in the log, or one before that.
    fn append(&mut self, m: &mut Machine, record: Record, tx: Tx) -> u64 {
        debug_assert!(self.free_places() > 0 || self.mutants != MutantSet::NONE, "there was room");
        let place = self.end.place_behind(self.buffer.len());
        let id = tx.number as u16 & self.id_mask;
        let record = Record { thread: tx.thread as u8, tx: id, ..record };
        self.buffer.push(record, tx, m.now());
        m.note(|| format!("enters the buffer: {record}"));
        let max = &mut m.count().log_buffer_max;
        *max = (*max).max(self.buffer.len() as u64);
        place
    }

    /// Sends what is due, as far as write queues have places, and sets the timer for the rest.
    pub(super) fn drain(&mut self, m: &mut Machine) {
        let now = m.now();
        while let Some(due) = self.buffer.due() {
            if due > now {
                return self.drain_by(m, due);
            }
            if !self.end.has_room(m) {
                // A place becomes free by some event, so it is enough to look after the next one.
                let next = m.memory.shared.events.next_at();
                let at = if next == NEVER { now + 1 } else { next.max(now + 1) };
                return self.drain_by(m, at);
            }
            self.send_oldest(m);
        }
    }

    fn drain_by(&mut self, m: &mut Machine, at: Cycle) {
        if at < self.drain_at || self.drain_at <= m.now() {
            self.drain_at = at;
            m.set_timer(at, DRAIN);
        }
    }

    /// The oldest records leave the buffer, as many as go together. Returns how many.
    fn send_oldest(&mut self, m: &mut Machine) -> usize {
        let free = self.free_places();
        let mut batch = std::mem::take(&mut self.batch);
        let left = self.buffer.take(self.end.together(), m.now(), &mut batch);
        if batch.len() < left {
            m.count().log_entries_ignored += (left - batch.len()) as u64;
            m.cover(Cover::EntryDropped as usize);
            m.note(|| format!("{} entries change nothing and are dropped", left - batch.len()));
        }
        if !batch.is_empty() {
            self.send(m, &batch);
        }
        batch.clear();
        self.batch = batch;
        for thread in self.waiting_for_buffer.drain(..) {
            m.release(thread);
        }
        if self.free_places() > free && !self.waiting_for_space.is_empty() {
            m.cover(Cover::RoomBySending as usize);
            self.release_waiting_for_space(m);
        }
        left
    }

    fn send(&mut self, m: &mut Machine, batch: &[Record]) {
        let sent = self.end.send(m, batch);
        self.last_order = sent.order;
        let commits = batch.iter().filter(|r| r.kind == Kind::Commit).count();
        let unsent = self.ended.iter_mut().filter(|e| e.order == 0);
        unsent.take(commits).for_each(|ended| ended.order = sent.order);
        if (1..batch.len()).contains(&commits) {
            m.cover(Cover::CommitSharesWrite as usize);
        }
        if batch.len() > 2 {
            m.cover(Cover::GroupFilled as usize);
        }
        if sent.first > 0 && sent.first.is_multiple_of(self.end.log().places()) {
            m.cover(Cover::LogWrapped as usize);
        }
        m.note(|| {
            let (count, place, order) = (batch.len(), sent.first, sent.order);
            format!("{count} records are sent to place {place} of the log: ordered write {order}")
        });
    }

    /// What the write of a line, about to be sent, must wait for. Entries of the line leave the buffer.
    pub(super) fn order_before(&mut self, m: &mut Machine, line: LineAddr) -> OrderSeq {
        if !self.ordered {
            return 0;
        }
        let stay = self.has(Mutant::EntriesStay);
        let mut ahead = if stay { 0 } else { self.buffer.ahead_of_line(line) };
        if ahead > 0 {
            m.cover(Cover::Hurried as usize);
            if self.buffer.is_late(m.now()) {
                m.cover(Cover::HurriedLate as usize);
            }
            m.note(|| format!("{line} leaves the caches: {ahead} records must leave the buffer"));
        }
        while ahead > 0 {
            let left = self.send_oldest(m);
            m.count().log_entries_hurried += left as u64;
            ahead = ahead.saturating_sub(left);
        }
        let reached = m.memory.shared.durability.order.reached(self.last_order)
            || self.has(Mutant::DataDoesNotWait);
        if reached { 0 } else { self.last_order }
    }

    /// An ordered write of records is durable: acknowledges commits.
    pub(super) fn retire_commits(&mut self, m: &mut Machine, durable: OrderSeq) {
        while let Some(ended) = self.ended.front() {
            let itself = ended.order == durable && self.has(Mutant::CommitWaitsForItself);
            let reached = m.memory.shared.durability.order.reached(ended.order) || itself;
            if ended.order == 0 || !reached {
                return;
            }
            m.note(|| format!("thread {}: its commit record is durable", ended.thread));
            if self.strict {
                m.release(ended.thread);
            }
            self.ended.pop_front();
        }
    }
}
