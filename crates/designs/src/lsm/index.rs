//! The address mapping: a skip list in DRAM of home address ranges and where the log has them.
//!
//! A node lies in DRAM as these words, and takes whole lines:
//!
//! | word | content |
//! |---|---|
//! | 0 | home address of the first word |
//! | 1 | number of words |
//! | 2 | log address of the first word |
//! | 3 + n | the next node of level n |
//!
//! Ranges do not overlap: a new one cuts or replaces those beneath it. A node's number of levels is drawn from
//! its first home address and a fixed seed, so that a run is the same every time. The head has all levels, and
//! comes first in memory.

use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES, spread};

use super::log::Position;

const LEVELS_SEED: u64 = 0x5349_4b50;
/// The head's slot, and as a link: there is none.
const HEAD: u32 = 0;
const FIELDS: u64 = 3;
/// Words of a line.
const LINE_WORDS: u64 = LINE_BYTES / WORD_BYTES;
/// More levels than any list has.
pub(super) const LEVELS_MAX: usize = 32;

/// Lines of a node with `levels` levels.
fn lines(levels: usize) -> usize {
    (FIELDS + levels as u64).div_ceil(LINE_WORDS) as usize
}

const SIZES: usize = (FIELDS as usize + LEVELS_MAX).div_ceil(LINE_WORDS as usize);

#[derive(Clone, Copy, Debug)]
struct Node {
    start: Addr,
    end: Addr,
    position: Position,
    /// Bytes from the beginning of the index to it.
    offset: u64,
    /// Place of its first link.
    links: u32,
    levels: u8,
}

/// A range of home addresses and where the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) start: Addr,
    pub(super) end: Addr,
    pub(super) position: Position,
}

/// Nodes that a transaction is going to make.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    /// Slots of removed nodes among them, by their lines less one.
    taken: [usize; SIZES],
    /// Bytes of the others.
    fresh: u64,
}

/// The skip list.
#[derive(Clone, Debug)]
pub(super) struct Index {
    nodes: Vec<Node>,
    links: Vec<u32>,
    /// Slots of removed nodes, by their lines less one.
    free: [Vec<u32>; SIZES],
    levels_max: usize,
    /// A node has a further level with a probability of 1 in 2 to this.
    shift: u32,
    /// Levels in use.
    levels: usize,
    live: usize,
    base: Addr,
    bytes: u64,
    used: u64,
}

impl Index {
    /// Makes an empty index with room for `bytes` bytes of nodes. A node has a further level with a
    /// probability of 1 in 2 to the power of `shift`.
    pub(super) fn new(levels_max: usize, shift: u32, bytes: u64) -> Index {
        let mut index = Index {
            nodes: Vec::new(),
            links: Vec::new(),
            free: Default::default(),
            levels_max,
            shift,
            levels: 0,
            live: 0,
            base: Addr(0),
            bytes,
            used: 0,
        };
        index.clear();
        index
    }

    /// Bytes of the head, without which there is no list.
    pub(super) fn head_bytes(levels_max: usize) -> u64 {
        lines(levels_max) as u64 * LINE_BYTES
    }

    fn clear(&mut self) {
        self.nodes.clear();
        self.links.clear();
        self.free.iter_mut().for_each(Vec::clear);
        (self.levels, self.used) = (0, 0);
        self.allot(self.levels_max);
    }

    /// Sets its address in DRAM.
    pub(super) fn set_base(&mut self, base: Addr) {
        self.base = base;
    }

    /// Number of its ranges.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Lines of its DRAM that are nodes, or were since it was empty.
    pub(super) fn lines_used(&self) -> u64 {
        self.used / LINE_BYTES
    }

    /// Levels of the node of a home address.
    pub(super) fn levels_of(&self, start: Addr) -> usize {
        let drawn = spread(LEVELS_SEED, start.0 / WORD_BYTES);
        (1 + drawn.trailing_zeros() / self.shift).min(self.levels_max as u32) as usize
    }

    fn allot(&mut self, levels: usize) -> u32 {
        let lines = lines(levels);
        if let Some(slot) = self.free[lines - 1].pop() {
            return slot;
        }
        let links = self.links.len();
        self.links.resize(links + lines * LINE_WORDS as usize - FIELDS as usize, HEAD);
        self.nodes.push(Node {
            start: Addr(0),
            end: Addr(0),
            position: 0,
            offset: self.used,
            links: links as u32,
            levels: levels as u8,
        });
        self.used += lines as u64 * LINE_BYTES;
        self.nodes.len() as u32 - 1
    }

