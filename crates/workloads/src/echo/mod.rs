//! `echo`: a versioned key-value store into which threads merge what they have gathered.
//!
//! Models Echo, which MorLog runs (Table IV) as one of WHISPER's programs: a store in PM for all (the *master*) and a
//! store in DRAM for each thread (the *local* one). A client puts keys into its local store; then it commits: what is
//! there becomes a commit record in PM, is looked up in the master for conflicts, and added to the master as new
//! versions under one timestamp. A transaction is one commit.
//!
//! | bytes | |
//! |---|---|
//! | 64 per stripe, 8 per bucket | the master ([`Versions`]) |
//! | 64, and 16 per put, per thread | commit record ([`record`]) |
//! | 64, tables of versions and values, per thread | arenas |
//!
//! All threads work on one master, whatever `sharing` says: 1,024 stripes of buckets with a lock each. A commit takes those of its
//! keys in ascending order, before it begins. Echo's merges lock keys one by one and give up if a key has a version younger than
//! the commit's snapshot; with all locks held there is no such conflict, and the look-up remains. Echo's snapshots are
//! numbered by one counter, which would have commits follow one another; here a commit's timestamp is the least that is
//! greater than its thread's last one and those of the versions it meets.
//!
//! Operations on the local store are counted as instructions. **`insert_percent` of the puts are of
//! new keys and `remove_percent` of them are deletions, which put a version without a value; the
//! workload section's default of 100 % and 0 % means here that every put is of an existing key.**
//! Of several puts of one key the last counts. A put writes a whole value: `update_bytes` has no
//! effect. `echo.batch_puts` puts are an operation, of which a transaction has
//! `operations_per_transaction`.
//!
//! No source gives the number of puts of a commit; the default is assumed. Left out: reads (MorLog prints no ratio);
//! snapshots that clients read from, and the collection of what no snapshot needs: a key keeps its last four versions,
//! in place of Echo's vector that grows; a process for the master, as Echo's merges are done by the thread that commits.

mod record;

use record::Record;

use super::costs;
use super::layout::{Layout, Placed, Plan, Share};
use super::locking::{self, STORE_STRIPES};
use super::structures::keys::{Action, Keys, Numbering};
use super::structures::{Arena, Census, Chains, Element, Versions};
use graven_base::config::ConfigError;
use graven_base::memory::{Image, WORD_BYTES};
use graven_base::section;
use graven_machine::program::{Direct, Load, LockId, Memory, Program, Ptr, Thread, spawn};
use graven_machine::workload::{Checked, Extent, Request, Sharing, Workload, WorkloadConfig};

section! {
    /// The workload echo.
    pub struct EchoConfig("echo") {
        /// Puts that a thread gathers before it merges them: one operation.
        batch_puts: u32 = 8, 1..=1000, "puts";
    }
}

/// A key that a commit puts or deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Put {
    key: u64,
    deletes: bool,
}

/// The master and what threads need to merge into it.
#[derive(Clone, Debug)]
struct Parts {
    master: Versions,
    records: Vec<Record>,
    arenas: Vec<Arena>,
}

impl Parts {
    fn place(layout: &mut Layout, share: &Share, element: Element, puts_max: u64) -> Self {
        let keys = share.population;
        let root = layout.take(Chains::root_bytes(STORE_STRIPES, keys));
        let records = share.threads.clone();
        let records = records.map(|t| Record::new(layout.take(Record::bytes(puts_max)), t));
        let records = records.collect();
        let value_bytes = Versions::value_bytes(element);
        let blocks = share.elements_max.iter();
        let arenas =
            blocks.map(|&max| layout.arena([(Versions::TABLE_BYTES, max), (value_bytes, max)]));
        let arenas = arenas.collect();
        Self { master: Versions::new(root, STORE_STRIPES, keys, element), records, arenas }
    }
}

struct Echo {
    plan: Plan,
    /// Puts of a transaction.
    puts: u32,
    parts: Parts,
    extent: Extent,
}

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(assemble(request)?))
}

fn assemble(request: &Request) -> Result<Echo, ConfigError> {
    let batch = request.whole.get::<EchoConfig>().batch_puts;
    let puts = batch.saturating_mul(request.config.operations_per_transaction);
    // Arenas are sized by the operations of a transaction: each put may need a block.
    let operations_per_transaction = puts;
    let (insert_percent, remove_percent) = mix(&request.config);
    let config = WorkloadConfig {
        sharing: Sharing::Shared,
        operations_per_transaction,
        insert_percent,
        remove_percent,
        update_bytes: request.config.element_bytes,
        ..request.config.clone()
    };
    let plan = Plan::new("echo", &Request { config, ..request.clone() }, |element| {
        Versions::TABLE_BYTES + Versions::value_bytes(element) + WORD_BYTES
    })?;
    let Placed { mut parts, extent } =
        plan.lay_out(|layout, share| Parts::place(layout, share, plan.element, puts.into()))?;
    let parts = parts.pop().expect("threads share one master");
    let extent = Extent { allocated_percent: 100, ..extent };
    Ok(Echo { plan, puts, parts, extent })
}

