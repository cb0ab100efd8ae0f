//! What happens in the design: what is counted of it, which cover points it reaches, what a timeline says.

use graven_base::counters;
use graven_base::ids::ThreadId;
use graven_base::memory::LineAddr;
use graven_machine::cover_points;
use graven_machine::design::{DesignEvent, Observation, Store};

counters! {
    /// What the design counts.
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

/// Something that happens; `record` is a record's number.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The next record takes the slot of an older one.
    AreaWraps,
    /// The entry of a store is sent.
    Logged { store: Store, record: u64 },
    /// A commit record is sent.
    CommitSent { thread: ThreadId, record: u64 },
    /// The record of a store is durable, so its line is flushed, and is or is not held back by records of other threads.
    Flushed { thread: ThreadId, line: LineAddr, held: bool },
    /// The line that was to be flushed had been evicted.
    EvictedBeforeFlush,
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    #[inline(always)]
    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::AreaWraps => to.cover(Cover::AreaWrapped),
            Event::Logged { store, record } => {
                to.count().log_entries += 1;
                to.explain(|| {
                    let Store { tx, addr, old, new, .. } = store;
                    format!(
                        "thread {} logs {addr}: {old:#x}, to be {new:#x} (record {record})",
                        tx.thread
                    )
                });
            }
            Event::CommitSent { thread, record } => {
                to.explain(|| format!("thread {thread} sends its commit record ({record})"));
            }
            Event::Flushed { thread, line, held } => {
                to.cover_if(held, Cover::FlushHeld);
                to.explain(|| {
                    format!("thread {thread}: record durable, flushes line {}", line.addr())
                });
            }
            Event::EvictedBeforeFlush => to.cover(Cover::EvictedBeforeFlush),
        }
    }
}
