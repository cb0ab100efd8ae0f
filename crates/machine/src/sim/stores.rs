//! The store queue: stores, and what is ordered with them, retire into it, and are performed in order, as lines and
//! design allow.
//!
//! A store is performed when its line is in the L1 exclusively, older loads are complete, and the design
//! agrees: architectural memory changes at that instant.

use super::run::Simulation;
use super::threads::{Cause, Head, Kind, QueuedStore, Running, State, Waiter};
use crate::caches::hierarchy::Access;
use crate::caches::tags::Slot;
use crate::clock::Event;
use crate::controller::outside::Outside;
use crate::design::{PlainStore, Stall, Store};
use crate::program::{Op, Persist, Ptr};
use crate::trace_event::TraceEvent;
use graven_base::ids::Tx;
use graven_base::memory::{Addr, LineAddr};
use graven_base::time::Cycle;

/// Result of asking for a line ahead of a store's turn.
struct Asked {
    /// When it comes out of a cache; 0 if it is not awaited from one.
    line_at: Cycle,
    /// The access was made, so that the store's own is not counted again.
    counted: bool,
}

impl Asked {
    /// No need to ask, or no cache to ask.
    const NOTHING: Asked = Asked { line_at: 0, counted: false };
}

impl Simulation {
    /// Stores: into the thread's queue; performed in order, as lines and design allow.
    pub(super) fn store(&mut self, thread: usize, op: Op, at: Ptr, value: u64, kind: Kind) {
        let t = &self.threads[thread];
        if t.stores.len() >= t.stores_max {
            return self.block_on_stores(thread, op);
        }
        if t.pipeline.is_out_of_order()
            && self.threads[thread].pipeline.load_start(at.origin).is_err()
        {
            return self.block(thread, Cause::Load, Some(op));
        }
        if !self.issue(thread, op, 1) {
            return;
        }
        self.machine.count().stores += 1;
        self.enqueue(thread, kind, at.addr, value);
    }

