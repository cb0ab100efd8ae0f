//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// A commit takes whole lines, whoever else has words in them.
    foreign_words_stay, or "whole-lines-committed";
    /// Recovery writes whole lines back, whoever else has words in them.
    only_own_words_are_undone, or "whole-lines-undone";
    /// A commit does not wait until the controller has all lines.
    commit_follows_lines, or "commit-before-lines";
    /// A commit does not wait until lines that were logged are durable at home.
    home_is_awaited, or "home-not-awaited";
    /// A commit leaves one of its lines behind.
    all_lines_are_committed, or "line-not-committed";
    /// The commit register moves when the controller has all lines.
    register_waits_for_commit, or "register-early";
    /// The commit register moves with the acknowledgement.
    register_moves_with_commit, or "register-late";
    /// A line that was pushed early is not pushed again.
    early_push_is_repeated, or "early-push-final";
    /// Newer content of a line that is on its way home is forgotten.
    newer_content_is_kept, or "newer-forgotten";
    /// A line goes home while its undo records are on their way.
    records_are_awaited, or "records-not-awaited";
    /// An undo record counts when its data is durable, without its header.
    header_is_awaited, or "header-not-awaited";
    /// The header of an undo record does not wait for the data.
    header_follows_data, or "header-overtakes-data";
    /// A line that finds no place goes home without undo records.
    overflow_is_logged, or "overflow-not-logged";
    /// Only one of the transactions with words in a line is logged.
    all_transactions_are_logged, or "one-transaction-logged";
    /// A transaction gives up places that hold other transactions' words, too.
    shared_places_stay, or "shared-places-given-up";
    /// A transaction gives up its places while its commit message is on its way.
    committing_places_stay, or "committing-places-given-up";
    /// A place is free when its line is sent.
    place_free_when_durable, or "place-freed-at-sending";
    /// The newest version of a line that drains is taken for the one that is durable.
    oldest_version_drains, or "newest-version-drained";
    /// The youngest line that drains is not saved at a power failure.
    all_draining_is_saved, or "youngest-not-saved";
    /// Lines of open transactions are saved at a power failure, too.
    only_committed_is_saved, or "uncommitted-saved";
    /// Battery power saves the lines that drain newest first.
    saved_oldest_first, or "saved-newest-first";
    /// Recovery undoes committed transactions, too.
    only_uncommitted_is_undone, or "committed-undone";
    /// The torn bits of an undo record are not looked at.
    torn_bits_are_checked, or "torn-bits-ignored";
    /// The log areas are put to use as they are found.
    log_is_cleared, or "log-not-cleared";
    /// LR names a record whose header is on its way.
    chain_follows_header, or "chain-before-header";
    /// LR names a record when the first line of its header is durable.
    second_line_is_awaited, or "second-line-not-awaited";
    /// A line goes home when its record is durable, although older ones of the chain are not.
    line_follows_chain, or "line-before-chain";
    /// A commit leaves LR as it is.
    commit_clears_chain, or "chain-not-cleared";
    /// The first record of a transaction names the last one of the transaction before.
    chain_ends_with_transaction, or "chain-runs-on";
    /// Recovery undoes the record that LR names and no more.
    next_pointer_is_followed, or "next-pointer-ignored";
    /// Undo blocks are free when their record is in the chain.
    blocks_stay_until_commit, or "blocks-released-early";
}
