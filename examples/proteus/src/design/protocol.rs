//! What cores and controller keep, and when they act.

use std::collections::{BTreeSet, VecDeque};

use graven::config::{ConfigError, CoreConfig, L1Config};
use graven::design::{
    self, Code, Design, DesignContext, Mutants, OpAction, SoftwareDesign, Stall, Store, Unused,
};
use graven::ids::{ThreadId, Tx};
use graven::memory::LineAddr;
use graven::program::Op;
use graven::surviving::SurvivingImage;
use graven::time::Cycle;

use super::event::Event;
use super::filter::Filter;
use super::log_area::Area;
use super::logging::{Flush, Pair};
use super::pending_queue::PendingQueue;
use super::{Mutant, ProteusConfig};

pub(super) type Port<'a> = design::Port<'a, Proteus>;

/// What is kept of a thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// On which it runs.
    pub(super) core: u32,
    /// Number of the open transaction.
    pub(super) transaction: Option<u64>,
    /// Its log area.
    pub(super) area: Area,
    /// The LTA register: the next slot, numbered over all passes.
    pub(super) next_slot: u64,
    /// Log entries of the open transaction.
    pub(super) entries: u64,
    /// Lines that the open transaction stores to.
    pub(super) lines: BTreeSet<LineAddr>,
    /// Log-load and log-flush of each store that has not been performed, in program order.
    pub(super) pairs: VecDeque<Pair>,
    /// The log lookup table.
    pub(super) filter: Filter,
    /// Log registers that wait for a place in the log queue, oldest first.
    pub(super) registers: VecDeque<Flush>,
    /// The log queue.
    pub(super) queue: Vec<Flush>,
    /// A store of it waits.
    pub(super) waits: bool,
}

/// The design.
pub(super) struct Proteus {
    pub(super) config: ProteusConfig,
    pub(super) threads: Vec<Thread>,
    pub(super) pending: PendingQueue,
    /// Cycles of a log-load that hits.
    pub(super) load_cycles: Cycle,
    /// Cores of the machine.
    pub(super) cores: u32,
    pub(super) mutants: Mutants<Mutant>,
}

/// What a write to memory is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    /// A log entry of a machine without log pending queue.
    Logged { thread: ThreadId, slot: u64 },
    /// An entry of the log pending queue.
    Spilled { thread: ThreadId, slot: u64 },
    /// The mark of a last entry that is in PM.
    Mark { thread: ThreadId },
}

/// What arrives when a timer fires, or is tried again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// A log-flush, at the controller.
    Flush { thread: ThreadId, slot: u64 },
    /// Its acknowledgement, at the core.
    Acknowledgement { thread: ThreadId, slot: u64 },
    /// The write queue may have a place.
    Spill,
    /// The tx-end of a thread, at the controller.
    End { thread: ThreadId },
    /// Its acknowledgement, at the core.
    Ended { thread: ThreadId },
}

impl Proteus {
    pub(super) fn new(context: &DesignContext) -> Result<Proteus, ConfigError> {
        let config = context.config.get::<ProteusConfig>().clone();
        let cores = context.config.get::<CoreConfig>().count;
        context
            .check_thread_areas("proteus.log_bytes_per_thread", config.log_bytes_per_thread.0)?;
        let thread = |t| Thread {
            core: t % cores,
            transaction: None,
            area: Area::of(context, t),
            next_slot: 0,
            entries: 0,
            lines: BTreeSet::new(),
            pairs: VecDeque::new(),
            filter: Filter::new(config.llt_entries as usize),
            registers: VecDeque::new(),
            queue: Vec::new(),
            waits: false,
        };
        Ok(Proteus {
            threads: (0..context.threads).map(thread).collect(),
            pending: PendingQueue::new(&config),
            load_cycles: context.config.get::<L1Config>().latency_cycles.into(),
            cores,
            mutants: context.mutants(),
            config,
        })
    }

    /// The thread's transaction is over.
    fn close(&mut self, t: ThreadId) {
        let thread = &mut self.threads[t as usize];
        thread.transaction = None;
        thread.entries = 0;
        thread.lines.clear();
        if !self.mutants.has(Mutant::FilterNotCleared) {
            thread.filter.clear();
        }
    }
}

impl Design for Proteus {
    type Write = Write;
    type Read = Unused;
    type Timer = Timer;
    type Event = Event;

    fn on_tx_begin(&mut self, _port: &mut Port<'_>, tx: Tx) -> Stall {
        self.threads[tx.thread as usize].transaction = Some(tx.number);
        Stall::None
    }

    /// The store leaves for the L1 when the log-flush of its block is acknowledged.
    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let t = store.tx.thread;
        self.catch_up(port, t);
        let pair = self.threads[t as usize].pairs.front().expect("a store has its log-load");
        assert_eq!(pair.addr, store.addr, "stores are performed in program order");
        if pair.executed && !self.must_wait(t, store.addr) {
            self.threads[t as usize].pairs.pop_front();
            return Stall::None;
        }
        port.emit(Event::StoreWaits { thread: t, addr: store.addr });
        self.threads[t as usize].waits = true;
        Stall::Retry
    }

    /// The lines are durable: the fence before has waited for them. The tx-end goes to the controller.
    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        let thread = &self.threads[tx.thread as usize];
        assert!(thread.pairs.is_empty(), "all stores of the transaction have been performed");
        if thread.entries == 0 {
            self.close(tx.thread);
            return Stall::None;
        }
        port.send_to_controller(0, Timer::End { thread: tx.thread });
        Stall::UntilReleased
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Logged { thread, slot } => self.acknowledge(port, thread, slot),
            Write::Spilled { thread, slot } => self.spilled(port, thread, slot),
            Write::Mark { thread } => self.ended(port, thread),
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Timer) {
        match timer {
            Timer::Flush { thread, slot } => self.receive(port, thread, slot),
            Timer::Acknowledgement { thread, slot } => self.acknowledged(port, thread, slot),
            Timer::Spill => self.spill_later(port),
            Timer::End { thread } => self.end(port, thread),
            Timer::Ended { thread } => {
                self.close(thread);
                port.release_here(thread);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.pending.is_idle()
    }

    /// The last entries of ended transactions say that those were committed whose entries are in PM.
    fn on_shutdown(&mut self, port: &mut Port<'_>) {
        self.spill_all(port);
    }

    /// The log pending queue is saved, oldest entry first.
    fn on_power_failure(&self, image: &mut SurvivingImage) {
        self.save(image);
    }
}

impl SoftwareDesign for Proteus {
    /// What the compiler inserts: log-load and log-flush before a store; at the end of a transaction a clwb for
    /// each of its lines, and a fence.
    fn before_op(
        &mut self,
        port: &mut Port<'_>,
        t: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction {
        if self.threads[t as usize].transaction.is_none() {
            return OpAction::Execute;
        }
        self.catch_up(port, t);
        match *op {
            Op::Store { at, .. } | Op::StoreNonTemporal { at, .. } if port.is_pm(at.addr) => {
                self.issue(port, t, at.addr, code);
            }
            Op::TxEnd if !self.threads[t as usize].lines.is_empty() => {
                let lines = &self.threads[t as usize].lines;
                if !self.mutants.has(Mutant::WriteBackMissing) {
                    lines.iter().for_each(|&line| code.clwb(line));
                }
                if !self.mutants.has(Mutant::LinesNotAwaited) {
                    code.fence();
                }
            }
            _ => {}
        }
        OpAction::Execute
    }
}
