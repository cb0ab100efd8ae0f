//! Commit: the transaction's lines go to PM, each to its own place, then the record of their pages.

use super::cover::Cover;
use super::layout::{Physical, Slot};
use super::write_set::Written;
use super::{About, Mutant, Osp, Shootdown};
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, WORDS_PER_LINE, WordMask};
use graven_base::time::Cycle;
use graven_machine::machine::Machine;
use graven_machine::media::overlay;
use graven_machine::request::{OrderSeq, Write, WriteClass};

/// A line that is being committed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    pub(super) line: LineAddr,
    pub(super) slot: Slot,
    /// Which of its places it is committed in.
    pub(super) in_shadow: bool,
}

/// A commit under way.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) thread: ThreadId,
    /// Its lines, by address.
    pub(super) lines: Vec<Committed>,
    /// Of its record: writes to the other places of its lines wait for it.
    pub(super) order: OrderSeq,
    /// Lines sent that are not durable.
    flushes: u32,
    /// Places with so many older writes on their way that it must wait for.
    evictions: Vec<(Physical, u32)>,
    /// When its record began to wait for room in the journal; [`Cycle::MAX`]: it does not.
    pub(super) full_since: Cycle,
}

/// Writes of uncommitted lines to a place that are not durable, and how many.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaving {
    places: Vec<(Physical, u32)>,
}

impl Leaving {
    pub(super) fn add(&mut self, place: Physical) {
        match self.places.iter_mut().find(|(p, _)| *p == place) {
            Some((_, count)) => *count += 1,
            None => self.places.push((place, 1)),
        }
    }

    fn count(&self, place: Physical) -> u32 {
        self.places.iter().find(|(p, _)| *p == place).map_or(0, |&(_, count)| count)
    }
}

/// One of these writes is durable.
fn one_less(places: &mut Vec<(Physical, u32)>, place: Physical) -> bool {
    let Some(at) = places.iter().position(|&(p, _)| p == place) else { return false };
    places[at].1 -= 1;
    if places[at].1 == 0 {
        places.swap_remove(at);
    }
    true
}

impl Osp {
    /// Words of a line that other open transactions have stored.
    pub(super) fn words_of_others(&self, thread: usize, line: LineAddr) -> WordMask {
        let others = self.threads.iter().enumerate().filter(|&(t, _)| t != thread);
        let words = others.filter_map(|(_, other)| other.writes.find(line)).map(|w| w.words);
        words.fold(0, |all, words| all | words)
    }

    /// What a write to a line's current place must wait for: until the last commit of the line is
    /// recorded, the other place holds what is committed.
    pub(super) fn barrier(&self, line: LineAddr, slot: Slot) -> OrderSeq {
        let has = |c: &&super::Commit| c.lines.binary_search_by_key(&line, |l| l.line).is_ok();
        let commits = self.commits.iter().map(|(_, commit)| commit);
        let commit = commits.filter(has).map(|commit| commit.order).max().unwrap_or(0);
        commit.max(self.pages.get(slot).consolidating)
    }

    /// Reads what the controller needs of lines that the transaction shares with others, and begins the
    /// commit when it has all of it.
    pub(super) fn prepare(&mut self, m: &mut Machine, t: usize) {
        let mut reads = 0;
        for at in 0..self.threads[t].writes.lines.len() {
            let Written { line, slot, committed_read, current_read, .. } =
                self.threads[t].writes.lines[at];
            if self.mutants.has(Mutant::WholeLinesCommitted) || self.words_of_others(t, line) == 0 {
                continue;
            }
            let current = self.pages.is_current_in_shadow(slot, line);
            let read_current = !current_read && !m.caches.is_dirty(line);
            for (wanted, in_shadow) in [(!committed_read, !current), (read_current, current)] {
                if wanted {
                    let place = self.pages.place(slot, line, in_shadow);
                    m.read(place, About::Shared.number(t as u64), m.bypass_cycles());
                    reads += 1;
                }
            }
            let written = &mut self.threads[t].writes.lines[at];
            written.committed_read = true;
            written.current_read |= read_current;
        }
        self.threads[t].reads = reads;
        if reads == 0 {
            self.begin_commit(m, t);
        }
    }

