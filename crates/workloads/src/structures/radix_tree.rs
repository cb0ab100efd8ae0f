//! A radix tree in PM whose nodes hold what is common to all keys below them, as rtree_map of PMDK's examples has it.
//!
//! Keys of 40 bits are ten digits of four bits, the highest first. Root (one line): word 0 is the address of the root
//! node, or 0. Node, one block of three lines (192 B):
//!
//! | word | content |
//! |---|---|
//! | 0 | digits of the node: how many |
//! | 1 | digits of the node: what they are, the last one lowest |
//! | 2 | address of the element (a block) whose key ends here, or 0 |
//! | 8..24 | the nodes below, by their first digit, or 0 |
//!
//! The digits on the way to a node and its own are the beginning of all keys below it; those of a node below begin with
//! the digit by which it was chosen. All keys are of the same length, so elements are in leaves, inner nodes have two nodes
//! below or more, and leaves have sixteen empty places: PMDK's nodes are all alike as well, and cleared when they are
//! made. Its alphabet is 256 characters, of which its comment says that 16 would do as well; a cleared node of 256
//! places is more than the half of a kilobyte that Silo (Fig. 4) has a transaction of it write at most.

use super::allocator::{Arena, Census, Class, block_bytes};
use super::element::{Element, KEY_BITS};
use super::keyed::Keyed;
use crate::costs;
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::Checked;

const DIGIT_BITS: u64 = 4;
const PLACES: u64 = 1 << DIGIT_BITS;

/// Digits of a key.
const KEY_DIGITS: u64 = KEY_BITS as u64 / DIGIT_BITS;
const _: () = assert!((KEY_BITS as u64).is_multiple_of(DIGIT_BITS));

const LENGTH: u64 = 0;
const DIGITS: u64 = 1;
const VALUE: u64 = 2;
const BELOW: u64 = 8;
const NODE_WORDS: u64 = BELOW + PLACES;

const NODE: Class = 0;
const ELEMENT: Class = 1;

/// The `length` digits of `key` from digit `first` on.
fn digits(key: u64, first: u64, length: u64) -> u64 {
    let above_end = key >> ((KEY_DIGITS - first - length) * DIGIT_BITS);
    above_end & ((1 << (length * DIGIT_BITS)) - 1)
}

/// The place of a node whose digits these are.
fn place(node: Ptr, digit: u64) -> Ptr {
    node.word(BELOW + digit)
}

/// The handle of a radix tree.
#[derive(Clone, Copy, Debug)]
pub struct RadixTree {
    root: Addr,
    element: Element,
}

/// Operand of a comparison with a key: a node and its digits.
struct Here {
    node: Ptr,
    length: u64,
    digits: u64,
}

impl Here {
    fn load<M: Memory>(m: &mut M, node: Ptr) -> Self {
        m.compute(costs::COMPARE);
        let length = m.load(node.word(LENGTH));
        Here { node, length, digits: m.load(node.word(DIGITS)) }
    }

    fn store<M: Memory>(&self, m: &mut M) {
        m.store(self.node.word(LENGTH), self.length);
        m.store(self.node.word(DIGITS), self.digits);
    }

    /// Number of its digits that `key` has from digit `depth` on.
    fn common(&self, key: u64, depth: u64) -> u64 {
        let different = digits(key, depth, self.length) ^ self.digits;
        let same = u64::from(different.leading_zeros()) / DIGIT_BITS;
        (same + self.length).saturating_sub(u64::from(u64::BITS) / DIGIT_BITS)
    }

    /// Returns digit `index`.
    fn digit(&self, index: u64) -> u64 {
        self.digits >> ((self.length - index - 1) * DIGIT_BITS) & (PLACES - 1)
    }
}

/// A leaf, and the way to it.
struct Leaf {
    node: Ptr,
    /// The word that points at the leaf.
    link: Ptr,
    /// The node above, and the word that points at that.
    above: Option<(Ptr, Ptr)>,
}

impl RadixTree {
    /// Bytes of PM that the root takes.
    pub const ROOT_BYTES: u64 = LINE_BYTES;
    /// Bytes of a node; there are fewer than two for each element.
    pub const NODE_BYTES: u64 = NODE_WORDS * WORD_BYTES;

