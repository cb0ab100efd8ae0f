//! `atom`: hardware undo logging at the memory controller (Joshi, Nagarajan, Cintra, Viglas: *ATOM: Atomic Durability in
//! Non-volatile Memory through Hardware Logging*, HPCA'17).
//!
//! | file | content |
//! |---|---|
//! | `design` | sources, readings, parameters, mutants |
//! | `design/lines` | the log bits of the L1s |
//! | `design/log_manager` | the log manager: contexts, buckets, records, source logging |
//! | `design/address_lock` | lines that wait in the controller until their log entries count |
//! | `design/commit` | the end of a transaction: its lines go home, then its log is truncated |
//! | `design/protocol` | state and hooks |
//! | `design/record` | records and registers, bit by bit |
//! | `design/recovery` | undoing |
//! | `design/event` | events, counted and narrated; cover points |
//! | `design/cost` | what the hardware costs |
//!
//! # Mechanisms
//!
//! - **Log bit.** A line in an L1 has a bit that says that the running transaction has logged it. The first store to the line
//!   sends its old content to the controller, past the caches; later stores send nothing. The bits are cleared when a
//!   transaction ends, and a line that leaves its L1 loses its own.
//! - **Log manager.** The controller appends the old line to the log of the transaction. It keeps a *context* for each
//!   transaction that runs; a transaction that finds no free context waits before it begins.
//! - **Posted log.** The store proceeds at once. The controller locks the line's address, and holds the line back, should it
//!   leave the caches, until its log entry counts. It holds back no other line.
//! - **Source logging.** A store that misses in all caches says so in its request. The controller logs the line that it has just
//!   read by itself, and sends it up with its log bit set: the old content does not come down again.
//! - **Log entry collation.** Seven entries share a record of eight lines, the first of which has their addresses. This header is
//!   collected in the context, and written when the record is full and another entry comes, or before that when a locked
//!   line leaves the caches, or the transaction ends.
//! - **Truncation.** The log region is divided into buckets, each of at most one transaction. A context has a bit for each bucket
//!   that belongs to it, and the end of its log. The commit clears them: the log is gone, and nothing is written.
//! - **Commit.** All lines of the transaction are written back and durable before its log is truncated.
//!
//! # Bytes
//!
//! A record is a header and seven lines of old content, 512 B. Buckets lie one behind the other at the start of the log region, and
//! records in a bucket likewise. The header, word by word:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0-19 | index of the record among those of its transaction |
//! | 1-7 | 0-47 | home address of the line in entry 0-6 |
//! | 1-7 | 48-55 | words of the line that are the transaction's; 0: nothing is undone |
//!
//! Two non-volatile registers of each context:
//!
//! | register | bits | content |
//! |---|---|---|
//! | buckets | 0-63 | bit `i`: bucket `i` has records of the context |
//! | end | 0-5 | the bucket that the log ends in |
//! | end | 6-25 | records in that bucket; all others are full |
//!
//! A record counts when the end has moved over it, and it does so in one step with the bit of its bucket, when the record's eight
//! lines and all records before it are durable. So a record that counts is whole, recovery looks at nothing behind the
//! end, and the system need not clear the log region.
//!
//! **Recovery** reads the headers that the registers name, context by context, and writes the words of their masks back: last
//! record first, last entry first. A line that was logged twice has its oldest content in the older entry. Recovery changes
//! nothing in the log, so it may be repeated. Running transactions have no words in common, so the order of contexts does not matter.
//!
//! # Sources
//!
//! The paper's text was not at hand. Used were its abstract; what Silo (HPCA'23 §I, §V), HOOP (ISCA'20 §IV) and LALEA (§II-B) say
//! of it; and a public summary of the paper (Z. Wang's paper notes, 2019). **No size of its configuration was found in them** but
//! seven entries in a record. The number of contexts, the number and size of buckets are this crate's choice (`AtomConfig`).
//!
//! # Readings
//!
//! | open | reading | other |
//! |---|---|---|
//! | of what a line is undone: "undo logging in cache line granularity" (summary) | *repair*: the words that the transaction has stored to, of which the header has a mask and the L1 a bit each | `atom-literal`: the whole line |
//! | a store to another word of a logged line | its word joins the entry's mask by a message, as long as the header is not written; otherwise the line is logged again | |
//! | which words an entry made at the source has | none, until the store is performed and joins | |
//! | when lines of a record are written: "an internal buffer in the memory controller stores log entries, until seven are aggregated or a certain amount of time has passed" (summary) | old lines as they come, the header when the record is closed; no time passes | |
//! | whether the header waits for the lines: "a log record header can be persisted to PM only after its log data blocks are written to PM" (LALEA) | `header = behind` | `header = together`: the end of the log says what counts, and all eight lines may be written side by side |
//! | what is non-volatile: "the buffer to store the metadata to manage logs" (Silo), "the global metadata and per-region metadata" (summary) | the registers above; a header that is being collected is lost | not modelled: it is saved, too, so that a line is locked until its old content is durable, and no commit writes a header |
//! | which bucket is taken | the next free one behind that which was taken last | |
//! | the request for a context | takes no time if there is a free one | |
//! | a store that misses while other threads of its core run transactions, too | logged from the L1: the request names the core and not the thread | |
//! | a store that misses on a line which the controller holds back | logged from the L1 | |
//! | the messages of a commit | the controller answers when the lines are durable; a second message truncates the log (the commit point), a third acknowledges | |
//!
//! # Left open, with what is done here
//!
//! - An entry on its way to the controller locks its line already: the line waits in the L1 until the controller has the entry.
//! - A line that leaves the caches closes the records with entries of it a cycle later: the log manager compares its address first.
//! - A line that is written back to a locked address waits in the controller, without a limit of places: behind gates, one for each
//!   record (`Port::gate`). Misses and fences find it there.
//! - A transaction whose records find no free bucket is refused; the paper's system would hand out more.
//! - Lines of several controllers have one log manager: the machine has one, with several channels.