    /// All lines of the transaction are sent to their places. From now on they count as committed, save
    /// that nothing may be written to their other places before the record is durable.
    fn begin_commit(&mut self, m: &mut Machine, t: usize) {
        let order = m.order();
        let lines = self.spare.pop().unwrap_or_default();
        let mut commit = Commit {
            thread: t as ThreadId,
            lines,
            order,
            flushes: 0,
            evictions: Vec::new(),
            full_since: Cycle::MAX,
        };
        let key = self.commits.vacant_key();
        let mut wait = 0;
        for at in 0..self.threads[t].writes.lines.len() {
            let Written { line, slot, .. } = self.threads[t].writes.lines[at];
            let others = self.words_of_others(t, line);
            if others == 0 || self.mutants.has(Mutant::WholeLinesCommitted) {
                self.flush(m, &mut commit, key, (line, slot), &mut wait);
            } else {
                self.flush_shared(m, &mut commit, key, (line, slot, others), &mut wait);
            }
        }
        let touched = self.threads[t].writes.lines.chunk_by(|a, b| a.slot == b.slot);
        for of_page in touched {
            let page = self.pages.get_mut(of_page[0].slot);
            page.open -= of_page.len() as u32;
            page.committing += 1;
        }
        self.threads[t].writes.clear();
        m.note(|| format!("thread {t} sends {} lines", commit.lines.len()));
        self.commits.insert(commit);
        self.send_if_flushed(m, key);
    }

    /// A line that nobody else has words in goes to its current place, unless it has gone there before.
    fn flush(
        &mut self,
        m: &mut Machine,
        commit: &mut Commit,
        key: usize,
        (line, slot): (LineAddr, Slot),
        wait: &mut Cycle,
    ) {
        let in_shadow = self.pages.is_current_in_shadow(slot, line);
        let place = self.pages.place(slot, line, in_shadow);
        if let Some(fall) = m.caches.clean(line) {
            m.count().forced_writebacks += 1;
            let content = m.line(line);
            let after = self.flush_barrier(line, slot);
            self.send_flush(m, commit, key, (place, content, after), *wait + fall);
            *wait += Cycle::from(self.config.flush_interval_cycles);
        } else {
            self.await_eviction(m, commit, place);
        }
        self.set_committed(commit, line, slot, in_shadow);
    }

    /// Where another open transaction has words in the line, what is committed is a line without them: it
    /// takes the place of the current version, which has its place in the other from now on.
    fn flush_shared(
        &mut self,
        m: &mut Machine,
        commit: &mut Commit,
        key: usize,
        (line, slot, others): (LineAddr, Slot, WordMask),
        wait: &mut Cycle,
    ) {
        m.cover(Cover::SharedLineCommitted as usize);
        let in_shadow = self.pages.is_current_in_shadow(slot, line);
        let place = self.pages.place(slot, line, in_shadow);
        let other_place = self.pages.place(slot, line, !in_shadow);
        let (current, before) = (m.line(line), m.memory.content(other_place));
        let mut content = current;
        overlay(&mut content, &before, others);
        let after = self.flush_barrier(line, slot);
        let is_dirty = m.caches.is_dirty(line);
        let fall = if is_dirty { m.caches.miss_path_cycles() } else { 0 };
        self.send_flush(m, commit, key, (place, content, after), *wait + fall);
        if is_dirty {
            m.count().forced_writebacks += 1;
            *wait += Cycle::from(self.config.flush_interval_cycles);
        } else {
            m.cover(Cover::SharedLineInMemory as usize);
            self.leaving.add(other_place);
            let overtakes = self.mutants.has(Mutant::SharedLineOvertakesRecord);
            let after = if overtakes { 0 } else { commit.order };
            let token = About::Leaving.line(other_place);
            let write = Write::line(WriteClass::Data, other_place, current);
            m.write(Write { token, after, ..write }, 0);
        }
        self.set_committed(commit, line, slot, in_shadow);
        let bit = self.pages.bit(slot, line);
        self.pages.get_mut(slot).current ^= bit;
        m.count().lines_remapped += 1;
        for (other, thread) in self.threads.iter_mut().enumerate() {
            if other != commit.thread as usize
                && let Some(written) = thread.writes.find_mut(line)
            {
                // What the controller may have read for its commit is the committed line no longer.
                (written.committed_read, written.current_read) = (false, false);
            }
        }
    }

    fn flush_barrier(&self, line: LineAddr, slot: Slot) -> OrderSeq {
        let overtakes = self.mutants.has(Mutant::FlushOvertakesRecord);
        if overtakes { 0 } else { self.barrier(line, slot) }
    }

