//! States of this design that a campaign should reach.

use graven_machine::cover_points;

cover_points! {
    LogWrapped = "log-wrapped", "the log came round, and the torn bit turned";
    LogFull = "log-full", "a store or a new transaction waited for room in the log";
    RoomBySending = "room-by-sending", "records left the buffer together, and so made room for who waited for it";
    BufferFull = "buffer-full", "a record found the log buffer full";
    Merged = "merged", "a store was merged into an entry in the buffer";
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
