//! `opt-undo`: hardware undo logging after ATOM (HPCA'17), as HOOP compares with it (HOOP §IV-A *Opt-Undo*, §IV-B to
//! §IV-D, Fig. 4a) and as LALEA §II-B describes its log records.
//!
//! The old content of each line that a transaction stores to goes to a log; "the ordering of data and undo log" is kept
//! "in the memory controller" (HOOP §IV-B), so no store waits for the log; a commit waits for the data.
//!
//! - **Log entries.** A transaction's first store to a line sends the line's old content to the controller, past the
//!   caches, which appends it to the log area of the thread. The store proceeds at once (a *posted* log).
//! - **The L1's extension.** A line in an L1 remembers which thread's transaction logged it and which of its words the
//!   controller knows of (a thread id and 8 bits; ATOM has one bit). It forgets when the line leaves this L1, or when
//!   a thread that shares the L1 stores to it: the next store logs the line again. A store to another word of a line
//!   that is remembered joins the line's entry, as long as its header is not written; otherwise the line is logged
//!   again, too. (So an entry that is joined has the old word: whoever stored to it since has committed, hence
//!   written the line back, and closed the record.)
//! - **Log entry collation** (LALEA §II-B, ATOM's LEC). `entries_per_record` entries (7) share a header line with their
//!   home addresses; together they are a log record. Entries are written as they come. The header is collected in a
//!   register of the controller and written when it is full and another entry comes (until then its last line may
//!   gain words), or before, when data or a commit needs it. A record whose header is written is closed. An entry counts
//!   when its header is durable, and the header is written after its entries ("intra-record ordering").
//! - **Log before data.** A line that leaves the caches, evicted or written back, by whichever thread, waits in the
//!   controller for the headers of all entries that open transactions have of it. It forces those that are not
//!   written. (An entry on its way to the controller is waited for, too: ATOM keeps the line locked in the L1.)
//! - **Commit.** The core asks the controller for the last header and writes all dirty lines of the transaction back. When
//!   they and those that were evicted before are durable, the controller answers; a second message removes the log
//!   (the commit point), a third acknowledges it. Each message takes the path to the controller.
//! - **Log removal** (HOOP §IV-D). A non-volatile register of the controller for each thread (Silo §V: ATOM keeps
//!   "the metadata to manage logs" in an on-chip persistent buffer) has the number of the thread's first transaction that
//!   has not committed; transactions without stores do not count. Headers of any other number are void. Nothing is written.
//!
//! Each thread has a circular log area; records are numbered from 0 over all passes, record `n` lies in slot `n mod
//! slots`. A record is one header line and `entries_per_record` lines of old data. The header, word by word:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0-19 | index of the record in its transaction |
//! | 0 | 20-62 | transaction number (low 43 bits) |
//! | 1-7 | 0-47 | home address of the line in entry 0-6 |
//! | 1-7 | 48-55 | which words of the line are the transaction's; 0: no entry |
//! | 0-7 | 63 | torn bit: 1 in even passes over the area, 0 in odd ones |
//!
//! Any words of a header may be there without the others. All of them are written, over a header with the opposite
//! torn bit (over zeroes at first: the system clears the headers), so a header that is there in part has mixed torn
//! bits and is none. Its entries need no mark: they are durable before it.
//!
//! Recovery reads all headers of a thread's area, and of those that have the register's number writes the words of their
//! masks back: last record first, last entry first. A line that was logged twice has the words of the first
//! time in its older entry. It changes nothing in the log, so it may be repeated. Open transactions have no words in common,
//! so the order of threads does not matter.
//!
//! Left open, here or by the sources: what is logged again, and when a header is written (above); that the header
//! comes first in its record; what a commit costs in messages. Left out: ATOM's *source logging*, where the controller
//! makes the entry itself from a line that it has just read (messages to the controller take time here, but no
//! bandwidth); dropping log writes that are still queued when their log is removed.
//!
//! `opt-undo-literal` logs and undoes lines whole, as all sources have it. It loses data where two open transactions have
//! words in one line.
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters |
//! | `rules` | the rules of the protocol, and the mutants that break them |
//! | `protocol` | state, hooks |
//! | `logging` | entries, headers, and what lines wait for |
//! | `commit` | write-backs, data on its way, log removal |
//! | `event` | what happens, counted and traced; cover points |
//! | `lines` | the lines that a transaction has stored to |
//! | `record` | headers and log areas, byte by byte |
//! | `recovery` | undoing |
//! | `cost` | what the hardware costs |

