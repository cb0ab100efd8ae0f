//! `silo`: speculative hardware logging, log as data (Silo, HPCA'23).
//!
//! | file | what | paper |
//! |---|---|---|
//! | `mod` | parameters | Table I, Table II |
//! | `rules` | the rules of the protocol, and the mutants that break them | |
//! | `protocol` | log buffers, commit, in-place updates, overflow | §III-B to §III-F |
//! | `event` | what happens, counted and traced; cover points | |
//! | `log_area` | records in PM | §III-B, §III-F, Table I |
//! | `recovery` | recovery | §III-G |
//! | `cost` | what the hardware costs | Table I, Table IV |
//!
//! Undo+redo entries stay in a small battery-backed log buffer per thread (§III-B). A store that does
//! not change its word makes no entry (*log ignorance*; what was stored outside transactions is lost if one stores it
//! again, unless `log_ignorance` is off, see `docs/results/findings.md`); a store to a word that has an entry of the same
//! transaction is merged into it (*log merging*, §III-C). The commit is a message and its answer
//! (`acknowledged_after`: at once, as §III-D says, or after an access to the log buffer); the *new* words of the entries are then written to their homes in the background (§III-D, "log as
//! data"), where the on-PM buffer coalesces them (§III-E). Logs are written only when the buffer
//! overflows (undo records of the ⌊S/18⌋ oldest entries, in a batch, §III-F) or power fails (undo records
//! of open transactions, redo records and an id tuple of committed ones, §III-G).
//!
//! An undo, redo or tuple record takes 18 B in the thread's log area (Fig. 6 without the second word):
//!
//! | bits | content |
//! |---|---|
//! | 0 | flush-bit |
//! | 1-8 | thread id |
//! | 9-24 | transaction id (low 16 bits of its number) |
//! | 25-72 | home address; all ones for an id tuple |
//! | 80-143 | old word (undo), new word (redo), 0 (tuple) |
//!
//! Records lie in media lines, 14 to each, a zero address ending a line that is not full. The area is
//! circular. Two non-volatile registers per thread (Table I) hold its head and tail: the media lines
//! between them are the open transaction's overflow batches, and what the battery added behind them. The
//! commit moves the head to the tail, which deletes the overflowed records durably.
//!
//! **What the paper leaves open, and what had to be repaired** (the field's rule: newest wins; `silo-literal` is
//! the text without the repairs, and `docs/results/findings.md` has the counterexamples):
//! - *Repair.* A merge sets the flush-bit back to 0: the line that set it held the earlier value.
//! - *Repair.* A new entry drops any committed entry of the same word, in whichever thread's buffer: the
//!   committed value is the new entry's old word, so it is kept either way. Two transactions that hand a
//!   word to each other would otherwise write it home in either order, or over a newer line.
//! - *Repair.* Undo records are applied newest first: a word may have overflowed and been logged again.
//! - *Repair.* A store waits as long as there are entries of a transaction of its thread with the same 16 bits of the
//!   number, 65,536 or more before: their id tuple would make recovery keep what the open transaction has stored.
//! - The flush-bit of an entry is set when the line is *durable*, for the value that the entry had when
//!   the line left the caches. A merge in between keeps it at 0.
//! - An entry whose line is on its way is not written home, and an evicted line settles committed entries,
//!   too. Both save a write and no more: the memory keeps the order of a line's writes, and committed
//!   entries that are older than the line have been dropped.
//! - Entries are for aligned words, so stores never overlap in part (Fig. 9 case 1 cannot arise).
//! - Entries of the previous transaction may still be on their way home when the next begins. New entries
//!   take free places; with none free they wait for the committed ones, and do not overflow.

mod cost;
mod event;
mod log_area;
mod protocol;
mod recovery;
mod rules;

use graven_base::config::Size;
use graven_base::stats::CounterSet;
use graven_base::time::Cycle;
use graven_base::{choice, section};
use graven_machine::design::{
    Acknowledgement, Capacity, DesignInfo, Guarantee, Leaves, Named, Reopening, Room, Step, plug,
};

use crate::rules::named;
use event::{COVER_POINTS, Counters};
use protocol::Silo;
use recovery::recover;
use rules::Rules;

