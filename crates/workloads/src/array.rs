//! `array`: swaps of two random elements, and what [`sps`](super::sps) has in common with it.
//!
//! Models Array of Silo (Table III: "randomly swap two elements in an array", 64 B). A swap reads
//! every word of both elements and stores every word of both, as copying does, although most keep
//! their value: "each data element is 64B, which involves multiple words. However, many words are
//! not actually modified" (Silo, §VI-D).
//!
//! | word of an element | content |
//! |---|---|
//! | 0 | the element's key, plus 1 |
//! | 1 | a number below 65 536 that follows from the key; in `sps` as the words that follow |
//! | 2.. | the same in every element: a mix of small numbers, letters and zeros, or a text |
//!
//! A partition is nothing but its elements, packed. A swap of 64 B elements thus issues 16 loads
//! and 16 stores, of which 4 change a word (2 in `sps`). Private: an array per thread, no locks.
//! Shared: one array, whose element i is under lock i modulo 64. All transactions swap: the shares
//! of insertions and removals have no meaning here.

use rand_pcg::Pcg64;

use super::layout::{Placed, Plan};
use super::locking::STRIPES;
use super::operations::{self, Operations};
use super::structures::Element;
use super::structures::element::copy_line;
use super::structures::keys::{Draw, generator};
use graven_base::config::ConfigError;
use graven_base::memory::{Addr, Image, WORD_BYTES, mix};
use graven_machine::program::{Direct, Load, LockId, Memory, Program, Ptr, Thread};
use graven_machine::workload::{BrokenInvariant, Checked, Extent, Request, Workload};

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    build_as("array", 2, request)
}

/// The workload `name`, whose elements differ in their first `own_words` words (1 or 2).
pub(super) fn build_as(
    name: &'static str,
    own_words: u64,
    request: &Request,
) -> Result<Box<dyn Workload>, ConfigError> {
    let plan = Plan::new(name, request, |element| element.words * WORD_BYTES)?;
    let mut first_key = 0;
    let Placed { parts: arrays, extent } = plan.lay_out(|layout, share| {
        let elements = share.threads.len() as u64 * plan.population;
        let base = layout.take(elements * plan.element.words * WORD_BYTES);
        let array = Array { name, base, element: plan.element, elements, first_key, own_words };
        first_key += elements;
        array
    })?;
    Ok(Box::new(ArrayWorkload { plan, arrays, extent }))
}

/// One array, and the keys that it holds from the beginning.
#[derive(Clone, Copy, Debug)]
struct Array {
    /// The workload, for messages.
    name: &'static str,
    base: Addr,
    element: Element,
    elements: u64,
    first_key: u64,
    /// Words at the beginning of an element that follow from its key; the others are the same in
    /// all.
    own_words: u64,
}

impl Array {
    /// Word `index` of the element of `key`.
    fn word(&self, key: u64, index: u64) -> u64 {
        match index {
            0 => key + 1,
            1 if self.own_words > 1 => mix(key + 1) & 0xffff,
            _ => self.element.content(0, index),
        }
    }

    fn element(&self, index: u64) -> Ptr {
        Ptr::known(self.base).word(index * self.element.words)
    }

    fn populate<M: Memory>(&self, m: &mut M) {
        for index in 0..self.elements {
            let at = self.element(index);
            for i in 0..self.element.words {
                m.store(at.word(i), self.word(self.first_key + index, i));
            }
        }
    }

    fn swap<M: Memory>(&self, m: &mut M, (a, b): (u64, u64)) {
        let (a, b) = (self.element(a), self.element(b));
        for i in 0..self.element.words {
            // Two words are copied: one each way.
            copy_line(m, i, self.element.words);
            copy_line(m, i, self.element.words);
            let (x, y) = (m.load(a.word(i)), m.load(b.word(i)));
            m.store(a.word(i), y);
            m.store(b.word(i), x);
        }
    }

    /// Every key that was there at the beginning is there once, in a whole element.
    fn check(&self, image: &Image) -> Checked {
        let broken =
            |what| BrokenInvariant { structure: format!("{} at {}", self.name, self.base), what };
        let mut seen = vec![false; self.elements as usize];
        for index in 0..self.elements {
            let at = self.element(index);
            let key = image.load(at.addr).wrapping_sub(1);
            let keys = self.first_key..self.first_key + self.elements;
            if !keys.contains(&key) {
                return Err(broken(format!("element {index} has key {key}, not in {keys:?}")));
            }
            for i in 1..self.element.words {
                let (found, expected) = (image.load(at.word(i).addr), self.word(key, i));
                if found != expected {
                    return Err(broken(format!(
                        "element {index} is torn: word {i} of key {key} is {found:#x}, not {expected:#x}"
                    )));
                }
            }
            let seen = &mut seen[(key - self.first_key) as usize];
            if std::mem::replace(seen, true) {
                return Err(broken(format!("element {index} has key {key}, as one before it")));
            }
        }
        Ok(())
    }
}

