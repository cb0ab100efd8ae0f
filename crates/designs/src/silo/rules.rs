//! The rules of the protocol, and the mutants that break them.

use crate::rules::rules;

rules! {
    /// A merge leaves the flush-bit as it was (literal, §III-C).
    merge_clears_flush_bit, or "merge-keeps-flush-bit";
    /// A new entry leaves committed entries of the same word in other buffers alone (literal, §III-C).
    new_entry_drops_twins, or "twins-stay";
    /// Undo records are applied in the order in which they were written (literal, §III-G).
    undo_newest_first, or "undo-oldest-first";
    /// The flush-bit is set when the line leaves the caches, not when it is durable.
    flush_bit_when_durable, or "flush-bit-at-eviction";
    /// An overflowing entry still takes merges.
    overflowing_take_no_merges, or "merges-overflowing";
    /// Overflow writes the new words home, but no undo records.
    overflow_writes_undo, or "overflow-without-undo";
    /// An overflowed entry is freed when its word is home, whether its undo record is durable or not.
    freed_after_undo, or "freed-before-undo";
    /// The commit does not move the head of the log area.
    commit_moves_head, or "head-stays";
    /// The tail does not move past an overflow batch: what follows is written over it.
    batch_moves_tail, or "tail-stays";
    /// At a power failure no id tuples are written.
    battery_writes_tuples, or "no-tuple";
    /// At a power failure the battery writes one record too few for each thread.
    battery_writes_all, or "battery-too-small";
    /// Entries of the next transaction are merged into committed ones.
    committed_take_no_merges, or "merges-across-commit";
    /// A store does not wait for entries of an earlier transaction with its id.
    ids_are_awaited, or "old-ids-stay";
    /// The commit is acknowledged, but its entries are not marked.
    commit_marks_entries, or "commit-not-marked";
}
