//! Software logging as a program does it on x86 (FWB §II, §VI): `redo-clwb` and `undo-clwb`, and the same without
//! anything forced, `unsafe-redo` and `unsafe-undo`.
//!
//! FWB §VI: unsafe-base "uses software logging without forced cache write-backs", the better of redo and undo;
//! "redo-clwb and undo-clwb – Software redo and undo logging, respectively. These invoke the clwb instruction to force
//! cache write-backs after persistent transactions." Logs are uncacheable (§II-B): their stores go through the
//! write-combining buffer. Everything here is instructions that threads execute; there is no hardware.
//!
//! `undo-ordered` is undo logging over hardware that writes stores to PM in order by itself: its log is in the caches, and it has
//! ordering fences in place of write-backs. Where caches survive (eADR), those cost an instruction each: that is `undo-eadr`, of
//! which Silo §II-C says that "the programmers need to write logs to the CPU cache to back up data, which unfortunately
//! increases cache writes and pollutes the cache".
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters, what both have in common |
//! | `rules` | the rules of both ways of logging, and the mutants that break them |
//! | `undo`, `redo` | the two ways of logging, with their recovery |
//! | `log` | a thread's log: its bytes, and the code that writes it |
//! | `write_set` | the table in DRAM of the words that a transaction has stored to |
//! | `event` | what happens, counted and traced; cover points |
//!
//! **The log.** Each thread appends to a circular log of its own, which begins with a line for its head. Records are
//! numbered from 0 over all passes: record `n` lies in slot `n mod slots`. A record takes 16 B, two uncacheable
//! stores, so four records share a line of the write-combining buffer:
//!
//! | where | word | bits | content |
//! |---|---|---|---|
//! | first line | 0 | 0-63 | head: the number of the first record that recovery reads |
//! | record | 0 | 0 | bit 63 of the value |
//! | | 0 | 1 | 0: a word, 1: a commit |
//! | | 0 | 2 | 0 |
//! | | 0 | 3-47 | home address (it is that of a word: its low bits are 0) |
//! | | 0 | 48-62 | 0 |
//! | | 1 | 0-62 | value: the old word (undo), the new one (redo); of a commit the number of its transaction |
//! | both | 0-1 | 63 | torn bit: 1 in even passes over the log, 0 in odd ones |
//!
//! Words reach PM one by one. A slot is written whole in each pass, so what is there in part has different torn bits,
//! and what is not there has those of the pass before (the system clears the log before its first use). Recovery reads
//! from the head on until the first record that is not there.
//!
//! **The write set** is a hash table in DRAM: buckets of 8 B (32 bits of the transaction's number, so that nothing is
//! cleared, and the entry's index), and entries of 16 B (home address, new word) in the order in which words came.
//! Addresses of entries are consecutive: they are the list of what is to be written home, or back.
//!
//! **Instructions.** Loads, stores and persistence instructions are executed one by one. The others are counted from
//! this code (Intel syntax; constants of the transaction in registers), and are parameters:
//!
//! ```text
//! search   mov rax,addr; imul rax,K; shr rax,s                             search_instructions = 3
//!   each bucket    [mov rcx,[bucket]]; mov edx,ecx; shr rcx,32; cmp ecx,tag; jne        bucket_instructions = 4
//!   each entry     shl edx,4; [cmp [entry],addr]; jne; inc/and on the way on            entry_instructions = 3
//! insert   lea rdx,[tag+n]; inc n; add end,16; [mov] x2 or x3              insert_instructions = 3
//! record   lea rdx,[addr+torn]; mov rcx,v; btr rcx,63; adc rdx,0;          record_instructions = 8
//!          or rcx,torn; [movnti] x2; add tail,16; cmp tail,limit; jae
//! home     each entry: [mov] x2; [mov]; add e,16; cmp e,end; jne           home_instructions = 3
//! clwb     each entry: [mov]; and rax,-64; cmp rax,last; je; mov last,rax; [clwb];      clwb_instructions = 7
//!          add e,16; cmp e,end; jne
//! head     mov rax,n; [movnti]                                             head_instructions = 1
//! ```
//!
//! **Left open by the paper**, with what is assumed here: all layouts; that a word is logged once per transaction under
//! undo logging, and at each store under redo logging; that lines are written back at the end in the order in which
//! words came, a line again if another came between; that a transaction which stores nothing logs nothing.
//! Mechanisms and orders: see `undo` and `redo`.

