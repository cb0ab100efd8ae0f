//! `fwb`: hardware undo+redo logging with force write-back (Ogleari, Miller, Zhao, HPCA 2018).
//!
//! | file | what | paper |
//! |---|---|---|
//! | `mod` | parameters | |
//! | `rules` | the rules of the protocol, and the mutants that break them | |
//! | `protocol` | the state of the hardware, and what it does when | |
//! | `event` | what happens, counted and traced; cover points | |
//! | `logging` | hardware logging (HWL), order, commit | §III-B, §III-D, §III-E |
//! | `buffer` | the volatile log buffer | §IV-C |
//! | `end` | the end of the log: appending, and room | §III-A |
//! | `log` | the circular log in either format | §III-A, §IV-A |
//! | `slots` | records in slots | §III-A, §IV-A |
//! | `record` | the bits of a word's record | §III-A |
//! | `line_record` | the bits of a line's record | §III-E |
//! | `scan` | force write-back (FWB, shared with others: `force_write_back`) and truncation | §III-C, §IV-D, Fig. 5 |
//! | `clwb` | written lines forced home by instructions, and truncation (`hwl`) | §VI, Fig. 1(c) |
//! | `room` | a log that is full | §II-C, §IV-A |
//! | `recovery` | recovery | §IV-F |
//! | `variants` | the designs that FWB and MorLog compare with | §VI; MorLog §VI-A |
//! | `cost` | what the hardware costs | Table I |
//!
//! Every transactional store sends a record with the old and the new word past the caches to one
//! central circular log. Lines stay in the caches and leave them as they like (steal, no force); a
//! scan of all tags writes back what has been dirty for two scans, so that the log can be truncated.
//!
//! **On the image.** The log region begins with a header line, whose word 0 is the head pointer: the
//! number of the slot with which the oldest live record begins (slots are numbered from 0; number / slots is the pass,
//! number mod slots the place). It takes one of the places: 64 K slots of 64 B are 4 MB, of which 65,535 hold
//! records.
//!
//! **Records** (`record_format`). §III-A: "log records maintain undo and redo information of a single update (e.g., store A1)",
//! and have ids, address and torn bit each. §III-E: an update is that of "an L1 cache line (e.g., from old value A1 to a new
//! value A'1)", and "the log buffer coalesces the log updates of any writes to the same cache line" (step 6). So a record is
//! one of a line by default: the words that its transaction stores to while it is in the log buffer, under one
//! header. (§IV-E agrees: "the size of the log buffer varies based on the size of the cache line".) It takes as many
//! slots as it needs; i counts its words, n of them, from the lowest address on:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0-15 | transaction id: the low `transaction_id_bits` of its number |
//! | 0 | 16-23 | thread id |
//! | 0 | 24-25 | kind: 1 entry, 2 commit (n = 0); 0: no record |
//! | 0 | 26 + 2 i, 27 + 2 i | bit 63 of the undo word, of the redo word |
//! | 1 | 0-47 | home address of the line |
//! | 1 | 48-55 | which words of it |
//! | 2 + 2 i | 0-62 | undo: the old word |
//! | 3 + 2 i | 0-62 | redo: the new word |
//! | all words of its slots | 63 | torn bit of the slot: 1 in even passes over the log, 0 in odd ones |
//!
//! With `record_format = "word"` each word has a record of its own, of four words in a slot, and in slots of 64 B four words
//! of zero behind it. That is how those who compare with FWB pack its log:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0-15 | transaction id: the low `transaction_id_bits` of its number |
//! | 0 | 16-23 | thread id |
//! | 0 | 24-25 | kind: 1 entry, 2 commit; 0: no record |
//! | 0 | 26, 27 | bit 63 of the undo word, of the redo word |
//! | 1 | 0-47 | home address of the word |
//! | 2 | 0-62 | undo: the old word |
//! | 3 | 0-62 | redo: the new word |
//! | 0-3 | 63 | torn bit: 1 in even passes over the log, 0 in odd ones |
//!
//! The fields are §III-A's (201 bits); kind is ours. Every word carries the torn bit, so a record of which
//! only some words were written is not taken for one ("incomplete entries have mixed values").
//!
//! **One value** (`log_values`): hardware redo or undo logging, as FWB compares with it. A record then has two words
//! (slots of 16, 32 or 64 B), and a home address is a multiple of 8:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0-7 | transaction id: the low 8 bits of its number (§IV-B) |
//! | 0 | 8-15 | thread id |
//! | 0 | 16-60 | home address of the word, in words |
//! | 0 | 61 | kind: 0 entry, 1 commit |
//! | 0 | 62 | bit 63 of the value |
//! | 1 | 0-62 | the old word, or the new one |
//! | 0-1 | 63 | torn bit |
//!
//! Neither is safe: a line of an open transaction that has left the caches cannot be undone by new words, nor can one of
//! a committed transaction that has not be redone by old ones. So no line waits for its records either.
//!
//! **How data comes home** (`write_back`): by the scans of §III-C; by `clwb` instructions that software executes at the end
//! of each transaction (module `clwb`); or not at all but by eviction, and then nothing says when a record may be
//! overwritten: slots are used again in their turn.
//!
//! Where the machine's logs are packed (`pm.log_packing`) the log has `packed_log`'s groups instead (that module has the tables; of its records,
//! *undo+redo* and *commit* occur), and the head pointer is the number of a group. What leaves the buffer takes along
//! up to three records behind it, which share its group. Which group that is turns out when they leave, so what
//! is kept of a record in the buffer is the group that is next when it enters, a lower bound, and each one in
//! the buffer may need a group of its own.
//!
//! **Dirty flags** (`dirty_flags`, MorLog §IV-A, §VI-A): an entry has a flag that says in which bytes its words differ;
//! memory modules that know SLDE code by it. A store that changes nothing makes no entry. Nor is one sent whose word
//! has its old value again after merges: had the line left the caches meanwhile, the entry would have gone before it. So
//! recovery finds the word as the transaction's records before that entry, or the transactions before, say it
//! was. A commit record is sent even if all entries before it are dropped. MorLog sets the flag "when the log entry is
//! created"; here it follows merges, or bytes that only a merged store changed would be lost (`flag-of-first-store`).
//!
//! **Order.** Undo before steal: an entry leaves the log buffer after N cycles, and N may not exceed the
//! cycles that a store needs to fall through the caches. The machine moves evicted lines at once, and its
//! caches may be tiny, so the order is enforced besides: a line's write waits for the records of its
//! stores, and entries of the line that are still in the buffer are sent with it (counted as
//! `log_entries_hurried`; with a legal N the paper's timing would have sent them already). A
//! larger N needs `allow_unsafe_buffer` and gets what such hardware would have: no order at all.
//!
//! **Holes.** Without ADR, or with several channels, records become durable in any order. A line's write
//! and the acknowledgement of a commit wait for *all* records before them, so recovery stops at the first
//! hole (see `recovery`).
//!
//! **As published, and repaired.** Taken at its word, the text loses data in six places. `fwb-literal` is the
//! design without these repairs, each is a mutant by itself, and `docs/results/findings.md` has the counterexamples:
//!
//! | the text | `fwb` | mutant |
//! |---|---|---|
//! | "Log entries with the same txid and torn bit are complete" (§IV-F): what is whole is committed | commit records, through the same FIFO; a transaction without stores needs none | `whole-means-committed` |
//! | a line that leaves a cache is reset to IDLE (§IV-D), and the second scan forces it home (§III-C) | the fwb bit goes along with the line | `bit-stays-behind` |
//! | log updates are at the NVRAM bus first because their way is shorter (§III-B, §IV-C) | a line's write waits for the records of its stores | `data-does-not-wait` |
//! | scans are so frequent that data is home before its records are overwritten (§III-C, §IV-D) | slots are used again behind a durable head only, which no open transaction lets pass | `log-goes-round` |
//! | a transaction commits when its log entries have been issued (§III-D, §III-E) | its end waits until they are durable | `commit-does-not-wait` |
//! | `log_create` allocates the log and initialises the pointers (§IV-A, §IV-B) | it clears the slots, too | `log-not-cleared` |
//!
//! `instant_commit` has the paper's commit without the other five: atomic and in order, but the last
//! acknowledged transactions may be lost in a power failure, and that is all that it guarantees.
//!
//! **Left open by the paper**, and decided here:
//! - Slots are of 32 B, as those who compare with FWB pack them, or of 64 B for the paper's own
//!   figures. Records that share a log line are sent in one write if all are in the buffer.
//! - Stores merge, and words of a line join, within one transaction only.
//! - Each open transaction has a place (slot or group) reserved for its commit record. If the log is full, stores and new
//!   transactions wait, and scans follow each other until there is room. A transaction that owns the oldest
//!   record and needs yet another ends the run with an error; `log_grow` is not modelled.
//! - The log is created anew after a recovery, which leaves it empty, but not clear.
//!
//! - The paper gives the cost of scans (3.6 %, §VI-A), not what it is made of. By default a scan delays no access;
//!   `scan_port` and `scan_tags_per_cycle` have accesses wait for it.
//!
//! **Left out**: a header that the lines of an object share (§III-E, step 1a): every line's record has its own, which
//! §III-A's fields of "log records" and "a torn bit per log entry" ask for. Sharing it would save at most 16 B of the 144
//! of a whole line. Stores outside transactions are not
//! logged: recovery may bring the last transaction's value back. With dirty flags they are lost if a transaction stores the same
//! again (`docs/results/findings.md`).

