//! The data bus of a channel, which moves one line at a time, and what it leaves to the scheduler.

use std::collections::VecDeque;

use graven_base::time::Cycle;

use crate::config::DataBusHeld;

/// When the next request may be issued, and when its line may move.
#[derive(Debug)]
pub struct DataBus {
    held: DataBusHeld,
    /// No request is issued before.
    free_at: Cycle,
    /// Beginnings and ends of the transfers that are not over, in their order; none overlaps another.
    transfers: VecDeque<(Cycle, Cycle)>,
}

impl DataBus {
    /// A bus that is free.
    pub fn new(held: DataBusHeld) -> DataBus {
        DataBus { held, free_at: 0, transfers: VecDeque::new() }
    }

    /// The first cycle in which a request may be issued.
    #[inline]
    pub fn free_at(&self) -> Cycle {
        self.free_at
    }

    /// When the last transfer so far is over.
    pub fn idle_at(&self) -> Cycle {
        self.transfers.iter().map(|&(_, end)| end).fold(self.free_at, Cycle::max)
    }

    /// A request is issued to a bank that will be ready at `ready` to move what takes `burst` cycles. Returns how many
    /// cycles it has to wait there, its row open, until the bus is free for that long.
    #[inline]
    pub fn issue(&mut self, now: Cycle, ready: Cycle, burst: Cycle) -> Cycle {
        match self.held {
            DataBusHeld::AtIssue => {
                self.free_at = now + burst;
                0
            }
            DataBusHeld::AtTransfer => {
                self.free_at = now + 1;
                self.reserve(now, ready, burst) - ready
            }
        }
    }

    /// A request is issued to the on-PM buffer, which takes lines as they come. Returns how many cycles it waits.
    #[inline]
    pub fn issue_to_buffer(&mut self, now: Cycle, burst: Cycle) -> Cycle {
        let wait = self.issue(now, now, burst);
        self.free_at = self.free_at.max(now + wait + 1);
        wait
    }

    /// The first time from `ready` on at which no other transfer overlaps.
    fn reserve(&mut self, now: Cycle, ready: Cycle, burst: Cycle) -> Cycle {
        while self.transfers.front().is_some_and(|&(_, end)| end <= now) {
            self.transfers.pop_front();
        }
        let mut at = ready;
        let mut place = 0;
        for &(start, end) in &self.transfers {
            if at + burst <= start {
                break;
            }
            at = at.max(end);
            place += 1;
        }
        self.transfers.insert(place, (at, at + burst));
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_at_issue_the_bus_takes_a_request_per_burst() {
        let mut bus = DataBus::new(DataBusHeld::AtIssue);
        assert_eq!((bus.issue(10, 60, 4), bus.free_at()), (0, 14));
        assert_eq!((bus.issue(14, 14, 4), bus.free_at()), (0, 18));
    }

    #[test]
    fn held_at_transfer_a_line_takes_the_first_gap_that_is_long_enough() {
        let mut bus = DataBus::new(DataBusHeld::AtTransfer);
        assert_eq!((bus.issue(10, 60, 4), bus.free_at()), (0, 11));
        assert_eq!(bus.issue(11, 11, 4), 0);
        assert_eq!(bus.issue(12, 12, 4), 3);
        // Three cycles before 60 are too few, four are enough, and so are three for a shorter transfer.
        assert_eq!(bus.issue(13, 57, 4), 7);
        assert_eq!(bus.issue(14, 56, 4), 0);
        assert_eq!(bus.issue(15, 53, 3), 0);
        assert_eq!(bus.issue(16, 53, 4), 15);
    }

    #[test]
    fn transfers_that_are_over_leave_no_trace() {
        let mut bus = DataBus::new(DataBusHeld::AtTransfer);
        for now in (0..1000).step_by(4) {
            assert_eq!(bus.issue(now, now, 4), 0);
            assert_eq!(bus.transfers.len(), 1);
        }
    }

    #[test]
    fn the_on_pm_buffer_takes_a_line_per_burst() {
        let mut bus = DataBus::new(DataBusHeld::AtTransfer);
        let mut starts = Vec::new();
        for _ in 0..3 {
            let now = bus.free_at();
            starts.push(now + bus.issue_to_buffer(now, 4));
        }
        assert_eq!(starts, [0, 4, 8]);
    }
}
