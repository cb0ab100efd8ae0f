//! `lsm`: log-structured non-volatile main memory, LSNVMM (Hu et al., USENIX ATC'17), as HOOP (ISCA'20)
//! compares with it.
//!
//! "All the writes are appended into a log"; an index in DRAM maps home addresses to places in the log, and a
//! read takes "O(log N) memory accesses [...] where N is the number of log entries" (HOOP §II-B, Fig. 1c). HOOP's
//! comparison (§IV-A): "We implement its address mapping tree using skip list, and cache it in DRAM for fast index
//! lookup. For fair comparison, we conduct GC operations in LSNVMM at the same frequency as HOOP."
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters |
//! | `rules` | the rules of the protocol, and the mutants that break them |
//! | `protocol` | state, requests, hooks |
//! | `protocol/software` | what threads execute: lookups, the write set, the append, updates of the index |
//! | `protocol/append` | a transaction goes into the log |
//! | `protocol/fill` | a line is read, from where its newest words are |
//! | `protocol/collect` | garbage collection: the newest words go home |
//! | `event` | what happens, counted and traced; cover points |
//! | `segments` | segments of the log, free, open and full |
//! | `log` | bytes of the log |
//! | `index` | the skip list |
//! | `recovery` | recovery |
//! | `cost` | what the hardware costs |
//!
//! **Transactions.** Stores of a running transaction stay in its write set, a table in DRAM. At its end the
//! words are sorted by address and appended to the thread's open segment of the log, past the caches. When all of
//! it is durable, the commit record is written, with the next number of a sequence that all threads share;
//! when that is durable, the commit is acknowledged. Two barriers, no write at home.
//!
//! **The log** lies in the log region: a line for the head, then segments. A transaction lies in one segment, in
//! whole lines, one transaction behind the other.
//!
//! | where | word | bits | content |
//! |---|---|---|---|
//! | first line of the region | 0 | 0-63 | head: transactions with a lower sequence number have gone home |
//! | first line of a transaction | 0 | 0-19 | words of its entries |
//! | | 0 | 20-63 | commit sequence number, from 1 |
//! | its other lines | 0 | 0-63 | not written |
//! | each line | 1-7 | | entries, one after the other: |
//! | entry | 0 | 0-47 | home address of its first word |
//! | | 0 | 48-63 | number of words, n |
//! | | 1-n | 0-63 | new words |
//!
//! The first words of lines hold commit records or nothing, and never data. The record is one word, written when
//! everything before it is durable: it is there or it is not, and if it is, so is the transaction; no check sum is
//! needed. What an earlier use of the segment has left has a sequence number below the head, since a segment is used
//! again only when the head that passes it is durable. The system clears the first words before the log is put to use.
//!
//! **Reads.** Before each load of PM a thread looks its address up in the skip list (`index`); a transaction that
//! has stored something looks into its write set first. Nodes are DRAM, and go through the caches like all else.
//!
//! **Caches hold lines under their home addresses.** The addresses of the log, where LSNVMM's data is, are used below
//! the caches only. That favours the design where a word that was just committed is read again: its line need not be
//! fetched from the log. It is to its disadvantage where a store misses: its line is fetched, although
//! LSNVMM only puts the word into the write set. A dirty line that leaves the LLC is dropped: the write set or
//! the log has its words. A miss reads, in parallel, those lines of the log that hold words of the line, and its home if
//! some word is there only; words of running transactions come from the write sets' lines in DRAM.
//!
//! **Garbage collection**, every `gc_period_us` and whenever segments or nodes run out, migrates home, as HOOP's does
//! (LSNVMM itself copies live data within the log). It closes all segments, reads what they hold, writes the
//! newest version of each word home, then moves the head, then frees segments and nodes. Why all of them: a version
//! of a word in one thread's open segment may be older than the one that went home from another's full one, and
//! recovery must not bring it back. One word, the head, makes it obsolete with all others at once, so that no
//! power failure finds some of the versions gone and an older one there.
//! Collections run beside the threads, on a core of their own: only their traffic is felt. A segment of which
//! a miss is reading a line is not used again before that is done.
//!
//! **Recovery** reads the head and all segments, sorts the transactions that are not below the head by their numbers, writes
//! the newest version of each word home, and moves the head past the last. Until then it can start again.
//!
//! **Left open by the papers**, with what is assumed here: the layouts above; segments per thread (contention-free
//! appends); that threads look up at loads and not at stores, which go to the write set
//! (`lookups`); instructions of the software's steps (parameters); levels of the skip list (Pugh's p = 1/4); that
//! the index is updated on the critical path, which HOOP §IV-C says, and so at the transaction's end, before the
//! append. Every store to PM must be in a transaction, as LSNVMM's interface has it.

mod cost;
mod event;
mod index;
mod log;
mod protocol;
mod recovery;
mod rules;
mod segments;

use graven_base::config::Size;
use graven_base::memory::{LINE_BYTES, WORD_BYTES};
use graven_base::stats::CounterSet;
use graven_base::{choice, section};
use graven_machine::design::{
    Acknowledgement, Capacity, DesignContext, DesignInfo, Guarantee, Named, Room, Rounds, Step,
    TakenBy, plug,
};

use crate::out_of_place::{DATA_REDUCTION, FILLS_PARALLEL_SHARE};
use event::{COVER_POINTS, Counters};
use log::{Log, format};
use protocol::{Lsm, index_bytes};
use recovery::recover;
use rules::Rules;

choice! {
    /// Accesses to PM before which a thread looks the address up.
    pub enum Lookups {
        /// Loads: stores go to the write set, wherever their words are.
        Loads = "loads",
        /// Loads and stores.
        All = "all",
    }
}

