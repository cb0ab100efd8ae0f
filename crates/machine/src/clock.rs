//! The queue of what happens later.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use graven_base::time::{Cycle, NEVER};

/// What happens at a time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A PM or DRAM channel may be able to issue a request.
    Channel(u32),
    /// A read's data has arrived (slot of the request).
    ReadDone(u32),
    /// A write has reached the media or the on-PM buffer (slot of the request).
    WriteDone(u32),
    /// A line of a channel's on-PM buffer has been programmed: (channel, buffer slot).
    SpillDone(u32, u32),
    /// A read request arrives at its controller (slot).
    ReadArrive(u32),
    /// A write request arrives at its controller (slot).
    WriteArrive(u32),
    /// A thread's oldest queued store may be performed.
    StoreDrain(u32),
    /// A line comes out of a buffer of the design's (slot of the fill).
    BufferedFill(u32),
    /// A thread that the design held goes on.
    Release(u32),
    /// A timer of the design.
    Timer(u64),
}

/// An event in the queue. It is ordered by its time and the order in which it was set, in one number.
#[derive(Clone, Copy, Debug)]
struct Scheduled {
    key: u128,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// Events ordered by time, then by the order in which they were set.
#[derive(Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<Scheduled>>,
    sequence: u64,
}

impl EventQueue {
    /// Sets an event.
    #[inline]
    pub fn push(&mut self, at: Cycle, event: Event) {
        self.sequence += 1;
        let key = u128::from(at) << 64 | u128::from(self.sequence);
        self.heap.push(Reverse(Scheduled { key, event }));
    }

    /// Time of the next event, or [`NEVER`].
    #[inline]
    pub fn next_at(&self) -> Cycle {
        self.heap.peek().map_or(NEVER, |Reverse(next)| (next.key >> 64) as Cycle)
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Cycle, Event)> {
        self.heap.pop().map(|Reverse(next)| ((next.key >> 64) as Cycle, next.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_time_keep_their_order() {
        let mut queue = EventQueue::default();
        queue.push(5, Event::Timer(2));
        queue.push(5, Event::Channel(0));
        queue.push(3, Event::Timer(1));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(3, Event::Timer(1)), (5, Event::Timer(2)), (5, Event::Channel(0))]);
        assert_eq!(queue.next_at(), NEVER);
    }
}
