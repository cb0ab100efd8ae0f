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

use graven_base::config::Section;
use graven_machine::registry::Registry;
use graven_machine::workload::WorkloadInfo;

/// Registers all workloads, in the order in which they are listed.
pub fn register(registry: &mut Registry) {
    WORKLOADS.iter().for_each(|entry| registry.workload(entry));
}

/// The section of YCSB's mixes.
const YCSB: fn() -> Box<dyn Section> = || Box::new(ycsb::YcsbConfig::default());

/// All workloads, in the order in which they are listed.
const WORKLOADS: &[WorkloadInfo] = &[
    WorkloadInfo {
        name: "array",
        group: "micro",
        summary: "swaps of two random elements of an array",
        sections: &[],
        settings: &[],
        build: array::build,
    },
    WorkloadInfo {
        name: "btree",
        group: "micro",
        summary: "random operations on a B+ tree of fan-out 16",
        sections: &[],
        settings: &[],
        build: btree::build,
    },
    WorkloadInfo {
        name: "chain-queue",
        group: "micro",
        summary: "random enqueue and dequeue on a chained queue: a head node, a front and a rear",
        sections: &[],
        settings: &[],
        build: chain_queue::build,
    },
    WorkloadInfo {
        name: "ctree",
        group: "macro",
        summary: "random operations on a crit-bit tree",
        sections: &[],
        settings: &[],
        build: ctree::build,
    },
    WorkloadInfo {
        name: "echo",
        group: "macro",
        summary: "batches of puts merged into a versioned key-value store",
        sections: &[|| Box::new(echo::EchoConfig::default())],
        settings: &[],
        build: echo::build,
    },
    WorkloadInfo {
        name: "hash",
        group: "micro",
        summary: "random operations on an open-chaining hash table",
        sections: &[],
        settings: &[],
        build: hash::build,
    },
    WorkloadInfo {
        name: "queue",
        group: "micro",
        summary: "random enqueue and dequeue on a linked-list queue",
        sections: &[],
        settings: &[],
        build: queue::build,
    },
    WorkloadInfo {
        name: "radix-tree",
        group: "macro",
        summary: "random operations on a radix tree",
        sections: &[],
        settings: &[],
        build: radix_tree::build,
    },
    WorkloadInfo {
        name: "rbtree",
        group: "micro",
        summary: "random operations on a red-black tree",
        sections: &[],
        settings: &[],
        build: rbtree::build,
    },
    WorkloadInfo {
        name: "sdg",
        group: "micro",
        summary: "random edges inserted into and removed from a sparse directed graph",
        sections: &[],
        settings: &[],
        build: sdg::build,
    },
    WorkloadInfo {
        name: "smallbank",
        group: "macro",
        summary: "SmallBank: six transactions on the accounts of a bank's customers",
        sections: &[|| Box::new(smallbank::SmallBankConfig::default())],
        settings: &[],
        build: smallbank::build,
    },
    WorkloadInfo {
        name: "sps",
        group: "micro",
        summary: "swaps of two random entries of a vector that begin alike",
        sections: &[],
        settings: &[],
        build: sps::build,
    },
    WorkloadInfo {
        name: "ssca2",
        group: "micro",
        summary: "a scale-free graph built edge by edge, its heaviest edges found, and searched from them",
        sections: &[],
        settings: &[],
        build: ssca2::build,
    },
    WorkloadInfo {
        name: "tatp",
        group: "macro",
        summary: "TATP: seven transactions of a telephone network on its subscribers",
        sections: &[|| Box::new(tatp::TatpConfig::default())],
        settings: &[],
        build: tatp::build,
    },
    WorkloadInfo {
        name: "tpcc",
        group: "macro",
        summary: "TPC-C: the standard mix of its five transactions on nine tables",
        sections: &[|| Box::new(tpcc::TpccConfig::default())],
        settings: &[],
        build: tpcc::build,
    },
    WorkloadInfo {
        name: "tpcc-new-order",
        group: "macro",
        summary: "TPC-C: New-Orders alone",
        sections: &[|| Box::new(tpcc::TpccConfig::default())],
        settings: &[("tpcc.mix", "new-order")],
        build: tpcc::build,
    },
    WorkloadInfo {
        name: "vector",
        group: "micro",
        summary: "entries appended to a vector, and random ones updated",
        sections: &[],
        settings: &[],
        build: vector::build,
    },
    WorkloadInfo {
        name: "ycsb",
        group: "macro",
        summary: "YCSB as the papers run it: 20 % reads and 80 % updates of a shared key-value store",
        sections: &[YCSB],
        settings: &[],
        build: ycsb::build,
    },
    WorkloadInfo {
        name: "ycsb-a",
        group: "macro",
        summary: "YCSB's workload A: half reads, half updates",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "a")],
        build: ycsb::build,
    },
    WorkloadInfo {
        name: "ycsb-b",
        group: "macro",
        summary: "YCSB's workload B: 95 % reads, 5 % updates",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "b")],
        build: ycsb::build,
    },
    WorkloadInfo {
        name: "ycsb-c",
        group: "macro",
        summary: "YCSB's workload C: reads only",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "c")],
        build: ycsb::build,
    },
    WorkloadInfo {
        name: "ycsb-d",
        group: "macro",
        summary: "YCSB's workload D: 95 % reads of the latest records, 5 % insertions",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "d")],
        build: ycsb::build,
    },
    WorkloadInfo {
        name: "ycsb-e",
        group: "macro",
        summary: "YCSB's workload E: 95 % short scans, 5 % insertions, in a B+ tree",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "e"), ("ycsb.index", "btree")],
        build: ycsb::build,
    },
    WorkloadInfo {
        name: "ycsb-f",
        group: "macro",
        summary: "YCSB's workload F: half reads, half read-modify-writes",
        sections: &[YCSB],
        settings: &[("ycsb.mix", "f")],
        build: ycsb::build,
    },
];

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
