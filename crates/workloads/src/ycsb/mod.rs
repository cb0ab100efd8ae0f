//! `ycsb` and `ycsb-a` to `ycsb-f`: the core workloads of YCSB on a store that all threads share.
//!
//! Models YCSB of Silo (Table III: 20 % reads, 80 % updates), HOOP (Table III; §IV-A: 20:80, Zipfian), MorLog (Table IV)
//! and FWB (§VI-B), which run it on N-store or say no more than the name: the default mix is theirs. The others are
//! those of YCSB's core package:
//!
//! | mix | read | update | insert | scan | read-modify-write | requests |
//! |---|---|---|---|---|---|---|
//! | papers | 20 % | 80 % | | | | zipf |
//! | a | 50 % | 50 % | | | | zipf |
//! | b | 95 % | 5 % | | | | zipf |
//! | c | 100 % | | | | | zipf |
//! | d | 95 % | | 5 % | | | latest |
//! | e | | | 5 % | 95 % | | zipf |
//! | f | 50 % | | | | 50 % | zipf |
//!
//! A record is a key and an element. A read copies the whole element, as YCSB's reads ask for all fields; an update
//! stores `workload.update_bytes` of it, by default all: the papers' values are one item. YCSB's records are ten fields
//! of 100 B, of which an update writes a random one; `workload.element_bytes` of 1000 B and `workload.update_bytes` of
//! 100 B are that, but for the field, which is always the first. An insertion takes a key that was never there; a scan reads
//! 1 to `ycsb.scan_records_max` records, all numbers alike, from the requested key on; a read-modify-write is a read and then
//! an update.
//!
//! Which record is requested: see [`client`]. What it is looked up in: `ycsb.index`, a hash table or a B+ tree. Threads work on one
//! store, whatever `sharing` says; which locks that takes: see [`store`]. Shares of the workload section have no meaning
//! here, nor has its `distribution`.
//!
//! | bytes, hash table | |
//! |---|---|
//! | 64 per stripe, 8 per bucket | [`Hash`](super::structures::Hash) |
//! | 64, then nodes, per thread | arenas |
//!
//! | bytes, B+ tree | |
//! |---|---|
//! | 64 | root |
//! | 64, then nodes and elements | arena |
//!
//! Left out: several fields; deletions, which no core workload has; YCSB's client, whose work of building strings is
//! not a store's.

mod client;
mod store;

use client::{Client, Operation};
use store::Store;

use super::keyed::{self, Part};
use super::layout::{Layout, Placed, Plan, Share, refusal};
use super::locking::STORE_STRIPES;
use super::operations::{self, Operations};
use super::structures::Arena;
use super::{btree, costs, hash};
use graven_base::config::ConfigError;
use graven_base::memory::Image;
use graven_base::{choice, section};
use graven_machine::program::{Load, LockId, Program, Thread};
use graven_machine::workload::{Checked, Extent, Request, Sharing, Workload, WorkloadConfig};

choice! {
    /// Operations and their shares.
    pub enum Mix {
        /// 20 % reads, 80 % updates: Silo, HOOP.
        Papers = "papers",
        /// YCSB's workload A: half reads, half updates.
        A = "a",
        /// YCSB's workload B: 95 % reads, 5 % updates.
        B = "b",
        /// YCSB's workload C: reads only.
        C = "c",
        /// YCSB's workload D: 95 % reads of the latest records, 5 % insertions.
        D = "d",
        /// YCSB's workload E: 95 % short scans, 5 % insertions.
        E = "e",
        /// YCSB's workload F: half reads, half read-modify-writes.
        F = "f",
    }
}

choice! {
    /// Structure that records are looked up in.
    pub enum Index {
        /// A hash table.
        Hash = "hash",
        /// A B+ tree.
        BTree = "btree",
    }
}

choice! {
    /// Distribution of the records that are requested.
    pub enum Requests {
        /// As the mix has it: the latest ones in d, by Zipf in the others.
        Mix = "mix",
        /// By Zipf's distribution.
        Zipf = "zipf",
        /// By Zipf's distribution, those first that were inserted last.
        Latest = "latest",
        /// All alike.
        Uniform = "uniform",
    }
}

