//! A bank: when it is free, and the row that its buffer holds.

use graven_base::memory::{LINE_BYTES, MEDIA_LINE_BYTES};
use graven_base::time::Cycle;

use super::timing::{EnergyModel, Timing};
use crate::stats::Stats;

/// One bank: when it is free, and the row that its buffer holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bank {
    /// Busy until then.
    pub free_at: Cycle,
    /// The open row.
    pub open_row: Option<u64>,
}

impl Bank {
    /// Cycles to bring a row's line out, and the row is open afterwards.
    fn open(&mut self, row: u64, timing: &Timing, stats: &mut Stats) -> (Cycle, bool) {
        let c = &mut stats.counters;
        let (latency, hit) = match self.open_row {
            Some(open) if open == row => {
                c.row_hits += 1;
                (timing.row_hit, true)
            }
            None => {
                c.row_closed += 1;
                (timing.read, false)
            }
            Some(_) => {
                c.row_conflicts += 1;
                (timing.precharge + timing.read, false)
            }
        };
        self.open_row = Some(row);
        (latency, hit)
    }

    /// Starts a read of a line; returns when the array has delivered it.
    pub fn read(
        &mut self,
        row: u64,
        now: Cycle,
        timing: &Timing,
        energy: &EnergyModel,
        stats: &mut Stats,
    ) -> Cycle {
        assert!(self.free_at <= now, "a busy bank is not given work");
        let (latency, hit) = self.open(row, timing, stats);
        stats.counters.media_reads += 1;
        if !hit {
            stats.read_energy.add_bits(energy.array_read, LINE_BYTES * 8);
        }
        stats.read_energy.add_bits(energy.row_read, LINE_BYTES * 8);
        self.free_at = now + latency;
        self.free_at
    }

    /// Counts the fetch of a media line of which a part is about to be written.
    pub(super) fn count_fetch(&self, row: u64, energy: &EnergyModel, stats: &mut Stats) {
        stats.counters.media_reads += 1;
        if self.open_row != Some(row) {
            stats.read_energy.add_bits(energy.array_read, MEDIA_LINE_BYTES * 8);
        }
        stats.read_energy.add_bits(energy.row_read, MEDIA_LINE_BYTES * 8);
    }

    /// Starts programming. `fetch`: read the rest of the line first; `programming`: what that takes (if no
    /// cell changes, comparing is all there is to do). Returns when it is done.
    pub(super) fn write(
        &mut self,
        row: u64,
        now: Cycle,
        fetch: bool,
        programming: Cycle,
        timing: &Timing,
    ) -> Cycle {
        assert!(self.free_at <= now, "a busy bank is not given work");
        let compare = match self.open_row {
            Some(open) if open == row => timing.row_hit,
            None => timing.read,
            Some(_) => timing.precharge + timing.read,
        };
        let latency = match (fetch, programming) {
            (_, 0) => compare,
            (true, _) => compare + programming,
            (false, _) => programming,
        };
        self.open_row = Some(row);
        self.free_at = now + latency;
        self.free_at
    }

    /// Starts a read of DRAM; returns when the array has delivered it.
    pub fn read_volatile(&mut self, row: u64, now: Cycle, timing: &Timing) -> Cycle {
        assert!(self.free_at <= now, "a busy bank is not given work");
        let latency = match self.open_row {
            Some(open) if open == row => timing.row_hit,
            None => timing.read,
            Some(_) => timing.precharge + timing.read,
        };
        self.open_row = Some(row);
        self.free_at = now + latency;
        self.free_at
    }

    /// Starts a write of DRAM, which has no cells to compare.
    pub fn write_volatile(&mut self, row: u64, now: Cycle, timing: &Timing) -> Cycle {
        let latency = match self.open_row {
            Some(open) if open == row => timing.write,
            None => timing.read.saturating_sub(timing.row_hit) + timing.write,
            Some(_) => timing.precharge + timing.read.saturating_sub(timing.row_hit) + timing.write,
        };
        self.open_row = Some(row);
        self.free_at = now + latency;
        self.free_at
    }
}
