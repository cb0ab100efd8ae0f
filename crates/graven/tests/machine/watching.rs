//! Those who watch a run and may cancel it.
//!
//! Bug class: a run whose actions fall out of step with the looks at its control, so that its progress stands still and it
//! goes on long after it was cancelled.

use crate::common::script::{compute, load, script, store};
use crate::common::tiny_config;
use graven::program::Op;
use graven::sim::{Observer, SimError, Simulation};
use graven::time::NEVER;

/// Actions between two looks, at most; the first half of them may be one thread's.
const ACTIONS_MAX: u64 = 2 * 4096;

#[derive(Default)]
struct Actions(u64);

impl Observer for Actions {
    fn after_action(&mut self, _: &mut Simulation) {
        self.0 += 1;
    }
}

/// Actions of a run that was cancelled before it began.
fn actions_until_cancelled(threads: &[&[Op]]) -> u64 {
    let mut simulation = script(&tiny_config(&[]), threads);
    simulation.control().cancel();
    let mut actions = Actions::default();
    let ended = simulation.advance_observed(NEVER, &mut actions);
    assert_eq!(ended, Err(SimError::Cancelled), "after {} actions", actions.0);
    actions.0
}

#[test]
fn a_run_is_cancelled_after_the_same_number_of_actions_whatever_they_are() {
    let all = |step: &dyn Fn(u64) -> Op| (0..200_000).map(step).collect::<Vec<_>>();
    let computes = all(&|_| compute(1));
    let loads = all(&|n| load(8192 + n % 8 * 8));
    let misses = all(&|n| load(8192 + n % 4096 * 64));
    let stores = all(&|n| store(8192 + n % 4096 * 64, n));
    for ops in [&computes, &loads, &misses, &stores] {
        let others = all(&|n| load((1 << 20) + n % 8 * 8));
        for threads in [&[&ops[..]][..], &[ops, &others]] {
            let actions = actions_until_cancelled(threads);
            assert!(actions <= ACTIONS_MAX, "{actions} for {:?}…", ops[0]);
        }
    }
}
