//! All of the machine but the cores, and the handle through which designs act.

use std::collections::VecDeque;

use graven_base::config::Config;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Image, LineAddr, LineData};
use graven_base::time::Cycle;

use crate::caches::hierarchy::Hierarchy;
use crate::clock::Event;
use crate::config::{ControllerConfig, DomainConfig};
use crate::controller::MemorySystem;
use crate::controller::domain::Domain;
use crate::controller::outside::{Outside, OutsideWords};
use crate::controller::settled::Settled;
use crate::request::{Gate, ReadPurpose, Token, Write, WriteClass, WriteOrder};
use crate::stats::Counters;
use crate::trace_event::TraceEvent;

/// Most cover points that a design may declare.
pub const COVER_POINTS_MAX: usize = 40;

/// Caches and memory with their content: all of the machine but the cores.
pub struct Machine {
    /// Everything below the caches.
    pub memory: MemorySystem,
    /// All caches.
    pub caches: Hierarchy,
    /// Architectural memory: the content that loads return at this instant.
    arch: Image,
    /// Durable content, if it is followed.
    domain: Option<Domain>,
    /// True if all caches survive a power failure.
    keeps_caches: bool,
    path: Cycle,
    /// Some of the following are to be looked at: released threads, delivered lines, interrupts, a failure.
    has_messages: bool,
    released: VecDeque<ThreadId>,
    /// Lines that the design has read, and when they leave the controller.
    delivered: VecDeque<(LineAddr, LineData, Cycle)>,
    /// Snapshots that the observer has yet to be told of.
    snapshots: u32,
    /// Threads that are to be interrupted, and for how long.
    interrupted: VecDeque<(ThreadId, Cycle)>,
    failure: Option<String>,
    cover_points: [u64; COVER_POINTS_MAX],
    /// Place of the first of those that are counted now.
    cover_first: usize,
    /// Events since the last call, if a trace is kept.
    trace: Option<Vec<(Cycle, TraceEvent)>>,
    /// True if notes of the design are kept, too.
    has_notes: bool,
}

impl Machine {
    /// The machine of a configuration; PM holds what `populated` holds, in the cells and to the program.
    pub fn new(config: &Config, mut populated: Image) -> Self {
        let mut memory = MemorySystem::new(config);
        memory.shared.media = populated.share();
        Self {
            memory,
            caches: Hierarchy::new(config),
            arch: populated,
            domain: None,
            keeps_caches: config.get::<DomainConfig>().keeps_caches(),
            path: config.get::<ControllerConfig>().bypass_cycles.into(),
            has_messages: false,
            released: VecDeque::new(),
            delivered: VecDeque::new(),
            snapshots: 0,
            interrupted: VecDeque::new(),
            failure: None,
            cover_points: [0; COVER_POINTS_MAX],
            cover_first: 0,
            trace: None,
            has_notes: false,
        }
    }

    /// The current cycle.
    #[inline]
    pub fn now(&self) -> Cycle {
        self.memory.shared.now
    }

    /// Counters, to be counted up.
    #[inline]
    pub fn count(&mut self) -> &mut Counters {
        &mut self.memory.shared.stats.counters
    }

    /// Time for a message between an L1 and the controller when it bypasses the caches.
    pub fn bypass_cycles(&self) -> Cycle {
        self.path
    }

    /// Cycles after which a core has the answer of the controller, which takes `cycles`.
    pub(crate) fn answered_after(&self, cycles: Cycle) -> Cycle {
        2 * self.path + cycles
    }

    /// Architectural memory.
    pub fn architectural(&self) -> &Image {
        &self.arch
    }

    /// A word of architectural memory.
    #[inline]
    pub fn load(&self, addr: Addr) -> u64 {
        self.arch.load(addr)
    }

    /// A line of architectural memory.
    #[inline]
    pub fn line(&self, line: LineAddr) -> LineData {
        self.arch.load_line(line)
    }

    /// Memory is about to be asked for a line: what the host needs when it comes is brought near, its content and that
    /// of the line that will leave the caches for it.
    #[inline]
    pub(crate) fn expect_fill(&self, core: u32, line: LineAddr) {
        self.arch.prefetch(line);
        if self.memory.is_pm(line.addr()) {
            self.memory.shared.media.prefetch(line);
        }
        if let Some(victim) = self.caches.next_victim(core, line) {
            self.arch.prefetch(victim);
        }
    }

