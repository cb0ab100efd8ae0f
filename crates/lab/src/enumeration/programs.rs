//! The programs within a bound, up to symmetry.
//!
//! A program is, for each thread, its transactions, and of each the words that it stores to, in order. Every store stores
//! another value. A word to which several threads store is under the one lock that there is: a transaction that stores to
//! such a word holds the lock from before its beginning to after its commit, so words are handed over.
//!
//! **Symmetry.** Threads are alike, and so are the words of a line, and lines with equally many words: a protocol
//! knows numbers and addresses, and does the same whatever they are. Of the programs that become each other when threads,
//! words of a line, or such lines change places, the least in the order of their texts stands for all. What this leaves out
//! is a protocol that treats a certain thread, word or line otherwise: the test `what_symmetry_leaves_out_is_violated_too`
//! enumerates smaller bounds with and without, on sound designs and mutants.

use itertools::Itertools;

use super::bound::Bound;
use crate::litmus::{Life, Litmus, Placement, Step, Variable, Word};
use graven_base::memory::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

/// Values that stores store, in turn: small and large, single bits and bytes, all ones.
const VALUES: [u64; 12] = [
    0x1,
    u64::MAX,
    0x100,
    1 << 63,
    0xff00_0000_0000_0000,
    0x2,
    0x0101_0101_0101_0101,
    0x8000_0000,
    0x7fff_ffff_ffff_ffff,
    0x3,
    0xdead_beef_cafe_f00d,
    0x1_0000_0000,
];

/// Number of each thread's first transaction: ids of 8 and of 16 bits wrap around within a thread.
const FIRST_TRANSACTION: u64 = 65_534;

/// The name of the lock.
const LOCK: &str = "handed";

/// The words that a transaction stores to, in order.
type Transaction = Vec<u8>;

/// For each thread, its transactions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Program {
    pub(super) threads: Vec<Vec<Transaction>>,
}

/// The programs within a bound; of those that are symmetrical one, unless all are wanted.
pub(super) fn programs(bound: &Bound, up_to_symmetry: bool) -> Vec<Program> {
    let words = bound.words_in_all() as u8;
    let transactions: Vec<Transaction> = (0..=bound.stores)
        .flat_map(|stores| match stores {
            0 => vec![Vec::new()],
            _ => (0..stores).map(|_| 0..words).multi_cartesian_product().collect(),
        })
        .collect();
    let renamings = renamings(bound);
    let mut programs = Vec::new();
    for count in 1..=bound.transactions {
        for shares in shares(count, bound.threads) {
            let choices = (0..count).map(|_| transactions.iter());
            for chosen in choices.multi_cartesian_product() {
                let mut chosen = chosen.into_iter().cloned();
                let threads =
                    shares.iter().map(|&n| chosen.by_ref().take(n as usize).collect()).collect();
                let program = Program { threads };
                if !bound.hand_overs && program.has_shared_words() {
                    continue;
                }
                if !up_to_symmetry || program.is_least(&renamings) {
                    programs.push(program);
                }
            }
        }
    }
    programs
}

/// The ways in which transactions are dealt to threads, each of which gets one at least; fewer for later threads, since threads
/// are alike.
fn shares(transactions: u32, threads: u32) -> Vec<Vec<u32>> {
    let all = (1..=threads.min(transactions))
        .flat_map(|n| (0..n).map(|_| 1..=transactions).multi_cartesian_product());
    let dealt = all.filter(|shares| shares.iter().sum::<u32>() == transactions);
    dealt.filter(|shares| shares.is_sorted_by(|a, b| a >= b)).collect()
}

/// All that words may be renamed to: within their lines, and with lines that have equally many.
fn renamings(bound: &Bound) -> Vec<Vec<u8>> {
    let firsts: Vec<u8> = bound
        .words
        .iter()
        .scan(0u8, |next, &words| {
            let first = *next;
            *next += words as u8;
            Some(first)
        })
        .collect();
    let lines = bound.words.len();
    let mut out = Vec::new();
    for order in (0..lines).permutations(lines) {
        if order.iter().enumerate().any(|(from, &to)| bound.words[from] != bound.words[to]) {
            continue;
        }
        let within = bound.words.iter().map(|&n| (0..n as u8).permutations(n as usize));
        for places in within.map(Itertools::collect_vec).multi_cartesian_product() {
            let renamed = places.iter().enumerate().flat_map(|(line, places)| {
                let first = firsts[order[line]];
                places.iter().map(move |&place| first + place)
            });
            out.push(renamed.collect());
        }
    }
    out
}

