//! The simulation and its loop.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use super::beginning::{Beginning, Populated};
use super::capacities::Structure;
use super::crash::Recovered;
use super::distances::Distances;
use super::disturb::Signals;
use super::error::SimError;
use super::locks::Locks;
use super::observer::{NoObserver, Observer, TransactionObserver};
use super::ready::{Earliest, ReadyTimes};
use super::region::Measured;
use super::restored::Restored;
use super::scaled::Scaled;
use super::spec::Spec;
use super::threads::{Cause, Fill, Head, State, Thread};
use crate::caches::hierarchy::Eviction;
use crate::clock::Event;
use crate::config::{CoreConfig, PmConfig};
use crate::controller::adversary::Adversary;
use crate::controller::shared::Notice;
use crate::cores::pipeline::Pipeline;
use crate::cores::write_combining::WriteCombining;
use crate::design::operators::{Interference, Profile};
use crate::design::{Battery, Departure, DesignContext, Plug, RawAction};
use crate::machine::Machine;
use crate::request::{Gate, ReadPurpose, Write, WriteClass};
use crate::stats::region::RegionConfig;
use crate::stats::{StatisticsConfig, Stats, Timeline};
use crate::trace_event::TraceEvent;
use crate::workload::{Workload, WorkloadConfig};
use graven_base::config::ConfigError;
use graven_base::control::Control;
use graven_base::ids::ThreadId;
use graven_base::memory::{Image, LineAddr, WordSet};
use graven_base::stats::{CounterSet, Counts};
use graven_base::time::{Cycle, NEVER};

/// Timers of a design in a row, with every thread waiting and memory idle, after which no thread
/// will ever proceed: a design whose timers never end must not turn a deadlock into a run without
/// end.
const FRUITLESS_TIMERS_MAX: u32 = 2_000_000;

/// Number of actions between looks at [`Control`].
pub(super) const ACTIONS_PER_LOOK: u64 = 4096;

/// The thread that executes, for as long as nothing else comes before.
pub(super) struct Turn {
    pub(super) thread: usize,
    /// The turn is another thread's from this cycle on.
    pub(super) until: Cycle,
    /// Nothing runs from this cycle on.
    pub(super) end: Cycle,
    /// Operations so far, of all threads that have had the turn.
    pub(super) operations: u64,
}

/// A simulation in progress.
pub struct Simulation {
    pub(super) spec: Spec,
    pub(super) context: DesignContext,
    /// Content that the design's hardware may keep when power fails.
    pub(super) battery: Battery,
    /// Structures of the design that have places for a limited number of entries.
    pub(super) structures: Vec<Structure>,
    pub(super) workload: Box<dyn Workload>,
    pub(super) design: Box<dyn Plug>,
    pub(super) machine: Machine,
    pub(super) threads: Vec<Thread>,
    /// Kept apart from the threads because they are looked at between any two actions.
    pub(super) ready: ReadyTimes,
    pub(super) fills: slab::Slab<Fill>,
    /// The slot of the fill that was started last, if it is still under way: the one that is mostly asked for.
    pub(super) newest_fill: usize,
    pub(super) mshrs_max: u32,
    pub(super) mshrs_used: Vec<u32>,
    pub(super) locks: Locks,
    /// Per core.
    pub(super) write_combining: Vec<WriteCombining>,
    pub(super) signals: Signals,
    pub(super) observer: Option<Box<dyn TransactionObserver>>,
    /// Words that were stored to outside transactions, and not by one since.
    pub(super) outside: WordSet,
    /// Beginning, until the simulation has begun: others may have the transactions without time
    /// that it executes.
    pub(super) beginning: Option<Arc<Beginning>>,
    /// Counts of the design when the last thread had finished.
    pub(super) closed: Option<Counts>,
    /// The part of the run that statistics are of.
    pub(super) measured: Measured,
    /// Follows write distances, if they are wanted.
    pub(super) distances: Option<Distances>,
    pub(super) footprint_bytes: u64,
    pub(super) woken: bool,
    /// An adversary chooses among threads and evictions.
    pub(super) intervenes: bool,
    /// Something stands between design and machine.
    pub(super) interferes: bool,
    /// The design is told of stores outside transactions.
    pub(super) tells_plain_stores: bool,
    /// The design, or who follows the program, is told of loads.
    pub(super) tells_loads: bool,
    /// Stores outside transactions promise something, so that what their words may hold besides is not kept.
    pub(super) orders_outside: bool,
    /// Cycle up to which no observer looks on or makes choices: what comes next can be done without
    /// a look around.
    pub(super) alone_until: Cycle,
    /// The thread whose store queue is being drained.
    pub(super) draining: Option<usize>,
    /// Stale bytes that a design has handed out: not a refusal to proceed, but a broken guarantee.
    pub(super) misread: Option<SimError>,
    /// Timers since a thread could proceed or memory had something to do.
    pub(super) fruitless_timers: u32,
    pub(super) control: Arc<Control>,
}

