//! Bug class: a race that is not found, or accesses that are ordered and said to race.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const THREADS: usize = 4;
/// The address of the accessed bytes: two words.
const START: u64 = 4096;

/// The next action of a thread.
#[derive(Clone, Copy, Debug)]
enum Step {
    Access {
        at: u64,
        bytes: u64,
        is_store: bool,
    },
    /// If it holds it: it releases it; if it can: it acquires it; else nothing.
    Lock {
        lock: u64,
        is_shared: bool,
    },
    Post(u64),
    Take(u64),
    /// Releases the lock, and acquires it again: a wait on a condition variable.
    Wait {
        lock: u64,
    },
    Atomic {
        unit: u64,
        acquires: bool,
        releases: bool,
    },
    Begin {
        other: usize,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    let access = (0u64..16, 0u32..4, any::<bool>());
    prop_oneof![
        8 => access.prop_map(|(at, log, is_store)| Step::Access { at, bytes: 1 << log, is_store }),
        4 => (0u64..3, any::<bool>()).prop_map(|(lock, is_shared)| Step::Lock { lock, is_shared }),
        1 => (0u64..2).prop_map(Step::Post),
        1 => (0u64..2).prop_map(Step::Take),
        1 => (0u64..3).prop_map(|lock| Step::Wait { lock }),
        2 => (0u64..2, any::<bool>(), any::<bool>())
            .prop_map(|(unit, acquires, releases)| Step::Atomic { unit, acquires, releases }),
        1 => (0..THREADS).prop_map(|other| Step::Begin { other }),
    ]
}

/// All steps and what is known to have happened before what, by its definition: a graph, and paths in it.
#[derive(Default)]
struct Oracle {
    threads: Vec<usize>,
    edges: Vec<(usize, usize)>,
    /// Step, first byte, bytes, whether it stores.
    accesses: Vec<(usize, u64, u64, bool)>,
    releases: Vec<(Object, usize)>,
}

impl Oracle {
    /// A step of a thread, behind its step before.
    fn step(&mut self, thread: usize) -> usize {
        let number = self.threads.len();
        let before = self.threads.iter().rposition(|&other| other == thread);
        self.edges.extend(before.map(|before| (before, number)));
        self.threads.push(thread);
        number
    }

    fn releases(&mut self, thread: usize, object: Object) {
        let step = self.step(thread);
        self.releases.push((object, step));
    }

    fn acquires(&mut self, thread: usize, object: Object) {
        let step = self.step(thread);
        let of = self.releases.iter().filter(|(other, _)| *other == object);
        self.edges.extend(of.map(|&(_, before)| (before, step)));
    }

