//! What happens in the design: what is counted of it, which cover points it reaches, what a timeline says.

use graven_base::counters;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LineAddr};
use graven_machine::cover_points;
use graven_machine::design::{DesignEvent, Observation};
use graven_machine::request::WriteOrder;

use crate::packed_log::{Kind, Record};
use crate::{force_write_back, packed_log};

counters! {
    /// What the design counts.
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

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A store changes nothing: no entry.
    Ignored { new: u64 },
    /// A store was merged into an entry in the buffer.
    Merged { addr: Addr, new: u64 },
    /// A store's word joined the entry of its line in the buffer.
    Joined { addr: Addr, undo: u64, redo: u64 },
    /// A record found the buffer full.
    BufferFull,
    /// A record entered the buffer, which holds so many now.
    Entered { record: Record, occupied: usize },
    /// So many entries left the buffer and are dropped: they change nothing.
    Dropped { entries: usize },
    /// Records that left the buffer together were sent to the log, commit records among them.
    Sent { records: usize, commits: usize, place: u64, order: WriteOrder, wraps: bool },
    /// Records needed less room than was kept for them, and somebody waits for room.
    RoomBySending,
    /// A line leaves the caches with entries of it in the buffer: so many records must leave. They may be there for
    /// longer than their time.
    LineLeaves { line: LineAddr, ahead: usize, is_late: bool },
    /// So many records left the buffer for the sake of a line.
    Hurried { records: usize },
    /// A thread's commit record is durable, with all before it.
    CommitDurable { thread: ThreadId },
    /// A thread waits for room in the log, the first one or one more.
    WaitsForSpace { thread: ThreadId, free: u64, is_first: bool },
    /// A scan begins; the log ends here.
    ScanBegins { cut: u64, while_open: bool },
    /// A scan forces a line home; an inner cache may have flagged it.
    ForcedHome { line: LineAddr, after: WriteOrder, came_along: bool },
    /// A scan ends, and the head may move so far.
    ScanEnds { head: u64 },
    /// Transactions whose lines instructions have written back are durable, and the head may move so far.
    HeadBehindClwbs { head: u64 },
    /// The head waits until data is durable.
    HeadWaits { head: u64 },
    /// The new head is sent.
    HeadSent { head: u64 },
    /// The new head is durable.
    HeadMoved { head: u64 },
    /// So many slots are free again.
    SlotsFreed { slots: u64 },
    /// So many groups are free again.
    GroupsFreed { groups: u64 },
    /// Part of a scan.
    Scan(force_write_back::Event),
    /// Part of packing records.
    Packing(packed_log::Event),
}

impl From<force_write_back::Event> for Event {
    fn from(event: force_write_back::Event) -> Event {
        Event::Scan(event)
    }
}

impl From<packed_log::Event> for Event {
    fn from(event: packed_log::Event) -> Event {
        Event::Packing(event)
    }
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    #[inline(always)]
    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::Ignored { new } => {
                to.count().log_entries_ignored += 1;
                to.explain(|| format!("a store of {new:#x} changes nothing: no entry"));
            }
            Event::Merged { addr, new } => {
                to.count().log_entries_merged += 1;
                to.cover(Cover::Merged);
                to.explain(|| format!("a store of {new:#x} is merged into the entry of {addr}"));
            }
            Event::Joined { addr, undo, redo } => {
                to.count().log_words_joined += 1;
                to.cover(Cover::Joined);
                to.explain(|| format!("joins its line's entry: {addr}: {undo:#x} -> {redo:#x}"));
            }
            Event::BufferFull => to.cover(Cover::BufferFull),
            Event::Entered { record, occupied } => {
                let counters = to.count();
                counters.log_entries += u64::from(record.kind == Kind::UndoRedo);
                counters.log_buffer_max = counters.log_buffer_max.max(occupied as u64);
                to.explain(|| format!("enters the buffer: {record}"));
            }
            Event::Dropped { entries } => {
                to.count().log_entries_ignored += entries as u64;
                to.cover(Cover::EntryDropped);
                to.explain(|| format!("{entries} entries change nothing and are dropped"));
            }
            Event::Sent { records, commits, place, order, wraps } => {
                to.cover_if((1..records).contains(&commits), Cover::CommitSharesWrite);
                to.cover_if(records > 2, Cover::GroupFilled);
                to.count().log_wraps += u64::from(wraps);
                to.cover_if(wraps, Cover::LogWrapped);
                to.explain(|| {
                    format!("{records} records are sent to place {place} of the log: ordered write {order}")
                });
            }
            Event::RoomBySending => to.cover(Cover::RoomBySending),
            Event::LineLeaves { line, ahead, is_late } => {
                to.cover(Cover::Hurried);
                to.cover_if(is_late, Cover::HurriedLate);
                to.explain(|| {
                    format!("{line} leaves the caches: {ahead} records must leave the buffer")
                });
            }
            Event::Hurried { records } => to.count().log_entries_hurried += records as u64,
            Event::CommitDurable { thread } => {
                to.explain(|| format!("thread {thread}: its commit record is durable"));
            }
            Event::WaitsForSpace { thread, free, is_first } => {
                to.count().log_overflows += u64::from(is_first);
                to.cover_if(is_first, Cover::LogFull);
                to.explain(|| format!("thread {thread} waits for room: {free} places are free"));
            }
            Event::ScanBegins { cut, while_open } => {
                to.cover_if(while_open, Cover::ScanWhileOpen);
                to.explain(|| format!("scan begins; the log ends before place {cut}"));
            }
            Event::ForcedHome { line, after, came_along } => {
                to.cover_if(came_along, Cover::BitCameAlong);
                to.cover_if(!after.is_none(), Cover::ForcedLineWaits);
                to.explain(|| match after {
                    WriteOrder::NONE => format!("scan forces {line} home"),
                    after => format!("scan forces {line} home, after ordered write {after}"),
                });
            }
            Event::ScanEnds { head } => {
                to.explain(|| format!("scan ends; the head may move to place {head}"));
            }
            Event::HeadBehindClwbs { head } => {
                to.cover(Cover::HeadBehindClwbs);
                to.explain(|| format!("behind clwbs, the head may move to place {head}"));
            }
            Event::HeadWaits { head } => {
                to.cover(Cover::TruncationWaits);
                to.explain(|| format!("the head waits for data before it moves to {head}"));
            }
            Event::HeadSent { head } => to.explain(|| format!("the head, {head}, is sent")),
            Event::HeadMoved { head } => {
                to.cover(Cover::HeadMoved);
                to.explain(|| format!("the head has moved to place {head}"));
            }
            Event::SlotsFreed { slots } => to.count().log_records_truncated += slots,
            Event::GroupsFreed { groups } => to.count().log_groups_truncated += groups,
            Event::Scan(event) => event.observe(to),
            Event::Packing(event) => event.observe(to),
        }
    }
}
