//! The end of a run: statistics are closed, then everything is written back, recovered once and checked.

use super::error::SimError;
use super::observer::{NoObserver, Observer};
use super::run::Simulation;
use super::threads::Fill;
use crate::config::CoreConfig;
use crate::stats::conservation::{Laws, UnderWay};
use graven_base::memory::LineAddr;
use graven_base::time::NEVER;

impl Simulation {
    pub(super) fn finish_stats(&mut self) {
        let cores = self.spec.config.get::<CoreConfig>().count as usize;
        let residual = self.pending_lines();
        let (began, now) = (self.measured.began(), self.machine.now());
        let is_part = self.measured.is_under_way();
        let peak_cell_wear = self.machine.memory.shared.cells.peak_wear();
        let stats = &mut self.machine.memory.shared.stats;
        stats.core_instructions = vec![0; cores];
        stats.core_cycles = vec![0; cores];
        for t in &self.threads {
            let instructions = t.pipeline.instructions - t.instructions_before;
            stats.core_instructions[t.core as usize] += instructions;
            let cycles = &mut stats.core_cycles[t.core as usize];
            *cycles = if is_part { now - began } else { (*cycles).max(t.pipeline.finished_at()) };
        }
        stats.counters.cycles = stats.core_cycles.iter().copied().max().unwrap_or(0);
        stats.counters.instructions = stats.core_instructions.iter().sum();
        stats.bank_loads.finish(began + stats.counters.cycles);
        stats.counters.residual_dirty_lines = residual;
        stats.counters.peak_wear = stats.wear.peak();
        stats.counters.peak_cell_wear = peak_cell_wear;
        self.report_progress();
        self.closed = Some(self.counted_in_region(self.design.counts()));
    }

    /// Lines of PM whose content only the caches hold.
    pub(super) fn pending_lines(&self) -> u64 {
        if self.design.has_dirty_words() {
            return 0;
        }
        let not_in_pm = |line: &LineAddr| {
            let memory = &self.machine.memory;
            memory.is_pm(line.addr()) && memory.content(*line) != self.machine.line(*line)
        };
        self.machine.caches.dirty_lines().into_iter().filter(not_in_pm).count() as u64
    }

    /// Checks the statistics of a whole run, which have been closed, against the laws of conservation.
    pub(super) fn check_conservation(&self) -> Result<(), SimError> {
        Ok(Laws::new(&self.spec.config).check_run(self.stats(), self.under_way())?)
    }

    /// Counts fills and requests that the machine has begun and not ended.
    pub(super) fn under_way(&self) -> UnderWay {
        let is_open = |(_, fill): &(usize, &Fill)| {
            !fill.checked && self.machine.memory.is_pm(fill.line.addr())
        };
        let fills = self.fills.iter().filter(is_open).count() as u64;
        UnderWay { fills, ..self.machine.memory.requests_under_way() }
    }

    /// Lets background work end, writes every dirty line back, recovers once, and compares PM with what
    /// the program stored. Nothing of this is in the statistics. Words that were stored to outside transactions are held to
    /// what they are held to at a power failure, if that is followed, and else to nothing: recovery may redo the transaction
    /// before them.
    fn shut_down_orderly(&mut self) -> Result<(), SimError> {
        self.run_until_idle(&mut NoObserver)?;
        self.design.shut_down(&mut self.machine);
        for core in 0..self.write_combining.len() as u32 {
            self.empty_write_combining(core, |c| &mut c.write_combining_flushes_atomic);
        }
        self.run_until_idle(&mut NoObserver)?;
        for line in self.machine.caches.dirty_lines() {
            // What the design did for an earlier line may have made this one leave.
            let tag = self.machine.caches.tag(line).unwrap_or_default();
            self.machine.caches.clean(line);
            self.evict(line, tag);
            self.deliver(&mut NoObserver)?;
            while self.machine.memory.has_writes_waiting() {
                self.handle_event();
                self.deliver(&mut NoObserver)?;
            }
        }
        self.run_until_idle(&mut NoObserver)?;
        self.machine.memory.flush_buffers();
        let (start, end) = self.data_region();
        self.recover_cells();
        let media = &self.machine.memory.shared.media;
        let mut differences = media.differences(self.machine.architectural(), start, end);
        let lost = differences.find(|&(addr, found, stored)| match self.machine.outside() {
            Some(outside) => outside.differs(addr, found, stored),
            None => !self.outside.contains(addr),
        });
        match lost {
            None => Ok(()),
            Some((addr, found, stored)) => Err(SimError::ShutdownCheck {
                addr,
                found,
                stored,
                design: self.spec.design.name,
                workload: self.spec.workload.name,
            }),
        }
    }

    /// An orderly shutdown; returns the digest of the programs' data in PM.
    pub(super) fn shut_down(&mut self) -> Result<u64, SimError> {
        self.shut_down_orderly()?;
        let (start, end) = self.data_region();
        Ok(self.machine.memory.shared.media.digest(start, end))
    }

    /// Finishes a run whose threads have all ended: an observer looks on until no background work
    /// is left, and then the system shuts down in order, unless the observer has stopped it.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn finish_observed<O: Observer>(&mut self, observer: &mut O) -> Result<(), SimError> {
        self.run_until_idle(observer)?;
        if observer.stops() { Ok(()) } else { self.shut_down_orderly() }
    }

    /// Runs until no background work is left.
    pub(super) fn run_until_idle<O: Observer>(&mut self, observer: &mut O) -> Result<(), SimError> {
        self.machine.memory.end();
        self.deliver(observer)?;
        while !self.is_idle() {
            if self.machine.memory.shared.events.next_at() == NEVER {
                return Err(self.deadlock());
            }
            if observer.stops() {
                return Ok(());
            }
            self.handle_event();
            self.show(observer);
            self.deliver(observer)?;
        }
        Ok(())
    }
}
