//! A functional interpreter of programs, and the contract that every workload must fulfil.
//!
//! The interpreter runs threads round robin, one operation each, with locks and no notion of time.
//! It keeps two images: what loads return, and what transactions have committed. It insists on what
//! the designs rely on: stores happen inside transactions only, inside the workload's range, and no
//! thread touches a word that another's unfinished transaction has stored (isolation).

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use graven_base::config::{ConfigError, OtherTable, Size};
use graven_base::memory::{Addr, Image, LINE_BYTES};
use graven_machine::program::{LockId, Op, Program};
use graven_machine::registry::{Preset, Registry};
use graven_machine::workload::{
    Checked, Distribution, ElementKind, Request, Sharing, Workload, WorkloadConfig,
};

/// An image, and the check of the structures in it.
pub struct Check<'a, C> {
    image: &'a mut Image,
    check: C,
}

impl<'a, T: Debug, C: Fn(&Image) -> Checked<T>> Check<'a, C> {
    pub fn of(image: &'a mut Image, check: C) -> Self {
        Check { image, check }
    }

    /// Replaces one word, expects the check to complain in words that contain `expected`, and puts the word back.
    pub fn finds(&mut self, at: Addr, value: u64, expected: &str) {
        let old = self.image.store(at, value);
        let found = (self.check)(self.image).expect_err("a corrupted word is seen").what;
        assert!(found.contains(expected), "expected `{expected}`, found `{found}`");
        self.image.store(at, old);
        (self.check)(self.image).expect("the word was put back");
    }

    /// Replaces words in turn by values that a crash could leave there, among them `pointers`, and expects the check to
    /// end; returns the numbers of corruptions that were seen, and that were made.
    pub fn ends_on_any_word(
        &mut self,
        places: impl Iterator<Item = u64>,
        pointers: &[u64],
    ) -> (usize, usize) {
        let (mut seen, mut tried) = (0, 0);
        for at in places.map(Addr) {
            let old = self.image.load(at);
            let values = [0, old ^ 1, old ^ 64, u64::MAX, u64::MAX - 7];
            for &value in values.iter().chain(pointers).filter(|&&value| value != old) {
                self.image.store(at, value);
                tried += 1;
                seen += usize::from((self.check)(self.image).is_err());
            }
            self.image.store(at, old);
        }
        (self.check)(self.image).expect("the words were put back");
        (seen, tried)
    }
}

pub type Build = fn(&Request) -> Result<Box<dyn Workload>, ConfigError>;

/// Number of operations of each kind that were issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub transactions: u64,
    pub loads: u64,
    pub stores: u64,
    /// Stores that changed their word.
    pub changes: u64,
    pub instructions: u64,
    pub locks: u64,
}

struct Runner {
    program: Box<dyn Program>,
    value: u64,
    /// Waits for a lock.
    waits: bool,
    done: bool,
    /// The stores of the transaction under way; none outside one.
    writes: Option<Vec<(Addr, u64)>>,
}

