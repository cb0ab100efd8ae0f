//! The design's state, what it does at a store, at the end of a transaction and when a line leaves or misses in the caches;
//! the victim cache.

use std::collections::VecDeque;

use graven_base::config::ConfigError;
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{LineAddr, LineData};
use graven_base::thread_set::ThreadSet;
use graven_base::time::Cycle;
use graven_machine::design::{
    self, AbsorbingDesign, Design, DesignContext, Fill, Miss, Stall, Store, Writeback,
    WritebackAction,
};

use super::back_end::Batch;
use super::event::Event;
use super::logging::LogEntry;
use super::record::{Area, SEQUENCE};
use super::{OptRedoConfig, Rules};
use crate::mechanisms::victims::{Parked, Victim, VictimRules, Victims};

pub(super) type Port<'a> = design::Port<'a, OptRedo>;

/// Resources that a thread's store waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// An entry of the log buffer.
    Buffer,
    /// Slots of the log area, which the back end is to truncate.
    Area,
    /// Places in the victim cache for the lines that wait for one.
    Victims,
}

/// Phases of a thread on the way to its next commit record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// The message of the transaction's end is on its way.
    Ending,
    /// The controller has it, and waits for the transaction's records.
    Ended,
}

/// A thread's log area and log buffer, and the transaction that it is in.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) area: Area,
    /// Number of the next record.
    pub(super) number: u64,
    /// Number of the oldest record whose slot may not be used again.
    pub(super) head: u64,
    /// Number of the transaction that runs.
    pub(super) tx: u64,
    /// Number of its update records.
    pub(super) updates: u64,
    /// The line of its latest store.
    pub(super) last: Option<LineAddr>,
    /// The log buffer.
    pub(super) entries: Vec<LogEntry>,
    /// Number of its entries that are not free.
    pub(super) occupied: usize,
    /// Lines of its records that are not durable.
    pub(super) lines_on_their_way: u32,
    pub(super) phase: Phase,
    pub(super) held: Option<Hold>,
}

/// A transaction whose commit record was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    pub(super) sequence: u64,
    pub(super) thread: ThreadId,
    /// Number of its first record.
    pub(super) first: u64,
    pub(super) updates: u64,
    /// When the back end is to begin without waiting for more; known when the commit record is durable.
    pub(super) due: Option<Cycle>,
}

/// Writes to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    /// A line of the update record in an entry of a thread's log buffer.
    Record { thread: usize, entry: usize },
    /// The commit record of a thread's transaction.
    Commit { thread: usize },
    /// An update in place.
    Update,
    /// A truncation word.
    Truncation,
}

/// Lines of a batch's record that the back end reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Read {
    Data { record: usize },
    Metadata { record: usize },
}

/// Purposes of timers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// The controller hears of the end of a thread's transaction.
    End { thread: usize },
    /// A transaction has waited for the back end long enough.
    Due,
}

/// The controller's state.
pub(super) struct OptRedo {
    pub(super) config: OptRedoConfig,
    pub(super) rules: Rules,
    pub(super) threads: Vec<Thread>,
    pub(super) victims: Victims,
    /// Commit sequence number of the newest transaction.
    pub(super) sequence: u64,
    /// Every transaction up to this one is at home.
    pub(super) retired: u64,
    /// Up to this one, the back end was asked to begin at once.
    pub(super) requested: u64,
    /// Transactions that the back end has not begun with, in commit order.
    pub(super) committed: VecDeque<Committed>,
    /// Number of these, from the oldest on, whose commit records are durable.
    pub(super) durable: usize,
    pub(super) batch: Option<Batch>,
}

impl OptRedo {
    pub(super) fn new(context: &DesignContext) -> Result<OptRedo, ConfigError> {
        let config = context.config.get::<OptRedoConfig>().clone();
        context
            .check_thread_areas("opt-redo.log_bytes_per_thread", config.log_bytes_per_thread.0)?;
        let thread = |t| Thread {
            area: Area::of(context, t),
            number: 0,
            head: 0,
            tx: 0,
            updates: 0,
            last: None,
            entries: vec![LogEntry::default(); config.log_buffer_entries as usize],
            occupied: 0,
            lines_on_their_way: 0,
            phase: Phase::Running,
            held: None,
        };
        Ok(OptRedo {
            rules: Rules::of(context),
            threads: (0..context.threads).map(thread).collect(),
            victims: Victims::new(config.victim_cache_lines),
            sequence: context.first_number(SEQUENCE),
            retired: context.first_number(SEQUENCE),
            requested: 0,
            committed: VecDeque::new(),
            durable: 0,
            batch: None,
            config,
        })
    }

