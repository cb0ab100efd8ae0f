//! Transactions without time, before a region in steady state is measured ([`super::region`]).
//!
//! The programs run as they always do, but in turns of one transaction, drawn among the threads, and all that they change is what they store and which
//! lines the caches hold. No time passes, memory and cores are not asked, the design is not told. Structures and caches are
//! afterwards as after as many transactions with time, up to the order in which threads interleave: caches are full, and dirty
//! lines are in them as the design would have left them ([`Leaves`]). What only time brings about (a scan, a collection, the
//! content of a log or of a mapping table) is not there yet; the timed warm-up that follows is for that.
//!
//! All that is the same under every design, up to what it leaves in the caches. So of simulations that begin alike one executes the
//! transactions, and the others have what came of them ([`super::aged`]).

use super::error::SimError;
use super::run::Simulation;
use crate::caches::hierarchy::{Access, Eviction};
use crate::config::LlcConfig;
use crate::design::Leaves;
use crate::program::{Op, Persist};
use crate::stats::Counters;
use crate::stats::region::RegionConfig;
use graven_base::memory::{Addr, LINE_BYTES, LineAddr, mix};

/// Turns between looks at who wants to cancel.
const TURNS_PER_LOOK: u64 = 1024;

/// Values that a thread's program was told in the course of them.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Operations that it was asked for.
    pub operations: u64,
    /// The values of its loads, in order.
    pub loaded: Vec<u64>,
}

/// End of a thread's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// A transaction has ended.
    Transaction,
    /// Another thread has a lock that it needs.
    Waits {
        /// True if the thread executed something in this turn before it needed the lock: it may
        /// have released others.
        executed: bool,
    },
    /// There is nothing to do without time: its program has ended, or does something to the machine.
    Over,
}

impl Simulation {
    /// Executes transactions without time, as many as the region's configuration asks for, and returns how many these are, over all
    /// threads. `told` keeps what the programs load, for simulations that begin alike.
    ///
    /// # Errors
    /// The watcher has cancelled the run.
    pub(super) fn fast_forward(&mut self, mut told: Option<&mut [Told]>) -> Result<u64, SimError> {
        let plan = self.spec.config.get::<RegionConfig>().clone();
        let (mut transactions, mut operations) = (0, 0);
        let lines = self.spec.config.get::<LlcConfig>().bytes.0 / LINE_BYTES;
        let mut caches = Filling::default();
        let (mut turns, mut fruitless) = (0, 0);
        let threads = self.threads.len();
        loop {
            let is_filled =
                caches.resident >= lines || transactions >= 2 * plan.fast_forward_transactions;
            let is_aged = transactions >= plan.fast_forward_transactions && is_filled;
            if is_aged || operations >= plan.fast_forward_operations || fruitless > threads {
                return Ok(transactions);
            }
            // By turns they would march in step, each at the same place of its bank, as threads with time never do. After a
            // fruitless turn, which was of any thread, each has its turn.
            let thread = if fruitless > 0 { turns } else { mix(turns) } as usize % threads;
            let told = told.as_deref_mut().map(|told| &mut told[thread]);
            let turn = self.turn_without_time(thread, &mut caches, &mut operations, told);
            fruitless = match turn {
                Turn::Transaction => 0,
                // Others may have waited for what it has released: all have their turn again.
                Turn::Waits { executed: true } => 1,
                Turn::Waits { executed: false } | Turn::Over => fruitless + 1,
            };
            transactions += u64::from(turn == Turn::Transaction);
            turns += 1;
            if turns.is_multiple_of(TURNS_PER_LOOK) && self.control.report(0) {
                return Err(SimError::Cancelled);
            }
        }
    }

