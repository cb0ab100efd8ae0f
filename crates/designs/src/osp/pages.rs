//! Pages that have a shadow page: the controller's SSP cache.

use std::collections::{BTreeMap, VecDeque};

use super::layout::{Layout, Physical, Slot};
use graven_base::memory::LineAddr;
use graven_machine::request::WriteOrder;

/// A home page with a shadow page. In the bitmaps, bit `i` is line `i`: 0, it is at home; 1, in the shadow page.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// The first line at home.
    pub(super) home: LineAddr,
    /// Bitmap of the newest versions, committed or not: set for lines in the shadow page.
    pub(super) current: u64,
    /// Bitmap of the committed versions, those included that are being committed.
    pub(super) committed: u64,
    /// Bitmap that the journal or the table has of it, durably.
    pub(super) durable: u64,
    /// Lines with words of open transactions, once for each transaction.
    pub(super) open: u32,
    /// Commits under way of lines in it.
    pub(super) committing: u32,
    /// True if its home word or a journal record of it is on its way: no other record of it may be
    /// sent.
    pub(super) pending: bool,
    /// Place in the order of writes of the record that ends its consolidation, while that is on its way.
    pub(super) consolidating: WriteOrder,
    /// Cores whose TLBs hold its translation.
    pub(super) cores: u64,
    /// True if it waits to be consolidated.
    pub(super) queued: bool,
    /// When it was stored to last, in stores.
    pub(super) stored: u64,
}

impl Page {
    /// A line of it, at home.
    pub(super) fn home_line(&self, index: u64) -> LineAddr {
        LineAddr(self.home.0 + index)
    }

    /// Nothing is about to change in it.
    pub(super) fn is_quiet(&self) -> bool {
        self.open == 0 && self.committing == 0 && !self.pending
    }
}

/// All of them, and the free shadow pages.
pub(super) struct Pages {
    layout: Layout,
    slots: Vec<Option<Page>>,
    by_home: BTreeMap<LineAddr, Slot>,
    /// In the order in which they became free, so that all are written alike.
    free: VecDeque<Slot>,
}

impl Pages {
    pub(super) fn new(layout: Layout) -> Pages {
        let slots = vec![None; layout.pages as usize];
        Pages { layout, slots, by_home: BTreeMap::new(), free: (0..layout.pages).collect() }
    }

    pub(super) fn get(&self, slot: Slot) -> &Page {
        self.slots[slot as usize].as_ref().expect("a page in use keeps its shadow page")
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut Page {
        self.slots[slot as usize].as_mut().expect("a page in use keeps its shadow page")
    }

    /// The page, if the slot has one.
    pub(super) fn find(&self, slot: Slot) -> Option<&Page> {
        self.slots[slot as usize].as_ref()
    }

    pub(super) fn find_mut(&mut self, slot: Slot) -> Option<&mut Page> {
        self.slots[slot as usize].as_mut()
    }

    /// The shadow page for a line, if its page has one.
    #[inline]
    pub(super) fn slot_of(&self, line: LineAddr) -> Option<Slot> {
        self.by_home.get(&self.layout.home_page(line)).copied()
    }

    pub(super) fn in_use(&self) -> usize {
        self.by_home.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &Page)> {
        self.by_home.values().map(|&slot| (slot, self.get(slot)))
    }

    /// Gives a line's page a shadow page, if one is free.
    pub(super) fn allot(&mut self, line: LineAddr) -> Option<Slot> {
        let slot = self.free.pop_front()?;
        let home = self.layout.home_page(line);
        self.slots[slot as usize] = Some(Page {
            home,
            current: 0,
            committed: 0,
            durable: 0,
            open: 0,
            committing: 0,
            pending: true,
            consolidating: WriteOrder::NONE,
            cores: 0,
            queued: false,
            stored: 0,
        });
        self.by_home.insert(home, slot);
        Some(slot)
    }

    /// Takes the shadow page back.
    pub(super) fn free(&mut self, slot: Slot) {
        let page = self.slots[slot as usize].take().expect("it was in use");
        self.by_home.remove(&page.home);
        self.free.push_back(slot);
    }

    /// A line's bit.
    #[inline]
    pub(super) fn bit(&self, slot: Slot, line: LineAddr) -> u64 {
        1 << (line.0 - self.get(slot).home.0)
    }

    /// One of the two places of a line.
    pub(super) fn place(&self, slot: Slot, line: LineAddr, in_shadow: bool) -> Physical {
        if !in_shadow {
            return line;
        }
        LineAddr(self.layout.shadow_page(slot).0 + line.0 - self.get(slot).home.0)
    }

    pub(super) fn is_current_in_shadow(&self, slot: Slot, line: LineAddr) -> bool {
        self.get(slot).current & self.bit(slot, line) != 0
    }

    pub(super) fn is_committed_in_shadow(&self, slot: Slot, line: LineAddr) -> bool {
        self.get(slot).committed & self.bit(slot, line) != 0
    }

    /// Place of the newest version of a line when no cache has it.
    pub(super) fn current_place(&self, line: LineAddr) -> Physical {
        self.slot_of(line)
            .map_or(line, |slot| self.place(slot, line, self.is_current_in_shadow(slot, line)))
    }
}
