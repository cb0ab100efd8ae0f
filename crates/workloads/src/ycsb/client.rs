//! Choice of the next operations of one thread of YCSB.
//!
//! Records are numbered in the order of their insertion; [`key`] spreads them. The population comes first, then each
//! thread inserts the numbers that are its index modulo the number of threads. A thread is a client of YCSB, which
//! knows what was loaded and what it has inserted itself, but not what others do:
//!
//! - **zipf**: record of rank r with probability proportional to r^-0.99 (`workload.zipf_theta`), ranks scattered over
//!   the population, as YCSB's scrambled generator has them. YCSB draws from the records that the run will insert as well, and
//!   draws again if one is not there yet; here those are never drawn.
//! - **latest**: rank 1 is the record that the thread inserted last, then those before; then the population, the last loaded
//!   first. The number of ranks grows with each insertion.
//! - **uniform**: of the population, all alike.

use rand::RngExt;
use rand_distr::{Distribution as _, Zipf};
use rand_pcg::Pcg64;

use super::{Mix, Requests, YcsbConfig};
use crate::costs;
use crate::structures::keys::{Draw, Numbering, generator};
use graven_machine::workload::{Distribution, Request, WorkloadConfig};

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Read the record of this key.
    Read(u64),
    /// Write some of it.
    Update(u64),
    /// Insert a record of this key, which is absent.
    Insert(u64),
    /// Read up to the given number of records, from this key on.
    Scan(u64, u32),
    /// Read the record of this key, then write some of it.
    ReadModifyWrite(u64),
}

impl Operation {
    /// The key it is about.
    pub(super) fn key(self) -> u64 {
        match self {
            Operation::Read(key)
            | Operation::Update(key)
            | Operation::Insert(key)
            | Operation::Scan(key, _)
            | Operation::ReadModifyWrite(key) => key,
        }
    }
}

/// Distribution of the requested records.
#[derive(Clone, Debug)]
enum Choice {
    /// From the population.
    Loaded(Draw),
    /// The latest first, with this skew.
    Latest(Zipf<f64>, f64),
}

/// A Zipf distribution of `ranks` ranks (not 0).
fn zipf(ranks: u64, theta: f64) -> Zipf<f64> {
    Zipf::new(ranks as f64, theta).expect("there is a record, and the skew is positive")
}

/// One thread's operations to come.
#[derive(Clone, Debug)]
pub(super) struct Client {
    random: Pcg64,
    numbering: Numbering,
    shares: [u32; 5],
    scan_records_max: u32,
    choice: Choice,
    thread: u64,
    threads: u64,
    /// Records that were loaded, per thread.
    population: u64,
    /// Records that this thread has inserted.
    inserted: u64,
}

impl Client {
    /// The client of `thread`, of a store that begins with `population` records per thread.
    pub(super) fn new(own: &YcsbConfig, request: &Request, thread: u32, population: u64) -> Self {
        let requests = match (own.requests, own.mix) {
            (Requests::Mix, Mix::D) => Requests::Latest,
            (Requests::Mix, _) => Requests::Zipf,
            (given, _) => given,
        };
        let loaded = population * u64::from(request.threads);
        let draw = |distribution| {
            let config = WorkloadConfig { distribution, ..request.config.clone() };
            Choice::Loaded(Draw::new(&config, loaded))
        };
        let theta = request.config.zipf_theta;
        let choice = match requests {
            Requests::Latest => Choice::Latest(zipf(loaded, theta), theta),
            Requests::Uniform => draw(Distribution::Uniform),
            Requests::Zipf | Requests::Mix => draw(Distribution::Zipf),
        };
        Self {
            random: generator(request.seed, thread),
            numbering: Numbering::new(request.seed),
            shares: own.mix.shares(),
            scan_records_max: own.scan_records_max,
            choice,
            thread: thread.into(),
            threads: request.threads.into(),
            population,
            inserted: 0,
        }
    }

    /// Instructions that [`Client::draw`] stands for.
    pub(super) fn instructions(&self) -> u32 {
        match &self.choice {
            Choice::Loaded(draw) => draw.instructions,
            Choice::Latest(..) => costs::DRAW + costs::DRAW_ZIPF,
        }
    }

    /// The key of record `number` of this thread's own.
    fn own(&self, number: u64) -> u64 {
        self.numbering.key(number * self.threads + self.thread)
    }

    /// Draws the key of an existing record.
    fn requested(&mut self) -> u64 {
        let loaded = self.population * self.threads;
        match &self.choice {
            Choice::Loaded(draw) => self.numbering.key(draw.below(loaded, &mut self.random)),
            Choice::Latest(zipf, _) => {
                let rank = zipf.sample(&mut self.random) as u64 - 1;
                match rank.checked_sub(self.inserted) {
                    None => self.own(self.population + self.inserted - 1 - rank),
                    Some(before) => self.numbering.key(loaded - 1 - before),
                }
            }
        }
    }

    fn insert(&mut self) -> u64 {
        let key = self.own(self.population + self.inserted);
        self.inserted += 1;
        let ranks = self.population * self.threads + self.inserted;
        if let Choice::Latest(distribution, theta) = &mut self.choice {
            *distribution = zipf(ranks, *theta);
        }
        key
    }

