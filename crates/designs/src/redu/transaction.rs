//! A transaction as the controller knows it, and its log records.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use super::record::{Header, Logged};
use crate::lalea::{ENTRIES, Links};
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, LineData, WordMask};

/// Transactions with stores, numbered in the order in which they begin to log.
pub(super) type TxId = u64;

/// Words of a line that a transaction logs.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogEntry {
    pub(super) home: LineAddr,
    pub(super) words: WordMask,
    pub(super) data: LineData,
}

/// Phases of a transaction, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    #[default]
    Running,
    /// The controller has heard of its end.
    Ended,
    /// The last header is on its way to PM, and all others are where recovery finds them: the
    /// transaction commits when that is durable.
    Deciding,
    Committed,
    /// The updates are durable in place.
    Home,
}

/// States of a header on its way to PM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Written {
    #[default]
    No,
    /// Number of its lines that are not durable.
    Underway(u8),
    Durable,
}

/// A log record.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// The entries that the controller has.
    pub(super) logged: [Logged; ENTRIES],
    /// Line of each.
    pub(super) entries: [LineAddr; ENTRIES],
    pub(super) len: usize,
    /// Number of them that are durable.
    pub(super) durable: usize,
    /// The first line of the header, if it has a place in PM.
    pub(super) place: Option<LineAddr>,
    pub(super) written: Written,
    /// The header is in ADR entries.
    pub(super) buffered: bool,
}

impl Record {
    /// The header is in ADR entries, and was not sent to PM.
    pub(super) fn rests_in_adr(&self) -> bool {
        self.buffered && self.written == Written::No
    }

    /// Recovery finds the header, now or if power fails.
    pub(super) fn is_safe(&self) -> bool {
        self.buffered || self.written == Written::Durable
    }
}

/// A transaction with stores.
#[derive(Clone, Debug, Default)]
pub(super) struct Transaction {
    pub(super) thread: ThreadId,
    /// Number among the thread's.
    pub(super) number: u64,
    pub(super) phase: Phase,
    /// In a circular area: the number of its first record.
    pub(super) first: u64,
    pub(super) records: Vec<Record>,
    /// Log entries that its stores have made, that the log queue has admitted, and that are durable.
    pub(super) made: usize,
    pub(super) admitted: usize,
    pub(super) durable: usize,
    /// Place in commit order, from 1; 0: it has none yet.
    pub(super) sequence: u64,
    /// Lines that are not durable in place.
    pub(super) updates: usize,
    /// `next_ptr` of its last header: the first header of the thread's transaction before.
    pub(super) before: LineAddr,
}

impl Transaction {
    pub(super) fn new(thread: ThreadId, number: u64, first: u64) -> Transaction {
        Transaction { thread, number, first, ..Transaction::default() }
    }

    /// Returns true once it has ended, and the log queue has taken all of its entries.
    pub(super) fn is_complete(&self) -> bool {
        self.phase != Phase::Running && self.admitted == self.made
    }

    /// Returns true if a record is known to be the last one: no entry will be added to it.
    pub(super) fn is_last(&self, record: usize) -> bool {
        record + 1 == self.records.len() && self.is_complete()
    }

    /// Returns true if no entry will be added to a record.
    pub(super) fn is_sealed(&self, record: usize) -> bool {
        record + 1 < self.records.len() || self.is_complete()
    }

    /// Returns true once it has passed its commit point.
    pub(super) fn has_committed(&self) -> bool {
        matches!(self.phase, Phase::Committed | Phase::Home)
    }

    /// Returns true if a header waits for ADR entries, and can still have them.
    pub(super) fn waits_for_adr(&self, record: usize) -> bool {
        self.phase <= Phase::Ended && self.records[record].written == Written::No
    }

    /// Returns true if a header that rests in ADR entries may be written to PM to make room: of a
    /// transaction that has committed, or complete with durable entries.
    pub(super) fn may_leave_adr(&self, record: usize) -> bool {
        let of = &self.records[record];
        let is_complete = record + 1 < self.records.len() && of.durable == of.len;
        of.rests_in_adr() && (is_complete || self.has_committed())
    }

