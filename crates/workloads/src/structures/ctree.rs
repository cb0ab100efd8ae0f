//! A crit-bit tree in PM: a binary trie with a node for each bit that distinguishes keys, as ctree_map of
//! PMDK's examples has it.
//!
//! Root (one line): words 0 and 1 are an entry. Node, one block of one line:
//!
//! | word | content |
//! |---|---|
//! | 0 | the critical bit: number of the highest bit (0 the lowest) in which keys below differ |
//! | 1, 2 | entry of the keys that have the bit clear |
//! | 3, 4 | entry of those that have it set |
//!
//! Entry:
//!
//! | word | content |
//! |---|---|
//! | 0 | 0, or the key plus 1 |
//! | 1 | if word 0 is 0 the next node, or 0 in the root of an empty tree; else the element, one block |
//!
//! Critical bits fall from the root on. An insertion descends twice, as PMDK's does: to some leaf, whose key says
//! which bit is critical, and to where a node for that bit belongs. PMDK distinguishes nodes from values by
//! the type numbers in its objects' headers; here word 0 of an entry does.

use super::allocator::{Arena, Census, Class, block_bytes};
use super::element::{Element, KEY_BITS};
use super::keyed::Keyed;
use crate::costs;
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::Checked;

const BIT: u64 = 0;
const ENTRIES: u64 = 1;

const KEY: u64 = 0;
const SLOT: u64 = 1;
const ENTRY_WORDS: u64 = 2;

const NODE: Class = 0;
const ELEMENT: Class = 1;

/// The handle of a crit-bit tree.
#[derive(Clone, Copy, Debug)]
pub struct CritBitTree {
    root: Addr,
    element: Element,
}

/// Bit `bit` of `key`.
fn side(key: u64, bit: u64) -> u64 {
    key >> bit & 1
}

/// The highest bit in which two different keys differ.
fn critical_bit(a: u64, b: u64) -> u64 {
    u64::from((a ^ b).ilog2())
}

fn entry(node: Ptr, side: u64) -> Ptr {
    node.word(ENTRIES + side * ENTRY_WORDS)
}

fn set<M: Memory>(m: &mut M, entry: Ptr, key: u64, slot: Ptr) {
    m.store(entry.word(KEY), key);
    m.store_ptr(entry.word(SLOT), slot);
}

fn copy<M: Memory>(m: &mut M, from: Ptr, to: Ptr) {
    let key = m.load(from.word(KEY));
    let slot = m.load_ptr(from.word(SLOT));
    set(m, to, key, slot);
}

/// End of a descent.
struct Place {
    /// The entry there, and its word 0.
    entry: Ptr,
    key: u64,
    /// The node that the entry is in, and the entry that points at that; none for the root's entry.
    above: Option<(Ptr, Ptr)>,
}

impl CritBitTree {
    /// Bytes of PM that the root takes.
    pub const ROOT_BYTES: u64 = LINE_BYTES;
    /// Bytes of a node; there are fewer nodes than elements.
    pub const NODE_BYTES: u64 = LINE_BYTES;

    /// The tree with its root at `root`.
    pub fn new(root: Addr, element: Element) -> Self {
        Self { root, element }
    }

    /// Bytes of the block of one element.
    pub fn element_bytes(element: Element) -> u64 {
        block_bytes(element.words)
    }

    /// Follows the bits of `key` to a leaf, or to the first node whose bit is below `bit`.
    fn descend<M: Memory>(&self, m: &mut M, key: u64, bit: u64) -> Place {
        let mut at = Ptr::known(self.root);
        let mut above = None;
        loop {
            let here = m.load(at.word(KEY));
            if here != 0 {
                return Place { entry: at, key: here, above };
            }
            let node = m.load_ptr(at.word(SLOT));
            if node.is_null() {
                return Place { entry: at, key: here, above };
            }
            m.compute(costs::COMPARE);
            let critical = m.load(node.word(BIT));
            if critical < bit {
                return Place { entry: at, key: here, above };
            }
            above = Some((node, at));
            at = entry(node, side(key, critical));
        }
    }

    /// The only leaf that `key` may be in.
    fn leaf<M: Memory>(&self, m: &mut M, key: u64) -> Place {
        self.descend(m, key, 0)
    }
}

