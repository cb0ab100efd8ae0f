//! One simulation from the command line, for profiling: `one DESIGN WORKLOAD [TRANSACTIONS] [KEY=VALUE…]`;
//! `machine=PRESET` takes another machine than `silo` (put it first), `mutant=NAME` puts one of the design's mutants in force.

use std::time::Instant;

use graven::design::MutantSet;

use graven::sim::Simulation;

fn registry() -> &'static graven::Registry {
    static REGISTRY: std::sync::OnceLock<graven::Registry> = std::sync::OnceLock::new();
    REGISTRY.get_or_init(graven::standard)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let design = args.next().ok_or("a design")?;
    let workload = args.next().ok_or("a workload")?;
    let transactions = args.next().unwrap_or_else(|| "10000".into()).parse()?;
    let mut config = registry().machine("silo")?;
    let mut mutants = MutantSet::NONE;
    for setting in args {
        let (key, value) = setting.split_once('=').ok_or("KEY=VALUE")?;
        match key {
            "machine" => config = registry().machine(value)?,
            "mutant" => mutants = mutants.and(registry().find_design(&design)?.mutant(value)?),
            _ => config.set(key, value)?,
        }
    }
    let begun = Instant::now();
    let mut spec = registry().spec(config, &design, &workload, None, Some(transactions), 1)?;
    spec.crash_options.mutants = mutants;
    let mut simulation = Simulation::new(&spec)?;
    let built = Instant::now();
    let digest = simulation.run()?;
    let run = built.elapsed().as_secs_f64();
    let c = &simulation.counts();
    let operations = c["loads"] + c["stores"];
    println!(
        "{design:6} {workload:7} build {:.2} s, run {run:.2} s, {:.2} M operations/s, {:.2} M instructions/s; {} cycles, \
         {} in-place updates, {} log entries dropped, {} media writes ({} data {} log {} metadata), commit {:.0}, transaction {:.0}, l1 {}/{}, llc misses {}, ops/tx {:.1}, stores/tx {:.1}, {digest:x}",
        (built - begun).as_secs_f64(),
        operations as f64 / run / 1e6,
        c["instructions"] as f64 / run / 1e6,
        c["cycles"],
        c.get("in_place_updates").unwrap_or(0),
        c.get("log_entries_discarded").unwrap_or(0),
        c["media_write_requests"],
        c["media_write_requests_data"],
        c["media_write_requests_log"],
        c["media_write_requests_metadata"],
        simulation.stats().commit_latency.mean(),
        simulation.stats().transaction_latency.mean(),
        c["l1_hits"],
        c["l1_hits"] + c["l1_misses"],
        c["llc_misses"],
        operations as f64 / transactions as f64,
        c["transactional_stores"] as f64 / transactions as f64,
    );
    Ok(())
}