mod event;
mod log;
pub mod redo;
mod rules;
pub mod undo;
mod write_set;

use graven_base::config::{Config, ConfigError, Size};
use graven_base::cost::NOTHING;
use graven_base::memory::LineAddr;
use graven_base::section;
use graven_base::stats::CounterSet;
use graven_base::surviving::SurvivingImage;
use graven_machine::config::{DramConfig, L1Config};
use graven_machine::design::{
    Capacity, Code, DesignContext, DesignInfo, Guarantee, Leaves, Named, Operation, Room, Step,
};

use event::Counters;
use log::{Area, Log, LogRules, Medium};
use write_set::WriteSet;

section! {
    /// Software logging on x86.
    pub struct SoftwareLogConfig("software_log") {
        /// Circular log of each thread; a transaction must fit.
        log_bytes_per_thread: Size = Size::kb(256), Size(128)..=Size::mb(64), "B";
        /// Words of a thread's write set, a table in DRAM; a transaction must fit.
        write_set_words: u32 = 2048, 1..=1_048_576, "words";
        /// Instructions of a search in the write set, beside those of its buckets and entries.
        search_instructions: u32 = 3, 0..=1000, "instructions";
        /// Instructions for each bucket looked at, beside its load.
        bucket_instructions: u32 = 4, 0..=1000, "instructions";
        /// Instructions for each entry compared, beside its load.
        entry_instructions: u32 = 3, 0..=1000, "instructions";
        /// Instructions of an insertion, beside its stores.
        insert_instructions: u32 = 3, 0..=1000, "instructions";
        /// Instructions of a record, beside its two stores.
        record_instructions: u32 = 8, 0..=1000, "instructions";
        /// Instructions for each word written home after a redo log is complete, beside its loads and store.
        home_instructions: u32 = 3, 0..=1000, "instructions";
        /// Instructions for each word whose line is to be written back, beside its load and the clwb.
        clwb_instructions: u32 = 7, 0..=1000, "instructions";
        /// Instructions of a move of the log's head, beside its store.
        head_instructions: u32 = 1, 0..=1000, "instructions";
    }
}

/// Structures with a limited number of places. (A commit record of a redo log has a slot, too.)
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "write-set-exactly-full",
            summary: "all words of a thread's write set were taken",
        },
        room: |context| {
            Room::of_words(context.config.get::<SoftwareLogConfig>().write_set_words.into())
        },
    },
    Capacity {
        full: Named { name: "log-exactly-full", summary: "all slots of a thread's log were taken" },
        room: |context| Room::of_words(Area::slots_of(context)),
    },
];

/// Returns how many places of a structure the threads have taken: the fullest counts.
fn places_taken<'a>(
    threads: impl Iterator<Item = (&'a Log, &'a WriteSet)>,
    structure: usize,
) -> u64 {
    let taken = threads.map(|(log, words)| match structure {
        0 => words.len() as u64,
        _ => log.taken(),
    });
    taken.max().unwrap_or(0)
}

/// Entry in the registry, as far as both ways of logging share it.
const SOFTWARE: DesignInfo = DesignInfo {
    paper: "FWB §II, §VI",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(SoftwareLogConfig::default())),
    counters: Counters::declarations,
    capacities: CAPACITIES,
    stress: &[
        ("software_log.log_bytes_per_thread", &["2 KB", "2112", "3 KB", "64 KB"]),
        ("software_log.write_set_words", &["128", "256"]),
        ("core.write_combining_lines", &["1", "2", "4", "6"]),
    ],
    scaled_down: &[
        ("software_log.log_bytes_per_thread", "128 B"),
        ("software_log.write_set_words", "2"),
    ],
    leaves: |_| Leaves::Clean,
    cost: NOTHING,
    ..DesignInfo::DEFAULT
};

