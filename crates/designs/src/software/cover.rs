//! States of software logging that are worth reaching.

use graven_machine::cover_points;

cover_points! {
    LogWrapped = "log-wrapped", "a record took the slot of an older one";
    FoundAgain = "found-again", "a word was found in the write set";
    Collision = "collision", "a search looked at several buckets";
    TruncatedForRoom = "truncated-for-room", "the log was truncated in the middle of a transaction";
    TruncatedForLock = "truncated-for-lock", "the log was truncated before a lock was let go";
}
