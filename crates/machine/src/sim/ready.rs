//! When the threads go on.

use graven_base::time::{Cycle, NEVER};

/// The thread whose instruction issues first, when that is, and when another thread's does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Earliest {
    /// The thread with the smallest number, of several.
    pub thread: usize,
    pub at: Cycle,
    pub next_at: Cycle,
}

/// Per thread, when its next instruction issues; [`NEVER`] while it cannot. They are asked for the earliest between
/// any two actions.
///
/// A tournament: threads are the leaves of a binary tree, of which each node has the earlier one of the two below.
#[derive(Debug)]
pub(super) struct ReadyTimes {
    /// The root is at 1, the nodes below `i` at `2 i` and `2 i + 1`, the leaves at the end.
    nodes: Vec<Key>,
    earliest: Earliest,
}

/// A time and a thread in one number, so that of equal times the smaller thread is the earlier one.
type Key = u64;

/// Bits of a thread's number in a key.
const THREAD_BITS: u32 = 12;

/// Of a thread that cannot go on. It is above all times that a simulation reaches.
const KEY_NEVER: Key = NEVER >> THREAD_BITS << THREAD_BITS;

impl ReadyTimes {
    /// All at the beginning.
    pub fn new(threads: usize) -> ReadyTimes {
        assert!(
            (1..1 << THREAD_BITS).contains(&threads),
            "a thread's number has its bits in a key"
        );
        let leaves = threads.next_power_of_two();
        let mut times = ReadyTimes {
            nodes: vec![KEY_NEVER; 2 * leaves],
            earliest: Earliest { thread: 0, at: 0, next_at: 0 },
        };
        (0..threads).for_each(|thread| times.set(thread, 0));
        times
    }

    #[inline]
    pub fn set(&mut self, thread: usize, at: Cycle) {
        let mut node = self.nodes.len() / 2 + thread;
        let mut key = if at == NEVER { KEY_NEVER } else { at << THREAD_BITS } | thread as Key;
        assert!(at == NEVER || at < KEY_NEVER >> THREAD_BITS, "a time has its bits in a key");
        if self.nodes[node] == key {
            return;
        }
        self.nodes[node] = key;
        while node > 1 {
            key = key.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = key;
        }
        self.earliest = self.winner();
    }

    /// The earliest, by what the nodes say.
    #[inline]
    fn winner(&self) -> Earliest {
        let first = self.nodes[1];
        if first >= KEY_NEVER {
            return Earliest { thread: 0, at: NEVER, next_at: NEVER };
        }
        // The second is one of those that lost against the first.
        let thread = first as usize % (1 << THREAD_BITS);
        let (mut node, mut second) = (self.nodes.len() / 2 + thread, KEY_NEVER);
        while node > 1 {
            second = second.min(self.nodes[node ^ 1]);
            node /= 2;
        }
        let next_at = if second >= KEY_NEVER { NEVER } else { second >> THREAD_BITS };
        Earliest { thread, at: first >> THREAD_BITS, next_at }
    }

    #[inline]
    pub fn earliest(&self) -> Earliest {
        self.earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_is_that_of_the_times_set_last(
            threads in 1..10usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![0..9u64, Just(NEVER)]), 0..40),
        ) {
            let (mut times, mut plain) = (ReadyTimes::new(threads), vec![0; threads]);
            for (thread, at) in changes {
                let thread = thread.index(threads);
                times.set(thread, at);
                plain[thread] = at;
                let at = *plain.iter().min().expect("there are some");
                let thread = if at == NEVER { 0 } else { plain.iter().position(|&t| t == at).expect("it is there") };
                let mut others = plain.clone();
                others.remove(thread);
                let next_at = others.into_iter().min().unwrap_or(NEVER);
                prop_assert_eq!(times.earliest(), Earliest { thread, at, next_at });
            }
        }
    }
}
