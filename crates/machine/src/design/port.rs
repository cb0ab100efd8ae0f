//! Actions that a design may take on the machine, and no others.
//!
//! Requests and timers carry values of the design's own types, which come back with the answer: nothing is packed into
//! a number, and no answer can be taken for another's. There is no way from here to the event queue, to what programs
//! have stored but no hardware holds, or to another design's state.

use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LineAddr, LineData, WordMask};
use graven_base::time::{Cycle, NEVER};
use slab::Slab;

use super::event::{DesignEvent, Observation};
use super::operators::{Interference, variant};
use super::{Design, Place, Writeback};
use crate::caches::hierarchy::TagPortUse;
use crate::caches::tags::Cache;
use crate::gates::GateNumber;
use crate::machine::Machine;
use crate::request::{Gate, OrderSeq, Token, Write, WriteOrder};

/// Requests and timers of a design under way, by the numbers that the machine knows, and its
/// counters.
pub(super) struct Pending<D: Design> {
    writes: Slab<D::Write>,
    reads: Slab<D::Read>,
    timers: Slab<(D::Timer, Place)>,
    pub(super) counters: <D::Event as DesignEvent>::Counters,
    /// Interference between the design and the machine, if any.
    pub(super) interference: Option<Box<Interference>>,
}

impl<D: Design> Default for Pending<D> {
    fn default() -> Self {
        Pending {
            writes: Slab::new(),
            reads: Slab::new(),
            timers: Slab::new(),
            counters: Default::default(),
            interference: None,
        }
    }
}

impl<D: Design> Pending<D> {
    /// The number of a write that is to be reported, or 0.
    pub(super) fn expect_write(&mut self, write: Option<D::Write>) -> Token {
        write.map_or(0, |write| self.writes.insert(write) as Token + 1)
    }

    /// Conditions of a dirty line's write as the machine knows them, after what interferes: the ordered write and the gate that it
    /// waits for, and the number of its report.
    pub(super) fn conditions(
        &mut self,
        machine: &mut Machine,
        on: Writeback<D::Write>,
    ) -> (OrderSeq, GateNumber, Token) {
        let Writeback { after, gate, report } = on;
        let (after, gate, token) = (after.number(), gate.number(), self.expect_write(report));
        match &mut self.interference {
            None => (after, gate, token),
            Some(interference) => {
                let name = report.map(|report| variant(&report));
                interference.evict(machine, name.as_deref(), after, gate, token)
            }
        }
    }

    pub(super) fn take_write(&mut self, token: Token) -> D::Write {
        self.writes.remove(token as usize - 1)
    }

    pub(super) fn take_read(&mut self, token: Token) -> D::Read {
        self.reads.remove(token as usize - 1)
    }

    pub(super) fn take_timer(&mut self, token: u64) -> (D::Timer, Place) {
        self.timers.remove(token as usize)
    }
}

/// The machine, as a design sees it.
pub struct Port<'a, D: Design> {
    machine: &'a mut Machine,
    pending: &'a mut Pending<D>,
    /// Place at which the hook that has this port runs.
    place: Place,
}

impl<'a, D: Design> Port<'a, D> {
    #[inline]
    pub(super) fn new(machine: &'a mut Machine, pending: &'a mut Pending<D>, place: Place) -> Self {
        Port { machine, pending, place }
    }

    // ---- time ----------------------------------------------------------------------------------

    /// The current cycle.
    #[inline]
    pub fn now(&self) -> Cycle {
        self.machine.now()
    }

    /// Cycles of a message between an L1 and the controller that bypasses the caches.
    pub fn bypass_cycles(&self) -> Cycle {
        self.machine.bypass_cycles()
    }

    /// Cycles in which a line passes through the caches of all levels.
    pub fn miss_path_cycles(&self) -> Cycle {
        self.machine.caches.miss_path_cycles()
    }

    /// Calls [`Design::on_timer`] with this at a cycle, the current one at the earliest, and at the [`Place`] where it is
    /// set.
    pub fn set_timer(&mut self, at: Cycle, timer: D::Timer) {
        self.set_timer_at(self.place, at, timer);
    }

