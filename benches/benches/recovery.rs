//! Recovery of HOOP's OOP region on 1 to N threads of this host (HOOP §IV-G: 1 GB): real slices, real bytes, and
//! the simulated time of the same recovery on memories of several bandwidths.
//!
//! `cargo bench -p graven --bench recovery -- [MEGABYTES] [THREADS_MAX] [HOME_MEGABYTES]`. Not a criterion benchmark: a
//! recovery empties the region, which takes longer to fill than to recover.

use std::time::Instant;

use graven::design::DesignContext;
use graven::designs::hoop::{Work, recover_measured, recovery_ns, write_transactions};
use graven::memory::{Addr, Image, LineAddr};
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
    let config = graven::standard().machine("hoop").unwrap_or_else(|e| panic!("{e}"));
    let log = Addr(1 << 34);
    let context = DesignContext::new(config, 1, log, log.plus((megabytes << 20) + (1 << 20)));
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
    println!("\nsimulated, 50 ns reads and 150 ns writes, in ms:");
    let bandwidths = [5.0, 10.0, 15.0, 20.0, 25.0, 30.0];
    print!("{:>8}", "threads");
    bandwidths.iter().for_each(|b| print!(" {:>9}", format!("{b} GB/s")));
    println!();
    for threads in [1, 2, 4, 8, 16] {
        print!("{threads:>8}");
        for bandwidth in bandwidths {
            print!(" {:>9.1}", recovery_ns(&work, threads, bandwidth, 50.0, 150.0) / 1e6);
        }
        println!();
    }
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
