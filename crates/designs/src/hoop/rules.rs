//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// A line that leaves the LLC is written home.
    evictions_are_dropped, or "eviction-goes-home";
    /// A commit record is sent while slices are on their way.
    slices_are_awaited, or "slices-not-awaited";
    /// A commit is acknowledged when its record is sent.
    record_is_awaited, or "record-not-awaited";
    /// A transaction's end leaves the slice that is not full in the buffer.
    last_slice_is_flushed, or "last-slice-not-flushed";
    /// A commit record does not wait for the index entry of its block.
    record_follows_index, or "record-overtakes-index";
    /// Recovery takes records that an earlier use of a block has left there.
    stale_records_are_skipped, or "stale-records-taken";
    /// Recovery continues with the sequence number after those of the blocks that the index has: where collections have voided
    /// these, numbers come again.
    numbers_of_all_blocks_count, or "numbers-of-indexed-only";
    /// Recovery looks for the numbers that are used in one of the blocks that were opened last: in another one, opened with the
    /// same number in a life before, there may be a record.
    numbers_of_last_blocks_count, or "numbers-of-one-block";
    /// A miss takes all words of the line from each slice, not only those that are the newest.
    only_newest_words_are_taken, or "word-mask-ignored";
    /// A mapping entry goes when its line is read (§III-C).
    mapping_outlives_reads, or "mapping-dropped-on-read";
    /// Collection removes all mapping entries of the lines it brings home (Algorithm 1).
    newer_mappings_stay, or "mapping-dropped-by-address";
    /// The eviction buffer is asked before the mapping table.
    mapping_is_asked_first, or "eviction-buffer-first";
    /// Words that go home a second time are not renewed in the eviction buffer.
    eviction_buffer_is_renewed, or "eviction-buffer-stale";
    /// Collection keeps the oldest version of a word.
    newest_version_wins, or "oldest-version-wins";
    /// Blocks are collected from the newest on.
    oldest_block_goes_first, or "newest-block-first";
    /// A block is collected while records of it are on their way.
    incomplete_blocks_wait, or "incomplete-collected";
    /// A block's records are void before the words are durable at home.
    home_is_awaited, or "home-not-awaited";
    /// Records of younger blocks may be void before those of older ones.
    voided_in_order, or "voided-in-any-order";
    /// A block is used again before its records are void.
    void_is_awaited, or "void-not-awaited";
    /// A collected block is free although slices of transactions under way lie in it.
    open_slices_keep_blocks, or "open-slices-freed";
    /// Recovery replays in the order of transaction numbers.
    replayed_in_commit_order, or "replayed-by-transaction";
    /// Recovery clears the index before the words are home.
    cleared_after_home, or "cleared-before-home";
    /// Recovery clears the index from the newest block on.
    cleared_oldest_first, or "cleared-newest-first";
    /// The region is put to use as it is found.
    region_is_cleared, or "region-not-cleared";
    /// Controllers are told to commit before all have the slices.
    commit_follows_prepared, or "commit-before-prepared";
    /// Each controller decides at recovery on its own.
    controllers_decide_together, or "no-consensus";
    /// Recovery replays what is only prepared.
    only_committed_is_replayed, or "prepared-replayed";
    /// Recovery clears one region before the decision is noted in the others.
    decision_is_noted, or "decision-not-noted";
}
