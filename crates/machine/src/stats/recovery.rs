//! Statistics and parameters of recovery in simulated time.

use graven_base::config::{Config, ConfigError};
use graven_base::recovery_steps::Work;
use graven_base::stats::{Declaration, Value};
use graven_base::{declarations, section};

use super::region::RegionConfig;

section! {
    /// Recovery in simulated time: where in a run power fails, and the price of recovery's computation. Recovery is timed
    /// only if one of the first three says where power fails.
    pub struct RecoveryConfig("recovery") {
        /// Power failures at evenly spaced times: failure `i` of `n` at `i / (n + 1)` of the run. 0: none.
        points: u32 = 0, 0..=1000, "power failures";
        /// One power failure, at this cycle of the run, or at its end if it is shorter. 0: none.
        at_cycle: u64 = 0, 0..=1 << 50, "cycles";
        /// One power failure, at this share of the run's time. 0: none.
        at_percent: f64 = 0.0, 0.0..=100.0, "%";
        /// Taking a record of a log apart, checking it and deciding about it; as many as software takes to make one (`software_log.record_instructions`).
        record_instructions: u32 = 8, 0..=10_000, "instructions";
        /// Looking up or entering one item in a volatile table of recovery's own; as many as a search in an index has beside its nodes (`lsm.lookup_instructions`).
        table_instructions: u32 = 10, 0..=10_000, "instructions";
        /// Comparing two keys in a sort; as many as one node of a search takes (`lsm.node_instructions`).
        comparison_instructions: u32 = 4, 0..=10_000, "instructions";
    }
}

impl RecoveryConfig {
    /// Returns true if recovery is timed.
    pub fn is_wanted(&self) -> bool {
        self.ways() > 0
    }

    fn ways(&self) -> usize {
        let given = [self.points > 0, self.at_cycle > 0, self.at_percent > 0.0];
        given.into_iter().filter(|&given| given).count()
    }

    /// Checks that one way at most says where power fails, and that it is in a whole run.
    ///
    /// # Errors
    /// [`ConfigError::Inconsistent`] names the keys.
    pub fn check(config: &Config) -> Result<(), ConfigError> {
        let keys = ["recovery.points", "recovery.at_cycle", "recovery.at_percent"];
        match config.get::<RecoveryConfig>().ways() {
            0 => return Ok(()),
            1 => return RegionConfig::require_whole(config, &keys),
            _ => {}
        }
        let why = "one of recovery.points, recovery.at_cycle and recovery.at_percent says where power fails, \
                   and the others are 0";
        Err(config.inconsistent(&keys, why.into()))
    }

    /// The cycles of a run of this length at which power fails, in their order.
    pub fn failures(&self, cycles: u64) -> Vec<u64> {
        if self.at_cycle > 0 {
            return vec![self.at_cycle];
        }
        if self.at_percent > 0.0 {
            return vec![(cycles as f64 * self.at_percent / 100.0) as u64];
        }
        let share = |i: u32| u128::from(cycles) * u128::from(i) / u128::from(self.points + 1);
        (1..=self.points).map(|i| share(i) as u64).collect()
    }

    /// The number of power failures that are asked for.
    pub fn count(&self) -> u64 {
        self.failures(0).len() as u64
    }

    /// Instructions of `count` operations of a kind.
    pub fn instructions(&self, work: Work, count: u32) -> u64 {
        let each = match work {
            Work::Record => self.record_instructions,
            Work::Table => self.table_instructions,
            Work::Comparison => self.comparison_instructions,
        };
        u64::from(each) * u64::from(count)
    }
}

/// The transactions that a recovery counts as in the progress of a run: on the host it takes about as long, some 20 ms.
pub const RECOVERY_TRANSACTIONS: u64 = 1000;

