//! `sdg`: random insertions and removals of edges in a large sparse directed graph.
//!
//! Models the SDG micro-benchmark of MorLog (Table IV; 64 B and 4 KB), whose paper gives no more
//! than the name. **The workload section's default of 100 % insertions and 0 % removals means here
//! that a transaction draws an edge, inserts it if it is absent and removes it if it is there**, so
//! that the graph stays sparse and its size steady. Any other shares are taken as given, and each
//! operation is one on the edge that it drew: an insertion of one that is there writes its next
//! version, and a removal or update of one that is absent finds nothing.
//!
//! Each vertex has 16 possible successors, chosen at random once and for all; half of the possible
//! edges are there in the beginning, and half on average ever after. The source is drawn as the
//! `distribution` says, its successor uniformly. Graphs of a few edges have fewer possible
//! successors.
//!
//! | bytes of a partition | |
//! |---|---|
//! | 64 per stripe | counts of edges |
//! | 64 per vertex | first edge, degrees |
//! | 64, then edges (whole lines) | header and blocks of an arena: one, or one per thread |
//!
//! The initial edges are inserted in random order, so that a list's edges are scattered in memory.
//! Private: a partition of one stripe per thread, no locks. Shared: one partition of 64 stripes
//! with a lock each, of which an edge needs those of both its ends; each thread allocates from an
//! arena of its own, as in [`hash`](super::hash).

use rand::RngExt;
use rand_pcg::Pcg64;

use super::costs;
use super::keyed::Part;
use super::layout::{Placed, Plan};
use super::locking::STRIPES;
use super::operations::{self, Operations};
use super::structures::keys::{Draw, POPULATION, generator};
use super::structures::{Arena, Census, Edge, Graph};
use graven_base::config::ConfigError;
use graven_base::memory::{Image, mix};
use graven_machine::program::{Direct, Load, LockId, Program, Thread};
use graven_machine::workload::{Checked, Extent, Request, Workload, WorkloadConfig};

/// Possible successors of a vertex.
const SUCCESSORS: u64 = 16;

/// Possible edges for each existing one.
const POSSIBLE: u64 = 2;

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    let vertex_share = Graph::VERTEX_BYTES * POSSIBLE / SUCCESSORS;
    let plan = Plan::new("sdg", request, |element| Graph::edge_bytes(element) + vertex_share)?;
    let element = plan.element;
    let stripes = if plan.is_shared() { STRIPES } else { 1 };
    let edges = plan.population * if plan.is_shared() { u64::from(request.threads) } else { 1 };
    let possible = Possible::around(edges);
    let Placed { parts, extent } = plan.lay_out(|layout, share| {
        let root = layout.take(Graph::root_bytes(stripes, possible.vertices));
        let blocks = share.elements_max.iter();
        let arenas = blocks.map(|&max| layout.arena([(Graph::edge_bytes(element), max), (0, 0)]));
        let arenas = arenas.collect();
        let structure = Graph::new(root, stripes, possible.vertices, element);
        Part { structure, arenas, threads: share.threads.clone() }
    })?;
    Ok(Box::new(Sdg { plan, possible, edges, parts, extent }))
}

/// The edges that there may be.
#[derive(Clone, Copy, Debug)]
struct Possible {
    vertices: u64,
    /// Possible successors of each.
    successors: u64,
}

impl Possible {
    /// About twice as many as `edges` (not 0), and not fewer.
    fn around(edges: u64) -> Self {
        let enough = edges * POSSIBLE;
        let few = (2..=SUCCESSORS + 1).find(|vertices| vertices * (vertices - 1) >= enough);
        let vertices = few.unwrap_or(enough.div_ceil(SUCCESSORS));
        Self { vertices, successors: SUCCESSORS.min(vertices - 1) }
    }

    fn edges(&self) -> u64 {
        self.vertices * self.successors
    }

    /// The edge from `source` to its possible successor `index`: one vertex out of each of
    /// `successors` equal stretches of the others, so that all differ.
    fn edge(&self, source: u64, index: u64) -> Edge {
        let bound = |index: u64| index * (self.vertices - 1) / self.successors;
        let (start, end) = (bound(index), bound(index + 1));
        let offset = start + mix(source * self.successors + index + 1) % (end - start);
        Edge { source, target: (source + 1 + offset) % self.vertices }
    }
}

struct Sdg {
    plan: Plan,
    possible: Possible,
    /// Edges of each graph in the beginning.
    edges: u64,
    parts: Vec<Part<Graph>>,
    extent: Extent,
}

/// Operations on an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Toggle,
    Insert,
    Remove,
    Update,
}

/// Returns the action of an operation that draws `percent` (below 100).
fn action(config: &WorkloadConfig, percent: u32) -> Action {
    match (config.insert_percent, config.remove_percent) {
        (100, 0) => Action::Toggle,
        (insert, _) if percent < insert => Action::Insert,
        (insert, remove) if percent < insert + remove => Action::Remove,
        _ => Action::Update,
    }
}

