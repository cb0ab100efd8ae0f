//! One run, crashed at every crash point: `exhaust DESIGN WORKLOAD [TRANSACTIONS] [KEY=VALUE…]`, with
//! configuration keys, and besides `mutant`, `garbage`, `adversary`, `first` (transaction), `threads`, `seed`,
//! `torn`, `flight`, `recovery` (every so many), and `tiny` for small caches, queues and regions.

use std::time::Instant;

use graven::lab::explorer::{CrashRun, STATES, Thoroughness};
use graven::lab::litmus::Choices;
use graven::sim::CrashOptions;

const TINY: [(&str, &str); 19] = [
    ("l1.bytes", "512"),
    ("l1.ways", "2"),
    ("l2.bytes", "1 KB"),
    ("l2.ways", "2"),
    ("llc.bytes", "8 KB"),
    ("llc.ways", "4"),
    ("controller.write_queue_entries", "4"),
    ("pm.buffer_lines", "2"),
    ("pm.capacity_bytes", "64 MB"),
    ("pm.log_region_bytes", "4 MB"),
    ("dram.capacity_bytes", "1 MB"),
    ("workload.footprint_bytes", "256 KB"),
    ("tpcc.items", "40"),
    ("tpcc.districts", "2"),
    ("tpcc.customers_per_district", "12"),
    ("tpcc.orders_per_district", "10"),
    ("smallbank.customers", "400"),
    ("smallbank.hotspot_customers", "40"),
    ("tatp.subscribers", "200"),
];

fn registry() -> &'static graven::Registry {
    static REGISTRY: std::sync::OnceLock<graven::Registry> = std::sync::OnceLock::new();
    REGISTRY.get_or_init(graven::standard)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [design, workload, rest @ ..] = args.as_slice() else {
        panic!("usage: exhaust DESIGN WORKLOAD [TRANSACTIONS] [KEY=VALUE…]")
    };
    let mut config = registry().machine("silo").expect("the preset loads");
    let mut transactions = 1000;
    let (mut how, mut crash_options, mut threads, mut seed) =
        (Thoroughness::LONG, CrashOptions::default(), 8, 1);
    for arg in rest {
        match arg.split_once('=') {
            Some(("torn", value)) => how.torn_every = value.parse().expect("a number"),
            Some(("flight", value)) => how.in_flight_every = value.parse().expect("a number"),
            Some(("recovery", value)) => how.recovery_every = value.parse().expect("a number"),
            Some(("mutant", name)) => {
                let design = registry().find_design(design).unwrap_or_else(|e| panic!("{e}"));
                crash_options.mutants = design.mutant(name).unwrap_or_else(|e| panic!("{e}"));
            }
            Some(("garbage", value)) => {
                crash_options.garbage = Some(value.parse().expect("a seed"))
            }
            Some(("adversary", value)) => {
                crash_options.adversary = Some(Choices::Drawn(value.parse().expect("a seed")))
            }
            Some(("first", value)) => {
                crash_options.first_transaction = value.parse().expect("a number")
            }
            Some(("threads", value)) => threads = value.parse().expect("a number"),
            Some(("seed", value)) => seed = value.parse().expect("a seed"),
            Some((key, value)) => config.set(key, value).unwrap_or_else(|e| panic!("{e}")),
            None if arg == "tiny" => {
                for (key, value) in TINY {
                    config.set(key, value).unwrap_or_else(|e| panic!("{e}"));
                }
            }
            None => transactions = arg.parse().expect("a number of transactions"),
        }
    }
    let spec = registry().spec(config, design, workload, Some(threads), Some(transactions), seed);
    let mut spec = spec.unwrap_or_else(|e| panic!("{e}"));
    spec.crash_options = crash_options;
    let began = Instant::now();
    let run = CrashRun::new(&spec, None, how).unwrap_or_else(|e| panic!("{e}"));
    let outcome = run.run(None).unwrap_or_else(|e| panic!("{e}"));
    let seconds = began.elapsed().as_secs_f64();
    println!("{:?}", outcome.tally);
    println!("{:.0} power failures/s, {seconds:.2} s", outcome.tally.recoveries() as f64 / seconds);
    for (state, count) in STATES.iter().zip(outcome.coverage.counts()) {
        println!("{count:>10} {}", state.name);
    }
    println!("{:?} {:#?}", outcome.refused, outcome.violations);
}
