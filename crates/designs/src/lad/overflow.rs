//! Undo logging, when lines find no place in the pool.

use super::cover::Cover;
use super::pool::{Gathered, Room, Stage};
use super::undo_log::Undo;
use super::{About, Lad, Mutant, OverflowLog, Phase};
use graven_base::memory::{LineAddr, LineData};
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

impl Lad {
    /// Whether a transaction with words in the line has all its lines logged.
    pub(super) fn log_without_asking(&self, line: LineAddr) -> bool {
        self.threads.iter().any(|t| t.logs_all && t.writes.find(line).is_some())
    }

    pub(super) fn log(&mut self, m: &mut Machine, line: LineAddr) {
        self.stage(line, Stage::Reading);
        m.read(line, About::Old.line(line), 0);
    }

    pub(super) fn overflow(&mut self, m: &mut Machine, line: LineAddr) {
        m.count().log_overflows += 1;
        m.count().adr_overflows += 1;
        m.cover(Cover::Overflow as usize);
        if self.threads.iter().any(|t| t.phase == Phase::Committing) {
            m.cover(Cover::OverflowWhileCommitting as usize);
        }
        m.note(|| format!("line {} finds no place and is logged", line.addr()));
        if self.mutants.has(Mutant::OverflowNotLogged) {
            return self.write_home(m, line);
        }
        if self.config.overflow_log == OverflowLog::Transaction {
            for t in 0..self.threads.len() {
                let thread = &mut self.threads[t];
                // What is committing has all its words in the pool or logged, and must stay there.
                let stays = thread.phase == Phase::Committing
                    && !self.mutants.has(Mutant::CommittingPlacesGivenUp);
                if !stays && thread.writes.find(line).is_some() {
                    thread.logs_all = true;
                    self.give_up_places(m, t);
                }
            }
        }
        self.log(m, line);
    }

    /// The gathered lines of one transaction alone leave the pool and are logged.
    pub(super) fn give_up_places(&mut self, m: &mut Machine, t: usize) {
        let mut i = 0;
        while i < self.gathered.lines.len() {
            let (line, Gathered { data, owners }) =
                (self.gathered.lines[i], self.gathered.values[i]);
            let shared = owners.iter().flatten().any(|&owner| usize::from(owner) != t)
                && !self.mutants.has(Mutant::SharedPlacesGivenUp);
            let mine = owners.iter().flatten().any(|&owner| usize::from(owner) == t);
            if shared || !mine {
                i += 1;
                continue;
            }
            m.cover(Cover::PlacesGivenUp as usize);
            m.note(|| format!("line {} gives up its place to be logged", line.addr()));
            self.gathered.remove(line);
            // What still drains from its place keeps it: the youngest version, the last to go.
            let mut sharing = self.sharing_place_of(line);
            if let Some(youngest) = sharing.next_back() {
                youngest.room = Room::Own;
            }
            sharing.for_each(|d| d.room = Room::Younger);
            if self.coming.get(line).is_none() {
                // Not the newest content: what was stored since is still in the caches.
                self.underway(line, &data, m.now(), 1 << t);
                self.log(m, line);
            }
        }
        self.count_places(m);
    }

    /// The old line was read: each transaction with unlogged words in it gets an undo record. No write
    /// has carried such a word home, so PM, or what is on its way there, has its committed value.
    pub(super) fn write_records(&mut self, m: &mut Machine, line: LineAddr, old: &LineData) {
        let (mut logged, mut awaited) = (0, 0);
        for t in 0..self.threads.len() {
            let Some(at) = self.threads[t].writes.find(line) else { continue };
            let written = &mut self.threads[t].writes.lines[at];
            let words = written.words & !written.logged;
            if words == 0 {
                continue;
            }
            written.logged |= words;
            logged += 1;
            if logged == 1 || !self.mutants.has(Mutant::OneTransactionLogged) {
                let tx = self.threads[t].tx;
                self.log.append(m, &Undo { thread: t, tx, home: line, words, old: *old });
                m.count().log_entries += 1;
                m.note(|| {
                    format!("words {words:#010b} of line {} are logged for thread {t}", line.addr())
                });
                awaited += 1;
            }
        }
        if logged > 1 {
            m.cover(Cover::SharedLineLogged as usize);
        }
        if self.mutants.has(Mutant::RecordsNotAwaited) {
            awaited = 0;
        }
        self.stage(line, Stage::Logging(awaited));
        self.close_records(m);
        self.refuse_if_stuck(m);
        if awaited == 0 {
            // Some mutants come here; the words have records that are awaited otherwise.
            self.place(m, line);
        }
    }

    /// Closes the records of all threads of which no line is being read to be logged.
    fn close_records(&mut self, m: &mut Machine) {
        for t in 0..self.threads.len() {
            let writes = &self.threads[t].writes;
            let unlogged =
                |line| writes.find(line).is_some_and(|at| writes.lines[at].is_unlogged());
            let read = |at: usize| self.coming.values[at].stage == Stage::Reading;
            let mut coming = self.coming.lines.iter().enumerate();
            if !coming.any(|(at, &line)| read(at) && unlogged(line)) {
                self.log.close(m, t);
            }
        }
    }

    /// Ends the run if no transaction can commit because the log is full.
    pub(super) fn refuse_if_stuck(&self, m: &mut Machine) {
        let waits_for = |t: usize, line| {
            let coming = self.coming.get(line).is_some_and(|c| c.threads >> t & 1 != 0);
            self.threads[t].phase == Phase::Preparing && coming
        };
        if self.log.is_stuck(&waits_for) {
            m.fail(
                "the open transactions hold all log blocks (lalea.fle_entries, lalea.fh_entries) and need more"
                    .into(),
            );
        }
    }

    /// A write of the log is durable.
    pub(super) fn log_written(&mut self, m: &mut Machine, number: u64) {
        let mut logged = std::mem::take(&mut self.logged);
        self.log.on_durable(m, number, &mut logged);
        self.refuse_if_stuck(m);
        if !self.mutants.has(Mutant::RecordsNotAwaited) {
            logged.iter().for_each(|&line| self.record_durable(m, line));
        }
        logged.clear();
        self.logged = logged;
    }

    fn record_durable(&mut self, m: &mut Machine, line: LineAddr) {
        let coming = self.coming.get_mut(line).expect("it waits for its records");
        let Stage::Logging(records) = &mut coming.stage else {
            unreachable!("records are durable while their line waits for them")
        };
        *records -= 1;
        if *records == 0 {
            self.place(m, line);
        }
    }

    /// All words of the line that are uncommitted have undo records.
    pub(super) fn write_home(&mut self, m: &mut Machine, line: LineAddr) {
        self.stage(line, Stage::Writing);
        let data = self.coming.get(line).expect("the caller has it").data;
        let mut token = About::Home.line(line);
        m.note(|| format!("line {} goes home", line.addr()));
        if self.mutants.has(Mutant::HomeNotAwaited) {
            token = 0;
            self.received(m, line);
        }
        m.write(Write { token, ..Write::line(WriteClass::Data, line, data) }, 0);
    }

    /// The line is durable at home.
    pub(super) fn is_home(&mut self, m: &mut Machine, line: LineAddr) {
        let newer = self.coming.get(line).is_some_and(|c| c.newer);
        if newer && !self.mutants.has(Mutant::NewerForgotten) {
            self.place(m, line);
        } else {
            self.received(m, line);
        }
    }
}
