//! A workload of few words that are stored again and again.

use graven_engine::config::ConfigError;
use graven_engine::memory::Image;
use graven_engine::program::{Load, Memory, Program, Ptr, spawn};
use graven_engine::workloads::{Entry, Request, Violation, Workload};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Few words that are stored again and again: each thread has sixteen lines of its own and stores to two
/// words of each, sometimes twice in a row, mostly values that the word has held before; it reads lines
/// further away, so that its own leave the caches. Some transactions are large, some stay open for long.
pub static CHURN: Entry =
    Entry { name: "churn", group: "test", summary: "few words, stored often", build: churn };

struct Churn(Request);

fn churn(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(Churn(request.clone())))
}

const CHURN_LINES: u64 = 16;

impl Workload for Churn {
    fn populate(&mut self, _image: &mut Image) {}

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let transactions = self.0.transactions_of(thread);
        let near = Ptr::known(self.0.start.plus(u64::from(thread) * CHURN_LINES * 64));
        let far = Ptr::known(self.0.start.plus(1 << 20));
        let mut random = Pcg64::seed_from_u64(self.0.seed << 8 | u64::from(thread));
        spawn(move |memory| {
            for number in 1..=transactions {
                memory.tx_begin();
                let stores = if number % 16 == 0 { 40 } else { random.random_range(1..8) };
                for store in 0..stores {
                    let line = random.random_range(0..CHURN_LINES);
                    let at = near.word(line * 8 + random.random_range(0..2));
                    memory.store(at, random.random_range(0..4));
                    match random.random_range(0..8) {
                        0 | 1 => memory.store(at, random.random_range(0..4)),
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

    fn check(&self, _image: &Image) -> Result<(), Violation> {
        Ok(())
    }
}
