//! Common interface of the structures that map keys to elements.

use super::allocator::{Arena, Census};
use super::element::Element;
use graven_base::memory::Addr;
use graven_machine::program::{LockId, Memory, Ptr};
use graven_machine::workload::Checked;

/// A map from keys to elements, in PM. The handle itself holds addresses and sizes only.
pub trait Keyed: Copy + 'static {
    /// Makes the map empty. Its blocks come from the arena.
    fn format<M: Memory>(&self, m: &mut M, arena: &Arena);

    /// Inserts the first version of the element of `key`, or writes the next version if the key is
    /// present. Returns whether it was absent.
    fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool;

    /// The element of `key`; null if it is absent.
    fn find<M: Memory>(&self, m: &mut M, key: u64) -> Ptr;

    /// Shape of the elements.
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

    /// Address, for messages.
    fn root(&self) -> Addr;

    /// Walks the whole map, checks its invariants, accounts for each block with the census, and
    /// calls `visit` with each key.
    ///
    /// # Errors
    /// The first violation. Ends on any image.
    fn walk(&self, census: &mut Census<'_>, visit: &mut dyn FnMut(u64)) -> Checked;
}

#[cfg(test)]
pub(crate) mod testing {
    //! The properties that every keyed structure must have, to be instantiated by each.

    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::Check;
    use graven_base::memory::Image;
    use graven_machine::program::Direct;

    /// The keys that the checked structure holds, in order.
    pub fn contents<S: Keyed>(structure: &S, arena: &Arena, image: &Image) -> Checked<Vec<u64>> {
        let mut census = Census::begin("test".into(), image, &[*arena])?;
        let mut keys = Vec::new();
        structure.walk(&mut census, &mut |key| keys.push(key))?;
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

    /// The structure in an image, to be corrupted.
    pub fn checked<'a, S: Keyed>(
        structure: &'a S,
        arena: &'a Arena,
        image: &'a mut Image,
    ) -> Check<'a, impl Fn(&Image) -> Checked<Vec<u64>>> {
        Check::of(image, move |image| contents(structure, arena, image))
    }
}