struct ArrayWorkload {
    plan: Plan,
    arrays: Vec<Array>,
    extent: Extent,
}

impl Workload for ArrayWorkload {
    fn populate(&self, image: &mut Image) {
        for array in &self.arrays {
            array.populate(&mut Direct::new(image));
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let request = &self.plan.request;
        let array = self.arrays[self.plan.part_of(thread)];
        let random = generator(request.seed, thread);
        let draw = Draw::new(&request.config, array.elements);
        operations::program(Run { array, random, draw }, request, thread)
    }

    fn check(&self, image: &Image) -> Checked {
        self.arrays.iter().try_for_each(|array| array.check(image))
    }

    fn extent(&self) -> Option<Extent> {
        Some(self.extent)
    }
}

/// State of a thread.
struct Run {
    array: Array,
    random: Pcg64,
    draw: Draw,
}

impl Operations for Run {
    /// Two different elements.
    type Operation = (u64, u64);

    /// An arbitrarily skewed distribution might draw the same element for ever; then its neighbour is taken.
    fn draw(&mut self, thread: &mut Thread<'_>) -> (u64, u64) {
        thread.compute(2 * self.draw.instructions);
        let elements = self.array.elements;
        let a = self.draw.below(elements, &mut self.random);
        let b = self.draw.below(elements, &mut self.random);
        (a, if a == b { (b + 1) % elements } else { b })
    }

    fn lock(&self, _: &mut Thread<'_>, (a, b): (u64, u64), locks: &mut Vec<LockId>) {
        locks.extend([a, b].map(|i| (i % u64::from(STRIPES)) as LockId));
    }

    #[inline(always)]
    fn perform(&self, thread: &mut Thread<'_>, pair: (u64, u64)) {
        self.array.swap(thread, pair);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    crate::testing::contract!(super::build);

    const ARRAY: Array = Array {
        name: "array",
        base: Addr(4096),
        element: Element::of_bytes(64),
        elements: 10,
        first_key: 30,
        own_words: 2,
    };

    fn populated(array: Array) -> Image {
        let mut image = Image::new();
        array.populate(&mut Direct::new(&mut image));
        image
    }

    fn keys(image: &Image) -> Vec<u64> {
        (0..10).map(|i| image.load(ARRAY.element(i).addr) - 1).collect()
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_vector(swaps in prop::collection::vec((0..10u64, 0..10u64), 0..50)) {
            let mut image = populated(ARRAY);
            let mut model: Vec<u64> = (30..40).collect();
            for (a, b) in swaps {
                ARRAY.swap(&mut Direct::new(&mut image), (a, b));
                model.swap(a as usize, b as usize);
                prop_assert_eq!(ARRAY.check(&image), Ok(()));
            }
            prop_assert_eq!(keys(&image), model);
        }
    }

    #[test]
    fn a_swap_changes_each_elements_own_words() {
        for own_words in [1, 2] {
            let array = Array { own_words, ..ARRAY };
            let mut image = populated(array);
            let before = [0, 7].map(|i| image.load_line(array.element(i).addr.line()));
            array.swap(&mut Direct::new(&mut image), (0, 7));
            let after = [0, 7].map(|i| image.load_line(array.element(i).addr.line()));
            assert_eq!((before[0], before[1]), (after[1], after[0]));
            let changed = before[0].iter().zip(&after[0]).filter(|(x, y)| x != y).count();
            assert_eq!(changed as u64, own_words);
            assert_eq!(array.check(&image), Ok(()));
        }
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let mut image = populated(ARRAY);
        let mut check_finds = |at: Ptr, value: u64, expected: &str| {
            let old = image.store(at.addr, value);
            assert_eq!(ARRAY.check(&image).expect_err("it is seen").what, expected);
            image.store(at.addr, old);
        };
        check_finds(ARRAY.element(3), 0, &format!("element 3 has key {}, not in 30..40", u64::MAX));
        check_finds(ARRAY.element(3), 41, "element 3 has key 40, not in 30..40");
        let three = ARRAY.word(33, 1);
        let torn = format!(
            "element 3 is torn: word 1 of key 35 is {three:#x}, not {:#x}",
            ARRAY.word(35, 1)
        );
        check_finds(ARRAY.element(3), 36, &torn);
        check_finds(
            ARRAY.element(9).word(4),
            1,
            "element 9 is torn: word 4 of key 39 is 0x1, not 0x0",
        );
        for i in 0..8 {
            image.store(ARRAY.element(4).word(i).addr, ARRAY.word(31, i));
        }
        let twin = ARRAY.check(&image).unwrap_err().what;
        assert_eq!(twin, "element 4 has key 31, as one before it");
    }
}