    /// Dirty lines are in the caches, and in PM the stores to others: now they are as the design would have left them.
    pub(super) fn leave_lines(&mut self) {
        let leaves = if self.design.has_dirty_words() {
            Leaves::AtHome
        } else {
            (self.spec.design.leaves)(&self.spec.config)
        };
        if leaves == Leaves::Dirty {
            return;
        }
        for line in self.machine.caches.dirty_lines() {
            self.machine.bring_home(line);
            if leaves == Leaves::Clean && self.machine.memory.is_pm(line.addr()) {
                self.machine.caches.clean(line);
            }
        }
    }

    /// Executes a thread's program up to the end of a transaction.
    fn turn_without_time(
        &mut self,
        thread: usize,
        caches: &mut Filling,
        operations: &mut u64,
        mut told: Option<&mut Told>,
    ) -> Turn {
        let mut executed = false;
        loop {
            let t = &mut self.threads[thread];
            let (id, core) = (t.id, t.core);
            let op = match t.op.take() {
                Some(op) => op,
                None => {
                    if let Some(told) = &mut told {
                        told.operations += 1;
                    }
                    t.program.next(std::mem::take(&mut t.value))
                }
            };
            match op {
                Op::Load { at } => {
                    *operations += 1;
                    t.load_without_time();
                    t.value = self.machine.load(at.addr);
                    if let Some(told) = &mut told {
                        told.loaded.push(t.value);
                    }
                    self.touch(caches, core, at.addr.line(), false);
                }
                Op::Store { at, value } | Op::StoreNonTemporal { at, value } => {
                    *operations += 1;
                    self.store_without_time(caches, core, at.addr, value);
                }
                Op::Persist(
                    Persist::StoreUncached { addr, value, .. } | Persist::StoreOwn { addr, value },
                ) => {
                    *operations += 1;
                    self.store_without_time(caches, core, addr, value);
                }
                Op::Persist(Persist::WriteBack(line)) => {
                    if self.machine.caches.clean(line).is_some() {
                        self.machine.bring_home(line);
                    }
                }
                Op::Compute { .. }
                | Op::Persist(Persist::Fence | Persist::Order(_))
                | Op::Ending => {}
                Op::TxBegin => t.transactions += 1,
                Op::TxEnd => return Turn::Transaction,
                Op::Lock { lock } => {
                    if !self.locks.is_free_for(lock, id) {
                        self.threads[thread].op = Some(op);
                        return Turn::Waits { executed };
                    }
                    self.locks.take(lock, id);
                    let addr = self.locks.addr(lock);
                    self.store_without_time(caches, core, addr, u64::from(id) + 1);
                }
                Op::Unlock { lock } => {
                    let addr = self.locks.addr(lock);
                    self.store_without_time(caches, core, addr, 0);
                    let next = self.locks.release(lock, id);
                    assert!(next.is_none(), "threads do not queue up without time");
                }
                Op::Disturb(_) | Op::Done => {
                    t.op = Some(op);
                    return Turn::Over;
                }
            }
            executed = true;
        }
    }

    fn store_without_time(&mut self, caches: &mut Filling, core: u32, addr: Addr, value: u64) {
        self.machine.perform_store(addr, value);
        self.touch(caches, core, addr.line(), true);
    }

    /// A core accesses a line, which is in its L1 afterwards.
    #[inline]
    fn touch(&mut self, caches: &mut Filling, core: u32, line: LineAddr, write: bool) {
        let machine = &mut self.machine;
        let counters = &mut caches.counters;
        if let Access::Miss(_) = machine.caches.access(core, line, write, counters) {
            machine.expect_fill(core, line);
            machine.caches.fill(core, line);
            caches.resident += 1;
            if write {
                machine.caches.access(core, line, true, counters);
            }
        }
        while let Some(eviction) = machine.caches.take_eviction() {
            if let Eviction::Llc { line, dirty, .. } = eviction {
                caches.resident -= 1;
                if dirty {
                    machine.bring_home(line);
                }
            }
        }
    }
}

/// Progress of the caches' filling.
#[derive(Default)]
struct Filling {
    /// Lines in the LLC.
    resident: u64,
    /// Counted, and not looked at.
    counters: Counters,
}
