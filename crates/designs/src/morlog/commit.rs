//! The end of a transaction (§III-B, §III-C).
//!
//! Strict: its entries in both buffers and its ULog words in the L1 go to the log, the commit record last,
//! and the end is acknowledged when that and all before it is durable.
//!
//! Delay-persistence: it is acknowledged at once. Its commit record follows its undo+redo entries through the
//! buffer and carries the ulog counter: how many words of redo data are still to come.

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::Addr;
use graven_machine::design::Stall;
use graven_machine::request::WriteOrder;

use super::buffers::Waiting;
use super::event::Event;
use super::line_state::{Owner, State};
use super::protocol::{Morlog, Port, Running, Timer};
use crate::packed_log::{Kind, Record};

/// A transaction that has ended, and may not leave the log yet.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The ids that its records and lines bear.
    pub owner: Owner,
    /// No record of it lies before this group.
    pub first_group: u64,
    /// Number among commits, from 1.
    pub number: u64,
    /// Order of the last record that it needs; none: its commit record has not been sent.
    order: WriteOrder,
    /// Words whose redo data has not been sent (late).
    pub to_come: u32,
    /// True if its thread waits.
    waits: bool,
}

impl Morlog {
    // ---- strict --------------------------------------------------------------------------------

    /// Strict: looks for the transaction's words in the L1, which takes as long as the reading of §III-B in force says.
    pub fn begin_commit(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        if self.running[tx.thread as usize].is_none() {
            return Stall::None;
        }
        if self.walk_cycles == 0 {
            return if self.flush(port, tx.thread) { Stall::UntilReleased } else { Stall::None };
        }
        port.set_timer(port.now() + self.walk_cycles, Timer::WalkEnds(tx.thread));
        Stall::UntilReleased
    }

    /// A walk through the L1 is over.
    pub fn end_walk(&mut self, port: &mut Port<'_>, thread: ThreadId) {
        if !self.flush(port, thread) {
            port.release_here(thread);
        }
    }

    /// All words of a thread's transaction have been found: they go to the log, with its entries in both buffers and the
    /// commit record behind them, in the same blocks as far as these have room. Returns whether the end waits until
    /// they are durable.
    fn flush(&mut self, port: &mut Port<'_>, thread: ThreadId) -> bool {
        let running = self.running[thread as usize].take().expect("its end waits for this");
        let owner = running.owner;
        self.pack_undo_redo(self.undo_redo.ahead_of(owner));
        if self.rules.commit_sends_redo() {
            let mut taken = std::mem::take(&mut self.taken);
            self.redo.take(|r| r.owner == owner, &mut taken);
            self.pack_redo(port, &mut taken);
            self.taken = taken;
        }
        self.pack_ulog_words(port, &running);
        if !self.rules.parked_words_follow_commit() {
            self.send_parked_home(port, owner);
        }
        let waits = self.rules.commit_waits();
        let number = self.ends(owner, running.first_group, 0, waits);
        self.pack_commit(owner, number, 0);
        self.fill_block();
        self.send_batches(port);
        self.retire(port);
        waits
    }

    /// The redo data that only the L1 has goes into the batch at hand, and the states of the transaction's lines are
    /// cleared: its ids may wrap around.
    fn pack_ulog_words(&mut self, port: &mut Port<'_>, running: &Running) {
        let &Running { owner, core, .. } = running;
        let log = self.logs.of(owner.thread);
        for &line in &running.lines {
            let states = self.states.get(core, line).filter(|l| l.owner == owner).copied();
            let Some(states) = states else { continue };
            for word in states.ulog_words() {
                self.logs.ends[log].redo -= 1;
                if !self.rules.commit_logs_ulog() {
                    continue;
                }
                let (addr, dirty) = (line.word(word), states.dirty[word]);
                let (kind, redo) = (Kind::Redo, port.cached_word(addr));
                port.emit(Event::RedoFoundInL1);
                self.batches[log].push(Record { kind, addr, redo, dirty, ..owner.record() });
            }
            if self.rules.states_end_with_ids() {
                self.states.remove(core, line);
            } else {
                let line = self.states.get(core, line).expect("just seen");
                let ulog = line.states.iter_mut().filter(|s| **s == State::ULog);
                ulog.for_each(|s| *s = State::URLog);
            }
        }
    }

    // ---- delay-persistence (§III-C) ------------------------------------------------------------

    /// Delay-persistence: the commit record goes the way of the undo+redo entries.
    pub fn commit_at_once(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        if self.running[tx.thread as usize].is_none() {
            return Stall::None;
        }
        if !self.has_place(port, tx.thread) {
            return Stall::Retry;
        }
        let running = self.running[tx.thread as usize].take().expect("just seen");
        let mut buffered = 0;
        for redo in self.redo.iter_mut().filter(|r| r.owner == running.owner && !r.late) {
            redo.late = true;
            buffered += 1;
        }
        let to_come = running.ulog + buffered;
        let ulog = match self.rules.ulog_words_are_counted() {
            true => to_come,
            false => self.lines_with_ulog(&running),
        };
        let number = self.ends(running.owner, running.first_group, to_come, false);
        let what = Waiting::Commit { ulog, number };
        port.emit(Event::Committed { number, ulog });
        self.undo_redo.push(running.owner, running.core, what, port.now());
        self.drain(port);
        Stall::None
    }

