//! A B+ tree in PM: fan-out 16, elements in blocks of their own that the leaves point at.
//!
//! Root (one line):
//!
//! | word | content |
//! |---|---|
//! | 0 | address of the root node |
//! | 1 | number of elements |
//!
//! Node, one block of four lines (256 B):
//!
//! | word | in a leaf | in an inner node |
//! |---|---|---|
//! | 0 | twice the number of keys, plus 1 | twice the number of keys |
//! | 1 | next leaf to the right, or 0 | child left of all keys |
//! | 2..17 | keys, ascending | keys, ascending |
//! | 17..32 | address of the element of each key | child right of each key |
//!
//! Key k of an inner node is at most every key right of it and greater than every key left of it;
//! it need not be present itself. Every node but the root has at least 7 keys. Insertion splits
//! full nodes, and removal refills nodes of 7 keys (from a neighbour, or by merging with it), on
//! the way down, so that neither ever goes back up. Nodes are searched by bisection; keys and
//! pointers shift to make room, word by word.

mod node;

use self::node::{KEYS_MAX, LINK, Node, SLOTS, copy};
use super::allocator::{Arena, Census, Class, block_bytes};
use super::element::{Element, KEY_LIMIT};
use super::keyed::Keyed;
use crate::memory::{Addr, Image, LINE_BYTES, WORD_BYTES};
use crate::program::{Memory, Ptr};
use crate::workloads::{Violation, costs};

const ROOT: u64 = 0;
const COUNT: u64 = 1;

/// Keys of a node that is not the root, at least.
const KEYS_MIN: u64 = 7;
/// Keys that stay in the left half of a split leaf; an inner node gives one of them to its parent.
const HALF: u64 = 8;
const NODE_WORDS: u64 = 32;
const _: () = assert!(SLOTS + KEYS_MAX == NODE_WORDS && 2 * KEYS_MIN < KEYS_MAX);

const NODE: Class = 0;
const ELEMENT: Class = 1;

/// A tree of nodes with 8 children or more is not deeper in a 64-bit address space; bounds the
/// check.
const DEPTH_MAX: u32 = 24;

/// The handle of a B+ tree.
#[derive(Clone, Copy, Debug)]
pub struct BTree {
    root: Addr,
    element: Element,
}

impl BTree {
    /// Bytes of PM that the root takes.
    pub const ROOT_BYTES: u64 = LINE_BYTES;
    /// Bytes of a node.
    pub const NODE_BYTES: u64 = NODE_WORDS * WORD_BYTES;

    /// The tree with its root at `root`.
    pub fn new(root: Addr, element: Element) -> Self {
        Self { root, element }
    }

    /// Bytes of the block of one element.
    pub fn element_bytes(element: Element) -> u64 {
        block_bytes(element.words)
    }

    /// Nodes of a tree of `elements` elements, at most: 7 keys to a leaf, 8 children to an inner
    /// node.
    pub fn nodes_max(elements: u64) -> u64 {
        elements / 6 + 16
    }

    fn field(&self, word: u64) -> Ptr {
        Ptr::known(self.root).word(word)
    }

    fn root_node<M: Memory>(&self, m: &mut M) -> Node {
        let at = m.load_ptr(self.field(ROOT));
        Node::load(m, at)
    }

    fn count<M: Memory>(&self, m: &mut M, step: i64) {
        let count = m.load(self.field(COUNT));
        m.store(self.field(COUNT), count.wrapping_add_signed(step));
    }

    fn new_node<M: Memory>(m: &mut M, arena: &Arena, is_leaf: bool) -> Node {
        Node { at: arena.allocate(m, NODE), keys: 0, is_leaf }
    }

    /// Splits the full `left`, child `index` of `parent`; returns its new right half and the key
    /// between them.
    fn split<M: Memory>(
        m: &mut M,
        arena: &Arena,
        parent: &mut Node,
        index: u64,
        left: &mut Node,
    ) -> (u64, Node) {
        m.compute(costs::REBALANCE);
        let mut right = Self::new_node(m, arena, left.is_leaf);
        right.append(m, left, HALF);
        let between;
        if left.is_leaf {
            copy(m, left.link(), right.link());
            m.store_ptr(left.link(), right.at);
            between = m.load(right.key(0));
            left.set_keys(m, HALF);
        } else {
            copy(m, left.slot(HALF - 1), right.link());
            between = m.load(left.key(HALF - 1));
            left.set_keys(m, HALF - 1);
        }
        parent.insert_at(m, index, between, right.at);
        (between, right)
    }

