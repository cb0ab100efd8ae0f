//! States of this design that a campaign should reach.

use graven_machine::cover_points;

cover_points! {
    Overflow = "overflow", "a line was logged because it found no place";
    OverflowWhileCommitting = "overflow-while-committing", "the pool overflowed while a commit message was on its way";
    SharedLineGathered = "shared-line-gathered", "a line of the pool had words of two open transactions";
    SharedLineLogged = "shared-line-logged", "words of two open transactions in one line were logged";
    LineCommittedInPart = "line-committed-in-part", "words of another open transaction stayed when a line was committed";
    PushInVain = "push-in-vain", "a line was stored to again after it had been pushed";
    OlderVersionDrains = "older-version-drains", "a line found its place while an older version of it drained";
    WaitsForPlace = "waits-for-place", "a line waited for a place that was to be free";
    CommitWhileLogging = "commit-while-logging", "a transaction committed while a line was being logged";
    JoinsOlderContent = "joins-older-content", "a line left the caches while its older content was underway";
    HomeAgain = "home-again", "a line went home whose words had been logged before";
    PlacesGivenUp = "places-given-up", "a transaction gave up its places to be logged";
    LogWrapped = "log-wrapped", "an undo record took the slot of an older one";
    RecordOfSeveral = "record-of-several", "lines shared a record of the load-aware log";
    RecordFull = "record-full", "a record of the load-aware log had all its blocks";
    RecordBeforeOlder = "record-before-older", "a record was durable before an older one of its transaction";
    ChainOfSeveral = "chain-of-several", "a transaction had several records in its chain";
    WaitsForBlock = "waits-for-block", "a request found no free block in the log";
}
