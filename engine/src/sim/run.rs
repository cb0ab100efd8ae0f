//! The simulation loop.

use std::sync::Arc;

use thiserror::Error;

use super::locks::Locks;
use super::threads::{Cause, Fill, Head, QueuedStore, Running, State, Thread, Waiter};
use crate::config::{Config, ConfigError, CoreConfig, PmConfig};
use crate::control::Control;
use crate::crash::{Medium, Oracle, Verdict};
use crate::designs::{self, Design, Eviction, Flow, RecoveryReport, Site, Store, ThreadId, Tx};
use crate::machine::clock::Event;
use crate::machine::controller::Notice;
use crate::machine::core::Pipeline;
use crate::machine::hierarchy::{Access, Departure};
use crate::machine::{Cycle, Machine, NEVER, ReadPurpose, Write, WriteClass};
use crate::memory::{Addr, Image, LineAddr};
use crate::program::{Op, Ptr};
use crate::stats::Stats;
use crate::workloads::{self, Workload, WorkloadConfig};

/// First byte of PM that a workload may use: address 0 stays the null pointer.
const DATA_START: Addr = Addr(4096);

/// What to simulate.
#[derive(Clone)]
pub struct Spec {
    /// Machine, design and workload parameters.
    pub config: Config,
    /// The design.
    pub design: &'static designs::Entry,
    /// The workload.
    pub workload: &'static workloads::Entry,
    /// Program threads.
    pub threads: u32,
    /// Transactions over all threads.
    pub transactions: u64,
    /// Seed of everything random.
    pub seed: u64,
}

impl Spec {
    /// A checked specification. By default there is one thread per core and 10,000 transactions.
    ///
    /// # Errors
    /// Unknown names, and values that do not fit each other.
    pub fn new(
        config: Config,
        design: &str,
        workload: &str,
        threads: Option<u64>,
        transactions: Option<u64>,
        seed: u64,
    ) -> Result<Spec, ConfigError> {
        config.validate()?;
        let design = designs::find(design)?;
        let workload = workloads::find(workload)?;
        let core = config.get::<CoreConfig>();
        let most = core.count * core.threads_per_core;
        let threads = argument("threads", threads, core.count.into(), 1..=u64::from(most), || {
            format!(
                "core.count = {} and core.threads_per_core = {}",
                core.count, core.threads_per_core
            )
        })?;
        let transactions =
            argument("transactions", transactions, 10_000, 1..=1 << 40, String::new)?;
        Ok(Spec { design, workload, threads: threads as u32, transactions, seed, config })
    }

    /// Where designs and their recovery find themselves.
    pub fn site(&self) -> Site {
        let pm = self.config.get::<PmConfig>();
        Site {
            config: self.config.clone(),
            threads: self.threads,
            log_start: Addr(pm.capacity_bytes.0 - pm.log_region_bytes.0),
            log_end: Addr(pm.capacity_bytes.0),
        }
    }
}

fn argument(
    name: &str,
    given: Option<u64>,
    default: u64,
    range: std::ops::RangeInclusive<u64>,
    because: impl Fn() -> String,
) -> Result<u64, ConfigError> {
    let value = given.unwrap_or(default);
    if range.contains(&value) {
        return Ok(value);
    }
    let because = because();
    let tail = if because.is_empty() { String::new() } else { format!(" ({because})") };
    Err(ConfigError::Value {
        origin: "argument".into(),
        key: name.into(),
        value: value.to_string(),
        allowed: format!("a whole number from {} to {}{tail}", range.start(), range.end()),
    })
}

/// Why a simulation ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimError {
    /// What the memory side returned for a line is not what the program had stored there.
    #[error(
        "read check failed at cycle {cycle}: word {addr} was read as {read:#x}, but the program last stored {stored:#x} \
         (design {design}, workload {workload}): the design lost or reverted an update"
    )]
    ReadCheck {
        /// When.
        cycle: Cycle,
        /// Which word.
        addr: Addr,
        /// What came from memory.
        read: u64,
        /// What architectural memory holds.
        stored: u64,
        /// Under which design.
        design: &'static str,
        /// In which workload.
        workload: &'static str,
    },
    /// After an orderly shutdown the PM does not hold what the program stored.
    #[error(
        "shutdown check failed: after everything was written back, word {addr} of PM holds {found:#x}, but the program \
         last stored {stored:#x} (design {design}, workload {workload})"
    )]
    ShutdownCheck {
        /// Which word.
        addr: Addr,
        /// What PM holds.
        found: u64,
        /// What the program stored last.
        stored: u64,
        /// Under which design.
        design: &'static str,
        /// In which workload.
        workload: &'static str,
    },
    /// The design cannot go on as configured.
    #[error("design {design}: {why}")]
    Design {
        /// Which.
        design: &'static str,
        /// Why.
        why: String,
    },
    /// No thread can ever run again.
    #[error("deadlock at cycle {cycle} under design {design}: {waiting}")]
    Deadlock {
        /// When.
        cycle: Cycle,
        /// Under which design.
        design: &'static str,
        /// What each thread waits for.
        waiting: String,
    },
    /// Somebody asked it to stop.
    #[error("cancelled")]
    Cancelled,
}

