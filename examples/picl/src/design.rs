//! `picl`: snapshots of the whole memory without transactions (Nguyen, Wentzlaff: *PiCL: A Software-Transparent, Persistent
//! Cache Log for Nonvolatile Main Memory*, MICRO'18).
//!
//! # Mechanisms
//!
//! - **Epochs** (`epochs.rs`). All threads share one. Its end is a snapshot, which no thread waits for.
//! - **Cache-driven logging** (`protocol.rs`). Each cached line has the epoch of its last store as a tag of four bits. The first store
//!   of an epoch to a line makes an undo entry of the line as the cache has it: no read of PM.
//! - **Multi-undo**. Several epochs are under way. An entry has the epochs at whose ends the old content was there; recovery applies
//!   those that were valid at the end of the persisted epoch (`recovery.rs`).
//! - **Undo buffer** (`undo_buffer.rs`). Entries go to the log in bursts: when the buffer is full, when a filter says that the entry
//!   of a line that is to go home may be in it, and at the end of a scan.
//! - **Asynchronous cache scan** (`scan.rs`). When `gap` further epochs have ended, the dirty lines of an epoch go home. When they,
//!   those that left before, and the log are durable, the number of the epoch is written to PM: it is persisted.
//! - **Superblocks** (`log.rs`). Space in the log is taken and freed by many records at a time, when their newest epoch is persisted.
//!
//! # Bytes
//!
//! The first line of the log region has the persisted epoch in its first word. Behind it is a ring of records: a header and up to six
//! old lines. A header has a checksum over all of it, the record's number, and for each entry its line and its epochs (`log.rs`).
//!
//! # Sources
//!
//! The paper's text was not at hand. Used were its abstract, public notes on it (Z. Wang's paper notes, 2019), and the names of
//! parameters in a public model for Sniper: an undo buffer with a number of entries, a gap between an epoch and its scan, epochs of
//! instructions. The gap of three epochs, the four bits of a tag, the 32 entries of the undo buffer and the 4,096 bits of its filter
//! are values that could not be checked against the paper.
//!
//! # Readings
//!
//! | open | here |
//! |---|---|
//! | length of an epoch | a number of stores (`picl.epoch_stores`), since a design sees no instructions |
//! | state of the processors at a snapshot | not modelled: programs of the laboratory are judged by memory |
//! | tags come round | at most fourteen epochs are under way, so that a dirty line's tag is unambiguous; entries have whole numbers |
//! | a clean line | its entry is valid from the persisted epoch on; of two entries valid for an epoch the older is applied last |
//! | order within the log | a header is written behind its lines and all older records, so that no entry is found without the older ones of its line |
//! | time of the scan | a set of a cache per cycle, at tags of its own: programs do not wait for it (as FWB's scans by default) |
//! | writes of the scan | half a write queue at a time; it pauses while the write queue is full (as FWB's scans) |
//! | the filter | two bits for each line, empty after a burst |
//! | the next epoch ends, and the scan of the oldest has not | the store waits, so that at most `gap + 1` snapshots are lost |
//! | the log is full (a system would allocate more) | the store waits; the epoch ends, and a scan takes all epochs home |
//! | transactions, fences | mean nothing; `clwb` writes a line home as an eviction does |
//! | stores that bypass the caches | are no part of a snapshot: the caches do not see them |

mod cost;
mod epochs;
mod event;
mod log;
mod protocol;
mod recovery;
mod scan;
mod undo_buffer;

use graven::design::{
    Acknowledgement, Capacity, DesignInfo, Guarantee, Leaves, Named, Room, Rounds, TakenBy, plug,
};
use graven::memory::LINE_BYTES;
use graven::persistency::cut::{Across, Durable, Order, Wholes, Within};
use graven::stats::CounterSet;
use graven::{mutants, section};

use event::{COVER_POINTS, Counters};
use log::{ENTRIES, Layout};
use protocol::Picl;

section! {
    /// PiCL: epochs of the whole system.
    pub struct PiclConfig("picl") {
        /// Stores of all threads in an epoch.
        epoch_stores: u32 = 4096, 1..=1_000_000_000, "stores";
        /// Epochs between the end of an epoch and its scan.
        gap: u32 = 3, 0..=12, "epochs";
        /// Entries of the undo buffer.
        buffer_entries: u32 = 32, 1..=4096, "entries";
        /// Bits of the filter that tells whether a line may be in the undo buffer.
        filter_bits: u32 = 4096, 1..=1_048_576, "bits";
        /// Records of a superblock of the log, of up to six entries each.
        superblock_records: u32 = 64, 1..=65_536, "records";
        /// Superblocks of the log; 0: those of 4 MB, or of the log region if that is smaller.
        superblocks: u32 = 0, 0..=65_536, "superblocks";
    }
}

const fn order(most: u64) -> Order {
    Order {
        name: "snapshots",
        summary: "all that was stored before a snapshot, and nothing else; as many snapshots are lost as epochs are under way",
        source: "Nguyen, Wentzlaff, MICRO 2018 (PiCL)",
        within: Within::Nothing,
        across: Across::Stores,
        durable: Durable::SnapshotsLater(most),
        wholes: Wholes::Snapshots,
    }
}