    /// Returns true if nodes for these ranges find room, whatever they cut: a range makes a node,
    /// and may leave behind it a rest of an older range, which begins at its end.
    pub(super) fn has_room(&self, ranges: impl Iterator<Item = (Addr, Addr)>) -> bool {
        let mut needed = [0; SIZES];
        for at in ranges.flat_map(|(start, end)| [start, end]) {
            needed[lines(self.levels_of(at)) - 1] += 1;
        }
        let fresh = |(free, (lines, needed)): (&Vec<u32>, (u64, usize))| {
            needed.saturating_sub(free.len()) as u64 * lines * LINE_BYTES
        };
        let sizes = (1..).zip(needed);
        self.used + self.free.iter().zip(sizes).map(fresh).sum::<u64>() <= self.bytes
    }

    /// The same, if it were empty.
    pub(super) fn could_have_room(&self, ranges: impl Iterator<Item = (Addr, Addr)>) -> bool {
        Index::new(self.levels_max, self.shift, self.bytes).has_room(ranges)
    }

    #[inline]
    fn next(&self, node: u32, level: usize) -> u32 {
        self.links[self.nodes[node as usize].links as usize + level]
    }

    fn set_next(&mut self, node: u32, level: usize, next: u32) {
        let at = self.nodes[node as usize].links as usize + level;
        self.links[at] = next;
    }

    fn address(&self, node: u32) -> Addr {
        self.base.plus(self.nodes[node as usize].offset)
    }

    /// Looks for the range that holds a home address, and reports each node that it visits.
    #[inline]
    pub(super) fn search(&self, addr: Addr, mut visit: impl FnMut(Addr)) -> Option<Mapped> {
        visit(self.address(HEAD));
        let (mut at, mut beyond) = (HEAD, HEAD);
        for level in (0..self.levels).rev() {
            loop {
                let next = self.next(at, level);
                // A node that was too far one level up is known to be.
                if next == HEAD || next == beyond {
                    break;
                }
                visit(self.address(next));
                let node = &self.nodes[next as usize];
                if node.start > addr {
                    beyond = next;
                    break;
                }
                if addr < node.end {
                    return Some(self.mapped(next));
                }
                at = next;
            }
        }
        None
    }

    fn mapped(&self, node: u32) -> Mapped {
        let Node { start, end, position, .. } = self.nodes[node as usize];
        Mapped { start, end, position }
    }

    /// The last node before an address on each level.
    fn before(&self, addr: Addr) -> [u32; LEVELS_MAX] {
        let mut before = [HEAD; LEVELS_MAX];
        let mut at = HEAD;
        for level in (0..self.levels).rev() {
            loop {
                let next = self.next(at, level);
                if next == HEAD || self.nodes[next as usize].start >= addr {
                    break;
                }
                at = next;
            }
            before[level] = at;
        }
        before
    }

