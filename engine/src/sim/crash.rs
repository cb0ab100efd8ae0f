//! Power failures of a running simulation.

use super::run::Simulation;
use super::spec::DATA_START;
use crate::crash::{Medium, Verdict};
use crate::designs::RecoveryReport;
use crate::workloads;

impl Simulation {
    /// Power fails at this instant. The simulation itself is not touched and can go on.
    pub fn crash(&self) -> Crash<'_> {
        let mut medium = Medium::new(&self.machine.memory.shared.media);
        for (line, mask, data) in self.machine.memory.surviving() {
            medium.store_line(line, mask, &data);
        }
        self.design.power_failure(&mut medium);
        Crash { simulation: self, registers: self.design.registers(), medium }
    }
}

/// What a power failure left.
pub struct Crash<'a> {
    simulation: &'a Simulation,
    /// The design's non-volatile registers.
    pub registers: Vec<u64>,
    /// The surviving bytes.
    pub medium: Medium<'a>,
}

impl Crash<'_> {
    /// Recovers in place, from bytes and registers alone.
    pub fn recover(&mut self) -> RecoveryReport {
        let simulation = self.simulation;
        (simulation.spec.design.recover)(&simulation.site, &self.registers, &mut self.medium)
    }

    /// Judges the medium as it is now.
    ///
    /// # Errors
    /// The first promise found broken.
    ///
    /// # Panics
    /// If transactions were not followed ([`Simulation::follow_transactions`]).
    pub fn judge(&self) -> Result<(), Verdict> {
        let s = self.simulation;
        let oracle = s.oracle.as_ref().expect("transactions are followed");
        oracle.judge(&self.medium, s.machine.architectural(), DATA_START, s.site.log_start)
    }

    /// The workload's invariants on the medium as it is now.
    ///
    /// # Errors
    /// The first violation found.
    pub fn check_structures(&self) -> Result<(), workloads::Violation> {
        let mut image = self.medium.cells().clone();
        for (addr, value) in self.medium.written() {
            image.store(addr, value);
        }
        self.simulation.workload.check(&image)
    }
}
