//! `rbtree`: random insertions, updates and removals in a red-black tree.
//!
//! Models the RBTree micro-benchmark of FWB (Table III), MorLog (Table IV), Silo (Table III:
//! "randomly insert elements"), HOOP (Table III: 2-10 stores per transaction) and LALEA. The papers
//! give no node layout; ours has parent pointers and the element inside the node ([`RbTree`] has
//! the table of its bytes). Defaults insert new keys only, as Silo does.
//!
//! | bytes of a partition | |
//! |---|---|
//! | 64 | root |
//! | 64 | header of the arena |
//! | rest | nodes (whole lines), as allocated |
//!
//! Private: a partition per thread, no locks. Shared: one partition, one lock around each
//! transaction.

use super::keyed::{KeyedWorkload, Part};
use super::layout::Plan;
use super::structures::RbTree;
use graven_base::config::ConfigError;
use graven_machine::workload::{Request, Workload};

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    let plan = Plan::new("rbtree", request, RbTree::node_bytes)?;
    let element = plan.element;
    KeyedWorkload::build(plan, |layout, share| {
        let root = layout.take(RbTree::ROOT_BYTES);
        let arena = layout.arena([(RbTree::node_bytes(element), share.total_max()), (0, 0)]);
        Part {
            structure: RbTree::new(root, element),
            arenas: vec![arena],
            threads: share.threads.clone(),
        }
    })
}

#[cfg(test)]
mod tests {
    crate::testing::contract!(super::build);
}
