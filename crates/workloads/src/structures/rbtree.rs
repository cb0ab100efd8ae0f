//! A red-black tree with parent pointers (Cormen et al., chapter 13), nodes and elements in PM.
//!
//! Root (one line):
//!
//! | word | content |
//! |---|---|
//! | 0 | address of the root node, or 0 |
//! | 1 | number of nodes |
//!
//! Node, one block:
//!
//! | word | content |
//! |---|---|
//! | 0 | key |
//! | 1, 2 | left and right child, or 0 |
//! | 3 | parent, or 0 in the root |
//! | 4 | colour: 0 black, 1 red |
//! | 5.. or 8.. | the element: in the node's first line if it fits there, else from the second |
//!
//! A removal relinks nodes and never copies one over another, so elements stay where they are.

use super::allocator::{Arena, Census, Class, block_bytes};
use super::element::{Element, KEY_LIMIT};
use super::keyed::Keyed;
use crate::costs;
use graven_base::memory::{Addr, LINE_BYTES};
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::Checked;

const ROOT: u64 = 0;
const COUNT: u64 = 1;

const KEY: u64 = 0;
const LEFT: u64 = 1;
const RIGHT: u64 = 2;
const PARENT: u64 = 3;
const COLOUR: u64 = 4;
const HEADER_WORDS: u64 = 5;

const BLACK: u64 = 0;
const RED: u64 = 1;

const NODE: Class = 0;

/// No red-black tree of 64-bit addresses is deeper; bounds the check's recursion.
const DEPTH_MAX: u32 = 128;

/// The other of the two children.
const fn opposite(side: u64) -> u64 {
    LEFT + RIGHT - side
}

/// The handle of a red-black tree.
#[derive(Clone, Copy, Debug)]
pub struct RbTree {
    root: Addr,
    element: Element,
    element_word: u64,
}

impl RbTree {
    /// Bytes of PM that the root takes.
    pub const ROOT_BYTES: u64 = LINE_BYTES;

    /// The tree with its root at `root`.
    pub fn new(root: Addr, element: Element) -> Self {
        Self { root, element, element_word: element.word_after(HEADER_WORDS) }
    }

    /// Bytes of a node.
    pub fn node_bytes(element: Element) -> u64 {
        block_bytes(element.word_after(HEADER_WORDS) + element.words)
    }

    fn field(&self, word: u64) -> Ptr {
        Ptr::known(self.root).word(word)
    }

    fn count<M: Memory>(&self, m: &mut M, step: i64) {
        let count = m.load(self.field(COUNT));
        m.store(self.field(COUNT), count.wrapping_add_signed(step));
    }

    /// The node of `key` or null, its parent or null, and the word that points (or would) at it.
    fn search<M: Memory>(&self, m: &mut M, key: u64) -> (Ptr, Ptr, Ptr) {
        let mut parent = Ptr::NULL;
        let mut link = self.field(ROOT);
        let mut node = m.load_ptr(link);
        while !node.is_null() {
            m.compute(costs::COMPARE);
            let here = m.load(node.word(KEY));
            if here == key {
                break;
            }
            parent = node;
            link = node.word(if key < here { LEFT } else { RIGHT });
            node = m.load_ptr(link);
        }
        (node, parent, link)
    }

    /// Makes whatever pointed at `old`, a child of `parent` or the root, point at `new`.
    fn replace_child<M: Memory>(&self, m: &mut M, parent: Ptr, old: Ptr, new: Ptr) {
        let link = if parent.is_null() {
            self.field(ROOT)
        } else if m.load_ptr(parent.word(LEFT)) == old {
            parent.word(LEFT)
        } else {
            parent.word(RIGHT)
        };
        m.store_ptr(link, new);
    }

    /// Puts the tree at `new` (perhaps null) where the tree at `old`, a child of `parent`, was.
    fn transplant<M: Memory>(&self, m: &mut M, parent: Ptr, old: Ptr, new: Ptr) {
        self.replace_child(m, parent, old, new);
        if !new.is_null() {
            m.store_ptr(new.word(PARENT), parent);
        }
    }

