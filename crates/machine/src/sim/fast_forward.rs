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
use crate::caches::hierarchy::{self, Eviction};
use crate::config::LlcConfig;
use crate::design::Leaves;
use crate::machine::Machine;
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

/// Threads' turns without time, each of a transaction.
struct Turns {
    threads: usize,
    taken: u64,
    /// Turns in a row in which nothing was done.
    fruitless: usize,
    transactions: u64,
}

impl Turns {
    fn of(threads: usize) -> Turns {
        Turns { threads, taken: 0, fruitless: 0, transactions: 0 }
    }

    /// The thread whose turn is next; `None` if no thread can do anything.
    ///
    /// By turns they would march in step, each at the same place of its bank, as threads with time never do. After a
    /// fruitless turn, which was of any thread, each has its turn.
    fn next(&self) -> Option<usize> {
        let number = if self.fruitless > 0 { self.taken } else { mix(self.taken) };
        (self.fruitless <= self.threads).then_some(number as usize % self.threads)
    }

    fn took(&mut self, turn: Turn) {
        self.fruitless = match turn {
            Turn::Transaction => 0,
            // Others may have waited for what it has released: all have their turn again.
            Turn::Waits { executed: true } => 1,
            Turn::Waits { executed: false } | Turn::Over => self.fruitless + 1,
        };
        self.transactions += u64::from(turn == Turn::Transaction);
        self.taken += 1;
    }
}

impl Simulation {
    /// Executes transactions beside the caches: those before the piece of a region that this simulation measures
    /// ([`super::in_pieces`]). Afterwards the simulation is as at its beginning, but for the progress of the programs: PM holds all
    /// that they have stored, and no cache holds a line.
    ///
    /// # Errors
    /// The watcher has cancelled the run.
    pub(super) fn pass_over(&mut self, transactions: u64) -> Result<(), SimError> {
        let mut turns = Turns::of(self.threads.len());
        let beside = &mut |_: &mut Machine, _: Access| {};
        while turns.transactions < transactions
            && let Some(thread) = turns.next()
        {
            turns.took(self.turn_without_time(thread, beside, None));
            self.look_without_time(&turns)?;
        }
        self.machine.bring_all_home();
        Ok(())
    }

    /// Looks from time to time at who wants to cancel.
    fn look_without_time(&self, turns: &Turns) -> Result<(), SimError> {
        let looks = turns.taken.is_multiple_of(TURNS_PER_LOOK);
        if looks && self.control.report(0) { Err(SimError::Cancelled) } else { Ok(()) }
    }

    /// Executes transactions without time, as many as the region's configuration asks for, and returns how many these are, over all
    /// threads. `told` keeps what the programs load, for simulations that begin alike.
    ///
    /// # Errors
    /// The watcher has cancelled the run.
    pub(super) fn fast_forward(&mut self, mut told: Option<&mut [Told]>) -> Result<u64, SimError> {
        let plan = self.spec.config.get::<RegionConfig>().clone();
        let lines = self.spec.config.get::<LlcConfig>().bytes.0 / LINE_BYTES;
        let mut caches = Filling::default();
        let mut turns = Turns::of(self.threads.len());
        loop {
            let is_filled = caches.resident >= lines
                || turns.transactions >= 2 * plan.fast_forward_transactions;
            let is_aged = turns.transactions >= plan.fast_forward_transactions && is_filled;
            let is_over = is_aged || caches.operations >= plan.fast_forward_operations;
            let Some(thread) = turns.next().filter(|_| !is_over) else {
                return Ok(turns.transactions);
            };
            let told = told.as_deref_mut().map(|told| &mut told[thread]);
            let touch = &mut |machine: &mut Machine, access| caches.touch(machine, access);
            turns.took(self.turn_without_time(thread, touch, told));
            self.look_without_time(&turns)?;
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

    /// Executes a thread's program up to the end of a transaction; `touch` is told of each access to a line.
    fn turn_without_time(
        &mut self,
        thread: usize,
        touch: &mut impl FnMut(&mut Machine, Access),
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
            let machine = &mut self.machine;
            let mut store = |addr: Addr, value: u64, word: Word| {
                machine.perform_store(addr, value);
                touch(machine, Access { core, line: addr.line(), stores: true, word });
            };
            match op {
                Op::Load { at } => {
                    t.load_without_time();
                    t.value = machine.load(at.addr);
                    if let Some(told) = &mut told {
                        told.loaded.push(t.value);
                    }
                    let line = at.addr.line();
                    touch(machine, Access { core, line, stores: false, word: Word::Data });
                }
                Op::Store { at, value } | Op::StoreNonTemporal { at, value } => {
                    store(at.addr, value, Word::Data);
                }
                Op::Persist(
                    Persist::StoreUncached { addr, value, .. } | Persist::StoreOwn { addr, value },
                ) => store(addr, value, Word::Data),
                Op::Persist(Persist::WriteBack(line)) => {
                    if machine.caches.clean(line).is_some() {
                        machine.bring_home(line);
                    }
                }
                Op::Compute { .. }
                | Op::Persist(Persist::Fence | Persist::Order(_))
                | Op::Ending => {}
                Op::TxBegin => t.transactions += 1,
                Op::TxEnd => return Turn::Transaction,
                Op::Lock { lock } => {
                    if !self.locks.is_free_for(lock, id) {
                        t.op = Some(op);
                        return Turn::Waits { executed };
                    }
                    self.locks.take(lock, id);
                    store(self.locks.addr(lock), u64::from(id) + 1, Word::Lock);
                }
                Op::Unlock { lock } => {
                    store(self.locks.addr(lock), 0, Word::Lock);
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
}

/// Kinds of words that a program accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Data,
    Lock,
}

/// A core's access to a line.
#[derive(Clone, Copy, Debug)]
struct Access {
    core: u32,
    line: LineAddr,
    stores: bool,
    word: Word,
}

/// Progress of the caches' filling.
#[derive(Default)]
struct Filling {
    /// Lines in the LLC.
    resident: u64,
    /// Loads and stores of the programs.
    operations: u64,
    /// Counted, and not looked at.
    counters: Counters,
}

impl Filling {
    /// A core accesses a line, which is in its L1 afterwards.
    #[inline]
    fn touch(&mut self, machine: &mut Machine, access: Access) {
        let Access { core, line, stores, word } = access;
        self.operations += u64::from(word == Word::Data);
        let counters = &mut self.counters;
        if let hierarchy::Access::Miss(_) = machine.caches.access(core, line, stores, counters) {
            machine.expect_fill(core, line);
            machine.caches.fill(core, line);
            self.resident += 1;
            if stores {
                machine.caches.access(core, line, true, counters);
            }
        }
        while let Some(eviction) = machine.caches.take_eviction() {
            if let Eviction::Llc { line, dirty, .. } = eviction {
                self.resident -= 1;
                if dirty {
                    machine.bring_home(line);
                }
            }
        }
    }
}