    /// Gives `child`, child `index` of `parent`, which has as few keys as it may, another key, or
    /// merges it with a neighbour; returns the node that its keys are in now.
    fn refill<M: Memory>(
        m: &mut M,
        arena: &Arena,
        parent: &mut Node,
        index: u64,
        mut child: Node,
    ) -> Node {
        m.compute(costs::REBALANCE);
        let mut left = None;
        if index > 0 {
            let at = m.load_ptr(parent.child(index - 1));
            let mut node = Node::load(m, at);
            if node.keys > KEYS_MIN {
                Self::take_last(m, parent.key(index - 1), &mut node, &mut child);
                return child;
            }
            left = Some(node);
        }
        if index < parent.keys {
            let at = m.load_ptr(parent.child(index + 1));
            let mut node = Node::load(m, at);
            if node.keys > KEYS_MIN {
                Self::take_first(m, parent.key(index), &mut child, &mut node);
                return child;
            }
            if left.is_none() {
                Self::merge(m, arena, parent, index, &mut child, node);
                return child;
            }
        }
        let mut left = left.expect("an inner node has two children or more");
        Self::merge(m, arena, parent, index - 1, &mut left, child);
        left
    }

    /// Moves the last key of `left` to the front of `child`; `between` is the word of the key
    /// between.
    fn take_last<M: Memory>(m: &mut M, between: Ptr, left: &mut Node, child: &mut Node) {
        let last = left.keys - 1;
        let key = m.load(left.key(last));
        let slot = m.load_ptr(left.slot(last));
        if child.is_leaf {
            child.insert_at(m, 0, key, slot);
        } else {
            let separator = m.load(between);
            let first = m.load_ptr(child.link());
            child.insert_at(m, 0, separator, first);
            m.store_ptr(child.link(), slot);
        }
        m.store(between, key);
        left.set_keys(m, last);
    }

    /// Moves the first key of `right` to the end of `child`; `between` is the word of the key
    /// between.
    fn take_first<M: Memory>(m: &mut M, between: Ptr, child: &mut Node, right: &mut Node) {
        let key = m.load(right.key(0));
        let slot = m.load_ptr(right.slot(0));
        if child.is_leaf {
            child.insert_at(m, child.keys, key, slot);
            right.remove_at(m, 0);
            copy(m, right.key(0), between);
        } else {
            let separator = m.load(between);
            let first = m.load_ptr(right.link());
            child.insert_at(m, child.keys, separator, first);
            m.store_ptr(right.link(), slot);
            right.remove_at(m, 0);
            m.store(between, key);
        }
    }

    /// Moves all of `right` to the end of `left`, its neighbour across key `index` of `parent`.
    fn merge<M: Memory>(
        m: &mut M,
        arena: &Arena,
        parent: &mut Node,
        index: u64,
        left: &mut Node,
        right: Node,
    ) {
        if left.is_leaf {
            copy(m, right.link(), left.link());
        } else {
            let separator = m.load(parent.key(index));
            let first = m.load_ptr(right.link());
            left.insert_at(m, left.keys, separator, first);
        }
        left.append(m, &right, 0);
        parent.remove_at(m, index);
        arena.free(m, NODE, right.at);
    }

    /// The leaf that `key` is in, if it is anywhere.
    fn leaf_of<M: Memory>(&self, m: &mut M, key: u64) -> Node {
        let mut node = self.root_node(m);
        while !node.is_leaf {
            let index = node.rank(m, key, true);
            let child = m.load_ptr(node.child(index));
            node = Node::load(m, child);
        }
        node
    }

    /// Reads the elements of up to `records` keys in ascending order, from the first that is at least `key`, and
    /// calls `visit` with each key.
    pub fn scan<M: Memory>(&self, m: &mut M, key: u64, records: u64, visit: &mut dyn FnMut(u64)) {
        let mut leaf = self.leaf_of(m, key);
        let mut position = leaf.rank(m, key, false);
        let mut left = records;
        while left > 0 {
            m.compute(costs::COMPARE);
            if position == leaf.keys {
                let next = m.load_ptr(leaf.link());
                if next.is_null() {
                    return;
                }
                leaf = Node::load(m, next);
                position = 0;
                continue;
            }
            visit(m.load(leaf.key(position)));
            let element = m.load_ptr(leaf.slot(position));
            self.element.read(m, element);
            (position, left) = (position + 1, left - 1);
        }
    }
}