    /// The next operation.
    pub(super) fn draw(&mut self) -> Operation {
        let [read, update, insert, scan, _] = self.shares;
        let percent = self.random.random_range(0..100);
        if percent < read {
            Operation::Read(self.requested())
        } else if percent < read + update {
            Operation::Update(self.requested())
        } else if percent < read + update + insert {
            Operation::Insert(self.insert())
        } else if percent < read + update + insert + scan {
            let key = self.requested();
            Operation::Scan(key, self.random.random_range(1..=self.scan_records_max))
        } else {
            Operation::ReadModifyWrite(self.requested())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::testing::{request, small};

    const MIXES: [Mix; 7] = [Mix::Papers, Mix::A, Mix::B, Mix::C, Mix::D, Mix::E, Mix::F];

    fn client(own: &YcsbConfig, population: u64) -> Client {
        Client::new(own, &request(small(), 4, 1), 2, population)
    }

    fn of_mix(mix: Mix) -> YcsbConfig {
        YcsbConfig { mix, ..YcsbConfig::default() }
    }

    /// `silo-cfg-ycsb-mix`, `silo-wl-ycsb`, `hoop-cfg-ycsb`: 20 % reads and 80 % updates, as the papers have it by default.
    #[test]
    fn operations_come_in_the_shares_of_the_mix() {
        assert_eq!(YcsbConfig::default().mix.shares(), [20, 80, 0, 0, 0]);
        for mix in MIXES {
            assert_eq!(mix.shares().iter().sum::<u32>(), 100, "{mix:?}");
            let mut client = client(&of_mix(mix), 100);
            let mut counts = [0; 5];
            for _ in 0..10_000 {
                let kind = match client.draw() {
                    Operation::Read(_) => 0,
                    Operation::Update(_) => 1,
                    Operation::Insert(_) => 2,
                    Operation::Scan(..) => 3,
                    Operation::ReadModifyWrite(_) => 4,
                };
                counts[kind] += 1;
            }
            for (count, share) in counts.into_iter().zip(mix.shares()) {
                assert!((count - 100 * share as i32).abs() < 200, "{mix:?}: {counts:?}");
                assert!(share > 0 || count == 0, "{mix:?}: {counts:?}");
            }
        }
    }

    /// No mix that scans updates in place: scans need no locks of elements.
    #[test]
    fn what_scans_does_not_update() {
        for [_, update, _, scan, modify] in MIXES.map(Mix::shares) {
            assert!(scan == 0 || update + modify == 0);
        }
    }

    #[test]
    fn insertions_are_new_and_requests_are_of_records_that_are_there() {
        for requests in [Requests::Mix, Requests::Zipf, Requests::Latest, Requests::Uniform] {
            let own = YcsbConfig { requests, ..of_mix(Mix::D) };
            let mut client = client(&own, 50);
            let mut there: BTreeSet<u64> = (0..200).map(|n| client.numbering.key(n)).collect();
            for _ in 0..5000 {
                match client.draw() {
                    Operation::Insert(key) => assert!(there.insert(key)),
                    other => assert!(there.contains(&other.key()), "{requests:?}: {other:?}"),
                }
            }
            assert!(there.len() > 300, "{requests:?}: {}", there.len());
        }
    }

    /// The most frequent of n ranks of Zipf's distribution of 0.99 has a share of one in the n-th generalised harmonic
    /// number: of 1,000 ranks, 13 %.
    #[test]
    fn requests_are_as_skewed_as_they_should() {
        let harmonic: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for (mix, requests, expected) in [
            (Mix::C, Requests::Mix, 1.0 / harmonic),
            (Mix::C, Requests::Latest, 1.0 / harmonic),
            (Mix::C, Requests::Uniform, 0.001),
        ] {
            let own = YcsbConfig { requests, ..of_mix(mix) };
            let mut client = client(&own, 250);
            let mut counts = BTreeMap::new();
            (0..50_000).for_each(|_| *counts.entry(client.draw().key()).or_insert(0) += 1);
            let (hottest, count) = counts.iter().max_by_key(|(_, n)| **n).expect("some");
            let share = f64::from(*count) / 50_000.0;
            assert!((0.8..2.0).contains(&(share / expected)), "{requests:?}: {share}");
            if requests == Requests::Latest {
                assert_eq!(*hottest, client.numbering.key(999), "the last that was loaded");
            }
        }
    }

    #[test]
    fn the_latest_record_is_the_one_that_was_inserted_last() {
        let mut client = client(&of_mix(Mix::D), 250);
        let (mut last, mut after, mut reads) = (None, 0, 0);
        for _ in 0..50_000 {
            match client.draw() {
                Operation::Insert(key) => last = Some(key),
                other if last.is_some() => {
                    reads += 1;
                    after += u32::from(last == Some(other.key()));
                }
                _ => {}
            }
        }
        // Of 1,000 to 3,500 ranks the first has 13 % to 11 %.
        let share = f64::from(after) / f64::from(reads);
        assert!((0.10..0.15).contains(&share), "{share}");
    }

    #[test]
    fn scans_are_of_all_lengths() {
        let own = YcsbConfig { scan_records_max: 10, ..of_mix(Mix::E) };
        let mut client = client(&own, 250);
        let lengths: BTreeSet<u32> = (0..1000)
            .filter_map(|_| match client.draw() {
                Operation::Scan(_, records) => Some(records),
                _ => None,
            })
            .collect();
        assert!(lengths.into_iter().eq(1..=10));
    }
}
