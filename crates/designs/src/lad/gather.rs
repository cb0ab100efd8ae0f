//! Lines on their way out of the caches and into the pool.

use super::cover::Cover;
use super::pool::{Coming, Draining, Gathered, Owners, Room, Stage};
use super::{About, Lad, Mutant, Phase};
use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE, WordMask, words_in};
use graven_base::thread_set::{ThreadSet, threads_in};
use graven_base::time::Cycle;
use graven_machine::machine::Machine;

impl Lad {
    /// Sends a dirty line from the caches, after `wait`.
    pub(super) fn push(&mut self, m: &mut Machine, line: LineAddr, wait: Cycle) {
        let fall = m.caches.clean(line).expect("a line that was not pushed is dirty in some cache");
        m.count().forced_writebacks += 1;
        let content = m.line(line);
        let at = m.now() + wait + fall;
        m.note(|| format!("line {} is pushed", line.addr()));
        self.leaves(m, line, &content, at);
        m.set_timer(at, About::Arrival.line(line));
    }

    /// The newest content of a line has left the caches and arrives at a time. Returns whether no older
    /// version was underway.
    pub(super) fn leaves(
        &mut self,
        m: &mut Machine,
        line: LineAddr,
        content: &LineData,
        arrives: Cycle,
    ) -> bool {
        let mut threads: ThreadSet = 0;
        for (t, thread) in self.threads.iter_mut().enumerate() {
            if let Some(at) = thread.writes.find(line) {
                thread.writes.lines[at].pushed = true;
                threads |= 1 << t;
            }
        }
        let alone = self.underway(line, content, arrives, threads);
        if !alone {
            m.cover(Cover::JoinsOlderContent as usize);
        }
        alone
    }

    /// A line is underway, or joins its older version; these threads' commits must wait for it.
    pub(super) fn underway(
        &mut self,
        line: LineAddr,
        content: &LineData,
        arrives: Cycle,
        threads: ThreadSet,
    ) -> bool {
        let older = self.coming.get_mut(line);
        let (joins, known) = (older.is_some(), older.as_ref().map_or(0, |c| c.threads));
        for t in threads_in(threads & !known) {
            self.threads[t].underway += 1;
        }
        match older {
            Some(coming) => {
                coming.data = *content;
                coming.arrives = coming.arrives.max(arrives);
                coming.threads |= threads;
                coming.newer = true;
            }
            None => {
                let (data, stage) = (*content, Stage::Travelling);
                self.coming.insert(line, Coming { data, arrives, threads, stage, newer: false });
            }
        }
        !joins
    }

    /// Who has stored which words of a line, and which of these words have no undo record.
    pub(super) fn owners(&self, line: LineAddr) -> (Owners, WordMask) {
        let (mut owners, mut unlogged) = ([None; WORDS_PER_LINE], 0);
        for (t, thread) in self.threads.iter().enumerate() {
            let Some(at) = thread.writes.find(line) else { continue };
            let written = &thread.writes.lines[at];
            unlogged |= written.words & !written.logged;
            words_in(written.words).for_each(|word| owners[word] = Some(t as u8));
        }
        (owners, unlogged)
    }

    pub(super) fn free_places(&self) -> usize {
        let own = self.draining.iter().filter(|d| d.room == Room::Own).count();
        let used = self.gathered.lines.len() + own;
        self.places.checked_sub(used).expect("the pool holds at most so many lines")
    }

    /// Counts the places in use, whose number has changed.
    pub(super) fn count_places(&mut self, m: &mut Machine) {
        let used = (self.places - self.free_places()) as u64;
        let (before, since) = std::mem::replace(&mut self.in_use, (used, m.now()));
        let cycles = m.now() - since;
        let count = m.count();
        count.adr_entry_cycles += before * cycles;
        count.adr_entries_max = count.adr_entries_max.max(used);
        count.log_buffer_max = count.log_buffer_max.max(used);
    }

