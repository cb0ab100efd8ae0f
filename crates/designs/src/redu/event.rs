//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::memory::{LineAddr, WordMask};
use graven_machine::cover_points;

use super::protocol::Hold;
use crate::events::events;
use crate::mechanisms::victims;

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
        /// Stores merged into a log entry that was still buffered.
        log_entries_merged: Count, "entries";
        /// Largest number of entries in one log buffer; for `lad`, of lines in the pool.
        log_buffer_max: Gauge, "entries";
        /// Largest number of log requests in a controller's log queue.
        log_queue_max: Gauge, "requests";
        /// Log requests that found the log queue full and waited outside it.
        log_queue_full: Count, "requests";
        /// Log requests that waited because no block of the log region was free.
        log_space_waits: Count, "requests";
        /// Headers of log records, complete with their addresses.
        log_headers: Count, "headers";
        /// Headers that were never written to PM: their updates were at home before.
        log_headers_avoided: Count, "headers";
        /// Largest number of ADR entries that a design used.
        adr_entries_max: Gauge, "lines";
        /// ADR entries in use, summed over cycles.
        adr_entry_cycles: Count, "lines x cycles";
        /// Times a design found no ADR entry free.
        adr_overflows: Count, "events";
        /// Times a log buffer or a transaction buffer overflowed.
        log_overflows: Count, "events";
        /// Records truncated from the log.
        log_records_truncated: Count, "records";
        /// In-place updates of home words from buffered log data.
        in_place_updates: Count, "words";
        /// Times a design waited until a group of writes was durable before it sent the next: records before a commit record, data before a truncation.
        ordering_points: Count, "events";
    }
    includes { victims: victims::Counters }
}

cover_points! {
    StoreMerged = "store-merged", "a store went into an entry of the log buffer that its line had";
    EntryEvicted = "entry-evicted", "a full log buffer sent its oldest entry";
    LineLoggedAgain = "line-logged-again", "a transaction logged a line a second time";
    QueueFull = "queue-full", "a log request found the log queue full";
    StoreWaitsForQueue = "store-waits-for-queue", "a store waited because its thread's entries waited outside the log queue";
    StoreWaitsForSpace = "store-waits-for-space", "a store waited until blocks of the log were free";
    AreaWrapped = "area-wrapped", "a record took the slot of an older one";
    SeveralRecords = "several-records", "a transaction with more than one record committed";
    CommitWaits = "commit-waits", "the end of a transaction waited for its log entries";
    RetiredLate = "retired-late", "a transaction was at home before one with a smaller commit sequence number";
    SharedLineUpdated = "shared-line-updated", "a line was updated in place while another transaction had words in it";
    Chained = "chained", "a transaction committed while the one before of its thread was not at home";
    ChainFull = "chain-full", "a commit waited until older transactions of its thread were at home";
    SeveralBanks = "several-banks", "two log entries of a record went to different banks";
    HeaderBuffered = "header-buffered", "a transaction committed with all headers in ADR entries";
    HeaderOverflows = "header-overflows", "a record found no ADR entry free";
    CommittedWritten = "committed-written", "headers of a committed transaction left their ADR entries for PM";
    OpenWritten = "open-written", "headers of an open transaction left their ADR entries for PM";
    HeaderPlacedLate = "header-placed-late", "a header got an ADR entry after its record had begun";
    LastHeaderUnbuffered = "last-header-unbuffered", "a last header was written to PM while others were in ADR entries";
    VictimServed = "victim-served", "a miss was served from the victim area";
    VictimReplaced = "victim-replaced", "a line left the LLC again while the victim area had older content of it";
    VictimUncommitted = "victim-uncommitted", "a line was held for a transaction that was open";
    VictimWaits = "victim-waits", "a line found the victim area full and waited";
}

/// Name and cover points of the victim area.
const VICTIM_AREA: victims::Described<Cover> = victims::Described {
    name: "victim area",
    uncommitted: Cover::VictimUncommitted,
    replaced: Cover::VictimReplaced,
    waits: Cover::VictimWaits,
    served: Cover::VictimServed,
};

