//! Isolation: whether no two threads of a program store to a word at the same time, and none sees what may yet be undone.
//!
//! Hardware for atomic durability presumes it: concurrency control is the program's. Two stores to one word by two
//! threads are apart if a lock is held around both, or if one's transaction has committed before a signal, and the
//! other comes after waiting for it, or if both are outside transactions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Litmus, Step, Word};

/// Tells whether stores to a word by several threads are apart, in every life.
#[must_use]
pub fn is_isolated(litmus: &Litmus) -> bool {
    litmus.lives.iter().all(|life| are_isolated(&life.threads))
}

fn are_isolated(threads: &[Vec<Step>]) -> bool {
    let mut places: BTreeMap<&Word, BTreeSet<Place<'_>>> = BTreeMap::new();
    for touch in threads.iter().enumerate().flat_map(|(thread, steps)| touches(thread, steps)) {
        if touch.stores {
            places.entry(touch.word).or_default().insert(touch.place);
        }
    }
    let order = Order::of(threads);
    places.values().all(|places| {
        let mut rest = places.iter();
        while let Some(one) = rest.next() {
            let apart = |other: &Place<'_>| {
                one.thread == other.thread
                    || one.outside && other.outside
                    || !one.locks.is_disjoint(&other.locks)
                    || order.has_ended(one, other)
                    || order.has_ended(other, one)
            };
            if !rest.clone().all(apart) {
                return false;
            }
        }
        true
    })
}

/// A signal within a transaction, after which another thread comes to a word that the transaction has stored to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlySignal {
    /// The signal.
    pub name: String,
    /// The word.
    pub word: Word,
    /// The other thread.
    pub thread: usize,
}

/// The first one of the threads of a life.
#[must_use]
pub fn early_signal(threads: &[Vec<Step>]) -> Option<EarlySignal> {
    let signals = threads.iter().flatten().any(|step| matches!(step.action(), Step::Signal(_)));
    if !signals {
        return None;
    }
    let mut open: BTreeMap<&Word, BTreeSet<Place<'_>>> = BTreeMap::new();
    let mut all: BTreeMap<&Word, BTreeSet<Place<'_>>> = BTreeMap::new();
    for touch in threads.iter().enumerate().flat_map(|(thread, steps)| touches(thread, steps)) {
        if touch.stores && touch.place.stretch < touch.place.until {
            open.entry(touch.word).or_default().insert(touch.place.clone());
        }
        all.entry(touch.word).or_default().insert(touch.place);
    }
    let order = Order::of(threads);
    open.into_iter().find_map(|(word, stores)| {
        let pairs = stores.iter().flat_map(|one| all[word].iter().map(move |other| (one, other)));
        let mut early = pairs.filter(|(one, other)| {
            one.thread != other.thread
                && order.has_begun(one, other)
                && !order.has_ended(one, other)
        });
        let (one, other) = early.next()?;
        let mut signals = threads[one.thread].iter().zip(stretches(&threads[one.thread]));
        let name = signals.find_map(|(step, (stretch, _))| match step.action() {
            Step::Signal(name) if stretch >= one.stretch => Some(name.clone()),
            _ => None,
        })?;
        Some(EarlySignal { name, word: word.clone(), thread: other.thread })
    })
}

/// A stretch of a thread between signals and waits, and the locks that are held in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    thread: usize,
    stretch: usize,
    /// In which stretch the transaction ends, if the place is in one.
    until: usize,
    locks: BTreeSet<&'a str>,
    /// The store is outside transactions.
    outside: bool,
}

/// A step that loads or stores a word.
struct Touch<'a> {
    word: &'a Word,
    stores: bool,
    place: Place<'a>,
}

/// Those of a thread, in order.
fn touches(thread: usize, steps: &[Step]) -> impl Iterator<Item = Touch<'_>> {
    let mut locks: BTreeSet<&str> = BTreeSet::new();
    let at = steps.iter().zip(stretches(steps));
    at.flat_map(move |(step, (stretch, until))| {
        match step.action() {
            Step::Lock(name) => drop(locks.insert(name)),
            Step::Unlock(name) => drop(locks.remove(name.as_str())),
            _ => {}
        }
        let tested = if let Step::If(word, ..) = step { Some((word, false)) } else { None };
        let touched = match step.action() {
            Step::Store(word, _) | Step::StoreNonTemporal(word, _) => Some((word, true)),
            Step::Load(word) => Some((word, false)),
            _ => None,
        };
        let locks = if tested.or(touched).is_some() { locks.clone() } else { BTreeSet::new() };
        let place = Place { thread, stretch, until, locks, outside: step.is_outside() };
        let touches = tested.into_iter().chain(touched);
        touches.map(move |(word, stores)| Touch { word, stores, place: place.clone() })
    })
}

