//! Persistence instructions: what they do when they are the oldest in the store queue.

use super::observer::TransactionObserver;
use super::run::Simulation;
use super::threads::{Cause, Head, Kind, State};
use crate::clock::Event;
use crate::cores::write_combining;
use crate::cores::write_combining::Combined;
use crate::design::{Operation, RawAction, Stall};
use crate::program::{Op, Persist};
use crate::request::WriteClass;
use crate::stats::Counters;
use crate::trace_event::TraceEvent;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LineAddr};
use graven_base::thread_set::{ThreadSet, threads_in};

impl Simulation {
    /// Retires one into the store queue.
    pub(super) fn persist(&mut self, thread: usize, op: Op, what: Persist) {
        let t = &self.threads[thread];
        if t.stores.len() >= t.stores_max {
            return self.block_on_stores(thread, op);
        }
        if !self.issue(thread, op, 1) {
            return;
        }
        let c = self.machine.count();
        let (kind, addr, value) = match what {
            Persist::WriteBack(line) => {
                c.clwb_instructions += 1;
                (Kind::WriteBack, line.addr(), 0)
            }
            Persist::Fence => {
                c.fences += 1;
                (Kind::Fence, Addr(0), 0)
            }
            Persist::StoreUncached { addr, value, class } => {
                c.uncached_stores += 1;
                (Kind::Uncached(class), addr, value)
            }
            Persist::StoreOwn { addr, value } => {
                c.stores += 1;
                (Kind::Own, addr, value)
            }
            Persist::Order(operation) => (Kind::Order(operation), Addr(0), 0),
        };
        self.enqueue(thread, kind, addr, value);
    }

    /// A word goes into the write-combining buffer, for which a line may have to leave it.
    pub(super) fn perform_uncached(
        &mut self,
        thread: usize,
        addr: Addr,
        value: u64,
        class: WriteClass,
    ) {
        let (core, id) = (self.threads[thread].core, self.threads[thread].id);
        assert!(self.machine.memory.is_pm(addr), "{addr} is not PM");
        assert!(!self.machine.caches.contains(addr.line()), "uncacheable {addr} was loaded");
        let buffer = &mut self.write_combining[core as usize];
        if let Some((line, cause)) = buffer.store(id, addr, value, class) {
            let c = self.machine.count();
            match cause {
                write_combining::Cause::Full => c.write_combining_flushes_full += 1,
                write_combining::Cause::Evicted => c.write_combining_flushes_evicted += 1,
            }
            self.send_combined(line);
        }
        let adversary = &mut self.machine.memory.shared.adversary;
        if adversary.as_mut().is_some_and(|adversary| adversary.lets_go())
            && let Some(line) = self.write_combining[core as usize].take_oldest()
        {
            self.machine.count().write_combining_flushes_evicted += 1;
            self.send_combined(line);
        }
        self.machine.perform_store_beside(addr, value);
        self.take_head(thread);
        self.go_on_with_stores(thread);
    }

    /// An instruction for persistence or order is the oldest, and the design executes it. Any other design leaves it to the machine,
    /// which has none but x86's.
    pub(super) fn execute(&mut self, thread: usize, what: Persist) {
        let (id, core) = (self.threads[thread].id, self.threads[thread].core);
        let under_way = std::mem::take(&mut self.threads[thread].head_under_way);
        let stall = match under_way {
            true => Some(Stall::None),
            false => self.design.persist(&mut self.machine, id, core, what),
        };
        match (stall, what) {
            (Some(Stall::Retry), _) => self.threads[thread].head = Head::HeldBefore,
            (Some(Stall::UntilReleased), _) => {
                (self.threads[thread].head, self.threads[thread].head_under_way) =
                    (Head::HeldBefore, true);
            }
            (Some(stall), _) => {
                self.executed(id, what);
                self.took_effect(thread, stall);
            }
            (None, Persist::WriteBack(line)) => self.write_back(thread, line),
            (None, Persist::Fence) => self.wait_for_writes(thread),
            (None, Persist::StoreUncached { .. } | Persist::StoreOwn { .. }) => {
                unreachable!("designs are not asked")
            }
            (None, Persist::Order(operation)) if self.machine.keeps_caches() => {
                self.order_in_caches(thread, operation);
            }
            (None, Persist::Order(operation)) => {
                let design = self.spec.design.name;
                self.machine.fail(format!(
                    "the program of thread {id} has `{operation}`, which {design} has no way to execute"
                ));
                self.took_effect(thread, Stall::None);
            }
        }
    }

