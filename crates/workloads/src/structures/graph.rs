//! A sparse directed graph in PM: a vertex table, and for each vertex the list of its edges.
//!
//! | part | content |
//! |---|---|
//! | stripes, one line each | word 0: number of edges that begin in this stripe's vertices |
//! | vertices, one line each | see below |
//!
//! Vertex:
//!
//! | word | content |
//! |---|---|
//! | 0 | first edge that begins here, or 0 |
//! | 1 | out-degree: how many begin here |
//! | 2 | in-degree: how many end here |
//!
//! Edge, one block:
//!
//! | word | content |
//! |---|---|
//! | 0 | next edge of the same source, or 0 |
//! | 1 | number of the target vertex |
//! | 2.. or 8.. | the element: in the block's first line if it fits there, else from the second |
//!
//! Vertex v belongs to stripe v modulo the number of stripes; a stripe is what one lock covers, and
//! has a count of its own so that threads under different locks share no word. An edge is under the
//! locks of both its ends. There is at most one edge from a vertex to another. New edges go to the
//! front of their list. The key of an edge's element follows from both ends, so that a check sees
//! an element in the wrong place. Left out: vertices that come and go, lists by target.

use super::allocator::{Arena, Census, Class, block_bytes};
use super::element::{Element, KEY_LIMIT};
use crate::costs;
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES, WORDS_PER_LINE, mix};
use graven_machine::program::{LockId, Memory, Ptr};
use graven_machine::workload::Checked;

const FIRST: u64 = 0;
const OUT_DEGREE: u64 = 1;
const IN_DEGREE: u64 = 2;

const NEXT: u64 = 0;
const TARGET: u64 = 1;
const HEADER_WORDS: u64 = 2;

const EDGE: Class = 0;

/// Most vertices of a graph.
const VERTICES_MAX: u64 = 1 << 32;

/// A possible edge, by the numbers of the vertices where it begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// Vertex where it begins.
    pub source: u64,
    /// Vertex where it ends.
    pub target: u64,
}

impl Edge {
    /// The key of its element.
    fn key(self) -> u64 {
        mix(self.source << 32 | self.target) % KEY_LIMIT
    }
}

/// The handle of a graph.
#[derive(Clone, Copy, Debug)]
pub struct Graph {
    root: Addr,
    stripes: u64,
    vertices: u64,
    element: Element,
    element_word: u64,
}

impl Graph {
    /// Bytes of PM that a vertex takes, its edges excepted.
    pub const VERTEX_BYTES: u64 = LINE_BYTES;

    /// The graph whose stripes and vertices begin at `root`.
    pub fn new(root: Addr, stripes: u32, vertices: u64, element: Element) -> Self {
        assert!(stripes > 0, "a graph has a stripe");
        assert!((1..=VERTICES_MAX).contains(&vertices), "vertex numbers have 32 bits");
        let element_word = element.word_after(HEADER_WORDS);
        Self { root, stripes: stripes.into(), vertices, element, element_word }
    }

    /// Bytes of PM that stripes and vertices take (saturating).
    pub fn root_bytes(stripes: u32, vertices: u64) -> u64 {
        vertices.saturating_mul(Self::VERTEX_BYTES).saturating_add(u64::from(stripes) * LINE_BYTES)
    }

    /// Bytes of an edge.
    pub fn edge_bytes(element: Element) -> u64 {
        block_bytes(element.word_after(HEADER_WORDS) + element.words)
    }

    /// Address, for messages.
    pub fn root(&self) -> Addr {
        self.root
    }

    /// The locks that cover every word that an operation on `edge` reads or writes, the allocator's
    /// excepted if threads have arenas of their own.
    pub fn locks_of(&self, edge: Edge) -> [LockId; 2] {
        [edge.source, edge.target].map(|vertex| (vertex % self.stripes) as LockId)
    }

    fn count_of(&self, stripe: u64) -> Ptr {
        Ptr::known(self.root).word(stripe * WORDS_PER_LINE as u64)
    }

    fn vertex(&self, number: u64) -> Ptr {
        Ptr::known(self.root).word((self.stripes + number) * WORDS_PER_LINE as u64)
    }

    /// Makes the graph one without edges.
    pub fn format<M: Memory>(&self, m: &mut M) {
        for stripe in 0..self.stripes {
            m.store(self.count_of(stripe), 0);
        }
        for vertex in (0..self.vertices).map(|number| self.vertex(number)) {
            for word in [FIRST, OUT_DEGREE, IN_DEGREE] {
                m.store(vertex.word(word), 0);
            }
        }
    }

    /// The block of `edge` or null, and the word that points at it (at null, if it is absent).
    fn search<M: Memory>(&self, m: &mut M, edge: Edge) -> (Ptr, Ptr) {
        let mut link = self.vertex(edge.source).word(FIRST);
        let mut block = m.load_ptr(link);
        while !block.is_null() {
            m.compute(costs::COMPARE);
            if m.load(block.word(TARGET)) == edge.target {
                break;
            }
            link = block.word(NEXT);
            block = m.load_ptr(link);
        }
        (block, link)
    }

