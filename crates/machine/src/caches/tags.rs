//! One set-associative cache: tags and state, no data.
//!
//! By coherence a dirty line's content is the architectural content at this instant, so it is copied
//! out of architectural memory at the moment of write-back. Replacement is least recently used.
//!
//! An access to a set finds little of it in the host's caches. So what it needs lies in as few lines of the host as can be: the tags
//! in one of them, all else in another.

use std::ops::Range;

use graven_base::host;
use graven_base::memory::{LINE_BYTES, LineAddr};

/// Line state: the content differs from what lies below.
pub const DIRTY: u8 = 1;
/// Line state: no other core has a copy, so a store may proceed (MESI's E, or M with [`DIRTY`]).
pub const WRITABLE: u8 = 2;
/// Line state that belongs to the design (FWB's force-write-back bit, for one).
pub const DESIGN_BITS: u8 = 0xf0;

/// A place for a line: those of a set are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(usize);

/// A line that had to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The line.
    pub line: LineAddr,
    /// Knowledge of the cache about the line.
    pub was: Marks,
    /// Way of the line in the next cache.
    pub below: u8,
}

/// Record of a cache about a line beside its address: state bits, and a tag that belongs to the design.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// State bits.
    pub state: u8,
    /// The design's tag.
    pub tag: u8,
}

impl Marks {
    /// True if the cache held changes.
    #[inline]
    pub fn is_dirty(self) -> bool {
        self.state & DIRTY != 0
    }

    /// The marks of a line as a cache hands it inwards: the right to write to it, and the tag.
    #[inline]
    #[must_use]
    pub fn inwards(self) -> Marks {
        Marks { state: self.state & WRITABLE, ..self }
    }

    /// Marks of two levels together: the tag is that of the innermost changes.
    #[inline]
    #[must_use]
    pub fn over(self, outer: Marks) -> Marks {
        let tag = if self.is_dirty() { self.tag } else { outer.tag };
        Marks { state: self.state | outer.state, tag }
    }
}

/// State of the line in a slot, beside its tag.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(4))]
struct Known {
    /// When it was used last, by the clock of the set; it need not say so of the newest.
    last_use: u8,
    marks: Marks,
    /// Way of the line in the next cache, which includes this one.
    below: u8,
}

/// The order of uses in a set.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    /// The way that was used last: most accesses are to it again.
    newest: u8,
    /// Uses of lines that were not the newest.
    clock: u8,
}

/// A cache's tag array.
#[derive(Clone, Debug)]
pub struct Cache {
    ways: usize,
    set_mask: u64,
    set_bits: u32,
    /// The first slot: a set begins where one of the host's lines does, if it is as large. (Large arrays lie alike in their pages,
    /// so that those of both arrays do.)
    first: usize,
    /// Per slot: tag + 1, or 0 for an empty way.
    tags: Vec<u32>,
    /// Per slot.
    known: Vec<Known>,
    /// Per set.
    uses: Vec<Uses>,
}

impl Cache {
    /// An empty cache of `bytes` in lines of 64 B.
    ///
    /// # Panics
    /// If the number of sets is not a power of two, or there are more ways than the clock of a set tells apart (the
    /// configuration refuses both earlier).
    pub fn new(bytes: u64, ways: u32) -> Self {
        let sets = bytes / LINE_BYTES / u64::from(ways);
        assert!(sets.is_power_of_two(), "the configuration admits only powers of two");
        assert!(ways < u32::from(u8::MAX), "the configuration admits fewer ways");
        let places = (sets * u64::from(ways)) as usize + host::LINE_BYTES / size_of::<u32>();
        let tags = vec![0; places];
        Self {
            ways: ways as usize,
            set_mask: sets - 1,
            set_bits: sets.trailing_zeros(),
            first: tags.as_ptr().align_offset(host::LINE_BYTES),
            tags,
            known: vec![Known::default(); places],
            uses: vec![Uses::default(); sets as usize],
        }
    }

    #[inline]
    fn address_tag(&self, line: LineAddr) -> u32 {
        (line.0 >> self.set_bits) as u32 + 1
    }

    /// Number of sets.
    pub fn sets(&self) -> usize {
        self.uses.len()
    }

    /// The set of a line.
    #[inline]
    pub fn set(&self, line: LineAddr) -> usize {
        (line.0 & self.set_mask) as usize
    }

