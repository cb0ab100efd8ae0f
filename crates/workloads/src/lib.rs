//! Genuine data structures doing transactions in simulated PM, one file per workload.
//!
//! A workload lays out and populates its structures in an image (no time passes), then gives each
//! thread a [`Program`] whose every operation is timed. Nodes, pointers and allocator metadata all
//! live in the image, so that [`Workload::check`] can walk any image, a recovered one included.
//!
//! [`Program`]: graven_machine::program::Program
//! [`Workload::check`]: graven_machine::workload::Workload::check

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
mod operations;
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

use graven_base::config::{ConfigError, Section};
use graven_machine::registry::Registry;
use graven_machine::workload::{Request, Workload, WorkloadInfo};

/// Registers all workloads, in the order in which they are listed.
pub fn register(registry: &mut Registry) {
    WORKLOADS.iter().for_each(|entry| registry.workload(entry));
}

/// Makes a workload, or refuses parameters that do not fit it.
type Build = fn(&Request) -> Result<Box<dyn Workload>, ConfigError>;

/// A workload that has the shared parameters alone.
const fn plain(
    group: &'static str,
    name: &'static str,
    summary: &'static str,
    build: Build,
) -> WorkloadInfo {
    WorkloadInfo { name, group, summary, sections: &[], settings: &[], build }
}

/// One of YCSB's mixes, which these settings stand for.
const fn mix(
    name: &'static str,
    summary: &'static str,
    settings: &'static [(&'static str, &'static str)],
) -> WorkloadInfo {
    let sections: &[fn() -> Box<dyn Section>] = &[|| Box::new(ycsb::YcsbConfig::default())];
    WorkloadInfo { sections, settings, ..plain("macro", name, summary, ycsb::build) }
}

/// All workloads, in the order in which they are listed.
const WORKLOADS: &[WorkloadInfo] = &[
    plain("micro", "array", "swaps of two random elements of an array", array::build),
    plain("micro", "btree", "random operations on a B+ tree of fan-out 16", btree::build),
    plain(
        "micro",
        "chain-queue",
        "random enqueue and dequeue on a chained queue: a head node, a front and a rear",
        chain_queue::build,
    ),
    plain("macro", "ctree", "random operations on a crit-bit tree", ctree::build),
    WorkloadInfo {
        sections: &[|| Box::new(echo::EchoConfig::default())],
        ..plain(
            "macro",
            "echo",
            "batches of puts merged into a versioned key-value store",
            echo::build,
        )
    },
    plain("micro", "hash", "random operations on an open-chaining hash table", hash::build),
    plain("micro", "queue", "random enqueue and dequeue on a linked-list queue", queue::build),
    plain("macro", "radix-tree", "random operations on a radix tree", radix_tree::build),
    plain("micro", "rbtree", "random operations on a red-black tree", rbtree::build),
    plain(
        "micro",
        "sdg",
        "random edges inserted into and removed from a sparse directed graph",
        sdg::build,
    ),
    WorkloadInfo {
        sections: &[|| Box::new(smallbank::SmallBankConfig::default())],
        ..plain(
            "macro",
            "smallbank",
            "SmallBank: six transactions on the accounts of a bank's customers",
            smallbank::build,
        )
    },
    plain("micro", "sps", "swaps of two random entries of a vector that begin alike", sps::build),
    plain(
        "micro",
        "ssca2",
        "a scale-free graph built edge by edge, its heaviest edges found, and searched from them",
        ssca2::build,
    ),
    WorkloadInfo {
        sections: &[|| Box::new(tatp::TatpConfig::default())],
        ..plain(
            "macro",
            "tatp",
            "TATP: seven transactions of a telephone network on its subscribers",
            tatp::build,
        )
    },
    WorkloadInfo {
        sections: &[|| Box::new(tpcc::TpccConfig::default())],
        ..plain(
            "macro",
            "tpcc",
            "TPC-C: the standard mix of its five transactions on nine tables",
            tpcc::build,
        )
    },
    WorkloadInfo {
        sections: &[|| Box::new(tpcc::TpccConfig::default())],
        settings: &[("tpcc.mix", "new-order")],
        ..plain("macro", "tpcc-new-order", "TPC-C: New-Orders alone", tpcc::build)
    },
    plain(
        "micro",
        "vector",
        "entries appended to a vector, and random ones updated",
        vector::build,
    ),
    mix(
        "ycsb",
        "YCSB as the papers run it: 20 % reads and 80 % updates of a shared key-value store",
        &[],
    ),
    mix("ycsb-a", "YCSB's workload A: half reads, half updates", &[("ycsb.mix", "a")]),
    mix("ycsb-b", "YCSB's workload B: 95 % reads, 5 % updates", &[("ycsb.mix", "b")]),
    mix("ycsb-c", "YCSB's workload C: reads only", &[("ycsb.mix", "c")]),
    mix(
        "ycsb-d",
        "YCSB's workload D: 95 % reads of the latest records, 5 % insertions",
        &[("ycsb.mix", "d")],
    ),
    mix(
        "ycsb-e",
        "YCSB's workload E: 95 % short scans, 5 % insertions, in a B+ tree",
        &[("ycsb.mix", "e"), ("ycsb.index", "btree")],
    ),
    mix("ycsb-f", "YCSB's workload F: half reads, half read-modify-writes", &[("ycsb.mix", "f")]),
];

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
