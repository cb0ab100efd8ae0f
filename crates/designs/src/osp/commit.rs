//! Commit: the transaction's lines go to PM, each to its own place, then the record of their pages.

use super::Shootdown;
use super::event::Event;
use super::layout::{Physical, Slot};
use super::protocol::{Osp, Port, Read, Timer, Write};
use super::write_set::Written;
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::time::Cycle;
use graven_machine::media::overlay;
use graven_machine::request::{self, WriteClass, WriteOrder};

/// A line that is being committed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    pub(super) line: LineAddr,
    pub(super) slot: Slot,
    /// True if it is committed in its shadow page.
    pub(super) in_shadow: bool,
}

/// A commit under way.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) thread: ThreadId,
    /// Lines of the commit, by address.
    pub(super) lines: Vec<Committed>,
    /// Order of its record: writes to the other places of its lines wait for it.
    pub(super) order: WriteOrder,
    /// Lines sent that are not durable.
    flushes: u32,
    /// Places with older writes on their way that it must wait for, and their numbers.
    evictions: Vec<(Physical, u32)>,
    /// When its record began to wait for room in the journal; [`Cycle::MAX`]: it does not.
    pub(super) full_since: Cycle,
}

/// A commit whose lines are being sent.
struct Flushing {
    commit: Commit,
    /// By which it will be known.
    key: usize,
    /// In how many cycles its next line leaves the L1.
    delay: Cycle,
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

    /// Returns the order that a write to a line's current place must wait for: until the last
    /// commit of the line is recorded, the other place holds what is committed.
    pub(super) fn barrier(&self, line: LineAddr, slot: Slot) -> WriteOrder {
        let has = |c: &&Commit| c.lines.binary_search_by_key(&line, |l| l.line).is_ok();
        let commits = self.commits.iter().map(|(_, commit)| commit);
        let commit = commits.filter(has).map(|commit| commit.order).max().unwrap_or_default();
        commit.max(self.pages.get(slot).consolidating)
    }

    // ---- lines that transactions share ---------------------------------------------------------

    /// Reads what the controller needs of lines that the transaction shares with others, and begins the
    /// commit when it has all of it.
    pub(super) fn prepare(&mut self, port: &mut Port<'_>, thread: usize) {
        let mut reads = 0;
        for at in 0..self.threads[thread].writes.lines.len() {
            let line = self.threads[thread].writes.lines[at].line;
            let is_shared = self.words_of_others(thread, line) != 0;
            if is_shared && self.rules.foreign_words_stay() {
                reads += self.read_shared(port, thread, at);
            }
        }
        self.threads[thread].reads = reads;
        if reads == 0 {
            self.begin_commit(port, thread);
        }
    }

    /// Reads a shared line from the committed place, for the words of others, and from the current one if no cache
    /// holds it dirty, as far as that has not been done. Returns how many reads there are.
    fn read_shared(&mut self, port: &mut Port<'_>, thread: usize, at: usize) -> u32 {
        let written = &mut self.threads[thread].writes.lines[at];
        let (line, slot) = (written.line, written.slot);
        let current = self.pages.is_current_in_shadow(slot, line);
        let read_committed = !written.committed_read;
        let read_current = !written.current_read && !port.is_dirty(line);
        written.committed_read = true;
        written.current_read |= read_current;
        for (wanted, in_shadow) in [(read_committed, !current), (read_current, current)] {
            if wanted {
                let place = self.pages.place(slot, line, in_shadow);
                port.read(place, Read::Shared { thread }, port.bypass_cycles());
            }
        }
        u32::from(read_committed) + u32::from(read_current)
    }

    /// A shared line was read. With the last one it is seen whether that is still all that is needed.
    pub(super) fn shared_read(&mut self, port: &mut Port<'_>, thread: usize) {
        self.threads[thread].reads -= 1;
        if self.threads[thread].reads == 0 {
            self.prepare(port, thread);
        }
    }

    // ---- lines go to their places --------------------------------------------------------------