/// Statistics of recoveries in simulated time, in a record only if they were asked for (`recovery.points`).
pub const RECOVERY_DECLARATIONS: &[Declaration] = declarations! {
    /// Power failures after which recovery was timed (`recovery.points`).
    "recovery_failures": Count, "power failures";
    /// Threads that recovery ran on, largest over the failures.
    "recovery_threads": Count, "threads";
    /// Simulated time of a recovery on the cold machine, until all that it wrote is durable; mean over the failures.
    "recovery_ms": Ratio, "ms";
    /// The same, largest over the failures.
    "recovery_ms_max": Ratio, "ms";
    /// 64 B for each read of PM that reached a controller during a recovery, mean.
    "recovery_bytes_read": Ratio, "B";
    /// Bytes of the words of writes to PM that were accepted during a recovery, mean.
    "recovery_bytes_written": Ratio, "B";
    /// Instructions of a recovery, over all its threads, mean.
    "recovery_instructions": Ratio, "instructions";
    /// Log entries and records that a recovery examined, mean.
    "recovery_records_scanned": Ratio, "records";
    /// Words that a recovery wrote home because their transactions had committed, mean.
    "recovery_words_redone": Ratio, "words";
    /// Words that a recovery wrote home because their transactions had not committed, mean.
    "recovery_words_undone": Ratio, "words";
};

/// One recovery in simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecoveryTime {
    /// The cycle of the run at which power failed.
    pub failed_at: u64,
    /// Threads that recovery ran on.
    pub threads: u64,
    /// Cycles until all that it wrote was durable.
    pub cycles: u64,
    /// The same in milliseconds.
    pub ms: f64,
    /// 64 B for each read of PM that reached a controller.
    pub bytes_read: u64,
    /// Bytes of the words of accepted writes to PM.
    pub bytes_written: u64,
    /// Instructions of all threads.
    pub instructions: u64,
    /// Log entries and records examined.
    pub records_scanned: u64,
    /// Words written home of committed transactions.
    pub words_redone: u64,
    /// Words written home of others.
    pub words_undone: u64,
}

/// The statistics of several recoveries of one run, by name, in the order of [`RECOVERY_DECLARATIONS`].
pub fn of_recoveries(times: &[RecoveryTime]) -> Vec<(&'static str, Value)> {
    let mean = |of: &dyn Fn(&RecoveryTime) -> f64| {
        Value::Number(times.iter().map(of).sum::<f64>() / times.len().max(1) as f64)
    };
    let values = [
        Value::Count(times.len() as u64),
        Value::Count(times.iter().map(|t| t.threads).max().unwrap_or(0)),
        mean(&|t| t.ms),
        Value::Number(times.iter().map(|t| t.ms).fold(0.0, f64::max)),
        mean(&|t| t.bytes_read as f64),
        mean(&|t| t.bytes_written as f64),
        mean(&|t| t.instructions as f64),
        mean(&|t| t.records_scanned as f64),
        mean(&|t| t.words_redone as f64),
        mean(&|t| t.words_undone as f64),
    ];
    RECOVERY_DECLARATIONS.iter().map(|declared| declared.name).zip(values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_where_they_are_asked_for() {
        let config = RecoveryConfig::default();
        assert!(!config.is_wanted() && config.failures(1000).is_empty());
        assert_eq!(config.count(), 0);
        let points = RecoveryConfig { points: 3, ..config.clone() };
        assert_eq!(points.failures(1000), [250, 500, 750]);
        assert_eq!(points.count(), 3);
        let cycle = RecoveryConfig { at_cycle: 7, ..config.clone() };
        assert_eq!(cycle.failures(1000), [7]);
        let percent = RecoveryConfig { at_percent: 100.0, ..config };
        assert_eq!(percent.failures(1000), [1000]);
        assert!(points.is_wanted() && cycle.is_wanted() && percent.is_wanted());
    }

    #[test]
    fn several_recoveries_have_means_and_a_largest_time() {
        let one = RecoveryTime { ms: 1.0, bytes_read: 64, threads: 2, ..Default::default() };
        let two = RecoveryTime { ms: 3.0, bytes_read: 128, threads: 1, ..Default::default() };
        let values = of_recoveries(&[one, two]);
        let of =
            |name: &str| values.iter().find(|(n, _)| *n == name).expect("it is there").1.clone();
        assert_eq!(of("recovery_failures"), Value::Count(2));
        assert_eq!(of("recovery_threads"), Value::Count(2));
        assert_eq!(of("recovery_ms"), Value::Number(2.0));
        assert_eq!(of("recovery_ms_max"), Value::Number(3.0));
        assert_eq!(of("recovery_bytes_read"), Value::Number(96.0));
        assert_eq!(values.len(), RECOVERY_DECLARATIONS.len());
    }
}
