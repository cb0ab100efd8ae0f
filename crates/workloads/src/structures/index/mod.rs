//! An ordered index in PM: a B+ tree of fan-out 16 from 64-bit keys to words, which are addresses of rows or elements.
//!
//! Root (one line):
//!
//! | word | content |
//! |---|---|
//! | 0 | address of the root node |
//! | 1 | number of entries |
//!
//! Node, one block of four lines (256 B):
//!
//! | word | in a leaf | in an inner node |
//! |---|---|---|
//! | 0 | twice the number of keys, plus 1 | twice the number of keys |
//! | 1 | next leaf to the right, or 0 | child left of all keys |
//! | 2..17 | keys, ascending | keys, ascending |
//! | 17..32 | what each key is mapped to | child right of each key |
//!
//! Key k of an inner node is at most every key right of it and greater than every key left of it;
//! it need not be present itself. Every node but the root has at least 7 keys. Insertion splits
//! full nodes, and removal refills nodes of 7 keys (from a neighbour, or by merging with it), on
//! the way down, so that neither ever goes back up. Nodes are searched by bisection; keys and
//! pointers shift to make room, word by word. Leaves are linked, so that a range of keys is walked
//! without going back up either. Left out: keys that are there twice, and latches of nodes: who
//! shares an index locks what it stands for.

mod node;

#[cfg(test)]
pub(super) use self::node::KEYS;
use self::node::{KEYS_MAX, Node, copy};
pub(super) use self::node::{LINK, SLOTS};
use super::allocator::{Arena, Census, Class};
use crate::costs;
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Load, Memory, Ptr};
use graven_machine::workload::Checked;
use std::ops::{ControlFlow, Range, RangeInclusive};

const ROOT: u64 = 0;
const COUNT: u64 = 1;

/// Keys of a node that is not the root, at least.
const KEYS_MIN: u64 = 7;
/// Keys that stay in the left half of a split leaf; an inner node gives one of them to its parent.
const HALF: u64 = 8;
const NODE_WORDS: u64 = 32;
const _: () = assert!(SLOTS + KEYS_MAX == NODE_WORDS && 2 * KEYS_MIN < KEYS_MAX);

/// Nodes are the first class of their arena.
const NODE: Class = 0;

/// A tree of nodes with 8 children or more is not deeper in a 64-bit address space; bounds the
/// check.
const DEPTH_MAX: u32 = 24;

/// The handle of an index.
#[derive(Clone, Copy, Debug)]
pub struct Index {
    root: Addr,
}

impl Index {
    /// Bytes of PM that the root takes.
    pub const ROOT_BYTES: u64 = LINE_BYTES;
    /// Bytes of a node.
    pub const NODE_BYTES: u64 = NODE_WORDS * WORD_BYTES;
    /// One more than the largest key.
    pub const KEY_LIMIT: u64 = u64::MAX;

    /// The index with its root at `root`.
    pub const fn new(root: Addr) -> Self {
        Self { root }
    }

    /// Address of the root.
    pub fn root(&self) -> Addr {
        self.root
    }

    /// Nodes of an index of `elements` entries, at most: 7 keys to a leaf, 8 children to an inner
    /// node.
    pub fn nodes_max(elements: u64) -> u64 {
        elements / 6 + 16
    }

    /// Nodes that inserting `keys` keys takes at most, one after the other and beyond all others,
    /// if the index never has more than `elements`: a node at the end splits once for each 8, on
    /// every level, and the root besides.
    pub fn nodes_of_run(elements: u64, keys: u64) -> u64 {
        let mut level = elements / KEYS_MIN;
        let mut levels = 1;
        while level > 1 {
            level /= KEYS_MIN + 1;
            levels += 1;
        }
        (keys / HALF + 1) * (levels + 1) + 1
    }

    fn field(&self, word: u64) -> Ptr {
        Ptr::known(self.root).word(word)
    }

    fn root_node<M: Load>(&self, m: &mut M) -> Node {
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
    fn leaf_of<M: Load>(&self, m: &mut M, key: u64) -> Node {
        let mut node = self.root_node(m);
        while !node.is_leaf {
            let index = node.rank(m, key, true);
            let child = m.load_ptr(node.child(index));
            node = Node::load(m, child);
        }
        node
    }

    /// Makes the index empty. Its nodes come from the arena.
    pub fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        let mut leaf = Self::new_node(m, arena, true);
        leaf.set_keys(m, 0);
        m.store(leaf.link(), 0);
        m.store_ptr(self.field(ROOT), leaf.at);
        m.store(self.field(COUNT), 0);
    }

