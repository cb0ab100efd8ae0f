//! Lines of open transactions on their way home. A line whose address is locked waits in the controller behind the gates of the
//! records that have its old content; no other line waits for them.

use graven::design::Gate;
use graven::memory::LineAddr;

use super::event::Event;
use super::log_manager::Lock;
use super::protocol::{Atom, Port};

/// The number of a line's way home.
pub(super) type FlightId = u64;

/// A line of an open transaction on its way home.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) id: FlightId,
    pub(super) line: LineAddr,
    /// True if it was evicted, not written back by its transaction.
    pub(super) evicted: bool,
    /// Threads whose commit waits for it.
    pub(super) waiting: Vec<usize>,
    /// The gate that it waits behind.
    gate: Gate,
}

impl Atom {
    /// A line is on its way home. Returns its number, and the gate that it waits behind.
    pub(super) fn departs(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        locks: &[Lock],
        evicted: bool,
    ) -> (FlightId, Gate) {
        self.next_flight += 1;
        let (id, gate) = (self.next_flight, port.join_gates(locks.iter().map(|lock| lock.counts)));
        self.flights.push_back(Flight { id, line, evicted, waiting: Vec::new(), gate });
        if !port.is_open(gate) {
            let held = self.flights.iter().filter(|flight| !port.is_open(flight.gate)).count();
            port.emit(Event::HeldBack { line, held });
        }
        (id, gate)
    }

    /// A line is durable at home.
    pub(super) fn arrived(&mut self, port: &mut Port<'_>, id: FlightId) {
        let at = self.flights.iter().position(|flight| flight.id == id);
        let flight =
            self.flights.remove(at.expect("it was on its way")).expect("it was just found");
        self.line_is_durable(port, &flight.waiting);
    }
}
