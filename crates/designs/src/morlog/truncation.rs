//! Truncation by scans (§III-F), and logs that are full.
//!
//! At the end of a scan, what was stored before the previous scan began is home, or on its way there
//! ([`crate::force_write_back`]). Once that is durable, heads may pass the records of transactions
//! that committed before; they stop at the first record of the oldest transaction that runs, or has ended
//! and is not persistent. Transactions become persistent in commit order, so with delay-persistence all
//! undo data that a rollback could need is still there.

use graven_base::ids::ThreadId;
use graven_base::time::Cycle;
use graven_machine::design::Stall;
use graven_machine::request::{self, WriteClass, WriteOrder};

use super::commit::Ended;
use super::event::Event;
use super::logs::Logs;
use super::protocol::{Morlog, Port, Write};
use crate::force_write_back::Progress;

/// Cycles for which threads may wait for room in the log while no data comes home and no thread
/// does anything that MorLog sees.
const STUCK_CYCLES: Cycle = 20_000_000;

/// Ends of the logs when a scan began.
#[derive(Clone, Debug)]
pub struct Cut {
    tails: Vec<u64>,
    commits: u64,
}

impl Cut {
    /// Makes the cut of empty logs.
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
    pub fn scan_timer(&mut self, port: &mut Port<'_>) {
        if !self.scanner.is_due(port) {
            return;
        }
        if !self.scanner.is_under_way() {
            let cut = Cut { tails: self.logs.tails(), commits: self.logs.commits };
            port.emit(Event::ScanBegins { tails: cut.tails.clone() });
            self.cuts.swap(0, 1);
            self.cuts[1] = cut;
            self.scanner.begin(port);
        }
        let progress = self.scanner.step(port);
        while let Some(forced) = self.scanner.forced.pop_front() {
            self.force_write_back(port, forced);
        }
        if let Progress::Ended(at) = progress {
            self.end_scan(port, at);
        }
    }

    /// A scan has ended: heads may move up to where the logs ended when the one before it began.
    fn end_scan(&mut self, port: &mut Port<'_>, at: Cycle) {
        // Late redo data in lines that were forced home before the commit: no scan will see them again.
        self.send_late_redo(port, self.cuts[0].commits);
        let after_epoch = self.data_writes.close();
        let cut = &self.cuts[usize::from(!self.rules.two_scans_are_needed())];
        let unfinished = |log| self.oldest_unfinished(log).unwrap_or(u64::MAX);
        let heads: Vec<u64> =
            cut.tails.iter().enumerate().map(|(log, &tail)| tail.min(unfinished(log))).collect();
        let horizon = cut.commits.min(self.persistent_commits());
        port.emit(Event::ScanEnds { heads: heads.clone() });
        if self.truncation.is_none() {
            self.truncate(port, heads, horizon, Some(after_epoch));
        }
        let waits = !self.waiting_for_space.is_empty();
        if waits {
            self.give_up_if_stuck(port);
        }
        self.scanner.schedule_next(port, at, waits);
    }

    /// Moves heads, as far as these lie behind the old ones, once the data is durable.
    pub fn truncate(
        &mut self,
        port: &mut Port<'_>,
        heads: Vec<u64>,
        horizon: u64,
        after_epoch: Option<u64>,
    ) {
        let left = heads.iter().zip(&self.logs.ends).filter(|(new, end)| **new > end.head).count();
        if left > 0 {
            self.truncation = Some(Truncation { heads, horizon, after_epoch, sent: false, left });
            self.try_to_truncate(port);
        }
    }

    /// Commits of which all records are durable, and of all before.
    pub fn persistent_commits(&self) -> u64 {
        self.ended.front().map_or(self.logs.commits, |ended| ended.number - 1)
    }

    /// Sends late redo data of the commits up to `before` to the log, and what is in the redo
    /// buffer of others.
    pub fn send_late_redo(&mut self, port: &mut Port<'_>, before: u64) {
        let owes = |e: &&Ended| e.number <= before && e.to_come > 0;
        let owners: Vec<_> = self.ended.iter().filter(owes).map(|e| e.owner).collect();
        for owner in owners {
            self.release_states(port, owner.thread, |of| of == owner);
        }
        self.send_redo_where(port, |r| r.late);
    }

