//! `hoop`: out-of-place update in the memory controller (HOOP, §III).
//!
//! New data goes to a new place, packed by words; the old place keeps the old data until garbage collection
//! brings the newest words of committed transactions home.
//!
//! - **Store** (§III-G, Fig. 6). The L1 sends the word and its home address to the controller, where the
//!   transaction's open **memory slice** in the core's **OOP data buffer** takes it (`oop_buffer_bytes`
//!   per core; with two threads on a core, for each). A word that is in the open slice already is
//!   replaced there. A slice of eight words goes to the OOP region when the ninth comes or the transaction ends:
//!   only then is it known whether its chain continues. The store waits if the buffer has no room, the
//!   mapping table no entry, or the region no slice.
//! - **Commit.** `Tx_end` sends what is left; when all slices of the transaction are durable, its commit
//!   record goes to an address memory slice; when that is durable, the thread is notified. Records get their
//!   places, and with them their sequence numbers, when `Tx_end` comes: transactions that depend on each other
//!   are apart by an acknowledgement, so that the order is theirs.
//! - **Mapping table** (`mapping_table_bytes`, `mapping`). An entry of 16 B (two 40-bit addresses,
//!   a mask of words) for each line and slice with words of it that are the newest and not at home; made when
//!   the word enters the buffer, so that evicted and flushed lines are found alike.
//! - **Eviction** from the LLC sends nothing: what transactions stored is in slices. (Programs store to
//!   PM in transactions only; every dirty line has the persistent bit.)
//! - **Miss** (§III-C). With entries in the mapping table: its slices and its home are read in parallel and
//!   unpacked (`unpack_cycles`). Slices that the OOP data buffer still has come from there. Without:
//!   from the eviction buffer (`eviction_buffer_bytes`, 72 B a line) if it has the whole line; else
//!   from home, with the words of the eviction buffer laid over it.
//! - **Garbage collection** (§III-E, Algorithm 1) every `gc_period_us`, and on demand when the table is full
//!   or no block is free: see `collect`.
//! - **Recovery** (§III-F) on `recovery_threads` threads: see `recovery`.
//! - **Several controllers** (§III-I; `controllers`): lines go round them; each has its own region,
//!   tables and buffers, and transactions commit in two phases (`commit`).
//!
//! # What lies in a region
//!
//! The log region, in equal shares for the controllers. A share begins with a word (the sequence number to continue
//! with after a recovery) and the **block index table**, a word per block; then come the blocks.
//!
//! | block (`block_bytes`) | slices | content |
//! |---|---|---|
//! | header | 1 | below |
//! | address memory slices | 1 for 16 data slices | commit records, 8 B each |
//! | data memory slices | rest | below |
//!
//! | header, index | bits | content |
//! |---|---|---|
//! | word 0 | 0-15 | number of the block (the paper's 8 bits end at 512 MB) |
//! | word 0 | 16-49 | slice number of the block that was opened next |
//! | word 0 | 50-51 | state: 0 unused, 1 in use, 2 full, 3 collected |
//! | word 1 | 0-33 | sequence number with which it was opened |
//! | index entry | 0-62, 63 | start address of the block; 1 |
//!
//! | commit record | bits | content |
//! |---|---|---|
//! | | 0-28 | number of the transaction's first slice |
//! | | 29-62 | sequence number: place in commit order |
//! | | 63 | 1: committed; 0: prepared |
//!
//! | data slice | bits | content |
//! |---|---|---|
//! | line 0 | | eight words |
//! | line 1, words 0-4 | 0-319 | their home addresses, 40 bits each |
//! | line 1, word 5 | 0-31 | transaction |
//! | | 32 | 1: first of its transaction |
//! | | 33-35 | words in it, less one |
//! | | 36-39 | 1: data |
//! | | 40-63 | slices to the next of its transaction, signed, modulo the region; 0: last |
//! | line 1, words 6-7 | | pad |
//!
//! The paper leaves the address memory slice open. Here a record is one word, so it is there or not; blocks
//! and records are in the same order, so that blocks collected from the oldest on take the oldest records.
//! A record counts if its block is in the index, in use or full, and its sequence number is not older than
//! the block's: what an earlier use left there is older. So numbers continue after a recovery, behind those of all records that
//! remain, also of records that are void. (2^34 commits pass before numbers wrap around; what is
//! left in a block is younger than two rounds through the region. The system clears the region once, before
//! it is put to use.)
//!
//! # Order
//!
//! Slices before their record; header before index entry before records of the block; home writes before
//! the header that voids the records; such headers in the order of the blocks; header and index entry of a
//! free block before it is used again.
//!
//! # Left open, or otherwise than printed
//!
//! - A mapping entry stays until its words are home. §III-C removes it when the line is read: a clean copy that
//!   is then dropped leaves nothing but the stale home. Collection removes entries of slices that it
//!   collected, not of addresses (Algorithm 1, lines 22-23): a newer version may lie in a younger block.
//!   `hoop-literal` does what is printed, and loses data.
//! - A block keeps its place while slices in it belong to transactions that have not been collected; its own
//!   records are void meanwhile (state 3).
//! - The OOP data buffer, the tables and the eviction buffer are volatile (Fig. 6).
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters |
//! | `rules` | the rules of the protocol, and the mutants that break them |
//! | `protocol` | the controllers, and what each hook of the design does |
//! | `event` | what happens, counted and traced; cover points |
//! | `layout` | where things are in a region, bit by bit |
//! | `region` | blocks: allocation, states, slice bitmap |
//! | `packing` | the OOP data buffer: words into slices |
//! | `mapping`, `eviction_buffer` | the two tables |
//! | `miss` | misses: parallel reads, unpacking |
//! | `commit` | one and two phases |
//! | `collect` | garbage collection |
//! | `waiting` | threads that wait for room |
//! | `recovery`, `recovery_time` | recovery; how long the hardware would take for it |
//! | `written` | a region without a machine, for tests and benchmarks of recovery |
//! | `cost` | what the hardware costs |

