//! `opt-undo`: hardware undo logging after ATOM (HPCA'17), as HOOP compares with it (HOOP §IV-A *Opt-Undo*, §IV-B to
//! §IV-D, Fig. 4a) and as LALEA §II-B describes its log records.
//!
//! The old content of each line that a transaction stores to goes to a log; "the ordering of data and undo log" is kept
//! "in the memory controller" (HOOP §IV-B), so no store waits for the log; a commit waits for the data.
//!
//! - **Log entries.** A transaction's first store to a line sends the line's old content to the controller, past the
//!   caches, which appends it to the log area of the thread. The store goes on at once (a *posted* log).
//! - **The L1's extension.** A line in an L1 remembers which thread's transaction logged it and which of its words the
//!   controller knows of (a thread id and 8 bits; ATOM has one bit). It forgets when the line leaves this L1, or when
//!   a thread that shares the L1 stores to it: the next store logs the line again. A store to another word of a line
//!   that is remembered joins the line's entry, as long as its header is not written; otherwise the line is logged
//!   again, too. (So an entry that is joined has the old word: whoever stored to it since has committed, hence
//!   written the line back, and closed the record.)
//! - **Log entry collation** (LALEA §II-B, ATOM's LEC). `entries_per_record` entries (7) share a header line with their
//!   home addresses; together they are a log record. Entries are written as they come. The header is collected in a
//!   register of the controller and written when it is full and another entry comes (until then its last line may
//!   gain words), or before, when data or a commit needs it. A record whose header is written is closed. An entry counts
//!   when its header is durable, and the header is written after its entries ("intra-record ordering").
//! - **Log before data.** A line that leaves the caches, evicted or written back, by whichever thread, waits in the
//!   controller for the headers of all entries that open transactions have of it. It forces those that are not
//!   written. (An entry on its way to the controller is waited for, too: ATOM keeps the line locked in the L1.)
//! - **Commit.** The core asks the controller for the last header and writes all dirty lines of the transaction back. When
//!   they and those that were evicted before are durable, the controller answers; a second message removes the log
//!   (the commit point), a third acknowledges it. Each message takes the path to the controller.
//! - **Log removal** (HOOP §IV-D). A non-volatile register of the controller for each thread (Silo §V: ATOM keeps
//!   "the metadata to manage logs" in an on-chip persistent buffer) has the number of the thread's first transaction that
//!   has not committed; transactions without stores do not count. Headers of any other number are void. Nothing is written.
//!
//! Each thread has a circular log area; records are numbered from 0 over all passes, record `n` lies in slot `n mod
//! slots`. A record is one header line and `entries_per_record` lines of old data. The header, word by word:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0-19 | index of the record in its transaction |
//! | 0 | 20-62 | transaction number (low 43 bits) |
//! | 1-7 | 0-47 | home address of the line in entry 0-6 |
//! | 1-7 | 48-55 | which words of the line are the transaction's; 0: no entry |
//! | 0-7 | 63 | torn bit: 1 in even passes over the area, 0 in odd ones |
//!
//! Any words of a header may be there without the others. All of them are written, over a header with the opposite
//! torn bit (over zeroes at first: the system clears the headers), so a header that is there in part has mixed torn
//! bits and is none. Its entries need no mark: they are durable before it.
//!
//! Recovery reads all headers of a thread's area, and of those that have the register's number writes the words of their
//! masks back: last record first, last entry first. A line that was logged twice has the words of the first
//! time in its older entry. It changes nothing in the log, so it may be repeated. Open transactions have no words in common,
//! so the order of threads does not matter.
//!
//! Left open, here or by the sources: what is logged again, and when a header is written (above); that the header
//! comes first in its record; what a commit costs in messages. Left out: ATOM's *source logging*, where the controller
//! makes the entry itself from a line that it has just read (messages to the controller take time here, but no
//! bandwidth); dropping log writes that are still queued when their log is removed.
//!
//! `opt-undo-literal` logs and undoes lines whole, as all sources have it. It loses data where two open transactions have
//! words in one line.
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters, state, hooks |
//! | `logging` | entries, headers, and what lines wait for |
//! | `commit` | write-backs, data on its way, log removal |
//! | `lines` | the lines that a transaction has stored to |
//! | `record` | headers and log areas, byte by byte |
//! | `recovery` | undoing |
//! | `cost` | what the hardware costs |
//! | `cover` | states worth reaching |

