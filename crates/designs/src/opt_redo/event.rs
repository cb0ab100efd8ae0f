//! What happens in the design: what is counted of it, which cover points it reaches, what a timeline says.

use graven_base::counters;
use graven_base::memory::{LineAddr, WordMask};
use graven_machine::cover_points;
use graven_machine::design::{DesignEvent, Observation};

use super::protocol::Hold;
use crate::victims;

counters! {
    /// What the design counts.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
        /// Stores merged into a log entry that was still buffered.
        log_entries_merged: Count, "entries";
        /// Largest number of entries in one log buffer; for `lad`, of lines in the pool.
        log_buffer_max: Gauge, "entries";
        /// Times a log buffer or a transaction buffer overflowed.
        log_overflows: Count, "events";
        /// Records truncated from the log.
        log_records_truncated: Count, "records";
        /// In-place updates of home words from buffered log data.
        in_place_updates: Count, "words";
        /// Words of updates that were not written home because the same batch had newer ones.
        log_words_combined: Count, "words";
        /// Batches of committed transactions that were checkpointed from the log.
        checkpoints: Count, "batches";
        /// Times a design waited until a group of writes was durable before it sent the next: records before a commit record, data before a truncation.
        ordering_points: Count, "events";
    }
    includes { victims: victims::Counters }
}

cover_points! {
    LogBufferFull = "log-buffer-full", "a store waited for an entry of the log buffer";
    AreaFull = "area-full", "a store waited until the log area was truncated";
    AreaWrapped = "area-wrapped", "a record took the slot of an older one";
    UpdateMerged = "update-merged", "a store was merged into a record that was still buffered";
    CommitWaits = "commit-waits", "the end of a transaction waited for its records";
    CommitsOutOfOrder = "commits-out-of-order", "a commit record was durable before one with a smaller sequence number";
    Pressed = "pressed", "the back end began before its batch was full and before its time";
    Combined = "combined", "two transactions of a batch had updated one word";
    BatchOfThreads = "batch-of-threads", "a batch held transactions of several threads";
    OpenLineUpdated = "open-line-updated", "the back end updated a line that an open transaction had stored to";
    VictimServed = "victim-served", "a miss was served from the victim cache";
    VictimReplaced = "victim-replaced", "a line left the LLC again while the victim cache had older content of it";
    VictimUncommitted = "victim-uncommitted", "a line was parked for a transaction that was open";
    VictimWaits = "victim-waits", "a line found the victim cache full and waited";
    StoreWaitsForVictims = "store-waits-for-victims", "a store waited because lines waited for the victim cache";
}

/// How the victim cache appears in what is covered and told.
const VICTIM_CACHE: victims::Described<Cover> = victims::Described {
    name: "victim cache",
    uncommitted: Cover::VictimUncommitted,
    replaced: Cover::VictimReplaced,
    waits: Cover::VictimWaits,
    served: Cover::VictimServed,
};

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A store was merged into a record of its line that is still buffered.
    Merged,
    /// A store finds something full, and waits.
    StoreWaits(Hold),
    /// A store made a record, in a slot that was used before or not; so many entries of the log buffer are occupied.
    Recorded { wraps: bool, occupied: usize },
    /// An update record leaves the log buffer for the log.
    RecordSent { thread: usize, home: LineAddr, words: WordMask, number: u64 },
    /// The controller hears of the end of a transaction whose records are on their way.
    CommitWaits,
    /// All records of a transaction are durable: its commit record is sent.
    CommitSent { thread: usize, updates: u64, sequence: u64 },
    /// A commit record is durable before one with a smaller sequence number.
    CommitOutOfOrder,
    /// The back end begins a batch of so many records; somebody presses it or not.
    BatchBegins { records: usize, pressed: bool, of_threads: bool },
    /// The records of a batch are combined into so many words; `superseded` updates of words go nowhere. Two
    /// transactions had updated one word, an open one has stored to a line of the batch, or not.
    Combined { words: u64, superseded: u64, shared: bool, open_line: bool },
    /// The back end sends words of a line home.
    UpdateSent { line: LineAddr, words: WordMask },
    /// All updates of a batch are durable.
    BatchHome,
    /// The truncation word is sent.
    TruncationSent { newest: u64 },
    /// The log has room for so many records more.
    Truncated { records: usize },
    /// Of the victim cache.
    Victims(victims::Event),
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    #[inline(always)]
    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::Merged => {
                to.count().log_entries_merged += 1;
                to.cover(Cover::UpdateMerged);
            }
            Event::StoreWaits(hold) => {
                to.count().log_overflows += u64::from(hold != Hold::Victims);
                to.cover(match hold {
                    Hold::Buffer => Cover::LogBufferFull,
                    Hold::Area => Cover::AreaFull,
                    Hold::Victims => Cover::StoreWaitsForVictims,
                });
            }
            Event::Recorded { wraps, occupied } => {
                let counters = to.count();
                counters.log_entries += 1;
                counters.log_buffer_max = counters.log_buffer_max.max(occupied as u64);
                to.cover_if(wraps, Cover::AreaWrapped);
            }
            Event::RecordSent { thread, home, words, number } => to.explain(|| {
                let home = home.addr();
                format!("thread {thread} logs words {words:#010b} of {home} (record {number})")
            }),
            Event::CommitWaits => to.cover(Cover::CommitWaits),
            Event::CommitSent { thread, updates, sequence } => {
                to.count().ordering_points += 1;
                to.explain(|| {
                    format!(
                        "thread {thread}: {updates} records are durable, sends commit {sequence}"
                    )
                });
            }
            Event::CommitOutOfOrder => to.cover(Cover::CommitsOutOfOrder),
            Event::BatchBegins { records, pressed, of_threads } => {
                to.count().checkpoints += 1;
                to.cover_if(pressed, Cover::Pressed);
                to.cover_if(of_threads, Cover::BatchOfThreads);
                to.explain(|| format!("the back end reads {records} records"));
            }
            Event::Combined { words, superseded, shared, open_line } => {
                let counters = to.count();
                counters.in_place_updates += words;
                counters.log_words_combined += superseded;
                to.cover_if(shared, Cover::Combined);
                to.cover_if(open_line, Cover::OpenLineUpdated);
            }
            Event::UpdateSent { line, words } => {
                to.explain(|| {
                    format!("the back end updates words {words:#010b} of {}", line.addr())
                });
            }
            Event::BatchHome => to.count().ordering_points += 1,
            Event::TruncationSent { newest } => {
                to.explain(|| format!("the log is truncated: commits up to {newest} are at home"));
            }
            Event::Truncated { records } => to.count().log_records_truncated += records as u64,
            Event::Victims(event) => event.observe(to, VICTIM_CACHE),
        }
    }
}