    /// Returns true if all caches survive a power failure.
    #[inline]
    pub fn keeps_caches(&self) -> bool {
        self.keeps_caches
    }

    /// A store is performed in an L1.
    #[inline]
    pub(crate) fn perform_store(&mut self, addr: Addr, value: u64) {
        if self.domain.is_some() {
            return self.perform_followed_store(addr, value);
        }
        self.arch.store(addr, value);
    }

    /// A store is performed beside the caches.
    #[inline]
    pub(crate) fn perform_store_beside(&mut self, addr: Addr, value: u64) {
        self.follow_durable_writes();
        let old = self.arch.store(addr, value);
        if let Some(domain) = &mut self.domain {
            domain.stored(addr, old, value);
        }
    }

    /// PM holds a line as it is, without a write: before time begins.
    pub(crate) fn bring_home(&mut self, line: LineAddr) {
        if self.memory.is_pm(line.addr()) {
            let content = self.arch.load_line(line);
            self.memory.shared.media.store_line(line, &content);
        }
    }

    /// PM holds everything as it is, without a write: before time begins, while no cache holds a line.
    pub(crate) fn bring_all_home(&mut self) {
        self.memory.shared.media = self.arch.share();
    }

    /// Before time begins: programs find in a region of PM what PM holds.
    pub(crate) fn know_log_region(&mut self, start: Addr, end: Addr) {
        for line in start.line().0..end.line().0 {
            let content = self.memory.shared.media.load_line(LineAddr(line));
            self.arch.store_line(LineAddr(line), &content);
        }
    }

    /// Images that hold what memory holds: the architectural one, and PM's.
    pub(crate) fn share_images(&mut self) -> (Image, Image) {
        (self.arch.share(), self.memory.shared.media.share())
    }

    /// Before time begins: memory and caches are these, which another machine with the same caches has left.
    pub(crate) fn begin_with(&mut self, arch: Image, media: Image, caches: Hierarchy) {
        self.arch = arch;
        self.memory.shared.media = media;
        self.caches = caches;
    }

    /// The same if what is durable is followed.
    fn perform_followed_store(&mut self, addr: Addr, value: u64) {
        self.perform_store_beside(addr, value);
        if self.keeps_caches
            && self.memory.is_pm(addr)
            && let Some(domain) = &mut self.domain
            && domain.keep(addr, value, &self.arch)
        {
            self.memory.shared.durability.changes += 1;
        }
    }

    /// A store outside transactions is about to be performed.
    pub(crate) fn store_outside(&mut self, addr: Addr, value: u64) {
        if let Some((domain, arch)) = self.domain() {
            domain.store_outside(addr, arch.load(addr), value);
        }
    }

    /// A transaction stores to a word: what it might hold until now, if it was stored to outside transactions.
    pub(crate) fn take_outside(&mut self, addr: Addr) -> Option<Outside> {
        let (domain, arch) = self.domain()?;
        domain.take_outside(addr, arch.load(addr))
    }

    /// Words that were stored to outside transactions, and not by a transaction since, if what is durable is followed.
    pub fn outside(&self) -> Option<&OutsideWords> {
        self.domain.as_ref().map(Domain::outside)
    }

    /// Returns true if caches survive, and keep a word, so that what is written to memory does not change it.
    pub(crate) fn keeps_cached(&self, addr: Addr) -> bool {
        self.domain.as_ref().is_some_and(|domain| domain.is_cached(addr))
    }

    /// The part of recovery that power failures find done ahead, if there is any.
    pub fn settled(&self) -> Option<&Settled> {
        self.domain.as_ref().and_then(Domain::settled)
    }

    /// Follows from now on what is durable, counting differences to architectural memory in
    /// `[start, end)`. Nothing may have been written to memory yet.
    pub(crate) fn follow_domain(&mut self, start: Addr, end: Addr) {
        let shared = &mut self.memory.shared;
        assert_eq!(shared.durability.changes, 0, "the domain is followed from the beginning");
        shared.durability.writes = Some(Vec::new());
        let mut domain = Domain::new(shared.media.share(), start, end);
        if self.keeps_caches {
            domain.keep_caches();
        }
        self.domain = Some(domain);
    }

