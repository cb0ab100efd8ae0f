//! Runs of operations that stay in a thread's core: computations, and loads that its L1 answers.
//!
//! Nobody else sees anything of them, so that nothing needs to be delivered, and no time to be compared with that of other
//! threads, before the next event or the next operation of another thread is due. Stores are taken along, and end the run
//! where they have something to tell. Whatever else comes next is left to [`Simulation::step`].

use super::run::{ACTIONS_PER_LOOK, Simulation};
use super::threads::{Cause, Kind, State};
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
            self.machine.memory.shared.now = t.pipeline.time;
            let op = t.program.next(std::mem::take(&mut t.value));
            *operations += 1;
            match op {
                Op::Compute { instructions } => {
                    if t.pipeline.issue(instructions.into()).is_err() {
                        self.block(thread, Cause::Window, Some(op));
                        return true;
                    }
                }
                Op::Load { at } if self.loads_from_l1(thread, at) => {}
                Op::Store { at, value } => {
                    self.store(thread, op, at, value, Kind::Cached);
                    let is_ready = self.threads[thread].state == State::Ready;
                    if !is_ready || self.woken || self.machine.has_news() {
                        return true;
                    }
                    horizon = until.min(self.machine.memory.shared.events.next_at());
                }
                _ => {
                    *operations -= 1;
                    self.threads[thread].op = Some(op);
                    return false;
                }
            }
            let next_at = self.threads[thread].pipeline.time;
            if next_at >= horizon || *operations >= ACTIONS_PER_LOOK {
                return true;
            }
        }
    }

    /// Executes a load, if the L1 has its line, nothing keeps it from being issued now, and nobody uses the tag port.
    #[inline]
    fn loads_from_l1(&mut self, thread: usize, at: Ptr) -> bool {
        let t = &mut self.threads[thread];
        let caches = &mut self.machine.caches;
        let line = at.addr.line();
        if t.pipeline.is_out_of_order() || caches.is_tag_port_used(t.pipeline.time) {
            return false;
        }
        if !caches.in_l1(t.core, line) {
            return false;
        }
        let start = t.pipeline.time;
        t.pipeline.issue(1).expect("an in-order core issues when the one before is done");
        t.pipeline.load_issued(start + caches.l1_latency());
        let counters = self.machine.memory.counters();
        counters.loads += 1;
        t.value = match t.forward(at.addr) {
            Some(value) => {
                counters.store_forwards += 1;
                value
            }
            None => {
                caches.access(t.core, line, false, counters);
                self.machine.load(at.addr)
            }
        };
        true
    }
}