mod collect;
mod commit;
mod cost;
mod event;
mod eviction_buffer;
mod layout;
mod mapping;
mod miss;
mod packing;
mod protocol;
mod recovery;
mod recovery_time;
mod region;
mod rules;
mod waiting;
mod written;

pub use recovery::{Work, recover_measured};
pub use recovery_time::recovery_ns;
pub use written::write_transactions;

use crate::out_of_place::{DATA_REDUCTION, FILLS_PARALLEL_SHARE};
use crate::rules::named;
use event::{COVER_POINTS, Counters};
use eviction_buffer::EVICTED_LINE_BYTES;
use layout::{Geometry, SLICE_BYTES, SLICE_WORDS};
use mapping::MAPPING_ENTRY_BYTES;
use protocol::Hoop;
use recovery::{format, recover, settle};
use rules::Rules;

use graven_base::config::Size;
use graven_base::memory::WORD_BYTES;
use graven_base::stats::CounterSet;
use graven_base::{choice, section};
use graven_machine::design::{
    Acknowledgement, Capacity, DesignContext, DesignInfo, Guarantee, Named, Reopening, Room,
    Rounds, Step, TakenBy, plug,
};

choice! {
    /// In which order the slices of a block are used.
    pub enum SliceOrder {
        /// In rounds over the units of the interleaving (a page, or a line), so that consecutive slices begin in
        /// different banks.
        RoundRobin = "round-robin",
        /// As they lie.
        Sequential = "sequential",
    }
}

choice! {
    /// Stores that garbage collection coalesces.
    pub enum GcScope {
        /// One block after the other, the oldest first (§III-E: a hash map of 1 MB).
        Block = "block",
        /// All blocks that are full when it begins, together.
        All = "all",
    }
}

