//! A persistent skip list: a sorted list with express lanes above it.
//!
//! | words of the root | content |
//! |---|---|
//! | 0 | number of nodes |
//! | 1 + l | first node of level `l`, or 0 |
//!
//! | words of a node | content |
//! |---|---|
//! | 0 | key |
//! | 1 | height (bits 0-7), version of the value (bits 8-63) |
//! | 2 | value, of `value_words` words |
//! | then | the next node of each level from 0 on, or 0 |
//!
//! A node's height follows from its key, so that the space for all keys is known, and every run builds the same list.
//! The words of a value follow from key and version, so that a value of two versions is noticed.

use std::collections::BTreeMap;

use graven::memory::{Addr, Image, WORD_BYTES, spread};
use graven::program::{Load, Memory, Ptr};

use crate::slabs::Slabs;

/// Levels, at most.
pub const HEIGHT_MAX: u64 = 12;
/// Words of the root.
pub const ROOT_WORDS: u64 = 1 + HEIGHT_MAX;
const HEIGHT_BITS: u32 = 8;

/// Where a list lies.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// Its root.
    pub root: Addr,
    /// Where its nodes come from; a node of height `h` is an object of class `h - 1`.
    pub slabs: Slabs,
    /// Words of a value.
    pub value_words: u64,
    /// One node in so many of a level is in the next level, too.
    pub branching: u64,
}

/// The links that lead past a key, of each level.
type Links = [Ptr; HEIGHT_MAX as usize];

impl List {
    /// Words of a node of height 1.
    pub const fn node_words(value_words: u64) -> u64 {
        2 + value_words + 1
    }

    /// The height of a key's node.
    pub fn height(key: u64, branching: u64) -> u64 {
        let mut bits = spread(key, 0x534b_4950);
        let mut height = 1;
        while height < HEIGHT_MAX && bits.is_multiple_of(branching) {
            bits /= branching;
            height += 1;
        }
        height
    }

    /// A list without nodes.
    pub fn format(&self, memory: &mut impl Memory) {
        (0..ROOT_WORDS).for_each(|word| memory.store(Ptr::known(self.root).word(word), 0));
    }

    fn link_of(&self, node: Ptr, level: u64) -> Ptr {
        node.word(2 + self.value_words + level)
    }

    fn word_of_value(key: u64, version: u64, word: u64) -> u64 {
        spread(spread(key, version), word)
    }

    /// Goes down to a key: its node, or null; the links that lead to it or past it.
    fn search(&self, memory: &mut impl Load, key: u64) -> (Ptr, Links) {
        let mut links = [Ptr::NULL; HEIGHT_MAX as usize];
        let mut links_of = Ptr::known(self.root).word(1);
        let mut found = Ptr::NULL;
        for level in (0..HEIGHT_MAX).rev() {
            loop {
                let link = links_of.word(level);
                links[level as usize] = link;
                let next = memory.load_ptr(link);
                memory.compute(3);
                if next.is_null() {
                    found = Ptr::NULL;
                    break;
                }
                let at = memory.load(next);
                if at >= key {
                    found = if at == key { next } else { Ptr::NULL };
                    break;
                }
                links_of = self.link_of(next, 0);
            }
        }
        (found, links)
    }

    /// Looks a key up: the first word of its value.
    pub fn get(&self, memory: &mut impl Load, key: u64) -> Option<u64> {
        let (node, _) = self.search(memory, key);
        (!node.is_null()).then(|| memory.load(node.word(2)))
    }

