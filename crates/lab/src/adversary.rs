//! The adversary: seeded programs, machines and schedules that are legal and as unpleasant as can be.
//!
//! A schedule is a litmus program: a few threads that store to a few lines, share words under locks and
//! lines without, repeat values, store what is there already, fill buffers, and have lines evicted
//! between any two steps; on a machine and with parameters of the design drawn from small values; with
//! delays and orders in memory drawn, too. So whatever is found is a text that replays it.

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::litmus::{Level, Life, Litmus, Placement, Step, Variable, Word};
use graven_base::memory::spread;
use graven_machine::design::DesignInfo;

/// Values of the machine under stress; what is not drawn is the cramped machine's.
const MACHINE: &[(&str, &[&str])] = &[
    ("controller.write_queue_entries", &["4", "5", "16"]),
    ("controller.channels", &["1", "2", "4"]),
    ("controller.interleave", &["page", "line"]),
    ("controller.adr", &["true", "false"]),
    ("controller.bypass_cycles", &["1", "8", "40"]),
    ("pm.buffer_lines", &["0", "1", "2", "8"]),
    ("pm.banks", &["1", "2", "8"]),
    ("pm.write_ns", &["10.0", "150.0", "900.0"]),
    ("l1.bytes", &["128", "512", "1 KB"]),
    ("llc.bytes", &["8 KB", "64 KB"]),
    ("core.store_queue_entries", &["2", "8", "48"]),
    ("core.model", &["in-order", "out-of-order"]),
];

/// One schedule in so many has as few cores as its threads find places on, two on each.
const SHARED_CORES_ONE_IN: u32 = 3;

/// One schedule in so many has a second life; one of these in as many a third.
const LIVES_ONE_IN: u32 = 2;

/// First transaction numbers: ids of 8, 16 and 32 bits wrap around soon.
const FIRST_TRANSACTIONS: [u64; 5] = [0, 254, 65_534, 0, (1 << 32) - 2];

/// The program of a seed for a design.
pub fn schedule(design: &DesignInfo, seed: u64) -> Litmus {
    let mut generator = Generator {
        random: Pcg64::seed_from_u64(spread(seed, 0x6176)),
        fresh: 16,
        wide: false,
        streams: false,
    };
    let (mut litmus, variables) = generator.litmus(design, seed);
    // Drawn by themselves, so that all else of a seed's schedule is what it would be without them.
    generator.random = Pcg64::seed_from_u64(spread(seed, 0x6c69));
    while litmus.life_count() < 3 && generator.one_in(LIVES_ONE_IN) {
        let life = generator.life(&litmus, &variables);
        litmus.lives.push(life);
    }
    let threads = (0..litmus.life_count()).map(|life| litmus.threads_of(life).len()).max();
    litmus.settings.extend(shared_cores(seed, litmus.threads.len(), threads.unwrap_or(1)));
    litmus
}

/// Settings that put two threads on each core, in some schedules. They are drawn by themselves, so that all else of a
/// seed's schedule is what it would be without them.
fn shared_cores(seed: u64, first_threads: usize, threads: usize) -> Vec<(String, String)> {
    let mut random = Pcg64::seed_from_u64(spread(seed, 0x736d));
    if first_threads == 1 || random.random_range(0..SHARED_CORES_ONE_IN) > 0 {
        return Vec::new();
    }
    let cores = threads.div_ceil(2).to_string();
    vec![("core.count".into(), cores), ("core.threads_per_core".into(), "2".into())]
}

struct Generator {
    random: Pcg64,
    /// A value that nobody has stored yet.
    fresh: u64,
    /// Values lie anywhere in their words, so that stores change other bytes than those before.
    wide: bool,
    /// Some stores are non-temporal.
    streams: bool,
}

/// A variable and who may store to it.
struct Owned {
    variable: Variable,
    owner: Owner,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Thread(usize),
    Lock(usize),
}

impl Generator {
    fn one_in(&mut self, n: u32) -> bool {
        self.random.random_range(0..n) == 0
    }

    /// What the machine is used for after a recovery: other threads, on the same words. Transactions are counted from
    /// where they were counted from before, so that old records of the same numbers are there, or from elsewhere.
    fn life(&mut self, litmus: &Litmus, variables: &[Owned]) -> Life {
        let threads = *[1, 2, 2, 3, 4].choose(&mut self.random).expect("not empty");
        let first_transaction = if self.one_in(2) {
            litmus.first_transaction
        } else {
            *FIRST_TRANSACTIONS.choose(&mut self.random).expect("not empty")
        };
        Life {
            adversary: (!self.one_in(4)).then(|| self.random.random()),
            first_transaction,
            threads: (0..threads).map(|t| self.thread(t, variables)).collect(),
            ..Life::default()
        }
    }

