//! Words that are stored to outside transactions, and what each of them may hold when power fails.
//!
//! Such a store promises nothing: caches and memory treat it like any other, and its value is durable sooner, later, or never.
//! So its word may hold what was promised for it, or any value that has been stored to it since outside transactions, until a
//! transaction stores to it.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use graven_base::memory::{Addr, spread};

/// Values that a word may hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outside {
    /// Value that was promised for it.
    pub promised: u64,
    /// Values stored to it since, outside transactions.
    pub stored: BTreeSet<u64>,
}

impl Outside {
    /// A word to which nothing was stored since something was promised.
    pub const fn promising(promised: u64) -> Outside {
        Outside { promised, stored: BTreeSet::new() }
    }

    /// Returns true if the word may hold a value.
    pub fn allows(&self, value: u64) -> bool {
        value == self.promised || self.stored.contains(&value)
    }
}

/// Words that were stored to outside transactions, and not by a transaction since.
#[derive(Clone, Debug, Default)]
pub struct OutsideWords(FxHashMap<Addr, Outside>);

impl OutsideWords {
    /// Values that a word may hold, if it is one of them.
    pub fn get(&self, addr: Addr) -> Option<&Outside> {
        self.0.get(&addr)
    }

    /// Returns true if a word holds a value that it may not; for any other word, if it differs from
    /// `committed`.
    #[inline]
    pub fn differs(&self, addr: Addr, found: u64, committed: u64) -> bool {
        found != committed && (self.0.is_empty() || !self.allows(addr, found))
    }

    /// Returns true if a word is one of them, and may hold a value.
    fn allows(&self, addr: Addr, found: u64) -> bool {
        self.get(addr).is_some_and(|outside| outside.allows(found))
    }

    /// A store outside transactions. `old`: what the word held.
    pub fn store(&mut self, addr: Addr, old: u64, new: u64) {
        let outside = self.0.entry(addr).or_insert_with(|| Outside::promising(old));
        outside.stored.insert(new);
    }

    /// A transaction stores to a word: it is none of them from now on.
    pub fn remove(&mut self, addr: Addr) -> Option<Outside> {
        self.0.remove(&addr)
    }

    /// Equal for equal ones.
    pub fn digest(&self) -> u64 {
        let of_word = |(addr, outside): (&Addr, &Outside)| {
            let stored = outside.stored.iter().fold(outside.promised, |sum, &v| spread(sum, v));
            spread(addr.0, stored)
        };
        self.0.iter().map(of_word).fold(0, u64::wrapping_add)
    }
}
