//! Prepare, commit, and what drains to PM after it.

use super::event::Event;
use super::pool::{Draining, Room, Stage, words_owned};
use super::protocol::{Lad, Phase, Port, Timer, Write};
use super::undo_log::UndoLog;
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, WORDS_PER_LINE, WordMask};
use graven_base::thread_set::threads_in;
use graven_base::time::Cycle;
use graven_machine::request::{self, WriteClass};

impl<L: UndoLog> Lad<L> {
    // ---- prepare -------------------------------------------------------------------------------

    /// *Prepare*: each of the transaction's lines that is dirty in a cache leaves for the controller, one at each push
    /// interval.
    pub(super) fn prepare(&mut self, port: &mut Port<'_, L>, t: usize) {
        let mut wait = 0;
        for at in 0..self.threads[t].writes.lines.len() {
            let written = &self.threads[t].writes.lines[at];
            if !written.pushed {
                let line = written.line;
                self.push(port, line, wait);
                wait += Cycle::from(self.config.push_interval_cycles);
            }
        }
        self.threads[t].phase = Phase::Preparing;
        self.commit_if_prepared(port, t);
    }

    /// The controller has a line where the commit of its transactions will find it.
    pub(super) fn received(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        let coming = self.coming.remove(line).expect("only a line underway is received");
        for t in threads_in(coming.threads) {
            let thread = &mut self.threads[t];
            thread.underway -= 1;
            thread.received = port.now() + port.bypass_cycles();
            self.commit_if_prepared(port, t);
        }
    }

    /// The controller notifies the core when it has all lines; the core answers with the commit message.
    fn commit_if_prepared(&mut self, port: &mut Port<'_, L>, t: usize) {
        let thread = &mut self.threads[t];
        let has_all = thread.underway == 0 || !self.rules.commit_follows_lines();
        if thread.phase == Phase::Preparing && has_all {
            thread.phase = Phase::Committing;
            let known_in = thread.received.saturating_sub(port.now());
            port.send_to_controller(known_in, Timer::Commit { thread: t });
            port.emit(Event::Prepared { thread: t });
            if !self.rules.register_waits_for_commit() {
                self.move_register(port, t);
            }
        }
    }

    // ---- commit --------------------------------------------------------------------------------

    /// The commit message has reached the controller: the commit point.
    pub(super) fn commit(&mut self, port: &mut Port<'_, L>, t: usize) {
        port.durable_state_changed();
        let logging = |stage| matches!(stage, Stage::Reading | Stage::Logging(_));
        let while_logging = self.coming.values.iter().any(|c| logging(c.stage));
        port.emit(Event::Committed { thread: t, while_logging });
        if self.rules.register_waits_for_commit() && self.rules.register_moves_with_commit() {
            self.move_register(port, t);
        }
        let thread = &mut self.threads[t];
        thread.phase = Phase::Running;
        thread.logs_all = false;
        let left_behind = usize::from(!self.rules.all_lines_are_committed());
        for at in 0..thread.writes.lines.len() - left_behind {
            let line = self.threads[t].writes.lines[at].line;
            self.commit_line(port, t, line);
        }
        self.threads[t].writes.clear();
        self.decided += 1;
        self.count_places(port);
        self.acknowledge_if_drained(port, t);
    }

    /// Sends the acknowledgement of a commit, unless lines are still to reach NVM and it waits for them.
    fn acknowledge_if_drained(&mut self, port: &mut Port<'_, L>, t: usize) {
        if self.threads[t].draining == 0 {
            port.send_to_core(0, Timer::Acknowledgement { thread: t });
        }
    }

    /// The thread's commit register says that its transaction has committed.
    fn move_register(&mut self, port: &mut Port<'_, L>, t: usize) {
        port.durable_state_changed();
        self.log.commit(port, t);
    }

    /// The core hears of the commit.
    pub(super) fn acknowledge(&mut self, port: &mut Port<'_, L>, t: usize) {
        if !self.rules.register_moves_with_commit() {
            self.move_register(port, t);
        }
        port.release_here(t as ThreadId);
    }

    /// The transaction's words of a gathered line are committed. If words of other open transactions stay, what drains
    /// shares the place with them.
    fn commit_line(&mut self, port: &mut Port<'_, L>, t: usize, line: LineAddr) {
        let Some(entry) = self.gathered.get_mut(line) else { return };
        let mine = |owner: u8| usize::from(owner) == t;
        if words_owned(&entry.owners, mine) == 0 {
            return;
        }
        entry.owners.iter_mut().filter(|o| o.is_some_and(mine)).for_each(|o| *o = None);
        if !self.rules.foreign_words_stay() {
            entry.owners = [None; WORDS_PER_LINE];
        }
        let mask = !words_owned(&entry.owners, |_| true);
        let data = entry.data;
        let mut room = Room::Gathered;
        if mask == WordMask::MAX {
            room = Room::Own;
            self.gathered.remove(line);
            self.sharing_place_of(line).for_each(|d| d.room = Room::Younger);
        }
        self.drain(port, Draining { line, mask, data, room, committed_by: t });
    }

    // ---- drain ---------------------------------------------------------------------------------

    /// Committed words go to PM as ordinary data; their place is free when they are durable.
    fn drain(&mut self, port: &mut Port<'_, L>, version: Draining) {
        let Draining { line, mask, data, committed_by, .. } = version;
        let awaited = self.rules.place_free_when_durable();
        if awaited {
            self.threads[committed_by].draining += u32::from(self.config.commit_waits_for_nvm);
            self.draining.push(version);
        }
        port.emit(Event::Drains { line, words: mask });
        let write = request::Write::line(WriteClass::Data, line, data);
        let write = write.masked(mask);
        port.write_maybe_reported(write, awaited.then_some(Write::Drain(line)), 0);
    }

    /// The oldest draining version of a line is durable: its place is free.
    pub(super) fn drained(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        port.durable_state_changed();
        let mut versions = (0..self.draining.len()).filter(|&at| self.draining[at].line == line);
        let at =
            if self.rules.oldest_version_drains() { versions.next() } else { versions.next_back() };
        let version = self.draining.remove(at.expect("a drain ends once"));
        self.count_places(port);
        self.place_waiting(port);
        if self.config.commit_waits_for_nvm {
            self.threads[version.committed_by].draining -= 1;
            self.acknowledge_if_drained(port, version.committed_by);
        }
    }
}
