//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LineAddr};
use graven_machine::cover_points;

use crate::events::events;
use crate::packed_log::Record;
use crate::{force_write_back, packed_log};

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
        /// Stores merged into a log entry that was still buffered.
        log_entries_merged: Count, "entries";
        /// Stores for which the design made no entry, and entries that it dropped, because the word did not change.
        log_entries_ignored: Count, "entries";
        /// Redo entries created: redo data that left an L1, or was found there at a transaction's end.
        log_redo_entries: Count, "entries";
        /// Redo entries dropped because their word was stored to again.
        redo_discarded_stored_again: Count, "entries";
        /// Redo entries whose data need not be logged because their line had become durable at home.
        redo_discarded_at_home: Count, "entries";
        /// Records that tell of such lines, so that older redo data in the log is void.
        redo_in_place_records: Count, "records";
        /// Log entries sent before their time because their line left the caches.
        log_entries_hurried: Count, "entries";
        /// Largest number of entries in one log buffer; for `lad`, of lines in the pool.
        log_buffer_max: Gauge, "entries";
        /// Times a log buffer or a transaction buffer overflowed.
        log_overflows: Count, "events";
        /// Groups of blocks truncated from a packed log.
        log_groups_truncated: Count, "groups";
    }
    includes { scans: force_write_back::Counters, coded: packed_log::Counters }
}

cover_points! {
    LogWrapped = "log-wrapped", "the log came round, and the torn bit turned";
    LogFull = "log-full", "a store or a new transaction waited for room in the log";
    BufferFull = "buffer-full", "an entry found the undo+redo buffer full";
    RedoBufferFull = "redo-buffer-full", "a redo entry found the redo buffer full";
    Merged = "merged", "a store was merged into an entry in the undo+redo buffer";
    Hurried = "hurried-entry", "a line left the caches while an undo+redo entry of it was in the buffer";
    Ulog = "ulog", "a word's newest redo data was in the L1 only";
    UlogLeftL1 = "ulog-left-l1", "a line with such a word left the L1";
    Silent = "silent-entry", "an undo+redo entry was dropped because no byte of its word had changed";
    RedoStoredAgain = "redo-stored-again", "a redo entry was dropped because its word was stored to again";
    RedoAtHome = "redo-at-home", "a redo entry became void because its line had reached PM";
    OwnerChanged = "owner-changed", "a line's states passed to another transaction";
    IdInUse = "id-in-use", "a transaction waited until the one that had its id before was durable";
    LateRedo = "late-redo", "redo data was logged after its transaction had committed";
    LateByScan = "late-by-scan", "a scan forced a line home that held redo data of a committed transaction";
    Parked = "parked", "a non-temporal store was parked in DRAM";
    PressedHome = "pressed-home", "a line was forced home because a log or the transaction table was full";
    HeadMoved = "head-moved", "the log was truncated";
    TruncationWaits = "truncation-waits", "a truncation waited for data to become durable";
}