mod buffer;
mod clwb;
mod cost;
mod end;
mod event;
mod line_record;
mod log;
mod logging;
mod protocol;
mod record;
mod recovery;
mod room;
mod rules;
mod scan;
mod slots;
mod variants;

use super::force_write_back::{SCANS, ScanPort, TRANSACTION_BYTES_MIN};
use graven_base::config::{Config, ConfigError, Size};
use graven_base::stats::CounterSet;
use graven_base::{choice, section};
use graven_machine::config::traversal_cycles;
use graven_machine::design::{
    Acknowledgement, Capacity, DesignContext, DesignInfo, Guarantee, Leaves, Named, PluggedDesign,
    Room, Rounds, Step, plug,
};

use crate::rules::named;
use event::{COVER_POINTS, Counters};
use log::Log;
use protocol::Fwb;
use record::{LogValues, RecordFormat};
use rules::Rules;
use slots::Layout;
pub use variants::{CRADE, HW_RLOG, HW_ULOG, HWL, SLDE, UNSAFE};

choice! {
    /// Mechanism that brings home the data that is logged, so that records may be overwritten.
    pub enum WriteBack {
        /// Scans of all tags (force write-back, §III-C).
        Scan = "scan",
        /// `clwb` instructions for the lines that a transaction has written, at its end (§VI: hwl).
        Clwb = "clwb",
        /// Nothing but eviction.
        None = "none",
    }
}