/// Runs all programs of `workload` on `image` to their end; `committed(thread, before, writes)` is
/// called at each commit with the committed image without that transaction, and its stores.
pub fn run(
    workload: &dyn Workload,
    request: &Request,
    mut image: Image,
    mut committed: impl FnMut(u32, &Image, &[(Addr, u64)]),
) -> (Image, Counts) {
    let mut durable = image.clone();
    let mut counts = Counts::default();
    let mut locks: BTreeMap<LockId, VecDeque<usize>> = BTreeMap::new();
    let mut in_flight: BTreeMap<Addr, usize> = BTreeMap::new();
    let mut runners: Vec<Runner> = (0..request.threads)
        .map(|t| workload.program(t))
        .map(|program| Runner { program, value: 0, waits: false, done: false, writes: None })
        .collect();
    while runners.iter().any(|r| !r.done) {
        assert!(runners.iter().any(|r| !r.done && !r.waits), "a deadlock");
        for t in 0..runners.len() {
            let runner = &mut runners[t];
            if runner.done || runner.waits {
                continue;
            }
            let owns = |in_flight: &BTreeMap<Addr, usize>, at: Addr| {
                assert!((request.start..request.end).contains(&at), "{at} is out of range");
                assert!(in_flight.get(&at).is_none_or(|&o| o == t), "thread {t} races at {at}");
            };
            match runner.program.next(std::mem::take(&mut runner.value)) {
                Op::Load { at } => {
                    assert!(runner.writes.is_some(), "a load outside a transaction");
                    owns(&in_flight, at.addr);
                    runner.value = image.load(at.addr);
                    counts.loads += 1;
                }
                Op::StoreNonTemporal { .. } => unreachable!("no workload has them"),
                Op::Store { at, value } => {
                    owns(&in_flight, at.addr);
                    let writes = runner.writes.as_mut().expect("a store outside a transaction");
                    writes.push((at.addr, value));
                    in_flight.insert(at.addr, t);
                    counts.stores += 1;
                    counts.changes += u64::from(image.store(at.addr, value) != value);
                }
                Op::Compute { instructions } => counts.instructions += u64::from(instructions),
                Op::TxBegin => {
                    assert!(runner.writes.replace(Vec::new()).is_none(), "nested transactions");
                }
                Op::TxEnd => {
                    let writes = runner.writes.take().expect("an end without a beginning");
                    committed(t as u32, &durable, &writes);
                    for (at, value) in writes {
                        durable.store(at, value);
                        in_flight.remove(&at);
                    }
                    counts.transactions += 1;
                }
                Op::Lock { lock } => {
                    assert!(runner.writes.is_none(), "locks are taken before the transaction");
                    let queue = locks.entry(lock).or_default();
                    assert!(!queue.contains(&t), "lock {lock} taken twice");
                    queue.push_back(t);
                    runner.waits = queue.len() > 1;
                    counts.locks += 1;
                }
                Op::Unlock { lock } => {
                    assert!(runner.writes.is_none(), "locks are kept until the commit");
                    let queue = locks.get_mut(&lock).expect("the lock was taken");
                    assert_eq!(queue.pop_front(), Some(t), "the owner releases");
                    if let Some(&next) = queue.front() {
                        runners[next].waits = false;
                    }
                }
                Op::Persist(_) | Op::Ending => unreachable!("no workload has them"),
                Op::Disturb(_) => unreachable!("workloads disturb nothing"),
                Op::Done => {
                    assert!(runner.writes.is_none(), "an unfinished transaction");
                    runner.done = true;
                }
            }
        }
    }
    assert!(locks.values().all(VecDeque::is_empty), "every lock was released");
    assert_eq!(image.first_difference(&durable, request.start, request.end), None);
    (image, counts)
}

/// All workloads, and the machine of HOOP's paper without what it says of designs.
pub fn registry() -> Registry {
    static HOOP: Preset = Preset {
        name: "hoop",
        title: "hoop",
        file: "papers/hoop/machine.toml",
        text: include_str!("../../../papers/hoop/machine.toml"),
    };
    let mut registry = Registry::new();
    crate::register(&mut registry);
    registry.preset(&HOOP);
    for name in ["comparison", "hoop", "fwb", "lad", "redu", "osp", "software_log"] {
        registry.other_table(OtherTable { name, keys: &[] });
    }
    registry
}

pub fn request(config: WorkloadConfig, threads: u32, transactions: u64) -> Request {
    let (start, end) = (Addr(1 << 20), Addr(1 << 40));
    Request { config, whole: registry().defaults(), threads, transactions, seed: 42, start, end }
}

/// A footprint small enough to check the whole structure at each commit.
pub fn small() -> WorkloadConfig {
    WorkloadConfig { footprint_bytes: Size::kb(64), ..WorkloadConfig::default() }
}

pub fn populated(build: Build, request: &Request) -> (Box<dyn Workload>, Image) {
    let workload = build(request).expect("the parameters fit");
    let mut image = Image::new();
    workload.populate(&mut image);
    workload.check(&image).expect("the initial structures are sound");
    (workload, image)
}

