//! Seeded choices where the rules leave memory a choice: how long a write is on its way, which of the
//! waiting requests goes next, when a write-combining buffer lets its oldest line go. Timing means nothing under it; every order that it brings about is legal.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use graven_base::time::Cycle;

/// Makes the choices.
#[derive(Clone, Debug)]
pub struct Adversary {
    random: Pcg64,
}

impl Adversary {
    /// With the choices of a seed.
    pub fn new(seed: u64) -> Adversary {
        Adversary { random: Pcg64::seed_from_u64(seed) }
    }

    /// How much longer a write is on its way: mostly not at all, sometimes long enough for anything to
    /// go past it.
    pub fn delay(&mut self) -> Cycle {
        match self.random.random_range(0..8) {
            0..4 => 0,
            4..7 => self.random.random_range(0..200),
            _ => self.random.random_range(0..5000),
        }
    }

    /// Whether a write-combining buffer lets its oldest line go before it must.
    pub fn lets_go(&mut self) -> bool {
        self.random.random_range(0..8) == 0
    }

    /// One of so many.
    pub fn choose(&mut self, n: usize) -> usize {
        self.random.random_range(0..n)
    }
}
