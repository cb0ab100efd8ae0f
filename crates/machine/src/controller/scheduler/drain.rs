//! Draining of a write queue: from the high watermark down to the low one.

/// State of draining of the write queue.
#[derive(Debug)]
pub struct Drain {
    /// Occupancy at which draining begins.
    high: usize,
    /// Occupancy at which it ends, below the high one.
    low: usize,
    active: bool,
    begun: u64,
}

impl Drain {
    /// With these watermarks.
    pub fn new(high: usize, low: usize) -> Drain {
        Drain { high, low, active: false, begun: 0 }
    }

    /// Updates the state for `queued` queued writes.
    pub fn update(&mut self, queued: usize) {
        if queued >= self.high {
            self.begun += u64::from(!self.active);
            self.active = true;
        } else if queued <= self.low {
            self.active = false;
        }
    }

    /// Returns true if writes are drained now.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Number of times that draining began.
    pub fn begun(&self) -> u64 {
        self.begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draining_goes_from_the_high_watermark_to_the_low_one() {
        let mut drain = Drain::new(4, 2);
        let mut seen = Vec::new();
        for queued in [0, 3, 4, 3, 2, 3, 4, 5, 1, 3] {
            drain.update(queued);
            seen.push(drain.is_active());
        }
        assert_eq!(seen, [false, false, true, true, false, false, true, true, false, false]);
        assert_eq!(drain.begun(), 2);
    }
}
