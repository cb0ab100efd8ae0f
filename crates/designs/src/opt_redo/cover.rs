//! States of this design that a campaign should reach.

use graven_machine::cover_points;

cover_points! {
    LogBufferFull = "log-buffer-full", "a store waited for an entry of the log buffer";
    AreaFull = "area-full", "a store waited until the log area was truncated";
    AreaWrapped = "area-wrapped", "a record took the slot of an older one";
    UpdateMerged = "update-merged", "a store was merged into a record that was still buffered";
    CommitWaits = "commit-waits", "the end of a transaction waited for its records";
    CommitsOutOfOrder = "commits-out-of-order", "a commit record was durable before one with a smaller sequence number";
    Pressed = "pressed", "the back end began before its batch was full and before its time";
    Combined = "combined", "two transactions of a batch had updated one word";
    BatchOfThreads = "batch-of-threads", "a batch held transactions of several threads";
    OpenLineUpdated = "open-line-updated", "the back end updated a line that an open transaction had stored to";
    VictimServed = "victim-served", "a miss was served from the victim cache";
    VictimReplaced = "victim-replaced", "a line left the LLC again while the victim cache had older content of it";
    VictimUncommitted = "victim-uncommitted", "a line was parked for a transaction that was open";
    VictimWaits = "victim-waits", "a line found the victim cache full and waited";
    StoreWaitsForVictims = "store-waits-for-victims", "a store waited because lines waited for the victim cache";
}