/// The combinations of parameters that the contract is tried with.
fn variants(base: &WorkloadConfig) -> Vec<WorkloadConfig> {
    let mut all = Vec::new();
    for (insert_percent, remove_percent) in [(100, 0), (40, 40), (0, 100), (0, 0)] {
        for (bytes, update_bytes, distribution, element_kind) in [
            (8, 8, Distribution::Zipf, ElementKind::Record),
            (64, 64, Distribution::Uniform, ElementKind::Record),
            (256, 256, Distribution::Uniform, ElementKind::String),
            (128, 128, Distribution::Uniform, ElementKind::Equal),
            (1000, 1000, Distribution::Zipf, ElementKind::Record),
            (1000, 64, Distribution::Uniform, ElementKind::String),
        ] {
            for operations_per_transaction in [1, 4] {
                all.push(WorkloadConfig {
                    insert_percent,
                    remove_percent,
                    element_bytes: Size(bytes),
                    element_kind,
                    update_bytes: Size(update_bytes),
                    distribution,
                    operations_per_transaction,
                    ..base.clone()
                });
            }
        }
    }
    all
}

/// Runs every variant and checks each state between two commits.
pub fn every_commit_is_sound(build: Build, base: &WorkloadConfig, threads: u32, transactions: u64) {
    for config in variants(base) {
        let request = request(config, threads, transactions);
        let (workload, image) = populated(build, &request);
        let (image, counts) = run(workload.as_ref(), &request, image, |thread, before, _| {
            if let Err(violation) = workload.check(before) {
                panic!("before a commit of thread {thread}, {:?}: {violation}", request.config);
            }
        });
        assert_eq!(workload.check(&image), Ok(()), "{:?}", request.config);
        assert_eq!(counts.transactions, transactions);
        assert_eq!(counts.locks > 0, request.config.sharing == Sharing::Shared);
    }
}

pub fn one_thread_leaves_sound_states(build: Build) {
    every_commit_is_sound(build, &small(), 1, 150);
}

pub fn private_threads_leave_sound_states(build: Build) {
    every_commit_is_sound(build, &small(), 3, 100);
}

pub fn sharing_threads_are_isolated(build: Build) {
    let base = WorkloadConfig { sharing: Sharing::Shared, ..small() };
    every_commit_is_sound(build, &base, 4, 150);
}

/// Shows the image after a transaction, of whose changed words one, in turn each, was lost.
fn lose_each_word(before: &Image, writes: &[(Addr, u64)], mut lost: impl FnMut(Addr, &Image)) {
    let last: BTreeMap<Addr, u64> = writes.iter().copied().collect();
    let mut after = before.clone();
    let changes: Vec<(Addr, u64, u64)> = last
        .iter()
        .map(|(&at, &new)| (at, after.store(at, new), new))
        .filter(|&(_, old, new)| old != new)
        .collect();
    for (at, old, new) in changes {
        after.store(at, old);
        lost(at, &after);
        after.store(at, new);
    }
}

/// A transaction that loses one of its changes, as a faulty design would lose it, is seen by the
/// check, unless the lost word is one that no reader looks at (a free block's old content, a key
/// beyond a node's count).
pub fn lost_words_are_seen(build: Build) {
    let config = WorkloadConfig { insert_percent: 45, remove_percent: 45, ..small() };
    let request = request(config, 1, 60);
    let (workload, image) = populated(build, &request);
    let (lost, unseen) = losses(workload.as_ref(), &request, image, |_| true);
    assert!(lost > 100, "{lost} words were lost");
    assert!(unseen.len() * 10 < lost * 4, "{} of {lost} losses were not seen", unseen.len());
}

/// Runs the programs, and loses each word that a transaction has changed whose stores are `of_interest`. Returns the
/// number of losses, and the addresses of those that the check does not see.
pub fn losses(
    workload: &dyn Workload,
    request: &Request,
    image: Image,
    of_interest: impl Fn(&[(Addr, u64)]) -> bool,
) -> (usize, Vec<Addr>) {
    let (mut lost, mut unseen) = (0, Vec::new());
    run(workload, request, image, |_, before, writes| {
        if of_interest(writes) {
            lose_each_word(before, writes, |at, image| {
                lost += 1;
                if workload.check(image).is_ok() {
                    unseen.push(at);
                }
            });
        }
    });
    (lost, unseen)
}