mod commit;
mod cost;
mod cover;
mod lines;
mod logging;
mod record;
mod recovery;

use commit::{Flight, Step};
use cover::COVER_POINTS;
use lines::Lines;
use record::{Area, Collected, ENTRIES_MAX};
use recovery::{format, recover};

use graven_base::config::{ConfigError, Size};
use graven_base::ids::Tx;
use graven_base::memory::{LineAddr, LineData};
use graven_base::section;
use graven_base::time::Cycle;
use graven_machine::design::{
    DesignContext, DesignInfo, Guarantee, MutantSet, Plug, RawAction, Stall, Store,
};
use graven_machine::machine::Machine;
use graven_machine::mutants;
use graven_machine::request::{OrderSeq, Token};

section! {
    /// Hardware undo logging after ATOM, as HOOP compares with it.
    pub struct OptUndoConfig("opt-undo") {
        /// Circular log area of each thread; the records of a transaction must fit.
        log_bytes_per_thread: Size = Size::kb(128), Size(512)..=Size::mb(64), "B";
        /// Log entries that share a header: one record.
        entries_per_record: u32 = 7, 1..=ENTRIES_MAX as u32, "entries";
    }
}

mutants! {
    /// Lines are logged and undone whole, whoever else has words in them.
    LinesLoggedWhole = "lines-logged-whole";
    /// An evicted line does not wait for headers.
    EvictionOvertakesHeader = "eviction-overtakes-header";
    /// A line that is written back does not wait for headers.
    WriteBackOvertakesHeader = "write-back-overtakes-header";
    /// A line that is written back does not wait for other transactions' headers.
    NeighbourOvertaken = "neighbour-overtaken";
    /// A line that leaves does not force headers that are being collected.
    HeaderNotForced = "header-not-forced";
    /// A header does not wait for the entries of its record.
    HeaderOvertakesEntries = "header-overtakes-entries";
    /// A store that joins an entry leaves the header as it is.
    JoinedWordNotMasked = "joined-word-not-masked";
    /// A store to another word of a line joins an entry whose record is closed.
    ClosedRecordJoined = "closed-record-joined";
    /// A line that an L1 knows to be logged is taken for logged, whoever's entry it is.
    OwnerIgnored = "owner-ignored";
    /// A commit does not wait until its lines are durable.
    LinesNotAwaited = "lines-not-awaited";
    /// A commit does not wait for lines that were evicted.
    EvictedLineNotAwaited = "evicted-line-not-awaited";
    /// A commit waits for the oldest content of a line that is on its way.
    OldestContentAwaited = "oldest-content-awaited";
    /// The log is removed when the lines are sent.
    LogRemovedEarly = "log-removed-early";
    /// Recovery undoes committed transactions, too.
    CommittedUndone = "committed-undone";
    /// Recovery undoes the oldest entry first.
    UndoOldestFirst = "undo-oldest-first";
    /// Recovery takes the record in the last place for the newest.
    NewestByPlace = "newest-by-place";
    /// The torn bits of a header are not looked at.
    TornBitsIgnored = "torn-bits-ignored";
    /// The torn bit is the same in all passes.
    TornBitNeverFlips = "torn-bit-never-flips";
    /// The log areas are put to use as they are found.
    LogNotCleared = "log-not-cleared";
}

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "opt-undo",
    summary: "logs the old line of each first store; the controller keeps log before data; a commit waits for the lines",
    paper: "HOOP §IV-A (Opt-Undo: ATOM), LALEA §II-B",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(OptUndoConfig::default())),
    build: |context| Ok(Box::new(OptUndo::new(context)?)),
    format,
    recover,
    mutants: Mutant::NAMED,
    cover_points: COVER_POINTS,
    stress: &[(
        "opt-undo.entries_per_record+opt-undo.log_bytes_per_thread",
        &["1+1 KB", "1+4 KB", "2+3 KB", "3+2 KB", "7+2 KB", "7+4 KB", "7+8 KB"],
    )],
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same with the granularity of its sources.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "opt-undo-literal",
    summary: "opt-undo with lines logged and undone whole, as published (loses data)",
    default: false,
    inherent: Mutant::all(&[Mutant::LinesLoggedWhole]),
    ..INFO
};

