//! Measures what simulations cost the host, in time and memory. It reads an object of JSON from each line of the standard
//! input, simulates it, and answers with an object in one line; `campaigns/host_cost.py` asks it.
//!
//! The processor time of building and populating and that of the threads' programs are apart; the orderly shutdown counts
//! for neither. The most memory is that of the process: start one for each simulation to measure it.
//!
//! Beside the workloads that ship it has `sparse`, without structures, whose stores go to `sparse.lines` lines all over its
//! footprint. A long run says on the standard error how far it is.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Instant;

use graven::Registry;
use graven::config::ConfigError;
use graven::memory::{Addr, Image, LINE_BYTES, LineAddr, WORD_BYTES, spread};
use graven::program::{Load, Memory, Program, Ptr, spawn};
use graven::section;
use graven::sim::{Observer, SimError, Simulation};
use graven::workload::{BrokenInvariant, Request, Workload, WorkloadInfo};
use serde::Deserialize;
use serde_json::{Value, json};

section! {
    /// Parameters of `sparse`.
    pub struct SparseConfig("sparse") {
        /// Lines that are stored to, over all threads; fewer if the footprint has no more.
        lines: u32 = 16 * 1024, 128..=1 << 24, "lines";
    }
}

/// Stores of one transaction of `sparse`.
const STORES: u64 = 8;

static SPARSE: WorkloadInfo = WorkloadInfo {
    name: "sparse",
    group: "micro",
    summary: "stores to the same number of lines, however far apart",
    sections: &[|| Box::new(SparseConfig::default())],
    settings: &[],
    build: |request| Ok(Box::new(Sparse(request.clone()))),
};

/// Workload that stores to few lines of a large footprint.
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

/// Returns the kilobytes of host memory that this process has now (`VmRSS`) or had at most (`VmHWM`); 0 where the system does
/// not tell.
fn memory_kb(which: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(which)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Processor seconds of this thread, where the system tells them; seconds of the clock elsewhere.
struct Clock {
    begun: Instant,
    computed: Option<u64>,
}

impl Clock {
    fn start() -> Clock {
        Clock { begun: Instant::now(), computed: computed_ns() }
    }

    fn seconds(&self) -> f64 {
        match (self.computed, computed_ns()) {
            (Some(from), Some(to)) => (to - from) as f64 / 1e9,
            _ => self.begun.elapsed().as_secs_f64(),
        }
    }
}

/// Returns the nanoseconds that the system has given this thread. Linux brings them up to date when a thread yields.
fn computed_ns() -> Option<u64> {
    thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Actions between two looks at the clock.
const ACTIONS_PER_LOOK: u64 = 16 * 1024;

/// Actions between two lines that say how far a run is.
const ACTIONS_PER_LINE: u64 = 1 << 28;

/// Counts actions, and stops the run after `seconds`.
struct Limit {
    clock: Clock,
    seconds: f64,
    actions: u64,
    over: bool,
}

impl Observer for Limit {
    fn after_action(&mut self, simulation: &mut Simulation) {
        self.actions += 1;
        if self.actions.is_multiple_of(ACTIONS_PER_LOOK) {
            self.over = self.clock.seconds() > self.seconds;
        }
        if self.actions.is_multiple_of(ACTIONS_PER_LINE) {
            eprintln!("{} transactions", simulation.stats().counters.committed_transactions);
        }
    }

    fn stops(&self) -> bool {
        self.over
    }
}

/// Simulation that a line asks for.
#[derive(Deserialize)]
struct Asked {
    design: String,
    workload: String,
    machine: String,
    threads: u64,
    transactions: u64,
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// Processor seconds after which the run is cut.
    seconds: Option<f64>,
}

impl Asked {
    fn simulation(&self, registry: &Registry) -> Result<Simulation, ConfigError> {
        let mut config = registry.machine(&self.machine)?;
        for (key, value) in &self.set {
            config.set(key, value)?;
        }
        let (threads, transactions) = (Some(self.threads), Some(self.transactions));
        let spec = registry.spec(config, &self.design, &self.workload, threads, transactions, 1)?;
        Simulation::new(&spec)
    }

    /// Simulates; returns what it cost, or why it does not run.
    fn measured(&self, registry: &Registry) -> Value {
        let start_kb = memory_kb("VmRSS");
        let clock = Clock::start();
        let mut simulation = match self.simulation(registry) {
            Ok(simulation) => simulation,
            Err(why) => return json!({ "outcome": "refused", "why": why.to_string() }),
        };
        let (build_seconds, built_kb) = (clock.seconds(), memory_kb("VmRSS"));
        let seconds = self.seconds.unwrap_or(f64::INFINITY);
        let mut limit = Limit { clock: Clock::start(), seconds, actions: 0, over: false };
        let ended = simulation.advance_observed(u64::MAX, &mut limit);
        let run_seconds = limit.clock.seconds();
        let outcome = match ended {
            Ok(true) => "ended".into(),
            Ok(false) => "cut".into(),
            Err(SimError::Design { why, .. }) => {
                return json!({ "outcome": "refused", "why": why.to_string() });
            }
            Err(SimError::ReadCheck { .. }) => "violated".into(),
            Err(why) => why.to_string(),
        };
        let counts = simulation.counts();
        json!({
            "outcome": outcome,
            "build_seconds": build_seconds,
            "run_seconds": run_seconds,
            "start_kb": start_kb,
            "built_kb": built_kb,
            "peak_kb": memory_kb("VmHWM"),
            "actions": limit.actions,
            "operations": counts["loads"] + counts["stores"],
            "transactions": counts["committed_transactions"],
            "cycles": simulation.machine().now(),
            "populated_bytes": simulation.footprint_bytes(),
        })
    }
}

fn main() -> io::Result<()> {
    let mut registry = graven::standard();
    registry.workload(&SPARSE);
    let registry: &'static Registry = Box::leak(Box::new(registry));
    for line in io::stdin().lock().lines() {
        let asked: Asked = serde_json::from_str(&line?)?;
        let measured = catch_unwind(AssertUnwindSafe(|| asked.measured(registry)));
        println!("{}", measured.unwrap_or_else(|_| json!({ "outcome": "panicked" })));
        io::stdout().flush()?;
    }
    Ok(())
}