choice! {
    /// The probability that a node of the skip list has a further level.
    pub enum Promotion {
        /// One half.
        Half = "1/2",
        /// One quarter.
        Quarter = "1/4",
    }
}

section! {
    /// LSNVMM: a log in PM, an index in DRAM.
    pub struct LsmConfig("lsm") {
        /// The log; 0: the whole log region.
        log_bytes: Size = Size(0), Size(0)..=Size::gb(512), "B";
        /// Segment of the log; a transaction must fit.
        segment_bytes: Size = Size::kb(64), Size(64)..=Size::mb(8), "B";
        /// Most words of one log entry, hence of one range of the index.
        entry_words_max: u32 = 512, 1..=65_535, "words";
        /// Time between two periodic collections (HOOP §IV-A: 10 ms).
        gc_period_us: f64 = 10_000.0, 0.01..=1_000_000.0, "us";
        /// Reads or writes of a collection that are under way at a time.
        gc_requests: u32 = 16, 1..=1024, "requests";
        /// DRAM for nodes of the index, as far as the DRAM's second half has it.
        index_bytes: Size = Size::gb(1), Size::kb(4)..=Size::gb(64), "B";
        /// Most levels of a node.
        index_levels_max: u32 = 16, 1..=32, "levels";
        /// Probability of a further level.
        index_promotion: Promotion = Promotion::Quarter, (), "";
        /// Accesses to PM before which a thread looks the address up.
        lookups: Lookups = Lookups::Loads, (), "";
        /// Slots of a thread's write set, a hash table in DRAM; more words share slots.
        write_set_slots: u32 = 1024, 16..=65_536, "slots";
        /// Instructions of a lookup, beside those of its nodes.
        lookup_instructions: u32 = 10, 0..=10_000, "instructions";
        /// Instructions for each node visited, beside its load.
        node_instructions: u32 = 4, 0..=10_000, "instructions";
        /// Instructions of a search in the write set, or of an insertion.
        write_set_instructions: u32 = 8, 0..=10_000, "instructions";
        /// Instructions for each entry appended, beside one for each of its words.
        entry_instructions: u32 = 20, 0..=10_000, "instructions";
    }
}

/// Bytes of the host for a segment of the log.
const HOST_BYTES_PER_SEGMENT: u64 = 64;

/// Bytes of the host for a node of the index with its links, in tables that double their size as
/// they grow.
const HOST_BYTES_PER_NODE: u64 = 112;

/// Segments of the log, and nodes of the index: two for each line that is stored to, at most.
fn host_bytes(context: &DesignContext, lines: u64) -> u64 {
    let config = context.config.get::<LsmConfig>();
    let segments = (context.log_end.0 - context.log_start.0) / config.segment_bytes.0;
    let nodes = (config.index_bytes.0 / LINE_BYTES).min(2 * lines);
    segments.saturating_mul(HOST_BYTES_PER_SEGMENT).saturating_add(nodes * HOST_BYTES_PER_NODE)
}

/// Structures with a limited number of places. (A write set has none: more words share slots.)
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "index-exactly-full",
            summary: "all lines of the index's DRAM were nodes, or had been",
        },
        // A node of few levels is a line; a word by itself has one.
        room: |context| Room::of_words(index_bytes(context) / LINE_BYTES),
    },
    Capacity {
        full: Named {
            name: "segment-exactly-full",
            summary: "all lines of an open segment were taken",
        },
        // A transaction takes whole lines: one if it is short.
        room: |context| Room::of_transactions(Log::of(context).lines),
    },
    Capacity {
        full: Named { name: "segments-exactly-full", summary: "no segment of the log was free" },
        room: |context| {
            let log = Log::of(context);
            let taken_by = TakenBy::Piece(log.payload_max() * WORD_BYTES);
            Room { places: log.segments as u64, taken_by }
        },
    },
];

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "lsm",
    summary: "log-structured memory: all data in a log, found through a skip list in DRAM",
    paper: "LSNVMM, ATC'17; HOOP §II-B, §IV-A",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(LsmConfig::default())),
    acknowledgement: Acknowledgement {
        source: "LSNVMM is software: the entries past the caches, and a barrier; the commit record, and a barrier. A barrier ends \
                 when the core has heard that what is before it is durable",
        steps: |_| {
            let barrier = || [Step::Message, Step::Write, Step::Message];
            barrier().into_iter().chain(barrier()).collect()
        },
    },
    build: |context| Ok(plug(Lsm::new(context)?).absorbing().with_software().into()),
    host_bytes,
    format,
    recover,
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    derived: &[FILLS_PARALLEL_SHARE, DATA_REDUCTION],
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        (
            "lsm.segment_bytes+lsm.log_bytes",
            &["1536+7 KB", "2 KB+9 KB", "2 KB+16 KB", "4 KB+64 KB"],
        ),
        ("lsm.entry_words_max", &["1", "2", "5", "512"]),
        ("lsm.gc_period_us", &["0.2", "1", "5"]),
        ("lsm.gc_requests", &["1", "2", "16"]),
        ("lsm.index_bytes", &["12 KB", "24 KB"]),
        ("lsm.index_promotion", &["1/2", "1/4"]),
        ("lsm.index_levels_max", &["1", "4", "16"]),
        ("lsm.lookups", &["loads", "all"]),
    ],
    scaled_down: &[
        ("lsm.segment_bytes", "64 B"),
        ("lsm.log_bytes", "128 B"),
        ("lsm.entry_words_max", "1"),
        ("lsm.index_bytes", "4 KB"),
        ("lsm.gc_period_us", "1"),
    ],
    rounds: |_| &[Rounds { counter: "gc_passes", before: 1, within: 2 }],
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};