    /// The first slot of a set.
    #[inline]
    fn base(&self, set: usize) -> usize {
        self.first + set * self.ways
    }

    /// Brings the set of a line near, as far as the host is concerned.
    #[inline]
    pub fn prefetch(&self, line: LineAddr) {
        self.prefetch_slot(Slot(self.base(self.set(line))));
    }

    /// The same of what is known of a slot.
    #[inline]
    pub fn prefetch_slot(&self, slot: Slot) {
        host::prefetch(&self.tags[slot.0]);
        host::prefetch(&self.known[slot.0]);
    }

    /// Slot of a line, without touching its recency.
    #[inline]
    pub fn find(&self, line: LineAddr) -> Option<Slot> {
        let (set, tag) = (self.set(line), self.address_tag(line));
        let base = self.base(set);
        let newest = base + usize::from(self.uses[set].newest);
        if self.tags[newest] == tag {
            return Some(Slot(newest));
        }
        way_of(&self.tags[base..base + self.ways], tag).map(|way| Slot(base + way))
    }

    /// Slot of a line, which becomes the most recently used of its set.
    #[inline]
    pub fn touch(&mut self, line: LineAddr) -> Option<Slot> {
        let (set, tag) = (self.set(line), self.address_tag(line));
        let base = self.base(set);
        let newest = base + usize::from(self.uses[set].newest);
        if self.tags[newest] == tag {
            return Some(Slot(newest));
        }
        let way = way_of(&self.tags[base..base + self.ways], tag)?;
        self.used(set, way);
        Some(Slot(base + way))
    }

    /// Returns true if a line is still in a slot in which it was found.
    #[inline]
    pub fn is_at(&self, line: LineAddr, slot: Slot) -> bool {
        self.tags[slot.0] == self.address_tag(line)
    }

    /// The line in a slot becomes the most recently used of its set.
    #[inline]
    pub fn touch_slot(&mut self, line: LineAddr, slot: Slot) {
        let set = self.set(line);
        let way = slot.0 - self.base(set);
        if usize::from(self.uses[set].newest) != way {
            self.used(set, way);
        }
    }

    /// A way is the most recently used of its set from now on.
    #[inline]
    fn used(&mut self, set: usize, way: usize) {
        if self.uses[set].clock == u8::MAX {
            self.begin_anew(set);
        }
        let slot = self.base(set) + way;
        let uses = &mut self.uses[set];
        uses.clock += 1;
        uses.newest = way as u8;
        self.known[slot].last_use = uses.clock;
    }

    /// The clock of a set has come to its end: it begins anew, and times of use keep their order.
    #[cold]
    fn begin_anew(&mut self, set: usize) {
        let base = self.base(set);
        let known = &mut self.known[base..base + self.ways];
        let before: Vec<u8> = known.iter().map(|line| line.last_use).collect();
        for line in known {
            line.last_use = before.iter().filter(|&&other| other < line.last_use).count() as u8;
        }
        self.uses[set].clock = self.ways as u8;
    }

    /// Puts in a line that is not there, as most recently used, and returns its slot and what it displaced. In the next cache it is in
    /// the way `below`.
    pub fn insert(&mut self, line: LineAddr, marks: Marks, below: u8) -> (Slot, Option<Victim>) {
        let (set, tag) = (self.set(line), self.address_tag(line));
        let base = self.base(set);
        let tags = &self.tags[base..base + self.ways];
        assert!(way_of(tags, tag).is_none(), "{line} is already cached");
        let way = way_of(tags, 0).unwrap_or_else(|| self.oldest(base));
        let slot = Slot(base + way);
        let victim = (self.tags[slot.0] != 0).then(|| {
            let Known { marks, below, .. } = self.known[slot.0];
            Victim { line: self.line_of(set, slot), was: marks, below }
        });
        self.tags[slot.0] = tag;
        self.known[slot.0] = Known { marks, below, ..Known::default() };
        self.used(set, way);
        (slot, victim)
    }

    /// The way that was used last the longest ago, of the set that begins at a slot.
    #[inline]
    fn oldest(&self, base: usize) -> usize {
        let known = &self.known[base..base + self.ways];
        (0..self.ways).min_by_key(|&way| known[way].last_use).expect("a set has a way")
    }

