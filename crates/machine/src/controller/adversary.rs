//! Choices where the rules leave the machine one: how long a write is on its way, which of the waiting requests goes next,
//! when a write-combining buffer lets its oldest line go; and, if they are listed or their seed says so, which thread goes
//! next, and which line the caches evict. Timing means nothing under it; every order that it brings about is legal.

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use graven_base::memory::spread;
use graven_base::time::Cycle;

/// Delay of a late write, in cycles: longer than anything that the machine does by itself.
const LATE_CYCLES: Cycle = 5000;

/// Delay of a write or a read that is later than anything else, in cycles, if choices are drawn: programs of the laboratory end before.
const LAST_CYCLES: Range<Cycle> = 20_000..100_000;

/// One seed in this number has such writes and reads.
const LAST_SEEDS_ONE_IN: u64 = 4;

/// One request in this number is delayed so, under such a seed.
const LAST_ONE_IN: u32 = 48;

/// Notices and operations of which one is followed by an eviction, if choices are drawn.
const EVICTIONS_ONE_IN: u32 = 24;

/// Operations before one of which a thread waits, if choices are drawn.
const PAUSES_ONE_IN: u32 = 48;

/// Ways in which an adversary makes its choices.
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
    Seed {
        random: Pcg64,
        /// Draws the requests that are later than anything else, if there are any.
        last: Option<Pcg64>,
        /// True if threads and evictions are chosen, too.
        intervenes: bool,
    },
    List {
        departures: Vec<Departure>,
        /// Number of them that are behind.
        departed: usize,
        /// Options of each choice so far.
        options: Vec<u8>,
    },
}

impl Adversary {
    /// With these choices.
    pub fn new(choices: Choices) -> Adversary {
        let from = match choices {
            Choices::Drawn(seed) => From::Seed {
                random: Pcg64::seed_from_u64(seed),
                last: spread(seed, 0x6c74)
                    .is_multiple_of(LAST_SEEDS_ONE_IN)
                    .then(|| Pcg64::seed_from_u64(spread(seed, 0x6c75))),
                intervenes: spread(seed, 0x696e) & 1 == 0,
            },
            Choices::Listed(departures) => {
                From::List { departures, departed: 0, options: Vec::new() }
            }
        };
        Adversary { from }
    }

    /// Additional delay of a write on its way: mostly none, sometimes long enough for anything to
    /// go past it.
    pub fn delay(&mut self) -> Cycle {
        match &mut self.from {
            From::List { .. } => LATE_CYCLES * self.choose(2) as Cycle,
            From::Seed { random, last, .. } => {
                let delay = match random.random_range(0..8) {
                    0..4 => 0,
                    4..7 => random.random_range(0..200),
                    _ => random.random_range(0..LATE_CYCLES),
                };
                delay + comes_last(last)
            }
        }
    }

    /// Additional delay of a read on its way: none, but for reads that are later than anything else.
    pub fn delay_of_read(&mut self) -> Cycle {
        match &mut self.from {
            From::List { .. } => 0,
            From::Seed { last, .. } => comes_last(last),
        }
    }

    /// Returns true if a write-combining buffer lets its oldest line go before it must.
    pub fn lets_go(&mut self) -> bool {
        match &mut self.from {
            From::List { .. } => self.choose(2) > 0,
            From::Seed { random, .. } => random.random_range(0..8) == 0,
        }
    }

    /// Chooses one of `n`, at least one.
    pub fn choose(&mut self, n: usize) -> usize {
        match &mut self.from {
            From::Seed { random, .. } => random.random_range(0..n),
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

    /// Returns true if it also chooses among threads and evictions.
    pub fn intervenes(&self) -> bool {
        match self.from {
            From::List { .. } => true,
            From::Seed { intervenes, .. } => intervenes,
        }
    }

    /// Cycles that a thread waits before its next operation, so that others go first.
    pub fn pause(&mut self) -> Cycle {
        match &mut self.from {
            From::List { .. } => LATE_CYCLES * self.choose(2) as Cycle,
            From::Seed { random, .. } => match random.random_range(0..PAUSES_ONE_IN) {
                0 => random.random_range(0..LATE_CYCLES),
                _ => 0,
            },
        }
    }

    /// Returns true if a line may be evicted now.
    pub fn may_evict(&mut self) -> bool {
        match &mut self.from {
            From::List { .. } => true,
            From::Seed { random, .. } => random.random_range(0..EVICTIONS_ONE_IN) == 0,
        }
    }

    /// Number of options of each choice so far, if they are listed.
    pub fn options(&self) -> &[u8] {
        match &self.from {
            From::List { options, .. } => options,
            From::Seed { .. } => &[],
        }
    }
}

/// Delay of a request that is later than anything else; none for the others.
fn comes_last(last: &mut Option<Pcg64>) -> Cycle {
    let Some(random) = last else { return 0 };
    match random.random_range(0..LAST_ONE_IN) {
        0 => random.random_range(LAST_CYCLES),
        _ => 0,
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

    /// Some seeds have writes and reads that are later than anything else; the others have none, and draw all else as
    /// before there were such.
    #[test]
    fn some_seeds_have_requests_that_come_last() {
        let latest = |seed| {
            let mut adversary = Adversary::new(Choices::Drawn(seed));
            let writes = (0..500).map(|_| adversary.delay()).max();
            let reads = (0..500).map(|_| adversary.delay_of_read()).max();
            (writes, reads)
        };
        let is_last = |delay: Option<Cycle>| delay >= Some(LAST_CYCLES.start);
        let seeds: Vec<_> = (0..100).map(latest).collect();
        let last = seeds.iter().filter(|&&(writes, reads)| is_last(writes) && is_last(reads));
        let none = seeds.iter().filter(|&&(writes, reads)| !is_last(writes) && reads == Some(0));
        assert!((15..=35).contains(&last.clone().count()), "{seeds:?}");
        assert_eq!(last.count() + none.count(), seeds.len());
    }
}