impl Program {
    fn has_shared_words(&self) -> bool {
        (0..8).any(|word| self.is_shared(word))
    }

    /// Tells whether several threads store to a word.
    fn is_shared(&self, word: u8) -> bool {
        let stores = |thread: &&Vec<Transaction>| thread.iter().flatten().any(|&w| w == word);
        self.threads.iter().filter(stores).count() > 1
    }

    /// Tells whether no renaming of words, with threads in any order, gives a lesser program.
    fn is_least(&self, renamings: &[Vec<u8>]) -> bool {
        let lesser = |renaming: &Vec<u8>| {
            let renamed = |thread: &Vec<Transaction>| -> Vec<Transaction> {
                let of = |tx: &Transaction| tx.iter().map(|&w| renaming[w as usize]).collect();
                thread.iter().map(of).collect()
            };
            let mut threads: Vec<Vec<Transaction>> = self.threads.iter().map(renamed).collect();
            threads.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            threads < self.threads
        };
        !renamings.iter().any(lesser)
    }

    /// As a litmus program; `life`: that of the second life.
    pub(super) fn litmus(&self, bound: &Bound, life: Option<&Program>) -> Litmus {
        let variables = names(bound).into_iter().map(|(name, offset)| Variable {
            name,
            words: None,
            initial: 0,
            place: Placement::At(offset),
        });
        let mut values = VALUES.into_iter().cycle();
        let lives = [self].into_iter().chain(life).map(|program| Life {
            threads: program.steps(bound, &mut values),
            first_transaction: FIRST_TRANSACTION,
            ..Life::default()
        });
        Litmus { variables: variables.collect(), lives: lives.collect(), ..Litmus::default() }
    }

    fn steps(&self, bound: &Bound, values: &mut impl Iterator<Item = u64>) -> Vec<Vec<Step>> {
        let names = names(bound);
        let of_thread = |thread: &Vec<Transaction>| {
            let mut steps = Vec::new();
            for transaction in thread {
                let is_locked = transaction.iter().any(|&word| self.is_shared(word));
                steps.extend(is_locked.then(|| Step::Lock(LOCK.into())));
                steps.push(Step::Begin);
                for &word in transaction {
                    let word = Word { name: names[word as usize].0.clone(), index: None };
                    steps.push(Step::Store(word, values.next().expect("they come again")));
                }
                steps.push(Step::Commit);
                steps.extend(is_locked.then(|| Step::Unlock(LOCK.into())));
            }
            steps
        };
        self.threads.iter().map(of_thread).collect()
    }
}

/// Names of the words, `A0`, `A1`, `B0`, and where they lie: lines side by side, and in each line its words from both
/// ends inwards.
fn names(bound: &Bound) -> Vec<(String, u64)> {
    let lines = bound.words.iter().zip('A'..).zip((0..).step_by(LINE_BYTES as usize));
    let word = |line: char, start: u64, word: u64| {
        let last = WORDS_PER_LINE as u64 - 1;
        let place = if word.is_multiple_of(2) { word / 2 } else { last - word / 2 };
        (format!("{line}{word}"), start + place * WORD_BYTES)
    };
    lines
        .flat_map(|((&words, line), start)| (0..words.into()).map(move |w| word(line, start, w)))
        .collect()
}

