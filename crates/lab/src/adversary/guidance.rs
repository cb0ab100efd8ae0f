//! Families of schedules: some of a number of consecutive seeds are drawn from nothing, and others vary one of the family that
//! has reached something new.
//!
//! New is a state worth reaching ([`STATES`](crate::explorer::STATES)), a cover point of the design, or a counter of the
//! design or the machine, that no earlier schedule of the family has reached as often, by powers of two. Families know
//! nothing of each other, so that campaigns may be cut between them, and run side by side.

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::draws::Draws;
use super::generator::Drawn;
use super::subject::Subject;
use crate::litmus::Litmus;
use graven_base::config::Config;
use graven_base::memory::spread;
use graven_machine::design::DesignInfo;

/// Schedules of a family.
pub const FAMILY_SCHEDULES: u64 = 250;

/// The number of the first schedules of a family that are drawn from nothing.
const FRESH: u64 = 25;

/// Draws schedule after schedule, and learns from what they have reached.
#[derive(Clone)]
pub struct Adversary {
    design: &'static DesignInfo,
    /// That of programs which name none.
    machine: Config,
    /// Settings on top of what is drawn.
    settings: Vec<(String, String)>,
    draws: Draws,
    family: Family,
    /// The schedule that was drawn last.
    last: Option<Drawn>,
}

/// A family of schedules.
#[derive(Clone, Default)]
struct Family {
    number: u64,
    /// Those that have reached something new, in their order.
    kept: Vec<Drawn>,
    /// The frequency with which each state was reached: a bit for each power of two.
    reached: Vec<u64>,
}

impl Adversary {
    /// The adversary of a design. `machine`: that of programs which name none.
    pub fn new(machine: Config, design: &'static DesignInfo, draws: Draws) -> Adversary {
        let settings = Vec::new();
        Adversary { design, machine, settings, draws, family: Family::default(), last: None }
    }

    /// The same for programs that are run with these settings on top of theirs.
    pub fn with(self, settings: Vec<(String, String)>) -> Adversary {
        Adversary { settings, ..self }
    }

    /// The seeds on which the schedule of this one may depend: whoever begins with it draws them first, and has the
    /// adversary learn what they reach.
    pub fn before(&self, seed: u64) -> Range<u64> {
        if self.draws.varied == 0 { seed..seed } else { first_of(family_of(seed))..seed }
    }

    /// The schedule of a seed. Those of a family come one after the other.
    pub fn schedule(&mut self, seed: u64) -> Litmus {
        let number = family_of(seed);
        if number != self.family.number {
            self.family = Family { number, ..Family::default() };
        }
        let subject =
            Subject { design: self.design, machine: &self.machine, settings: &self.settings };
        let drawn = match self.parent(seed) {
            Some(parent) => parent.varied(&subject, seed),
            None => Drawn::new(&subject, seed, &self.draws),
        };
        let litmus = drawn.schedule();
        self.last = Some(drawn);
        litmus
    }

    /// Takes the states that the schedule that was drawn last has reached, and the frequency of each.
    pub fn learn(&mut self, reached: &[u64]) {
        if let Some(drawn) = self.last.take()
            && self.draws.varied > 0
            && self.family.has_new(reached)
        {
            self.family.kept.push(drawn);
        }
    }

    /// The schedule that is varied for a seed, if one is. Those that were kept late reached what is rare, and are
    /// preferred.
    fn parent(&self, seed: u64) -> Option<&Drawn> {
        let mut random = Pcg64::seed_from_u64(spread(seed, 0x7061));
        let is_varied = seed - first_of(family_of(seed)) >= FRESH
            && random.random_range(0..100) < self.draws.varied;
        let kept = &self.family.kept;
        if !is_varied || kept.is_empty() {
            return None;
        }
        let drawn = [(); 2].map(|()| random.random_range(0..kept.len()));
        kept.get(drawn[0].max(drawn[1]))
    }
}

impl Family {
    /// Notes what was reached; whether anything of it is new.
    fn has_new(&mut self, reached: &[u64]) -> bool {
        self.reached.resize(reached.len().max(self.reached.len()), 0);
        let mut is_new = false;
        for (known, &count) in self.reached.iter_mut().zip(reached) {
            let bit = if count == 0 { 0 } else { 1 << count.ilog2() };
            is_new |= *known & bit != bit;
            *known |= bit;
        }
        is_new
    }
}

/// Seed 0 is a family by itself, so that campaigns which begin with seed 1 begin with a family.
fn family_of(seed: u64) -> u64 {
    seed.div_ceil(FAMILY_SCHEDULES)
}

fn first_of(family: u64) -> u64 {
    match family.checked_sub(1) {
        None => 0,
        Some(before) => before * FAMILY_SCHEDULES + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_all_seeds_in_order() {
        assert_eq!((family_of(0), family_of(1), family_of(FAMILY_SCHEDULES)), (0, 1, 1));
        for family in 1..5 {
            let first = first_of(family);
            assert_eq!((family_of(first), family_of(first - 1)), (family, family - 1));
        }
    }

    #[test]
    fn what_is_reached_more_often_by_a_power_of_two_is_new() {
        let mut family = Family::default();
        assert!(!family.has_new(&[0, 0]));
        assert!(family.has_new(&[0, 5]));
        assert!(!family.has_new(&[0, 7]));
        assert!(family.has_new(&[0, 8]));
        assert!(family.has_new(&[1, 1]));
        assert!(!family.has_new(&[1, 4]));
    }
}
