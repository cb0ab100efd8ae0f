//! State of L1s and controller, and the hooks.

use std::collections::VecDeque;

use graven::config::{ConfigError, CoreConfig, Size};
use graven::design::{
    self, Cause, Departure, DepartureDesign, Design, DesignContext, Fill, Miss, Mutants, Stall,
    Store, Writeback,
};
use graven::ids::{ThreadId, Tx};
use graven::memory::{LineAddr, LineData};
use graven::time::Cycle;

use super::address_lock::{Flight, FlightId};
use super::event::Event;
use super::lines::Lines;
use super::log_manager::{LogManager, RecordId};
use super::{AtomConfig, LogWrites, Mutant, Source};

pub(super) type Port<'a> = design::Port<'a, Atom>;

/// State of a thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// The core whose L1 its stores go to.
    pub(super) core: u32,
    /// The context of its transaction.
    pub(super) context: Option<usize>,
    pub(super) lines: Lines,
    /// When its last message about a store reaches the controller.
    pub(super) told: Cycle,
    /// Record that a store waits for.
    pub(super) store_awaits: Option<RecordId>,
    /// True if the transaction has ended, and is not acknowledged.
    pub(super) ending: bool,
    /// Number of lines on their way that the commit waits for.
    pub(super) awaited: u32,
    /// When the controller knows of its commit.
    pub(super) asked: Cycle,
}

/// The design.
pub(super) struct Atom {
    pub(super) config: AtomConfig,
    pub(super) threads: Vec<Thread>,
    pub(super) log: LogManager,
    /// Threads that wait for a context, longest first.
    pub(super) begins: VecDeque<ThreadId>,
    /// Lines on their way home that belong to open transactions, oldest first.
    pub(super) flights: VecDeque<Flight>,
    pub(super) next_flight: FlightId,
    pub(super) mutants: Mutants<Mutant>,
}

/// A write to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    /// A line of a record.
    Entry(RecordId),
    /// A header.
    Header(RecordId),
    /// A line of an open transaction on its way home.
    Home(FlightId),
}

/// A read of a line that a store has missed in all caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceRead {
    thread: usize,
    region: u64,
}

/// A message of a commit that arrives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// At the controller: the log is to be truncated.
    Truncation { thread: usize },
    /// At the core: the log is truncated.
    Acknowledgement { thread: usize },
}

impl Atom {
    pub(super) fn new(context: &DesignContext) -> Result<Atom, ConfigError> {
        let config = context.config.get::<AtomConfig>().clone();
        let log = LogManager::new(context);
        let needed = log.buckets.bytes();
        if log.buckets.records == 0 || needed > context.log_end.0 - context.log_start.0 {
            let why = format!(
                "the buckets take {}; pm.log_region_bytes must hold them, and a bucket a record",
                Size(needed)
            );
            let keys = [
                "atom.buckets",
                "atom.bucket_bytes",
                "atom.entries_per_record",
                "pm.log_region_bytes",
            ];
            return Err(context.config.inconsistent(&keys, why));
        }
        let cores = context.config.get::<CoreConfig>().count;
        let thread = |t| Thread {
            core: t % cores,
            context: None,
            lines: Lines::default(),
            told: 0,
            store_awaits: None,
            ending: false,
            awaited: 0,
            asked: 0,
        };
        Ok(Atom {
            threads: (0..context.threads).map(thread).collect(),
            log,
            begins: VecDeque::new(),
            flights: VecDeque::new(),
            next_flight: 0,
            mutants: context.mutants(),
            config,
        })
    }

    /// The thread whose store misses on a core, as far as the request tells.
    fn thread_that_misses(&self, port: &mut Port<'_>, core: u32) -> Option<usize> {
        let runs = |t: &&Thread| t.core == core && t.context.is_some() && !t.ending;
        let first = self.threads.iter().position(|t| runs(&t))?;
        if self.threads[first + 1..].iter().any(|t| runs(&t)) {
            port.emit(Event::ThreadUnknown);
            return None;
        }
        Some(first)
    }
}

