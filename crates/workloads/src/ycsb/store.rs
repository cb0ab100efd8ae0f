//! Interface of a store that threads of YCSB share: scans, and locks by which no transaction waits
//! needlessly.
//!
//! **Hash table**: 1,024 stripes of buckets with a lock each, which covers chains, elements and counts of its keys. There are no
//! scans.
//!
//! **B+ tree**: a latch for the tree, which has a lock per thread, and 1,024 locks for elements, by key. What only
//! reads nodes (reads, updates, scans) takes the thread's own lock of the latch; what changes them (insertions)
//! takes all of them: readers exclude no readers, and a writer all. Reads and updates take the lock of their element as
//! well. Scans do not, as no mix that scans updates. Latching per node is left out.

use super::client::Operation;
use crate::locking::STORE_STRIPES;
use crate::structures::{BTree, Hash, Keyed};
use graven_machine::program::{LockId, Memory};

/// A store that threads share.
pub(super) trait Store: Keyed {
    /// Adds the locks that `operation` needs, of a thread out of several.
    fn locks_of(&self, threads: (u32, u32), operation: Operation, locks: &mut Vec<LockId>);

    /// Reads up to `records` records in the order of their keys, from the first that is at least `key`.
    fn scan<M: Memory>(&self, m: &mut M, key: u64, records: u32);
}

impl Store for Hash {
    fn locks_of(&self, _threads: (u32, u32), operation: Operation, locks: &mut Vec<LockId>) {
        locks.push(self.lock_of(operation.key()));
    }

    fn scan<M: Memory>(&self, _m: &mut M, _key: u64, _records: u32) {
        unreachable!("a mix that scans is refused for a hash table");
    }
}

impl Store for BTree {
    fn locks_of(&self, (thread, threads): (u32, u32), of: Operation, locks: &mut Vec<LockId>) {
        let element = threads + (of.key() % u64::from(STORE_STRIPES)) as LockId;
        match of {
            Operation::Insert(_) => locks.extend(0..threads),
            Operation::Scan(..) => locks.push(thread),
            Operation::Read(_) | Operation::Update(_) | Operation::ReadModifyWrite(_) => {
                locks.extend([thread, element]);
            }
        }
    }

    fn scan<M: Memory>(&self, m: &mut M, key: u64, records: u32) {
        BTree::scan(self, m, key, records.into(), &mut |_| {});
    }
}
