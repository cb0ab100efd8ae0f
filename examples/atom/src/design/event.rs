//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven::design::{DesignEvent, Observation};
use graven::ids::ThreadId;
use graven::memory::LineAddr;
use graven::stats::{Derived, derived};
use graven::{counters, cover_points};

use super::record::Slot;

counters! {
    /// Counters of the design.
    pub(super) struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
        /// Log entries that the controller made of a line that a store had missed.
        log_entries_at_source: Count, "entries";
        /// Entries made at the source that no store had joined when their header was written.
        log_entries_unused: Count, "entries";
        /// Stores that joined the entry of their line.
        log_entries_merged: Count, "entries";
        /// Headers written before their record was full, because a line waited for them.
        log_headers_hurried: Count, "records";
        /// Largest number of entries in a record.
        log_buffer_max: Gauge, "entries";
        /// Records whose log was truncated.
        log_records_truncated: Count, "records";
        /// Times a store waited for its log entry.
        log_store_waits: Count, "events";
        /// Lines that the controller held back because their address was locked.
        lines_held_back: Count, "lines";
        /// Largest number of lines that were held back.
        lines_held_back_max: Gauge, "lines";
        /// Transactions that waited for a context.
        context_waits: Count, "events";
    }
}

/// The share of the log entries that the controller made by itself.
pub(super) const SOURCE_SHARE: Derived = Derived {
    declaration: derived(
        "log_entries_at_source_share",
        "",
        "Share of the log entries that the controller made of a line that a store had missed.",
    ),
    of: |c| c.ratio("log_entries_at_source", "log_entries"),
};

cover_points! {
    ContextAwaited = "context-awaited", "a transaction waited for a context before it began";
    WordJoined = "word-joined", "a store joined the entry of its line";
    SourceJoined = "source-joined", "a store joined the entry that the controller had made of its line";
    SourceUnused = "source-unused", "a header was written with an entry that no store had joined";
    ThreadUnknown = "thread-unknown", "a store missed on a core that ran several transactions";
    LoggedAgain = "logged-again", "a line was logged again whose log bit was lost";
    ClosedRecord = "closed-record", "a line was logged again because the record of its entry was closed";
    RecordFull = "record-full", "an entry came when the record was full";
    FurtherBucket = "further-bucket", "a transaction took a further bucket";
    ClosedForLine = "closed-for-line", "a record was closed because a line with an entry in it left the caches";
    SeveralLocks = "several-locks", "a line left the caches that several transactions had locked";
    EvictionHeld = "line-held-back", "a line was held back because its address was locked";
    SecondHeld = "several-held-back", "several lines were held back";
    EndWaits = "end-waits", "a record was durable before an older one";
    StoreWaits = "store-waits", "a store waited for its log entry";
    EvictedLineAwaited = "evicted-line-awaited", "a commit waited for a line that had been evicted";
    NeighboursContentAwaited = "neighbours-content-awaited", "a commit waited for a line that another one had written back";
}

