//! Events of a program, as a judge is told of them.

use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LineAddr};

/// The position of an event in the order in which a judge is told of events.
pub type Seq = u64;

/// An event of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A store to persistent memory. A store to part of a word is one of the whole word, with the other bytes unchanged.
    Store {
        /// The thread that stores.
        thread: ThreadId,
        /// The address of the word.
        addr: Addr,
        /// The word before, in the order of visibility.
        old: u64,
        /// The word afterwards.
        new: u64,
        /// The path to memory.
        path: Path,
        /// True if the instruction of the thread's previous store made this one, too: a vector, a store over the edge of two
        /// words, a `rep` store. The stores of one instruction have no order among themselves.
        continues: bool,
    },
    /// A load that another thread's store may have answered.
    Load {
        /// The thread that loads.
        thread: ThreadId,
        /// The address of the word.
        addr: Addr,
    },
    /// An instruction for persistence or order.
    Persist {
        /// The thread that executes it.
        thread: ThreadId,
        /// The instruction.
        op: Persist,
    },
    /// A system call that sends something out: whatever it says is known outside from here on.
    Told {
        /// The thread that calls.
        thread: ThreadId,
    },
    /// A system call (msync, fsync) has made durable what was stored to a range.
    Synced {
        /// The first byte of the range.
        start: u64,
        /// The end of the range, behind its last byte.
        end: u64,
        /// Stores of events before this one are durable.
        before: Seq,
    },
}

/// The path of a store to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// Through the caches.
    Cached,
    /// Past the caches, by a write-combining buffer (`movnti`, `movntdq`, `movdir64b`).
    NonTemporal,
    /// Through the caches, after everything that the thread did before (`STLR`).
    Release,
}

/// An instruction for persistence or order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Persist {
    /// `clwb` or `clflushopt`, one class in all models.
    WriteBack(LineAddr),
    /// `clflush`.
    Flush(LineAddr),
    /// `DC CVAC`, `DC CVAP` or `DC CVADP`.
    Clean(LineAddr, Point),
    /// A fence.
    Fence(Fence),
}

/// The point of the memory system to which an Arm processor cleans a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Coherence (`DC CVAC`, `DC CIVAC`): other observers see the line. This may be a cache.
    Coherence,
    /// Persistence (`DC CVAP`).
    Persistence,
    /// Deep persistence (`DC CVADP`), which survives the failure of what persistence relies on.
    DeepPersistence,
}

/// An instruction that orders others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    /// `sfence`.
    Store,
    /// `mfence`.
    Full,
    /// A locked instruction of x86, or `xchg` with memory. One that stores to persistent memory is told as fence, store, fence.
    Locked,
    /// `DMB`.
    Dmb,
    /// `DMB ST`: between stores.
    DmbStore,
    /// `DMB LD`: after loads.
    DmbLoad,
    /// `DSB`, which also waits until cleans are complete.
    Dsb,
}
