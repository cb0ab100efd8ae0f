//! State and hooks: what the L1s, the controller and the non-volatile registers keep, and when they act.

use graven_base::config::ConfigError;
use graven_base::ids::Tx;
use graven_base::memory::{LineAddr, LineData};
use graven_base::time::Cycle;
use graven_machine::design::{
    self, Cause, Departure, DepartureDesign, Design, DesignContext, Stall, Store, Unused, Writeback,
};
use graven_machine::request::WriteOrder;

use super::commit::Flight;
use super::event::Event;
use super::lines::Lines;
use super::record::{Area, Collected};
use super::{OptUndoConfig, Rules};

pub(super) type Port<'a> = design::Port<'a, OptUndo>;

/// A thread's log and the state of its transaction.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// Whose L1 its stores go to.
    pub(super) core: u32,
    pub(super) lines: Lines,
    /// Number of its running transaction, as the program counts them.
    pub(super) tx: u64,
    pub(super) area: Area,
    /// Number of the record that is being collected, or of the next, over all passes.
    pub(super) record: u64,
    /// Records of the transaction so far.
    pub(super) records_of_tx: u64,
    pub(super) collected: Collected,
    /// The last entry's place in the order of writes.
    pub(super) last_entry: WriteOrder,
    /// When its last message about a store reaches the controller.
    pub(super) told: Cycle,
    /// Lines on their way that its commit waits for.
    pub(super) awaited: u32,
    /// When the controller knows of its commit.
    pub(super) asked: Cycle,
    /// The non-volatile register: the first transaction that has not committed.
    pub(super) uncommitted: u64,
    /// Number of the transaction that runs, or runs next, among those that commit something.
    pub(super) number: u64,
}

/// The design.
pub(super) struct OptUndo {
    pub(super) threads: Vec<Thread>,
    /// Lines of open transactions on their way home, oldest first.
    pub(super) flights: Vec<Flight>,
    pub(super) entries_per_record: usize,
    pub(super) rules: Rules,
}

/// Writes to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// A line of an open transaction on its way home.
    Home(LineAddr),
}

/// A message of a commit that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The order to remove the log reaches the controller.
    Removal { thread: usize },
    /// The answer of the controller reaches the core.
    Acknowledgement { thread: usize },
}

impl OptUndo {
    pub(super) fn new(context: &DesignContext) -> Result<OptUndo, ConfigError> {
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
            last_entry: WriteOrder::NONE,
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
            rules: Rules::of(context),
        })
    }
}

impl Design for OptUndo {
    type Write = Write;
    type Read = Unused;
    type Timer = Timer;
    type Event = Event;

    fn on_tx_begin(&mut self, _port: &mut Port<'_>, tx: Tx) -> Stall {
        self.threads[tx.thread as usize].tx = tx.number;
        Stall::None
    }

    /// A store to a word that the controller knows of needs nothing; no store waits.
    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let thread = &mut self.threads[store.tx.thread as usize];
        let known = thread.lines.take_in(store.addr.line()).known;
        if known >> store.addr.word_in_line() & 1 == 0 {
            thread.core = store.core;
            self.log(port, store);
        }
        Stall::None
    }

    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        if self.threads[tx.thread as usize].lines.lines.is_empty() {
            return Stall::None;
        }
        self.end(port, tx.thread as usize);
        Stall::UntilReleased
    }

    /// *Log before data*: a line of open transactions waits for the headers of their entries.
    fn on_llc_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        _content: &LineData,
    ) -> Writeback<Write> {
        if self.threads.iter().all(|t| t.lines.find(line).is_none()) {
            return Writeback::FREE;
        }
        let mut after = self.headers_of(port, line);
        if !self.rules.eviction_follows_headers() {
            after = WriteOrder::NONE;
        }
        Writeback::after(after).reported(self.departs(line, true))
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        let Write::Home(line) = write;
        self.arrived(port, line);
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Timer) {
        match timer {
            Timer::Removal { thread } => self.remove_log(port, thread),
            Timer::Acknowledgement { thread } => self.acknowledge(port, thread),
        }
    }

    /// Per thread: the first transaction that has not committed.
    fn registers(&self) -> Vec<u64> {
        self.threads.iter().map(|t| t.uncommitted).collect()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        let taken: fn(&Thread) -> u64 = match structure {
            0 => |thread| thread.collected.entries().len() as u64,
            _ => |thread| thread.records_of_tx,
        };
        self.threads.iter().map(taken).max().unwrap_or(0)
    }
}

impl DepartureDesign for OptUndo {
    /// The L1 forgets what it remembers of a line that leaves it.
    fn on_departure(&mut self, _port: &mut Port<'_>, departure: &Departure) {
        let &Departure { core, line, cause, .. } = departure;
        if matches!(cause, Cause::Downgraded { .. }) {
            return;
        }
        for thread in self.threads.iter_mut().filter(|t| t.core == core) {
            thread.lines.forget(line);
        }
    }
}
