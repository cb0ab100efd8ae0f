//! Volatile memory: where its pages lie in the trace.

use graven_base::memory::Addr;
use rustc_hash::FxHashMap;

use crate::program::VOLATILE_START;

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

/// Pages by the program's addresses, in the order in which they were accessed first.
#[derive(Debug, Default)]
pub(super) struct Frames {
    frames: FxHashMap<u64, u64>,
    /// The page accessed last, and where it is.
    last: Option<(u64, u64)>,
}

impl Frames {
    /// Where an address of the program's is in the trace.
    pub fn place(&mut self, address: u64) -> Addr {
        let page = address / PAGE_BYTES;
        let frame = match self.last {
            Some((last, frame)) if last == page => frame,
            _ => {
                let next = self.frames.len() as u64;
                *self.frames.entry(page).or_insert(next)
            }
        };
        self.last = Some((page, frame));
        VOLATILE_START.plus(frame * PAGE_BYTES + address % PAGE_BYTES)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.frames.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_lie_one_behind_the_other_as_they_are_accessed() {
        let mut frames = Frames::default();
        let places = [0x7fff_f008, 0x5000_0010, 0x7fff_f010, 0x5000_1000];
        let offsets = places.map(|address| frames.place(address).0 - VOLATILE_START.0);
        assert_eq!(offsets, [8, 4096 + 16, 16, 2 * 4096]);
        assert_eq!(frames.count(), 3);
    }
}
