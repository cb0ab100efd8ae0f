//! Commit, and what drains to PM after it.

use super::cover::Cover;
use super::pool::{Draining, Room, Stage, words_owned};
use super::{About, Lad, Mutant, Phase};
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, WORDS_PER_LINE, WordMask};
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

impl Lad {
    /// The commit message has reached the controller: the commit point.
    pub(super) fn commit(&mut self, m: &mut Machine, t: usize) {
        m.durable_state_changed();
        m.note(|| format!("thread {t} commits"));
        if self.coming.values.iter().any(|c| matches!(c.stage, Stage::Reading | Stage::Logging(_)))
        {
            m.cover(Cover::CommitWhileLogging as usize);
        }
        let elsewhen = [Mutant::RegisterEarly, Mutant::RegisterLate];
        if !elsewhen.iter().any(|&mutant| self.mutants.has(mutant)) {
            self.move_register(m, t);
        }
        let thread = &mut self.threads[t];
        thread.phase = Phase::Running;
        thread.logs_all = false;
        let lines = self.threads[t].writes.lines.len();
        let left_behind = usize::from(self.mutants.has(Mutant::LineNotCommitted));
        for at in 0..lines - left_behind {
            let line = self.threads[t].writes.lines[at].line;
            self.commit_line(m, t, line);
        }
        self.threads[t].writes.clear();
        self.count_places(m);
        m.set_timer(m.now() + m.bypass_cycles(), About::Acknowledgement.thread(t));
    }

    /// The thread's commit register says that its transaction has committed.
    pub(super) fn move_register(&mut self, m: &mut Machine, t: usize) {
        m.durable_state_changed();
        self.log.commit(m, t);
    }

    /// The core hears of the commit.
    pub(super) fn acknowledge(&mut self, m: &mut Machine, t: usize) {
        if self.mutants.has(Mutant::RegisterLate) {
            self.move_register(m, t);
        }
        m.release(t as ThreadId);
    }

    pub(super) fn commit_line(&mut self, m: &mut Machine, t: usize, line: LineAddr) {
        let Some(entry) = self.gathered.get_mut(line) else { return };
        let mine = |owner: u8| usize::from(owner) == t;
        if words_owned(&entry.owners, mine) == 0 {
            return;
        }
        entry.owners.iter_mut().filter(|o| o.is_some_and(mine)).for_each(|o| *o = None);
        if self.mutants.has(Mutant::WholeLinesCommitted) {
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
        if mask != WordMask::MAX {
            m.cover(Cover::LineCommittedInPart as usize);
        }
        let mut token = About::Drain.line(line);
        if self.mutants.has(Mutant::PlaceFreedAtSending) {
            token = 0;
        } else {
            self.draining.push(Draining { line, mask, data, room });
        }
        m.note(|| format!("words {mask:#010b} of line {} drain", line.addr()));
        let write = Write::line(WriteClass::Data, line, data);
        m.write(Write { mask, token, ..write }, 0);
    }

    /// The oldest draining version of a line is durable: its place is free.
    pub(super) fn drained(&mut self, m: &mut Machine, line: LineAddr) {
        m.durable_state_changed();
        let mut versions = (0..self.draining.len()).filter(|&at| self.draining[at].line == line);
        let at = if self.mutants.has(Mutant::NewestVersionDrained) {
            versions.next_back()
        } else {
            versions.next()
        };
        self.draining.remove(at.expect("a drain ends once"));
        self.count_places(m);
        let mut i = 0;
        while let Some(&line) = self.coming.lines.get(i) {
            if self.coming.values[i].stage == Stage::Waiting {
                self.place(m, line);
            }
            i += usize::from(self.coming.lines.get(i) == Some(&line));
        }
    }
}