    /// Puts a key in, or gives it the next version of its value.
    pub fn put(&self, memory: &mut impl Memory, key: u64) {
        let (node, links) = self.search(memory, key);
        if !node.is_null() {
            let head = memory.load(node.word(1));
            let version = (head >> HEIGHT_BITS) + 1;
            memory.store(node.word(1), head + (1 << HEIGHT_BITS));
            self.store_value(memory, node, key, version);
            return;
        }
        let height = List::height(key, self.branching);
        let node = self.slabs.allocate(memory, height - 1);
        memory.store(node, key);
        memory.store(node.word(1), height);
        self.store_value(memory, node, key, 0);
        for level in 0..height {
            let link = links[level as usize];
            let next = memory.load_ptr(link);
            memory.store_ptr(self.link_of(node, level), next);
            memory.store_ptr(link, node);
        }
        self.count(memory, 1);
    }

    fn store_value(&self, memory: &mut impl Memory, node: Ptr, key: u64, version: u64) {
        for word in 0..self.value_words {
            memory.store(node.word(2 + word), List::word_of_value(key, version, word));
        }
    }

    /// Takes a key out, if it is there.
    pub fn remove(&self, memory: &mut impl Memory, key: u64) {
        let (node, links) = self.search(memory, key);
        if node.is_null() {
            return;
        }
        let height = memory.load(node.word(1)) & ((1 << HEIGHT_BITS) - 1);
        for level in 0..height {
            let next = memory.load_ptr(self.link_of(node, level));
            memory.store_ptr(links[level as usize], next);
        }
        self.slabs.free(memory, node, height - 1);
        self.count(memory, u64::MAX);
    }

    fn count(&self, memory: &mut impl Memory, more: u64) {
        let root = Ptr::known(self.root);
        let nodes = memory.load(root);
        memory.store(root, nodes.wrapping_add(more));
    }