section! {
    /// HOOP: out-of-place update in the memory controller.
    pub struct HoopConfig("hoop") {
        /// OOP data buffer of each core (§III-C); a slice takes 128 B.
        oop_buffer_bytes: Size = Size::kb(1), Size(256)..=Size::mb(1), "B";
        /// Most slices of a running transaction that stay in the OOP data buffer; beyond that its oldest full one leaves for each that begins (§III-C, §III-G).
        held_slices: u32 = 1, 1..=8192, "slices";
        /// Mapping table of all controllers together (§III-C); an entry takes 16 B.
        mapping_table_bytes: Size = Size::mb(2), Size(MAPPING_ENTRY_BYTES)..=Size::gb(1), "B";
        /// Eviction buffer of all controllers together (§III-C); a line takes 72 B.
        eviction_buffer_bytes: Size = Size::kb(128), Size(72)..=Size::gb(1), "B";
        /// Words of a line that are in a full slice go along into the next one when the transaction stores to another word of the line (§III-C: "pack them in the same memory slice"); if not, they stay.
        line_in_one_slice: bool = true, (), "";
        /// Time of a read that the eviction buffer or the OOP data buffer serves, once it has reached the controller.
        buffer_read_cycles: u32 = 1, 0..=1000, "cycles";
        /// Time to unpack the words of a line from the slices that hold them (§III-G: "a few cycles").
        unpack_cycles: u32 = 4, 0..=1000, "cycles";
        /// An OOP block (§III-D).
        block_bytes: Size = Size::mb(2), Size(384)..=Size::mb(64), "B";
        /// In which order the slices of a block are used (§III-D has "round-robin" and "sequential writes").
        slice_order: SliceOrder = SliceOrder::RoundRobin, (), "";
        /// Time from one garbage collection to the next (§III-H).
        gc_period_us: u32 = 10_000, 1..=10_000_000, "us";
        /// Stores that one collection coalesces.
        gc_scope: GcScope = GcScope::Block, (), "";
        /// Lines that a collection is waiting for at a time.
        gc_reads: u32 = 16, 2..=1024, "lines";
        /// Lines that a collection has on their way home at a time.
        gc_writes: u32 = 16, 1..=1024, "lines";
        /// Memory controllers that commit transactions together (§III-I).
        controllers: u32 = 1, 1..=4, "controllers";
        /// Threads that recovery runs on, as far as there is work for them (§III-F).
        recovery_threads: u32 = 8, 1..=64, "threads";
    }
}

impl HoopConfig {
    /// Slices that an OOP data buffer holds.
    fn buffer_slices(&self) -> u64 {
        self.oop_buffer_bytes.0 / SLICE_BYTES
    }

    /// Entries of a controller's mapping table.
    fn mapping_entries(&self) -> u64 {
        self.mapping_table_bytes.0 / u64::from(self.controllers) / MAPPING_ENTRY_BYTES
    }

    /// Lines of a controller's eviction buffer.
    fn evicted_lines(&self) -> u64 {
        (self.eviction_buffer_bytes.0 / u64::from(self.controllers) / EVICTED_LINE_BYTES).max(1)
    }
}

/// Structures with a limited number of places. A slice has as many words as a line: a line that is stored to as a whole takes one.
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "oop-data-buffer-exactly-full",
            summary: "all slices of an OOP data buffer were taken",
        },
        room: |context| Room::of_lines(context.config.get::<HoopConfig>().buffer_slices()),
    },
    Capacity {
        full: Named {
            name: "mapping-table-exactly-full",
            summary: "all entries of a controller's mapping table were taken",
        },
        room: |context| Room::of_lines(context.config.get::<HoopConfig>().mapping_entries()),
    },
    Capacity {
        full: Named {
            name: "eviction-buffer-exactly-full",
            summary: "all lines of a controller's eviction buffer were taken",
        },
        room: |context| Room::of_lines(context.config.get::<HoopConfig>().evicted_lines()),
    },
    Capacity {
        full: Named {
            name: "region-exactly-full",
            summary: "no block of a controller's region was free",
        },
        room: |context| {
            let region = Geometry::of(context, 0);
            let words = u64::from(region.data_slices()) * SLICE_WORDS as u64;
            Room { places: region.blocks.into(), taken_by: TakenBy::Piece(words * WORD_BYTES) }
        },
    },
];

