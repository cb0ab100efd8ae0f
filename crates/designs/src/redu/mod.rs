//! `redu`: redo logging in hardware with direct updates (ReDU: Jeong et al., MICRO 2018), as LALEA (Lu et al.) takes it for
//! its baseline, §II and §IV; and, composed with it by parameters, LALEA (§III-A) and BLOM (§III-B).
//!
//! - **Log buffer** (Table I: 8 entries at each L1). A transactional store goes into the entry of its line, which says
//!   which words are the transaction's; without one it takes a new entry. A full buffer sends its oldest, and the end of the
//!   transaction sends all. Messages take `controller.bypass_cycles` to the controller.
//! - **Log queue** (Table I: 32 entries, over all cores). A request holds a place until its write is durable; it is issued to
//!   memory as soon as it has one ("REDU can immediately initiate log requests as soon as they arrive", §IV-B).
//!   What finds it full waits outside in order of arrival, and as long as a thread's entries wait there, its log buffer
//!   cannot send more, so that its stores wait.
//! - **Log record** (§II-B, ATOM's log entry collation): a header and seven entries. A header is written when its
//!   entries are durable (intra-record order).
//! - **Commit.** All entries durable, then all headers; the last header says that it is the last, and is sent when
//!   all others are durable. It is the commit point; a message acknowledges it.
//! - **Update in place** follows in the background: the words of the transaction's lines, as they are at the commit point, go home
//!   through the memory's own queue. The records are dead, and their slots free, when these and those of all transactions before it in
//!   commit order are durable ("the log can be removed"). In commit order, since recovery would redo
//!   an older transaction over the words of a newer one that is not in the log any more.
//! - **Evicted lines.** Dirty PM lines that leave the LLC are held in a victim area until every transaction that might have
//!   stored to them is at home, and misses are served from there (ReDU's DRAM cache, of which Table I says nothing). A
//!   line that leaves when there is no such transaction goes home.
//!
//! `lalea` (`redu.load_aware_allocation`): blocks of the log come from `designs/lalea` when a request is issued, and that of a
//! header when it is written or pointed to. A header has a second line, with the addresses of its entries and
//! `next_ptr`. Headers wait for nothing but their entries; the commit point is the writing of the thread's LR register
//! when all headers are durable. The paper leaves open what happens if the thread's transaction before is not at home:
//! LR counts transactions (up to `lalea.chained_transactions`; 1: the next commit waits), and the last header of each
//! points to the first of the one before. When the oldest is at home, the count goes down, then its blocks are free.
//!
//! `blom` (`redu.buffered_headers`): a header is in an ADR entry of the controller (`controller.adr_entries`; one of LALEA's in two)
//! from the arrival of its first entry until its transaction's log is dead, and then it is discarded. A commit waits for
//! the entries only. At a power failure ADR writes the headers of committed transactions to their places; those of others
//! are lost. With `lalea`, the place of a header is allocated when it gets its ADR entries, and LR moves without waiting.
//! A record that begins when no entry is free: the headers of the oldest committed transaction are written to PM, or else those
//! of the oldest open one that are complete with durable entries; they keep their ADR entries until they are durable
//! there. The record's own header gets the first entry that is free, if it is not written before; a transaction
//! whose last header has none commits by writing it, as without BLOM, and its other headers are saved as if it had committed
//! while it does: they do not count without the last.
//!
//! Without `lalea` each thread has a circular area of records of 512 B. Records are numbered from 0 over all
//! passes: record `n` lies in slot `n mod slots`. All headers are read by recovery.
//!
//! | line | word | bits | content |
//! |---|---|---|---|
//! | header, 1 | 0-6 | 0-47 | home address of the entry |
//! | | 0-6 | 48-55 | which words of the line are the transaction's |
//! | | 0-6 | 56-62 | number of the record (word 0: bits 0-6 of it, …) |
//! | | 7 | 0-2 | valid_cnt: entries, 1 to 7; 0: no header |
//! | | 7 | 3 | last record of its transaction |
//! | | 7 | 4-15 | index of the record within the transaction |
//! | | 7 | 16-62 | last record: commit sequence number, from 1 |
//! | | 0-7 | 63 | torn bit: other than in the header that was written to this slot before; 1 in the first |
//! | header, 2 (`lalea` only) | 0-6 | 0-47 | address of the entry's block |
//! | | 7 | 0-47 | next_ptr: next header of the transaction; last record: first header of the transaction before, or 0 |
//! | entry | 0-7 | 0-63 | the line |
//!
//! Entries need no torn bits, since their headers are written after them; LALEA's headers need none, since LR is written
//! after them (the bit is 0 there).
//!
//! **Non-volatile registers.** `redu`: the commit sequence number up to which everything is at home (8 B, of the controller).
//! `lalea`: an LR register of 8 B for each thread ([`crate::lalea::Lr`]). The rest is lost.
//!
//! **Recovery** takes from the areas all transactions with a last header that the register has not passed, or follows the
//! LR registers; it redoes them in commit order.
//!
//! `redu-literal` takes the granularity of the text, lines: updates in place and recovery write whole lines. It loses
//! data where two open transactions share a line.
//!
//! **Left open by LALEA and decided here**: all of the above that has no section: the bits of headers, the order in which logs
//! die, the truncation register (a zero-cost stand-in for the log management that the paper calls "conventional"), the victim area
//! (2,048 lines, as `opt-redo`'s; beyond, lines wait in the LLC's write-back buffer and stores wait for them),
//! the areas' size. Not modelled: the DRAM cache of ReDU's own paper, and the in-place update queue as a queue of its own.
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters |
//! | `rules` | the rules of the protocol, and the mutants that break them |
//! | `protocol` | state; stores, ends, lines that leave the caches; the victim area |
//! | `front` | log buffers; stores that wait |
//! | `queue` | log queue |
//! | `headers` | headers in ADR entries and in PM |
//! | `commit` | commit |
//! | `home` | updates in place, the end of a log |
//! | `transaction` | a transaction and its records |
//! | `record`, `recovery` | the bytes of the log; recovery from them |
//! | `event` | events, for statistics, coverage and timelines; cover points |
//! | `cost` | what the hardware costs |

