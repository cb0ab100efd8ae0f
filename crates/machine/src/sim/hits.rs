//! Runs of operations that stay in a thread's core: computations, and loads that its L1 answers.
//!
//! Nobody else sees anything of them, so that nothing needs to be delivered, and no time to be compared with that of other
//! threads, before the next event or the next operation of another thread is due. Stores are taken along, and end the run
//! where they have something to tell. Whatever else comes next is left to [`Simulation::step`].

use super::run::{ACTIONS_PER_LOOK, Simulation};
use super::threads::{Cause, Kind, State, Thread};
use crate::machine::Machine;
use crate::program::{Op, Ptr};
use graven_base::time::Cycle;

impl Simulation {
    /// Executes such operations of a thread, whose next one is due, while nothing else is due before `until`. Returns
    /// whether it is time to look at what else there is; if not, an operation of another kind is due.
    pub(super) fn run_of_hits(
        &mut self,
        thread: usize,
        until: Cycle,
        operations: &mut u64,
    ) -> bool {
        let t = &self.threads[thread];
        if t.op.is_some() || t.software.is_some() || self.intervenes || self.interferes {
            return false;
        }
        let mut horizon = until.min(self.machine.memory.shared.events.next_at());
        loop {
            let t = &mut self.threads[thread];
            let op = loop {
                self.machine.memory.shared.now = t.pipeline.time;
                let op = t.program.next(std::mem::take(&mut t.value));
                match op {
                    Op::Compute { instructions } => {
                        if t.pipeline.issue(instructions.into()).is_err() {
                            break op;
                        }
                    }
                    Op::Load { at } if loads_from_l1(t, &mut self.machine, at) => {}
                    _ => break op,
                }
                *operations += 1;
                if t.pipeline.time >= horizon || *operations >= ACTIONS_PER_LOOK {
                    return true;
                }
            };
            match op {
                Op::Compute { .. } => {
                    *operations += 1;
                    self.block(thread, Cause::Window, Some(op));
                    return true;
                }
                Op::Store { at, value } => {
                    *operations += 1;
                    // Nothing keeps an in-order core from retiring a store into a queue with room.
                    let retires = !t.pipeline.is_out_of_order() && t.stores.len() < t.stores_max;
                    if retires && !t.issued && t.pipeline.issue(1).is_ok() {
                        self.machine.count().stores += 1;
                        self.enqueue(thread, Kind::Cached, at.addr, value);
                    } else {
                        self.store(thread, op, at, value, Kind::Cached);
                    }
                }
                _ => {
                    self.threads[thread].op = Some(op);
                    return false;
                }
            }
            let t = &self.threads[thread];
            if t.state != State::Ready || self.woken || self.machine.has_news() {
                return true;
            }
            horizon = until.min(self.machine.memory.shared.events.next_at());
            if t.pipeline.time >= horizon || *operations >= ACTIONS_PER_LOOK {
                return true;
            }
        }
    }
}

/// Executes a load of a thread, if the L1 has its line, nothing keeps it from being issued now, and nobody uses the tag port.
#[inline]
fn loads_from_l1(t: &mut Thread, machine: &mut Machine, at: Ptr) -> bool {
    let caches = &mut machine.caches;
    let line = at.addr.line();
    if t.pipeline.is_out_of_order() || caches.is_tag_port_used(t.pipeline.time) {
        return false;
    }
    let Some(slot) = caches.readable_slot(t.core, line) else { return false };
    let start = t.pipeline.time;
    t.pipeline.issue(1).expect("an in-order core issues when the one before is done");
    t.pipeline.load_issued(start + caches.l1_latency());
    let counters = machine.memory.counters();
    counters.loads += 1;
    t.value = match t.forward(at.addr) {
        Some(value) => {
            counters.store_forwards += 1;
            value
        }
        None => {
            caches.read_slot(t.core, line, slot, counters);
            machine.load(at.addr)
        }
    };
    true
}