/// Bytes of the host for a block of the region.
const HOST_BYTES_PER_BLOCK: u64 = 160;

/// Bytes of the host for an entry of the mapping table, in tables that double their size as they
/// grow.
const HOST_BYTES_PER_ENTRY: u64 = 96;

/// Blocks of the region with their bitmaps, and entries of the mapping table that are in use.
fn host_bytes(context: &DesignContext, lines: u64) -> u64 {
    let config = context.config.get::<HoopConfig>();
    let blocks = (context.log_end.0 - context.log_start.0) / config.block_bytes.0;
    let entries = (config.mapping_table_bytes.0 / MAPPING_ENTRY_BYTES).min(8 * lines);
    blocks.saturating_mul(HOST_BYTES_PER_BLOCK).saturating_add(entries * HOST_BYTES_PER_ENTRY)
}

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "hoop",
    summary: "packs updated words out of place in the controller; collects them home in the background",
    paper: "HOOP §III",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(HoopConfig::default())),
    acknowledgement: Acknowledgement {
        source: "§III-G: at Tx_end \"HOOP ensures all data in the OOP data buffer is flushed to the OOP region\"; the buffer is \"in \
                 the memory controller\" (§III-C): the end is a message, then the slice, \
                 two lines of one bank, then the commit record, then the answer",
        steps: |_| vec![Step::Message, Step::Write, Step::Write, Step::Write, Step::Message],
    },
    build: |context| Ok(plug(Hoop::new(context)?).absorbing().into()),
    host_bytes,
    format,
    recover,
    settle,
    // "The mapping table, eviction buffer, and OOP region are cleared" (§III-F): by recovery itself.
    reopening: Reopening::AsRecovered,
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    derived: &[FILLS_PARALLEL_SHARE, DATA_REDUCTION],
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        ("hoop.oop_buffer_bytes", &["256 B", "384 B"]),
        ("hoop.line_in_one_slice", &["true", "false"]),
        ("hoop.held_slices", &["1", "2", "8"]),
        ("hoop.mapping_table_bytes", &["512 B", "1 KB", "2 KB"]),
        ("hoop.eviction_buffer_bytes", &["72 B", "144 B", "1 KB"]),
        (
            "hoop.block_bytes+pm.log_region_bytes",
            &["512 B+8 KB", "1 KB+8 KB", "1 KB+16 KB", "2 KB+32 KB"],
        ),
        ("hoop.gc_period_us", &["1", "2", "5"]),
        ("hoop.gc_scope", &["block", "all"]),
        ("hoop.gc_reads", &["2", "3"]),
        ("hoop.gc_writes", &["1", "2"]),
        ("hoop.controllers", &["1", "2", "3"]),
        ("hoop.recovery_threads", &["1", "2", "3"]),
        ("controller.page_bytes", &["1 KB"]),
    ],
    scaled_down: &[
        ("hoop.oop_buffer_bytes", "256 B"),
        ("hoop.mapping_table_bytes", "64 B"),
        ("hoop.eviction_buffer_bytes", "72 B"),
        ("hoop.block_bytes", "384 B"),
        ("hoop.gc_period_us", "1"),
        ("pm.log_region_bytes", "1 KB"),
    ],
    rounds: |_| &[Rounds { counter: "gc_passes", before: 1, within: 2 }],
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// HOOP with mapping entries and blocks to the letter of the paper.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "hoop-literal",
    summary: "hoop with mapping entries removed and blocks freed as published (loses data)",
    default: false,
    inherent: named(
        Rules::MUTANTS,
        &["mapping-dropped-on-read", "mapping-dropped-by-address", "open-slices-freed"],
    ),
    ..INFO
};