impl Simulation {
    /// Builds machine, design and workload, and populates PM.
    ///
    /// # Errors
    /// Parameters that design or workload cannot work with.
    pub fn new(spec: &Spec) -> Result<Simulation, ConfigError> {
        Simulation::with_workload(spec, spec.build_workload()?)
    }

    /// The same for one of several that begin alike: PM is populated once for all of them. The beginning is that of the specification
    /// ([`Beginning::of`]).
    ///
    /// # Errors
    /// Parameters that design or workload cannot work with.
    pub fn begun(
        spec: &Spec,
        beginning: Option<Arc<Beginning>>,
    ) -> Result<Simulation, ConfigError> {
        let Some(beginning) = beginning else { return Simulation::new(spec) };
        let workload = spec.build_workload()?;
        let populated = beginning.populated(|| populated(spec, workload.as_ref()));
        let mut simulation = Simulation::built(spec, workload, populated, None)?;
        if spec.config.get::<RegionConfig>().is_steady() {
            simulation.beginning = Some(beginning);
        }
        Ok(simulation)
    }

    /// The same with a workload that is built already.
    ///
    /// # Errors
    /// Parameters that the design cannot work with.
    pub fn with_workload(
        spec: &Spec,
        workload: Box<dyn Workload>,
    ) -> Result<Simulation, ConfigError> {
        let populated = populated(spec, workload.as_ref());
        Simulation::built(spec, workload, populated, None)
    }

    /// A machine that is switched on again: PM and the design's non-volatile registers are as a recovery has left them. The
    /// workload is not asked to populate anything.
    ///
    /// # Errors
    /// Parameters that the design cannot work with.
    pub fn again(
        spec: &Spec,
        workload: Box<dyn Workload>,
        recovered: Recovered,
    ) -> Result<Simulation, ConfigError> {
        let registers = recovered.registers;
        let populated = Populated::of(recovered.image);
        Simulation::built(spec, workload, populated, Some(registers.as_deref()))
    }