section! {
    /// FWB: hardware undo+redo logging with force write-back.
    pub struct FwbConfig("fwb") {
        /// Size of the circular log, its header line included; it lies at the start of the log region. 0: what the scan interval and the write bandwidth ask for (4 MB on FWB's machine), at most the log region.
        log_bytes: Size = Size(0), Size(0)..=Size::gb(64), "B";
        /// Words that share a record: those of a line that meet in the log buffer, or each has its own. (Records of one value are those of words; packed ones, too.)
        record_format: RecordFormat = RecordFormat::Line, (), "";
        /// Size of a slot, of which a record takes as many as it needs: 32 is a word's record, 64 is the paper's own; 16 is enough for a word's record of one value.
        slot_bytes: u32 = 32, 16..=64, "B";
        /// Values that a record holds: the old and the new word, or one of them, which is not crash-safe (and only in slots).
        log_values: LogValues = LogValues::Both, (), "";
        /// Mechanism that brings logged data home: scans, `clwb` instructions at the end of each transaction, or nothing but eviction, which is not crash-safe.
        write_back: WriteBack = WriteBack::Scan, (), "";
        /// With `clwb` instructions: how much of the log is in use when its head is moved, unless a thread waits for room before.
        truncation_percent: u32 = 50, 0..=90, "%";
        /// Keeps a dirty flag with every entry, as SLDE needs; entries without a changed byte are dropped. Only where logs are packed (`pm.log_packing`).
        dirty_flags: bool = false, (), "";
        /// Entries of the volatile log buffer; 0: none. At most the cycles of a way through the caches.
        log_buffer_entries: u32 = 15, 0..=256, "entries";
        /// Accepts a larger log buffer, without any order between log and data then: not crash-safe.
        allow_unsafe_buffer: bool = false, (), "";
        /// A transaction's end returns before its records are durable (the paper's own commit): the last acknowledged transactions can be lost.
        instant_commit: bool = false, (), "";
        /// From the beginning of one scan to that of the next; 0: derived from log size and write bandwidth. MorLog and Silo compare with 3,000,000.
        scan_interval_cycles: u64 = 3_000_000, 0..=1_000_000_000_000, "cycles";
        /// Waits of accesses to a cache while a scan visits its tags: none, as the scan has a tag port of its own; until it is done with the set; or until it has left the cache.
        scan_port: ScanPort = ScanPort::Own, (), "";
        /// Tags that a scan visits per cycle; 0: those of a set, however many these are.
        scan_tags_per_cycle: u32 = 0, 0..=64, "tags/cycle";
        /// Bits of a transaction's id in its records: 16 by FWB III-A, 8 by FWB IV-B. Records of one value have 8 at most.
        transaction_id_bits: u32 = 16, 2..=16, "bits";
    }
}