    fn litmus(&mut self, design: &DesignInfo, seed: u64) -> (Litmus, Vec<Owned>) {
        let threads = *[1, 2, 2, 3, 4].choose(&mut self.random).expect("not empty");
        let locks = self.random.random_range(1..=2);
        let variables = self.variables(threads, locks);
        self.wide = self.one_in(3);
        self.streams = self.one_in(4);
        let programs = (0..threads).map(|t| self.thread(t, &variables)).collect();
        let mut settings = Vec::new();
        for (key, values) in MACHINE.iter().chain(design.stress) {
            if self.one_in(2) {
                let value = values.choose(&mut self.random).expect("a table has values");
                let together = key.split('+').zip(value.split('+'));
                settings.extend(together.map(|(key, value)| (key.into(), value.into())));
            }
        }
        let first = *FIRST_TRANSACTIONS.choose(&mut self.random).expect("not empty");
        let litmus = Litmus {
            title: format!("schedule {seed} of the adversary"),
            designs: vec![design.name.into()],
            settings,
            adversary: (!self.one_in(4)).then_some(seed),
            garbage: self.one_in(4).then_some(seed),
            first_transaction: first,
            variables: variables.iter().map(|v| v.variable.clone()).collect(),
            threads: programs,
            ..Litmus::default()
        };
        (litmus, variables)
    }

    /// Words in lines that several share, and sometimes an array that fills any buffer.
    fn variables(&mut self, threads: usize, locks: usize) -> Vec<Owned> {
        let mut out: Vec<Owned> = Vec::new();
        let count = self.random.random_range(2..=8);
        for i in 0..count {
            let place = match out.choose(&mut self.random) {
                Some(other) if !self.random.random_ratio(1, 3) && i < 6 => {
                    Placement::With(other.variable.name.clone())
                }
                _ => Placement::OwnLine,
            };
            out.push(self.owned(format!("V{i}"), None, place, threads, locks));
        }
        if self.one_in(3) {
            let words = self.random.random_range(9..=80);
            out.push(self.owned("W".into(), Some(words), Placement::OwnLine, threads, locks));
        }
        out
    }

    fn owned(
        &mut self,
        name: String,
        words: Option<u32>,
        place: Placement,
        threads: usize,
        locks: usize,
    ) -> Owned {
        let owner = if self.one_in(2) {
            Owner::Thread(self.random.random_range(0..threads))
        } else {
            Owner::Lock(self.random.random_range(0..locks))
        };
        let initial = self.random.random_range(0..3);
        Owned { variable: Variable { name, words, initial, place }, owner }
    }

    fn thread(&mut self, thread: usize, variables: &[Owned]) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..self.random.random_range(1..=5) {
            let mut locks: Vec<usize> = (0..2).filter(|_| self.one_in(2)).collect();
            // Locks that nothing is under are left out.
            locks.retain(|&l| variables.iter().any(|v| v.owner == Owner::Lock(l)));
            let may = |v: &&Owned| match v.owner {
                Owner::Thread(owner) => owner == thread,
                Owner::Lock(lock) => locks.contains(&lock),
            };
            let mine: Vec<&Owned> = variables.iter().filter(may).collect();
            steps.extend(locks.iter().map(|l| Step::Lock(format!("m{l}"))));
            steps.push(Step::Begin);
            self.stores(&mine, variables, &mut steps);
            steps.push(Step::Commit);
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
                steps.push(Step::Store(word, self.fresh));
            }
            return;
        }
        let many = self.one_in(4);
        let count = self.random.random_range(1..if many { 100 } else { 8 });
        let few: Vec<&Owned> = mine.sample(&mut self.random, 3).copied().collect();
        for _ in 0..count {
            let owned = *few.choose(&mut self.random).expect("not empty");
            let word = self.word(&owned.variable);
            let value = self.value();
            let non_temporal = self.streams && self.one_in(4);
            let store = if non_temporal { Step::StoreNonTemporal } else { Step::Store };
            steps.push(store(word, value));
            if self.one_in(if many { 12 } else { 3 }) {
                self.disturb(all, steps);
            }
        }
    }

    fn value(&mut self) -> u64 {
        let value = match self.random.random_range(0..4) {
            0 | 1 => self.random.random_range(0..3),
            _ => {
                self.fresh += 1;
                self.fresh
            }
        };
        if self.wide { value << (8 * self.random.random_range(0..7)) } else { value }
    }

    fn disturb(&mut self, all: &[Owned], steps: &mut Vec<Step>) {
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

    fn word(&mut self, variable: &Variable) -> Word {
        let index = variable.words.map(|n| self.random.random_range(0..n));
        Word { name: variable.name.clone(), index }
    }
}
