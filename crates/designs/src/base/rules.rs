//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// A line is flushed past a record of another thread's store to it.
    flush_follows_record, or "flush-overtakes-record";
    /// A line is evicted past a record of a store to it.
    eviction_follows_record, or "eviction-overtakes-record";
    /// A store is done when its line is sent.
    flush_is_awaited, or "flush-not-awaited";
    /// A store is done when its line was evicted instead of flushed.
    evicted_line_is_awaited, or "evicted-line-not-awaited";
    /// A commit is acknowledged when its record is sent.
    commit_is_awaited, or "commit-not-awaited";
    /// A commit leaves no record.
    commit_leaves_record, or "commit-record-missing";
    /// Recovery undoes a transaction that a commit record ends.
    only_uncommitted_is_undone, or "committed-undone";
    /// Recovery undoes the oldest record first.
    undo_newest_first, or "undo-oldest-first";
    /// Recovery leaves out the first record of the transaction.
    first_record_is_undone, or "first-record-not-undone";
    /// The record in the last place is taken for the newest.
    newest_by_number, or "newest-by-place";
    /// Only the first word of a record has a torn bit.
    every_word_has_torn_bit, or "torn-bit-in-first-word-only";
    /// The torn bit is the same in all passes.
    torn_bit_turns, or "torn-bit-never-flips";
    /// The log area is put to use as it is found.
    log_is_cleared, or "log-not-cleared";
}
