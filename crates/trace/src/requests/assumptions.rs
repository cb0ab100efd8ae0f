//! Things that a trace of requests does not say and its reader is told.

/// Assumptions about a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assumptions {
    /// Cycles of the core in a second; none: cycles of the trace stay as they are.
    pub core_hz: Option<u64>,
    /// Cycles of the trace in a second; none: they are the core's. Packet traces of gem5 have their own.
    pub clock_hz: Option<u64>,
    /// Numbers of channels, ranks and so on, down to columns of a line each, of addresses that are vectors.
    pub levels: Vec<u64>,
    /// Cycles of DRAMSys count from the request before, as in `.rstl`.
    pub are_relative: bool,
}

/// The clock of a trace, and that of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Cycles of the trace in a second; not 0.
    pub trace_hz: u64,
    /// Cycles of the core in a second.
    pub core_hz: u64,
}

impl Clock {
    /// The last cycle of the core that begins no later than a cycle of the trace; none if it is 2^62 or later.
    pub fn core_cycle(self, cycle: u64) -> Option<u64> {
        let found = u128::from(cycle) * u128::from(self.core_hz) / u128::from(self.trace_hz);
        u64::try_from(found).ok().filter(|&found| found < 1 << 62)
    }

    /// The first cycle of the trace that begins no earlier than a cycle of the core; none if it is 2^62 or later.
    pub fn trace_cycle(self, cycle: u64) -> Option<u64> {
        let product = u128::from(cycle) * u128::from(self.trace_hz);
        let found = product.div_ceil(self.core_hz.into());
        u64::try_from(found).ok().filter(|&found| found < 1 << 62)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_of_a_trace_are_those_of_the_core_at_the_same_time() {
        let memory = Clock { trace_hz: 1_200_000_000, core_hz: 2_000_000_000 };
        let cycles = [0, 1, 2, 3, 6, 1 << 61].map(|cycle| memory.core_cycle(cycle));
        assert_eq!(cycles[..5], [0, 1, 3, 5, 10].map(Some));
        assert_eq!(cycles[5], Some((1u64 << 61) / 3 * 5 + (1u64 << 61) % 3 * 5 / 3));
        let ticks = Clock { trace_hz: 1_000_000_000_000, core_hz: 2_000_000_000 };
        assert_eq!([499, 500, 1499].map(|cycle| ticks.core_cycle(cycle)), [0, 1, 2].map(Some));
        let slow = Clock { trace_hz: 1, core_hz: 10_000_000_000 };
        assert_eq!(slow.core_cycle(1 << 40), None);
        let written = [0, 1, 3, 4, 5].map(|cycle| memory.trace_cycle(cycle));
        assert_eq!(written, [0, 1, 2, 3, 3].map(Some), "no request comes before its time");
        assert_eq!(ticks.trace_cycle(3), Some(1500));
        assert_eq!(ticks.trace_cycle(1 << 61), None);
    }
}
