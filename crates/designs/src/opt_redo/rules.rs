//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// The commit record does not wait for the update records.
    log_is_awaited, or "log-not-awaited";
    /// A commit is acknowledged when its record is sent.
    commit_is_awaited, or "commit-not-awaited";
    /// A commit leaves no record.
    commit_leaves_record, or "commit-record-missing";
    /// Lines that leave the LLC go home.
    evictions_are_parked, or "evictions-go-home";
    /// Lines that find no place in the victim cache go home.
    overflow_waits, or "overflow-goes-home";
    /// A line that is parked again leaves its older content there.
    newer_victim_replaces, or "older-victim-stays";
    /// Parked lines are dropped when their transactions have committed, at home or not.
    victims_stay_until_home, or "victims-dropped-at-commit";
    /// Lines are parked for open transactions only, not for those that have committed.
    parked_for_committed_too, or "committed-not-parked";
    /// The back end takes transactions whose commit records are on their way.
    checkpoint_follows_commit, or "checkpoint-before-commit";
    /// The back end writes whole lines home, whoever else has words in them.
    only_own_words_are_checkpointed, or "whole-lines-checkpointed";
    /// The oldest of several updates of a word goes home.
    newest_update_wins, or "oldest-update-wins";
    /// The log is truncated when the updates are sent.
    truncated_when_durable, or "truncated-at-sending";
    /// The log of each thread is truncated by a word of its own.
    truncated_together, or "truncated-thread-by-thread";
    /// Slots are used again when the truncation is sent.
    slots_free_when_durable, or "slots-freed-early";
    /// Recovery writes whole lines, whoever else has words in them.
    only_own_words_are_replayed, or "whole-lines-replayed";
    /// Recovery replays one log after the other.
    replayed_in_commit_order, or "replayed-thread-by-thread";
    /// Recovery replays records that no commit record follows.
    only_committed_is_replayed, or "uncommitted-replayed";
    /// The torn bits of metadata are not looked at.
    torn_bits_are_checked, or "torn-bits-ignored";
    /// The log areas are put to use as they are found.
    log_is_cleared, or "log-not-cleared";
}