/// Shares of new keys and of deletions, in percent.
fn mix(config: &WorkloadConfig) -> (u32, u32) {
    match (config.insert_percent, config.remove_percent) {
        (100, 0) => (0, 0),
        shares => shares,
    }
}

impl Workload for Echo {
    fn populate(&self, image: &mut Image) {
        let mut m = Direct::new(image);
        self.parts.master.format(&mut m);
        self.parts.arenas.iter().for_each(|arena| arena.format(&mut m));
        let threads = u64::from(self.plan.request.threads);
        let numbering = Numbering::new(self.plan.request.seed);
        let numbers: Vec<u64> = (0..self.plan.population).collect();
        for batch in numbers.chunks(self.puts as usize) {
            for thread in 0..threads {
                let mut run = Run::new(self, thread as u32);
                let keys = batch.iter().map(|number| numbering.key(number * threads + thread));
                run.puts.extend(keys.map(|key| Put { key, deletes: false }));
                run.commit(&mut m);
            }
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let request = &self.plan.request;
        let mut run = Run::new(self, thread);
        let (puts, words) = (self.puts, self.plan.element.words);
        let transactions = request.transactions_of(thread);
        let threads = (thread, request.threads);
        let population = self.plan.population;
        let mut keys = Keys::new(&request.config, request.seed, threads, population, true);
        let mut locks = Vec::with_capacity(puts as usize);
        spawn(move |thread| {
            for _ in 0..transactions {
                run.gather(thread, &mut keys, puts, words);
                run.transaction(thread, &mut locks);
            }
        })
    }

    fn check(&self, image: &Image) -> Checked {
        let Parts { master, records, arenas } = &self.parts;
        let name = format!("echo at {}", master.root());
        let mut census = Census::begin(name, image, arenas)?;
        let mut last = record::LastCommits::load(image, records, self.puts)
            .map_err(|what| census.broken(what))?;
        master.walk(&mut census, &mut |key, version| last.meet(key, version))?;
        last.finish().map_err(|what| census.broken(what))?;
        census.finish()
    }

    fn extent(&self) -> Option<Extent> {
        Some(self.extent)
    }
}

/// State of a thread.
struct Run {
    master: Versions,
    record: Record,
    arena: Arena,
    /// The local store.
    puts: Vec<Put>,
    /// The versions of each key, as they were found.
    found: Vec<Ptr>,
}

impl Run {
    fn new(echo: &Echo, thread: u32) -> Self {
        let Parts { master, records, arenas } = &echo.parts;
        let room = echo.puts as usize;
        Self {
            master: *master,
            record: records[thread as usize],
            arena: arenas[thread as usize],
            puts: Vec::with_capacity(room),
            found: Vec::with_capacity(room),
        }
    }

    /// Fills the local store: of several puts of a key the last counts, and keys are in an order of their own, as in
    /// the table that it is.
    fn gather(&mut self, thread: &mut Thread<'_>, keys: &mut Keys, puts: u32, words: u64) {
        self.puts.clear();
        for _ in 0..puts {
            thread.compute(keys.instructions() + costs::OPERATION + costs::HASH + costs::COMPARE);
            let action = keys.draw();
            let deletes = matches!(action, Action::Remove(_));
            if !deletes {
                thread.compute(costs::WORD * words as u32);
            }
            self.puts.push(Put { key: action.key(), deletes });
        }
        keep_last(&mut self.puts);
    }

    fn transaction(&mut self, thread: &mut Thread<'_>, locks: &mut Vec<LockId>) {
        locks.clear();
        for put in &self.puts {
            thread.compute(costs::HASH);
            locks.push(self.master.lock_of(put.key));
        }
        locking::transaction(thread, locks, |thread| self.commit(thread));
    }

    /// Commits what is in the local store, and empties it.
    fn commit<M: Memory>(&mut self, m: &mut M) {
        let (commit, begin) = self.record.begin(m);
        for (index, put) in (0..).zip(&self.puts) {
            let value = if put.deletes {
                Ptr::NULL
            } else {
                self.master.new_value(m, &self.arena, put.key, commit.number)
            };
            self.record.write(m, index, put.key, value);
        }
        self.record.complete(m, self.puts.len() as u64);
        let mut timestamp = begin;
        self.found.clear();
        for put in &self.puts {
            let versions = self.master.find(m, put.key);
            if !versions.is_null() {
                m.compute(costs::COMPARE);
                timestamp = timestamp.max(self.master.newest(m, versions));
            }
            self.found.push(versions);
        }
        timestamp += 1;
        for (index, (put, &versions)) in (0..).zip(self.puts.iter().zip(&self.found)) {
            let value = self.record.value(m, index);
            let version = super::structures::versions::Version { value, timestamp, commit };
            self.master.add(m, &self.arena, (put.key, versions), version);
        }
        self.record.end(m, timestamp);
        self.puts.clear();
    }
}

/// Sorts by key, and keeps the last put of each.
fn keep_last(puts: &mut Vec<Put>) {
    // The sort is stable: the last put of a key is the first of its equals when the order is turned.
    puts.reverse();
    puts.sort_by_key(|put| put.key);
    puts.dedup_by_key(|put| put.key);
}

#[cfg(test)]
mod tests;
