//! Lines on their way out of the caches and into the pool.

use super::event::Event;
use super::pool::{Coming, Draining, Gathered, Owners, Room, Stage};
use super::protocol::{Lad, Port, Timer};
use super::undo_log::UndoLog;
use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE, WordMask, words_in};
use graven_base::thread_set::{ThreadSet, threads_in};
use graven_base::time::Cycle;

impl<L: UndoLog> Lad<L> {
    // ---- out of the caches ---------------------------------------------------------------------

    /// *Proactive flushing*: the line stored to last is the most recent one; the one that falls off the list is pushed.
    pub(super) fn push_early(&mut self, port: &mut Port<'_, L>, thread: usize) {
        let writes = &mut self.threads[thread].writes;
        let off = writes.touch(self.config.recent_lines as usize);
        if let Some(written) = off.map(|at| &mut writes.lines[at]).filter(|w| !w.pushed) {
            written.early = true;
            let line = written.line;
            self.push(port, line, 0);
        }
    }

    /// Sends a dirty line from the caches, after `wait`.
    pub(super) fn push(&mut self, port: &mut Port<'_, L>, line: LineAddr, wait: Cycle) {
        let fall = port.clean(line).expect("a line that was not pushed is dirty in some cache");
        let content = port.cached_line(line);
        let at = port.now() + wait + fall;
        port.emit(Event::Pushed { line });
        self.leaves(port, line, &content, at);
        port.set_timer(at, Timer::Line(line));
    }

    /// The newest content of a line has left the caches and arrives at a time. Returns whether no older
    /// version was underway.
    pub(super) fn leaves(
        &mut self,
        port: &mut Port<'_, L>,
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
            port.emit(Event::JoinsOlderContent);
        }
        alone
    }

    /// A line is underway, or joins its older version; these threads' commits must wait for it. Returns whether no
    /// older version was underway.
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
                let (newer, refused) = (false, 0);
                self.coming.insert(line, Coming { data, arrives, threads, stage, newer, refused });
            }
        }
        !joins
    }

    // ---- into the pool -------------------------------------------------------------------------

    /// A line is at the controller: it finds a place, waits for one, or is logged and goes home.
    pub(super) fn place(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        #[cfg(test)]
        tests::PLACEMENTS.set(tests::PLACEMENTS.get() + 1);
        let coming = self.coming.get_mut(line).expect("only a line underway is placed");
        if coming.arrives > port.now() {
            coming.stage = Stage::Travelling;
            return;
        }
        coming.newer = false;
        let (data, arrives) = (coming.data, coming.stage == Stage::Travelling);
        let (owners, unlogged) = self.owners(line);
        if self.gathered.get(line).is_some() {
            self.replace(port, line, Gathered { data, owners });
        } else if unlogged == 0 {
            if arrives && owners.iter().any(Option::is_some) {
                port.emit(Event::AllLoggedBefore);
            }
            self.write_home(port, line);
        } else if self.log_without_asking(line) {
            self.read_old_line(port, line);
        } else if self.free_places() > 0 {
            self.gathered.insert(line, Gathered { data, owners });
            self.gathered(port, line);
        } else if self.config.wait_for_place && self.a_place_will_be_free() {
            self.coming.get_mut(line).expect("just seen").refused = self.decided;
            self.wait_for_place(port, line);
        } else {
            self.overflow(port, line);
        }
    }

    /// Who has stored which words of a line, and which of these words have no undo record.
    fn owners(&self, line: LineAddr) -> (Owners, WordMask) {
        let (mut owners, mut unlogged) = ([None; WORDS_PER_LINE], 0);
        for (t, thread) in self.threads.iter().enumerate() {
            let Some(at) = thread.writes.find(line) else { continue };
            let written = &thread.writes.lines[at];
            unlogged |= written.unlogged();
            let owner = u8::try_from(t).expect("an owner has 8 bits");
            words_in(written.words).for_each(|word| owners[word] = Some(owner));
        }
        (owners, unlogged)
    }

    /// Newer content takes the place of a gathered line, if older versions that drain from there find places.
    fn replace(&mut self, port: &mut Port<'_, L>, line: LineAddr, newer: Gathered) {
        if self.separate(line) {
            *self.gathered.get_mut(line).expect("the caller found it") = newer;
            self.gathered(port, line);
        } else {
            self.wait_for_place(port, line);
        }
    }

    /// Gives the draining versions that share the place of a gathered line places of their own, before
    /// newer content goes there. Returns whether there were places.
    fn separate(&mut self, line: LineAddr) -> bool {
        let free = self.free_places();
        if self.sharing_place_of(line).count() > free {
            return false;
        }
        self.sharing_place_of(line).for_each(|d| d.room = Room::Own);
        true
    }

    /// The line has its place, where the commit of its transactions will find it.
    fn gathered(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        self.count_places(port);
        let older_drains = self.draining.iter().any(|d| d.line == line);
        let shared = self.gathered.get(line).expect("it has its place").is_shared();
        port.emit(Event::Gathered { line, older_drains, shared });
        self.received(port, line);
    }

    /// A draining line is about to leave.
    fn wait_for_place(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        port.emit(Event::WaitsForPlace { line });
        self.stage(line, Stage::Waiting);
    }

    /// A place may be free: the lines that wait for one try again, oldest first. What would wait again, as nothing has changed
    /// for it, is not looked at.
    pub(super) fn place_waiting(&mut self, port: &mut Port<'_, L>) {
        let (mut i, mut refuses) = (0, self.refuses());
        while let Some(&line) = self.coming.lines.get(i) {
            let decided = self.decided;
            let coming = &mut self.coming.values[i];
            if coming.stage == Stage::Waiting {
                if refuses && coming.refused == decided && coming.arrives <= port.now() {
                    coming.newer = false;
                    port.emit(Event::WaitsForPlace { line });
                } else {
                    self.place(port, line);
                    refuses = self.refuses();
                }
            }
            i += usize::from(self.coming.lines.get(i) == Some(&line));
        }
    }

    /// Returns true if a line that needs a place of its own has to wait for one.
    fn refuses(&self) -> bool {
        self.free_places() == 0 && self.a_place_will_be_free()
    }

    /// Returns true if a line drains from a place of its own.
    fn a_place_will_be_free(&self) -> bool {
        self.draining.iter().any(|d| d.room == Room::Own)
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

    // ---- places --------------------------------------------------------------------------------

    fn free_places(&self) -> usize {
        let own = self.draining.iter().filter(|d| d.room == Room::Own).count();
        let used = self.gathered.lines.len() + own;
        self.places.checked_sub(used).expect("the pool holds at most so many lines")
    }

    /// The number of places in use may have changed.
    pub(super) fn count_places(&mut self, port: &mut Port<'_, L>) {
        let used = (self.places - self.free_places()) as u64;
        let (before, since) = std::mem::replace(&mut self.in_use, (used, port.now()));
        port.emit(Event::PlacesInUse { before, cycles: port.now() - since, used });
    }
}