impl Design for Atom {
    type Write = Write;
    type Read = SourceRead;
    type Timer = Timer;
    type Event = Event;

    /// A transaction needs a context.
    fn on_tx_begin(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        if self.take_context(tx.thread as usize) {
            return Stall::None;
        }
        port.emit(Event::ContextAwaited { thread: tx.thread });
        self.begins.push_back(tx.thread);
        Stall::Retry
    }

    /// A store to a word that the controller knows of needs nothing.
    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let t = store.tx.thread as usize;
        let thread = &mut self.threads[t];
        let stored = thread.lines.take_in(store.addr.line());
        if stored.known >> store.addr.word_in_line() & 1 == 1 {
            return Stall::None;
        }
        thread.core = store.core;
        self.log(port, store);
        if self.config.log_writes == LogWrites::Posted {
            return Stall::None;
        }
        self.await_log(port, t)
    }

    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        let t = tx.thread as usize;
        if self.threads[t].lines.0.lines.is_empty() {
            self.leave_context(port, t);
            return Stall::None;
        }
        self.end(port, t);
        Stall::UntilReleased
    }

    /// *Source logging*: of a line that a store misses, the controller keeps the old content when it has read it.
    fn on_llc_miss(&mut self, port: &mut Port<'_>, miss: &Miss) -> Fill {
        let sets_the_log_bit = miss.writes || self.mutants.has(Mutant::LoadsSetTheLogBit);
        if self.config.source == Source::NotLogged || !sets_the_log_bit {
            return Fill::Home;
        }
        let Some(thread) = self.thread_that_misses(port, miss.core) else { return Fill::Home };
        if !miss.writes || self.mutants.has(Mutant::SourceEntryMissing) {
            self.comes_with_its_log_bit(thread, miss.line);
            return Fill::Home;
        }
        let region = self.log.region(self.threads[thread].context);
        port.read_for_miss(miss.line, SourceRead { thread, region }, miss.delay);
        Fill::Design
    }

    fn on_read(
        &mut self,
        port: &mut Port<'_>,
        read: SourceRead,
        line: LineAddr,
        content: &LineData,
    ) {
        let SourceRead { thread, region } = read;
        // A store outside transactions of another thread of this core may have missed, and nothing waited for it.
        let runs = self.log.region(self.threads[thread].context) == region;
        if runs && !self.threads[thread].ending {
            self.log_at_source(port, thread, line, content);
        }
        port.deliver(line, *content, 0);
    }

    /// *Address lock*: a locked line is held back in the controller.
    fn on_llc_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        _content: &LineData,
    ) -> Writeback<Write> {
        if self.threads.iter().all(|t| !t.lines.has(line)) {
            return Writeback::FREE;
        }
        let mut locks = self.locks_of(port, line);
        if self.mutants.has(Mutant::EvictionNotLocked) {
            locks.clear();
        }
        let (flight, gate) = self.departs(port, line, &locks, true);
        Writeback::FREE.behind(gate).reported(Write::Home(flight))
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Entry(record) => self.entry_is_durable(port, record),
            Write::Header(record) => self.header_is_durable(port, record),
            Write::Home(flight) => self.arrived(port, flight),
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Timer) {
        match timer {
            Timer::Truncation { thread } => self.truncate(port, thread),
            Timer::Acknowledgement { thread } => self.acknowledge(port, thread),
        }
    }

    /// Lines that are held back go home when their records count, which nothing else brings about.
    fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }

    fn registers(&self) -> Vec<u64> {
        self.log.registers().flat_map(|r| [r.buckets, r.end]).collect()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        match structure {
            0 => self.log.entries_max(),
            _ => self.log.records_max(),
        }
    }
}

impl DepartureDesign for Atom {
    /// A line that leaves an L1 loses its log bit.
    fn on_departure(&mut self, _port: &mut Port<'_>, departure: &Departure) {
        if matches!(departure.cause, Cause::Downgraded { .. }) {
            return;
        }
        for thread in self.threads.iter_mut().filter(|t| t.core == departure.core) {
            thread.lines.forget(departure.line);
        }
    }
}
