//! `morlog`: morphable hardware logging (Wei, Feng, Tong, Liu, Ye, ISCA 2020).
//!
//! | file | what | paper |
//! |---|---|---|
//! | `mod` | parameters | §III-A, §VI-A |
//! | `rules` | the rules of the protocol, and the mutants that break them | |
//! | `protocol` | the design's state, and what it does when the machine calls | §III-A |
//! | `event` | what happens, counted and traced; cover points | |
//! | `line_state` | the L1 extension: owners and word states | §III-B, Fig. 7, Fig. 8 |
//! | `buffers` | the undo+redo and the redo buffer | §III-B |
//! | `logging` | stores; entries into buffers, out of them, into the log | §III-B |
//! | `commit` | the end of a transaction: strict, or delay-persistence | §III-B, §III-C |
//! | `home` | lines on their way home; what becomes of their redo data | §III-B |
//! | `non_temporal` | stores that bypass the caches | §III-F |
//! | `logs` | where logs lie, and their room | §III-A, §III-F |
//! | `truncation` | scans, truncation, logs that are full | §III-F |
//! | `table` | truncation by a transaction table | §III-F |
//! | `recovery` | recovery | §III-E |
//! | `cost` | what the hardware costs | §III-D, §IV-C |
//!
//! The first store to a word in a transaction makes an undo+redo entry, which goes to the log soon (*eager
//! undo*); stores after that leave their value in the L1, and a redo entry is made when the line leaves
//! it or the transaction ends (*lazy redo*). So only the oldest undo and the newest redo data is logged.
//! The log is `packed_log`'s, packed or in slots as `pm.log_packing` says for every such log of the machine; with
//! `pm.codec = "slde"` its words are encoded selectively.
//!
//! **Word states** (Fig. 8). Clean → Dirty: a store, which makes an undo+redo entry. Dirty → Dirty: a store that
//! finds the entry in the buffer and is merged into it (undo stays, redo is replaced). Dirty → URLog: the
//! entry is durable. URLog → ULog → ULog: stores of the same transaction. States are lost when the line
//! leaves the L1, and void for another transaction. A word that is stored to again after that gets a
//! second undo+redo entry, whose undo value is one of the transaction's own: newest-first undo makes that harmless.
//!
//! **As published, and repaired.** Taken at its word, the text loses data in the places below. `morlog-literal` is
//! the design without these repairs, each is a mutant by itself, and `docs/results/findings.md` has the counterexamples.
//!
//! | the text | `morlog` | mutant |
//! |---|---|---|
//! | a redo entry is discarded when its line is evicted by the LLC (§III-B) | when the line is durable at home, and a record remains (*in place*: the line, and which words) that voids the older redo data of the undo+redo entry in the log | `discard-leaves-nothing` |
//! | a word's dirty flag is set from the old and the new value of the write (§IV-A, §V) | flags add up until they are logged | `flag-of-last-store` |
//! | a redo entry is dropped when its word is stored to again (§III-B), an undo+redo entry without a changed byte is dropped, too (§IV-A) | not if both come together: the undo+redo entry then has the only newest redo data | `debt-is-forgotten` |
//! | "dirty flags indicate which bytes of the in-place data need to be written" (§IV-A) | undo restores the whole word, whose clean bytes the redo data of its entry has | `undo-in-dirty-bytes` |
//! | the ulog counter counts L1 lines in state ULog (§III-C) | it counts words, and those of the transaction that wait in the redo buffer | `lines-are-counted` |
//! | with a log per thread, numbers in commit records give the order of transactions (§III-F) | with delay-persistence, commit records and the records behind them are sent in their order, whichever log they go to: otherwise two transactions that stored a word could both be without one, and nothing tells which to undo first | `records-pass-commits` |
//! | states belong to the transaction with the line's ids (§III-B) | the end of a strict transaction clears them, and so does a thread whose ids wrap around | `states-outlive-ids` |
//!
//! **Left open by the paper**, and decided here:
//! - "When the transaction commits, the log data in the two buffers and the L1 caches are persisted" (§III-B): an end in
//!   strict mode flushes the ULog words of the L1 and the entries of the transaction in both buffers (and those before
//!   it in the undo+redo buffer, which is a FIFO), with the commit record behind them in the same batch. Its
//!   acknowledgement waits until its commit record and all before it are durable. The text names no cost of finding the
//!   words, so there is none; with `walk_sets_per_cycle` the end walks the L1's tags first.
//! - What leaves a buffer takes along up to three entries behind it: those fill the metadata block; in slots one, which
//!   fills the line.
//! - Undo before steal is enforced as in `fwb`: a line's write waits for the undo+redo records of its stores, and
//!   entries of the line in the buffer are sent with it. A larger N than the caches' latency needs
//!   `allow_unsafe_buffer` and gets no order at all.
//! - Delay-persistence: what a committed transaction still has in L1s and in the redo buffer is *late*. A
//!   scan that forces a line home makes its late words known as in place, and sends late entries off.
//!   Transactions leave the log in commit order, and only when their late data is in it or at home.