    /// The line that would leave if this one were put in now, and its way in the next cache; `None` if there is room.
    #[inline]
    pub fn next_victim(&self, line: LineAddr) -> Option<(LineAddr, u8)> {
        let set = self.set(line);
        let base = self.base(set);
        let is_full = way_of(&self.tags[base..base + self.ways], 0).is_none();
        is_full.then(|| {
            let slot = Slot(base + self.oldest(base));
            (self.line_of(set, slot), self.known[slot.0].below)
        })
    }

    /// Removes a line and returns what the cache knew of it, if the cache has it.
    #[inline]
    pub fn remove(&mut self, line: LineAddr) -> Option<Marks> {
        let slot = self.find(line)?;
        self.tags[slot.0] = 0;
        Some(std::mem::take(&mut self.known[slot.0].marks))
    }

    /// Marks of the line in an occupied slot.
    #[inline]
    pub fn marks(&self, slot: Slot) -> Marks {
        self.known[slot.0].marks
    }

    /// The design's tag of the line in an occupied slot; 0: none was set since memory delivered the line.
    #[inline]
    pub fn tag(&self, slot: Slot) -> u8 {
        self.known[slot.0].marks.tag
    }

    /// The same, to change it.
    #[inline]
    pub fn tag_mut(&mut self, slot: Slot) -> &mut u8 {
        &mut self.known[slot.0].marks.tag
    }

    /// Takes in what an inner cache knew of a line that is in this slot: its changes, the design's bits, and with changes the tag.
    #[inline]
    pub fn take_in(&mut self, slot: Slot, inner: Marks) {
        let marks = &mut self.known[slot.0].marks;
        let inner = Marks { state: inner.state & (DIRTY | DESIGN_BITS), ..inner };
        *marks = inner.over(*marks);
    }

    /// State bits of an occupied slot.
    #[inline]
    pub fn state(&self, slot: Slot) -> u8 {
        self.known[slot.0].marks.state
    }

    /// The same, to change them.
    #[inline]
    pub fn state_mut(&mut self, slot: Slot) -> &mut u8 {
        &mut self.known[slot.0].marks.state
    }

    /// The line in a slot is as memory has it: clean, without bits and tag of the design.
    #[inline]
    pub fn wash(&mut self, slot: Slot) {
        let marks = &mut self.known[slot.0].marks;
        *marks = Marks { state: marks.state & !(DIRTY | DESIGN_BITS), tag: 0 };
    }

    /// The slot of a line that is known to be in a way of its set.
    #[inline]
    pub fn slot_in(&self, line: LineAddr, way: u8) -> Slot {
        Slot(self.base(self.set(line)) + usize::from(way))
    }

    /// In which way of its set a line is, which is in this slot.
    #[inline]
    pub fn way(&self, line: LineAddr, slot: Slot) -> u8 {
        (slot.0 - self.base(self.set(line))) as u8
    }

    /// The slot with a number, from 0 on.
    #[inline]
    pub fn slot(&self, number: usize) -> Slot {
        Slot(self.first + number)
    }

    /// The number of a slot.
    #[inline]
    pub fn number(&self, slot: Slot) -> usize {
        slot.0 - self.first
    }

    /// The line in an occupied slot.
    pub fn line_at(&self, slot: Slot) -> LineAddr {
        self.line_of(self.number(slot) / self.ways, slot)
    }

    /// The line in an occupied slot of a set.
    #[inline]
    fn line_of(&self, set: usize, slot: Slot) -> LineAddr {
        LineAddr((u64::from(self.tags[slot.0] - 1) << self.set_bits) | set as u64)
    }

    /// Number of slots, occupied or not.
    pub fn slots(&self) -> usize {
        self.uses.len() * self.ways
    }

    /// Slots of one set.
    pub fn ways(&self) -> usize {
        self.ways
    }

