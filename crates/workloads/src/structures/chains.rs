//! Hash chains in PM: what every hash table here is made of, whatever its nodes hold.
//!
//! | part | content |
//! |---|---|
//! | stripes, one line each | word 0: number of nodes in the buckets of this stripe |
//! | buckets, one word each | address of the first node of the chain, or 0 |
//!
//! Node, one block:
//!
//! | word | content |
//! |---|---|
//! | 0 | next node of the chain, or 0 |
//! | 1.. | its owner's |
//!
//! Bucket b belongs to stripe b modulo the number of stripes; a stripe is what one lock covers, and
//! has a count of its own so that threads under different locks share no word. New nodes go to the
//! front of their chain. Tables are not resized: whoever makes one sizes it for what it will hold.

use super::allocator::{Arena, Census, Class};
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Load, Memory, Ptr};
use graven_machine::workload::Checked;

const NEXT: u64 = 0;

/// Words of a node that belong to the chain: the owner's begin after them.
pub const HEADER_WORDS: u64 = 1;

/// The handle of stripes and buckets.
#[derive(Clone, Copy, Debug)]
pub struct Chains {
    root: Addr,
    stripes: u64,
    buckets: u64,
    /// Origin of the load that determines the bucket, if any.
    origin: u32,
}

impl Chains {
    /// The chains whose stripes and buckets begin at `root`.
    pub fn new(root: Addr, stripes: u32, buckets: u64) -> Self {
        assert!(stripes > 0 && buckets > 0, "a table has a stripe and a bucket");
        Self { root, stripes: stripes.into(), buckets, origin: 0 }
    }

    /// The same chains, to be used with a key that was loaded: as returned by the load of `told`.
    pub fn told_by(self, told: Ptr) -> Self {
        Self { origin: told.origin, ..self }
    }

    /// Bytes of PM that stripes and buckets take (saturating).
    pub fn root_bytes(stripes: u32, buckets: u64) -> u64 {
        buckets.saturating_mul(WORD_BYTES).saturating_add(u64::from(stripes) * LINE_BYTES)
    }

    /// Address, for messages.
    pub fn root(&self) -> Addr {
        self.root
    }

    /// Number of stripes.
    pub fn stripes(&self) -> u64 {
        self.stripes
    }

    /// Number of buckets.
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// The word that points at the first node of bucket `index`.
    pub fn bucket(&self, index: u64) -> Ptr {
        let first = self.root.plus(self.stripes * LINE_BYTES);
        Ptr { addr: first, origin: self.origin }.word(index)
    }

    fn count_of(&self, stripe: u64) -> Ptr {
        Ptr { addr: self.root.plus(stripe * LINE_BYTES), origin: self.origin }
    }

    fn count<M: Memory>(&self, m: &mut M, bucket: u64, step: i64) {
        let at = self.count_of(bucket % self.stripes);
        let count = m.load(at);
        m.store(at, count.wrapping_add_signed(step));
    }

    /// Makes all chains empty.
    pub fn format<M: Memory>(&self, m: &mut M) {
        for stripe in 0..self.stripes {
            m.store(self.count_of(stripe), 0);
        }
        for index in 0..self.buckets {
            m.store(self.bucket(index), 0);
        }
    }

    /// The first node of bucket `index` that `is_sought` says yes to or null, and the word that points
    /// at it (or at null).
    pub fn find<L: Load>(
        &self,
        m: &mut L,
        index: u64,
        mut is_sought: impl FnMut(&mut L, Ptr) -> bool,
    ) -> (Ptr, Ptr) {
        let mut link = self.bucket(index);
        let mut node = m.load_ptr(link);
        while !node.is_null() && !is_sought(m, node) {
            link = node.word(NEXT);
            node = m.load_ptr(link);
        }
        (node, link)
    }

    /// Puts a new node of `class` into bucket `index`; `fill` writes the owner's words.
    pub fn insert<M: Memory>(
        &self,
        m: &mut M,
        (arena, class): (&Arena, Class),
        index: u64,
        fill: impl FnOnce(&mut M, Ptr),
    ) {
        let bucket = self.bucket(index);
        let node = arena.allocate(m, class);
        let first = m.load_ptr(bucket);
        m.store_ptr(node.word(NEXT), first);
        fill(m, node);
        m.store_ptr(bucket, node);
        self.count(m, index, 1);
    }

    /// Takes a node that [`Chains::find`] found in bucket `index` out, and frees it.
    pub fn remove<M: Memory>(
        &self,
        m: &mut M,
        (arena, class): (&Arena, Class),
        index: u64,
        (node, link): (Ptr, Ptr),
    ) {
        let next = m.load_ptr(node.word(NEXT));
        m.store_ptr(link, next);
        arena.free(m, class, node);
        self.count(m, index, -1);
    }

    /// Walks all chains, accounts for each node with the census, and calls `visit` with each node and
    /// its bucket; `visit` checks the rest of it, and returns its key, which no chain may have twice.
    ///
    /// # Errors
    /// The first violation, of the chains or found by `visit`. Ends on any image.
    pub fn walk(
        &self,
        census: &mut Census<'_>,
        class: Class,
        visit: &mut dyn FnMut(&mut Census<'_>, Addr, u64) -> Checked<u64>,
    ) -> Checked {
        let mut counts = vec![0; self.stripes as usize];
        let mut chain = Vec::new();
        for index in 0..self.buckets {
            let mut node = census.address(self.bucket(index).addr);
            chain.clear();
            while node.0 != 0 {
                census.claim(node, class, "node")?;
                chain.push(visit(census, node, index)?);
                node = census.address(node.plus(NEXT * WORD_BYTES));
            }
            counts[(index % self.stripes) as usize] += chain.len() as u64;
            chain.sort_unstable();
            census.no_twins(&chain, |key| format!("key {key} is twice in bucket {index}"))?;
        }
        for (stripe, &walked) in counts.iter().enumerate() {
            let stored = census.load(self.count_of(stripe as u64).addr);
            census.ensure(walked == stored, || {
                format!("{walked} elements in stripe {stripe}, but its count says {stored}")
            })?;
        }
        Ok(())
    }
}
