//! States of this design that a campaign should reach.

use graven_machine::cover_points;

cover_points! {
    FillFromSeveralLines = "fill-from-several-lines", "a line was read from several lines of the log";
    FillFromHomeToo = "fill-from-home-too", "a line was read from its home and the log in parallel";
    FillOfOpenWords = "fill-of-open-words", "a line was read that has words of an open transaction";
    FillOfCommittingWords = "fill-of-committing-words", "a line was read whose words are on their way into the log";
    RangeCut = "range-cut", "a newer range of home addresses cut an older one";
    SegmentFull = "segment-full", "a transaction found no room in its thread's segment";
    SegmentReused = "segment-reused", "a segment was opened for the second time";
    WaitsForSegment = "waits-for-segment", "a thread waited for a free segment";
    WaitsForIndex = "waits-for-index", "a thread waited for room in the index";
    WaitsForAppends = "waits-for-appends", "a collection waited for transactions on their way into the log";
    CommitDuringCollection = "commit-during-collection", "a transaction committed while a collection was under way";
    OlderVersionFound = "older-version-found", "a collection found two versions of a word";
    NewerVersionStays = "newer-version-stays", "a word went home of which the log has a newer version";
    FreedWhileRead = "freed-while-read", "a segment was collected while a line of it was being read";
    OpenSegmentCollected = "open-segment-collected", "a collection closed a segment that was not full";
}