choice! {
    /// After what the log controller answers a commit.
    pub enum AcknowledgedAfter {
        /// The notice of the commit: "once being notified, the log controller acknowledges [...] and simultaneously flushes" (Silo §III-D).
        Notice = "notice",
        /// The access to the log buffer that marks the entries.
        Access = "access",
    }
}

section! {
    /// Silo: log buffers in the memory controller, logs used as data.
    pub struct SiloConfig("silo") {
        /// Entries of each thread's log buffer (Silo §VI-D, Table I).
        log_buffer_entries: u32 = 20, 1..=4096, "entries";
        /// Access time of the log buffer (Silo Table II).
        log_buffer_latency_cycles: u32 = 8, 1..=10_000, "cycles";
        /// After what a commit is acknowledged.
        acknowledged_after: AcknowledgedAfter = AcknowledgedAfter::Notice, (), "";
        /// Most undo records that overflow together; 0: as many as one media line holds (⌊S/18⌋ = 14).
        overflow_batch_entries: u32 = 0, 0..=14, "entries";
        /// Log area of each thread, for records of overflow and power failure; a transaction must fit.
        log_bytes_per_thread: Size = Size::kb(256), Size(512)..=Size::gb(1), "B";
        /// Lines of an on-PM buffer that belongs to Silo (§VI-A: "Our proposed Silo: … The writes are coalesced in the on-PM buffer"), on machines whose own (`pm.buffer_lines`) has fewer; 0: the machine's.
        pm_buffer_lines: u32 = 0, 0..=65_536, "lines of 256 B";
        /// A store that does not change its word makes no entry (*log ignorance*, §III-C). If false, it is logged like others, which keeps what was stored outside transactions before.
        log_ignorance: bool = true, (), "";
    }
}

impl SiloConfig {
    /// Cycles that the log controller takes before it answers a commit.
    fn cycles_before_answer(&self) -> Cycle {
        match self.acknowledged_after {
            AcknowledgedAfter::Notice => 0,
            AcknowledgedAfter::Access => self.log_buffer_latency_cycles.into(),
        }
    }
}

/// Structures with a limited number of places.
const CAPACITIES: &[Capacity] = &[Capacity {
    full: Named {
        name: "log-buffer-exactly-full",
        summary: "all places of a thread's log buffer were taken",
    },
    room: |context| Room::of_words(context.config.get::<SiloConfig>().log_buffer_entries.into()),
}];

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "silo",
    summary: "speculative logging: on-chip logs are written home as data after the commit",
    paper: "Silo, HPCA'23, §III",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(SiloConfig::default())),
    acknowledgement: Acknowledgement {
        source: "§III-D: \"the log generator notifies the log controller [...] Once being notified, the log controller acknowledges \
                 the log generator and simultaneously flushes the new data\"; with silo.acknowledged_after = access an access to \
                 the log buffer comes before the answer",
        steps: |config| {
            let access = match config.get::<SiloConfig>().cycles_before_answer() {
                0 => None,
                cycles => Some(Step::Access(cycles)),
            };
            [Step::Message].into_iter().chain(access).chain([Step::Message]).collect()
        },
    },
    pm_buffer_lines: |config| config.get::<SiloConfig>().pm_buffer_lines,
    build: |context| Ok(plug(Silo::new(context)?).into()),
    recover,
    battery: protocol::battery,
    // Head and tail say what is in the areas: they are reset, and whatever else is there means nothing.
    reopening: Reopening::RegistersReset,
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        ("silo.log_buffer_entries", &["1", "2", "3", "5", "20"]),
        ("silo.overflow_batch_entries", &["0", "1", "3"]),
        ("silo.log_bytes_per_thread", &["4 KB", "8 KB", "64 KB"]),
        ("silo.log_buffer_latency_cycles", &["1", "8", "500"]),
    ],
    scaled_down: &[
        ("silo.log_buffer_entries", "1"),
        ("silo.overflow_batch_entries", "1"),
        ("silo.log_bytes_per_thread", "512 B"),
    ],
    leaves: |_| Leaves::AtHome,
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The design as the paper's text has it, where that loses data (`docs/results/findings.md`).
pub const LITERAL: DesignInfo = DesignInfo {
    name: "silo-literal",
    summary: "silo as its text literally reads (unsafe: loses data)",
    default: false,
    inherent: named(Rules::MUTANTS, &["merge-keeps-flush-bit", "twins-stay", "undo-oldest-first"]),
    ..INFO
};
