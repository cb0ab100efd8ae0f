//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LineAddr};
use graven_machine::cover_points;

use graven_machine::request::WriteOrder;

use crate::events::events;
use crate::packed_log::{Kind, Record};
use crate::{force_write_back, packed_log};

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
        /// Stores merged into a log entry that was still buffered.
        log_entries_merged: Count, "entries";
        /// Words that a log record of their line took in while it was in the log buffer.
        log_words_joined: Count, "words";
        /// Stores for which the design made no entry, and entries that it dropped, because the word did not change.
        log_entries_ignored: Count, "entries";
        /// Log entries sent before their time because their line left the caches.
        log_entries_hurried: Count, "entries";
        /// Largest number of entries in one log buffer; for `lad`, of lines in the pool.
        log_buffer_max: Gauge, "entries";
        /// Times a log buffer or a transaction buffer overflowed.
        log_overflows: Count, "events";
        /// Records truncated from the log.
        log_records_truncated: Count, "records";
        /// Groups of blocks truncated from a packed log.
        log_groups_truncated: Count, "groups";
        /// Times the log came round to its beginning.
        log_wraps: Count, "times";
    }
    includes { scans: force_write_back::Counters, coded: packed_log::Counters }
}

cover_points! {
    LogWrapped = "log-wrapped", "the log came round, and the torn bit turned";
    LogFull = "log-full", "a store or a new transaction waited for room in the log";
    RoomBySending = "room-by-sending", "records left the buffer together, and so made room for who waited for it";
    BufferFull = "buffer-full", "a record found the log buffer full";
    Merged = "merged", "a store was merged into an entry in the buffer";
    Joined = "joined", "a store's word joined the entry of its line in the buffer";
    CommitSharesWrite = "commit-shares-write", "a commit record left together with an entry";
    GroupFilled = "group-filled", "more than two records left together, into one packed group";
    EntryDropped = "entry-dropped", "an entry left whose word had got its old value again";
    Hurried = "hurried-entry", "a line left the caches while an entry of it was in the buffer";
    HurriedLate = "late-entry", "the same, and the write queue had kept the entry there for too long";
    ScanWhileOpen = "scan-while-open", "a scan began while a transaction was open";
    BitCameAlong = "bit-came-along", "a scan forced a line home that an inner cache had flagged";
    ForcedLineWaits = "forced-line-waits", "a line that a scan forced home waited for records";
    TruncationWaits = "truncation-waits", "the head waited for data to become durable";
    HeadBehindClwbs = "head-behind-clwbs", "the head was let go because transactions had ended, their lines written back by instructions";
    HeadMoved = "head-moved", "the log was truncated";
}

events! {
    /// Something that happens.
    #[derive(Clone, Copy, Debug)]
    pub enum Event;

    /// A store changes nothing: no entry.
    Ignored { new: u64 } =>
        counts log_entries_ignored += 1;
        says "a store of {new:#x} changes nothing: no entry";
    /// A store was merged into an entry in the buffer.
    Merged { addr: Addr, new: u64 } =>
        counts log_entries_merged += 1; covers Merged;
        says "a store of {new:#x} is merged into the entry of {addr}";
    /// A store's word joined the entry of its line in the buffer.
    Joined { addr: Addr, undo: u64, redo: u64 } =>
        counts log_words_joined += 1; covers Joined;
        says "joins its line's entry: {addr}: {undo:#x} -> {redo:#x}";
    /// A record found the buffer full.
    BufferFull => covers BufferFull;
    /// A record entered the buffer, which holds `occupied` now.
    Entered { record: Record, occupied: usize } =>
        counts log_entries += u64::from(record.kind == Kind::UndoRedo);
        raises log_buffer_max to occupied as u64;
        says "enters the buffer: {record}";
    /// Entries left the buffer and are dropped: they change nothing.
    Dropped { entries: usize } =>
        counts log_entries_ignored += entries as u64; covers EntryDropped;
        says "{entries} entries change nothing and are dropped";
    /// Records that left the buffer together were sent to the log, commit records among them.
    Sent { records: usize, commits: usize, place: u64, order: WriteOrder, wraps: bool } =>
        counts log_wraps += u64::from(wraps);
        covers CommitSharesWrite if (1..records).contains(&commits),
            GroupFilled if records > 2, LogWrapped if wraps;
        says "{records} records are sent to place {place} of the log: ordered write {order}";
    /// Records needed less room than was kept for them, and a thread waits for room.
    RoomBySending => covers RoomBySending;
    /// A line leaves the caches with entries of it in the buffer: `ahead` records must leave. They
    /// may be there for longer than their time.
    LineLeaves { line: LineAddr, ahead: usize, is_late: bool } =>
        covers Hurried, HurriedLate if is_late;
        says "{line} leaves the caches: {ahead} records must leave the buffer";
    /// Records left the buffer for the sake of a line.
    Hurried { records: usize } => counts log_entries_hurried += records as u64;
    /// A thread's commit record is durable, with all before it.
    CommitDurable { thread: ThreadId } => says "thread {thread}: its commit record is durable";
    /// A thread waits for room in the log, the first one or one more.
    WaitsForSpace { thread: ThreadId, free: u64, is_first: bool } =>
        counts log_overflows += u64::from(is_first); covers LogFull if is_first;
        says "thread {thread} waits for room: {free} places are free";
    /// A scan begins; the log ends here.
    ScanBegins { cut: u64, while_open: bool } =>
        covers ScanWhileOpen if while_open;
        says "scan begins; the log ends before place {cut}";
    /// A scan forces a line home; an inner cache may have flagged it.
    ForcedHome { line: LineAddr, after: WriteOrder, came_along: bool } =>
        covers BitCameAlong if came_along, ForcedLineWaits if !after.is_none();
        does |to| to.explain(|| match after {
            WriteOrder::NONE => format!("scan forces {line} home"),
            after => format!("scan forces {line} home, after ordered write {after}"),
        });
    /// A scan ends, and the head may move so far.
    ScanEnds { head: u64 } => says "scan ends; the head may move to place {head}";
    /// Transactions whose lines instructions have written back are durable, and the head may move so far.
    HeadBehindClwbs { head: u64 } =>
        covers HeadBehindClwbs;
        says "behind clwbs, the head may move to place {head}";
    /// The head waits until data is durable.
    HeadWaits { head: u64 } =>
        covers TruncationWaits;
        says "the head waits for data before it moves to {head}";
    /// The new head is sent.
    HeadSent { head: u64 } => says "the head, {head}, is sent";
    /// The new head is durable.
    HeadMoved { head: u64 } =>
        covers HeadMoved;
        says "the head has moved to place {head}";
    /// Slots are free again.
    SlotsFreed { slots: u64 } => counts log_records_truncated += slots;
    /// Groups are free again.
    GroupsFreed { groups: u64 } => counts log_groups_truncated += groups;

    part Scan(force_write_back::Event);
    part Packing(packed_log::Event);
}
