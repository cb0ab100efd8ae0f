//! A B+ tree in PM: fan-out 16, elements in blocks of their own that the leaves point at.
//!
//! An [`Index`], which has the table of its bytes, from the keys of elements to their addresses.

use std::ops::ControlFlow;

use super::allocator::{Arena, Census, Class, block_bytes};
use super::element::{Element, KEY_LIMIT};
use super::index::Index;
use super::keyed::Keyed;
use graven_base::memory::Addr;
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::Checked;

/// Class 0 are the nodes of the index.
const ELEMENT: Class = 1;

/// The handle of a B+ tree.
#[derive(Clone, Copy, Debug)]
pub struct BTree {
    index: Index,
    element: Element,
}

impl BTree {
    /// Bytes of PM that the root takes.
    pub const ROOT_BYTES: u64 = Index::ROOT_BYTES;
    /// Bytes of a node.
    pub const NODE_BYTES: u64 = Index::NODE_BYTES;

    /// The tree with its root at `root`.
    pub fn new(root: Addr, element: Element) -> Self {
        Self { index: Index::new(root), element }
    }

    /// Bytes of the block of one element.
    pub fn element_bytes(element: Element) -> u64 {
        block_bytes(element.words)
    }

    /// Nodes of a tree of `elements` elements, at most.
    pub fn nodes_max(elements: u64) -> u64 {
        Index::nodes_max(elements)
    }

    /// Reads the elements of up to `records` keys in ascending order, from the first that is at least `key`, and
    /// calls `visit` with each key.
    pub fn scan<M: Memory>(&self, m: &mut M, key: u64, records: u64, visit: &mut dyn FnMut(u64)) {
        let mut left = records;
        if left == 0 {
            return;
        }
        self.index.scan(m, key..=u64::MAX, |m, key, element| {
            visit(key);
            self.element.read(m, element);
            left -= 1;
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }
}

impl Keyed for BTree {
    fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        arena.format(m);
        self.index.format(m, arena);
    }

    fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let present = self.index.insert_with(m, arena, key, |m| {
            let element = arena.allocate(m, ELEMENT);
            self.element.create(m, element, key);
            element
        });
        if let Some(element) = present {
            self.element.update(m, element);
        }
        present.is_none()
    }

    fn find<M: Memory>(&self, m: &mut M, key: u64) -> Ptr {
        self.index.get(m, key).unwrap_or(Ptr::NULL)
    }

    fn element(&self) -> Element {
        self.element
    }

