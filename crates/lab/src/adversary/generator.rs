//! Programs that are drawn from nothing, and parts of them.

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::draws::Draws;
use super::subject::Subject;
use crate::litmus::{Choices, Level, Life, Litmus, Placement, Step, Variable, Word};
use crate::ordered::{Choose, order_without_transactions, without_transactions};
use graven_base::config::Config;
use graven_base::memory::{LINE_BYTES, spread};
use graven_machine::design::{DesignInfo, Order};

/// Values of the machine under stress; what is not drawn is the cramped machine's.
const MACHINE: &[(&str, &[&str])] = &[
    ("controller.write_queue_entries", &["4", "5", "16"]),
    ("controller.channels", &["1", "2", "4"]),
    ("controller.interleave", &["page", "line"]),
    ("controller.adr", &["true", "false"]),
    ("controller.bypass_cycles", &["1", "8", "40"]),
    ("pm.buffer_lines", &["0", "1", "2", "8"]),
    ("pm.banks", &["1", "2", "8"]),
    ("pm.read_ns", &["20.0", "50.0", "700.0"]),
    ("pm.write_ns", &["10.0", "150.0", "900.0"]),
    ("l1.bytes", &["128", "512", "1 KB"]),
    ("llc.bytes", &["8 KB", "64 KB"]),
    ("core.store_queue_entries", &["2", "8", "48"]),
    ("core.model", &["in-order", "out-of-order"]),
];

/// One schedule in as many has as few cores as its threads find places on, two on each.
const SHARED_CORES_ONE_IN: u32 = 3;

/// One schedule in as many has a second life; one of these in as many a third.
const LIVES_ONE_IN: u32 = 2;

/// Bits of the numbers with which threads' first transactions begin, but for two: ids of these widths come round soon. Half of
/// the numbers that are drawn are of these widths, most of which hardware has, and half of any.
const FIRST_BITS: [u32; 8] = [1, 8, 16, 1, 32, 34, 46, 47];

/// All widths of first numbers.
const ALL_FIRST_BITS: RangeInclusive<u32> = 1..=47;

/// One schedule in so many has words that go from thread to thread by signals.
const SIGNALS_ONE_IN: u32 = 6;

/// Times that the parameters of a design which refuses a program are changed.
const REDRAWN_MAX: u64 = 5;

/// Stores of a transaction that any design has room for.
const SHORT_STORES: u32 = 60;

/// Most threads that words go to by signals.
const SIGNALLED_MAX: usize = 3;

/// PM of so much, in which variables lie far apart.
const LARGE_PM_GB: [u64; 3] = [1, 16, 300];

/// Hardware threads of a core.
const THREADS_PER_CORE: &str = "core.threads_per_core";

/// Cores of the cramped machine.
const CORES: usize = 8;

/// The size of the log region.
pub(super) const LOG_REGION: &str = "pm.log_region_bytes";

/// The log region for more threads than the cramped machine's is for.
pub(super) const LARGE_LOG_REGION: &str = "16 MB";

/// Stores outside transactions in a row.
const OUTSIDE_STORES_MAX: u32 = 3;

/// One schedule in so many has steps that depend on what is loaded; one of its stores in as many does.
const CONDITIONS_ONE_IN: u32 = 4;

/// The properties of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A few threads with a few transactions.
    Small,
    /// One to three threads with many small transactions.
    LongThreads,
    /// More threads than a handful, with one or two transactions each.
    ManyThreads,
    /// Transactions that are larger than any buffer.
    LargeTransactions,
    /// All words are handed from thread to thread.
    HandOvers,
}

/// From which values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Palette {
    /// 0 to 2, and counters.
    Few,
    /// The same, anywhere in their words.
    Shifted,
    /// Also all ones, single bits and bytes, small changes of the old value, and any value.
    Any,
}

/// The program of a seed for a design, drawn from nothing. `machine`: that of programs which name none.
pub fn schedule(machine: &Config, design: &'static DesignInfo, seed: u64, draws: &Draws) -> Litmus {
    Drawn::new(&Subject { design, machine, settings: &[] }, seed, draws).schedule()
}

/// A program, and what it takes to draw more of its kind.
#[derive(Clone)]
pub(super) struct Drawn {
    /// All but what words go from thread to thread by signals: a change of the rest could not keep that legal.
    pub litmus: Litmus,
    pub variables: Vec<Owned>,
    pub generator: Generator,
    /// The number of words that do, if any do.
    pub signals: Option<u64>,
    /// The order that the program is for, without transactions.
    order: Option<&'static Order>,
}

