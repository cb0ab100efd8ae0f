//! `opt-redo`: hardware redo logging with a back end, after WrAP (Doshi, Giles, Varman, HPCA 2016), as HOOP compares
//! with it (ISCA 2020, *Opt-Redo*: §IV-A, §IV-B, Fig. 4b).
//!
//! - **Update records.** "Opt-Redo persists both the data and metadata for a single update using two cache lines" (§IV-B).
//!   Each transactional store makes a record of two lines, which stream to the log past the caches. The store does
//!   not wait, unless its thread's log buffer in the controller has no entry left: an entry is occupied until both
//!   lines are durable. An update is a store of a word, as the comparison in the same paragraph has it (eight updates
//!   and their metadata in two lines of HOOP's): nothing is merged. With `merge_updates`, stores to a line share a record
//!   as long as it is in the log buffer, and the oldest is sent when that is full, and all at the transaction's end: an
//!   update is a line then.
//! - **Commit.** A message notifies the controller of the transaction's end; when all its records are durable it writes a
//!   commit record with the next commit sequence number; when that is durable, a message acknowledges it. Updated
//!   data is not waited for. Two ordering points per transaction (Fig. 4b: "one for the redo logs and another for
//!   the data updates"): records before commit record, and, in the background, data before truncation.
//! - **Victim cache.** PM lines that leave the LLC do not go home: they are parked in the controller, and misses are
//!   served from there, until all transactions that might have stored to them are retired: those of all threads that were
//!   open with stores, and those that had committed and were not at home yet. (A line does not record who stored to it.)
//!   Then the line is dropped, since the back end has written its words home. A line that leaves when there is no
//!   such transaction is written home like any other: who put dirty words there is not known.
//! - **Back end.** "It supports asynchronous data checkpointing, log truncation, and combination" (§IV-A). When
//!   `checkpoint_transactions` have committed, or the oldest of them `checkpoint_delay_cycles` ago, or
//!   a thread or a line waits for it, it takes that many in commit order, reads their records from PM, keeps the newest
//!   update of
//!   each word, writes the words of each line in place, and truncates the log when they are durable.
//! - **Truncation** is one word, for all threads: the commit sequence number up to which everything is at home. It is
//!   written after the data, and slots are used again after it. Words of each thread instead (`truncated-thread-by-thread`)
//!   lose data: if the log of the thread with the newer transaction is truncated first, recovery
//!   replays the older one of the other thread over it.
//!
//! **When something is full.** *Log buffer*: the thread's next store waits. *Log area*: the store waits until the back
//! end has truncated; a transaction with more updates than slots ends the run with the reason. *Victim cache*: the line waits
//! outside (its bytes are in the LLC's write-back buffer, which is not bounded, as nothing else on that way is), the
//! back end is pressed, and no store of any transaction is performed until it has a place. If all transactions that
//! have ended are at home and lines still wait, they and the whole cache belong to transactions in progress, which no
//! waiting can end: the run ends with the reason. A line with uncommitted words never goes home.
//!
//! Each thread has a circular log area of slots of 128 B behind a header of that size. Records are numbered from 0
//! over all passes: record `n` lies in slot `n mod slots`, in pass `n / slots`. A commit record is a metadata line
//! without data.
//!
//! | line | word | bits | content |
//! |---|---|---|---|
//! | header of thread 0 | 0 | 0-63 | truncation: commits up to this sequence number are at home |
//! | slot, 0 | 0-7 | 0-63 | update: the whole line, as it was when the record was made |
//! | slot, 1 | 0 | 0-7 | kind: 1 update, 2 commit; 0: no record |
//! | | 0 | 8-15 | update: which words of the line are the transaction's |
//! | | 0 | 16-23 | thread |
//! | | 0 | 24-62 | transaction number (low 39 bits) |
//! | | 1 | 0-47 | update: home address |
//! | | 1 | 0-62 | commit: commit sequence number, from 1 |
//! | | 2 | 0-62 | number of the record |
//! | | 3 | 0-62 | commit: number of update records |
//! | | 0-3 | 63 | torn bit: 1 in even passes over the area, 0 in odd ones |
//! | | 4-7 | | zero |
//!
//! Update records need no torn bits, as their commit record is sent when they are durable; a commit record does. All
//! metadata lines have them, since a slot holds either kind in turn.
//!
//! There are no non-volatile registers: log buffers, victim cache and the back end's state are lost at a power failure.
//! **Recovery** looks at all slots for commit records that the truncation word has not passed, and replays their update
//! records in commit order, newest last. A commit record that is missing between others is that of a transaction that was
//! not acknowledged; what depends on it began later. Words, not lines, are replayed.
//!
//! `opt-redo-literal` is the same with the granularity of the text, lines: the back end and recovery write whole data
//! lines. It loses data where two open transactions share a line.
//!
//! Left open by HOOP, and decided here: all of the above that has no section; the log buffer (8 entries of 128 B: the
//! 1 KB that HOOP's OOP data buffer has per core, §III-H); the victim cache (128 KB, as HOOP's eviction buffer);
//! batches, delays and requests in flight.
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters |
//! | `rules` | the rules of the protocol, and the mutants that break them |
//! | `protocol` | state; stores, ends, lines that leave the caches; the victim cache |
//! | `logging` | update records, log buffer, commit |
//! | `back_end` | reading, combining, updating in place, truncation |
//! | `record`, `recovery` | the bytes of the log; recovery from them |
//! | `event` | events, for statistics, coverage and timelines; cover points |
//! | `cost` | what the hardware costs |