    fn built(
        spec: &Spec,
        workload: Box<dyn Workload>,
        populated: Populated,
        again: Option<Option<&[u64]>>,
    ) -> Result<Simulation, ConfigError> {
        let context = spec.context();
        let mut design = spec.build_design(&context)?;
        if let Some(Some(registers)) = again {
            design.resume(registers);
        }
        let mut machine = Machine::new(&spec.config, populated.image);
        if let (Some(seed), None) = (spec.crash_options.garbage, again) {
            super::crash::fill_with_garbage(&mut machine, &context, spec.design.format, seed);
            if design.takes_plain_stores() || machine.keeps_caches() {
                // Its code may load and store the region's words through the caches.
                machine.know_log_region(context.log_start, context.log_end);
            }
        }
        machine.memory.shared.adversary = spec.crash_options.adversary.clone().map(Adversary::new);
        let adversary = machine.memory.shared.adversary.as_ref();
        let intervenes = adversary.is_some_and(Adversary::intervenes);
        if let Some(operator) = &spec.crash_options.operator {
            design.interfere(Interference::of(operator.clone()));
        }
        machine.caches.report_l1_evictions(design.wants_departures());
        let core = spec.config.get::<CoreConfig>();
        let dram = machine.memory.dram_start();
        let sets = machine.caches.l1_sets();
        let threads =
            (0..spec.threads).map(|id| thread(id, spec, workload.as_ref(), sets)).collect();
        let mut simulation = Simulation {
            battery: (spec.design.battery)(&context),
            structures: Structure::of(spec.design, &context),
            context,
            workload,
            design,
            machine,
            threads,
            ready: ReadyTimes::new(spec.threads as usize),
            fills: slab::Slab::new(),
            newest_fill: 0,
            misread: None,
            mshrs_max: core.mshrs,
            mshrs_used: vec![0; core.count as usize],
            locks: Locks::new(dram.plus(4096)),
            write_combining: vec![
                WriteCombining::new(core.write_combining_lines);
                core.count as usize
            ],
            signals: Signals::default(),
            observer: None,
            outside: WordSet::default(),
            beginning: None,
            closed: None,
            measured: Measured::whole(),
            distances: spec
                .config
                .get::<StatisticsConfig>()
                .write_distances
                .then(|| Distances::new(spec.threads)),
            footprint_bytes: populated.footprint_bytes,
            woken: false,
            intervenes,
            interferes: spec.crash_options.operator.is_some(),
            tells_plain_stores: false,
            tells_loads: false,
            orders_outside: false,
            alone_until: 0,
            draining: None,
            fruitless_timers: 0,
            control: Arc::default(),
            spec: spec.clone(),
        };
        if simulation.design.has_software() {
            simulation.threads.iter_mut().for_each(|t| t.software = Some(Box::default()));
        }
        simulation.tells_plain_stores = simulation.design.takes_plain_stores();
        simulation.tells_loads = simulation.design.wants_loads();
        simulation.design.start(&mut simulation.machine);
        Ok(simulation)
    }

    /// For watching and cancelling from another thread.
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// Is watched and cancelled by this from now on.
    pub fn set_control(&mut self, control: Arc<Control>) {
        self.control = control;
    }

    /// Sets the observer of transactions, and follows durable content from now on, so that crashes
    /// can be checked. Call it before running.
    pub fn follow_transactions(&mut self, observer: Box<dyn TransactionObserver>) {
        let (start, end) = self.data_region();
        self.tells_loads |= observer.wants_loads();
        self.orders_outside = !observer.forgives_outside();
        self.observer = Some(observer);
        self.machine.follow_domain(start, end);
    }

    /// Who follows transactions, if it is of this type.
    pub fn transaction_observer<T: TransactionObserver>(&self) -> Option<&T> {
        let observer: &dyn Any = self.observer.as_deref()?;
        observer.downcast_ref()
    }

    /// Takes a profile of what the design does at its boundary with the machine. Call it before running.
    pub fn take_profile(&mut self) {
        self.design.interfere(Interference::default());
        self.interferes = true;
    }

    /// Profile of the design's actions there, if one is taken.
    pub fn profile(&mut self) -> Option<&Profile> {
        self.design.interference().map(|interference| interference.profile())
    }

    /// Keeps the loads of the banks over time from now on ([`crate::stats::BankLoads::write_series`]). Call it
    /// before running.
    pub fn keep_bank_loads(&mut self) {
        let interval = self.spec.config.get::<StatisticsConfig>().bank_load_interval_cycles;
        self.machine.memory.shared.stats.bank_loads.keep_series(interval.into());
    }

