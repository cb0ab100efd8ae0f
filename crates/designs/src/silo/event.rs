//! What happens in the design: what is counted of it, which cover points it reaches, what a timeline says.

use graven_base::counters;
use graven_base::memory::Addr;
use graven_machine::cover_points;
use graven_machine::design::{DesignEvent, Observation, Store};

counters! {
    /// What the design counts.
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

/// Something that happens; `buffer` is the number of a thread's log buffer.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A store leaves its word as it was: no entry.
    Ignored,
    /// A store was merged into an entry, whose flush-bit was set, or whose line was on its way home.
    Merged { buffer: usize, store: Store, after_flush: bool, under_line: bool },
    /// A store made an entry; its transaction had or had not overflowed an entry of the word before.
    Appended { buffer: usize, store: Store, occupied: usize, after_overflow: bool },
    /// A store found no place, and there are committed entries that will leave one.
    WaitsForCommitted,
    /// Committed entries of a word were dropped for a new one.
    CommittedDropped { buffer: usize, addr: Addr, entries: usize },
    /// The oldest entries overflow into the log area, which has been filled before or not.
    Overflows { buffer: usize, entries: usize, wraps: bool },
    /// An overflow batch is in the log area.
    BatchDurable { buffer: usize },
    /// An entry's word is sent home.
    SentHome,
    /// An entry's word is home.
    Home { buffer: usize, addr: Addr },
    /// An evicted line has an entry of a committed transaction.
    LineSettlesCommitted,
    /// An evicted line with an entry's word is durable.
    LineDurable { buffer: usize, addr: Addr },
    /// A transaction committed; of its entries so many had their words at home.
    Committed { buffer: usize, transaction: u64, at_home: u64 },
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    #[inline(always)]
    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::Ignored => to.count().log_entries_ignored += 1,
            Event::Merged { buffer, store, after_flush, under_line } => {
                to.count().log_entries_merged += 1;
                to.cover_if(after_flush, Cover::MergeAfterFlush);
                to.cover_if(under_line, Cover::MergeUnderLine);
                to.explain(|| {
                    format!("buffer {buffer}: entry of {} merged, {:#x}", store.addr, store.new)
                });
            }
            Event::Appended { buffer, store, occupied, after_overflow } => {
                let counters = to.count();
                counters.log_entries += 1;
                counters.log_buffer_max = counters.log_buffer_max.max(occupied as u64);
                to.cover_if(after_overflow, Cover::AgainAfterOverflow);
                to.explain(|| {
                    let Store { addr, old, new, .. } = store;
                    format!("buffer {buffer}: entry of {addr}, {old:#x} -> {new:#x}")
                });
            }
            Event::WaitsForCommitted => to.cover(Cover::WaitsForCommitted),
            Event::CommittedDropped { buffer, addr, entries } => {
                to.count().log_entries_discarded += entries as u64;
                to.cover(Cover::TwinDropped);
                to.explain(|| format!("buffer {buffer}: committed entry of {addr} dropped"));
            }
            Event::Overflows { buffer, entries, wraps } => {
                to.count().log_overflows += 1;
                to.cover(Cover::Overflow);
                to.cover_if(wraps, Cover::AreaWrapped);
                to.explain(|| format!("buffer {buffer}: {entries} entries overflow"));
            }
            Event::BatchDurable { buffer } => {
                to.explain(|| format!("buffer {buffer}: its overflow batch is in the log area"));
            }
            Event::SentHome => to.count().in_place_updates += 1,
            Event::Home { buffer, addr } => {
                to.explain(|| format!("buffer {buffer}: {addr} is home"));
            }
            Event::LineSettlesCommitted => to.cover(Cover::LineSettlesCommitted),
            Event::LineDurable { buffer, addr } => {
                to.explain(|| format!("buffer {buffer}: flush-bit of {addr} set"));
            }
            Event::Committed { buffer, transaction, at_home } => {
                to.count().log_entries_discarded += at_home;
                to.explain(|| {
                    format!("buffer {buffer}: entries of transaction {transaction} are committed")
                });
            }
        }
    }
}
