//! `radix-tree`: random insertions, updates and removals in a radix tree.
//!
//! Models Rtree of Silo (Fig. 4: insertions, PMDK): rtree_map of PMDK's examples, whose nodes hold the characters that
//! all keys below have in common. [`RadixTree`] has the table of its bytes, and says why digits have four bits.
//! Defaults insert new keys only, as Silo does. Keys are numbers of 40 bits; the value is an element of its own.
//!
//! | bytes of a partition | |
//! |---|---|
//! | 64 | root |
//! | 64 | header of the arena |
//! | rest | nodes (192 B) and elements (whole lines), as allocated |
//!
//! Private: a partition per thread, no locks. Shared: one partition, one lock around each transaction.

use super::keyed::{KeyedWorkload, Part};
use super::layout::Plan;
use super::structures::RadixTree;
use graven_base::config::ConfigError;
use graven_machine::workload::{Request, Workload};

/// Bytes of inner nodes per element of a tree of random keys, of which each has about a third of one.
const INNER_NODES_PER_ELEMENT_BYTES: u64 = RadixTree::NODE_BYTES / 3;

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    let plan = Plan::new("radix-tree", request, |element| {
        RadixTree::element_bytes(element) + RadixTree::NODE_BYTES + INNER_NODES_PER_ELEMENT_BYTES
    })?;
    let element = plan.element;
    KeyedWorkload::build(plan, |layout, share| {
        let root = layout.take(RadixTree::ROOT_BYTES);
        let elements = share.total_max();
        let nodes = (RadixTree::NODE_BYTES, elements.saturating_mul(2));
        let arena = layout.arena([nodes, (RadixTree::element_bytes(element), elements)]);
        Part {
            structure: RadixTree::new(root, element),
            arenas: vec![arena],
            threads: share.threads.clone(),
        }
    })
}

#[cfg(test)]
mod tests {
    crate::testing::contract!(super::build);
}