    /// Sends a message to the processor that leaves after `after` cycles; [`Design::on_timer`] is
    /// called with `timer`, there, when it has arrived.
    pub fn send_to_core(&mut self, after: Cycle, timer: D::Timer) {
        let at = self.now() + after + self.bypass_cycles();
        self.set_timer_at(Place::Processor, at, timer);
    }

    /// Sends a message to the controller that leaves after `after` cycles; [`Design::on_timer`] is
    /// called with `timer`, there, when it has arrived.
    pub fn send_to_controller(&mut self, after: Cycle, timer: D::Timer) {
        let at = self.now() + after + self.bypass_cycles();
        self.set_timer_at(Place::Controller, at, timer);
    }

    fn set_timer_at(&mut self, place: Place, at: Cycle, timer: D::Timer) {
        let number = self.pending.timers.insert((timer, place)) as u64;
        self.machine.set_timer(at, number);
    }

    /// The next cycle in which anything of the machine can change: when a full queue may have a place.
    pub fn next_change(&self) -> Cycle {
        match self.machine.memory.shared.events.next_at() {
            NEVER => self.now() + 1,
            next => next.max(self.now() + 1),
        }
    }

    // ---- writes and reads ----------------------------------------------------------------------

    /// A place in the order of writes that other writes can wait for ([`Write::ordered`], [`Write::after`]).
    pub fn order(&mut self) -> WriteOrder {
        self.machine.order()
    }

    /// Returns true if all ordered writes up to this one are durable.
    #[inline]
    pub fn is_durable(&self, order: WriteOrder) -> bool {
        self.machine.memory.shared.durability.order.reached(order.number())
    }

    /// A closed gate that writes can wait behind ([`Write::behind`], [`super::Writeback::behind`]). They wait outside the write queues
    /// until [`Port::open`]; reads and fences find them there.
    pub fn gate(&mut self) -> Gate {
        Gate::from_number(self.machine.memory.write_order().gates.make())
    }

    /// A gate that opens with the last of these; none if they are open.
    pub fn join_gates(&mut self, gates: impl IntoIterator<Item = Gate>) -> Gate {
        let numbers = gates.into_iter().map(Gate::number);
        Gate::from_number(self.machine.memory.write_order().gates.join(numbers))
    }

    /// Returns true if a gate is open, or there is none.
    pub fn is_open(&self, gate: Gate) -> bool {
        self.machine.memory.shared.durability.order.gates.is_open(gate.number())
    }

    /// Opens a gate: at the controller at once, from the processor by a message.
    ///
    /// # Panics
    /// The gate is open, or made by [`Port::join_gates`].
    pub fn open(&mut self, gate: Gate) {
        match self.place {
            Place::Controller => self.machine.memory.open_gate(gate),
            Place::Processor => self.machine.open_by_message(gate),
        }
    }

    /// Sends a write to memory that arrives after `delay` cycles; nothing is heard of it.
    #[inline]
    pub fn write(&mut self, write: Write, delay: Cycle) {
        if let Some(interference) = &mut self.pending.interference {
            return interference.send(self.machine, None, write, delay);
        }
        self.machine.write(&write, delay);
    }

    /// Sends a write to memory that arrives after `delay` cycles; [`Design::on_durable`] is called with `about`.
    #[inline]
    pub fn write_reported(&mut self, write: Write, about: D::Write, delay: Cycle) {
        self.write_maybe_reported(write, Some(about), delay);
    }

    /// The one or the other.
    #[inline]
    pub fn write_maybe_reported(
        &mut self,
        mut write: Write,
        about: Option<D::Write>,
        delay: Cycle,
    ) {
        write.token = self.pending.expect_write(about);
        if let Some(interference) = &mut self.pending.interference {
            let name = about.map(|about| variant(&about));
            return interference.send(self.machine, name.as_deref(), write, delay);
        }
        self.machine.write(&write, delay);
    }

    /// Sends a read of a line; [`Design::on_read`] is called with `about`.
    pub fn read(&mut self, line: LineAddr, about: D::Read, delay: Cycle) {
        let token = self.pending.reads.insert(about) as Token + 1;
        self.machine.read(line, token, delay);
    }

