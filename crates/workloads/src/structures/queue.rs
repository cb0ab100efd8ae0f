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

use super::allocator::{Arena, Census, block_bytes};
use super::element::{Element, KEY_LIMIT};
use super::fifo::Fifo;
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::Checked;

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
    fn field(&self, word: u64) -> Ptr {
        Ptr::known(self.root).word(word)
    }
}

impl Fifo for Queue {
    const NAME: &'static str = "queue";
    const ROOT_BYTES: u64 = LINE_BYTES;
    const NUMBERS_ELEMENTS: bool = true;
    const EXTRA_NODES: u64 = 0;

    fn new(root: Addr, element: Element, _producers: u32) -> Self {
        Self { root, element, element_word: element.word_after(HEADER_WORDS) }
    }

    fn node_bytes(element: Element) -> u64 {
        block_bytes(element.word_after(HEADER_WORDS) + element.words)
    }

    fn root(&self) -> Addr {
        self.root
    }

    fn format<M: Memory>(&self, m: &mut M, arena: &Arena) {
        arena.format(m);
        for word in [HEAD, TAIL, LENGTH, TICKET] {
            m.store(self.field(word), 0);
        }
    }

    fn append<M: Memory>(&self, m: &mut M, node: Ptr, _key: u64) {
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

    fn dequeue<M: Memory>(&self, m: &mut M, arena: &Arena) -> bool {
        let head = m.load_ptr(self.field(HEAD));
        if head.is_null() {
            return false;
        }
        self.element.read(m, head.word(self.element_word));
        let next = m.load_ptr(head.word(NEXT));
        m.store_ptr(self.field(HEAD), next);
        let length = m.load(self.field(LENGTH));
        m.store(self.field(LENGTH), length.wrapping_sub(1));
        arena.free(m, Self::NODE, head);
        true
    }

    fn update<M: Memory>(&self, m: &mut M) -> bool {
        let head = m.load_ptr(self.field(HEAD));
        if head.is_null() {
            return false;
        }
        self.element.update(m, head.word(self.element_word));
        true
    }

    fn walk(&self, census: &mut Census<'_>, visit: &mut dyn FnMut(u64)) -> Checked {
        let image = census.image();
        let root = |word: u64| image.load(self.field(word).addr);
        let (length, ticket) = (root(LENGTH), root(TICKET));
        let mut expected = ticket.wrapping_sub(length) % KEY_LIMIT;
        let mut node = Addr(root(HEAD));
        let (mut walked, mut last) = (0, Addr(0));
        while node.0 != 0 {
            census.claim(node, Self::NODE, "node")?;
            let element = self.element.check(image, node.plus(self.element_word * WORD_BYTES));
            let key = element.map_err(|torn| census.broken(torn))?;
            census.ensure(key == expected, || {
                format!("node {node} has ticket {key} where {expected} follows (length {length}, next ticket {ticket})")
            })?;
            visit(expected);
            walked += 1;
            expected = (expected + 1) % KEY_LIMIT;
            last = node;
            node = census.address(node.plus(NEXT * WORD_BYTES));
        }
        census
            .ensure(walked == length, || format!("{walked} nodes, but the length says {length}"))?;
        let tail = Addr(root(TAIL));
        census.ensure(walked == 0 || tail == last, || {
            format!("the tail is {tail}, but the last node is {last}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fifo::testing;
    use super::*;

    #[test]
    fn it_behaves_as_a_deque() {
        testing::agrees_with_a_deque::<Queue>();
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (queue, arena) = testing::queue::<Queue>(64, 1);
        let mut image = testing::filled(&queue, &arena, 0..5);
        let head = Addr(image.load(queue.root));
        let second = Addr(image.load(head));
        let mut check = testing::checked(&queue, &arena, &mut image);
        check.finds(queue.root, second.0, "has ticket 2 where 1 follows");
        check.finds(queue.root.plus(8), head.0, "the tail is");
        check.finds(queue.root.plus(16), 3, "has ticket 1 where 2 follows");
        check.finds(queue.root.plus(24), 7, "has ticket 1 where 3 follows");
        check.finds(second, 0, "2 nodes, but the length says 4");
        check.finds(second, head.0, "overlaps a block met before");
        check.finds(head.plus(64 + 16), 1 << 40, "is torn: word 2 of key 1");
        check.finds(testing::HEADER.plus(8), 0, "has leaked");
    }

    #[test]
    fn the_check_ends_on_any_word() {
        testing::ends_on_any_word::<Queue>();
    }
}