    /// Caches that survive have what was stored before in order already. What bypasses them is waited for.
    fn order_in_caches(&mut self, thread: usize, operation: Operation) {
        if operation == Operation::DurabilityFence && !self.has_no_writes_to_wait_for(thread) {
            return;
        }
        self.executed(self.threads[thread].id, Persist::Order(operation));
        self.took_effect(thread, Stall::None);
    }

    /// Whoever follows the program is told of an instruction that has been executed.
    fn executed(&mut self, thread: ThreadId, what: Persist) {
        let Persist::Order(operation) = what else { return };
        if let Some(observer) = &mut self.observer {
            observer.executed(thread, operation);
            self.machine.emit(|| TraceEvent::Executed { thread, operation });
        }
    }

    /// A line is to be written back.
    pub(super) fn perform_write_back(&mut self, thread: usize, line: LineAddr) {
        if self.design.takes_persists() {
            return self.execute(thread, Persist::WriteBack(line));
        }
        self.write_back(thread, line);
    }

    /// A dirty line is written back, in the order that the design asks for, as if it were evicted. Of one that is
    /// clean a write may be on its way: the thread's fences wait for it.
    fn write_back(&mut self, thread: usize, line: LineAddr) {
        let id = self.threads[thread].id;
        assert!(self.machine.memory.is_pm(line.addr()), "{} is not PM", line.addr());
        let sent = self.machine.caches.is_dirty(line);
        if sent {
            let content = self.machine.line(line);
            let tag = self.machine.caches.tag(line).expect("a dirty line is cached");
            let RawAction::Send { after, gate, token } =
                self.design.llc_evict(&mut self.machine, line, &content, tag)
            else {
                let design = self.spec.design.name;
                self.machine.fail(format!(
                    "the program of thread {id} has `clwb`, which {design} has no way to execute: it keeps lines from memory"
                ));
                return self.took_effect(thread, Stall::None);
            };
            self.machine.write_back(line, |write| {
                (write.fences, write.after, write.token) = (1 << id, after, token);
                write.gate = gate;
            });
        }
        let waits = sent || self.machine.memory.fence_waits_for(line, id);
        self.threads[thread].undurable += u32::from(waits);
        self.machine.count().clwb_of_clean_lines += u64::from(!sent);
        self.take_head(thread);
        self.go_on_with_stores(thread);
    }

    /// A fence is the oldest.
    pub(super) fn try_fence(&mut self, thread: usize) {
        if self.design.takes_persists() {
            return self.execute(thread, Persist::Fence);
        }
        self.wait_for_writes(thread);
    }

    /// The write-combining buffer is emptied, and the fence waits for what is not durable.
    fn wait_for_writes(&mut self, thread: usize) {
        if self.has_no_writes_to_wait_for(thread) {
            self.take_head(thread);
            self.go_on_with_stores(thread);
        }
    }

    /// Empties the write-combining buffer; returns true if what the thread has sent is durable. If not, the fence is tried again when
    /// it is.
    fn has_no_writes_to_wait_for(&mut self, thread: usize) -> bool {
        let core = self.threads[thread].core;
        self.empty_write_combining(core, |c| &mut c.write_combining_flushes_fence);
        let (now, t) = (self.machine.now(), &mut self.threads[thread]);
        if t.undurable > 0 || t.durable_heard_at > now {
            t.head = Head::Fence;
            if t.undurable == 0 {
                let (at, event) = (t.durable_heard_at, Event::Fence(thread as u32));
                self.machine.memory.shared.events.push(at, event);
            }
            self.waits_instead(thread, Cause::Store, Cause::Fence);
            return false;
        }
        self.waits_instead(thread, Cause::Fence, Cause::Store);
        true
    }