    fn racing(&self) -> HashSet<u64> {
        let count = self.threads.len();
        let mut before = vec![vec![false; count]; count];
        for step in 0..count {
            for &(from, _) in self.edges.iter().filter(|(_, to)| *to == step) {
                before[from][step] = true;
                for row in before.iter_mut() {
                    row[step] |= row[from];
                }
            }
        }
        let mut racing = HashSet::new();
        for (second, &(b, at_b, bytes_b, stores_b)) in self.accesses.iter().enumerate() {
            for &(a, at_a, bytes_a, stores_a) in &self.accesses[..second] {
                let is_apart = self.threads[a] != self.threads[b] && !before[a][b];
                if is_apart && (stores_a || stores_b) {
                    racing.extend(at_a.max(at_b)..(at_a + bytes_a).min(at_b + bytes_b));
                }
            }
        }
        racing
    }
}

/// Who holds each lock: alone, or with others.
#[derive(Default)]
struct Locks {
    alone: [Option<usize>; 3],
    shared: [Vec<usize>; 3],
}

fn unlock(races: &mut Races, oracle: &mut Oracle, thread: usize, lock: u64, is_alone: bool) {
    races.entered(thread, Role::Unlock, lock, is_alone);
    oracle.releases(thread, if is_alone { Object::Lock(lock) } else { Object::Shared(lock) });
}

fn lock_alone(races: &mut Races, oracle: &mut Oracle, thread: usize, lock: u64, role: Role) {
    races.returned(thread, role, lock, 0);
    oracle.acquires(thread, Object::Lock(lock));
    if role == Role::Lock {
        oracle.acquires(thread, Object::Shared(lock));
    }
}

fn both(steps: &[(usize, Step)]) -> (Races, Oracle) {
    let (mut races, mut oracle, mut locks) =
        (Races::new(THREADS), Oracle::default(), Locks::default());
    for &(thread, step) in steps {
        let (r, o) = (&mut races, &mut oracle);
        match step {
            Step::Access { at, bytes, is_store } => {
                let address = START + at;
                r.access(Party { thread, transaction: None, address, bytes, is_store });
                let number = o.step(thread);
                o.accesses.push((number, address, bytes, is_store));
            }
            Step::Lock { lock, is_shared } => {
                let of = lock as usize;
                let (alone, shared) = (&mut locks.alone[of], &mut locks.shared[of]);
                if *alone == Some(thread) {
                    *alone = None;
                    unlock(r, o, thread, lock, true);
                } else if let Some(at) = shared.iter().position(|&other| other == thread) {
                    shared.remove(at);
                    unlock(r, o, thread, lock, false);
                } else if alone.is_none() && is_shared {
                    shared.push(thread);
                    lock_alone(r, o, thread, lock, Role::LockShared);
                } else if alone.is_none() && shared.is_empty() {
                    *alone = Some(thread);
                    lock_alone(r, o, thread, lock, Role::Lock);
                }
            }
            Step::Wait { lock } if locks.alone[lock as usize] == Some(thread) => {
                r.entered(thread, Role::Wait, lock, true);
                o.releases(thread, Object::Lock(lock));
                lock_alone(r, o, thread, lock, Role::Wait);
            }
            Step::Wait { .. } => {}
            Step::Post(at) => {
                r.entered(thread, Role::Release, at, false);
                o.releases(thread, Object::Met(at));
            }
            Step::Take(at) => {
                r.returned(thread, Role::Acquire, at, 0);
                // One that fails orders nothing.
                r.returned(thread, Role::Acquire, 1 - at, u64::from(u32::MAX));
                o.acquires(thread, Object::Met(at));
            }
            Step::Atomic { unit, acquires, releases } => {
                r.synchronises(thread, (unit * 4, 4), None, (acquires, releases));
                if acquires {
                    o.acquires(thread, Object::Unit(unit));
                }
                if releases {
                    o.releases(thread, Object::Unit(unit));
                }
            }
            Step::Begin { other } if other != thread => {
                r.begins(other, thread as u32);
                let made = o.step(thread);
                let begun = o.step(other);
                o.edges.push((made, begun));
            }
            Step::Begin { .. } => {}
        }
    }
    (races, oracle)
}

fn bytes_of(races: &Races) -> HashSet<u64> {
    let bytes = |(word, mask): (&Addr, &u8)| {
        let (word, mask) = (word.0, *mask);
        (0..8).filter(move |byte| mask >> byte & 1 != 0).map(move |byte| word + byte)
    };
    races.racing.iter().flat_map(bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn bytes_have_races_that_have_them_by_definition(
        steps in prop::collection::vec((0..THREADS, any_step()), 0..120),
    ) {
        let (races, oracle) = both(&steps);
        let racing = oracle.racing();
        prop_assert_eq!(bytes_of(&races), racing.clone());
        prop_assert_eq!(races.bytes(), racing.len() as u64);
        prop_assert_eq!(races.accesses > 0, !racing.is_empty());
        for (earlier, later) in &races.first {
            let common = earlier.address.max(later.address)
                ..(earlier.address + earlier.bytes).min(later.address + later.bytes);
            prop_assert!(earlier.thread != later.thread && (earlier.is_store || later.is_store));
            prop_assert!({ common }.any(|byte| racing.contains(&byte)), "{earlier:?} {later:?}");
        }
        // What is not known any more is used again.
        let mut known = 0;
        for page in races.pages.values() {
            for &first in page.iter() {
                let next = |&at: &u32| Some(races.pasts[at as usize].next).filter(|&at| at != NONE);
                known += std::iter::successors(Some(first).filter(|&at| at != NONE), next).count();
            }
        }
        prop_assert!(known <= 2 * 8 * (1 + THREADS), "{known} accesses of two words are known");
    }
}

fn store(thread: usize, address: u64, bytes: u64) -> Party {
    Party { thread, transaction: Some(7), address, bytes, is_store: true }
}

#[test]
fn both_accesses_are_told() {
    let mut races = Races::new(2);
    races.access(store(0, START + 2, 4));
    let later = Party { transaction: None, is_store: false, ..store(1, START, 8) };
    races.access(later);
    assert_eq!(races.first, [(store(0, START + 2, 4), later)]);
    assert_eq!((races.accesses, races.bytes()), (1, 4));
}

#[test]
fn what_atomic_instructions_access_has_no_races_and_its_neighbours_may_have() {
    let mut races = Races::new(2);
    races.synchronises(0, (START, 4), Some(START), (true, true));
    for thread in [0, 1] {
        races.access(store(thread, START, 4));
    }
    assert_eq!(races.bytes(), 0);
    for thread in [0, 1] {
        races.access(store(thread, START, 8));
    }
    assert_eq!(races.bytes(), 4);
}

#[test]
fn accesses_of_one_thread_take_no_more_memory_than_bytes() {
    let mut races = Races::new(2);
    for round in 0..10_000 {
        races.access(store(0, START + round % 64, 1 << (round % 4)));
        races.entered(0, Role::Release, 0, false);
    }
    assert!(races.pasts.len() <= 80, "{}", races.pasts.len());
}