mod commit;
mod cost;
mod event;
mod front;
mod headers;
mod home;
mod protocol;
mod queue;
mod record;
mod recovery;
mod rules;
mod transaction;

use graven_base::config::Size;
use graven_base::memory::LINE_BYTES;
use graven_base::section;
use graven_base::stats::CounterSet;
use graven_machine::config::ControllerConfig;
use graven_machine::design::{
    Acknowledgement, Battery, Capacity, DesignContext, DesignInfo, Guarantee, Leaves, Named,
    Reopening, Room, Step, plug,
};

use crate::lalea::{ENTRIES_FULL, HEADERS_FULL, LaleaConfig};
use crate::rules::named;
use event::{COVER_POINTS, Counters};
use protocol::Redu;
use record::{Area, RECORD_BYTES};
use recovery::{format, recover};
use rules::Rules;

section! {
    /// Redo logging in hardware, and what LALEA and BLOM make of it.
    pub struct ReduConfig("redu") {
        /// Log entries, of a line each, that a thread's log buffer at the L1 holds.
        log_buffer_entries: u32 = 8, 1..=256, "lines";
        /// Writes of the log that the controller has on their way, over all threads.
        log_queue_entries: u32 = 32, 1..=1024, "requests";
        /// Circular log area of each thread, 512 B per record of seven lines; a transaction must fit. Without effect with load-aware allocation.
        log_bytes_per_thread: Size = Size::kb(128), Size(RECORD_BYTES)..=Size::mb(64), "B";
        /// Lines that left the LLC and wait in the controller until their transactions are at home.
        victim_lines: u32 = 2048, 1..=1_048_576, "lines";
        /// Time of a read that the victim area serves, once it has reached the controller.
        victim_read_cycles: u32 = 1, 0..=1000, "cycles";
        /// Log blocks come from the bank with the fewest pending operations (LALEA).
        load_aware_allocation: bool = false, (), "";
        /// Headers stay in ADR entries until their log is dead (BLOM).
        buffered_headers: bool = false, (), "";
    }
}

/// Parameters under stress, of this design and the mechanisms in it.
const STRESS: &[(&str, &[&str])] = &[
    ("redu.log_buffer_entries", &["1", "2", "8"]),
    ("redu.log_queue_entries", &["1", "2", "8", "32"]),
    ("redu.log_bytes_per_thread", &["2 KB", "4 KB", "8 KB", "128 KB"]),
    ("redu.victim_lines", &["3", "6", "64"]),
    ("lalea.fle_entries", &["48", "96", "512"]),
    ("lalea.fh_entries", &["8", "16"]),
    ("lalea.chained_transactions", &["1", "2", "65535"]),
    ("controller.adr_entries", &["1", "2", "3", "4", "16"]),
];

/// Parameters for programs of a few stores.
const SCALED_DOWN: &[(&str, &str)] = &[
    ("redu.log_buffer_entries", "1"),
    ("redu.log_queue_entries", "1"),
    ("redu.log_bytes_per_thread", "512 B"),
    ("redu.victim_lines", "2"),
    ("lalea.fle_entries", "1"),
    ("lalea.fh_entries", "1"),
    ("lalea.chained_transactions", "1"),
];

/// Buffered headers are in ADR; of each thread its last record is known, or of all the newest commit that is at home.
const BATTERY: fn(&DesignContext) -> Battery = |context| Battery {
    bytes: u64::from(context.config.get::<ControllerConfig>().adr_entries) * LINE_BYTES,
    registers: context.threads as usize,
    register_bits: 64,
};

