//! `lad`: logless atomic durability (LAD, as Silo §V and §VI-A and LALEA §II-C describe it).
//!
//! No log: the updated lines of a transaction gather in a protected pool in the memory controller and
//! become eligible for PM all at once.
//!
//! - **Pool.** `controller.adr_entries` places of one line (Silo and HOOP: 64; LALEA: 16), over all threads and
//!   channels. An entry holds the whole line, as the papers have it, and for each of its words the thread
//!   whose open transaction stored it. (Those owners are an extension, 8 × 8 bits per entry for up to 256
//!   threads: programs isolate words, not lines, so that two open transactions may share a line.) The
//!   pool survives a power failure by itself, whatever `controller.adr` says of the write queue.
//! - **Prepare.** At the end of a transaction each of its lines that is dirty in a cache falls through
//!   the levels to the controller, one leaving the L1 every `push_interval_cycles`. The controller notifies
//!   the core when it has all of them: one message.
//! - **Commit.** A message to the controller turns the words' ownership into "committed", for all entries
//!   and together with the thread's commit register: the single commit point. A third message
//!   acknowledges it. A transaction of one line that is dirty in the L1 takes the traversal of the
//!   caches and three messages; further lines follow at the push interval.
//! - **Drain.** Committed lines go to PM at once as ordinary data writes; the place is free when the write
//!   is durable. While a newer version of the line gathers, the older has a place of its own. If words
//!   of other open transactions stay in the entry, only the rest is written, and both share the place.
//! - **Proactive flushing** (Silo §VI-A: enabled). A core remembers the `recent_lines` lines that its
//!   transaction stored to last; the one that falls off that list is pushed. If it is stored to again,
//!   the push was in vain (counted), and it is pushed again.
//! - **Eviction** from the LLC puts a line with uncommitted words into the pool, too; misses on lines in
//!   the pool are served from it.
//! - **Overflow.** A line that finds no place waits if a committed one is about to leave (`wait_for_place`; LALEA
//!   §IV-B can be read so that it does not). If uncommitted lines fill the pool, undo logging takes over (Silo §V): the controller reads the old line from PM,
//!   writes an undo record for each transaction with unlogged words in it, and when they are durable
//!   lets the new line go to PM. `overflow_log = "lines"`: for such lines only (Silo). `"transaction"`:
//!   for every line of their transactions from then on, and for those already in the pool, which give
//!   up their places (LALEA §II-C: "log blocks for all update requests"); entries shared with other open
//!   transactions stay. There is no choice of a victim: it is whoever brought the line.
//!   A commit waits until such lines are durable at home.
//!
//! Undo records go to a circular area of each thread, 128 B apart (`circular_log` has their layout), or, in
//! `lalea-lad` (`load_aware_log`), to LALEA's blocks, each in the bank that has the fewest pending operations
//! (`load_aware_log`, and `chained_record` for the layout). A thread's non-volatile register makes the log's
//! records and the pool's entries commit at one instant, and truncates the log. Within a transaction no
//! word is logged twice, so records need no order.
//!
//! At a power failure the committed lines of the pool (`controller.adr_entries` at most) go to PM; the rest of it is
//! lost. Recovery writes back the undo words of the transactions that have not committed.
//!
//! Left out or open: the pool is separate from the write queue (Silo's *64-entry MC queue* may be
//! both), so what has committed is buffered twice; lines between the caches and a place in the pool are
//! not bounded, as nothing else on that way is.
//!
//! `lad-literal` is the same with the papers' granularity: a commit takes the whole lines that its
//! transaction stored to, and recovery writes whole lines back. It loses data where two open transactions share a
//! line, and where a transaction's line is logged twice: what PM then holds is the transaction's own.
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters |
//! | `rules` | the rules of the protocol, and the mutants that break them |
//! | `protocol` | state, hooks, power failure |
//! | `gather` | lines on their way out of the caches and into the pool |
//! | `overflow` | undo logging when they find no place |
//! | `commit` | prepare, commit and drain |
//! | `pool`, `write_set` | what the pool holds; what transactions have stored |
//! | `undo_log` | what an organization of the undo log does |
//! | `circular_log` | records in circular areas, and recovery from them |
//! | `load_aware_log` | records in load-aware blocks |
//! | `chained_record` | what these have in PM, and recovery along their chains |
//! | `cost` | what the hardware costs |
//! | `event` | what happens, counted and traced; cover points |

mod chained_record;
mod circular_log;
mod commit;
mod cost;
mod event;
mod gather;
mod load_aware_log;
mod overflow;
mod pool;
mod protocol;
mod rules;
mod undo_log;
mod write_set;

use graven_base::config::Size;
use graven_base::memory::LINE_BYTES;
use graven_base::stats::CounterSet;
use graven_base::{choice, section};
use graven_machine::config::ControllerConfig;
use graven_machine::design::{
    Acknowledgement, Battery, Capacity, DesignInfo, Guarantee, Leaves, Named, Room, Step,
};

use crate::lalea::{ENTRIES_FULL, HEADERS_FULL};
use crate::rules::named;
use circular_log::Area;
use event::{COVER_POINTS, Counters};
use rules::Rules;
use undo_log::{build, format, recover};

choice! {
    /// Lines that are logged when the pool overflows.
    pub enum OverflowLog {
        /// The lines that found no place (Silo).
        Lines = "lines",
        /// All lines of their transactions (LALEA).
        Transaction = "transaction",
    }
}

