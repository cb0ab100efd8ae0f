//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::memory::LineAddr;
use graven_machine::cover_points;

use crate::events::events;

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
        /// Stores merged into a log entry that was still buffered.
        log_entries_merged: Count, "entries";
        /// Log entries sent before their time because their line left the caches.
        log_entries_hurried: Count, "entries";
        /// Largest number of entries in one log buffer; for `lad`, of lines in the pool.
        log_buffer_max: Gauge, "entries";
        /// Records truncated from the log.
        log_records_truncated: Count, "records";
    }
}

cover_points! {
    HeaderForced = "header-forced", "a line left while its header was being collected";
    SeveralHeadersAwaited = "several-headers-awaited", "a line left with entries of two open transactions";
    RecordFull = "record-full", "an entry came when the record was full";
    WordJoined = "word-joined", "a store joined the entry of its line";
    LoggedAgain = "logged-again", "a line was logged again that the L1 had forgotten";
    ClosedRecord = "closed-record", "a line was logged again because the record of its entry was closed";
    EvictedLineAwaited = "evicted-line-awaited", "a commit waited for a line that had been evicted";
    NeighboursContentAwaited = "neighbours-content-awaited", "a commit waited for a line that another one had written back";
    LogWrapped = "log-wrapped", "a record took the slot of an older one";
}

events! {
    /// Something that happens; `record` is a record's number.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum Event;

    /// A store joins the entry of its line.
    WordJoined => counts log_entries_merged += 1; covers WordJoined;
    /// A store finds that the record with the entry of its line is closed.
    ClosedRecordFound => covers ClosedRecord;
    /// A line is logged again that the L1 has forgotten.
    LoggedAgain => covers LoggedAgain;
    /// An entry comes when the record is full.
    RecordFull => covers RecordFull;
    /// The next record takes the slot of an older one.
    LogWraps => covers LogWrapped;
    /// A line is logged, in this place of a record.
    Logged { thread: usize, line: LineAddr, place: usize, record: u64 } =>
        counts log_entries += 1; raises log_buffer_max to place as u64 + 1;
        says "thread {thread} logs line {} (entry {place} of record {record})", line.addr();
    /// A line leaves with entries of several open transactions.
    SeveralHeadersAwaited => covers SeveralHeadersAwaited;
    /// A line leaves while the header of `entries` entries is being collected: it is written now.
    HeaderForced { entries: usize } =>
        counts log_entries_hurried += entries as u64; covers HeaderForced;
    /// The header of a record is sent: the record is closed.
    HeaderSent { thread: usize, record: u64, entries: usize } =>
        says "the header of record {record} of thread {thread} is sent ({entries} entries)";
    /// A transaction ends: its lines are written back.
    Ends { thread: usize } => says "thread {thread} writes its lines back";
    /// A commit finds a clean line on its way home: evicted, or written back by another commit.
    CleanLineOnItsWay { evicted: bool } =>
        covers EvictedLineAwaited if evicted, NeighboursContentAwaited if !evicted;
    /// All lines of an ending transaction are durable.
    LinesDurable { thread: usize } => says "all lines of thread {thread} are durable";
    /// The commit point: the log of `records` records is removed.
    LogRemoved { thread: usize, records: u64 } =>
        counts log_records_truncated += records;
        says "thread {thread} commits: its log is removed";
}
