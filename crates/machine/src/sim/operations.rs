//! Operations of threads: instructions, loads, transactions, locks, and waiting.
//!
//! An operation that cannot be completed blocks its thread, which repeats it when it is woken; what it has
//! issued is not issued again.

use super::run::Simulation;
use super::threads::{Cause, Head, Kind, Running, State, Waiter};
use crate::caches::hierarchy::Access;
use crate::clock::Event;
use crate::design::Stall;
use crate::program::{Op, Ptr};
use crate::trace_event::TraceEvent;
use graven_base::ids::Tx;
use graven_base::memory::Addr;
use graven_base::time::{Cycle, NEVER};

impl Simulation {
    pub(super) fn wake(&mut self, thread: usize, at: Cycle) {
        let t = &mut self.threads[thread];
        let State::Blocked(cause, since) = t.state else { return };
        t.state = State::Ready;
        t.pipeline.wait_until(at);
        self.ready.set(thread, t.pipeline.time);
        let until = t.pipeline.time;
        self.woken = true;
        self.count_stall(thread, cause, since, until);
    }

    /// A thread has waited.
    pub(super) fn count_stall(&mut self, thread: usize, cause: Cause, since: Cycle, until: Cycle) {
        let stats = &mut self.machine.memory.shared.stats;
        if let Some(timeline) = &mut stats.timeline {
            timeline.waited(self.threads[thread].id, cause.name(), since, until);
        }
        let c = &mut stats.counters;
        *match cause {
            Cause::Load => &mut c.stall_load_cycles,
            Cause::Store => &mut c.stall_store_cycles,
            Cause::Mshr => &mut c.stall_mshr_cycles,
            Cause::Window => &mut c.stall_window_cycles,
            Cause::Commit => &mut c.stall_commit_cycles,
            Cause::Log => &mut c.stall_log_cycles,
            Cause::Lock => &mut c.stall_lock_cycles,
            Cause::Fence => &mut c.stall_fence_cycles,
        } += until - since;
    }

    /// The thread cannot complete `op` now; it will be repeated when the thread is woken.
    pub(super) fn block(&mut self, thread: usize, cause: Cause, op: Option<Op>) {
        let t = &mut self.threads[thread];
        t.op = op;
        t.state = State::Blocked(cause, t.pipeline.time);
    }

    /// Takes the next operation of a thread: of its program, or of the code that the design puts
    /// into it.
    #[inline]
    pub(super) fn next_operation(&mut self, thread: usize) -> Op {
        let t = &mut self.threads[thread];
        if t.software.is_some() {
            return self.next_with_software(thread);
        }
        t.program.next(std::mem::take(&mut t.value))
    }

    pub(super) fn step(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        self.machine.memory.shared.now = t.pipeline.time;
        if self.intervenes && t.op.is_none() && self.choose_before_operation(thread) {
            return;
        }
        let t = &mut self.threads[thread];
        let op = match t.op.take() {
            Some(op) => op,
            None => self.next_operation(thread),
        };
        match op {
            Op::Load { at } => self.load(thread, op, at),
            Op::Store { at, value } => self.store(thread, op, at, value, Kind::Cached),
            Op::StoreNonTemporal { at, value } => {
                self.store(thread, op, at, value, Kind::NonTemporal);
            }
            Op::Persist(what) => self.persist(thread, op, what),
            Op::Ending => self.ending(thread, op),
            Op::Compute { instructions } => {
                self.issue(thread, op, instructions.into());
            }
            Op::TxBegin => self.tx_begin(thread, op),
            Op::TxEnd => self.tx_end(thread, op),
            Op::Lock { lock } => self.lock(thread, op, lock),
            Op::Unlock { lock } => self.unlock(thread, op, lock),
            Op::Disturb(what) => self.disturb(thread, op, what),
            Op::Done => self.done(thread, op),
        }
    }

