//! An open-chaining hash table of fixed size, in PM.
//!
//! | part | content |
//! |---|---|
//! | stripes, one line each | word 0: number of elements in the buckets of this stripe |
//! | buckets, one word each | address of the first node of the chain, or 0 |
//!
//! Node, one block:
//!
//! | word | content |
//! |---|---|
//! | 0 | next node of the chain, or 0 |
//! | 1 | key |
//! | 2.. or 8.. | the element: in the node's first line if it fits there, else from the second |
//!
//! Bucket b belongs to stripe b modulo the number of stripes; a stripe is what one lock covers, and
//! has a count of its own so that threads under different locks share no word. New nodes go to the
//! front of their chain. The table is not resized: whoever makes one sizes it for what it will
//! hold.

use super::allocator::{Arena, Census, Class, block_bytes};
use super::element::Element;
use super::keyed::Keyed;
use crate::memory::{Addr, Image, LINE_BYTES, WORD_BYTES, mix};
use crate::program::{LockId, Memory, Ptr};
use crate::workloads::{Violation, costs};

const NEXT: u64 = 0;
const KEY: u64 = 1;
const HEADER_WORDS: u64 = 2;

const NODE: Class = 0;

/// The handle of a hash table.
#[derive(Clone, Copy, Debug)]
pub struct Hash {
    root: Addr,
    stripes: u64,
    buckets: u64,
    element: Element,
    element_word: u64,
}

impl Hash {
    /// The table whose stripes and buckets begin at `root`.
    pub fn new(root: Addr, stripes: u32, buckets: u64, element: Element) -> Self {
        assert!(stripes > 0 && buckets > 0, "a table has a stripe and a bucket");
        let element_word = element.word_after(HEADER_WORDS);
        Self { root, stripes: stripes.into(), buckets, element, element_word }
    }

    /// Bytes of PM that stripes and buckets take (saturating).
    pub fn root_bytes(stripes: u32, buckets: u64) -> u64 {
        buckets.saturating_mul(WORD_BYTES).saturating_add(u64::from(stripes) * LINE_BYTES)
    }

    /// Bytes of a node.
    pub fn node_bytes(element: Element) -> u64 {
        block_bytes(element.word_after(HEADER_WORDS) + element.words)
    }

    fn bucket_of(&self, key: u64) -> u64 {
        let hash = mix(key.wrapping_add(0x9e37_79b9_7f4a_7c15));
        ((u128::from(hash) * u128::from(self.buckets)) >> 64) as u64
    }

    fn bucket(&self, index: u64) -> Ptr {
        Ptr::known(self.root.plus(self.stripes * LINE_BYTES)).word(index)
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
    fn search<M: Memory>(&self, m: &mut M, key: u64) -> (Ptr, Ptr) {
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
}

impl Keyed for Hash {
    fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        arena.format(m);
        for stripe in 0..self.stripes {
            m.store(self.count_of(stripe), 0);
        }
        for index in 0..self.buckets {
            m.store(self.bucket(index), 0);
        }
    }

    fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let (found, _) = self.search(m, key);
        if !found.is_null() {
            self.element.update(m, found.word(self.element_word));
            return false;
        }
        let bucket = self.bucket(self.bucket_of(key));
        let node = arena.allocate(m, NODE);
        let first = m.load_ptr(bucket);
        m.store_ptr(node.word(NEXT), first);
        m.store(node.word(KEY), key);
        self.element.create(m, node.word(self.element_word), key);
        m.store_ptr(bucket, node);
        self.count(m, key, 1);
        true
    }

    fn update<M: Memory>(&self, m: &mut M, key: u64) -> bool {
        let (node, _) = self.search(m, key);
        if node.is_null() {
            return false;
        }
        self.element.update(m, node.word(self.element_word));
        true
    }

