//! Kernel 2: the heaviest edges of the graph.
//!
//! | part | content |
//! |---|---|
//! | record, one line | word 0: largest weight so far, or 0; word 1: how many edges are in the list |
//! | progress, one line per thread | word 0: vertices classified; word 1: one more than the vertex whose heaviest edges are to be put into the list, or 0 |
//! | list, one word per edge of the graph | numbers of the edges of that weight |
//!
//! Thread t of T classifies vertices t, t + T, …, over and over: it stores the largest weight of the
//! edges that begin in a vertex in the vertex ([`Multigraph::own_word`]). If that is not less than the
//! largest weight that the thread has seen in the record, its next transaction puts the edges of that
//! weight into the list, which all threads share, and empties the list before if it is larger than all.

use super::input::Input;
use crate::costs;
use crate::structures::multigraph::CHUNK_EDGES;
use crate::structures::{Multigraph, ensure};
use graven_base::memory::{Addr, Image, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Load, Memory, Ptr};

const WEIGHT: u64 = 0;
const COUNT: u64 = 1;

const CLASSIFIED: u64 = 0;
const PENDING: u64 = 1;

/// The handle of the list of heaviest edges.
#[derive(Clone, Copy, Debug)]
pub struct Heaviest {
    record: Addr,
    threads: u64,
    vertices: u64,
}

impl Heaviest {
    /// Bytes of PM for `threads` threads and `edges` edges.
    pub fn bytes(threads: u32, edges: u64) -> u64 {
        LINE_BYTES * (1 + u64::from(threads)) + edges * WORD_BYTES
    }

    /// The list at `record`, of a graph of `vertices` vertices. Nothing has been classified where
    /// the image is zero.
    pub fn new(record: Addr, threads: u32, vertices: u64) -> Self {
        Self { record, threads: threads.into(), vertices }
    }

    fn field(&self, word: u64) -> Ptr {
        Ptr::known(self.record).word(word)
    }

    fn progress(&self, thread: u64, word: u64) -> Ptr {
        Ptr::known(self.record.plus(LINE_BYTES * (1 + thread))).word(word)
    }

    fn list(&self, index: u64) -> Ptr {
        Ptr::known(self.record.plus(LINE_BYTES * (1 + self.threads))).word(index)
    }

    /// Vertices that each thread classifies, until it begins again. Threads overlap if they do not
    /// divide the vertices.
    fn vertices_each(&self) -> u64 {
        self.vertices.div_ceil(self.threads)
    }

    /// The vertex that a thread classifies after `classified` others.
    pub fn vertex(&self, thread: u64, classified: u64) -> u64 {
        (classified % self.vertices_each() * self.threads + thread) % self.vertices
    }

    /// Classifies a vertex, and remembers it for the list if its heaviest edges weigh `known` or more.
    /// Returns whether they do.
    pub fn classify<M: Memory>(
        &self,
        m: &mut M,
        graph: &Multigraph,
        thread: u64,
        (vertex, known): (u64, u64),
    ) -> bool {
        let mut largest = 0;
        each_edge(m, graph, vertex, |m, _, data| largest = m.load(data).max(largest));
        m.store(graph.own_word(vertex), largest);
        let classified = m.load(self.progress(thread, CLASSIFIED));
        m.store(self.progress(thread, CLASSIFIED), classified + 1);
        let is_candidate = largest > 0 && largest >= known;
        if is_candidate {
            m.store(self.progress(thread, PENDING), vertex + 1);
        }
        is_candidate
    }

    /// Puts the heaviest edges of a vertex into the list, if none is heavier. Returns the weight of
    /// those in the list.
    pub fn publish<M: Memory>(
        &self,
        m: &mut M,
        graph: &Multigraph,
        thread: u64,
        vertex: u64,
    ) -> u64 {
        let weight = m.load(graph.own_word(vertex));
        let largest = m.load(self.field(WEIGHT));
        let mut count = if weight > largest { 0 } else { m.load(self.field(COUNT)) };
        m.compute(costs::COMPARE);
        if weight > largest {
            m.store(self.field(WEIGHT), weight);
        }
        if weight >= largest {
            each_edge(m, graph, vertex, |m, number, data| {
                if m.load(data) == weight && !self.lists(m, number, count) {
                    m.store(self.list(count), number);
                    count += 1;
                }
            });
            m.store(self.field(COUNT), count);
        }
        m.store(self.progress(thread, PENDING), 0);
        weight.max(largest)
    }

