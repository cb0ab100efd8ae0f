//! A total order of steps as threads that wait for each other.

use std::collections::BTreeMap;

use super::Step;
use super::tokens::Place;

/// The threads of a sequence. Where a step is of another thread than the one before it, that one's thread
/// signals and this one's awaits it; the signals are called `step-1`, `step-2`, … but for those in `taken`.
pub fn threads(steps: Vec<(usize, Step)>, taken: &BTreeMap<String, Place>) -> Vec<Vec<Step>> {
    let count = steps.iter().map(|(thread, _)| thread + 1).max().unwrap_or(0);
    let mut threads = vec![Vec::new(); count];
    let mut names = (1..).map(|n| format!("step-{n}")).filter(|name| !taken.contains_key(name));
    let mut last = None;
    for (thread, step) in steps {
        if let Some(before) = last.replace(thread).filter(|&before| before != thread) {
            let name = names.next().expect("there is always a next number");
            threads[before].push(Step::Signal(name.clone()));
            threads[thread].push(Step::Await(name));
        }
        threads[thread].push(step);
    }
    threads
}