    /// All lines of the transaction are sent to their places. From now on they count as committed, save
    /// that nothing may be written to their other places before the record is durable.
    fn begin_commit(&mut self, port: &mut Port<'_>, thread: usize) {
        let commit = Commit {
            thread: thread as ThreadId,
            lines: self.spare.pop().unwrap_or_default(),
            order: port.order(),
            flushes: 0,
            evictions: Vec::new(),
            full_since: Cycle::MAX,
        };
        let mut flushing = Flushing { commit, key: self.commits.vacant_key(), delay: 0 };
        for at in 0..self.threads[thread].writes.lines.len() {
            let Written { line, slot, .. } = self.threads[thread].writes.lines[at];
            let others = self.words_of_others(thread, line);
            if others == 0 || !self.rules.foreign_words_stay() {
                self.flush(port, &mut flushing, line, slot);
            } else {
                self.flush_shared(port, &mut flushing, line, slot, others);
            }
        }
        let writes = &mut self.threads[thread].writes;
        for of_page in writes.lines.chunk_by(|a, b| a.slot == b.slot) {
            let page = self.pages.get_mut(of_page[0].slot);
            page.open -= of_page.len() as u32;
            page.committing += 1;
        }
        writes.clear();
        let Flushing { commit, key, .. } = flushing;
        port.emit(Event::LinesSent { thread, lines: commit.lines.len() });
        self.commits.insert(commit);
        self.send_if_flushed(port, key);
    }

    /// Sends a line without words of other transactions to its current place, unless it has gone
    /// there before.
    fn flush(&mut self, port: &mut Port<'_>, flushing: &mut Flushing, line: LineAddr, slot: Slot) {
        let in_shadow = self.pages.is_current_in_shadow(slot, line);
        let place = self.pages.place(slot, line, in_shadow);
        if let Some(fall) = port.clean(line) {
            port.emit(Event::Flushed);
            let (content, after) = (port.cached_line(line), self.flush_barrier(line, slot));
            self.send_flush(port, flushing, (place, content), after, fall);
            flushing.delay += Cycle::from(self.config.flush_interval_cycles);
        } else {
            self.await_eviction(port, &mut flushing.commit, place);
        }
        self.set_committed(&mut flushing.commit, line, slot, in_shadow);
    }

    /// Commits a line in which another open transaction has words without them: the committed line
    /// takes the place of the current version, which has its place in the other from now on.
    fn flush_shared(
        &mut self,
        port: &mut Port<'_>,
        flushing: &mut Flushing,
        line: LineAddr,
        slot: Slot,
        others: WordMask,
    ) {
        let in_shadow = self.pages.is_current_in_shadow(slot, line);
        let place = self.pages.place(slot, line, in_shadow);
        let other_place = self.pages.place(slot, line, !in_shadow);
        let (current, before) = (port.cached_line(line), port.memory_line(other_place));
        let mut content = current;
        overlay(&mut content, &before, others);
        let after = self.flush_barrier(line, slot);
        let dirty = port.is_dirty(line);
        port.emit(Event::SharedLineCommitted { dirty });
        let fall = if dirty { port.miss_path_cycles() } else { 0 };
        self.send_flush(port, flushing, (place, content), after, fall);
        if dirty {
            flushing.delay += Cycle::from(self.config.flush_interval_cycles);
        } else {
            self.send_uncommitted(port, &flushing.commit, other_place, current);
        }
        self.set_committed(&mut flushing.commit, line, slot, in_shadow);
        let bit = self.pages.bit(slot, line);
        self.pages.get_mut(slot).current ^= bit;
        self.forget_reads(flushing.commit.thread as usize, line);
    }

    /// A shared line with the uncommitted words, which had left the caches, goes to its other place, when the record
    /// is durable.
    fn send_uncommitted(
        &mut self,
        port: &mut Port<'_>,
        commit: &Commit,
        place: Physical,
        content: LineData,
    ) {
        self.leaving.add(place);
        let after =
            if self.rules.shared_line_follows_record() { commit.order } else { WriteOrder::NONE };
        let write = request::Write::line(WriteClass::Data, place, content).after(after);
        port.write_reported(write, Write::Leaving { place }, 0);
    }

    /// Forgets reads of a line for the commits of other threads: they are not the committed line
    /// any more.
    fn forget_reads(&mut self, thread: usize, line: LineAddr) {
        let others = self.threads.iter_mut().enumerate().filter(|&(t, _)| t != thread);
        for written in others.filter_map(|(_, other)| other.writes.find_mut(line)) {
            (written.committed_read, written.current_read) = (false, false);
        }
    }

    fn flush_barrier(&self, line: LineAddr, slot: Slot) -> WriteOrder {
        if self.rules.flush_follows_record() { self.barrier(line, slot) } else { WriteOrder::NONE }
    }

