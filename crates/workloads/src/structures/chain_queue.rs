//! A chained queue in PM, as textbooks have it: a head node without an element, a front and a rear.
//!
//! Root (one line):
//!
//! | word | content |
//! |---|---|
//! | 0 | front: address of the head node, whose successor is the oldest; never changes |
//! | 1 | rear: address of the youngest node, or of the head node if the queue is empty |
//!
//! Node, one block; so is the head node, whose element is never written:
//!
//! | word | content |
//! |---|---|
//! | 0 | the next younger node, or 0 |
//! | 1.. or 8.. | the element: in the node's first line if it fits there, else from the second |
//!
//! Nothing else is kept: no length, no number of the next element, as [`Queue`](super::Queue) has
//! them. To enqueue is to link a node behind the rear and to move the rear, without a case for the
//! empty queue; to dequeue is to unlink the head node's successor, and to put the rear back to the
//! head node with the last.
//!
//! Elements are numbered by their producers, so that the check knows the only order that first in,
//! first out allows: of each producer's elements a run of consecutive numbers, in their order.

use super::allocator::{Arena, Census, block_bytes};
use super::element::{Element, KEY_LIMIT};
use super::fifo::Fifo;
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::Checked;

const FRONT: u64 = 0;
const REAR: u64 = 1;

const NEXT: u64 = 0;
const HEADER_WORDS: u64 = 1;

/// The handle of a chained queue.
#[derive(Clone, Copy, Debug)]
pub struct ChainQueue {
    root: Addr,
    element: Element,
    element_word: u64,
    producers: u64,
}

impl ChainQueue {
    fn field(&self, word: u64) -> Ptr {
        Ptr::known(self.root).word(word)
    }

    /// The word that links the oldest node, and that node or null.
    fn oldest<M: Memory>(&self, m: &mut M) -> (Ptr, Ptr) {
        let link = m.load_ptr(self.field(FRONT)).word(NEXT);
        (link, m.load_ptr(link))
    }
}

impl Fifo for ChainQueue {
    const NAME: &'static str = "chain-queue";
    const ROOT_BYTES: u64 = LINE_BYTES;
    const NUMBERS_ELEMENTS: bool = false;
    const EXTRA_NODES: u64 = 1;

    fn new(root: Addr, element: Element, producers: u32) -> Self {
        assert!(producers > 0, "a queue has a producer");
        let element_word = element.word_after(HEADER_WORDS);
        Self { root, element, element_word, producers: producers.into() }
    }

    fn node_bytes(element: Element) -> u64 {
        block_bytes(element.word_after(HEADER_WORDS) + element.words)
    }

    fn root(&self) -> Addr {
        self.root
    }

    fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        arena.format(m);
        let head = arena.allocate(m, Self::NODE);
        m.store(head.word(NEXT), 0);
        m.store_ptr(self.field(FRONT), head);
        m.store_ptr(self.field(REAR), head);
    }

    fn append<M: Memory>(&self, m: &mut M, node: Ptr, key: u64) {
        self.element.create(m, node.word(self.element_word), key % KEY_LIMIT);
        m.store(node.word(NEXT), 0);
        let rear = m.load_ptr(self.field(REAR));
        m.store_ptr(rear.word(NEXT), node);
        m.store_ptr(self.field(REAR), node);
    }

    fn dequeue<M: Memory>(&self, m: &mut M, arena: &Arena) -> bool {
        let (link, node) = self.oldest(m);
        if node.is_null() {
            return false;
        }
        self.element.read(m, node.word(self.element_word));
        let next = m.load_ptr(node.word(NEXT));
        m.store_ptr(link, next);
        if next.is_null() {
            let head = m.load_ptr(self.field(FRONT));
            m.store_ptr(self.field(REAR), head);
        }
        arena.free(m, Self::NODE, node);
        true
    }

    fn update<M: Memory>(&self, m: &mut M) -> bool {
        let (_, node) = self.oldest(m);
        if node.is_null() {
            return false;
        }
        self.element.update(m, node.word(self.element_word));
        true
    }

    fn walk(&self, census: &mut Census<'_>, visit: &mut dyn FnMut(u64)) -> Checked {
        let mut last = census.address(self.field(FRONT).addr);
        census.claim(last, Self::NODE, "head node")?;
        // Of each producer, the key that must come next; none before its first.
        let mut expected: Vec<Option<u64>> = vec![None; self.producers as usize];
        loop {
            let node = census.address(last.plus(NEXT * WORD_BYTES));
            if node.0 == 0 {
                break;
            }
            census.claim(node, Self::NODE, "node")?;
            let element = node.plus(self.element_word * WORD_BYTES);
            let key = self.element.check(census.image(), element);
            let key = key.map_err(|torn| census.broken(torn))?;
            let producer = key % self.producers;
            let next = expected[producer as usize].replace(key + self.producers).unwrap_or(key);
            census.ensure(key == next, || {
                format!("node {node} has key {key} where producer {producer}'s {next} follows")
            })?;
            visit(key);
            last = node;
        }
        let rear = census.address(self.field(REAR).addr);
        census.ensure(rear == last, || format!("the rear is {rear}, but the last node is {last}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fifo::testing;
    use super::*;
    use graven_base::memory::Image;
    use graven_machine::program::Direct;

    #[test]
    fn it_behaves_as_a_deque() {
        testing::agrees_with_a_deque::<ChainQueue>();
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (queue, arena) = testing::queue::<ChainQueue>(64, 2);
        let mut image = testing::filled(&queue, &arena, [0, 1, 2, 4, 3]);
        let head = Addr(image.load(queue.root));
        let node = |n: u64| head.plus(n * 128);
        // The first was taken out again: keys 1, 2, 4 and 3 remain.
        let mut check = testing::checked(&queue, &arena, &mut image);
        check.finds(queue.root, node(2).0, "has leaked");
        check.finds(queue.root.plus(8), head.0, "the rear is");
        check.finds(head, 0, "but the last node is");
        check.finds(head, node(1).0, "overlaps a block met before");
        check.finds(node(2), node(4).0, "has leaked");
        check.finds(node(3), node(5).0, "has leaked");
        check.finds(node(5), node(2).0, "overlaps a block met before");
        check.finds(node(3).plus(64), 1 << 40 | 6, "is torn: word 1 of key 6");
        check.finds(testing::HEADER.plus(8), 0, "has leaked");
    }

    /// An element out of turn, whole as it may be.
    #[test]
    fn a_producers_elements_are_in_order() {
        let (queue, arena) = testing::queue::<ChainQueue>(64, 2);
        for (keys, sound) in [(vec![0, 1, 3, 2, 5, 4], true), (vec![0, 2, 1, 6, 3], false)] {
            let mut image = Image::new();
            let mut m = Direct::new(&mut image);
            queue.format(&mut m, &arena);
            keys.iter().for_each(|&key| queue.enqueue(&mut m, &arena, key));
            assert_eq!(testing::contents(&queue, &arena, &image).is_ok(), sound, "{keys:?}");
        }
    }

    #[test]
    fn the_check_ends_on_any_word() {
        testing::ends_on_any_word::<ChainQueue>();
    }
}
