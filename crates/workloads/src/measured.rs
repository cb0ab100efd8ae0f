//! Measurements of the workloads on HOOP's machine, beside what its paper prints of its benchmarks:
//! stores per transaction (Table III) and the share of stored words that is stored again (Table
//! IV). And the share that a transaction stores again itself, beside MorLog's numbers (§II-B) for
//! the programs of WHISPER.
//!
//! Measured on the programs alone: no machine, no time.

use std::collections::{BTreeMap, BTreeSet};

use super::testing::{populated, request, run};
use graven_base::config::Size;
use graven_base::memory::Addr;
use graven_machine::workload::{Distribution, WorkloadConfig};

/// Threads that the paper runs (§IV-A).
const THREADS: u32 = 8;

/// The workload parameters of HOOP's machine, with items of `element_bytes`.
fn hoop(element_bytes: Size) -> WorkloadConfig {
    let machine = crate::testing::registry().machine("hoop").expect("the preset loads");
    WorkloadConfig { element_bytes, ..machine.get::<WorkloadConfig>().clone() }
}

/// The stores of each transaction, in the order of their commits.
fn stores(workload: &str, config: WorkloadConfig, transactions: u64) -> Vec<Vec<Addr>> {
    let entry = crate::testing::registry().find_workload(workload).expect("it is registered");
    let request = request(config, THREADS, transactions);
    let (workload, image) = populated(entry.build, &request);
    let mut all = Vec::new();
    run(workload.as_ref(), &request, image, |_, _, writes| {
        all.push(writes.iter().map(|&(at, _)| at).collect());
    });
    all
}

/// Fewest, mean and most stores of a transaction.
fn stores_per_transaction(workload: &str, config: WorkloadConfig) -> (usize, f64, usize) {
    let all = stores(workload, config, 4000);
    let counts = || all.iter().map(Vec::len);
    let mean = counts().sum::<usize>() as f64 / all.len() as f64;
    (counts().min().expect("some"), mean, counts().max().expect("some"))
}

/// Share of the stored words that the same `window` transactions store more than once, in percent,
/// over all windows of a run: what collecting them together need not write (Table IV).
fn stored_again(all: &[Vec<Addr>], window: usize) -> f64 {
    let (mut stored, mut different) = (0, 0);
    for transactions in all.chunks_exact(window) {
        let words = || transactions.iter().flatten();
        stored += words().count();
        different += words().collect::<BTreeSet<_>>().len();
    }
    100.0 * (stored - different) as f64 / stored as f64
}

/// Rows of Table III: claim, our workload, the stores per transaction that it prints.
const TABLE_III: [(&str, &str, std::ops::RangeInclusive<usize>); 5] = [
    ("hoop-wl-vector", "vector", 8..=8),
    ("hoop-wl-hashmap", "hash", 8..=8),
    ("hoop-wl-queue", "queue", 4..=4),
    ("hoop-wl-rbtree", "rbtree", 2..=10),
    ("hoop-wl-btree", "btree", 2..=12),
];

/// Values of the rows here, with items of 64 B and of 1 KB.
const STORES: [[(usize, f64, usize); 2]; 5] = [
    [(8, 8.5, 9), (8, 69.5, 129)],
    [(8, 10.5, 13), (8, 71.5, 133)],
    [(8, 11.0, 14), (8, 71.7, 134)],
    [(8, 14.8, 37), (8, 75.8, 162)],
    [(8, 16.5, 82), (8, 77.9, 202)],
];

/// An update stores eight words, whatever the size of the item: within all ranges of Table III but
/// the queue's. An insertion stores the whole item and its links, and is in none of them. Claims
/// `hoop-wl-vector`, `hoop-wl-hashmap`, `hoop-wl-queue`, `hoop-wl-rbtree` and `hoop-wl-btree`.
#[test]
fn stores_per_transaction_are_as_documented() {
    for ((claim, workload, printed), expected) in TABLE_III.into_iter().zip(STORES) {
        for (bytes, expected) in [Size(64), Size::kb(1)].into_iter().zip(expected) {
            let found = stores_per_transaction(workload, hoop(bytes));
            println!("{claim}, {bytes}: {found:.1?}, printed {printed:?}");
            let (least, mean, most) = found;
            assert_eq!((least, most), (expected.0, expected.2), "{claim}, {bytes}");
            assert!((mean - expected.1).abs() < 0.05, "{claim}, {bytes}: {mean}");
            assert_eq!(printed.contains(&least), workload != "queue", "{claim}: updates");
            let item = (bytes.0 / 8) as usize;
            assert!(most > item && !printed.contains(&most), "{claim}: insertions");
        }
    }
}