    /// The tree with its root at `root`.
    pub fn new(root: Addr, element: Element) -> Self {
        Self { root, element }
    }

    /// Bytes of the block of one element.
    pub fn element_bytes(element: Element) -> u64 {
        block_bytes(element.words)
    }

    /// Finds the leaf of `key`.
    fn leaf<M: Memory>(&self, m: &mut M, key: u64) -> Option<Leaf> {
        let mut link = Ptr::known(self.root);
        let (mut above, mut depth) = (None, 0);
        loop {
            let node = m.load_ptr(link);
            if node.is_null() {
                return None;
            }
            let here = Here::load(m, node);
            if here.digits != digits(key, depth, here.length) {
                return None;
            }
            depth += here.length;
            if depth == KEY_DIGITS {
                return Some(Leaf { node, link, above });
            }
            above = Some((node, link));
            link = place(node, digits(key, depth, 1));
        }
    }

    /// A node of these digits with nothing below.
    fn new_node<M: Memory>(m: &mut M, arena: &Arena, digits: (u64, u64), value: Ptr) -> Ptr {
        let node = arena.allocate(m, NODE);
        Here { node, length: digits.0, digits: digits.1 }.store(m);
        m.store_ptr(node.word(VALUE), value);
        m.compute(costs::WORD * PLACES as u32);
        (0..PLACES).for_each(|digit| m.store(place(node, digit), 0));
        node
    }

    /// A leaf for the digits of `key` from digit `depth` on, with its element.
    fn new_leaf<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64, depth: u64) -> Ptr {
        let element = arena.allocate(m, ELEMENT);
        self.element.create(m, element, key);
        let length = KEY_DIGITS - depth;
        Self::new_node(m, arena, (length, digits(key, depth, length)), element)
    }

    /// Puts a node of the first `common` digits of `here` above it and a leaf of `key`, which `link` points at then.
    fn split<M: Memory>(
        &self,
        m: &mut M,
        arena: &Arena,
        (here, common, link): (&Here, u64, Ptr),
        (key, depth): (u64, u64),
    ) {
        m.compute(costs::REBALANCE);
        let length = here.length - common;
        let first = here.digits >> (length * DIGIT_BITS);
        let upper = Self::new_node(m, arena, (common, first), Ptr::NULL);
        m.store_ptr(place(upper, here.digit(common)), here.node);
        let rest = here.digits & ((1 << (length * DIGIT_BITS)) - 1);
        Here { node: here.node, length, digits: rest }.store(m);
        let leaf = self.new_leaf(m, arena, key, depth + common);
        m.store_ptr(place(upper, digits(key, depth + common, 1)), leaf);
        m.store_ptr(link, upper);
    }

    /// Replaces `node`, which `link` points at, by the only node below it, if there is only one.
    fn shorten<M: Memory>(m: &mut M, arena: &Arena, node: Ptr, link: Ptr) {
        let mut only = Ptr::NULL;
        for digit in 0..PLACES {
            m.compute(costs::COMPARE);
            let below = m.load_ptr(place(node, digit));
            if !below.is_null() && !only.is_null() {
                return;
            }
            if !below.is_null() {
                only = below;
            }
        }
        m.compute(costs::REBALANCE);
        let (upper, lower) = (Here::load(m, node), Here::load(m, only));
        let digits = upper.digits << (lower.length * DIGIT_BITS) | lower.digits;
        Here { node: only, length: upper.length + lower.length, digits }.store(m);
        m.store_ptr(link, only);
        arena.free(m, NODE, node);
    }
}