mod address_lock;
mod commit;
mod cost;
mod event;
mod lines;
mod log_manager;
mod protocol;
mod record;
mod recovery;

use graven::config::{Config, Size};
use graven::design::{
    Acknowledgement, Battery, Capacity, DesignInfo, Guarantee, Leaves, Named, Room, Step, TakenBy,
    plug,
};
use graven::memory::LINE_BYTES;
use graven::stats::CounterSet;
use graven::{choice, mutants, section};

use event::{COVER_POINTS, Counters};
use protocol::Atom;
use record::{BUCKETS_MAX, Buckets, ENTRIES_MAX};

choice! {
    /// Stores that log their line.
    pub enum LogWrites {
        /// The store proceeds, and the controller locks the line's address.
        Posted = "posted",
        /// The store waits until its log entry counts.
        Awaited = "awaited",
    }
}

choice! {
    /// The header of a record.
    pub enum HeaderOrder {
        /// The header is sent when the lines of its record are durable.
        Behind = "behind",
        /// The header is sent with them.
        Together = "together",
    }
}

choice! {
    /// Lines that a store has missed in all caches.
    pub enum Source {
        /// The controller logs the line that it reads.
        Logged = "logged",
        /// The L1 sends the line back when the store is performed.
        NotLogged = "not-logged",
    }
}

choice! {
    /// Records that a locked line waits for.
    pub enum AddressLock {
        /// Those with an entry of the line.
        Exact = "exact",
        /// All that were closed before, whichever transaction's: as much as one order of writes can say.
        Prefix = "prefix",
    }
}

section! {
    /// ATOM: undo logging at the memory controller.
    pub struct AtomConfig("atom") {
        /// Contexts of the log manager: transactions that may run at a time.
        contexts: u32 = 32, 1..=256, "contexts";
        /// Buckets of the log region.
        buckets: u32 = BUCKETS_MAX, 1..=BUCKETS_MAX, "buckets";
        /// Size of a bucket: with a page, buckets that follow each other lie in different banks.
        bucket_bytes: Size = Size::kb(4), Size(512)..=Size::mb(8), "B";
        /// Log entries that share a header: one record.
        entries_per_record: u32 = 7, 1..=ENTRIES_MAX as u32, "entries";
        /// Stores that log their line.
        log_writes: LogWrites = LogWrites::Posted, (), "";
        /// The header of a record.
        header: HeaderOrder = HeaderOrder::Behind, (), "";
        /// Lines that a store has missed in all caches.
        source: Source = Source::Logged, (), "";
        /// Records that a locked line waits for.
        address_lock: AddressLock = AddressLock::Exact, (), "";
    }
}

fn steps(config: &Config) -> Vec<Step> {
    let header = vec![Step::Message, Step::Write];
    let line = match config.get::<AtomConfig>().log_writes {
        LogWrites::Posted => Step::Both(vec![Step::Fall], header),
        // The header was written before the store was performed.
        LogWrites::Awaited => Step::Fall,
    };
    vec![line, Step::Write, Step::Message, Step::Message, Step::Message]
}

/// Structures with a limited number of places.
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "record-exactly-full",
            summary: "the record that was being collected had all its entries",
        },
        room: |context| {
            Room::of_lines(context.config.get::<AtomConfig>().entries_per_record.into())
        },
    },
    Capacity {
        full: Named {
            name: "bucket-exactly-full",
            summary: "all records of a bucket were taken by one transaction",
        },
        room: |context| {
            let entries = context.config.get::<AtomConfig>().entries_per_record;
            let taken_by = TakenBy::Piece(u64::from(entries) * LINE_BYTES);
            Room { places: Buckets::of(context).records.into(), taken_by }
        },
    },
];

