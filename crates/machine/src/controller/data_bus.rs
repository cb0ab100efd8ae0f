//! The data bus of a channel, which moves one line at a time, and what it leaves to the scheduler.

use std::collections::VecDeque;

use graven_base::time::Cycle;

use crate::config::DataBusHeld;

/// Direction in which a line moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// From the device.
    Read,
    /// To it.
    Write,
}

/// The time for which a line has the bus.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    start: Cycle,
    end: Cycle,
    moves: Moves,
}

/// When the next request may be issued, and when its line may move.
#[derive(Debug)]
pub struct DataBus {
    held: DataBusHeld,
    /// Cycles from a read's transfer to a write's at least.
    turnaround: Cycle,
    /// No request is issued before.
    free_at: Cycle,
    /// The transfers that are not over, in their order; none overlaps another.
    transfers: VecDeque<Transfer>,
    /// When a write may have the bus, after all reads so far.
    write_at: Cycle,
}

impl DataBus {
    /// A bus that is free.
    pub fn new(held: DataBusHeld, turnaround: Cycle) -> DataBus {
        DataBus { held, turnaround, free_at: 0, transfers: VecDeque::new(), write_at: 0 }
    }

    /// The first cycle in which a request may be issued.
    #[inline]
    pub fn free_at(&self) -> Cycle {
        self.free_at
    }

    /// When the last transfer so far is over.
    pub fn idle_at(&self) -> Cycle {
        self.transfers.iter().map(|of| of.end).fold(self.free_at, Cycle::max)
    }

    /// A request is issued to a bank that will be ready at `ready` to move what takes `burst` cycles. Returns how many
    /// cycles it has to wait there, its row open, until the bus is free for that long.
    #[inline]
    pub fn issue(&mut self, now: Cycle, ready: Cycle, burst: Cycle, moves: Moves) -> Cycle {
        match self.held {
            DataBusHeld::AtIssue => {
                let wait = match moves {
                    Moves::Read => {
                        self.write_at = now + burst + self.turnaround;
                        0
                    }
                    Moves::Write => self.write_at.saturating_sub(now),
                };
                self.free_at = now + wait + burst;
                wait
            }
            DataBusHeld::AtTransfer => {
                self.free_at = now + 1;
                self.reserve(now, ready, burst, moves) - ready
            }
        }
    }

    /// A request is issued to the on-PM buffer, which takes lines as they come. Returns how many cycles it waits.
    #[inline]
    pub fn issue_to_buffer(&mut self, now: Cycle, burst: Cycle, moves: Moves) -> Cycle {
        let wait = self.issue(now, now, burst, moves);
        self.free_at = self.free_at.max(now + wait + 1);
        wait
    }

    fn reserve(&mut self, now: Cycle, ready: Cycle, burst: Cycle, moves: Moves) -> Cycle {
        while self.transfers.front().is_some_and(|of| of.end + self.turnaround <= now) {
            self.transfers.pop_front();
        }
        let (at, place) = self.place(ready, burst, moves);
        self.transfers.insert(place, Transfer { start: at, end: at + burst, moves });
        at
    }

    /// The first time from `ready` on at which no other transfer overlaps, and no write follows a read too soon; and the place among
    /// the transfers.
    fn place(&self, ready: Cycle, burst: Cycle, moves: Moves) -> (Cycle, usize) {
        let gap = |first, second| match (first, second) {
            (Moves::Read, Moves::Write) => self.turnaround,
            _ => 0,
        };
        let mut at = ready;
        let mut place = 0;
        for of in &self.transfers {
            if at + burst + gap(moves, of.moves) <= of.start {
                break;
            }
            at = at.max(of.end + gap(of.moves, moves));
            place += 1;
        }
        (at, place)
    }
}

#[cfg(test)]
mod tests {
    use Moves::{Read, Write};

    use super::*;

    #[test]
    fn held_at_issue_the_bus_takes_a_request_per_burst() {
        let mut bus = DataBus::new(DataBusHeld::AtIssue, 0);
        assert_eq!((bus.issue(10, 60, 4, Read), bus.free_at()), (0, 14));
        assert_eq!((bus.issue(14, 14, 4, Read), bus.free_at()), (0, 18));
    }

    #[test]
    fn held_at_transfer_a_line_takes_the_first_gap_that_is_long_enough() {
        let mut bus = DataBus::new(DataBusHeld::AtTransfer, 0);
        assert_eq!((bus.issue(10, 60, 4, Read), bus.free_at()), (0, 11));
        assert_eq!(bus.issue(11, 11, 4, Read), 0);
        assert_eq!(bus.issue(12, 12, 4, Read), 3);
        // Three cycles before 60 are too few, four are enough, and so are three for a shorter transfer.
        assert_eq!(bus.issue(13, 57, 4, Read), 7);
        assert_eq!(bus.issue(14, 56, 4, Read), 0);
        assert_eq!(bus.issue(15, 53, 3, Read), 0);
        assert_eq!(bus.issue(16, 53, 4, Read), 15);
    }

    #[test]
    fn transfers_that_are_over_leave_no_trace() {
        let mut bus = DataBus::new(DataBusHeld::AtTransfer, 0);
        for now in (0..1000).step_by(4) {
            assert_eq!(bus.issue(now, now, 4, Read), 0);
            assert_eq!(bus.transfers.len(), 1);
        }
    }

    #[test]
    fn the_on_pm_buffer_takes_a_line_per_burst() {
        let mut bus = DataBus::new(DataBusHeld::AtTransfer, 0);
        let mut starts = Vec::new();
        for _ in 0..3 {
            let now = bus.free_at();
            starts.push(now + bus.issue_to_buffer(now, 4, Write));
        }
        assert_eq!(starts, [0, 4, 8]);
    }

    /// Bug class: a write's data and those of a read before it are on the bus at once.
    #[test]
    fn a_write_follows_a_read_after_the_turnaround_and_a_read_a_write_at_once() {
        let mut bus = DataBus::new(DataBusHeld::AtTransfer, 6);
        assert_eq!(bus.issue(10, 20, 4, Read), 0);
        // 20 to 24, then six cycles.
        assert_eq!(bus.issue(11, 22, 4, Write), 8);
        // Between the two a read has place, if the write keeps its distance.
        assert_eq!(bus.issue(12, 24, 4, Read), 10);
        assert_eq!(bus.issue(13, 13, 4, Read), 0);
        assert_eq!(bus.issue(14, 10, 4, Write), 34);
        let mut bus = DataBus::new(DataBusHeld::AtIssue, 6);
        assert_eq!((bus.issue(10, 10, 4, Read), bus.free_at()), (0, 14));
        assert_eq!((bus.issue(14, 14, 4, Write), bus.free_at()), (6, 24));
        assert_eq!((bus.issue(24, 24, 4, Read), bus.free_at()), (0, 28));
    }
}
