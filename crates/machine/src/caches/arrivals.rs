//! Lines on their way from an outer cache to an L1.
//!
//! The caches change state when a line is asked for. An out-of-order core does not wait for it: until the line has come, its further
//! accesses to it join the first one, as in the miss registers beside an L1, also where another line has taken the place in the
//! tags. They ask no outer level, and have their data when the line comes.

use graven_base::memory::LineAddr;
use graven_base::time::Cycle;

/// The lines on their way to the L1 of a core.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// The lines, and when each comes.
    lines: Vec<(LineAddr, Cycle)>,
    /// When the last one comes.
    until: Cycle,
}

impl Arrivals {
    /// When a line comes that is on its way now.
    #[inline]
    pub fn of(&self, line: LineAddr, now: Cycle) -> Option<Cycle> {
        if now >= self.until {
            return None;
        }
        self.lines.iter().find(|&&(of, at)| of == line && at > now).map(|&(_, at)| at)
    }

    /// A line was asked for, and comes at a time.
    pub fn put(&mut self, line: LineAddr, at: Cycle, now: Cycle) {
        self.lines.retain(|&(of, at)| at > now && of != line);
        self.lines.push((line, at));
        self.until = self.until.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_on_its_way_until_it_comes() {
        let mut arrivals = Arrivals::default();
        let [a, b] = [1, 2].map(LineAddr);
        arrivals.put(a, 30, 10);
        arrivals.put(b, 20, 11);
        assert_eq!((arrivals.of(a, 12), arrivals.of(b, 12)), (Some(30), Some(20)));
        assert_eq!(
            (arrivals.of(a, 29), arrivals.of(b, 20), arrivals.of(a, 30)),
            (Some(30), None, None)
        );
        arrivals.put(a, 60, 40);
        assert_eq!((arrivals.of(a, 50), arrivals.lines.len()), (Some(60), 1));
    }
}