mod buffers;
mod commit;
mod cost;
mod event;
mod home;
mod line_state;
mod logging;
mod logs;
mod non_temporal;
mod protocol;
mod recovery;
mod rules;
mod table;
mod truncation;

use graven_base::config::{Config, ConfigError, Size};
use graven_base::memory::WORD_BYTES;
use graven_base::stats::CounterSet;
use graven_base::{choice, section};
use graven_machine::config::{L1Config, traversal_cycles};
use graven_machine::design::{
    Acknowledgement, Capacity, DesignContext, DesignInfo, Guarantee, Named, PluggedDesign, Room,
    Step, plug,
};

use crate::force_write_back::{SCANS, TRANSACTION_BYTES_MIN};
use crate::packed_log::ULOG_MAX;
use crate::rules::named;
use event::{COVER_POINTS, Counters};
use logs::Places;
use protocol::Morlog;
use rules::Rules;

choice! {
    /// Layout of the logs (§III-F).
    pub enum LogType {
        /// One log for all threads; the place of commit records gives their order.
        Centralised = "centralised",
        /// One log per thread; commit records are numbered.
        PerThread = "per-thread",
    }
}

choice! {
    /// The mechanism that determines which records may go (§III-F).
    pub enum Truncate {
        /// Scans of the caches that force old dirty lines home, as FWB's.
        Scans = "scans",
        /// A table that counts each transaction's lines that are not home.
        Table = "transaction-table",
    }
}

section! {
    /// MorLog: morphable logging.
    pub struct MorlogConfig("morlog") {
        /// Size of all logs together; they lie at the start of the log region. 0: what the scan interval and the write bandwidth ask for, at most the log region.
        log_bytes: Size = Size(0), Size(0)..=Size::gb(64), "B";
        /// One log for all threads, or one for each.
        log_type: LogType = LogType::Centralised, (), "";
        /// The mechanism that determines which records may be truncated.
        truncation: Truncate = Truncate::Scans, (), "";
        /// Transactions that a transaction table holds.
        transaction_table_entries: u32 = 64, 1..=65_536, "transactions";
        /// Entries of the undo+redo buffer. Fewer than the cycles of a way through the caches.
        undo_redo_entries: u32 = 16, 1..=256, "entries";
        /// Entries of the redo buffer.
        redo_entries: u32 = 32, 1..=1024, "entries";
        /// Accepts a larger undo+redo buffer, without any order between log and data then: not crash-safe.
        allow_unsafe_buffer: bool = false, (), "";
        /// A transaction's end returns at once, and its redo data is logged later: a power failure leaves a beginning of the commit order.
        delay_persistence: bool = false, (), "";
        /// Keeps a dirty flag with every entry and L1 word, as SLDE needs; entries without a changed byte are dropped.
        dirty_flags: bool = false, (), "";
        /// Sets of the L1 that a strict end looks through per cycle, for words whose redo data is to be logged; 0: it knows them without a walk, as §III-B names no cost of it.
        walk_sets_per_cycle: u32 = 0, 0..=1024, "sets/cycle";
        /// Lines of the DRAM region that keeps non-temporal stores until their transactions have committed; 0: there is none, and they go through the caches.
        dram_lines: u32 = 64, 0..=65_536, "lines";
        /// From the beginning of one scan of the caches to that of the next; 0: derived from log size and write bandwidth.
        scan_interval_cycles: u64 = 3_000_000, 0..=1_000_000_000_000, "cycles";
        /// Bits of a transaction's id in its records and in the L1.
        transaction_id_bits: u32 = 16, 2..=16, "bits";
    }
}

