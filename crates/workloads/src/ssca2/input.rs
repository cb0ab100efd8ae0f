//! The input in PM: a list of tuples, which is never written.
//!
//! | word of a tuple | content |
//! |---|---|
//! | 0 | start vertex (32 bits) above end vertex (32 bits) |
//! | 1 | weight, the first of the edge's data: all of it if an element is an integer |
//! | 2.. | the rest of the data: of the element's kind, by the number of the edge |

use super::generator::{Generator, Tuple};
use crate::structures::Element;
use graven_base::memory::{Addr, Image, WORD_BYTES};
use graven_machine::program::{Load, Memory, Ptr};

/// The handle of the list.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    base: Addr,
    /// Number of edges.
    pub edges: u64,
    element: Element,
    /// Generator of the list.
    pub generator: Generator,
}

impl Input {
    /// The list at `base` of as many edges, whose data are elements.
    pub fn new(base: Addr, edges: u64, element: Element, seed: u64) -> Self {
        Self { base, edges, element, generator: Generator::new(seed, edges) }
    }

    /// Bytes of a tuple.
    pub fn tuple_bytes(element: Element) -> u64 {
        (1 + element.words) * WORD_BYTES
    }

    fn at(&self, number: u64) -> Ptr {
        Ptr::known(self.base).word(number * (1 + self.element.words))
    }

    /// Word `index` of the data of an edge.
    pub fn data(&self, number: u64, weight: u64, index: u64) -> u64 {
        if index == 0 { weight } else { self.element.first_content(number, index) }
    }

    /// Writes the whole list.
    pub fn populate<M: Memory>(&self, m: &mut M) {
        for number in 0..self.edges {
            let Tuple { start, end, weight } = self.generator.tuple(number);
            let at = self.at(number);
            m.store(at, start << 32 | end);
            for i in 0..self.element.words {
                m.store(at.word(1 + i), self.data(number, weight, i));
            }
        }
    }

    /// Reads where an edge begins and ends, and says where its data are.
    pub fn read<L: Load>(&self, m: &mut L, number: u64) -> ((u64, u64), Ptr) {
        let at = self.at(number);
        let ends = m.load(at);
        ((ends >> 32, ends & u64::from(u32::MAX)), at.word(1))
    }

    /// Checks that the tuple of an edge is as generated, and its data at `copy` as well.
    pub fn check(&self, image: &Image, number: u64, copy: Option<Addr>) -> Result<(), String> {
        let Tuple { start, end, weight } = self.generator.tuple(number);
        let at = self.at(number);
        if image.load(at.addr) != start << 32 | end {
            return Err(format!("tuple {number} leads elsewhere than from {start} to {end}"));
        }
        let places = [Some(at.word(1).addr), copy];
        for (place, what) in places.into_iter().zip(["tuple", "edge"]) {
            let Some(place) = place else { continue };
            for i in 0..self.element.words {
                let (found, data) =
                    (image.load(place.plus(i * WORD_BYTES)), self.data(number, weight, i));
                if found != data {
                    return Err(format!(
                        "word {i} of the data of {what} {number} is {found:#x}, not {data:#x}"
                    ));
                }
            }
        }
        Ok(())
    }
}
