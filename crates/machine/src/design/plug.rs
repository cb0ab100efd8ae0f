//! A design as the simulation sees it: object-safe, with requests and timers as numbers.

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, LineAddr, LineData};
use graven_base::stats::{CounterSet, Counts};
use graven_base::surviving::SurvivingImage;

use super::layers::asks_for_nothing;
use super::operators::{Hook, Interference};
use super::port::Pending;
use super::{
    AbsorbingDesign, Code, Departure, DepartureDesign, Design, Fill, LoadDesign, Miss,
    NonTemporalDesign, OpAction, PersistDesign, Place, PlainStore, PlainStoreDesign, Port,
    SoftwareDesign, Stall, Store, TaggedDesign, WritebackAction,
};
use crate::machine::Machine;
use crate::program::{Op, Persist};
use crate::request::Token;

/// Treatment of a dirty line that leaves the LLC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawAction {
    /// Written to its home address.
    Send {
        /// See [`crate::request::Write::after`].
        after: u64,
        /// See [`crate::request::Write::gate`].
        gate: u64,
        /// Reported to [`Plug::on_durable`] when the line is durable; 0: not reported.
        token: Token,
    },
    /// Nothing is sent.
    Absorb,
}

/// A design as the simulation sees it: object-safe, with requests and timers as numbers. Designs implement [`Design`] and
/// the traits of rare abilities, whose hooks have the contracts; [`plug`] turns them into this.
pub(crate) trait Plug {
    /// Puts something between the design and the machine.
    fn interfere(&mut self, interference: Interference);
    /// Returns that.
    fn interference(&mut self) -> Option<&mut Interference>;
    /// Returns what the counters of the design hold.
    fn counts(&self) -> Counts;

    // Hooks of every design.
    fn resume(&mut self, registers: &[u64]);
    fn start(&mut self, m: &mut Machine);
    fn tx_begin(&mut self, m: &mut Machine, tx: Tx) -> Stall;
    fn store(&mut self, m: &mut Machine, store: &Store) -> Stall;
    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Stall;
    /// `tag`: the design's tag of the line.
    fn llc_evict(
        &mut self,
        m: &mut Machine,
        line: LineAddr,
        content: &LineData,
        tag: u8,
    ) -> RawAction;
    fn llc_fill(&mut self, m: &mut Machine, miss: &Miss) -> Fill;
    fn on_durable(&mut self, m: &mut Machine, token: Token);
    fn read_done(&mut self, m: &mut Machine, token: Token, line: LineAddr, content: &LineData);
    fn start_maintenance(&mut self, m: &mut Machine);
    fn timer(&mut self, m: &mut Machine, token: u64);
    fn is_idle(&self) -> bool;
    fn shut_down(&mut self, m: &mut Machine);
    fn power_failure(&self, medium: &mut SurvivingImage);
    fn registers(&self) -> Vec<u64>;
    fn places_taken(&self, structure: usize) -> u64;

    // Hooks of designs with rare abilities: called only if the design has them.
    fn accepts_non_temporal(&mut self, m: &mut Machine, tx: Tx, line: LineAddr) -> bool;
    fn store_non_temporal(&mut self, m: &mut Machine, store: &Store) -> Stall;
    fn takes_plain_stores(&self) -> bool;
    fn store_plain(&mut self, m: &mut Machine, store: &PlainStore) -> Stall;
    fn takes_persists(&self) -> bool;
    fn persist(
        &mut self,
        m: &mut Machine,
        thread: ThreadId,
        core: u32,
        what: Persist,
    ) -> Option<Stall>;
    fn wants_loads(&self) -> bool;
    fn load(&mut self, m: &mut Machine, thread: ThreadId, core: u32, addr: Addr);
    fn wants_departures(&self) -> bool;
    fn departs(&mut self, m: &mut Machine, departure: &Departure);
    fn has_software(&self) -> bool;
    /// Returns true if it has software, and no requests to the machine.
    fn is_software_alone(&self) -> bool;
    fn software(&mut self, m: &mut Machine, thread: ThreadId, op: &Op, code: &mut Code)
    -> OpAction;
    /// Returns true if it may keep dirty lines from memory.
    fn absorbs(&self) -> bool;
    /// Returns [`AbsorbingDesign::HAS_DIRTY_WORDS`].
    fn has_dirty_words(&self) -> bool;
    /// Returns [`AbsorbingDesign::DROPS_LINES`].
    fn drops_lines(&self) -> bool;
}

