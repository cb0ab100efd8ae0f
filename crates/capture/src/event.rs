//! Events: all that happens in a captured program beside loads and stores. Events of all threads are in one order.

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A function that is followed was entered.
    Entered {
        /// Number among the functions that are followed.
        function: u32,
        /// First argument.
        argument: u64,
    },
    /// A function that is followed was left.
    Left {
        /// Number among the functions that are followed.
        function: u32,
        /// Result, as a number of 64 bits.
        result: u64,
        /// Manner of leaving.
        how: Left,
    },
    /// The kernel wrote bytes, for a system call of this thread.
    KernelWrote {
        /// The position of the first.
        position: u64,
        /// The bytes, at most [`crate::PIECE_BYTES_MAX`].
        bytes: Vec<u8>,
    },
    /// Bytes as they are after a system call of this thread of which it is not known what it writes: those that are not what
    /// they were, the kernel has written.
    Found {
        /// The position of the first.
        position: u64,
        /// The bytes, at most [`crate::PIECE_BYTES_MAX`].
        bytes: Vec<u8>,
    },
    /// The kernel made bytes zero: memory that was unmapped and may be given anew, a file's end that was cut off.
    Zeroed {
        /// The position of the first.
        position: u64,
        /// Length in bytes; the region may be shorter.
        bytes: u64,
    },
    /// A file that is persistent memory has another length, by a system call of this thread, as far as is known.
    Resized {
        /// The position behind its last byte.
        position: u64,
    },
    /// Persistent memory was mapped.
    Mapped {
        /// The position of its first byte.
        position: u64,
        /// Length in bytes.
        bytes: u64,
        /// First address in the program.
        address: u64,
    },
    /// Persistent memory was unmapped.
    Unmapped {
        /// First address in the program.
        address: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// The thread executed a marker of the program's.
    Marked(Mark),
    /// The thread's first record.
    Began {
        /// The thread that has made it, by the number of its stream.
        by: Option<u32>,
    },
    /// The thread's last record.
    Ended,
    /// Everything that the thread has done up to here comes before all that others do after it; nothing else is meant.
    Ordered,
    /// The thread synchronises by what lies at a place of memory, persistent or not.
    Synchronised {
        /// An address; of persistent memory, a position ([`crate::shared_place`]).
        place: u64,
        /// Length in bytes.
        bytes: u64,
        /// The thread sees all that others did before the stores that it finds there.
        acquires: bool,
        /// Threads that acquire it later see all that this one did up to here.
        releases: bool,
        /// By an instruction that accesses it atomically: all others do so, too.
        is_atomic: bool,
    },
    /// The thread made a process of its own, of which nothing is known.
    Forked,
    /// The thread replaced the program by another, of which nothing is known.
    Replaced,
}

/// Message of a marker: an instruction that does nothing, and that a program has for the one who traces it (`graven.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A transaction begins.
    Begin,
    /// The transaction is committed.
    Commit,
    /// The transaction is aborted: the program has undone its stores.
    Abort,
    /// The region of interest begins.
    From,
    /// The region of interest ends.
    Until,
}

impl Mark {
    /// All, in the order of their numbers, from 0.
    pub const ALL: [Mark; 5] = [Mark::Begin, Mark::Commit, Mark::Abort, Mark::From, Mark::Until];

    /// By its number.
    #[must_use]
    pub fn find(number: u64) -> Option<Mark> {
        Mark::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// Manner in which a function was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// By its return.
    Returned,
    /// By a jump over it: an exception, longjmp.
    Unwound,
}

/// Codes of events.
pub(crate) mod code {
    pub const ENTERED: u8 = 0;
    pub const RETURNED: u8 = 1;
    pub const UNWOUND: u8 = 2;
    pub const KERNEL_WROTE: u8 = 3;
    pub const MAPPED: u8 = 4;
    pub const UNMAPPED: u8 = 5;
    pub const BEGAN: u8 = 6;
    pub const ENDED: u8 = 7;
    pub const FORKED: u8 = 8;
    pub const REPLACED: u8 = 9;
    pub const ORDERED: u8 = 10;
    pub const FOUND: u8 = 11;
    pub const ZEROED: u8 = 12;
    pub const MARKED: u8 = 13;
    pub const SYNCHRONISED: u8 = 14;
    pub const RESIZED: u8 = 15;
}

impl Event {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Event::Entered { .. } => code::ENTERED,
            Event::Left { how: Left::Returned, .. } => code::RETURNED,
            Event::Left { how: Left::Unwound, .. } => code::UNWOUND,
            Event::KernelWrote { .. } => code::KERNEL_WROTE,
            Event::Found { .. } => code::FOUND,
            Event::Zeroed { .. } => code::ZEROED,
            Event::Mapped { .. } => code::MAPPED,
            Event::Unmapped { .. } => code::UNMAPPED,
            Event::Began { .. } => code::BEGAN,
            Event::Ended => code::ENDED,
            Event::Forked => code::FORKED,
            Event::Replaced => code::REPLACED,
            Event::Ordered => code::ORDERED,
            Event::Marked(_) => code::MARKED,
            Event::Synchronised { .. } => code::SYNCHRONISED,
            Event::Resized { .. } => code::RESIZED,
        }
    }
}