/// Records and slots that an adversary draws.
const RECORDS: &[&str] = &["line+32", "line+16", "line+64", "word+32", "word+64"];

/// Packing and dirty flags that an adversary draws.
const PACKING: &[&str] = &["with-codec+false", "never+false", "always+false", "always+true"];

/// Structures with a limited number of places.
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "log-buffer-exactly-full",
            summary: "all entries of the log buffer were taken",
        },
        // Without a buffer there is a latch of one entry.
        room: |context| {
            room(context, context.config.get::<FwbConfig>().log_buffer_entries.max(1).into())
        },
    },
    Capacity {
        full: Named {
            name: "log-exactly-full",
            summary: "all slots, or groups, of the log were taken",
        },
        room: |context| room(context, Log::of(context).places()),
    },
];

/// Places of records: those of lines, or of words.
fn room(context: &DesignContext, places: u64) -> Room {
    match Log::of(context).layout() {
        Some(layout) if layout.is_by_line() => Room::of_lines(places),
        _ => Room::of_words(places),
    }
}

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "fwb",
    summary: "undo+redo logging in hardware; scans force old dirty lines out of the caches",
    paper: "FWB (HPCA'18) §III, §IV",
    guarantee,
    section: Some(|| Box::new(FwbConfig::default())),
    build,
    acknowledgement: Acknowledgement {
        source: "§III-B, §IV-F: a transaction has committed when its log is in NVRAM (decided: a commit record, through the \
                 log buffer \"in the processor\", which it leaves at once); with fwb.instant_commit nothing is waited for",
        steps: |config| {
            if config.get::<FwbConfig>().instant_commit {
                return Vec::new();
            }
            vec![Step::Message, Step::Write, Step::Message]
        },
    },
    format: |context, image| Log::of(context).create(image),
    recover: recovery::recover,
    settle: recovery::settle,
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        ("fwb.log_bytes", &["2 KB", "3 KB", "4 KB", "6 KB", "16 KB", "64 KB"]),
        ("fwb.record_format+fwb.slot_bytes", RECORDS),
        ("fwb.log_buffer_entries", &["0", "1", "4", "15"]),
        ("fwb.instant_commit", &["false", "true"]),
        ("pm.log_packing+fwb.dirty_flags", PACKING),
        ("pm.codec", &["none", "crade", "slde"]),
        ("pm.cells", &["uniform", "tlc-rram"]),
        ("fwb.scan_interval_cycles", &["0", "200", "2000", "50000"]),
        ("fwb.transaction_id_bits", &["2", "8", "16"]),
    ],
    scaled_down: &[
        ("fwb.log_bytes", "320 B"),
        ("fwb.log_buffer_entries", "1"),
        ("fwb.scan_interval_cycles", "2000"),
        ("fwb.transaction_id_bits", "2"),
    ],
    leaves: |config| match config.get::<FwbConfig>().write_back {
        WriteBack::Clwb => Leaves::Clean,
        WriteBack::Scan | WriteBack::None => Leaves::Dirty,
    },
    rounds: |config| match config.get::<FwbConfig>().write_back {
        WriteBack::Scan => &[
            SCANS,
            // Until then records are written over zeros.
            Rounds { counter: "log_wraps", before: 1, within: 0 },
        ],
        WriteBack::Clwb | WriteBack::None => &[],
    },
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The design as the paper's text has it, where that loses data (`docs/results/findings.md`).
pub const LITERAL: DesignInfo = DesignInfo {
    name: "fwb-literal",
    summary: "fwb as its text literally reads (unsafe: loses data)",
    default: false,
    acknowledgement: Acknowledgement::AT_ONCE,
    inherent: named(
        Rules::MUTANTS,
        &[
            "whole-means-committed",
            "bit-stays-behind",
            "data-does-not-wait",
            "log-goes-round",
            "commit-does-not-wait",
            "log-not-cleared",
        ],
    ),
    ..INFO
};