    /// Durable content at this instant, if it is followed.
    pub(crate) fn domain(&mut self) -> Option<(&mut Domain, &Image)> {
        self.follow_durable_writes();
        self.domain.as_mut().map(|domain| (domain, &self.arch))
    }

    /// Follows the digests of what is durable and of architectural memory from now on, too.
    pub(crate) fn follow_digests(&mut self) {
        self.domain.as_mut().expect("the domain is followed").follow_digests();
    }

    /// Digests of what is durable and of architectural memory, both relative to what they were when they began to be
    /// followed.
    ///
    /// # Panics
    /// They are not followed.
    pub fn digests(&self) -> (u64, u64) {
        self.domain.as_ref().expect("the domain is followed").digests()
    }

    fn follow_durable_writes(&mut self) {
        let (Some(domain), Some(writes)) =
            (&mut self.domain, &mut self.memory.shared.durability.writes)
        else {
            return;
        };
        if writes.is_empty() {
            return;
        }
        let mut followed = std::mem::take(writes);
        for (at, &(line, mask, data)) in followed.iter().enumerate() {
            // Several may have crossed since the last look.
            let is_newer_above = self.keeps_caches
                && (followed[at + 1..].iter().any(|&(other, ..)| other == line)
                    || self.caches.is_dirty(line)
                    || self.memory.has_unaccepted_write(line));
            let old = domain.write(line, mask, &data, &self.arch, is_newer_above);
            if let Some(trace) = &mut self.trace {
                let now = self.memory.shared.now;
                trace.push((now, TraceEvent::Durable { line, mask, old, new: data }));
            }
        }
        followed.clear();
        self.memory.shared.durability.writes = Some(followed);
    }

    /// The design's own durable state (a battery-backed buffer, a non-volatile register) has changed.
    #[inline]
    pub fn durable_state_changed(&mut self) {
        self.memory.shared.durability.changes += 1;
    }

    /// The design takes a snapshot of what all threads have stored so far.
    pub fn take_snapshot(&mut self) {
        self.snapshots += 1;
        self.emit(|| TraceEvent::Snapshot);
    }

    /// Snapshots since the last call.
    #[inline]
    pub(crate) fn untold_snapshots(&mut self) -> u32 {
        std::mem::take(&mut self.snapshots)
    }

    /// Ends the run with an error: the design cannot work as configured (an oversize transaction).
    pub fn fail(&mut self, why: String) {
        self.has_messages = true;
        self.failure.get_or_insert(why);
    }

    /// Reason of the design's failure, if it has declared one: the run is about to end.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// A place in the order of writes that other writes can wait for.
    pub fn order(&mut self) -> WriteOrder {
        self.memory.order()
    }

    /// Sends a write to memory that arrives after `delay`.
    pub fn write(&mut self, write: &Write, delay: Cycle) {
        // It will be compared with what the cells hold.
        self.memory.shared.media.prefetch(write.line);
        self.memory.shared.cells.prefetch(write.line);
        self.memory.write(write, delay);
    }

    /// Sends a read of the design's own; its `read_done` is called with the token.
    pub fn read(&mut self, line: LineAddr, token: Token, delay: Cycle) {
        self.memory.read(line, ReadPurpose::Design(token), delay);
    }

    /// Writes a dirty line back without evicting it (clwb): it is clean everywhere afterwards and its
    /// content of this instant is on its way through the levels below. Returns whether it was dirty;
    /// `prepare` may set token and order of the write.
    pub fn write_back(&mut self, line: LineAddr, prepare: impl FnOnce(&mut Write)) -> bool {
        let Some(delay) = self.caches.clean(line) else { return false };
        let mut write = Write::line(WriteClass::Data, line, self.arch.load_line(line));
        prepare(&mut write);
        self.count().forced_writebacks += 1;
        self.emit(|| TraceEvent::Evicted(line));
        self.write(&write, delay);
        true
    }

    /// Calls the design's `timer` with the token at a time (the present at the earliest).
    pub fn set_timer(&mut self, at: Cycle, token: u64) {
        let at = at.max(self.now());
        self.memory.shared.events.push(at, Event::Timer(token));
    }

