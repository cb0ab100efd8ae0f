//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::memory::Addr;
use graven_machine::cover_points;
use graven_machine::design::Store;

use crate::events::events;

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
        /// Stores merged into a log entry that was still buffered.
        log_entries_merged: Count, "entries";
        /// Stores for which the design made no entry, and entries that it dropped, because the word did not change.
        log_entries_ignored: Count, "entries";
        /// Log entries discarded because their line had reached PM.
        log_entries_discarded: Count, "entries";
        /// Largest number of entries in one log buffer; for `lad`, of lines in the pool.
        log_buffer_max: Gauge, "entries";
        /// Times a log buffer or a transaction buffer overflowed.
        log_overflows: Count, "events";
        /// In-place updates of home words from buffered log data.
        in_place_updates: Count, "words";
    }
}

cover_points! {
    Overflow = "overflow", "undo records of an open transaction left for the log area";
    MergeAfterFlush = "merge-after-flush", "a store was merged into an entry with the flush-bit set";
    MergeUnderLine = "merge-under-line", "a store was merged while its line was on its way home";
    LineSettlesCommitted = "line-settles-committed", "an evicted line settled an entry of a committed transaction";
    TwinDropped = "twin-dropped", "a new entry dropped a committed one of the same word";
    WaitsForCommitted = "waits-for-committed", "a store waited for committed entries to go home";
    AreaWrapped = "area-wrapped", "the log area came round";
    AgainAfterOverflow = "again-after-overflow", "a word was logged again by the transaction that had overflowed it";
}

events! {
    /// Something that happens; `buffer` is the number of a thread's log buffer.
    #[derive(Clone, Copy, Debug)]
    pub enum Event;

    /// A store leaves its word as it was: no entry.
    Ignored => counts log_entries_ignored += 1;
    /// A store was merged into an entry, whose flush-bit was set, or whose line was on its way home.
    Merged { buffer: usize, store: Store, after_flush: bool, under_line: bool } =>
        counts log_entries_merged += 1;
        covers MergeAfterFlush if after_flush, MergeUnderLine if under_line;
        says "buffer {buffer}: entry of {} merged, {:#x}", store.addr, store.new;
    /// A store made an entry; its transaction had or had not overflowed an entry of the word before.
    Appended { buffer: usize, store: Store, occupied: usize, after_overflow: bool } =>
        counts log_entries += 1; raises log_buffer_max to occupied as u64;
        covers AgainAfterOverflow if after_overflow;
        says "buffer {buffer}: entry of {}, {:#x} -> {:#x}", store.addr, store.old, store.new;
    /// A store found no place, and there are committed entries that will leave one.
    WaitsForCommitted => covers WaitsForCommitted;
    /// Committed entries of a word were dropped for a new one.
    CommittedDropped { buffer: usize, addr: Addr, entries: usize } =>
        counts log_entries_discarded += entries as u64; covers TwinDropped;
        says "buffer {buffer}: committed entry of {addr} dropped";
    /// The oldest entries overflow into the log area, which has been filled before or not.
    Overflows { buffer: usize, entries: usize, wraps: bool } =>
        counts log_overflows += 1; covers Overflow, AreaWrapped if wraps;
        says "buffer {buffer}: {entries} entries overflow";
    /// An overflow batch is in the log area.
    BatchDurable { buffer: usize } => says "buffer {buffer}: its overflow batch is in the log area";
    /// An entry's word is sent home.
    SentHome => counts in_place_updates += 1;
    /// An entry's word is home.
    Home { buffer: usize, addr: Addr } => says "buffer {buffer}: {addr} is home";
    /// An evicted line has an entry of a committed transaction.
    LineSettlesCommitted => covers LineSettlesCommitted;
    /// An evicted line with an entry's word is durable.
    LineDurable { buffer: usize, addr: Addr } => says "buffer {buffer}: flush-bit of {addr} set";
    /// A transaction committed; `at_home` of its entries had their words at home.
    Committed { buffer: usize, transaction: u64, at_home: u64 } =>
        counts log_entries_discarded += at_home;
        says "buffer {buffer}: entries of transaction {transaction} are committed";
}
