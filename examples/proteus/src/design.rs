//! `proteus`: software-supported hardware undo logging (Shin, Tirukkovalluri, Tuck, Solihin: *Proteus: A Flexible and Fast
//! Software Supported Hardware Logging Approach for NVM*, MICRO'17).
//!
//! | file | what |
//! |---|---|
//! | `design` | sources, readings, parameters, mutants |
//! | `design/protocol` | the state of cores and controller; hooks |
//! | `design/logging` | log-load and log-flush: log registers, log queue, what a store waits for |
//! | `design/filter` | the log lookup table |
//! | `design/pending_queue` | the log pending queue: places, lazy writes, the end of a transaction |
//! | `design/log_area` | log entries in PM, byte by byte |
//! | `design/recovery` | recovery |
//! | `design/event` | what happens, counted and narrated; cover points |
//! | `design/cost` | what the hardware costs |
//!
//! # What it does
//!
//! - **Instructions.** Before each store of a transaction the compiler inserts a *log-load*, which reads the aligned 32 B
//!   block of the store into a log register, and a *log-flush*, which sends the register's content and the block's
//!   address to the log. The address in the log comes from the LTA register (*log target address*), which
//!   then moves on. Here these are instructions of the thread (`proteus.instructions_per_store`); the log-load is a load
//!   that goes through the caches.
//! - **Log queue** (LogQ). A log-flush is in the log queue of its core until the controller has acknowledged it. A store
//!   searches the queue and does not leave for the L1 as long as a log-flush of its own block is there. So a line
//!   that leaves the caches needs no order: the log entries of its words are durable.
//! - **Log lookup table** (LLT). The blocks that were logged last in this transaction. A log-load and its log-flush whose
//!   block is there do nothing. The least recently used block is replaced; a block that was replaced is logged again at its
//!   next store, and recovery takes the oldest entry.
//! - **Log pending queue** (LPQ). A queue of the controller inside the persistence domain, beside the write queue: a
//!   log-flush that it has accepted is durable. Its entries are written to the log area only when it is full, oldest first,
//!   and only when the write queue has a place (*lower priority*).
//! - **End.** The program writes the transaction's lines back (clwb), waits for them (sfence), and ends the transaction
//!   (tx-end). The controller then drops the transaction's entries from the log pending queue, so that they are never
//!   written, except the last: it is marked as the end, which is the commit point.
//!
//! # Bytes
//!
//! Each thread has a circular log area of slots of 64 B, one for each entry. Slots of dropped entries hold what they held
//! before.
//!
//! | word of a slot | bits | content |
//! |---|---|---|
//! | 0 | 0-61 | number of the transaction, plus 1; 0: no entry |
//! | 0 | 63 | it is the last entry, and its transaction has ended |
//! | 1 | 0-3 | words of the block that the entry is about |
//! | 1 | 5-47 | address of the block |
//! | 1 | 48-63 | index of the entry among those of its transaction |
//! | 2-5 | | the block as it was |
//! | 6-7 | | not written |
//!
//! Word 0 makes the entry. The log pending queue holds an entry until its write is durable, and a power failure
//! writes what it holds over what may be there in part. Without the queue (`lpq_entries = 0`) word 0 is written behind
//! the others.
//!
//! **Recovery** reads the slots of each thread. The newest transaction with an end is the thread's last that has
//! committed; entries of a higher number are undone, newest first, word by word of their masks. Nothing in the log is
//! changed, so recovery may be repeated.
//!
//! # Sources
//!
//! The paper's text was not at hand. Used were its abstract; what Silo (HPCA'23) says of it (§I, §II-E, Fig. 2d, §V);
//! its row in HOOP's Table I (ISCA'20); and a public summary of the paper (Z. Wang's paper notes, 2019). **No value of its
//! configuration was found in them** beside the block of 32 B and log registers of 64 B. The sizes of log queue, log lookup
//! table and log pending queue and the number of log registers are this crate's choice, in `ProteusConfig`.
//!
//! # Readings
//!
//! | open | parameter | default | other |
//! |---|---|---|---|
//! | the last log entry of a transaction: "the last log entry in each transaction is flushed to indicate the commit" (Silo §I), "these logs (except the last one) are discarded after commit" (Silo §II-E) | `end_entry` | `written`: it is sent to PM at the end, and nothing waits for it | `kept`: it stays in the queue, and is dropped when a later transaction of the thread ends |
//! | when the log pending queue writes: log updates are dropped that "have not yet written back to NVMM" (abstract); entries stay "until the buffer becomes full" (summary) | `lpq_spill_percent` | 100: when it is full | less: when so many of its places are taken |
//! | whether there is a log pending queue: "we also propose a novel optimization at the memory controller" (abstract) | `lpq_entries` | there is | 0: log entries go to the write queue like other writes |
//! | of what an entry is undone: the block of 32 B is "the basic unit of logging" (summary) | design `proteus-literal` | words that the transaction stored to (*repair*) | the whole block |
//!
//! # Repair
//!
//! Undone whole, a block takes words along that are not the transaction's. Where two open transactions have words in one
//! block, the entry of the one holds the other's uncommitted word, or one that the other has committed over since.
//! `proteus-literal` is that reading, and loses data (`litmus/`). Here an entry says which words of the block it is
//! about, the log lookup table knows words instead of blocks, and a store to another word of a block that is
//! logged makes an entry of its own: the other word of the older entry may have been stored to by another transaction
//! since. The cost is four bits for each entry and up to four entries for a block.
//!
//! # Left open, with what is done here
//!
//! - A log-load is complete when its line is in the L1, which the design looks for at each of the thread's operations, stores
//!   and acknowledgements; the message of a log-flush leaves `l1.latency_cycles` later. Log-loads of different blocks are
//!   executed in any order. One without a free log register tries again at the next of these times.
//! - Messages between core and controller take `controller.bypass_cycles` each way: log-flush and acknowledgement, tx-end
//!   and acknowledgement.
//! - The end of a transaction whose last entry is in PM already (the log pending queue was full) is written there: one word,
//!   for which the commit waits.
//! - The summary also has the controller walk the log area at an end and invalidate entries that were written. Here the
//!   mark of the last entry says the same, and nothing is walked.
//! - The log pending queue is durable whatever `controller.adr` says of the write queue: it has a battery of its own.
//! - The log area, the log lookup table and the LTA register belong to a thread. Context switches (*log-save*) are not modelled:
//!   threads stay on their cores.