    fn lists<L: Load>(&self, m: &mut L, number: u64, count: u64) -> bool {
        (0..count).any(|index| {
            m.compute(costs::COMPARE);
            m.load(self.list(index)) == number
        })
    }

    /// The number of an edge of the list, counted round and round; none if it is empty.
    pub fn edge<L: Load>(&self, m: &mut L, index: u64) -> Option<u64> {
        let count = m.load(self.field(COUNT));
        (count > 0).then(|| m.load(self.list(index % count)))
    }

    /// Checks vertices and list, and returns the list. `edges` has the number, source and weight of
    /// each edge of the graph, which must be complete if a vertex has been classified.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(
        &self,
        image: &Image,
        graph: &Multigraph,
        input: &Input,
        edges: &[(u64, u64, u64)],
    ) -> Result<Vec<u64>, String> {
        let mut weights = vec![0; self.vertices as usize];
        for &(_, source, weight) in edges {
            let largest = &mut weights[source as usize];
            *largest = weight.max(*largest);
        }
        let (classified, listed) = self.progress_of_all(image)?;
        for (vertex, (&largest, is_classified)) in (0..).zip(weights.iter().zip(&classified)) {
            let stored = image.load(graph.own_word(vertex).addr);
            let expected = if *is_classified { largest } else { 0 };
            ensure(stored == expected, || {
                format!("vertex {vertex} has weight {stored}, not {expected}")
            })?;
        }
        let ready = weights.iter().zip(&listed).filter(|&(_, listed)| *listed);
        let largest = ready.map(|(&weight, _)| weight).max().unwrap_or(0);
        let stored = image.load(self.field(WEIGHT).addr);
        let what = || format!("the largest weight is {stored}, not {largest}");
        ensure(stored == largest, what)?;
        let (count, all) = (image.load(self.field(COUNT).addr), input.edges);
        ensure(count <= all, || format!("{count} of {all} edges are the heaviest"))?;
        let list: Vec<u64> = (0..count).map(|i| image.load(self.list(i).addr)).collect();
        let heavy =
            |&&(_, source, weight): &&(u64, u64, u64)| listed[source as usize] && weight == largest;
        let mut expected: Vec<u64> = edges.iter().filter(heavy).map(|edge| edge.0).collect();
        let mut found = list.clone();
        expected.sort_unstable();
        found.sort_unstable();
        let what = || format!("the heaviest edges are {found:?}, not {expected:?}");
        ensure(found == expected, what)?;
        Ok(list)
    }

    /// Flags of the vertices that have been classified, and of those whose edges are in the list if
    /// heavy enough.
    fn progress_of_all(&self, image: &Image) -> Result<(Vec<bool>, Vec<bool>), String> {
        let mut classified = vec![false; self.vertices as usize];
        let mut listed = classified.clone();
        for thread in 0..self.threads {
            let count = image.load(self.progress(thread, CLASSIFIED).addr);
            let pending = image.load(self.progress(thread, PENDING).addr);
            let last = count.checked_sub(1).map(|before| self.vertex(thread, before));
            ensure(pending == 0 || last == Some(pending - 1), || {
                format!("thread {thread} did not classify vertex {pending} - 1 last")
            })?;
            for before in 0..count.min(self.vertices_each()) {
                let vertex = self.vertex(thread, before);
                classified[vertex as usize] = true;
                // What it has classified before is in the list when it comes to it again.
                let waits = count <= self.vertices_each() && pending == vertex + 1;
                listed[vertex as usize] |= !waits;
            }
        }
        Ok((classified, listed))
    }
}

/// Visits the edges that begin in a vertex: number, and where the data are.
fn each_edge<M: Memory>(
    m: &mut M,
    graph: &Multigraph,
    vertex: u64,
    mut visit: impl FnMut(&mut M, u64, Ptr),
) {
    let (mut left, mut chunk) = graph.out_edges(m, Ptr::known(Addr(vertex)));
    while !chunk.is_null() {
        for place in 0..left.min(CHUNK_EDGES) {
            m.compute(costs::COMPARE);
            let entry = graph.out_entry(m, chunk, place);
            visit(m, entry.number, entry.data);
        }
        left = left.saturating_sub(CHUNK_EDGES);
        chunk = graph.next_chunk(m, chunk);
    }
}
