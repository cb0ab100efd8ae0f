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
//!   the levels to the controller, one leaving the L1 every `push_interval_cycles`. The controller tells
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
//! - **RawAction** from the LLC puts a line with uncommitted words into the pool, too; misses on lines in
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
//! | `mod` | parameters, state, hooks, power failure |
//! | `gather` | lines on their way out of the caches and into the pool |
//! | `overflow` | undo logging when they find no place |
//! | `commit` | commit and drain |
//! | `pool`, `write_set` | what the pool holds; what transactions have stored |
//! | `undo_log` | what an organization of the undo log does |
//! | `circular_log` | records in circular areas, and recovery from them |
//! | `load_aware_log` | records in load-aware blocks |
//! | `chained_record` | what these have in PM, and recovery along their chains |
//! | `cost` | what the hardware costs |
//! | `cover` | states worth reaching |

mod chained_record;
mod circular_log;
mod commit;
mod cost;
mod cover;
mod gather;
mod load_aware_log;
mod overflow;
mod pool;
mod undo_log;
mod write_set;

use cover::{COVER_POINTS, Cover};
use pool::{ByLine, Coming, Draining, Gathered, Stage};
use undo_log::{UndoLog, format, recover};
use write_set::WriteSet;

use graven_base::config::{ConfigError, Size};
use graven_base::ids::Tx;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::surviving::SurvivingImage;
use graven_base::time::Cycle;
use graven_base::{choice, section};
use graven_machine::config::ControllerConfig;
use graven_machine::design::{
    DesignContext, DesignInfo, Fill, Guarantee, MutantSet, Plug, RawAction, Stall, Store,
};
use graven_machine::machine::Machine;
use graven_machine::mutants;
use graven_machine::request::Token;

choice! {
    /// What is logged when the pool overflows.
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
        /// Whether lines are pushed before the end of their transaction.
        proactive_flush: bool = true, (), "";
        /// Lines that a transaction stored to last and that are not pushed yet.
        recent_lines: u32 = 4, 1..=64, "lines";
        /// Whether a line that finds no place waits if a committed one is about to leave; it is logged otherwise.
        wait_for_place: bool = true, (), "";
        /// What is logged when the pool overflows.
        overflow_log: OverflowLog = OverflowLog::Lines, (), "";
        /// Circular area of each thread for undo records, of 128 B per line.
        log_bytes_per_thread: Size = Size::kb(128), Size(128)..=Size::mb(64), "B";
        /// Whether undo data goes to LALEA's blocks instead, each in the bank that has the fewest pending operations.
        load_aware_log: bool = false, (), "";
    }
}

mutants! {
    /// A commit takes whole lines, whoever else has words in them.
    WholeLinesCommitted = "whole-lines-committed";
    /// Recovery writes whole lines back, whoever else has words in them.
    WholeLinesUndone = "whole-lines-undone";
    /// A commit does not wait until the controller has all lines.
    CommitBeforeLines = "commit-before-lines";
    /// A commit does not wait until lines that were logged are durable at home.
    HomeNotAwaited = "home-not-awaited";
    /// A commit leaves one of its lines behind.
    LineNotCommitted = "line-not-committed";
    /// The commit register moves when the controller has all lines.
    RegisterEarly = "register-early";
    /// The commit register moves with the acknowledgement.
    RegisterLate = "register-late";
    /// A line that was pushed early is not pushed again.
    EarlyPushFinal = "early-push-final";
    /// Newer content of a line that is on its way home is forgotten.
    NewerForgotten = "newer-forgotten";
    /// A line goes home while its undo records are on their way.
    RecordsNotAwaited = "records-not-awaited";
    /// An undo record counts when its data is durable, without its header.
    HeaderNotAwaited = "header-not-awaited";
    /// The header of an undo record does not wait for the data.
    HeaderOvertakesData = "header-overtakes-data";
    /// A line that finds no place goes home without undo records.
    OverflowNotLogged = "overflow-not-logged";
    /// Only one of the transactions with words in a line is logged.
    OneTransactionLogged = "one-transaction-logged";
    /// A transaction gives up places that hold other transactions' words, too.
    SharedPlacesGivenUp = "shared-places-given-up";
    /// A transaction gives up its places while its commit message is on its way.
    CommittingPlacesGivenUp = "committing-places-given-up";
    /// A place is free when its line is sent.
    PlaceFreedAtSending = "place-freed-at-sending";
    /// The newest version of a line that drains is taken for the one that is durable.
    NewestVersionDrained = "newest-version-drained";
    /// The youngest line that drains is not saved at a power failure.
    YoungestNotSaved = "youngest-not-saved";
    /// Lines of open transactions are saved at a power failure, too.
    UncommittedSaved = "uncommitted-saved";
    /// What drains is saved newest first.
    SavedNewestFirst = "saved-newest-first";
    /// Recovery undoes committed transactions, too.
    CommittedUndone = "committed-undone";
    /// The torn bits of an undo record are not looked at.
    TornBitsIgnored = "torn-bits-ignored";
    /// The log areas are put to use as they are found.
    LogNotCleared = "log-not-cleared";
    /// LR names a record whose header is on its way.
    ChainBeforeHeader = "chain-before-header";
    /// LR names a record when the first line of its header is durable.
    SecondLineNotAwaited = "second-line-not-awaited";
    /// A line goes home when its record is durable, although older ones of the chain are not.
    LineBeforeChain = "line-before-chain";
    /// A commit leaves LR as it is.
    ChainNotCleared = "chain-not-cleared";
    /// The first record of a transaction names the last one of the transaction before.
    ChainRunsOn = "chain-runs-on";
    /// Recovery undoes the record that LR names and no more.
    NextPointerIgnored = "next-pointer-ignored";
    /// Undo blocks are free when their record is in the chain.
    BlocksReleasedEarly = "blocks-released-early";
}

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "lad",
    summary: "gathers a transaction's lines in the controller; undo logging when they do not fit",
    paper: "LAD as in Silo §V, §VI-A and LALEA §II-C",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(LadConfig::default())),
    build: |context| Ok(Box::new(Lad::new(context)?)),
    format,
    recover,
    mutants: Mutant::NAMED,
    cover_points: COVER_POINTS,
    stress: &[
        ("controller.adr_entries", &["1", "2", "3", "4", "16"]),
        ("lad.push_interval_cycles", &["0", "1", "40"]),
        ("lad.proactive_flush", &["true", "false"]),
        ("lad.recent_lines", &["1", "2", "4"]),
        ("lad.wait_for_place", &["true", "false"]),
        ("lad.overflow_log", &["lines", "transaction"]),
        ("lad.log_bytes_per_thread", &["2 KB", "4 KB"]),
        ("lad.load_aware_log", &["false", "true"]),
        ("lalea.fle_entries+lalea.fh_entries", &["1+1", "2+1", "4+2", "1024+256"]),
    ],
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same with the papers' granularity.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "lad-literal",
    summary: "lad with whole lines committed and undone, as published (loses data)",
    default: false,
    inherent: Mutant::all(&[Mutant::WholeLinesCommitted, Mutant::WholeLinesUndone]),
    ..INFO
};

