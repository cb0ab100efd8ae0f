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
/// any two actions, and mostly none has changed since.
#[derive(Debug)]
pub(super) struct ReadyTimes {
    at: Vec<Cycle>,
    /// Unless a time has changed since.
    earliest: Option<Earliest>,
}

impl ReadyTimes {
    /// All at the beginning.
    pub fn new(threads: usize) -> ReadyTimes {
        ReadyTimes { at: vec![0; threads], earliest: None }
    }

    #[inline]
    pub fn set(&mut self, thread: usize, at: Cycle) {
        self.at[thread] = at;
        self.earliest = None;
    }

    #[inline]
    pub fn earliest(&mut self) -> Earliest {
        if let Some(earliest) = self.earliest {
            return earliest;
        }
        let mut found = Earliest { thread: 0, at: NEVER, next_at: NEVER };
        for (thread, &at) in self.at.iter().enumerate() {
            if at < found.at {
                found = Earliest { thread, at, next_at: found.at };
            } else if at < found.next_at {
                found.next_at = at;
            }
        }
        self.earliest = Some(found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_is_that_of_the_times_set_last(
            changes in prop::collection::vec((0..5usize, prop_oneof![0..9u64, Just(NEVER)], any::<bool>()), 0..40),
        ) {
            let (mut times, mut plain) = (ReadyTimes::new(5), [0; 5]);
            for (thread, at, asked) in changes {
                times.set(thread, at);
                plain[thread] = at;
                if asked {
                    let at = *plain.iter().min().expect("five");
                    let thread = if at == NEVER { 0 } else { plain.iter().position(|&t| t == at).expect("it is there") };
                    let mut others = plain.to_vec();
                    others.remove(thread);
                    let next_at = *others.iter().min().expect("four");
                    prop_assert_eq!(times.earliest(), Earliest { thread, at, next_at });
                }
            }
        }
    }
}