/// So many timers of a design in a row, with every thread waiting and memory idle, and no thread will ever
/// go on: a design whose timers never end must not turn a deadlock into a run without end.
const FRUITLESS_TIMERS_MAX: u32 = 2_000_000;

/// How many actions pass between looks at [`Control`].
const ACTIONS_PER_LOOK: u32 = 4096;

/// A simulation in progress.
pub struct Simulation {
    spec: Spec,
    site: Site,
    workload: Box<dyn Workload>,
    design: Box<dyn Design>,
    machine: Machine,
    threads: Vec<Thread>,
    /// Per thread, when its next instruction issues; [`NEVER`] while it cannot. Kept apart from the
    /// threads because it is scanned at every turn.
    ready_at: Vec<Cycle>,
    fills: slab::Slab<Fill>,
    mshrs_max: u32,
    mshrs_used: Vec<u32>,
    locks: Locks,
    oracle: Option<Oracle>,
    footprint_bytes: u64,
    woken: bool,
    /// Timers since a thread could go on or memory had something to do.
    fruitless_timers: u32,
    control: Arc<Control>,
}

impl Simulation {
    /// Builds machine, design and workload, and populates PM.
    ///
    /// # Errors
    /// Parameters that design or workload cannot work with.
    pub fn new(spec: &Spec) -> Result<Simulation, ConfigError> {
        let site = spec.site();
        let design = (spec.design.build)(&site)?;
        let request = workloads::Request {
            config: spec.config.get::<WorkloadConfig>().clone(),
            threads: spec.threads,
            transactions: spec.transactions,
            seed: spec.seed,
            start: DATA_START,
            end: site.log_start,
        };
        let mut workload = (spec.workload.build)(&request)?;
        let mut populated = Image::new();
        workload.populate(&mut populated);
        let footprint_bytes = populated.nonzero_lines() * crate::memory::LINE_BYTES;
        let mut machine = Machine::new(&spec.config, populated);
        machine.caches.report_l1_departures(design.wants_l1_evictions());
        let core = spec.config.get::<CoreConfig>();
        let dram = machine.memory.dram_start();
        let threads = (0..spec.threads).map(|id| thread(id, spec, workload.as_ref())).collect();
        let mut simulation = Simulation {
            site,
            workload,
            design,
            machine,
            threads,
            ready_at: vec![0; spec.threads as usize],
            fills: slab::Slab::new(),
            mshrs_max: core.mshrs,
            mshrs_used: vec![0; core.count as usize],
            locks: Locks::new(dram.plus(4096)),
            oracle: None,
            footprint_bytes,
            woken: false,
            fruitless_timers: 0,
            control: Arc::default(),
            spec: spec.clone(),
        };
        simulation.design.start(&mut simulation.machine);
        Ok(simulation)
    }

    /// For watching and cancelling from another thread.
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// Follows transactions from now on, so that crashes can be judged. Call it before running.
    pub fn follow_transactions(&mut self) {
        self.oracle = Some(Oracle::new(self.spec.threads));
    }

    /// The specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The machine, to look at or to record from.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// The machine, to look at.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Bytes of the lines that the populated structures occupy.
    pub fn footprint_bytes(&self) -> u64 {
        self.footprint_bytes
    }

    /// The statistics so far.
    pub fn stats(&self) -> &Stats {
        &self.machine.memory.shared.stats
    }

