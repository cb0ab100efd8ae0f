//! The cells of a memory array, and their wear.
//!
//! Endurance is a matter of single cells, but a count for each of 172 cells per block costs too much host
//! memory. Wear is counted by groups of neighbouring cells, which reveals uneven use within a block (the
//! front cells of compressed blocks) as well as between blocks.

use super::tlc::{self, Programming, TlcTable};
use graven_base::codecs::{BLOCK_CELLS, Block};
use graven_base::host;

/// Lines of which the host memory is taken at once: 80 KB of cells.
const PAGE_LINES: usize = 1024;

/// Cells of a wear group by default: a block is 7 groups of 22 and one of 18.
pub const WEAR_GROUP_CELLS: u32 = 22;

/// Blocks by line number, taking host memory where they are written; cells that never were are in state 000.
#[derive(Clone, Debug)]
pub struct CellArray {
    pages: Vec<Option<Box<Page>>>,
    group_cells: u32,
    /// Cells programmed in all.
    programmed: u64,
    /// Most programmings of one group.
    peak: u32,
}

#[derive(Clone, Debug)]
struct Page {
    blocks: Vec<Block>,
    written: [u64; PAGE_LINES / 64],
    /// Programmed cells, for each line its groups.
    wear: Vec<u32>,
}

/// Wear of an array at an instant: programmed cells of each group, page by page; a page that was never written is empty.
#[derive(Clone, Debug, Default)]
pub struct CellWear(Vec<Vec<u32>>);

impl CellWear {
    /// Adds the wear of the same cells in another run.
    pub fn join(&mut self, other: &CellWear) {
        self.0.resize_with(self.0.len().max(other.0.len()), Vec::new);
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.resize(own.len().max(other.len()), 0);
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        }
    }

    /// Cells programmed in the group that wears most.
    pub fn peak(&self) -> u32 {
        self.0.iter().flatten().copied().max().unwrap_or(0)
    }
}

impl Default for CellArray {
    fn default() -> Self {
        CellArray::new(WEAR_GROUP_CELLS)
    }
}

impl CellArray {
    /// Makes an array that was never written, with wear counted by groups of `group_cells` cells.
    ///
    /// # Panics
    /// If the group is empty or larger than a block.
    pub fn new(group_cells: u32) -> CellArray {
        assert!((1..=BLOCK_CELLS).contains(&group_cells), "a group has 1 to {BLOCK_CELLS} cells");
        CellArray { pages: Vec::new(), group_cells, programmed: 0, peak: 0 }
    }

    /// Wear groups of a block.
    pub const fn groups(&self) -> usize {
        BLOCK_CELLS.div_ceil(self.group_cells) as usize
    }

    #[inline]
    const fn locate(line: u64) -> (usize, usize) {
        ((line / PAGE_LINES as u64) as usize, (line % PAGE_LINES as u64) as usize)
    }

    /// Content of a line's cells; `None` if they were never written.
    #[inline]
    pub fn get(&self, line: u64) -> Option<&Block> {
        let (page, at) = Self::locate(line);
        let page = self.pages.get(page)?.as_ref()?;
        (page.written[at / 64] >> (at % 64) & 1 == 1).then(|| &page.blocks[at])
    }

    /// Brings a line's cells near, as far as the host is concerned, if they were ever written.
    #[inline]
    pub fn prefetch(&self, line: u64) {
        let (page, at) = Self::locate(line);
        if let Some(Some(page)) = self.pages.get(page) {
            host::prefetch(&page.blocks[at]);
            host::prefetch(&page.wear[at * self.groups()]);
        }
    }

    /// Makes a line's cells hold a block; costs nothing and wears nothing (initial content).
    #[inline]
    pub fn set(&mut self, line: u64, block: &Block) {
        let (page, at) = self.page(line);
        page.written[at / 64] |= 1 << (at % 64);
        page.blocks[at] = *block;
    }

    /// Writes a block: programs the cells that change, and wears them.
    #[inline]
    pub fn program(&mut self, line: u64, new: &Block, table: &TlcTable) -> Programming {
        let (group_cells, groups) = (self.group_cells, self.groups());
        let (page, at) = self.page(line);
        page.written[at / 64] |= 1 << (at % 64);
        let old = page.blocks[at];
        page.blocks[at] = new.over(&old);
        let changed = tlc::changed(&old, new);
        if changed == [0; 3] {
            return Programming::default();
        }
        let mut peak = 0;
        for (group, wear) in page.wear[at * groups..][..groups].iter_mut().enumerate() {
            *wear += count(&changed, group as u32 * group_cells, group_cells);
            peak = peak.max(*wear);
        }
        let programming = tlc::program_cells(&changed, new, table);
        self.peak = self.peak.max(peak);
        self.programmed += u64::from(programming.cells);
        programming
    }

    /// Forgets the wear so far; the cells hold what they hold.
    pub fn forget_wear(&mut self) {
        self.pages.iter_mut().flatten().for_each(|page| page.wear.fill(0));
        (self.programmed, self.peak) = (0, 0);
    }

    /// The wear of all groups at this instant.
    pub fn wear_of_all(&self) -> CellWear {
        let of = |page: &Option<Box<Page>>| page.as_ref().map_or_else(Vec::new, |p| p.wear.clone());
        CellWear(self.pages.iter().map(of).collect())
    }

    /// Cells programmed in each group of a line; empty if the line's page was never written.
    pub fn wear(&self, line: u64) -> &[u32] {
        let (page, at) = Self::locate(line);
        let groups = self.groups();
        match self.pages.get(page) {
            Some(Some(page)) => &page.wear[at * groups..][..groups],
            _ => &[],
        }
    }

