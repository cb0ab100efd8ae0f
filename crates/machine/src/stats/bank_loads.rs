//! Number of pending requests of each bank of the PM, over time.

use std::io::{self, Write};

use graven_base::time::Cycle;

/// The banks' pending requests, summed over cycles.
#[derive(Clone, Debug, Default)]
pub struct BankLoads {
    banks: Vec<Bank>,
    /// The largest load of any bank.
    largest: Pending,
    /// Number of banks that have each load.
    with_load: Vec<u32>,
    /// Length of an interval of the series; 0: there is none.
    interval: Cycle,
    /// Per interval that is over, the sum of each bank.
    series: Vec<Vec<u64>>,
    interval_end: Cycle,
}

/// A number that changes from time to time, summed over cycles.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    load: u32,
    since: Cycle,
    sum: u64,
    /// The part of the sum from before what is measured.
    unmeasured: u64,
}

impl Pending {
    fn until(&mut self, now: Cycle) -> u64 {
        self.sum += u64::from(self.load) * now.saturating_sub(self.since);
        self.since = self.since.max(now);
        self.sum
    }

    fn measured(&self) -> u64 {
        self.sum - self.unmeasured
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Bank {
    pending: Pending,
    /// Sum when the present interval began.
    before: u64,
}

impl BankLoads {
    /// Makes the loads of `banks` banks, over all channels.
    pub fn new(banks: usize) -> BankLoads {
        let with_load = vec![banks as u32];
        BankLoads { banks: vec![Bank::default(); banks], with_load, ..Self::default() }
    }

    /// Keeps the series, with intervals of `interval` cycles. Nothing may have happened yet.
    pub fn keep_series(&mut self, interval: Cycle) {
        (self.interval, self.interval_end) = (interval, interval);
    }

    /// Sets the number of pending requests of a bank from now on.
    #[inline]
    pub fn set(&mut self, bank: usize, load: u32, now: Cycle) {
        if self.interval > 0 && now >= self.interval_end {
            self.end_intervals(now);
        }
        let pending = &mut self.banks[bank].pending;
        pending.until(now);
        let before = std::mem::replace(&mut pending.load, load);
        if load as usize >= self.with_load.len() {
            self.with_load.resize(load as usize + 1, 0);
        }
        self.with_load[before as usize] -= 1;
        self.with_load[load as usize] += 1;
        if load > self.largest.load {
            self.largest.until(now);
            self.largest.load = load;
        } else if before == self.largest.load && self.with_load[before as usize] == 0 {
            self.largest.until(now);
            while self.with_load[self.largest.load as usize] == 0 {
                self.largest.load -= 1;
            }
        }
    }

    #[cold]
    fn end_intervals(&mut self, now: Cycle) {
        while self.interval_end <= now {
            let end = self.interval_end;
            let sum = |bank: &mut Bank| {
                let sum = bank.pending.until(end);
                sum - std::mem::replace(&mut bank.before, sum)
            };
            self.series.push(self.banks.iter_mut().map(sum).collect());
            self.interval_end += self.interval;
        }
    }

    /// Begins means anew from now on; the series continues.
    pub fn begin_again(&mut self, now: Cycle) {
        let all = self.banks.iter_mut().map(|bank| &mut bank.pending).chain([&mut self.largest]);
        for pending in all {
            pending.unmeasured = pending.until(now);
        }
    }

    /// Closes the sums at the end of a run.
    pub fn finish(&mut self, now: Cycle) {
        if self.interval > 0 {
            self.end_intervals(now);
        }
        self.banks.iter_mut().for_each(|bank| {
            bank.pending.until(now);
        });
        self.largest.until(now);
    }

    /// Adds what another run has measured to what was, both closed. The series stays its own.
    pub fn join(&mut self, other: &BankLoads) {
        for (bank, other) in self.banks.iter_mut().zip(&other.banks) {
            bank.pending.sum += other.pending.measured();
        }
        self.largest.sum += other.largest.measured();
    }

    /// Mean load of each bank over `cycles` cycles.
    pub fn means(&self, cycles: Cycle) -> impl Iterator<Item = f64> {
        self.banks.iter().map(move |bank| mean(bank.pending.measured(), cycles))
    }

    /// The load of the most loaded bank, whichever that is at each instant: its mean.
    pub fn largest_mean(&self, cycles: Cycle) -> f64 {
        mean(self.largest.measured(), cycles)
    }

    /// Writes the series: a line for each interval with the cycle at which it ends and the mean load of each
    /// bank in it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_series(&self, to: &mut impl Write) -> io::Result<()> {
        let names: Vec<String> = (0..self.banks.len()).map(|b| format!("bank{b}")).collect();
        writeln!(to, "cycle,{}", names.join(","))?;
        for (i, sums) in self.series.iter().enumerate() {
            let means: Vec<String> =
                sums.iter().map(|&sum| format!("{:.4}", mean(sum, self.interval))).collect();
            writeln!(to, "{},{}", (i as u64 + 1) * self.interval, means.join(","))?;
        }
        Ok(())
    }
}

fn mean(sum: u64, cycles: Cycle) -> f64 {
    if cycles == 0 { 0.0 } else { sum as f64 / cycles as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_largest_load_is_that_of_a_comparison(
            steps in prop::collection::vec((0..3usize, 0..6u32, 0..5u64), 0..60),
        ) {
            let (mut loads, mut plain, mut now, mut sum) = (BankLoads::new(3), [0; 3], 0, 0);
            for (bank, load, cycles) in steps {
                sum += u64::from(plain.into_iter().max().unwrap_or(0)) * cycles;
                now += cycles;
                loads.set(bank, load, now);
                plain[bank] = load;
            }
            loads.finish(now);
            prop_assert_eq!(loads.largest.sum, sum);
        }
    }

    /// Bank 0 has two requests for 10 cycles and one for 20; bank 1 one for 10, in the middle.
    fn followed(interval: Cycle) -> BankLoads {
        let mut loads = BankLoads::new(2);
        loads.keep_series(interval);
        for (bank, load, now) in
            [(0, 1, 0), (0, 2, 0), (0, 1, 10), (1, 1, 10), (1, 0, 20), (0, 0, 30)]
        {
            loads.set(bank, load, now);
        }
        loads.finish(40);
        loads
    }

    #[test]
    fn loads_are_summed_over_cycles() {
        let loads = followed(0);
        assert_eq!(loads.means(40).collect::<Vec<f64>>(), [1.0, 0.25]);
        assert_eq!(loads.largest_mean(40), 1.0, "2 for 10 cycles, 1 for 20, 0 for 10");
    }

    #[test]
    fn joined_loads_are_means_over_the_time_of_both() {
        let mut loads = followed(0);
        let mut other = BankLoads::new(2);
        other.set(1, 3, 0);
        other.begin_again(60);
        other.finish(80);
        loads.join(&other);
        assert_eq!(loads.means(60).collect::<Vec<f64>>(), [40.0 / 60.0, (10.0 + 60.0) / 60.0]);
        assert_eq!(loads.largest_mean(60), (40.0 + 60.0) / 60.0);
    }

    #[test]
    fn the_series_has_an_interval_in_a_line() {
        let mut text = Vec::new();
        followed(20).write_series(&mut text).expect("memory takes everything");
        let text = String::from_utf8(text).expect("it is text");
        assert_eq!(text, "cycle,bank0,bank1\n20,1.5000,0.5000\n40,0.5000,0.0000\n");
    }
}