mod cost;
mod event;
mod filter;
mod log_area;
mod logging;
mod pending_queue;
mod protocol;
mod recovery;

use graven::config::Size;
use graven::design::{Acknowledgement, Battery, DesignInfo, Guarantee, Step, plug};
use graven::stats::CounterSet;
use graven::{choice, mutants, section};

use event::{COVER_POINTS, Counters, WRITES_REMOVED_SHARE};
use log_area::{SLOT_BYTES, SLOTS_MAX};
use protocol::Proteus;
use recovery::{format, recover};

choice! {
    /// What becomes of the last log entry of a transaction.
    pub enum EndEntry {
        /// It is written to the log area.
        Written = "written",
        /// It stays in the log pending queue until a later transaction of its thread ends.
        Kept = "kept",
    }
}

section! {
    /// Proteus: log instructions, log queues at cores and controller.
    pub struct ProteusConfig("proteus") {
        /// Log registers of each thread: log-loads whose log-flush has not entered the log queue.
        log_registers: u32 = 8, 1..=1024, "registers";
        /// Entries of each thread's log queue: log-flushes that are not acknowledged.
        logq_entries: u32 = 16, 1..=1024, "entries";
        /// Blocks of each thread's log lookup table.
        llt_entries: u32 = 64, 1..=4096, "blocks";
        /// Entries of the controller's log pending queue; 0: there is none.
        lpq_entries: u32 = 256, 0..=65_536, "entries";
        /// The log pending queue writes its oldest entries to PM when so many of its places are taken.
        lpq_spill_percent: u32 = 100, 1..=100, "%";
        /// What becomes of a transaction's last entry.
        end_entry: EndEntry = EndEntry::Written, (), "";
        /// Instructions that the compiler inserts before a store: log-load and log-flush.
        instructions_per_store: u32 = 2, 1..=1000, "instructions";
        /// Circular log area of each thread; the entries of a transaction, and one more, must fit.
        log_bytes_per_thread: Size = Size::kb(64), Size(128)..=Size(64 * SLOTS_MAX), "B";
    }
}

