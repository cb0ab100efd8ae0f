//! Runs of operations that stay in a core are executed at once where nobody looks on.
//!
//! Bug class: what is executed at once differs from what is executed step by step.

use crate::common::registry;
use graven::sim::{Observer, Simulation};

/// Looks on, so that nothing is executed at once.
struct Looks;

impl Observer for Looks {
    fn after_action(&mut self, _: &mut Simulation) {}
}

#[test]
fn it_makes_no_difference_that_somebody_looks_on() {
    let machines = [("silo", 1), ("silo", 8), ("hoop", 4), ("morlog", 2)];
    for (machine, threads) in machines {
        for (design, workload) in
            [("silo", "hash"), ("fwb", "array"), ("lad", "btree"), ("undo-clwb", "queue")]
        {
            let spec = || {
                let config = registry().machine(machine).expect("a machine");
                registry().spec(config, design, workload, Some(threads), Some(40), 7)
            };
            let new = || Simulation::new(&spec().expect("a valid run")).expect("a simulation");
            let (mut alone, mut watched) = (new(), new());
            assert!(alone.advance(u64::MAX - 1).expect("it ends"), "all threads have finished");
            let ended = watched.advance_observed(u64::MAX - 1, &mut Looks).expect("it ends");
            assert!(ended, "all threads have finished");
            let what = format!("{design} {workload} {machine} {threads}");
            assert_eq!(alone.machine().now(), watched.machine().now(), "{what}");
            assert_eq!(alone.counts(), watched.counts(), "{what}");
        }
    }
}
