//! Trace events: what happened in a run, for timelines.

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, LineAddr, LineData, WordMask};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// A transaction began; `busy`: the design still worked for finished ones.
    Begin {
        /// Which.
        tx: Tx,
        /// Maintenance work was unfinished.
        busy: bool,
    },
    /// A transactional store was performed.
    Store {
        /// By whom.
        tx: Tx,
        /// Where.
        addr: Addr,
        /// What the word held.
        old: u64,
        /// What it holds.
        new: u64,
    },
    /// A store outside transactions was performed.
    StoreOutside {
        /// By whom.
        thread: ThreadId,
        /// Where.
        addr: Addr,
        /// What the word held.
        old: u64,
        /// What it holds.
        new: u64,
    },
    /// A transaction reached its end.
    Ending(Tx),
    /// Its commit was acknowledged.
    Acknowledged(Tx),
    /// A dirty line's content left the caches: evicted, or written back.
    Evicted(LineAddr),
    /// A write became durable.
    Durable {
        /// Which line.
        line: LineAddr,
        /// Which words.
        mask: WordMask,
        /// What they held.
        old: LineData,
        /// What they hold.
        new: LineData,
    },
    /// What the design has to say.
    Note(String),
}