section! {
    /// LAD: updated lines gather in the controller until their transaction commits.
    pub struct LadConfig("lad") {
        /// Time between two lines that leave an L1 at the end of a transaction.
        push_interval_cycles: u32 = 1, 0..=1000, "cycles";
        /// Time of a read that the pool serves, once it has reached the controller.
        pool_read_cycles: u32 = 1, 0..=1000, "cycles";
        /// Lines are pushed before the end of their transaction.
        proactive_flush: bool = true, (), "";
        /// Lines that a transaction stored to last and that are not pushed yet.
        recent_lines: u32 = 4, 1..=64, "lines";
        /// A line that finds no place waits if a committed one is about to leave; it is logged otherwise.
        wait_for_place: bool = true, (), "";
        /// A transaction's end waits until its lines are durable in PM: "caches the updates from a transaction in the memory controller until they are committed to NVM" (HOOP §IV-A). If not, the pool is persistent, and the commit message is enough ("the Commit phase only sends messages", Silo §VI-A).
        commit_waits_for_nvm: bool = false, (), "";
        /// Lines that are logged when the pool overflows.
        overflow_log: OverflowLog = OverflowLog::Lines, (), "";
        /// Circular area of each thread for undo records, of 128 B per line.
        log_bytes_per_thread: Size = Size::kb(128), Size(128)..=Size::mb(64), "B";
        /// Undo data goes to LALEA's blocks instead, each in the bank that has the fewest pending operations.
        load_aware_log: bool = false, (), "";
    }
}

/// Structures with a limited number of places; of the last three, a log has the first or the others.
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named { name: "pool-exactly-full", summary: "all places of the pool were taken" },
        room: |context| Room::of_lines(context.config.get::<ControllerConfig>().adr_entries.into()),
    },
    Capacity {
        full: Named {
            name: "recent-lines-exactly-full",
            summary: "a core's list of lines that are not pushed yet was full",
        },
        room: |context| Room::of_lines(context.config.get::<LadConfig>().recent_lines.into()),
    },
    Capacity {
        full: Named {
            name: "undo-area-exactly-full",
            summary: "all slots of a thread's circular area were taken by one transaction",
        },
        room: |context| Room::of_lines(Area::of(context, 0).slots),
    },
    ENTRIES_FULL,
    // A line that overflows by itself has a record of its own.
    Capacity {
        room: |context| Room::of_lines((HEADERS_FULL.room)(context).places),
        ..HEADERS_FULL
    },
];

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "lad",
    summary: "gathers a transaction's lines in the controller; undo logging when they do not fit",
    paper: "LAD as in Silo §V, §VI-A and LALEA §II-C",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(LadConfig::default())),
    acknowledgement: Acknowledgement {
        source: "Silo §VI-A: \"The Prepare phase flushes the updated L1 cachelines to MC, and the Commit phase only sends messages\": \
                 a line through the caches, the controller's message, the commit message, its answer",
        steps: |config| {
            let mut steps = vec![Step::Fall, Step::Message, Step::Message];
            if config.get::<LadConfig>().commit_waits_for_nvm {
                steps.push(Step::Write);
            }
            steps.push(Step::Message);
            steps
        },
    },
    build,
    format,
    recover,
    // The pool is in ADR; each thread's register says what of its log has not committed.
    battery: |context| Battery {
        bytes: u64::from(context.config.get::<ControllerConfig>().adr_entries) * LINE_BYTES,
        registers: context.threads as usize,
        register_bits: 64,
    },
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        ("controller.adr_entries", &["1", "2", "3", "4", "16"]),
        ("lad.push_interval_cycles", &["0", "1", "40"]),
        ("lad.proactive_flush", &["true", "false"]),
        ("lad.recent_lines", &["1", "2", "4"]),
        ("lad.wait_for_place", &["true", "false"]),
        ("lad.commit_waits_for_nvm", &["false", "true"]),
        ("lad.overflow_log", &["lines", "transaction"]),
        ("lad.log_bytes_per_thread", &["2 KB", "4 KB", "128 KB"]),
        ("lad.load_aware_log", &["false", "true"]),
        ("lalea.fle_entries+lalea.fh_entries", &["1+1", "2+1", "4+2", "1024+256"]),
    ],
    scaled_down: &[
        ("controller.adr_entries", "1"),
        ("lad.log_bytes_per_thread", "128 B"),
        ("lad.recent_lines", "1"),
    ],
    leaves: |_| Leaves::Clean,
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same with the papers' granularity.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "lad-literal",
    summary: "lad with whole lines committed and undone, as published (loses data)",
    default: false,
    inherent: named(Rules::MUTANTS, &["whole-lines-committed", "whole-lines-undone"]),
    ..INFO
};

/// The same with LALEA's allocator under its undo log.
pub const LALEA: DesignInfo = DesignInfo {
    name: "lalea-lad",
    summary: "lad with each block of its undo log in the least loaded bank",
    paper: "LALEA §III-A, §IV-A",
    settings: &[("lad.load_aware_log", "true")],
    scaled_down: &[
        ("controller.adr_entries", "1"),
        ("lad.recent_lines", "1"),
        ("lalea.fle_entries", "1"),
        ("lalea.fh_entries", "1"),
        ("pm.banks", "2"),
        ("pm.ranks", "1"),
    ],
    cost: cost::WITH_LALEA,
    ..INFO
};