    /// Headers are on their way to PM.
    pub(super) fn is_written(&self) -> bool {
        self.records.iter().any(|record| matches!(record.written, Written::Underway(_)))
    }

    /// The header of a record; the last one makes the others count.
    pub(super) fn header(&self, record: usize, last: bool) -> Header {
        let Record { logged, len, .. } = self.records[record];
        Header {
            logged,
            valid: len,
            last,
            index: record as u64,
            sequence: if last { self.sequence } else { 0 },
            number: self.first + record as u64,
        }
    }

    /// The second line of the header of a record.
    pub(super) fn links(&self, record: usize) -> Links {
        let next = match self.records.get(record + 1) {
            Some(next) => next.place.unwrap_or_default(),
            None => self.before,
        };
        Links { entries: self.records[record].entries, next }
    }
}

/// Transactions with stores that are not known to be at home, in the order in which they began.
#[derive(Debug)]
pub(super) struct Transactions {
    /// From the oldest on; nothing of those that are at home already.
    all: VecDeque<Option<Transaction>>,
    /// The number of the first.
    oldest: TxId,
}

impl Default for Transactions {
    fn default() -> Transactions {
        Transactions { all: VecDeque::new(), oldest: 1 }
    }
}

impl Transactions {
    /// One begins.
    pub(super) fn begin(&mut self, transaction: Transaction) -> TxId {
        self.all.push_back(Some(transaction));
        self.oldest + self.all.len() as TxId - 1
    }

    /// One, unless it is at home.
    #[inline]
    pub(super) fn find(&self, id: TxId) -> Option<&Transaction> {
        self.all.get(id.checked_sub(self.oldest)? as usize)?.as_ref()
    }

    /// One, unless it is at home.
    #[inline]
    pub(super) fn find_mut(&mut self, id: TxId) -> Option<&mut Transaction> {
        self.all.get_mut(id.checked_sub(self.oldest)? as usize)?.as_mut()
    }

    /// All of them, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TxId, &Transaction)> {
        let numbered = (self.oldest..).zip(&self.all);
        numbered.filter_map(|(id, transaction)| Some((id, transaction.as_ref()?)))
    }

    /// One is at home.
    pub(super) fn remove(&mut self, id: TxId) {
        if let Some(place) = id.checked_sub(self.oldest)
            && let Some(transaction) = self.all.get_mut(place as usize)
        {
            *transaction = None;
        }
        while self.all.front().is_some_and(Option::is_none) {
            self.all.pop_front();
            self.oldest += 1;
        }
    }
}

impl Index<TxId> for Transactions {
    type Output = Transaction;

    #[inline]
    fn index(&self, id: TxId) -> &Transaction {
        self.find(id).expect("it is not known to be at home")
    }
}

impl IndexMut<TxId> for Transactions {
    #[inline]
    fn index_mut(&mut self, id: TxId) -> &mut Transaction {
        self.find_mut(id).expect("it is not known to be at home")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn those_that_are_left_are_found_by_their_numbers(
            steps in prop::collection::vec((0..3u8, any::<prop::sample::Index>()), 1..100),
        ) {
            let (mut transactions, mut plain) = (Transactions::default(), BTreeMap::new());
            for (number, (what, which)) in (0..).zip(steps) {
                let open: Vec<TxId> = plain.keys().copied().collect();
                if what == 0 || open.is_empty() {
                    let id = transactions.begin(Transaction::new(0, number, 0));
                    prop_assert_eq!(plain.insert(id, number), None);
                } else {
                    let id = open[which.index(open.len())];
                    plain.remove(&id);
                    transactions.remove(id);
                    prop_assert!(transactions.find(id).is_none());
                }
                let found: Vec<_> = transactions.iter().map(|(id, t)| (id, t.number)).collect();
                prop_assert_eq!(found, plain.clone().into_iter().collect::<Vec<_>>());
                for (&id, &number) in &plain {
                    prop_assert_eq!(transactions[id].number, number);
                }
            }
        }
    }
}
