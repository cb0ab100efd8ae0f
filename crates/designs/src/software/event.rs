//! Events of both ways of logging: the counters, the cover points and the timeline's sentence of each.

use super::log::{Appended, Record};
use crate::events::events;
use graven_base::counters;
use graven_base::memory::Addr;
use graven_machine::cover_points;

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
    }
}

cover_points! {
    LogWrapped = "log-wrapped", "a record took the slot of an older one";
    FoundAgain = "found-again", "a word was found in the write set";
    Collision = "collision", "a search looked at several buckets";
    TruncatedForRoom = "truncated-for-room", "the log was truncated in the middle of a transaction";
    TruncatedForLock = "truncated-for-lock", "the log was truncated before a lock was let go";
}

events! {
    /// Something that happens.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum Event;

    /// A search in a write set looks at a further bucket.
    Collision => covers Collision;
    /// A search in a write set found its word.
    FoundAgain => covers FoundAgain;
    /// The record of a word's old content was appended to a thread's log.
    OldWordLogged { thread: usize, home: Addr, old: u64, appended: Appended } =>
        counts log_entries += 1; covers LogWrapped if appended.over_older;
        says "thread {thread} logs {home}: {old:#x} (record {})", appended.number;
    /// A record of a redo log was appended to it.
    RedoLogged { thread: usize, record: Record, appended: Appended } =>
        counts log_entries += u64::from(matches!(record, Record::Word(..)));
        covers LogWrapped if appended.over_older;
        says "thread {thread} logs {record:x?} (record {})", appended.number;
    /// A log is truncated: there is no slot for a record.
    TruncatesForRoom => covers TruncatedForRoom;
    /// A log is truncated: its thread is about to let go of a lock.
    TruncatesForLock => covers TruncatedForLock;
    /// A thread moves its log's head to a record.
    HeadMoves { thread: usize, to: u64 } =>
        says "thread {thread} moves its head to record {to}";
}