/// Structures with a limited number of places. The last four: slots without LALEA; log entries, headers and chained transactions with it.
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "log-buffer-exactly-full",
            summary: "all entries of a log buffer were taken",
        },
        room: |context| {
            Room::of_lines(context.config.get::<ReduConfig>().log_buffer_entries.into())
        },
    },
    Capacity {
        full: Named {
            name: "log-queue-exactly-full",
            summary: "all entries of the log queue were taken",
        },
        room: |context| Room::of_lines(context.config.get::<ReduConfig>().log_queue_entries.into()),
    },
    Capacity {
        full: Named {
            name: "victim-area-exactly-full",
            summary: "all lines of the victim area were taken",
        },
        room: |context| Room::of_lines(context.config.get::<ReduConfig>().victim_lines.into()),
    },
    Capacity {
        full: Named { name: "adr-entries-exactly-full", summary: "all ADR entries kept headers" },
        room: |context| {
            Room::of_transactions(context.config.get::<ControllerConfig>().adr_entries.into())
        },
    },
    Capacity {
        full: Named {
            name: "log-area-exactly-full",
            summary: "all slots of a thread's log area were taken",
        },
        // A transaction takes one at least.
        room: |context| Room::of_transactions(Area::of(context, 0).slots),
    },
    ENTRIES_FULL,
    HEADERS_FULL,
    Capacity {
        full: Named {
            name: "chain-exactly-full",
            summary: "an LR register reached as many transactions as it may",
        },
        room: |context| {
            let transactions = context.config.get::<LaleaConfig>().chained_transactions;
            Room::of_transactions(transactions.into())
        },
    },
];

/// Redo logging alone.
pub const INFO: DesignInfo = DesignInfo {
    name: "redu",
    summary: "redo log of lines; updates in place after the commit",
    paper: "ReDU (MICRO'18) as REDU in LALEA §II, §IV",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(ReduConfig::default())),
    acknowledgement: Acknowledgement {
        source: "LALEA §II-B, §III: entries leave the log buffer at the L1, all are durable before the headers (of two lines in one bank where \
                 they have links; with BLOM in their ADR entries already), and the controller answers",
        steps: |config| {
            let redu = config.get::<ReduConfig>();
            let mut steps = vec![Step::Message, Step::Write];
            if !redu.buffered_headers {
                let lines = if redu.load_aware_allocation { 2 } else { 1 };
                steps.extend(std::iter::repeat_n(Step::Write, lines));
            }
            steps.push(Step::Message);
            steps
        },
    },
    build: |context| Ok(plug(Redu::new(context)?).absorbing().into()),
    format,
    recover,
    battery: BATTERY,
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        ("redu.load_aware_allocation", &["true"]),
        ("redu.buffered_headers", &["true"]),
        STRESS[0],
        STRESS[1],
        STRESS[2],
        STRESS[3],
        STRESS[4],
        STRESS[5],
        STRESS[6],
        STRESS[7],
    ],
    scaled_down: SCALED_DOWN,
    leaves: |_| Leaves::AtHome,
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same with lines as the unit of what is written home.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "redu-literal",
    summary: "redu with whole lines updated and redone, as published (loses data)",
    default: false,
    inherent: named(Rules::MUTANTS, &["whole-lines-updated", "whole-lines-redone"]),
    ..INFO
};

/// Log blocks where memory has the least to do.
pub const LALEA: DesignInfo = DesignInfo {
    name: "lalea",
    summary: "redu with log blocks in the bank that has the fewest pending operations",
    paper: "LALEA §III-A",
    // The lists of free blocks "can be rebuilt during the crash recovery process" (LALEA §III-A), and the chains
    // begin in registers, which are reset: whatever else is there means nothing.
    reopening: Reopening::RegistersReset,
    settings: &[("redu.load_aware_allocation", "true")],
    stress: STRESS,
    scaled_down: &[
        ("redu.log_buffer_entries", "1"),
        ("redu.log_queue_entries", "1"),
        ("redu.victim_lines", "2"),
        ("lalea.fle_entries", "2"),
        ("lalea.fh_entries", "2"),
        ("lalea.chained_transactions", "1"),
        ("pm.banks", "2"),
        ("pm.ranks", "1"),
    ],
    ..INFO
};

/// Headers in ADR entries.
pub const BLOM: DesignInfo = DesignInfo {
    name: "blom",
    summary: "redu with headers in ADR entries until they are not needed",
    paper: "LALEA §III-B",
    settings: &[("redu.buffered_headers", "true")],
    stress: STRESS,
    ..INFO
};

/// Both.
pub const LALEA_BLOM: DesignInfo = DesignInfo {
    name: "lalea-blom",
    summary: "redu with both: least-loaded banks for log blocks, ADR entries for headers",
    paper: "LALEA §III, §IV",
    // The lists of free blocks "can be rebuilt during the crash recovery process" (LALEA §III-A), and the chains
    // begin in registers, which are reset: whatever else is there means nothing.
    reopening: Reopening::RegistersReset,
    settings: &[("redu.load_aware_allocation", "true"), ("redu.buffered_headers", "true")],
    stress: STRESS,
    ..INFO
};
