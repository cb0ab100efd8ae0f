//! `btree`: random insertions, updates and removals in a B+ tree.
//!
//! Models the B-tree micro-benchmark of FWB (Table III: "B+ tree"), MorLog (Table IV), Silo (Table
//! III: "randomly insert elements"), HOOP (Table III: 2-12 stores per transaction) and LALEA. No
//! paper gives the fan-out or the node layout; ours is a B+ tree of fan-out 16 with 256 B nodes
//! ([`BTree`] has the table of its bytes) and one block per element. Defaults insert new keys only,
//! as Silo does.
//!
//! | bytes of a partition | |
//! |---|---|
//! | 64 | root |
//! | 64 | header of the arena |
//! | rest | nodes (256 B) and elements (whole lines), as allocated |
//!
//! Private: a partition per thread, no locks. Shared: one partition, one lock around each
//! transaction. Left out: concurrent trees (latching per node), variable-length keys, range scans.

use super::keyed::{KeyedWorkload, Part};
use super::layout::{Layout, Plan, Share};
use super::structures::{BTree, Element};
use graven_base::config::ConfigError;
use graven_machine::workload::{Request, Workload};

/// Bytes of nodes per element of a tree grown by random insertion, whose nodes are about 69 % full:
/// 256 B / (15 · 0.69), and a tenth for the inner nodes.
const NODES_PER_ELEMENT_BYTES: u64 = 27;

/// Bytes that one element adds to the footprint.
pub(super) fn bytes_per_element(element: Element) -> u64 {
    BTree::element_bytes(element) + NODES_PER_ELEMENT_BYTES
}

/// Lays out a tree and its arena.
pub(super) fn place(element: Element) -> impl Fn(&mut Layout, &Share) -> Part<BTree> {
    move |layout, share| {
        let root = layout.take(BTree::ROOT_BYTES);
        let elements = share.total_max();
        let arena = layout.arena([
            (BTree::NODE_BYTES, BTree::nodes_max(elements)),
            (BTree::element_bytes(element), elements),
        ]);
        Part {
            structure: BTree::new(root, element),
            arenas: vec![arena],
            threads: share.threads.clone(),
        }
    }
}

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    let plan = Plan::new("btree", request, bytes_per_element)?;
    let place = place(plan.element);
    KeyedWorkload::build(plan, place)
}

#[cfg(test)]
mod tests {
    crate::testing::contract!(super::build);
}
