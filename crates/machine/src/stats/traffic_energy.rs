//! Energy of the PM as papers compute it that count traffic alone (HOOP §IV-E: "we collect both read and write traffics, and
//! use the energy model for NVM read/write").

use graven_base::memory::LINE_BYTES;
use graven_base::stats::Energy;

use super::Counters;
use crate::config::PmConfig;

/// Energies per bit of traffic: of the cells and of the row buffer together, whatever is open and whatever changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrafficEnergy {
    read: Energy,
    write: Energy,
}

impl TrafficEnergy {
    /// The configured energies.
    pub fn new(pm: &PmConfig) -> TrafficEnergy {
        TrafficEnergy {
            read: Energy::per_bit(pm.array_read_pj_per_bit + pm.row_read_pj_per_bit),
            write: Energy::per_bit(pm.array_write_pj_per_bit + pm.row_write_pj_per_bit),
        }
    }

    /// Energy of the lines that were read and the words that were written.
    pub fn of(&self, counters: &Counters) -> Energy {
        let lines = counters.controller_read_requests - counters.controller_reads_forwarded;
        let read = self.read.times(lines * LINE_BYTES * 8);
        read.and(self.write.times(counters.written_bytes() * 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_and_words_written_count_whatever_changes() {
        let pm = PmConfig::default();
        let counters = Counters {
            controller_read_requests: 3,
            controller_reads_forwarded: 1,
            written_bytes_data: 24,
            written_bytes_log: 8,
            ..Counters::default()
        };
        // 1,024 bits at 2.47 + 0.93 pJ, 256 bits at 16.82 + 1.02 pJ.
        let energy = TrafficEnergy::new(&pm).of(&counters).pj();
        assert!((energy - (1024.0 * 3.4 + 256.0 * 17.84)).abs() < 1e-6, "{energy} pJ");
    }
}
