//! The end of a transaction (§III-B, §III-C).
//!
//! Strict: its entries in both buffers and its ULog words in the L1 go to the log, the commit record last,
//! and the end is acknowledged when that and all before it is durable.
//!
//! Delay-persistence: it is acknowledged at once. Its commit record follows its undo+redo entries through the
//! buffer and carries the ulog counter: how many words of redo data are still to come.

use super::buffers::Waiting;
use super::line_state::{Owner, State};
use super::{Morlog, Mutant, WALK};
use crate::packed_log::{Kind, Record, ULOG_MAX};
use graven_base::ids::Tx;
use graven_base::memory::Addr;
use graven_machine::design::Stall;
use graven_machine::machine::Machine;
use graven_machine::request::OrderSeq;

/// A transaction that has ended, and may not leave the log yet.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub tx: Tx,
    /// The ids that its records and lines bear.
    pub owner: Owner,
    /// No record of it lies before this group.
    pub first_group: u64,
    /// The how-manieth commit it is.
    pub number: u64,
    /// Of the last record that it needs; 0: its commit record has not been sent.
    order: OrderSeq,
    /// Words whose redo data has not been sent (late).
    pub to_come: u32,
    /// Its thread waits.
    waits: bool,
}

impl Morlog {
    /// Strict: looks for the transaction's words in the L1, which takes time.
    pub(super) fn begin_commit(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        if self.running[tx.thread as usize].is_none() {
            return Stall::None;
        }
        m.set_timer(m.now() + self.walk_cycles, u64::from(tx.thread) << 2 | WALK);
        Stall::UntilReleased
    }

    /// All its words have been found: they go to the log.
    pub(super) fn end_walk(&mut self, m: &mut Machine, thread: u32) {
        let running = self.running[thread as usize].take().expect("its end waits for this");
        let tx = running.tx;
        let owner = self.owner(tx);
        self.pack_undo_redo(self.undo_redo.ahead_of(tx));
        if !self.has(Mutant::CommitLeavesRedo) {
            let mut taken = std::mem::take(&mut self.taken);
            self.redo.take(|r| r.tx == tx, &mut taken);
            self.pack_redo(m, &mut taken);
            self.taken = taken;
        }
        let log = self.logs.of(thread);
        for line in running.lines {
            let states = self.states.get(running.core, line).filter(|l| l.owner == owner).copied();
            let Some(states) = states else { continue };
            for word in states.ulog_words() {
                self.logs.ends[log].redo -= 1;
                if self.has(Mutant::CommitLeavesUlog) {
                    continue;
                }
                let (addr, dirty) = (line.word(word), states.dirty[word]);
                let of = Record { thread: thread as u8, tx: owner.id, ..Record::BLANK };
                let redo = m.load(addr);
                m.count().log_redo_entries += 1;
                self.batches[log].push(Record { kind: Kind::Redo, addr, redo, dirty, ..of });
            }
            if self.has(Mutant::StatesOutliveIds) {
                let states = self.states.get(running.core, line).expect("just seen");
                states
                    .states
                    .iter_mut()
                    .filter(|s| **s == State::ULog)
                    .for_each(|s| *s = State::URLog);
            } else {
                self.states.remove(running.core, line);
            }
        }
        if self.has(Mutant::ParkedWordsHurry) {
            self.send_parked_home(m, tx);
        }
        let waits = !self.has(Mutant::CommitDoesNotWait);
        let number = self.ends(tx, running.first_group, 0, waits);
        self.pack_commit(tx, number, 0);
        self.fill_block();
        self.send_batches(m);
        if !waits {
            m.release(thread);
        }
        self.retire(m);
    }

    /// Delay-persistence: the commit record goes the way of the undo+redo entries.
    pub(super) fn commit_at_once(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        if self.running[tx.thread as usize].is_none() {
            return Stall::None;
        }
        if !self.has_place(m, tx.thread) {
            return Stall::Retry;
        }
        let running = self.running[tx.thread as usize].take().expect("just seen");
        let mut buffered = 0;
        for redo in self.redo.iter_mut().filter(|r| r.tx == tx) {
            redo.late = true;
            buffered += 1;
        }
        let to_come = running.ulog + buffered;
        let mut ulog = to_come;
        if self.has(Mutant::LinesAreCounted) {
            let owner = self.owner(tx);
            let has_ulog = |line: &&_| {
                let states = self.states.get(running.core, **line).filter(|l| l.owner == owner);
                states.is_some_and(|l| l.ulog_words().next().is_some())
            };
            ulog = running.lines.iter().filter(has_ulog).count() as u32;
        }
        debug_assert!(ulog <= ULOG_MAX.into(), "an L1's words, and a redo buffer's");
        let number = self.ends(tx, running.first_group, to_come, false);
        let what = Waiting::Commit { ulog: ulog as u16, number };
        m.note(|| format!("commit {number}: {ulog} words of redo data are still to come"));
        self.undo_redo.push(tx, running.core, what, m.now());
        self.drain(m);
        Stall::None
    }

