//! Dynamic energy of the processor, by events.
//!
//! FWB §V feeds its simulator's counts into McPAT. Here each counted event has an energy, from the one table
//! that architects quote for such estimates (M. Horowitz, *Computing's Energy Problem*, ISSCC 2014, 45 nm,
//! 0.9 V): 70 pJ for an instruction with its fetch, registers and control, and 20 pJ for 8 B of a cache of
//! 32 KB. A larger array costs as the root of its capacity (the table's 8 KB, 32 KB and 1 MB: 10, 20, 100 pJ), and
//! a line costs eight words.
//!
//! Such a sum tells designs apart by the work that they make; it is no estimate of a chip. Clocks, leakage
//! and idle cores are left out.

use super::Counters;
use crate::config::{L1Config, L2Config, LlcConfig};
use graven_base::config::{Config, Size};
use graven_base::memory::WORDS_PER_LINE;
use graven_base::section;
use graven_base::stats::Energy;

section! {
    /// Dynamic energy of the processor per event (Horowitz, ISSCC 2014, 45 nm). No effect on time.
    pub struct ProcessorEnergyConfig("processor_energy") {
        /// One instruction: fetch, decoding, registers, control.
        instruction_pj: f64 = 70.0, 0.0..=10_000.0, "pJ";
        /// Access to 8 B of a cache of 32 KB; others cost as the root of their capacity.
        cache_32kb_word_pj: f64 = 20.0, 0.0..=10_000.0, "pJ";
    }
}

/// Energies of a configuration's events.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorEnergy {
    instruction: Energy,
    /// A word of the L1; a line of L2 and LLC.
    caches: [Energy; 3],
}

impl ProcessorEnergy {
    /// The events' energies.
    pub fn new(config: &Config) -> ProcessorEnergy {
        let energy = config.get::<ProcessorEnergyConfig>();
        let word = |bytes: Size| {
            let larger = bytes.0 as f64 / Size::kb(32).0 as f64;
            Energy::per_bit(energy.cache_32kb_word_pj * larger.sqrt())
        };
        let line = |bytes: Size| word(bytes).times(WORDS_PER_LINE as u64);
        ProcessorEnergy {
            instruction: Energy::per_bit(energy.instruction_pj),
            caches: [
                word(config.get::<L1Config>().bytes),
                line(config.get::<L2Config>().bytes),
                line(config.get::<LlcConfig>().bytes),
            ],
        }
    }

    /// Energy of the events of a run.
    pub fn of(&self, c: &Counters) -> Energy {
        let accesses = [
            c.l1_hits + c.l1_misses + c.l1_joins,
            c.l2_hits + c.l2_misses,
            c.llc_hits + c.llc_misses + c.llc_joins,
        ];
        let caches = self.caches.iter().zip(accesses).map(|(energy, n)| energy.times(n));
        caches.fold(self.instruction.times(c.instructions), Energy::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_caches_cost_more_and_lines_cost_eight_words() {
        let mut config = crate::registry::Registry::new().defaults();
        for (key, value) in [("l1.bytes", "32 KB"), ("l2.bytes", "128 KB"), ("llc.bytes", "8 MB")] {
            config.set(key, value).expect("a valid setting");
        }
        let energy = ProcessorEnergy::new(&config);
        let count = |n: [u64; 4]| {
            let [instructions, l1_hits, l2_hits, llc_misses] = n;
            energy.of(&Counters {
                instructions,
                l1_hits,
                l2_hits,
                llc_misses,
                ..Counters::default()
            })
        };
        assert_eq!(count([3, 0, 0, 0]).pj(), 210.0);
        assert_eq!(count([0, 2, 0, 0]).pj(), 40.0);
        assert_eq!(count([0, 0, 1, 0]).pj(), 8.0 * 40.0);
        assert_eq!(count([0, 0, 0, 1]).pj(), 8.0 * 320.0);
    }
}
