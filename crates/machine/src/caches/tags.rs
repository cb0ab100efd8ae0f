//! One set-associative cache: tags and state, no data.
//!
//! By coherence a dirty line's content is the architectural content at this instant, so it is copied
//! out of architectural memory at the moment of write-back. Replacement is least recently used.

use graven_base::memory::{LINE_BYTES, LineAddr};

/// Line state: the content differs from what lies below.
pub const DIRTY: u8 = 1;
/// Line state: no other core has a copy, so a store may proceed (MESI's E, or M with [`DIRTY`]).
pub const WRITABLE: u8 = 2;
/// Line state that belongs to the design (FWB's force-write-back bit, for one).
pub const DESIGN_BITS: u8 = 0xf0;

/// A line that had to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Which line.
    pub line: LineAddr,
    /// Its state bits.
    pub state: u8,
    /// The slot that it left.
    pub slot: usize,
}

/// A cache's tag array.
#[derive(Clone, Debug)]
pub struct Cache {
    ways: usize,
    set_mask: u64,
    set_bits: u32,
    /// Tag + 1, or 0 for an empty way.
    tags: Vec<u32>,
    state: Vec<u8>,
    /// Per set, its ways from most to least recently used.
    recency: Vec<u8>,
}

impl Cache {
    /// An empty cache of `bytes` in lines of 64 B.
    ///
    /// # Panics
    /// If the number of sets is not a power of two (the configuration refuses that earlier).
    pub fn new(bytes: u64, ways: u32) -> Self {
        let sets = bytes / LINE_BYTES / u64::from(ways);
        assert!(sets.is_power_of_two(), "the configuration admits only powers of two");
        let slots = (sets * u64::from(ways)) as usize;
        Self {
            ways: ways as usize,
            set_mask: sets - 1,
            set_bits: sets.trailing_zeros(),
            tags: vec![0; slots],
            state: vec![0; slots],
            recency: (0..slots).map(|slot| (slot % ways as usize) as u8).collect(),
        }
    }

    #[inline]
    fn tag(&self, line: LineAddr) -> u32 {
        (line.0 >> self.set_bits) as u32 + 1
    }

    #[inline]
    fn base(&self, line: LineAddr) -> usize {
        (line.0 & self.set_mask) as usize * self.ways
    }

    /// Slot of a line, without touching its recency.
    #[inline]
    pub fn find(&self, line: LineAddr) -> Option<usize> {
        let (base, tag) = (self.base(line), self.tag(line));
        let first = base + self.recency[base] as usize;
        if self.tags[first] == tag {
            return Some(first);
        }
        self.tags[base..base + self.ways].iter().position(|&t| t == tag).map(|way| base + way)
    }

    /// Slot of a line, which becomes the most recently used of its set.
    #[inline]
    pub fn touch(&mut self, line: LineAddr) -> Option<usize> {
        let (base, tag) = (self.base(line), self.tag(line));
        let first = base + self.recency[base] as usize;
        if self.tags[first] == tag {
            return Some(first);
        }
        let way = self.tags[base..base + self.ways].iter().position(|&t| t == tag)?;
        self.promote(base, way as u8);
        Some(base + way)
    }

    fn promote(&mut self, base: usize, way: u8) {
        let row = &mut self.recency[base..base + self.ways];
        let at = row.iter().position(|&w| w == way).expect("every way is in its set's recency row");
        row.copy_within(0..at, 1);
        row[0] = way;
    }

    /// Puts in a line that is not there, as most recently used, and returns its slot and what it
    /// displaced.
    pub fn insert(&mut self, line: LineAddr, state: u8) -> (usize, Option<Victim>) {
        assert!(self.find(line).is_none(), "{line} is already cached");
        let base = self.base(line);
        let empty = self.tags[base..base + self.ways].iter().position(|&t| t == 0);
        let way = empty.unwrap_or(self.recency[base + self.ways - 1] as usize);
        let slot = base + way;
        let victim = (self.tags[slot] != 0).then(|| Victim {
            line: self.line_at(slot),
            state: self.state[slot],
            slot,
        });
        self.tags[slot] = self.tag(line);
        self.state[slot] = state;
        self.promote(base, way as u8);
        (slot, victim)
    }

    /// Takes a line out and returns its state bits, if it was there.
    #[inline]
    pub fn remove(&mut self, line: LineAddr) -> Option<u8> {
        let slot = self.find(line)?;
        self.tags[slot] = 0;
        Some(std::mem::take(&mut self.state[slot]))
    }

    /// State bits of an occupied slot.
    #[inline]
    pub fn state(&self, slot: usize) -> u8 {
        self.state[slot]
    }

    /// The same, to change them.
    #[inline]
    pub fn state_mut(&mut self, slot: usize) -> &mut u8 {
        &mut self.state[slot]
    }

    /// The line in an occupied slot.
    pub fn line_at(&self, slot: usize) -> LineAddr {
        let set = (slot / self.ways) as u64;
        LineAddr((u64::from(self.tags[slot] - 1) << self.set_bits) | set)
    }

    /// Number of slots, occupied or not.
    pub fn slots(&self) -> usize {
        self.tags.len()
    }

    /// Slots of one set; slots of a set are neighbours.
    pub fn ways(&self) -> usize {
        self.ways
    }

    /// The dirty lines among a range of slots, in order: `(slot, line)`.
    pub fn dirty_in(
        &self,
        slots: std::ops::Range<usize>,
    ) -> impl Iterator<Item = (usize, LineAddr)> + '_ {
        slots
            .filter(|&slot| self.tags[slot] != 0 && self.state[slot] & DIRTY != 0)
            .map(|slot| (slot, self.line_at(slot)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_makes_room() {
        let mut cache = Cache::new(4 * 64 * 2, 4);
        let lines: Vec<LineAddr> = (0..4).map(|i| LineAddr(i * 2)).collect();
        for &line in &lines {
            assert_eq!(cache.insert(line, 0).1, None);
        }
        assert!(cache.touch(lines[0]).is_some());
        let slot = cache.find(lines[1]).expect("just inserted");
        *cache.state_mut(slot) |= DIRTY;
        assert_eq!(cache.dirty_in(0..cache.slots()).collect::<Vec<_>>(), [(slot, lines[1])]);
        let (_, victim) = cache.insert(LineAddr(100), 0);
        assert_eq!(victim, Some(Victim { line: lines[1], state: DIRTY, slot }));
        assert_eq!(cache.remove(LineAddr(100)), Some(0));
        assert_eq!(cache.find(LineAddr(100)), None);
    }

    #[test]
    fn a_set_of_one_way_and_a_single_set_both_work() {
        let mut direct = Cache::new(64 * 4, 1);
        direct.insert(LineAddr(1), 0);
        assert_eq!(direct.insert(LineAddr(5), 0).1.map(|v| v.line), Some(LineAddr(1)));
        let mut full = Cache::new(64 * 12, 12);
        for i in 0..12 {
            full.insert(LineAddr(i * 7), 0);
        }
        assert_eq!(full.insert(LineAddr(1000), 0).1.map(|v| v.line), Some(LineAddr(0)));
    }
}
