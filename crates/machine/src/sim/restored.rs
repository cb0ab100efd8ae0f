//! A program that stores the words of its transactions several times (`workload.stores_per_word`).
//!
//! Real programs do: fields are set one after the other in steps, counts and sizes change with each step, a header is written
//! before and after what it is about. The last store of a word has the program's value, those before it have another in its
//! lowest bits. Between two stores of a word there are `workload.store_distance` others, while the transaction has them;
//! stores that are left follow before its end, word by word, pass by pass. A program that loads a word reads its own value.

use std::collections::VecDeque;

use graven_base::memory::Addr;
use rustc_hash::FxHashSet;

use crate::program::{Op, Program, Ptr};

/// A word that is to be stored again.
struct Due {
    at: Ptr,
    /// The program's value.
    value: u64,
    /// The number of its further stores.
    left: u32,
    /// The number of the store that it follows.
    after: u64,
}

/// A program whose transactions store each word several times.
pub struct Restored {
    program: Box<dyn Program>,
    /// Stores of a word after its first.
    more: u32,
    distance: u64,
    is_open: bool,
    /// Stores so far.
    stores: u64,
    /// The next first.
    due: VecDeque<Due>,
    /// Words of the open transaction that were stored.
    words: FxHashSet<Addr>,
    decided: VecDeque<Op>,
}

impl Restored {
    /// The program as it is, or with more stores.
    pub fn of(program: Box<dyn Program>, stores_per_word: u32, distance: u32) -> Box<dyn Program> {
        if stores_per_word == 1 {
            return program;
        }
        Box::new(Restored {
            program,
            more: stores_per_word - 1,
            distance: distance.into(),
            is_open: false,
            stores: 0,
            due: VecDeque::new(),
            words: FxHashSet::default(),
            decided: VecDeque::new(),
        })
    }

    /// Stores a word that has `left` more stores.
    fn store(&mut self, at: Ptr, value: u64, left: u32) {
        self.stores += 1;
        self.decided.push_back(Op::Store { at, value: value ^ u64::from(left) });
        if left > 0 {
            let after = self.stores + self.distance;
            self.due.push_back(Due { at, value, left, after });
        }
    }

    /// Stores again what is due first.
    fn store_next(&mut self) {
        if let Some(Due { at, value, left, .. }) = self.due.pop_front() {
            self.store(at, value, left - 1);
        }
    }

    /// Takes a word out of what is due.
    fn take(&mut self, addr: Addr) -> Option<Due> {
        let place = self.due.iter().position(|due| due.at.addr == addr)?;
        self.due.remove(place)
    }

    /// Decides the program's next operation, with the stores that come before it and after it.
    fn decide(&mut self, op: Op) {
        match op {
            Op::TxBegin => {
                self.is_open = true;
                self.words.clear();
            }
            Op::Store { at, value } if self.is_open => {
                let left = match self.take(at.addr) {
                    Some(due) => due.left - 1,
                    None if self.words.insert(at.addr) => self.more,
                    None => 0,
                };
                self.store(at, value, left);
                while self.due.front().is_some_and(|due| due.after <= self.stores) {
                    self.store_next();
                }
                return;
            }
            Op::StoreNonTemporal { at, .. } => _ = self.take(at.addr),
            Op::Load { at } => {
                while let Some(Due { at, value, left, .. }) = self.take(at.addr) {
                    self.store(at, value, left - 1);
                }
            }
            Op::Compute { .. } | Op::Store { .. } | Op::Lock { .. } => {}
            // A transaction ends, others may see it, or somebody looks at memory.
            _ => {
                while !self.due.is_empty() {
                    self.store_next();
                }
                self.is_open &= op != Op::TxEnd;
            }
        }
        self.decided.push_back(op);
    }
}

impl Program for Restored {
    fn next(&mut self, value: u64) -> Op {
        if self.decided.is_empty() {
            // The last operation was the program's: a load of its own, or nothing whose value it takes.
            let op = self.program.next(value);
            self.decide(op);
        }
        self.decided.pop_front().expect("one operation at least was decided")
    }

    fn step(&self) -> Option<usize> {
        self.program.step()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(word: u64) -> Ptr {
        Ptr::known(Addr(8 * word))
    }

    /// A program of these operations.
    struct Script(VecDeque<Op>);

    impl Program for Script {
        fn next(&mut self, _: u64) -> Op {
            self.0.pop_front().unwrap_or(Op::Done)
        }
    }

    /// Returns the executed stores and loads, as words and values.
    fn executed(ops: &[Op], stores_per_word: u32, distance: u32) -> Vec<(u64, u64)> {
        let inner = Script(ops.iter().copied().collect());
        let mut program = Restored::of(Box::new(inner), stores_per_word, distance);
        let mut found = Vec::new();
        loop {
            match program.next(0) {
                Op::Done => return found,
                Op::Store { at, value } => found.push((at.addr.0 / 8, value)),
                Op::Load { at } => found.push((at.addr.0 / 8, u64::MAX)),
                _ => {}
            }
        }
    }

    fn transaction(words: u64) -> Vec<Op> {
        let store = |word| Op::Store { at: at(word), value: 100 * word };
        [Op::TxBegin].into_iter().chain((1..=words).map(store)).chain([Op::TxEnd]).collect()
    }

    #[test]
    fn one_store_per_word_is_the_program_as_it_is() {
        assert_eq!(executed(&transaction(2), 1, 0), [(1, 100), (2, 200)]);
    }

    #[test]
    fn a_word_is_stored_again_at_its_distance_and_has_its_value_last() {
        let at_once = executed(&transaction(2), 3, 0);
        let (one, two) = ([(1, 100 ^ 2), (1, 100 ^ 1), (1, 100)], [200 ^ 2, 200 ^ 1, 200]);
        assert_eq!(at_once, [one, two.map(|value| (2, value))].concat());
        let apart = executed(&transaction(4), 2, 1);
        let words: Vec<u64> = apart.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, [1, 2, 1, 2, 3, 4, 3, 4]);
    }

    #[test]
    fn what_is_left_follows_before_the_end_pass_by_pass() {
        let words: Vec<u64> =
            executed(&transaction(3), 3, 100).iter().map(|(word, _)| *word).collect();
        assert_eq!(words, [1, 2, 3, 1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn a_program_that_loads_a_word_finds_its_value() {
        let ops = [
            Op::TxBegin,
            Op::Store { at: at(1), value: 8 },
            Op::Load { at: at(1) },
            Op::Store { at: at(1), value: 16 },
            Op::TxEnd,
        ];
        assert_eq!(executed(&ops, 3, 9), [(1, 8 ^ 2), (1, 8 ^ 1), (1, 8), (1, u64::MAX), (1, 16)]);
    }

    /// Three stores in all, the program's own among them.
    #[test]
    fn stores_of_the_program_count() {
        let ops = [
            Op::TxBegin,
            Op::Store { at: at(1), value: 8 },
            Op::Store { at: at(1), value: 16 },
            Op::TxEnd,
            Op::Store { at: at(1), value: 32 },
        ];
        assert_eq!(executed(&ops, 3, 9), [(1, 8 ^ 2), (1, 16 ^ 1), (1, 16), (1, 32)]);
    }
}
