//! Common interface of queues: first in, first out.

use super::allocator::{Arena, Census, Class};
use super::element::Element;
use graven_base::memory::Addr;
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::Checked;

/// A queue of elements, in PM. The handle itself holds addresses and sizes only.
pub trait Fifo: Copy + 'static {
    /// Name of the workload for users.
    const NAME: &'static str;

    /// The size class of nodes in the queue's arena.
    const NODE: Class = 0;

    /// Bytes of PM that the root takes.
    const ROOT_BYTES: u64;

    /// True if it numbers its elements itself; otherwise their producers do.
    const NUMBERS_ELEMENTS: bool;

    /// Nodes of the arena that hold no element.
    const EXTRA_NODES: u64;

    /// The queue with its root at `root`, into which as many threads put elements.
    fn new(root: Addr, element: Element, producers: u32) -> Self;

    /// Bytes of a node.
    fn node_bytes(element: Element) -> u64;

    /// Address, for messages.
    fn root(&self) -> Addr;

    /// Makes the queue and its arena empty.
    fn format<M: Memory>(&self, m: &mut M, arena: &Arena);

    /// Puts the first version of a new element at the young end, in `node`: a block of the queue's
    /// arena. `key` is what its producer numbers it: number n of producer p of P is n·P + p. A queue
    /// that numbers its elements itself has no use for it.
    fn append<M: Memory>(&self, m: &mut M, node: Ptr, key: u64);

    /// Takes a node and appends a new element in it.
    fn enqueue<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) {
        let node = arena.allocate(m, Self::NODE);
        self.append(m, node, key);
    }

    /// Removes the oldest element and reads it, as its consumer does. Returns whether there was
    /// one.
    fn dequeue<M: Memory>(&self, m: &mut M, arena: &Arena) -> bool;

    /// Writes the next version of the oldest element. Returns whether there is one.
    fn update<M: Memory>(&self, m: &mut M) -> bool;

    /// Walks the queue from the oldest to the youngest element, checks its invariants, accounts for
    /// each block, and calls `visit` with each key.
    ///
    /// # Errors
    /// The first violation. Ends on any image.
    fn walk(&self, census: &mut Census<'_>, visit: &mut dyn FnMut(u64)) -> Checked;
}

#[cfg(test)]
pub(crate) mod testing {
    //! The properties that every queue must have, to be instantiated by each.

    use std::collections::VecDeque;

    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::testing::Check;
    use graven_base::memory::Image;
    use graven_machine::program::Direct;

    /// Address of the arena's header.
    pub const HEADER: Addr = Addr(4160);
    const START: Addr = Addr(8192);

    /// An empty place for a queue, and for its nodes.
    pub fn queue<Q: Fifo>(element_bytes: u64, producers: u32) -> (Q, Arena) {
        let element = Element::of_bytes(element_bytes);
        let arena = Arena::new(HEADER, START, Addr(1 << 22), [Q::node_bytes(element), 0]);
        (Q::new(Addr(4096), element, producers), arena)
    }

    /// The keys in the checked queue, from the oldest on.
    pub fn contents<Q: Fifo>(queue: &Q, arena: &Arena, image: &Image) -> Checked<Vec<u64>> {
        let mut census = Census::begin("test".into(), image, &[*arena])?;
        let mut keys = Vec::new();
        queue.walk(&mut census, &mut |key| keys.push(key))?;
        census.finish()?;
        Ok(keys)
    }

    /// Runs random steps on the queue and on a deque, and compares after each eight.
    pub fn agrees_with_a_deque<Q: Fifo>() {
        let steps = prop::collection::vec(0..8u8, 0..400);
        let sizes = prop_oneof![Just(8), Just(64), Just(200)];
        let run = TestRunner::default().run(&(steps, sizes), |(steps, element_bytes)| {
            let (queue, arena) = queue::<Q>(element_bytes, 1);
            let mut image = Image::new();
            queue.format(&mut Direct::new(&mut image), &arena);
            let mut model = VecDeque::new();
            let mut key = 0;
            for batch in steps.chunks(8) {
                let mut m = Direct::new(&mut image);
                for step in batch {
                    match step {
                        0..4 => {
                            queue.enqueue(&mut m, &arena, key);
                            model.push_back(key);
                            key += 1;
                        }
                        4..7 => {
                            assert_eq!(queue.dequeue(&mut m, &arena), model.pop_front().is_some());
                        }
                        _ => assert_eq!(queue.update(&mut m), !model.is_empty()),
                    }
                }
                prop_assert_eq!(contents(&queue, &arena, &image), Ok(model.clone().into()));
            }
            Ok(())
        });
        run.unwrap_or_else(|e| panic!("{e}"));
    }

    /// A queue into which `keys` were put, and from which the oldest was taken.
    pub fn filled<Q: Fifo>(queue: &Q, arena: &Arena, keys: impl IntoIterator<Item = u64>) -> Image {
        let mut image = Image::new();
        let mut m = Direct::new(&mut image);
        queue.format(&mut m, arena);
        for key in keys {
            queue.enqueue(&mut m, arena, key);
        }
        queue.dequeue(&mut m, arena);
        image
    }

    /// The queue in an image, to be corrupted.
    pub fn checked<'a, Q: Fifo>(
        queue: &'a Q,
        arena: &'a Arena,
        image: &'a mut Image,
    ) -> Check<'a, impl Fn(&Image) -> Checked<Vec<u64>>> {
        Check::of(image, move |image| contents(queue, arena, image))
    }

    /// Replaces every word in turn by values that a crash could leave there.
    pub fn ends_on_any_word<Q: Fifo>() {
        let (queue, arena) = queue::<Q>(64, 1);
        let mut image = filled(&queue, &arena, 0..5);
        let node_bytes = Q::node_bytes(Element::of_bytes(64));
        let nodes = START.0..START.0 + (5 + Q::EXTRA_NODES) * node_bytes;
        let words = (queue.root().0..HEADER.0 + 24).chain(nodes).step_by(8);
        checked(&queue, &arena, &mut image).ends_on_any_word(words, &[queue.root().0]);
    }
}