    /// Rotates so that `node` moves down to `side` and its other child takes its place; returns
    /// that.
    fn rotate<M: Memory>(&self, m: &mut M, node: Ptr, side: u64) -> Ptr {
        m.compute(costs::REBALANCE);
        let riser = m.load_ptr(node.word(opposite(side)));
        let middle = m.load_ptr(riser.word(side));
        m.store_ptr(node.word(opposite(side)), middle);
        if !middle.is_null() {
            m.store_ptr(middle.word(PARENT), node);
        }
        let parent = m.load_ptr(node.word(PARENT));
        m.store_ptr(riser.word(PARENT), parent);
        self.replace_child(m, parent, node, riser);
        m.store_ptr(riser.word(side), node);
        m.store_ptr(node.word(PARENT), riser);
        riser
    }

    /// Mends the two reds that the new red `node` and its parent may be.
    fn rebalance_inserted<M: Memory>(&self, m: &mut M, mut node: Ptr) {
        loop {
            m.compute(costs::REBALANCE);
            let mut parent = m.load_ptr(node.word(PARENT));
            if parent.is_null() {
                m.store(node.word(COLOUR), BLACK);
                return;
            }
            if m.load(parent.word(COLOUR)) == BLACK {
                return;
            }
            let grandparent = m.load_ptr(parent.word(PARENT));
            let left = m.load_ptr(grandparent.word(LEFT));
            let (side, uncle) = if left == parent {
                (LEFT, m.load_ptr(grandparent.word(RIGHT)))
            } else {
                (RIGHT, left)
            };
            if is_red(m, uncle) {
                m.store(parent.word(COLOUR), BLACK);
                m.store(uncle.word(COLOUR), BLACK);
                m.store(grandparent.word(COLOUR), RED);
                node = grandparent;
                continue;
            }
            if m.load_ptr(parent.word(opposite(side))) == node {
                parent = self.rotate(m, parent, side);
            }
            m.store(parent.word(COLOUR), BLACK);
            m.store(grandparent.word(COLOUR), RED);
            self.rotate(m, grandparent, opposite(side));
            return;
        }
    }

    /// Mends the black that is missing on the paths through `node` (perhaps null), a child of
    /// `parent`.
    fn rebalance_removed<M: Memory>(&self, m: &mut M, mut node: Ptr, mut parent: Ptr) {
        while !parent.is_null() && !is_red(m, node) {
            m.compute(costs::REBALANCE);
            let side = if m.load_ptr(parent.word(LEFT)) == node { LEFT } else { RIGHT };
            let mut sibling = m.load_ptr(parent.word(opposite(side)));
            if is_red(m, sibling) {
                m.store(sibling.word(COLOUR), BLACK);
                m.store(parent.word(COLOUR), RED);
                self.rotate(m, parent, side);
                sibling = m.load_ptr(parent.word(opposite(side)));
            }
            let near = m.load_ptr(sibling.word(side));
            let far = m.load_ptr(sibling.word(opposite(side)));
            let far_is_red = is_red(m, far);
            if !far_is_red && !is_red(m, near) {
                m.store(sibling.word(COLOUR), RED);
                node = parent;
                parent = m.load_ptr(node.word(PARENT));
                continue;
            }
            if far_is_red {
                m.store(far.word(COLOUR), BLACK);
            } else {
                // The near child rises and takes the sibling's black; the sibling stays black, as
                // far.
                sibling = self.rotate(m, sibling, opposite(side));
            }
            let colour = m.load(parent.word(COLOUR));
            m.store(sibling.word(COLOUR), colour);
            m.store(parent.word(COLOUR), BLACK);
            self.rotate(m, parent, side);
            return;
        }
        if !node.is_null() {
            m.store(node.word(COLOUR), BLACK);
        }
    }

    /// Unlinks `node`, whose parent is `parent`.
    fn unlink<M: Memory>(&self, m: &mut M, node: Ptr, parent: Ptr) {
        let left = m.load_ptr(node.word(LEFT));
        let right = m.load_ptr(node.word(RIGHT));
        let colour = m.load(node.word(COLOUR));
        if left.is_null() || right.is_null() {
            let child = if left.is_null() { right } else { left };
            self.transplant(m, parent, node, child);
            if colour == BLACK {
                self.rebalance_removed(m, child, parent);
            }
            return;
        }
        // Two children: the successor takes the node's place and colour.
        let mut successor = right;
        let mut hole = Ptr::NULL;
        loop {
            m.compute(costs::COMPARE);
            let next = m.load_ptr(successor.word(LEFT));
            if next.is_null() {
                break;
            }
            hole = successor;
            successor = next;
        }
        let lost = m.load(successor.word(COLOUR));
        let child = m.load_ptr(successor.word(RIGHT));
        if hole.is_null() {
            hole = successor;
        } else {
            self.transplant(m, hole, successor, child);
            m.store_ptr(successor.word(RIGHT), right);
            m.store_ptr(right.word(PARENT), successor);
        }
        self.transplant(m, parent, node, successor);
        m.store_ptr(successor.word(LEFT), left);
        m.store_ptr(left.word(PARENT), successor);
        m.store(successor.word(COLOUR), colour);
        if lost == BLACK {
            self.rebalance_removed(m, child, hole);
        }
    }
}

