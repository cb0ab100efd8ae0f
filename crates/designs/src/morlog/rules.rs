//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// A redo entry is discarded when its line leaves the LLC, and nothing records that (literal, §III-B).
    discard_is_recorded, or "discard-leaves-nothing";
    /// A word's dirty flag is that of its last store (literal, §IV-A, §V).
    flags_add_up, or "flag-of-last-store";
    /// Undo restores the bytes of the dirty flag only (literal, §IV-A).
    undo_restores_whole_words, or "undo-in-dirty-bytes";
    /// The ulog counter counts L1 lines, and not what waits in the redo buffer (literal, §III-C).
    ulog_words_are_counted, or "lines-are-counted";
    /// With a log per thread, records that leave the buffer together are sent log by log, some before the
    /// commit records that are before them in the buffer (literal, §III-F).
    records_follow_commits, or "records-pass-commits";
    /// When ids come round, word states are not cleared, and no transaction waits for its id (literal, §III-B).
    states_end_with_ids, or "states-outlive-ids";
    /// A transaction does not wait until the one that had its id before has left.
    ids_are_awaited, or "ids-are-not-awaited";
    /// An unchanged entry is dropped even if redo data was dropped in its favour (literal, §III-B with §IV-A).
    debt_is_kept, or "debt-is-forgotten";
    /// The undo and the redo word of one entry may both be without their clean bytes (against §IV-B).
    one_word_stays_whole, or "both-differential";
    /// Data does not wait for its undo+redo records.
    data_waits, or "data-does-not-wait";
    /// A line's undo+redo entries stay in the buffer when it leaves the caches.
    entries_leave_before_line, or "entries-stay";
    /// A merge takes the undo word of the later store.
    merge_keeps_undo, or "merge-takes-undo";
    /// Another transaction's store finds the line's states valid.
    owners_are_compared, or "owners-are-not-compared";
    /// A line that leaves its L1 takes its redo data along.
    eviction_logs_redo, or "eviction-logs-nothing";
    /// A transaction's end leaves the ULog words of the L1 where they are.
    commit_logs_ulog, or "commit-leaves-ulog";
    /// A transaction's end leaves its entries in the redo buffer.
    commit_sends_redo, or "commit-leaves-redo";
    /// A commit is acknowledged when its record has been sent.
    commit_waits, or "commit-does-not-wait";
    /// A redo entry stays when its word is stored to again.
    store_discards_redo, or "redo-outlives-store";
    /// Redo data counts as home when its line has been sent.
    home_when_durable, or "home-when-sent";
    /// Parked words leave the caches with their line.
    parked_words_stay, or "parked-words-leave";
    /// Parked words go home at the end of their transaction, whether its commit is durable or not.
    parked_words_follow_commit, or "parked-words-hurry";
    /// Recovery takes every transaction with a commit record for whole.
    counter_tells_whole, or "counter-is-ignored";
    /// Recovery redoes whole transactions behind one that is not.
    only_a_prefix_is_redone, or "prefix-is-ignored";
    /// Transactions leave the log in any order.
    head_waits_for_ending, or "head-passes-ending";
    /// The head passes records of running transactions.
    head_waits_for_running, or "head-passes-running";
    /// The head does not wait until data is durable.
    head_waits_for_data, or "head-does-not-wait";
    /// The log is truncated up to where it ended when the last scan began, not the one before.
    two_scans_are_needed, or "one-scan-is-enough";
    /// Scans flag lines and write none back.
    old_lines_are_forced, or "nothing-is-forced";
    /// Groups are used again when the new head has been sent, not when it is durable.
    groups_free_when_durable, or "groups-free-early";
    /// A transaction's lines count as home when they have been sent (transaction table).
    table_counts_durable, or "table-counts-sent";
    /// Transactions leave the table in any order (several logs).
    table_in_order, or "table-in-any-order";
    /// The torn bit is the same in every pass over the log.
    torn_bit_turns, or "torn-bit-stays";
    /// Only the first word of a record has a torn bit.
    every_word_has_torn_bit, or "one-torn-bit";
    /// The creation of a log sets the head and leaves the blocks as they are.
    log_is_cleared, or "log-not-cleared";
    /// Metadata does not wait for its data.
    metadata_follows_data, or "metadata-first";
    /// Recovery continues behind a hole.
    holes_end_the_log, or "holes-are-skipped";
    /// Recovery undoes the oldest records first.
    undo_newest_first, or "undo-oldest-first";
    /// Recovery redoes transactions in the order of threads, not of commits.
    redo_in_commit_order, or "redo-by-thread";
    /// Recovery moves the heads before it writes words.
    recovery_moves_head_last, or "recovery-moves-head-first";
}
