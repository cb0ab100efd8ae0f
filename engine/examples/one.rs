//! One simulation from the command line, for profiling: `one DESIGN WORKLOAD [TRANSACTIONS] [KEY=VALUE…]`.

use std::time::Instant;

use graven_engine::config::Config;
use graven_engine::sim::{Simulation, Spec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let design = args.next().ok_or("a design")?;
    let workload = args.next().ok_or("a workload")?;
    let transactions = args.next().unwrap_or_else(|| "10000".into()).parse()?;
    let mut config = Config::from_preset("silo")?;
    for setting in args {
        let (key, value) = setting.split_once('=').ok_or("KEY=VALUE")?;
        config.set(key, value)?;
    }
    let begun = Instant::now();
    let spec = Spec::new(config, &design, &workload, None, Some(transactions), 1)?;
    let mut simulation = Simulation::new(&spec)?;
    let built = Instant::now();
    let digest = simulation.run()?;
    let run = built.elapsed().as_secs_f64();
    let c = &simulation.stats().counters;
    let operations = c.loads + c.stores;
    println!(
        "{design:6} {workload:7} build {:.2} s, run {run:.2} s, {:.2} M operations/s, {:.2} M instructions/s; {} cycles, \
         {} media writes ({} data {} log {} metadata), commit {:.0}, transaction {:.0}, l1 {}/{}, llc misses {}, ops/tx {:.1}, stores/tx {:.1}, {digest:x}",
        (built - begun).as_secs_f64(),
        operations as f64 / run / 1e6,
        c.instructions as f64 / run / 1e6,
        c.cycles,
        c.media_write_requests,
        c.media_write_requests_data,
        c.media_write_requests_log,
        c.media_write_requests_metadata,
        simulation.stats().commit_latency.mean(),
        simulation.stats().transaction_latency.mean(),
        c.l1_hits,
        c.l1_hits + c.l1_misses,
        c.llc_misses,
        operations as f64 / transactions as f64,
        c.transactional_stores as f64 / transactions as f64,
    );
    Ok(())
}
