//! Locks that threads acquire in orders that contradict each other.
//!
//! A transaction of the trace holds its locks to its end, longer than the program did. So the program's threads may have acquired
//! locks in a circle and got on, and those of the trace would wait for each other for ever. Locks of such a circle are one lock
//! in the trace: it keeps apart what each of them did, and what is left has an order.

use rustc_hash::FxHashMap;

/// The locks that are acquired while others are held.
#[derive(Debug, Default)]
pub(super) struct LockOrder {
    /// The one that is held, the one that is acquired, and the thread; none: several threads.
    edges: FxHashMap<(u64, u64), Option<usize>>,
}

impl LockOrder {
    /// A thread acquires a lock while it holds another.
    pub fn add(&mut self, held: u64, acquired: u64, thread: usize) {
        let of = self.edges.entry((held, acquired)).or_insert(Some(thread));
        if *of != Some(thread) {
            *of = None;
        }
    }

    /// For each lock that is in a circle of several threads, the lock that stands for all of it.
    pub fn circles(&self) -> FxHashMap<u64, u64> {
        let mut locks: Vec<u64> = self.edges.keys().flat_map(|&(a, b)| [a, b]).collect();
        locks.sort_unstable();
        locks.dedup();
        let index = |lock| locks.binary_search(&lock).expect("it is among them");
        let mut behind = vec![Vec::new(); locks.len()];
        let mut before = vec![Vec::new(); locks.len()];
        for &(held, acquired) in self.edges.keys() {
            behind[index(held)].push(index(acquired));
            before[index(acquired)].push(index(held));
        }
        // Kosaraju's algorithm: what each lock reaches, once forwards and once backwards.
        let mut circle = vec![None; locks.len()];
        let mut seen = vec![false; locks.len()];
        let mut left = Vec::new();
        for lock in 0..locks.len() {
            visit(lock, &behind, &mut seen, |lock| left.push(lock));
        }
        seen.fill(false);
        for &first in left.iter().rev() {
            visit(first, &before, &mut seen, |lock| circle[lock] = Some(first));
        }
        let mut threads: FxHashMap<usize, Option<usize>> = FxHashMap::default();
        for (&(held, acquired), &thread) in &self.edges {
            let Some(of) =
                circle[index(held)].filter(|_| circle[index(held)] == circle[index(acquired)])
            else {
                continue;
            };
            let known = threads.entry(of).or_insert(thread);
            if *known != thread {
                *known = None;
            }
        }
        let is_of_several = |circle: &usize| threads.get(circle) == Some(&None);
        let standing = |(at, circle): (usize, &Option<usize>)| {
            let circle = circle.filter(is_of_several)?;
            Some((locks[at], locks[circle]))
        };
        circle.iter().enumerate().filter_map(standing).collect()
    }
}

/// All that can be reached and was not seen, each when everything behind it is done.
fn visit(first: usize, next: &[Vec<usize>], seen: &mut [bool], mut leave: impl FnMut(usize)) {
    if std::mem::replace(&mut seen[first], true) {
        return;
    }
    let mut path = vec![(first, 0)];
    while let Some((at, tried)) = path.last_mut() {
        let (at, to) = (*at, next[*at].get(*tried).copied());
        *tried += 1;
        match to {
            Some(to) if !std::mem::replace(&mut seen[to], true) => path.push((to, 0)),
            Some(_) => {}
            None => {
                leave(at);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(edges: &[(u64, u64, usize)]) -> LockOrder {
        let mut order = LockOrder::default();
        edges.iter().for_each(|&(held, acquired, thread)| order.add(held, acquired, thread));
        order
    }

    #[test]
    fn circles_of_several_threads_are_one_lock() {
        assert!(order(&[(1, 2, 0), (2, 3, 1), (1, 3, 2)]).circles().is_empty());
        // One thread does not wait for itself.
        assert!(order(&[(1, 2, 0), (2, 1, 0)]).circles().is_empty());
        let found = order(&[(1, 2, 0), (2, 3, 0), (3, 1, 1), (3, 4, 1), (5, 1, 2)]).circles();
        let mut locks: Vec<u64> = found.keys().copied().collect();
        locks.sort_unstable();
        assert_eq!(locks, [1, 2, 3]);
        assert!(found.values().all(|of| *of == found[&1]));
        // Both threads acquire them in both orders.
        assert_eq!(order(&[(1, 2, 0), (1, 2, 1), (2, 1, 0), (2, 1, 1)]).circles().len(), 2);
    }

    proptest! {
        /// The rest has an order: no lock is reached from itself over locks of several threads.
        #[test]
        fn what_is_left_has_no_circle(
            edges in prop::collection::vec((0u64..8, 0u64..8, 0usize..9), 0..30),
        ) {
            // Each edge of a thread of its own: every circle counts.
            let edges: Vec<_> = edges.into_iter().filter(|(a, b, _)| a != b).collect();
            let own: Vec<_> = edges.iter().enumerate().map(|(n, &(a, b, _))| (a, b, n)).collect();
            let circles = order(&own).circles();
            let of = |lock: u64| circles.get(&lock).copied().unwrap_or(lock);
            let mut reached = [[false; 8]; 8];
            for &(a, b, _) in &edges {
                if of(a) != of(b) {
                    reached[of(a) as usize][of(b) as usize] = true;
                }
            }
            for over in 0..8 {
                for a in 0..8 {
                    for b in 0..8 {
                        reached[a][b] |= reached[a][over] && reached[over][b];
                    }
                }
            }
            prop_assert!((0..8).all(|lock| !reached[lock][lock]));
            // And nothing was made one without a need.
            for (&lock, &of) in &circles {
                let mates = circles.iter().filter(|(l, o)| **o == of && **l != lock).count();
                prop_assert!(mates > 0);
            }
        }
    }
}
