//! What happens in both ways of logging: what is counted of it, which cover points it reaches, what a timeline says.

use super::log::{Appended, Record};
use graven_base::counters;
use graven_base::memory::Addr;
use graven_machine::cover_points;
use graven_machine::design::{DesignEvent, Observation};

counters! {
    /// What the design counts.
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

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A search in a write set goes on to a further bucket.
    Collision,
    /// A search in a write set found its word.
    FoundAgain,
    /// The record of a word's old content was appended to a thread's log.
    OldWordLogged { thread: usize, home: Addr, old: u64, appended: Appended },
    /// A record of a redo log was appended to it.
    RedoLogged { thread: usize, record: Record, appended: Appended },
    /// A log is truncated: there is no slot for a record.
    TruncatesForRoom,
    /// A log is truncated: its thread is about to let go of a lock.
    TruncatesForLock,
    /// A thread moves its log's head to a record.
    HeadMoves { thread: usize, to: u64 },
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    #[inline(always)]
    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::Collision => to.cover(Cover::Collision),
            Event::FoundAgain => to.cover(Cover::FoundAgain),
            Event::OldWordLogged { thread, home, old, appended } => {
                to.count().log_entries += 1;
                to.cover_if(appended.over_older, Cover::LogWrapped);
                to.explain(|| {
                    let number = appended.number;
                    format!("thread {thread} logs {home}: {old:#x} (record {number})")
                });
            }
            Event::RedoLogged { thread, record, appended } => {
                to.count().log_entries += u64::from(matches!(record, Record::Word(..)));
                to.cover_if(appended.over_older, Cover::LogWrapped);
                to.explain(|| {
                    let number = appended.number;
                    format!("thread {thread} logs {record:x?} (record {number})")
                });
            }
            Event::TruncatesForRoom => to.cover(Cover::TruncatedForRoom),
            Event::TruncatesForLock => to.cover(Cover::TruncatedForLock),
            Event::HeadMoves { thread, to: record } => {
                to.explain(|| format!("thread {thread} moves its head to record {record}"));
            }
        }
    }
}
