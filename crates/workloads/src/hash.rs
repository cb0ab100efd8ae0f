//! `hash`: random insertions, updates and removals in an open-chaining hash table.
//!
//! Models the Hash micro-benchmark of FWB (Table III: "open-chain"), MorLog (Table IV), Silo (Table
//! III: "randomly insert elements"), HOOP (Table III: 8 stores per transaction) and LALEA. The
//! papers give no load factor; ours begins at 0.5: there are two buckets for each element of the population, and the table is
//! not resized. With the default footprint and 400 k insertions it ends at 0.9. Defaults insert new keys only, as Silo does.
//!
//! | bytes of a partition | |
//! |---|---|
//! | 64 per stripe | counts of elements |
//! | 8 per bucket | heads of the chains |
//! | 64, then nodes (whole lines) | header and blocks of an arena: one, or one per thread |
//!
//! Private: a partition of one stripe per thread, no locks. Shared: one partition of 64 stripes
//! with a lock each, which a transaction takes in ascending order; each thread allocates from an
//! arena of its own, so that no lock guards allocation. A thread that frees another's block keeps
//! it on its own list.

use super::keyed::{KeyedWorkload, Part};
use super::layout::{Layout, Plan, Share};
use super::locking::STRIPES;
use super::structures::{Element, Hash};
use graven_base::config::ConfigError;
use graven_base::memory::WORD_BYTES;
use graven_machine::workload::{Request, Workload};

/// Buckets for each element of the population.
const BUCKETS: u64 = 2;

/// Bytes that one element adds to the footprint.
pub(super) fn bytes_per_element(element: Element) -> u64 {
    Hash::node_bytes(element) + BUCKETS * WORD_BYTES
}

/// Lays out a table of `stripes` stripes, and an arena for each of the threads that share it.
pub(super) fn place(element: Element, stripes: u32) -> impl Fn(&mut Layout, &Share) -> Part<Hash> {
    move |layout, share| {
        let buckets = share.population.saturating_mul(BUCKETS);
        let root = layout.take(Hash::root_bytes(stripes, buckets));
        let blocks = share.elements_max.iter();
        let arenas = blocks.map(|&max| layout.arena([(Hash::node_bytes(element), max), (0, 0)]));
        let arenas = arenas.collect();
        let structure = Hash::new(root, stripes, buckets, element);
        Part { structure, arenas, threads: share.threads.clone() }
    }
}

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    let plan = Plan::new("hash", request, bytes_per_element)?;
    let stripes = if plan.is_shared() { STRIPES } else { 1 };
    let place = place(plan.element, stripes);
    KeyedWorkload::build(plan, place)
}

#[cfg(test)]
mod tests {
    crate::testing::contract!(super::build);
}
