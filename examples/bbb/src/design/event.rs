//! What happens in the design: what is counted of it, which cover points it reaches, what a timeline says.

use graven::design::{DesignEvent, Observation};
use graven::memory::LineAddr;
use graven::{counters, cover_points};

counters! {
    /// What the design counts.
    pub(super) struct Counters {
        /// Entries of persist buffers.
        persist_entries: Count, "entries";
        /// Stores that found their line in their persist buffer.
        persist_stores_joined: Count, "stores";
        /// Entries that went along with their line to another core.
        persist_entries_migrated: Count, "entries";
        /// Entries that were written because their buffer was to be drained.
        persist_entries_drained: Count, "entries";
        /// Entries that were written because their L1 lost the line.
        persist_entries_evicted: Count, "entries";
        /// Entries that were written because the taker of their line had no room for them.
        persist_entries_refused: Count, "entries";
        /// Largest number of entries in one persist buffer.
        persist_buffer_max: Gauge, "entries";
        /// Times a store found its persist buffer full.
        persist_buffer_full: Count, "events";
    }
}

cover_points! {
    Joined = "joined-entry", "a store found its line in its persist buffer";
    Migrated = "entry-migrated", "an entry went along with its line to another core";
    Refused = "entry-refused", "the taker of a line had no room for its entry";
    Drained = "entry-drained", "a buffer was drained";
    Evicted = "entry-evicted", "an L1 lost a line that its buffer had";
    Read = "line-read", "another core read a line that a buffer had";
    BufferFull = "persist-buffer-full", "a store found its persist buffer full";
    Overtaken = "line-under-way", "a store came to a line that was on its way";
    Dropped = "dropped-line", "a dirty line left the LLC and was dropped";
}

/// Why an entry is written to PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The buffer has many.
    Drained,
    /// The L1 has lost the line.
    Evicted,
    /// Another core takes the line, and has no room.
    Refused,
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Joined,
    Added { core: u32, line: LineAddr, held: usize, is_under_way: bool },
    Migrated { from: u32, to: u32, line: LineAddr },
    Read,
    Sent { core: u32, line: LineAddr, why: Sent },
    BufferFull,
    Dropped,
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
            Event::Added { core, line, held, is_under_way } => {
                let counters = to.count();
                counters.persist_entries += 1;
                counters.persist_buffer_max = counters.persist_buffer_max.max(held as u64);
                to.cover_if(is_under_way, Cover::Overtaken);
                to.explain(|| format!("the buffer of core {core} has the line of {}", line.addr()));
            }
            Event::Migrated { from, to: taker, line } => {
                to.count().persist_entries_migrated += 1;
                to.cover(Cover::Migrated);
                to.explain(|| {
                    format!("the line of {} goes from buffer {from} to {taker}", line.addr())
                });
            }
            Event::Read => to.cover(Cover::Read),
            Event::Sent { core, line, why } => {
                let counters = to.count();
                let (counter, point) = match why {
                    Sent::Drained => (&mut counters.persist_entries_drained, Cover::Drained),
                    Sent::Evicted => (&mut counters.persist_entries_evicted, Cover::Evicted),
                    Sent::Refused => (&mut counters.persist_entries_refused, Cover::Refused),
                };
                *counter += 1;
                to.cover(point);
                to.explain(|| format!("buffer {core} sends the line of {}", line.addr()));
            }
            Event::BufferFull => {
                to.count().persist_buffer_full += 1;
                to.cover(Cover::BufferFull);
            }
            Event::Dropped => to.cover(Cover::Dropped),
        }
    }
}