    /// The same for a miss that the design answers ([`super::Fill::Design`]).
    pub fn read_for_miss(&mut self, line: LineAddr, about: D::Read, delay: Cycle) {
        self.machine.count().fill_reads += 1;
        self.read(line, about, delay);
    }

    /// Hands over a line that the design has read for a miss ([`super::Fill::Design`]); it leaves
    /// the controller after `delay` cycles.
    pub fn deliver(&mut self, line: LineAddr, content: LineData, after: Cycle) {
        self.machine.deliver(line, content, after);
    }

    /// Returns true if the write queue of a line's channel has a place.
    pub fn has_room_for_write(&self, line: LineAddr) -> bool {
        self.machine.memory.has_room_for_write(line)
    }

    /// Returns true if the write queue of some channel is full.
    pub fn has_full_write_queue(&self) -> bool {
        self.machine.memory.has_full_write_queue()
    }

    /// Returns true if a write to a line is on its way, not accepted yet.
    pub fn has_unaccepted_write(&self, line: LineAddr) -> bool {
        self.machine.memory.has_unaccepted_write(line)
    }

    /// Adds to each PM bank's count its pending requests.
    pub fn add_pending_requests(&self, counts: &mut [u32]) {
        self.machine.memory.add_pending(counts);
    }

    /// Returns what a read of a line of PM would return: the newest bytes on the memory's side.
    pub fn memory_line(&self, line: LineAddr) -> LineData {
        self.machine.memory.content(line)
    }

    /// Returns true if an address is one of PM.
    #[inline]
    pub fn is_pm(&self, addr: Addr) -> bool {
        self.machine.memory.is_pm(addr)
    }

    /// First byte of DRAM.
    pub fn dram_start(&self) -> Addr {
        self.machine.memory.dram_start()
    }

    /// First byte of the DRAM that designs may use.
    pub fn dram_heap(&self) -> Addr {
        self.machine.memory.dram_heap()
    }

    // ---- caches --------------------------------------------------------------------------------

    /// Content of a line in the caches: its newest bytes, as coherence keeps them.
    #[inline]
    pub fn cached_line(&self, line: LineAddr) -> LineData {
        self.machine.line(line)
    }

    /// Content of a word in the caches.
    #[inline]
    pub fn cached_word(&self, addr: Addr) -> u64 {
        self.machine.load(addr)
    }

    /// Returns true if a cache holds changes of a line that memory has not. A store makes its line dirty before the design is told of it.
    pub fn is_dirty(&self, line: LineAddr) -> bool {
        self.machine.caches.is_dirty(line)
    }

    /// Writes a dirty line back without evicting it (clwb): it is clean everywhere afterwards and its
    /// content is on its way through the levels below. It may become durable only after the ordered writes up to
    /// `after`; `about` is reported if there is one. Returns whether it was dirty: otherwise nothing is sent.
    pub fn write_back(
        &mut self,
        line: LineAddr,
        after: WriteOrder,
        about: Option<D::Write>,
    ) -> bool {
        self.write_back_words(line, WordMask::MAX, after, about)
    }

    /// The same of some words of the line: what the caches hold of the others goes nowhere, and the design answers for
    /// them.
    pub fn write_back_words(
        &mut self,
        line: LineAddr,
        mask: WordMask,
        after: WriteOrder,
        about: Option<D::Write>,
    ) -> bool {
        self.write_back_on(line, mask, Writeback { report: about, ..Writeback::after(after) })
    }

    /// Writes a dirty line back without evicting it, behind a gate.
    pub fn write_back_behind(
        &mut self,
        line: LineAddr,
        gate: Gate,
        about: Option<D::Write>,
    ) -> bool {
        let on = Writeback { report: about, ..Writeback::FREE.behind(gate) };
        self.write_back_on(line, WordMask::MAX, on)
    }

    /// Writes words of a dirty line back on these conditions.
    fn write_back_on(&mut self, line: LineAddr, mask: WordMask, on: Writeback<D::Write>) -> bool {
        if !self.machine.caches.is_dirty(line) {
            return false;
        }
        let (after, gate, token) = self.pending.conditions(self.machine, on);
        self.machine.write_back(line, |write| {
            (write.mask, write.after, write.gate, write.token) = (mask, after, gate, token);
        })
    }

