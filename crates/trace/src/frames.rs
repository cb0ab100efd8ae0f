//! Pages of a program's addresses, put one behind the other in the order in which they are accessed first.

use rustc_hash::FxHashMap;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// The places of the pages of some addresses.
#[derive(Debug, Default)]
pub struct Frames {
    frames: FxHashMap<(u32, u64), u64>,
    first: u64,
    /// The page accessed last, and where it is.
    last: Option<((u32, u64), u64)>,
}

impl Frames {
    /// The first page is put to the place of this number.
    pub fn from(first: u64) -> Frames {
        Frames { first, ..Frames::default() }
    }

    /// The place of a byte, as it is accessed.
    pub fn place(&mut self, address: u64) -> u64 {
        self.place_in(0, address)
    }

    /// The place of a byte of one of several address spaces.
    pub fn place_in(&mut self, space: u32, address: u64) -> u64 {
        let page = (space, address / PAGE_BYTES);
        let frame = match self.last {
            Some((last, frame)) if last == page => frame,
            _ => {
                let next = self.end();
                *self.frames.entry(page).or_insert(next)
            }
        };
        self.last = Some((page, frame));
        frame * PAGE_BYTES + address % PAGE_BYTES
    }

    /// The number of the place behind all of them.
    pub fn end(&self) -> u64 {
        self.first + self.frames.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_lie_one_behind_the_other_as_they_are_accessed() {
        for first in [0, 7] {
            let mut frames = Frames::from(first);
            let places = [0x7fff_f008, 0x5000_0010, 0x7fff_f010, 0x5000_1000];
            let offsets = places.map(|address| frames.place(address) - first * PAGE_BYTES);
            assert_eq!(offsets, [8, 4096 + 16, 16, 2 * 4096]);
            assert_eq!(frames.end(), first + 3);
            let offset = frames.place_in(1, 0x5000_0010) - first * PAGE_BYTES;
            assert_eq!(offset, 3 * 4096 + 16, "another space has pages of its own");
        }
    }
}
