//! Shrinking: from a schedule that convicts to the least that still does.
//!
//! Candidates are the program without a thread, without a transaction, without some steps, with a plainer
//! machine, with smaller numbers; each is run again in full and kept if it still convicts, whatever the
//! verdict says. What is left is usually short enough to be read at a glance.

use std::collections::{BTreeMap, BTreeSet};

use crate::designs::Entry;
use crate::litmus::{self, Case, CrashAt, Litmus, Placement, Step, Word};

use super::points::{Conviction, Thoroughness};

/// Most runs that shrinking may take.
const RUNS_MAX: u32 = 4000;

/// A program that convicts, and how.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The program; it replays the conviction exactly.
    pub litmus: Litmus,
    /// Its first conviction.
    pub conviction: Conviction,
    /// Runs that it took.
    pub runs: u32,
}

/// The least program that still convicts; `None` if this one does not.
pub fn shrink(litmus: &Litmus, design: &'static Entry) -> Option<Shrunk> {
    let mut shrinker = Shrinker { design, runs: 0 };
    let mut best = litmus.clone();
    best.crash = CrashAt::Everywhere;
    best.expectations.clear();
    shrinker.convicts(&best)?;
    loop {
        let before = best.clone();
        shrinker.drop_threads(&mut best);
        shrinker.drop_transactions(&mut best);
        shrinker.drop_steps(&mut best);
        shrinker.make_plain(&mut best);
        shrinker.make_small(&mut best);
        if best == before || shrinker.runs >= RUNS_MAX {
            break;
        }
    }
    let conviction = shrinker.convicts(&best)?;
    best.crash = CrashAt::Point { number: conviction.point, form: conviction.form };
    Some(Shrunk { litmus: best, conviction, runs: shrinker.runs })
}

struct Shrinker {
    design: &'static Entry,
    runs: u32,
}

impl Shrinker {
    fn convicts(&mut self, candidate: &Litmus) -> Option<Conviction> {
        self.runs += 1;
        // What is not a valid program any more (a lock without its unlock) is read as such.
        let candidate = litmus::parse(&candidate.to_string()).ok()?;
        if !is_isolated(&candidate) {
            return None;
        }
        let case = Case::new(&candidate, self.design).ok()?.examined(Thoroughness::SHORT);
        case.run().ok()?.convictions.into_iter().next()
    }

    fn try_it(&mut self, best: &mut Litmus, change: impl FnOnce(&mut Litmus)) -> bool {
        if self.runs >= RUNS_MAX {
            return false;
        }
        let mut candidate = best.clone();
        change(&mut candidate);
        let kept = candidate != *best && self.convicts(&candidate).is_some();
        if kept {
            *best = candidate;
        }
        kept
    }

    fn drop_threads(&mut self, best: &mut Litmus) {
        let mut thread = 0;
        while thread < best.threads.len() && best.threads.len() > 1 {
            if !self.try_it(best, |l| drop(l.threads.remove(thread))) {
                thread += 1;
            }
        }
    }

    /// From a begin (and the locks before it) to the next.
    fn drop_transactions(&mut self, best: &mut Litmus) {
        for thread in 0..best.threads.len() {
            let mut from = 0;
            while from < best.threads[thread].len() {
                let steps = &best.threads[thread];
                let is_head = |s: &Step| matches!(s, Step::Lock(_) | Step::Begin);
                let body =
                    (from..steps.len()).find(|&i| !is_head(&steps[i])).unwrap_or(steps.len());
                let next = (body..steps.len()).find(|&i| is_head(&steps[i])).unwrap_or(steps.len());
                if !self.try_it(best, |l| drop(l.threads[thread].drain(from..next))) {
                    from = next;
                }
            }
        }
    }

