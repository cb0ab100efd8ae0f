//! `bbb`: battery-backed buffers (Alshboul, Ramrakhiani, Wang, Tuck, Solihin: *BBB: Simplifying Persistent Programming using
//! Battery-Backed Buffers*, HPCA'21): a store is durable as soon as it is visible, for a battery that saves a few lines of each core
//! in place of all caches; and Graven's software undo logging with ordering fences (`undo-ordered`) over it.
//!
//! | file | what |
//! |---|---|
//! | `design` | sources, readings, parameters, mutants |
//! | `design/buffers` | the persist buffers: entries, room, migration |
//! | `design/protocol` | hooks: stores, departures, evictions, misses, drains, power failure |
//! | `design/event` | what happens, counted and narrated; cover points |
//! | `design/cost` | what the hardware costs, and its battery beside that of eADR |
//!
//! # What it does
//!
//! - **Buffers.** Each core has a persist buffer beside its L1, which a battery backs. A store to PM that the L1 performs puts its line
//!   there in the same cycle, or changes it there: the point at which a store is durable is the one at which it is visible.
//!   Programs need no write-backs, and fences wait for nothing.
//! - **Drain.** From `drain_percent` of the entries on, the oldest are written to PM; an entry leaves when its write is durable. A store that finds
//!   the buffer full waits until one has left.
//! - **Migration.** A line that another core takes to store to it takes its entry along into that core's buffer. A line that another
//!   core reads leaves its entry where it is. So one buffer at most has a line that is not on its way.
//! - **Evictions.** A line that its L1 loses otherwise is written to PM at once. A dirty line of PM that leaves the LLC is dropped: what it
//!   holds went through a buffer. A miss finds a line that is on its way where any read does.
//! - **Power failure.** The battery writes what is on its way once more, then all else.
//!
//! # Guarantee
//!
//! `bbb` promises the order `strict`, and no transactions. `bbb-undo` has the software log, and is durable.
//!
//! # Sources
//!
//! The paper's text was not at hand. Used were its abstract, and what Silo (HPCA'23) says of it: persistent "CPU writes" without
//! atomicity (§V), 32 entries of 64 B at each core (§VI-E), and the battery of Table IV.
//!
//! # Left open, with what is done here
//!
//! - The share of entries from which on a buffer drains (`drain_percent`), and that the oldest go first.
//! - An entry has the whole line, and all of it is written.
//! - A line that its L1 loses to another line is written at once, so that each entry's line is in the L1 beside it.
//! - A taker whose buffer is full takes the line without its entry, which is written at once.
//! - To enter a buffer takes no time beside that of the store in the L1; each write, and the answer to it, takes `controller.bypass_cycles`.
//! - `clwb`, `ofence` and `dfence` do nothing.

mod buffers;
mod cost;
mod event;
mod protocol;

use graven::config::CoreConfig;
use graven::design::Capacity;
use graven::design::{
    Acknowledgement, Battery, DesignInfo, Guarantee, Leaves, Named, Room, Step, plug,
};
use graven::designs::software::{SoftwareLogConfig, undo};
use graven::memory::LINE_BYTES;
use graven::persistency::cut::STRICT;
use graven::stats::CounterSet;
use graven::{layered, mutants, section};

use event::{COVER_POINTS, Counters};
use protocol::Bbb;

section! {
    /// BBB: battery-backed buffers.
    pub struct BbbConfig("bbb") {
        /// Entries of each core's persist buffer (Silo §VI-E).
        persist_buffer_entries: u32 = 32, 1..=4096, "lines";
        /// Share of them from which on the oldest are written to PM.
        drain_percent: u32 = 75, 1..=100, "%";
    }
}

impl BbbConfig {
    /// Entries that are not on their way, from which on the oldest are sent.
    fn drained_from(&self) -> usize {
        (self.persist_buffer_entries * self.drain_percent / 100).max(1) as usize
    }
}

/// The hardware.
pub const INFO: DesignInfo = DesignInfo {
    name: "bbb",
    summary: "stores are durable in battery-backed buffers beside the L1s, as soon as they are visible",
    paper: "BBB (HPCA'21)",
    guarantee: |_| Guarantee::Order(&STRICT),
    default: false,
    section: Some(|| Box::new(BbbConfig::default())),
    build: |context| {
        let bbb = plug(Bbb::new(context)).absorbing().with_plain_stores().with_persists();
        Ok(bbb.with_departures().into())
    },
    acknowledgement: Acknowledgement {
        source: "the hardware knows no transactions",
        ..Acknowledgement::AT_ONCE
    },
    battery: |context| {
        let cores = u64::from(context.config.get::<CoreConfig>().count);
        let entries = u64::from(context.config.get::<BbbConfig>().persist_buffer_entries);
        Battery { bytes: cores * entries * LINE_BYTES, ..Battery::NONE }
    },
    mutants: Mutant::NAMED,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    capacities: &[Capacity {
        full: Named {
            name: "persist-buffer-exactly-full",
            summary: "all entries of a core's persist buffer were taken",
        },
        room: |context| {
            Room::of_lines(context.config.get::<BbbConfig>().persist_buffer_entries.into())
        },
    }],
    stress: &[
        ("bbb.persist_buffer_entries", &["1", "2", "3", "8", "32"]),
        ("bbb.drain_percent", &["1", "50", "75", "100"]),
    ],
    scaled_down: &[("bbb.persist_buffer_entries", "2")],
    // What dirty lines hold has been written from the buffers.
    leaves: |_| Leaves::AtHome,
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

layered! {
    /// Software undo logging over it.
    pub const UNDO = undo::ORDERED, over INFO {
        name: "bbb-undo",
        summary: "software undo logging over bbb: no write-backs, and fences wait for nothing",
        paper: "BBB (HPCA'21), Silo §II-C",
        acknowledgement: Acknowledgement {
            source: "a fence, the log's head, a fence, where stores are durable when they are performed",
            steps: |config| {
                let software = config.get::<SoftwareLogConfig>();
                vec![Step::Instructions(software.head_instructions + 3)]
            },
        },
        // Stores are durable in the order of the program: no fence can be missing.
        mutants: undo::EADR.mutants,
    }
}

mutants! {
    /// A store finds the buffer full, and is not kept.
    FullBufferDrops = "full-buffer-drops";
    /// An entry leaves when its write is sent.
    SentIsDurable = "sent-is-durable";
    /// A store changes an entry that is on its way.
    JoinsSentEntries = "joins-sent-entries";
    /// A line that another core takes loses its entry.
    TakenLinesLoseEntries = "taken-lines-lose-entries";
    /// A line that another core takes leaves its entry where it is.
    TakenLinesLeaveEntries = "taken-lines-leave-entries";
    /// A line that another core reads loses its entry.
    ReadLinesLoseEntries = "read-lines-lose-entries";
    /// A line that its L1 loses to another line loses its entry.
    ReplacedLinesLoseEntries = "replaced-lines-lose-entries";
    /// The battery saves what is on its way last.
    SentSavedLast = "sent-saved-last";
    /// The battery saves what is not on its way only.
    SentNotSaved = "sent-not-saved";
    /// The battery saves the first word of each entry that was stored to.
    FirstWordsSaved = "first-words-saved";
}