section! {
    /// The workloads ycsb and ycsb-a to ycsb-f.
    pub struct YcsbConfig("ycsb") {
        /// Operations and their shares; the names ycsb-a to ycsb-f set them.
        mix: Mix = Mix::Papers, (), "";
        /// Structure that records are looked up in; a hash table cannot be scanned, so mix e needs the B+ tree.
        index: Index = Index::Hash, (), "";
        /// Distribution of the records that are requested; the skew is `workload.zipf_theta`.
        requests: Requests = Requests::Mix, (), "";
        /// Records that a scan reads, at most.
        scan_records_max: u32 = 100, 1..=10_000, "records";
    }
}

impl Mix {
    /// Shares of reads, updates, insertions, scans and read-modify-writes, in percent.
    fn shares(self) -> [u32; 5] {
        match self {
            Mix::Papers => [20, 80, 0, 0, 0],
            Mix::A => [50, 50, 0, 0, 0],
            Mix::B => [95, 5, 0, 0, 0],
            Mix::C => [100, 0, 0, 0, 0],
            Mix::D => [95, 0, 5, 0, 0],
            Mix::E => [0, 0, 5, 95, 0],
            Mix::F => [50, 0, 0, 0, 50],
        }
    }
}

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    let own = request.whole.get::<YcsbConfig>().clone();
    if (own.mix, own.index) == (Mix::E, Index::Hash) {
        let why = "mix e scans, and a hash table has no order; btree would do, or another ycsb.mix";
        return Err(refusal("ycsb", "ycsb.index", "hash".into(), why.into()));
    }
    let config = WorkloadConfig { sharing: Sharing::Shared, ..request.config.clone() };
    let request = Request { config, ..request.clone() };
    match own.index {
        Index::Hash => {
            let plan = Plan::new("ycsb", &request, hash::bytes_per_element)?;
            let place = hash::place(plan.element, STORE_STRIPES);
            Ycsb::assemble(own, plan, place)
        }
        Index::BTree => {
            let plan = Plan::new("ycsb", &request, btree::bytes_per_element)?;
            let place = btree::place(plan.element);
            Ycsb::assemble(own, plan, place)
        }
    }
}

struct Ycsb<S> {
    own: YcsbConfig,
    plan: Plan,
    /// The one store.
    parts: Vec<Part<S>>,
    extent: Extent,
}

impl<S: Store> Ycsb<S> {
    fn assemble(
        own: YcsbConfig,
        plan: Plan,
        place: impl FnMut(&mut Layout, &Share) -> Part<S>,
    ) -> Result<Box<dyn Workload>, ConfigError> {
        let Placed { parts, extent } = plan.lay_out(place)?;
        let [.., insertions, _, _] = own.mix.shares();
        let extent = Extent { allocated_percent: (insertions + 1).min(100), ..extent };
        Ok(Box::new(Self { own, plan, parts, extent }))
    }
}

impl<S: Store> Workload for Ycsb<S> {
    fn populate(&self, image: &mut Image) {
        keyed::populate(&self.plan, &self.parts, image);
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let request = &self.plan.request;
        let part = &self.parts[0];
        let run = Run {
            store: part.structure,
            arena: *part.arena_of(thread),
            threads: (thread, request.threads),
            client: Client::new(&self.own, request, thread, self.plan.population),
        };
        operations::program(run, request, thread)
    }

    fn check(&self, image: &Image) -> Checked {
        keyed::check(&self.plan, &self.parts, image)
    }

    fn extent(&self) -> Option<Extent> {
        Some(self.extent)
    }
}

/// State of a thread.
struct Run<S> {
    store: S,
    arena: Arena,
    /// The thread, and how many there are.
    threads: (u32, u32),
    client: Client,
}

impl<S: Store> Operations for Run<S> {
    type Operation = Operation;

    fn draw(&mut self, thread: &mut Thread<'_>) -> Operation {
        thread.compute(self.client.instructions() + costs::HASH);
        self.client.draw()
    }

    fn lock(&self, _: &mut Thread<'_>, operation: Operation, locks: &mut Vec<LockId>) {
        self.store.locks_of(self.threads, operation, locks);
    }

    #[inline(always)]
    fn perform(&self, thread: &mut Thread<'_>, operation: Operation) {
        let Run { store, arena, .. } = self;
        match operation {
            Operation::Read(key) => drop(store.get(thread, key)),
            Operation::Update(key) => drop(store.update(thread, key)),
            Operation::Insert(key) => drop(store.insert(thread, arena, key)),
            Operation::Scan(key, records) => store.scan(thread, key, records),
            Operation::ReadModifyWrite(key) => {
                store.get(thread, key);
                store.update(thread, key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
