//! The properties of a trace's programs, as papers describe theirs: transactions and their sizes, stores that change nothing,
//! what is used again.
//!
//! Threads are looked at one after the other, each over the memory that those before it have left: what several threads
//! share may be counted as changed, or as unchanged, where a run would find otherwise.

use std::io::{Read, Seek};

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use super::error::TraceError;
use super::reader::Reader;
use super::volatile::volatile_offset;
use graven_base::control::Control;
use graven_base::memory::{Addr, Image, LineAddr};
use graven_machine::program::Op;

/// Sizes of transactions, in some unit.
#[derive(Clone, Debug, Default)]
struct Sizes(Vec<u32>);

impl Sizes {
    fn to_json(&self) -> Value {
        let mut all = self.0.clone();
        all.sort_unstable();
        let at = |share: f64| {
            let last = all.len().checked_sub(1)?;
            all.get((last as f64 * share).round() as usize).copied()
        };
        let sum: u64 = all.iter().map(|&n| u64::from(n)).sum();
        let mean = if all.is_empty() { None } else { Some(sum as f64 / all.len() as f64) };
        json!({ "mean": mean, "p50": at(0.5), "p99": at(0.99), "max": all.last() })
    }
}

/// The counts of all threads.
#[derive(Clone, Debug, Default)]
struct Properties {
    loads: u64,
    stores: u64,
    non_temporal: u64,
    instructions: u64,
    locks: u64,
    outside: u64,
    /// Stores of the value that the word had.
    silent: u64,
    /// Bytes of stored words, and those of them that the store did not change.
    bytes: u64,
    clean: u64,
    /// Stores within a transaction to a word that it has stored to.
    again: u64,
    stores_of: Sizes,
    words_of: Sizes,
    lines_of: Sizes,
    /// For each store, the number of other lines to which its thread has stored since its last store to this one.
    reuse: Sizes,
    lines_stored: FxHashSet<LineAddr>,
    lines: FxHashSet<LineAddr>,
    /// Loads of volatile memory, which nothing else here counts.
    volatile_loads: u64,
    volatile_stores: u64,
    volatile_lines: FxHashSet<LineAddr>,
}

/// The transaction that a thread is in.
#[derive(Default)]
struct Running {
    stores: u32,
    words: FxHashSet<Addr>,
    lines: FxHashSet<LineAddr>,
}

/// Most lines that are remembered for what is used again.
const REUSE_MAX: usize = 4096;

/// The distance of stores whose reuse is looked at.
const REUSE_EVERY: u64 = 64;

/// The lines that a thread has stored to last, the newest last.
#[derive(Default)]
struct Recent {
    newest: FxHashMap<LineAddr, u64>,
    clock: u64,
}

