//! A directed multigraph that only grows, in PM: adjacency arrays in chunks, of both directions.
//!
//! Vertex, one line:
//!
//! | word | content |
//! |---|---|
//! | 0 | out-degree: how many edges begin here |
//! | 1 | first chunk of these, or 0 |
//! | 2 | last chunk of these; meaningless if there are none |
//! | 3 to 5 | the same for the edges that end here |
//! | 6 | a number that belongs to whoever uses the graph |
//! | 7 | unused |
//!
//! Chunk of edges that begin in a vertex, one block:
//!
//! | word | content |
//! |---|---|
//! | 0 | the next chunk, or 0 |
//! | 1 + i·(1 + d) | entry i of [`CHUNK_EDGES`]: number of the edge (32 bits) above its target (32 bits) |
//! | after it | the edge's data, d words |
//!
//! Chunk of edges that end in a vertex, one block: the same without data, and with sources.
//!
//! Edges keep the order in which they came: all chunks but a vertex's last are full. Parallel edges
//! and loops are allowed, as the numbers distinguish them.

use super::allocator::{Arena, Census, Class, block_bytes};
use super::element::copy_line;
use graven_base::memory::{Addr, LINE_BYTES, WORDS_PER_LINE};
use graven_machine::program::{Load, Memory, Ptr};
use graven_machine::workload::Checked;

/// Edges in a chunk: of those without data, a line's worth.
pub const CHUNK_EDGES: u64 = WORDS_PER_LINE as u64 - 1;

/// Word of a vertex that belongs to the user of the graph.
const OWN: u64 = 6;

const NEXT: u64 = 0;
const ENTRIES: u64 = 1;

/// One direction of the edges of a vertex: the first of its words, and the class of its chunks.
#[derive(Clone, Copy, Debug)]
struct Side {
    word: u64,
    class: Class,
    name: &'static str,
}

const DEGREE: u64 = 0;
const FIRST: u64 = 1;
const LAST: u64 = 2;

const OUT: Side = Side { word: 0, class: 0, name: "begin in" };
const IN: Side = Side { word: 3, class: 1, name: "end in" };

/// The handle of a multigraph.
#[derive(Clone, Copy, Debug)]
pub struct Multigraph {
    root: Addr,
    vertices: u64,
    data_words: u64,
}

/// An edge as a vertex's list has it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The number of the edge.
    pub number: u64,
    /// The vertex at its other end, with the load that returned it.
    pub other: Ptr,
    /// Start of the edge's data.
    pub data: Ptr,
}

impl Multigraph {
    /// Bytes of PM that a vertex takes, its chunks excepted.
    pub const VERTEX_BYTES: u64 = LINE_BYTES;

    /// The graph of `vertices` vertices, the first of them at `root`, whose edges have `data_words`
    /// words of data each. There are no edges where the image is zero.
    pub fn new(root: Addr, vertices: u64, data_words: u64) -> Self {
        assert!((1..=1 << 32).contains(&vertices), "vertex numbers have 32 bits");
        Self { root, vertices, data_words }
    }

    /// Bytes of the chunks of the two classes: of edges that begin, and that end, in a vertex.
    pub fn chunk_bytes(data_words: u64) -> [u64; 2] {
        [data_words, 0].map(|data| block_bytes(ENTRIES + CHUNK_EDGES * (1 + data)))
    }

    /// Address, for messages.
    pub fn root(&self) -> Addr {
        self.root
    }

    /// Number of vertices.
    pub fn vertices(&self) -> u64 {
        self.vertices
    }

    fn vertex(&self, number: Ptr) -> Ptr {
        let line = self.root.plus(number.addr.0 * Self::VERTEX_BYTES);
        Ptr { addr: line, origin: number.origin }
    }

    /// The word of `vertex` that belongs to the user of the graph.
    pub fn own_word(&self, vertex: u64) -> Ptr {
        self.vertex(Ptr::known(Addr(vertex))).word(OWN)
    }

    /// The entry for one more edge of `vertex`.
    fn grow<M: Memory>(&self, m: &mut M, arena: &Arena, vertex: u64, side: Side) -> Ptr {
        let vertex = self.vertex(Ptr::known(Addr(vertex))).word(side.word);
        let degree = m.load(vertex.word(DEGREE));
        let place = degree % CHUNK_EDGES;
        let chunk = if place > 0 {
            m.load_ptr(vertex.word(LAST))
        } else {
            let link = match degree {
                0 => vertex.word(FIRST),
                _ => m.load_ptr(vertex.word(LAST)).word(NEXT),
            };
            let chunk = arena.allocate(m, side.class);
            m.store(chunk.word(NEXT), 0);
            m.store_ptr(link, chunk);
            m.store_ptr(vertex.word(LAST), chunk);
            chunk
        };
        m.store(vertex.word(DEGREE), degree + 1);
        chunk.word(ENTRIES + place * self.entry_words(side))
    }