impl Workload for Sdg {
    fn populate(&self, image: &mut Image) {
        let mut m = Direct::new(image);
        let mut random = generator(self.plan.request.seed, POPULATION);
        for part in &self.parts {
            part.structure.format(&mut m);
            part.arenas.iter().for_each(|arena| arena.format(&mut m));
            let mut numbers: Vec<u64> = (0..self.possible.edges()).collect();
            for i in 0..self.edges as usize {
                let chosen = random.random_range(i as u64..numbers.len() as u64) as usize;
                numbers.swap(i, chosen);
                let (source, index) =
                    (numbers[i] / self.possible.successors, numbers[i] % self.possible.successors);
                let arena = &part.arenas[i % part.arenas.len()];
                part.structure.insert(&mut m, arena, self.possible.edge(source, index));
            }
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let request = &self.plan.request;
        let part = &self.parts[self.plan.part_of(thread)];
        let run = Run {
            graph: part.structure,
            arena: *part.arena_of(thread),
            possible: self.possible,
            config: request.config.clone(),
            random: generator(request.seed, thread),
            draw: Draw::new(&request.config, self.possible.vertices),
        };
        operations::program(run, request, thread)
    }

    fn check(&self, image: &Image) -> Checked {
        for part in &self.parts {
            let name = format!("sdg at {}", part.structure.root());
            let walk = |census: &mut Census<'_>| part.structure.walk(census, &mut |_| {});
            Census::audit(name, image, &part.arenas, walk)?;
        }
        Ok(())
    }

    fn extent(&self) -> Option<Extent> {
        Some(self.extent)
    }
}

/// State of a thread.
struct Run {
    graph: Graph,
    arena: Arena,
    possible: Possible,
    config: WorkloadConfig,
    random: Pcg64,
    draw: Draw,
}

impl Operations for Run {
    type Operation = (Action, Edge);

    fn draw(&mut self, thread: &mut Thread<'_>) -> (Action, Edge) {
        // The source, and which of its successors.
        thread.compute(self.draw.instructions + costs::DRAW);
        let action = action(&self.config, self.random.random_range(0..100));
        let source = self.draw.below(self.possible.vertices, &mut self.random);
        let index = self.random.random_range(0..self.possible.successors);
        (action, self.possible.edge(source, index))
    }

    fn lock(&self, _: &mut Thread<'_>, (_, edge): (Action, Edge), locks: &mut Vec<LockId>) {
        locks.extend(self.graph.locks_of(edge));
    }

    #[inline(always)]
    fn perform(&self, thread: &mut Thread<'_>, (action, edge): (Action, Edge)) {
        match action {
            Action::Toggle => self.graph.toggle(thread, &self.arena, edge),
            Action::Insert => self.graph.insert(thread, &self.arena, edge),
            Action::Remove => self.graph.remove(thread, &self.arena, edge),
            Action::Update => self.graph.update(thread, edge),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::{request, run};
    use graven_base::config::Size;

    crate::testing::contract!(super::build);

    #[test]
    fn possible_edges_differ_and_suffice() {
        for edges in [1, 2, 3, 10, 135, 136, 137, 500, 5000] {
            let possible = Possible::around(edges);
            let all: BTreeSet<Edge> = (0..possible.vertices)
                .flat_map(|source| (0..possible.successors).map(move |i| possible.edge(source, i)))
                .collect();
            assert_eq!(all.len() as u64, possible.edges(), "no edge is there twice");
            assert!(all.iter().all(|e| e.target < possible.vertices && e.target != e.source));
            let (least, most) = (2 * edges, 2 * edges + 2 * SUCCESSORS);
            assert!((least..=most).contains(&possible.edges()), "{} of {edges}", possible.edges());
        }
    }

    #[test]
    fn the_default_inserts_what_is_absent_and_removes_what_is_there() {
        let config = WorkloadConfig::default();
        assert_eq!(action(&config, 0), Action::Toggle);
        let given = WorkloadConfig { insert_percent: 60, remove_percent: 30, ..config };
        assert_eq!(
            [59, 60, 89, 90].map(|percent| action(&given, percent)),
            [Action::Insert, Action::Remove, Action::Remove, Action::Update]
        );
    }

    /// The number of edges is as it was, though many times as many have come and gone.
    #[test]
    fn the_graph_keeps_its_size() {
        let footprint_bytes = Size::kb(64);
        let config = WorkloadConfig { footprint_bytes, ..WorkloadConfig::default() };
        let request = request(config, 1, 5000);
        let workload = build(&request).expect("it fits");
        let mut image = Image::new();
        workload.populate(&mut image);
        let edges = |image: &Image| {
            // The only stripe's count is the first word of the only partition.
            image.load(request.start)
        };
        let populated = edges(&image);
        assert_eq!(populated, (64 << 10) / 136);
        let (image, _) = run(workload.as_ref(), &request, image, |_, _, _| {});
        let left = edges(&image);
        // Each possible edge is there with probability one half: four standard deviations.
        let deviation = 4.0 * (populated as f64 / 2.0).sqrt();
        assert!((left as f64 - populated as f64).abs() < deviation, "{left} of {populated}");
    }
}
