//! Choice of the keys that a thread inserts, updates and removes.
//!
//! Keys are numbered; key number n is [`Numbering::key`]`(n)`, a bijection that spreads consecutive
//! numbers over all 40 bits, another one for each seed. Thread t of T owns the numbers that are t modulo T, so that no two threads
//! ever insert the same key, and each thread knows (in volatile memory, as a benchmark's driver
//! does) which of its keys are present. Hence:
//!
//! - an insertion always inserts: the next number, a key that was never there (Silo, Table III: "randomly insert");
//! - a removal always removes one of the thread's own keys, drawn from the distribution;
//! - an update draws from the distribution as well: from the thread's own keys if each thread has a
//!   structure of its own; from all keys of the initial population if the structure is shared, so
//!   that threads meet in elements too. The latter may have been removed: then the update finds
//!   nothing;
//! - a removal or update that finds the thread without keys inserts instead.
//!
//! The Zipf distribution ranks the keys of the initial population. Hot ranks are scattered, so that
//! hot elements are not neighbours in memory. Left out: drifting hot spots.

use rand::RngExt;
use rand_distr::{Distribution as _, Zipf};
use rand_pcg::Pcg64;

use super::element::KEY_LIMIT;
use crate::costs;
use graven_base::memory::mix;
use graven_machine::workload::{Distribution, WorkloadConfig};

/// A prime above every population, which therefore divides none.
const SCATTER: u64 = 11_400_714_785_074_694_791;

/// Place of rank `rank` of `population`: a permutation.
fn scatter(rank: u64, population: u64) -> u64 {
    (u128::from(rank) * u128::from(SCATTER) % u128::from(population)) as u64
}

/// The stream of random numbers of one thread (or of the population, [`POPULATION`]).
pub fn generator(seed: u64, thread: u32) -> Pcg64 {
    let state = u128::from(mix(seed)) << 64 | u128::from(mix(!seed));
    Pcg64::new(state, u128::from(mix(u64::from(thread) + 1)))
}

/// Stream number of what is drawn while populating.
pub const POPULATION: u32 = u32::MAX;

/// Mapping of numbers to keys, under one seed: all seeds have the same round of keys, and begin at
/// places of it that are far apart, seed 1 at its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    first: u64,
}

impl Numbering {
    /// 2^40 over the golden ratio, odd: its multiples are spread.
    const STRIDE: u64 = 0x9e_3779_b97f;

    /// The keys of a seed.
    pub fn new(seed: u64) -> Self {
        Self { first: seed.wrapping_sub(1).wrapping_mul(Self::STRIDE) % KEY_LIMIT }
    }

    /// The key of a number: odd multiplications and shifts, each a bijection on 40 bits.
    pub fn key(self, number: u64) -> u64 {
        assert!(number < KEY_LIMIT, "key numbers have 40 bits");
        let x = (self.first + number + 1).wrapping_mul(0xbf_5847_6d1b) % KEY_LIMIT;
        let x = (x ^ x >> 21).wrapping_mul(0x94_d049_bb13) % KEY_LIMIT;
        x ^ x >> 19
    }
}

/// Draws of one out of many, as the configuration says.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// The distribution of ranks, and how many there are.
    zipf: Option<(Zipf<f64>, u64)>,
    /// Instructions of one draw.
    pub instructions: u32,
}

impl Draw {
    /// Draws as `config` says, from `population` (not 0).
    pub fn new(config: &WorkloadConfig, population: u64) -> Self {
        match config.distribution {
            Distribution::Uniform => Draw { zipf: None, instructions: costs::DRAW },
            Distribution::Zipf => {
                let zipf = Zipf::new(population as f64, config.zipf_theta)
                    .expect("the population is not empty and the skew is positive");
                Draw {
                    zipf: Some((zipf, population)),
                    instructions: costs::DRAW + costs::DRAW_ZIPF,
                }
            }
        }
    }

