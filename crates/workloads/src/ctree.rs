//! `ctree`: random insertions, updates and removals in a crit-bit tree.
//!
//! Models ctree of WHISPER, which FWB runs (§VI-B, Fig. 10), and Ctrie of Silo (Fig. 4: insertions, PMDK): ctree_map
//! of PMDK's examples, a binary trie with one node per critical bit. [`CritBitTree`] has the table of its bytes.
//! Defaults insert new keys only, as Silo does. Keys are numbers of 40 bits; the value is an element of its own.
//!
//! | bytes of a partition | |
//! |---|---|
//! | 64 | root |
//! | 64 | header of the arena |
//! | rest | nodes (64 B) and elements (whole lines), as allocated |
//!
//! Private: a partition per thread, no locks. Shared: one partition, one lock around each transaction.

use super::keyed::{KeyedWorkload, Part};
use super::layout::Plan;
use super::structures::CritBitTree;
use graven_base::config::ConfigError;
use graven_machine::workload::{Request, Workload};

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    let plan = Plan::new("ctree", request, |element| {
        CritBitTree::element_bytes(element) + CritBitTree::NODE_BYTES
    })?;
    let element = plan.element;
    KeyedWorkload::build(plan, |layout, share| {
        let root = layout.take(CritBitTree::ROOT_BYTES);
        let elements = share.total_max();
        let element_bytes = CritBitTree::element_bytes(element);
        let arena = layout.arena([(CritBitTree::NODE_BYTES, elements), (element_bytes, elements)]);
        Part {
            structure: CritBitTree::new(root, element),
            arenas: vec![arena],
            threads: share.threads.clone(),
        }
    })
}

#[cfg(test)]
mod tests {
    crate::testing::contract!(super::build);
}