    /// The dirty lines among slots with these numbers, in order: `(number, line)`.
    pub fn dirty_in(&self, numbers: Range<usize>) -> impl Iterator<Item = (usize, LineAddr)> + '_ {
        // An empty slot has no state.
        numbers
            .map(|number| (number, self.slot(number)))
            .filter(|&(_, slot)| self.state(slot) & DIRTY != 0)
            .map(|(number, slot)| (number, self.line_at(slot)))
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

/// Tags that equal this one: a bit for each.
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
            // Close to the end of the clocks, too.
            clock in prop_oneof![Just(0), (u8::MAX - 20)..=u8::MAX],
            steps in prop::collection::vec((0..4u8, 0..50u64), 1..200),
        ) {
            let mut cache = Cache::new(64 * 2 * u64::from(ways), ways);
            cache.uses.iter_mut().for_each(|uses| uses.clock = clock);
            let below = |line: u64| line as u8 ^ 0x55;
            let mut plain = Plain::default();
            for (what, line) in steps {
                let set = &mut plain.sets[line as usize % 2];
                let at = set.iter().position(|&(of, _)| of == line);
                match (what, at) {
                    (0, Some(at)) => {
                        let (_, state) = set.remove(at);
                        let removed = cache.remove(LineAddr(line));
                        prop_assert_eq!(removed, Some(Marks { state, tag: line as u8 }));
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
                        prop_assert_eq!(cache.known[slot.0].below, below(line));
                        let way = cache.way(LineAddr(line), slot);
                        prop_assert_eq!(cache.slot_in(LineAddr(line), way), slot);
                        set.insert(0, entry);
                    }
                    (_, None) => {
                        prop_assert_eq!(cache.touch(LineAddr(line)), None);
                        let out = if set.len() == ways as usize { set.pop() } else { None };
                        let next = cache.next_victim(LineAddr(line));
                        prop_assert_eq!(next, out.map(|(line, _)| (LineAddr(line), below(line))));
                        let (slot, victim) = cache.insert(LineAddr(line), Marks { state: what, tag: line as u8 }, below(line));
                        prop_assert_eq!(cache.line_at(slot), LineAddr(line));
                        prop_assert!(cache.is_at(LineAddr(line), slot));
                        prop_assert_eq!(victim.map(|v| (v.line.0, v.was.state)), out);
                        prop_assert!(victim.is_none_or(|v| v.was.tag == v.line.0 as u8));
                        prop_assert_eq!(victim.map(|v| v.below), out.map(|(line, _)| below(line)));
                        set.insert(0, (line, what));
                    }
                }
            }
            // All slots, and those of a range that begins and ends within sets.
            let dirty = |range: Range<usize>| {
                let held = range.map(|number| (number, cache.slot(number)));
                let dirty = held.filter(|&(_, slot)| cache.state(slot) & DIRTY != 0);
                dirty.map(|(number, slot)| (number, cache.line_at(slot))).collect::<Vec<_>>()
            };
            let (some, all) = (ways as usize / 2..2 * ways as usize - 1, 0..cache.slots());
            for range in [some, all] {
                prop_assert_eq!(cache.dirty_in(range.clone()).collect::<Vec<_>>(), dirty(range));
            }
        }
    }

    #[test]
    fn the_least_recently_used_line_makes_room() {
        let mut cache = Cache::new(4 * 64 * 2, 4);
        let lines: Vec<LineAddr> = (0..4).map(|i| LineAddr(i * 2)).collect();
        for &line in &lines {
            assert_eq!(cache.insert(line, Marks::default(), 0).1, None);
        }
        assert!(cache.touch(lines[0]).is_some());
        let slot = cache.find(lines[1]).expect("just inserted");
        *cache.state_mut(slot) |= DIRTY;
        assert_eq!(cache.dirty_in(0..cache.slots()).collect::<Vec<_>>(), [(1, lines[1])]);
        let (_, victim) = cache.insert(LineAddr(100), Marks::default(), 0);
        assert_eq!(
            victim,
            Some(Victim { line: lines[1], was: Marks { state: DIRTY, tag: 0 }, below: 0 })
        );
        assert_eq!(cache.remove(LineAddr(100)), Some(Marks::default()));
        assert_eq!(cache.find(LineAddr(100)), None);
    }

    #[test]
    fn a_set_of_one_way_and_a_single_set_both_work() {
        let mut direct = Cache::new(64 * 4, 1);
        direct.insert(LineAddr(1), Marks::default(), 7);
        let victim = direct.insert(LineAddr(5), Marks::default(), 0).1.expect("there is one way");
        assert_eq!((victim.line, victim.below), (LineAddr(1), 7));
        let mut full = Cache::new(64 * 12, 12);
        for i in 0..12 {
            full.insert(LineAddr(i * 7), Marks::default(), 0);
        }
        assert_eq!(
            full.insert(LineAddr(1000), Marks::default(), 0).1.map(|v| v.line),
            Some(LineAddr(0))
        );
    }
}