/// The design.
pub const INFO: DesignInfo = DesignInfo {
    name: "proteus",
    summary: "undo logging by instructions; the controller drops entries of ended transactions; a commit waits for the lines",
    paper: "Proteus (MICRO'17)",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(ProteusConfig::default())),
    build: |context| Ok(plug(Proteus::new(context)?).with_software().into()),
    acknowledgement: Acknowledgement {
        source: "decided: the fence before has waited for the lines; tx-end is a message to the controller, which marks the last entry, in \
                 the log pending queue or in PM where there is none, and answers",
        steps: |config| {
            let has_queue = config.get::<ProteusConfig>().lpq_entries > 0;
            let mark = (!has_queue).then_some(Step::Write);
            [Step::Message].into_iter().chain(mark).chain([Step::Message]).collect()
        },
    },
    format,
    recover,
    // The log pending queue is in the persistence domain.
    battery: |context| Battery {
        bytes: u64::from(context.config.get::<ProteusConfig>().lpq_entries) * SLOT_BYTES,
        ..Battery::NONE
    },
    mutants: Mutant::NAMED,
    counters: Counters::declarations,
    derived: &[WRITES_REMOVED_SHARE],
    cover_points: COVER_POINTS,
    stress: &[
        ("proteus.log_registers", &["1", "2"]),
        ("proteus.logq_entries", &["1", "2"]),
        ("proteus.llt_entries", &["1", "2", "8"]),
        ("proteus.lpq_entries", &["0", "1", "2", "4", "16"]),
        ("proteus.lpq_spill_percent", &["25", "50"]),
        ("proteus.end_entry", &["written", "kept"]),
        ("proteus.log_bytes_per_thread", &["4 KB", "8 KB"]),
    ],
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same with the granularity of its sources.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "proteus-literal",
    summary: "proteus with blocks logged and undone whole, as published (loses data)",
    default: false,
    inherent: Mutant::all(&[Mutant::BlocksLoggedWhole]),
    ..INFO
};

/// The same without what happens at the controller.
pub const WITHOUT_LPQ: DesignInfo = DesignInfo {
    name: "proteus-without-lpq",
    summary: "proteus without a log pending queue: every log entry is written to PM",
    default: false,
    settings: &[("proteus.lpq_entries", "0")],
    stress: &[
        ("proteus.log_registers", &["1", "2"]),
        ("proteus.logq_entries", &["1", "2"]),
        ("proteus.llt_entries", &["1", "2", "8"]),
        ("proteus.log_bytes_per_thread", &["4 KB", "8 KB"]),
    ],
    mutants: &[],
    ..INFO
};

mutants! {
    /// Blocks are logged and undone whole, whoever else has words in them.
    BlocksLoggedWhole = "blocks-logged-whole";
    /// A store does not wait for the log-flush of its block.
    StoreOvertakesFlush = "store-overtakes-flush";
    /// A store waits for a log-flush only while it is in its log register.
    RegistersSearchedOnly = "registers-searched-only";
    /// The log lookup table keeps what an earlier transaction has logged.
    FilterNotCleared = "filter-not-cleared";
    /// The log lookup table takes a block for logged of which another word is.
    WordsOfFilterIgnored = "words-of-filter-ignored";
    /// Lines are not written back before the end of their transaction.
    WriteBackMissing = "write-back-missing";
    /// The end of a transaction does not wait for its lines.
    LinesNotAwaited = "lines-not-awaited";
    /// The controller acknowledges a log-flush that finds no place in the log pending queue.
    AcknowledgedOutside = "acknowledged-outside";
    /// A place of the log pending queue is free when its entry is sent to PM.
    PlaceFreedEarly = "place-freed-early";
    /// Power fails, and the youngest entry of the log pending queue is not saved.
    YoungestNotSaved = "youngest-not-saved";
    /// The end of a transaction drops the entries of all threads.
    OthersDropped = "others-dropped";
    /// The end of a transaction drops all of its entries, the last one too.
    LastDropped = "last-dropped";
    /// The end of a transaction whose last entry is in PM leaves no mark.
    MarkMissing = "mark-missing";
    /// An entry that is marked while it is on its way to PM is not written again.
    MarkOvertaken = "mark-overtaken";
    /// A commit does not wait for a mark that is written to PM.
    MarkNotAwaited = "mark-not-awaited";
    /// The next transaction's first entry goes to the slot of the end.
    EndOverwritten = "end-overwritten";
    /// Without a log pending queue the word that makes an entry is sent with the others.
    NumberWithRest = "number-with-rest";
    /// Recovery undoes committed transactions, too.
    CommittedUndone = "committed-undone";
    /// Recovery undoes the oldest entry first.
    UndoOldestFirst = "undo-oldest-first";
    /// Recovery takes the entry in the last slot for the newest.
    NewestByPlace = "newest-by-place";
    /// The log areas are put to use as they are found.
    LogNotCleared = "log-not-cleared";
}