    /// Cells programmed in the group that wears most.
    pub const fn peak_wear(&self) -> u32 {
        self.peak
    }

    /// Cells programmed in all.
    pub const fn total_wear(&self) -> u64 {
        self.programmed
    }

    #[inline]
    fn page(&mut self, line: u64) -> (&mut Page, usize) {
        let (page, at) = Self::locate(line);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let groups = self.groups();
        let page = self.pages[page].get_or_insert_with(|| {
            let blocks = vec![Block::default(); PAGE_LINES];
            let wear = vec![0; PAGE_LINES * groups];
            Box::new(Page { blocks, written: [0; PAGE_LINES / 64], wear })
        });
        (page, at)
    }
}

/// Counts the set bits of `count` bits from `start` on.
#[inline]
fn count(bits: &[u64; 3], start: u32, count: u32) -> u32 {
    let end = start + count;
    let part = |j: usize| {
        let (first, last) = (64 * j as u32, 64 * (j as u32 + 1));
        let (from, to) = (start.clamp(first, last) - first, end.clamp(first, last) - first);
        let below = |bit: u32| if bit == 0 { 0 } else { u64::MAX >> (64 - bit) };
        (bits[j] & below(to) & !below(from)).count_ones()
    };
    part(0) + part(1) + part(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::testing::any_coded_line;
    use graven_base::codecs::{Codings, decode, encode};
    use proptest::prelude::*;

    const TABLE: TlcTable = TlcTable::MORLOG;

    #[test]
    fn what_was_never_written_is_none() {
        let mut array = CellArray::default();
        assert_eq!(array.get(0), None);
        assert!(array.wear(5).is_empty());
        let (block, _) = encode(&[7; 8], &Codings::default(), true, true);
        array.set(5000, &block);
        assert_eq!(array.get(5000), Some(&block));
        assert_eq!((array.get(5001), array.get(0), array.get(1 << 40)), (None, None, None));
        assert_eq!((array.total_wear(), array.peak_wear()), (0, 0));
    }

    #[test]
    fn wear_begins_again_and_adds_up_with_that_of_others() {
        let raw = |word| encode(&[word, 0, 0, 0, 0, 0, 0, 0], &Codings::default(), false, false).0;
        let mut one = CellArray::default();
        one.program(3, &raw(1), &TABLE);
        one.forget_wear();
        assert_eq!((one.total_wear(), one.peak_wear(), one.get(3)), (0, 0, Some(&raw(1))));
        one.program(3, &raw(0), &TABLE);
        let mut other = CellArray::default();
        other.program(3, &raw(1), &TABLE);
        other.program(3, &raw(0), &TABLE);
        other.program(PAGE_LINES as u64, &raw(1), &TABLE);
        let mut joined = one.wear_of_all();
        assert_eq!(joined.peak(), 1);
        joined.join(&other.wear_of_all());
        assert_eq!(joined.peak(), 3);
        let mut turned = other.wear_of_all();
        turned.join(&one.wear_of_all());
        assert_eq!(turned.0, joined.0);
    }

    #[test]
    fn wear_is_counted_by_groups() {
        let mut array = CellArray::default();
        assert_eq!(array.groups(), 8);
        let raw = |line: [u64; 8]| encode(&line, &Codings::default(), false, false).0;
        array.program(3, &raw([1, 0, 0, 0, 0, 0, 0, 0]), &TABLE);
        array.program(3, &raw([0; 8]), &TABLE);
        array.program(3, &raw([0, 0, 0, 0, 0, 0, 0, 1 << 63]), &TABLE);
        array.program(4, &raw([u64::MAX; 8]), &TABLE);
        assert_eq!(array.wear(3), [2, 0, 0, 0, 0, 0, 0, 1]);
        // 171 data cells; the tag cell stays at raw.
        assert_eq!(array.wear(4), [22, 22, 22, 22, 22, 22, 22, 17]);
        assert_eq!((array.total_wear(), array.peak_wear()), (171 + 3, 22));
        assert_eq!(array.wear(5), [0; 8]);
    }

    proptest! {
        #[test]
        fn writes_program_wear_and_stay(
            writes in prop::collection::vec((0u64..3, any_coded_line(), any::<bool>()), 1..12),
            group_cells in 1u32..=172,
        ) {
            let mut array = CellArray::new(group_cells);
            let (mut cells, mut peak) = (0, 0);
            for (line, (data, codings), expand) in writes {
                let line = line * 1000;
                let (block, _) = encode(&data, &codings, true, expand);
                let old = array.get(line).copied().unwrap_or_default();
                let programming = array.program(line, &block, &TABLE);
                prop_assert_eq!(programming, tlc::program(&old, &block, &TABLE));
                prop_assert_eq!(array.get(line), Some(&block.over(&old)));
                let stored = array.get(line).expect("just written");
                prop_assert_eq!(decode(stored, &codings), decode(&block, &codings));
                cells += u64::from(programming.cells);
                peak = peak.max(array.wear(line).iter().copied().max().unwrap_or(0));
            }
            let lines = [0, 1000, 2000].map(|line| array.wear(line).iter().map(|&w| u64::from(w)).sum());
            let _: [u64; 3] = lines;
            // Lines 0 and 1000 share a page; none is counted twice.
            prop_assert_eq!(lines.iter().sum::<u64>(), cells);
            prop_assert_eq!((array.total_wear(), array.peak_wear()), (cells, peak));
        }
    }
}