    /// A number below `among` (not 0).
    pub fn below(&self, among: u64, random: &mut Pcg64) -> u64 {
        match &self.zipf {
            None => random.random_range(0..among),
            Some((zipf, population)) => {
                let rank = zipf.sample(random) as u64 - 1;
                scatter(rank, *population) % among
            }
        }
    }
}

/// One elementary operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Insert this key, which is absent.
    Insert(u64),
    /// Write a new version of this key's element.
    Update(u64),
    /// Remove this key, which is present.
    Remove(u64),
}

impl Action {
    /// The key it is about.
    pub fn key(self) -> u64 {
        match self {
            Action::Insert(key) | Action::Update(key) | Action::Remove(key) => key,
        }
    }
}

/// Knowledge of one thread about its keys, and its random numbers.
#[derive(Clone, Debug)]
pub struct Keys {
    random: Pcg64,
    numbering: Numbering,
    existing: Draw,
    insert_percent: u32,
    remove_percent: u32,
    thread: u64,
    threads: u64,
    /// Key numbers of the thread that are present, divided by the number of threads.
    present: Vec<u32>,
    /// The next of its own numbers that was never present.
    fresh: u32,
    /// In a shared structure, the number of keys that all threads' updates draw from.
    common: Option<u64>,
}

impl Keys {
    /// The keys of `thread` out of `threads`, of which each has `population` present; `shared` says
    /// whether they are all in one structure.
    pub fn new(
        config: &WorkloadConfig,
        seed: u64,
        (thread, threads): (u32, u32),
        population: u64,
        shared: bool,
    ) -> Self {
        let fresh = u32::try_from(population).expect("a workload's sizing bounds the population");
        let common = population * u64::from(threads);
        Self {
            random: generator(seed, thread),
            numbering: Numbering::new(seed),
            existing: Draw::new(config, if shared { common } else { population }),
            insert_percent: config.insert_percent,
            remove_percent: config.remove_percent,
            thread: thread.into(),
            threads: threads.into(),
            present: (0..fresh).collect(),
            fresh,
            common: shared.then_some(common),
        }
    }

    /// Instructions that [`Keys::draw`] stands for.
    pub fn instructions(&self) -> u32 {
        self.existing.instructions
    }

    fn own(&self, number: u32) -> u64 {
        self.numbering.key(u64::from(number) * self.threads + self.thread)
    }

    /// The next operation.
    pub fn draw(&mut self) -> Action {
        let percent = self.random.random_range(0..100);
        if percent < self.insert_percent || self.present.is_empty() {
            let number = self.fresh;
            self.fresh = number.checked_add(1).expect("a thread has fewer than 2^32 keys");
            self.present.push(number);
            return Action::Insert(self.own(number));
        }
        let removes = percent < self.insert_percent + self.remove_percent;
        if let (false, Some(common)) = (removes, self.common) {
            let number = self.existing.below(common, &mut self.random);
            return Action::Update(self.numbering.key(number));
        }
        let index = self.existing.below(self.present.len() as u64, &mut self.random) as usize;
        if removes {
            let number = self.present.swap_remove(index);
            Action::Remove(self.own(number))
        } else {
            Action::Update(self.own(self.present[index]))
        }
    }
}

