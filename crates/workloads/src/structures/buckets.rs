//! An open-chaining hash table of fixed size, in PM, whose nodes have a number as their key, whatever else they hold.
//!
//! [`Chains`] has the table of its stripes and buckets. The first words of a node:
//!
//! | word | content |
//! |---|---|
//! | 0 | next node of the chain, or 0 |
//! | 1 | key |

use super::allocator::{Arena, Census, Class};
use super::chains::{self, Chains};
use crate::costs;
use graven_base::memory::{Addr, WORD_BYTES, mix};
use graven_machine::program::{LockId, Memory, Ptr};
use graven_machine::workload::Checked;

const KEY: u64 = chains::HEADER_WORDS;

/// Words that a node begins with.
pub const HEADER_WORDS: u64 = KEY + 1;

/// The handle of a table.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    chains: Chains,
}

impl Buckets {
    /// The table whose stripes and buckets begin at `root`.
    pub fn new(root: Addr, stripes: u32, buckets: u64) -> Self {
        Self { chains: Chains::new(root, stripes, buckets) }
    }

    /// Address, for messages.
    pub fn root(&self) -> Addr {
        self.chains.root()
    }

    /// Makes the table empty.
    pub fn format<M: Memory>(&self, m: &mut M) {
        self.chains.format(m);
    }

    /// Number of the bucket that `key` belongs to.
    pub fn bucket_of(&self, key: u64) -> u64 {
        let hash = mix(key.wrapping_add(0x9e37_79b9_7f4a_7c15));
        ((u128::from(hash) * u128::from(self.chains.buckets())) >> 64) as u64
    }

    /// The word of bucket `index`.
    #[cfg(test)]
    pub fn bucket(&self, index: u64) -> Ptr {
        self.chains.bucket(index)
    }

    /// The lock that covers every word which a search for `key` reads, or its insertion stores.
    pub fn lock_of(&self, key: u64) -> LockId {
        (self.bucket_of(key) % self.chains.stripes()) as LockId
    }

    /// The node of `key` or null, and the word that points at it (or at null).
    pub fn search<M: Memory>(&self, m: &mut M, key: u64) -> (Ptr, Ptr) {
        m.compute(costs::HASH);
        self.chains.find(m, self.bucket_of(key), |m, node| {
            m.compute(costs::COMPARE);
            m.load(node.word(KEY)) == key
        })
    }

    /// Puts a new node of `class` for `key`, which is absent, to the front of its chain; `fill` writes what it holds.
    pub fn insert<M: Memory>(
        &self,
        m: &mut M,
        block: (&Arena, Class),
        key: u64,
        fill: impl FnOnce(&mut M, Ptr),
    ) {
        self.chains.insert(m, block, self.bucket_of(key), |m, node| {
            m.store(node.word(KEY), key);
            fill(m, node);
        });
    }

    /// Takes the node of `key` that a search found out, and frees it.
    pub fn remove<M: Memory>(
        &self,
        m: &mut M,
        block: (&Arena, Class),
        key: u64,
        found: (Ptr, Ptr),
    ) {
        self.chains.remove(m, block, self.bucket_of(key), found);
    }

    /// Walks all chains, claims each node as a block of `class`, checks that it is in the right one, once,
    /// and that stripes count what they have; `visit` checks the rest of a node, of which it gets address
    /// and key.
    ///
    /// # Errors
    /// The first violation. Ends on any image.
    pub fn walk(
        &self,
        census: &mut Census<'_>,
        class: Class,
        visit: &mut dyn FnMut(&mut Census<'_>, Addr, u64) -> Checked,
    ) -> Checked {
        self.chains.walk(census, class, &mut |census, node, index| {
            let key = census.load(node.plus(KEY * WORD_BYTES));
            let bucket = self.bucket_of(key);
            census.ensure(bucket == index, || {
                format!("node {node} of key {key} is in the chain of bucket {index}, not {bucket}")
            })?;
            visit(census, node, key)?;
            Ok(key)
        })
    }
}
