//! Genuine data structures doing transactions in simulated PM, one file per workload.
//!
//! A workload lays out and populates its structures in an image (no time passes), then gives each
//! thread a [`Program`] whose every operation is timed. Nodes, pointers and allocator metadata all
//! live in the image, so that [`Workload::check`] can walk any image, a recovered one included.

mod array;
mod btree;
mod chain_queue;
pub mod costs;
mod ctree;
mod database;
mod echo;
mod fifo;
mod hash;
mod keyed;
mod layout;
mod locking;
#[cfg(test)]
mod measured;
mod queue;
mod radix_tree;
mod rbtree;
mod sdg;
mod smallbank;
mod sps;
mod ssca2;
pub mod structures;
mod tatp;
#[cfg(test)]
mod testing;
mod tpcc;
mod vector;
mod ycsb;

use crate::config::{Config, ConfigError, Section, Size};
use crate::memory::{Addr, Image};
use crate::program::Program;
use crate::{choice, section};

choice! {
    /// How keys are drawn.
    pub enum Distribution {
        /// All keys alike.
        Uniform = "uniform",
        /// Zipf: rank r with probability proportional to r^-theta.
        Zipf = "zipf",
    }
}

choice! {
    /// Whether threads share data.
    pub enum Sharing {
        /// Each thread works on a structure of its own.
        Private = "private",
        /// All threads work on one structure, under locks.
        Shared = "shared",
    }
}

choice! {
    /// What elements hold.
    pub enum ElementKind {
        /// Identifiers, small numbers, letters and zeros.
        Record = "record",
        /// Text.
        String = "string",
    }
}

section! {
    /// What the workloads do; the same parameters for all of them.
    pub struct WorkloadConfig("workload") {
        /// Size of one data element.
        element_bytes: Size = Size(64), Size(8)..=Size::kb(64), "B";
        /// What elements hold beyond their first word, which is an integer.
        element_kind: ElementKind = ElementKind::Record, (), "";
        /// Bytes of an element that an update stores, from its first on; all if it has no more.
        update_bytes: Size = Size::kb(64), Size(8)..=Size::kb(64), "B";
        /// Bytes of PM that the populated structures take, over all threads.
        footprint_bytes: Size = Size::mb(64), Size::kb(64)..=Size::gb(64), "B";
        /// How keys are drawn.
        distribution: Distribution = Distribution::Uniform, (), "";
        /// Skew of the Zipf distribution.
        zipf_theta: f64 = 0.99, 0.01..=5.0, "";
        /// Whether threads share data.
        sharing: Sharing = Sharing::Private, (), "";
        /// Share of the transactions that insert (or enqueue).
        insert_percent: u32 = 100, 0..=100, "%";
        /// Share of the transactions that remove (or dequeue); what remains updates an element in place.
        remove_percent: u32 = 0, 0..=100, "%";
        /// Elementary operations per transaction.
        operations_per_transaction: u32 = 1, 1..=10_000, "operations";
    }
}

/// What a run asks of a workload.
#[derive(Clone, Debug)]
pub struct Request {
    /// The shared parameters.
    pub config: WorkloadConfig,
    /// The whole configuration, for workloads with sections of their own ([`Entry::sections`]).
    pub whole: Config,
    /// Program threads.
    pub threads: u32,
    /// Transactions over all threads.
    pub transactions: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// First byte of PM that may be used (never 0).
    pub start: Addr,
    /// One past the last byte that may be used.
    pub end: Addr,
}

impl Request {
    /// Transactions of one thread: the total dealt out evenly, the first threads taking the rest.
    pub fn transactions_of(&self, thread: u32) -> u64 {
        let threads = u64::from(self.threads);
        self.transactions / threads + u64::from(u64::from(thread) < self.transactions % threads)
    }
}

/// An invariant that an image breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{structure}: {what}")]
pub struct Violation {
    /// Which structure, with its place.
    pub structure: String,
    /// What is wrong with it.
    pub what: String,
}

/// A workload, ready to run.
pub trait Workload {
    /// Builds the initial structures in an image that is zero so far.
    fn populate(&mut self, image: &mut Image);

    /// What thread `thread` does. Called once per thread, after [`Workload::populate`].
    fn program(&self, thread: u32) -> Box<dyn Program>;

    /// Walks the structures of an image and checks order, balance, counts, reachability and
    /// allocator metadata. Holds for every committed state.
    ///
    /// # Errors
    /// The first violation found.
    fn check(&self, image: &Image) -> Result<(), Violation>;
}

/// A workload that users can name.
pub struct Entry {
    /// What users call it.
    pub name: &'static str,
    /// `micro` or `macro`.
    pub group: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Parameters of its own, beside the shared ones; workloads may have a section in common.
    pub sections: &'static [fn() -> Box<dyn Section>],
    /// The parameter set that its name stands for: what it takes to be this one of several mixes of one program. A
    /// user's own setting goes before.
    pub settings: &'static [(&'static str, &'static str)],
    /// Makes one, or refuses parameters that do not fit it.
    pub build: fn(&Request) -> Result<Box<dyn Workload>, ConfigError>,
}

/// The section of YCSB's mixes.
const YCSB: fn() -> Box<dyn Section> = || Box::new(ycsb::YcsbConfig::default());

