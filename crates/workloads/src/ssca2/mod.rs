//! `ssca2`: kernels 1 to 3 of the graph analyses of HPCS SSCA#2 2.2, in transactions.
//!
//! Models SSCA2 of FWB (Table III: "a transactional implementation of SSCA 2.2, performing several
//! analyses of large, scale-free graph"). The input is the benchmark's
//! ([`generator`](self::generator)): R-MAT, 8 to 16 edges per vertex, integer weights. An edge's data are an
//! element: the weight, and what `element_bytes` has room for besides.
//!
//! | kernel | a transaction | locks |
//! |---|---|---|
//! | 1, graph construction | adds one edge of the input to the arrays of both its vertices, as STAMP's port does for one direction | the stripes of both vertices |
//! | 2, classification of large sets | stores the largest weight of one vertex's edges; or puts its edges into the list of the heaviest edges of all | the vertex's stripe; besides it that of the list |
//! | 3, subgraph extraction | follows up to seven edges of a breadth-first search of depth 3 from a heaviest edge | none: each thread has searches of its own, in a graph that stands |
//!
//! **A third of each thread's transactions goes to each kernel.** The graph begins with all edges but those
//! that kernel 1 will add, three transactions each, so that a run of any length analyses a whole graph; a run of three
//! times as many transactions as edges builds it from nothing, and what is more goes to kernels 2 and 3.
//! They begin anew when they are through: kernel 2 finds what it found, and kernel 3 begins at the
//! next heaviest edge. Between kernels threads wait for each other.
//!
//! All threads work on one graph, whatever `sharing` says, and transactions are what they are: the mix
//! of operations, their number per transaction and the distribution of keys have no meaning here.
//!
//! | bytes | |
//! |---|---|
//! | 8 and an element per edge | the input ([`input`](self::input)) |
//! | 64 per vertex | vertices ([`Multigraph`]) |
//! | 64 per thread | word 0: edges that it has added, those that were there included |
//! | 64, 64 per thread, 8 per edge | heaviest edges ([`heaviest`](self::heaviest)) |
//! | 64 and 16 per vertex, per thread | searches ([`search`](self::search)) |
//! | 64 and chunks, per thread | arenas |
//!
//! Progress is in PM with everything else, so that a program could continue after a failure, and
//! the check knows the expected content: it takes the graph for what the input says, classifies and
//! searches it again, and compares.
//!
//! Left out: kernel 4 (betweenness centrality); STAMP's counting of degrees ahead of kernel 1, instead of
//! which arrays grow by chunks.

mod generator;
mod heaviest;
mod input;
mod search;

use generator::EDGES_PER_VERTEX;
use heaviest::Heaviest;
use input::Input;
use search::Search;

use super::costs;
use super::layout::{Placed, Plan};
use super::locking::{self, STRIPES};
use super::structures::multigraph::CHUNK_EDGES;
use super::structures::{Arena, Census, Element, Multigraph, ensure};
use graven_base::config::ConfigError;
use graven_base::memory::{Addr, Image, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Direct, Load, LockId, Memory, Program, Ptr, Thread, spawn};
use graven_machine::workload::{
    BrokenInvariant, Checked, Extent, Request, Sharing, Workload, WorkloadConfig,
};

/// The lock of the list of heaviest edges.
const LIST_LOCK: LockId = STRIPES;

/// The first of the locks by which threads wait for each other.
const BARRIER_LOCKS: LockId = STRIPES + 1;

/// Kernels; a barrier follows each but the last.
const KERNELS: u64 = 3;

/// Bytes that an edge takes with its share of everything else.
fn edge_bytes(element: Element, threads: u32) -> u64 {
    let chunks = Multigraph::chunk_bytes(element.words).map(|bytes| bytes.div_ceil(CHUNK_EDGES));
    let vertex = Multigraph::VERTEX_BYTES + 2 * WORD_BYTES * u64::from(threads);
    let edge = Input::tuple_bytes(element) + chunks.iter().sum::<u64>() + WORD_BYTES;
    edge + vertex / EDGES_PER_VERTEX
}

/// Chunks of each size that `edges` edges need, all together.
fn chunks_max(vertices: u64, edges: u64) -> u64 {
    vertices + edges / CHUNK_EDGES + 1
}

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(assemble(request)?))
}

