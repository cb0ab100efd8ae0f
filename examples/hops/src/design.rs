//! `hops`: the Hands-Off Persistence System (Nalli, Haria, Hill, Swift, Volos, Keeton: *An Analysis of Persistent Memory Use
//! with WHISPER*, ASPLOS'17), hardware that orders stores to PM without write-backs by the program; and software undo logging over it.
//!
//! | file | what |
//! |---|---|
//! | `design` | sources, readings, parameters, mutants |
//! | `design/persist_buffer` | the persist buffers: entries, epochs, dependences |
//! | `design/protocol` | hooks: stores, fences, loads, evictions, misses, flushes |
//! | `design/undo` | software undo logging with `ofence` and `dfence`: its code, its log byte by byte, its recovery |
//! | `design/event` | what happens, counted and narrated; cover points |
//! | `design/cost` | what the hardware costs |
//!
//! # What it does
//!
//! - **Fences.** `ofence` orders: the stores of a thread before it are durable before those after it. It stalls nobody. `dfence`
//!   waits until all stores of the thread before it are durable. No store needs a `clwb`.
//! - **Persist buffers.** Each hardware thread has one. A store to PM goes to the L1 and, with its line and the number of the
//!   thread's epoch, to the persist buffer; stores of one epoch to one line share an entry. A store that finds the buffer full
//!   waits. When `flush_at` entries are taken, or a fence, a full buffer or another thread waits, what is there is flushed: the entries of an
//!   epoch at a time, each when all older epochs of the thread, and the epochs that it depends on, are durable. The controller answers
//!   when a write is durable, and the entry leaves.
//! - **Dependences.** A thread that stores to a line, or loads from one, which another thread's persist buffer has, depends on that
//!   thread's epoch: what it stores in its present epoch and later ones becomes durable after it. The other thread's epoch is split
//!   there: its later stores belong to the next one, so that no two epochs wait for each other.
//! - **Evictions.** A dirty line of PM that leaves the LLC is dropped: the persist buffers have, or had, what it holds. A miss
//!   on a line which a persist buffer has waits until it is durable.
//!
//! # Guarantee
//!
//! `hops` promises the order `epoch-dependence`, and no transactions: programs for it have fences. `hops-undo` has the
//! software log, and is durable. `hops-undo-buffered` commits by `ofence` alone: acknowledged transactions may be lost, each with
//! all that depend on it.
//!
//! # Sources
//!
//! The paper's text was not at hand. Used were its abstract, and what the public reference for this project says of it (persist
//! buffers, ordering fences, cross-thread order, held evictions). **No value of its configuration was found in them**: the sizes
//! in `HopsConfig`, and the log of the software, are this crate's choice.
//!
//! # Left open, with what is done here
//!
//! - Where the persist buffer's parts lie: here it is beside the L1, and each flush and each answer takes
//!   `controller.bypass_cycles`.
//! - An entry has the whole line, of which the words that were stored to are written.
//! - A dependence is found by a look into the persist buffers of all threads, which takes no time of its own: coherence's messages,
//!   which the machine counts, carry it.
//! - Two writes of one thread to one line are never on their way at once.
//! - `clwb` does nothing.

mod cost;
mod event;
mod persist_buffer;
mod protocol;
mod undo;

use graven::config::{Config, Size};
use graven::design::{Acknowledgement, DesignInfo, Guarantee, Leaves, Step, plug};
use graven::persistency::cut::{EPOCH_DEPENDENCE, named};
use graven::stats::CounterSet;
use graven::{choice, mutants, section};

use event::{COVER_POINTS, Counters};
use protocol::Hops;

choice! {
    /// Software over the hardware.
    pub enum Software {
        /// None: programs have fences of their own.
        None = "none",
        /// Undo logging of transactions.
        Undo = "undo",
    }
}

choice! {
    /// The last fence of a commit.
    pub enum Commit {
        /// The commit record is durable before the acknowledgement.
        Durable = "durable",
        /// It is ordered only.
        Buffered = "buffered",
    }
}

section! {
    /// HOPS: persist buffers; software undo logging over them.
    pub struct HopsConfig("hops") {
        /// Entries of each thread's persist buffer.
        persist_buffer_entries: u32 = 32, 1..=4096, "lines";
        /// Entries at which they are flushed, if nobody waits for them before.
        flush_at: u32 = 16, 1..=4096, "lines";
        /// Software that makes transactions of what the hardware orders.
        software: Software = Software::None, (), "";
        /// The last fence of the software's commit.
        commit: Commit = Commit::Durable, (), "";
        /// Instructions of the software before each store, to look whether its word is logged, and for each record.
        record_instructions: u32 = 12, 0..=1000, "instructions";
        /// Log of each thread; the records of a transaction must fit.
        log_bytes_per_thread: Size = Size::kb(64), Size(128)..=Size(1 << 30), "B";
    }
}

