//! Choices among threads and evictions, of an adversary that intervenes
//! ([`Adversary::intervenes`](crate::controller::adversary::Adversary::intervenes)).
//!
//! There is one before each operation of a thread, which may wait until everybody else has gone on, and before each and
//! after each notice that something is durable or read there are choices of the dirty lines that the caches evict.

use super::run::Simulation;
use super::threads::State;
use crate::controller::adversary::Adversary;
use graven_base::memory::LineAddr;

/// The level from which all copies of a line are evicted.
const LLC: u8 = 3;

impl Simulation {
    /// Before a thread's next operation. Returns whether the thread waits.
    #[cold]
    pub(super) fn choose_before_operation(&mut self, thread: usize) -> bool {
        self.choose_evictions();
        let others = self.threads.iter().enumerate();
        let mut others = others.filter(|&(i, t)| i != thread && t.state != State::Finished);
        if others.next().is_none() && self.is_idle() {
            return false;
        }
        let pause = self.intervening().pause();
        let t = &mut self.threads[thread];
        t.pipeline.wait_until(t.pipeline.time + pause);
        pause > 0
    }

    /// Any dirty lines may be evicted, one after the other.
    #[cold]
    pub(super) fn choose_evictions(&mut self) {
        while self.intervening().may_evict() {
            let mut lines: Vec<LineAddr> = self.machine.caches.dirty_lines();
            lines.retain(|line| self.machine.memory.is_pm(line.addr()));
            match self.intervening().choose(1 + lines.len()) {
                0 => return,
                line => {
                    self.machine.caches.evict(lines[line - 1], LLC);
                    self.handle_evictions();
                }
            }
        }
    }

    fn intervening(&mut self) -> &mut Adversary {
        self.machine.memory.shared.adversary.as_mut().expect("it intervenes")
    }
}