/// Replaces every `step`-th word of a range in turn, if it is not 0, and expects the check to end;
/// returns the numbers of corruptions that were seen, and that were made.
pub fn corrupt_each_word(
    workload: &dyn Workload,
    image: &mut Image,
    (range, step): (std::ops::Range<u64>, usize),
) -> (usize, usize) {
    let start = range.start;
    let words = range.step_by(8 * step).filter(|&at| image.load(Addr(at)) != 0);
    let words: Vec<u64> = words.collect();
    Check::of(image, |image| workload.check(image)).ends_on_any_word(words.into_iter(), &[start])
}

fn operations(build: Build, request: &Request) -> Vec<Op> {
    let (workload, mut image) = populated(build, request);
    let mut all = Vec::new();
    for thread in 0..request.threads {
        let mut program = workload.program(thread);
        let mut value = 0;
        loop {
            let op = program.next(std::mem::take(&mut value));
            all.push(op);
            match op {
                Op::Load { at } => value = image.load(at.addr),
                Op::Store { at, value } => drop(image.store(at.addr, value)),
                Op::Done => break,
                _ => {}
            }
        }
    }
    all
}

pub fn the_seed_decides(build: Build) {
    for (insert_percent, remove_percent) in [(40, 30), (100, 0), (0, 0)] {
        let config = WorkloadConfig { insert_percent, remove_percent, ..small() };
        let request = request(config, 2, 50);
        let first = operations(build, &request);
        assert_eq!(first, operations(build, &request));
        let other = operations(build, &Request { seed: 43, ..request });
        assert_ne!(first, other, "{insert_percent} % insertions");
    }
}

/// A pointer's origin is the load that returned the address of the block which it points into, so
/// that an out-of-order core waits for what a real one would wait for, and for nothing else.
pub fn pointers_remember_their_loads(build: Build) {
    let (known, chased) = origins(build, |loaded, at| (loaded..loaded + 256).contains(&at.0));
    let pointers = chased > 0;
    assert!(!pointers || chased > known, "{chased} accesses through pointers, {known} others");
}

/// Counts the accesses to addresses that a thread knows, and those to addresses that follow from a
/// loaded word, as `follows(word, address)` confirms.
pub fn origins(build: Build, follows: impl Fn(u64, Addr) -> bool) -> (u64, u64) {
    let config = WorkloadConfig { insert_percent: 40, remove_percent: 30, ..small() };
    let request = request(config, 1, 200);
    let (workload, mut image) = populated(build, &request);
    let mut program = workload.program(0);
    let mut loaded = vec![0];
    let (mut value, mut known, mut chased) = (0, 0, 0);
    loop {
        let op = program.next(std::mem::take(&mut value));
        let (Op::Load { at } | Op::Store { at, .. }) = op else {
            if op == Op::Done {
                break;
            }
            continue;
        };
        if at.origin == 0 {
            known += 1;
        } else {
            let word = loaded[at.origin as usize];
            assert!(follows(word, at.addr), "{op:?} does not follow {word:#x}");
            chased += 1;
        }
        match op {
            Op::Store { at, value } => drop(image.store(at.addr, value)),
            _ => {
                value = image.load(at.addr);
                loaded.push(value);
            }
        }
    }
    (known, chased)
}

/// Key, value and reason of the refusal of parameters that do not fit.
pub fn refusal(build: Build, request: &Request) -> (String, String, String) {
    match build(request) {
        Err(ConfigError::Inconsistent { key, value, why, .. }) => (key, value, why),
        Err(other) => panic!("an unexpected refusal: {other}"),
        Ok(_) => panic!("not refused: {request:?}"),
    }
}

