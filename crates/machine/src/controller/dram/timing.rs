//! Distances of commands, and the clock of the DRAM among the cycles of the cores.

use graven_base::time::Cycle;

use crate::config::{CoreConfig, DramConfig};

/// A number of the DRAM's clocks, from the beginning of a run or between two commands.
pub type Clocks = u64;

/// Cycles of the cores and clocks of the DRAM. A clock takes effect in the first cycle that does not begin before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRatio {
    /// Cycles that take as long as `clocks`; they have no factor in common.
    cycles: u64,
    clocks: u64,
}

impl ClockRatio {
    /// The ratio of two frequencies in kHz.
    pub fn new(core_khz: u64, dram_khz: u64) -> ClockRatio {
        let common = gcd(core_khz, dram_khz);
        ClockRatio { cycles: core_khz / common, clocks: dram_khz / common }
    }

    /// The cycle in which a clock takes effect.
    #[inline]
    pub fn cycle(self, clock: Clocks) -> Cycle {
        (clock * self.cycles).div_ceil(self.clocks)
    }

    /// The first clock that takes effect in a cycle or after it.
    #[inline]
    pub fn clock(self, cycle: Cycle) -> Clocks {
        cycle.checked_sub(1).map_or(0, |before| before * self.clocks / self.cycles + 1)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Distances of commands, in clocks, by the names of JEDEC's standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramTiming {
    /// tCL: from a read to its first data.
    pub cl: Clocks,
    /// tCWL: from a write to its first data.
    pub cwl: Clocks,
    /// tRCD: from opening a row to an access.
    pub rcd: Clocks,
    /// tRP: from closing a row to opening another.
    pub rp: Clocks,
    /// tRAS: for so long a row is open at least.
    pub ras: Clocks,
    /// tCCD_S: between two accesses in different groups of banks.
    pub ccd_s: Clocks,
    /// tCCD_L: between two accesses in one group.
    pub ccd_l: Clocks,
    /// tCCD_L_WR: between two writes in one group.
    pub ccd_l_write: Clocks,
    /// tRRD_S: between openings in different groups.
    pub rrd_s: Clocks,
    /// tRRD_L: between openings in one group.
    pub rrd_l: Clocks,
    /// tFAW: within it a rank opens four rows at most.
    pub faw: Clocks,
    /// tRTP: from a read to closing its row.
    pub rtp: Clocks,
    /// tWR: from the last data of a write to closing its row.
    pub wr: Clocks,
    /// tWTR_S: from the last data of a write to a read in another group of the rank.
    pub wtr_s: Clocks,
    /// tWTR_L: the same in its group.
    pub wtr_l: Clocks,
    /// tRTRS: between data of two ranks on the bus.
    pub rtrs: Clocks,
    /// Between a read's data and a write's on the bus.
    pub turn: Clocks,
    /// tRFC: duration of a refresh.
    pub rfc: Clocks,
    /// tREFI: from one refresh of a rank to the next.
    pub refi: Clocks,
    /// The data of a line on the bus.
    pub burst: Clocks,
    /// Clocks among cycles.
    pub ratio: ClockRatio,
}

impl DramTiming {
    /// The configured timing.
    pub fn new(dram: &DramConfig, core: &CoreConfig) -> DramTiming {
        let khz = (dram.clock_mhz * 1000.0).round() as u64;
        DramTiming {
            cl: dram.cl_clocks.into(),
            cwl: dram.cwl_clocks.into(),
            rcd: dram.rcd_clocks.into(),
            rp: dram.rp_clocks.into(),
            ras: dram.ras_clocks.into(),
            ccd_s: dram.ccd_s_clocks.into(),
            ccd_l: dram.ccd_l_clocks.into(),
            ccd_l_write: dram.ccd_l_write_clocks.into(),
            rrd_s: dram.rrd_s_clocks.into(),
            rrd_l: dram.rrd_l_clocks.into(),
            faw: dram.faw_clocks.into(),
            rtp: dram.rtp_clocks.into(),
            wr: dram.wr_clocks.into(),
            wtr_s: dram.wtr_s_clocks.into(),
            wtr_l: dram.wtr_l_clocks.into(),
            rtrs: dram.rtrs_clocks.into(),
            turn: dram.turn_clocks.into(),
            rfc: dram.rfc_clocks.into(),
            refi: dram.refi_clocks.into(),
            burst: dram.burst_clocks.into(),
            ratio: ClockRatio::new(u64::from(core.frequency_mhz) * 1000, khz),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_and_cycles_of_any_two_frequencies_fit_each_other() {
        for (core, dram) in [(1000, 1000), (2000, 1200), (1000, 2400), (2500, 1333), (7, 3)] {
            let ratio = ClockRatio::new(core, dram);
            for cycle in 0..200 {
                let clock = ratio.clock(cycle);
                assert!(ratio.cycle(clock) >= cycle, "{core} {dram} {cycle}");
                assert!(clock == 0 || ratio.cycle(clock - 1) < cycle, "{core} {dram} {cycle}");
            }
        }
    }

    #[test]
    fn a_clock_takes_effect_in_the_first_cycle_that_does_not_begin_before_it() {
        let ratio = ClockRatio::new(2_000_000, 1_200_000);
        assert_eq!([0, 1, 2, 3].map(|clock| ratio.cycle(clock)), [0, 2, 4, 5]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|cycle| ratio.clock(cycle)), [0, 1, 1, 2, 2, 3]);
    }
}
