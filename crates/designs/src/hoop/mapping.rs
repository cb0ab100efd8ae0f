//! The mapping table (§III-C): from home lines to the memory slices that hold their newest words.

use rustc_hash::FxHashMap;

use super::layout::SliceNumber;
use graven_base::memory::{LineAddr, WordMask};

/// Bytes of an entry: two addresses of 40 bits and a mask of words, 11 B, in 16.
pub const MAPPING_ENTRY_BYTES: u64 = 16;

/// The newest words of a line that lie in one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub slice: SliceNumber,
    /// Words of the line.
    pub words: WordMask,
}

#[derive(Clone, Copy, Debug)]
struct Linked {
    entry: Entry,
    /// The line's next entry.
    next: Option<u32>,
}

/// A hash table of bounded capacity. A line has an entry for each slice with words of it that are not
/// at home yet and have not been overwritten in a younger slice.
#[derive(Debug)]
pub struct Mapping {
    capacity: usize,
    entries: slab::Slab<Linked>,
    first: FxHashMap<LineAddr, u32>,
}

impl Mapping {
    /// Makes an empty table of `capacity` entries.
    pub fn new(capacity: usize) -> Mapping {
        Mapping { capacity, entries: slab::Slab::new(), first: FxHashMap::default() }
    }

    /// Entries in use.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no other entry finds room.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.capacity
    }

    /// A line's entries.
    pub fn of(&self, line: LineAddr) -> impl Iterator<Item = Entry> + '_ {
        let mut at = self.first.get(&line).copied();
        std::iter::from_fn(move || {
            let linked = self.entries[at? as usize];
            at = linked.next;
            Some(linked.entry)
        })
    }

    /// A line's newest words are in this slice now: they are no longer where they were. Another entry must
    /// have room, unless the line has one for this slice.
    pub fn insert(&mut self, line: LineAddr, slice: SliceNumber, words: WordMask) {
        if !self.supersede(line, slice, words) {
            assert!(!self.is_full(), "the caller has made room");
            let next = self.first.get(&line).copied();
            let linked = Linked { entry: Entry { slice, words }, next };
            let at = self.entries.insert(linked) as u32;
            self.first.insert(line, at);
        }
    }

    /// Takes words out of the entries of other slices, and adds them to that of this one, if there is one.
    fn supersede(&mut self, line: LineAddr, slice: SliceNumber, words: WordMask) -> bool {
        let mut found = false;
        self.retain(line, |entry| {
            if entry.slice == slice {
                entry.words |= words;
                found = true;
            } else {
                entry.words &= !words;
            }
            entry.words != 0
        });
        found
    }

    /// Removes a line's entry for a slice, if it has one.
    pub fn remove(&mut self, line: LineAddr, slice: SliceNumber) {
        self.retain(line, |entry| entry.slice != slice);
    }

    /// Removes all entries of a line.
    pub fn remove_line(&mut self, line: LineAddr) {
        self.retain(line, |_| false);
    }

    fn retain(&mut self, line: LineAddr, mut keep: impl FnMut(&mut Entry) -> bool) {
        let Some(&first) = self.first.get(&line) else { return };
        let (mut head, mut kept_before, mut at) = (None, None::<u32>, Some(first));
        while let Some(here) = at {
            at = self.entries[here as usize].next;
            if !keep(&mut self.entries[here as usize].entry) {
                self.entries.remove(here as usize);
                continue;
            }
            match kept_before {
                Some(before) => self.entries[before as usize].next = Some(here),
                None => head = Some(here),
            }
            kept_before = Some(here);
        }
        if let Some(last) = kept_before {
            self.entries[last as usize].next = None;
        }
        match head {
            Some(head) if head != first => _ = self.first.insert(line, head),
            Some(_) => {}
            None => _ = self.first.remove(&line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::memory::words_in;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn sorted(mapping: &Mapping, line: LineAddr) -> Vec<(u32, u8)> {
        let mut all: Vec<_> = mapping.of(line).map(|e| (e.slice, e.words)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_word_is_in_the_slice_it_was_put_in_last() {
        let (mut mapping, line) = (Mapping::new(4), LineAddr(7));
        mapping.insert(line, 10, 0b0011);
        mapping.insert(line, 11, 0b0110);
        assert_eq!(sorted(&mapping, line), [(10, 0b0001), (11, 0b0110)]);
        mapping.insert(line, 12, 0b0001);
        assert_eq!(sorted(&mapping, line), [(11, 0b0110), (12, 0b0001)]);
        mapping.remove(line, 11);
        assert_eq!((sorted(&mapping, line), mapping.len()), (vec![(12, 1)], 1));
        mapping.remove_line(line);
        assert_eq!((mapping.of(line).count(), mapping.len()), (0, 0));
    }

    #[test]
    fn capacity_counts_entries() {
        let mut mapping = Mapping::new(2);
        mapping.insert(LineAddr(1), 5, 1);
        assert!(!mapping.is_full());
        mapping.insert(LineAddr(1), 6, 2);
        assert!(mapping.is_full());
        mapping.insert(LineAddr(1), 6, 1);
        assert!(!mapping.is_full(), "nothing of the line is in slice 5 any more");
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_map_of_words(
            steps in proptest::collection::vec((0u64..3, 0u32..4, 1u8.., any::<bool>()), 0..60),
        ) {
            let mut mapping = Mapping::new(usize::MAX);
            let mut words: BTreeMap<(u64, usize), u32> = BTreeMap::new();
            for (line, slice, mask, inserts) in steps {
                if inserts {
                    mapping.insert(LineAddr(line), slice, mask);
                    for word in words_in(mask) {
                        words.insert((line, word), slice);
                    }
                } else {
                    mapping.remove(LineAddr(line), slice);
                    words.retain(|&(l, _), s| (l, *s) != (line, slice));
                }
            }
            let mut found = BTreeMap::new();
            for line in 0..3 {
                for entry in mapping.of(LineAddr(line)) {
                    for word in words_in(entry.words) {
                        prop_assert_eq!(found.insert((line, word), entry.slice), None);
                    }
                }
            }
            prop_assert_eq!(found, words);
        }
    }
}
