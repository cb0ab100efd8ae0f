//! Transactions of threads that share a structure: strict two-phase locking.
//!
//! Locks are taken before the transaction in ascending order, so that threads never wait for each
//! other in a circle, and released after its commit is acknowledged, so that a transaction never
//! reads what another has not committed.

use graven_machine::program::{LockId, Thread};

/// Locks of a shared structure that is not under a single one.
pub(super) const STRIPES: u32 = 64;

/// Locks of a store that many transactions of several keys share: so many that those on different keys hardly
/// ever wait for each other.
pub(super) const STORE_STRIPES: u32 = 1024;

/// Runs `body` as one transaction under `locks`, in any order and repeated or not; none if the
/// thread shares nothing. They are left in ascending order, each once.
pub(super) fn transaction(
    thread: &mut Thread<'_>,
    locks: &mut Vec<LockId>,
    body: impl FnOnce(&mut Thread<'_>),
) {
    locks.sort_unstable();
    locks.dedup();
    for &lock in locks.iter() {
        thread.lock(lock);
    }
    thread.tx_begin();
    body(thread);
    thread.tx_end();
    for &lock in locks.iter().rev() {
        thread.unlock(lock);
    }
}