    fn entry_words(&self, side: Side) -> u64 {
        if side.class == OUT.class { 1 + self.data_words } else { 1 }
    }

    /// Adds the edge `number` from one vertex to another, with a copy of the data at `data`.
    pub fn append<M: Memory>(
        &self,
        m: &mut M,
        arena: &Arena,
        number: u64,
        (source, target): (u64, u64),
        data: Ptr,
    ) {
        let entry = self.grow(m, arena, source, OUT);
        m.store(entry, number << 32 | target);
        for i in 0..self.data_words {
            copy_line(m, i, self.data_words);
            let word = m.load(data.word(i));
            m.store(entry.word(1 + i), word);
        }
        let entry = self.grow(m, arena, target, IN);
        m.store(entry, number << 32 | source);
    }

    /// Number of edges that begin in `vertex`, and the first chunk of them or null.
    pub fn out_edges<L: Load>(&self, m: &mut L, vertex: Ptr) -> (u64, Ptr) {
        let vertex = self.vertex(vertex).word(OUT.word);
        (m.load(vertex.word(DEGREE)), m.load_ptr(vertex.word(FIRST)))
    }

    /// The chunk after `chunk`, or null.
    pub fn next_chunk<L: Load>(&self, m: &mut L, chunk: Ptr) -> Ptr {
        m.load_ptr(chunk.word(NEXT))
    }

    /// Reads entry `place` of `chunk`, whose edges begin in a vertex.
    pub fn out_entry<L: Load>(&self, m: &mut L, chunk: Ptr, place: u64) -> Entry {
        self.entry(m, chunk, place, OUT)
    }

    fn entry<L: Load>(&self, m: &mut L, chunk: Ptr, place: u64, side: Side) -> Entry {
        let at = chunk.word(ENTRIES + place * self.entry_words(side));
        let packed = m.load_ptr(at);
        let number = packed.addr.0 >> 32;
        let other = Ptr { addr: Addr(packed.addr.0 & u64::from(u32::MAX)), origin: packed.origin };
        Entry { number, other, data: at.word(1) }
    }

