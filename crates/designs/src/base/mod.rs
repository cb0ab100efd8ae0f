//! `base`: the plainest safe hardware logging (Silo §VI-A, *Base*).
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters |
//! | `rules` | the rules of the protocol, and the mutants that break them |
//! | `protocol` | entries, flushes, commits |
//! | `event` | what happens, counted and traced; cover points |
//! | `record` | records and log areas, byte by byte |
//! | `recovery` | clearing the log, undoing |
//!
//! "A hardware logging baseline that flushes an undo+redo log entry and the corresponding updated
//! cacheline for each write." For each transactional store: the log entry goes to PM, bypassing the
//! caches; when it is durable, the updated line is written back; when that is durable, the core's
//! next store may proceed. A commit record ends the transaction. Nothing is merged or skipped.
//!
//! Each thread appends to a circular log area of its own. Its records are numbered from 0 over all
//! passes: record `n` lies in slot `n mod slots`, in pass `n / slots`. A record takes 32 B:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0-1 | kind: 1 entry, 2 commit; 0: no record |
//! | 0 | 2, 3 | bit 63 of the undo word, of the redo word |
//! | 0 | 8-15 | thread id |
//! | 0 | 16-31 | transaction id (low 16 bits of its number) |
//! | 0 | 32-62 | low 31 bits of the record's number |
//! | 1 | 0-47 | home address |
//! | 1 | 48-62 | next 15 bits of the record's number |
//! | 2 | 0-62 | undo: the old word |
//! | 3 | 0-62 | redo: the new word |
//! | 0-3 | 63 | torn bit: 1 in even passes over the area, 0 in odd ones |
//!
//! A write may be there in part, word by word. A slot is always written whole, and the torn bits of
//! what it held before are the opposite ones (zeroes, before the first pass: the system clears the
//! area), so a record of which only some words were written has mixed torn bits and is none.
//!
//! Recovery finds each thread's newest record by its number. Records of one transaction are
//! consecutive; if no commit record ends them, their undo words are written back, newest first.
//! Committed transactions need nothing: their lines were durable before their commit records.
//!
//! **Undo before steal.** A thread's earlier stores have durable records, its latest may not. A line
//! may leave the caches while such a record is on its way, evicted, or flushed for another thread
//! that has stored to other words of it: its write then waits for the record.
//!
//! Left open by the paper: whether a store waits for its flushes (it does here), and how records are
//! laid out.

mod event;
mod protocol;
mod record;
mod recovery;
mod rules;

use graven_base::config::Size;
use graven_base::cost::Costs;
use graven_base::section;
use graven_base::stats::CounterSet;
use graven_machine::design::{
    Acknowledgement, Capacity, DesignInfo, Guarantee, Leaves, Named, Room, Step, plug,
};
use graven_machine::quantities::thread_areas;

use event::{COVER_POINTS, Counters};
use protocol::Base;
use record::Area;
use recovery::{format, recover};
use rules::Rules;

section! {
    /// Silo's Base: a log entry and the updated line flushed for each write.
    pub struct BaseConfig("base") {
        /// Circular log area of each thread; a transaction must fit.
        log_bytes_per_thread: Size = Size::kb(64), Size(128)..=Size::mb(64), "B";
    }
}

/// Structures with a limited number of places. The records of a thread's newest transaction are live; a commit record is one of them.
const CAPACITIES: &[Capacity] = &[Capacity {
    full: Named {
        name: "log-exactly-full",
        summary: "all slots of a thread's log area were taken by one transaction",
    },
    room: |context| Room::of_words(Area::of(context, 0).slots),
}];

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "base",
    summary: "flushes an undo+redo entry and the updated line for each write",
    paper: "Silo §VI-A (Base)",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(BaseConfig::default())),
    build: |context| Ok(plug(Base::new(context)?).into()),
    acknowledgement: Acknowledgement {
        source: "Silo §VI-A says of each write that its entry and its line are flushed, and of the commit nothing: a record \
                 past the caches, and the answer that it is durable",
        steps: |_| vec![Step::Message, Step::Write, Step::Message],
    },
    format,
    recover,
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[("base.log_bytes_per_thread", &["3 KB", "4 KB", "64 KB"])],
    scaled_down: &[("base.log_bytes_per_thread", "128 B")],
    leaves: |_| Leaves::Clean,
    cost: Costs::on("silo", |config| vec![thread_areas(config, "base.log_bytes_per_thread")])
        .remarks(&["Silo §VI-A describes no buffers: an entry goes to PM before the next store."]),
    ..DesignInfo::DEFAULT
};
