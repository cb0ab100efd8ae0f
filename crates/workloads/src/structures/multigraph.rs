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
use graven_base::memory::{Addr, Image, LINE_BYTES, WORDS_PER_LINE};
use graven_machine::program::{Load, Memory, Ptr};
use graven_machine::workload::BrokenInvariant;

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
    /// Where the edge's data begin.
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

    /// Where it is, for messages.
    pub fn root(&self) -> Addr {
        self.root
    }

    /// How many vertices it has.
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

    /// How many edges begin in `vertex`, and the first chunk of them or null.
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
        image: &Image,
        census: &mut Census,
        visit: &mut dyn FnMut(u64, (u64, u64), Addr) -> Result<(), String>,
    ) -> Result<(), BrokenInvariant> {
        let mut edges = [Vec::new(), Vec::new()];
        for vertex in 0..self.vertices {
            for (side, edges) in [OUT, IN].into_iter().zip(&mut edges) {
                self.walk_list(image, census, vertex, side, &mut |entry| {
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
        if out.len() != ends.len() {
            let what = format!("{} edges begin, but {} end", out.len(), ends.len());
            return Err(census.broken(what));
        }
        Ok(())
    }

    fn walk_list(
        &self,
        mut image: &Image,
        census: &mut Census,
        number: u64,
        side: Side,
        visit: &mut dyn FnMut(Entry) -> Result<(), String>,
    ) -> Result<(), BrokenInvariant> {
        let vertex = self.vertex(Ptr::known(Addr(number))).word(side.word);
        let degree = Image::load(image, vertex.word(DEGREE).addr);
        let mut left = degree;
        let mut last = Ptr::NULL;
        let mut chunk = image.load_ptr(vertex.word(FIRST));
        while !chunk.is_null() {
            census.claim(chunk.addr, side.class, "chunk")?;
            if left == 0 {
                let what = format!(
                    "more chunks than the {degree} edges that {} vertex {number}",
                    side.name
                );
                return Err(census.broken(what));
            }
            for place in 0..left.min(CHUNK_EDGES) {
                let entry = self.entry(&mut image, chunk, place, side);
                if entry.other.addr.0 >= self.vertices {
                    return Err(census.broken(format!(
                        "edge {} of chunk {} leads to vertex {} of {}",
                        entry.number, chunk.addr, entry.other.addr.0, self.vertices
                    )));
                }
                visit(entry).map_err(|what| census.broken(what))?;
            }
            left = left.saturating_sub(CHUNK_EDGES);
            last = chunk;
            chunk = self.next_chunk(&mut image, chunk);
        }
        if left > 0 {
            return Err(census.broken(format!(
                "{left} of the {degree} edges that {} vertex {number} are in no chunk",
                side.name
            )));
        }
        let stored = image.load_ptr(vertex.word(LAST));
        if degree > 0 && stored != last {
            return Err(census.broken(format!(
                "the last chunk of the edges that {} vertex {number} is {}, but the vertex says {}",
                side.name, last.addr, stored.addr
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_machine::program::Direct;
    use proptest::prelude::*;

    const HEADER: Addr = Addr(65536);
    const START: Addr = Addr(65600);
    /// Where the data of all edges are.
    const DATA: Ptr = Ptr::known(Addr(2048));

    /// The number of an edge, and where it begins and ends.
    type Numbered = (u64, (u64, u64));

    fn graph(data_words: u64, vertices: u64) -> (Multigraph, Arena) {
        let arena = Arena::new(HEADER, START, Addr(1 << 22), Multigraph::chunk_bytes(data_words));
        (Multigraph::new(Addr(4096), vertices, data_words), arena)
    }

    fn edges(
        graph: &Multigraph,
        arena: &Arena,
        image: &Image,
    ) -> Result<Vec<Numbered>, BrokenInvariant> {
        let mut census = Census::begin("test".into(), image, &[*arena])?;
        let mut edges = Vec::new();
        graph.walk(image, &mut census, &mut |number, ends, data| {
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
        let mut check_finds = |at: Addr, value: u64, expected: &str| {
            let old = image.store(at, value);
            let found = edges(&graph, &arena, &image).expect_err("it is seen").what;
            assert!(found.contains(expected), "expected `{expected}`, found `{found}`");
            image.store(at, old);
        };
        check_finds(vertex, 9, "9 edges begin, but 10 end");
        check_finds(vertex, 7, "more chunks than the 7 edges that begin in vertex 0");
        check_finds(first, 0, "3 of the 10 edges that begin in vertex 0 are in no chunk");
        check_finds(vertex.plus(8), 0, "10 of the 10 edges that begin in vertex 0 are in no chunk");
        check_finds(vertex.plus(16), first.0, "the last chunk of the edges that begin in vertex 0");
        check_finds(vertex.plus(64 + 24), 9, "10 edges begin, but 9 end");
        check_finds(first, first.0, "overlaps a block met before");
        check_finds(first.plus(8), 3, "leads to vertex 3 of 3");
        check_finds(first.plus(8), 2, "edge 0 does not begin and end");
        check_finds(first.plus(8), 1 << 32 | 1, "edge 1 is there twice");
        check_finds(first.plus(16), 0, "the data of edge 0");
        check_finds(HEADER, START.0, "outside every arena");
    }

    #[test]
    fn the_check_ends_on_any_word() {
        let (graph, arena, mut image) = ten();
        let vertices = graph.root.0..graph.root.0 + 3 * Multigraph::VERTEX_BYTES;
        for at in vertices.chain(HEADER.0..START.0 + 6 * 128).step_by(8).map(Addr) {
            let old = image.load(at);
            for value in [0, old ^ 1, old ^ 64, graph.root.0, START.0, u64::MAX, u64::MAX - 7] {
                image.store(at, value);
                let _ = edges(&graph, &arena, &image);
            }
            image.store(at, old);
        }
        assert!(edges(&graph, &arena, &image).is_ok());
    }
}
