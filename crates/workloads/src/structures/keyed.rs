//! What the structures that map keys to elements have in common.

use super::allocator::{Arena, Census};
use super::element::Element;
use graven_base::memory::{Addr, Image};
use graven_machine::program::{LockId, Memory, Ptr};
use graven_machine::workload::BrokenInvariant;

/// A map from keys to elements, in PM. The handle itself holds addresses and sizes only.
pub trait Keyed: Copy + 'static {
    /// Makes the map empty. Its blocks come from the arena.
    fn format<M: Memory>(&self, m: &mut M, arena: &Arena);

    /// Inserts the first version of the element of `key`, or writes the next version if the key is
    /// present. Returns whether it was absent.
    fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool;

    /// The element of `key`; null if it is absent.
    fn find<M: Memory>(&self, m: &mut M, key: u64) -> Ptr;

    /// What the elements are like.
    fn element(&self) -> Element;

    /// Writes the next version of the element of `key`, if present. Returns whether it was.
    fn update<M: Memory>(&self, m: &mut M, key: u64) -> bool {
        let found = self.find(m, key);
        if !found.is_null() {
            self.element().update(m, found);
        }
        !found.is_null()
    }

    /// Reads the whole element of `key`, if present. Returns whether it was.
    fn get<M: Memory>(&self, m: &mut M, key: u64) -> bool {
        let found = self.find(m, key);
        if !found.is_null() {
            self.element().read(m, found);
        }
        !found.is_null()
    }

    /// Removes `key` and its element, if present. Returns whether it was.
    fn remove<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool;

    /// The lock that covers every word that an operation on `key` reads or writes, the allocator's
    /// excepted if threads have arenas of their own. By default one for the whole map.
    fn lock_of(&self, _key: u64) -> LockId {
        0
    }

    /// Where it is, for messages.
    fn root(&self) -> Addr;

    /// Walks the whole map, checks its invariants, accounts for each block with the census, and
    /// calls `visit` with each key.
    ///
    /// # Errors
    /// The first violation. Ends on any image.
    fn walk(
        &self,
        image: &Image,
        census: &mut Census,
        visit: &mut dyn FnMut(u64),
    ) -> Result<(), BrokenInvariant>;
}

#[cfg(test)]
pub(crate) mod testing {
    //! The properties that every keyed structure must have, to be instantiated by each.

    use std::collections::BTreeSet;

    use super::*;
    use graven_machine::program::Direct;

    /// The keys that the checked structure holds, in order.
    pub fn contents<S: Keyed>(
        structure: &S,
        arena: &Arena,
        image: &Image,
    ) -> Result<Vec<u64>, BrokenInvariant> {
        let mut census = Census::begin("test".into(), image, &[*arena])?;
        let mut keys = Vec::new();
        structure.walk(image, &mut census, &mut |key| keys.push(key))?;
        census.finish()?;
        keys.sort_unstable();
        Ok(keys)
    }

    /// Runs the steps on the structure and on a set of keys, and compares after each batch of 16.
    pub fn agrees_with_a_set<S: Keyed>(structure: &S, arena: &Arena, steps: &[(u8, u64)]) {
        let mut image = Image::new();
        structure.format(&mut Direct::new(&mut image), arena);
        let mut model = BTreeSet::new();
        for batch in steps.chunks(16) {
            let mut m = Direct::new(&mut image);
            for &(kind, key) in batch {
                match kind {
                    0..4 => assert_eq!(structure.insert(&mut m, arena, key), model.insert(key)),
                    4..7 => assert_eq!(structure.remove(&mut m, arena, key), model.remove(&key)),
                    _ => {
                        assert_eq!(structure.update(&mut m, key), model.contains(&key));
                        assert_eq!(structure.get(&mut m, key), model.contains(&key));
                    }
                }
            }
            let keys = contents(structure, arena, &image).expect("the structure is sound");
            assert!(keys.iter().eq(model.iter()), "the structure and the model hold the same keys");
        }
    }

    /// A structure that `keys` were inserted into, in their order.
    pub fn filled<S: Keyed>(
        structure: &S,
        arena: &Arena,
        keys: impl IntoIterator<Item = u64>,
    ) -> Image {
        let mut image = Image::new();
        let mut m = Direct::new(&mut image);
        structure.format(&mut m, arena);
        for key in keys {
            structure.insert(&mut m, arena, key);
        }
        image
    }

    /// Replaces one word, expects the check to complain in words that contain `expected`, and puts
    /// the word back.
    pub fn check_finds<S: Keyed>(
        (structure, arena): (&S, &Arena),
        image: &mut Image,
        (at, value): (Addr, u64),
        expected: &str,
    ) {
        let old = image.store(at, value);
        let found = contents(structure, arena, image).expect_err("a corrupted word is seen").what;
        assert!(found.contains(expected), "expected `{expected}`, found `{found}`");
        image.store(at, old);
        contents(structure, arena, image).expect("the word was put back");
    }

    /// Replaces every word of the image that is not 0 in turn, by values a crash could leave there,
    /// and expects the walk to end; returns how many of the corruptions were seen.
    pub fn survives_any_word<S: Keyed>(
        structure: &S,
        arena: &Arena,
        image: &mut Image,
        range: std::ops::Range<u64>,
    ) -> (usize, usize) {
        let (mut seen, mut tried) = (0, 0);
        for at in range.step_by(8).map(Addr) {
            let old = image.load(at);
            for value in [0, old ^ 1, old ^ 64, structure.root().0, u64::MAX, u64::MAX - 7] {
                if value != old {
                    image.store(at, value);
                    tried += 1;
                    seen += usize::from(contents(structure, arena, image).is_err());
                }
            }
            image.store(at, old);
        }
        (seen, tried)
    }
}
