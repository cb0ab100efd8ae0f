//! An open-chaining hash table of fixed size, in PM.
//!
//! [`Buckets`] has the table of its stripes and buckets. Node, one block:
//!
//! | word | content |
//! |---|---|
//! | 0 | next node of the chain, or 0 |
//! | 1 | key |
//! | 2.. or 8.. | the element: in the node's first line if it fits there, else from the second |

use super::allocator::{Arena, Census, Class, block_bytes};
use super::buckets::{Buckets, HEADER_WORDS};
use super::chains::Chains;
use super::element::Element;
use super::keyed::Keyed;
use graven_base::memory::{Addr, WORD_BYTES};
use graven_machine::program::{LockId, Memory, Ptr};
use graven_machine::workload::Checked;

const NODE: Class = 0;

/// The handle of a hash table.
#[derive(Clone, Copy, Debug)]
pub struct Hash {
    buckets: Buckets,
    element: Element,
    element_word: u64,
}

impl Hash {
    /// The table whose stripes and buckets begin at `root`.
    pub fn new(root: Addr, stripes: u32, buckets: u64, element: Element) -> Self {
        let element_word = element.word_after(HEADER_WORDS);
        Self { buckets: Buckets::new(root, stripes, buckets), element, element_word }
    }

    /// Bytes of PM that stripes and buckets take (saturating).
    pub fn root_bytes(stripes: u32, buckets: u64) -> u64 {
        Chains::root_bytes(stripes, buckets)
    }

    /// Bytes of a node.
    pub fn node_bytes(element: Element) -> u64 {
        block_bytes(element.word_after(HEADER_WORDS) + element.words)
    }
}

impl Keyed for Hash {
    fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        arena.format(m);
        self.buckets.format(m);
    }

    fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let (found, _) = self.buckets.search(m, key);
        if !found.is_null() {
            self.element.update(m, found.word(self.element_word));
            return false;
        }
        self.buckets.insert(m, (arena, NODE), key, |m, node| {
            self.element.create(m, node.word(self.element_word), key);
        });
        true
    }

    fn find<M: Memory>(&self, m: &mut M, key: u64) -> Ptr {
        let (node, _) = self.buckets.search(m, key);
        if node.is_null() { node } else { node.word(self.element_word) }
    }

    fn element(&self) -> Element {
        self.element
    }

    fn remove<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let (node, link) = self.buckets.search(m, key);
        if node.is_null() {
            return false;
        }
        self.buckets.remove(m, (arena, NODE), key, (node, link));
        true
    }

    fn lock_of(&self, key: u64) -> LockId {
        self.buckets.lock_of(key)
    }

    fn root(&self) -> Addr {
        self.buckets.root()
    }

    fn walk(&self, census: &mut Census<'_>, visit: &mut dyn FnMut(u64)) -> Checked {
        self.buckets.walk(census, NODE, &mut |census, node, key| {
            let element = node.plus(self.element_word * WORD_BYTES);
            let holder = || format!("node {node} of key {key}");
            census.check_element(self.element, element, key, holder)?;
            visit(key);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::keyed::testing::*;
    use super::*;
    use crate::testing::Check;
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
        let bucket = table.buckets.bucket(0).addr;
        let first = Addr(image.load(bucket));
        let second = Addr(image.load(first));
        let (key, other) = (image.load(first.plus(8)), image.load(second.plus(8)));
        let stray = (0..).find(|&k| table.buckets.bucket_of(k) == 1).unwrap();
        let mut check = Check::of(&mut image, |image| contents(&table, &arena, image));
        check.finds(table.root(), 0, "elements in stripe 0, but its count says 0");
        check.finds(first.plus(8), stray, "is in the chain of bucket 0, not 1");
        check.finds(first.plus(8), other, &format!("holds the element of key {key}"));
        check.finds(first.plus(64 + 8), 3, "is torn: word 1");
        check.finds(first, 0, "elements in stripe 0");
        check.finds(second, first.0, "overlaps a block met before");
        check.finds(bucket, 1 << 50, "outside every arena");
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
        let (seen, tried) = checked(&table, &arena, &mut image)
            .ends_on_any_word((65600..end).step_by(8), &[table.root().0]);
        let unused = 9 * 6 * 5;
        assert_eq!(seen + unused, tried, "only words 2..8 of a node may hold anything");
    }
}