/// The keys of seed 1.
#[cfg(test)]
pub fn key(number: u64) -> u64 {
    Numbering::new(1).key(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn config(insert_percent: u32, remove_percent: u32) -> WorkloadConfig {
        WorkloadConfig { insert_percent, remove_percent, ..WorkloadConfig::default() }
    }

    #[test]
    fn keys_are_distinct_and_spread() {
        for seed in [0, 1, 2, 3, u64::MAX] {
            let numbering = Numbering::new(seed);
            let keys: BTreeSet<u64> = (0..100_000).map(|n| numbering.key(n)).collect();
            assert_eq!(keys.len(), 100_000);
            assert!(keys.iter().all(|&k| k < KEY_LIMIT));
            let low = keys.range(..KEY_LIMIT / 4).count();
            assert!((24_000..26_000).contains(&low), "{low} of 100000 in the first quarter");
        }
    }

    #[test]
    fn every_seed_has_keys_of_its_own() {
        let keys: BTreeSet<u64> =
            (0..100).flat_map(|seed| (0..1000).map(move |n| Numbering::new(seed).key(n))).collect();
        assert_eq!(keys.len(), 100 * 1000, "the first keys of the first seeds");
    }

    #[test]
    fn inserted_keys_are_absent_and_removed_keys_present() {
        let mut present: BTreeSet<u64> = (0..20).map(|n| key(n * 4 + 3)).collect();
        let mut keys = Keys::new(&config(40, 40), 1, (3, 4), 20, false);
        let mut counts = [0; 3];
        for _ in 0..1000 {
            match keys.draw() {
                Action::Insert(key) => {
                    assert!(present.insert(key));
                    counts[0] += 1;
                }
                Action::Remove(key) => {
                    assert!(present.remove(&key));
                    counts[1] += 1;
                }
                Action::Update(key) => {
                    assert!(present.contains(&key));
                    counts[2] += 1;
                }
            }
        }
        assert!(counts.iter().zip([400, 400, 200]).all(|(&n, e): (&i32, i32)| (n - e).abs() < 80));
    }

    #[test]
    fn a_thread_without_keys_inserts() {
        let mut keys = Keys::new(&config(0, 100), 1, (0, 1), 1, false);
        assert_eq!(keys.draw(), Action::Remove(key(0)));
        assert_eq!(keys.draw(), Action::Insert(key(1)));
        assert_eq!(keys.draw(), Action::Remove(key(1)));
    }

    #[test]
    fn zipf_draws_are_skewed_and_scattered() {
        let config = WorkloadConfig { distribution: Distribution::Zipf, ..config(0, 0) };
        let draw = Draw::new(&config, 1000);
        let mut random = generator(7, 0);
        let mut counts = vec![0u32; 1000];
        for _ in 0..10_000 {
            counts[draw.below(1000, &mut random) as usize] += 1;
        }
        let mut order: Vec<usize> = (0..1000).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(counts[i]));
        // 1 / H(1000, 0.99) = 12.8 % of the draws go to rank 1.
        assert!((1_100..1_500).contains(&counts[order[0]]), "{}", counts[order[0]]);
        assert!(order[0].abs_diff(order[1]) > 1, "hot elements are not neighbours");
        assert_eq!((0..1000).map(|rank| scatter(rank, 1000)).collect::<BTreeSet<_>>().len(), 1000);
    }

    #[test]
    fn any_skew_and_any_population_draws_within_bounds() {
        for zipf_theta in [0.01, 0.5, 1.0, 5.0] {
            let zipf = Distribution::Zipf;
            let config = WorkloadConfig { distribution: zipf, zipf_theta, ..config(0, 0) };
            for population in [1, 2, 3, 1 << 33] {
                let draw = Draw::new(&config, population);
                let mut random = generator(1, 1);
                // There may be fewer or more to draw from than at the beginning.
                for among in [1, population, population + 5] {
                    assert!((0..100).all(|_| draw.below(among, &mut random) < among));
                }
            }
        }
    }

    #[test]
    fn threads_of_a_shared_structure_update_each_others_keys() {
        for thread in 0..3 {
            let mut keys = Keys::new(&config(0, 0), 1, (thread, 3), 10, true);
            let drawn: BTreeSet<u64> = (0..500).map(|_| keys.draw().key()).collect();
            assert_eq!(drawn, (0..30).map(key).collect(), "every key comes up");
        }
    }

    #[test]
    fn streams_differ_by_seed_and_thread() {
        let first = |seed, thread| generator(seed, thread).random_range(0..u64::MAX);
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(2, 2));
        assert_ne!(first(1, 2), first(1, 3));
    }
}