impl Keyed for BTree {
    fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        arena.format(m);
        let mut leaf = Self::new_node(m, arena, true);
        leaf.set_keys(m, 0);
        m.store(leaf.link(), 0);
        m.store_ptr(self.field(ROOT), leaf.at);
        m.store(self.field(COUNT), 0);
    }

    fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let mut node = self.root_node(m);
        if node.keys == KEYS_MAX {
            let mut root = Self::new_node(m, arena, false);
            m.store_ptr(root.link(), node.at);
            m.store_ptr(self.field(ROOT), root.at);
            let (between, right) = Self::split(m, arena, &mut root, 0, &mut node);
            if key >= between {
                node = right;
            }
        }
        while !node.is_leaf {
            let index = node.rank(m, key, true);
            let at = m.load_ptr(node.child(index));
            let mut child = Node::load(m, at);
            if child.keys == KEYS_MAX {
                let (between, right) = Self::split(m, arena, &mut node, index, &mut child);
                if key >= between {
                    child = right;
                }
            }
            node = child;
        }
        match node.find(m, key) {
            Ok(position) => {
                let element = m.load_ptr(node.slot(position));
                self.element.update(m, element);
                false
            }
            Err(position) => {
                let element = arena.allocate(m, ELEMENT);
                self.element.create(m, element, key);
                node.insert_at(m, position, key, element);
                self.count(m, 1);
                true
            }
        }
    }

    fn find<M: Memory>(&self, m: &mut M, key: u64) -> Ptr {
        let leaf = self.leaf_of(m, key);
        match leaf.find(m, key) {
            Ok(position) => m.load_ptr(leaf.slot(position)),
            Err(_) => Ptr::NULL,
        }
    }

    fn element(&self) -> Element {
        self.element
    }

    fn remove<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let mut node = self.root_node(m);
        while !node.is_leaf {
            let index = node.rank(m, key, true);
            let at = m.load_ptr(node.child(index));
            let mut child = Node::load(m, at);
            if child.keys <= KEYS_MIN {
                child = Self::refill(m, arena, &mut node, index, child);
            }
            if node.keys == 0 {
                // Only the root has as few as one key to lose to a merge.
                m.store_ptr(self.field(ROOT), child.at);
                arena.free(m, NODE, node.at);
            }
            node = child;
        }
        let Ok(position) = node.find(m, key) else { return false };
        let element = m.load_ptr(node.slot(position));
        node.remove_at(m, position);
        arena.free(m, ELEMENT, element);
        self.count(m, -1);
        true
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
        let root = Addr(image.load(self.field(ROOT).addr));
        let mut walk =
            Walk { tree: self, image, census, visit, count: 0, leaf_depth: None, last_leaf: None };
        walk.subtree(root, (0, KEY_LIMIT), 0)?;
        walk.end_of_leaves()?;
        let (walked, stored) = (walk.count, image.load(self.field(COUNT).addr));
        if walked != stored {
            return Err(census.broken(format!("{walked} elements, but the count says {stored}")));
        }
        Ok(())
    }
}

/// A check under way.
struct Walk<'a> {
    tree: &'a BTree,
    image: &'a Image,
    census: &'a mut Census,
    visit: &'a mut dyn FnMut(u64),
    count: u64,
    leaf_depth: Option<u32>,
    last_leaf: Option<Addr>,
}