    /// Runs to the end and returns the digest of PM after an orderly shutdown.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn run(&mut self) -> Result<u64, SimError> {
        let finished = self.advance(NEVER)?;
        assert!(finished, "without a limit only the end stops a simulation");
        self.finish_stats();
        let stats = self.stats().clone();
        self.machine.memory.stop_recording();
        let digest = self.shut_down()?;
        self.machine.memory.shared.stats = stats;
        Ok(digest)
    }

    /// Runs everything that happens up to and including a cycle. Returns whether all threads have
    /// finished.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn advance(&mut self, limit: Cycle) -> Result<bool, SimError> {
        let mut actions = 0;
        loop {
            self.settle()?;
            actions += 1;
            if actions % ACTIONS_PER_LOOK == 0 {
                self.look_at_control()?;
            }
            let event_at = self.machine.memory.shared.events.next_at();
            let (first, thread_at, second) = self.earliest_threads();
            if thread_at == NEVER {
                if self.threads.iter().all(|t| t.state == State::Finished) {
                    return Ok(true);
                }
                if event_at == NEVER || self.fruitless_timers > FRUITLESS_TIMERS_MAX {
                    return Err(self.deadlock());
                }
            }
            if event_at.min(thread_at) > limit {
                return Ok(false);
            }
            if thread_at < event_at {
                self.fruitless_timers = 0;
                actions += self.run_thread(first, second.min(limit.saturating_add(1)))?;
            } else {
                self.handle_event();
            }
        }
    }

    /// The thread with the earliest next instruction, when that is, and when the next after it comes.
    #[inline]
    fn earliest_threads(&self) -> (usize, Cycle, Cycle) {
        let (mut first, mut first_at, mut second_at) = (0, NEVER, NEVER);
        for (thread, &at) in self.ready_at.iter().enumerate() {
            if at < first_at {
                second_at = first_at;
                (first, first_at) = (thread, at);
            } else if at < second_at {
                second_at = at;
            }
        }
        (first, first_at, second_at)
    }

    /// Runs one thread while nothing else is earlier; returns how many operations that were.
    fn run_thread(&mut self, thread: usize, until: Cycle) -> Result<u32, SimError> {
        self.woken = false;
        let mut operations = 0;
        loop {
            operations += 1;
            self.step(thread);
            self.settle()?;
            let t = &self.threads[thread];
            let at = if t.state == State::Ready { t.pipeline.time } else { NEVER };
            self.ready_at[thread] = at;
            if self.woken
                || at >= until
                || self.machine.memory.shared.events.next_at() <= at
                || operations == ACTIONS_PER_LOOK
            {
                return Ok(operations);
            }
        }
    }

    fn look_at_control(&mut self) -> Result<(), SimError> {
        let committed = self.stats().counters.committed_transactions;
        if self.control.report(committed) { Err(SimError::Cancelled) } else { Ok(()) }
    }

    fn deadlock(&self) -> SimError {
        let waiting: Vec<String> = self
            .threads
            .iter()
            .map(|t| format!("thread {} is {:?} with store head {:?}", t.id, t.state, t.head))
            .collect();
        SimError::Deadlock {
            cycle: self.machine.now(),
            design: self.spec.design.name,
            waiting: waiting.join("; "),
        }
    }

    // ---- what the memory and the design have to say -------------------------------------------

    /// Delivers everything that is pending at this instant.
    #[inline]
    fn settle(&mut self) -> Result<(), SimError> {
        if !self.machine.has_news() {
            return Ok(());
        }
        self.deliver()
    }

    #[cold]
    fn deliver(&mut self) -> Result<(), SimError> {
        loop {
            self.handle_departures();
            if let Some(notice) = self.machine.memory.take_notice() {
                match notice {
                    Notice::Persisted(token) => self.design.persisted(&mut self.machine, token),
                    Notice::LineAccepted(line) => {
                        self.design.line_written_back(&mut self.machine, line)
                    }
                    Notice::ReadDone(read, _) => match read.purpose {
                        ReadPurpose::Fill(slot) => self.finish_fill(slot, None)?,
                        ReadPurpose::Design(token) => {
                            let content = self.machine.memory.content(read.line);
                            self.design.read_done(&mut self.machine, token, read.line, &content);
                        }
                        ReadPurpose::Trace => {}
                    },
                }
            } else if let Some(thread) = self.machine.take_released() {
                self.go_on(thread as usize);
            } else if let Some(why) = self.machine.failure() {
                return Err(SimError::Design {
                    design: self.spec.design.name,
                    why: why.to_owned(),
                });
            } else {
                return Ok(());
            }
        }
    }

    fn handle_departures(&mut self) {
        while let Some(departure) = self.machine.caches.take_departure() {
            match departure {
                Departure::L1 { core, line, dirty } => {
                    if self.machine.memory.is_pm(line.addr()) {
                        self.design.l1_evict(&mut self.machine, core, line, dirty);
                    }
                }
                Departure::Llc { dirty: false, .. } => {}
                Departure::Llc { line, dirty: true } => self.evict(line),
            }
        }
    }

    fn evict(&mut self, line: LineAddr) {
        let content = self.machine.line(line);
        let mut write = Write::line(WriteClass::Data, line, content);
        if self.machine.memory.is_pm(line.addr()) {
            self.machine.count().llc_writebacks += 1;
            match self.design.llc_evict(&mut self.machine, line, &content) {
                Eviction::WriteBack { after, token } => (write.after, write.token) = (after, token),
                Eviction::Keep => return,
            }
        }
        self.machine.write(write, 0);
    }

    fn handle_event(&mut self) {
        let shared = &mut self.machine.memory.shared;
        let (at, event) = shared.events.pop().expect("the caller saw an event");
        debug_assert!(at >= shared.now, "time does not go back");
        shared.now = at;
        match event {
            Event::StoreDrain(thread) => {
                let thread = thread as usize;
                debug_assert_eq!(self.threads[thread].head, Head::Scheduled);
                self.threads[thread].head = Head::Free;
                self.try_store(thread);
            }
            Event::BufferedFill(slot) => {
                let line = self.fills[slot as usize].line;
                let content = self.machine.line(line);
                // Its content was compared when the design handed it out.
                self.finish_fill(slot, Some(content))
                    .expect("the content is the architectural one");
            }
            Event::Release(thread) => self.go_on(thread as usize),
            Event::Timer(token) => {
                let fruitless = self.machine.memory.is_idle();
                self.fruitless_timers = if fruitless { self.fruitless_timers + 1 } else { 0 };
                self.design.timer(&mut self.machine, token);
            }
            other => self.machine.memory.handle(other),
        }
    }

    /// A thread that the design made wait goes on.
    fn go_on(&mut self, thread: usize) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        if matches!(t.head, Head::HeldAfter | Head::HeldBefore) {
            t.head = Head::Free;
            self.try_store(thread);
            self.wake_for_stores(thread);
        } else if t.running.is_some_and(|r| r.committing) {
            self.acknowledge(thread);
        } else {
            self.wake(thread, now);
        }
    }

    // ---- threads ------------------------------------------------------------------------------

    fn wake(&mut self, thread: usize, at: Cycle) {
        let t = &mut self.threads[thread];
        let State::Blocked(cause, since) = t.state else { return };
        t.state = State::Ready;
        t.pipeline.wait_until(at);
        self.ready_at[thread] = t.pipeline.time;
        let waited = t.pipeline.time - since;
        self.woken = true;
        let c = self.machine.count();
        *match cause {
            Cause::Load => &mut c.stall_load_cycles,
            Cause::Store => &mut c.stall_store_cycles,
            Cause::Mshr => &mut c.stall_mshr_cycles,
            Cause::Window => &mut c.stall_window_cycles,
            Cause::Commit => &mut c.stall_commit_cycles,
            Cause::Log => &mut c.stall_log_cycles,
            Cause::Lock => &mut c.stall_lock_cycles,
        } += waited;
    }

    /// The thread cannot complete `op` now; it will be repeated when the thread is woken.
    fn block(&mut self, thread: usize, cause: Cause, op: Option<Op>) {
        let t = &mut self.threads[thread];
        t.op = op;
        t.state = State::Blocked(cause, t.pipeline.time);
    }

    fn step(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        self.machine.memory.shared.now = t.pipeline.time;
        let op = match t.op.take() {
            Some(op) => op,
            None => t.program.next(std::mem::take(&mut t.value)),
        };
        match op {
            Op::Load { at } => self.load(thread, op, at),
            Op::Store { at, value } => self.store(thread, op, at, value),
            Op::Compute { instructions } => {
                self.issue(thread, op, instructions.into());
            }
            Op::TxBegin => self.tx_begin(thread, op),
            Op::TxEnd => self.tx_end(thread, op),
            Op::Lock { lock } => self.lock(thread, op, lock),
            Op::Unlock { lock } => self.unlock(thread, op, lock),
            Op::Done => self.done(thread, op),
        }
    }

    /// Issues instructions, once per operation; if the reorder buffer is full the operation must be
    /// repeated. Returns whether they were issued.
    #[inline]
    fn issue(&mut self, thread: usize, op: Op, instructions: u64) -> bool {
        let t = &mut self.threads[thread];
        if t.issued {
            return true;
        }
        if t.pipeline.issue(instructions).is_err() {
            self.block(thread, Cause::Window, Some(op));
            return false;
        }
        true
    }

    /// Loads: from the thread's own store queue, the caches, or memory.
    fn load(&mut self, thread: usize, op: Op, at: Ptr) {
        let t = &mut self.threads[thread];
        let (addr, line, core) = (at.addr, at.addr.line(), t.core);
        let Ok(start) = t.pipeline.load_start(at.origin) else {
            return self.block(thread, Cause::Load, Some(op));
        };
        if self.must_wait_for_mshr(core, line) {
            return self.block(thread, Cause::Mshr, Some(op));
        }
        let first_try = !self.threads[thread].issued;
        if !self.issue(thread, op, 1) {
            return;
        }
        if first_try {
            self.machine.count().loads += 1;
        }
        let t = &mut self.threads[thread];
        t.issued = false;
        if let Some(value) = t.forward(addr) {
            t.value = value;
            t.pipeline.load_issued(start + self.machine.caches.l1_latency());
            self.machine.count().store_forwards += 1;
            return;
        }
        match self.access(core, line, false) {
            Access::Hit(latency) => {
                let t = &mut self.threads[thread];
                t.pipeline.load_issued(start + latency);
                t.value = self.machine.load(addr);
            }
            Access::Miss(latency) => self.load_miss(thread, op, addr, start, latency),
        }
    }

    fn load_miss(&mut self, thread: usize, op: Op, addr: Addr, start: Cycle, latency: Cycle) {
        let (id, core) = (self.threads[thread].id, self.threads[thread].core);
        let delay = start.saturating_sub(self.machine.now()) + latency;
        if self.fill_of(addr.line()).is_some_and(|slot| self.fills[slot].core != core) {
            // Another core has asked for the line already: look again when it has come.
            self.start_fill(core, addr.line(), Some(Waiter::Repeat(id)), delay);
            self.threads[thread].issued = true;
            return self.block(thread, Cause::Load, Some(op));
        }
        if self.threads[thread].pipeline.is_out_of_order() {
            let load = self.threads[thread].pipeline.load_issued(NEVER);
            self.threads[thread].value = self.machine.load(addr);
            self.start_fill(core, addr.line(), Some(Waiter::WindowLoad(id, load)), delay);
        } else {
            self.start_fill(core, addr.line(), Some(Waiter::InOrderLoad(id, addr)), delay);
            self.block(thread, Cause::Load, None);
        }
    }

    /// Stores: into the thread's queue; performed in order, as lines and design allow.
    fn store(&mut self, thread: usize, op: Op, at: Ptr, value: u64) {
        let t = &self.threads[thread];
        if t.stores.len() >= t.stores_max {
            return self.block_on_stores(thread, op);
        }
        if t.pipeline.is_out_of_order()
            && self.threads[thread].pipeline.load_start(at.origin).is_err()
        {
            return self.block(thread, Cause::Load, Some(op));
        }
        let now = self.machine.now();
        if !self.issue(thread, op, 1) {
            return;
        }
        self.machine.count().stores += 1;
        let t = &mut self.threads[thread];
        t.stores.push_back(QueuedStore {
            addr: at.addr,
            value,
            in_transaction: t.running.is_some(),
            after_load: t.pipeline.last_load(),
        });
        if t.stores.len() > 1 || t.head != Head::Free {
            self.prefetch_for_store(thread, at.addr.line());
        } else if t.store_port_free_at > now {
            t.head = Head::Scheduled;
            let at = t.store_port_free_at;
            self.machine.memory.shared.events.push(at, Event::StoreDrain(thread as u32));
        } else {
            self.try_store(thread);
        }
    }

    fn block_on_stores(&mut self, thread: usize, op: Op) {
        let held = matches!(self.threads[thread].head, Head::HeldAfter | Head::HeldBefore);
        self.block(thread, if held { Cause::Log } else { Cause::Store }, Some(op));
    }

    /// A store that must wait behind others asks for its line already, if memory has it.
    fn prefetch_for_store(&mut self, thread: usize, line: LineAddr) {
        let core = self.threads[thread].core;
        let asks = !self.machine.caches.contains(line)
            && self.fill_of(line).is_none()
            && self.mshrs_used[core as usize] < self.mshrs_max;
        if asks && let Access::Miss(latency) = self.access(core, line, false) {
            self.start_fill(core, line, None, latency);
        }
    }

    /// Tries to perform the oldest queued store.
    fn try_store(&mut self, thread: usize) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        debug_assert_eq!(t.head, Head::Free);
        let Some(&store) = t.stores.front() else { return };
        let (core, line) = (t.core, store.addr.line());
        let wait = match t.pipeline.loads_done(store.after_load) {
            Err(_) => {
                t.head = Head::Loads;
                return;
            }
            Ok(done) => done.max(t.store_port_free_at),
        };
        if wait > now {
            return self.schedule_store(thread, wait);
        }
        if self.machine.caches.is_writable(core, line) {
            if !self.threads[thread].head_counted {
                self.machine.caches.access(core, line, true, self.machine.memory.counters());
            }
            return self.perform(thread, store);
        }
        if self.must_wait_for_mshr(core, line) {
            self.threads[thread].head = Head::Mshr;
            return;
        }
        self.threads[thread].head_counted = true;
        match self.access(core, line, true) {
            // It had the line before and lost it while it waited out the latency: two that contend would
            // take it from each other for ever.
            Access::Hit(_) if self.threads[thread].head_granted => self.perform(thread, store),
            Access::Hit(latency) => {
                self.threads[thread].head_granted = true;
                self.schedule_store(thread, now + latency);
            }
            Access::Miss(latency) => {
                self.threads[thread].head = Head::Fill;
                let waiter = Waiter::StoreHead(self.threads[thread].id);
                self.start_fill(core, line, Some(waiter), latency);
            }
        }
    }

    fn schedule_store(&mut self, thread: usize, at: Cycle) {
        self.threads[thread].head = Head::Scheduled;
        self.machine.memory.shared.events.push(at, Event::StoreDrain(thread as u32));
    }

    /// The line is there and exclusive: architectural memory changes now, if the design agrees.
    fn perform(&mut self, thread: usize, store: QueuedStore) {
        let now = self.machine.now();
        let core = self.threads[thread].core;
        let mut flow = Flow::Continue;
        if store.in_transaction && self.machine.memory.is_pm(store.addr) {
            let tx = self.threads[thread].running.expect("the end waits for the queue to drain").tx;
            let old = self.machine.load(store.addr);
            flow = self.design.store(
                &mut self.machine,
                &Store { tx, core, addr: store.addr, old, new: store.value },
            );
            if flow == Flow::Retry {
                self.threads[thread].head = Head::HeldBefore;
                return;
            }
            let c = self.machine.count();
            c.transactional_stores += 1;
            c.silent_stores += u64::from(old == store.value);
            if let Some(oracle) = &mut self.oracle {
                oracle.store(tx, store.addr, old);
            }
        }
        self.machine.caches.mark_dirty(core, store.addr.line());
        self.machine.perform_store(store.addr, store.value);
        let t = &mut self.threads[thread];
        t.stores.pop_front();
        t.head_counted = false;
        t.head_granted = false;
        t.store_port_free_at = now + 1;
        match flow {
            Flow::Continue => {}
            Flow::After(cycles) => t.store_port_free_at = now + cycles.max(1),
            Flow::Wait => t.head = Head::HeldAfter,
            Flow::Retry => unreachable!("handled above"),
        }
        if t.head == Head::Free && !t.stores.is_empty() {
            let at = t.store_port_free_at;
            self.schedule_store(thread, at);
        }
        self.wake_for_stores(thread);
    }

    /// A thread that waits for its store queue may find it as it needs it.
    fn wake_for_stores(&mut self, thread: usize) {
        let t = &self.threads[thread];
        let State::Blocked(Cause::Store | Cause::Log, _) = t.state else { return };
        let ready = match t.op {
            Some(Op::Store { .. }) => t.stores.len() < t.stores_max,
            Some(Op::TxBegin) if t.begun => false,
            _ => t.stores.is_empty() && t.head == Head::Free,
        };
        if ready {
            let at = self.machine.now().max(t.store_port_free_at.saturating_sub(1));
            self.wake(thread, at);
        }
    }

    /// Whether everything older is done; if not, the thread waits and `op` is repeated.
    fn drained(&mut self, thread: usize, op: Op) -> bool {
        let t = &mut self.threads[thread];
        if !t.stores.is_empty() || t.head != Head::Free {
            self.block_on_stores(thread, op);
            return false;
        }
        if t.pipeline.drain_loads().is_err() {
            self.block(thread, Cause::Load, Some(op));
            return false;
        }
        if t.pipeline.time > self.machine.now() {
            // The loads are done later than the present: come again then.
            t.op = Some(op);
            return false;
        }
        true
    }

    fn tx_begin(&mut self, thread: usize, op: Op) {
        if std::mem::take(&mut self.threads[thread].begun) || !self.drained(thread, op) {
            return;
        }
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        assert!(t.running.is_none(), "transactions do not nest");
        let tx = Tx { thread: t.id, number: t.transactions };
        let flow = self.design.tx_begin(&mut self.machine, tx);
        if flow == Flow::Retry {
            return self.block(thread, Cause::Log, Some(op));
        }
        self.issue(thread, op, 1);
        let t = &mut self.threads[thread];
        t.transactions += 1;
        t.running = Some(Running { tx, began: now, ending: None, committing: false });
        if let Some(oracle) = &mut self.oracle {
            oracle.begin(tx);
        }
        match flow {
            Flow::After(cycles) => t.pipeline.wait_until(now + cycles),
            Flow::Wait => {
                t.begun = true;
                self.block(thread, Cause::Log, Some(op));
            }
            Flow::Continue | Flow::Retry => {}
        }
    }

    fn tx_end(&mut self, thread: usize, op: Op) {
        if !self.drained(thread, op) || !self.issue(thread, op, 1) {
            return;
        }
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        t.issued = true;
        let running = t.running.as_mut().expect("a transaction ends after it began");
        let tx = running.tx;
        if running.ending.is_none() {
            running.ending = Some(now);
            if let Some(oracle) = &mut self.oracle {
                oracle.ending(tx);
            }
        }
        let flow = self.design.tx_end(&mut self.machine, tx);
        if flow == Flow::Retry {
            return self.block(thread, Cause::Commit, Some(op));
        }
        let running = self.threads[thread].running.as_mut().expect("it is still running");
        running.committing = true;
        self.block(thread, Cause::Commit, None);
        match flow {
            Flow::Continue => self.acknowledge(thread),
            Flow::After(cycles) => {
                self.machine.memory.shared.events.push(now + cycles, Event::Release(thread as u32));
            }
            Flow::Wait | Flow::Retry => {}
        }
    }

    fn acknowledge(&mut self, thread: usize) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        t.issued = false;
        let running = t.running.take().expect("only a running transaction is acknowledged");
        let ending = running.ending.expect("its end was reached");
        let stats = &mut self.machine.memory.shared.stats;
        stats.counters.committed_transactions += 1;
        stats.commit_latency.record(now - ending);
        stats.transaction_latency.record(now - running.began);
        self.machine.memory.shared.durable_changes += 1;
        if let Some(oracle) = &mut self.oracle {
            oracle.acknowledged(running.tx);
        }
        self.wake(thread, now);
    }

    /// An atomic exchange on the lock's word, when the lock is free.
    fn lock(&mut self, thread: usize, op: Op, lock: u32) {
        if !self.drained(thread, op) {
            return;
        }
        let id = self.threads[thread].id;
        if !self.locks.is_free_for(lock, id) {
            self.locks.wait(lock, id);
            return self.block(thread, Cause::Lock, Some(op));
        }
        if self.exchange(thread, op, lock) {
            self.locks.take(lock, id);
            self.machine.perform_store(self.locks.addr(lock), u64::from(id) + 1);
        }
    }

    fn unlock(&mut self, thread: usize, op: Op, lock: u32) {
        if !self.drained(thread, op) || !self.exchange(thread, op, lock) {
            return;
        }
        self.machine.perform_store(self.locks.addr(lock), 0);
        let id = self.threads[thread].id;
        if let Some(next) = self.locks.release(lock, id) {
            let now = self.machine.now();
            self.wake(next as usize, now);
        }
    }

    /// Brings a lock's line into the L1 exclusively; the thread waits for it. Returns whether it is there.
    fn exchange(&mut self, thread: usize, op: Op, lock: u32) -> bool {
        let line = self.locks.addr(lock).line();
        let core = self.threads[thread].core;
        if self.must_wait_for_mshr(core, line) {
            self.block(thread, Cause::Mshr, Some(op));
            return false;
        }
        if !self.issue(thread, op, 1) {
            return false;
        }
        let now = self.machine.now();
        match self.access(core, line, true) {
            Access::Hit(latency) => {
                let t = &mut self.threads[thread];
                t.issued = false;
                t.pipeline.wait_until(now + latency);
                true
            }
            Access::Miss(latency) => {
                let t = &mut self.threads[thread];
                t.issued = true;
                let waiter = Waiter::Repeat(t.id);
                self.start_fill(core, line, Some(waiter), latency);
                self.block(thread, Cause::Lock, Some(op));
                false
            }
        }
    }

    fn done(&mut self, thread: usize, op: Op) {
        if self.drained(thread, op) {
            self.threads[thread].state = State::Finished;
        }
    }

    // ---- caches and fills ---------------------------------------------------------------------

    #[inline]
    fn access(&mut self, core: u32, line: LineAddr, write: bool) -> Access {
        let access = self.machine.caches.access(core, line, write, self.machine.memory.counters());
        if self.machine.caches.has_departures() {
            self.handle_departures();
        }
        access
    }

    fn fill_of(&self, line: LineAddr) -> Option<usize> {
        self.fills.iter().find(|(_, fill)| fill.line == line).map(|(slot, _)| slot)
    }

    /// Whether the access would need a miss register and none is free.
    #[inline]
    fn must_wait_for_mshr(&self, core: u32, line: LineAddr) -> bool {
        self.mshrs_used[core as usize] >= self.mshrs_max
            && !self.machine.caches.contains(line)
            && self.fill_of(line).is_none()
    }

    /// Asks memory for a line, or joins those who wait for it already.
    fn start_fill(&mut self, core: u32, line: LineAddr, waiter: Option<Waiter>, delay: Cycle) {
        if let Some(slot) = self.fill_of(line) {
            self.fills[slot].waiters.extend(waiter);
            return;
        }
        debug_assert!(
            self.mshrs_used[core as usize] < self.mshrs_max,
            "the caller asked for a miss register"
        );
        self.mshrs_used[core as usize] += 1;
        let slot =
            self.fills.insert(Fill { line, core, waiters: waiter.into_iter().collect() }) as u32;
        if self.machine.memory.is_pm(line.addr()) {
            if let designs::Fill::Buffer(content, latency) =
                self.design.llc_fill(&mut self.machine, line)
            {
                self.check_read(line, &content)
                    .unwrap_or_else(|e| self.machine.fail(e.to_string()));
                let at = self.machine.now() + delay + latency;
                return self.machine.memory.shared.events.push(at, Event::BufferedFill(slot));
            }
            self.machine.memory.shared.media.prefetch(line);
        }
        self.machine.memory.read(line, ReadPurpose::Fill(slot), delay);
    }

    fn check_read(&mut self, line: LineAddr, content: &[u64; 8]) -> Result<(), SimError> {
        self.machine.count().reads_checked += 1;
        let stored = self.machine.line(line);
        match (0..8).find(|&i| content[i] != stored[i]) {
            None => Ok(()),
            Some(i) => Err(SimError::ReadCheck {
                cycle: self.machine.now(),
                addr: line.word(i),
                read: content[i],
                stored: stored[i],
                design: self.spec.design.name,
                workload: self.spec.workload.name,
            }),
        }
    }

    /// A line has come: it is checked, goes into the caches, and those who waited go on.
    fn finish_fill(&mut self, slot: u32, checked: Option<[u64; 8]>) -> Result<(), SimError> {
        let fill = self.fills.remove(slot as usize);
        if checked.is_none() && self.machine.memory.is_pm(fill.line.addr()) {
            let content = self.machine.memory.content(fill.line);
            self.check_read(fill.line, &content)?;
        }
        self.mshrs_used[fill.core as usize] -= 1;
        self.machine.caches.fill(fill.core, fill.line);
        self.handle_departures();
        let now = self.machine.now();
        for waiter in fill.waiters {
            match waiter {
                Waiter::InOrderLoad(thread, addr) => {
                    let t = &mut self.threads[thread as usize];
                    t.value = self.machine.load(addr);
                    self.wake(thread as usize, now);
                    self.threads[thread as usize].pipeline.load_issued(now);
                }
                Waiter::WindowLoad(thread, load) => self.window_load_done(thread as usize, load),
                Waiter::StoreHead(thread) => self.schedule_store(thread as usize, now),
                Waiter::Repeat(thread) => self.wake(thread as usize, now),
            }
        }
        self.retry_for_mshr(fill.core);
        Ok(())
    }

    fn window_load_done(&mut self, thread: usize, load: u32) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        t.pipeline.load_ready(load, now);
        if t.head == Head::Loads {
            t.head = Head::Free;
            self.try_store(thread);
        }
        if matches!(self.threads[thread].state, State::Blocked(Cause::Load | Cause::Window, _)) {
            self.wake(thread, now);
        }
    }

    /// A miss register of a core has become free.
    fn retry_for_mshr(&mut self, core: u32) {
        let now = self.machine.now();
        for thread in 0..self.threads.len() {
            let t = &self.threads[thread];
            if t.core != core {
                continue;
            }
            if matches!(t.state, State::Blocked(Cause::Mshr, _)) {
                self.wake(thread, now);
            }
            if self.threads[thread].head == Head::Mshr {
                self.schedule_store(thread, now);
            }
        }
    }

    // ---- the end, and crashes -----------------------------------------------------------------

    fn finish_stats(&mut self) {
        let cores = self.spec.config.get::<CoreConfig>().count as usize;
        let dirty = self.machine.caches.dirty_lines();
        let residual = dirty.iter().filter(|l| self.machine.memory.is_pm(l.addr())).count() as u64;
        let stats = &mut self.machine.memory.shared.stats;
        stats.core_instructions = vec![0; cores];
        stats.core_cycles = vec![0; cores];
        for t in &self.threads {
            stats.core_instructions[t.core as usize] += t.pipeline.instructions;
            let cycles = &mut stats.core_cycles[t.core as usize];
            *cycles = (*cycles).max(t.pipeline.time);
        }
        stats.counters.cycles = stats.core_cycles.iter().copied().max().unwrap_or(0);
        stats.counters.instructions = stats.core_instructions.iter().sum();
        stats.counters.residual_dirty_lines = residual;
        stats.counters.peak_wear = stats.wear.peak();
        self.control.report(stats.counters.committed_transactions);
    }

    /// Lets background work end, writes every dirty line back, recovers once, and compares PM with what
    /// the program stored. Nothing of this is in the statistics.
    fn shut_down(&mut self) -> Result<u64, SimError> {
        self.run_until_idle()?;
        for line in self.machine.caches.dirty_lines() {
            self.machine.caches.clean(line);
            self.evict(line);
            self.deliver()?;
            while self.machine.memory.has_writes_waiting() {
                self.handle_event();
                self.deliver()?;
            }
        }
        self.run_until_idle()?;
        self.machine.memory.flush_buffers();
        let (start, end) = (DATA_START, self.site.log_start);
        let written = {
            let mut crash = self.crash();
            crash.recover();
            crash.medium.into_written()
        };
        let shared = &mut self.machine.memory.shared;
        for (addr, value) in written {
            shared.media.store(addr, value);
        }
        let shared = &self.machine.memory.shared;
        match shared.media.first_difference(self.machine.architectural(), start, end) {
            None => Ok(shared.media.digest(start, end)),
            Some((addr, found, stored)) => Err(SimError::ShutdownCheck {
                addr,
                found,
                stored,
                design: self.spec.design.name,
                workload: self.spec.workload.name,
            }),
        }
    }

    fn run_until_idle(&mut self) -> Result<(), SimError> {
        self.deliver()?;
        while !(self.machine.memory.is_idle() && self.design.is_idle() && self.fills.is_empty()) {
            if self.machine.memory.shared.events.next_at() == NEVER {
                return Err(self.deadlock());
            }
            self.handle_event();
            self.deliver()?;
        }
        Ok(())
    }

    /// Power fails at this instant. The simulation itself is not touched and can go on.
    pub fn crash(&self) -> Crash<'_> {
        let mut medium = Medium::new(&self.machine.memory.shared.media);
        for (line, mask, data) in self.machine.memory.surviving() {
            medium.store_line(line, mask, &data);
        }
        self.design.power_failure(&mut medium);
        Crash { simulation: self, registers: self.design.registers(), medium }
    }
}

