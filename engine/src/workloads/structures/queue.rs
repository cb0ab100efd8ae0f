//! A linked-list queue of elements, in PM: enqueue allocates a node, dequeue frees one.
//!
//! Root (one line):
//!
//! | word | content |
//! |---|---|
//! | 0 | head: address of the oldest node, or 0 |
//! | 1 | tail: address of the youngest node; meaningless if the queue is empty |
//! | 2 | length |
//! | 3 | ticket: the key of the next element to be enqueued |
//!
//! Node, one block:
//!
//! | word | content |
//! |---|---|
//! | 0 | the next younger node, or 0 |
//! | 1.. or 8.. | the element: in the node's first line if it fits there, else from the second |
//!
//! The key of an element is its ticket, so that the check knows the only order that first in, first
//! out allows: consecutive keys from head to tail.

use super::allocator::{Arena, Census, Class, block_bytes};
use super::element::{Element, KEY_LIMIT, copy_line};
use crate::memory::{Addr, Image, LINE_BYTES, WORD_BYTES};
use crate::program::{Memory, Ptr};
use crate::workloads::Violation;

const HEAD: u64 = 0;
const TAIL: u64 = 1;
const LENGTH: u64 = 2;
const TICKET: u64 = 3;

const NEXT: u64 = 0;
const HEADER_WORDS: u64 = 1;

/// The handle of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    root: Addr,
    element: Element,
    element_word: u64,
}

impl Queue {
    /// The size class of nodes in the queue's arena.
    pub const NODE: Class = 0;
    /// Bytes of PM that the root takes.
    pub const ROOT_BYTES: u64 = LINE_BYTES;

    /// The queue with its root at `root`.
    pub fn new(root: Addr, element: Element) -> Self {
        Self { root, element, element_word: element.word_after(HEADER_WORDS) }
    }

    /// Bytes of a node.
    pub fn node_bytes(element: Element) -> u64 {
        block_bytes(element.word_after(HEADER_WORDS) + element.words)
    }

    /// Where it is, for messages.
    pub fn root(&self) -> Addr {
        self.root
    }

    fn field(&self, word: u64) -> Ptr {
        Ptr::known(self.root).word(word)
    }

