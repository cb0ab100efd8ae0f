//! The part of a log that recovery can be done for ahead ([`DesignInfo::settle`]): its oldest records, as far as all of
//! them are of transactions that have committed.
//!
//! [`DesignInfo::settle`]: graven_machine::design::DesignInfo::settle

use crate::packed_log::{Kind, Record};
use graven_base::ids::ThreadId;

/// Records that stay in the log at least: its newest may be torn, or not be there, at the next power failure.
const KEPT: usize = 8;

/// The oldest records of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// Records that are replayed whichever of the next power failures happens.
    pub records: usize,
    /// Records by which that is known: those, and all up to the commit records of their transactions.
    pub known_by: usize,
}

impl Oldest {
    /// Those of a log with these records, oldest first, each with its place; nothing if there are none. The log then begins
    /// with the place of the first other record, where it can.
    ///
    /// A thread has one transaction after the other, which its commit record ends.
    pub fn of(records: &[(u64, Record)], can_begin: impl FnMut(u64) -> bool) -> Option<Oldest> {
        let settled = first_kept(records, can_begin)?;
        let mut undecided: Vec<ThreadId> = Vec::new();
        let mut known_by = 0;
        for (at, (_, record)) in records.iter().enumerate() {
            if at >= settled && undecided.is_empty() {
                break;
            }
            known_by = at + 1;
            if record.kind == Kind::Commit {
                undecided.retain(|&thread| thread != record.thread);
            } else if at < settled && !undecided.contains(&record.thread) {
                undecided.push(record.thread);
            }
        }
        Some(Oldest { records: settled, known_by })
    }

    /// The place at which a log with these records begins once the oldest are done.
    pub fn head(&self, records: &[(u64, Record)]) -> u64 {
        records[self.records].0
    }

    /// The places of the records by which that is known, from one to before another, in a log that ends before `end`.
    pub fn known_places(&self, records: &[(u64, Record)], end: u64) -> (u64, u64) {
        // The record behind them may share their last place.
        let until = records.get(self.known_by).map_or(end, |&(place, _)| place + 1);
        (records[0].0, until)
    }
}

/// The first record, from which on all stay in the log: none before it is of a transaction that has not committed.
fn first_kept(records: &[(u64, Record)], mut can_begin: impl FnMut(u64) -> bool) -> Option<usize> {
    let mut open: Vec<(ThreadId, usize)> = Vec::new();
    for (at, (_, record)) in records.iter().enumerate() {
        if record.kind == Kind::Commit {
            open.retain(|&(thread, _)| thread != record.thread);
        } else if !open.iter().any(|&(thread, _)| thread == record.thread) {
            open.push((record.thread, at));
        }
    }
    let oldest_open = open.iter().map(|&(_, first)| first).min();
    let most = records.len().saturating_sub(KEPT);
    let most = oldest_open.map_or(most, |first| first.min(most));
    let begins = |at: &usize| records[*at].0 != records[at - 1].0 && can_begin(records[*at].0);
    (1..=most).rev().find(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records at places 0, 1, …: of each its thread, and whether it ends a transaction.
    fn records(of: &[(ThreadId, bool)]) -> Vec<(u64, Record)> {
        let record = |&(thread, ends): &(ThreadId, bool)| {
            let kind = if ends { Kind::Commit } else { Kind::UndoRedo };
            Record { kind, thread, ..Record::BLANK }
        };
        (0..).zip(of.iter().map(record)).collect()
    }

    #[test]
    fn records_before_an_open_transaction_are_settled_once_their_commit_records_are_there() {
        // Thread 1 commits behind the first record of thread 2, which stays open.
        let mut all = vec![(0, false), (1, false), (0, true), (2, false), (1, false), (1, true)];
        all.extend([(0, false), (0, true)].repeat(4));
        let oldest = Oldest::of(&records(&all), |_| true);
        assert_eq!(oldest, Some(Oldest { records: 3, known_by: 6 }));
        let odd = Oldest::of(&records(&all), |place| place != 3);
        assert_eq!(odd, Some(Oldest { records: 2, known_by: 6 }), "no log begins at place 3");
        all[0] = (2, false);
        assert_eq!(Oldest::of(&records(&all), |_| true), None, "the oldest record is open");
        assert_eq!(Oldest::of(&records(&all[..4]), |_| true), None, "too few");
    }
}
