//! `hops`: the Hands-Off Persistence System (Nalli, Haria, Hill, Swift, Volos, Keeton: *An Analysis of Persistent Memory Use
//! with WHISPER*, ASPLOS'17), hardware that orders stores to PM without write-backs by the program; and Graven's software undo logging
//! with ordering fences (`undo-ordered`) over it.
//!
//! | file | what |
//! |---|---|
//! | `design` | sources, readings, parameters, mutants |
//! | `design/persist_buffer` | the persist buffers: entries, epochs, dependences |
//! | `design/protocol` | hooks: stores, fences, loads, evictions, misses, flushes |
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
//! in `HopsConfig` are this crate's choice.
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

use graven::design::{Acknowledgement, DesignInfo, Guarantee, Leaves, Step, plug};
use graven::designs::software::{SoftwareLogConfig, undo};
use graven::persistency::cut::EPOCH_DEPENDENCE;
use graven::stats::CounterSet;
use graven::{layered, mutants, section};

use event::{COVER_POINTS, Counters};
use protocol::Hops;

section! {
    /// HOPS: persist buffers.
    pub struct HopsConfig("hops") {
        /// Entries of each thread's persist buffer.
        persist_buffer_entries: u32 = 32, 1..=4096, "lines";
        /// Entries at which they are flushed, if nobody waits for them before.
        flush_at: u32 = 16, 1..=4096, "lines";
    }
}

/// The hardware.
pub const INFO: DesignInfo = DesignInfo {
    name: "hops",
    summary: "stores go to persist buffers, which write them in the order of ofence; nothing else is promised",
    paper: "HOPS (ASPLOS'17)",
    guarantee: |_| Guarantee::Order(&EPOCH_DEPENDENCE),
    default: false,
    section: Some(|| Box::new(HopsConfig::default())),
    build: |context| {
        let hops = plug(Hops::new(context)).absorbing().with_plain_stores().with_persists();
        Ok(hops.with_loads().into())
    },
    acknowledgement: Acknowledgement {
        source: "the hardware knows no transactions",
        ..Acknowledgement::AT_ONCE
    },
    mutants: Mutant::NAMED,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    stress: &[(
        "hops.persist_buffer_entries+hops.flush_at",
        &["1+1", "2+2", "3+2", "8+4", "32+32"],
    )],
    // What dirty lines hold has been written from the persist buffers.
    leaves: |_| Leaves::AtHome,
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

layered! {
    /// Software undo logging over it.
    pub const UNDO = undo::ORDERED, over INFO {
        name: "hops-undo",
        summary: "software undo logging with ofence and dfence in place of clwb and sfence, over hops",
        paper: "HOPS (ASPLOS'17)",
        acknowledgement: Acknowledgement {
            source: "a dfence waits until the record, its word and the commit record are durable, one after the other",
            steps: |config| {
                let software = config.get::<SoftwareLogConfig>();
                let written = [Step::Message, Step::Write, Step::Message];
                // The thread is at its last fence while the record and its word are written.
                let all = [written.clone(), written.clone(), written].concat();
                vec![
                    Step::Both(all, vec![Step::Instructions(1)]),
                    Step::Instructions(software.head_instructions + 2),
                ]
            },
        },
    }
}

layered! {
    /// The same, whose commits do not wait.
    pub const BUFFERED = undo::BUFFERED, over INFO {
        name: "hops-undo-buffered",
        summary: "hops-undo whose commits are ordered and not awaited: the newest transactions may be lost",
        paper: "HOPS (ASPLOS'17)",
        default: false,
    }
}

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
