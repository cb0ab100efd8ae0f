//! The judge: knows what the program did and what it was told, and nothing of designs.
//!
//! Trusted base: keep it small. It follows every transactional store, and at a power failure demands
//! of the recovered bytes: a transaction that was acknowledged is there whole; one whose end had not
//! been reached is not there at all; one that was ending is there whole or not at all; nothing else
//! has changed.

use std::collections::BTreeMap;

use thiserror::Error;

use super::Medium;
use crate::designs::Tx;
use crate::memory::{Addr, Image};

/// A transaction that has not been acknowledged.
#[derive(Clone, Debug)]
struct Open {
    tx: Tx,
    /// What each word that it stored held before.
    before: BTreeMap<Addr, u64>,
    ending: bool,
}

/// Follows transactions and judges recovered bytes.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    open: Vec<Option<Open>>,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Verdict {
    /// A word that no open transaction stored differs from the committed state.
    #[error(
        "word {addr} holds {found:#x}, committed is {committed:#x}, and no open transaction wrote it"
    )]
    Lost {
        /// Where.
        addr: Addr,
        /// What recovery left there.
        found: u64,
        /// What must be there.
        committed: u64,
    },
    /// An unfinished transaction left a trace.
    #[error(
        "transaction {number} of thread {thread} was not ending, yet word {addr} holds {found:#x} instead of {before:#x}"
    )]
    NotUndone {
        /// Its thread.
        thread: u32,
        /// Its number.
        number: u64,
        /// Where.
        addr: Addr,
        /// What recovery left there.
        found: u64,
        /// What was there before the transaction.
        before: u64,
    },
    /// A transaction that was ending is there in part.
    #[error(
        "transaction {number} of thread {thread} was ending and is there in part: word {there} has its new value, word {missing} does not (it holds {found:#x})"
    )]
    Partial {
        /// Its thread.
        thread: u32,
        /// Its number.
        number: u64,
        /// A word that has the new value.
        there: Addr,
        /// One that has not.
        missing: Addr,
        /// What it holds.
        found: u64,
    },
}

impl Oracle {
    /// For so many threads.
    pub fn new(threads: u32) -> Self {
        Self { open: (0..threads).map(|_| None).collect() }
    }

    /// A transaction begins.
    pub fn begin(&mut self, tx: Tx) {
        let slot = &mut self.open[tx.thread as usize];
        assert!(slot.is_none(), "transactions do not nest");
        *slot = Some(Open { tx, before: BTreeMap::new(), ending: false });
    }

    /// It stores a word.
    pub fn store(&mut self, tx: Tx, addr: Addr, old: u64) {
        let open =
            self.open[tx.thread as usize].as_mut().expect("a store belongs to an open transaction");
        open.before.entry(addr).or_insert(old);
    }

    /// Its end was reached: from now on it may be there.
    pub fn ending(&mut self, tx: Tx) {
        self.open[tx.thread as usize].as_mut().expect("only an open transaction ends").ending =
            true;
    }

    /// Its commit was acknowledged: from now on it must be there.
    pub fn acknowledged(&mut self, tx: Tx) {
        let open = self.open[tx.thread as usize].take();
        assert!(open.is_some_and(|o| o.ending), "only an ending transaction is acknowledged");
    }

    /// Judges what recovery left in `[start, end)`. `now`: architectural memory at the failure.
    ///
    /// # Errors
    /// The first promise found broken.
    pub fn judge(
        &self,
        recovered: &Medium<'_>,
        now: &Image,
        start: Addr,
        end: Addr,
    ) -> Result<(), Verdict> {
        for open in self.open.iter().flatten() {
            open.judge(recovered, now)?;
        }
        let touched = |addr: Addr| self.open.iter().flatten().any(|o| o.before.contains_key(&addr));
        let in_cells = recovered.cells().differences(now, start, end).map(|(addr, _, _)| addr);
        let since = recovered.written().map(|(addr, _)| addr).filter(|a| (start..end).contains(a));
        for addr in in_cells.chain(since) {
            let (found, committed) = (recovered.peek(addr), now.load(addr));
            if found != committed && !touched(addr) {
                return Err(Verdict::Lost { addr, found, committed });
            }
        }
        Ok(())
    }
}