/// Only a design that forces lines home by instructions has software.
fn build(context: &DesignContext) -> Result<PluggedDesign, ConfigError> {
    check(context)?;
    let fwb = plug(Fwb::new(context));
    Ok(match context.config.get::<FwbConfig>().write_back {
        WriteBack::Clwb => fwb.with_software().into(),
        WriteBack::Scan | WriteBack::None => fwb.into(),
    })
}

fn guarantee(config: &Config) -> Guarantee {
    let fwb = config.get::<FwbConfig>();
    let logs_enough = fwb.log_values == LogValues::Both && fwb.write_back != WriteBack::None;
    if fwb.log_buffer_entries > traversal_cycles(config) || !logs_enough {
        Guarantee::None
    } else if fwb.instant_commit {
        Guarantee::Prefix { lost_max: log::bytes(config) / TRANSACTION_BYTES_MIN }
    } else {
        Guarantee::Durable
    }
}

/// Transactions of a thread for which a log must have places to be worth its name, an entry of a word and a commit record
/// each: one and the next.
const TRANSACTIONS_MIN: u64 = 2;

/// Refuses a configuration that the design cannot work in.
fn check(context: &DesignContext) -> Result<(), ConfigError> {
    let (config, fwb) = (&context.config, context.config.get::<FwbConfig>());
    if !fwb.slot_bytes.is_power_of_two()
        || u64::from(fwb.slot_bytes) < Layout::of(fwb).slot_bytes_min()
    {
        let why = "a slot has 32 or 64 bytes, or 16 for records of lines and of one value".into();
        let keys = ["fwb.slot_bytes", "fwb.record_format", "fwb.log_values"];
        return Err(config.inconsistent(&keys, why));
    }
    if log::bytes(config) > context.log_bytes() {
        let region = Size(context.log_bytes());
        let why = format!("fwb.log_bytes must fit into pm.log_region_bytes = {region}");
        return Err(config.inconsistent(&["fwb.log_bytes", "pm.log_region_bytes"], why));
    }
    if fwb.dirty_flags && !log::is_packed(config) {
        let why =
            "slots have no room for dirty flags; records have with pm.log_packing = always".into();
        return Err(config.inconsistent(&["fwb.dirty_flags", "pm.log_packing"], why));
    }
    let log = Log::of(context);
    let transaction = log.places_of(1) + log.places_of(0);
    let needed = TRANSACTIONS_MIN * transaction * u64::from(context.threads);
    if log.places() < needed {
        let (threads, capacity) = (context.threads, log.capacity());
        let why = format!("the log holds {capacity}; {threads} threads need at least {needed}");
        let packed = log::is_packed(config);
        let format = if packed { "pm.log_packing" } else { "fwb.slot_bytes" };
        return Err(config.inconsistent(&["fwb.log_bytes", format], why));
    }
    let bound = traversal_cycles(config);
    if fwb.log_buffer_entries > bound && !fwb.allow_unsafe_buffer {
        let why = format!(
            "a store can fall through the caches in {bound} cycles, and with more than {bound} entries \
             overtake its log entry; fwb.allow_unsafe_buffer = true accepts that"
        );
        let keys = ["fwb.log_buffer_entries", "fwb.allow_unsafe_buffer"];
        return Err(config.inconsistent(&keys, why));
    }
    Ok(())
}
