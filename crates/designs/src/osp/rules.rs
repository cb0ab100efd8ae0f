//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// A commit takes whole lines, whoever else has words in them.
    foreign_words_stay, or "whole-lines-committed";
    /// The record of a commit is sent while its lines are on their way.
    flush_is_awaited, or "flush-not-awaited";
    /// A commit record is sent while lines that were evicted before are on their way.
    eviction_is_awaited, or "eviction-not-awaited";
    /// A commit is acknowledged when its record is sent.
    record_is_awaited, or "record-not-awaited";
    /// An uncommitted line goes to the place that is committed.
    evicted_beside_committed, or "evicted-over-committed";
    /// A line is evicted to its other place before the commit of the first is recorded.
    eviction_follows_record, or "eviction-overtakes-record";
    /// A line is flushed to its other place before the commit of the first is recorded.
    flush_follows_record, or "flush-overtakes-record";
    /// A shared line's uncommitted version goes to the other place before the commit is recorded.
    shared_line_follows_record, or "shared-line-overtakes-record";
    /// Records of one page do not wait for each other.
    records_of_a_page_in_turn, or "records-of-a-page-together";
    /// The last line of a record does not wait for the others.
    marker_follows_record, or "marker-overtakes-record";
    /// The first record of a page does not wait for the table to know its home.
    home_word_is_awaited, or "home-word-not-awaited";
    /// Journal entries are overwritten while the checkpoint of them is on its way.
    checkpoint_is_awaited, or "checkpoint-not-awaited";
    /// Journal entries are overwritten before the header says that they are not needed.
    head_is_awaited, or "head-not-awaited";
    /// A checkpoint takes over what the journal does not say yet.
    checkpoint_follows_journal, or "checkpoint-ahead";
    /// The record of a consolidation is sent while copies are on their way.
    copies_are_awaited, or "copies-not-awaited";
    /// A shadow page is free without a record of its consolidation.
    consolidation_is_recorded, or "consolidation-not-recorded";
    /// A shadow page is free while the record of its consolidation is on its way.
    page_free_when_recorded, or "page-reused-early";
    /// A store to a page does not stop its consolidation.
    stores_stop_consolidation, or "consolidation-goes-on";
    /// The torn bits of journal entries are not looked at.
    torn_bits_are_checked, or "torn-bits-ignored";
    /// Recovery takes over records without their last entry.
    unfinished_records_are_left_out, or "unfinished-replayed";
    /// Recovery takes over records without their first entry.
    beheaded_records_are_left_out, or "beheaded-replayed";
    /// Recovery reads the journal in the order of its places.
    replayed_by_number, or "replayed-by-place";
    /// Recovery does not read the table's bitmaps.
    table_is_read, or "table-not-read";
    /// Journal and table are put to use as they are found.
    metadata_is_cleared, or "metadata-not-cleared";
}
