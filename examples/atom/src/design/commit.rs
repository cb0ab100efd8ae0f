//! The end of a transaction: its lines go home, then its log is truncated.

use graven::ids::ThreadId;
use graven::memory::LineAddr;

use super::Mutant;
use super::event::Event;
use super::protocol::{Atom, Port, Timer, Write};

impl Atom {
    /// All stores of a transaction are performed: the core writes its lines back.
    pub(super) fn end(&mut self, port: &mut Port<'_>, t: usize) {
        let asked = port.now() + port.bypass_cycles();
        (self.threads[t].ending, self.threads[t].asked) = (true, asked);
        port.emit(Event::Ends { thread: t });
        self.close_of(port, t, asked);
        for at in 0..self.threads[t].lines.0.lines.len() {
            let line = super::lines::line_at(&self.threads[t].lines, at);
            let written = port.is_dirty(line);
            if written {
                self.write_back(port, t, line);
            }
            self.wait_for(port, t, line, written);
        }
        if self.mutants.has(Mutant::BucketsFreedEarly) {
            self.free_buckets(t);
        }
        if self.mutants.has(Mutant::TruncatedEarly) {
            self.clear_log(port, t);
        }
        if self.threads[t].awaited == 0 {
            self.lines_are_durable(port, t);
        }
    }

    /// A dirty line goes home, and is held back in the controller if its address is locked: by this transaction, or by another that has
    /// words in it.
    fn write_back(&mut self, port: &mut Port<'_>, t: usize, line: LineAddr) {
        let mut locks = self.locks_of(port, line);
        if self.mutants.has(Mutant::NeighboursLockIgnored) {
            locks.retain(|lock| self.log.owner(lock.record) == Some(t));
        }
        if self.mutants.has(Mutant::WriteBackNotLocked) {
            locks.clear();
        }
        let (flight, gate) = self.departs(port, line, &locks, false);
        let dirty = port.write_back_behind(line, gate, Some(Write::Home(flight)));
        assert!(dirty, "the caller saw a dirty line");
    }

    /// The commit waits for the newest content of a line that is on its way, if there is any.
    fn wait_for(&mut self, port: &mut Port<'_>, t: usize, line: LineAddr, written: bool) {
        let mut of_line = self.flights.iter_mut().filter(|flight| flight.line == line);
        let flight = if self.mutants.has(Mutant::OldestContentAwaited) {
            of_line.next()
        } else {
            of_line.next_back()
        };
        let Some(flight) = flight else { return };
        if !written {
            port.emit(Event::CleanLineOnItsWay { evicted: flight.evicted });
            if self.mutants.has(Mutant::EarlierContentNotAwaited) {
                return;
            }
        }
        if !self.mutants.has(Mutant::LinesNotAwaited) {
            flight.waiting.push(t);
            self.threads[t].awaited += 1;
        }
    }

    /// A line is durable at home for which the commits of some threads wait.
    pub(super) fn line_is_durable(&mut self, port: &mut Port<'_>, waiting: &[usize]) {
        for &t in waiting {
            self.threads[t].awaited -= 1;
            if self.threads[t].awaited == 0 {
                self.lines_are_durable(port, t);
            }
        }
    }

    /// The controller answers the core, which orders the log to be truncated.
    fn lines_are_durable(&mut self, port: &mut Port<'_>, t: usize) {
        port.emit(Event::LinesDurable { thread: t });
        let now = port.now();
        let answered = now.max(self.threads[t].asked) + port.bypass_cycles();
        port.send_to_controller(answered - now, Timer::Truncation { thread: t });
    }

    /// The commit point.
    pub(super) fn truncate(&mut self, port: &mut Port<'_>, t: usize) {
        let records = self.clear_log(port, t);
        port.emit(Event::Truncated { thread: t, records });
        self.unlock_all(port, t);
        self.leave_context(port, t);
        port.send_to_core(0, Timer::Acknowledgement { thread: t });
    }

    /// The core hears of the commit, and clears the log bits.
    pub(super) fn acknowledge(&mut self, port: &mut Port<'_>, t: usize) {
        let thread = &mut self.threads[t];
        thread.ending = false;
        if !self.mutants.has(Mutant::LogBitsKept) {
            thread.lines.0.clear();
        }
        port.release_here(t as ThreadId);
    }
}
