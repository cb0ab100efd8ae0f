//! A workload whose transactions share lines, word by word.

use super::test_workload;
use graven::memory::{Addr, Image, LINE_BYTES};
use graven::program::{Load, Memory, Program, Ptr, Thread, spawn};
use graven::workload::{BrokenInvariant, Request, Workload, WorkloadInfo};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Lines of which each thread stores to words of its own (the lower four) and, under a lock per word, to
/// words of all (the upper four). Every transaction leaves the sum of all words as it was; every fifth
/// stores nothing; every seventh stores to each line.
pub static SHARED_LINES: WorkloadInfo =
    test_workload("shared lines", "different words of the same lines", |request| {
        Ok(Box::new(SharedLines { request: request.clone() }))
    });

/// How many lines.
pub const LINES: u64 = 48;
/// For how many threads each line has a word.
pub const THREADS: u32 = 4;

struct SharedLines {
    request: Request,
}

/// A word of a line.
pub fn word(start: Addr, line: u64, word: u64) -> Ptr {
    Ptr::known(start.plus(line * LINE_BYTES + word * 8))
}

fn add(memory: &mut Thread<'_>, at: Ptr, more: u64) {
    let value = memory.load(at);
    memory.store(at, value.wrapping_add(more));
}

impl Workload for SharedLines {
    fn populate(&self, image: &mut Image) {
        for at in 0..LINES * 8 {
            image.store(self.request.start.plus(at * 8), at);
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let start = self.request.start;
        let transactions = self.request.transactions_of(thread);
        let mut random = Pcg64::seed_from_u64(self.request.seed << 8 | u64::from(thread));
        spawn(move |memory| {
            for number in 0..transactions {
                let mut locks: Vec<u32> =
                    (0..4).map(|_| random.random_range(0..LINES as u32 * 4)).collect();
                locks.sort_unstable();
                locks.dedup();
                locks.iter().for_each(|&lock| memory.lock(lock));
                memory.tx_begin();
                if number % 5 == 4 {
                    memory.load(word(start, 0, 0));
                } else {
                    let mut added = 0;
                    let lines = if number % 7 == 6 { LINES } else { random.random_range(1..8) };
                    for i in 0..lines {
                        let line = if lines == LINES { i } else { random.random_range(0..LINES) };
                        let more = random.random_range(1..9);
                        added += more;
                        add(memory, word(start, line, thread.into()), more);
                    }
                    for &lock in &locks {
                        added += 1;
                        add(memory, word(start, (lock / 4).into(), 4 + u64::from(lock % 4)), 1);
                    }
                    add(memory, word(start, 0, thread.into()), added.wrapping_neg());
                }
                memory.tx_end();
                locks.iter().for_each(|&lock| memory.unlock(lock));
            }
        })
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        let words = (0..LINES * 8).map(|at| image.load(self.request.start.plus(at * 8)));
        let (sum, expected): (u64, u64) = (words.fold(0, u64::wrapping_add), (0..LINES * 8).sum());
        let what = format!("words add up to {sum}, not {expected}");
        let structure = "shared lines".into();
        if sum == expected { Ok(()) } else { Err(BrokenInvariant { structure, what }) }
    }
}
