//! States of this design that a campaign should reach.

use graven_machine::cover_points;

cover_points! {
    StoreMerged = "store-merged", "a store went into an entry of the log buffer that its line had";
    EntryEvicted = "entry-evicted", "a full log buffer sent its oldest entry";
    LineLoggedAgain = "line-logged-again", "a transaction logged a line a second time";
    QueueFull = "queue-full", "a log request found the log queue full";
    StoreWaitsForQueue = "store-waits-for-queue", "a store waited because its thread's entries waited outside the log queue";
    StoreWaitsForSpace = "store-waits-for-space", "a store waited until blocks of the log were free";
    AreaWrapped = "area-wrapped", "a record took the slot of an older one";
    SeveralRecords = "several-records", "a transaction with more than one record committed";
    CommitWaits = "commit-waits", "the end of a transaction waited for its log entries";
    RetiredLate = "retired-late", "a transaction was at home before one with a smaller commit sequence number";
    SharedLineUpdated = "shared-line-updated", "a line was updated in place while another transaction had words in it";
    Chained = "chained", "a transaction committed while the one before of its thread was not at home";
    ChainFull = "chain-full", "a commit waited until older transactions of its thread were at home";
    SeveralBanks = "several-banks", "two log entries of a record went to different banks";
    HeaderBuffered = "header-buffered", "a transaction committed with all headers in ADR entries";
    HeaderOverflows = "header-overflows", "a record found no ADR entry free";
    CommittedWritten = "committed-written", "headers of a committed transaction left their ADR entries for PM";
    OpenWritten = "open-written", "headers of an open transaction left their ADR entries for PM";
    HeaderPlacedLate = "header-placed-late", "a header got an ADR entry after its record had begun";
    LastHeaderUnbuffered = "last-header-unbuffered", "a last header was written to PM while others were in ADR entries";
    VictimServed = "victim-served", "a miss was served from the victim area";
    VictimReplaced = "victim-replaced", "a line left the LLC again while the victim area had older content of it";
    VictimUncommitted = "victim-uncommitted", "a line was held for a transaction that was open";
    VictimWaits = "victim-waits", "a line found the victim area full and waited";
}
