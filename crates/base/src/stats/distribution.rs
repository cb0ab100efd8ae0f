//! Distributions of samples, and the statistics that are reported of them.

use hdrhistogram::Histogram;

use super::Value;

/// A distribution, of latencies or sizes, with exact sum, count and maximum.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u64>,
    sum: u64,
    count: u64,
    max: u64,
}

/// A distribution of latencies, in cycles.
pub type Latency = Distribution;

impl Default for Distribution {
    fn default() -> Self {
        let histogram =
            Histogram::new(3).expect("3 significant digits are within the library's range");
        Self { histogram, sum: 0, count: 0, max: 0 }
    }
}

impl Distribution {
    /// Takes one sample.
    #[inline]
    pub fn record(&mut self, sample: u64) {
        // Not `saturating_record`, which clamps to what the histogram holds so far.
        self.histogram.record(sample).expect("the histogram grows with its samples");
        self.sum += sample;
        self.count += 1;
        self.max = self.max.max(sample);
    }

    /// Takes the samples of another distribution, too.
    pub fn join(&mut self, other: &Distribution) {
        self.histogram.add(&other.histogram).expect("the histogram grows with its samples");
        self.sum += other.sum;
        self.count += other.count;
        self.max = self.max.max(other.max);
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
        if self.count == 0 { 0 } else { self.histogram.value_at_quantile(quantile).min(self.max) }
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
    use super::*;

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
    fn joined_distributions_have_the_samples_of_both() {
        let of = |samples: &[u64]| {
            let mut distribution = Distribution::default();
            samples.iter().for_each(|&sample| distribution.record(sample));
            distribution
        };
        let mut joined = of(&[1, 5, 900]);
        joined.join(&of(&[7, 1 << 40]));
        joined.join(&of(&[]));
        let whole = of(&[1, 5, 7, 900, 1 << 40]);
        assert_eq!(format!("{:?}", joined.values()), format!("{:?}", whole.values()));
    }

    #[test]
    fn without_samples_everything_is_0() {
        let none = Distribution::default();
        assert_eq!((none.mean(), none.quantile(0.5), none.max()), (0.0, 0, 0));
    }
}
