//! First-ready, first-come-first-served, with a write queue that is drained in batches.
//!
//! Among the requests whose bank is free, one that finds its row open goes first, then the oldest. Reads go before
//! writes, except while the write queue drains: from the high watermark down to the low one. With no read waiting,
//! writes go whenever they can.

use graven_base::time::Cycle;

use super::{Choice, Policy, View};
use crate::controller::adversary::Adversary;

/// The policy's state.
#[derive(Debug)]
pub struct FrFcfs {
    /// Occupancy of the write queue at which draining begins.
    drain_high: usize,
    /// Occupancy at which it ends, below the high one.
    drain_low: usize,
    draining: bool,
    drains: u64,
}

impl FrFcfs {
    /// With these watermarks.
    pub fn new(drain_high: usize, drain_low: usize) -> FrFcfs {
        FrFcfs { drain_high, drain_low, draining: false, drains: 0 }
    }

    /// How often draining began.
    pub fn drains(&self) -> u64 {
        self.drains
    }

    fn update_drain(&mut self, queued: usize) {
        if queued >= self.drain_high {
            self.drains += u64::from(!self.draining);
            self.draining = true;
        } else if queued <= self.drain_low {
            self.draining = false;
        }
    }
}

impl Policy for FrFcfs {
    fn choose(&mut self, view: &View<'_>, adversary: &mut Option<Adversary>) -> Option<Choice> {
        self.update_drain(view.writes.len());
        let read = |view: &View<'_>| view.first_ready_read().map(Choice::Read);
        if self.draining {
            let write = view.first_ready_write(adversary).map(Choice::Write);
            return write.or_else(|| read(view));
        }
        if view.reads.is_empty() {
            return view.first_ready_write(adversary).map(Choice::Write);
        }
        read(view)
    }

    fn next_at(&self, view: &View<'_>) -> Cycle {
        let read = view.next_read_at();
        if !(view.reads.is_empty() || self.draining) || view.writes.is_empty() {
            return read;
        }
        read.min(view.next_write_at())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draining_goes_from_the_high_watermark_to_the_low_one() {
        let mut policy = FrFcfs::new(4, 2);
        let mut seen = Vec::new();
        for queued in [0, 3, 4, 3, 2, 3, 4, 5, 1, 3] {
            policy.update_drain(queued);
            seen.push(policy.draining);
        }
        assert_eq!(seen, [false, false, true, true, false, false, true, true, false, false]);
        assert_eq!(policy.drains(), 2);
    }
}
