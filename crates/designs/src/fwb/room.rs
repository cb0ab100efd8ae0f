//! A log that is full (§II-C, §IV-A): who waits, and who waits in vain.

use graven_base::ids::ThreadId;
use graven_base::time::Cycle;
use graven_machine::design::Stall;

use super::WriteBack;
use super::event::Event;
use super::protocol::{Fwb, Port};

/// Cycles for which threads may wait for room in the log while no thread does anything that FWB
/// sees.
const STUCK_CYCLES: Cycle = 20_000_000;

impl Fwb {
    /// Places that may be written: those behind the durable head that the buffer's records do not need.
    pub fn free_places(&self) -> u64 {
        if self.goes_round() {
            return self.end.log().places();
        }
        let needs_none = !self.rules.buffered_records_have_room();
        self.end.free(if needs_none { 0 } else { self.buffer.places() })
    }

    /// Places of the log that are taken. Where slots are used again in their turn, a record takes the place of the oldest.
    pub fn places_of_log_taken(&self) -> u64 {
        let taken = self.end.taken();
        if self.goes_round() { taken.min(self.end.log().places()) } else { taken }
    }

    /// Returns true if slots are used again in their turn, wherever the head is.
    fn goes_round(&self) -> bool {
        !self.rules.log_waits_for_head() || self.write_back == WriteBack::None
    }

    /// The thread waits until the head moves, which scans or ends of transactions bring about, or records in the buffer turn out to
    /// need less than was kept for them.
    pub fn wait_for_space(&mut self, port: &mut Port<'_>, thread: ThreadId) -> Stall {
        let (free, is_first) = (self.free_places(), self.waiting_for_space.is_empty());
        port.emit(Event::WaitsForSpace { thread, free, is_first });
        self.waiting_for_space.push(thread);
        self.give_up_if_stuck(port);
        self.make_room(port);
        Stall::Retry
    }

    /// Makes the head move as soon as can be.
    pub fn make_room(&mut self, port: &mut Port<'_>) {
        match self.write_back {
            WriteBack::Scan => self.scanner.hasten(port),
            WriteBack::Clwb => self.truncate_behind_clwbs(port),
            WriteBack::None => {}
        }
    }

    /// Those who wait for room look again.
    pub fn release_waiting_for_space(&mut self, port: &mut Port<'_>) {
        for thread in self.waiting_for_space.drain(..) {
            port.release(thread);
        }
    }

    /// First place of the oldest transaction that is not durably committed.
    pub fn oldest_unfinished(&self) -> Option<u64> {
        let running = self.running.iter().flatten().copied();
        let ended = self.ended.iter().map(|e| e.first_place);
        running
            .filter(|_| self.rules.head_waits_for_running())
            .chain(ended.filter(|_| self.rules.head_waits_for_ending()))
            .min()
    }

    /// Ends the run if no truncation can ever make room.
    pub fn give_up_if_stuck(&self, port: &mut Port<'_>) {
        if !self.buffer.is_empty() {
            return;
        }
        let (capacity, head) = (self.end.log().capacity(), self.end.head());
        let owns_oldest = |&&thread: &&ThreadId| self.running[thread as usize] == Some(head);
        if let Some(thread) = self.waiting_for_space.iter().find(owns_oldest) {
            port.fail(format!(
                "the log of {capacity} is full, and its oldest record belongs to the running transaction of \
                 thread {thread}, which needs more: it does not fit beside the others; raise fwb.log_bytes"
            ));
        } else if port.now() > self.last_seen + STUCK_CYCLES {
            port.fail(format!(
                "the log of {capacity} is full, and for {STUCK_CYCLES} cycles no transaction has gone on and no data has come home, \
                 so that nothing can be truncated; raise fwb.log_bytes"
            ));
        }
    }
}
