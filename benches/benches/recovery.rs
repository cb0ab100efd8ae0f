//! Recovery of HOOP's OOP region (HOOP §IV-G, Fig. 11: 1 GB): real slices, real bytes, on 1 to N threads of this host; and
//! its simulated time on memories of several bandwidths, executed on the machine and by the closed form.
//!
//! `cargo bench -p graven-benches --bench recovery -- [MEGABYTES] [THREADS_MAX] [HOME_MEGABYTES] [EXECUTED_MEGABYTES]`.
//! What is executed is a region of its own size, since each of its forty cases is a simulation. Not a criterion benchmark:
//! a recovery empties the region, which takes longer to fill than to recover.

use std::sync::Arc;
use std::time::Instant;

use graven::design::DesignContext;
use graven::designs::hoop::{Work, recover_measured, recovery_ns, write_transactions};
use graven::memory::{Addr, Image, LineAddr};
use graven::recovery::execute;
use graven::surviving::SurvivingImage;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Items of 64 B that a transaction stores: two full slices.
const ITEMS: u64 = 2;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|a| a.parse::<u64>().ok());
    let megabytes = numbers.next().unwrap_or(1024);
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let threads_max = numbers.next().unwrap_or(2 * cores);
    let home_bytes = numbers.next().unwrap_or(256) << 20;
    let context = region(megabytes);
    let (written, slices) = fill(&context, home_bytes);
    println!("{megabytes} MB of OOP region, {slices} slices, homes in {} MB", home_bytes >> 20);
    println!("{:>8} {:>10} {:>8} {:>12}", "threads", "ms", "GB/s", "words home");
    let mut work = Work::default();
    let mut threads = 1;
    while threads <= threads_max {
        let mut image = SurvivingImage::new(written.clone());
        image.forget_writes();
        let start = Instant::now();
        work = recover_measured(&context, &mut image, threads as usize);
        let seconds = start.elapsed().as_secs_f64();
        let rate = (megabytes << 20) as f64 / seconds / 1e9;
        println!("{threads:>8} {:>10.0} {rate:>8.2} {:>12}", seconds * 1e3, work.words);
        threads *= 2;
    }
    let table = |name: &str, ms: &dyn Fn(u32, f64) -> f64| {
        println!("\n{name}, in ms:");
        print!("{:>8}", "threads");
        BANDWIDTHS.iter().for_each(|b| print!(" {:>9}", format!("{b} GB/s")));
        println!();
        for threads in [1, 2, 4, 8, 16] {
            print!("{threads:>8}");
            BANDWIDTHS.iter().for_each(|&b| print!(" {:>9.2}", ms(threads, b)));
            println!();
        }
    };
    let closed =
        |work: &Work, threads, bandwidth| recovery_ns(work, threads, bandwidth, 50.0, 150.0) / 1e6;
    table("closed form, 50 ns reads and 150 ns writes", &|t, b| closed(&work, t, b));

    let megabytes = numbers.next().unwrap_or(16).min(megabytes);
    let context = region(megabytes);
    let (written, slices) = fill(&context, home_bytes * megabytes / 1024);
    let mut image = SurvivingImage::new(written.clone());
    let work = recover_measured(&context, &mut image, 1);
    println!("\n{megabytes} MB of OOP region, {slices} slices:");
    table("closed form", &|t, b| closed(&work, t, b));
    table("executed, banks that never limit (pm.banks = 64)", &|t, b| {
        executed(&context, &written, t, b, &[("pm.banks", "64")])
    });
    table("executed, 8 banks", &|t, b| executed(&context, &written, t, b, &[]));
}

/// Bandwidths of the memory's bus, in GB/s.
const BANDWIDTHS: [f64; 4] = [5.0, 10.0, 20.0, 30.0];

/// Makes a log region of `megabytes` on HOOP's machine.
fn region(megabytes: u64) -> DesignContext {
    let mut config = graven::standard().machine("hoop").unwrap_or_else(|e| panic!("{e}"));
    let log = Addr(1 << 34);
    for (key, value) in [
        ("pm.capacity_bytes", format!("{} MB", (1 << 14) + megabytes + 1)),
        ("pm.log_region_bytes", format!("{} MB", megabytes + 1)),
    ] {
        config.set(key, &value).unwrap_or_else(|e| panic!("{e}"));
    }
    DesignContext::new(config, 1, log, log.plus((megabytes << 20) + (1 << 20)))
}

/// Executes the recovery on `threads` threads and a bus of `bandwidth` bytes per nanosecond; returns its milliseconds.
fn executed(
    context: &DesignContext,
    written: &Image,
    threads: u32,
    bandwidth: f64,
    set: &[(&str, &str)],
) -> f64 {
    let mut config = context.config.clone();
    let own = [
        ("hoop.recovery_threads", threads.to_string()),
        ("pm.burst_ns", (64.0 / bandwidth).to_string()),
    ];
    let set = set.iter().map(|&(key, value)| (key, value.to_owned()));
    for (key, value) in own.into_iter().chain(set) {
        config.set(key, &value).unwrap_or_else(|e| panic!("{e}"));
    }
    let registry = graven::standard();
    let spec = registry.spec(config.clone(), "hoop", "vector", Some(1), Some(1), 1);
    let spec = spec.unwrap_or_else(|e| panic!("{e}"));
    let context = DesignContext { config, ..context.clone() };
    let mut image = SurvivingImage::new(written.clone());
    image.forget_writes();
    image.keep_steps();
    recover_measured(&context, &mut image, threads as usize);
    let steps = image.take_steps();
    let executed = execute(&spec, written.clone(), steps, image.image(), &Arc::default());
    let executed = executed.unwrap_or_else(|e| panic!("{e}"));
    executed.cycles as f64 / 2.5e6
}

/// A region full of transactions on random items.
fn fill(context: &DesignContext, home_bytes: u64) -> (Image, u64) {
    let mut random = Pcg64::seed_from_u64(1);
    let mut transaction = move || {
        let items = (0..ITEMS).map(|_| LineAddr(64 + random.random_range(0..home_bytes / 64)));
        let items: Vec<LineAddr> = items.collect();
        let words = items.iter().flat_map(|item| (0..8).map(|word| item.word(word)));
        words.map(|home| (home, random.random())).collect()
    };
    let mut image = SurvivingImage::default();
    image.forget_writes();
    let transactions = std::iter::from_fn(move || Some(transaction()));
    let (_, slices) = write_transactions(context, &mut image, transactions);
    (image.into_image(), slices)
}
