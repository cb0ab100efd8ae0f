//! The state of one hardware thread.

use std::collections::VecDeque;

use super::software::Software;
use crate::cores::pipeline::Pipeline;
use crate::program::{Op, Program};
use crate::request::WriteClass;
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, LineAddr};
use graven_base::time::Cycle;
use graven_persistency::cut::Operation;

/// Causes of a thread's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A load's data.
    Load,
    /// A place in the store queue, or its end.
    Store,
    /// A miss register.
    Mshr,
    /// Room in the reorder buffer or load queue.
    Window,
    /// The acknowledgement of a commit.
    Commit,
    /// The design, before a store or a transaction's begin.
    Log,
    /// A lock.
    Lock,
    /// A fence at the head of the store queue.
    Fence,
}

impl Cause {
    /// Name in timelines, as in the statistics of stalls.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Load => "load",
            Cause::Store => "store",
            Cause::Mshr => "mshr",
            Cause::Window => "window",
            Cause::Commit => "commit",
            Cause::Log => "log",
            Cause::Lock => "lock",
            Cause::Fence => "fence",
        }
    }
}

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Able to execute.
    Ready,
    /// Waiting, since a time.
    Blocked(Cause, Cycle),
    /// Ended.
    Finished,
}

/// Effect of an entry of the store queue when it is the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A store through the caches.
    Cached,
    /// A store of the design's code to its log, through the caches.
    Own,
    /// A store that need not go through the caches.
    NonTemporal,
    /// A store that no cache sees.
    Uncached(WriteClass),
    /// The line is written back.
    WriteBack,
    /// Holds back later entries until earlier stores are durable.
    Fence,
    /// An operation of the design's for order.
    Order(Operation),
    /// The running transaction may be durable from here on.
    Ending,
}

impl Kind {
    fn is_store(self) -> bool {
        matches!(self, Kind::Cached | Kind::Own | Kind::NonTemporal | Kind::Uncached(_))
    }
}

/// A store, or what is ordered with stores, that has retired and not yet taken effect.
#[derive(Clone, Copy, Debug)]
pub struct QueuedStore {
    /// Effect.
    pub kind: Kind,
    /// Address of the word, or of some word of the line.
    pub addr: Addr,
    /// New value, of a store.
    pub value: u64,
    /// True if it belongs to the transaction that the thread is in.
    pub in_transaction: bool,
    /// The load before it in program order; it is performed when that and all older ones are complete.
    pub after_load: u32,
    /// When its line comes out of the L2 or LLC, if it was asked for ahead.
    pub line_at: Cycle,
    /// Set of the L1 where its line will be, if it has asked for it ahead of its turn, on an out-of-order core.
    pub fills: Option<u32>,
    /// True if its access to the caches has been counted: when its line was asked for ahead, or
    /// when it was tried first.
    pub counted: bool,
}

/// State of the oldest queued store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Nothing: it can be tried, or there is none.
    Free,
    /// An event has been set to try it.
    Scheduled,
    /// Tried at a time, by an event if something else comes first. No longer than while it is being
    /// found out whether something does ([`Simulation::drain`](super::run::Simulation)).
    Due(Cycle),
    /// An older load of an out-of-order thread.
    Loads,
    /// Waiting for its line, which is on its way.
    Fill,
    /// A miss register must become free.
    Mshr,
    /// The design, which has let it happen.
    HeldAfter,
    /// The design, which has not let it happen yet.
    HeldBefore,
    /// A fence that waits until earlier writes are durable.
    Fence,
}

/// A transaction that the thread is in.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// The transaction.
    pub tx: Tx,
    /// When it began.
    pub began: Cycle,
    /// When its last instruction had been issued; it may have stores to perform still.
    pub last_issue: Option<Cycle>,
    /// When its end was reached.
    pub ending: Option<Cycle>,
    /// True if it may be durable: everything before its end has been performed.
    pub may_be_durable: bool,
    /// The design has been notified of the end and has made the thread wait.
    pub committing: bool,
}