impl Drawn {
    /// From nothing.
    pub fn new(subject: &Subject<'_>, seed: u64, draws: &Draws) -> Drawn {
        let mut generator = Generator::new(draws, seed);
        let (mut litmus, mut variables) = generator.litmus(subject.design, seed);
        // What follows is drawn by itself, so that all else of a seed's schedule is what it would be without it.
        generator.random = Pcg64::seed_from_u64(spread(seed, 0x6c69));
        while (litmus.lives.len() as u64) < draws.lives && generator.one_in(LIVES_ONE_IN) {
            let life = generator.life(&litmus, &variables);
            litmus.lives.push(life);
        }
        generator.random = Pcg64::seed_from_u64(spread(seed, 0x6966));
        if generator.one_in(CONDITIONS_ONE_IN) {
            generator.make_conditional(&mut litmus, &variables);
        }
        generator.add_situations(&mut litmus, &mut variables, subject, seed);
        generator.random = Pcg64::seed_from_u64(spread(seed, 0x7369));
        let signals = generator.signals();
        let guarantee = subject.design.guarantee_in(&subject.config());
        let order = order_without_transactions(guarantee);
        let mut drawn = Drawn { litmus, variables, generator, signals, order };
        drawn.set_cores(seed);
        drawn.fit(subject, seed);
        drawn
    }

    /// The whole program.
    pub fn schedule(&self) -> Litmus {
        let mut litmus = self.litmus.clone();
        if let Some(seed) = self.signals {
            let mut generator = self.generator.clone();
            generator.random = Pcg64::seed_from_u64(seed);
            generator.hand_over_by_signals(&mut litmus, &self.variables);
        }
        if let Some(order) = self.order {
            let mut generator = self.generator.clone();
            generator.random = Pcg64::seed_from_u64(spread(generator.fresh, 0x6f72));
            let keeps_locks = generator.one_in(2);
            without_transactions(&mut litmus, order, keeps_locks, &mut generator);
        }
        litmus
    }

    /// Draws the design's parameters anew while the design refuses the program. In the end it has those of the machine, and at last
    /// no large transactions, either.
    pub fn fit(&mut self, subject: &Subject<'_>, seed: u64) {
        for time in 1..=REDRAWN_MAX {
            if !subject.refuses(&self.schedule()) {
                return;
            }
            self.litmus.settings.retain(|(key, _)| !is_stressed(subject.design, key));
            match REDRAWN_MAX - time {
                0 => self.shorten(),
                1 => {}
                _ => {
                    self.generator.random = Pcg64::seed_from_u64(spread(seed, 0x7265 + time));
                    let drawn = self.generator.some_settings(subject.design.stress);
                    self.litmus.settings.extend(drawn);
                }
            }
        }
    }

    /// Each transaction keeps its first stores only.
    fn shorten(&mut self) {
        for steps in self.litmus.lives.iter_mut().flat_map(|life| &mut life.threads) {
            let mut stores = 0;
            steps.retain(|step| {
                if *step == Step::Begin {
                    stores = 0;
                }
                stores += u32::from(step.is_transactional_store());
                !step.is_transactional_store() || stores <= SHORT_STORES
            });
        }
    }

    /// Draws how many cores there are anew.
    pub fn set_cores(&mut self, seed: u64) {
        let litmus = &mut self.litmus;
        litmus
            .settings
            .retain(|(key, _)| !key.starts_with("core.count") && key != THREADS_PER_CORE);
        let threads = litmus.lives.iter().map(|life| life.threads.len()).max();
        litmus.settings.extend(cores(seed, threads.unwrap_or(1)));
    }
}

/// Settings that put two threads on each core, in some schedules, and that give many threads cores enough. They are drawn
/// by themselves, so that all else of a seed's schedule is what it would be without them.
fn cores(seed: u64, threads: usize) -> Vec<(String, String)> {
    let mut random = Pcg64::seed_from_u64(spread(seed, 0x736d));
    if threads == 1 || random.random_range(0..SHARED_CORES_ONE_IN) > 0 {
        let count = ("core.count".into(), threads.to_string());
        return if threads > CORES { vec![count] } else { Vec::new() };
    }
    let cores = threads.div_ceil(2).to_string();
    vec![("core.count".into(), cores), (THREADS_PER_CORE.into(), "2".into())]
}

