//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// A word that is merged into an entry of the log buffer is not marked there.
    merged_word_is_marked, or "merged-word-forgotten";
    /// The end of a transaction leaves the newest entry in the log buffer.
    last_entry_is_sent, or "entry-not-sent";
    /// Headers do not wait for their entries.
    headers_follow_entries, or "header-overtakes-entries";
    /// The last header does not wait for the others.
    last_header_follows_others, or "last-header-overtakes";
    /// A commit is acknowledged when its last header is sent.
    commit_is_awaited, or "commit-not-awaited";
    /// With buffered headers, a commit does not wait for log entries.
    entries_are_awaited, or "entries-not-awaited";
    /// LR does not wait for headers.
    lr_follows_headers, or "lr-before-headers";
    /// LR moves with the acknowledgement.
    lr_moves_before_acknowledgement, or "lr-at-acknowledgement";
    /// LR is lowered with the thread's next commit.
    lr_lowered_at_once, or "lr-lowered-late";
    /// A last header does not point to the thread's transaction before.
    earlier_transaction_is_linked, or "before-not-linked";
    /// The log entries of a record get one block.
    each_entry_has_a_block, or "block-allocated-twice";
    /// Blocks and slots of a transaction are free when it has committed.
    blocks_stay_until_home, or "blocks-freed-at-commit";
    /// A transaction is taken to be at home when its updates are sent.
    retired_when_durable, or "retired-at-sending";
    /// The log of a transaction that is at home is dead, whatever is before it in commit order.
    retired_in_order, or "retired-in-any-order";
    /// Updates in place are sent when a transaction ends.
    updates_follow_commit, or "updated-before-commit";
    /// Updates in place write whole lines, whoever else has words in them.
    only_own_words_are_updated, or "whole-lines-updated";
    /// Recovery writes whole lines, whoever else has words in them.
    only_own_words_are_redone, or "whole-lines-redone";
    /// Buffered headers are discarded when their transaction has committed.
    headers_stay_until_home, or "headers-discarded-at-commit";
    /// Buffered headers that are written to PM lose their ADR entries when they are sent.
    adr_free_when_durable, or "adr-freed-at-sending";
    /// The buffered headers of open transactions are saved at a power failure, too, complete as they are.
    only_committed_headers_are_saved, or "open-headers-saved";
    /// The first header of a transaction is not saved at a power failure.
    all_headers_are_saved, or "first-header-not-saved";
    /// Lines that leave the LLC go home.
    evictions_are_held, or "evictions-go-home";
    /// Lines that find no place in the victim area go home.
    overflow_waits, or "overflow-goes-home";
    /// A line that is held again leaves its older content there.
    newer_victim_replaces, or "older-victim-stays";
    /// Lines are held for open transactions only, not for those that have committed.
    held_for_committed_too, or "committed-not-held";
    /// Recovery redoes the first record of each transaction only.
    next_is_followed, or "next-not-followed";
    /// Recovery redoes the newest transaction of each thread only.
    older_is_followed, or "older-not-followed";
    /// Recovery redoes one thread's transactions after the other's.
    redone_in_commit_order, or "redone-thread-by-thread";
    /// Recovery redoes the newest transaction first.
    redone_oldest_first, or "redone-newest-first";
    /// Recovery redoes records that are not those of a committed transaction.
    only_committed_is_redone, or "uncommitted-redone";
    /// The torn bits of headers are not looked at.
    torn_bits_are_checked, or "torn-bits-ignored";
    /// The log areas are put to use as they are found.
    log_is_cleared, or "log-not-cleared";
}
