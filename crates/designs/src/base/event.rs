//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::ids::ThreadId;
use graven_base::memory::LineAddr;
use graven_machine::cover_points;
use graven_machine::design::Store;

use crate::events::events;

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
    }
}

cover_points! {
    AreaWrapped = "area-wrapped", "a record took the slot of an older one";
    EvictedBeforeFlush = "evicted-before-flush", "a line was evicted between a store's record and its flush";
    FlushHeld = "flush-held", "a line was flushed while a record of another thread's store to it was on its way";
}

events! {
    /// Something that happens; `record` is a record's number.
    #[derive(Clone, Copy, Debug)]
    pub enum Event;

    /// The next record takes the slot of an older one.
    AreaWraps => covers AreaWrapped;
    /// The entry of a store is sent.
    Logged { store: Store, record: u64 } =>
        counts log_entries += 1;
        says "thread {} logs {}: {:#x}, to be {:#x} (record {record})",
            store.tx.thread, store.addr, store.old, store.new;
    /// A commit record is sent.
    CommitSent { thread: ThreadId, record: u64 } =>
        says "thread {thread} sends its commit record ({record})";
    /// The record of a store is durable, so its line is flushed, and is or is not held back by records of other threads.
    Flushed { thread: ThreadId, line: LineAddr, held: bool } =>
        covers FlushHeld if held;
        says "thread {thread}: record durable, flushes line {}", line.addr();
    /// The line that was to be flushed had been evicted.
    EvictedBeforeFlush => covers EvictedBeforeFlush;
}