events! {
    /// Something that happens.
    #[derive(Clone, Copy, Debug)]
    pub enum Event;

    /// A store went into the log buffer's entry of its line.
    Merged => counts log_entries_merged += 1; covers StoreMerged;
    /// A store was found to wait for something else than before.
    StoreWaits { hold: Hold } =>
        counts log_overflows += u64::from(hold != Hold::Victims),
            log_space_waits += u64::from(hold == Hold::Space);
        covers StoreWaitsForQueue if hold == Hold::Queue, StoreWaitsForSpace if hold == Hold::Space;
    /// A full log buffer sends its oldest entry.
    EntryEvicted => covers EntryEvicted;
    /// A store made an entry, which needs the slot of an older record or not; the log buffer has
    /// `occupied` now.
    Logged { wraps: bool, occupied: usize } =>
        counts log_entries += 1; raises log_buffer_max to occupied as u64;
        covers AreaWrapped if wraps;
    /// An entry leaves the log buffer for the controller.
    EntrySent { thread: usize, home: LineAddr, words: WordMask } =>
        says "thread {thread} sends words {words:#010b} of {home}";
    /// A log request finds the log queue full.
    QueueFull => counts log_queue_full += 1; covers QueueFull;
    /// The log queue takes a request; `used` places are used now.
    Admitted { used: usize } => raises log_queue_max to used as u64;
    /// An entry is written, to another bank than the one before of its record or not.
    EntryIssued { home: LineAddr, at: LineAddr, other_bank: bool } =>
        covers SeveralBanks if other_bank;
        says "the log queue takes the entry of {home}: {at}";
    /// Headers have held ADR entries for `cycles` cycles more, summed over entries; now they hold
    /// `used`.
    AdrEntriesUsed { cycles: u64, used: usize } =>
        counts adr_entry_cycles += cycles; raises adr_entries_max to used as u64;
    /// A record begins and finds no ADR entry free.
    HeaderOverflows => counts adr_overflows += 1; covers HeaderOverflows;
    /// A header gets an ADR entry after its record has begun.
    HeaderPlacedLate => covers HeaderPlacedLate;
    /// Headers of a transaction leave their ADR entries for PM, so that others get them.
    HeadersDisplaced { committed: bool } =>
        covers CommittedWritten if committed, OpenWritten if !committed;
    /// A header is sent to PM.
    HeaderSent { thread: usize, record: usize } =>
        says "header {record} of thread {thread} is written";
    /// The controller hears of the end of a transaction whose entries are on their way.
    CommitWaits => covers CommitWaits;
    /// A commit waits until older transactions of its thread are at home.
    ChainFull => covers ChainFull;
    /// A transaction commits by its last header in PM, while others are in ADR entries.
    LastHeaderUnbuffered => covers LastHeaderUnbuffered;
    /// A transaction commits; all its headers are in ADR entries, older ones of the thread are not at home, or not.
    Committed {
        thread: usize,
        number: u64,
        sequence: u64,
        records: usize,
        buffered: bool,
        chained: bool,
    } =>
        counts log_headers += records as u64, ordering_points += 1;
        covers HeaderBuffered if buffered, SeveralRecords if records > 1, Chained if chained;
        says "thread {thread} commits transaction {number} as {sequence}: {records} records";
    /// A transaction logged a line more than once.
    LineLoggedAgain => covers LineLoggedAgain;
    /// Words of a line are sent home; another transaction has words of it in a log buffer or not.
    UpdateSent { line: LineAddr, words: WordMask, shared: bool } =>
        counts in_place_updates += u64::from(words.count_ones());
        covers SharedLineUpdated if shared;
        says "words {words:#010b} of {line} are updated in place";
    /// A transaction is at home before one with a smaller commit sequence number.
    HomeOutOfOrder => covers RetiredLate;
    /// A transaction needs its log no more: its records, some of whose headers were never written.
    Retired { thread: usize, sequence: u64, records: usize, headers_avoided: usize } =>
        counts log_headers_avoided += headers_avoided as u64,
            log_records_truncated += records as u64;
        says "thread {thread}: commit {sequence} is at home";

    part Victims(victims::Event), VICTIM_AREA;
}