impl Recent {
    /// A store; on some, how many other lines came in between, if the line was stored to not too long ago.
    fn store(&mut self, line: LineAddr, is_asked: bool) -> Option<u32> {
        self.clock += 1;
        let last = self.newest.insert(line, self.clock);
        if self.newest.len() > 2 * REUSE_MAX {
            let mut times: Vec<u64> = self.newest.values().copied().collect();
            times.sort_unstable();
            let oldest = times[times.len() - REUSE_MAX];
            self.newest.retain(|_, time| *time >= oldest);
        }
        let last = last.filter(|_| is_asked)?;
        Some(self.newest.values().filter(|&&time| time > last).count() as u32 - 1)
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Looks through all of the trace. The result is a document: `transactions` with `stores`, `words` and `lines` of each
    /// (mean, p50, p99, max), `stores`, `silent_share`, `clean_share`, `again_share`, `outside`, `non_temporal`, `loads`,
    /// `instructions`, `instructions_per_store`, `access_share`, `locks`, `lines_stored`, `lines`, `reuse_lines`; all of persistent
    /// memory, but for `instructions`, `volatile_loads`, `volatile_stores` and `volatile_lines`.
    ///
    /// # Errors
    /// A fault of the trace; the caller cancels.
    pub fn properties(&self, control: &Control) -> Result<Value, TraceError> {
        let (mut all, mut image) = (Properties::default(), Image::new());
        self.populate(&mut image)?;
        for thread in 0..self.contents().threads.len() as u32 {
            let mut stream = self.thread(thread);
            let (mut running, mut recent) = (None, Recent::default());
            loop {
                let batch = stream.next_batch()?;
                if batch.is_empty() {
                    break;
                }
                for op in batch {
                    all.follow(op, &mut running, &mut recent, &mut image);
                }
                if control.report(0) {
                    return Err(TraceError::Cancelled);
                }
            }
        }
        Ok(all.to_json())
    }
}

impl Properties {
    fn follow(
        &mut self,
        op: &Op,
        running: &mut Option<Running>,
        recent: &mut Recent,
        image: &mut Image,
    ) {
        match *op {
            Op::Load { at } if volatile_offset(at.addr).is_some() => {
                self.volatile_loads += 1;
                self.volatile_lines.insert(at.addr.line());
            }
            Op::Store { at, .. } | Op::StoreNonTemporal { at, .. }
                if volatile_offset(at.addr).is_some() =>
            {
                self.volatile_stores += 1;
                self.volatile_lines.insert(at.addr.line());
            }
            Op::Load { at } => {
                self.loads += 1;
                self.lines.insert(at.addr.line());
            }
            Op::Store { at, value } | Op::StoreNonTemporal { at, value } => {
                self.non_temporal += u64::from(matches!(op, Op::StoreNonTemporal { .. }));
                self.store(at.addr, value, running, recent, image);
            }
            Op::Compute { instructions } => self.instructions += u64::from(instructions),
            Op::TxBegin => *running = Some(Running::default()),
            Op::TxEnd => {
                let Running { stores, words, lines } = running.take().unwrap_or_default();
                self.stores_of.0.push(stores);
                self.words_of.0.push(words.len() as u32);
                self.lines_of.0.push(lines.len() as u32);
            }
            Op::Lock { .. } => self.locks += 1,
            _ => {}
        }
    }

    fn store(
        &mut self,
        addr: Addr,
        value: u64,
        running: &mut Option<Running>,
        recent: &mut Recent,
        image: &mut Image,
    ) {
        self.stores += 1;
        let line = addr.line();
        self.lines.insert(line);
        self.lines_stored.insert(line);
        let changed = image.store(addr, value) ^ value;
        self.silent += u64::from(changed == 0);
        self.bytes += 8;
        self.clean += changed.to_le_bytes().iter().filter(|&&byte| byte == 0).count() as u64;
        let is_asked = self.stores.is_multiple_of(REUSE_EVERY);
        self.reuse.0.extend(recent.store(line, is_asked));
        match running {
            None => self.outside += 1,
            Some(running) => {
                running.stores += 1;
                running.lines.insert(line);
                self.again += u64::from(!running.words.insert(addr));
            }
        }
    }

    fn to_json(&self) -> Value {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let accesses = self.loads + self.stores;
        let volatile = self.volatile_loads + self.volatile_stores;
        let instructions = self.instructions + accesses + volatile;
        json!({
            "transactions": {
                "count": self.stores_of.0.len(),
                "stores": self.stores_of.to_json(),
                "words": self.words_of.to_json(),
                "lines": self.lines_of.to_json(),
            },
            "stores": self.stores,
            "outside": self.outside,
            "non_temporal": self.non_temporal,
            "silent_share": share(self.silent, self.stores),
            "clean_share": share(self.clean, self.bytes),
            "again_share": share(self.again, self.stores),
            "loads": self.loads,
            "instructions": instructions,
            "instructions_per_store": share(instructions, self.stores),
            "access_share": share(accesses, instructions),
            "locks": self.locks,
            "lines_stored": self.lines_stored.len(),
            "lines": self.lines.len(),
            "reuse_lines": self.reuse.to_json(),
            "volatile_loads": self.volatile_loads,
            "volatile_stores": self.volatile_stores,
            "volatile_lines": self.volatile_lines.len(),
        })
    }
}
