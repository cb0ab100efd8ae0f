//! A region of a run in steady state: its parameters, and what is estimated from its windows. The simulation divides a run into
//! them ([`crate::sim`]).
//!
//! **Confidence intervals.** Windows of one run are not independent: a scan of all caches every 40,000 transactions makes
//! half of them slow. The variance of their mean is estimated from the lowest frequencies of the series: the mean square of its
//! first ν cosine transforms, ν = 0.4 n^(2/3) for n windows, with the quantile of Student's t for ν degrees of freedom (equal-weighted
//! cosine estimator; Lazarus, Lewis, Stock and Watson, "HAR Inference: Recommendations for Practice", Journal of Business &
//! Economic Statistics 36(4), 2018). A period that fits the region several times does not widen the interval; a trend does, and so does a
//! period as long as the region. With independent windows it is the interval of batch means.
//!
//! **Work that is pending at the two ends.** In a system that runs for long as many lines become
//! dirty as are written back, so that the number of dirty lines does not change in the long run;
//! within a region it does. A region of a design whose scans write back in bursts has a burst too
//! many or too few, which may be a tenth of its time. So the change of that number is a *control
//! variate* whose mean is known to be 0 (Law, "Simulation Modeling and Analysis", section 11.4):
//! each statistic is regressed on it over the windows, and estimated for a region at whose ends as
//! many lines are dirty. Interval and estimate are of what is left. Counted values stand in a
//! record as they were counted, beside the estimates.

use graven_base::config::{Config, ConfigError};
use graven_base::{choice, section};

choice! {
    /// Part of a run that its statistics are of.
    pub enum Region {
        /// The whole run, from empty caches to the end of the last thread.
        Whole = "whole",
        /// A part of it in which nothing changes from window to window but by chance.
        Steady = "steady",
    }
}

section! {
    /// The part of a run that its statistics are of.
    pub struct RegionConfig("region") {
        /// The whole run, or a region in steady state.
        kind: Region = Region::Whole, (), "";
        /// Transactions without time before, over all threads; as many again while the LLC has room left.
        fast_forward_transactions: u64 = 200_000, 0..=1_000_000_000, "transactions";
        /// Loads and stores of these, at most.
        fast_forward_operations: u64 = 20_000_000, 0..=1_000_000_000_000, "operations";
        /// Transactions with time before the region, at least.
        warm_up_transactions: u64 = 16_000, 0..=1_000_000_000, "transactions";
        /// Transactions of the region; 0: as many as `precision_percent` asks for.
        transactions: u64 = 0, 0..=1_000_000_000, "transactions";
        /// Transactions of a region whose length is not given, at least, unless they have `operations_min`.
        transactions_min: u64 = 64_000, 64..=1_000_000_000, "transactions";
        /// Loads and stores that are enough for a region of fewer transactions.
        operations_min: u64 = 6_000_000, 1_000..=1_000_000_000_000, "operations";
        /// And at most; those of the warm-up, too.
        transactions_max: u64 = 400_000, 64..=1_000_000_000, "transactions";
        /// Loads and stores of the program in a region whose length is not given, at most, and of the warm-up.
        operations_max: u64 = 30_000_000, 1_000..=1_000_000_000_000, "operations";
        /// Half-width of the confidence interval, in percent of the mean, that is narrow enough.
        precision_percent: f64 = 5.0, 0.01..=100.0, "%";
        /// Pieces of a region of a given length that are simulated each by itself, side by side on the host's cores.
        pieces: u32 = 1, 1..=256, "pieces";
    }
}

impl RegionConfig {
    /// Returns true if a region in steady state is measured.
    pub fn is_steady(&self) -> bool {
        self.kind == Region::Steady
    }

    /// Refuses regions where events are placed in the whole of a run.
    ///
    /// # Errors
    /// [`ConfigError::Inconsistent`] names the keys, among them those that place the events.
    pub fn require_whole(config: &Config, placed_by: &[&str]) -> Result<(), ConfigError> {
        if !config.get::<RegionConfig>().is_steady() {
            return Ok(());
        }
        let keys = [&["region.kind"], placed_by].concat();
        Err(config.inconsistent(
            &keys,
            "power fails in whole runs, from their beginning, and region.kind = steady".into(),
        ))
    }

