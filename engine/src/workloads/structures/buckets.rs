//! The buckets of an open-chaining hash table of fixed size, in PM, whatever its nodes hold.
//!
//! | part | content |
//! |---|---|
//! | stripes, one line each | word 0: number of nodes in the buckets of this stripe |
//! | buckets, one word each | address of the first node of the chain, or 0 |
//!
//! The first words of a node:
//!
//! | word | content |
//! |---|---|
//! | 0 | next node of the chain, or 0 |
//! | 1 | key |
//!
//! Bucket b belongs to stripe b modulo the number of stripes; a stripe is what one lock covers, and
//! has a count of its own so that threads under different locks share no word. New nodes go to the
//! front of their chain. The table is not resized: whoever makes one sizes it for what it will
//! hold.

use super::allocator::{Census, Class};
use crate::memory::{Addr, Image, LINE_BYTES, WORD_BYTES, mix};
use crate::program::{LockId, Memory, Ptr};
use crate::workloads::{Violation, costs};

const NEXT: u64 = 0;
const KEY: u64 = 1;

/// Words that a node begins with.
pub const HEADER_WORDS: u64 = 2;

/// The handle of a table's stripes and buckets.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    /// Where they begin.
    pub root: Addr,
    stripes: u64,
    buckets: u64,
}

impl Buckets {
    /// The stripes and buckets that begin at `root`.
    pub fn new(root: Addr, stripes: u32, buckets: u64) -> Self {
        assert!(stripes > 0 && buckets > 0, "a table has a stripe and a bucket");
        Self { root, stripes: stripes.into(), buckets }
    }

    /// Bytes of PM that they take (saturating).
    pub fn bytes(stripes: u32, buckets: u64) -> u64 {
        buckets.saturating_mul(WORD_BYTES).saturating_add(u64::from(stripes) * LINE_BYTES)
    }

    /// Makes the table empty.
    pub fn format<M: Memory>(&self, m: &mut M) {
        for stripe in 0..self.stripes {
            m.store(self.count_of(stripe), 0);
        }
        for index in 0..self.buckets {
            m.store(self.bucket(index), 0);
        }
    }

    /// Number of the bucket that `key` belongs to.
    pub fn bucket_of(&self, key: u64) -> u64 {
        let hash = mix(key.wrapping_add(0x9e37_79b9_7f4a_7c15));
        ((u128::from(hash) * u128::from(self.buckets)) >> 64) as u64
    }

    /// The word of bucket `index`.
    pub fn bucket(&self, index: u64) -> Ptr {
        Ptr::known(self.root.plus(self.stripes * LINE_BYTES)).word(index)
    }

    /// The lock that covers every word which a search for `key` reads, or its insertion stores.
    pub fn lock_of(&self, key: u64) -> LockId {
        (self.bucket_of(key) % self.stripes) as LockId
    }

    fn count_of(&self, stripe: u64) -> Ptr {
        Ptr::known(self.root.plus(stripe * LINE_BYTES))
    }

    fn count<M: Memory>(&self, m: &mut M, key: u64, step: i64) {
        let at = self.count_of(self.bucket_of(key) % self.stripes);
        let count = m.load(at);
        m.store(at, count.wrapping_add_signed(step));
    }

    /// The node of `key` or null, and the word that points at it (or at null).
    pub fn search<M: Memory>(&self, m: &mut M, key: u64) -> (Ptr, Ptr) {
        m.compute(costs::HASH);
        let mut link = self.bucket(self.bucket_of(key));
        let mut node = m.load_ptr(link);
        while !node.is_null() {
            m.compute(costs::COMPARE);
            if m.load(node.word(KEY)) == key {
                break;
            }
            link = node.word(NEXT);
            node = m.load_ptr(link);
        }
        (node, link)
    }

    /// Writes the first words of a new node of `key`, which is absent.
    pub fn begin<M: Memory>(&self, m: &mut M, node: Ptr, key: u64) {
        let first = m.load_ptr(self.bucket(self.bucket_of(key)));
        m.store_ptr(node.word(NEXT), first);
        m.store(node.word(KEY), key);
    }

    /// Puts the node, which is complete now, at the front of its chain.
    pub fn link<M: Memory>(&self, m: &mut M, node: Ptr, key: u64) {
        m.store_ptr(self.bucket(self.bucket_of(key)), node);
        self.count(m, key, 1);
    }

    /// Takes a node out of its chain, where `link` points at it; `freed` gives it back.
    pub fn unlink<M: Memory>(
        &self,
        m: &mut M,
        (node, link): (Ptr, Ptr),
        key: u64,
        freed: impl FnOnce(&mut M),
    ) {
        let next = m.load_ptr(node.word(NEXT));
        m.store_ptr(link, next);
        freed(m);
        self.count(m, key, -1);
    }

    /// Walks all chains, claims each node as a block of `class`, checks that it is in the right one, once,
    /// and that stripes count what they have; `visit` checks the rest of a node, of which it gets address
    /// and key.
    ///
    /// # Errors
    /// The first violation. Ends on any image.
    pub fn walk(
        &self,
        image: &Image,
        census: &mut Census,
        class: Class,
        visit: &mut dyn FnMut(&mut Census, Addr, u64) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let mut counts = vec![0; self.stripes as usize];
        let mut chain = Vec::new();
        for index in 0..self.buckets {
            let mut node = Addr(image.load(self.bucket(index).addr));
            chain.clear();
            while node.0 != 0 {
                census.claim(node, class, "node")?;
                let key = image.load(node.plus(KEY * WORD_BYTES));
                if self.bucket_of(key) != index {
                    return Err(census.broken(format!(
                        "node {node} of key {key} is in the chain of bucket {index}, not {}",
                        self.bucket_of(key)
                    )));
                }
                visit(census, node, key)?;
                chain.push(key);
                node = Addr(image.load(node.plus(NEXT * WORD_BYTES)));
            }
            counts[(index % self.stripes) as usize] += chain.len() as u64;
            chain.sort_unstable();
            if let Some(twins) = chain.windows(2).find(|pair| pair[0] == pair[1]) {
                let what = format!("key {} is twice in bucket {index}", twins[0]);
                return Err(census.broken(what));
            }
        }
        for (stripe, &walked) in counts.iter().enumerate() {
            let stored = image.load(self.count_of(stripe as u64).addr);
            if walked != stored {
                return Err(census.broken(format!(
                    "{walked} elements in stripe {stripe}, but its count says {stored}"
                )));
            }
        }
        Ok(())
    }
}