    /// Threads whose transactions are open with stores, or have ended and have no commit record yet.
    fn open_threads(&self) -> ThreadSet {
        let open = self.threads.iter().enumerate().filter(|(_, t)| t.updates > 0);
        open.fold(0, |set, (t, _)| set | 1 << t)
    }

    /// Only transactions that have ended make room.
    pub(super) fn fail_if_victims_wait_for_ever(&self, port: &mut Port<'_>) {
        if self.victims.has_waiting() && !self.back_end_has_work() {
            port.fail(format!(
                "transactions in progress have more lines outside the caches than opt-redo.victim_cache_lines = {} holds",
                self.config.victim_cache_lines
            ));
        }
    }
}

impl Design for OptRedo {
    type Write = Write;
    type Read = Read;
    type Timer = Timer;
    type Event = Event;

    /// A store is merged into a record, or makes one, or waits until it can.
    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let t = store.tx.thread as usize;
        if self.merge(port, store) {
            return Stall::None;
        }
        let Some(hold) = self.must_wait(port, store.tx) else {
            self.threads[t].last = Some(store.addr.line());
            self.log(port, store);
            return Stall::None;
        };
        self.threads[t].held = Some(hold);
        port.emit(Event::StoreWaits { hold });
        self.begin_checkpoint_if_due(port);
        Stall::Retry
    }

    /// The records that are still buffered are sent, and then the message of the end.
    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        let thread = tx.thread as usize;
        if self.threads[thread].updates == 0 {
            return Stall::None;
        }
        self.send_all(port, thread);
        self.threads[thread].phase = Phase::Ending;
        port.send_to_controller(0, Timer::End { thread });
        Stall::UntilReleased
    }

    fn on_llc_miss(&mut self, port: &mut Port<'_>, miss: &Miss) -> Fill {
        let line = miss.line;
        self.victims.fill(port, line, self.config.victim_read_cycles)
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Record { thread, entry } => self.record_durable(port, thread, entry),
            Write::Commit { thread } => self.commit_durable(port, thread),
            Write::Update => self.update_durable(port),
            Write::Truncation => self.truncation_durable(port),
        }
    }

    fn on_read(&mut self, port: &mut Port<'_>, read: Read, _line: LineAddr, content: &LineData) {
        self.record_read(port, read, content);
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Timer) {
        match timer {
            Timer::End { thread } => self.ended(port, thread),
            Timer::Due => self.begin_checkpoint_if_due(port),
        }
    }

    fn start_maintenance(&mut self, port: &mut Port<'_>) {
        self.requested = self.sequence;
        self.begin_checkpoint_if_due(port);
    }

    fn is_idle(&self) -> bool {
        !self.back_end_has_work()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        let of_fullest = |taken: fn(&Thread) -> u64| self.threads.iter().map(taken).max();
        match structure {
            0 => of_fullest(|thread| thread.occupied as u64).unwrap_or(0),
            1 => self.victims.len() as u64,
            2 => self.batch.as_ref().map_or(0, |batch| batch.transactions() as u64),
            _ => of_fullest(|thread| thread.number - thread.head).unwrap_or(0),
        }
    }
}

impl AbsorbingDesign for OptRedo {
    const DROPS_LINES: bool = true;

    /// A line waits for those that are open and for those that are not at home; if there are none, it goes home.
    fn on_dirty_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        content: &LineData,
    ) -> WritebackAction<Write> {
        let open = self.open_threads();
        let newest =
            if self.rules.parked_for_committed_too() { self.sequence } else { self.retired };
        let rules = VictimRules {
            lines_are_kept: self.rules.evictions_are_parked(),
            newer_replaces: self.rules.newer_victim_replaces(),
            overflow_waits: self.rules.overflow_waits(),
        };
        let victim = Victim { data: *content, open, newest };
        let Some(parked) = self.victims.take_in(port, line, victim, self.retired, rules) else {
            return WritebackAction::Send(Writeback::FREE);
        };
        if parked == Parked::Waits {
            self.begin_checkpoint_if_due(port);
            self.fail_if_victims_wait_for_ever(port);
        }
        WritebackAction::Absorb
    }
}
