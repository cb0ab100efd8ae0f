//! Numbers of threads and transactions.

/// A hardware thread's number, from 0.
pub type ThreadId = u32;

/// A running transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tx {
    /// The thread that runs it.
    pub thread: ThreadId,
    /// Number among the thread's transactions, from 0. Hardware ids are its low bits.
    pub number: u64,
}
