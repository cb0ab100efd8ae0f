//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// The commit record is sent with the entries.
    record_follows_entries, or "record-overtakes-entries";
    /// A commit is acknowledged when its record is sent.
    record_is_awaited, or "record-not-awaited";
    /// A commit leaves no record.
    commit_leaves_record, or "commit-record-missing";
    /// The head moves when the words are on their way home.
    homes_are_awaited, or "homes-not-awaited";
    /// A collection writes the oldest version of a word home.
    newest_is_migrated, or "oldest-migrated";
    /// A collection leaves segments that are not full alone, but the head passes them.
    open_segments_are_collected, or "open-segments-left-out";
    /// A collection does not wait for transactions on their way into the log.
    appends_are_awaited, or "appends-not-awaited";
    /// Segments are free when the head is on its way.
    freed_after_head, or "freed-before-head";
    /// Segments are free, and the head stays.
    head_moves, or "head-stays";
    /// A segment is used again while a line of it is being read.
    reads_are_awaited, or "reads-not-awaited";
    /// A collection empties the index, newer versions included.
    newer_versions_stay_indexed, or "index-emptied";
    /// A collection leaves the index as it is.
    index_is_updated, or "index-stays";
    /// A miss does not find the words of running transactions.
    open_words_are_found, or "open-words-forgotten";
    /// Recovery takes transactions in the order in which they lie in the log.
    recovery_in_commit_order, or "recovery-by-place";
    /// Recovery moves the head first.
    recovery_moves_head_last, or "recovery-moves-head-first";
    /// Recovery reads transactions below the head, too.
    head_is_respected, or "head-ignored";
    /// The log is put to use as it is found.
    log_is_cleared, or "log-not-cleared";
}