impl Keyed for RadixTree {
    fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        arena.format(m);
        m.store(Ptr::known(self.root), 0);
    }

    fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let mut link = Ptr::known(self.root);
        let mut depth = 0;
        loop {
            let node = m.load_ptr(link);
            if node.is_null() {
                let leaf = self.new_leaf(m, arena, key, depth);
                m.store_ptr(link, leaf);
                return true;
            }
            let here = Here::load(m, node);
            let common = here.common(key, depth);
            if common < here.length {
                self.split(m, arena, (&here, common, link), (key, depth));
                return true;
            }
            depth += common;
            if depth == KEY_DIGITS {
                let element = m.load_ptr(node.word(VALUE));
                self.element.update(m, element);
                return false;
            }
            link = place(node, digits(key, depth, 1));
        }
    }

    fn find<M: Memory>(&self, m: &mut M, key: u64) -> Ptr {
        self.leaf(m, key).map_or(Ptr::NULL, |leaf| m.load_ptr(leaf.node.word(VALUE)))
    }

    fn element(&self) -> Element {
        self.element
    }

    fn remove<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let Some(leaf) = self.leaf(m, key) else { return false };
        let element = m.load_ptr(leaf.node.word(VALUE));
        arena.free(m, ELEMENT, element);
        arena.free(m, NODE, leaf.node);
        m.store(leaf.link, 0);
        if let Some((node, link)) = leaf.above {
            Self::shorten(m, arena, node, link);
        }
        true
    }

    fn root(&self) -> Addr {
        self.root
    }

    fn walk(&self, census: &mut Census<'_>, visit: &mut dyn FnMut(u64)) -> Checked {
        let root = census.address(self.root);
        if root.0 == 0 {
            return Ok(());
        }
        Walk { tree: self, census, visit }.node(root, None, (0, 0))
    }
}

/// A check under way.
struct Walk<'a, 'c> {
    tree: &'a RadixTree,
    census: &'a mut Census<'c>,
    visit: &'a mut dyn FnMut(u64),
}

impl Walk<'_, '_> {
    fn word(&self, at: Addr, word: u64) -> u64 {
        self.census.load(at.plus(word * WORD_BYTES))
    }

    /// Checks the node at `at`, to which these digits lead (how many, what they are), the last but for its own by the place
    /// that it is at.
    fn node(&mut self, at: Addr, digit: Option<u64>, way: (u64, u64)) -> Checked {
        self.census.claim(at, NODE, "node")?;
        let (length, own) = (self.word(at, LENGTH), self.word(at, DIGITS));
        let allowed = u64::from(digit.is_some())..=KEY_DIGITS - way.0;
        let is_allowed = allowed.contains(&length) && own >> (length * DIGIT_BITS) == 0;
        self.census.ensure(is_allowed, || {
            let depth = way.0;
            format!("node {at} at depth {depth} has {length} digits, {own:#x}, not {allowed:?}")
        })?;
        if let Some(digit) = digit {
            let here = Here { node: Ptr::known(at), length, digits: own };
            let what = || format!("node {at} of digits {own:#x} is at place {digit:#x}");
            self.census.ensure(digit == here.digit(0), what)?;
        }
        let way = (way.0 + length, way.1 << (length * DIGIT_BITS) | own);
        let below: Vec<(u64, Addr)> = (0..PLACES)
            .map(|digit| (digit, Addr(self.word(at, BELOW + digit))))
            .filter(|(_, node)| node.0 != 0)
            .collect();
        let value = Addr(self.word(at, VALUE));
        let (is_leaf, places) = (way.0 == KEY_DIGITS, below.len());
        let is_sound = if is_leaf { places == 0 } else { places >= 2 && value.0 == 0 };
        self.census.ensure(is_sound, || {
            let depth = way.0;
            format!("node {at}, {depth} digits from the root, has {places} nodes below and element {value}")
        })?;
        if is_leaf {
            let key = way.1;
            self.census.claim_element((value, ELEMENT), self.tree.element, key)?;
            (self.visit)(key);
        }
        below.into_iter().try_for_each(|(digit, node)| self.node(node, Some(digit), way))
    }
}

#[cfg(test)]
mod tests {
    use super::super::keyed::testing::*;
    use super::*;
    use crate::structures::keys::key;
    use graven_base::memory::Image;
    use proptest::prelude::*;

    fn tree(element_bytes: u64) -> (RadixTree, Arena) {
        let element = Element::of_bytes(element_bytes);
        let sizes = [RadixTree::NODE_BYTES, RadixTree::element_bytes(element)];
        let arena = Arena::new(Addr(4160), Addr(8192), Addr(1 << 22), sizes);
        (RadixTree::new(Addr(4096), element), arena)
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_set(
            steps in prop::collection::vec((0..8u8, 0..300u64), 0..800),
            shift in 0..32u64,
            element_bytes in prop_oneof![Just(8), Just(64), Just(200)],
        ) {
            let (tree, arena) = tree(element_bytes);
            let steps: Vec<(u8, u64)> = steps.iter().map(|&(kind, key)| (kind, key << shift)).collect();
            agrees_with_a_set(&tree, &arena, &steps);
        }
    }