events! {
    /// Something that happens.
    #[derive(Clone, Debug)]
    pub enum Event;

    // ---- undo+redo entries ---------------------------------------------------------------------
    /// A store leaves its word as it was: no entry.
    Ignored => counts log_entries_ignored += 1;
    /// A store was merged into the undo+redo entry of its word.
    Merged { addr: Addr, value: u64 } =>
        counts log_entries_merged += 1; covers Merged;
        says "a store of {value:#x} is merged into the entry of {addr}";
    /// The first store to a word made an undo+redo entry, which makes the buffer hold `occupied`.
    UndoRedoEntry { addr: Addr, undo: u64, redo: u64, occupied: usize } =>
        counts log_entries += 1; raises log_buffer_max to occupied as u64;
        says "undo+redo entry of {addr}: {undo:#x} -> {redo:#x}";
    /// An entry found the undo+redo buffer full.
    BufferFull => covers BufferFull;
    /// Undo+redo entries without a changed byte were dropped.
    SilentDropped { entries: u64 } => counts log_entries_ignored += entries; covers Silent;
    /// A line leaves the caches, and so its undo+redo entries, and all before them, must leave the buffer.
    Hurried { line: LineAddr, entries: usize } =>
        counts log_entries_hurried += entries as u64; covers Hurried;
        says "{line} leaves the caches: {entries} entries must leave the buffer";
    // ---- redo data -----------------------------------------------------------------------------
    /// URLog → ULog: the newest redo data of a word is in the L1 only.
    BecomesULog { addr: Addr } =>
        covers Ulog;
        says "{addr} is ULog: its redo data stays in the L1";
    /// A line with a word in state ULog left its L1.
    ULogLeftL1 => covers UlogLeftL1;
    /// A line's states passed to another transaction.
    OwnerChanged => covers OwnerChanged;
    /// A redo entry of a word, whose redo data only an L1 had.
    RedoEntry { addr: Addr, value: u64 } =>
        counts log_redo_entries += 1;
        says "redo entry of {addr}: {value:#x}";
    /// A redo entry found the redo buffer full.
    RedoBufferFull => covers RedoBufferFull;
    /// The end of a transaction found redo data of a word in the L1, which goes straight to the log.
    RedoFoundInL1 => counts log_redo_entries += 1;
    /// Redo entries of a word were dropped because it is stored to again.
    RedoStoredAgain { addr: Addr, entries: usize } =>
        counts redo_discarded_stored_again += entries as u64; covers RedoStoredAgain;
        says "{addr} is stored to again: its redo entry is dropped";
    /// A redo entry was dropped when its line was sent home (literal).
    RedoDropped { addr: Addr } =>
        counts redo_discarded_at_home += 1;
        says "the redo entry of {addr} is dropped";
    /// The word of a redo entry is durable at home.
    RedoAtHome { addr: Addr } =>
        counts redo_discarded_at_home += 1; covers RedoAtHome;
        says "{addr} is at home: its redo data need not be logged";
    /// Redo entries at home have a record in place of their data: the first of a line.
    InPlaceRecord => counts redo_in_place_records += 1;
    // ---- the log -------------------------------------------------------------------------------
    /// The log came round.
    LogWrapped => covers LogWrapped;
    /// A record is sent to a log, in a batch that begins in this group.
    RecordSent { log: usize, group: u64, record: Record } =>
        covers LateRedo if record.late;
        says "log {log}, group {group}: {record}";
    /// Delay-persistence: a transaction commits, and `ulog` words of its redo data are still to come.
    Committed { number: u64, ulog: u32 } =>
        says "commit {number}: {ulog} words of redo data are still to come";
    /// A commit, and all before it, are persistent.
    Persistent { number: u64 } => says "commit {number} is persistent";
    // ---- stores that bypass the caches ---------------------------------------------------------
    /// A word was parked in DRAM, and has a redo entry.
    Parked { addr: Addr, value: u64 } =>
        counts log_redo_entries += 1; covers Parked;
        says "{addr} is parked in DRAM; redo entry of {value:#x}";
    /// A line with parked words was read.
    ParkedRead => does |to| to.count_dram_read();
    /// The parked words of a line go home.
    ParkedGoHome { line: LineAddr } => says "parked words of {line} go home";
    // ---- truncation ----------------------------------------------------------------------------
    /// A scan begins, with the logs ending before these groups.
    ScanBegins { tails: Vec<u64> } => says "scan begins; the logs end before groups {tails:?}";
    /// A scan ends, after which the heads may move to these groups.
    ScanEnds { heads: Vec<u64> } => says "scan ends; the heads may move to groups {heads:?}";
    /// A scan is to force a line home that holds redo data of a committed transaction.
    LateByScan => covers LateByScan;
    /// A scan forces a line home.
    ForcedHome { line: LineAddr } => says "scan forces {line} home";
    /// A line is forced home because a log or the transaction table is full.
    PressedHome => covers PressedHome;
    /// Heads cannot move before data is durable.
    TruncationWaits => covers TruncationWaits;
    /// The new head of a log is durable.
    HeadMoved { log: usize, head: u64 } =>
        covers HeadMoved;
        says "the head of log {log} has moved to group {head}";
    /// Groups of a log may be used again.
    GroupsFreed { groups: u64 } => counts log_groups_truncated += groups;
    /// A thread waits for room in its log; it is the first that does, or not.
    WaitsForSpace { thread: ThreadId, first: bool } =>
        counts log_overflows += u64::from(first); covers LogFull if first;
        says "thread {thread} waits for room in its log";
    /// A thread waits until its earlier transaction of the same id has left.
    WaitsForId { thread: ThreadId } =>
        covers IdInUse;
        says "thread {thread} waits for the id of its transaction";

    part Scan(force_write_back::Event);
    part Packed(packed_log::Event);
}
