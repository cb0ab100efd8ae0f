//! Persistent memory that is no file's: what `malloc` gives, and ranges that were named.
//!
//! All of it is one region. Where in that region a page lies has nothing to do with its address: as a machine's frames are, places
//! are given where there is room first, come back when the page is unmapped, and are kept when it moves (`mremap`).
//!
//! The heap is what a program maps that is neither a file's, nor shared, nor a stack: memory behind the break, and anonymous
//! mappings. What a program maps without the right to access it (`PROT_NONE`) becomes persistent memory when it gets
//! that right (`mprotect`). Volatile stay the block of the first thread's own variables (its address is in `fs`, or `tpidr_el0`), and the stacks of
//! signals.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::ranges::Ranges;

const PAGE_BYTES: u64 = 4096;

/// The first address of a page that is not below this one.
pub fn page_from(address: u64) -> u64 {
    address.next_multiple_of(PAGE_BYTES)
}

#[derive(Default)]
pub struct Anonymous {
    /// Memory of the program's that becomes persistent as soon as it may access it.
    pub owned: Ranges,
    /// Ranges that were named: persistent whenever something is mapped there.
    pub named: Ranges,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    places: Places,
    /// The beginning of the memory before the program's break, and the break.
    start: u64,
    end: u64,
}

impl Anonymous {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// The break is here now; returns where the memory before it begins, and where the break was: none if this is the first
    /// that is heard of it.
    pub fn move_break(&self, to: u64) -> Option<(u64, u64)> {
        let mut state = self.state();
        if state.start == 0 {
            (state.start, state.end) = (to, to);
            return None;
        }
        Some((state.start, std::mem::replace(&mut state.end, to)))
    }

    /// Memory before the break, if the address is in it.
    pub fn before_break(&self, address: u64) -> Option<(u64, u64)> {
        let state = self.state();
        (state.start..state.end).contains(&address).then_some((state.start, state.end))
    }

    /// Gives memory a place in the region: the offset of its first byte. Addresses and offsets agree within pages.
    pub fn place(&self, start: u64, end: u64) -> u64 {
        let first = start - start % PAGE_BYTES;
        self.state().places.take(page_from(end) - first) + start % PAGE_BYTES
    }

    /// The whole pages of these places are free again.
    pub fn give_back(&self, offset: u64, bytes: u64) {
        let (from, to) = (page_from(offset), (offset + bytes) / PAGE_BYTES * PAGE_BYTES);
        if from < to {
            self.state().places.give_back(from, to - from);
        }
    }
}

/// Places of a region.
#[derive(Default)]
struct Places {
    /// By their first offset, how many bytes.
    free: BTreeMap<u64, u64>,
    /// Nothing was taken from here on.
    end: u64,
}

impl Places {
    fn take(&mut self, bytes: u64) -> u64 {
        let found =
            self.free.iter().find(|&(_, &free)| free >= bytes).map(|(&at, &free)| (at, free));
        let Some((at, free)) = found else {
            let at = self.end;
            self.end += bytes;
            return at;
        };
        self.free.remove(&at);
        if free > bytes {
            self.free.insert(at + bytes, free - bytes);
        }
        at
    }

    fn give_back(&mut self, at: u64, bytes: u64) {
        let (mut at, mut end) = (at, at + bytes);
        if let Some((&before, &length)) = self.free.range(..at).next_back()
            && before + length == at
        {
            self.free.remove(&before);
            at = before;
        }
        if let Some(behind) = self.free.remove(&end) {
            end += behind;
        }
        self.free.insert(at, end - at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_where_there_is_room_first() {
        let mut places = Places::default();
        let all: Vec<u64> = (0..4).map(|_| places.take(2)).collect();
        assert_eq!(all, [0, 2, 4, 6]);
        places.give_back(0, 2);
        places.give_back(4, 2);
        assert_eq!(places.take(3), 8, "nowhere is room for three");
        places.give_back(2, 2);
        assert_eq!(places.free, BTreeMap::from([(0, 6)]));
        assert_eq!((places.take(3), places.take(2), places.take(2)), (0, 3, 11));
    }

    #[test]
    fn offsets_and_addresses_agree_within_pages() {
        let anonymous = Anonymous::default();
        assert_eq!(anonymous.place(0x10_0ff8, 0x10_1008), 0xff8);
        assert_eq!(anonymous.place(0x20_0010, 0x20_0020), 0x2010);
        // Half a page is kept.
        anonymous.give_back(0xff8, 0x10);
        assert_eq!(anonymous.place(0x30_0000, 0x30_1000), 0x3000);
    }

    #[test]
    fn the_break_moves_from_where_it_was_first() {
        let anonymous = Anonymous::default();
        assert_eq!(anonymous.move_break(0x5000), None);
        assert_eq!(anonymous.move_break(0x7100), Some((0x5000, 0x5000)));
        assert_eq!(anonymous.move_break(0x6000), Some((0x5000, 0x7100)));
        assert_eq!(anonymous.before_break(0x5fff), Some((0x5000, 0x6000)));
        assert_eq!(anonymous.before_break(0x6000), None);
    }
}
