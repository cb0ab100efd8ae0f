//! Trace events: what happened in a run, for timelines.

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, LineAddr, LineData, WordMask};
use graven_persistency::cut::Operation;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// A transaction began; `busy`: the design still worked for finished ones.
    Begin {
        /// The transaction.
        tx: Tx,
        /// Maintenance work was unfinished.
        busy: bool,
    },
    /// A transactional store was performed.
    Store {
        /// By whom.
        tx: Tx,
        /// Address of the word.
        addr: Addr,
        /// Former content of the word.
        old: u64,
        /// New content of the word.
        new: u64,
    },
    /// A store outside transactions was performed.
    StoreOutside {
        /// By whom.
        thread: ThreadId,
        /// Address of the word.
        addr: Addr,
        /// Former content of the word.
        old: u64,
        /// New content of the word.
        new: u64,
    },
    /// An instruction for order was executed.
    Executed {
        /// By whom.
        thread: ThreadId,
        /// The operation.
        operation: Operation,
    },
    /// The design took a snapshot of what all threads had stored.
    Snapshot,
    /// A transaction reached its end.
    Ending(Tx),
    /// Acknowledgement of a transaction's commit.
    Acknowledged(Tx),
    /// A dirty line's content left the caches: evicted, or written back.
    Evicted(LineAddr),
    /// A write became durable.
    Durable {
        /// The line.
        line: LineAddr,
        /// Words that were written.
        mask: WordMask,
        /// Former content.
        old: LineData,
        /// New content.
        new: LineData,
    },
    /// Note of the design.
    Note(String),
}