    fn send_flush(
        &mut self,
        m: &mut Machine,
        commit: &mut Commit,
        key: usize,
        (place, content, after): (Physical, [u64; WORDS_PER_LINE], OrderSeq),
        delay: Cycle,
    ) {
        let mut token = About::Flush.number(key as u64);
        if self.mutants.has(Mutant::FlushNotAwaited) {
            token = 0;
        } else {
            commit.flushes += 1;
        }
        let write = Write::line(WriteClass::Data, place, content);
        m.write(Write { token, after, ..write }, delay);
    }

    /// The line has left the caches; what is on its way must be durable before the record is sent.
    fn await_eviction(&mut self, m: &mut Machine, commit: &mut Commit, place: Physical) {
        let on_their_way = self.leaving.count(place);
        if on_their_way == 0 {
            return;
        }
        m.cover(Cover::CommitWaitsForEviction as usize);
        if !self.mutants.has(Mutant::EvictionNotAwaited) {
            commit.evictions.push((place, on_their_way));
        }
    }

    fn set_committed(&mut self, commit: &mut Commit, line: LineAddr, slot: Slot, in_shadow: bool) {
        commit.lines.push(Committed { line, slot, in_shadow });
        let bit = self.pages.bit(slot, line);
        let page = self.pages.get_mut(slot);
        page.committed = page.committed & !bit | if in_shadow { bit } else { 0 };
    }

    /// A line of a commit is durable.
    pub(super) fn flushed(&mut self, m: &mut Machine, key: usize) {
        self.commits[key].flushes -= 1;
        self.send_if_flushed(m, key);
    }

    /// An uncommitted line that left the caches is durable in its place.
    pub(super) fn has_left(&mut self, m: &mut Machine, place: Physical) {
        one_less(&mut self.leaving.places, place);
        let waited = |c: &mut Commit| one_less(&mut c.evictions, place);
        let waiting = self.commits.iter_mut().filter_map(|(key, c)| waited(c).then_some(key));
        for key in waiting.collect::<Vec<_>>() {
            self.send_if_flushed(m, key);
        }
    }

    /// When all lines are durable the core hears of it and sends the commit to the controller.
    fn send_if_flushed(&mut self, m: &mut Machine, key: usize) {
        let commit = &self.commits[key];
        if commit.flushes == 0 && commit.evictions.is_empty() {
            m.set_timer(m.now() + 2 * m.bypass_cycles(), About::Record.number(key as u64));
        }
    }

    /// A commit's record is durable: it is committed, and the core hears of it.
    pub(super) fn recorded(&mut self, m: &mut Machine, key: usize) {
        let commit = self.commits.remove(key);
        let thread = commit.thread as usize;
        let core = self.threads[thread].core;
        let mut wait = 0;
        for of_page in commit.lines.chunk_by(|a, b| a.slot == b.slot) {
            let slot = of_page[0].slot;
            let (set, mask) = self.bits(of_page);
            let page = self.pages.get_mut(slot);
            page.durable = page.durable & !mask | set;
            page.committing -= 1;
            page.pending = false;
            if self.config.shootdown == Shootdown::Commit {
                wait = self.shoot_down(m, slot, core).max(wait);
            }
            let page = self.pages.get(slot);
            if page.cores == 0 && page.open == 0 {
                self.inactive(m, slot);
            }
        }
        self.spare.push(commit.lines);
        self.spare.last_mut().expect("it was just put there").clear();
        m.note(|| format!("the record of thread {thread}'s commit is durable"));
        if !self.mutants.has(Mutant::RecordNotAwaited) {
            self.acknowledge(m, thread, wait);
        }
        self.consolidate_next(m);
    }

    pub(super) fn acknowledge(&mut self, m: &mut Machine, thread: usize, wait: Cycle) {
        m.set_timer(
            m.now() + m.bypass_cycles() + wait,
            About::Acknowledgement.number(thread as u64),
        );
    }

    /// The bits of a page's committed lines that are in the shadow, and of all of them.
    pub(super) fn bits(&self, of_page: &[Committed]) -> (u64, u64) {
        of_page.iter().fold((0, 0), |(set, mask), line| {
            let bit = self.pages.bit(line.slot, line.line);
            (set | if line.in_shadow { bit } else { 0 }, mask | bit)
        })
    }
}