/// What a power failure left.
pub struct Crash<'a> {
    simulation: &'a Simulation,
    /// The design's non-volatile registers.
    pub registers: Vec<u64>,
    /// The surviving bytes.
    pub medium: Medium<'a>,
}

impl Crash<'_> {
    /// Recovers in place, from bytes and registers alone.
    pub fn recover(&mut self) -> RecoveryReport {
        let simulation = self.simulation;
        (simulation.spec.design.recover)(&simulation.site, &self.registers, &mut self.medium)
    }

    /// Judges the medium as it is now.
    ///
    /// # Errors
    /// The first promise found broken.
    ///
    /// # Panics
    /// If transactions were not followed ([`Simulation::follow_transactions`]).
    pub fn judge(&self) -> Result<(), Verdict> {
        let s = self.simulation;
        let oracle = s.oracle.as_ref().expect("transactions are followed");
        oracle.judge(&self.medium, s.machine.architectural(), DATA_START, s.site.log_start)
    }

    /// The workload's invariants on the medium as it is now.
    ///
    /// # Errors
    /// The first violation found.
    pub fn check_structures(&self) -> Result<(), workloads::Violation> {
        let mut image = self.medium.cells().clone();
        for (addr, value) in self.medium.written() {
            image.store(addr, value);
        }
        self.simulation.workload.check(&image)
    }
}

fn thread(id: ThreadId, spec: &Spec, workload: &dyn Workload) -> Thread {
    let core = spec.config.get::<CoreConfig>();
    // Cores are filled one thread each first, then a second each.
    let sharing = if spec.threads > core.count { core.threads_per_core } else { 1 };
    Thread {
        id,
        core: id % core.count,
        program: workload.program(id),
        pipeline: Pipeline::new(core, sharing),
        state: State::Ready,
        value: 0,
        op: None,
        stores: Default::default(),
        stores_max: (core.store_queue_entries / sharing).max(1) as usize,
        head: Head::Free,
        store_port_free_at: 0,
        running: None,
        transactions: 0,
        issued: false,
        begun: false,
        head_counted: false,
        head_granted: false,
    }
}
