//! Kernel 3: the subgraph around a heaviest edge, by breadth-first search; one search per thread.
//!
//! Bytes of one thread's search, in PM:
//!
//! | part | content |
//! |---|---|
//! | record, one line | see below |
//! | marks, one word per vertex | number of the search that reached it last (32 bits) above its depth there (32 bits) |
//! | queue, one word per vertex | the vertices that this search has reached, in their order |
//!
//! | word of the record | content |
//! |---|---|
//! | 0 | number of the search, from 1 on; 0 before the first |
//! | 1 | number of the edge at whose end it began |
//! | 2 | head: how many vertices of the queue have been dealt with |
//! | 3 | tail: how many it holds |
//! | 4 | chunks of the head's edges that have been followed |
//! | 5 | the next such chunk; meaningless if none has been |
//!
//! A transaction follows one chunk of edges, or takes a vertex without edges out of the queue, or
//! begins the next search. Depths in the queue ascend, so a search is over when its head is as deep as
//! it may be, or there is none.

use super::heaviest::Heaviest;
use super::input::Input;
use crate::costs;
use crate::structures::Multigraph;
use crate::structures::multigraph::CHUNK_EDGES;
use graven_base::memory::{Addr, Image, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Load, Memory, Ptr};

/// Length of the paths that a search follows: SubGrEdgeLength of the benchmark.
const DEPTH_MAX: u64 = 3;

const NUMBER: u64 = 0;
const EDGE: u64 = 1;
const HEAD: u64 = 2;
const TAIL: u64 = 3;
const FOLLOWED: u64 = 4;
const CHUNK: u64 = 5;

/// The handle of one thread's search.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    record: Addr,
    vertices: u64,
    /// The thread out of how many.
    thread: (u64, u64),
}

/// The head of the queue, if a step has anything to do there.
struct Head {
    vertex: Ptr,
    mark: u64,
}

impl Search {
    /// Bytes of PM for a graph of `vertices` vertices.
    pub fn bytes(vertices: u64) -> u64 {
        LINE_BYTES + 2 * vertices * WORD_BYTES
    }

    /// The search at `record` in a graph of `vertices` vertices, of one thread out of several. No
    /// search has begun where the image is zero.
    pub fn new(record: Addr, vertices: u64, thread: (u32, u32)) -> Self {
        Self { record, vertices, thread: (thread.0.into(), thread.1.into()) }
    }

    fn field(&self, word: u64) -> Ptr {
        Ptr::known(self.record).word(word)
    }

    fn mark(&self, vertex: Ptr) -> Ptr {
        let marks = self.record.plus(LINE_BYTES);
        Ptr { addr: marks.plus(vertex.addr.0 * WORD_BYTES), origin: vertex.origin }
    }

    fn queue(&self, index: u64) -> Ptr {
        Ptr::known(self.record.plus(LINE_BYTES)).word(self.vertices + index)
    }

    /// Does what comes next.
    pub fn step<M: Memory>(
        &self,
        m: &mut M,
        graph: &Multigraph,
        input: &Input,
        heaviest: &Heaviest,
    ) {
        let (head, tail) = (m.load(self.field(HEAD)), m.load(self.field(TAIL)));
        m.compute(costs::COMPARE);
        if head < tail {
            let vertex = m.load_ptr(self.queue(head));
            let mark = m.load(self.mark(vertex));
            if mark & u64::from(u32::MAX) < DEPTH_MAX {
                return self.follow(m, graph, &Head { vertex, mark }, (head, tail));
            }
        }
        self.begin(m, input, heaviest);
    }

    /// Begins a search at the end of the thread's next heaviest edge; of edge 0, while there is none.
    fn begin<M: Memory>(&self, m: &mut M, input: &Input, heaviest: &Heaviest) {
        let number = m.load(self.field(NUMBER));
        let edge = heaviest.edge(m, number * self.thread.1 + self.thread.0).unwrap_or(0);
        let ((_, end), _) = input.read(m, edge);
        let vertex = Ptr::known(Addr(end));
        m.store(self.field(NUMBER), number + 1);
        m.store(self.field(EDGE), edge);
        m.store(self.field(HEAD), 0);
        m.store(self.field(TAIL), 1);
        m.store(self.field(FOLLOWED), 0);
        m.store(self.mark(vertex), (number + 1) << 32);
        m.store(self.queue(0), end);
    }

    /// Follows the next chunk of the head's edges.
    fn follow<M: Memory>(
        &self,
        m: &mut M,
        graph: &Multigraph,
        head: &Head,
        (mut index, mut tail): (u64, u64),
    ) {
        let mut followed = m.load(self.field(FOLLOWED));
        let (degree, first) = graph.out_edges(m, head.vertex);
        let chunk = if followed == 0 { first } else { m.load_ptr(self.field(CHUNK)) };
        let mut next = Ptr::NULL;
        if !chunk.is_null() {
            let reached = tail;
            for place in 0..(degree - followed * CHUNK_EDGES).min(CHUNK_EDGES) {
                m.compute(costs::COMPARE);
                let other = graph.out_entry(m, chunk, place).other;
                if m.load(self.mark(other)) >> 32 != head.mark >> 32 {
                    m.store(self.mark(other), head.mark + 1);
                    m.store(self.queue(tail), other.addr.0);
                    tail += 1;
                }
            }
            if tail > reached {
                m.store(self.field(TAIL), tail);
            }
            next = graph.next_chunk(m, chunk);
        }
        if next.is_null() {
            (index, followed) = (index + 1, 0);
            m.store(self.field(HEAD), index);
        } else {
            followed += 1;
            m.store_ptr(self.field(CHUNK), next);
        }
        m.store(self.field(FOLLOWED), followed);
    }