    /// Lines of a transaction that have a word in state ULog: the ulog counter as the paper has it.
    fn lines_with_ulog(&mut self, running: &Running) -> u32 {
        let owner = running.owner;
        let has_ulog = |line: &&_| {
            let states = self.states.get(running.core, **line).filter(|l| l.owner == owner);
            states.is_some_and(|l| l.ulog_words().next().is_some())
        };
        running.lines.iter().filter(has_ulog).count() as u32
    }

    // ---- commit records ------------------------------------------------------------------------

    /// A transaction ends; returns its number among commits.
    fn ends(&mut self, owner: Owner, first_group: u64, to_come: u32, waits: bool) -> u64 {
        self.logs.commits += 1;
        let number = self.logs.commits;
        let order = WriteOrder::NONE;
        self.ended.push_back(Ended { owner, first_group, number, order, to_come, waits });
        number
    }

    /// Moves a commit record into the batches at hand.
    pub fn pack_commit(&mut self, owner: Owner, number: u64, ulog: u32) {
        let log = self.logs.of(owner.thread);
        self.logs.ends[log].open -= 1;
        let (kind, addr, blank) = (Kind::Commit, Addr(number), owner.record());
        self.batches[log].push(Record { kind, addr, ulog, ..blank });
    }

    /// The oldest unsent commit record of a thread has been sent.
    pub fn commit_sent(&mut self, owner: Owner, order: WriteOrder) {
        let unsent = self.ended.iter_mut().find(|e| e.order.is_none() && e.owner == owner);
        unsent.expect("a commit record has its transaction").order = order;
    }

    /// Late redo data of a transaction has been sent.
    pub fn late_sent(&mut self, owner: Owner, words: u32, order: WriteOrder) {
        if let Some(ended) = self.ended_owing(owner, words) {
            ended.order = order;
        }
    }

    /// Late redo data will never be sent: its transaction must not hold up the log for it.
    pub fn late_given_up(&mut self, owner: Owner, words: u32) {
        self.ended_owing(owner, words);
    }

    /// The newest ended transaction of these ids, which owes this number of words less from now on.
    fn ended_owing(&mut self, owner: Owner, words: u32) -> Option<&mut Ended> {
        let ended = self.ended.iter_mut().rev().find(|e| e.owner == owner)?;
        ended.to_come = ended.to_come.saturating_sub(words);
        Some(ended)
    }

    /// Transactions whose records are durable leave, in the order of their commits.
    pub fn retire(&mut self, port: &mut Port<'_>) {
        let before = self.ended.len();
        while let Some(ended) = self.ended.front()
            && !ended.order.is_none()
            && ended.to_come == 0
            && port.is_durable(ended.order)
        {
            let Ended { owner, number, waits, .. } = *ended;
            self.ended.pop_front();
            port.emit(Event::Persistent { number });
            self.send_parked_home(port, owner);
            if self.table.as_mut().is_some_and(|table| table.persistent(owner, number)) {
                self.table_moved(port);
            }
            if waits {
                port.release(owner.thread);
            }
        }
        for thread in self.waiting_for_id.drain(..) {
            port.release(thread);
        }
        if self.ended.len() < before && self.table.is_some() && !self.waiting_for_space.is_empty() {
            self.press(port);
        }
    }

    /// Whatever redo data L1s and the redo buffer have goes to the log.
    pub fn send_all_redo(&mut self, port: &mut Port<'_>) {
        for thread in 0..self.core_of.len() as u32 {
            self.release_states(port, thread, |_| true);
        }
        self.send_redo_where(port, |_| true);
    }

    /// A thread's lines of the owners that are wanted lose their states; redo data that only they had is saved.
    pub fn release_states(
        &mut self,
        port: &mut Port<'_>,
        thread: u32,
        which: impl Fn(Owner) -> bool,
    ) {
        let core = self.core_of[thread as usize];
        for line in self.states.owned_by(core, thread) {
            if self.states.get(core, line).is_some_and(|states| which(states.owner)) {
                let old = self.states.remove(core, line).expect("just seen");
                self.save_redo(port, &old);
            }
        }
    }

    /// Ids come round (§III-B): a transaction does not begin while records of the one that had its id are on their way, or
    /// redo data of it is still to come. Returns whether it has to wait.
    pub fn waits_for_id(&mut self, port: &mut Port<'_>, tx: Tx) -> bool {
        let owner = self.owner(tx);
        let is_in_use = self.ended.iter().any(|ended| ended.owner == owner)
            || self.in_flight.iter().any(|sent| sent.owner == owner);
        let awaited = self.rules.ids_are_awaited() && self.rules.states_end_with_ids();
        if !is_in_use || !awaited {
            return false;
        }
        port.emit(Event::WaitsForId { thread: tx.thread });
        self.waiting_for_id.push(tx.thread);
        if self.table.is_some() {
            // Transactions retire in the order of their commits, and no scan will come for redo data of the earlier ones.
            let numbers = self.ended.iter().filter(|ended| ended.owner == owner).map(|e| e.number);
            self.send_late_redo(port, numbers.max().unwrap_or(0));
        }
        true
    }

    /// Ids wrap around: state with a reused id must not be mistaken for the new transaction's.
    pub fn clear_states_if_ids_come_round(&mut self, port: &mut Port<'_>, tx: Tx) {
        if self.owner(tx).id != 0 || !self.rules.states_end_with_ids() {
            return;
        }
        self.release_states(port, tx.thread, |_| true);
        self.send_redo_where(port, |r| r.late && r.owner.thread == tx.thread);
    }
}