/// In which stretch each step of a thread is, and in which the transaction ends that it is in. A signal is the last step of
/// a stretch, a wait the first.
fn stretches(steps: &[Step]) -> Vec<(usize, usize)> {
    let mut stretch = 0;
    let mut all: Vec<(usize, usize)> = Vec::with_capacity(steps.len());
    for step in steps {
        stretch += usize::from(matches!(step.action(), Step::Await(_)));
        all.push((stretch, stretch));
        stretch += usize::from(matches!(step.action(), Step::Signal(_)));
    }
    let mut end = None;
    for (step, (stretch, until)) in steps.iter().zip(&mut all).rev() {
        match step.action() {
            Step::Commit => end = Some(*stretch),
            Step::Begin => end = None,
            _ => *until = end.unwrap_or(*stretch),
        }
    }
    all
}

/// For each thread and stretch, the number of stretches of each thread that have ended before it begins.
struct Order(Vec<Vec<Vec<usize>>>);

impl Order {
    /// Goes through all stretches as threads could that run: each after the one before it and after the one whose
    /// signal it awaits. What is never reached is behind nothing.
    fn of(threads: &[Vec<Step>]) -> Order {
        let mut signals: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
        let mut awaited: Vec<Vec<Option<&str>>> = Vec::new();
        for (thread, steps) in threads.iter().enumerate() {
            let mut of_thread = vec![None];
            for step in steps {
                match step.action() {
                    Step::Signal(name) => {
                        signals.entry(name).or_default().push((thread, of_thread.len() - 1));
                        of_thread.push(None);
                    }
                    Step::Await(name) => of_thread.push(Some(name.as_str())),
                    _ => {}
                }
            }
            awaited.push(of_thread);
        }
        // Whoever signals first lets those who wait go on: only what one thread alone signals, once, orders.
        let signaller = |name: &str| match signals.get(name)?[..] {
            [only] => Some(only),
            _ => None,
        };
        let none = vec![0; threads.len()];
        let mut known: Vec<Vec<Vec<usize>>> = vec![Vec::new(); threads.len()];
        loop {
            let mut has_gone_on = false;
            for (thread, stretches) in awaited.iter().enumerate() {
                while let Some(awaited) = stretches.get(known[thread].len()) {
                    let signalled = awaited.and_then(signaller);
                    if signalled.is_some_and(|(of, last)| known[of].len() <= last) {
                        break;
                    }
                    let before = known[thread].len().checked_sub(1).map(|last| (thread, last));
                    let mut now = none.clone();
                    for (of, last) in before.into_iter().chain(signalled) {
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
                return Order(known);
            }
        }
    }

    /// The number of stretches of the thread of `one` that have ended before `other` begins.
    fn ended_before(&self, one: &Place<'_>, other: &Place<'_>) -> usize {
        self.0[other.thread].get(other.stretch).map_or(0, |known| known[one.thread])
    }

    /// Tells whether `one` comes before `other`.
    fn has_begun(&self, one: &Place<'_>, other: &Place<'_>) -> bool {
        self.ended_before(one, other) > one.stretch
    }

    /// Tells whether its transaction, too, ends before.
    fn has_ended(&self, one: &Place<'_>, other: &Place<'_>) -> bool {
        self.ended_before(one, other) > one.until
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
        let open = format!(
            "{}signal k\n",
            before("h").replace("thread\n", "thread\nbegin\nB = 1\ncommit\n")
        );
        assert!(isolated(&(open + &after("k"))), "any signal behind it will do");
    }

    #[test]
    fn a_signal_is_early_if_another_thread_comes_to_what_may_yet_be_undone() {
        let early = |threads: &[&str]| {
            let threads: Vec<Vec<Step>> = threads
                .iter()
                .map(|steps| {
                    let text = format!("graven litmus 1\ntitle \"x\"\nA = 0\nB = 0\nthread\n{steps}\nthread\nsignal x\nsignal h\nsignal k\n");
                    let mut litmus = litmus::parse(&text).unwrap_or_else(|e| panic!("{e}"));
                    litmus.lives[0].threads.swap_remove(0)
                })
                .collect();
            early_signal(&threads).map(|early| (early.name, early.word.name, early.thread))
        };
        let found = |name: &str, word: &str, thread| Some((name.into(), word.into(), thread));
        let open = "begin\nA = 1\nsignal h\nB = 1\ncommit\nsignal k";
        assert_eq!(early(&[open, "await h\nload A"]), found("h", "A", 1));
        assert_eq!(early(&["await h\nbegin\nA = 2\ncommit", open]), found("h", "A", 0));
        assert_eq!(early(&[open, "await h\nif A = 1: compute 3"]), found("h", "A", 1));
        assert_eq!(early(&[open, "await h\nsignal x", "await x\nload A"]), found("h", "A", 2));
        assert_eq!(early(&[open, "await h\nload B\nevict A"]), None, "not stored to before");
        assert_eq!(early(&[open, "await k\nload A"]), None);
        assert_eq!(early(&[open, "await h\nawait k\nload A"]), None);
        assert_eq!(early(&[open, "load A\nawait h"]), None);
    }
}
