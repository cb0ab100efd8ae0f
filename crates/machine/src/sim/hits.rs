//! Runs of operations that stay in a thread's core: computations, and loads that its L1 answers.
//!
//! No other part of the machine sees anything of them, so that nothing needs to be delivered, and
//! no time to be compared with that of other threads, before the next event or the next operation
//! of another thread is due. Stores and what is ordered with them are taken along, and end the run
//! where they have effects on others; so does the code of a design, which is asked before an
//! operation. All other operations are left to [`Simulation::step`].

use super::run::{ACTIONS_PER_LOOK, Simulation, Turn};
use super::threads::{Cause, Kind, State, Thread};
use crate::caches::tags::Slot;
use crate::machine::Machine;
use crate::program::{Op, Ptr};
use graven_base::time::Cycle;

impl Simulation {
    /// Executes such operations of the thread whose turn it is, and of those that follow it, while nothing else is due. Returns
    /// whether it is time to look at what else there is; if not, an operation of another kind is due.
    pub(super) fn run_of_hits(&mut self, turn: &mut Turn) -> bool {
        let t = &self.threads[turn.thread];
        if t.op.is_some() || self.intervenes || self.interferes || self.tells_loads {
            return false;
        }
        if t.software.is_some() || t.pipeline.is_out_of_order() {
            return self.run_of_hits_in_window(turn);
        }
        let mut horizon = self.horizon(turn);
        loop {
            let thread = turn.thread;
            let t = &mut self.threads[thread];
            let other = loop {
                self.machine.memory.shared.now = t.pipeline.time;
                let op = t.program.next(std::mem::take(&mut t.value));
                match op {
                    Op::Compute { instructions } => t.pipeline.issue_at_once(instructions.into()),
                    Op::Load { at } if loads_from_l1(t, &mut self.machine, at) => {}
                    _ => break Some(op),
                }
                turn.operations += 1;
                if t.pipeline.time >= horizon || turn.operations >= ACTIONS_PER_LOOK {
                    break None;
                }
            };
            if let Some(op) = other {
                let Op::Store { at, value } = op else {
                    self.threads[thread].op = Some(op);
                    return false;
                };
                // Nothing keeps an in-order core from retiring a store into a queue with room.
                if t.stores.len() < t.stores_max && !t.issued {
                    t.pipeline.issue_at_once(1);
                    self.machine.count().stores += 1;
                    self.enqueue(thread, Kind::Cached, at.addr, value);
                } else {
                    self.store(thread, op, at, value, Kind::Cached);
                }
                turn.operations += 1;
                if self.must_look(thread) {
                    return true;
                }
                horizon = self.horizon(turn);
            }
            if turn.operations >= ACTIONS_PER_LOOK {
                return true;
            }
            if self.threads[thread].pipeline.time >= horizon {
                if !self.hand_on(turn) || self.threads[turn.thread].op.is_some() {
                    return true;
                }
                horizon = self.horizon(turn);
            }
        }
    }

    /// The same of threads on out-of-order cores, or that execute code of a design, too.
    fn run_of_hits_in_window(&mut self, turn: &mut Turn) -> bool {
        loop {
            let thread = turn.thread;
            self.machine.memory.shared.now = self.threads[thread].pipeline.time;
            let op = self.next_operation(thread);
            match op {
                Op::Compute { instructions } => {
                    self.issue(thread, op, instructions.into());
                }
                Op::Load { at } => {
                    let t = &mut self.threads[thread];
                    match loads_in_window(t, &mut self.machine, at) {
                        Ok(true) => {}
                        Ok(false) => {
                            t.op = Some(op);
                            return false;
                        }
                        Err(cause) => self.block(thread, cause, Some(op)),
                    }
                }
                Op::Store { at, value } => self.store(thread, op, at, value, Kind::Cached),
                Op::Persist(what) => self.persist(thread, op, what),
                _ => {
                    self.threads[thread].op = Some(op);
                    return false;
                }
            }
            turn.operations += 1;
            if self.must_look(thread) || turn.operations >= ACTIONS_PER_LOOK {
                return true;
            }
            if self.threads[thread].pipeline.time >= self.horizon(turn)
                && (!self.hand_on(turn) || self.threads[turn.thread].op.is_some())
            {
                return true;
            }
        }
    }

    /// When something else is due than the operations of the thread whose turn it is.
    #[inline]
    fn horizon(&self, turn: &Turn) -> Cycle {
        turn.until.min(self.machine.memory.shared.events.next_at())
    }

    /// Returns true if a thread cannot proceed, or not before another part is told something.
    #[inline]
    fn must_look(&self, thread: usize) -> bool {
        self.threads[thread].state != State::Ready || self.woken || self.machine.has_news()
    }
}

/// Executes a load of a thread on an in-order core, if its L1 has the line and its tag port is not
/// in use.
#[inline(always)]
fn loads_from_l1(t: &mut Thread, machine: &mut Machine, at: Ptr) -> bool {
    let caches = &machine.caches;
    if caches.is_tag_port_used(t.pipeline.time) {
        return false;
    }
    let Some(slot) = caches.readable_slot(t.core, at.addr.line()) else { return false };
    let start = t.pipeline.time;
    t.pipeline.issue_at_once(1);
    load(t, machine, at, slot, start);
    true
}

/// The same on a core of any kind. What keeps the load from being issued is an error.
#[inline(always)]
fn loads_in_window(t: &mut Thread, machine: &mut Machine, at: Ptr) -> Result<bool, Cause> {
    let caches = &machine.caches;
    if caches.is_tag_port_used(t.pipeline.time) {
        return Ok(false);
    }
    let Some(slot) = caches.readable_slot(t.core, at.addr.line()) else { return Ok(false) };
    let start = t.pipeline.load_start(at.origin).map_err(|_| Cause::Load)?;
    t.pipeline.issue(1).map_err(|_| Cause::Window)?;
    load(t, machine, at, slot, start);
    Ok(true)
}

/// A load that has been issued, of a line in a slot of the L1, and starts then.
#[inline(always)]
fn load(t: &mut Thread, machine: &mut Machine, at: Ptr, slot: Slot, start: Cycle) {
    let (line, now) = (at.addr.line(), t.pipeline.time);
    let arrival = machine.caches.arrival(t.core, line, now).unwrap_or(0);
    t.pipeline.load_issued(arrival.max(start + machine.caches.l1_latency()));
    let counters = machine.memory.counters();
    counters.loads += 1;
    t.value = match t.forward(at.addr) {
        Some(value) => {
            counters.store_forwards += 1;
            value
        }
        None => {
            machine.caches.read_slot(t.core, line, slot, counters);
            machine.load(at.addr)
        }
    };
}