#[cfg(test)]
mod tests {
    //! Bug class: lines that wait for a place and are looked at again and again to no avail, so that what a run costs the
    //! host grows with the square of the lines that wait.

    use std::cell::Cell;

    use graven_machine::program::Op;
    use graven_machine::script;

    use crate::{lad, testing};

    thread_local! {
        /// Number of searches for a place.
        pub(super) static PLACEMENTS: Cell<u64> = const { Cell::new(0) };
    }

    /// Runs eight threads with ten transactions each, of `lines` lines: some drain while others
    /// come. Returns the number of searches for a place, per line.
    fn placements_per_line(lines: u64) -> f64 {
        let store = |line| (4096 + line * 64, line + 1);
        let transaction = |number: u64| {
            let stores: Vec<_> = (number * lines..(number + 1) * lines).map(store).collect();
            script::transaction(&stores)
        };
        let thread = |first: u64| (10 * first..10 * first + 10).flat_map(transaction).collect();
        let mut config = testing::machine("silo");
        config.set("controller.adr_entries", "64").expect("a valid setting");
        PLACEMENTS.set(0);
        let threads: Vec<Vec<Op>> = (0..8).map(thread).collect();
        let threads: Vec<&[Op]> = threads.iter().map(Vec::as_slice).collect();
        let simulation = script::simulation(&config, &lad::INFO, &threads);
        simulation.expect("lad takes it").run().expect("it ends");
        PLACEMENTS.get() as f64 / (80 * lines) as f64
    }

    #[test]
    fn lines_that_wait_are_not_looked_at_whenever_a_place_is_free() {
        let placements = placements_per_line(40);
        assert!(placements < 3.0, "a place was looked for {placements} times for a line");
    }
}