/// The same with LALEA's allocator under its undo log.
pub const LALEA: DesignInfo = DesignInfo {
    name: "lalea-lad",
    summary: "lad with each block of its undo log in the least loaded bank",
    paper: "LALEA §III-A, §IV-A",
    settings: &[("lad.load_aware_log", "true")],
    cost: cost::WITH_LALEA,
    ..INFO
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Waits for the controller to have all lines.
    Preparing,
    /// The commit message is on its way, or will be as soon as the controller's message is there.
    Committing,
}

#[derive(Clone, Debug)]
struct Thread {
    writes: WriteSet,
    phase: Phase,
    tx: u64,
    /// Lines with words of this thread that are on their way into the pool or to PM.
    underway: u32,
    /// When the core knows that the last of them was received.
    received: Cycle,
    /// Every line of the transaction is logged.
    logs_all: bool,
}

/// What timers and durable writes are about; the rest of the token is a line, a thread or a number.
#[derive(Clone, Copy, Debug)]
enum About {
    Arrival = 1,
    Commit,
    Acknowledgement,
    /// The content of a line that PM has.
    Old,
    Record,
    Home,
    Drain,
}

impl About {
    fn line(self, line: LineAddr) -> Token {
        line.0 << 3 | self as u64
    }

    fn thread(self, thread: usize) -> Token {
        self.number(thread as u64)
    }

    fn number(self, number: u64) -> Token {
        number << 3 | self as u64
    }
}

struct Lad {
    config: LadConfig,
    /// Places of the pool.
    places: usize,
    /// How many of them are in use, and since when.
    in_use: (u64, Cycle),
    mutants: MutantSet,
    threads: Vec<Thread>,
    coming: ByLine<Coming>,
    gathered: ByLine<Gathered>,
    /// Oldest first.
    draining: Vec<Draining>,
    log: Box<dyn UndoLog>,
    /// Lines that may go home; empty between two events, kept for its memory.
    logged: Vec<LineAddr>,
}

impl Lad {
    fn new(context: &DesignContext) -> Result<Lad, ConfigError> {
        let config = context.config.get::<LadConfig>().clone();
        let thread = |_| Thread {
            writes: WriteSet::default(),
            phase: Phase::Running,
            tx: 0,
            underway: 0,
            received: 0,
            logs_all: false,
        };
        Ok(Lad {
            threads: (0..context.threads).map(thread).collect(),
            coming: ByLine::new(),
            gathered: ByLine::new(),
            draining: Vec::new(),
            log: undo_log::new(context)?,
            logged: Vec::new(),
            mutants: context.mutants,
            places: context.config.get::<ControllerConfig>().adr_entries as usize,
            in_use: (0, 0),
            config,
        })
    }
}

