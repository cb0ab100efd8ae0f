//! What one simulation costs the host, in time and memory: `scale DESIGN WORKLOAD MACHINE THREADS TRANSACTIONS [KEY=VALUE…]`
//! answers with a line of JSON. `tests/campaigns/scale.py` starts a process for each size, so that the largest memory is
//! that of this run alone.
//!
//! Beside the workloads that ship there is `sparse`: it has no structures, and stores to so many lines (`sparse.lines`) that
//! lie all over its footprint. A long run says now and then on the standard error how far it is.

mod measured;

use std::error::Error;
use std::fs;

use graven::config::ConfigError;
use graven::memory::{Addr, Image, LINE_BYTES, LineAddr, WORD_BYTES, spread};
use graven::program::{Load, Memory, Program, Ptr, spawn};
use graven::section;
use graven::sim::{Observer, Simulation};
use graven::workload::{BrokenInvariant, Request, Workload, WorkloadInfo};
use measured::Clock;
use serde_json::json;

section! {
    /// Stores to few lines of a large footprint.
    pub struct SparseConfig("sparse") {
        /// Lines that are stored to, over all threads; fewer if the footprint has no more.
        lines: u32 = 16 * 1024, 128..=1 << 24, "lines";
    }
}

/// Stores of one transaction of `sparse`.
const STORES: u64 = 8;

/// How many actions pass between two lines about how far a run is.
const ACTIONS_PER_LINE: u64 = 1 << 28;

static SPARSE: WorkloadInfo = WorkloadInfo {
    name: "sparse",
    group: "micro",
    summary: "stores to the same number of lines, however far apart",
    sections: &[|| Box::new(SparseConfig::default())],
    settings: &[],
    build: |request| Ok(Box::new(Sparse(request.clone()))),
};

/// Stores to few lines of a large footprint.
struct Sparse(Request);

impl Workload for Sparse {
    fn populate(&self, _: &mut Image) {}

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let request = &self.0;
        let threads = u64::from(request.threads);
        let own = u64::from(request.whole.get::<SparseConfig>().lines) / threads;
        let lines = request.config.footprint_bytes.0 / LINE_BYTES / threads;
        let first = request.start.line().0 + u64::from(thread) * lines;
        let transactions = request.transactions_of(thread);
        let place = move |number| LineAddr(first + spread(number % own, 0) % lines).addr();
        spawn(move |thread| {
            for number in 0..transactions {
                thread.tx_begin();
                for store in 0..STORES {
                    let drawn = spread(number * STORES + store, 1);
                    let at = Ptr::known(Addr(place(drawn).0 + drawn % 8 * WORD_BYTES));
                    let old = thread.load(at);
                    thread.store(at, old + 1);
                }
                thread.tx_end();
            }
        })
    }

    fn check(&self, _: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// Counts actions.
#[derive(Default)]
struct Actions(u64);

impl Observer for Actions {
    fn after_action(&mut self, simulation: &mut Simulation) {
        self.0 += 1;
        if self.0.is_multiple_of(ACTIONS_PER_LINE) {
            eprintln!("{} transactions", simulation.stats().counters.committed_transactions);
        }
    }
}

/// Kilobytes of this process in the host's memory: the most so far (`VmHWM`), or now (`VmRSS`). 0 where the system does not say.
fn memory_kb(which: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(which)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn simulation(given: &[String]) -> Result<Simulation, ConfigError> {
    let [design, workload, machine, threads, transactions, settings @ ..] = given else {
        panic!("a design, a workload, a machine, threads, transactions, settings");
    };
    let mut registry = graven::standard();
    registry.workload(&SPARSE);
    let mut config = registry.machine(machine)?;
    for setting in settings {
        let (key, value) = setting.split_once('=').expect("KEY=VALUE");
        config.set(key, value)?;
    }
    let number = |text: &String| text.parse().expect("a number");
    let (threads, transactions) = (Some(number(threads)), Some(number(transactions)));
    Simulation::new(&registry.spec(config, design, workload, threads, transactions, 1)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let start_kb = memory_kb("VmRSS");
    let clock = Clock::start();
    let mut simulation = simulation(&given)?;
    let (build_seconds, built_kb) = (clock.seconds(), memory_kb("VmRSS"));
    let mut actions = Actions::default();
    let clock = Clock::start();
    let ended = simulation.advance_observed(u64::MAX, &mut actions)?;
    let run_seconds = clock.seconds();
    assert!(ended, "without a limit only the end stops a simulation");
    let counts = simulation.counts();
    println!(
        "{}",
        json!({
            "build_seconds": build_seconds,
            "run_seconds": run_seconds,
            "start_kb": start_kb,
            "built_kb": built_kb,
            "peak_kb": memory_kb("VmHWM"),
            "actions": actions.0,
            "operations": counts["loads"] + counts["stores"],
            "transactions": counts["committed_transactions"],
            "cycles": simulation.machine().now(),
            "populated_bytes": simulation.footprint_bytes(),
        })
    );
    Ok(())
}
