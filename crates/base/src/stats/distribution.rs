//! Distributions of samples, and the statistics that are reported of them.

use super::Value;

/// Leading bits of a sample that are told apart: samples below 2,048 have a count each, and of others those share one that
/// differ by less than a thousandth.
const LEADING_BITS: u32 = 11;

/// Counts of the samples of a length above that, whose highest bit is set.
const COUNTS_OF_LENGTH: usize = 1 << (LEADING_BITS - 1);

/// A distribution, of latencies or sizes, with exact sum, count and maximum.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// Counts of samples, as far as there are any.
    counts: Vec<u64>,
    sum: u64,
    count: u64,
    max: u64,
}

/// A distribution of latencies, in cycles.
pub type Latency = Distribution;

/// Bits of a sample behind those that are told apart.
#[inline]
fn shift(sample: u64) -> u32 {
    (u64::BITS - LEADING_BITS).saturating_sub(sample.leading_zeros())
}

/// Place of a sample's count. Places are in the order of samples.
#[inline]
fn place(sample: u64) -> usize {
    let shift = shift(sample);
    shift as usize * COUNTS_OF_LENGTH + (sample >> shift) as usize
}

/// The largest sample that is counted in a place.
fn largest_in(place: usize) -> u64 {
    let shift = (place / COUNTS_OF_LENGTH).saturating_sub(1);
    let leading = (place - shift * COUNTS_OF_LENGTH) as u64;
    leading << shift | ((1 << shift) - 1)
}

impl Distribution {
    /// Takes one sample.
    #[inline]
    pub fn record(&mut self, sample: u64) {
        let place = place(sample);
        match self.counts.get_mut(place) {
            Some(count) => *count += 1,
            None => self.record_beyond(place),
        }
        self.sum += sample;
        self.count += 1;
        self.max = self.max.max(sample);
    }

    /// Counts the first sample of a place behind all that have counts.
    #[cold]
    #[inline(never)]
    fn record_beyond(&mut self, place: usize) {
        self.counts.resize((place + 1).next_multiple_of(COUNTS_OF_LENGTH), 0);
        self.counts[place] = 1;
    }

    /// Samples taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all samples.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Exact mean; 0 without samples.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The value below which `quantile` (0..=1) of the samples lie, within 0.1%.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let wanted = ((quantile.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let reaches = |count: &u64| {
            below += count;
            below >= wanted
        };
        // The counts are as many as the samples, unless rounding asks for more.
        let place = self.counts.iter().position(reaches);
        place.map_or(self.max, |place| largest_in(place).min(self.max))
    }

    /// The largest sample.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Mean, median, 99th, 99.9th and 99.99th percentile, and maximum: the statistics that `of_distribution` declares.
    pub fn values(&self) -> [Value; 6] {
        [
            Value::Number(self.mean()),
            Value::Count(self.quantile(0.5)),
            Value::Count(self.quantile(0.99)),
            Value::Count(self.quantile(0.999)),
            Value::Count(self.quantile(0.9999)),
            Value::Count(self.max()),
        ]
    }
}

/// Declares the statistics of a distribution: name, unit, and what its samples are.
#[macro_export]
macro_rules! of_distribution {
    ($name:literal, $unit:literal, $samples:literal) => {
        &[
            $crate::stats::derived(concat!($name, "_mean"), $unit, concat!($samples, ", mean.")),
            $crate::stats::derived(concat!($name, "_p50"), $unit, concat!($samples, ", median.")),
            $crate::stats::derived(
                concat!($name, "_p99"),
                $unit,
                concat!($samples, ", 99th percentile."),
            ),
            $crate::stats::derived(
                concat!($name, "_p999"),
                $unit,
                concat!($samples, ", 99.9th percentile."),
            ),
            $crate::stats::derived(
                concat!($name, "_p9999"),
                $unit,
                concat!($samples, ", 99.99th percentile."),
            ),
            $crate::stats::derived(concat!($name, "_max"), $unit, concat!($samples, ", largest.")),
        ]
    };
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantiles_are_those_of_a_histogram_of_three_digits(
            samples in prop::collection::vec((any::<u64>(), 0..64u32), 1..60),
            quantile in prop_oneof![Just(1.0), Just(0.5), 0.001..1.0],
        ) {
            let mut distribution = Distribution::default();
            let mut histogram = Histogram::<u64>::new(3).expect("it has three digits");
            for (sample, shift) in samples {
                // Samples of any length, whose sum does not overflow.
                let sample = sample >> shift >> 6;
                distribution.record(sample);
                histogram.record(sample).expect("it grows");
                let expected = histogram.value_at_quantile(quantile).min(distribution.max());
                prop_assert_eq!(distribution.quantile(quantile), expected);
            }
        }

        #[test]
        fn samples_are_counted_with_those_that_differ_by_less_than_a_thousandth(
            (sample, shift) in (any::<u64>(), 0..64u32),
        ) {
            let sample = sample >> shift;
            let largest = largest_in(place(sample));
            prop_assert!(sample <= largest && largest - sample <= sample / 1000);
            prop_assert_eq!(place(largest), place(sample));
            prop_assert!(largest == u64::MAX || place(largest + 1) == place(sample) + 1);
        }
    }

    #[test]
    fn quantiles_are_within_a_thousandth_whatever_the_samples() {
        let samples = [0, 1, 2, 3, 2_047, 2_048, 5_000, 123_456, 98_765_432, 1 << 40];
        for largest in samples {
            let mut distribution = Distribution::default();
            for sample in samples.into_iter().filter(|&sample| sample <= largest) {
                distribution.record(sample);
            }
            let count = distribution.count() as f64;
            for (n, sample) in samples.into_iter().take_while(|&s| s <= largest).enumerate() {
                let found = distribution.quantile((n as f64 + 1.0) / count);
                assert!(found.abs_diff(sample) <= sample / 1_000, "{found} for {sample}");
            }
            assert_eq!(distribution.max(), largest);
        }
    }

    #[test]
    fn half_of_many_large_samples_are_below_the_median() {
        let mut distribution = Distribution::default();
        (1..=100_000).for_each(|sample| distribution.record(sample));
        assert!(distribution.quantile(0.5).abs_diff(50_000) <= 50);
        assert!(distribution.quantile(0.99).abs_diff(99_000) <= 99);
        assert_eq!(distribution.mean(), 50_000.5);
    }

    #[test]
    fn without_samples_everything_is_0() {
        let none = Distribution::default();
        assert_eq!((none.mean(), none.quantile(0.5), none.max()), (0.0, 0, 0));
    }
}