impl Open {
    fn judge(&self, recovered: &Medium<'_>, now: &Image) -> Result<(), Verdict> {
        let Tx { thread, number } = self.tx;
        let changed = || self.before.iter().filter(|&(&addr, &before)| now.load(addr) != before);
        let found = |addr: Addr| recovered.peek(addr);
        let not_old = self.before.iter().find(|&(&addr, &before)| found(addr) != before);
        let Some((&addr, &before)) = not_old else { return Ok(()) };
        if !self.ending {
            return Err(Verdict::NotUndone { thread, number, addr, found: found(addr), before });
        }
        let Some((&missing, _)) = self.before.iter().find(|&(&a, _)| found(a) != now.load(a))
        else {
            return Ok(());
        };
        let there = changed().map(|(&a, _)| a).find(|&a| found(a) == now.load(a)).unwrap_or(addr);
        Err(Verdict::Partial { thread, number, there, missing, found: found(missing) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TX: Tx = Tx { thread: 0, number: 3 };
    const END: Addr = Addr(4096);

    /// Two words stored by one transaction: 1 → 11 and 2 → 12; a third word holds 7.
    fn case(ending: bool, recovered: [u64; 3]) -> Result<(), Verdict> {
        let (mut cells, mut now) = (Image::new(), Image::new());
        let mut oracle = Oracle::new(1);
        oracle.begin(TX);
        for (i, word) in [11, 12, 7].into_iter().enumerate() {
            now.store(Addr(i as u64 * 8), word);
            cells.store(Addr(i as u64 * 8), recovered[i]);
        }
        oracle.store(TX, Addr(0), 1);
        oracle.store(TX, Addr(8), 2);
        oracle.store(TX, Addr(8), 5);
        if ending {
            oracle.ending(TX);
        }
        oracle.judge(&Medium::new(&cells), &now, Addr(0), END)
    }

    #[test]
    fn all_or_nothing_and_nothing_else() {
        assert_eq!(case(false, [1, 2, 7]), Ok(()));
        assert_eq!(case(true, [1, 2, 7]), Ok(()));
        assert_eq!(case(true, [11, 12, 7]), Ok(()));
        assert!(matches!(case(false, [11, 12, 7]), Err(Verdict::NotUndone { addr: Addr(0), .. })));
        assert!(matches!(case(false, [1, 5, 7]), Err(Verdict::NotUndone { addr: Addr(8), .. })));
        assert!(matches!(
            case(true, [11, 2, 7]),
            Err(Verdict::Partial { there: Addr(0), missing: Addr(8), found: 2, .. })
        ));
        assert!(matches!(
            case(true, [11, 12, 8]),
            Err(Verdict::Lost { addr: Addr(16), found: 8, committed: 7 })
        ));
    }

    #[test]
    fn what_was_acknowledged_must_be_there() {
        let (cells, mut now) = (Image::new(), Image::new());
        let mut oracle = Oracle::new(1);
        oracle.begin(TX);
        oracle.store(TX, Addr(0), 0);
        now.store(Addr(0), 9);
        oracle.ending(TX);
        assert_eq!(oracle.judge(&Medium::new(&cells), &now, Addr(0), END), Ok(()));
        oracle.acknowledged(TX);
        let mut medium = Medium::new(&cells);
        assert!(matches!(oracle.judge(&medium, &now, Addr(0), END), Err(Verdict::Lost { .. })));
        medium.store(Addr(0), 9);
        assert_eq!(oracle.judge(&medium, &now, Addr(0), END), Ok(()));
    }
}
