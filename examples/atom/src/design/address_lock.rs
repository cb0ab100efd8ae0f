//! Lines of open transactions on their way home. A line whose address is locked is held back in the controller until the records
//! that have its old content count; no other line waits for them.

use graven::ids::ThreadId;
use graven::memory::{LineAddr, LineData};
use graven::request::{self, WriteClass};
use graven::time::Cycle;

use super::event::Event;
use super::log_manager::RecordId;
use super::protocol::{Atom, Port, Write};

/// The number of a line's way home.
pub(super) type FlightId = u64;

/// A line that the controller holds back.
#[derive(Clone, Debug)]
struct Held {
    content: LineData,
    /// When it reaches the controller.
    arrives: Cycle,
    /// Records that lock its address, and were there when it left the caches.
    locks: Vec<RecordId>,
}

/// A line of an open transaction on its way home.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) id: FlightId,
    pub(super) line: LineAddr,
    /// True if it was evicted, not written back by its transaction.
    pub(super) evicted: bool,
    /// Threads whose commit waits for it.
    pub(super) waiting: Vec<usize>,
    held: Option<Held>,
}

impl Atom {
    /// A line is on its way home.
    pub(super) fn departs(&mut self, line: LineAddr, evicted: bool) -> FlightId {
        self.next_flight += 1;
        let id = self.next_flight;
        self.flights.push_back(Flight { id, line, evicted, waiting: Vec::new(), held: None });
        id
    }

    /// A line leaves the caches whose address is locked.
    pub(super) fn hold(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        content: &LineData,
        arrives: Cycle,
        locks: Vec<RecordId>,
        evicted: bool,
    ) {
        self.departs(line, evicted);
        let flight = self.flights.back_mut().expect("it was just put there");
        flight.held = Some(Held { content: *content, arrives, locks });
        let held = self.flights.iter().filter(|flight| flight.held.is_some()).count();
        port.emit(Event::HeldBack { line, held });
    }

    /// The newest content of a line that is held back.
    pub(super) fn held_content(&self, line: LineAddr) -> Option<LineData> {
        let of_line = self.flights.iter().rev().filter(|flight| flight.line == line);
        of_line.filter_map(|flight| flight.held.as_ref()).map(|held| held.content).next()
    }

    /// The records that the newest content of a line waits for, if it is held back. One that follows does not overtake it.
    pub(super) fn locks_of_held(&self, line: LineAddr) -> &[RecordId] {
        let of_line = self.flights.iter().rev().filter(|flight| flight.line == line);
        of_line
            .filter_map(|flight| flight.held.as_ref())
            .map(|held| &held.locks[..])
            .next()
            .unwrap_or(&[])
    }

    /// A record counts, or its log is gone: its addresses are unlocked, and so are those of older ones of its context.
    pub(super) fn unlock(&mut self, port: &mut Port<'_>, id: RecordId) {
        let goes = |lock: &RecordId| lock.context == id.context && lock.index <= id.index;
        for flight in &mut self.flights {
            let Some(held) = &mut flight.held else { continue };
            held.locks.retain(|lock| !goes(lock));
            if !held.locks.is_empty() {
                continue;
            }
            let delay = held.arrives.saturating_sub(port.now());
            let write = request::Write::line(WriteClass::Data, flight.line, held.content);
            flight.held = None;
            port.emit(Event::LetGo { line: flight.line });
            port.write_reported(write, Write::Home(flight.id), delay);
        }
        // Whoever has had a clwb refused tries again.
        for (thread, _) in std::mem::take(&mut self.write_backs) {
            port.release(thread as ThreadId);
        }
    }

    /// A line is durable at home.
    pub(super) fn arrived(&mut self, port: &mut Port<'_>, id: FlightId) {
        let at = self.flights.iter().position(|flight| flight.id == id);
        let flight =
            self.flights.remove(at.expect("it was on its way")).expect("it was just found");
        self.line_is_durable(port, &flight.waiting);
    }
}