fn is_red<M: Memory>(m: &mut M, node: Ptr) -> bool {
    !node.is_null() && m.load(node.word(COLOUR)) == RED
}

impl Keyed for RbTree {
    fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        arena.format(m);
        m.store(self.field(ROOT), 0);
        m.store(self.field(COUNT), 0);
    }

    fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let (found, parent, link) = self.search(m, key);
        if !found.is_null() {
            self.element.update(m, found.word(self.element_word));
            return false;
        }
        let node = arena.allocate(m, NODE);
        m.store(node.word(KEY), key);
        m.store(node.word(LEFT), 0);
        m.store(node.word(RIGHT), 0);
        m.store_ptr(node.word(PARENT), parent);
        m.store(node.word(COLOUR), RED);
        self.element.create(m, node.word(self.element_word), key);
        m.store_ptr(link, node);
        self.count(m, 1);
        self.rebalance_inserted(m, node);
        true
    }

    fn find<M: Memory>(&self, m: &mut M, key: u64) -> Ptr {
        let (node, ..) = self.search(m, key);
        if node.is_null() { node } else { node.word(self.element_word) }
    }

    fn element(&self) -> Element {
        self.element
    }

    fn remove<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let (node, parent, _) = self.search(m, key);
        if node.is_null() {
            return false;
        }
        self.unlink(m, node, parent);
        arena.free(m, NODE, node);
        self.count(m, -1);
        true
    }

    fn root(&self) -> Addr {
        self.root
    }

    fn walk(&self, census: &mut Census<'_>, visit: &mut dyn FnMut(u64)) -> Checked {
        let root = census.address(self.field(ROOT).addr);
        let mut walk = Walk { tree: self, census, visit, count: 0 };
        walk.subtree(root, Addr(0), (0, KEY_LIMIT), (BLACK, 0))?;
        let (walked, stored) = (walk.count, census.load(self.field(COUNT).addr));
        census
            .ensure(walked == stored, || format!("{walked} nodes, but the count says {stored}"))?;
        let is_black = root.0 == 0 || census.load(root.plus(COLOUR * 8)) != RED;
        census.ensure(is_black, || format!("the root node {root} is red"))
    }
}

/// A check under way.
struct Walk<'a, 'c> {
    tree: &'a RbTree,
    census: &'a mut Census<'c>,
    visit: &'a mut dyn FnMut(u64),
    count: u64,
}

impl Walk<'_, '_> {
    /// Checks the subtree at `node`, whose keys lie in `first..end`; returns its black height.
    fn subtree(
        &mut self,
        node: Addr,
        parent: Addr,
        (first, end): (u64, u64),
        (parent_colour, depth): (u64, u32),
    ) -> Checked<u32> {
        if node.0 == 0 {
            return Ok(0);
        }
        let what = || format!("node {node} is {depth} levels deep");
        self.census.ensure(depth <= DEPTH_MAX, what)?;
        self.census.claim(node, NODE, "node")?;
        let image = self.census.image();
        let word = |word: u64| image.load(node.plus(word * 8));
        let (key, colour) = (word(KEY), word(COLOUR));
        let (left, right) = (Addr(word(LEFT)), Addr(word(RIGHT)));
        let census = &self.census;
        census.ensure((first..end).contains(&key), || {
            format!("key {key} of node {node} is out of order: not in {first}..{end}")
        })?;
        let named = Addr(word(PARENT));
        census.ensure(named == parent, || {
            format!("node {node} names {named} as its parent, not {parent}")
        })?;
        census.ensure(colour <= RED, || format!("node {node} has colour {colour}"))?;
        let is_red_below_red = colour == RED && parent_colour == RED;
        census.ensure(!is_red_below_red, || format!("red node {node} has a red parent"))?;
        let element = node.plus(self.tree.element_word * 8);
        let holder = || format!("node {node} of key {key}");
        census.check_element(self.tree.element, element, key, holder)?;
        self.count += 1;
        (self.visit)(key);
        let below = (colour, depth + 1);
        let l = self.subtree(left, node, (first, key), below)?;
        let r = self.subtree(right, node, (key + 1, end), below)?;
        self.census.ensure(l == r, || {
            format!("node {node} has black height {l} to the left, {r} to the right")
        })?;
        Ok(l + u32::from(colour == BLACK))
    }
}