/// All workloads, in the order in which they are listed.
pub const REGISTRY: &[Entry] = &[
    Entry {
        name: "array",
        group: "micro",
        summary: "swaps of two random elements of an array",
        sections: &[],
        settings: &[],
        build: array::build,
    },
    Entry {
        name: "btree",
        group: "micro",
        summary: "random operations on a B+ tree of fan-out 16",
        sections: &[],
        settings: &[],
        build: btree::build,
    },
    Entry {
        name: "chain-queue",
        group: "micro",
        summary: "random enqueue and dequeue on a chained queue: a head node, a front and a rear",
        sections: &[],
        settings: &[],
        build: chain_queue::build,
    },
    Entry {
        name: "ctree",
        group: "macro",
        summary: "random operations on a crit-bit tree",
        sections: &[],
        settings: &[],
        build: ctree::build,
    },
    Entry {
        name: "echo",
        group: "macro",
        summary: "batches of puts merged into a versioned key-value store",
        sections: &[|| Box::new(echo::EchoConfig::default())],
        settings: &[],
        build: echo::build,
    },
    Entry {
        name: "hash",
        group: "micro",
        summary: "random operations on an open-chaining hash table",
        sections: &[],
        settings: &[],
        build: hash::build,
    },
    Entry {
        name: "queue",
        group: "micro",
        summary: "random enqueue and dequeue on a linked-list queue",
        sections: &[],
        settings: &[],
        build: queue::build,
    },
    Entry {
        name: "radix-tree",
        group: "macro",
        summary: "random operations on a radix tree",
        sections: &[],
        settings: &[],
        build: radix_tree::build,
    },
    Entry {
        name: "rbtree",
        group: "micro",
        summary: "random operations on a red-black tree",
        sections: &[],
        settings: &[],
        build: rbtree::build,
    },
    Entry {
        name: "sdg",
        group: "micro",
        summary: "random edges inserted into and removed from a sparse directed graph",
        sections: &[],
        settings: &[],
        build: sdg::build,
    },
    Entry {
        name: "smallbank",
        group: "macro",
        summary: "SmallBank: six transactions on the accounts of a bank's customers",
        sections: &[|| Box::new(smallbank::SmallBankConfig::default())],
        settings: &[],
        build: smallbank::build,
    },
    Entry {
        name: "sps",
        group: "micro",
        summary: "swaps of two random entries of a vector that begin alike",
        sections: &[],
        settings: &[],
        build: sps::build,
    },
    Entry {
        name: "ssca2",
        group: "micro",
        summary: "a scale-free graph built edge by edge, its heaviest edges found, and searched from them",
        sections: &[],
        settings: &[],
        build: ssca2::build,
    },
    Entry {
        name: "tatp",
        group: "macro",
        summary: "TATP: seven transactions of a telephone network on its subscribers",
        sections: &[|| Box::new(tatp::TatpConfig::default())],
        settings: &[],
        build: tatp::build,
    },
    Entry {
        name: "tpcc",
        group: "macro",
        summary: "TPC-C: the standard mix of its five transactions on nine tables",
        sections: &[|| Box::new(tpcc::TpccConfig::default())],
        settings: &[],
        build: tpcc::build,
    },
    Entry {
        name: "tpcc-new-order",
        group: "macro",
        summary: "TPC-C: New-Orders alone",
        sections: &[|| Box::new(tpcc::TpccConfig::default())],
        settings: &[("tpcc.mix", "new-order")],
        build: tpcc::build,
    },
    Entry {
        name: "vector",
        group: "micro",
        summary: "entries appended to a vector, and random ones updated",
        sections: &[],
        settings: &[],
        build: vector::build,
    },
    Entry {
        name: "ycsb",
        group: "macro",
        summary: "YCSB as the papers run it: 20 % reads and 80 % updates of a shared key-value store",
        sections: &[YCSB],
        settings: &[],
        build: ycsb::build,
    },
    Entry {
        name: "ycsb-a",
        group: "macro",
        summary: "YCSB's workload A: half reads, half updates",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "a")],
        build: ycsb::build,
    },
    Entry {
        name: "ycsb-b",
        group: "macro",
        summary: "YCSB's workload B: 95 % reads, 5 % updates",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "b")],
        build: ycsb::build,
    },
    Entry {
        name: "ycsb-c",
        group: "macro",
        summary: "YCSB's workload C: reads only",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "c")],
        build: ycsb::build,
    },
    Entry {
        name: "ycsb-d",
        group: "macro",
        summary: "YCSB's workload D: 95 % reads of the latest records, 5 % insertions",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "d")],
        build: ycsb::build,
    },
    Entry {
        name: "ycsb-e",
        group: "macro",
        summary: "YCSB's workload E: 95 % short scans, 5 % insertions, in a B+ tree",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "e"), ("ycsb.index", "btree")],
        build: ycsb::build,
    },
    Entry {
        name: "ycsb-f",
        group: "macro",
        summary: "YCSB's workload F: half reads, half read-modify-writes",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "f")],
        build: ycsb::build,
    },
];

/// The workloads that are programs of their own, not parameter sets of another.
pub fn programs() -> impl Iterator<Item = &'static Entry> {
    REGISTRY.iter().filter(|entry| entry.settings.is_empty())
}

/// The workload of a name.
///
/// # Errors
/// [`ConfigError::UnknownName`] with the names that exist.
pub fn find(name: &str) -> Result<&'static Entry, ConfigError> {
    REGISTRY.iter().find(|e| e.name == name).ok_or_else(|| {
        let known: Vec<&str> = REGISTRY.iter().map(|e| e.name).collect();
        ConfigError::unknown_name("workload", name, &known)
    })
}

/// The configuration sections of all workloads: the shared one first.
pub fn sections() -> Vec<Box<dyn Section>> {
    let mut sections: Vec<Box<dyn Section>> = vec![Box::new(WorkloadConfig::default())];
    for make in REGISTRY.iter().flat_map(|entry| entry.sections) {
        let section = make();
        if sections.iter().all(|s| s.name() != section.name()) {
            sections.push(section);
        }
    }
    sections
}