mod back_end;
mod cost;
mod event;
mod logging;
mod protocol;
mod record;
mod recovery;
mod rules;

use graven_base::config::Size;
use graven_base::section;
use graven_base::stats::CounterSet;
use graven_machine::design::{
    Acknowledgement, Capacity, DesignContext, DesignInfo, Guarantee, Leaves, Named, Room, Step,
    plug,
};

use crate::rules::named;
use event::{COVER_POINTS, Counters};
use protocol::OptRedo;
use record::Area;
use recovery::{format, recover};
use rules::Rules;

section! {
    /// Redo logging in hardware: records stream to PM, a back end updates data in place from them.
    pub struct OptRedoConfig("opt-redo") {
        /// Circular log area of each thread, 128 B per update and per commit; a transaction must fit.
        log_bytes_per_thread: Size = Size::kb(192), Size(384)..=Size::mb(64), "B";
        /// Update records of each thread that are on their way to PM at a time.
        log_buffer_entries: u32 = 8, 1..=256, "records";
        /// Stores to a line share a record as long as the log buffer can keep it; if not, it is sent at once.
        merge_updates: bool = false, (), "";
        /// Lines that left the LLC and wait in the controller until their transactions are at home.
        victim_cache_lines: u32 = 2048, 1..=1_048_576, "lines";
        /// Time of a read that the victim cache serves, once it has reached the controller.
        victim_read_cycles: u32 = 1, 0..=1000, "cycles";
        /// Committed transactions that the back end takes at a time; it begins when this number waits.
        checkpoint_transactions: u32 = 16, 1..=65_536, "transactions";
        /// Longest time for which a committed transaction waits until the back end begins without the others.
        checkpoint_delay_cycles: u32 = 10_000, 0..=1_000_000_000, "cycles";
        /// Lines of the log that the back end reads at a time.
        checkpoint_reads: u32 = 8, 1..=256, "requests";
        /// Lines that the back end writes home at a time.
        checkpoint_writes: u32 = 8, 1..=256, "requests";
    }
}

/// Structures with a limited number of places. A commit record has a slot of the log area, too.
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "log-buffer-exactly-full",
            summary: "all entries of a thread's log buffer were taken",
        },
        room: |context| {
            records(context, context.config.get::<OptRedoConfig>().log_buffer_entries.into())
        },
    },
    Capacity {
        full: Named {
            name: "victim-cache-exactly-full",
            summary: "all lines of the victim cache were taken",
        },
        room: |context| {
            Room::of_lines(context.config.get::<OptRedoConfig>().victim_cache_lines.into())
        },
    },
    Capacity {
        full: Named {
            name: "batch-exactly-full",
            summary: "the back end was at as many transactions as it takes",
        },
        room: |context| {
            let transactions = context.config.get::<OptRedoConfig>().checkpoint_transactions;
            Room::of_transactions(transactions.into())
        },
    },
    Capacity {
        full: Named {
            name: "log-area-exactly-full",
            summary: "all slots of a thread's log area were taken",
        },
        room: |context| records(context, Area::of(context, 0).slots),
    },
];

/// Places of update records: those of lines if stores share them, or else of words.
fn records(context: &DesignContext, places: u64) -> Room {
    match context.config.get::<OptRedoConfig>().merge_updates {
        true => Room::of_lines(places),
        false => Room::of_words(places),
    }
}

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "opt-redo",
    summary: "redo records of two lines per store; a back end updates data in place from the log",
    paper: "WrAP (HPCA'16) as Opt-Redo in HOOP (ISCA'20) §IV",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(OptRedoConfig::default())),
    acknowledgement: Acknowledgement {
        source: "HOOP §IV-B, §IV-A: records leave with their stores (with opt-redo.merge_updates at the end, two lines of one bank); the \
                 end is a message, then the commit record, then the answer",
        steps: |config| {
            let mut steps = vec![Step::Message];
            if config.get::<OptRedoConfig>().merge_updates {
                steps.extend([Step::Write, Step::Write]);
            }
            steps.extend([Step::Write, Step::Message]);
            steps
        },
    },
    build: |context| Ok(plug(OptRedo::new(context)?).absorbing().into()),
    format,
    recover,
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        ("opt-redo.log_bytes_per_thread", &["1280", "13 KB", "14 KB", "16 KB", "24 KB", "192 KB"]),
        ("opt-redo.log_buffer_entries", &["1", "2", "8"]),
        ("opt-redo.merge_updates", &["true", "false"]),
        ("opt-redo.victim_cache_lines", &["3", "6", "64"]),
        ("opt-redo.checkpoint_transactions", &["1", "2", "4", "16"]),
        ("opt-redo.checkpoint_delay_cycles", &["0", "500", "10000"]),
        ("opt-redo.checkpoint_reads", &["1", "8"]),
        ("opt-redo.checkpoint_writes", &["1", "2", "8"]),
    ],
    scaled_down: &[
        ("opt-redo.log_bytes_per_thread", "512 B"),
        ("opt-redo.log_buffer_entries", "1"),
        ("opt-redo.victim_cache_lines", "2"),
        ("opt-redo.checkpoint_transactions", "1"),
    ],
    leaves: |_| Leaves::AtHome,
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same with lines as the unit of what is written home.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "opt-redo-literal",
    summary: "opt-redo with whole lines written home and replayed, as published (loses data)",
    default: false,
    inherent: named(Rules::MUTANTS, &["whole-lines-checkpointed", "whole-lines-replayed"]),
    ..INFO
};