impl Plug for Lad {
    fn tx_begin(&mut self, _m: &mut Machine, tx: Tx) -> Stall {
        self.threads[tx.thread as usize].tx = tx.number;
        Stall::None
    }

    fn store(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let writes = &mut self.threads[store.tx.thread as usize].writes;
        let in_vain = writes.store(store);
        if in_vain {
            m.cover(Cover::PushInVain as usize);
            writes.lines[writes.last].pushed = self.mutants.has(Mutant::EarlyPushFinal);
        }
        if self.config.proactive_flush {
            m.count().forced_writebacks_in_vain += u64::from(in_vain);
            let off = writes.touch(self.config.recent_lines as usize);
            if let Some(written) = off.map(|at| &mut writes.lines[at]).filter(|w| !w.pushed) {
                written.early = true;
                let line = written.line;
                self.push(m, line, 0);
            }
        }
        Stall::None
    }

    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        let t = tx.thread as usize;
        if self.threads[t].writes.lines.is_empty() {
            return Stall::None;
        }
        let mut wait = 0;
        for at in 0..self.threads[t].writes.lines.len() {
            let written = &self.threads[t].writes.lines[at];
            if !written.pushed {
                let line = written.line;
                self.push(m, line, wait);
                wait += Cycle::from(self.config.push_interval_cycles);
            }
        }
        self.threads[t].phase = Phase::Preparing;
        self.commit_if_prepared(m, t);
        self.refuse_if_stuck(m);
        Stall::UntilReleased
    }

    fn llc_evict(&mut self, m: &mut Machine, line: LineAddr, content: &LineData) -> RawAction {
        let open = self.threads.iter().any(|t| t.writes.find(line).is_some());
        if !open && self.coming.get(line).is_none() && self.gathered.get(line).is_none() {
            return RawAction::Send { after: 0, token: 0 };
        }
        if self.leaves(m, line, content, m.now()) {
            self.place(m, line);
        }
        RawAction::Absorb
    }

    fn llc_fill(&mut self, _m: &mut Machine, line: LineAddr, _delay: Cycle) -> Fill {
        let coming = self.coming.get(line).map(|c| c.data);
        match coming.or_else(|| self.gathered.get(line).map(|g| g.data)) {
            Some(data) => Fill::Buffer(data, self.config.pool_read_cycles.into()),
            None => Fill::Home,
        }
    }

    fn read_done(&mut self, m: &mut Machine, _token: Token, line: LineAddr, content: &LineData) {
        self.write_records(m, line, content);
    }

    fn on_durable(&mut self, m: &mut Machine, token: Token) {
        let line = LineAddr(token >> 3);
        match token & 7 {
            t if t == About::Record as u64 => self.log_written(m, token >> 3),
            t if t == About::Drain as u64 => self.drained(m, line),
            t if t == About::Home as u64 => self.is_home(m, line),
            other => unreachable!("no write carries token {other}"),
        }
    }

    fn timer(&mut self, m: &mut Machine, token: u64) {
        let (line, thread) = (LineAddr(token >> 3), (token >> 3) as usize);
        match token & 7 {
            t if t == About::Commit as u64 => self.commit(m, thread),
            t if t == About::Acknowledgement as u64 => self.acknowledge(m, thread),
            t if t == About::Arrival as u64 => {
                // A line may be received, by joining an older version, before its own time.
                if self.coming.get(line).is_some_and(|c| c.stage == Stage::Travelling) {
                    self.place(m, line);
                }
            }
            other => unreachable!("no timer carries token {other}"),
        }
    }

    /// Lines on their way or gathered belong to open transactions, if there are any.
    fn is_idle(&self) -> bool {
        let open = self.threads.iter().any(|t| !t.writes.lines.is_empty());
        let none_left = self.coming.lines.is_empty() && self.gathered.lines.is_empty();
        self.draining.is_empty() && (open || none_left)
    }

    fn power_failure(&self, image: &mut SurvivingImage) {
        let too_few = usize::from(self.mutants.has(Mutant::YoungestNotSaved));
        let mut saved: Vec<&Draining> = self.draining.iter().collect();
        saved.truncate(saved.len().saturating_sub(too_few));
        if self.mutants.has(Mutant::SavedNewestFirst) {
            saved.reverse();
        }
        for drain in saved {
            image.note(|| format!("the pool: words {:#010b} of {}", drain.mask, drain.line.addr()));
            image.store_line(drain.line, drain.mask, &drain.data);
        }
        if self.mutants.has(Mutant::UncommittedSaved) {
            for (line, entry) in self.gathered.lines.iter().zip(&self.gathered.values) {
                image.store_line(*line, WordMask::MAX, &entry.data);
            }
        }
    }

    fn registers(&self) -> Vec<u64> {
        self.log.registers()
    }
}