    /// Keeps a timeline of the transactions with these numbers, in the order in which those of all
    /// threads begin ([`Timeline::write`]). Call it before running, of a run that is not followed
    /// for crashes.
    ///
    /// # Panics
    /// An observer follows transactions.
    pub fn keep_timeline(&mut self, transactions: Range<u64>) {
        assert!(self.observer.is_none(), "crashes have timelines of their own");
        let timeline = Timeline::new(transactions);
        self.machine.memory.shared.stats.timeline = Some(Box::new(timeline));
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

    /// Counts of the design so far; of a finished run, until the last thread had finished.
    pub fn design_counts(&self) -> Counts {
        self.closed.clone().unwrap_or_else(|| self.design.counts())
    }

    /// All counters so far, the machine's and the design's.
    pub fn counts(&self) -> Counts {
        let mut all = self.stats().counters.counts();
        all.extend(self.design_counts());
        all
    }

    /// Runs to the end and returns the digest of PM after an orderly shutdown.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn run(&mut self) -> Result<u64, SimError> {
        self.begin_measurement()?;
        let finished = self.advance(NEVER)?;
        assert!(finished, "without a limit only the end stops a simulation");
        if self.measured.is_under_way() {
            self.cut_region();
        }
        let stats = match self.measured.take_finished()? {
            Some(stats) => stats,
            None => {
                self.finish_stats();
                self.check_conservation()?;
                self.stats().clone()
            }
        };
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
        self.advance_observed(limit, &mut NoObserver)
    }