    /// A line is at the controller: it finds a place, waits for one, or is logged and goes home.
    pub(super) fn place(&mut self, m: &mut Machine, line: LineAddr) {
        let coming = self.coming.get_mut(line).expect("only a line underway is placed");
        if coming.arrives > m.now() {
            coming.stage = Stage::Travelling;
            return;
        }
        coming.newer = false;
        let (data, arrives) = (coming.data, coming.stage == Stage::Travelling);
        let (owners, unlogged) = self.owners(line);
        if self.gathered.get(line).is_some() {
            if !self.separate(line) {
                return self.wait_for_place(m, line);
            }
            *self.gathered.get_mut(line).expect("it was just found") = Gathered { data, owners };
            self.gathered(m, line);
        } else if unlogged == 0 {
            if arrives && owners.iter().any(Option::is_some) {
                m.cover(Cover::HomeAgain as usize);
            }
            self.write_home(m, line);
        } else if self.log_without_asking(line) {
            self.log(m, line);
        } else if self.free_places() > 0 {
            self.gathered.insert(line, Gathered { data, owners });
            self.gathered(m, line);
        } else if self.config.wait_for_place && self.draining.iter().any(|d| d.room == Room::Own) {
            self.wait_for_place(m, line);
        } else {
            self.overflow(m, line);
        }
    }

    /// A draining line is about to leave.
    fn wait_for_place(&mut self, m: &mut Machine, line: LineAddr) {
        m.cover(Cover::WaitsForPlace as usize);
        m.note(|| format!("line {} waits for a place", line.addr()));
        self.stage(line, Stage::Waiting);
    }

    pub(super) fn stage(&mut self, line: LineAddr, stage: Stage) {
        self.coming.get_mut(line).expect("the caller has it").stage = stage;
    }

    /// The versions of a line that drain from the place of the gathered one, oldest first.
    pub(super) fn sharing_place_of(
        &mut self,
        line: LineAddr,
    ) -> impl DoubleEndedIterator<Item = &mut Draining> {
        self.draining.iter_mut().filter(move |d| d.line == line && d.room == Room::Gathered)
    }

    /// Gives the draining versions that share the place of a gathered line places of their own, before
    /// newer content goes there. Returns whether there were places.
    pub(super) fn separate(&mut self, line: LineAddr) -> bool {
        let free = self.free_places();
        if self.sharing_place_of(line).count() > free {
            return false;
        }
        self.sharing_place_of(line).for_each(|d| d.room = Room::Own);
        true
    }

    pub(super) fn gathered(&mut self, m: &mut Machine, line: LineAddr) {
        self.count_places(m);
        m.note(|| format!("line {} is in the pool", line.addr()));
        if self.draining.iter().any(|d| d.line == line) {
            m.cover(Cover::OlderVersionDrains as usize);
        }
        let owners = &self.gathered.get(line).expect("it has its place").owners;
        let mut owners = owners.iter().flatten();
        if owners.next().is_some_and(|first| owners.any(|owner| owner != first)) {
            m.cover(Cover::SharedLineGathered as usize);
        }
        self.received(m, line);
    }

    /// The controller has a line where the commit of its transactions will find it.
    pub(super) fn received(&mut self, m: &mut Machine, line: LineAddr) {
        let coming = self.coming.remove(line).expect("only a line underway is received");
        for t in threads_in(coming.threads) {
            let thread = &mut self.threads[t];
            thread.underway -= 1;
            thread.received = m.now() + m.bypass_cycles();
            self.commit_if_prepared(m, t);
        }
    }

    pub(super) fn commit_if_prepared(&mut self, m: &mut Machine, t: usize) {
        let thread = &mut self.threads[t];
        let has_all = thread.underway == 0 || self.mutants.has(Mutant::CommitBeforeLines);
        if thread.phase == Phase::Preparing && has_all {
            thread.phase = Phase::Committing;
            let known = thread.received.max(m.now());
            m.set_timer(known + m.bypass_cycles(), About::Commit.thread(t));
            m.note(|| format!("the controller has all lines of thread {t}"));
            if self.mutants.has(Mutant::RegisterEarly) {
                self.move_register(m, t);
            }
        }
    }
}
