//! Sets of addresses.

use std::sync::{Mutex, MutexGuard};

/// Addresses, as ranges that neither touch nor overlap, from the lowest on.
#[derive(Debug, Default)]
pub struct Ranges(Mutex<Vec<(u64, u64)>>);

impl Ranges {
    fn all(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.0.lock().expect("nobody panics with it")
    }

    /// From `start` to before `end`.
    pub fn add(&self, start: u64, end: u64) {
        let mut all = self.all();
        let touches = |&&mut (from, to): &&mut (u64, u64)| from <= end && start <= to;
        let touching: Vec<_> = all.extract_if(.., |r| touches(&r)).collect();
        let from = touching.iter().map(|r| r.0).min().unwrap_or(start).min(start);
        let to = touching.iter().map(|r| r.1).max().unwrap_or(end).max(end);
        let at = all.partition_point(|r| r.0 < from);
        all.insert(at, (from, to));
    }

    /// No longer.
    pub fn remove(&self, start: u64, end: u64) {
        let mut all = self.all();
        let parts = |&(from, to): &(u64, u64)| [(from, to.min(start)), (from.max(end), to)];
        *all = all.iter().flat_map(parts).filter(|(from, to)| from < to).collect();
    }

    /// The parts of these addresses that are in it.
    pub fn within(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let part = |&(from, to): &(u64, u64)| (from.max(start), to.min(end));
        self.all().iter().map(part).filter(|(from, to)| from < to).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_a_set_of_addresses_is() {
        let (ranges, mut set) = (Ranges::default(), [false; 32]);
        for step in 0..4000u64 {
            let random = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let (start, length) = (random % 28, 1 + random / 32 % 4);
            let is_added = random & 1 << 20 != 0;
            match is_added {
                true => ranges.add(start, start + length),
                false => ranges.remove(start, start + length),
            }
            set[start as usize..(start + length) as usize].fill(is_added);
            let found = ranges.within(0, 32);
            let has = |at| found.iter().any(|&(from, to)| (from..to).contains(&at));
            assert!((0..32).all(|at| has(at) == set[at as usize]), "step {step}");
            assert!(found.is_sorted_by(|a, b| a.1 < b.0), "step {step}: {found:?}");
        }
    }
}