    /// Issues instructions, once per operation; if the reorder buffer is full the operation must be
    /// repeated. Returns whether they were issued.
    #[inline]
    pub(super) fn issue(&mut self, thread: usize, op: Op, instructions: u64) -> bool {
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
    pub(super) fn load(&mut self, thread: usize, op: Op, at: Ptr) {
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
        match self.access_once(core, line, false, !first_try, start) {
            Access::Hit(latency) => {
                let t = &mut self.threads[thread];
                t.pipeline.load_issued(start + latency);
                t.value = self.machine.load(addr);
                self.tell_of_load(thread, addr);
            }
            Access::Miss(latency) => {
                let delay = start.saturating_sub(self.machine.now()) + latency;
                self.load_miss(thread, op, addr, delay, !first_try);
            }
        }
    }

    /// A load of a line that no cache has, which memory would be asked for after `delay`. `counted`: its access has been counted.
    fn load_miss(&mut self, thread: usize, op: Op, addr: Addr, delay: Cycle, counted: bool) {
        let (id, core) = (self.threads[thread].id, self.threads[thread].core);
        if self.fill_of(addr.line()).is_some_and(|slot| self.fills[slot].core != core) {
            // Another core has asked for the line already: look again when it has come.
            self.start_fill(core, addr.line(), Waiter::Repeat(id), delay, counted);
            self.threads[thread].issued = true;
            return self.block(thread, Cause::Load, Some(op));
        }
        if self.threads[thread].pipeline.is_out_of_order() {
            let load = self.threads[thread].pipeline.load_issued(NEVER);
            self.threads[thread].value = self.machine.load(addr);
            self.tell_of_load(thread, addr);
            self.start_fill(core, addr.line(), Waiter::WindowLoad(id, load), delay, counted);
        } else {
            self.start_fill(core, addr.line(), Waiter::InOrderLoad(id, addr), delay, counted);
            self.block(thread, Cause::Load, None);
        }
    }

    /// A load has read a word of memory: whoever wants to know is told.
    #[inline]
    pub(super) fn tell_of_load(&mut self, thread: usize, addr: Addr) {
        if !self.tells_loads || !self.machine.memory.is_pm(addr) {
            return;
        }
        let (id, core) = (self.threads[thread].id, self.threads[thread].core);
        self.design.load(&mut self.machine, id, core, addr);
        if let Some(observer) = &mut self.observer {
            observer.load(id, addr, self.machine.load(addr));
        }
    }

    /// Returns true if everything older is done; if not, the thread waits and `op` is repeated.
    pub(super) fn drained(&mut self, thread: usize, op: Op) -> bool {
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

    pub(super) fn tx_begin(&mut self, thread: usize, op: Op) {
        if std::mem::take(&mut self.threads[thread].begun) || !self.drained(thread, op) {
            return;
        }
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        assert!(t.running.is_none(), "transactions do not nest");
        let tx = Tx { thread: t.id, number: t.transactions };
        let stall = self.design.tx_begin(&mut self.machine, tx);
        if stall == Stall::Retry {
            return self.block(thread, Cause::Log, Some(op));
        }
        self.issue(thread, op, 1);
        let t = &mut self.threads[thread];
        t.transactions += 1;
        t.running = Some(Running {
            tx,
            began: now,
            last_issue: None,
            ending: None,
            may_be_durable: false,
            committing: false,
        });
        self.timeline_begins(tx);
        if let Some(observer) = &mut self.observer {
            observer.begin(tx);
            let busy = !self.design.is_idle();
            self.machine.emit(|| TraceEvent::Begin { tx, busy });
        }
        let t = &mut self.threads[thread];
        match stall {
            Stall::For(cycles) => t.pipeline.wait_until(now + cycles),
            Stall::Answered(cycles) => {
                t.pipeline.wait_until(now + self.machine.answered_after(cycles));
            }
            Stall::UntilReleased => {
                t.begun = true;
                self.block(thread, Cause::Log, Some(op));
            }
            Stall::None | Stall::Retry => {}
        }
        self.refuse_outside();
    }

    pub(super) fn tx_end(&mut self, thread: usize, op: Op) {
        let now = self.machine.now();
        let running = self.threads[thread].running.as_mut();
        running.expect("a transaction ends after it began").last_issue.get_or_insert(now);
        if !self.drained(thread, op) || !self.issue(thread, op, 1) {
            return;
        }
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        t.issued = true;
        let running = t.running.as_mut().expect("a transaction ends after it began");
        let Running { tx, may_be_durable, .. } = *running;
        if running.ending.is_none() {
            running.ending = Some(now);
        }
        if let Some(observer) = self.observer.as_mut().filter(|_| !may_be_durable) {
            observer.ending(tx);
            self.machine.emit(|| TraceEvent::Ending(tx));
        }
        let stall = self.design.tx_end(&mut self.machine, tx);
        if stall == Stall::Retry {
            if let Some(observer) = &mut self.observer {
                observer.put_off(tx);
            }
            return self.block(thread, Cause::Commit, Some(op));
        }
        let running = self.threads[thread].running.as_mut().expect("it is still running");
        running.committing = true;
        self.block(thread, Cause::Commit, None);
        match stall {
            Stall::None => self.acknowledge(thread),
            Stall::For(cycles) => self.release_at(thread, now + cycles),
            Stall::Answered(cycles) => {
                self.release_at(thread, now + self.machine.answered_after(cycles));
            }
            Stall::UntilReleased | Stall::Retry => {}
        }
    }

    fn release_at(&mut self, thread: usize, at: Cycle) {
        self.machine.memory.shared.events.push(at, Event::Release(thread as u32));
    }

    pub(super) fn acknowledge(&mut self, thread: usize) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        t.issued = false;
        let running = t.running.take().expect("only a running transaction is acknowledged");
        if let Some(software) = &mut t.software {
            software.forget_deferred();
        }
        let ending = running.ending.expect("its end was reached");
        let stats = &mut self.machine.memory.shared.stats;
        stats.counters.committed_transactions += 1;
        stats.commit_latency.record(now - ending);
        stats.last_issue_latency.record(now - running.last_issue.unwrap_or(ending));
        stats.transaction_latency.record(now - running.began);
        let stored = self.distances.as_ref().map_or(0, |d| d.stored_bytes(running.tx));
        if stored > 0 {
            stats.stored_bytes.record(stored);
        }
        self.machine.memory.shared.durability.changes += 1;
        // What the thread has waited for until now is part of it.
        self.wake(thread, now);
        self.timeline_ends(running.tx, ending);
        if let Some(observer) = &mut self.observer {
            observer.acknowledged(running.tx);
            self.machine.emit(|| TraceEvent::Acknowledged(running.tx));
        }
        if self.stats().counters.committed_transactions >= self.measured.next {
            self.measure();
        }
    }

    /// The timeline is told of a transaction; with the first that it is about, the design's notes are kept, too.
    fn timeline_begins(&mut self, tx: Tx) {
        let (now, stats) = (self.machine.now(), &mut self.machine.memory.shared.stats);
        if stats.timeline.as_mut().is_some_and(|timeline| timeline.begin(tx, now)) {
            self.machine.keep_trace();
            self.machine.keep_notes();
        }
    }

    /// A transaction is acknowledged; with the last that the timeline is about, the notes end.
    fn timeline_ends(&mut self, tx: Tx, ending: Cycle) {
        let (now, stats) = (self.machine.now(), &mut self.machine.memory.shared.stats);
        let Some(timeline) = &mut stats.timeline else { return };
        if timeline.acknowledge(tx, ending, now) {
            let notes = self.machine.end_trace();
            let timeline = &mut self.machine.memory.shared.stats.timeline;
            timeline.as_mut().expect("it is there").noted(notes);
        }
    }

    /// An atomic exchange on the lock's word, when the lock is free.
    pub(super) fn lock(&mut self, thread: usize, op: Op, lock: u32) {
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

    pub(super) fn unlock(&mut self, thread: usize, op: Op, lock: u32) {
        if !self.drained(thread, op) || !self.exchange(thread, op, lock) {
            return;
        }
        self.machine.perform_store(self.locks.addr(lock), 0);
        let id = self.threads[thread].id;
        if let Some(next) = self.locks.release(lock, id) {
            let released_at = self.threads[thread].pipeline.time;
            self.wake(next as usize, released_at);
        }
    }

    /// Brings a lock's line into the L1 exclusively; the thread waits for it. Returns true if it
    /// has come.
    pub(super) fn exchange(&mut self, thread: usize, op: Op, lock: u32) -> bool {
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
        let counted = self.threads[thread].issued;
        match self.access_once(core, line, true, counted, now) {
            Access::Hit(latency) => {
                let t = &mut self.threads[thread];
                t.issued = false;
                t.pipeline.wait_until(now + latency);
                self.empty_write_combining(core, |c| &mut c.write_combining_flushes_atomic);
                true
            }
            Access::Miss(latency) => {
                let t = &mut self.threads[thread];
                t.issued = true;
                let waiter = Waiter::Repeat(t.id);
                self.start_fill(core, line, waiter, latency, counted);
                self.block(thread, Cause::Lock, Some(op));
                false
            }
        }
    }

    pub(super) fn done(&mut self, thread: usize, op: Op) {
        if self.drained(thread, op) {
            self.threads[thread].state = State::Finished;
        }
    }
}