    /// The first group of the oldest transaction of a log that is not persistent.
    fn oldest_unfinished(&self, log: usize) -> Option<u64> {
        let running = self.running.iter().flatten();
        let running =
            running.filter(|r| self.logs.of(r.owner.thread) == log).map(|r| r.first_group);
        let ended = self.ended.iter().filter(|e| self.logs.of(e.owner.thread) == log);
        running
            .filter(|_| self.rules.head_waits_for_running())
            .chain(ended.map(|e| e.first_group).filter(|_| self.rules.head_waits_for_ending()))
            .min()
    }

    /// Sends the new heads if nothing is in their way any more.
    pub fn try_to_truncate(&mut self, port: &mut Port<'_>) {
        let Some(truncation) = &mut self.truncation else { return };
        if truncation.sent {
            return;
        }
        let is_durable = |epoch| self.data_writes.all_durable(epoch);
        let data_is_home = truncation.after_epoch.is_none_or(is_durable);
        if !data_is_home && self.rules.head_waits_for_data() {
            port.emit(Event::TruncationWaits);
            return;
        }
        truncation.sent = true;
        let Truncation { heads, horizon, .. } = truncation.clone();
        let mut after = WriteOrder::NONE;
        if heads.len() > 1 {
            after = port.order();
            let at = self.logs.horizon;
            let write = request::Write::words(WriteClass::Metadata, at, &[horizon]).ordered(after);
            port.write_reported(write, Write::Log, port.bypass_cycles());
        }
        for (log, &head) in heads.iter().enumerate() {
            let end = &mut self.logs.ends[log];
            if head <= end.head {
                continue;
            }
            let at = end.packer.log().head();
            let write = request::Write::words(WriteClass::Metadata, at, &[head]).after(after);
            port.write_reported(write, Write::Head { log }, port.bypass_cycles());
            if !self.rules.groups_free_when_durable() {
                self.free_before(port, log, head);
            }
        }
    }

    /// The new head of a log is durable: the groups before it are free.
    pub fn head_durable(&mut self, port: &mut Port<'_>, log: usize) {
        let truncation = self.truncation.as_mut().expect("a head was on its way");
        truncation.left -= 1;
        let (head, done) = (truncation.heads[log], truncation.left == 0);
        port.emit(Event::HeadMoved { log, head });
        if done {
            self.truncation = None;
        }
        self.free_before(port, log, head);
    }

    /// Groups of a log before its new head may be used again.
    fn free_before(&mut self, port: &mut Port<'_>, log: usize, head: u64) {
        let end = &mut self.logs.ends[log];
        if head > end.head {
            port.emit(Event::GroupsFreed { groups: head - end.head });
            end.head = head;
        }
        self.release_waiting_for_space(port);
    }

    /// Whoever waits for room looks again.
    pub fn release_waiting_for_space(&mut self, port: &mut Port<'_>) {
        for thread in self.waiting_for_space.drain(..) {
            port.release(thread);
        }
    }

    /// The thread waits until its log's head moves, which scans bring about.
    pub fn wait_for_space(&mut self, port: &mut Port<'_>, thread: ThreadId) -> Stall {
        port.emit(Event::WaitsForSpace { thread, first: self.waiting_for_space.is_empty() });
        self.waiting_for_space.push(thread);
        self.give_up_if_stuck(port);
        if self.table.is_some() {
            self.press(port);
            self.move_heads_by_table(port);
        } else {
            self.scanner.hasten(port);
        }
        Stall::Retry
    }

    /// Ends the run if no truncation can ever make room.
    fn give_up_if_stuck(&self, port: &mut Port<'_>) {
        let owns_oldest = |&&thread: &&ThreadId| {
            let end = &self.logs.ends[self.logs.of(thread)];
            let running = self.running[thread as usize].as_ref();
            running.is_some_and(|r| r.first_group == end.head)
        };
        let groups = self.logs.ends[0].packer.log().groups;
        if let Some(thread) = self.waiting_for_space.iter().find(owns_oldest) {
            port.fail(format!(
                "a log of {groups} groups is full, and its oldest belongs to the running transaction of thread \
                 {thread}, which needs more: it does not fit beside the others; raise morlog.log_bytes"
            ));
        } else if port.now() > self.last_seen + STUCK_CYCLES {
            port.fail(format!(
                "a log of {groups} groups is full, and for {STUCK_CYCLES} cycles no transaction has gone on and no data has come home, \
                 so that nothing can be truncated; raise morlog.log_bytes"
            ));
        }
    }
}
