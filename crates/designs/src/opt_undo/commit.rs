//! The end of a transaction: its lines go home, then its log is removed.

use super::cover::Cover;
use super::{Mutant, OptUndo};
use graven_base::ids::ThreadId;
use graven_base::memory::LineAddr;
use graven_base::thread_set::{ThreadSet, threads_in};
use graven_machine::machine::Machine;
use graven_machine::request::Token;

/// A line of an open transaction on its way home.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    line: LineAddr,
    /// It was evicted, not written back.
    evicted: bool,
    /// Threads whose commit waits for it.
    waiting: ThreadSet,
}

fn token_of(line: LineAddr) -> Token {
    line.0 + 1
}

/// The line that a durable write carried.
pub(super) fn line_of(token: Token) -> LineAddr {
    LineAddr(token - 1)
}

/// Messages of a commit, as timers: the rest of the token is the thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The order to remove the log reaches the controller.
    Removal,
    /// Its answer reaches the core.
    Acknowledgement,
}

impl Step {
    fn token(self, thread: usize) -> u64 {
        (thread as u64) << 1 | self as u64
    }

    pub(super) fn of(token: u64) -> (Step, usize) {
        let step = if token & 1 == 0 { Step::Removal } else { Step::Acknowledgement };
        (step, (token >> 1) as usize)
    }
}

impl OptUndo {
    /// A line of an open transaction is on its way home.
    pub(super) fn departs(&mut self, line: LineAddr, evicted: bool) -> Token {
        self.flights.push(Flight { line, evicted, waiting: 0 });
        token_of(line)
    }

    /// All stores of a transaction are performed: the core writes its lines back.
    pub(super) fn end(&mut self, m: &mut Machine, t: usize) {
        self.threads[t].asked = m.now() + m.bypass_cycles();
        self.write_header(m, t, m.bypass_cycles());
        m.note(|| format!("thread {t} writes its lines back"));
        for at in 0..self.threads[t].lines.lines.len() {
            let line = self.threads[t].lines.lines[at].line;
            let written = m.caches.is_dirty(line);
            if written {
                self.write_back(m, t, line);
            }
            self.wait_for(m, t, line, written);
        }
        if self.mutants.has(Mutant::LogRemovedEarly) {
            self.move_register(m, t);
        }
        if self.threads[t].awaited == 0 {
            self.lines_are_durable(m, t);
        }
    }

    fn write_back(&mut self, m: &mut Machine, t: usize, line: LineAddr) {
        let mut after = self.headers_of(m, line);
        if self.mutants.has(Mutant::NeighbourOvertaken) {
            after = self.threads[t].lines.find(line).expect("it was stored to").header;
        }
        if self.mutants.has(Mutant::WriteBackOvertakesHeader) {
            after = 0;
        }
        let token = self.departs(line, false);
        let dirty = m.write_back(line, |write| (write.token, write.after) = (token, after));
        debug_assert!(dirty, "the caller saw a dirty line");
    }

    /// The commit waits for the newest content of a line that is on its way, if there is any.
    fn wait_for(&mut self, m: &mut Machine, t: usize, line: LineAddr, written: bool) {
        let mut of_line = self.flights.iter_mut().filter(|f| f.line == line);
        let flight = if self.mutants.has(Mutant::OldestContentAwaited) {
            of_line.next()
        } else {
            of_line.next_back()
        };
        let Some(flight) = flight else { return };
        if !written {
            let evicted = flight.evicted;
            let cover =
                if evicted { Cover::EvictedLineAwaited } else { Cover::NeighboursContentAwaited };
            m.cover(cover as usize);
            if evicted && self.mutants.has(Mutant::EvictedLineNotAwaited) {
                return;
            }
        }
        if !self.mutants.has(Mutant::LinesNotAwaited) {
            flight.waiting |= 1 << t;
            self.threads[t].awaited += 1;
        }
    }

    /// A line is durable at home; the contents of one line become so in their order.
    pub(super) fn arrived(&mut self, m: &mut Machine, line: LineAddr) {
        let oldest = self.flights.iter().position(|f| f.line == line);
        let flight = self.flights.remove(oldest.expect("it was on its way"));
        for t in threads_in(flight.waiting) {
            self.threads[t].awaited -= 1;
            if self.threads[t].awaited == 0 {
                self.lines_are_durable(m, t);
            }
        }
    }

    /// The controller answers the core, which orders the log to be removed.
    fn lines_are_durable(&mut self, m: &mut Machine, t: usize) {
        let answered = m.now().max(self.threads[t].asked) + m.bypass_cycles();
        m.note(|| format!("all lines of thread {t} are durable"));
        m.set_timer(answered + m.bypass_cycles(), Step::Removal.token(t));
    }

    /// The commit point.
    pub(super) fn remove_log(&mut self, m: &mut Machine, t: usize) {
        self.move_register(m, t);
        m.note(|| format!("thread {t} commits: its log is removed"));
        let thread = &mut self.threads[t];
        m.count().log_records_truncated += std::mem::take(&mut thread.records_of_tx);
        thread.lines.clear();
        m.set_timer(m.now() + m.bypass_cycles(), Step::Acknowledgement.token(t));
    }

    /// Of the thread's transactions, the current one and all before have committed.
    fn move_register(&mut self, m: &mut Machine, t: usize) {
        m.durable_state_changed();
        self.threads[t].uncommitted = self.threads[t].number + 1;
    }

    /// The core hears of the commit.
    pub(super) fn acknowledge(&mut self, m: &mut Machine, t: usize) {
        self.threads[t].number = self.threads[t].uncommitted;
        m.release(t as ThreadId);
    }
}