fn assemble(request: &Request) -> Result<Ssca2, ConfigError> {
    let config = WorkloadConfig { sharing: Sharing::Shared, ..request.config.clone() };
    let request = Request { config, ..request.clone() };
    let threads = request.threads;
    let plan = Plan::new("ssca2", &request, |element| edge_bytes(element, threads))?;
    let (element, each) = (plan.element, plan.population);
    let edges = each * u64::from(threads);
    let Placed { mut parts, extent } = plan.lay_out(|layout, _| {
        let base = layout.take(edges * Input::tuple_bytes(element));
        let input = Input::new(base, edges, element, request.seed);
        let vertices = input.generator.vertices();
        let graph = layout.take(vertices * Multigraph::VERTEX_BYTES);
        let built = layout.take(LINE_BYTES * u64::from(threads));
        let heaviest = layout.take(Heaviest::bytes(threads, edges));
        let searches = (0..threads)
            .map(|t| Search::new(layout.take(Search::bytes(vertices)), vertices, (t, threads)));
        let searches = searches.collect();
        // Each edge needs two new chunks at most.
        let chunks = each.min(chunks_max(vertices, edges));
        let blocks = Multigraph::chunk_bytes(element.words).map(|bytes| (bytes, chunks));
        Parts {
            input,
            graph: Multigraph::new(graph, vertices, element.words),
            built,
            heaviest: Heaviest::new(heaviest, threads, vertices),
            searches,
            arenas: (0..threads).map(|_| layout.arena(blocks)).collect(),
        }
    })?;
    let parts = parts.pop().expect("threads share one partition");
    // Each arena may have room for what all of them need together.
    let together = chunks_max(parts.input.generator.vertices(), edges);
    let block_bytes = Multigraph::chunk_bytes(element.words).iter().sum::<u64>() * together;
    let extent = Extent { block_bytes: block_bytes.min(extent.block_bytes), ..extent };
    let share = request.transactions / u64::from(threads);
    let building = (share / KERNELS).min(each);
    let classifying = (share - building) / (KERNELS - 1);
    Ok(Ssca2 { request, each, building, classifying, parts, extent })
}

/// Everything in PM.
#[derive(Clone, Debug)]
struct Parts {
    input: Input,
    graph: Multigraph,
    built: Addr,
    heaviest: Heaviest,
    searches: Vec<Search>,
    arenas: Vec<Arena>,
}

impl Parts {
    fn threads(&self) -> u64 {
        self.arenas.len() as u64
    }

    /// Number of the edge that a thread adds after `built` others.
    fn edge(&self, thread: u64, built: u64) -> u64 {
        built * self.threads() + thread
    }

    fn built(&self, thread: u64) -> Ptr {
        Ptr::known(self.built.plus(thread * LINE_BYTES))
    }

    /// Adds the thread's next edge.
    fn add<M: Memory>(&self, m: &mut M, thread: u64) {
        let built = m.load(self.built(thread));
        let number = self.edge(thread, built);
        let (ends, data) = self.input.read(m, number);
        self.graph.append(m, &self.arenas[thread as usize], number, ends, data);
        m.store(self.built(thread), built + 1);
    }

    /// Walks the graph, and returns number, source and weight of each edge.
    fn check_graph(&self, image: &Image) -> Checked<Vec<(u64, u64, u64)>> {
        let name = format!("ssca2 at {}", self.graph.root());
        let mut census = Census::begin(name, image, &self.arenas)?;
        let built: Vec<u64> = (0..self.threads()).map(|t| image.load(self.built(t).addr)).collect();
        let each = self.input.edges / self.threads();
        let mut edges = Vec::new();
        self.graph.walk(&mut census, &mut |number, (source, target), data| {
            let (thread, before) = (number % self.threads(), number / self.threads());
            ensure(before < built[thread as usize] && before < each, || {
                format!("edge {number} is there before thread {thread} added it")
            })?;
            let tuple = self.input.generator.tuple(number);
            ensure((source, target) == (tuple.start, tuple.end), || {
                format!("edge {number} leads from {source} to {target}, not {tuple:?}")
            })?;
            edges.push((number, source, tuple.weight));
            self.input.check(image, number, Some(data))
        })?;
        // No number is there twice, and none too many.
        let expected = built.iter().fold(0, |sum: u64, &n| sum.saturating_add(n));
        let found = edges.len() as u64;
        census.ensure(found == expected, || {
            format!("{found} edges are there, but threads added {expected}")
        })?;
        for (thread, &built) in (0..).zip(&built) {
            for before in built..each {
                let sound = self.input.check(image, self.edge(thread, before), None);
                sound.map_err(|what| census.broken(what))?;
            }
        }
        census.finish()?;
        Ok(edges)
    }
}

struct Ssca2 {
    request: Request,
    /// Edges that each thread adds, those that are there in the beginning included.
    each: u64,
    /// Transactions of a thread in kernel 1.
    building: u64,
    /// And in kernel 2.
    classifying: u64,
    parts: Parts,
    extent: Extent,
}