    /// Sends a line of a commit to its place; it takes so long from the L1 to the controller.
    fn send_flush(
        &mut self,
        port: &mut Port<'_>,
        flushing: &mut Flushing,
        (place, content): (Physical, LineData),
        after: WriteOrder,
        fall: Cycle,
    ) {
        let is_awaited = self.rules.flush_is_awaited();
        flushing.commit.flushes += u32::from(is_awaited);
        let about = is_awaited.then_some(Write::Flush { commit: flushing.key });
        let write = request::Write::line(WriteClass::Data, place, content).after(after);
        port.write_maybe_reported(write, about, flushing.delay + fall);
    }

    /// The line has left the caches; what is on its way must be durable before the record is sent.
    fn await_eviction(&mut self, port: &mut Port<'_>, commit: &mut Commit, place: Physical) {
        let on_their_way = self.leaving.count(place);
        if on_their_way == 0 {
            return;
        }
        port.emit(Event::CommitWaitsForEviction);
        if self.rules.eviction_is_awaited() {
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
    pub(super) fn flushed(&mut self, port: &mut Port<'_>, key: usize) {
        self.commits[key].flushes -= 1;
        self.send_if_flushed(port, key);
    }

    /// An uncommitted line that left the caches is durable in its place.
    pub(super) fn has_left(&mut self, port: &mut Port<'_>, place: Physical) {
        one_less(&mut self.leaving.places, place);
        let waited = |c: &mut Commit| one_less(&mut c.evictions, place);
        let waiting = self.commits.iter_mut().filter_map(|(key, c)| waited(c).then_some(key));
        for key in waiting.collect::<Vec<_>>() {
            self.send_if_flushed(port, key);
        }
    }

    // ---- the record ----------------------------------------------------------------------------

    /// When all lines are durable the core hears of it and sends the commit to the controller.
    fn send_if_flushed(&mut self, port: &mut Port<'_>, key: usize) {
        let commit = &self.commits[key];
        if commit.flushes == 0 && commit.evictions.is_empty() {
            let there_and_back = 2 * port.bypass_cycles();
            port.set_timer(port.now() + there_and_back, Timer::Record { commit: key });
        }
    }

    /// A commit's record is durable: it is committed, and the core hears of it.
    pub(super) fn recorded(&mut self, port: &mut Port<'_>, key: usize) {
        let Commit { thread, mut lines, .. } = self.commits.remove(key);
        let thread = thread as usize;
        let mut wait = 0;
        for of_page in lines.chunk_by(|a, b| a.slot == b.slot) {
            wait = self.page_committed(port, thread, of_page).max(wait);
        }
        lines.clear();
        self.spare.push(lines);
        port.emit(Event::Recorded { thread });
        if self.rules.record_is_awaited() {
            self.acknowledge(port, thread, wait);
        }
        self.consolidate_next(port);
    }

    /// The record of a thread's commit says durably where these lines of a page are. Returns how long the core waits
    /// for translations that it shoots down.
    fn page_committed(
        &mut self,
        port: &mut Port<'_>,
        thread: usize,
        of_page: &[Committed],
    ) -> Cycle {
        let slot = of_page[0].slot;
        let (set, mask) = self.bits(of_page);
        let page = self.pages.get_mut(slot);
        page.durable = page.durable & !mask | set;
        page.committing -= 1;
        page.pending = false;
        let mut wait = 0;
        if self.config.shootdown == Shootdown::Commit {
            wait = self.shoot_down(port, slot, self.threads[thread].core);
        }
        let page = self.pages.get(slot);
        if page.cores == 0 && page.open == 0 {
            self.inactive(port, slot);
        }
        wait
    }

    /// The core hears that its commit is durable; it has waited so long for other cores then.
    pub(super) fn acknowledge(&mut self, port: &mut Port<'_>, thread: usize, wait: Cycle) {
        port.send_to_core(wait, Timer::Acknowledgement { thread: thread as ThreadId });
    }

    /// The bits of a page's committed lines that are in the shadow, and of all of them.
    pub(super) fn bits(&self, of_page: &[Committed]) -> (u64, u64) {
        of_page.iter().fold((0, 0), |(set, mask), line| {
            let bit = self.pages.bit(line.slot, line.line);
            (set | if line.in_shadow { bit } else { 0 }, mask | bit)
        })
    }
}