    /// Makes a line clean everywhere, for a design that sends its content itself. Returns in how many cycles the
    /// content falls through the levels below, or nothing if it was clean.
    pub fn clean(&mut self, line: LineAddr) -> Option<Cycle> {
        self.machine.caches.clean(line)
    }

    /// Number of cache arrays, over all levels and cores.
    pub fn cache_count(&self) -> usize {
        self.machine.caches.cache_count()
    }

    /// A cache's array of tags.
    pub fn cache(&self, cache: usize) -> &Cache {
        self.machine.caches.cache(cache)
    }

    /// The bits of a line in a cache, in the slot with this number; those for designs are among them
    /// ([`crate::caches::tags::DESIGN_BITS`]).
    pub fn line_state(&mut self, cache: usize, number: usize) -> &mut u8 {
        let cache = self.machine.caches.cache_mut(cache);
        cache.state_mut(cache.slot(number))
    }

    /// The design's tag of a line's newest copy: the innermost one of the core that may write to it, or the LLC's. None: no cache
    /// has the line ([`super::TaggedDesign`]).
    pub fn tag(&self, line: LineAddr) -> Option<u8> {
        self.machine.caches.tag(line)
    }

    /// Sets the design's tag of a line in a core's L1.
    ///
    /// # Panics
    /// The L1 does not have the line. It has when a hook is told of a store to it.
    pub fn set_tag(&mut self, core: u32, line: LineAddr, tag: u8) {
        let seen = self.pending.interference.as_mut().map_or(tag, |i| i.seen_tag(tag));
        self.machine.caches.set_tag(core, line, seen);
    }

    /// Occupies the port of a cache's tags from now on.
    pub fn use_tag_port(&mut self, using: TagPortUse) {
        self.machine.caches.use_tag_port(using);
    }

    // ---- threads -------------------------------------------------------------------------------

    /// Releases a thread that a hook made wait for an event at the controller: a write is durable,
    /// a place is free, work in the background is done. Its core learns of it by a message, so it
    /// resumes [`Port::bypass_cycles`] later, under every design.
    pub fn release(&mut self, thread: ThreadId) {
        if self.is_awaited(thread) {
            self.machine.release_by_message(thread);
        }
    }

    /// Releases a thread that a hook made wait for an event where this is called: a message has
    /// arrived, a buffer beside the L1 has a place. At the processor it resumes at once; at the
    /// controller this is [`Port::release`], so that no design can spare the message.
    pub fn release_here(&mut self, thread: ThreadId) {
        match self.place {
            Place::Controller => self.release(thread),
            Place::Processor => {
                if self.is_awaited(thread) {
                    self.machine.release(thread);
                }
            }
        }
    }

    /// Returns true if the design's release of a thread counts: an operator may have released it
    /// before.
    fn is_awaited(&mut self, thread: ThreadId) -> bool {
        self.pending.interference.as_mut().is_none_or(|i| i.waits(thread))
    }

    /// Occupies a thread's core for `cycles` cycles (an inter-processor interrupt), after what it
    /// is doing in this cycle.
    pub fn interrupt(&mut self, thread: ThreadId, cycles: Cycle) {
        self.machine.interrupt(thread, cycles);
    }

    /// Ends the run with an error: the design cannot work as configured (an oversize transaction).
    pub fn fail(&mut self, why: String) {
        self.machine.fail(why);
    }

    // ---- what happened -------------------------------------------------------------------------

    /// The design's own durable state (a battery-backed buffer, a non-volatile register) has changed.
    #[inline]
    pub fn durable_state_changed(&mut self) {
        self.machine.durable_state_changed();
    }

    /// The design takes a snapshot: what all threads have stored so far. The judge of a promise of snapshots is told.
    pub fn take_snapshot(&mut self) {
        self.machine.take_snapshot();
    }

    /// Something happened that is counted, covered or traced.
    #[inline]
    pub fn emit(&mut self, event: D::Event) {
        event.observe(&mut Observation::new(self.machine, &mut self.pending.counters));
    }
}
