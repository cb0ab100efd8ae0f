//! A log that is full (§II-C, §IV-A): who waits, and who waits in vain.

use super::{Cover, Fwb, Mutant, STUCK_CYCLES, WriteBack};
use graven_base::ids::ThreadId;
use graven_machine::design::Stall;
use graven_machine::machine::Machine;

impl Fwb {
    /// Places that may be written: those behind the durable head that the buffer's records do not need.
    pub(super) fn free_places(&self) -> u64 {
        if self.has(Mutant::LogGoesRound) || self.write_back == WriteBack::None {
            return self.end.log().places();
        }
        let needs_none = self.has(Mutant::BufferNeedsNoRoom);
        self.end.free(if needs_none { 0 } else { self.buffer.len() })
    }

    /// The thread waits until the head moves, which scans or ends of transactions bring about, or records in the buffer turn out to
    /// need less than was kept for them.
    pub(super) fn wait_for_space(&mut self, m: &mut Machine, thread: ThreadId) -> Stall {
        if self.waiting_for_space.is_empty() {
            m.count().log_overflows += 1;
            m.cover(Cover::LogFull as usize);
        }
        m.note(|| {
            format!("thread {thread} waits for room: {} places are free", self.free_places())
        });
        self.waiting_for_space.push(thread);
        self.give_up_if_stuck(m);
        self.make_room(m);
        Stall::Retry
    }

    /// Makes the head move as soon as can be.
    pub(super) fn make_room(&mut self, m: &mut Machine) {
        match self.write_back {
            WriteBack::Scan => self.scanner.hasten(m),
            WriteBack::Clwb => self.truncate_behind_clwbs(m),
            WriteBack::None => {}
        }
    }

    pub(super) fn release_waiting_for_space(&mut self, m: &mut Machine) {
        for thread in self.waiting_for_space.drain(..) {
            m.release(thread);
        }
    }

    /// First place of the oldest transaction that is not durably committed.
    pub(super) fn oldest_unfinished(&self) -> Option<u64> {
        let counts = |mutant| !self.mutants.has(mutant);
        let running = self.running.iter().flatten().copied();
        let ended = self.ended.iter().map(|e| e.first_place);
        running
            .filter(|_| counts(Mutant::HeadPassesRunning))
            .chain(ended.filter(|_| counts(Mutant::HeadPassesEnding)))
            .min()
    }

    /// Ends the run if no truncation can ever make room.
    pub(super) fn give_up_if_stuck(&self, m: &mut Machine) {
        if !self.buffer.is_empty() {
            return;
        }
        let (capacity, head) = (self.end.log().capacity(), self.end.head());
        let owns_oldest = |&&thread: &&ThreadId| self.running[thread as usize] == Some(head);
        if let Some(thread) = self.waiting_for_space.iter().find(owns_oldest) {
            m.fail(format!(
                "the log of {capacity} is full, and its oldest record belongs to the running transaction of \
                 thread {thread}, which needs more: it does not fit beside the others; raise fwb.log_bytes"
            ));
        } else if m.now() > self.last_seen + STUCK_CYCLES {
            m.fail(format!(
                "the log of {capacity} is full, and for {STUCK_CYCLES} cycles no transaction has gone on and no data has come home, \
                 so that nothing can be truncated; raise fwb.log_bytes"
            ));
        }
    }
}