#[cfg(test)]
mod tests {
    use super::super::keyed::testing::*;
    use super::*;
    use graven_base::memory::Image;
    use proptest::prelude::*;

    fn tree(element_bytes: u64) -> (RbTree, Arena) {
        let element = Element::of_bytes(element_bytes);
        let tree = RbTree::new(Addr(4096), element);
        let sizes = [RbTree::node_bytes(element), 0];
        (tree, Arena::new(Addr(4160), Addr(8192), Addr(1 << 22), sizes))
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_set(
            steps in prop::collection::vec((0..8u8, 0..200u64), 0..600),
            element_bytes in prop_oneof![Just(8), Just(64), Just(200)],
        ) {
            let (tree, arena) = tree(element_bytes);
            agrees_with_a_set(&tree, &arena, &steps);
        }
    }

    #[test]
    fn an_ascending_and_descending_life_keeps_the_balance() {
        let (tree, arena) = tree(64);
        let steps: Vec<(u8, u64)> =
            (0..500).map(|k| (0, k)).chain((0..500).rev().map(|k| (4, k))).collect();
        agrees_with_a_set(&tree, &arena, &steps);
    }

    #[test]
    fn a_small_element_shares_the_first_line() {
        assert_eq!(RbTree::node_bytes(Element::of_bytes(24)), 64);
        assert_eq!(RbTree::node_bytes(Element::of_bytes(64)), 128);
        assert_eq!(RbTree::node_bytes(Element::of_bytes(4096)), 4096 + 64);
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (tree, arena) = tree(64);
        let mut image = filled(&tree, &arena, [40, 20, 60, 10, 30]);
        let root = Addr(image.load(tree.root));
        let left = Addr(image.load(root.plus(LEFT * 8)));
        let leaf = Addr(image.load(left.plus(LEFT * 8)));
        assert_eq!(image.load(leaf), 10);
        let key = |image: &Image, at: Addr| image.load(at);
        assert_eq!((key(&image, root), key(&image, left)), (40, 20));
        let mut check = checked(&tree, &arena, &mut image);
        check.finds(tree.root.plus(8), 4, "5 nodes, but the count says 4");
        check.finds(leaf, 25, "key 25 of node");
        check.finds(leaf, 11, "holds the element of key 10");
        check.finds(leaf.plus(PARENT * 8), root.0, "as its parent");
        check.finds(leaf.plus(COLOUR * 8), 2, "has colour 2");
        check.finds(left.plus(COLOUR * 8), RED, "has a red parent");
        check.finds(leaf.plus(COLOUR * 8), BLACK, "has black height");
        check.finds(root.plus(COLOUR * 8), RED, "is red");
        check.finds(leaf.plus(LEFT * 8), root.0, "overlaps a block met before");
        check.finds(leaf.plus(LEFT * 8), 1 << 40, "outside every arena");
        check.finds(left.plus(LEFT * 8), 0, "4 nodes, but the count says 5");
        check.finds(leaf.plus(64 + 16), 1 << 30, "is torn: word 2 of key 10");
        check.finds(tree.root, 0, "0 nodes, but the count says 5");
    }

    #[test]
    fn the_check_ends_on_any_word() {
        let (tree, arena) = tree(64);
        let mut image = filled(&tree, &arena, [5, 3, 8, 1, 4, 7, 9, 2, 6]);
        let end = 8192 + 9 * 128;
        let (seen, tried) = checked(&tree, &arena, &mut image)
            .ends_on_any_word((8192..end).step_by(8), &[tree.root().0]);
        let unused = 9 * 3 * 5;
        assert_eq!(seen + unused, tried, "only words 5..8 of a node may hold anything");
    }
}
