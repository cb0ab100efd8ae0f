//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::memory::{LineAddr, WordMask};
use graven_base::time::Cycle;
use graven_machine::cover_points;

use crate::events::events;
use crate::lalea::ENTRIES;

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Lines written back without evicting them in vain: they were stored to again within the transaction.
        forced_writebacks_in_vain: Count, "lines";
        /// Log entries created.
        log_entries: Count, "entries";
        /// Largest number of entries in one log buffer; for `lad`, of lines in the pool.
        log_buffer_max: Gauge, "entries";
        /// Log requests that waited because no block of the log region was free.
        log_space_waits: Count, "requests";
        /// Headers of log records, complete with their addresses.
        log_headers: Count, "headers";
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
    }
}

cover_points! {
    Overflow = "overflow", "a line was logged because it found no place";
    OverflowWhileCommitting = "overflow-while-committing", "the pool overflowed while a commit message was on its way";
    SharedLineGathered = "shared-line-gathered", "a line of the pool had words of two open transactions";
    SharedLineLogged = "shared-line-logged", "words of two open transactions in one line were logged";
    LineCommittedInPart = "line-committed-in-part", "words of another open transaction stayed when a line was committed";
    PushInVain = "push-in-vain", "a line was stored to again after it had been pushed";
    OlderVersionDrains = "older-version-drains", "a line found its place while an older version of it drained";
    WaitsForPlace = "waits-for-place", "a line waited for a place that was to be free";
    CommitWhileLogging = "commit-while-logging", "a transaction committed while a line was being logged";
    JoinsOlderContent = "joins-older-content", "a line left the caches while its older content was underway";
    HomeAgain = "home-again", "a line went home whose words had been logged before";
    PlacesGivenUp = "places-given-up", "a transaction gave up its places to be logged";
    LogWrapped = "log-wrapped", "an undo record took the slot of an older one";
    RecordOfSeveral = "record-of-several", "lines shared a record of the load-aware log";
    RecordFull = "record-full", "a record of the load-aware log had all its blocks";
    RecordBeforeOlder = "record-before-older", "a record was durable before an older one of its transaction";
    ChainOfSeveral = "chain-of-several", "a transaction had several records in its chain";
    WaitsForBlock = "waits-for-block", "a request found no free block in the log";
}

events! {
    /// Something that happens.
    #[derive(Clone, Copy, Debug)]
    pub enum Event;

    /// A line is pushed from the caches to the controller.
    Pushed { line: LineAddr } =>
        does |to| to.count_forced_writebacks(1);
        says "line {} is pushed", line.addr();
    /// A line that was pushed early is stored to again.
    PushedInVain => counts forced_writebacks_in_vain += 1; covers PushInVain;
    /// A line left the caches while its older content is underway.
    JoinsOlderContent => covers JoinsOlderContent;
    /// A line has found its place; an older version of it drains or not, and it has words of several transactions or not.
    Gathered { line: LineAddr, older_drains: bool, shared: bool } =>
        covers OlderVersionDrains if older_drains, SharedLineGathered if shared;
        says "line {} is in the pool", line.addr();
    /// A line waits for the place of one that drains.
    WaitsForPlace { line: LineAddr } =>
        covers WaitsForPlace;
        says "line {} waits for a place", line.addr();
    /// For `cycles` cycles `before` places have been in use; now `used` are.
    PlacesInUse { before: u64, cycles: Cycle, used: u64 } =>
        counts adr_entry_cycles += before * cycles;
        raises adr_entries_max to used, log_buffer_max to used;
    /// The controller has all lines of a transaction that has ended.
    Prepared { thread: usize } => says "the controller has all lines of thread {thread}";
    /// A transaction commits; a line is being logged or not.
    Committed { thread: usize, while_logging: bool } =>
        covers CommitWhileLogging if while_logging;
        says "thread {thread} commits";
    /// The committed words of a line are sent to PM.
    Drains { line: LineAddr, words: WordMask } =>
        covers LineCommittedInPart if words != WordMask::MAX;
        says "words {words:#010b} of line {} drain", line.addr();
    /// A line finds no place and is logged; a commit message is on its way or not.
    Overflows { line: LineAddr, while_committing: bool } =>
        counts log_overflows += 1, adr_overflows += 1;
        covers Overflow, OverflowWhileCommitting if while_committing;
        says "line {} finds no place and is logged", line.addr();
    /// A line in the pool gives up its place to be logged.
    PlaceGivenUp { line: LineAddr } =>
        covers PlacesGivenUp;
        says "line {} gives up its place to be logged", line.addr();
    /// An undo record of a thread's words in a line was made.
    Logged { line: LineAddr, words: WordMask, thread: usize } =>
        counts log_entries += 1;
        says "words {words:#010b} of line {} are logged for thread {thread}", line.addr();
    /// Several transactions have words in a line that were logged.
    SharedLineLogged => covers SharedLineLogged;
    /// A line has arrived that goes home at once: its words were logged before.
    AllLoggedBefore => covers HomeAgain;
    /// A line goes home, with undo records of all words that are uncommitted.
    SentHome { line: LineAddr } => says "line {} goes home", line.addr();
    /// A record took a slot of a circular area, or that of an older one.
    SlotFilled { again: bool } => counts log_headers += 1; covers LogWrapped if again;
    /// A record of the load-aware log is closed: its header, for `blocks` blocks, is sent.
    HeaderSent { blocks: usize } =>
        counts log_headers += 1;
        covers RecordOfSeveral if blocks > 1, RecordFull if blocks == ENTRIES;
    /// A request finds no free block of the load-aware log, for the first time or again.
    WaitsForBlock { again: bool } =>
        counts log_space_waits += u64::from(!again); covers WaitsForBlock;
    /// A record of the load-aware log is durable, and an older one of its transaction is not.
    DurableBeforeOlder => covers RecordBeforeOlder;
    /// A thread's LR names the next record; it named an older one of the transaction or none.
    ChainGrown { thread: usize, older: bool } =>
        covers ChainOfSeveral if older;
        says "the chain of thread {thread} begins with the next record";
    /// The records of a committed transaction are void.
    Truncated { records: u64 } => counts log_records_truncated += records;
}
