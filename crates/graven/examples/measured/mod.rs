//! What measuring a simulation from within its process takes.

use std::fs;
use std::thread;
use std::time::Instant;

/// Seconds that this thread has computed: of the host's processor where the system says so, else of the clock.
pub struct Clock {
    begun: Instant,
    computed: Option<u64>,
}

impl Clock {
    /// From now on.
    pub fn start() -> Clock {
        Clock { begun: Instant::now(), computed: computed_ns() }
    }

    /// Up to now.
    pub fn seconds(&self) -> f64 {
        match (self.computed, computed_ns()) {
            (Some(from), Some(to)) => (to - from) as f64 / 1e9,
            _ => self.begun.elapsed().as_secs_f64(),
        }
    }
}

/// Nanoseconds that the system has given this thread. Linux keeps them, and brings them up to date when a thread yields.
fn computed_ns() -> Option<u64> {
    thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
