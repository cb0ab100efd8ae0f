//! States of this design that a campaign should reach.

use graven_machine::cover_points;

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
    LateRedo = "late-redo", "redo data was logged after its transaction had committed";
    LateByScan = "late-by-scan", "a scan forced a line home that held redo data of a committed transaction";
    Parked = "parked", "a non-temporal store was parked in DRAM";
    PressedHome = "pressed-home", "a line was forced home because a log or the transaction table was full";
    HeadMoved = "head-moved", "the log was truncated";
    TruncationWaits = "truncation-waits", "a truncation waited for data to become durable";
}
