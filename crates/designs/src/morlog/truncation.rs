//! Truncation by scans (§III-F), and logs that are full.
//!
//! At the end of a scan, what was stored before the previous scan began is home, or on its way there
//! ([`crate::force_write_back`]). Once that is durable, heads may pass the records of transactions
//! that committed before; they stop at the first record of the oldest transaction that runs, or has ended
//! and is not persistent. Transactions become persistent in commit order, so with delay-persistence all
//! undo data that a rollback could need is still there.

use super::commit::Ended;
use super::logs::Logs;
use super::{Cover, Meaning, Morlog, Mutant};
use crate::force_write_back::Progress;
use graven_base::ids::ThreadId;
use graven_base::time::Cycle;
use graven_machine::design::Stall;
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

/// How long threads may wait for room in the log while no data comes home and no thread does anything that MorLog sees.
const STUCK_CYCLES: Cycle = 20_000_000;

/// Where the logs ended when a scan began.
#[derive(Clone, Debug)]
pub struct Cut {
    tails: Vec<u64>,
    commits: u64,
}

impl Cut {
    /// Of empty logs.
    pub fn first(logs: &Logs) -> Cut {
        Cut { tails: logs.tails(), commits: 0 }
    }
}

/// A move of heads that is waiting for data, or under way itself.
#[derive(Clone, Debug)]
pub struct Truncation {
    /// The new heads.
    heads: Vec<u64>,
    /// The new horizon.
    horizon: u64,
    /// Data writes up to the end of this epoch must be durable first, if any.
    after_epoch: Option<u64>,
    sent: bool,
    /// Heads that are not durable.
    left: usize,
}

impl Morlog {
    /// A scan's timer: the next step, or the beginning of a scan.
    pub(super) fn scan_timer(&mut self, m: &mut Machine) {
        if !self.scanner.is_due(m) {
            return;
        }
        if !self.scanner.is_under_way() {
            let cut = Cut { tails: self.logs.tails(), commits: self.logs.commits };
            m.note(|| format!("scan begins; the logs end before groups {:?}", cut.tails));
            self.cuts.swap(0, 1);
            self.cuts[1] = cut;
            self.scanner.begin(m);
        }
        let progress = self.scanner.step(m);
        let mut lines = std::mem::take(&mut self.scanner.forced);
        for forced in lines.drain(..) {
            self.force_write_back(m, forced);
        }
        self.scanner.forced = lines;
        if let Progress::Ended(at) = progress {
            self.end_scan(m, at);
        }
    }

    fn end_scan(&mut self, m: &mut Machine, at: Cycle) {
        // Late redo data in lines that were forced home before the commit: no scan will see them again.
        self.send_late_redo(m, self.cuts[0].commits);
        let after_epoch = self.data_writes.close();
        let cut = &self.cuts[usize::from(self.has(Mutant::OneScanIsEnough))];
        let unfinished = |log| self.oldest_unfinished(log).unwrap_or(u64::MAX);
        let heads: Vec<u64> =
            cut.tails.iter().enumerate().map(|(log, &tail)| tail.min(unfinished(log))).collect();
        let horizon = cut.commits.min(self.persistent_commits());
        m.note(|| format!("scan ends; the heads may move to groups {heads:?}"));
        if self.truncation.is_none() {
            self.truncate(m, heads, horizon, Some(after_epoch));
        }
        let waits = !self.waiting_for_space.is_empty();
        if waits {
            self.give_up_if_stuck(m);
        }
        self.scanner.schedule_next(m, at, waits);
    }

    /// Moves heads, as far as these lie behind the old ones, once the data is durable.
    pub(super) fn truncate(
        &mut self,
        m: &mut Machine,
        heads: Vec<u64>,
        horizon: u64,
        after_epoch: Option<u64>,
    ) {
        let left = heads.iter().zip(&self.logs.ends).filter(|(new, end)| **new > end.head).count();
        if left > 0 {
            self.truncation = Some(Truncation { heads, horizon, after_epoch, sent: false, left });
            self.try_to_truncate(m);
        }
    }

    /// Commits of which all records are durable, and of all before.
    pub(super) fn persistent_commits(&self) -> u64 {
        self.ended.front().map_or(self.logs.commits, |ended| ended.number - 1)
    }

    /// Late redo data of the first so-many commits goes to the log, and what is in the redo buffer of others.
    pub(super) fn send_late_redo(&mut self, m: &mut Machine, before: u64) {
        let owes = |e: &&Ended| e.number <= before && e.to_come > 0;
        let owners: Vec<_> = self.ended.iter().filter(owes).map(|e| e.owner).collect();
        for owner in owners {
            self.release_states(m, owner.thread, |of| of == owner);
        }
        self.send_redo_where(m, |r| r.late);
    }

