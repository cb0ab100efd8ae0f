//! Undo logging, when lines find no place in the pool.

use super::OverflowLog;
use super::event::Event;
use super::pool::{Gathered, Room, Stage};
use super::protocol::{Lad, OldLine, Phase, Port, Write};
use super::undo_log::{Undo, UndoLog};
use graven_base::memory::{LineAddr, LineData};
use graven_machine::request::{self, WriteClass};

impl<L: UndoLog> Lad<L> {
    // ---- which lines are logged ----------------------------------------------------------------

    /// A line finds no place: it is logged, and with `overflow_log = "transaction"` whatever its transactions store.
    pub(super) fn overflow(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        let while_committing = self.threads.iter().any(|t| t.phase == Phase::Committing);
        port.emit(Event::Overflows { line, while_committing });
        if !self.rules.overflow_is_logged() {
            return self.write_home(port, line);
        }
        if self.config.overflow_log == OverflowLog::Transaction {
            self.log_transactions_of(port, line);
        }
        self.read_old_line(port, line);
    }

    /// From now on, all lines of the transactions with words in this one are logged.
    fn log_transactions_of(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        for t in 0..self.threads.len() {
            let thread = &mut self.threads[t];
            // What is committing has all its words in the pool or logged, and must stay there.
            let stays = thread.phase == Phase::Committing && self.rules.committing_places_stay();
            if !stays && thread.writes.find(line).is_some() {
                thread.logs_all = true;
                self.decided += 1;
                self.give_up_places(port, t);
            }
        }
    }

    /// Returns true if a transaction with words in the line has all its lines logged.
    pub(super) fn log_without_asking(&self, line: LineAddr) -> bool {
        self.threads.iter().any(|t| t.logs_all && t.writes.find(line).is_some())
    }

    /// The gathered lines of one transaction alone leave the pool and are logged.
    fn give_up_places(&mut self, port: &mut Port<'_, L>, t: usize) {
        let mut i = 0;
        while i < self.gathered.lines.len() {
            let (line, Gathered { data, owners }) =
                (self.gathered.lines[i], self.gathered.values[i]);
            let shared = owners.iter().flatten().any(|&owner| usize::from(owner) != t)
                && self.rules.shared_places_stay();
            let mine = owners.iter().flatten().any(|&owner| usize::from(owner) == t);
            if shared || !mine {
                i += 1;
                continue;
            }
            self.give_up_place(port, line);
            if self.coming.get(line).is_none() {
                // Not the newest content: what was stored since is still in the caches.
                self.underway(line, &data, port.now(), 1 << t);
                self.read_old_line(port, line);
            }
        }
        self.count_places(port);
    }

    /// A gathered line leaves its place. What still drains from there keeps it: the youngest version, the last to go.
    fn give_up_place(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        port.emit(Event::PlaceGivenUp { line });
        self.gathered.remove(line);
        let mut sharing = self.sharing_place_of(line);
        if let Some(youngest) = sharing.next_back() {
            youngest.room = Room::Own;
        }
        sharing.for_each(|d| d.room = Room::Younger);
    }

    // ---- records -------------------------------------------------------------------------------

    /// A line is to be logged: the controller reads from PM what it was before.
    pub(super) fn read_old_line(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        self.stage(line, Stage::Reading);
        port.read(line, OldLine, 0);
    }

    /// The old line was read: each transaction with unlogged words in it gets an undo record. No write
    /// has carried such a word home, so PM, or what is on its way there, has its committed value.
    pub(super) fn write_records(&mut self, port: &mut Port<'_, L>, line: LineAddr, old: &LineData) {
        let (mut logged, mut awaited) = (0, 0);
        for thread in 0..self.threads.len() {
            let words = self.threads[thread].writes.take_unlogged(line);
            if words == 0 {
                continue;
            }
            logged += 1;
            if logged == 1 || self.rules.all_transactions_are_logged() {
                let tx = self.threads[thread].tx;
                self.log.append(port, &Undo { thread, tx, home: line, words, old: *old });
                port.emit(Event::Logged { line, words, thread });
                awaited += 1;
            }
        }
        if logged > 1 {
            port.emit(Event::SharedLineLogged);
        }
        if !self.rules.records_are_awaited() {
            awaited = 0;
        }
        self.stage(line, Stage::Logging(awaited));
        self.close_records(port);
        self.refuse_if_stuck(port);
        if awaited == 0 {
            // Some mutants come here; the words have records that are awaited otherwise.
            self.place(port, line);
        }
    }

    /// Closes the records of all threads of which no line is being read to be logged.
    fn close_records(&mut self, port: &mut Port<'_, L>) {
        for t in 0..self.threads.len() {
            let writes = &self.threads[t].writes;
            let unlogged =
                |line| writes.find(line).is_some_and(|at| writes.lines[at].unlogged() != 0);
            let read = |at: usize| self.coming.values[at].stage == Stage::Reading;
            let mut coming = self.coming.lines.iter().enumerate();
            if !coming.any(|(at, &line)| read(at) && unlogged(line)) {
                self.log.close(port, t);
            }
        }
    }

    /// Ends the run if no transaction can commit because the log is full.
    pub(super) fn refuse_if_stuck(&self, port: &mut Port<'_, L>) {
        let waits_for = |t: usize, line| {
            let coming = self.coming.get(line).is_some_and(|c| c.threads >> t & 1 != 0);
            self.threads[t].phase == Phase::Preparing && coming
        };
        if self.log.is_stuck(waits_for) {
            port.fail(
                "the open transactions hold all log blocks (lalea.fle_entries, lalea.fh_entries) and need more"
                    .into(),
            );
        }
    }

    /// A write of the log is durable.
    pub(super) fn log_written(&mut self, port: &mut Port<'_, L>, write: L::Write) {
        let mut logged = std::mem::take(&mut self.logged);
        self.log.on_durable(port, write, &mut logged);
        self.refuse_if_stuck(port);
        if self.rules.records_are_awaited() {
            logged.iter().for_each(|&line| self.record_durable(port, line));
        }
        logged.clear();
        self.logged = logged;
    }

    /// One of the records that a line waits for is durable.
    fn record_durable(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        let coming = self.coming.get_mut(line).expect("it waits for its records");
        let Stage::Logging(records) = &mut coming.stage else {
            unreachable!("records are durable while their line waits for them")
        };
        *records -= 1;
        if *records == 0 {
            self.place(port, line);
        }
    }

    // ---- home ----------------------------------------------------------------------------------

    /// All words of the line that are uncommitted have undo records: it goes home, and the commit waits until it is
    /// durable there.
    pub(super) fn write_home(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        self.stage(line, Stage::Writing);
        let data = self.coming.get(line).expect("the caller has it").data;
        port.emit(Event::SentHome { line });
        let awaited = self.rules.home_is_awaited();
        if !awaited {
            self.received(port, line);
        }
        let write = request::Write::line(WriteClass::Data, line, data);
        port.write_maybe_reported(write, awaited.then_some(Write::Home(line)), 0);
    }

    /// The line is durable at home: if newer content has joined it meanwhile, that has yet to find its place.
    pub(super) fn is_home(&mut self, port: &mut Port<'_, L>, line: LineAddr) {
        let newer = self.coming.get(line).is_some_and(|c| c.newer);
        if newer && self.rules.newer_content_is_kept() {
            self.place(port, line);
        } else {
            self.received(port, line);
        }
    }
}
