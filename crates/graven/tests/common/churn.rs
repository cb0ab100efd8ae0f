//! A workload of few words that are stored again and again.

use super::test_workload;
use graven::config::ConfigError;
use graven::memory::Image;
use graven::program::{Load, Memory, Program, Ptr, spawn};
use graven::workload::{BrokenInvariant, Request, Workload, WorkloadInfo};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Few words that are stored again and again: each thread has sixteen lines of its own and stores to two
/// words of each, sometimes twice in a row, mostly values that the word has held before; it reads lines
/// further away, so that its own leave the caches. Some transactions are large, some stay open for long.
pub static CHURN: WorkloadInfo =
    test_workload("churn", "few words, stored often", |request| churn(request, 1, false));

/// The same, but the values lie in any of four bytes of their words.
pub static WIDE_CHURN: WorkloadInfo =
    test_workload("wide-churn", "few words, stored often, byte by byte", |request| {
        churn(request, 4, false)
    });

/// The same as [`CHURN`], with non-temporal stores among others.
pub static STREAMING_CHURN: WorkloadInfo = test_workload(
    "streaming-churn",
    "few words, stored often, some beside the caches",
    |request| churn(request, 1, true),
);

struct Churn {
    request: Request,
    bytes: u32,
    /// Some stores are non-temporal.
    streams: bool,
}

fn churn(request: &Request, bytes: u32, streams: bool) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(Churn { request: request.clone(), bytes, streams }))
}

const CHURN_LINES: u64 = 16;

impl Workload for Churn {
    fn populate(&self, _image: &mut Image) {}

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let transactions = self.request.transactions_of(thread);
        let near = Ptr::known(self.request.start.plus(u64::from(thread) * CHURN_LINES * 64));
        let far = Ptr::known(self.request.start.plus(1 << 20));
        let mut random = Pcg64::seed_from_u64(self.request.seed << 8 | u64::from(thread));
        let (bytes, streams) = (self.bytes, self.streams);
        let value = move |random: &mut Pcg64| {
            let value = random.random_range(0..4u64);
            if bytes == 1 { value } else { value << (8 * random.random_range(0..bytes)) }
        };
        spawn(move |memory| {
            for number in 1..=transactions {
                memory.tx_begin();
                let stores = if number % 16 == 0 { 40 } else { random.random_range(1..8) };
                for store in 0..stores {
                    let line = random.random_range(0..CHURN_LINES);
                    let at = near.word(line * 8 + random.random_range(0..2));
                    if streams && number % 4 == 1 && store % 5 == 4 {
                        memory.store_non_temporal(at, value(&mut random));
                    } else {
                        memory.store(at, value(&mut random));
                    }
                    match random.random_range(0..8) {
                        0 | 1 => memory.store(at, value(&mut random)),
                        2 | 3 => drop(memory.load(far.word(random.random_range(0..2048) * 8))),
                        _ => {}
                    }
                    if store == 0 && number % 8 == 4 {
                        memory.compute(20_000);
                    }
                }
                memory.tx_end();
            }
        })
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}