    /// The first group of the oldest transaction of a log that is not persistent.
    fn oldest_unfinished(&self, log: usize) -> Option<u64> {
        let counts = |mutant| !self.has(mutant);
        let running = self.running.iter().flatten();
        let running = running.filter(|r| self.logs.of(r.tx.thread) == log).map(|r| r.first_group);
        let ended = self.ended.iter().filter(|e| self.logs.of(e.tx.thread) == log);
        running
            .filter(|_| counts(Mutant::HeadPassesRunning))
            .chain(ended.map(|e| e.first_group).filter(|_| counts(Mutant::HeadPassesEnding)))
            .min()
    }

    /// Sends the new heads if nothing is in their way any more.
    pub(super) fn try_to_truncate(&mut self, m: &mut Machine) {
        let does_not_wait = self.has(Mutant::HeadDoesNotWait);
        let Some(truncation) = &mut self.truncation else { return };
        if truncation.sent {
            return;
        }
        let is_durable = |epoch| self.data_writes.all_durable(epoch);
        if !truncation.after_epoch.is_none_or(is_durable) && !does_not_wait {
            m.cover(Cover::TruncationWaits as usize);
            return;
        }
        truncation.sent = true;
        let Truncation { heads, horizon, .. } = truncation.clone();
        let mut after = 0;
        if heads.len() > 1 {
            let mut write = Write::words(WriteClass::Metadata, self.logs.horizon, &[horizon]);
            after = m.order();
            (write.order, write.token) = (after, Meaning::Log.token(after));
            m.write(write, m.bypass_cycles());
        }
        for (log, &head) in heads.iter().enumerate() {
            let end = &mut self.logs.ends[log];
            if head <= end.head {
                continue;
            }
            let mut write = Write::words(WriteClass::Metadata, end.packer.log().head(), &[head]);
            (write.after, write.token) = (after, Meaning::Head.token(log as u64));
            m.write(write, m.bypass_cycles());
            if self.mutants.has(Mutant::GroupsFreeEarly) {
                self.free_before(m, log, head);
            }
        }
    }

    /// The new head of a log is durable: the groups before it are free.
    pub(super) fn head_durable(&mut self, m: &mut Machine, log: usize) {
        let truncation = self.truncation.as_mut().expect("a head was on its way");
        truncation.left -= 1;
        let (head, done) = (truncation.heads[log], truncation.left == 0);
        m.cover(Cover::HeadMoved as usize);
        m.note(|| format!("the head of log {log} has moved to group {head}"));
        if done {
            self.truncation = None;
        }
        self.free_before(m, log, head);
    }

    fn free_before(&mut self, m: &mut Machine, log: usize, head: u64) {
        let end = &mut self.logs.ends[log];
        if head > end.head {
            m.count().log_groups_truncated += head - end.head;
            end.head = head;
        }
        self.release_waiting_for_space(m);
    }

    pub(super) fn release_waiting_for_space(&mut self, m: &mut Machine) {
        for thread in self.waiting_for_space.drain(..) {
            m.release(thread);
        }
    }

    /// The thread waits until its log's head moves, which scans bring about.
    pub(super) fn wait_for_space(&mut self, m: &mut Machine, thread: ThreadId) -> Stall {
        if self.waiting_for_space.is_empty() {
            m.count().log_overflows += 1;
            m.cover(Cover::LogFull as usize);
        }
        m.note(|| format!("thread {thread} waits for room in its log"));
        self.waiting_for_space.push(thread);
        self.give_up_if_stuck(m);
        if self.table.is_some() {
            self.press(m);
            self.move_heads_by_table(m);
        } else {
            self.scanner.hasten(m);
        }
        Stall::Retry
    }

    /// Ends the run if no truncation can ever make room.
    fn give_up_if_stuck(&self, m: &mut Machine) {
        let owns_oldest = |&&thread: &&ThreadId| {
            let end = &self.logs.ends[self.logs.of(thread)];
            let running = self.running[thread as usize].as_ref();
            running.is_some_and(|r| r.first_group == end.head)
        };
        let groups = self.logs.ends[0].packer.log().groups;
        if let Some(thread) = self.waiting_for_space.iter().find(owns_oldest) {
            m.fail(format!(
                "a log of {groups} groups is full, and its oldest belongs to the running transaction of thread \
                 {thread}, which needs more: it does not fit beside the others; raise morlog.log_bytes"
            ));
        } else if m.now() > self.last_seen + STUCK_CYCLES {
            m.fail(format!(
                "a log of {groups} groups is full, and for {STUCK_CYCLES} cycles no transaction has gone on and no data has come home, \
                 so that nothing can be truncated; raise morlog.log_bytes"
            ));
        }
    }
}
