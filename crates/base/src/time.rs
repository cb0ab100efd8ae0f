//! Simulated time.

/// A point in time or a duration, in core clock cycles.
pub type Cycle = u64;

/// A time that never comes.
pub const NEVER: Cycle = Cycle::MAX;

/// Converts nanoseconds to cycles of a clock, rounded up: hardware waits for whole cycles.
pub fn cycles(ns: f64, frequency_mhz: u32) -> Cycle {
    // The subtraction forgives the binary representation of decimal nanoseconds, no more.
    (ns * f64::from(frequency_mhz) / 1000.0 - 1e-9).ceil().max(0.0) as Cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_become_whole_cycles() {
        assert_eq!(cycles(50.0, 2000), 100);
        assert_eq!(cycles(12.1, 3000), 37);
        assert_eq!(cycles(1.6, 2500), 4);
        assert_eq!(cycles(0.0, 2500), 0);
    }
}
