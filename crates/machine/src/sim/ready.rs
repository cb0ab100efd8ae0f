//! Times at which the threads proceed.

use graven_base::time::{Cycle, NEVER};

/// The thread whose instruction issues first, when that is, and up to when it stays the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Earliest {
    /// The thread with the smallest number, of several.
    pub thread: usize,
    pub at: Cycle,
    /// From this cycle on another thread's is the first: at the cycle of the next one's the thread with the smaller number.
    pub until: Cycle,
}

/// Per thread, when its next instruction issues; [`NEVER`] while it cannot. They are asked for the earliest between
/// any two actions.
///
/// Ring of the threads that can proceed, the earliest first. Most times that are set are the
/// earliest thread's, which goes to the end of the ring, or near it, as threads take turns; one
/// that cannot proceed leaves the ring.
#[derive(Debug)]
pub(super) struct ReadyTimes {
    /// Keys of the threads; [`KEY_NEVER`] for one that is not in the ring.
    keys: Box<[Key]>,
    /// Those from `head` on, `len` of them, are in order. Before the first there is always a place with a zero.
    ring: Box<[Key; PLACES]>,
    head: u8,
    len: u8,
    earliest: Earliest,
}

/// A time and a thread in one number, so that of equal times the smaller thread is the earlier one.
type Key = u64;

/// Bits of a thread's number in a key.
const THREAD_BITS: u32 = u8::BITS;

/// Places of the ring: as many as an index of it has values, so that the last is followed by the
/// first.
const PLACES: usize = 1 << u8::BITS;

/// Key of a thread that cannot proceed. It is above all keys of others.
const KEY_NEVER: Key = NEVER;

impl ReadyTimes {
    /// All at the beginning.
    pub fn new(threads: usize) -> ReadyTimes {
        assert!((1..PLACES).contains(&threads), "a thread's number has its bits in a key");
        let keys: Box<[Key]> = (0..threads as Key).collect();
        let mut ring = Box::new([0; PLACES]);
        ring[1..=threads].copy_from_slice(&keys);
        let earliest = Earliest { thread: 0, at: 0, until: 0 };
        let mut times = ReadyTimes { keys, ring, head: 1, len: threads as u8, earliest };
        times.earliest = times.first();
        times
    }

    #[inline]
    pub fn set(&mut self, thread: usize, at: Cycle) {
        let key = if at == NEVER { KEY_NEVER } else { key_of(thread, at) };
        let old = std::mem::replace(&mut self.keys[thread], key);
        if old == key {
            return;
        }
        if old != KEY_NEVER {
            self.remove(old);
        }
        if key != KEY_NEVER {
            self.insert(key);
        }
        self.earliest = self.first();
    }

    /// Sets another time for the earliest thread.
    #[inline]
    pub fn set_earliest(&mut self, at: Cycle) {
        let thread = self.earliest.thread;
        let key = key_of(thread, at);
        self.keys[thread] = key;
        self.remove_first();
        self.insert(key);
        self.earliest = self.first();
    }

    /// Takes a key out, which is mostly the first.
    #[inline]
    fn remove(&mut self, key: Key) {
        if self.ring[self.head as usize] != key {
            self.move_to_front(key);
        }
        self.remove_first();
    }

    #[inline]
    fn remove_first(&mut self) {
        self.ring[self.head as usize] = 0;
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
    }

    /// A key becomes the first of the ring.
    #[cold]
    fn move_to_front(&mut self, key: Key) {
        let mut at = self.head;
        while self.ring[at as usize] != key {
            at = at.wrapping_add(1);
        }
        while at != self.head {
            let before = at.wrapping_sub(1);
            self.ring[at as usize] = self.ring[before as usize];
            at = before;
        }
    }

    /// Puts one in, mostly as the last or nearly so.
    #[inline]
    fn insert(&mut self, key: Key) {
        let mut at = self.head.wrapping_add(self.len);
        loop {
            let before = self.ring[at.wrapping_sub(1) as usize];
            if before <= key {
                break;
            }
            self.ring[at as usize] = before;
            at = at.wrapping_sub(1);
        }
        self.ring[at as usize] = key;
        self.len += 1;
    }

    /// The earliest, by what the first two keys say.
    #[inline]
    fn first(&self) -> Earliest {
        if self.len == 0 {
            return Earliest { thread: 0, at: NEVER, until: NEVER };
        }
        let first = self.ring[self.head as usize];
        let until = if self.len == 1 {
            NEVER
        } else {
            let next = self.ring[self.head.wrapping_add(1) as usize];
            (next >> THREAD_BITS) + Cycle::from(thread_of(first) < thread_of(next))
        };
        Earliest { thread: thread_of(first), at: first >> THREAD_BITS, until }
    }

    #[inline]
    pub fn earliest(&self) -> Earliest {
        self.earliest
    }
}

/// Key of a thread that proceeds at a time.
#[inline]
fn key_of(thread: usize, at: Cycle) -> Key {
    assert!(at < NEVER >> THREAD_BITS, "a time has its bits in a key");
    at << THREAD_BITS | thread as Key
}

/// The thread that a key is of.
#[inline]
fn thread_of(key: Key) -> usize {
    key as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Finds the thread that proceeds first, by looking at all.
    fn first(times: &[Cycle]) -> usize {
        (0..times.len()).min_by_key(|&thread| (times[thread], thread)).expect("there are some")
    }

    /// Expected result for these times.
    fn expected(times: &[Cycle]) -> Earliest {
        let thread = first(times);
        let at = times[thread];
        if at == NEVER {
            return Earliest { thread: 0, at, until: NEVER };
        }
        let mut later = times.to_vec();
        later[thread] = NEVER;
        let until = match later[first(&later)] {
            NEVER => NEVER,
            next_at => (next_at..)
                .find(|&at| {
                    later[thread] = at;
                    first(&later) != thread
                })
                .expect("it does not stay the first for ever"),
        };
        Earliest { thread, at, until }
    }

    proptest! {
        #[test]
        fn the_earliest_is_that_of_the_times_set_last(
            threads in prop_oneof![1..10usize, 60..70usize, 250..PLACES],
            changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![0..9u64, Just(NEVER)]), 0..40),
        ) {
            let (mut times, mut plain) = (ReadyTimes::new(threads), vec![0; threads]);
            prop_assert_eq!(times.earliest(), expected(&plain));
            for (thread, at) in changes {
                let thread = thread.index(threads);
                times.set(thread, at);
                plain[thread] = at;
                prop_assert_eq!(times.earliest(), expected(&plain));
            }
        }

        #[test]
        fn threads_take_turns(
            threads in 1..20usize,
            steps in prop::collection::vec(prop_oneof![8 => 1..4u64, 1 => Just(NEVER), 1 => 100..200u64], 0..200),
        ) {
            let (mut times, mut plain) = (ReadyTimes::new(threads), vec![0; threads]);
            for step in steps {
                let Earliest { thread, at, .. } = times.earliest();
                prop_assert_eq!(times.earliest(), expected(&plain));
                // When all wait, the first goes on again.
                let next = if at == NEVER { 1000 } else { at.saturating_add(step) };
                if at == NEVER || next == NEVER {
                    times.set(thread, next);
                } else {
                    times.set_earliest(next);
                }
                plain[thread] = next;
            }
        }
    }
}