/// Returns true if a key is among a design's parameters under stress.
pub(super) fn is_stressed(design: &DesignInfo, key: &str) -> bool {
    design.stress.iter().any(|(keys, _)| keys.split('+').any(|of| of == key))
}

#[derive(Clone)]
pub(super) struct Generator {
    pub draws: Draws,
    pub random: Pcg64,
    /// A value that no thread has stored yet.
    fresh: u64,
    shape: Shape,
    palette: Palette,
    locks: usize,
    /// The value that was drawn last for a word.
    newest: BTreeMap<Word, u64>,
    /// Some stores are non-temporal.
    streams: bool,
}

/// A variable and who may store to it.
#[derive(Clone)]
pub(super) struct Owned {
    pub variable: Variable,
    pub owner: Owner,
}

/// Who may store to a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Thread(usize),
    Lock(usize),
}

impl Choose for Generator {
    fn one_of(&mut self, count: u32) -> u32 {
        self.random.random_range(0..count)
    }
}

impl Generator {
    /// Before anything of a seed's program is drawn.
    pub fn new(draws: &Draws, seed: u64) -> Generator {
        Generator {
            draws: *draws,
            random: Pcg64::seed_from_u64(spread(seed, 0x6176)),
            fresh: 16,
            shape: Shape::Small,
            palette: Palette::Few,
            locks: 1,
            newest: BTreeMap::new(),
            streams: false,
        }
    }

    pub fn one_in(&mut self, n: u32) -> bool {
        self.random.random_range(0..n) == 0
    }

    /// One of these, but no more than is allowed.
    pub fn up_to(&mut self, most: u64, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = (*range.start().min(&most), *range.end().min(&most));
        self.random.random_range(low as u32..=high as u32).into()
    }

    fn threads(&mut self) -> usize {
        let is_crowd = self.one_in(3);
        let most = self.draws.threads;
        let threads = match self.shape {
            Shape::Small => {
                (*[1, 2, 2, 3, 4].choose(&mut self.random).expect("not empty")).min(most)
            }
            Shape::LongThreads => self.up_to(most, 1..=3),
            Shape::ManyThreads if is_crowd => self.up_to(most, 5..=most.max(5)),
            Shape::ManyThreads => self.up_to(most, 5..=16),
            Shape::LargeTransactions => self.up_to(most, 1..=2),
            Shape::HandOvers => self.up_to(most, 2..=6),
        };
        threads as usize
    }

    fn transactions(&mut self) -> u64 {
        let most = self.draws.transactions;
        self.up_to(
            most,
            match self.shape {
                Shape::Small => 1..=5,
                Shape::LongThreads => 6..=most.max(6),
                Shape::ManyThreads | Shape::LargeTransactions => 1..=2,
                Shape::HandOvers => 2..=6,
            },
        )
    }

    /// Draws the use of the machine after a recovery: other threads, on the same words. Transactions are counted from
    /// where they were counted from before, so that the log has old records of the same numbers, or from elsewhere.
    pub fn life(&mut self, litmus: &Litmus, variables: &[Owned]) -> Life {
        let first_transaction = if self.one_in(2) {
            litmus.lives[0].first_transaction
        } else {
            self.first_transaction()
        };
        let threads = self.threads();
        Life {
            adversary: (!self.one_in(4)).then(|| Choices::Drawn(self.random.random())),
            first_transaction,
            threads: (0..threads).map(|t| self.thread(t, variables)).collect(),
            ..Life::default()
        }
    }