/// The promises by gap: the epochs of the gap may be lost, and the one whose scan is under way.
static ORDERS: [Order; 13] = [
    order(1),
    order(2),
    order(3),
    order(4),
    order(5),
    order(6),
    order(7),
    order(8),
    order(9),
    order(10),
    order(11),
    order(12),
    order(13),
];

/// Structures with a limited number of places.
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "undo-buffer-exactly-full",
            summary: "every place of the undo buffer was taken",
        },
        room: |context| Room::of_lines(context.config.get::<PiclConfig>().buffer_entries.into()),
    },
    Capacity {
        full: Named { name: "log-exactly-full", summary: "every record of the log was taken" },
        room: |context| Room {
            places: Layout::of(context).records,
            taken_by: TakenBy::Piece(ENTRIES as u64 * LINE_BYTES),
        },
    },
];

/// A scan takes lines home that several epochs have stored to.
const SCANS: Rounds = Rounds { counter: "scans", before: 4, within: 8 };

/// The design.
pub const INFO: DesignInfo = DesignInfo {
    name: "picl",
    summary: "epochs of the whole system, undo entries from the caches, and a scan some epochs later; no transactions",
    paper: "PiCL (MICRO'18)",
    guarantee: |config| Guarantee::Order(&ORDERS[config.get::<PiclConfig>().gap as usize]),
    default: false,
    section: Some(|| Box::new(PiclConfig::default())),
    build: |context| {
        Ok(plug(Picl::new(context)?).with_plain_stores().with_persists().with_tags().into())
    },
    format: |context, image| image.clear(context.log_start, Layout::of(context).end()),
    acknowledgement: Acknowledgement {
        source: "the hardware knows no transactions",
        ..Acknowledgement::AT_ONCE
    },
    recover: recovery::recover,
    mutants: Mutant::NAMED,
    counters: Counters::declarations,
    derived: &[event::ENTRIES_PER_BURST],
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        ("picl.epoch_stores", &["1", "2", "3", "7"]),
        ("picl.gap", &["0", "1", "3", "12"]),
        ("picl.filter_bits", &["1", "8", "4096"]),
        (
            "picl.buffer_entries+picl.superblock_records+picl.superblocks",
            &["1+1+3", "2+1+3", "2+2+2", "7+2+3", "32+6+8"],
        ),
    ],
    scaled_down: &[
        ("picl.epoch_stores", "1"),
        ("picl.gap", "0"),
        ("picl.buffer_entries", "2"),
        ("picl.superblock_records", "1"),
        ("picl.superblocks", "3"),
    ],
    leaves: |_| Leaves::Dirty,
    rounds: |_| &[SCANS],
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

mutants! {
    /// A dirty line of any epoch counts as logged.
    TagIgnored = "tag-ignored";
    /// A clean line is not logged.
    CleanLinesNotLogged = "clean-lines-not-logged";
    /// A line goes home before its entry has left the undo buffer.
    FilterIgnored = "filter-ignored";
    /// A line that leaves the caches waits for no log entry.
    EvictionsUnordered = "evictions-unordered";
    /// A line that a scan writes back waits for no log entry.
    ScanUnordered = "scan-unordered";
    /// An entry is valid from the epoch that overwrites it.
    ValidTooLate = "valid-too-late";
    /// An entry is valid in the epoch that overwrites it.
    ValidTooLong = "valid-too-long";
    /// A clean line's entry is valid from the last epoch on.
    CleanLineValidFromNow = "clean-line-valid-from-now";
    /// The scan writes no line home.
    ScanWritesNothing = "scan-writes-nothing";
    /// The scan takes the lines of the LLC home only.
    ScanSkipsPrivateCaches = "scan-skips-private-caches";
    /// The scan goes from the LLC to the L1s.
    ScanFromOutside = "scan-from-outside";
    /// The scan leaves the undo buffer as it is.
    ScanLeavesTheBuffer = "scan-leaves-the-buffer";
    /// The scan also counts the epoch after its own as written.
    ScanOneTooFar = "scan-one-too-far";
    /// An epoch is persisted before its lines are.
    HomesNotAwaited = "homes-not-awaited";
    /// An epoch is persisted before lines of it are that had left the caches.
    EvictionsNotAwaited = "evictions-not-awaited";
    /// An epoch is persisted before the log is.
    LogNotAwaited = "log-not-awaited";
    /// An epoch ends however many are not persisted.
    EpochEndsTooEarly = "epoch-ends-too-early";
    /// A full undo buffer loses its oldest entry.
    FullBufferDrops = "full-buffer-drops";
    /// Superblocks are free when they are full.
    FreedWhenFull = "freed-when-full";
    /// Superblocks are free when the number of the persisted epoch is sent.
    FreedBeforePersisted = "freed-before-persisted";
    /// A record's header waits neither for its lines nor for older records.
    HeaderUnordered = "header-unordered";
    /// Recovery takes a record that is torn.
    TornRecordTaken = "torn-record-taken";
    /// Recovery applies the oldest entry first.
    OldestFirst = "oldest-first";
}