    /// Runs of steps, halving their length down to one; a lock goes with its unlock.
    fn drop_steps(&mut self, best: &mut Litmus) {
        for thread in 0..best.threads.len() {
            let mut length = best.threads[thread].len().next_power_of_two();
            while length > 0 {
                let mut from = 0;
                while from < best.threads[thread].len() {
                    let to = (from + length).min(best.threads[thread].len());
                    if !self.try_it(best, |l| drop(l.threads[thread].drain(from..to))) {
                        from += length;
                    }
                }
                length /= 2;
            }
            let mut at = 0;
            while at < best.threads[thread].len() {
                let Step::Lock(name) = &best.threads[thread][at] else {
                    at += 1;
                    continue;
                };
                let name = name.clone();
                let steps = &best.threads[thread];
                let unlock = steps[at..].iter().position(|s| *s == Step::Unlock(name.clone()));
                let unlock = unlock.map(|n| at + n);
                let kept = unlock.is_some_and(|unlock| {
                    self.try_it(best, |l| {
                        l.threads[thread].remove(unlock);
                        l.threads[thread].remove(at);
                    })
                });
                at += usize::from(!kept);
            }
        }
    }

    /// The machine as it is by default, where that suffices.
    fn make_plain(&mut self, best: &mut Litmus) {
        self.try_it(best, |l| l.settings.clear());
        let mut at = 0;
        while at < best.settings.len() {
            if !self.try_it(best, |l| drop(l.settings.remove(at))) {
                at += 1;
            }
        }
        self.try_it(best, |l| l.adversary = None);
        self.try_it(best, |l| l.garbage = None);
        self.try_it(best, |l| l.first_transaction = 0);
        let used = |l: &Litmus, name: &str| {
            let by_step =
                l.threads.iter().flatten().any(|s| word_of(s).is_some_and(|w| w.name == name));
            by_step || l.variables.iter().any(|v| v.place == Placement::With(name.into()))
        };
        let mut at = best.variables.len();
        while at > 0 {
            at -= 1;
            if !used(best, &best.variables[at].name) {
                self.try_it(best, |l| drop(l.variables.remove(at)));
            } else {
                self.try_it(best, |l| l.variables[at].place = Placement::OwnLine);
            }
        }
    }

    /// Smaller numbers.
    fn make_small(&mut self, best: &mut Litmus) {
        for thread in 0..best.threads.len() {
            for at in 0..best.threads[thread].len() {
                if let Step::Compute(n) = best.threads[thread][at]
                    && n > 1
                {
                    self.try_it(best, |l| l.threads[thread][at] = Step::Compute(n / 4 + 1));
                }
            }
        }
        for at in 0..best.variables.len() {
            self.try_it(best, |l| l.variables[at].initial = 0);
            let name = best.variables[at].name.clone();
            let steps = || best.threads.iter().flatten().filter_map(word_of);
            let highest = steps().filter(|w| w.name == name).filter_map(|w| w.index).max();
            if let (Some(_), Some(highest)) = (best.variables[at].words, highest) {
                self.try_it(best, |l| l.variables[at].words = Some(highest + 1));
            }
        }
    }
}

/// Whether words that several threads store to are stored to under one common lock, as the promise
/// presumes.
fn is_isolated(litmus: &Litmus) -> bool {
    // Per word: the thread that stores to it (none: several), and the locks that all its stores are under.
    let mut known: BTreeMap<&Word, (Option<usize>, BTreeSet<&str>)> = BTreeMap::new();
    for (thread, steps) in litmus.threads.iter().enumerate() {
        let mut held: BTreeSet<&str> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Lock(name) => drop(held.insert(name)),
                Step::Unlock(name) => drop(held.remove(name.as_str())),
                Step::Store(word, _) => {
                    let (by, locks) = known.entry(word).or_insert((Some(thread), held.clone()));
                    if *by != Some(thread) {
                        *by = None;
                    }
                    locks.retain(|lock| held.contains(lock));
                }
                _ => {}
            }
        }
    }
    known.values().all(|(by, locks)| by.is_some() || !locks.is_empty())
}

fn word_of(step: &Step) -> Option<&Word> {
    match step {
        Step::Store(word, _) | Step::Load(word) | Step::Evict(word, _) | Step::WriteBack(word) => {
            Some(word)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
