//! Isolation: whether no two threads of a program store to a word at the same time.
//!
//! Hardware for atomic durability presumes it: concurrency control is the program's. Two stores to one word by two
//! threads are apart if a lock is held around both, or if what came before a signal, and what comes after
//! waiting for it, orders them.

use std::collections::{BTreeMap, BTreeSet};

use crate::litmus::{Litmus, Step, Word};

/// Whether stores to a word by several threads are apart, in every life.
#[must_use]
pub fn is_isolated(litmus: &Litmus) -> bool {
    (0..litmus.life_count()).all(|life| are_isolated(litmus.threads_of(life)))
}

/// A stretch of a thread between signals and waits, and the locks that are held around a store in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    thread: usize,
    stretch: usize,
    locks: BTreeSet<&'a str>,
}

fn are_isolated(threads: &[Vec<Step>]) -> bool {
    let mut places: BTreeMap<&Word, BTreeSet<Place<'_>>> = BTreeMap::new();
    let mut order = Order::default();
    for (thread, steps) in threads.iter().enumerate() {
        let mut here = Place { thread, stretch: 0, locks: BTreeSet::new() };
        // A stretch that ends within a transaction hands nothing over: its words are not durable.
        let mut is_open = false;
        order.stretches.push(vec![None]);
        for step in steps {
            match step.action() {
                Step::Lock(name) => drop(here.locks.insert(name)),
                Step::Unlock(name) => drop(here.locks.remove(name.as_str())),
                Step::Begin => is_open = true,
                Step::Commit => is_open = false,
                Step::Signal(name) => {
                    let end = (!is_open).then_some((thread, here.stretch));
                    order.signals.entry(name).or_default().push(end);
                    here.stretch += 1;
                    order.stretches[thread].push(None);
                }
                Step::Await(name) => {
                    here.stretch += 1;
                    order.stretches[thread].push(Some(name));
                }
                Step::Store(word, _) | Step::StoreNonTemporal(word, _) => {
                    if !places.get(word).is_some_and(|known| known.contains(&here)) {
                        places.entry(word).or_default().insert(here.clone());
                    }
                }
                _ => {}
            }
        }
    }
    let order = order.closed();
    places.values().all(|places| {
        let mut rest = places.iter();
        while let Some(one) = rest.next() {
            let apart = |other: &Place<'_>| {
                one.thread == other.thread
                    || !one.locks.is_disjoint(&other.locks)
                    || order.is_before(one, other)
                    || order.is_before(other, one)
            };
            if !rest.clone().all(apart) {
                return false;
            }
        }
        true
    })
}

/// Which signals end and begin stretches.
#[derive(Debug, Default)]
struct Order<'a> {
    /// Of each signal, the stretches that it ends.
    signals: BTreeMap<&'a str, Vec<Option<(usize, usize)>>>,
    /// Of each thread and stretch, the signal that was awaited before it, if one was.
    stretches: Vec<Vec<Option<&'a str>>>,
}

/// Of each thread and stretch, how many stretches of each thread have ended before it begins.
struct Closed(Vec<Vec<Vec<usize>>>);

impl Order<'_> {
    /// Goes through all stretches as threads could that run: each after the one before it and after the one whose
    /// signal it awaits. What is never reached is behind nothing.
    fn closed(&self) -> Closed {
        let none = vec![0; self.stretches.len()];
        let mut known: Vec<Vec<Vec<usize>>> = self.stretches.iter().map(|_| Vec::new()).collect();
        loop {
            let mut has_gone_on = false;
            for (thread, stretches) in self.stretches.iter().enumerate() {
                while let Some(awaited) = stretches.get(known[thread].len()) {
                    let signaller = awaited.and_then(|name| self.only_signaller(name));
                    if signaller.is_some_and(|(of, last)| known[of].len() <= last) {
                        break;
                    }
                    let before = known[thread].len().checked_sub(1).map(|last| (thread, last));
                    let mut now = none.clone();
                    for (of, last) in before.into_iter().chain(signaller) {
                        for (mine, &theirs) in now.iter_mut().zip(&known[of][last]) {
                            *mine = theirs.max(*mine);
                        }
                        now[of] = now[of].max(last + 1);
                    }
                    known[thread].push(now);
                    has_gone_on = true;
                }
            }
            if !has_gone_on {
                return Closed(known);
            }
        }
    }

    /// The stretch that a signal ends. Whoever signals first lets those who wait go on: only what one thread alone signals,
    /// once, orders.
    fn only_signaller(&self, name: &str) -> Option<(usize, usize)> {
        match self.signals.get(name)?[..] {
            [only] => only,
            _ => None,
        }
    }
}

impl Closed {
    fn is_before(&self, one: &Place<'_>, other: &Place<'_>) -> bool {
        let known = self.0[other.thread].get(other.stretch);
        known.is_some_and(|known| known[one.thread] > one.stretch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus;

    fn isolated(threads: &str) -> bool {
        let text = format!("graven litmus 1\ntitle \"x\"\nA = 0\nB = 0\n{threads}");
        is_isolated(&litmus::parse(&text).unwrap_or_else(|e| panic!("{e}")))
    }

    #[test]
    fn a_word_of_two_threads_needs_a_lock_of_both() {
        let thread = |lock: &str, word: &str| {
            format!("thread\nlock {lock}\nbegin\n{word} = 1\ncommit\nunlock {lock}\n")
        };
        assert!(isolated(&(thread("m", "A") + &thread("m", "A"))));
        assert!(isolated(&(thread("m", "A") + &thread("n", "B"))));
        assert!(!isolated(&(thread("m", "A") + &thread("n", "A"))));
        assert!(!isolated(&(thread("m", "A") + "thread\nbegin\nA = 2\ncommit\n")));
        assert!(isolated("thread\nbegin\nA = 2\ncommit\nbegin\nA = 3\ncommit\n"));
    }

    /// Programs whose words signals hand over were not reduced: their stores seemed not to be apart.
    #[test]
    fn signals_keep_stores_apart() {
        let store = "begin\nA = 1\ncommit\n";
        let before = |signal: &str| format!("thread\n{store}signal {signal}\n");
        let after = |signal: &str| format!("thread\nawait {signal}\n{store}");
        assert!(isolated(&(before("h") + &after("h"))));
        assert!(isolated(&(after("h") + &before("h"))));
        let there_and_back = format!("thread\n{store}signal h\nawait k\n{store}");
        assert!(isolated(&format!("{there_and_back}{}signal k\n", after("h"))));
        assert!(!isolated(&format!("{there_and_back}{}thread\nsignal k\n", after("h"))));
        let through = "thread\nawait h\nsignal k\n";
        assert!(isolated(&(after("k") + through + &before("h"))));
        assert!(!isolated(&format!("thread\nsignal h\n{store}{}", after("h"))), "stored behind it");
        assert!(!isolated(&format!("thread\n{store}signal h\nthread\n{store}await h\n")));
        let twice = before("h") + "thread\nsignal h\n" + &after("h");
        assert!(!isolated(&twice), "the other thread may have signalled");
        let open = "thread\nbegin\nA = 1\nsignal h\ncommit\n".to_owned() + &after("h");
        assert!(!isolated(&open), "its transaction has not ended");
    }
}
