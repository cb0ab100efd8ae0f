//! Threads of a program that wait for each other for ever: who waits for what, in a circle.
//!
//! Signals are never taken back. So threads that wait in a circle of signals alone do so in every run, which is found from
//! the text: locks are taken to be free, and every thread goes as far as it can. Whether a circle with locks in it closes is
//! for a run to show, since one thread may be through before the other begins.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::tokens::{ParseError, Place};
use super::{Litmus, Step};
use graven_machine::sim::ProgramDeadlock;

/// The places of a program's steps in its text.
#[derive(Clone, Debug, Default)]
pub struct Places(pub(super) Vec<Vec<Vec<Place>>>);

/// Threads of a life, each of which waits for the next, and the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    life: usize,
    waits: Vec<Wait>,
}

/// A thread, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wait {
    thread: usize,
    /// The step at which it waits.
    step: usize,
    what: Awaited,
    /// The thread that has to act first.
    other: usize,
    /// The step by which that one took the lock, or by which it will give the signal.
    by: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Awaited {
    Lock(String),
    Signal(String),
}

impl Circle {
    /// The circle of a life's threads that have stopped in a run, if the run tells their steps.
    pub fn of_run(litmus: &Litmus, life: usize, deadlock: &ProgramDeadlock) -> Option<Circle> {
        let stuck = deadlock.waits.iter().map(|wait| Some((wait.thread as usize, wait.step?)));
        Circle::of(&litmus.lives[life].threads, life, &stuck.collect::<Option<_>>()?)
    }

    /// The circle that closes in every run, because of signals alone.
    pub(super) fn of_signals(threads: &[Vec<Step>], life: usize) -> Option<Circle> {
        Circle::of(threads, life, &stuck_by_signals(threads))
    }

    /// A circle of threads that are at these steps and go no further.
    fn of(threads: &[Vec<Step>], life: usize, stuck: &BTreeMap<usize, usize>) -> Option<Circle> {
        let mut waits: Vec<Wait> = Vec::new();
        let mut thread = *stuck.keys().next()?;
        loop {
            if let Some(first) = waits.iter().position(|wait| wait.thread == thread) {
                return Some(Circle { life, waits: waits.split_off(first) });
            }
            let wait = wait_of(threads, stuck, thread)?;
            thread = wait.other;
            waits.push(wait);
        }
    }

    /// The refusal of the program, at the first of the steps.
    pub fn refusal(&self, places: &Places) -> ParseError {
        let place = |thread: usize, step: usize| places.0[self.life][thread][step];
        let first = &self.waits[0];
        place(first.thread, first.step)
            .error(self.told(|thread, step| format!("line {}", place(thread, step).line)))
    }

    /// The circle in words; `place` says where a step of a thread is.
    fn told(&self, place: impl Fn(usize, usize) -> String) -> String {
        let wait = |wait: &Wait| {
            let Wait { thread, step, other, by, .. } = wait;
            let (at, by) = (place(*thread, *step), place(*other, *by));
            let other = if other == thread { "it".into() } else { format!("thread {other}") };
            match &wait.what {
                Awaited::Lock(name) => format!(
                    "thread {thread} waits for `{name}` in {at}, and {other} has held it since {by}"
                ),
                Awaited::Signal(name) => format!(
                    "thread {thread} awaits `{name}` in {at}, and {other} comes to `signal {name}` in {by} only after that"
                ),
            }
        };
        let life = match self.life {
            0 => String::new(),
            later => format!("in life {}, ", later + 1),
        };
        let who = match &self.waits[..] {
            [wait] => format!("thread {} waits for itself", wait.thread),
            _ => "threads wait for each other".into(),
        };
        let waits: Vec<String> = self.waits.iter().map(wait).collect();
        format!("{life}{who} for ever, under any design: {}", waits.join("; "))
    }
}

/// Names steps by their numbers, from 1.
impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(|thread, step| format!("step {} of thread {thread}", step + 1)))
    }
}

/// The wait of a thread that is stuck.
fn wait_of(threads: &[Vec<Step>], stuck: &BTreeMap<usize, usize>, thread: usize) -> Option<Wait> {
    let step = *stuck.get(&thread)?;
    let by_any = |by: &dyn Fn(usize, usize) -> Option<usize>| {
        stuck.iter().find_map(|(&other, &at)| Some((other, by(other, at)?)))
    };
    let (what, (other, by)) = match threads[thread].get(step)? {
        Step::Lock(name) => {
            let holds = by_any(&|other, at| taken_before(&threads[other][..at], name));
            (Awaited::Lock(name.clone()), holds?)
        }
        Step::Await(name) => {
            let gives = |other: usize, at: usize| {
                let ahead = threads[other].iter().skip(at);
                ahead
                    .zip(at..)
                    .find(|(s, _)| matches!(s, Step::Signal(n) if n == name))
                    .map(|f| f.1)
            };
            (Awaited::Signal(name.clone()), by_any(&gives)?)
        }
        _ => return None,
    };
    Some(Wait { thread, step, what, other, by })
}

/// By which of these steps a thread took a lock that it has after them.
fn taken_before(steps: &[Step], lock: &str) -> Option<usize> {
    let of_lock = |step: &Step| matches!(step, Step::Lock(n) | Step::Unlock(n) if n == lock);
    let last = steps.iter().rposition(of_lock)?;
    matches!(steps[last], Step::Lock(_)).then_some(last)
}

/// Tells whether a thread waits for something while it has a lock. Only then can a run of a program that was read show a circle.
pub fn waits_with_a_lock(threads: &[Vec<Step>]) -> bool {
    let waits = |steps: &Vec<Step>| {
        let mut held = 0;
        steps.iter().any(|step| {
            let waits = held > 0 && matches!(step, Step::Lock(_) | Step::Await(_));
            match step {
                Step::Lock(_) => held += 1,
                Step::Unlock(_) => held -= 1,
                _ => {}
            }
            waits
        })
    };
    threads.len() > 1 && threads.iter().any(waits)
}

/// At which step each thread stops for want of a signal, if no lock ever keeps one.
fn stuck_by_signals(threads: &[Vec<Step>]) -> BTreeMap<usize, usize> {
    let mut given: BTreeSet<&str> = BTreeSet::new();
    let mut waiting: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut at = vec![0; threads.len()];
    let mut ready: Vec<usize> = (0..threads.len()).collect();
    while let Some(thread) = ready.pop() {
        while let Some(step) = threads[thread].get(at[thread]) {
            match step {
                Step::Signal(name) => {
                    given.insert(name);
                    ready.extend(waiting.remove(name.as_str()).unwrap_or_default());
                }
                Step::Await(name) if !given.contains(name.as_str()) => {
                    waiting.entry(name).or_default().push(thread);
                    break;
                }
                _ => {}
            }
            at[thread] += 1;
        }
    }
    waiting.into_values().flatten().map(|thread| (thread, at[thread])).collect()
}