    fn litmus(&mut self, design: &DesignInfo, seed: u64) -> (Litmus, Vec<Owned>) {
        self.shape = match self.random.random_range(0..16) {
            0..10 => Shape::Small,
            10..12 => Shape::LongThreads,
            12 => Shape::ManyThreads,
            13 => Shape::LargeTransactions,
            _ => Shape::HandOvers,
        };
        let palettes = [Palette::Few, Palette::Shifted, Palette::Any];
        self.palette = *palettes.choose(&mut self.random).expect("not empty");
        let threads = self.threads();
        self.locks = match self.shape {
            Shape::Small => self.up_to(self.draws.locks, 1..=2),
            _ => self.up_to(self.draws.locks, 1..=self.draws.locks),
        } as usize;
        let mut settings = Vec::new();
        if self.shape == Shape::ManyThreads {
            settings.push((LOG_REGION.into(), LARGE_LOG_REGION.into()));
        }
        let sizes = LARGE_PM_GB.iter().filter(|&&gb| gb <= self.draws.pm_gb).collect::<Vec<_>>();
        let is_large = self.one_in(16) && !sizes.is_empty();
        let large_gb = is_large.then(|| **sizes.choose(&mut self.random).expect("not empty"));
        if let Some(gb) = large_gb {
            settings.push(("pm.capacity_bytes".into(), format!("{gb} GB")));
        }
        let variables = self.variables(threads, large_gb);
        self.streams = self.one_in(4);
        let programs = (0..threads).map(|t| self.thread(t, &variables)).collect();
        settings.extend(self.some_settings(MACHINE.iter().chain(design.stress)));
        let first = self.first_transaction();
        let garbage = self.one_in(4) && self.shape != Shape::ManyThreads;
        let life = Life {
            adversary: (!self.one_in(4)).then_some(Choices::Drawn(seed)),
            first_transaction: first,
            threads: programs,
            ..Life::default()
        };
        let litmus = Litmus {
            title: format!("schedule {seed} of the adversary"),
            designs: vec![design.name.into()],
            settings,
            garbage: garbage.then_some(seed),
            variables: variables.iter().map(|v| v.variable.clone()).collect(),
            lives: vec![life],
            ..Litmus::default()
        };
        (litmus, variables)
    }

    /// Words in lines that several share, and sometimes an array that fills any buffer.
    fn variables(&mut self, threads: usize, large_gb: Option<u64>) -> Vec<Owned> {
        let mut out: Vec<Owned> = Vec::new();
        let count = self.up_to(self.draws.variables, 2..=self.draws.variables);
        for i in 0..count {
            let place = match out.choose(&mut self.random) {
                Some(other) if !self.random.random_ratio(1, 3) && i < 6 => {
                    Placement::With(other.variable.name.clone())
                }
                _ => self.own_line(large_gb),
            };
            out.push(self.owned(format!("V{i}"), None, place, threads));
        }
        let has_array = self.one_in(3);
        let words = match self.shape {
            Shape::LargeTransactions => {
                Some(self.random.random_range(80..=self.draws.array_words as u32))
            }
            _ if has_array => Some(self.random.random_range(9..=80)),
            _ => None,
        };
        if words.is_some() {
            let place = self.own_line(large_gb);
            out.push(self.owned("W".into(), words, place, threads));
        }
        out
    }

    /// The next line that is free, or one anywhere in a large PM, so that all bits of addresses are used.
    fn own_line(&mut self, large_gb: Option<u64>) -> Placement {
        let Some(gb) = large_gb else { return Placement::OwnLine };
        // What is not data (a tenth) is behind the data.
        let data_bytes = gb * (900 << 20);
        Placement::At(self.random.random_range(0..data_bytes / LINE_BYTES) * LINE_BYTES)
    }

    fn owned(
        &mut self,
        name: String,
        words: Option<u32>,
        place: Placement,
        threads: usize,
    ) -> Owned {
        let owner = if self.shape != Shape::HandOvers && self.one_in(2) {
            Owner::Thread(self.random.random_range(0..threads))
        } else {
            Owner::Lock(self.random.random_range(0..self.locks))
        };
        let is_any = self.one_in(2);
        let initial = match self.palette {
            Palette::Any if is_any => self.random.random(),
            _ => self.random.random_range(0..3),
        } & self.value_mask();
        Owned { variable: Variable { name, words, initial, place }, owner }
    }

