//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::memory::{LineAddr, WordMask};
use graven_machine::cover_points;

use super::protocol::Hold;
use crate::events::events;
use crate::mechanisms::victims;

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
        /// Stores merged into a log entry that was still buffered.
        log_entries_merged: Count, "entries";
        /// Largest number of entries in one log buffer; for `lad`, of lines in the pool.
        log_buffer_max: Gauge, "entries";
        /// Times a log buffer or a transaction buffer overflowed.
        log_overflows: Count, "events";
        /// Records truncated from the log.
        log_records_truncated: Count, "records";
        /// In-place updates of home words from buffered log data.
        in_place_updates: Count, "words";
        /// Words of updates that were not written home because the same batch had newer ones.
        log_words_combined: Count, "words";
        /// Batches of committed transactions that were checkpointed from the log.
        checkpoints: Count, "batches";
        /// Times a design waited until a group of writes was durable before it sent the next: records before a commit record, data before a truncation.
        ordering_points: Count, "events";
    }
    includes { victims: victims::Counters }
}

cover_points! {
    LogBufferFull = "log-buffer-full", "a store waited for an entry of the log buffer";
    AreaFull = "area-full", "a store waited until the log area was truncated";
    AreaWrapped = "area-wrapped", "a record took the slot of an older one";
    UpdateMerged = "update-merged", "a store was merged into a record that was still buffered";
    CommitWaits = "commit-waits", "the end of a transaction waited for its records";
    CommitsOutOfOrder = "commits-out-of-order", "a commit record was durable before one with a smaller sequence number";
    Pressed = "pressed", "the back end began before its batch was full and before its time";
    Combined = "combined", "two transactions of a batch had updated one word";
    BatchOfThreads = "batch-of-threads", "a batch held transactions of several threads";
    OpenLineUpdated = "open-line-updated", "the back end updated a line that an open transaction had stored to";
    VictimServed = "victim-served", "a miss was served from the victim cache";
    VictimReplaced = "victim-replaced", "a line left the LLC again while the victim cache had older content of it";
    VictimUncommitted = "victim-uncommitted", "a line was parked for a transaction that was open";
    VictimWaits = "victim-waits", "a line found the victim cache full and waited";
    StoreWaitsForVictims = "store-waits-for-victims", "a store waited because lines waited for the victim cache";
}

/// Name and cover points of the victim cache.
const VICTIM_CACHE: victims::Described<Cover> = victims::Described {
    name: "victim cache",
    uncommitted: Cover::VictimUncommitted,
    replaced: Cover::VictimReplaced,
    waits: Cover::VictimWaits,
    served: Cover::VictimServed,
};

events! {
    /// Something that happens.
    #[derive(Clone, Copy, Debug)]
    pub enum Event;

    /// A store was merged into a record of its line that is still buffered.
    Merged => counts log_entries_merged += 1; covers UpdateMerged;
    /// A store finds something full, and waits.
    StoreWaits { hold: Hold } =>
        counts log_overflows += u64::from(hold != Hold::Victims);
        covers LogBufferFull if hold == Hold::Buffer, AreaFull if hold == Hold::Area,
            StoreWaitsForVictims if hold == Hold::Victims;
    /// A store made a record, in a slot that was used before or not; `occupied` entries of the log
    /// buffer are in use.
    Recorded { wraps: bool, occupied: usize } =>
        counts log_entries += 1; raises log_buffer_max to occupied as u64;
        covers AreaWrapped if wraps;
    /// An update record leaves the log buffer for the log.
    RecordSent { thread: usize, home: LineAddr, words: WordMask, number: u64 } =>
        says "thread {thread} logs words {words:#010b} of {} (record {number})", home.addr();
    /// The controller hears of the end of a transaction whose records are on their way.
    CommitWaits => covers CommitWaits;
    /// All records of a transaction are durable: its commit record is sent.
    CommitSent { thread: usize, updates: u64, sequence: u64 } =>
        counts ordering_points += 1;
        says "thread {thread}: {updates} records are durable, sends commit {sequence}";
    /// A commit record is durable before one with a smaller sequence number.
    CommitOutOfOrder => covers CommitsOutOfOrder;
    /// The back end begins a batch of records, of its own accord or because a thread or a line
    /// waits for it.
    BatchBegins { records: usize, pressed: bool, of_threads: bool } =>
        counts checkpoints += 1; covers Pressed if pressed, BatchOfThreads if of_threads;
        says "the back end reads {records} records";
    /// The records of a batch are combined into `words` words; `superseded` updates of words go
    /// nowhere. Two transactions had updated one word, an open one has stored to a line of the
    /// batch, or not.
    Combined { words: u64, superseded: u64, shared: bool, open_line: bool } =>
        counts in_place_updates += words, log_words_combined += superseded;
        covers Combined if shared, OpenLineUpdated if open_line;
    /// The back end sends words of a line home.
    UpdateSent { line: LineAddr, words: WordMask } =>
        says "the back end updates words {words:#010b} of {}", line.addr();
    /// All updates of a batch are durable.
    BatchHome => counts ordering_points += 1;
    /// The truncation word is sent.
    TruncationSent { newest: u64 } =>
        says "the log is truncated: commits up to {newest} are at home";
    /// The log has room for more records.
    Truncated { records: usize } => counts log_records_truncated += records as u64;

    part Victims(victims::Event), VICTIM_CACHE;
}