    /// The ranges that have words in `[start, end)`, in order.
    pub(super) fn overlapping(&self, start: Addr, end: Addr) -> impl Iterator<Item = Mapped> + '_ {
        let before = self.before(start)[0];
        let mut at = if before != HEAD && self.nodes[before as usize].end > start {
            before
        } else {
            self.next(before, 0)
        };
        std::iter::from_fn(move || {
            if at == HEAD || self.nodes[at as usize].start >= end {
                return None;
            }
            let mapped = self.mapped(at);
            at = self.next(at, 0);
            Some(mapped)
        })
    }

    /// Maps a range, which takes the place of what is beneath it. Returns whether an older range was cut.
    pub(super) fn insert(&mut self, start: Addr, words: u64, position: Position) -> bool {
        let end = start.plus(words * WORD_BYTES);
        let before = self.before(start);
        let mut cut = false;
        let last = &mut self.nodes[before[0] as usize];
        if last.end > start {
            cut = true;
            let (rest_end, old) = (last.end, last.position);
            let from = |addr: Addr, last: Addr| (addr.0 - last.0) / WORD_BYTES;
            let rest = old + from(end, last.start);
            last.end = start;
            if rest_end > end {
                self.link(Mapped { start: end, end: rest_end, position: rest }, before);
            }
        }
        loop {
            let next = self.next(before[0], 0);
            if next == HEAD || self.nodes[next as usize].start >= end {
                break;
            }
            let node = &mut self.nodes[next as usize];
            if (node.start, node.end) == (start, end) {
                node.position = position;
                return cut;
            }
            if node.end > end {
                node.position += (end.0 - node.start.0) / WORD_BYTES;
                node.start = end;
                cut = true;
                break;
            }
            self.unlink(next, &before);
        }
        self.link(Mapped { start, end, position }, before);
        cut
    }

    /// Puts a node behind these.
    fn link(&mut self, mapped: Mapped, before: [u32; LEVELS_MAX]) {
        let levels = self.levels_of(mapped.start);
        let node = self.allot(levels);
        let Node { offset, links, .. } = self.nodes[node as usize];
        let Mapped { start, end, position } = mapped;
        self.nodes[node as usize] =
            Node { start, end, position, offset, links, levels: levels as u8 };
        self.levels = self.levels.max(levels);
        for (level, &before) in before.iter().enumerate().take(levels) {
            self.set_next(node, level, self.next(before, level));
            self.set_next(before, level, node);
        }
        self.live += 1;
    }

    /// Takes out the node behind these.
    fn unlink(&mut self, node: u32, before: &[u32; LEVELS_MAX]) {
        let levels = self.nodes[node as usize].levels as usize;
        for (level, &before) in before.iter().enumerate().take(levels) {
            assert_eq!(self.next(before, level), node, "the node comes next on its levels");
            self.set_next(before, level, self.next(node, level));
        }
        self.free[lines(levels) - 1].push(node);
        self.live -= 1;
    }

    /// The words that mapping a range stores to, and what: one if the same range is mapped already, else the fields
    /// of a new node, which is one of `plan`, and the links to it. (The place in the log is not known before the
    /// append.)
    pub(super) fn update(
        &self,
        plan: &mut Plan,
        start: Addr,
        end: Addr,
        mut put: impl FnMut(Addr, u64),
    ) {
        let before = self.before(start);
        let next = self.next(before[0], 0);
        let field = |node: Addr, number: u64| node.plus(number * WORD_BYTES);
        let Node { start: next_start, end: next_end, .. } = self.nodes[next as usize];
        if next != HEAD && (next_start, next_end) == (start, end) {
            return put(field(self.address(next), 2), 0);
        }
        let levels = self.levels_of(start);
        let node = self.base.plus(self.planned(plan, lines(levels)));
        put(field(node, 0), start.0);
        put(field(node, 1), (end.0 - start.0) / WORD_BYTES);
        put(field(node, 2), 0);
        for (level, &before) in (FIELDS..).zip(&before[..levels]) {
            let next = self.next(before, (level - FIELDS) as usize);
            put(field(node, level), self.address(next).0);
            put(field(self.address(before), level), node.0);
        }
    }

    /// Place of the next node of `lines` lines.
    fn planned(&self, plan: &mut Plan, lines: usize) -> u64 {
        let taken = &mut plan.taken[lines - 1];
        match self.free[lines - 1].iter().rev().nth(*taken) {
            Some(&slot) => {
                *taken += 1;
                self.nodes[slot as usize].offset
            }
            None => {
                plan.fresh += lines as u64 * LINE_BYTES;
                self.used + plan.fresh - lines as u64 * LINE_BYTES
            }
        }
    }

    /// Removes the ranges that lie where `keep` does not want them.
    pub(super) fn retain(&mut self, keep: impl Fn(Position) -> bool) {
        let mut before = [HEAD; LEVELS_MAX];
        let mut at = self.next(HEAD, 0);
        while at != HEAD {
            let next = self.next(at, 0);
            let node = self.nodes[at as usize];
            if keep(node.position) {
                before[..node.levels as usize].fill(at);
            } else {
                self.unlink(at, &before);
            }
            at = next;
        }
        if self.live == 0 {
            self.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn index() -> Index {
        Index::new(12, 1, 1 << 20)
    }

    /// Every mapped word and its place.
    fn words(index: &Index) -> BTreeMap<u64, Position> {
        let mut words = BTreeMap::new();
        let mut last = Addr(0);
        for range in index.overlapping(Addr(0), Addr(u64::MAX)) {
            assert!(last <= range.start && range.start < range.end, "ranges are in order");
            last = range.end;
            for i in 0..(range.end.0 - range.start.0) / 8 {
                words.insert(range.start.0 / 8 + i, range.position + i);
            }
        }
        words
    }

    #[test]
    fn a_range_that_is_cut_in_its_middle_may_take_the_last_lines() {
        // The head, and four nodes of a level.
        let mut index = Index::new(1, 1, 5 * LINE_BYTES);
        let has_room =
            |index: &Index, at: u64| index.has_room([(Addr(at), Addr(at + 8))].into_iter());
        index.insert(Addr(0), 3, 0);
        index.insert(Addr(64), 1, 3);
        assert!(has_room(&index, 8));
        assert!(index.insert(Addr(8), 1, 4), "the range of three words is cut");
        assert_eq!((index.lines_used(), has_room(&index, 128)), (5, false));
    }

    proptest! {
        /// Against a map from words to places.
        #[test]
        fn it_maps_each_word_to_the_newest_place(
            ranges in prop::collection::vec((0u64..200, 1u64..24, prop::bool::weighted(0.05)), 1..120),
            quarter: bool,
        ) {
            let mut index = Index::new(6, 1 + u32::from(quarter), 1 << 20);
            let mut model = BTreeMap::new();
            for (number, (start, length, collect)) in (0u64..).zip(ranges) {
                let position = number * 100;
                index.insert(Addr(start * 8), length, position);
                model.extend((0..length).map(|i| (start + i, position + i)));
                if collect {
                    // All but the newest ten.
                    let keep = |p: Position| p / 100 + 10 > number;
                    index.retain(keep);
                    model.retain(|_, p| keep(*p));
                }
                prop_assert_eq!(&words(&index), &model);
            }
            for word in 0..230 {
                let mut visits = 0;
                let found = index.search(Addr(word * 8), |_| visits += 1);
                let place = found.map(|f| f.position + (word - f.start.0 / 8));
                prop_assert_eq!(place, model.get(&word).copied());
                prop_assert!(visits >= 1);
            }
            let all = index.overlapping(Addr(0), Addr(u64::MAX)).count();
            prop_assert_eq!(all, index.len());
            index.retain(|_| false);
            prop_assert_eq!((index.len(), index.levels), (0, 0));
        }

        /// `has_room` is right: nodes never lie beyond the bytes of the index, nor on each other.
        #[test]
        fn nodes_have_lines_of_their_own_within_the_index(
            ranges in prop::collection::vec((0u64..64, 1u64..6), 1..80), lines in 8u64..60,
        ) {
            let mut index = Index::new(12, 1, lines * 64);
            for (start, length) in ranges {
                let (from, to) = (Addr(start * 8), Addr((start + length) * 8));
                if index.has_room([(from, to)].into_iter()) {
                    index.insert(from, length, start * 1000);
                }
                prop_assert!(index.used <= index.bytes);
            }
            let mut ends = 0;
            for node in &index.nodes {
                prop_assert_eq!(node.offset, ends);
                ends += super::lines(node.levels.into()) as u64 * 64;
            }
        }
    }

    #[test]
    fn an_update_stores_to_the_node_that_an_insertion_makes() {
        let mut index = index();
        index.set_base(Addr(1 << 24));
        (0..40).for_each(|n| assert!(!index.insert(Addr(4096 + n * 32), 1, n)));
        index.retain(|position| position % 3 != 0);
        let ranges: Vec<Addr> = (0..20).map(|n| Addr(4096 + n * 32 + 8)).collect();
        let (mut plan, mut nodes) = (Plan::default(), Vec::new());
        for &start in &ranges {
            let mut stored = Vec::new();
            index.update(&mut plan, start, start.plus(8), |at, value| stored.push((at, value)));
            assert_eq!(stored.len(), 3 + 2 * index.levels_of(start));
            assert_eq!((stored[0].1, stored[1].1), (start.0, 1));
            nodes.push(stored[0].0);
        }
        for (&start, &node) in ranges.iter().zip(&nodes) {
            index.insert(start, 1, 0);
            let mut last = Addr(0);
            index.search(start, |at| last = at);
            assert_eq!(last, node);
        }
        let mut stored = Vec::new();
        index.update(&mut plan, ranges[0], ranges[0].plus(8), |at, _| stored.push(at));
        assert_eq!(stored, [nodes[0].plus(16)], "mapped already: only its place changes");
    }

    #[test]
    fn a_range_in_the_middle_of_another_leaves_both_its_ends() {
        let mut index = index();
        assert!(!index.insert(Addr(64), 10, 100));
        assert!(index.insert(Addr(80), 3, 500));
        let ranges: Vec<_> = index.overlapping(Addr(0), Addr(1 << 20)).collect();
        let range = |start, end, position| Mapped { start: Addr(start), end: Addr(end), position };
        assert_eq!(ranges, [range(64, 80, 100), range(80, 104, 500), range(104, 144, 105)]);
        assert!(!index.insert(Addr(64), 10, 900), "all of them are replaced");
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn levels_are_as_frequent_as_they_should_be() {
        for (shift, share) in [(1, 0.5), (2, 0.25)] {
            let index = Index::new(32, shift, 1 << 20);
            let mut count = [0u64; LEVELS_MAX + 1];
            (0..1u64 << 16).for_each(|n| count[index.levels_of(Addr(n * 8))] += 1);
            let mut expected = 65_536.0 * (1.0 - share);
            for (level, &count) in count.iter().enumerate().take(5).skip(1) {
                let off = (count as f64 - expected).abs() / expected;
                assert!(off < 0.1, "{count} of level {level}, expected {expected}");
                expected *= share;
            }
        }
    }

    #[test]
    fn a_node_takes_as_many_lines_as_its_levels_need() {
        assert_eq!([1, 5, 6, 13, 14, 32].map(lines), [1, 1, 2, 2, 3, 5]);
        assert_eq!(Index::head_bytes(16), 192);
    }
}