impl Walk<'_> {
    /// Checks the subtree at `at`, whose keys lie in `first..end`.
    fn subtree(&mut self, at: Addr, (first, end): (u64, u64), depth: u32) -> Result<(), Violation> {
        if depth > DEPTH_MAX {
            return Err(self.census.broken(format!("node {at} is {depth} levels deep")));
        }
        self.census.claim(at, NODE, "node")?;
        let image = self.image;
        let word = |word: Ptr| image.load(word.addr);
        let meta = word(Ptr::known(at));
        let node = Node { at: Ptr::known(at), keys: meta / 2, is_leaf: meta % 2 == 1 };
        let fewest = match (depth, node.is_leaf) {
            (0, true) => 0,
            (0, false) => 1,
            _ => KEYS_MIN,
        };
        if !(fewest..=KEYS_MAX).contains(&node.keys) {
            return Err(self
                .census
                .broken(format!("node {at} has {} keys, not {fewest}..={KEYS_MAX}", node.keys)));
        }
        let mut low = first;
        for i in 0..node.keys {
            let key = word(node.key(i));
            if !(low..end).contains(&key) {
                return Err(self.census.broken(format!(
                    "key {i} of node {at} is out of order: {key} is not in {low}..{end}"
                )));
            }
            low = key + 1;
        }
        if node.is_leaf {
            return self.leaf(&node, depth);
        }
        let mut low = first;
        for i in 0..=node.keys {
            let high = if i < node.keys { word(node.key(i)) } else { end };
            self.subtree(Addr(word(node.child(i))), (low, high), depth + 1)?;
            low = high;
        }
        Ok(())
    }

    fn leaf(&mut self, node: &Node, depth: u32) -> Result<(), Violation> {
        let at = node.at.addr;
        let level = *self.leaf_depth.get_or_insert(depth);
        if level != depth {
            return Err(self
                .census
                .broken(format!("leaf {at} is {depth} levels deep, the first leaf {level}")));
        }
        self.follows(at)?;
        self.last_leaf = Some(at);
        for i in 0..node.keys {
            let key = self.image.load(node.key(i).addr);
            let element = Addr(self.image.load(node.slot(i).addr));
            self.census.claim(element, ELEMENT, "element")?;
            match self.tree.element.check(self.image, element) {
                Ok(found) if found == key => {}
                Ok(found) => {
                    return Err(self.census.broken(format!(
                        "key {key} of leaf {at} points at the element of key {found}"
                    )));
                }
                Err(torn) => return Err(self.census.broken(torn)),
            }
            self.count += 1;
            (self.visit)(key);
        }
        Ok(())
    }

    /// The leaf met last must be linked to `next` (0 at the end).
    fn follows(&self, next: Addr) -> Result<(), Violation> {
        let Some(leaf) = self.last_leaf else { return Ok(()) };
        let link = Addr(self.image.load(leaf.plus(LINK * WORD_BYTES)));
        if link == next {
            return Ok(());
        }
        Err(self.census.broken(format!("leaf {leaf} is linked to {link}, not to {next}")))
    }

    fn end_of_leaves(&self) -> Result<(), Violation> {
        self.follows(Addr(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::keyed::testing::*;
    use super::node::KEYS;
    use super::*;
    use crate::program::Direct;
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
    fn a_tree_never_has_more_nodes_than_its_arena_is_sized_for() {
        let (tree, arena) = tree(8);
        // Ascending insertion leaves every left half as it was split: the emptiest tree.
        let image = filled(&tree, &arena, 0..3000);
        let mut census = Census::begin("test".into(), &image, &[arena]).unwrap();
        tree.walk(&image, &mut census, &mut |_| {}).unwrap();
        let bytes = image.load(Addr(4160)) - 8192 - 3000 * 64;
        assert!(bytes / BTree::NODE_BYTES <= BTree::nodes_max(3000));
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (tree, arena) = tree(64);
        let mut image = filled(&tree, &arena, 0..40);
        let both = (&tree, &arena);
        let root = Addr(image.load(tree.root));
        let child = |image: &Image, i: u64| Addr(image.load(root.plus(8 * (16 + i))));
        let (second, third) = (child(&image, 1), child(&image, 2));
        let element = Addr(image.load(second.plus(SLOTS * 8)));
        let mut convicts = |at: Addr, value: u64, expected: &str| {
            convicts(both, &mut image, (at, value), expected)
        };
        convicts(tree.root.plus(8), 39, "40 elements, but the count says 39");
        convicts(tree.root, 0, "node 0x0 lies outside every arena");
        convicts(second, 6 * 2 + 1, "has 6 keys, not 7..=15");
        convicts(second, 16 * 2 + 1, "has 16 keys, not 7..=15");
        convicts(root, 0, "has 0 keys, not 1..=15");
        convicts(second.plus(KEYS * 8), 7, "key 0 of node");
        convicts(second.plus((KEYS + 2) * 8), 9, "key 2 of node");
        convicts(second.plus(LINK * 8), 0, "is linked to 0x0, not to");
        convicts(root.plus((SLOTS + 1) * 8), second.0, "overlaps a block met before");
        convicts(second.plus(SLOTS * 8), root.0, "overlaps a block met before");
        convicts(second.plus((SLOTS + 1) * 8), 8, "element 0x8 lies outside every arena");
        convicts(element, 1 << 40 | 3, "is torn: word 1 of key 3");
        convicts(element.plus(24), 0, "is torn: word 3 of key 8");
        convicts(Addr(4160 + 8), third.0, "free block 0x11 lies outside every arena");
    }

    #[test]
    fn a_leaf_at_another_depth_is_seen() {
        let (tree, arena) = tree(8);
        let mut image = filled(&tree, &arena, 0..400);
        let root = Addr(image.load(tree.root));
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
        let (seen, tried) = survives_any_word(&tree, &arena, &mut image, 8192..used);
        assert!(seen > tried / 2 && seen < tried, "{seen} of {tried}: slack of nodes is free");
    }
}