/// One hardware thread.
pub struct Thread {
    /// Number of the thread.
    pub id: ThreadId,
    /// The core it runs on.
    pub core: u32,
    /// Program that it executes.
    pub program: Box<dyn Program>,
    /// Instruction timing.
    pub pipeline: Pipeline,
    /// State of the thread.
    pub state: State,
    /// Value that the last load returned.
    pub value: u64,
    /// An operation that could not be completed yet.
    pub op: Option<Op>,
    /// Stores in order of retirement.
    pub stores: VecDeque<QueuedStore>,
    /// Number of the oldest that have asked for their lines, or need not.
    pub stores_asked: usize,
    /// For each set of the L1, the number of them that fill it.
    pub filling: Box<[u16]>,
    /// Capacity of `stores`.
    pub stores_max: usize,
    /// State of the oldest store.
    pub head: Head,
    /// Writes that its fences wait for: write-backs and uncacheable stores on their way.
    pub undurable: u32,
    /// When its core hears, or heard, that the last of them to become durable is.
    pub durable_heard_at: Cycle,
    /// The next store may not be performed before this.
    pub store_port_free_at: Cycle,
    /// The transaction it is in.
    pub running: Option<Running>,
    /// Transactions begun.
    pub transactions: u64,
    /// The pending operation has been issued; it is not counted again when it is repeated.
    pub issued: bool,
    /// True if the pending begin has taken effect; the thread waits only for the design to release
    /// it.
    pub begun: bool,
    /// Instructions issued before what is measured.
    pub instructions_before: u64,
    /// The oldest store has been to the caches in its turn.
    pub head_accessed: bool,
    /// The oldest store had its line, exclusively, and has been waiting out the access since.
    pub head_granted: bool,
    /// The design is at the oldest instruction, which has been executed when it releases the thread.
    pub head_under_way: bool,
    /// The design's software, if it has any.
    pub software: Option<Box<Software>>,
}

impl Thread {
    /// A load has been executed without time: nothing waits for it.
    #[inline]
    pub fn load_without_time(&mut self) {
        self.pipeline.load_without_time();
        if let Some(software) = &mut self.software {
            software.load_without_time();
        }
    }

    /// The oldest in the store queue has taken effect.
    #[inline]
    pub fn take_head(&mut self, now: Cycle) {
        if let Some(set) = self.stores.pop_front().and_then(|store| store.fills) {
            self.filling[set as usize] -= 1;
        }
        self.stores_asked = self.stores_asked.saturating_sub(1);
        self.head_accessed = false;
        self.head_granted = false;
        self.store_port_free_at = now + 1;
    }

    /// The newest queued value of a word.
    #[inline]
    pub fn forward(&self, addr: Addr) -> Option<u64> {
        if self.stores.is_empty() {
            return None;
        }
        let newest = self.stores.iter().rev().find(|s| s.addr == addr && s.kind.is_store())?;
        assert!(!matches!(newest.kind, Kind::Uncached(_)), "uncacheable {addr} is never loaded");
        Some(newest.value)
    }
}

/// Who waits for a line from memory.
#[derive(Clone, Copy, Debug)]
pub enum Waiter {
    /// An in-order thread's load of a word.
    InOrderLoad(ThreadId, Addr),
    /// Load number `.1` of an out-of-order thread.
    WindowLoad(ThreadId, u32),
    /// A thread's oldest store.
    StoreHead(ThreadId),
    /// A thread that will repeat its operation.
    Repeat(ThreadId),
}

/// A line on its way from memory into the caches.
#[derive(Debug)]
pub struct Fill {
    /// The line.
    pub line: LineAddr,
    /// The core that asked first, and gets it.
    pub core: u32,
    /// True if its content has been compared: the design had it.
    pub checked: bool,
    /// Who waits for it, first of all.
    pub first: Option<Waiter>,
    /// Further waiters: mostly none.
    pub others: Vec<Waiter>,
}

impl Fill {
    /// One more waits for it.
    pub fn wait(&mut self, waiter: Waiter) {
        match self.first {
            None => self.first = Some(waiter),
            Some(_) => self.others.push(waiter),
        }
    }
}