/// Something that happens; `record` is a record's index in its transaction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A transaction finds no free context.
    ContextAwaited { thread: ThreadId },
    /// A store that misses may be of several transactions.
    ThreadUnknown,
    /// The controller makes an entry of a line that it has read.
    LoggedAtSource { thread: usize, line: LineAddr },
    /// A line is logged, in this place of a record.
    Logged { thread: usize, line: LineAddr, place: usize, record: u64 },
    /// A store joins an entry that has no words yet, made at the source, or one that has.
    WordJoined { at_source: bool },
    /// A store finds that the record with the entry of its line is closed.
    ClosedRecordFound,
    /// A line is logged again whose log bit was lost.
    LoggedAgain,
    /// An entry comes when the record is full.
    RecordFull,
    /// A transaction takes a further bucket.
    FurtherBucket,
    /// A record is closed because a line with an entry in it leaves the caches.
    ClosedForLine,
    /// A record gets no more entries; this many have no words.
    Closed { record: u64, entries: usize, unused: usize },
    /// A line leaves the caches with entries of several transactions.
    SeveralLocks,
    /// A line is held back; `held` are.
    HeldBack { line: LineAddr, held: usize },
    /// A record is durable, and an older one is not.
    EndWaits,
    /// The end of a log moves over a record.
    Counts { context: usize, record: u64, slot: Slot },
    /// A store waits for its log entry.
    StoreWaits { thread: ThreadId },
    /// A transaction ends: its lines are written back.
    Ends { thread: usize },
    /// A commit finds a clean line on its way home.
    CleanLineOnItsWay { evicted: bool },
    /// All lines of an ending transaction are durable.
    LinesDurable { thread: usize },
    /// The commit point: the log of `records` records is truncated.
    Truncated { thread: usize, records: u64 },
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::ContextAwaited { thread } => {
                to.count().context_waits += 1;
                to.cover(Cover::ContextAwaited);
                to.explain(|| format!("thread {thread} waits for a context"));
            }
            Event::ThreadUnknown => to.cover(Cover::ThreadUnknown),
            Event::LoggedAtSource { thread, line } => {
                to.count().log_entries_at_source += 1;
                to.explain(|| {
                    format!("the controller has read line {} for thread {thread}", line.addr())
                });
            }
            Event::Logged { thread, line, place, record } => {
                let counters = to.count();
                counters.log_entries += 1;
                counters.log_buffer_max = counters.log_buffer_max.max(place as u64 + 1);
                to.explain(|| {
                    let line = line.addr();
                    format!("line {line} is logged for thread {thread} (entry {place} of record {record})")
                });
            }
            Event::WordJoined { at_source } => {
                to.count().log_entries_merged += 1;
                to.cover(if at_source { Cover::SourceJoined } else { Cover::WordJoined });
            }
            Event::ClosedRecordFound => to.cover(Cover::ClosedRecord),
            Event::LoggedAgain => to.cover(Cover::LoggedAgain),
            Event::RecordFull => to.cover(Cover::RecordFull),
            Event::FurtherBucket => to.cover(Cover::FurtherBucket),
            Event::ClosedForLine => {
                to.count().log_headers_hurried += 1;
                to.cover(Cover::ClosedForLine);
            }
            Event::Closed { record, entries, unused } => {
                to.count().log_entries_unused += unused as u64;
                to.cover_if(unused > 0, Cover::SourceUnused);
                to.explain(|| format!("record {record} is closed with {entries} entries"));
            }
            Event::SeveralLocks => to.cover(Cover::SeveralLocks),
            Event::HeldBack { line, held } => {
                let counters = to.count();
                counters.lines_held_back += 1;
                counters.lines_held_back_max = counters.lines_held_back_max.max(held as u64);
                to.cover(Cover::EvictionHeld);
                to.cover_if(held > 1, Cover::SecondHeld);
                to.explain(|| format!("line {} is held back: it is locked", line.addr()));
            }
            Event::EndWaits => to.cover(Cover::EndWaits),
            Event::Counts { context, record, slot } => to.explain(|| {
                let Slot { bucket, place } = slot;
                format!(
                    "record {record} of context {context} counts (bucket {bucket}, place {place})"
                )
            }),
            Event::StoreWaits { thread } => {
                to.count().log_store_waits += 1;
                to.cover(Cover::StoreWaits);
                to.explain(|| format!("a store of thread {thread} waits for its log entry"));
            }
            Event::Ends { thread } => {
                to.explain(|| format!("thread {thread} writes its lines back"))
            }
            Event::CleanLineOnItsWay { evicted: true } => to.cover(Cover::EvictedLineAwaited),
            Event::CleanLineOnItsWay { evicted: false } => {
                to.cover(Cover::NeighboursContentAwaited);
            }
            Event::LinesDurable { thread } => {
                to.explain(|| format!("all lines of thread {thread} are durable"));
            }
            Event::Truncated { thread, records } => {
                to.count().log_records_truncated += records;
                to.explain(|| format!("thread {thread} commits: its log is truncated"));
            }
        }
    }
}