impl Keyed for CritBitTree {
    fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        arena.format(m);
        set(m, Ptr::known(self.root), 0, Ptr::NULL);
    }

    fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let leaf = self.leaf(m, key);
        m.compute(costs::COMPARE);
        if leaf.key == key + 1 {
            let element = m.load_ptr(leaf.entry.word(SLOT));
            self.element.update(m, element);
            return false;
        }
        let element = arena.allocate(m, ELEMENT);
        self.element.create(m, element, key);
        if leaf.key == 0 {
            set(m, leaf.entry, key + 1, element);
            return true;
        }
        m.compute(costs::COMPARE);
        let bit = critical_bit(leaf.key - 1, key);
        let node = arena.allocate(m, NODE);
        m.store(node.word(BIT), bit);
        set(m, entry(node, side(key, bit)), key + 1, element);
        let place = self.descend(m, key, bit).entry;
        copy(m, place, entry(node, 1 - side(key, bit)));
        set(m, place, 0, node);
        true
    }

    fn find<M: Memory>(&self, m: &mut M, key: u64) -> Ptr {
        let leaf = self.leaf(m, key);
        m.compute(costs::COMPARE);
        if leaf.key == key + 1 { m.load_ptr(leaf.entry.word(SLOT)) } else { Ptr::NULL }
    }

    fn element(&self) -> Element {
        self.element
    }

    fn remove<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let leaf = self.leaf(m, key);
        m.compute(costs::COMPARE);
        if leaf.key != key + 1 {
            return false;
        }
        let element = m.load_ptr(leaf.entry.word(SLOT));
        match leaf.above {
            None => set(m, leaf.entry, 0, Ptr::NULL),
            Some((node, link)) => {
                // What is on the other side takes the node's place.
                let on_clear = leaf.entry == entry(node, 0);
                copy(m, entry(node, u64::from(on_clear)), link);
                arena.free(m, NODE, node);
            }
        }
        arena.free(m, ELEMENT, element);
        true
    }

    fn root(&self) -> Addr {
        self.root
    }

    fn walk(&self, census: &mut Census<'_>, visit: &mut dyn FnMut(u64)) -> Checked {
        let mut walk = Walk { tree: self, census, visit };
        if [KEY, SLOT].map(|word| walk.word(self.root, word)) != [0, 0] {
            walk.entry(self.root, KEY_BITS.into())?;
        }
        Ok(())
    }
}

/// A check under way.
struct Walk<'a, 'c> {
    tree: &'a CritBitTree,
    census: &'a mut Census<'c>,
    visit: &'a mut dyn FnMut(u64),
}

impl Walk<'_, '_> {
    fn word(&self, at: Addr, word: u64) -> u64 {
        self.census.load(at.plus(word * WORD_BYTES))
    }

    /// Checks what the entry at `at` holds, all of whose critical bits are below `above`, and returns one of its
    /// keys. That the bit of a node is the highest in which a key on one side differs from a key on the other makes it
    /// so for all, from the leaves up.
    fn entry(&mut self, at: Addr, above: u64) -> Checked<u64> {
        let (key, slot) = (self.word(at, KEY), Addr(self.word(at, SLOT)));
        if key != 0 {
            self.census.claim_element((slot, ELEMENT), self.tree.element, key - 1)?;
            (self.visit)(key - 1);
            return Ok(key - 1);
        }
        self.census.claim(slot, NODE, "node")?;
        let bit = self.word(slot, BIT);
        let what = || format!("node {slot} is for bit {bit}, below one for bit {above}");
        self.census.ensure(bit < above, what)?;
        let sides = [0, 1].map(|side| entry(Ptr::known(slot), side).addr);
        let (clear, set) = (self.entry(sides[0], bit)?, self.entry(sides[1], bit)?);
        let differ =
            (side(clear, bit), side(set, bit)) == (0, 1) && critical_bit(clear, set) == bit;
        let what = || format!("node {slot} is for bit {bit}, but tells key {clear} from key {set}");
        self.census.ensure(differ, what)?;
        Ok(clear)
    }
}

#[cfg(test)]
mod tests {
    use super::super::keyed::testing::*;
    use super::*;
    use proptest::prelude::*;

    fn tree(element_bytes: u64) -> (CritBitTree, Arena) {
        let element = Element::of_bytes(element_bytes);
        let sizes = [CritBitTree::NODE_BYTES, CritBitTree::element_bytes(element)];
        let arena = Arena::new(Addr(4160), Addr(8192), Addr(1 << 22), sizes);
        (CritBitTree::new(Addr(4096), element), arena)
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
    fn there_are_fewer_nodes_than_elements() {
        let (tree, arena) = tree(8);
        let image = filled(&tree, &arena, (0..1000).map(|k| k * 389 % 1000));
        assert_eq!(image.load(Addr(4160)) - 8192, 64 * (1000 + 999));
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (tree, arena) = tree(64);
        // The root's node is for bit 2: 0, 1 and 2 on one side, 4 on the other.
        let mut image = filled(&tree, &arena, [0, 1, 2, 4]);
        let root = Addr(image.load(tree.root.plus(8)));
        let below = Addr(image.load(root.plus(16)));
        let four = Addr(image.load(root.plus(32)));
        let mut check = checked(&tree, &arena, &mut image);
        check.finds(root, 3, "is for bit 3, but tells key 0 from key 4");
        check.finds(root, 40, "is for bit 40, below one for bit 40");
        check.finds(root, 1, "is for bit 1, below one for bit 1");
        check.finds(below, 2, "is for bit 2, below one for bit 2");
        check.finds(root.plus(24), 6, "holds key 4, not 5");
        check.finds(root.plus(32), 0, "element 0x0 lies outside every arena");
        check.finds(root.plus(16), root.0, "overlaps a block met before");
        check.finds(four.plus(24), 0, "is torn: word 3 of key 4");
        check.finds(tree.root.plus(8), 0, "has leaked");
    }

    #[test]
    fn the_check_ends_on_any_word() {
        let (tree, arena) = tree(64);
        let mut image = filled(&tree, &arena, (0..20).map(|k| k * 7 % 20));
        let used = image.load(Addr(4160));
        let (seen, tried) = checked(&tree, &arena, &mut image)
            .ends_on_any_word((8192..used).step_by(8), &[tree.root().0]);
        let unused = 19 * 3 * 5;
        assert_eq!(seen + unused, tried, "only words 5..8 of a node may hold anything");
    }
}