/// Share of the words that 10, 100, 1,000 and 10,000 transactions store which they store again, in
/// percent: items of 64 B and of 1 KB, then of 64 B with Zipf.
const STORED_AGAIN: [(&str, [[f64; 4]; 3]); 5] = [
    ("vector", [[0.5, 5.0, 5.9, 6.1], [0.0, 0.6, 0.8, 1.1], [0.6, 6.2, 12.7, 21.0]]),
    ("hash", [[0.5, 8.1, 9.5, 10.0], [0.0, 1.2, 1.4, 1.8], [0.6, 9.3, 15.6, 22.7]]),
    ("queue", [[7.5, 49.5, 58.0, 58.9], [2.3, 7.7, 9.0, 9.1], [7.5, 49.5, 58.0, 58.9]]),
    ("rbtree", [[4.4, 9.8, 10.8, 11.3], [0.8, 1.9, 2.2, 2.8], [4.4, 10.7, 15.2, 20.4]]),
    ("btree", [[1.7, 6.5, 7.4, 8.5], [0.3, 1.4, 1.9, 3.9], [1.8, 7.1, 11.0, 16.1]]),
];

/// More transactions store more words again (claim `hoop-tab4-monotone`), though far fewer than in
/// the paper.
#[test]
fn what_is_stored_again_is_as_documented() {
    for (workload, expected) in STORED_AGAIN {
        let zipf = WorkloadConfig { distribution: Distribution::Zipf, ..hoop(Size(64)) };
        let configs = [hoop(Size(64)), hoop(Size::kb(1)), zipf];
        for (config, expected) in configs.into_iter().zip(expected) {
            let all = stores(workload, config, 10_000);
            let found = [10, 100, 1000, 10_000].map(|window| stored_again(&all, window));
            println!("{workload}: {found:.1?}");
            assert!(found.is_sorted_by(|fewer, more| fewer < more), "{workload}: {found:.2?}");
            for (found, expected) in found.into_iter().zip(expected) {
                assert!((found - expected).abs() < 0.1, "{workload}: {found:.2}, not {expected}");
            }
        }
    }
}

/// Share of the words of a transaction that it stores more than once, in percent, and of its stores
/// the share that are 32 or more after the one before to the same word.
fn stored_again_within(transactions: &[Vec<Addr>]) -> [f64; 2] {
    let (mut words, mut again, mut stores, mut far) = (0, 0, 0, 0);
    for transaction in transactions {
        let mut last = BTreeMap::new();
        let mut twice = BTreeSet::new();
        for (number, at) in transaction.iter().enumerate() {
            if let Some(before) = last.insert(at, number) {
                twice.insert(at);
                far += usize::from(number - before > 32);
            }
        }
        words += last.len();
        again += twice.len();
        stores += transaction.len();
    }
    [100.0 * again as f64 / words as f64, 100.0 * far as f64 / stores as f64]
}

/// The programs at the defaults, with elements of 64 B.
const STORED_AGAIN_WITHIN: [(&str, [f64; 2]); 6] = [
    ("ycsb", [0.0, 0.0]),
    ("echo", [1.6, 0.7]),
    ("ctree", [6.2, 0.0]),
    ("radix-tree", [4.5, 0.8]),
    ("hash", [0.0, 0.0]),
    ("btree", [1.7, 0.9]),
];

/// MorLog: WHISPER's programs update 83.1 % of what a transaction writes more than once (§I; claim
/// `morlog-motivation-multi-update`), and 44.8 % of their writes are more than 31 after the one before to the same
/// address (§II-B, Fig. 3), of writes of any size. Nothing of the kind comes out of the data structures by themselves.
#[test]
fn what_a_transaction_stores_again_is_as_documented() {
    let found = STORED_AGAIN_WITHIN.map(|(workload, _)| {
        stored_again_within(&stores(workload, WorkloadConfig::default(), 2000))
    });
    println!("{found:.1?}");
    for ((workload, expected), found) in STORED_AGAIN_WITHIN.into_iter().zip(found) {
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 0.1, "{workload}: {found:.2}, not {expected}");
        }
    }
}