type SoftwareHook<D> = fn(&mut D, &mut Port<'_, D>, ThreadId, &Op, &mut Code) -> OpAction;
type EvictionHook<D> =
    fn(&mut D, &mut Port<'_, D>, LineAddr, &LineData, u8) -> WritebackAction<<D as Design>::Write>;
type DepartureHook<D> = fn(&mut D, &mut Port<'_, D>, &Departure);
type AcceptHook<D> = fn(&mut D, &mut Port<'_, D>, Tx, LineAddr) -> bool;
type StoreHook<D> = fn(&mut D, &mut Port<'_, D>, &Store) -> Stall;
type PlainHook<D> = fn(&mut D, &mut Port<'_, D>, &PlainStore) -> Stall;
type PersistHook<D> = fn(&mut D, &mut Port<'_, D>, ThreadId, u32, Persist) -> Option<Stall>;
type LoadHook<D> = fn(&mut D, &mut Port<'_, D>, ThreadId, u32, Addr);

/// A design with what it has under way.
pub struct Plugged<D: Design> {
    design: D,
    pending: Pending<D>,
    software: Option<SoftwareHook<D>>,
    eviction: EvictionHook<D>,
    departure: Option<DepartureHook<D>>,
    non_temporal: Option<(AcceptHook<D>, StoreHook<D>)>,
    plain_store: Option<PlainHook<D>>,
    persist: Option<PersistHook<D>>,
    load: Option<LoadHook<D>>,
    absorbs: bool,
    has_dirty_words: bool,
    drops_lines: bool,
}

/// Makes a design ready for the simulation; rare abilities are added by the methods of what this returns.
pub fn plug<D: Design>(design: D) -> Plugged<D> {
    Plugged {
        design,
        pending: Pending::default(),
        software: None,
        eviction: |design, port, line, content, _| {
            WritebackAction::Send(design.on_llc_eviction(port, line, content))
        },
        departure: None,
        non_temporal: None,
        plain_store: None,
        persist: None,
        load: None,
        absorbs: false,
        has_dirty_words: false,
        drops_lines: false,
    }
}

impl<D: Design> Plugged<D> {
    /// Has it notified of lines that leave the L1 caches.
    #[must_use]
    pub fn with_departures(mut self) -> Self
    where
        D: DepartureDesign,
    {
        self.departure = Some(D::on_departure);
        self
    }

    /// Lets it put code into threads.
    #[must_use]
    pub fn with_software(mut self) -> Self
    where
        D: SoftwareDesign,
    {
        self.software = Some(D::before_op);
        self
    }

    /// Lets it keep dirty lines from memory.
    #[must_use]
    pub fn absorbing(mut self) -> Self
    where
        D: AbsorbingDesign,
    {
        self.eviction =
            |design, port, line, content, _| design.on_dirty_eviction(port, line, content);
        self.absorbs = true;
        self.has_dirty_words = D::HAS_DIRTY_WORDS;
        self.drops_lines = D::DROPS_LINES;
        self
    }

    /// Has it told of the tags of dirty lines that leave the LLC.
    ///
    /// # Panics
    /// The design absorbs such lines ([`Plugged::absorbing`]).
    #[must_use]
    pub fn with_tags(mut self) -> Self
    where
        D: TaggedDesign,
    {
        assert!(
            !self.absorbs,
            "a design either absorbs the lines that leave the LLC or is told of their tags"
        );
        self.eviction = |design, port, line, content, tag| {
            WritebackAction::Send(design.on_tagged_eviction(port, line, content, tag))
        };
        self
    }

    /// Lets it take non-temporal stores.
    #[must_use]
    pub fn with_non_temporal_stores(mut self) -> Self
    where
        D: NonTemporalDesign,
    {
        self.non_temporal = Some((D::accepts_non_temporal, D::on_non_temporal_store));
        self
    }

    /// Has it notified of stores to PM outside transactions.
    #[must_use]
    pub fn with_plain_stores(mut self) -> Self
    where
        D: PlainStoreDesign,
    {
        self.plain_store = Some(D::on_plain_store);
        self
    }

    /// Lets it execute instructions for persistence and order.
    #[must_use]
    pub fn with_persists(mut self) -> Self
    where
        D: PersistDesign,
    {
        self.persist = Some(D::on_persist);
        self
    }

    /// Has it notified of loads of PM. Simulations take longer with it.
    #[must_use]
    pub fn with_loads(mut self) -> Self
    where
        D: LoadDesign,
    {
        self.load = Some(D::on_load);
        self
    }

    /// The design, and the machine as it sees it. The simulation calls its methods; tests of what a design is
    /// made of get a port from here.
    #[inline]
    pub fn parts<'a>(&'a mut self, machine: &'a mut Machine) -> (&'a mut D, Port<'a, D>) {
        self.parts_at(Place::Processor, machine)
    }

    #[inline]
    fn parts_at<'a>(
        &'a mut self,
        place: Place,
        machine: &'a mut Machine,
    ) -> (&'a mut D, Port<'a, D>) {
        (&mut self.design, Port::new(machine, &mut self.pending, place))
    }
}

/// A design that is ready for the simulation, whatever its types.
pub struct PluggedDesign(Box<dyn Plug>);

impl PluggedDesign {
    pub(super) fn of(plug: Box<dyn Plug>) -> PluggedDesign {
        PluggedDesign(plug)
    }

    pub(crate) fn into_inner(self) -> Box<dyn Plug> {
        self.0
    }
}

impl<D: Design> From<Plugged<D>> for PluggedDesign {
    fn from(plugged: Plugged<D>) -> PluggedDesign {
        PluggedDesign(Box::new(plugged))
    }
}

impl<D: Design> Plugged<D> {
    #[inline]
    fn seen_transaction(&self, tx: Tx) -> Tx {
        self.pending.interference.as_ref().map_or(tx, |i| i.seen_transaction(tx))
    }

    /// Tells the design of a store, which the interference may show it otherwise than it is.
    #[inline(always)]
    fn tell(
        &mut self,
        m: &mut Machine,
        store: &Store,
        hook: impl FnOnce(&mut D, &mut Port<'_, D>, &Store) -> Stall,
    ) -> Stall {
        let Some(interference) = &mut self.pending.interference else {
            let (design, mut port) = self.parts(m);
            return hook(design, &mut port, store);
        };
        let seen = interference.seen_store(store);
        let (design, mut port) = self.parts(m);
        let stall = hook(design, &mut port, &seen);
        self.answer(Hook::Store, store.tx.thread, stall)
    }

    #[inline]
    fn answer(&mut self, hook: Hook, thread: ThreadId, stall: Stall) -> Stall {
        match &mut self.pending.interference {
            Some(interference) => interference.answer(hook, thread, stall),
            None => stall,
        }
    }
}

impl<D: Design> Plug for Plugged<D> {
    fn interfere(&mut self, interference: Interference) {
        self.pending.interference = Some(Box::new(interference));
    }

    fn interference(&mut self) -> Option<&mut Interference> {
        self.pending.interference.as_deref_mut()
    }

    fn resume(&mut self, registers: &[u64]) {
        self.design.resume(registers);
    }

    fn start(&mut self, m: &mut Machine) {
        let (design, mut port) = self.parts(m);
        design.start(&mut port);
    }

    fn tx_begin(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        let seen = self.seen_transaction(tx);
        let (design, mut port) = self.parts(m);
        let stall = design.on_tx_begin(&mut port, seen);
        self.answer(Hook::Begin, tx.thread, stall)
    }

    fn store(&mut self, m: &mut Machine, store: &Store) -> Stall {
        self.tell(m, store, D::on_store)
    }

    fn accepts_non_temporal(&mut self, m: &mut Machine, tx: Tx, line: LineAddr) -> bool {
        let Some((accepts, _)) = self.non_temporal else { return false };
        let tx = self.seen_transaction(tx);
        let (design, mut port) = self.parts(m);
        accepts(design, &mut port, tx, line)
    }

    fn store_non_temporal(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let (_, hook) = self.non_temporal.expect("only a design that takes them gets them");
        self.tell(m, store, hook)
    }

    fn takes_plain_stores(&self) -> bool {
        self.plain_store.is_some()
    }

    fn store_plain(&mut self, m: &mut Machine, store: &PlainStore) -> Stall {
        let hook = self.plain_store.expect("only a design that sees them is told");
        let Some(interference) = &mut self.pending.interference else {
            let (design, mut port) = self.parts(m);
            return hook(design, &mut port, store);
        };
        let new = interference.seen_value(store.old, store.new);
        let (design, mut port) = self.parts(m);
        let stall = hook(design, &mut port, &PlainStore { new, ..*store });
        self.answer(Hook::Store, store.thread, stall)
    }

    fn takes_persists(&self) -> bool {
        self.persist.is_some()
    }

    fn persist(
        &mut self,
        m: &mut Machine,
        thread: ThreadId,
        core: u32,
        what: Persist,
    ) -> Option<Stall> {
        let hook = self.persist?;
        let (design, mut port) = self.parts(m);
        let stall = hook(design, &mut port, thread, core, what)?;
        Some(self.answer(Hook::Persist, thread, stall))
    }

    fn wants_loads(&self) -> bool {
        self.load.is_some()
    }

    fn load(&mut self, m: &mut Machine, thread: ThreadId, core: u32, addr: Addr) {
        if let Some(hook) = self.load {
            let (design, mut port) = self.parts(m);
            hook(design, &mut port, thread, core, addr);
        }
    }

    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        let seen = self.seen_transaction(tx);
        let (design, mut port) = self.parts(m);
        let stall = design.on_tx_end(&mut port, seen);
        self.answer(Hook::End, tx.thread, stall)
    }

    fn wants_departures(&self) -> bool {
        self.departure.is_some()
    }

    fn departs(&mut self, m: &mut Machine, departure: &Departure) {
        let hook = self.departure.expect("only a design that asked for them is notified");
        let (design, mut port) = self.parts(m);
        hook(design, &mut port, departure);
    }

    fn llc_evict(
        &mut self,
        m: &mut Machine,
        line: LineAddr,
        content: &LineData,
        tag: u8,
    ) -> RawAction {
        let hook = self.eviction;
        let (design, mut port) = self.parts(m);
        let action = hook(design, &mut port, line, content, tag);
        match action {
            WritebackAction::Send(on) => {
                let (after, gate, token) = self.pending.conditions(m, on);
                RawAction::Send { after, gate, token }
            }
            WritebackAction::Absorb => RawAction::Absorb,
        }
    }

    fn llc_fill(&mut self, m: &mut Machine, miss: &Miss) -> Fill {
        let (design, mut port) = self.parts(m);
        design.on_llc_miss(&mut port, miss)
    }

    fn has_software(&self) -> bool {
        self.software.is_some()
    }

    fn is_software_alone(&self) -> bool {
        self.has_software() && asks_for_nothing::<D>()
    }

    fn software(
        &mut self,
        m: &mut Machine,
        thread: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction {
        let hook = self.software.expect("only a design with software is asked");
        let (design, mut port) = self.parts(m);
        let action = hook(design, &mut port, thread, op, code);
        if let Some(interference) = &mut self.pending.interference {
            interference.change_code(code);
        }
        action
    }

    fn on_durable(&mut self, m: &mut Machine, token: Token) {
        let write = self.pending.take_write(token);
        let (design, mut port) = self.parts_at(Place::Controller, m);
        design.on_durable(&mut port, write);
    }

    fn read_done(&mut self, m: &mut Machine, token: Token, line: LineAddr, content: &LineData) {
        let read = self.pending.take_read(token);
        let (design, mut port) = self.parts_at(Place::Controller, m);
        design.on_read(&mut port, read, line, content);
    }

    fn start_maintenance(&mut self, m: &mut Machine) {
        let (design, mut port) = self.parts(m);
        design.start_maintenance(&mut port);
    }

    fn timer(&mut self, m: &mut Machine, token: u64) {
        let (timer, place) = self.pending.take_timer(token);
        let (design, mut port) = self.parts_at(place, m);
        design.on_timer(&mut port, timer);
    }

    fn absorbs(&self) -> bool {
        self.absorbs
    }

    fn has_dirty_words(&self) -> bool {
        self.has_dirty_words
    }

    fn drops_lines(&self) -> bool {
        self.drops_lines
    }

    fn is_idle(&self) -> bool {
        self.design.is_idle()
    }

    fn shut_down(&mut self, m: &mut Machine) {
        let (design, mut port) = self.parts(m);
        design.on_shutdown(&mut port);
    }

    fn power_failure(&self, image: &mut SurvivingImage) {
        self.design.on_power_failure(image);
    }

    fn registers(&self) -> Vec<u64> {
        self.design.registers()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        self.design.places_taken(structure)
    }

    fn counts(&self) -> Counts {
        self.pending.counters.counts()
    }
}
