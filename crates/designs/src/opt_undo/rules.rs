//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// Lines are logged and undone whole, whoever else has words in them.
    only_own_words_are_logged, or "lines-logged-whole";
    /// An evicted line does not wait for headers.
    eviction_follows_headers, or "eviction-overtakes-header";
    /// A line that is written back does not wait for headers.
    write_back_follows_headers, or "write-back-overtakes-header";
    /// A line that is written back does not wait for other transactions' headers.
    write_back_follows_neighbours, or "neighbour-overtaken";
    /// A line that leaves does not force headers that are being collected.
    header_is_forced, or "header-not-forced";
    /// A header does not wait for the entries of its record.
    header_follows_entries, or "header-overtakes-entries";
    /// A store that joins an entry leaves the header as it is.
    joined_word_is_masked, or "joined-word-not-masked";
    /// A store to another word of a line joins an entry whose record is closed.
    closed_records_are_final, or "closed-record-joined";
    /// A line that an L1 knows to be logged is taken for logged, whoever's entry it is.
    owners_are_compared, or "owner-ignored";
    /// A commit does not wait until its lines are durable.
    lines_are_awaited, or "lines-not-awaited";
    /// A commit does not wait for lines that were evicted.
    evicted_lines_are_awaited, or "evicted-line-not-awaited";
    /// A commit waits for the oldest content of a line that is on its way.
    newest_content_is_awaited, or "oldest-content-awaited";
    /// The log is removed when the lines are sent.
    log_removed_when_durable, or "log-removed-early";
    /// Recovery undoes committed transactions, too.
    only_uncommitted_is_undone, or "committed-undone";
    /// Recovery undoes the oldest entry first.
    undo_newest_first, or "undo-oldest-first";
    /// Recovery takes the record in the last place for the newest.
    newest_by_number, or "newest-by-place";
    /// The torn bits of a header are not looked at.
    torn_bits_are_checked, or "torn-bits-ignored";
    /// The torn bit is the same in all passes.
    torn_bit_turns, or "torn-bit-never-flips";
    /// The log areas are put to use as they are found.
    log_is_cleared, or "log-not-cleared";
}
