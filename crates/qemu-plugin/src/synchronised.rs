//! Places by which threads synchronise: those that an atomic instruction has accessed, and those that the kernel clears
//! when a thread ends. Ordinary loads and stores of them are atomic, too: on x86-64 they acquire and release.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graven_capture::{SYNCHRONISED_BYTES, synchronised};

/// Bits of the filter.
const BITS: u64 = 1 << 19;

/// Which places.
pub struct Synchronised {
    /// What is not here is none; by the low bits of places.
    filter: Box<[AtomicU64]>,
    places: Mutex<HashSet<u64>>,
}

impl Default for Synchronised {
    fn default() -> Synchronised {
        let filter = (0..BITS / 64).map(|_| AtomicU64::new(0)).collect();
        Synchronised { filter, places: Mutex::default() }
    }
}

impl Synchronised {
    /// So many bytes at a place are.
    pub fn add(&self, place: u64, bytes: u64) {
        for unit in synchronised(place, bytes) {
            let (word, bit) = self.bit(unit);
            if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 || !self.has_unit(unit) {
                self.places.lock().expect("nobody panics with it").insert(unit);
            }
        }
    }

    /// Whether the first or the last of so many bytes is.
    #[inline]
    pub fn has(&self, place: u64, bytes: u64) -> bool {
        let (first, last) = (place / SYNCHRONISED_BYTES, (place + bytes - 1) / SYNCHRONISED_BYTES);
        let may_be = |unit| {
            let (word, bit) = self.bit(unit);
            word.load(Ordering::Relaxed) & bit != 0
        };
        (may_be(first) && self.has_unit(first)) || (may_be(last) && self.has_unit(last))
    }

    #[inline]
    fn bit(&self, unit: u64) -> (&AtomicU64, u64) {
        (&self.filter[(unit % BITS / 64) as usize], 1 << (unit % 64))
    }

    #[cold]
    fn has_unit(&self, unit: u64) -> bool {
        self.places.lock().expect("nobody panics with it").contains(&unit)
    }
}
