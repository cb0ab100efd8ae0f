//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// A transaction counts as committed as far as its records are whole (literal, §IV-F).
    commit_record_decides, or "whole-means-committed";
    /// A line that moves outward leaves its fwb bit behind (literal, §IV-D, Fig. 5).
    bit_travels_outward, or "bit-stays-behind";
    /// Data does not wait for its records (literal, §III-B, §IV-C).
    data_waits, or "data-does-not-wait";
    /// Slots are used again in their turn, wherever the head is (literal, §III-C, §IV-D).
    log_waits_for_head, or "log-goes-round";
    /// A commit is acknowledged when its record is in the buffer (literal, §III-D).
    commit_waits, or "commit-does-not-wait";
    /// The creation of a log sets the head and leaves the slots as they are (literal, §IV-B).
    log_is_cleared, or "log-not-cleared";
    /// A line's entries stay in the buffer when it leaves; it waits for those that were sent.
    entries_leave_before_line, or "entries-stay";
    /// A merge takes the undo word of the later store.
    merge_keeps_undo, or "merge-takes-undo";
    /// A store is merged into an entry of an earlier transaction.
    merges_within_transaction, or "merges-across-transactions";
    /// A commit waits for its own record, not for those before it.
    commit_waits_for_earlier, or "commit-waits-for-itself";
    /// Stores leave no slot for the commit records of open transactions.
    commit_records_have_room, or "nothing-reserved";
    /// The torn bit is the same in every pass over the log.
    torn_bit_turns, or "torn-bit-stays";
    /// Only the first word of a record has a torn bit.
    every_word_has_torn_bit, or "one-torn-bit";
    /// The log is truncated up to where it ended when the last scan began, not the one before.
    two_scans_are_needed, or "one-scan-is-enough";
    /// A scan goes from the LLC to the L1s.
    scans_from_inside, or "scans-from-outside";
    /// Scans flag lines and write none back.
    old_lines_are_forced, or "nothing-is-forced";
    /// The head passes records of running transactions.
    head_waits_for_running, or "head-passes-running";
    /// The head passes records of transactions whose commit records are not durable.
    head_waits_for_ending, or "head-passes-ending";
    /// The head does not wait until data is durable.
    head_waits_for_data, or "head-does-not-wait";
    /// The head waits for lines that scans wrote back, not for evicted ones.
    head_waits_for_evictions, or "head-ignores-evictions";
    /// Places are used again when the new head has been sent, not when it is durable.
    slots_free_when_durable, or "slots-free-early";
    /// Recovery takes entries whose homes do not hold the new word for uncommitted ones.
    home_tells_nothing, or "home-tells-commit";
    /// Recovery looks for a commit record of the same id, in whichever place.
    commit_follows_records, or "id-tells-commit";
    /// Recovery continues behind a hole.
    holes_end_the_log, or "holes-are-skipped";
    /// Recovery redoes nothing.
    redo_is_replayed, or "redo-left-out";
    /// Recovery redoes the newest records first.
    redo_oldest_first, or "redo-newest-first";
    /// Recovery undoes the oldest records first.
    undo_newest_first, or "undo-oldest-first";
    /// Recovery moves the head before it writes words.
    recovery_moves_head_last, or "recovery-moves-head-first";
    /// Records in the buffer need no room in the log until they leave.
    buffered_records_have_room, or "buffer-needs-no-room";
    /// Packed: metadata does not wait for its data.
    metadata_follows_data, or "metadata-first";
    /// An entry's dirty flag is that of the store that made it (MorLog §VI-A, at its word).
    flags_add_up, or "flag-of-first-store";
    /// With clwb instructions: the last line that a transaction has written gets none.
    all_lines_get_clwb, or "line-without-clwb";
    /// With clwb instructions: a line gets its own before its first store.
    clwb_follows_stores, or "clwb-before-store";
    /// With clwb instructions: they follow the end of the transaction instead of preceding it.
    clwb_precedes_end, or "clwb-after-end";
}