/// Structures with a limited number of places.
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "undo-redo-buffer-exactly-full",
            summary: "all entries of the undo+redo buffer were taken",
        },
        room: |context| {
            Room::of_words(context.config.get::<MorlogConfig>().undo_redo_entries.into())
        },
    },
    Capacity {
        full: Named {
            name: "redo-buffer-exactly-full",
            summary: "all entries of the redo buffer were taken",
        },
        room: |context| Room::of_words(context.config.get::<MorlogConfig>().redo_entries.into()),
    },
    Capacity {
        full: Named {
            name: "dram-region-exactly-full",
            summary: "all lines of the DRAM region kept non-temporal stores",
        },
        // Without a region nothing is kept: it is never full.
        room: |context| {
            Room::of_lines(context.config.get::<MorlogConfig>().dram_lines.max(1).into())
        },
    },
    Capacity {
        full: Named {
            name: "transaction-table-exactly-full",
            summary: "all entries of the transaction table were taken",
        },
        room: |context| {
            let entries = context.config.get::<MorlogConfig>().transaction_table_entries;
            Room::of_transactions(entries.into())
        },
    },
    Capacity {
        full: Named {
            name: "log-exactly-full",
            summary: "all groups, or slots, of a log were in use or kept for what is to come",
        },
        room: |context| Room::of_words(Places::of(context).logs[0].groups),
    },
];

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "morlog",
    summary: "oldest undo and newest redo data only: redo data stays in the L1 until it must be logged",
    paper: "MorLog (ISCA'20) §III, §IV",
    guarantee,
    section: Some(|| Box::new(MorlogConfig::default())),
    build,
    acknowledgement: Acknowledgement {
        source: "§III-B: \"When the transaction commits, the log data in the two buffers and the L1 caches are persisted\"; §III-C: \
                 with delay-persistence a commit is \"instantly\"",
        steps: |config| {
            if config.get::<MorlogConfig>().delay_persistence {
                return Vec::new();
            }
            let walk = match protocol::walk_cycles_of(config) {
                0 => None,
                cycles => Some(Step::Access(cycles)),
            };
            walk.into_iter().chain([Step::Message, Step::Write, Step::Message]).collect()
        },
    },
    format: recovery::format,
    recover: recovery::recover,
    settle: recovery::settle,
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        ("morlog.log_bytes", &["3 KB", "4 KB", "8 KB", "16 KB", "64 KB"]),
        ("morlog.log_type", &["centralised", "per-thread"]),
        ("morlog.truncation", &["scans", "transaction-table"]),
        ("morlog.transaction_table_entries", &["4", "8", "64"]),
        ("morlog.undo_redo_entries", &["1", "2", "4", "16"]),
        ("morlog.redo_entries", &["1", "2", "8", "32"]),
        ("morlog.dram_lines", &["0", "1", "64"]),
        ("morlog.delay_persistence", &["false", "true"]),
        ("morlog.dirty_flags", &["false", "true"]),
        ("pm.codec", &["none", "crade", "slde", "slde"]),
        ("pm.log_packing", &["with-codec", "always"]),
        ("pm.cells", &["uniform", "tlc-rram"]),
        ("morlog.scan_interval_cycles", &["0", "200", "2000", "50000"]),
        ("morlog.transaction_id_bits", &["2", "8", "16"]),
    ],
    scaled_down: &[
        ("morlog.log_bytes", "320 B"),
        ("morlog.undo_redo_entries", "1"),
        ("morlog.redo_entries", "1"),
        ("morlog.transaction_table_entries", "2"),
        ("morlog.scan_interval_cycles", "2000"),
        ("morlog.transaction_id_bits", "2"),
    ],
    rounds: |config| match config.get::<MorlogConfig>().truncation {
        Truncate::Scans => &[SCANS],
        Truncate::Table => &[],
    },
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

fn build(context: &DesignContext) -> Result<PluggedDesign, ConfigError> {
    let morlog = plug(Morlog::new(context)?);
    Ok(morlog.absorbing().with_departures().with_non_temporal_stores().into())
}

/// Parameters under stress where a parameter set says the rest.
const STRESS: &[(&str, &[&str])] = &[
    ("morlog.log_bytes", &["3 KB", "4 KB", "8 KB", "16 KB", "64 KB"]),
    ("morlog.log_type", &["centralised", "per-thread"]),
    ("morlog.undo_redo_entries", &["1", "2", "4", "16"]),
    ("morlog.redo_entries", &["1", "2", "8", "32"]),
    ("pm.cells", &["uniform", "tlc-rram"]),
    ("morlog.scan_interval_cycles", &["0", "200", "2000", "50000"]),
    ("morlog.transaction_id_bits", &["2", "8", "16"]),
];