    /// Walks all lists, checks degrees and chunks, accounts for each block with the census, and calls
    /// `visit` with each edge that begins in a vertex: number, source, target, and where its data are.
    /// Each edge must end where it begins to: both directions hold the same edges, each number once.
    ///
    /// # Errors
    /// The first violation, of the graph or found by `visit`. Ends on any image.
    pub fn walk(
        &self,
        census: &mut Census<'_>,
        visit: &mut dyn FnMut(u64, (u64, u64), Addr) -> Result<(), String>,
    ) -> Checked {
        let mut edges = [Vec::new(), Vec::new()];
        for vertex in 0..self.vertices {
            for (side, edges) in [OUT, IN].into_iter().zip(&mut edges) {
                self.walk_list(census, vertex, side, &mut |entry| {
                    let other = entry.other.addr.0;
                    let ends =
                        if side.class == OUT.class { (vertex, other) } else { (other, vertex) };
                    edges.push((entry.number, ends));
                    if side.class == OUT.class {
                        return visit(entry.number, ends, entry.data.addr);
                    }
                    Ok(())
                })?;
            }
        }
        edges.iter_mut().for_each(|edges| edges.sort_unstable());
        let [out, ends] = edges;
        if let Some(twins) = out.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(census.broken(format!("edge {} is there twice", twins[0].0)));
        }
        if let Some((a, b)) = out.iter().zip(&ends).find(|(a, b)| a != b) {
            let number = a.0.min(b.0);
            let what = format!("edge {number} does not begin and end in the same two vertices");
            return Err(census.broken(what));
        }
        census.ensure(out.len() == ends.len(), || {
            format!("{} edges begin, but {} end", out.len(), ends.len())
        })
    }

    fn walk_list(
        &self,
        census: &mut Census<'_>,
        number: u64,
        side: Side,
        visit: &mut dyn FnMut(Entry) -> Result<(), String>,
    ) -> Checked {
        let vertex = self.vertex(Ptr::known(Addr(number))).word(side.word);
        let mut image = census.image();
        let degree = census.load(vertex.word(DEGREE).addr);
        let of_vertex = format_args!("{} vertex {number}", side.name);
        let mut left = degree;
        let mut last = Ptr::NULL;
        let mut chunk = image.load_ptr(vertex.word(FIRST));
        while !chunk.is_null() {
            census.claim(chunk.addr, side.class, "chunk")?;
            census.ensure(left > 0, || {
                format!("more chunks than the {degree} edges that {of_vertex}")
            })?;
            for place in 0..left.min(CHUNK_EDGES) {
                let entry = self.entry(&mut image, chunk, place, side);
                let (vertices, other) = (self.vertices, entry.other.addr.0);
                census.ensure(other < vertices, || {
                    let Entry { number, .. } = entry;
                    format!(
                        "edge {number} of chunk {} leads to vertex {other} of {vertices}",
                        chunk.addr
                    )
                })?;
                visit(entry).map_err(|what| census.broken(what))?;
            }
            left = left.saturating_sub(CHUNK_EDGES);
            last = chunk;
            chunk = self.next_chunk(&mut image, chunk);
        }
        census.ensure(left == 0, || {
            format!("{left} of the {degree} edges that {of_vertex} are in no chunk")
        })?;
        let (stored, last) = (image.load_ptr(vertex.word(LAST)).addr, last.addr);
        census.ensure(degree == 0 || stored == last, || {
            format!("the last chunk of the edges that {of_vertex} is {last}, but the vertex says {stored}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Check;
    use graven_base::memory::Image;
    use graven_machine::program::Direct;
    use proptest::prelude::*;

    const HEADER: Addr = Addr(65536);
    const START: Addr = Addr(65600);
    /// Address of the data of all edges.
    const DATA: Ptr = Ptr::known(Addr(2048));

    /// The number of an edge, and where it begins and ends.
    type Numbered = (u64, (u64, u64));

    fn graph(data_words: u64, vertices: u64) -> (Multigraph, Arena) {
        let arena = Arena::new(HEADER, START, Addr(1 << 22), Multigraph::chunk_bytes(data_words));
        (Multigraph::new(Addr(4096), vertices, data_words), arena)
    }

    fn edges(graph: &Multigraph, arena: &Arena, image: &Image) -> Checked<Vec<Numbered>> {
        let mut census = Census::begin("test".into(), image, &[*arena])?;
        let mut edges = Vec::new();
        graph.walk(&mut census, &mut |number, ends, data| {
            edges.push((number, ends));
            let sound = (0..graph.data_words).all(|i| image.load(data.plus(i * 8)) == 100 + i);
            if sound { Ok(()) } else { Err(format!("the data of edge {number}")) }
        })?;
        census.finish()?;
        edges.sort_unstable();
        Ok(edges)
    }

    /// The graph with one edge after the other.
    fn filled(
        graph: &Multigraph,
        arena: &Arena,
        all: impl IntoIterator<Item = (u64, u64)>,
    ) -> Image {
        let mut image = Image::new();
        let mut m = Direct::new(&mut image);
        arena.format(&mut m);
        for i in 0..graph.data_words {
            m.store(DATA.word(i), 100 + i);
        }
        for (number, ends) in (0..).zip(all) {
            graph.append(&mut m, arena, number, ends, DATA);
        }
        image
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_list_of_pairs(
            all in prop::collection::vec((0..5u64, 0..5u64), 0..200),
            data_words in prop_oneof![Just(1u64), Just(8), Just(25)],
        ) {
            let (graph, arena) = graph(data_words, 5);
            let image = filled(&graph, &arena, all.iter().copied());
            let expected: Vec<_> = (0..).zip(all).collect();
            prop_assert_eq!(edges(&graph, &arena, &image), Ok(expected));
        }
    }

    /// Ten edges from vertex 0, all to vertex 1.
    fn ten() -> (Multigraph, Arena, Image) {
        let (graph, arena) = graph(1, 3);
        let image = filled(&graph, &arena, [(0, 1); 10]);
        (graph, arena, image)
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (graph, arena, mut image) = ten();
        let vertex = graph.root;
        let first = Addr(image.load(vertex.plus(8)));
        let mut check = Check::of(&mut image, |image| edges(&graph, &arena, image));
        check.finds(vertex, 9, "9 edges begin, but 10 end");
        check.finds(vertex, 7, "more chunks than the 7 edges that begin in vertex 0");
        check.finds(first, 0, "3 of the 10 edges that begin in vertex 0 are in no chunk");
        check.finds(vertex.plus(8), 0, "10 of the 10 edges that begin in vertex 0 are in no chunk");
        check.finds(vertex.plus(16), first.0, "the last chunk of the edges that begin in vertex 0");
        check.finds(vertex.plus(64 + 24), 9, "10 edges begin, but 9 end");
        check.finds(first, first.0, "overlaps a block met before");
        check.finds(first.plus(8), 3, "leads to vertex 3 of 3");
        check.finds(first.plus(8), 2, "edge 0 does not begin and end");
        check.finds(first.plus(8), 1 << 32 | 1, "edge 1 is there twice");
        check.finds(first.plus(16), 0, "the data of edge 0");
        check.finds(HEADER, START.0, "outside every arena");
    }

    #[test]
    fn the_check_ends_on_any_word() {
        let (graph, arena, mut image) = ten();
        let vertices = graph.root.0..graph.root.0 + 3 * Multigraph::VERTEX_BYTES;
        let words = vertices.chain(HEADER.0..START.0 + 6 * 128).step_by(8);
        Check::of(&mut image, |image| edges(&graph, &arena, image))
            .ends_on_any_word(words, &[graph.root.0, START.0]);
    }
}