    fn remove<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        self.index.remove_with(m, arena, key, |m, element| arena.free(m, ELEMENT, element))
    }

    fn root(&self) -> Addr {
        self.index.root()
    }

    fn walk(&self, census: &mut Census<'_>, visit: &mut dyn FnMut(u64)) -> Checked {
        self.index.walk(census, 0..KEY_LIMIT, &mut |census, key, element| {
            census.claim_element((element, ELEMENT), self.element, key)?;
            visit(key);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::{KEYS, LINK, SLOTS};
    use super::super::keyed::testing::*;
    use super::*;
    use graven_base::memory::Image;
    use graven_machine::program::Direct;
    use proptest::prelude::*;

    fn tree(element_bytes: u64) -> (BTree, Arena) {
        let element = Element::of_bytes(element_bytes);
        let sizes = [BTree::NODE_BYTES, BTree::element_bytes(element)];
        let arena = Arena::new(Addr(4160), Addr(8192), Addr(1 << 22), sizes);
        (BTree::new(Addr(4096), element), arena)
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_set(
            steps in prop::collection::vec((0..8u8, 0..600u64), 0..1500),
            element_bytes in prop_oneof![Just(8), Just(64), Just(200)],
        ) {
            let (tree, arena) = tree(element_bytes);
            agrees_with_a_set(&tree, &arena, &steps);
        }
    }

    #[test]
    fn growing_and_shrinking_from_either_end_keeps_nodes_filled() {
        let (tree, arena) = tree(8);
        let up = (0..1000).map(|k| (0, k));
        let down = || (0..1000).rev().map(|k| (4, k));
        let scattered = |kind: u8| (0..1000).map(move |k| (kind, k * 389 % 1000));
        agrees_with_a_set(&tree, &arena, &up.clone().chain(down()).collect::<Vec<_>>());
        let steps = up.chain((0..1000).map(|k| (4, k)));
        agrees_with_a_set(&tree, &arena, &steps.collect::<Vec<_>>());
        let steps = (0..1000).rev().map(|k| (0, k)).chain(scattered(4));
        agrees_with_a_set(&tree, &arena, &steps.collect::<Vec<_>>());
        let steps = scattered(0).chain(down());
        agrees_with_a_set(&tree, &arena, &steps.collect::<Vec<_>>());
    }

    #[test]
    fn a_tree_never_has_more_nodes_than_its_arena_is_sized_for() {
        let (tree, arena) = tree(8);
        // Ascending insertion leaves every left half as it was split: the emptiest tree.
        let image = filled(&tree, &arena, 0..3000);
        let mut census = Census::begin("test".into(), &image, &[arena]).unwrap();
        tree.walk(&mut census, &mut |_| {}).unwrap();
        let bytes = image.load(Addr(4160)) - 8192 - 3000 * 64;
        assert!(bytes / BTree::NODE_BYTES <= BTree::nodes_max(3000));
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (tree, arena) = tree(64);
        let mut image = filled(&tree, &arena, 0..40);
        let root = Addr(image.load(tree.root()));
        let child = |image: &Image, i: u64| Addr(image.load(root.plus(8 * (16 + i))));
        let (second, third) = (child(&image, 1), child(&image, 2));
        let element = Addr(image.load(second.plus(SLOTS * 8)));
        let mut check = checked(&tree, &arena, &mut image);
        check.finds(tree.root().plus(8), 39, "40 elements, but the count says 39");
        check.finds(tree.root(), 0, "node 0x0 lies outside every arena");
        check.finds(second, 6 * 2 + 1, "has 6 keys, not 7..=15");
        check.finds(second, 16 * 2 + 1, "has 16 keys, not 7..=15");
        check.finds(root, 0, "has 0 keys, not 1..=15");
        check.finds(second.plus(KEYS * 8), 7, "key 0 of node");
        check.finds(second.plus((KEYS + 2) * 8), 9, "key 2 of node");
        check.finds(second.plus(LINK * 8), 0, "is linked to 0x0, not to");
        check.finds(root.plus((SLOTS + 1) * 8), second.0, "overlaps a block met before");
        check.finds(second.plus(SLOTS * 8), root.0, "overlaps a block met before");
        check.finds(second.plus((SLOTS + 1) * 8), 8, "element 0x8 lies outside every arena");
        check.finds(element, 1 << 40 | 3, "is torn: word 1 of key 3");
        check.finds(element.plus(24), 0, "is torn: word 3 of key 8");
        check.finds(Addr(4160 + 8), third.0, "free block 0x11 lies outside every arena");
    }

    #[test]
    fn a_scan_visits_keys_in_order_from_the_first_that_is_not_below() {
        let (tree, arena) = tree(8);
        let mut image = filled(&tree, &arena, (0..500).map(|k| k * 389 % 500 * 3));
        for (first, records) in [(0, 1), (0, 500), (1, 40), (299, 100), (1490, 100), (1498, 5)] {
            let mut visited = Vec::new();
            tree.scan(&mut Direct::new(&mut image), first, records, &mut |key| visited.push(key));
            let keys = (0..500).map(|k| k * 3).filter(|&k| k >= first);
            assert!(keys.take(records as usize).eq(visited), "{records} from {first}");
        }
    }

    #[test]
    fn a_leaf_at_another_depth_is_seen() {
        let (tree, arena) = tree(8);
        let mut image = filled(&tree, &arena, 0..400);
        let root = Addr(image.load(tree.root()));
        let inner = Addr(image.load(root.plus(LINK * 8)));
        let leaf = image.load(inner.plus(LINK * 8));
        image.store(root.plus(LINK * 8), leaf);
        let what = contents(&tree, &arena, &image).unwrap_err().what;
        assert!(what.contains("levels deep, the first leaf 1"), "{what}");
    }

    #[test]
    fn the_check_ends_on_any_word() {
        let (tree, arena) = tree(64);
        let mut image = filled(&tree, &arena, 0..40);
        let used = image.load(Addr(4160));
        let (seen, tried) = checked(&tree, &arena, &mut image)
            .ends_on_any_word((8192..used).step_by(8), &[tree.root().0]);
        assert!(seen > tried / 2 && seen < tried, "{seen} of {tried}: slack of nodes is free");
    }
}
