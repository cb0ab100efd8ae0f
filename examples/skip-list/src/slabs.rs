//! A persistent slab allocator: objects of a few sizes, each size in slabs of its own.
//!
//! | words of the root | content |
//! |---|---|
//! | 0 | address of the first slab that was never used |
//! | 1 + c | first slab of class `c` with a free object, or 0 |
//!
//! | bytes of a slab (4 KB) | content |
//! |---|---|
//! | 0-7 | bit `i`: object `i` is in use |
//! | 8-15 | the next slab of its class with a free object, or 0 |
//! | 16-23 | its class |
//! | 64 + n i | object `i`, of `n` bytes |
//!
//! A slab that has been taken for a class stays with it. One store changes a slab's use of an object; when a slab
//! becomes full, or is no longer, it leaves or enters the list of its class.

use std::collections::BTreeSet;

use graven::memory::{Addr, Image, LINE_BYTES, WORD_BYTES};
use graven::program::{Memory, Ptr};

/// Size and alignment of a slab.
pub const SLAB_BYTES: u64 = 4096;
/// Objects of a slab, at most: a word has a bit for each.
const OBJECTS_MAX: u64 = 64;

/// Where an allocator lies, and what it hands out.
#[derive(Clone, Copy, Debug)]
pub struct Slabs {
    /// Its root.
    pub root: Addr,
    /// First byte of its slabs, aligned to their size.
    pub start: Addr,
    /// One past their last byte.
    pub end: Addr,
    /// Words of an object of class 0; one of class `c` has `c` more.
    pub object_words: u64,
    /// How many classes there are.
    pub classes: u64,
}

impl Slabs {
    /// Objects of a class that a slab holds.
    pub fn objects_per_slab(object_words: u64, class: u64) -> u64 {
        let object_bytes = (object_words + class) * WORD_BYTES;
        ((SLAB_BYTES - LINE_BYTES) / object_bytes).min(OBJECTS_MAX)
    }

    fn objects(&self, class: u64) -> u64 {
        Slabs::objects_per_slab(self.object_words, class)
    }

    fn object_bytes(&self, class: u64) -> u64 {
        (self.object_words + class) * WORD_BYTES
    }

    /// Nothing is in use.
    pub fn format(&self, memory: &mut impl Memory) {
        memory.store(Ptr::known(self.root), self.start.0);
        (0..self.classes).for_each(|class| memory.store(self.first(class), 0));
    }

    fn first(&self, class: u64) -> Ptr {
        Ptr::known(self.root).word(1 + class)
    }

    /// Hands out an object of a class.
    ///
    /// # Panics
    /// If there is no slab left: the workload has laid out too few.
    pub fn allocate(&self, memory: &mut impl Memory, class: u64) -> Ptr {
        memory.compute(8);
        let mut slab = memory.load_ptr(self.first(class));
        if slab.is_null() {
            slab = self.take(memory, class);
        }
        let used = memory.load(slab);
        let index = u64::from(used.trailing_ones());
        let used = used | 1 << index;
        memory.store(slab, used);
        if u64::from(used.count_ones()) == self.objects(class) {
            let next = memory.load_ptr(slab.word(1));
            memory.store_ptr(self.first(class), next);
        }
        slab.word((LINE_BYTES + index * self.object_bytes(class)) / WORD_BYTES)
    }

    /// Takes a slab that was never used for a class.
    fn take(&self, memory: &mut impl Memory, class: u64) -> Ptr {
        let slab = memory.load_ptr(Ptr::known(self.root));
        assert!(slab.addr < self.end, "the workload has laid out slabs for all of its keys");
        memory.store(Ptr::known(self.root), slab.addr.0 + SLAB_BYTES);
        memory.store(slab, 0);
        memory.store(slab.word(1), 0);
        memory.store(slab.word(2), class);
        memory.store_ptr(self.first(class), slab);
        slab
    }

    /// Takes an object back.
    pub fn free(&self, memory: &mut impl Memory, object: Ptr, class: u64) {
        memory.compute(8);
        let offset = object.addr.0 % SLAB_BYTES;
        let slab = Ptr { addr: Addr(object.addr.0 - offset), ..object };
        let index = (offset - LINE_BYTES) / self.object_bytes(class);
        let used = memory.load(slab);
        memory.store(slab, used & !(1 << index));
        if u64::from(used.count_ones()) == self.objects(class) {
            let first = memory.load_ptr(self.first(class));
            memory.store_ptr(slab.word(1), first);
            memory.store_ptr(self.first(class), slab);
        }
    }

    /// Checks the slabs of an image, and returns the objects that are in use, with their classes, by address.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self, image: &Image) -> Result<Vec<(Addr, u64)>, String> {
        let end = Addr(image.load(self.root));
        if end < self.start || end > self.end || !end.0.is_multiple_of(SLAB_BYTES) {
            return Err(format!("the first slab that was never used is at {end}"));
        }
        let mut listed = self.listed(image, end)?;
        let mut objects = Vec::new();
        for slab in (self.start.0..end.0).step_by(SLAB_BYTES as usize).map(Addr) {
            let [used, _, class] = [0, 1, 2].map(|word| image.load(slab.plus(word * WORD_BYTES)));
            if class >= self.classes {
                return Err(format!("slab {slab} is of class {class}"));
            }
            let places = self.objects(class);
            if u64::from(64 - used.leading_zeros()) > places {
                return Err(format!(
                    "slab {slab} has more objects in use than it holds ({used:#x})"
                ));
            }
            let is_full = u64::from(used.count_ones()) == places;
            if is_full == listed.remove(&(slab, class)) {
                let list = if is_full {
                    "is full, and listed"
                } else {
                    "has free objects, and is not listed"
                };
                return Err(format!("slab {slab} of class {class} {list}"));
            }
            let in_use = (0..places).filter(|index| used >> index & 1 == 1);
            let address = |index| slab.plus(LINE_BYTES + index * self.object_bytes(class));
            objects.extend(in_use.map(|index| (address(index), class)));
        }
        match listed.first() {
            None => Ok(objects),
            Some((slab, class)) => Err(format!("slab {slab} is in the list of class {class}")),
        }
    }

    /// The slabs in the lists of the classes, each with the class.
    fn listed(&self, image: &Image, end: Addr) -> Result<BTreeSet<(Addr, u64)>, String> {
        let mut listed = BTreeSet::new();
        for class in 0..self.classes {
            let mut slab = Addr(image.load(self.first(class).addr));
            while slab.0 != 0 {
                let is_slab = slab >= self.start && slab < end && slab.0.is_multiple_of(SLAB_BYTES);
                if !is_slab || !listed.insert((slab, class)) {
                    return Err(format!("the list of class {class} leads to {slab}"));
                }
                slab = Addr(image.load(slab.plus(WORD_BYTES)));
            }
        }
        Ok(listed)
    }
}