    /// Makes the queue and its arena empty.
    pub fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        arena.format(m);
        for word in [HEAD, TAIL, LENGTH, TICKET] {
            m.store(self.field(word), 0);
        }
    }

    /// Appends the first version of a new element.
    pub fn enqueue<M: Memory>(&self, m: &mut M, arena: &Arena) {
        let node = arena.allocate(m, Self::NODE);
        self.append(m, node);
    }

    /// Appends a new element in `node`, a block of the queue's arena.
    pub fn append<M: Memory>(&self, m: &mut M, node: Ptr) {
        let ticket = m.load(self.field(TICKET));
        m.store(self.field(TICKET), (ticket + 1) % KEY_LIMIT);
        m.store(node.word(NEXT), 0);
        self.element.create(m, node.word(self.element_word), ticket);
        let length = m.load(self.field(LENGTH));
        let link = match length {
            0 => self.field(HEAD),
            _ => m.load_ptr(self.field(TAIL)).word(NEXT),
        };
        m.store_ptr(link, node);
        m.store_ptr(self.field(TAIL), node);
        m.store(self.field(LENGTH), length + 1);
    }

    /// Removes the oldest element and reads it, as its consumer does. Returns whether there was one.
    pub fn dequeue<M: Memory>(&self, m: &mut M, arena: &Arena) -> bool {
        let head = m.load_ptr(self.field(HEAD));
        if head.is_null() {
            return false;
        }
        for i in 0..self.element.words {
            copy_line(m, i, self.element.words);
            m.load(head.word(self.element_word + i));
        }
        let next = m.load_ptr(head.word(NEXT));
        m.store_ptr(self.field(HEAD), next);
        let length = m.load(self.field(LENGTH));
        m.store(self.field(LENGTH), length.wrapping_sub(1));
        arena.free(m, Self::NODE, head);
        true
    }

    /// Writes the next version of the oldest element. Returns whether there is one.
    pub fn update<M: Memory>(&self, m: &mut M) -> bool {
        let head = m.load_ptr(self.field(HEAD));
        if head.is_null() {
            return false;
        }
        self.element.update(m, head.word(self.element_word));
        true
    }

    /// Walks the queue from head to tail, checks its invariants, accounts for each block, and returns
    /// the keys of its oldest and its next element.
    ///
    /// # Errors
    /// The first violation. Ends on any image.
    pub fn walk(&self, image: &Image, census: &mut Census) -> Result<(u64, u64), Violation> {
        let root = |word: u64| image.load(self.field(word).addr);
        let (length, ticket) = (root(LENGTH), root(TICKET));
        let mut expected = ticket.wrapping_sub(length) % KEY_LIMIT;
        let oldest = expected;
        let mut node = Addr(root(HEAD));
        let (mut walked, mut last) = (0, Addr(0));
        while node.0 != 0 {
            census.claim(node, Self::NODE, "node")?;
            match self.element.check(image, node.plus(self.element_word * WORD_BYTES)) {
                Ok(key) if key == expected => {}
                Ok(key) => {
                    return Err(census.broken(format!(
                        "node {node} has ticket {key} where {expected} follows (length {length}, next ticket {ticket})"
                    )));
                }
                Err(torn) => return Err(census.broken(torn)),
            }
            walked += 1;
            expected = (expected + 1) % KEY_LIMIT;
            last = node;
            node = Addr(image.load(node.plus(NEXT * WORD_BYTES)));
        }
        if walked != length {
            return Err(census.broken(format!("{walked} nodes, but the length says {length}")));
        }
        if walked > 0 && root(TAIL) != last.0 {
            let tail = Addr(root(TAIL));
            return Err(census.broken(format!("the tail is {tail}, but the last node is {last}")));
        }
        Ok((oldest, ticket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Direct;
    use proptest::prelude::*;

    fn queue(element_bytes: u64) -> (Queue, Arena) {
        let element = Element::of_bytes(element_bytes);
        let sizes = [Queue::node_bytes(element), 0];
        let arena = Arena::new(Addr(4160), Addr(8192), Addr(1 << 22), sizes);
        (Queue::new(Addr(4096), element), arena)
    }

    fn check(queue: &Queue, arena: &Arena, image: &Image) -> Result<(u64, u64), Violation> {
        let mut census = Census::begin("test".into(), image, &[*arena])?;
        let keys = queue.walk(image, &mut census)?;
        census.finish()?;
        Ok(keys)
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_deque(
            steps in prop::collection::vec(0..8u8, 0..400),
            element_bytes in prop_oneof![Just(8), Just(64), Just(200)],
        ) {
            let (queue, arena) = queue(element_bytes);
            let mut image = Image::new();
            queue.format(&mut Direct::new(&mut image), &arena);
            let mut model = std::collections::VecDeque::new();
            let mut ticket = 0;
            for batch in steps.chunks(8) {
                let mut m = Direct::new(&mut image);
                for step in batch {
                    match step {
                        0..4 => {
                            queue.enqueue(&mut m, &arena);
                            model.push_back(ticket);
                            ticket += 1;
                        }
                        4..7 => assert_eq!(queue.dequeue(&mut m, &arena), model.pop_front().is_some()),
                        _ => assert_eq!(queue.update(&mut m), !model.is_empty()),
                    }
                }
                let oldest = model.front().copied().unwrap_or(ticket);
                prop_assert_eq!(check(&queue, &arena, &image), Ok((oldest, ticket)));
            }
        }
    }

    fn filled() -> (Queue, Arena, Image) {
        let (queue, arena) = queue(64);
        let mut image = Image::new();
        let mut m = Direct::new(&mut image);
        queue.format(&mut m, &arena);
        for _ in 0..5 {
            queue.enqueue(&mut m, &arena);
        }
        queue.dequeue(&mut m, &arena);
        (queue, arena, image)
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (queue, arena, mut image) = filled();
        let head = Addr(image.load(queue.root));
        let second = Addr(image.load(head));
        let mut convicts = |at: Addr, value: u64, expected: &str| {
            let old = image.store(at, value);
            let found = check(&queue, &arena, &image).expect_err("it is seen").what;
            assert!(found.contains(expected), "expected `{expected}`, found `{found}`");
            image.store(at, old);
        };
        convicts(queue.root, second.0, "has ticket 2 where 1 follows");
        convicts(queue.root.plus(8), head.0, "the tail is");
        convicts(queue.root.plus(16), 3, "has ticket 1 where 2 follows");
        convicts(queue.root.plus(24), 7, "has ticket 1 where 3 follows");
        convicts(second, 0, "2 nodes, but the length says 4");
        convicts(second, head.0, "overlaps a block met before");
        convicts(head.plus(64 + 16), 1 << 40, "is torn: word 2 of key 1");
        convicts(Addr(4160).plus(8), 0, "has leaked");
    }

    #[test]
    fn the_check_ends_on_any_word() {
        let (queue, arena, mut image) = filled();
        for at in (4096..4160 + 24).chain(8192..8192 + 5 * 128).step_by(8).map(Addr) {
            let old = image.load(at);
            for value in [0, old ^ 64, queue.root.0, u64::MAX] {
                image.store(at, value);
                let _ = check(&queue, &arena, &image);
            }
            image.store(at, old);
        }
        assert!(check(&queue, &arena, &image).is_ok());
    }
}