    /// Something retires into the store queue, which has room.
    #[inline]
    pub(super) fn enqueue(&mut self, thread: usize, kind: Kind, addr: Addr, value: u64) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        let in_transaction = t.running.is_some() && kind != Kind::Own;
        let after_load = t.pipeline.last_load();
        let (line_at, fills, counted) = (0, None, false);
        let store =
            QueuedStore { kind, addr, value, in_transaction, after_load, line_at, fills, counted };
        t.stores.push_back(store);
        if t.stores.len() > 1 || t.head != Head::Free {
            self.ask_ahead(thread);
        } else if t.store_port_free_at > now {
            t.head = Head::Scheduled;
            let at = t.store_port_free_at;
            self.machine.memory.shared.events.push(at, Event::StoreDrain(thread as u32));
        } else {
            self.try_store(thread);
        }
    }

    pub(super) fn block_on_stores(&mut self, thread: usize, op: Op) {
        let cause = match self.threads[thread].head {
            Head::HeldAfter | Head::HeldBefore => Cause::Log,
            Head::Fence => Cause::Fence,
            _ => Cause::Store,
        };
        self.block(thread, cause, Some(op));
    }

    /// Stores that wait behind others ask for their lines, oldest first, while there are miss registers.
    pub(super) fn ask_ahead(&mut self, thread: usize) {
        while let Some(&store) = self.threads[thread].stores.get(self.threads[thread].stores_asked)
        {
            let mut asked = Asked::NOTHING;
            let line = store.addr.line();
            if matches!(store.kind, Kind::Cached | Kind::Own) {
                let core = self.threads[thread].core;
                if self.is_crowded(thread, line) {
                    return;
                }
                match self.ask_for_line(core, line, store.counted) {
                    Some(found) => asked = found,
                    None => return,
                }
            }
            let t = &mut self.threads[thread];
            let store = &mut t.stores[t.stores_asked];
            store.line_at = asked.line_at;
            store.counted |= asked.counted;
            if asked.counted && t.pipeline.is_out_of_order() {
                let set = self.machine.caches.l1_set(line);
                store.fills = Some(set as u32);
                t.filling[set] += 1;
            }
            t.stores_asked += 1;
        }
    }

    /// Tells whether half the ways of a line's set in an out-of-order core's L1 are for stores that wait for their turn. From
    /// when a line is asked for until its store is performed, as many lines of stores before it are touched as wait behind it:
    /// with more, the L1 would lose lines before their turn.
    fn is_crowded(&self, thread: usize, line: LineAddr) -> bool {
        let (t, caches) = (&self.threads[thread], &self.machine.caches);
        let most = (caches.l1_ways() / 2).max(1);
        t.stores_asked >= most && usize::from(t.filling[caches.l1_set(line)]) >= most
    }

    /// Asks for a line that a store will need: from memory, or from the L2 or LLC if no other core has it. `counted`: the store's
    /// access to the caches has been counted. `None`: it cannot be asked for without a miss register.
    fn ask_for_line(&mut self, core: u32, line: LineAddr, counted: bool) -> Option<Asked> {
        // Mostly it is the line of the miss before, or there already.
        let comes = self.is_newest_fill(line);
        if comes || self.machine.caches.in_l1(core, line) || self.fill_of(line).is_some() {
            return Some(Asked::NOTHING);
        }
        if self.machine.caches.contains(line) {
            if self.machine.caches.in_others(core, line) {
                return Some(Asked::NOTHING);
            }
            let now = self.machine.now();
            let Access::Hit(latency) = self.access_once(core, line, false, counted, now) else {
                unreachable!("the LLC has it")
            };
            return Some(Asked { line_at: self.machine.now() + latency, counted: true });
        }
        if self.mshrs_used[core as usize] >= self.mshrs_max {
            return None;
        }
        let latency = self.miss(core);
        self.start_new_fill(core, line, None, latency);
        Some(Asked { line_at: 0, counted: true })
    }

    /// Tries to perform the oldest queued store.
    pub(super) fn try_store(&mut self, thread: usize) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        assert!(matches!(t.head, Head::Free), "nothing holds up the oldest store");
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
        match store.kind {
            Kind::Cached | Kind::Own => {}
            Kind::NonTemporal => {
                if store.in_transaction && self.try_beside_caches(thread, store) {
                    return;
                }
            }
            Kind::Uncached(class) => {
                return self.perform_uncached(thread, store.addr, store.value, class);
            }
            Kind::WriteBack => return self.perform_write_back(thread, line),
            Kind::Fence => return self.try_fence(thread),
            Kind::Order(operation) => return self.execute(thread, Persist::Order(operation)),
            Kind::Ending => return self.perform_ending(thread),
        }
        if let Some(slot) = self.machine.caches.writable_slot(core, line) {
            let comes = self.machine.caches.arrival(core, line, now).unwrap_or(0);
            let line_at = store.line_at.max(comes);
            if line_at > now {
                return self.schedule_store(thread, line_at);
            }
            if !self.threads[thread].head_accessed {
                self.machine.caches.write_slot(core, line, slot);
                self.machine.count().l1_hits += u64::from(!store.counted);
            }
            return self.perform(thread, &store, Some(slot));
        }
        if self.must_wait_for_mshr(core, line) {
            self.threads[thread].head = Head::Mshr;
            return;
        }
        self.threads[thread].head_accessed = true;
        self.threads[thread].stores[0].counted = true;
        match self.access_once(core, line, true, store.counted, now) {
            // It had the line before and lost it while it waited out the latency: two that contend would
            // take it from each other for ever.
            Access::Hit(_) if self.threads[thread].head_granted => {
                let slot = self.machine.caches.writable_slot(core, line);
                let slot = slot.expect("an access that writes leaves the line writable in the L1");
                self.perform(thread, &store, Some(slot))
            }
            Access::Hit(latency) => {
                self.threads[thread].head_granted = true;
                self.schedule_store(thread, now + latency);
            }
            Access::Miss(latency) => {
                self.threads[thread].head = Head::Fill;
                let waiter = Waiter::StoreHead(self.threads[thread].id);
                self.start_fill(core, line, waiter, latency, store.counted);
            }
        }
    }

    /// A non-temporal store, if the design has a way for it now: no cache keeps its line, and it is performed
    /// without it. Returns whether it was, or is to be tried again.
    fn try_beside_caches(&mut self, thread: usize, store: QueuedStore) -> bool {
        let (line, t) = (store.addr.line(), &self.threads[thread]);
        let tx = t.running.expect("the end waits for the queue to drain").tx;
        if !self.machine.memory.is_pm(store.addr)
            || !self.design.accepts_non_temporal(&mut self.machine, tx, line)
        {
            return false;
        }
        if let Some(slot) = self.fill_of(line) {
            let waiter = Waiter::StoreHead(t.id);
            self.fills[slot].wait(waiter);
            self.threads[thread].head = Head::Fill;
            return true;
        }
        if self.machine.caches.evict(line, 3) {
            self.handle_evictions();
        }
        self.perform(thread, &store, None);
        true
    }

    #[inline]
    pub(super) fn schedule_store(&mut self, thread: usize, at: Cycle) {
        if self.draining == Some(thread) {
            self.threads[thread].head = Head::Due(at);
            return;
        }
        self.threads[thread].head = Head::Scheduled;
        self.machine.memory.shared.events.push(at, Event::StoreDrain(thread as u32));
    }

    /// The time has come at which the oldest queued store was to be tried. Those behind it follow at their times, as long as
    /// nothing else comes before.
    pub(super) fn drain(&mut self, thread: usize) {
        self.draining = Some(thread);
        loop {
            self.threads[thread].head = Head::Free;
            self.try_store(thread);
            let Head::Due(at) = self.threads[thread].head else { break };
            let shared = &mut self.machine.memory.shared;
            let is_next = at <= self.alone_until
                && at < shared.events.next_at()
                && at <= self.ready.earliest().at;
            if !is_next || self.machine.has_news() {
                self.draining = None;
                return self.schedule_store(thread, at);
            }
            self.machine.memory.shared.now = at;
        }
        self.draining = None;
    }

    /// The line is there and exclusive, in a slot of the L1, or not needed: architectural memory changes now, if the
    /// design agrees.
    fn perform(&mut self, thread: usize, store: &QueuedStore, slot: Option<Slot>) {
        let core = self.threads[thread].core;
        let mut stall = Stall::None;
        let is_pm = self.machine.memory.is_pm(store.addr);
        if store.in_transaction && is_pm {
            let running = self.threads[thread].running.as_ref();
            let &Running { tx, may_be_durable: deferred, .. } =
                running.expect("the end waits for the queue to drain");
            let old = self.machine.load(store.addr);
            let of_design = Store { tx, core, addr: store.addr, old, new: store.value };
            stall = if slot.is_some() {
                self.design.store(&mut self.machine, &of_design)
            } else {
                self.design.store_non_temporal(&mut self.machine, &of_design)
            };
            if stall == Stall::Retry {
                self.threads[thread].head = Head::HeldBefore;
                return;
            }
            if !deferred {
                self.count_transactional(tx, store.addr, old, store.value);
            }
            let was_outside = self.outside.remove(store.addr);
            if was_outside || self.observer.is_some() {
                self.tell_of_store(&of_design, was_outside);
            }
        } else if is_pm {
            stall = self.perform_outside(thread, store);
            if stall == Stall::Retry {
                self.threads[thread].head = Head::HeldBefore;
                return;
            }
        }
        match slot {
            Some(slot) => {
                self.machine.caches.mark_slot_dirty(core, store.addr.line(), slot);
                self.machine.perform_store(store.addr, store.value);
            }
            None => {
                self.machine.count().non_temporal_stores += 1;
                self.machine.perform_store_beside(store.addr, store.value);
            }
        }
        self.took_effect(thread, stall);
    }

    /// The oldest in the queue has taken effect, and the design has answered how long what follows waits.
    pub(super) fn took_effect(&mut self, thread: usize, stall: Stall) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        t.take_head(now);
        match stall {
            Stall::None => {}
            Stall::For(cycles) => t.store_port_free_at = now + cycles.max(1),
            Stall::Answered(cycles) => {
                t.store_port_free_at = now + self.machine.answered_after(cycles).max(1);
            }
            Stall::UntilReleased => t.head = Head::HeldAfter,
            Stall::Retry => unreachable!("it has not taken effect"),
        }
        self.go_on_with_stores(thread);
    }

    /// A transaction is about to store to a word, which may have been stored to outside transactions before: whoever follows
    /// them is told.
    fn tell_of_store(&mut self, store: &Store, was_outside: bool) {
        let Store { tx, addr, old, new, .. } = *store;
        let outside = if was_outside { self.machine.take_outside(addr) } else { None };
        self.tell_of_snapshots();
        if let Some(observer) = &mut self.observer {
            observer.store(tx, addr, old, new, outside);
            self.machine.emit(|| TraceEvent::Store { tx, addr, old, new });
        }
    }

    /// Who follows stores is told of the snapshots that the design has taken since.
    #[inline]
    pub(super) fn tell_of_snapshots(&mut self) {
        for _ in 0..self.machine.untold_snapshots() {
            self.observed(|observer| observer.snapshot());
        }
    }

    /// A store to PM outside transactions is about to be performed, if the design that is told of it agrees.
    fn perform_outside(&mut self, thread: usize, store: &QueuedStore) -> Stall {
        let QueuedStore { addr, value: new, .. } = *store;
        let thread = self.threads[thread].id;
        let mut stall = Stall::None;
        if self.tells_plain_stores {
            let core = self.threads[thread as usize].core;
            let old = self.machine.load(addr);
            let store = PlainStore { thread, core, addr, old, new };
            stall = self.design.store_plain(&mut self.machine, &store);
            if stall == Stall::Retry {
                return stall;
            }
        }
        if store.kind == Kind::Own {
            return stall;
        }
        if !self.orders_outside {
            self.outside.insert(addr);
            self.refuse_outside();
            self.machine.store_outside(addr, new);
        }
        self.tell_of_snapshots();
        if let Some(observer) = &mut self.observer {
            let old = self.machine.load(addr);
            observer.store_outside(thread, addr, old, new);
            self.machine.emit(|| TraceEvent::StoreOutside { thread, addr, old, new });
        }
        stall
    }

    /// A transaction stores to a word: what that might hold in PM until now, if it was stored to outside transactions.
    pub(super) fn take_outside(&mut self, addr: Addr) -> Option<Outside> {
        if self.outside.remove(addr) { self.machine.take_outside(addr) } else { None }
    }

    /// Ends the run if the program has stored outside transactions, and the design cannot take that.
    pub(super) fn refuse_outside(&mut self) {
        if !self.design.drops_lines() || self.tells_plain_stores {
            return;
        }
        let Some(addr) = self.outside.first() else { return };
        let first = self.spec.crash_options.first_transaction;
        let has_transactions = self.threads.iter().any(|t| t.transactions > first);
        if self.design.has_dirty_words() || has_transactions {
            self.machine.fail(format!(
                "the program stores to {addr} outside transactions, which is lost where lines are dropped that have left \
                 the caches, for transactions bring home their own words only"
            ));
        }
    }

    /// Counts a transactional store: when it is performed, or deferred.
    #[inline]
    pub(super) fn count_transactional(&mut self, tx: Tx, addr: Addr, old: u64, new: u64) {
        let c = self.machine.count();
        c.stored(old, new);
        if let Some(distances) = &mut self.distances {
            distances.store(tx, addr, c);
        }
    }

    /// The oldest in the queue has taken effect.
    pub(super) fn take_head(&mut self, thread: usize) {
        let now = self.machine.now();
        self.threads[thread].take_head(now);
    }

    /// The next one may be tried, if nothing holds it up.
    #[inline]
    pub(super) fn go_on_with_stores(&mut self, thread: usize) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        if t.head == Head::Free && !t.stores.is_empty() {
            let at = t.store_port_free_at.max(now);
            self.schedule_store(thread, at);
        }
        if matches!(self.threads[thread].state, State::Blocked(..)) {
            self.wake_for_stores(thread);
        }
    }

    /// A thread that waits for its store queue may find it as it needs it.
    pub(super) fn wake_for_stores(&mut self, thread: usize) {
        let t = &self.threads[thread];
        let State::Blocked(Cause::Store | Cause::Log | Cause::Fence, _) = t.state else { return };
        let ready = match t.op {
            Some(Op::Store { .. } | Op::StoreNonTemporal { .. } | Op::Persist(_) | Op::Ending) => {
                t.stores.len() < t.stores_max
            }
            Some(Op::TxBegin) if t.begun => false,
            _ => t.stores.is_empty() && t.head == Head::Free,
        };
        if ready {
            let at = self.machine.now().max(t.store_port_free_at.saturating_sub(1));
            self.wake(thread, at);
        }
    }
}
