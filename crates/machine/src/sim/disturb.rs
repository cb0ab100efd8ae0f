//! Interventions of directed tests at some point of a thread.

use std::collections::BTreeSet;

use super::run::Simulation;
use super::threads::{Cause, State};
use crate::program::{Disturbance, Op};
use graven_base::memory::LineAddr;

/// Cycles between two looks of a thread that waits for idleness.
const SETTLE_CYCLES: u64 = 8;

/// Looks after which that wait is taken for an error.
const SETTLE_LOOKS_MAX: u32 = 200_000;

/// Signals between the threads of a directed test, and the crash steps.
#[derive(Debug, Default)]
pub(super) struct Signals {
    given: BTreeSet<u32>,
    crash: Option<u32>,
    /// Looks in vain of threads that wait for idleness.
    settling: u32,
}

impl Signals {
    /// Returns true if a signal has been given.
    pub(super) fn is_given(&self, signal: u32) -> bool {
        self.given.contains(&signal)
    }
}

impl Simulation {
    pub(super) fn disturb(&mut self, thread: usize, op: Op, what: Disturbance) {
        if !self.drained(thread, op) {
            return;
        }
        match what {
            Disturbance::Evict(line, level) => {
                self.machine.caches.evict(line, level);
                self.handle_evictions();
            }
            Disturbance::WriteBack(line) => self.write_back_by_hand(line),
            Disturbance::Maintenance => self.design.start_maintenance(&mut self.machine),
            Disturbance::Settle => {
                if self.is_idle() {
                    self.signals.settling = 0;
                    return;
                }
                self.signals.settling += 1;
                if self.signals.settling > SETTLE_LOOKS_MAX {
                    let design = self.spec.design.name;
                    self.machine.fail(format!("`settle`: memory or {design} never becomes idle"));
                }
                let t = &mut self.threads[thread];
                t.op = Some(op);
                t.pipeline.wait_until(t.pipeline.time + SETTLE_CYCLES);
            }
            Disturbance::Crash(number) => self.signals.crash = Some(number),
            Disturbance::Signal(number) => {
                self.signals.given.insert(number);
                self.wake_for_signals();
            }
            Disturbance::Await(number) => {
                if !self.signals.is_given(number) {
                    self.block(thread, Cause::Lock, Some(op));
                }
            }
        }
    }

    /// Returns true if neither memory nor the design has anything left to do.
    pub(super) fn is_idle(&self) -> bool {
        self.machine.memory.is_idle() && self.design.is_idle() && self.fills.is_empty()
    }

    /// A dirty line goes the way of an evicted one, and stays.
    fn write_back_by_hand(&mut self, line: LineAddr) {
        let tag = self.machine.caches.tag(line);
        if self.machine.caches.clean(line).is_some() {
            self.evict(line, tag.expect("a dirty line is cached"));
        }
    }

    fn wake_for_signals(&mut self) {
        let now = self.machine.now();
        for thread in 0..self.threads.len() {
            let t = &self.threads[thread];
            let waits = matches!(t.state, State::Blocked(Cause::Lock, _))
                && matches!(t.op, Some(Op::Disturb(Disturbance::Await(_))));
            if waits {
                self.wake(thread, now);
            }
        }
    }

    /// Returns true if a thread has just come to a crash step.
    pub fn is_at_crash_step(&self) -> bool {
        self.signals.crash.is_some()
    }

    /// Takes the crash step that a thread has just come to, if any.
    pub fn take_crash_step(&mut self) -> Option<u32> {
        self.signals.crash.take()
    }
}
