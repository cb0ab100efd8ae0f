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
    /// Per set, the way that was used last: most accesses are to it again.
    newest: Vec<u8>,
    /// When the line in a slot was used last, by `clock`; it need not say so of the newest of a set.
    last_use: Vec<u32>,
    /// Uses of lines that were not the newest of their sets.
    clock: u32,
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
            newest: vec![0; sets as usize],
            last_use: vec![0; slots],
            clock: 0,
        }
    }

    #[inline]
    fn tag(&self, line: LineAddr) -> u32 {
        (line.0 >> self.set_bits) as u32 + 1
    }

    #[inline]
    fn set(&self, line: LineAddr) -> usize {
        (line.0 & self.set_mask) as usize
    }

    /// Slot of a line, without touching its recency.
    #[inline]
    pub fn find(&self, line: LineAddr) -> Option<usize> {
        let (set, tag) = (self.set(line), self.tag(line));
        let base = set * self.ways;
        let newest = base + self.newest[set] as usize;
        if self.tags[newest] == tag {
            return Some(newest);
        }
        way_of(&self.tags[base..base + self.ways], tag).map(|way| base + way)
    }

    /// Slot of a line, which becomes the most recently used of its set.
    #[inline]
    pub fn touch(&mut self, line: LineAddr) -> Option<usize> {
        let (set, tag) = (self.set(line), self.tag(line));
        let base = set * self.ways;
        let newest = base + self.newest[set] as usize;
        if self.tags[newest] == tag {
            return Some(newest);
        }
        let way = way_of(&self.tags[base..base + self.ways], tag)?;
        self.used(set, way);
        Some(base + way)
    }

    /// Whether a line is still in a slot in which it was found.
    #[inline]
    pub fn is_at(&self, line: LineAddr, slot: usize) -> bool {
        self.tags[slot] == self.tag(line)
    }

    /// The line in a slot becomes the most recently used of its set.
    #[inline]
    pub fn touch_slot(&mut self, line: LineAddr, slot: usize) {
        let set = self.set(line);
        let way = slot - set * self.ways;
        if usize::from(self.newest[set]) != way {
            self.used(set, way);
        }
    }

    /// A way is the most recently used of its set from now on.
    #[inline]
    fn used(&mut self, set: usize, way: usize) {
        if self.clock == u32::MAX {
            self.begin_anew();
        }
        self.clock += 1;
        self.newest[set] = way as u8;
        self.last_use[set * self.ways + way] = self.clock;
    }

    /// The clock has come to its end: it begins anew, and times of use keep their order within each set.
    #[cold]
    fn begin_anew(&mut self) {
        for last_use in self.last_use.chunks_mut(self.ways) {
            let mut order: Vec<usize> = (0..last_use.len()).collect();
            order.sort_by_key(|&way| last_use[way]);
            (0..).zip(order).for_each(|(rank, way)| last_use[way] = rank);
        }
        self.clock = self.ways as u32;
    }

    /// Puts in a line that is not there, as most recently used, and returns its slot and what it
    /// displaced.
    pub fn insert(&mut self, line: LineAddr, state: u8) -> (usize, Option<Victim>) {
        let (set, tag) = (self.set(line), self.tag(line));
        let base = set * self.ways;
        let tags = &self.tags[base..base + self.ways];
        assert!(way_of(tags, tag).is_none(), "{line} is already cached");
        let way = way_of(tags, 0).unwrap_or_else(|| self.oldest(base));
        let slot = base + way;
        let victim = (self.tags[slot] != 0).then(|| Victim {
            line: self.line_at(slot),
            state: self.state[slot],
            slot,
        });
        self.tags[slot] = tag;
        self.state[slot] = state;
        self.used(set, way);
        (slot, victim)
    }

    /// The way that was used last the longest ago, of the set that begins at a slot.
    #[inline]
    fn oldest(&self, base: usize) -> usize {
        let last_use = &self.last_use[base..base + self.ways];
        (0..self.ways).min_by_key(|&way| last_use[way]).expect("a set has a way")
    }

    /// The slot whose line would leave if this one were put in now; `None` if there is room.
    #[inline]
    pub fn next_victim(&self, line: LineAddr) -> Option<usize> {
        let base = self.set(line) * self.ways;
        let is_full = way_of(&self.tags[base..base + self.ways], 0).is_none();
        is_full.then(|| base + self.oldest(base))
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

/// Tags that are compared at once.
const STEP: usize = 4;

/// The first way with a tag.
#[inline]
fn way_of(tags: &[u32], tag: u32) -> Option<usize> {
    let (steps, rest) = tags.as_chunks::<STEP>();
    for (step, tags) in steps.iter().enumerate() {
        let equal = equal(tags, tag);
        if equal != 0 {
            return Some(step * STEP + equal.trailing_zeros() as usize);
        }
    }
    rest.iter().position(|&t| t == tag).map(|way| steps.len() * STEP + way)
}

/// Which of some tags are this one: a bit for each.
#[cfg(target_arch = "x86_64")]
#[inline]
fn equal(tags: &[u32; STEP], tag: u32) -> u32 {
    use std::arch::x86_64::{
        _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_movemask_ps, _mm_set_epi32, _mm_set1_epi32,
    };
    let [a, b, c, d] = tags.map(u32::cast_signed);
    // SAFETY: these are instructions of SSE2, which every processor of x86-64 has; they touch no memory.
    #[allow(unsafe_code)]
    unsafe {
        let equal = _mm_cmpeq_epi32(_mm_set_epi32(d, c, b, a), _mm_set1_epi32(tag.cast_signed()));
        _mm_movemask_ps(_mm_castsi128_ps(equal)).cast_unsigned()
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn equal(tags: &[u32; STEP], tag: u32) -> u32 {
    (0..STEP).fold(0, |set, way| set | u32::from(tags[way] == tag) << way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A cache of two sets, as lists of lines with their states, the most recently used one first.
    #[derive(Default)]
    struct Plain {
        sets: [Vec<(u64, u8)>; 2],
    }

    proptest! {
        #[test]
        fn it_does_what_lists_by_recency_do(
            ways in prop_oneof![1..=5u32, Just(8), Just(12), Just(16), Just(19)],
            // Close to the end of the clock, too.
            clock in prop_oneof![Just(0), (u32::MAX - 60)..=u32::MAX],
            steps in prop::collection::vec((0..4u8, 0..50u64), 1..200),
        ) {
            let mut cache = Cache::new(64 * 2 * u64::from(ways), ways);
            cache.clock = clock;
            let mut plain = Plain::default();
            for (what, line) in steps {
                let set = &mut plain.sets[line as usize % 2];
                let at = set.iter().position(|&(of, _)| of == line);
                match (what, at) {
                    (0, Some(at)) => {
                        let (_, state) = set.remove(at);
                        prop_assert_eq!(cache.remove(LineAddr(line)), Some(state));
                    }
                    (0, None) => prop_assert_eq!(cache.remove(LineAddr(line)), None),
                    (1, _) => {
                        let found = cache.find(LineAddr(line)).map(|slot| cache.line_at(slot).0);
                        prop_assert_eq!(found, at.map(|at| set[at].0));
                    }
                    (_, Some(at)) => {
                        let slot = match what {
                            2 => cache.touch(LineAddr(line)),
                            _ => cache.find(LineAddr(line)),
                        };
                        let slot = slot.expect("it is there");
                        cache.touch_slot(LineAddr(line), slot);
                        let entry = set.remove(at);
                        prop_assert_eq!((cache.line_at(slot).0, cache.state(slot)), entry);
                        set.insert(0, entry);
                    }
                    (_, None) => {
                        prop_assert_eq!(cache.touch(LineAddr(line)), None);
                        let out = if set.len() == ways as usize { set.pop() } else { None };
                        let next = cache.next_victim(LineAddr(line)).map(|slot| cache.line_at(slot).0);
                        prop_assert_eq!(next, out.map(|(line, _)| line));
                        let (slot, victim) = cache.insert(LineAddr(line), what);
                        prop_assert_eq!(cache.line_at(slot), LineAddr(line));
                        prop_assert_eq!(victim.map(|v| (v.line.0, v.state)), out);
                        set.insert(0, (line, what));
                    }
                }
            }
        }
    }

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