    /// Degrees and count, when `edge` comes (1) or goes (-1).
    fn adjust<M: Memory>(&self, m: &mut M, edge: Edge, step: i64) {
        for at in [
            self.vertex(edge.source).word(OUT_DEGREE),
            self.vertex(edge.target).word(IN_DEGREE),
            self.count_of(edge.source % self.stripes),
        ] {
            let number = m.load(at);
            m.store(at, number.wrapping_add_signed(step));
        }
    }

    fn link<M: Memory>(&self, m: &mut M, arena: &Arena, edge: Edge) {
        let link = self.vertex(edge.source).word(FIRST);
        let block = arena.allocate(m, EDGE);
        let first = m.load_ptr(link);
        m.store_ptr(block.word(NEXT), first);
        m.store(block.word(TARGET), edge.target);
        self.element.create(m, block.word(self.element_word), edge.key());
        m.store_ptr(link, block);
        self.adjust(m, edge, 1);
    }

    fn unlink<M: Memory>(&self, m: &mut M, arena: &Arena, edge: Edge, (block, link): (Ptr, Ptr)) {
        let next = m.load_ptr(block.word(NEXT));
        m.store_ptr(link, next);
        arena.free(m, EDGE, block);
        self.adjust(m, edge, -1);
    }

    /// Inserts the edge if it is absent, and removes it if it is present. Returns true if it was
    /// absent.
    pub fn toggle<M: Memory>(&self, m: &mut M, arena: &Arena, edge: Edge) -> bool {
        let found = self.search(m, edge);
        if found.0.is_null() {
            self.link(m, arena, edge);
        } else {
            self.unlink(m, arena, edge, found);
        }
        found.0.is_null()
    }

