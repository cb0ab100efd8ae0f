//! First-ready, first-come-first-served with two queues, of which one is served at a time (NVMain's FRFCFS-WQF).
//!
//! Until the write queue is as full as its high watermark only reads are issued; from there down to the low watermark only
//! writes are, and no write is accepted. Where the write queue does not survive a power failure, writes are durable
//! only when they have left it: then they also go while no read is waiting, for what waits for them would wait for ever.
//! So do those that are left at the end of a run.

use graven_base::time::{Cycle, NEVER};

use super::drain::Drain;
use super::{Choice, Policy, View};
use crate::controller::adversary::Adversary;

/// The policy's state.
#[derive(Debug)]
pub struct WriteDrains {
    drain: Drain,
    /// The run has ended: what is queued goes whenever it can.
    ends: bool,
}

impl WriteDrains {
    /// With these watermarks.
    pub fn new(drain: Drain) -> WriteDrains {
        WriteDrains { drain, ends: false }
    }

    fn writes_may_go(&self, view: &View<'_>) -> bool {
        self.drain.is_active() || (view.reads.is_empty() && (self.ends || !view.adr))
    }
}

impl Policy for WriteDrains {
    fn choose(&mut self, view: &mut View<'_>, adversary: &mut Option<Adversary>) -> Option<Choice> {
        self.drain.update(view.writes.len());
        if self.writes_may_go(view) {
            view.first_ready_write(adversary).map(Choice::write)
        } else {
            view.first_ready_read().map(Choice::read)
        }
    }

    fn next_at(&self, view: &View<'_>) -> Cycle {
        if !self.writes_may_go(view) {
            view.next_read_at()
        } else if view.writes.is_empty() {
            NEVER
        } else {
            view.next_write_at()
        }
    }

    fn drains(&self) -> u64 {
        self.drain.begun()
    }

    fn accepts_writes(&self) -> bool {
        !self.drain.is_active()
    }

    fn issued(&mut self, writes: usize) {
        self.drain.update(writes);
    }

    fn end(&mut self) {
        self.ends = true;
    }
}