    pub(super) fn observed(&mut self, tell: impl FnOnce(&mut dyn TransactionObserver)) {
        if let Some(observer) = self.observer.as_deref_mut() {
            tell(observer);
        }
    }

    /// The end of a transaction retires into the store queue.
    pub(super) fn ending(&mut self, thread: usize, op: Op) {
        if self.threads[thread].stores.len() >= self.threads[thread].stores_max {
            return self.block_on_stores(thread, op);
        }
        self.enqueue(thread, Kind::Ending, Addr(0), 0);
    }

    /// All before a transaction's end has been performed, save for stores that are deferred.
    pub(super) fn perform_ending(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        let running = t.running.as_mut().expect("a transaction ends after it began");
        running.may_be_durable = true;
        let tx = running.tx;
        if self.observer.is_some() {
            let software = t.software.as_ref().expect("only code of a design has it");
            let deferred = software.deferred().to_vec();
            for &(addr, value) in &deferred {
                let (old, outside) = (self.machine.load(addr), self.take_outside(addr));
                self.tell_of_snapshots();
                self.observed(|observer| observer.store(tx, addr, old, value, outside));
            }
            self.observed(|observer| {
                observer.defer(tx, &deferred);
                observer.ending(tx);
            });
            self.machine.emit(|| TraceEvent::Ending(tx));
        }
        let t = &mut self.threads[thread];
        t.stores.pop_front();
        self.go_on_with_stores(thread);
    }

    /// A thread that waits for its store queue waits for something else in it from now on.
    fn waits_instead(&mut self, thread: usize, before: Cause, after: Cause) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        let State::Blocked(cause, since) = t.state else { return };
        if cause != before {
            return;
        }
        t.state = State::Blocked(after, since.max(now));
        self.count_stall(thread, before, since, since.max(now));
    }

    /// All lines leave a core's write-combining buffer; `counter`: where they are counted.
    pub(super) fn empty_write_combining(
        &mut self,
        core: u32,
        counter: impl Fn(&mut Counters) -> &mut u64,
    ) {
        while let Some(line) = self.write_combining[core as usize].take_oldest() {
            *counter(self.machine.count()) += 1;
            self.send_combined(line);
        }
    }

    fn send_combined(&mut self, line: Combined) {
        let mut write = line.write();
        self.threads[line.thread as usize].undurable += 1;
        write.fences = 1 << line.thread;
        self.machine.write(&write, self.machine.bypass_cycles());
    }

    /// Handles that a write is durable which fences of these threads wait for: a message notifies
    /// their cores, as it notifies a core whose thread a design releases
    /// ([`crate::design::Port::release`]).
    pub(super) fn durable_for_fences(&mut self, threads: ThreadSet) {
        let heard_at = self.machine.now() + self.machine.bypass_cycles();
        for thread in threads_in(threads) {
            let t = &mut self.threads[thread];
            t.undurable -= 1;
            t.durable_heard_at = heard_at;
            if t.undurable == 0 && t.head == Head::Fence {
                self.machine.memory.shared.events.push(heard_at, Event::Fence(thread as u32));
            }
        }
    }

    /// A core hears that a write is durable. Meanwhile the other thread of a core may have sent a line of this one's out of
    /// their write-combining buffer: then its fence waits for that, too.
    pub(super) fn fence_hears(&mut self, thread: usize) {
        let (now, t) = (self.machine.now(), &mut self.threads[thread]);
        if t.head == Head::Fence && t.undurable == 0 && t.durable_heard_at <= now {
            t.head = Head::Free;
            self.try_store(thread);
        }
    }
}