fn guarantee(config: &Config) -> Guarantee {
    let hops = config.get::<HopsConfig>();
    match (hops.software, hops.commit) {
        (Software::None, _) => Guarantee::Order(&EPOCH_DEPENDENCE),
        (Software::Undo, Commit::Durable) => Guarantee::Durable,
        (Software::Undo, Commit::Buffered) => {
            Guarantee::Order(named("transactions-buffered").expect("it is there"))
        }
    }
}

/// The hardware.
pub const INFO: DesignInfo = DesignInfo {
    name: "hops",
    summary: "stores go to persist buffers, which write them in the order of ofence; nothing else is promised",
    paper: "HOPS (ASPLOS'17)",
    guarantee,
    default: false,
    section: Some(|| Box::new(HopsConfig::default())),
    build: |context| {
        let hops = plug(Hops::new(context)?).absorbing().with_plain_stores().with_persists();
        let hops = hops.with_loads();
        Ok(match context.config.get::<HopsConfig>().software {
            Software::None => hops.into(),
            Software::Undo => hops.with_software().into(),
        })
    },
    acknowledgement: Acknowledgement {
        source: "the hardware knows no transactions; of the software: a dfence waits for the last record, then for its word, and another for the commit \
                 record",
        steps: |config| match guarantee(config) {
            Guarantee::Durable => {
                let written = [Step::Message, Step::Write, Step::Message];
                // The thread is at its last fence while the record and its word are written.
                let twice = [written.clone(), written.clone()].concat();
                let meanwhile = Step::Both(twice, vec![Step::Instructions(2)]);
                [meanwhile, Step::Instructions(2)].into_iter().chain(written).collect()
            }
            _ => Vec::new(),
        },
    },
    format: undo::format,
    recover: undo::recover,
    mutants: Mutant::NAMED,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    stress: &[
        ("hops.persist_buffer_entries+hops.flush_at", &["1+1", "2+2", "3+2", "8+4", "32+32"]),
        ("hops.log_bytes_per_thread", &["8 KB", "32 KB"]),
    ],
    // What dirty lines hold has been written from the persist buffers.
    leaves: |_| Leaves::AtHome,
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same under software undo logging.
pub const UNDO: DesignInfo = DesignInfo {
    name: "hops-undo",
    summary: "software undo logging with ofence and dfence in place of clwb and sfence, over hops",
    settings: &[("hops.software", "undo")],
    default: true,
    mutants: undo::MUTANTS,
    ..INFO
};

/// The same, whose commits do not wait.
pub const BUFFERED: DesignInfo = DesignInfo {
    name: "hops-undo-buffered",
    summary: "hops-undo whose commits are ordered and not awaited: the newest transactions may be lost",
    settings: &[("hops.software", "undo"), ("hops.commit", "buffered")],
    default: false,
    mutants: &[],
    ..INFO
};

mutants! {
    /// An ofence does not begin an epoch.
    OrderingFenceIgnored = "ordering-fence-ignored";
    /// An entry is flushed while older epochs of its thread are not durable.
    OlderEpochsNotAwaited = "older-epochs-not-awaited";
    /// An entry is flushed when older epochs have been sent.
    SentIsDurable = "sent-is-durable";
    /// A store to another thread's line makes no dependence.
    StoresDependOnNothing = "stores-depend-on-nothing";
    /// A load from another thread's line makes no dependence.
    LoadsDependOnNothing = "loads-depend-on-nothing";
    /// A dependence holds for the epoch that found it only.
    DependencesForgotten = "dependences-forgotten";
    /// A store joins the entry of its line in an older epoch.
    JoinsOlderEpochs = "joins-older-epochs";
    /// A store finds the persist buffer full, and is not kept.
    FullBufferDrops = "full-buffer-drops";
    /// A dfence waits for nothing.
    DurabilityFenceIgnored = "durability-fence-ignored";
    /// A dfence waits until the entries have been sent.
    DurabilityFenceAwaitsSending = "durability-fence-awaits-sending";
    /// A dirty line that leaves the LLC is written home.
    EvictionsGoHome = "evictions-go-home";
    /// A miss does not look into the persist buffers.
    MissesReadHome = "misses-read-home";
}
