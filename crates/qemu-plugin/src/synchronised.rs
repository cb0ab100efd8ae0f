//! Places by which threads synchronise: those that an atomic instruction has accessed, and those that the kernel clears
//! when a thread ends. Ordinary loads and stores of them are atomic, too: on x86-64 they acquire and release; on AArch64 such
//! places are known by instructions that do that, too.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graven_capture::{SYNCHRONISED_BYTES, synchronised};

/// Bits of the filter, of which each is for a word.
const BITS: u64 = 1 << 19;

/// The places by which threads synchronise.
pub struct Synchronised {
    /// A place whose bit is not here is none; by the low bits of places.
    filter: [AtomicU64; BITS as usize / 64],
    units: Mutex<HashSet<u64>>,
}

impl Default for Synchronised {
    fn default() -> Synchronised {
        Synchronised { filter: [const { AtomicU64::new(0) }; _], units: Mutex::default() }
    }
}

impl Synchronised {
    /// Adds `bytes` at a place.
    pub fn add(&self, place: u64, bytes: u64) {
        for unit in synchronised(place, bytes) {
            let (word, bit) = self.bit(unit * SYNCHRONISED_BYTES);
            if word.load(Ordering::Relaxed) & bit == 0 || !self.has_unit(unit) {
                word.fetch_or(bit, Ordering::Relaxed);
                self.units.lock().expect("nobody panics with it").insert(unit);
            }
        }
    }

    /// Tells whether some of the first or the last of `bytes` are among them.
    #[inline]
    pub fn has(&self, place: u64, bytes: u64) -> bool {
        let last = place + bytes - 1;
        let may_be = |place| {
            let (word, bit) = self.bit(place);
            word.load(Ordering::Relaxed) & bit != 0
        };
        (may_be(place) || (place ^ last) >= 8 && may_be(last)) && self.has_one(place, last)
    }

    #[inline]
    fn bit(&self, place: u64) -> (&AtomicU64, u64) {
        let bit = place / 8 % BITS;
        (&self.filter[bit as usize / 64], 1 << (bit % 64))
    }

    #[cold]
    fn has_one(&self, first: u64, last: u64) -> bool {
        self.has_unit(first / SYNCHRONISED_BYTES) || self.has_unit(last / SYNCHRONISED_BYTES)
    }

    fn has_unit(&self, unit: u64) -> bool {
        self.units.lock().expect("nobody panics with it").contains(&unit)
    }
}