    /// Inserts the edge, or writes the next version of its element if it is present. Returns true
    /// if it was absent.
    pub fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, edge: Edge) -> bool {
        let absent = !self.update(m, edge);
        if absent {
            self.link(m, arena, edge);
        }
        absent
    }

    /// Writes the next version of the edge's element. Returns true if the edge was present.
    pub fn update<M: Memory>(&self, m: &mut M, edge: Edge) -> bool {
        let (block, _) = self.search(m, edge);
        if block.is_null() {
            return false;
        }
        self.element.update(m, block.word(self.element_word));
        true
    }

    /// Removes the edge. Returns true if it was present.
    pub fn remove<M: Memory>(&self, m: &mut M, arena: &Arena, edge: Edge) -> bool {
        let found = self.search(m, edge);
        if found.0.is_null() {
            return false;
        }
        self.unlink(m, arena, edge, found);
        true
    }

    /// Walks all lists, checks degrees, counts and elements, accounts for each block with the
    /// census, and calls `visit` with each edge.
    ///
    /// # Errors
    /// The first violation. Ends on any image.
    pub fn walk(&self, census: &mut Census<'_>, visit: &mut dyn FnMut(Edge)) -> Checked {
        let mut counts = vec![0; self.stripes as usize];
        let mut in_degrees = vec![0; self.vertices as usize];
        let mut targets = Vec::new();
        for source in 0..self.vertices {
            self.walk_list(census, source, &mut targets)?;
            counts[(source % self.stripes) as usize] += targets.len() as u64;
            for &target in &targets {
                in_degrees[target as usize] += 1;
                visit(Edge { source, target });
            }
        }
        for (vertex, &walked) in in_degrees.iter().enumerate() {
            let stored = census.load(self.vertex(vertex as u64).word(IN_DEGREE).addr);
            census.ensure(walked == stored, || {
                format!("{walked} edges end in vertex {vertex}, but its in-degree says {stored}")
            })?;
        }
        for (stripe, &walked) in counts.iter().enumerate() {
            let stored = census.load(self.count_of(stripe as u64).addr);
            census.ensure(walked == stored, || {
                format!("{walked} edges in stripe {stripe}, but its count says {stored}")
            })?;
        }
        Ok(())
    }

    /// Collects the targets of one vertex's edges, in order.
    fn walk_list(&self, census: &mut Census<'_>, source: u64, targets: &mut Vec<u64>) -> Checked {
        targets.clear();
        let vertex = self.vertex(source);
        let mut block = census.address(vertex.word(FIRST).addr);
        while block.0 != 0 {
            census.claim(block, EDGE, "edge")?;
            let (vertices, target) = (self.vertices, census.load(block.plus(TARGET * WORD_BYTES)));
            census.ensure(target < vertices, || {
                format!("edge {block} of vertex {source} ends in vertex {target} of {vertices}")
            })?;
            let (key, element) = (Edge { source, target }.key(), self.element_word * WORD_BYTES);
            census.check_element(self.element, block.plus(element), key, || {
                format!("edge {block} from vertex {source} to vertex {target}, of key {key},")
            })?;
            targets.push(target);
            block = census.address(block.plus(NEXT * WORD_BYTES));
        }
        let stored = census.load(vertex.word(OUT_DEGREE).addr);
        if targets.len() as u64 != stored {
            return Err(census.broken(format!(
                "{} edges begin in vertex {source}, but its out-degree says {stored}",
                targets.len()
            )));
        }
        targets.sort_unstable();
        census.no_twins(targets, |target| {
            format!("two edges from vertex {source} to vertex {target}")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::Check;
    use graven_base::memory::Image;
    use graven_machine::program::Direct;
    use proptest::prelude::*;

    const HEADER: Addr = Addr(65536);
    const START: Addr = Addr(65600);

    fn graph(element_bytes: u64, vertices: u64) -> (Graph, Arena) {
        let element = Element::of_bytes(element_bytes);
        let sizes = [Graph::edge_bytes(element), 0];
        let arena = Arena::new(HEADER, START, Addr(1 << 22), sizes);
        (Graph::new(Addr(4096), 4, vertices, element), arena)
    }

    fn edges(graph: &Graph, arena: &Arena, image: &Image) -> Checked<BTreeSet<Edge>> {
        let mut census = Census::begin("test".into(), image, &[*arena])?;
        let mut edges = BTreeSet::new();
        graph.walk(&mut census, &mut |edge| assert!(edges.insert(edge)))?;
        census.finish()?;
        Ok(edges)
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_set_of_pairs(
            steps in prop::collection::vec((0..8u8, 0..400u64), 0..600),
            element_bytes in prop_oneof![Just(8), Just(64), Just(200)],
            vertices in 1..20u64,
        ) {
            let (graph, arena) = graph(element_bytes, vertices);
            let mut image = Image::new();
            graph.format(&mut Direct::new(&mut image));
            arena.format(&mut Direct::new(&mut image));
            let mut model = BTreeSet::new();
            for batch in steps.chunks(16) {
                let mut m = Direct::new(&mut image);
                for &(kind, pair) in batch {
                    let edge = Edge { source: pair / 20 % vertices, target: pair % 20 % vertices };
                    let absent = !model.contains(&edge);
                    match kind {
                        0..3 => {
                            assert_eq!(graph.toggle(&mut m, &arena, edge), absent);
                            if absent { model.insert(edge) } else { model.remove(&edge) };
                        }
                        3..5 => assert_eq!(graph.insert(&mut m, &arena, edge), model.insert(edge)),
                        5..7 => assert_eq!(graph.remove(&mut m, &arena, edge), model.remove(&edge)),
                        _ => assert_eq!(graph.update(&mut m, edge), !absent),
                    }
                }
                prop_assert_eq!(edges(&graph, &arena, &image), Ok(model.clone()));
            }
        }
    }

    /// Vertices 0 to 5, with edges from 0 to all others and from 1 to 2 and 3.
    fn filled() -> (Graph, Arena, Image) {
        let (graph, arena) = graph(64, 6);
        let mut image = Image::new();
        let mut m = Direct::new(&mut image);
        graph.format(&mut m);
        arena.format(&mut m);
        for (source, target) in [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (1, 3)] {
            assert!(graph.insert(&mut m, &arena, Edge { source, target }));
        }
        (graph, arena, image)
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (graph, arena, mut image) = filled();
        let vertex = |number| graph.vertex(number).addr;
        let first = Addr(image.load(vertex(0)));
        let second = Addr(image.load(first));
        let mut check = Check::of(&mut image, |image| edges(&graph, &arena, image));
        check.finds(graph.root, 9, "5 edges in stripe 0, but its count says 9");
        check.finds(vertex(0), 0, "0 edges begin in vertex 0, but its out-degree says 5");
        check.finds(vertex(0).plus(8), 4, "5 edges begin in vertex 0, but its out-degree says 4");
        check.finds(vertex(3).plus(16), 1, "2 edges end in vertex 3, but its in-degree says 1");
        check.finds(second, 0, "2 edges begin in vertex 0, but its out-degree says 5");
        check.finds(second, first.0, "overlaps a block met before");
        check.finds(vertex(2), first.0, "overlaps a block met before");
        check.finds(first.plus(8), 6, "of vertex 0 ends in vertex 6 of 6");
        check.finds(first.plus(8), 3, "holds the element of key");
        check.finds(first.plus(64 + 16), 1 << 40, "is torn: word 2");
        check.finds(vertex(4), 1 << 50, "outside every arena");
        check.finds(HEADER, START.0, "outside every arena");
        for word in 1..16 {
            image.store(second.plus(word * 8), image.load(first.plus(word * 8)));
        }
        let twins = edges(&graph, &arena, &image).unwrap_err().what;
        assert_eq!(twins, "two edges from vertex 0 to vertex 5");
    }

    #[test]
    fn the_check_ends_on_any_word() {
        let (graph, arena, mut image) = filled();
        let root = graph.root.0..graph.root.0 + Graph::root_bytes(4, 6);
        let words = root.chain(HEADER.0..START.0 + 7 * 128).step_by(8);
        Check::of(&mut image, |image| edges(&graph, &arena, image))
            .ends_on_any_word(words, &[graph.root.0, START.0]);
    }
}
