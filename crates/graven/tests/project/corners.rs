//! Bug class: a combination of design, workload, machine and thread count that the host simulates slowly because something
//! is tried again and again to no avail: a poll in each cycle, a timer that finds nothing to do.
//!
//! Such runs show in the number of actions for each memory operation, which does not depend on the host's load.
//! `campaigns/corners.py` measures the host's time, of all combinations.

use graven::Registry;
use graven::sim::{Observer, SimError, Simulation};

const WORKLOADS: [&str; 6] = ["array", "echo", "hash", "queue", "radix-tree", "ycsb"];

const TRANSACTIONS: u64 = 100;

/// Times the median of its workload that a combination may take.
const TIMES_MAX: u64 = 10;

/// Actions of a run, of some thousand memory operations, after which it does not end.
const ACTIONS_MAX: u64 = 10_000_000;

#[derive(Default)]
struct Actions(u64);

impl Observer for Actions {
    fn after_action(&mut self, _: &mut Simulation) {
        self.0 += 1;
    }

    fn stops(&self) -> bool {
        self.0 > ACTIONS_MAX
    }
}

/// Actions in a million memory operations; nothing if the combination does not run.
fn actions(registry: &Registry, design: &str, workload: &str, index: usize) -> Option<u64> {
    let machine = registry.presets()[index % registry.presets().len()].name;
    let mut config = registry.machine(machine).expect("it is registered");
    // Each run populates it anew; what is slow is so with few lines, too.
    config.set("workload.footprint_bytes", "1 MB").expect("a size");
    let threads = [Some(1), None][index / registry.presets().len() % 2];
    let spec = registry.spec(config, design, workload, threads, Some(TRANSACTIONS), 1).ok()?;
    let mut simulation = Simulation::new(&spec).ok()?;
    let mut actions = Actions::default();
    match simulation.advance_observed(u64::MAX, &mut actions) {
        Ok(ended) => assert!(ended, "{design} {workload} {machine} {threads:?} does not end"),
        // Its buffers or logs are too small for the workload, or it is one that loses data.
        Err(SimError::Design { .. } | SimError::ReadCheck { .. }) => return None,
        Err(why) => panic!("{design} {workload} {machine} {threads:?}: {why}"),
    }
    let counts = simulation.counts();
    Some(actions.0 * 1_000_000 / (counts["loads"] + counts["stores"]))
}

#[test]
#[ignore = "long: all designs on six workloads, on machines in turn"]
fn no_combination_takes_ten_times_the_actions_of_others_for_a_memory_operation() {
    let registry = graven::standard();
    for (w, workload) in WORKLOADS.into_iter().enumerate() {
        let of = |(d, design): (usize, &&graven::design::DesignInfo)| {
            Some((actions(&registry, design.name, workload, d + w)?, design.name))
        };
        let mut all: Vec<(u64, &str)> =
            registry.designs().iter().enumerate().filter_map(of).collect();
        all.sort_unstable();
        assert!(all.len() > registry.designs().len() / 2, "most designs run {workload}");
        let (median, (most, design)) = (all[all.len() / 2].0, all[all.len() - 1]);
        assert!(
            most <= TIMES_MAX * median,
            "{design} takes {most} actions for a million memory operations of {workload}, the median is {median}"
        );
    }
}