    pub fn thread(&mut self, thread: usize, variables: &[Owned]) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..self.transactions() {
            let one_in = if self.shape == Shape::HandOvers { 1 + self.locks as u32 / 2 } else { 2 };
            let mut locks: Vec<usize> = (0..self.locks).filter(|_| self.one_in(one_in)).collect();
            // Locks that nothing is under are left out.
            locks.retain(|&l| variables.iter().any(|v| v.owner == Owner::Lock(l)));
            let may = |v: &&Owned| match v.owner {
                Owner::Thread(owner) => owner == thread,
                Owner::Lock(lock) => locks.contains(&lock),
            };
            let mine: Vec<&Owned> = variables.iter().filter(may).collect();
            steps.extend(locks.iter().map(|l| Step::Lock(format!("m{l}"))));
            self.stores_outside(&mine, variables, &mut steps);
            steps.push(Step::Begin);
            self.stores(&mine, variables, &mut steps);
            steps.push(Step::Commit);
            self.stores_outside(&mine, variables, &mut steps);
            // What is under way is met by evictions before the next transaction.
            self.disturb(variables, &mut steps);
            steps.extend(locks.iter().rev().map(|l| Step::Unlock(format!("m{l}"))));
            if self.one_in(3) {
                steps.push(Step::Compute(self.random.random_range(1..3000)));
            }
        }
        steps
    }

    fn stores(&mut self, mine: &[&Owned], all: &[Owned], steps: &mut Vec<Step>) {
        if mine.is_empty() || self.one_in(10) {
            return;
        }
        let array = mine.iter().find_map(|o| o.variable.words.map(|n| (&o.variable, n)));
        if let Some((variable, words)) = array
            && self.one_in(3)
        {
            for index in 0..words {
                let word = Word { name: variable.name.clone(), index: Some(index) };
                self.fresh += 1;
                let value = if self.palette == Palette::Any {
                    self.value(&word)
                } else {
                    self.fresh & self.value_mask()
                };
                steps.push(Step::Store(word, value));
            }
            return;
        }
        let many = match self.shape {
            Shape::Small => self.one_in(4),
            Shape::LargeTransactions => true,
            Shape::LongThreads | Shape::ManyThreads | Shape::HandOvers => self.one_in(40),
        };
        let most = self.draws.stores;
        let count = match self.shape {
            Shape::LargeTransactions => self.up_to(most, 50..=most.max(50)),
            Shape::LongThreads | Shape::ManyThreads if !many => self.up_to(most, 0..=3),
            _ => self.up_to(most, 1..=if many { 99 } else { 7 }),
        };
        let few: Vec<&Owned> = mine.sample(&mut self.random, 3).copied().collect();
        for _ in 0..count {
            let owned = *few.choose(&mut self.random).expect("not empty");
            let word = self.word(&owned.variable);
            let value = self.value(&word);
            let non_temporal = self.streams && self.one_in(4);
            let store = if non_temporal { Step::StoreNonTemporal } else { Step::Store };
            steps.push(store(word, value));
            if self.one_in(if many { 12 } else { 3 }) {
                self.disturb(all, steps);
            }
        }
    }

    /// Stores outside transactions, if such are drawn.
    fn stores_outside(&mut self, mine: &[&Owned], all: &[Owned], steps: &mut Vec<Step>) {
        let percent = self.draws.outside as u32;
        if percent == 0 || mine.is_empty() || !self.random.random_ratio(percent, 100) {
            return;
        }
        for _ in 0..self.random.random_range(1..=OUTSIDE_STORES_MAX) {
            let owned = *mine.choose(&mut self.random).expect("not empty");
            let word = self.word(&owned.variable);
            let value = self.value(&word);
            let store = if self.streams { Step::StoreNonTemporal } else { Step::Store };
            steps.push(Step::Outside(Box::new(store(word, value))));
            self.disturb(all, steps);
        }
    }

    pub fn value(&mut self, word: &Word) -> u64 {
        let small = match self.random.random_range(0..4) {
            0 | 1 => self.random.random_range(0..3),
            _ => {
                self.fresh += 1;
                self.fresh
            }
        };
        let bit = 1 << self.random.random_range(0..64);
        let before = self.newest.get(word).copied().unwrap_or(0);
        let value = match self.palette {
            Palette::Few => small,
            Palette::Shifted => small << (8 * self.random.random_range(0..7)),
            Palette::Any => match self.random.random_range(0..10) {
                0..3 => small,
                3 => u64::MAX,
                4 => bit,
                5 => self.random.random_range(1..=255) << (8 * self.random.random_range(0..8)),
                6 | 7 => before ^ bit,
                8 => before,
                _ => self.random.random(),
            },
        };
        let value = value & self.value_mask();
        self.newest.insert(word.clone(), value);
        value
    }

    pub fn disturb(&mut self, all: &[Owned], steps: &mut Vec<Step>) {
        let variable = &all.choose(&mut self.random).expect("not empty").variable;
        let word = self.word(variable);
        steps.push(match self.random.random_range(0..12) {
            0..4 => Step::Evict(word, Level::Llc),
            4 => Step::Evict(word, Level::L1),
            5 => Step::Evict(word, Level::L2),
            6 => Step::WriteBack(word),
            7 => Step::Maintenance,
            8 => Step::Load(word),
            9 => Step::Compute(self.random.random_range(1..600)),
            _ => return,
        });
    }

    fn value_mask(&self) -> u64 {
        u64::MAX >> (64 - self.draws.value_bits)
    }

    pub fn first_transaction(&mut self) -> u64 {
        let bits = match self.one_in(2) {
            true => *FIRST_BITS.choose(&mut self.random).expect("not empty"),
            false => self.random.random_range(ALL_FIRST_BITS),
        };
        (1 << bits) - 2
    }

    /// Values of some of the tables: of each with a chance of a half.
    fn some_settings<'t>(
        &mut self,
        tables: impl IntoIterator<Item = &'t (&'t str, &'t [&'t str])>,
    ) -> Vec<(String, String)> {
        let mut drawn = Vec::new();
        for (key, values) in tables {
            if self.one_in(2) {
                drawn.extend(self.setting(key, values));
            }
        }
        drawn
    }

    /// One of a table's values; keys that are joined by `+` have one each.
    pub fn setting(&mut self, key: &str, values: &[&str]) -> Vec<(String, String)> {
        let value = values.choose(&mut self.random).expect("a table has values");
        let together = key.split('+').zip(value.split('+'));
        together.map(|(key, value)| (key.into(), value.into())).collect()
    }

    /// Any of the machine's and the design's settings, anew.
    pub fn any_setting(&mut self, design: &DesignInfo) -> Vec<(String, String)> {
        let tables: Vec<_> = MACHINE.iter().chain(design.stress).collect();
        let (key, values) = tables.choose(&mut self.random).expect("not empty");
        self.setting(key, values)
    }

    /// The number of words that go from thread to thread by signals, if any do.
    pub fn signals(&mut self) -> Option<u64> {
        self.one_in(SIGNALS_ONE_IN).then(|| self.random.random())
    }

    /// When a thread has ended, another one continues with its words, and when that has ended a third.
    fn hand_over_by_signals(&mut self, litmus: &mut Litmus, variables: &[Owned]) {
        let life = self.random.random_range(0..litmus.lives.len());
        let count = litmus.lives[life].threads.len();
        let mut chain: Vec<usize> = (0..count).collect();
        chain.shuffle(&mut self.random);
        chain.truncate(1 + SIGNALLED_MAX);
        let first = chain[0];
        let words: Vec<&Owned> =
            variables.iter().filter(|v| v.owner == Owner::Thread(first)).collect();
        if words.is_empty() {
            return;
        }
        for (number, pair) in chain.windows(2).enumerate() {
            let (from, to) = (pair[0], pair[1]);
            let signal = format!("h{number}");
            let mut steps = vec![Step::Await(signal.clone())];
            for _ in 0..self.up_to(self.draws.transactions, 1..=3) {
                steps.push(Step::Begin);
                self.stores(&words, variables, &mut steps);
                steps.push(Step::Commit);
                self.disturb(variables, &mut steps);
            }
            let threads = &mut litmus.lives[life].threads;
            threads[from].push(Step::Signal(signal));
            threads[to].extend(steps);
        }
    }

    /// Some stores depend on what another word holds.
    fn make_conditional(&mut self, litmus: &mut Litmus, variables: &[Owned]) {
        for step in litmus.lives.iter_mut().flat_map(|life| life.threads.iter_mut().flatten()) {
            if matches!(step, Step::Store(..) | Step::StoreNonTemporal(..))
                && self.one_in(CONDITIONS_ONE_IN)
            {
                *step = self.conditional(step.clone(), variables);
            }
        }
    }

    /// A step that depends on what a word holds: what it held at first, or one of the values that are stored.
    pub fn conditional(&mut self, step: Step, variables: &[Owned]) -> Step {
        let variable = &variables.choose(&mut self.random).expect("not empty").variable;
        let word = self.word(variable);
        let newest = self.newest.get(&word).copied();
        let value = if self.one_in(2) { None } else { newest };
        Step::If(word, value.unwrap_or(variable.initial), Box::new(step))
    }

    pub fn word(&mut self, variable: &Variable) -> Word {
        let index = variable.words.map(|n| self.random.random_range(0..n));
        Word { name: variable.name.clone(), index }
    }
}