/// Expects that of `of` independent draws `count` are of an event of this probability, to four standard deviations.
pub fn is_near(count: u32, of: u32, probability: f64, what: &str) {
    let deviation = (f64::from(of) * probability * (1.0 - probability)).sqrt();
    let off = (f64::from(count) - f64::from(of) * probability).abs();
    assert!(off <= 4.0 * deviation, "{what}: {count} of {of}, not {probability}");
}

pub fn parameters_that_do_not_fit_are_refused(build: Build) {
    let refused = |request: &Request| refusal(build, request);
    let large = WorkloadConfig { element_bytes: Size::kb(64), ..small() };
    let (key, value, why) = refused(&request(large, 8, 100));
    assert_eq!((key.as_str(), value.as_str()), ("workload.footprint_bytes", "64 KB"));
    assert!(why.contains("would do"), "{why}");
    // What would do, does.
    let enough = why.split("at least ").nth(1).and_then(|w| w.split(' ').next()).unwrap();
    let config = WorkloadConfig {
        element_bytes: Size::kb(64),
        footprint_bytes: Size(enough.parse().unwrap()),
        ..small()
    };
    assert!(build(&request(config, 8, 100)).is_ok());

    let tight = Request { end: Addr((1 << 20) + (32 << 10)), ..request(small(), 1, 10) };
    let (key, _, why) = refused(&tight);
    assert_eq!(key, "workload.footprint_bytes");
    assert!(why.contains("pm.capacity_bytes"), "{why}");
    // Sizes that no address can express are refused, not wrapped around.
    let (key, ..) = refused(&Request {
        config: WorkloadConfig {
            footprint_bytes: Size::gb(64),
            operations_per_transaction: 10_000,
            ..small()
        },
        end: Addr(1 << 20),
        ..request(small(), 2, u64::MAX)
    });
    assert_eq!(key, "workload.footprint_bytes");

    let shares = WorkloadConfig { insert_percent: 60, remove_percent: 50, ..small() };
    let (key, value, why) = refused(&request(shares, 1, 10));
    assert_eq!((key.as_str(), value.as_str()), ("workload.remove_percent", "50"));
    assert!(why.ends_with("at most 40 would do"), "{why}");
}

/// Elements of 64 KB, footprints of two elements, skews beyond reason and long transactions.
pub fn extremes_run(build: Build) {
    extremes_of(build, Size::kb(512));
}

/// The same with as large a footprint for the largest elements.
pub fn extremes_of(build: Build, footprint_bytes: Size) {
    let largest = WorkloadConfig {
        element_bytes: Size::kb(64),
        footprint_bytes,
        insert_percent: 30,
        remove_percent: 50,
        ..WorkloadConfig::default()
    };
    let tiny = WorkloadConfig {
        element_bytes: Size(8),
        distribution: Distribution::Zipf,
        zipf_theta: 5.0,
        insert_percent: 10,
        remove_percent: 80,
        operations_per_transaction: 200,
        ..small()
    };
    for base in [largest, tiny] {
        for sharing in [Sharing::Private, Sharing::Shared] {
            let request = request(WorkloadConfig { sharing, ..base.clone() }, 2, 11);
            let (workload, image) = populated(build, &request);
            let (image, counts) = run(workload.as_ref(), &request, image, |_, before, _| {
                assert_eq!(workload.check(before), Ok(()));
            });
            assert_eq!(workload.check(&image), Ok(()));
            assert_eq!(counts.transactions, 11);
        }
    }
}

/// Few elements more or less are a matter of chance.
const CHANCE_BYTES: u64 = 64 << 10;