/// The programs of the second life. Each has as many threads as a machine of the bound's, of which some may do nothing.
pub(super) fn lives(bound: &Bound) -> Vec<Program> {
    let words = bound.words_in_all() as u8;
    let transactions: Vec<Transaction> = (1..=bound.life.stores)
        .flat_map(|n| (0..n).map(|_| 0..words).multi_cartesian_product())
        .collect();
    let padded = |chosen: Vec<&Transaction>| {
        let mut threads: Vec<Vec<Transaction>> =
            chosen.into_iter().map(|tx| vec![tx.clone()]).collect();
        threads.resize(bound.threads as usize, Vec::new());
        Program { threads }
    };
    (1..=bound.life.transactions)
        .flat_map(|n| (0..n).map(|_| transactions.iter()).multi_cartesian_product())
        .map(padded)
        .filter(|program| !program.has_shared_words())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn small() -> Bound {
        Bound { transactions: 2, ..Bound::default() }
    }

    #[test]
    fn transactions_are_dealt_to_threads_in_every_way() {
        assert_eq!(shares(3, 2), [vec![3], vec![2, 1]]);
        assert_eq!(shares(4, 4), [vec![4], vec![2, 2], vec![3, 1], vec![2, 1, 1], vec![1; 4]]);
    }

    #[test]
    fn words_lie_at_both_ends_of_their_lines() {
        let bound = Bound { words: vec![2, 3], ..Bound::default() };
        let places = names(&bound).into_iter().map(|(name, at)| format!("{name} {at}"));
        let places: Vec<String> = places.collect();
        assert_eq!(places, ["A0 0", "A1 56", "B0 64", "B1 120", "B2 72"]);
    }

    #[test]
    fn words_change_places_within_lines_and_lines_of_one_size_do() {
        assert_eq!(renamings(&Bound::default()).len(), 8);
        assert_eq!(renamings(&Bound { words: vec![2, 1], ..Bound::default() }).len(), 2);
        assert_eq!(renamings(&Bound { words: vec![3, 3], ..Bound::default() }).len(), 72);
    }

    /// Each program is there in one of its forms, and in no two.
    #[test]
    fn of_symmetrical_programs_there_is_one() {
        let bound = small();
        let renamings = renamings(&bound);
        let all = |program: &Program| -> BTreeSet<Program> {
            let forms = renamings.iter().map(|renaming| {
                let renamed = |tx: &Transaction| tx.iter().map(|&w| renaming[w as usize]).collect();
                let thread = |t: &Vec<Transaction>| t.iter().map(renamed).collect();
                let mut threads: Vec<Vec<Transaction>> =
                    program.threads.iter().map(thread).collect();
                threads.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
                Program { threads }
            });
            forms.collect()
        };
        let least: Vec<Program> = programs(&bound, true);
        let covered: Vec<Program> = least.iter().flat_map(&all).collect();
        let set: BTreeSet<&Program> = covered.iter().collect();
        assert_eq!(set.len(), covered.len());
        let unpruned = programs(&bound, false);
        for program in &unpruned {
            let mut sorted = program.clone();
            sorted.threads.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            assert!(set.contains(&sorted), "{program:?}");
        }
        assert!(least.len() * 5 < unpruned.len());
    }

    #[test]
    fn programs_are_isolated_and_their_stores_are_all_different() {
        for program in programs(&small(), true) {
            let litmus = program.litmus(&small(), lives(&small()).first());
            let mut values = BTreeSet::new();
            for step in litmus.steps() {
                if let Step::Store(_, value) = step {
                    assert!(values.insert(*value), "{litmus}");
                }
            }
        }
    }

    /// Numbers of 2, 8 and 16 bits end between two transactions of a thread.
    #[test]
    fn ids_come_round_within_a_thread() {
        let bound = Bound::default();
        for litmus in programs(&bound, true).iter().map(|program| program.litmus(&bound, None)) {
            let first = litmus.lives[0].first_transaction;
            for bits in [2, 8, 16] {
                assert!((first >> bits) < (first + u64::from(bound.transactions) - 1) >> bits);
            }
        }
    }

    #[test]
    fn without_hand_overs_no_word_is_shared() {
        let bound = Bound { hand_overs: false, ..small() };
        assert!(programs(&bound, true).iter().all(|p| !p.has_shared_words()));
        assert!(programs(&small(), true).iter().any(Program::has_shared_words));
    }

    #[test]
    fn a_second_life_has_every_store() {
        assert_eq!(lives(&Bound::default()).len(), 4);
        let two = Bound { life: super::super::LifeBound { transactions: 2, stores: 1 }, ..small() };
        assert_eq!(lives(&two).len(), 4 + 12);
    }
}
