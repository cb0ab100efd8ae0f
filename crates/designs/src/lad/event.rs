//! What happens in the design: what is counted of it, which cover points it reaches, what a timeline says.

use graven_base::counters;
use graven_base::memory::{LineAddr, WordMask};
use graven_base::time::Cycle;
use graven_machine::cover_points;
use graven_machine::design::{DesignEvent, Observation};

use crate::lalea::ENTRIES;

counters! {
    /// What the design counts.
    pub struct Counters {
        /// Of these, those in vain: the line was stored to again within the transaction.
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

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A line is pushed from the caches to the controller.
    Pushed { line: LineAddr },
    /// A line that was pushed early is stored to again.
    PushedInVain,
    /// A line left the caches while its older content is underway.
    JoinsOlderContent,
    /// A line has found its place; an older version of it drains or not, and it has words of several transactions or not.
    Gathered { line: LineAddr, older_drains: bool, shared: bool },
    /// A line waits for the place of one that drains.
    WaitsForPlace { line: LineAddr },
    /// For so many cycles so many places have been in use; now there are `used`.
    PlacesInUse { before: u64, cycles: Cycle, used: u64 },
    /// The controller has all lines of a transaction that has ended.
    Prepared { thread: usize },
    /// A transaction commits; a line is being logged or not.
    Committed { thread: usize, while_logging: bool },
    /// The committed words of a line are sent to PM.
    Drains { line: LineAddr, words: WordMask },
    /// A line finds no place and is logged; a commit message is on its way or not.
    Overflows { line: LineAddr, while_committing: bool },
    /// A line in the pool gives up its place to be logged.
    PlaceGivenUp { line: LineAddr },
    /// An undo record of a thread's words in a line was made.
    Logged { line: LineAddr, words: WordMask, thread: usize },
    /// Several transactions have words in a line that were logged.
    SharedLineLogged,
    /// A line has arrived that goes home at once: its words were logged before.
    AllLoggedBefore,
    /// A line goes home, with undo records of all words that are uncommitted.
    SentHome { line: LineAddr },
    /// A record took a slot of a circular area, or that of an older one.
    SlotFilled { again: bool },
    /// A record of the load-aware log is closed: its header, for so many blocks, is sent.
    HeaderSent { blocks: usize },
    /// A request finds no free block of the load-aware log, for the first time or again.
    WaitsForBlock { again: bool },
    /// A record of the load-aware log is durable, and an older one of its transaction is not.
    DurableBeforeOlder,
    /// A thread's LR names the next record; it named an older one of the transaction or none.
    ChainGrown { thread: usize, older: bool },
    /// The records of a committed transaction are void.
    Truncated { records: u64 },
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    #[inline(always)]
    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::Pushed { line } => {
                to.count_forced_writebacks(1);
                to.explain(|| format!("line {} is pushed", line.addr()));
            }
            Event::PushedInVain => {
                to.count().forced_writebacks_in_vain += 1;
                to.cover(Cover::PushInVain);
            }
            Event::JoinsOlderContent => to.cover(Cover::JoinsOlderContent),
            Event::Gathered { line, older_drains, shared } => {
                to.explain(|| format!("line {} is in the pool", line.addr()));
                to.cover_if(older_drains, Cover::OlderVersionDrains);
                to.cover_if(shared, Cover::SharedLineGathered);
            }
            Event::WaitsForPlace { line } => {
                to.cover(Cover::WaitsForPlace);
                to.explain(|| format!("line {} waits for a place", line.addr()));
            }
            Event::PlacesInUse { before, cycles, used } => {
                let counters = to.count();
                counters.adr_entry_cycles += before * cycles;
                counters.adr_entries_max = counters.adr_entries_max.max(used);
                counters.log_buffer_max = counters.log_buffer_max.max(used);
            }
            Event::Prepared { thread } => {
                to.explain(|| format!("the controller has all lines of thread {thread}"));
            }
            Event::Committed { thread, while_logging } => {
                to.explain(|| format!("thread {thread} commits"));
                to.cover_if(while_logging, Cover::CommitWhileLogging);
            }
            Event::Drains { line, words } => {
                to.cover_if(words != WordMask::MAX, Cover::LineCommittedInPart);
                to.explain(|| format!("words {words:#010b} of line {} drain", line.addr()));
            }
            Event::Overflows { line, while_committing } => {
                to.count().log_overflows += 1;
                to.count().adr_overflows += 1;
                to.cover(Cover::Overflow);
                to.cover_if(while_committing, Cover::OverflowWhileCommitting);
                to.explain(|| format!("line {} finds no place and is logged", line.addr()));
            }
            Event::PlaceGivenUp { line } => {
                to.cover(Cover::PlacesGivenUp);
                to.explain(|| format!("line {} gives up its place to be logged", line.addr()));
            }
            Event::Logged { line, words, thread } => {
                to.count().log_entries += 1;
                to.explain(|| {
                    let line = line.addr();
                    format!("words {words:#010b} of line {line} are logged for thread {thread}")
                });
            }
            Event::SharedLineLogged => to.cover(Cover::SharedLineLogged),
            Event::AllLoggedBefore => to.cover(Cover::HomeAgain),
            Event::SentHome { line } => {
                to.explain(|| format!("line {} goes home", line.addr()));
            }
            Event::SlotFilled { again } => {
                to.count().log_headers += 1;
                to.cover_if(again, Cover::LogWrapped);
            }
            Event::HeaderSent { blocks } => {
                to.count().log_headers += 1;
                to.cover_if(blocks > 1, Cover::RecordOfSeveral);
                to.cover_if(blocks == ENTRIES, Cover::RecordFull);
            }
            Event::WaitsForBlock { again } => {
                to.count().log_space_waits += u64::from(!again);
                to.cover(Cover::WaitsForBlock);
            }
            Event::DurableBeforeOlder => to.cover(Cover::RecordBeforeOlder),
            Event::ChainGrown { thread, older } => {
                to.cover_if(older, Cover::ChainOfSeveral);
                to.explain(|| format!("the chain of thread {thread} begins with the next record"));
            }
            Event::Truncated { records } => to.count().log_records_truncated += records,
        }
    }
}