#[derive(Clone, Debug)]
struct Thread {
    /// Whose L1 its stores go to.
    core: u32,
    lines: Lines,
    /// Number of its running transaction, as the program counts them.
    tx: u64,
    area: Area,
    /// Number of the record that is being collected, or of the next, over all passes.
    record: u64,
    /// Records of the transaction so far.
    records_of_tx: u64,
    collected: Collected,
    /// The last entry's place in the order of writes.
    last_entry: OrderSeq,
    /// When its last message about a store reaches the controller.
    told: Cycle,
    /// Lines on their way that its commit waits for.
    awaited: u32,
    /// When the controller knows of its commit.
    asked: Cycle,
    /// The non-volatile register: the first transaction that has not committed.
    uncommitted: u64,
    /// Number of the transaction that runs, or runs next, among those that commit something.
    number: u64,
}

struct OptUndo {
    threads: Vec<Thread>,
    /// Lines of open transactions on their way home, oldest first.
    flights: Vec<Flight>,
    entries_per_record: usize,
    mutants: MutantSet,
}

impl OptUndo {
    fn new(context: &DesignContext) -> Result<OptUndo, ConfigError> {
        let config = context.config.get::<OptUndoConfig>();
        context
            .check_thread_areas("opt-undo.log_bytes_per_thread", config.log_bytes_per_thread.0)?;
        let thread = |t| Thread {
            core: 0,
            lines: Lines::default(),
            tx: 0,
            area: Area::of(context, t),
            record: 0,
            records_of_tx: 0,
            collected: Collected::default(),
            last_entry: 0,
            told: 0,
            awaited: 0,
            asked: 0,
            uncommitted: context.first_transaction,
            number: context.first_transaction,
        };
        Ok(OptUndo {
            threads: (0..context.threads).map(thread).collect(),
            flights: Vec::new(),
            entries_per_record: config.entries_per_record as usize,
            mutants: context.mutants,
        })
    }
}

impl Plug for OptUndo {
    fn tx_begin(&mut self, _m: &mut Machine, tx: Tx) -> Stall {
        self.threads[tx.thread as usize].tx = tx.number;
        Stall::None
    }

    fn store(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let thread = &mut self.threads[store.tx.thread as usize];
        let known = thread.lines.take_in(store.addr.line()).known;
        if known >> store.addr.word_in_line() & 1 == 0 {
            thread.core = store.core;
            self.log(m, store);
        }
        Stall::None
    }

    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        if self.threads[tx.thread as usize].lines.lines.is_empty() {
            return Stall::None;
        }
        self.end(m, tx.thread as usize);
        Stall::UntilReleased
    }

    fn wants_l1_evictions(&self) -> bool {
        true
    }

    fn l1_evict(&mut self, _m: &mut Machine, core: u32, line: LineAddr, _dirty: bool) {
        for thread in self.threads.iter_mut().filter(|t| t.core == core) {
            thread.lines.forget(line);
        }
    }

    fn llc_evict(&mut self, m: &mut Machine, line: LineAddr, _content: &LineData) -> RawAction {
        if self.threads.iter().all(|t| t.lines.find(line).is_none()) {
            return RawAction::Send { after: 0, token: 0 };
        }
        let mut after = self.headers_of(m, line);
        if self.mutants.has(Mutant::EvictionOvertakesHeader) {
            after = 0;
        }
        RawAction::Send { after, token: self.departs(line, true) }
    }

    fn on_durable(&mut self, m: &mut Machine, token: Token) {
        self.arrived(m, commit::line_of(token));
    }

    fn timer(&mut self, m: &mut Machine, token: u64) {
        match Step::of(token) {
            (Step::Removal, thread) => self.remove_log(m, thread),
            (Step::Acknowledgement, thread) => self.acknowledge(m, thread),
        }
    }

    fn registers(&self) -> Vec<u64> {
        self.threads.iter().map(|t| t.uncommitted).collect()
    }
}
