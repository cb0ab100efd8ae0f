//! The queue of what happens later.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use graven_base::time::{Cycle, NEVER};

/// Events at a time of their own.
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
    /// Resumes a thread that the design held.
    Release(u32),
    /// A core hears that the last write that a thread's fence waits for is durable.
    Fence(u32),
    /// A message that opens a gate arrives at the controllers.
    Gate(u64),
    /// A timer of the design.
    Timer(u64),
}

/// Words of the bit set of occupied buckets: as many as its summary has bits.
const WORDS: usize = u16::BITS as usize;

/// Cycles for which there is a bucket each: from the last event taken on.
const BUCKETS: usize = WORDS * 64;

/// Stands for no event.
const NONE: u32 = u32::MAX;

/// An event, and the one behind it in its bucket.
#[derive(Clone, Copy, Debug)]
struct Node {
    event: Event,
    next: u32,
}

/// The events of one cycle in the order in which they were set, by their nodes.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    first: u32,
    last: u32,
}

/// An event that lies behind the buckets: its time, and how many were set before it.
#[derive(Clone, Copy, Debug)]
struct Later {
    key: (Cycle, u64),
    event: Event,
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Later {}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Later {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// Events ordered by time, then by the order in which they were set.
///
/// Events of the next `BUCKETS` cycles lie in a bucket for each cycle, later ones in a heap.
/// Whenever time advances, those that come within reach move from the heap into their bucket:
/// before anything else can be set for that cycle, and so before it.
#[derive(Debug)]
pub struct EventQueue {
    buckets: Box<[Bucket; BUCKETS]>,
    /// Buckets with events, by their cycles modulo `BUCKETS`.
    occupied: [u64; WORDS],
    /// Words of `occupied` that are not zero.
    summary: u16,
    nodes: Vec<Node>,
    /// The first node that is free; each leads to the next.
    free: u32,
    /// The first cycle that has a bucket: that of the last event taken.
    start: Cycle,
    later: BinaryHeap<Reverse<Later>>,
    /// When the first of `later` happens.
    later_at: Cycle,
    set_later: u64,
    next_at: Cycle,
}

impl Default for EventQueue {
    fn default() -> EventQueue {
        EventQueue {
            buckets: Box::new([Bucket { first: NONE, last: NONE }; BUCKETS]),
            occupied: [0; WORDS],
            summary: 0,
            nodes: Vec::new(),
            free: NONE,
            start: 0,
            later: BinaryHeap::new(),
            later_at: NEVER,
            set_later: 0,
            next_at: NEVER,
        }
    }
}

impl EventQueue {
    /// Sets an event.
    ///
    /// # Panics
    /// It would happen before the last one that was taken.
    #[inline]
    pub fn push(&mut self, at: Cycle, event: Event) {
        assert!(at >= self.start, "time does not go back");
        self.next_at = self.next_at.min(at);
        if at - self.start < BUCKETS as Cycle {
            self.put(at, event);
        } else {
            self.put_later(at, event);
        }
    }

    /// Time of the next event, or [`NEVER`].
    #[inline]
    pub fn next_at(&self) -> Cycle {
        self.next_at
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Cycle, Event)> {
        let at = self.next_at;
        if at == NEVER {
            return None;
        }
        self.start = at;
        if self.later_at - at < BUCKETS as Cycle {
            self.reach();
        }
        let number = at as usize % BUCKETS;
        let bucket = &mut self.buckets[number];
        let taken = bucket.first;
        let Node { event, next } = self.nodes[taken as usize];
        self.nodes[taken as usize].next = std::mem::replace(&mut self.free, taken);
        bucket.first = next;
        if next == NONE {
            bucket.last = NONE;
            let word = &mut self.occupied[number / 64];
            *word &= !(1 << (number % 64));
            let later_in_word = *word >> (number % 64);
            self.next_at = if later_in_word != 0 {
                at + Cycle::from(later_in_word.trailing_zeros())
            } else {
                if *word == 0 {
                    self.summary &= !(1 << (number / 64));
                }
                self.first_behind(number)
            };
        }
        Some((at, event))
    }

    /// Puts an event last into the bucket of its cycle.
    #[inline]
    fn put(&mut self, at: Cycle, event: Event) {
        let node = Node { event, next: NONE };
        let at_node = match self.nodes.get_mut(self.free as usize) {
            Some(free) => {
                let next_free = free.next;
                *free = node;
                std::mem::replace(&mut self.free, next_free)
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        let number = at as usize % BUCKETS;
        let bucket = &mut self.buckets[number];
        match self.nodes.get_mut(bucket.last as usize) {
            Some(last) => last.next = at_node,
            None => {
                bucket.first = at_node;
                self.occupied[number / 64] |= 1 << (number % 64);
                self.summary |= 1 << (number / 64);
            }
        }
        bucket.last = at_node;
    }

    #[cold]
    fn put_later(&mut self, at: Cycle, event: Event) {
        self.set_later += 1;
        self.later.push(Reverse(Later { key: (at, self.set_later), event }));
        self.later_at = self.later_at.min(at);
    }

    /// Moves events that have come within reach into their buckets.
    #[cold]
    fn reach(&mut self) {
        while self.later_at - self.start < BUCKETS as Cycle {
            let Reverse(Later { key: (at, _), event }) =
                self.later.pop().expect("one has come within reach");
            self.put(at, event);
            self.later_at = self.later.peek().map_or(NEVER, |Reverse(next)| next.key.0);
        }
    }

    /// Time of the first event, of which none is left in the present's bucket, which has this number, and none in those behind
    /// it in its word.
    #[inline]
    fn first_behind(&self, number: usize) -> Cycle {
        let (word, bit) = (number / 64, number % 64);
        if self.summary == 0 {
            return self.later_at;
        }
        // The words behind this one, around to its own beginning.
        let words = self.summary.rotate_right(word as u32 + 1).trailing_zeros() as usize + 1;
        let first = self.occupied[(word + words) % WORDS].trailing_zeros() as usize;
        self.start + (words * 64 + first - bit) as Cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn it_gives_what_a_sorted_list_gives(
            steps in prop::collection::vec((prop_oneof![
                4 => 0..8u64,
                4 => 0..200u64,
                2 => 900..1200u64,
                2 => 0..5000u64,
                1 => 100_000..10_000_000u64,
            ], 0..3usize), 1..300),
        ) {
            let (mut queue, mut list, mut now) = (EventQueue::default(), Vec::new(), 0);
            let take = |queue: &mut EventQueue, list: &mut Vec<(Cycle, u64)>, now: &mut Cycle| {
                let first = list.iter().map(|&(at, _)| at).min();
                prop_assert_eq!(queue.next_at(), first.unwrap_or(NEVER));
                let expected = first.map(|at| {
                    *now = at;
                    let place = list.iter().position(|&(of, _)| of == at).expect("it is there");
                    let (at, number) = list.remove(place);
                    (at, Event::Timer(number))
                });
                prop_assert_eq!(queue.pop(), expected);
                Ok(())
            };
            for (number, (delay, takes)) in steps.into_iter().enumerate() {
                queue.push(now + delay, Event::Timer(number as u64));
                list.push((now + delay, number as u64));
                for _ in 0..takes {
                    take(&mut queue, &mut list, &mut now)?;
                }
            }
            while !list.is_empty() {
                take(&mut queue, &mut list, &mut now)?;
            }
            take(&mut queue, &mut list, &mut now)?;
        }
    }
}
