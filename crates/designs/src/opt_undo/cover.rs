//! States of this design that a campaign should reach.

use graven_machine::cover_points;

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