/// Clears all logs.
fn format(context: &DesignContext, rules: LogRules, image: &mut SurvivingImage) {
    Area::all(context, rules).for_each(|area| area.format(image));
}

/// A load that hits the L1, as those of the write set's entries at the end of a transaction.
fn load_hit(config: &Config) -> Step {
    Step::Access(config.get::<L1Config>().latency_cycles.into())
}

/// Ways in which stored data reaches PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forcing {
    /// By write-backs and fences; the log is uncacheable.
    Forced,
    /// Not at all; the log is uncacheable.
    Unforced,
    /// The hardware writes it, in the order that ordering fences demand of it; the log is in the caches, too.
    Ordered,
    /// The same, and no commit is awaited.
    Buffered,
}

/// Parameters, and whether anything is forced: what both ways of logging have.
struct Logging {
    config: SoftwareLogConfig,
    forcing: Forcing,
}

impl Logging {
    /// With the logs and write sets of all threads.
    ///
    /// # Errors
    /// They do not fit.
    fn new(
        context: &DesignContext,
        forcing: Forcing,
        rules: LogRules,
    ) -> Result<(Logging, Vec<(Log, WriteSet)>), ConfigError> {
        let config = context.config.get::<SoftwareLogConfig>().clone();
        let bytes = config.log_bytes_per_thread.0;
        context.check_thread_areas("software_log.log_bytes_per_thread", bytes)?;
        let medium = match forcing {
            Forcing::Forced | Forcing::Unforced => Medium::WriteCombining,
            Forcing::Ordered | Forcing::Buffered => Medium::Caches,
        };
        let logs = Area::all(context, rules).map(|area| Log::new(area, medium));
        let threads = logs.zip(write_sets(context, &config)?).collect();
        Ok((Logging { config, forcing }, threads))
    }

    fn is_forced(&self) -> bool {
        self.forcing == Forcing::Forced
    }

    /// Has what was stored before durable before what comes afterwards.
    fn order(&self, code: &mut Code) {
        match self.forcing {
            Forcing::Forced => code.fence(),
            Forcing::Unforced => {}
            Forcing::Ordered | Forcing::Buffered => code.order(Operation::OrderingFence),
        }
    }

    /// Has what was stored before durable when what comes afterwards is executed.
    fn fence(&self, code: &mut Code) {
        match self.forcing {
            Forcing::Forced => code.fence(),
            Forcing::Unforced => {}
            Forcing::Ordered => code.order(Operation::DurabilityFence),
            Forcing::Buffered => code.order(Operation::OrderingFence),
        }
    }

    /// Writes back the lines of all words in the write set.
    fn write_back(&self, words: &WriteSet, code: &mut Code) {
        let mut last: Option<LineAddr> = None;
        for (entry, home, _) in words.entries() {
            code.load(entry);
            code.compute(self.config.clwb_instructions);
            if last != Some(home.line()) {
                code.clwb(home.line());
            }
            last = Some(home.line());
        }
    }
}

/// The write sets of all threads, or why they do not fit.
fn write_sets(
    context: &DesignContext,
    config: &SoftwareLogConfig,
) -> Result<Vec<WriteSet>, ConfigError> {
    let heap = context.config.get::<DramConfig>().capacity_bytes.0 / 2;
    let each = WriteSet::bytes(config.write_set_words);
    let needed = u64::from(context.threads) * each;
    if needed > heap {
        let why = format!(
            "write sets of {} threads need {}, and the DRAM has {} for designs",
            context.threads,
            Size(needed),
            Size(heap)
        );
        let keys = ["software_log.write_set_words", "dram.capacity_bytes"];
        return Err(context.config.inconsistent(&keys, why));
    }
    let of = |thread| WriteSet::new(config.write_set_words, u64::from(thread) * each);
    Ok((0..context.threads).map(of).collect())
}
