//! The end of a transaction: its lines go home, then its log is removed.

use graven_base::ids::ThreadId;
use graven_base::memory::LineAddr;
use graven_base::thread_set::{ThreadSet, threads_in};
use graven_machine::request::WriteOrder;

use super::event::Event;
use super::protocol::{OptUndo, Port, Timer, Write};

/// A line of an open transaction on its way home.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    line: LineAddr,
    /// True if it was evicted, not written back.
    evicted: bool,
    /// Threads whose commit waits for it.
    waiting: ThreadSet,
}

impl OptUndo {
    /// A line of an open transaction is on its way home.
    pub(super) fn departs(&mut self, line: LineAddr, evicted: bool) -> Write {
        self.flights.push(Flight { line, evicted, waiting: 0 });
        Write::Home(line)
    }

    /// All stores of a transaction are performed: the core writes its lines back.
    pub(super) fn end(&mut self, port: &mut Port<'_>, t: usize) {
        self.threads[t].asked = port.now() + port.bypass_cycles();
        self.write_header(port, t, port.bypass_cycles());
        port.emit(Event::Ends { thread: t });
        for at in 0..self.threads[t].lines.lines.len() {
            let line = self.threads[t].lines.lines[at].line;
            let written = port.is_dirty(line);
            if written {
                self.write_back(port, t, line);
            }
            self.wait_for(port, t, line, written);
        }
        if !self.rules.log_removed_when_durable() {
            self.move_register(port, t);
        }
        if self.threads[t].awaited == 0 {
            self.lines_are_durable(port, t);
        }
    }

    /// *Log before data*: a dirty line waits for the headers of all entries that open transactions have of it.
    fn write_back(&mut self, port: &mut Port<'_>, t: usize, line: LineAddr) {
        let mut after = self.headers_of(port, line);
        if !self.rules.write_back_follows_neighbours() {
            after = self.threads[t].lines.find(line).expect("it was stored to").header;
        }
        if !self.rules.write_back_follows_headers() {
            after = WriteOrder::NONE;
        }
        let home = self.departs(line, false);
        let dirty = port.write_back(line, after, Some(home));
        assert!(dirty, "the caller saw a dirty line");
    }

    /// The commit waits for the newest content of a line that is on its way, if there is any.
    fn wait_for(&mut self, port: &mut Port<'_>, t: usize, line: LineAddr, written: bool) {
        let mut of_line = self.flights.iter_mut().filter(|f| f.line == line);
        let flight = if self.rules.newest_content_is_awaited() {
            of_line.next_back()
        } else {
            of_line.next()
        };
        let Some(flight) = flight else { return };
        if !written {
            let evicted = flight.evicted;
            port.emit(Event::CleanLineOnItsWay { evicted });
            if evicted && !self.rules.evicted_lines_are_awaited() {
                return;
            }
        }
        if self.rules.lines_are_awaited() {
            flight.waiting |= 1 << t;
            self.threads[t].awaited += 1;
        }
    }

    /// A line is durable at home; the contents of one line become so in their order.
    pub(super) fn arrived(&mut self, port: &mut Port<'_>, line: LineAddr) {
        let oldest = self.flights.iter().position(|f| f.line == line);
        let flight = self.flights.remove(oldest.expect("it was on its way"));
        for t in threads_in(flight.waiting) {
            self.threads[t].awaited -= 1;
            if self.threads[t].awaited == 0 {
                self.lines_are_durable(port, t);
            }
        }
    }

    /// The controller answers the core, which orders the log to be removed.
    fn lines_are_durable(&mut self, port: &mut Port<'_>, t: usize) {
        port.emit(Event::LinesDurable { thread: t });
        let answered = port.now().max(self.threads[t].asked) + port.bypass_cycles();
        port.set_timer(answered + port.bypass_cycles(), Timer::Removal { thread: t });
    }

    /// The commit point.
    pub(super) fn remove_log(&mut self, port: &mut Port<'_>, t: usize) {
        self.move_register(port, t);
        let thread = &mut self.threads[t];
        let records = std::mem::take(&mut thread.records_of_tx);
        port.emit(Event::LogRemoved { thread: t, records });
        thread.lines.clear();
        port.send_to_core(0, Timer::Acknowledgement { thread: t });
    }

    /// Notes in the thread's register that its current transaction and all before have committed.
    fn move_register(&mut self, port: &mut Port<'_>, t: usize) {
        port.durable_state_changed();
        self.threads[t].uncommitted = self.threads[t].number + 1;
    }

    /// The core hears of the commit.
    pub(super) fn acknowledge(&mut self, port: &mut Port<'_>, t: usize) {
        self.threads[t].number = self.threads[t].uncommitted;
        port.release_here(t as ThreadId);
    }
}
