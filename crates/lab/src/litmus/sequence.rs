//! A total order of steps as threads that wait for each other.

use std::collections::BTreeMap;

use super::Step;
use super::tokens::Place;

/// The threads of a sequence. Where a step is of another thread than the one before it, that one's thread
/// signals and this one's awaits it; the signals are called `step-1`, `step-2`, … but for those in `taken`.
/// Each step comes with its place; a signal or a wait has that of the step behind it.
pub fn threads(
    steps: Vec<(usize, Step, Place)>,
    taken: &BTreeMap<String, Place>,
) -> Vec<Vec<(Step, Place)>> {
    let count = steps.iter().map(|(thread, ..)| thread + 1).max().unwrap_or(0);
    let mut threads = vec![Vec::new(); count];
    let mut names = (1..).map(|n| format!("step-{n}")).filter(|name| !taken.contains_key(name));
    let mut last = None;
    for (thread, step, place) in steps {
        if let Some(before) = last.replace(thread).filter(|&before| before != thread) {
            let name = names.next().expect("there is always a next number");
            threads[before].push((Step::Signal(name.clone()), place));
            threads[thread].push((Step::Await(name), place));
        }
        threads[thread].push((step, place));
    }
    threads
}
