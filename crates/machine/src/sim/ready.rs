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
/// A tournament: threads are the leaves of a tree, of which each node has the earliest of the [`GROUP`] below. Most times that
/// are set change only who is first or second, and are compared with nobody else.
#[derive(Debug)]
pub(super) struct ReadyTimes {
    /// By thread.
    groups: Vec<Group>,
    /// The levels above, each with the earliest of each group below; the last one has a single group. None if there are
    /// no more threads than in a group.
    above: Vec<Vec<Group>>,
    /// The earliest of all.
    first: Key,
    /// The earliest of the others.
    second: Key,
    earliest: Earliest,
}

/// A time and a thread in one number, so that of equal times the smaller thread is the earlier one.
type Key = u64;

/// Threads, or groups of the level below, that are compared with each other.
const GROUP: usize = 8;

type Group = [Key; GROUP];

/// Bits of a thread's number in a key.
const THREAD_BITS: u32 = 12;

/// Of a thread that cannot go on. It is above all times that a simulation reaches.
const KEY_NEVER: Key = NEVER >> THREAD_BITS << THREAD_BITS;

/// Of a place that no thread has.
const NOBODY: Key = Key::MAX;

impl ReadyTimes {
    /// All at the beginning.
    pub fn new(threads: usize) -> ReadyTimes {
        assert!(
            (1..1 << THREAD_BITS).contains(&threads),
            "a thread's number has its bits in a key"
        );
        let keys: Vec<Key> = (0..threads as Key).collect();
        let groups = groups_of(&keys);
        let mut above: Vec<Vec<Group>> = Vec::new();
        let mut below = groups.clone();
        while below.len() > 1 {
            let firsts: Vec<Key> = below.iter().map(first_of).collect();
            below = groups_of(&firsts);
            above.push(below.clone());
        }
        let earliest = Earliest { thread: 0, at: 0, next_at: 0 };
        let mut times = ReadyTimes { groups, above, first: 0, second: NOBODY, earliest };
        times.compare();
        times
    }

    #[inline]
    pub fn set(&mut self, thread: usize, at: Cycle) {
        let key = if at == NEVER { KEY_NEVER } else { at << THREAD_BITS } | thread as Key;
        assert!(at == NEVER || at < KEY_NEVER >> THREAD_BITS, "a time has its bits in a key");
        let old = std::mem::replace(&mut self.groups[thread / GROUP][thread % GROUP], key);
        if old == key {
            return;
        }
        if !self.above.is_empty() {
            self.pass_up(thread);
        }
        if old == self.first {
            if key > self.second {
                return self.compare();
            }
            self.first = key;
        } else if key < self.first {
            self.second = std::mem::replace(&mut self.first, key);
        } else if key < self.second {
            self.second = key;
        } else if old == self.second {
            return self.compare();
        } else {
            return;
        }
        self.earliest = self.winner();
    }

    /// The groups above a thread's hear of its time.
    fn pass_up(&mut self, thread: usize) {
        let mut place = thread / GROUP;
        let mut first = first_of(&self.groups[place]);
        for level in &mut self.above {
            let group = &mut level[place / GROUP];
            group[place % GROUP] = first;
            first = first_of(group);
            place /= GROUP;
        }
    }

    /// Finds out who is first and who is second. The second is one of those that are in a group with the first, on some level.
    fn compare(&mut self) {
        let top = self.above.last().map_or(&self.groups[0], |level| &level[0]);
        let (first, mut second) = first_two_of(top);
        if !self.above.is_empty() {
            let mut place = first as usize % (1 << THREAD_BITS);
            for level in std::iter::once(&self.groups).chain(&self.above) {
                place /= GROUP;
                second = second.min(first_two_of(&level[place]).1);
            }
        }
        (self.first, self.second) = (first, second);
        self.earliest = self.winner();
    }

    /// The earliest, by what the first two keys say.
    #[inline]
    fn winner(&self) -> Earliest {
        if self.first >= KEY_NEVER {
            return Earliest { thread: 0, at: NEVER, next_at: NEVER };
        }
        let next_at = if self.second >= KEY_NEVER { NEVER } else { self.second >> THREAD_BITS };
        let thread = self.first as usize % (1 << THREAD_BITS);
        Earliest { thread, at: self.first >> THREAD_BITS, next_at }
    }

    #[inline]
    pub fn earliest(&self) -> Earliest {
        self.earliest
    }
}

/// Keys in groups, the last one filled up.
fn groups_of(keys: &[Key]) -> Vec<Group> {
    let group =
        |keys: &[Key]| std::array::from_fn(|place| keys.get(place).copied().unwrap_or(NOBODY));
    keys.chunks(GROUP).map(group).collect()
}

/// The smallest key of a group.
#[inline]
fn first_of(group: &Group) -> Key {
    group.iter().fold(NOBODY, |first, &key| first.min(key))
}

/// The two smallest keys of a group.
#[inline]
fn first_two_of(group: &Group) -> (Key, Key) {
    group.iter().fold((NOBODY, NOBODY), |(first, second), &key| {
        (first.min(key), second.min(first.max(key)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_is_that_of_the_times_set_last(
            threads in prop_oneof![1..10usize, 60..70usize, 500..530usize],
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