/// The design.
pub const INFO: DesignInfo = DesignInfo {
    name: "atom",
    summary: "the controller logs old lines, from misses by itself, and locks their addresses; a commit waits for the lines",
    paper: "ATOM (HPCA'17)",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(AtomConfig::default())),
    build: |context| Ok(plug(Atom::new(context)?).with_departures().into()),
    acknowledgement: Acknowledgement {
        source: "decided after HOOP §IV-B: the core writes its lines back, which stay locked until their header is written; the controller \
                 answers, the core has the log truncated, the controller answers again",
        steps,
    },
    recover: recovery::recover,
    // The buckets and the end of each context's log.
    battery: |context| Battery {
        bytes: 0,
        registers: 2 * context.config.get::<AtomConfig>().contexts as usize,
        register_bits: 64,
    },
    mutants: Mutant::NAMED,
    counters: Counters::declarations,
    derived: &[event::SOURCE_SHARE],
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        (
            "atom.entries_per_record+atom.buckets+atom.bucket_bytes",
            &["1+48+512 B", "2+24+512 B", "3+4+512 B", "7+2+512 B", "7+3+512 B", "7+64+4 KB"],
        ),
        ("atom.contexts", &["1", "2", "3", "32"]),
        ("atom.log_writes", &["posted", "posted", "posted", "awaited"]),
        ("atom.header", &["behind", "behind", "together"]),
        ("atom.source", &["logged", "logged", "not-logged"]),
        ("atom.address_lock", &["exact", "exact", "prefix"]),
    ],
    scaled_down: &[
        ("atom.entries_per_record", "1"),
        ("atom.buckets", "6"),
        ("atom.bucket_bytes", "512 B"),
    ],
    leaves: |_| Leaves::Clean,
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same without what the paper adds to its baseline.
pub const BASE: DesignInfo = DesignInfo {
    name: "atom-base",
    summary: "atom whose stores wait for their log entries, and that logs nothing at the source",
    settings: &[("atom.log_writes", "awaited"), ("atom.source", "not-logged")],
    mutants: &[],
    default: false,
    ..INFO
};

/// The same with the granularity of its sources.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "atom-literal",
    summary: "atom with lines logged and undone whole, as published (loses data)",
    inherent: Mutant::all(&[Mutant::LinesLoggedWhole]),
    default: false,
    ..INFO
};

mutants! {
    /// Lines are logged and undone whole, whoever else has words in them.
    LinesLoggedWhole = "lines-logged-whole";
    /// The log bits stay when their transaction ends.
    LogBitsKept = "log-bits-kept";
    /// A line that one thread has logged is taken for logged when another stores to it in the same L1.
    OwnerIgnored = "owner-ignored";
    /// A store that joins an entry leaves the header as it is.
    JoinedWordNotMasked = "joined-word-not-masked";
    /// A store to another word of a line joins an entry whose record is closed.
    ClosedRecordJoined = "closed-record-joined";
    /// A line that was missed for a store comes with its log bit set, and is not logged.
    SourceEntryMissing = "source-entry-missing";
    /// A line that was missed for a load comes with its log bit set.
    LoadsSetTheLogBit = "loads-set-the-log-bit";
    /// An evicted line finds no address locked.
    EvictionNotLocked = "eviction-not-locked";
    /// A line that its transaction writes back finds no address locked.
    WriteBackNotLocked = "write-back-not-locked";
    /// A line that its transaction writes back waits for this transaction's entries only.
    NeighboursLockIgnored = "neighbours-lock-ignored";
    /// Entries of a record that is being collected lock nothing.
    OpenRecordNotLocked = "open-record-not-locked";
    /// Addresses are unlocked when the header of their record is sent.
    UnlockedWhenSent = "unlocked-when-sent";
    /// A record counts when its header is durable, whether its lines are or not.
    LinesOfRecordNotAwaited = "lines-of-record-not-awaited";
    /// A record counts before older ones do.
    EndMovesOutOfOrder = "end-moves-out-of-order";
    /// The buckets of a transaction are free when it ends, before its log is truncated.
    BucketsFreedEarly = "buckets-freed-early";
    /// The log is truncated when the lines are sent.
    TruncatedEarly = "truncated-early";
    /// A commit does not wait until its lines are durable.
    LinesNotAwaited = "lines-not-awaited";
    /// A commit does not wait for lines that had left the caches before.
    EarlierContentNotAwaited = "earlier-content-not-awaited";
    /// A commit waits for the oldest content of a line that is on its way.
    OldestContentAwaited = "oldest-content-awaited";
    /// Recovery undoes the oldest entry first.
    UndoOldestFirst = "undo-oldest-first";
    /// Recovery takes the record in the last bucket for the newest.
    NewestByBucket = "newest-by-bucket";
    /// Recovery takes all buckets of a context for full.
    EndIgnored = "end-ignored";
}