    /// Returns true if anything waits to be delivered.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.has_messages || !self.memory.shared.notices.is_empty() || self.caches.has_evictions()
    }

    /// Returns true if some of what is delivered may be a message.
    #[inline]
    pub(crate) fn has_messages(&self) -> bool {
        self.has_messages
    }

    /// All messages have been taken.
    pub(crate) fn has_no_messages(&mut self) {
        self.has_messages = false;
    }

    /// Keeps what happens from now on, for [`Machine::take_trace`].
    pub(crate) fn keep_trace(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// Keeps the design's notes, too.
    pub(crate) fn keep_notes(&mut self) {
        self.has_notes = true;
    }

    /// Returns true if the design's notes are kept.
    #[inline]
    pub(crate) fn keeps_notes(&self) -> bool {
        self.has_notes
    }

    /// Events since the last call.
    pub(crate) fn take_trace(&mut self) -> Vec<(Cycle, TraceEvent)> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Keeps nothing from now on; what the design had to say since it was kept.
    pub(crate) fn end_trace(&mut self) -> Vec<(Cycle, String)> {
        self.has_notes = false;
        let notes = self.trace.take().unwrap_or_default().into_iter();
        notes
            .filter_map(|(at, event)| match event {
                TraceEvent::Note(text) => Some((at, text)),
                _ => None,
            })
            .collect()
    }

    /// Emits a trace event, if an observer wants them.
    #[inline]
    pub(crate) fn emit(&mut self, what: impl FnOnce() -> TraceEvent) {
        let now = self.now();
        if let Some(trace) = &mut self.trace {
            trace.push((now, what()));
        }
    }

    /// Explains an action of the design, for timelines.
    #[inline]
    pub fn note(&mut self, text: impl FnOnce() -> String) {
        if self.has_notes {
            self.emit(|| TraceEvent::Note(text()));
        }
    }

    /// The design is in one of the states worth reaching ([`crate::design::DesignInfo::cover_points`], by place).
    #[inline]
    pub fn cover(&mut self, index: usize) {
        self.cover_points[self.cover_first + index] += 1;
    }

    /// Counts cover points from this place on, until the next call: those of a layer of the design.
    pub(crate) fn cover_from(&mut self, place: usize) {
        self.cover_first = place;
    }

    /// Number of times that each of the design's cover points was reached.
    pub fn cover_points(&self) -> &[u64] {
        &self.cover_points
    }

    /// Hands over a line that the design has read for a miss ([`crate::design::Fill::Design`]); it
    /// leaves the controller after `delay` cycles.
    pub fn deliver(&mut self, line: LineAddr, content: LineData, after: Cycle) {
        let at = self.now() + after;
        self.has_messages = true;
        self.delivered.push_back((line, content, at));
    }

    pub(crate) fn take_delivered(&mut self) -> Option<(LineAddr, LineData, Cycle)> {
        self.delivered.pop_front()
    }

    /// Occupies a thread's core for `cycles` cycles (an inter-processor interrupt), after what it
    /// is doing at this instant.
    pub fn interrupt(&mut self, thread: ThreadId, cycles: Cycle) {
        self.has_messages = true;
        self.interrupted.push_back((thread, cycles));
    }

    pub(crate) fn take_interrupted(&mut self) -> Option<(ThreadId, Cycle)> {
        self.interrupted.pop_front()
    }

    /// Releases a thread that a hook made wait.
    pub fn release(&mut self, thread: ThreadId) {
        self.has_messages = true;
        self.released.push_back(thread);
    }

    /// The same, of a thread that waits for what has happened at the controller: a message notifies its core.
    pub fn release_by_message(&mut self, thread: ThreadId) {
        let at = self.now() + self.path;
        self.memory.shared.events.push(at, Event::Release(thread));
    }

    /// A message opens a gate.
    pub(crate) fn open_by_message(&mut self, gate: Gate) {
        let at = self.now() + self.path;
        self.memory.shared.events.push(at, Event::Gate(gate.number()));
    }

    pub(crate) fn take_released(&mut self) -> Option<ThreadId> {
        self.released.pop_front()
    }
}