    /// Checks the list in an image: slabs, order, levels, values, counts; every object in use is a node of the list.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self, image: &Image) -> Result<(), String> {
        let objects: BTreeMap<Addr, u64> = self.slabs.check(image)?.into_iter().collect();
        let mut below = self.level(image, 0, &objects)?;
        let count = image.load(self.root);
        if count != below.len() as u64 || below.len() != objects.len() {
            let (nodes, objects) = (below.len(), objects.len());
            return Err(format!("{nodes} nodes, a count of {count}, and {objects} objects in use"));
        }
        for &node in &below {
            self.check_node(image, node, objects[&node])?;
        }
        for level in 1..HEIGHT_MAX {
            let nodes = self.level(image, level, &objects)?;
            let higher = |node: &Addr| objects[node] >= level;
            if !below.iter().copied().filter(higher).eq(nodes.iter().copied()) {
                return Err(format!("level {level} has not the nodes of its height"));
            }
            below = nodes;
        }
        Ok(())
    }

    /// The nodes of a level, in their order.
    fn level(
        &self,
        image: &Image,
        level: u64,
        objects: &BTreeMap<Addr, u64>,
    ) -> Result<Vec<Addr>, String> {
        let mut nodes = Vec::new();
        let mut node = Addr(image.load(self.root.plus((1 + level) * WORD_BYTES)));
        let mut newest = None;
        while node.0 != 0 {
            if objects.get(&node).is_none_or(|&class| class < level) {
                return Err(format!(
                    "level {level} leads to {node}, which is no node of that height"
                ));
            }
            let key = image.load(node);
            if newest.is_some_and(|before| before >= key) {
                return Err(format!("key {key} of level {level} is out of order"));
            }
            newest = Some(key);
            nodes.push(node);
            node = Addr(image.load(self.link_of(Ptr::known(node), level).addr));
        }
        Ok(nodes)
    }

    fn check_node(&self, image: &Image, node: Addr, class: u64) -> Result<(), String> {
        let [key, head] = [0, 1].map(|word| image.load(node.plus(word * WORD_BYTES)));
        let (height, version) = (head & ((1 << HEIGHT_BITS) - 1), head >> HEIGHT_BITS);
        if height != class + 1 || height != List::height(key, self.branching) {
            return Err(format!("the node of key {key} has height {height} in class {class}"));
        }
        for word in 0..self.value_words {
            let value = image.load(node.plus((2 + word) * WORD_BYTES));
            if value != List::word_of_value(key, version, word) {
                return Err(format!(
                    "word {word} of the value of key {key} is not of version {version}"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::slabs::SLAB_BYTES;
    use graven::program::Direct;

    const VALUE_WORDS: u64 = 2;

    /// A list in a few slabs, which hold 64 nodes of height 1 each.
    fn list() -> List {
        let root = Addr(SLAB_BYTES);
        let slabs = Slabs {
            root: root.plus(1024),
            start: Addr(2 * SLAB_BYTES),
            end: Addr(100 * SLAB_BYTES),
            object_words: List::node_words(VALUE_WORDS),
            classes: HEIGHT_MAX,
        };
        List { root, slabs, value_words: VALUE_WORDS, branching: 3 }
    }

    fn formatted() -> (List, Image) {
        let (list, mut image) = (list(), Image::new());
        let mut memory = Direct::new(&mut image);
        list.slabs.format(&mut memory);
        list.format(&mut memory);
        (list, image)
    }

    /// Fills it, then puts and removes keys.
    fn churned(operations: u64) -> (List, Image, BTreeMap<u64, u64>) {
        let (list, mut image) = formatted();
        let mut model = BTreeMap::new();
        for number in 0..operations {
            let (key, what) = (spread(1, number) % 150, spread(2, number) % 3);
            let mut memory = Direct::new(&mut image);
            if what == 0 {
                list.remove(&mut memory, key);
                model.remove(&key);
            } else {
                list.put(&mut memory, key);
                model.entry(key).and_modify(|version| *version += 1).or_insert(0);
            }
        }
        (list, image, model)
    }

    #[test]
    fn it_holds_what_a_map_holds() {
        for operations in [0, 1, 40, 700, 3000] {
            let (list, image, model) = churned(operations);
            assert_eq!(list.check(&image), Ok(()), "{operations} operations");
            for key in 0..150 {
                let version = model.get(&key);
                let value = version.map(|&version| List::word_of_value(key, version, 0));
                assert_eq!(list.get(&mut &image, key), value, "key {key}");
            }
            assert_eq!(image.load(list.root), model.len() as u64);
        }
    }

    #[test]
    fn heights_follow_from_keys() {
        let of = |height| (0..30_000).filter(|&key| List::height(key, 3) == height).count();
        assert!((19_000..21_000).contains(&of(1)) && (6000..7400).contains(&of(2)));
        assert!((0..100_000).all(|key| List::height(key, 2) <= HEIGHT_MAX));
    }

    /// Whichever word of a live structure changes, it is noticed.
    #[test]
    fn a_check_notices_every_changed_word() {
        let (list, mut image, model) = churned(700);
        let objects = list.slabs.check(&image).expect("nothing is changed yet");
        assert_eq!(objects.len(), model.len());
        let roots = (0..ROOT_WORDS).map(|word| list.root.plus(word * WORD_BYTES));
        let allocator = (0..=HEIGHT_MAX).map(|word| list.slabs.root.plus(word * WORD_BYTES));
        let slabs = objects.iter().map(|(node, _)| Addr(node.0 - node.0 % SLAB_BYTES));
        let nodes = objects.iter().flat_map(|&(node, class)| {
            let words = List::node_words(VALUE_WORDS) + class;
            (0..words).map(move |word| node.plus(word * WORD_BYTES))
        });
        let words: Vec<Addr> = roots.chain(allocator).chain(slabs).chain(nodes).collect();
        for addr in words {
            let was = image.load(addr);
            for changed in [was ^ 1, was ^ 1 << 5, was ^ 1 << 40] {
                image.store(addr, changed);
                assert!(list.check(&image).is_err(), "{was:#x} -> {changed:#x} at {addr}");
            }
            image.store(addr, was);
        }
        assert_eq!(list.check(&image), Ok(()));
    }
}