    /// Runs likewise, with an observer that looks on between any two actions and may stop the run;
    /// it returns `false` then, too.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn advance_observed<O: Observer>(
        &mut self,
        limit: Cycle,
        observer: &mut O,
    ) -> Result<bool, SimError> {
        let is_alone = !O::LOOKS_ON && !self.intervenes && !self.interferes;
        self.alone_until = if is_alone { limit } else { 0 };
        let finished = self.advance_up_to(limit, observer);
        self.alone_until = 0;
        finished
    }

    fn advance_up_to<O: Observer>(
        &mut self,
        limit: Cycle,
        observer: &mut O,
    ) -> Result<bool, SimError> {
        let (mut actions, mut looks_at) = (0, ACTIONS_PER_LOOK);
        loop {
            self.settle(observer)?;
            if observer.stops() {
                return Ok(false);
            }
            actions += 1;
            if actions >= looks_at {
                looks_at = actions + ACTIONS_PER_LOOK;
                self.look_at_control()?;
            }
            let event_at = self.machine.memory.shared.events.next_at();
            let Earliest { thread, at: thread_at, until } = self.ready.earliest();
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
                let end = limit.saturating_add(1);
                let mut turn = Turn { thread, until: until.min(end), end, operations: 0 };
                self.run_thread(&mut turn, observer)?;
                actions += turn.operations;
            } else {
                self.handle_event();
                self.show(observer);
            }
        }
    }

    /// An action is over.
    #[inline]
    pub(super) fn show<O: Observer>(&mut self, observer: &mut O) {
        if O::LOOKS_ON {
            self.tell_of_snapshots();
        }
        observer.after_action(self);
    }

    /// Runs the thread whose turn it is while nothing else is earlier.
    fn run_thread<O: Observer>(
        &mut self,
        turn: &mut Turn,
        observer: &mut O,
    ) -> Result<(), SimError> {
        self.woken = false;
        loop {
            if O::LOOKS_ON || !self.run_of_hits(turn) {
                turn.operations += 1;
                self.step(turn.thread);
            }
            self.show(observer);
            self.settle(observer)?;
            let t = &self.threads[turn.thread];
            let at = if t.state == State::Ready { t.pipeline.time } else { NEVER };
            if self.woken
                || at >= turn.until
                || self.machine.memory.shared.events.next_at() <= at
                || turn.operations >= ACTIONS_PER_LOOK
                || observer.stops()
            {
                self.ready.set(turn.thread, at);
                return Ok(());
            }
        }
    }

    /// Hands the turn over, from a thread that can proceed, to the one whose next operation comes
    /// first. Returns true if that comes before all else; if not, the turn is still the former
    /// thread's.
    #[inline]
    pub(super) fn hand_on(&mut self, turn: &mut Turn) -> bool {
        let event_at = self.machine.memory.shared.events.next_at();
        if event_at < turn.until {
            return false;
        }
        assert_eq!(self.ready.earliest().thread, turn.thread, "nobody else has become ready");
        self.ready.set_earliest(self.threads[turn.thread].pipeline.time);
        let Earliest { thread, at, until } = self.ready.earliest();
        let is_first = at < event_at && at < turn.end;
        if is_first {
            (turn.thread, turn.until) = (thread, until.min(turn.end));
        }
        is_first
    }

    pub(super) fn look_at_control(&mut self) -> Result<(), SimError> {
        if self.report_progress() { Err(SimError::Cancelled) } else { Ok(()) }
    }

    /// Tells who watches how far it has come; returns whether to stop.
    pub(super) fn report_progress(&self) -> bool {
        let counted = self.stats().counters.committed_transactions;
        let committed = self.measured.committed(counted);
        self.control.report(committed.min(self.spec.expected_transactions()))
    }

    /// Delivers everything that is pending at this instant.
    #[inline]
    pub(super) fn settle<O: Observer>(&mut self, observer: &mut O) -> Result<(), SimError> {
        if !self.machine.has_news() && !self.interferes {
            return Ok(());
        }
        self.deliver(observer)
    }

    #[cold]
    pub(super) fn deliver<O: Observer>(&mut self, observer: &mut O) -> Result<(), SimError> {
        loop {
            if observer.stops() {
                return Ok(());
            }
            if self.interferes
                && let Some(interference) = self.design.interference()
            {
                interference.send_held(&mut self.machine);
            }
            if self.machine.caches.has_evictions() {
                self.handle_evictions();
            }
            if let Some(notice) = self.machine.memory.take_notice() {
                match notice {
                    Notice::Persisted(token) => self.design.on_durable(&mut self.machine, token),
                    Notice::DurableForFences(threads) => self.durable_for_fences(threads),
                    Notice::ReadDone(read, _) => match read.purpose {
                        ReadPurpose::Fill(slot) => self.finish_fill(slot, None)?,
                        ReadPurpose::Design(token) => {
                            let content = self.machine.memory.content(read.line);
                            self.design.read_done(&mut self.machine, token, read.line, &content);
                        }
                        ReadPurpose::Trace => {}
                    },
                }
            } else if !self.machine.has_messages() {
                return Ok(());
            } else if let Some((line, content, at)) = self.machine.take_delivered() {
                self.delivered(line, &content, at);
            } else if let Some((thread, cycles)) = self.machine.take_interrupted() {
                self.interrupt(thread as usize, cycles);
            } else if let Some(thread) = self.machine.take_released() {
                self.go_on(thread as usize);
            } else if let Some(error) = self.misread.take() {
                return Err(error);
            } else if let Some(why) = self.machine.failure() {
                return Err(SimError::Design {
                    design: self.spec.design.name,
                    why: why.to_owned(),
                });
            } else {
                self.machine.has_no_messages();
                return Ok(());
            }
            self.show(observer);
            if self.intervenes {
                self.choose_evictions();
            }
        }
    }

    pub(super) fn handle_evictions(&mut self) {
        while let Some(eviction) = self.machine.caches.take_eviction() {
            match eviction {
                Eviction::L1 { core, line, dirty, tag, cause } => {
                    if self.machine.memory.is_pm(line.addr()) {
                        let departure = Departure { core, line, dirty, tag, cause };
                        self.design.departs(&mut self.machine, &departure);
                    }
                }
                Eviction::Llc { dirty: false, .. } => {}
                Eviction::Llc { line, dirty: true, tag } => self.evict(line, tag),
            }
        }
    }

    /// Sends a dirty line, which has this tag of the design's, the way of those that leave the LLC.
    pub(super) fn evict(&mut self, line: LineAddr, tag: u8) {
        let content = self.machine.line(line);
        let mut write = Write::line(WriteClass::Data, line, content);
        if self.machine.memory.is_pm(line.addr()) {
            self.machine.count().llc_writebacks += 1;
            self.machine.emit(|| TraceEvent::Evicted(line));
            match self.design.llc_evict(&mut self.machine, line, &content, tag) {
                RawAction::Send { after, gate, token } => {
                    (write.after, write.gate, write.token) = (after, gate, token);
                }
                RawAction::Absorb => return,
            }
        }
        self.machine.write(&write, 0);
    }

    #[inline(always)]
    pub(super) fn handle_event(&mut self) {
        let shared = &mut self.machine.memory.shared;
        let (at, event) = shared.events.pop().expect("the caller saw an event");
        assert!(at >= shared.now, "time does not go back");
        shared.now = at;
        match event {
            Event::StoreDrain(thread) => {
                let thread = thread as usize;
                assert_eq!(self.threads[thread].head, Head::Scheduled);
                self.drain(thread);
            }
            Event::BufferedFill(slot) => {
                let line = self.fills[slot as usize].line;
                let content = self.machine.line(line);
                // Its content was compared when the design handed it out.
                self.finish_fill(slot, Some(content))
                    .expect("the content is the architectural one");
            }
            Event::Release(thread) => self.go_on(thread as usize),
            Event::Gate(gate) => self.machine.memory.open_gate(Gate::from_number(gate)),
            Event::Fence(thread) => self.fence_hears(thread as usize),
            Event::Timer(token) => {
                let fruitless = self.machine.memory.is_idle();
                self.fruitless_timers = if fruitless { self.fruitless_timers + 1 } else { 0 };
                self.design.timer(&mut self.machine, token);
            }
            other => self.machine.memory.handle(other),
        }
    }

    /// A thread's core does something else for a while: what it would issue next, it issues afterwards.
    fn interrupt(&mut self, thread: usize, cycles: Cycle) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        if t.state == State::Finished {
            return;
        }
        let from = t.pipeline.time.max(now);
        t.pipeline.wait_until(from + cycles);
        if t.state == State::Ready {
            self.ready.set(thread, t.pipeline.time);
            self.woken = true;
        }
        let c = self.machine.count();
        c.interrupts += 1;
        c.stall_interrupt_cycles += cycles;
    }

    /// Resumes a thread that the design made wait.
    pub(super) fn go_on(&mut self, thread: usize) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        if matches!(t.head, Head::HeldAfter | Head::HeldBefore) {
            t.head = Head::Free;
            self.try_store(thread);
            self.wake_for_stores(thread);
        } else if t.running.is_some_and(|r| r.committing) {
            self.acknowledge(thread);
        } else {
            let waits = matches!(t.state, State::Blocked(Cause::Log | Cause::Commit, _));
            let (design, id) = (self.spec.design.name, t.id);
            assert!(
                waits,
                "{design} released thread {id}, which does not wait for it; the release takes effect in cycle {now}"
            );
            self.wake(thread, now);
        }
    }
}