    /// Checks that a region of several pieces is in steady state and has a length that can be divided.
    ///
    /// # Errors
    /// [`ConfigError::Inconsistent`] names the keys.
    pub fn check(config: &Config) -> Result<(), ConfigError> {
        let region = config.get::<RegionConfig>();
        if region.pieces == 1 {
            return Ok(());
        }
        if !region.is_steady() {
            let why = format!("a whole run has no pieces, and region.pieces = {}", region.pieces);
            return Err(config.inconsistent(&["region.kind", "region.pieces"], why));
        }
        if region.transactions < u64::from(region.pieces) {
            let why = format!(
                "a region of {} pieces has a given length, of as many transactions at least; region.transactions = {}",
                region.pieces, region.transactions
            );
            return Err(config.inconsistent(&["region.transactions", "region.pieces"], why));
        }
        Ok(())
    }

    /// The number of transactions of a region of a given length that are before one of its pieces.
    pub fn before_piece(&self, piece: u32) -> u64 {
        self.transactions * u64::from(piece) / u64::from(self.pieces)
    }

    /// Transactions of the shortest region whose length is not given. The program has executed `operations` loads and stores in
    /// `transactions` of its transactions so far; without any, nothing is known of their size.
    pub fn shortest(&self, operations: u64, transactions: u64) -> u64 {
        let enough = self.operations_min.saturating_mul(transactions).checked_div(operations);
        self.transactions_min.min(enough.map_or(u64::MAX, |enough| enough.max(64)))
    }

    /// Transactions with time, as far as is known before. Most regions whose length is not given are of the shortest, and some of the
    /// longest; their mean is nearer to the shortest.
    pub fn expected_transactions(&self) -> u64 {
        let region = match self.transactions {
            0 => (self.transactions_min + self.transactions_max) / 4,
            given => given,
        };
        self.warm_up_transactions * u64::from(self.pieces) + region
    }

    /// Transactions that a program must have, over all threads, so that the region does not end with it.
    pub fn program_transactions(&self, threads: u32) -> u64 {
        let region = if self.transactions > 0 { self.transactions } else { self.transactions_max };
        let warm_up = self.warm_up_transactions.max(self.transactions_max);
        let all = 2 * self.fast_forward_transactions + warm_up + region;
        // Threads do not commit at the same pace.
        all + all / 16 + 64 * u64::from(threads)
    }
}

/// Two-sided quantiles of Student's t for 95 %, for 1 to 8 degrees of freedom.
const STUDENT: [f64; 8] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306];

/// A statistic per transaction, window by window.
pub struct Series {
    /// The statistic.
    pub name: &'static str,
    /// Values by window.
    pub values: Vec<f64>,
}

impl Series {
    /// Makes the series of counted values, less what follows from a control variate whose mean is
    /// 0.
    pub fn new(name: &'static str, counted: Vec<f64>, control: &[f64]) -> Series {
        let n = control.len() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
        let (middle, of_counted) = (mean(control), mean(&counted));
        let pairs = control.iter().zip(&counted);
        let covariance: f64 = pairs.map(|(c, y)| (c - middle) * (y - of_counted)).sum();
        let variance: f64 = control.iter().map(|c| (c - middle).powi(2)).sum();
        let slope = if variance > 0.0 { covariance / variance } else { 0.0 };
        let values = counted.iter().zip(control).map(|(y, c)| y - slope * c).collect();
        Series { name, values }
    }

    /// The mean of all windows.
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// Half of the 95 % confidence interval of the mean, over the mean; none if there are too few windows or the mean is 0.
    pub fn half_width(&self) -> Option<f64> {
        let (n, mean) = (self.values.len(), self.mean());
        if n < 8 || mean <= 0.0 {
            return None;
        }
        let degrees = ((0.4 * (n as f64).powf(2.0 / 3.0)) as usize).clamp(1, STUDENT.len());
        let transform = |j: usize| {
            let angle = std::f64::consts::PI * j as f64 / n as f64;
            let terms = self.values.iter().enumerate();
            let sum: f64 =
                terms.map(|(t, value)| (value - mean) * (angle * (t as f64 + 0.5)).cos()).sum();
            sum * (2.0 / n as f64).sqrt()
        };
        let variance = (1..=degrees).map(|j| transform(j).powi(2)).sum::<f64>() / degrees as f64;
        Some(STUDENT[degrees - 1] * (variance / n as f64).sqrt() / mean)
    }

    /// Distance of the mean of the second half from that of the first, over the mean.
    pub fn drift(&self) -> f64 {
        let half = self.values.len() / 2;
        if half == 0 || self.mean() == 0.0 {
            return 0.0;
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (first, second) = self.values.split_at(half);
        (mean(second) - mean(first)) / self.mean()
    }
}
