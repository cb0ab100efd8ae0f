//! Time that the hardware would take for a recovery (§IV-G, Fig. 11): a closed form.
//!
//! Scanning: a thread reads one slice after the other, each after the read latency and its time on the bus, as
//! a chain of slices demands; threads overlap until the bus is full. Address memory slices are read the same
//! way. Writing home: lines are posted, so the bus alone limits, and the last one is waited for.

use super::layout::SLICE_BYTES;
use super::recovery::Work;
use graven_base::memory::LINE_BYTES;

/// Simulated time of a recovery.
///
/// `threads`: recovery threads. `bytes_per_ns`: bandwidth of the memory (1 GB/s is 1 B/ns). `read_ns`,
/// `write_ns`: latencies of the memory.
pub fn recovery_ns(
    work: &Work,
    threads: u32,
    bytes_per_ns: f64,
    read_ns: f64,
    write_ns: f64,
) -> f64 {
    let scan = |bytes: f64| {
        let slices = bytes / SLICE_BYTES as f64;
        let of_a_slice = read_ns + SLICE_BYTES as f64 / bytes_per_ns;
        (bytes / bytes_per_ns).max(slices * of_a_slice / f64::from(threads))
    };
    let written = (work.lines * LINE_BYTES) as f64 / bytes_per_ns;
    let last = if work.lines > 0 { write_ns } else { 0.0 };
    scan(work.record_bytes as f64) + scan((work.slices * SLICE_BYTES) as f64) + written + last
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work =
        Work { record_bytes: 128_000, records: 1000, slices: 9000, words: 500, lines: 100 };

    #[test]
    fn one_thread_waits_for_every_slice() {
        // 10,000 slices, each 50 ns and 12.8 ns on the bus; 100 lines of 6.4 ns; 150 ns for the last.
        let ns = recovery_ns(&WORK, 1, 10.0, 50.0, 150.0);
        assert!((ns - (10_000.0 * 62.8 + 640.0 + 150.0)).abs() < 1e-6, "{ns}");
    }

    /// The shape of HOOP Fig. 11.
    #[test]
    fn bandwidth_counts_when_threads_fill_it_and_threads_until_then() {
        let with = |threads, gb_per_s| recovery_ns(&WORK, threads, gb_per_s, 50.0, 150.0);
        let (slow, fast) = (with(64, 10.0) - 150.0, with(64, 20.0) - 150.0);
        assert!((slow / fast - 2.0).abs() < 1e-9, "linear in the bandwidth: {slow} {fast}");
        let times = [1, 2, 4, 8, 16].map(|threads| with(threads, 10.0));
        assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
        assert_eq!(times[3], times[4], "five threads fill 10 GB/s");
        assert!(times[0] / times[1] > 1.9);
    }
}