impl Workload for Ssca2 {
    fn populate(&self, image: &mut Image) {
        let mut m = Direct::new(image);
        self.parts.input.populate(&mut m);
        self.parts.arenas.iter().for_each(|arena| arena.format(&mut m));
        for _ in self.building..self.each {
            for thread in 0..self.parts.threads() {
                self.parts.add(&mut m, thread);
            }
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let mut run =
            Run { parts: self.parts.clone(), thread: thread.into(), locks: Vec::with_capacity(2) };
        let built = self.each - self.building;
        let (building, classifying) = (self.building, self.classifying);
        let searching = self.request.transactions_of(thread) - building - classifying;
        spawn(move |thread| {
            (1..KERNELS).for_each(|kernel| thread.lock(run.barrier_lock(kernel, run.thread)));
            (0..building).for_each(|number| run.build(thread, built + number));
            run.barrier(thread, 1);
            run.classify(thread, classifying);
            run.barrier(thread, 2);
            (0..searching).for_each(|_| run.search(thread));
        })
    }

    fn check(&self, image: &Image) -> Checked {
        let Parts { graph, input, heaviest, searches, .. } = &self.parts;
        let edges = self.parts.check_graph(image)?;
        let broken = |part: String| {
            let structure = format!("ssca2 at {}, {part}", graph.root());
            move |what| BrokenInvariant { structure, what }
        };
        let list = heaviest.check(image, graph, input, &edges);
        let list = list.map_err(broken("kernel 2".into()))?;
        for (thread, search) in searches.iter().enumerate() {
            let found = search.check(image, graph, input, &list);
            found.map_err(broken(format!("the search of thread {thread}")))?;
        }
        Ok(())
    }

    /// Each thread counts the edges that it has added.
    fn begins_again(&self) -> bool {
        false
    }

    fn extent(&self) -> Option<Extent> {
        Some(self.extent)
    }
}

/// State of a thread.
struct Run {
    parts: Parts,
    thread: u64,
    locks: Vec<LockId>,
}

/// The lock of a vertex.
fn stripe(vertex: u64) -> LockId {
    (vertex % u64::from(STRIPES)) as LockId
}

impl Run {
    fn transaction(&mut self, thread: &mut Thread<'_>, body: impl FnOnce(&Parts, &mut Thread<'_>)) {
        let parts = &self.parts;
        locking::transaction(thread, &mut self.locks, |thread| {
            thread.compute(costs::OPERATION);
            body(parts, thread);
        });
        self.locks.clear();
    }

    /// The lock that a thread holds until it has done its part of a kernel.
    fn barrier_lock(&self, kernel: u64, thread: u64) -> LockId {
        BARRIER_LOCKS + ((kernel - 1) * self.parts.threads() + thread) as LockId
    }

    /// Waits for all threads to have done their part of a kernel.
    fn barrier(&self, thread: &mut Thread<'_>, kernel: u64) {
        thread.unlock(self.barrier_lock(kernel, self.thread));
        for other in (0..self.parts.threads()).filter(|&other| other != self.thread) {
            thread.lock(self.barrier_lock(kernel, other));
            thread.unlock(self.barrier_lock(kernel, other));
        }
    }

    /// A transaction of kernel 1.
    fn build(&mut self, thread: &mut Thread<'_>, built: u64) {
        let own = self.thread;
        let tuple = self.parts.input.generator.tuple(self.parts.edge(own, built));
        self.locks.extend([stripe(tuple.start), stripe(tuple.end)]);
        self.transaction(thread, |parts, m| parts.add(m, own));
    }

    /// All transactions of kernel 2.
    fn classify(&mut self, thread: &mut Thread<'_>, transactions: u64) {
        let own = self.thread;
        let (mut known, mut classified, mut pending) = (0, 0, None);
        for _ in 0..transactions {
            let vertex = pending.unwrap_or_else(|| self.parts.heaviest.vertex(own, classified));
            self.locks.push(stripe(vertex));
            if pending.take().is_some() {
                self.locks.push(LIST_LOCK);
                self.transaction(thread, |parts, m| {
                    known = parts.heaviest.publish(m, &parts.graph, own, vertex);
                });
            } else {
                self.transaction(thread, |parts, m| {
                    let about = (vertex, known);
                    let is_candidate = parts.heaviest.classify(m, &parts.graph, own, about);
                    pending = is_candidate.then_some(vertex);
                });
                classified += 1;
            }
        }
    }

    /// A transaction of kernel 3.
    fn search(&mut self, thread: &mut Thread<'_>) {
        let own = self.thread as usize;
        self.transaction(thread, |parts, m| {
            parts.searches[own].step(m, &parts.graph, &parts.input, &parts.heaviest);
        });
    }
}

#[cfg(test)]
mod tests;
