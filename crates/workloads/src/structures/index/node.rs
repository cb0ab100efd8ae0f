//! One node of an index: its fields, bisection, and the shifting of keys.

use crate::costs;
use graven_machine::program::{Load, Memory, Ptr};

pub(super) const META: u64 = 0;
pub(in crate::structures) const LINK: u64 = 1;
pub(in crate::structures) const KEYS: u64 = 2;
pub(in crate::structures) const SLOTS: u64 = KEYS + KEYS_MAX;

/// Keys of a full node.
pub(super) const KEYS_MAX: u64 = 15;

/// A node, and word 0 of it.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) at: Ptr,
    pub(super) keys: u64,
    pub(super) is_leaf: bool,
}

impl Node {
    pub(super) fn load<M: Load>(m: &mut M, at: Ptr) -> Self {
        let meta = m.load(at.word(META));
        Node { at, keys: meta / 2, is_leaf: meta % 2 == 1 }
    }

    pub(super) fn set_keys<M: Memory>(&mut self, m: &mut M, keys: u64) {
        self.keys = keys;
        m.store(self.at.word(META), keys * 2 + u64::from(self.is_leaf));
    }

    pub(super) fn key(&self, index: u64) -> Ptr {
        self.at.word(KEYS + index)
    }

    pub(super) fn slot(&self, index: u64) -> Ptr {
        self.at.word(SLOTS + index)
    }

    pub(super) fn link(&self) -> Ptr {
        self.at.word(LINK)
    }

    /// The word of child `index` (0 is left of all keys).
    pub(super) fn child(&self, index: u64) -> Ptr {
        if index == 0 { self.link() } else { self.slot(index - 1) }
    }

    /// Number of keys below `key` (or at most `key`, if `or_equal`).
    pub(super) fn rank<M: Load>(&self, m: &mut M, key: u64, or_equal: bool) -> u64 {
        let (mut low, mut high) = (0, self.keys);
        while low < high {
            m.compute(costs::COMPARE);
            let middle = (low + high) / 2;
            let here = m.load(self.key(middle));
            if here < key || (or_equal && here == key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Finds the position of `key` in this leaf, or the one where it would be inserted.
    pub(super) fn find<M: Load>(&self, m: &mut M, key: u64) -> Result<u64, u64> {
        let position = self.rank(m, key, false);
        if position < self.keys && m.load(self.key(position)) == key {
            Ok(position)
        } else {
            Err(position)
        }
    }

    /// Makes room at `position` and puts a key and what belongs to it there.
    pub(super) fn insert_at<M: Memory>(&mut self, m: &mut M, position: u64, key: u64, slot: Ptr) {
        m.compute(2 * costs::WORD * (self.keys - position) as u32);
        for i in (position..self.keys).rev() {
            copy(m, self.key(i), self.key(i + 1));
            copy(m, self.slot(i), self.slot(i + 1));
        }
        m.store(self.key(position), key);
        m.store_ptr(self.slot(position), slot);
        self.set_keys(m, self.keys + 1);
    }

    /// Closes the gap that the key at `position` leaves.
    pub(super) fn remove_at<M: Memory>(&mut self, m: &mut M, position: u64) {
        m.compute(2 * costs::WORD * (self.keys - position - 1) as u32);
        for i in position + 1..self.keys {
            copy(m, self.key(i), self.key(i - 1));
            copy(m, self.slot(i), self.slot(i - 1));
        }
        self.set_keys(m, self.keys - 1);
    }

    /// Appends the keys of `from`, from the one at `first` on, with what belongs to them.
    pub(super) fn append<M: Memory>(&mut self, m: &mut M, from: &Node, first: u64) {
        m.compute(2 * costs::WORD * (from.keys - first) as u32);
        for i in first..from.keys {
            copy(m, from.key(i), self.key(self.keys + i - first));
            copy(m, from.slot(i), self.slot(self.keys + i - first));
        }
        self.set_keys(m, self.keys + from.keys - first);
    }
}

pub(super) fn copy<M: Memory>(m: &mut M, from: Ptr, to: Ptr) {
    let word = m.load(from);
    m.store(to, word);
}
