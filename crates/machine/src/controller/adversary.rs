//! Choices where the rules leave the machine one: how long a write is on its way, which of the waiting requests goes next,
//! when a write-combining buffer lets its oldest line go; and, if they are listed instead of drawn, which thread goes
//! next, and which line the caches evict. Timing means nothing under it; every order that it brings about is legal.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use graven_base::time::Cycle;

/// How long what comes late is late, in cycles: longer than anything that the machine does by itself.
const LATE_CYCLES: Cycle = 5000;

/// How an adversary makes its choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choices {
    /// They are drawn, from a seed.
    Drawn(u64),
    /// All are as they would be without an adversary, but for these, by their numbers.
    Listed(Vec<Departure>),
}

/// A choice that is not the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    /// Number of the choice among those of the run, from 0. What has only one option is no choice.
    pub choice: u32,
    /// The option, from 1.
    pub option: u8,
}

/// Makes the choices.
#[derive(Clone, Debug)]
pub struct Adversary {
    from: From,
}

#[derive(Clone, Debug)]
enum From {
    Seed(Pcg64),
    List {
        departures: Vec<Departure>,
        /// How many of them are behind.
        departed: usize,
        /// Options of each choice so far.
        options: Vec<u8>,
    },
}

impl Adversary {
    /// With these choices.
    pub fn new(choices: Choices) -> Adversary {
        let from = match choices {
            Choices::Drawn(seed) => From::Seed(Pcg64::seed_from_u64(seed)),
            Choices::Listed(departures) => {
                From::List { departures, departed: 0, options: Vec::new() }
            }
        };
        Adversary { from }
    }

    /// How much longer a write is on its way: mostly not at all, sometimes long enough for anything to
    /// go past it.
    pub fn delay(&mut self) -> Cycle {
        match &mut self.from {
            From::List { .. } => LATE_CYCLES * self.choose(2) as Cycle,
            From::Seed(random) => match random.random_range(0..8) {
                0..4 => 0,
                4..7 => random.random_range(0..200),
                _ => random.random_range(0..LATE_CYCLES),
            },
        }
    }

    /// Whether a write-combining buffer lets its oldest line go before it must.
    pub fn lets_go(&mut self) -> bool {
        match &mut self.from {
            From::List { .. } => self.choose(2) > 0,
            From::Seed(random) => random.random_range(0..8) == 0,
        }
    }

    /// One of so many, at least one.
    pub fn choose(&mut self, n: usize) -> usize {
        match &mut self.from {
            From::Seed(random) => random.random_range(0..n),
            From::List { departures, departed, options } => {
                let n = u8::try_from(n).unwrap_or(u8::MAX);
                if n <= 1 {
                    return 0;
                }
                let choice = options.len() as u32;
                options.push(n);
                match departures.get(*departed) {
                    Some(departure) if departure.choice == choice => {
                        *departed += 1;
                        // A list that was made for another program may name options that there are not.
                        departure.option.min(n - 1).into()
                    }
                    _ => 0,
                }
            }
        }
    }

    /// Whether it also chooses among threads and evictions, because its choices are listed.
    pub fn is_listed(&self) -> bool {
        matches!(self.from, From::List { .. })
    }

    /// How long a thread waits before its next operation, so that others go first.
    pub fn pause(&mut self) -> Cycle {
        LATE_CYCLES * self.choose(2) as Cycle
    }

    /// How many options each choice so far has had, if they are listed.
    pub fn options(&self) -> &[u8] {
        match &self.from {
            From::List { options, .. } => options,
            From::Seed(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_departs_where_it_says_and_nowhere_else() {
        let departures =
            [(1, 1), (3, 9)].map(|(choice, option)| Departure { choice, option }).to_vec();
        let mut adversary = Adversary::new(Choices::Listed(departures));
        assert_eq!(adversary.choose(1), 0);
        assert_eq!(adversary.delay(), 0);
        assert_eq!(adversary.delay(), LATE_CYCLES);
        assert!(!adversary.lets_go());
        assert_eq!(adversary.choose(3), 2);
        assert_eq!(adversary.choose(3), 0);
        assert_eq!(adversary.options(), [2, 2, 2, 3, 3]);
    }
}