    fn remove<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let (node, link) = self.search(m, key);
        if node.is_null() {
            return false;
        }
        let next = m.load_ptr(node.word(NEXT));
        m.store_ptr(link, next);
        arena.free(m, NODE, node);
        self.count(m, key, -1);
        true
    }

    fn lock_of(&self, key: u64) -> LockId {
        (self.bucket_of(key) % self.stripes) as LockId
    }

    fn root(&self) -> Addr {
        self.root
    }

    fn walk(
        &self,
        image: &Image,
        census: &mut Census,
        visit: &mut dyn FnMut(u64),
    ) -> Result<(), Violation> {
        let mut counts = vec![0; self.stripes as usize];
        let mut chain = Vec::new();
        for index in 0..self.buckets {
            let mut node = Addr(image.load(self.bucket(index).addr));
            chain.clear();
            while node.0 != 0 {
                census.claim(node, NODE, "node")?;
                let key = image.load(node.plus(KEY * WORD_BYTES));
                if self.bucket_of(key) != index {
                    return Err(census.broken(format!(
                        "node {node} of key {key} is in the chain of bucket {index}, not {}",
                        self.bucket_of(key)
                    )));
                }
                self.check_element(image, census, node, key)?;
                visit(key);
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

impl Hash {
    fn check_element(
        &self,
        image: &Image,
        census: &Census,
        node: Addr,
        key: u64,
    ) -> Result<(), Violation> {
        match self.element.check(image, node.plus(self.element_word * WORD_BYTES)) {
            Ok(found) if found == key => Ok(()),
            Ok(found) => {
                Err(census
                    .broken(format!("node {node} of key {key} holds the element of key {found}")))
            }
            Err(torn) => Err(census.broken(torn)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keyed::testing::*;
    use super::*;
    use proptest::prelude::*;

    fn table(element_bytes: u64, buckets: u64) -> (Hash, Arena) {
        let element = Element::of_bytes(element_bytes);
        let table = Hash::new(Addr(4096), 4, buckets, element);
        let arena =
            Arena::new(Addr(65536), Addr(65600), Addr(1 << 22), [Hash::node_bytes(element), 0]);
        (table, arena)
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_set(
            steps in prop::collection::vec((0..8u8, 0..200u64), 0..600),
            element_bytes in prop_oneof![Just(8), Just(64), Just(200)],
            buckets in 1..100u64,
        ) {
            let (table, arena) = table(element_bytes, buckets);
            agrees_with_a_set(&table, &arena, &steps);
        }
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (table, arena) = table(64, 2);
        let mut image = filled(&table, &arena, 0..20);
        let both = (&table, &arena);
        let bucket = table.bucket(0).addr;
        let first = Addr(image.load(bucket));
        let second = Addr(image.load(first));
        let (key, other) = (image.load(first.plus(8)), image.load(second.plus(8)));
        let stray = (0..).find(|&k| table.bucket_of(k) == 1).unwrap();
        convicts(both, &mut image, (table.root, 0), "elements in stripe 0, but its count says 0");
        convicts(both, &mut image, (first.plus(8), stray), "is in the chain of bucket 0, not 1");
        convicts(
            both,
            &mut image,
            (first.plus(8), other),
            &format!("holds the element of key {key}"),
        );
        convicts(both, &mut image, (first.plus(64 + 8), 3), "is torn: word 1");
        convicts(both, &mut image, (first, 0), "elements in stripe 0");
        convicts(both, &mut image, (second, first.0), "overlaps a block met before");
        convicts(both, &mut image, (bucket, 1 << 50), "outside every arena");
        for word in 1..16 {
            image.store(second.plus(word * 8), image.load(first.plus(word * 8)));
        }
        let twins = contents(&table, &arena, &image).unwrap_err().what;
        assert_eq!(twins, format!("key {key} is twice in bucket 0"));
    }

    #[test]
    fn the_check_ends_on_any_word() {
        let (table, arena) = table(64, 3);
        let mut image = filled(&table, &arena, 0..9);
        let end = 65600 + 9 * 128;
        let (seen, tried) = survives_any_word(&table, &arena, &mut image, 65600..end);
        let unused = 9 * 6 * 5;
        assert_eq!(seen + unused, tried, "only words 2..8 of a node may hold anything");
    }
}