/// PM as a workload populates it.
fn populated(spec: &Spec, workload: &dyn Workload) -> Populated {
    let bytes = spec.config.get::<PmConfig>().capacity_bytes.0;
    let mut image = Image::of_bytes(bytes).to_be_populated();
    workload.populate(&mut image);
    Populated::of(image)
}

/// A thread before its first operation. `l1_sets`: sets of the L1 of its core.
fn thread(id: ThreadId, spec: &Spec, workload: &dyn Workload, l1_sets: usize) -> Thread {
    let core = spec.config.get::<CoreConfig>();
    // Cores are filled one thread each first, then a second each.
    let sharing = if spec.threads > core.count { core.threads_per_core } else { 1 };
    let asked = spec.config.get::<WorkloadConfig>();
    let (stores, distance) = (asked.stores_per_word, asked.store_distance);
    let program = Restored::of(workload.program(id), stores, distance);
    Thread {
        id,
        core: id % core.count,
        program: Scaled::of(program, asked.compute_scale),
        pipeline: Pipeline::new(core, sharing),
        state: State::Ready,
        value: 0,
        op: None,
        stores: Default::default(),
        undurable: 0,
        durable_heard_at: 0,
        stores_asked: 0,
        filling: vec![0; l1_sets].into(),
        stores_max: (core.store_queue_entries / sharing).max(1) as usize,
        head: Head::Free,
        store_port_free_at: 0,
        running: None,
        transactions: spec.crash_options.first_transaction,
        issued: false,
        begun: false,
        instructions_before: 0,
        head_accessed: false,
        head_granted: false,
        head_under_way: false,
        software: None,
    }
}
