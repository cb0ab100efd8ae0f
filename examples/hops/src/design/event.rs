//! What happens in the design: what is counted of it, which cover points it reaches, what a timeline says.

use graven::design::{DesignEvent, Observation};
use graven::ids::ThreadId;
use graven::memory::LineAddr;
use graven::{counters, cover_points};

use super::persist_buffer::Epoch;

counters! {
    /// What the design counts.
    pub(super) struct Counters {
        /// Entries of persist buffers: a line of an epoch each.
        persist_entries: Count, "entries";
        /// Stores that joined an entry of their epoch.
        persist_stores_joined: Count, "stores";
        /// Largest number of entries in one persist buffer.
        persist_buffer_max: Gauge, "entries";
        /// Times a store found its persist buffer full.
        persist_buffer_full: Count, "events";
        /// Ordering fences executed.
        ordering_fences: Count, "instructions";
        /// Durability fences executed.
        durability_fences: Count, "instructions";
        /// Epochs of other threads that a thread depended on.
        persist_dependences: Count, "events";
        /// Misses that waited until a persist buffer had written their line.
        persist_misses_held: Count, "events";
    }
}

cover_points! {
    Joined = "joined-entry", "a store joined an entry of its epoch";
    BufferFull = "persist-buffer-full", "a store found its persist buffer full";
    StoreDepends = "store-depends", "a store depended on another thread's epoch";
    LoadDepends = "load-depends", "a load depended on another thread's epoch";
    WaitsForOther = "waits-for-other", "an entry waited for another thread's epoch";
    WaitsForOlder = "waits-for-older", "an entry waited for an older epoch of its thread";
    LineUnderWay = "line-under-way", "an entry waited for an older one of its line";
    FenceWaits = "dfence-waits", "a durability fence waited";
    MissHeld = "miss-held", "a miss waited for a persist buffer";
    Dropped = "dropped-line", "a dirty line was dropped that a persist buffer had";
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Joined,
    Added { thread: ThreadId, epoch: Epoch, line: LineAddr, held: usize },
    BufferFull,
    OrderingFence { thread: ThreadId, epoch: Epoch },
    DurabilityFence { waits: bool },
    Depends { thread: ThreadId, on: ThreadId, epoch: Epoch, by_load: bool },
    WaitsForOther,
    WaitsForOlder,
    LineUnderWay,
    Flushed { thread: ThreadId, epoch: Epoch, line: LineAddr },
    Dropped,
    MissHeld { line: LineAddr },
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::Joined => {
                to.count().persist_stores_joined += 1;
                to.cover(Cover::Joined);
            }
            Event::Added { thread, epoch, line, held } => {
                let counters = to.count();
                counters.persist_entries += 1;
                counters.persist_buffer_max = counters.persist_buffer_max.max(held as u64);
                to.explain(|| {
                    format!("thread {thread}, epoch {epoch}: the line of {} waits", line.addr())
                });
            }
            Event::BufferFull => {
                to.count().persist_buffer_full += 1;
                to.cover(Cover::BufferFull);
            }
            Event::OrderingFence { thread, epoch } => {
                to.count().ordering_fences += 1;
                to.explain(|| format!("thread {thread} begins epoch {epoch}"));
            }
            Event::DurabilityFence { waits } => {
                to.count().durability_fences += 1;
                to.cover_if(waits, Cover::FenceWaits);
            }
            Event::Depends { thread, on, epoch, by_load } => {
                to.count().persist_dependences += 1;
                to.cover(if by_load { Cover::LoadDepends } else { Cover::StoreDepends });
                to.explain(|| format!("thread {thread} depends on epoch {epoch} of thread {on}"));
            }
            Event::WaitsForOther => to.cover(Cover::WaitsForOther),
            Event::WaitsForOlder => to.cover(Cover::WaitsForOlder),
            Event::LineUnderWay => to.cover(Cover::LineUnderWay),
            Event::Flushed { thread, epoch, line } => to.explain(|| {
                format!("thread {thread}, epoch {epoch}: the line of {} is sent", line.addr())
            }),
            Event::Dropped => to.cover(Cover::Dropped),
            Event::MissHeld { line } => {
                to.count().persist_misses_held += 1;
                to.cover(Cover::MissHeld);
                to.explain(|| format!("a miss waits for the line of {}", line.addr()));
            }
        }
    }
}