    /// Maps `key` (below [`Index::KEY_LIMIT`]) to what `make` makes, if it is absent; else returns what it is
    /// mapped to.
    pub fn insert_with<M: Memory>(
        &self,
        m: &mut M,
        arena: &Arena,
        key: u64,
        make: impl FnOnce(&mut M) -> Ptr,
    ) -> Option<Ptr> {
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
            Ok(position) => Some(m.load_ptr(node.slot(position))),
            Err(position) => {
                let made = make(m);
                node.insert_at(m, position, key, made);
                self.count(m, 1);
                None
            }
        }
    }

    /// Maps `key`, which is absent.
    ///
    /// # Panics
    /// If it is present.
    pub fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64, to: Ptr) {
        let present = self.insert_with(m, arena, key, |_| to);
        assert!(present.is_none(), "key {key} of the index at {} is there", self.root);
    }

    /// Value of `key`, if it is present.
    pub fn get<M: Load>(&self, m: &mut M, key: u64) -> Option<Ptr> {
        let leaf = self.leaf_of(m, key);
        let position = leaf.find(m, key).ok()?;
        Some(m.load_ptr(leaf.slot(position)))
    }

    /// Calls `visit` with each key of a range that is present, and what it is mapped to, in ascending order until it
    /// breaks off.
    pub fn scan<M: Load>(
        &self,
        m: &mut M,
        keys: RangeInclusive<u64>,
        mut visit: impl FnMut(&mut M, u64, Ptr) -> ControlFlow<()>,
    ) {
        let mut leaf = self.leaf_of(m, *keys.start());
        let mut position = leaf.rank(m, *keys.start(), false);
        loop {
            while position < leaf.keys {
                m.compute(costs::COMPARE);
                let key = m.load(leaf.key(position));
                if key > *keys.end() {
                    return;
                }
                let to = m.load_ptr(leaf.slot(position));
                if visit(m, key, to).is_break() {
                    return;
                }
                position += 1;
            }
            let next = m.load_ptr(leaf.link());
            if next.is_null() {
                return;
            }
            (leaf, position) = (Node::load(m, next), 0);
        }
    }

    /// The first key of a range that is present, and what it is mapped to.
    pub fn first<M: Load>(&self, m: &mut M, keys: RangeInclusive<u64>) -> Option<(u64, Ptr)> {
        let mut found = None;
        self.scan(m, keys, |_, key, to| {
            found = Some((key, to));
            ControlFlow::Break(())
        });
        found
    }

    /// Removes `key`, if it is present, and has `release` do what there is to do with what it was mapped to. Returns
    /// whether it was.
    pub fn remove_with<M: Memory>(
        &self,
        m: &mut M,
        arena: &Arena,
        key: u64,
        release: impl FnOnce(&mut M, Ptr),
    ) -> bool {
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
        let old = m.load_ptr(node.slot(position));
        node.remove_at(m, position);
        release(m, old);
        self.count(m, -1);
        true
    }

    /// Walks the whole index, whose keys must lie in `keys`, checks its invariants, accounts for its nodes with the
    /// census, and calls `visit` with each key and what it is mapped to, in ascending order.
    ///
    /// # Errors
    /// The first violation, or what `visit` says. Ends on any image.
    pub fn walk(
        &self,
        census: &mut Census<'_>,
        keys: Range<u64>,
        visit: &mut dyn FnMut(&mut Census<'_>, u64, Addr) -> Checked,
    ) -> Checked {
        let root = census.address(self.field(ROOT).addr);
        let mut walk = Walk { census, visit, count: 0, leaf_depth: None, last_leaf: None };
        walk.subtree(root, (keys.start, keys.end), 0)?;
        walk.follows(Addr(0))?;
        let (walked, stored) = (walk.count, census.load(self.field(COUNT).addr));
        census
            .ensure(walked == stored, || format!("{walked} elements, but the count says {stored}"))
    }
}

/// A check under way.
struct Walk<'a, 'c> {
    census: &'a mut Census<'c>,
    visit: &'a mut dyn FnMut(&mut Census<'_>, u64, Addr) -> Checked,
    count: u64,
    leaf_depth: Option<u32>,
    last_leaf: Option<Addr>,
}

impl Walk<'_, '_> {
    /// Checks the subtree at `at`, whose keys lie in `first..end`.
    fn subtree(&mut self, at: Addr, (first, end): (u64, u64), depth: u32) -> Checked {
        self.census.ensure(depth <= DEPTH_MAX, || format!("node {at} is {depth} levels deep"))?;
        self.census.claim(at, NODE, "node")?;
        let image = self.census.image();
        let word = |word: Ptr| image.load(word.addr);
        let meta = word(Ptr::known(at));
        let node = Node { at: Ptr::known(at), keys: meta / 2, is_leaf: meta % 2 == 1 };
        let fewest = match (depth, node.is_leaf) {
            (0, true) => 0,
            (0, false) => 1,
            _ => KEYS_MIN,
        };
        self.census.ensure((fewest..=KEYS_MAX).contains(&node.keys), || {
            format!("node {at} has {} keys, not {fewest}..={KEYS_MAX}", node.keys)
        })?;
        let mut low = first;
        for i in 0..node.keys {
            let key = word(node.key(i));
            self.census.ensure((low..end).contains(&key), || {
                format!("key {i} of node {at} is out of order: {key} is not in {low}..{end}")
            })?;
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

    fn leaf(&mut self, node: &Node, depth: u32) -> Checked {
        let at = node.at.addr;
        let level = *self.leaf_depth.get_or_insert(depth);
        self.census.ensure(level == depth, || {
            format!("leaf {at} is {depth} levels deep, the first leaf {level}")
        })?;
        self.follows(at)?;
        self.last_leaf = Some(at);
        for i in 0..node.keys {
            let key = self.census.load(node.key(i).addr);
            let to = self.census.address(node.slot(i).addr);
            self.count += 1;
            (self.visit)(self.census, key, to)?;
        }
        Ok(())
    }

    /// The leaf met last must be linked to `next` (0 at the end).
    fn follows(&self, next: Addr) -> Checked {
        let Some(leaf) = self.last_leaf else { return Ok(()) };
        let link = self.census.address(leaf.plus(LINK * WORD_BYTES));
        let what = || format!("leaf {leaf} is linked to {link}, not to {next}");
        self.census.ensure(link == next, what)
    }
}

#[cfg(test)]
mod tests;
