//! What happens in the design: what is counted of it, which cover points it reaches, what a timeline says.

use graven::design::{DesignEvent, Observation};
use graven::ids::ThreadId;
use graven::memory::Addr;
use graven::stats::{Derived, derived};
use graven::{counters, cover_points};

use super::log_area::Entry;
use super::logging::Flush;

counters! {
    /// What the design counts.
    pub(super) struct Counters {
        /// Log entries created: log-loads that read their block.
        log_entries: Count, "entries";
        /// Log-loads that found their word in the log lookup table.
        log_entries_merged: Count, "entries";
        /// Log entries that the end of their transaction dropped from the log pending queue: they were never written.
        log_entries_discarded: Count, "entries";
        /// Largest number of log-flushes in one log queue.
        log_buffer_max: Gauge, "entries";
        /// Times a store waited for the log-flush of its block.
        log_store_waits: Count, "events";
        /// Largest number of entries in the log pending queue.
        log_queue_max: Gauge, "requests";
        /// Log-flushes that found the log pending queue full.
        log_queue_full: Count, "requests";
        /// Entries of open transactions that the log pending queue wrote to PM.
        log_overflows: Count, "events";
    }
}

/// Log write removal: the share of the log entries that the end of their transaction dropped.
pub(super) const WRITES_REMOVED_SHARE: Derived = Derived {
    declaration: derived(
        "log_writes_removed_share",
        "",
        "Share of the log entries that were dropped at the end of their transaction, unwritten.",
    ),
    of: |c| c.ratio("log_entries_discarded", "log_entries"),
};

cover_points! {
    Filtered = "filtered", "a log-load found its word in the log lookup table";
    LoggedAgain = "logged-again", "a block was logged that the log lookup table had with other words";
    BlockReplaced = "block-replaced", "the log lookup table replaced a block of the open transaction";
    BlockShared = "block-shared", "two open transactions had logged words of one block";
    LoadWaits = "load-waits", "a log-load was not executed when it was issued";
    RegistersFull = "registers-full", "a log-load found no log register";
    LogQueueFull = "log-queue-full", "a log-flush found the log queue full";
    StoreWaits = "store-waits", "a store waited for the log-flush of its block";
    PendingQueueFull = "pending-queue-full", "a log-flush found the log pending queue full";
    SpillWaits = "spill-waits", "an entry of the log pending queue waited for a place in the write queue";
    Spills = "spills", "an entry of an open transaction was written to PM";
    Dropped = "dropped", "entries of an ended transaction were dropped";
    MarkUnderWay = "mark-under-way", "the last entry was on its way to PM when its transaction ended";
    MarkFollows = "mark-follows", "a mark was written behind the entry that it belongs to";
    MarkWritten = "mark-written", "the last entry was in PM when its transaction ended";
    LogWraps = "log-wraps", "an entry took the slot of an older one";
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A log-load has nothing to do: its word is logged.
    Filtered,
    /// A log-load waits for its line, or for a log register.
    LoadWaits,
    /// There is no log register for a log-load.
    RegistersFull,
    /// A log-load has read its block. It takes an older entry's slot or not; the log lookup table had other words of
    /// its block, and has replaced another block; another open transaction has logged words of it.
    Logged {
        thread: ThreadId,
        entry: Entry,
        wraps: bool,
        again: bool,
        replaces: bool,
        shared: bool,
    },
    /// A log-flush has entered the log queue, which has so many.
    Flushes { queued: usize },
    /// A log-flush waits for the log queue.
    LogQueueFull,
    /// A store waits for the log-flush of its block.
    StoreWaits { thread: ThreadId, addr: Addr },
    /// The log pending queue has accepted an entry, and holds so many.
    Accepted { thread: ThreadId, flush: Flush, held: usize },
    /// A log-flush waits for the log pending queue.
    PendingQueueFull,
    /// An entry of the log pending queue waits for the write queue.
    SpillWaits,
    /// An entry of the log pending queue is sent to PM.
    Spills { thread: ThreadId, flush: Flush },
    /// A transaction ends that has made so many entries, of which so many are dropped.
    Ends { thread: ThreadId, entries: u64, dropped: usize },
    /// The last entry of a transaction is marked in the log pending queue; it is on its way to PM or not.
    Marked { thread: ThreadId, under_way: bool },
    /// An entry was marked while it was on its way to PM, and the mark follows it.
    MarkFollows,
    /// The last entry of a transaction is marked in PM.
    MarkWritten { thread: ThreadId },
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::Filtered => {
                to.count().log_entries_merged += 1;
                to.cover(Cover::Filtered);
            }
            Event::LoadWaits => to.cover(Cover::LoadWaits),
            Event::RegistersFull => to.cover(Cover::RegistersFull),
            Event::Logged { thread, entry, wraps, again, replaces, shared } => {
                to.count().log_entries += 1;
                to.cover_if(wraps, Cover::LogWraps);
                to.cover_if(again, Cover::LoggedAgain);
                to.cover_if(replaces, Cover::BlockReplaced);
                to.cover_if(shared, Cover::BlockShared);
                to.explain(|| format!("thread {thread} logs {entry}"));
            }
            Event::Flushes { queued } => {
                let counters = to.count();
                counters.log_buffer_max = counters.log_buffer_max.max(queued as u64);
            }
            Event::LogQueueFull => to.cover(Cover::LogQueueFull),
            Event::StoreWaits { thread, addr } => {
                to.count().log_store_waits += 1;
                to.cover(Cover::StoreWaits);
                to.explain(|| {
                    format!("thread {thread}: the store to {addr} waits for its log-flush")
                });
            }
            Event::Accepted { thread, flush, held } => {
                let counters = to.count();
                counters.log_queue_max = counters.log_queue_max.max(held as u64);
                to.explain(|| {
                    format!(
                        "the log pending queue has an entry of thread {thread}: {}",
                        flush.entry
                    )
                });
            }
            Event::PendingQueueFull => {
                to.count().log_queue_full += 1;
                to.cover(Cover::PendingQueueFull);
            }
            Event::SpillWaits => to.cover(Cover::SpillWaits),
            Event::Spills { thread, flush } => {
                let open = !flush.entry.number.end;
                to.count().log_overflows += u64::from(open);
                to.cover_if(open, Cover::Spills);
                to.explain(|| format!("an entry of thread {thread} is written: {}", flush.entry));
            }
            Event::Ends { thread, entries, dropped } => {
                to.count().log_entries_discarded += dropped as u64;
                to.cover_if(dropped > 0, Cover::Dropped);
                to.explain(|| {
                    format!(
                        "thread {thread} ends after {entries} log entries; {dropped} are dropped"
                    )
                });
            }
            Event::Marked { thread, under_way } => {
                to.cover_if(under_way, Cover::MarkUnderWay);
                to.explain(|| format!("the last log entry of thread {thread} is marked"));
            }
            Event::MarkFollows => to.cover(Cover::MarkFollows),
            Event::MarkWritten { thread } => {
                to.cover(Cover::MarkWritten);
                to.explain(|| format!("the last log entry of thread {thread} is marked in PM"));
            }
        }
    }
}
