//! `graven memory` without Python, for profiling: `memory FILE read|replay [KEY=VALUE…]` reads the requests of a
//! trace, or replays them; `machine=PRESET` takes another machine than `silo` (put it first).

use std::fs::File;
use std::time::Instant;

use graven::trace::requests::Reader;
use graven::trace::requests::replay::Replay;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("a file")?;
    let replays = match args.next().as_deref() {
        Some("read") => false,
        Some("replay") => true,
        _ => return Err("read, or replay".into()),
    };
    let registry = graven::standard();
    let mut config = registry.machine("silo")?;
    for setting in args {
        let (key, value) = setting.split_once('=').ok_or("KEY=VALUE")?;
        match key {
            "machine" => config = registry.machine(value)?,
            _ => config.set(key, value)?,
        }
    }
    let mut reader = Reader::new(File::open(&path)?);
    let begun = Instant::now();
    let (requests, check) = if replays {
        let record = Replay::new(&config).run(&mut reader)?;
        println!("longest read {} cycles", record.stats.read_latency.max());
        (record.requests, record.stats.counters.cycles)
    } else {
        let mut requests = 0;
        let mut check = 0u64;
        for request in reader {
            let request = request?;
            requests += 1;
            check = check.wrapping_mul(3) ^ request.cycle ^ request.line.0;
        }
        (requests, check)
    };
    let seconds = begun.elapsed().as_secs_f64();
    let rate = requests as f64 / seconds / 1e6;
    println!("{requests} requests in {seconds:.3} s, {rate:.2} M/s, {check}");
    Ok(())
}
