//! States of this design that a campaign should reach.

use graven_machine::cover_points;

cover_points! {
    Overflow = "overflow", "undo records of an open transaction left for the log area";
    MergeAfterFlush = "merge-after-flush", "a store was merged into an entry with the flush-bit set";
    MergeUnderLine = "merge-under-line", "a store was merged while its line was on its way home";
    LineSettlesCommitted = "line-settles-committed", "an evicted line settled an entry of a committed transaction";
    TwinDropped = "twin-dropped", "a new entry dropped a committed one of the same word";
    WaitsForCommitted = "waits-for-committed", "a store waited for committed entries to go home";
    AreaWrapped = "area-wrapped", "the log area came round";
    AgainAfterOverflow = "again-after-overflow", "a word was logged again by the transaction that had overflowed it";
}