mod commit;
mod cost;
mod event;
mod lines;
mod logging;
mod protocol;
mod record;
mod recovery;
mod rules;

use graven_base::config::Size;
use graven_base::memory::LINE_BYTES;
use graven_base::section;
use graven_base::stats::CounterSet;
use graven_machine::design::{
    Acknowledgement, Battery, Capacity, DesignInfo, Guarantee, Leaves, Named, Room, Step, TakenBy,
    plug,
};

use crate::rules::named;
use event::{COVER_POINTS, Counters};
use protocol::OptUndo;
use record::{Area, ENTRIES_MAX};
use recovery::{format, recover};
use rules::Rules;

section! {
    /// Hardware undo logging after ATOM, as HOOP compares with it.
    pub struct OptUndoConfig("opt-undo") {
        /// Circular log area of each thread; the records of a transaction must fit.
        log_bytes_per_thread: Size = Size::kb(128), Size(512)..=Size::mb(64), "B";
        /// Log entries that share a header: one record.
        entries_per_record: u32 = 7, 1..=ENTRIES_MAX as u32, "entries";
    }
}

/// Structures with a limited number of places.
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "record-exactly-full",
            summary: "the record that is being collected had all its entries",
        },
        room: |context| {
            Room::of_lines(context.config.get::<OptUndoConfig>().entries_per_record.into())
        },
    },
    Capacity {
        full: Named {
            name: "log-area-exactly-full",
            summary: "all slots of a thread's log area were taken by one transaction",
        },
        room: |context| {
            let entries = context.config.get::<OptUndoConfig>().entries_per_record;
            let taken_by = TakenBy::Piece(u64::from(entries) * LINE_BYTES);
            Room { places: Area::of(context, 0).slots, taken_by }
        },
    },
];

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "opt-undo",
    summary: "logs the old line of each first store; the controller keeps log before data; a commit waits for the lines",
    paper: "HOOP §IV-A (Opt-Undo: ATOM), LALEA §II-B",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(OptUndoConfig::default())),
    acknowledgement: Acknowledgement {
        source: "ATOM as HOOP §IV-B has it: the core writes its lines back, behind their header; the controller answers, the core has \
                 the log removed, the controller answers again",
        steps: |_| {
            let line_behind_header = Step::Both(vec![Step::Fall], vec![Step::Message, Step::Write]);
            vec![line_behind_header, Step::Write, Step::Message, Step::Message, Step::Message]
        },
    },
    build: |context| Ok(plug(OptUndo::new(context)?).with_departures().into()),
    format,
    recover,
    // For each thread, the number of the transaction that has not committed.
    battery: |context| Battery { bytes: 0, registers: context.threads as usize, register_bits: 64 },
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[(
        "opt-undo.entries_per_record+opt-undo.log_bytes_per_thread",
        &["1+1 KB", "1+4 KB", "2+3 KB", "3+2 KB", "7+2 KB", "7+4 KB", "7+8 KB"],
    )],
    scaled_down: &[
        ("opt-undo.entries_per_record", "1"),
        ("opt-undo.log_bytes_per_thread", "512 B"),
    ],
    leaves: |_| Leaves::Clean,
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same with the granularity of its sources.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "opt-undo-literal",
    summary: "opt-undo with lines logged and undone whole, as published (loses data)",
    default: false,
    inherent: named(Rules::MUTANTS, &["lines-logged-whole"]),
    ..INFO
};