/// The lines that are populated, and those that transactions add, are no more than the workload says beforehand.
pub fn extents_hold(build: Build) {
    let shared = WorkloadConfig { sharing: Sharing::Shared, ..small() };
    for config in [small(), shared].iter().flat_map(variants) {
        let request = request(config, 3, 300);
        let never_run = Request { transactions: 0, ..request.clone() };
        let extent = |request| build(request).expect("the parameters fit").extent();
        let initial = extent(&never_run).expect("it says so").block_bytes;
        let (workload, image) = populated(build, &request);
        let extent = workload.extent().expect("it says so");
        // Each part may end within a line.
        let expected = extent.fixed_bytes + initial + 3 * LINE_BYTES;
        let bytes = |image: &Image| image.nonzero_lines() * LINE_BYTES;
        assert!(bytes(&image) <= expected, "{:?}: {}, {extent:?}", request.config, bytes(&image));
        let (image, _) = run(workload.as_ref(), &request, image, |_, _, _| ());
        let allocated = (extent.block_bytes - initial) * u64::from(extent.allocated_percent) / 100;
        let expected = expected + allocated + CHANCE_BYTES;
        assert!(bytes(&image) <= expected, "{:?}: {}, {extent:?}", request.config, bytes(&image));
    }
}

/// Instantiates the contract for one workload.
macro_rules! contract {
    ($build:expr) => {
        $crate::testing::contract!($build;
            one_thread_leaves_sound_states
            private_threads_leave_sound_states
            sharing_threads_are_isolated
            lost_words_are_seen
            the_seed_decides
            pointers_remember_their_loads
            extremes_run
            extents_hold
            parameters_that_do_not_fit_are_refused
        );
    };
    ($build:expr; $($test:ident)*) => {$(
        #[test]
        fn $test() {
            $crate::testing::$test($build);
        }
    )*};
}
pub(super) use contract;

/// Operations of one transaction at the defaults, 8 threads: loads, stores, stores that change
/// their word, other instructions. Pinned, since every result on these workloads depends on them.
#[test]
fn the_size_of_a_transaction_is_as_documented() {
    let expected = [
        ("array", 16.0, 16.0, 4.0, 78.0),
        ("btree", 42.9, 25.7, 24.7, 114.3),
        ("chain-queue", 7.6, 7.4, 6.8, 50.0),
        ("ctree", 101.3, 17.0, 15.5, 156.6),
        ("echo", 73.7, 134.0, 125.0, 835.6),
        ("hash", 6.03, 13.0, 11.4, 62.6),
        ("queue", 8.6, 8.9, 8.3, 50.0),
        ("radix-tree", 18.3, 37.2, 15.1, 93.9),
        ("rbtree", 45.8, 21.6, 18.6, 108.9),
        ("sdg", 18.0, 10.3, 9.8, 88.8),
        ("smallbank", 28.4, 1.8, 1.8, 242.1),
        ("sps", 16.0, 16.0, 2.0, 78.0),
        ("ssca2", 20.9, 9.8, 9.3, 33.5),
        ("tatp", 7.93, 0.28, 0.28, 85.5),
        ("tpcc", 671.7, 108.5, 103.8, 1783.5),
        ("vector", 1.0, 9.0, 8.0, 45.0),
        ("ycsb", 4.95, 6.4, 4.0, 128.8),
    ];
    assert_eq!(registry().programs().count(), expected.len(), "every workload is pinned");
    let mut others = Vec::new();
    for (entry, (name, loads, stores, changes, instructions)) in registry().programs().zip(expected)
    {
        assert_eq!(entry.name, name);
        let request = request(WorkloadConfig::default(), 8, 1000);
        let (workload, image) = populated(entry.build, &request);
        let (_, counts) = run(workload.as_ref(), &request, image, |_, _, _| {});
        let found = [counts.loads, counts.stores, counts.changes, counts.instructions]
            .map(|count| count as f64 / counts.transactions as f64);
        let mut pairs = found.iter().zip([loads, stores, changes, instructions]);
        if pairs.any(|(one, expected)| (one - expected).abs() > 0.05 * expected) {
            others.push(format!("{name}: {found:.2?}"));
        }
    }
    assert!(others.is_empty(), "not as documented: {others:#?}");
}

#[test]
fn a_workload_is_found_by_its_name_only() {
    assert_eq!(registry().find_workload("hash").map(|e| e.group), Ok("micro"));
    let refusal = registry().find_workload("btre").map(|e| e.name).unwrap_err().to_string();
    assert!(refusal.contains("did you mean `btree`?"), "{refusal}");
}
