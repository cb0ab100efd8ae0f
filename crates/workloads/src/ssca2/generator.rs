//! The scalable data generator of SSCA#2 2.2: the edges of a scale-free graph (R-MAT), by number.
//!
//! Each edge chooses one quarter of the adjacency matrix, with the probabilities of the benchmark, then
//! one quarter of that, down to one element. Vertices are then renumbered, so that those of high
//! degree are not neighbours. Weights are uniform. Left out: the noise that varies the probabilities
//! from level to level.

use graven_base::memory::mix;

/// Probabilities of the quarters, in percent: 0.55, 0.1, 0.1 and 0.25.
const QUARTERS: [u64; 3] = [55, 10, 10];

/// Edges per vertex, at least: the benchmark has eight.
pub const EDGES_PER_VERTEX: u64 = 8;

/// One edge of the benchmark's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// Source vertex.
    pub start: u64,
    /// Target vertex.
    pub end: u64,
    /// From 1 to the number of vertices.
    pub weight: u64,
}

/// The input of one run.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    seed: u64,
    /// Binary logarithm of the number of vertices: SCALE.
    scale: u32,
}

impl Generator {
    /// The input that `seed` decides, of a graph of `edges` edges (not 0): as many vertices, a power of
    /// two, as leave each 8 to 16 edges; two at least.
    pub fn new(seed: u64, edges: u64) -> Self {
        let scale = (edges / EDGES_PER_VERTEX).max(2).ilog2();
        Self { seed: mix(seed.wrapping_add(1)), scale }
    }

    /// Number of vertices.
    pub fn vertices(&self) -> u64 {
        1 << self.scale
    }

    /// Edge `number`.
    pub fn tuple(&self, number: u64) -> Tuple {
        let stream = self.seed ^ mix(number.wrapping_add(1));
        let draw = |salt: u64| mix(stream.wrapping_add(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let (mut start, mut end) = (0, 0);
        for level in 0..self.scale {
            let percent = draw(level.into()) % 100;
            let [first, second, third] = QUARTERS;
            let quarter = match percent {
                p if p < first => 0,
                p if p < first + second => 1,
                p if p < first + second + third => 2,
                _ => 3,
            };
            start = start << 1 | quarter >> 1;
            end = end << 1 | quarter & 1;
        }
        let weight = 1 + draw(u64::from(self.scale)) % self.vertices();
        Tuple { start: self.renumber(start), end: self.renumber(end), weight }
    }

    /// A permutation of the vertices: odd multiplications and a shift, each a bijection.
    fn renumber(&self, vertex: u64) -> u64 {
        let mask = self.vertices() - 1;
        let x = (vertex ^ self.seed).wrapping_mul(0xbf58_476d_1ce4_e5b9) & mask;
        let x = x ^ x >> (self.scale / 2).max(1);
        x.wrapping_mul(0x94d0_49bb_1331_11eb) & mask
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn vertices_are_renumbered_one_to_one() {
        for edges in [1, 16, 40, 8 << 10] {
            let generator = Generator::new(3, edges);
            let renumbered = (0..generator.vertices()).map(|v| generator.renumber(v));
            let all: BTreeSet<u64> = renumbered.collect();
            assert_eq!(all, (0..generator.vertices()).collect(), "{edges}");
        }
    }

    #[test]
    fn the_graph_is_sparse_and_scale_free() {
        let (edges, seed) = (10_000, 1);
        let generator = Generator::new(seed, edges);
        assert_eq!(generator.vertices(), 1024);
        let mut degrees = vec![0; 1024];
        let mut weights = BTreeSet::new();
        for number in 0..edges {
            let tuple = generator.tuple(number);
            degrees[tuple.start as usize] += 1;
            assert!(tuple.end < 1024 && (1..=1024).contains(&tuple.weight));
            weights.insert(tuple.weight);
        }
        // The vertex in the likeliest half at every level: 0.65^10 of all edges.
        let most = degrees.iter().max().expect("vertices");
        assert!((100..190).contains(most), "{most} edges begin in one vertex, 9.8 on average");
        let few = degrees.iter().filter(|&&d| d < 5).count();
        assert!(few > 300, "{few} vertices with fewer than five");
        assert!(weights.len() > 1000, "{} weights", weights.len());
    }

    #[test]
    fn the_seed_decides() {
        let [a, b, c] = [1, 1, 2].map(|seed| Generator::new(seed, 1000));
        let tuples = |g: &Generator| (0..100).map(|n| g.tuple(n)).collect::<Vec<_>>();
        assert_eq!(tuples(&a), tuples(&b));
        assert_ne!(tuples(&a), tuples(&c));
    }
}