/// Delay-persistence keeps a prefix of the transactions; an unsafe buffer keeps nothing.
fn guarantee(config: &Config) -> Guarantee {
    let morlog = config.get::<MorlogConfig>();
    if morlog.undo_redo_entries >= traversal_cycles(config) {
        Guarantee::None
    } else if morlog.delay_persistence {
        Guarantee::Prefix { lost_max: logs::bytes(config) / TRANSACTION_BYTES_MIN }
    } else {
        Guarantee::Durable
    }
}

/// The design as the paper's text has it, where that loses data (`docs/results/findings.md`).
pub const LITERAL: DesignInfo = DesignInfo {
    name: "morlog-literal",
    summary: "morlog as its text literally reads (unsafe: loses data)",
    default: false,
    inherent: named(
        Rules::MUTANTS,
        &[
            "discard-leaves-nothing",
            "flag-of-last-store",
            "debt-is-forgotten",
            "undo-in-dirty-bytes",
            "lines-are-counted",
            "records-pass-commits",
            "states-outlive-ids",
        ],
    ),
    ..INFO
};

/// Parameters for programs of a few stores, where records are packed.
const PACKED_SCALED_DOWN: &[(&str, &str)] = &[
    ("morlog.log_bytes", "1088 B"),
    ("morlog.undo_redo_entries", "1"),
    ("morlog.redo_entries", "1"),
    ("morlog.transaction_table_entries", "2"),
    ("morlog.scan_interval_cycles", "2000"),
    ("morlog.transaction_id_bits", "2"),
];

/// `morlog` in a parameter set of the paper's evaluation (§VI-A).
const fn evaluated(
    name: &'static str,
    summary: &'static str,
    settings: &'static [(&'static str, &'static str)],
) -> DesignInfo {
    DesignInfo {
        name,
        summary,
        paper: "MorLog (ISCA'20) §VI-A",
        default: false,
        settings,
        stress: STRESS,
        scaled_down: PACKED_SCALED_DOWN,
        ..INFO
    }
}

/// MorLog-CRADE.
pub const CRADE: DesignInfo = evaluated(
    "morlog-crade",
    "morlog with CRADE's codec",
    &[
        ("pm.codec", "crade"),
        ("morlog.dirty_flags", "false"),
        ("morlog.delay_persistence", "false"),
        ("morlog.undo_redo_entries", "16"),
        ("morlog.redo_entries", "32"),
        ("morlog.scan_interval_cycles", "3000000"),
    ],
);

/// MorLog-SLDE.
pub const SLDE: DesignInfo = evaluated(
    "morlog-slde",
    "morlog with selective log data encoding",
    &[
        ("pm.codec", "slde"),
        ("morlog.dirty_flags", "true"),
        ("morlog.delay_persistence", "false"),
        ("morlog.undo_redo_entries", "16"),
        ("morlog.redo_entries", "32"),
        ("morlog.scan_interval_cycles", "3000000"),
    ],
);

/// MorLog-DP.
pub const DP: DesignInfo = evaluated(
    "morlog-dp",
    "morlog with selective log data encoding and delay-persistence commit",
    &[
        ("pm.codec", "slde"),
        ("morlog.dirty_flags", "true"),
        ("morlog.delay_persistence", "true"),
        ("morlog.undo_redo_entries", "16"),
        ("morlog.redo_entries", "32"),
        ("morlog.scan_interval_cycles", "3000000"),
    ],
);

/// Refuses configurations in which the design cannot work.
fn check(context: &DesignContext) -> Result<(), ConfigError> {
    let (config, morlog) = (&context.config, context.config.get::<MorlogConfig>());
    logs::check(context)?;
    let bound = traversal_cycles(config);
    if morlog.undo_redo_entries >= bound && !morlog.allow_unsafe_buffer {
        let why = format!(
            "a store can fall through the caches in {bound} cycles, and with {bound} entries or more \
             overtake its log entry; morlog.allow_unsafe_buffer = true accepts that"
        );
        let keys = ["morlog.undo_redo_entries", "morlog.allow_unsafe_buffer"];
        return Err(config.inconsistent(&keys, why));
    }
    // What a transaction may leave to be logged after its commit record: all words of an L1, and a redo buffer.
    let l1_words = config.get::<L1Config>().bytes.0 / WORD_BYTES;
    let words = l1_words + u64::from(morlog.redo_entries);
    if morlog.delay_persistence && words > ULOG_MAX.into() {
        let why = format!("a commit record can announce {ULOG_MAX} words, and these hold {words}");
        let keys = ["l1.bytes", "morlog.redo_entries", "morlog.delay_persistence"];
        return Err(config.inconsistent(&keys, why));
    }
    Ok(())
}
