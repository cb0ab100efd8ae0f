//! States of this design that a campaign should reach.

use graven_machine::cover_points;

cover_points! {
    EvictedBeforeCommit = "evicted-before-commit", "a line with uncommitted words went to the place that is not committed";
    EvictionHeld = "eviction-held", "a line was evicted to the place that an unfinished commit still needs";
    ReadFromShadow = "read-from-shadow", "a miss was served from a shadow page";
    ReadAgain = "read-again", "a line had moved to its other place while it was read";
    CommitWaitsForEviction = "commit-waits-for-eviction", "a commit waited for a line that had been evicted before";
    SharedLineCommitted = "shared-line-committed", "a line was committed without the words of another open transaction";
    SharedLineInMemory = "shared-line-in-memory", "it had left the caches, so that those words had to move to its other place";
    RecordWaitsForPage = "record-waits-for-page", "a record waited for an earlier one, or the home word, of its page";
    RecordOfLines = "record-of-lines", "a journal record took more than one line";
    JournalWrapped = "journal-wrapped", "an entry took the place of an older one";
    JournalFull = "journal-full", "a record waited for room in the journal";
    Checkpoint = "checkpoint", "the table took over what the journal said";
    ShotDown = "shot-down", "translations were shot down";
    Consolidated = "consolidated", "lines of a shadow page were copied home";
    FreedUncopied = "freed-uncopied", "a shadow page was free without a copy";
    ConsolidationStopped = "consolidation-stopped", "a store to the page stopped its consolidation";
    StoreWhileRecorded = "store-while-recorded", "a page was stored to while the record of its consolidation was on its way";
    StoreWaitsForPage = "store-waits-for-page", "a store waited for a free shadow page";
    ShadowPageReused = "shadow-page-reused", "a shadow page went to another home page";
}
