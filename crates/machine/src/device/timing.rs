//! Latencies and energies of the accesses of a device.

use graven_base::stats::Energy;
use graven_base::time::{Cycle, cycles};

use super::bank::Found;
use crate::config::{CoreConfig, PmConfig};

/// Timing of the PM device, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Reading from an open row.
    pub row_hit: Cycle,
    /// Reading with the row closed.
    pub read: Cycle,
    /// From one access to an open row to the next.
    pub column: Cycle,
    /// Closing another row first.
    pub precharge: Cycle,
    /// A write with another row open, as a whole.
    pub write: Cycle,
    /// The data bus, per line.
    pub burst: Cycle,
    /// An access to the on-PM buffer.
    pub buffer: Cycle,
}

impl Timing {
    /// Timing of the PM.
    pub fn pm(pm: &PmConfig, core: &CoreConfig) -> Timing {
        let t = |ns| cycles(ns, core.frequency_mhz);
        Timing {
            row_hit: t(pm.row_hit_ns),
            column: t(pm.column_ns.min(pm.row_hit_ns)),
            read: t(pm.read_ns),
            precharge: t(pm.precharge_ns),
            write: t(pm.write_ns * pm.write_scale),
            burst: t(pm.burst_ns).max(1),
            buffer: t(pm.buffer_ns),
        }
    }

    /// Until a line of a row has been read.
    pub(super) fn until_read(&self, found: Found) -> Cycle {
        match found {
            Found::Open => self.row_hit,
            Found::Closed => self.read,
            Found::Conflict => self.precharge + self.read,
        }
    }

    /// Until a row is open.
    pub(super) fn until_open(&self, found: Found) -> Cycle {
        let activation = self.read.saturating_sub(self.row_hit);
        match found {
            Found::Open => 0,
            Found::Closed => activation,
            Found::Conflict => self.precharge + activation,
        }
    }
}

/// Energy per bit of each kind of access.
#[derive(Clone, Copy, Debug)]
pub struct EnergyModel {
    pub(super) row_read: Energy,
    pub(super) row_write: Energy,
    /// Energy of opening a row: of reading all its bits.
    pub(super) activation: Energy,
}

impl EnergyModel {
    /// The configured energies.
    pub fn new(pm: &PmConfig) -> Self {
        Self {
            row_read: Energy::per_bit(pm.row_read_pj_per_bit),
            row_write: Energy::per_bit(pm.row_write_pj_per_bit),
            activation: Energy::per_bit(pm.array_read_pj_per_bit).times(pm.row_bytes.0 * 8),
        }
    }
}