    #[test]
    fn digits_are_counted_from_the_highest() {
        assert_eq!(digits(0x12_3456_789a, 0, 2), 0x12);
        assert_eq!(digits(0x12_3456_789a, 2, 5), 0x34567);
        assert_eq!(digits(0x12_3456_789a, 9, 1), 0xa);
        assert_eq!(digits(0x12_3456_789a, 4, 0), 0);
        let here = |digits, length| Here { node: Ptr::NULL, length, digits };
        assert_eq!(here(0x345, 3).common(0x12_3456_789a, 2), 3);
        assert_eq!(here(0x346, 3).common(0x12_3456_789a, 2), 2);
        assert_eq!(here(0x445, 3).common(0x12_3456_789a, 2), 0);
        assert_eq!(here(0, 0).common(0x12_3456_789a, 2), 0);
        assert_eq!([0, 1, 2].map(|i| here(0x345, 3).digit(i)), [3, 4, 5]);
    }

    /// Basis of the estimated footprint.
    #[test]
    fn random_keys_have_about_a_third_of_a_node_each_beside_their_leaf() {
        let (tree, arena) = tree(8);
        for count in [500, 1000, 4000, 8000] {
            let image = filled(&tree, &arena, (0..count).map(key));
            let nodes = (image.load(Addr(4160)) - 8192 - 64 * count) / RadixTree::NODE_BYTES;
            let inner = (nodes - count) as f64 / count as f64;
            println!("{count}: {inner:.3}");
            assert!((0.2..0.5).contains(&inner), "{inner} inner nodes per key");
        }
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (tree, arena) = tree(64);
        let mut image = filled(&tree, &arena, [0x11, 0x12, 0x21]);
        let root = Addr(image.load(tree.root));
        let at_place =
            |image: &Image, node: Addr, digit: u64| Addr(image.load(node.plus((8 + digit) * 8)));
        // The root has eight digits; below it are a node of one digit, and a leaf of two.
        let (inner, leaf) = (at_place(&image, root, 1), at_place(&image, root, 2));
        let element = Addr(image.load(leaf.plus(VALUE * 8)));
        let mut check = checked(&tree, &arena, &mut image);
        check.finds(root, 11, "at depth 0 has 11 digits, 0x0, not 0..=10");
        check.finds(root, 7, "digits from the root, has 0 nodes below");
        check.finds(root.plus(8), 1, "holds key 17, not 273");
        check.finds(inner, 0, "at depth 8 has 0 digits, 0x1, not 1..=2");
        check.finds(inner.plus(8), 0x11, "at depth 8 has 1 digits, 0x11, not 1..=2");
        check.finds(inner.plus(8), 3, "of digits 0x3 is at place 0x1");
        check.finds(inner.plus(VALUE * 8), element.0, "has 2 nodes below and element 0x");
        check.finds(inner.plus((8 + 2) * 8), 0, "9 digits from the root, has 1 nodes below");
        check.finds(leaf.plus(8 * 8), inner.0, "10 digits from the root, has 1 nodes below");
        check.finds(leaf.plus(8), 0x22, "holds key 33, not 34");
        check.finds(leaf.plus(VALUE * 8), 0, "element 0x0 lies outside every arena");
        check.finds(element.plus(24), 0, "is torn: word 3 of key 33");
        check.finds(tree.root, 0, "has leaked");
    }

    #[test]
    fn the_check_ends_on_any_word() {
        let (tree, arena) = tree(64);
        let mut image = filled(&tree, &arena, (0..20).map(|k| k * 7 % 20));
        let used = image.load(Addr(4160));
        let (seen, tried) = checked(&tree, &arena, &mut image)
            .ends_on_any_word((8192..used).step_by(8), &[tree.root().0]);
        let nodes = (used - 8192 - 20 * 64) / RadixTree::NODE_BYTES;
        assert_eq!(
            seen as u64 + nodes * 5 * 5,
            tried as u64,
            "only words 3..8 of a node may hold anything"
        );
    }
}
