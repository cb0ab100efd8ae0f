//! The size of programs, and the distance of their runs from the usual one.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Most programs of a bound: it must be possible to list them.
pub(super) const PROGRAMS_MAX: u64 = 4_000_000;

/// The size of programs. As JSON, the fields by their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Threads, each with a transaction at least; 1 to 4.
    pub threads: u32,
    /// Transactions of all threads together; 1 to 6.
    pub transactions: u32,
    /// Stores of a transaction; 0 to 4.
    pub stores: u32,
    /// Words of each line that may be stored to; up to 4 lines of up to 8 words, 8 words in all.
    pub words: Vec<u32>,
    /// Words may be stored to by several threads, which hand them over under a lock.
    pub hand_overs: bool,
    /// Departures of a run from the usual one: evictions of dirty lines, writes that are late, threads that wait, other
    /// orders in memory; 0 to 4.
    pub departures: u32,
    /// The second life.
    pub life: LifeBound,
}

/// The size of the programs of the second life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LifeBound {
    /// Transactions of all threads together, each thread with one at most; 0 (no second life) to 2.
    pub transactions: u32,
    /// Stores of each; 1 to 2.
    pub stores: u32,
}

impl Default for Bound {
    fn default() -> Bound {
        Bound {
            threads: 2,
            transactions: 3,
            stores: 2,
            words: vec![2, 2],
            hand_overs: true,
            departures: 2,
            life: LifeBound { transactions: 1, stores: 1 },
        }
    }
}

/// A bound that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BoundError {
    /// A number out of its range.
    #[error("{name}: {value} is not allowed; {allowed}")]
    Number {
        /// The name.
        name: &'static str,
        /// As given.
        value: u64,
        /// The accepted values.
        allowed: String,
    },
    /// More programs than can be listed.
    #[error(
        "within {transactions} transactions of up to {stores} stores to {words} words there are more than {PROGRAMS_MAX} programs: take less of one of them"
    )]
    TooMany {
        /// Transactions.
        transactions: u32,
        /// Stores of each.
        stores: u32,
        /// Words.
        words: u32,
    },
}

impl Bound {
    /// Words of all lines.
    pub fn words_in_all(&self) -> u32 {
        self.words.iter().sum()
    }

    /// Refuses what is out of range.
    ///
    /// # Errors
    /// Names what was refused and what is allowed.
    pub fn check(&self) -> Result<(), BoundError> {
        let numbers = [
            ("threads", self.threads, 1..=4),
            ("transactions", self.transactions, 1..=6),
            ("stores", self.stores, 0..=4),
            ("lines of words", self.words.len() as u32, 1..=4),
            ("words", self.words_in_all(), 1..=8),
            ("departures", self.departures, 0..=4),
            ("life.transactions", self.life.transactions, 0..=self.threads.min(2)),
            ("life.stores", self.life.stores, 1..=2),
        ];
        let words = self.words.iter().map(|&words| ("words of a line", words, 1..=8));
        for (name, value, range) in numbers.into_iter().chain(words) {
            if !range.contains(&value) {
                let allowed = format!("from {} to {}", range.start(), range.end());
                return Err(BoundError::Number { name, value: value.into(), allowed });
            }
        }
        let words = u64::from(self.words_in_all());
        let of_transaction: u64 = (0..=self.stores).map(|n| words.pow(n)).sum();
        let all = of_transaction.checked_pow(self.transactions);
        if all.is_none_or(|all| all > PROGRAMS_MAX) {
            let (transactions, stores) = (self.transactions, self.stores);
            return Err(BoundError::TooMany { transactions, stores, words: words as u32 });
        }
        Ok(())
    }
}