    fn ends(&mut self, tx: Tx, first_group: u64, to_come: u32, waits: bool) -> u64 {
        self.logs.commits += 1;
        let number = self.logs.commits;
        let owner = self.owner(tx);
        self.ended.push_back(Ended { tx, owner, first_group, number, order: 0, to_come, waits });
        number
    }

    /// Moves a commit record into the batches at hand.
    pub(super) fn pack_commit(&mut self, tx: Tx, number: u64, ulog: u16) {
        let log = self.logs.of(tx.thread);
        self.logs.ends[log].open -= 1;
        let (thread, id) = (tx.thread as u8, self.owner(tx).id);
        let kind = Kind::Commit;
        let record = Record { kind, thread, tx: id, addr: Addr(number), ulog, ..Record::BLANK };
        self.batches[log].push(record);
    }

    /// The oldest unsent commit record of a thread has been sent.
    pub(super) fn commit_sent(&mut self, owner: Owner, order: OrderSeq) {
        let unsent = self.ended.iter_mut().find(|e| e.order == 0 && e.owner == owner);
        unsent.expect("a commit record has its transaction").order = order;
    }

    /// Late redo data of a transaction has been sent.
    pub(super) fn late_sent(&mut self, owner: Owner, words: u32, order: OrderSeq) {
        if let Some(ended) = self.ended_owing(owner, words) {
            ended.order = order;
        }
    }

    /// Late redo data will never be sent: its transaction must not hold up the log for it.
    pub(super) fn late_given_up(&mut self, owner: Owner, words: u32) {
        self.ended_owing(owner, words);
    }

    /// The newest ended transaction of these ids, which owes so many words less from now on.
    fn ended_owing(&mut self, owner: Owner, words: u32) -> Option<&mut Ended> {
        let ended = self.ended.iter_mut().rev().find(|e| e.owner == owner)?;
        ended.to_come = ended.to_come.saturating_sub(words);
        Some(ended)
    }

    /// Transactions whose records are durable leave, in the order of their commits.
    pub(super) fn retire(&mut self, m: &mut Machine) {
        let before = self.ended.len();
        while let Some(ended) = self.ended.front()
            && ended.order != 0
            && ended.to_come == 0
            && m.memory.shared.durability.order.reached(ended.order)
        {
            let Ended { tx, number, waits, .. } = *ended;
            self.ended.pop_front();
            m.note(|| format!("commit {number} is persistent"));
            self.send_parked_home(m, tx);
            if self.table.as_mut().is_some_and(|table| table.persistent(tx, number)) {
                self.table_moved(m);
            }
            if waits {
                m.release(tx.thread);
            }
        }
        if self.ended.len() < before && self.table.is_some() && !self.waiting_for_space.is_empty() {
            self.press(m);
        }
    }

    /// Whatever redo data L1s and the redo buffer have goes to the log.
    pub(super) fn send_all_redo(&mut self, m: &mut Machine) {
        for thread in 0..self.core_of.len() as u32 {
            self.release_states(m, thread, |_| true);
        }
        self.send_redo_where(m, |_| true);
    }

    /// A thread's lines lose their states where the owner is such; redo data that only they had is saved.
    pub(super) fn release_states(
        &mut self,
        m: &mut Machine,
        thread: u32,
        which: impl Fn(Owner) -> bool,
    ) {
        let core = self.core_of[thread as usize];
        for line in self.states.owned_by(core, thread) {
            if self.states.get(core, line).is_some_and(|states| which(states.owner)) {
                let old = self.states.remove(core, line).expect("just seen");
                self.save_redo(m, &old);
            }
        }
    }

    /// Ids come round: what bears them from the last time must not be taken for the new one's.
    pub(super) fn clear_states_if_ids_come_round(&mut self, m: &mut Machine, tx: Tx) {
        if self.owner(tx).id != 0 || self.has(Mutant::StatesOutliveIds) {
            return;
        }
        self.release_states(m, tx.thread, |_| true);
        self.send_redo_where(m, |r| r.late && r.tx.thread == tx.thread);
    }
}