    /// Searches again as far as the record says, and compares: queue and marks follow from the graph,
    /// which is sound and complete if there has been a search.
    ///
    /// # Errors
    /// Says where they differ.
    pub fn check(
        &self,
        mut image: &Image,
        graph: &Multigraph,
        input: &Input,
        heaviest: &[u64],
    ) -> Result<(), String> {
        let field = |word: u64| image.load(self.field(word).addr);
        let (number, edge) = (field(NUMBER), field(EDGE));
        let (head, tail, followed) = (field(HEAD), field(TAIL), field(FOLLOWED));
        if number == 0 {
            let untouched = [edge, head, tail, followed, field(CHUNK)] == [0; 5];
            return if untouched { Ok(()) } else { Err("it has a state before it began".into()) };
        }
        let expected = match heaviest.len() as u64 {
            0 => 0,
            count => {
                let place = (number - 1).wrapping_mul(self.thread.1).wrapping_add(self.thread.0);
                heaviest[(place % count) as usize]
            }
        };
        if edge != expected {
            return Err(format!("search {number} began at edge {edge}, not {expected}"));
        }
        let source = input.generator.tuple(edge).end;
        let Some((reached, chunk)) = self.again(image, graph, source, (head, followed)) else {
            return Err(format!("head {head} and chunk {followed} are nowhere on its way"));
        };
        if reached.len() as u64 != tail {
            return Err(format!("the queue holds {tail} vertices, not {}", reached.len()));
        }
        if followed > 0 && field(CHUNK) != chunk.0 {
            return Err(format!("chunk {followed} of head {head} is {chunk}, not as it says"));
        }
        for (index, &(vertex, depth)) in (0..).zip(&reached) {
            let queued = image.load_ptr(self.queue(index));
            let mark = image.load(self.mark(Ptr::known(Addr(vertex))).addr);
            if queued.addr.0 != vertex || mark != number << 32 | depth {
                return Err(format!(
                    "place {index} has vertex {}, marked {mark:#x}, not vertex {vertex} at depth {depth} of search {number}",
                    queued.addr.0
                ));
            }
        }
        let marks = (0..self.vertices).map(|v| image.load(self.mark(Ptr::known(Addr(v))).addr));
        let (mut marked, mut later) = (0, 0);
        for search in marks.map(|mark| mark >> 32) {
            marked += u64::from(search == number);
            later += u64::from(search > number);
        }
        if (marked, later) != (tail, 0) {
            return Err(format!(
                "{marked} vertices have the mark of search {number}, not {tail}, and {later} one of the future"
            ));
        }
        Ok(())
    }

    /// Start of the record.
    #[cfg(test)]
    pub fn record(&self) -> Addr {
        self.record
    }

    /// Number of searches so far.
    #[cfg(test)]
    pub fn searches(&self, image: &Image) -> u64 {
        image.load(self.field(NUMBER).addr)
    }

    /// Vertices that a search from `source` has reached, with depths, when it has come to chunk
    /// `followed` of the vertex at place `head`, and that chunk; `None` if it never gets that far.
    fn again(
        &self,
        mut image: &Image,
        graph: &Multigraph,
        source: u64,
        (head, followed): (u64, u64),
    ) -> Option<(Vec<(u64, u64)>, Addr)> {
        let mut reached = vec![(source, 0)];
        let mut seen = vec![false; self.vertices as usize];
        seen[source as usize] = true;
        for index in 0.. {
            let next = reached.get(index as usize).filter(|&&(_, depth)| depth < DEPTH_MAX);
            let Some(&(vertex, depth)) = next else {
                // The search is over.
                return (index == head && followed == 0).then_some((reached, Addr(0)));
            };
            let (degree, mut chunk) = graph.out_edges(&mut image, Ptr::known(Addr(vertex)));
            let mut chunks = 0;
            while !chunk.is_null() && (index < head || chunks < followed) {
                for place in 0..(degree - chunks * CHUNK_EDGES).min(CHUNK_EDGES) {
                    let other = graph.out_entry(&mut image, chunk, place).other.addr.0;
                    if !std::mem::replace(&mut seen[other as usize], true) {
                        reached.push((other, depth + 1));
                    }
                }
                chunk = graph.next_chunk(&mut image, chunk);
                chunks += 1;
            }
            if index == head {
                // Where nothing is left to follow, the next vertex would be the head.
                let is_on_its_way = followed == 0 || !chunk.is_null();
                return is_on_its_way.then_some((reached, chunk.addr));
            }
        }
        None
    }
}
