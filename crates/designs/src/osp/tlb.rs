//! Translations: the extended TLBs, and what it costs to change what they say.

use super::event::Event;
use super::layout::Slot;
use super::protocol::{Osp, Port};
use super::{Consolidation, Shootdown};
use graven_base::ids::ThreadId;
use graven_base::time::Cycle;

/// One core's extended TLB: translations with bitmaps, the one used last at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Tlb {
    slots: Vec<Slot>,
}

impl Tlb {
    /// Translations that it holds.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Uses a translation. Returns whether the TLB had it, and which had to leave for it.
    #[inline]
    fn access(&mut self, slot: Slot, capacity: usize) -> (bool, Option<Slot>) {
        if self.slots.last() == Some(&slot) {
            return (true, None);
        }
        if let Some(at) = self.slots.iter().rposition(|&s| s == slot) {
            self.slots.remove(at);
            self.slots.push(slot);
            return (true, None);
        }
        let out = (self.slots.len() == capacity).then(|| self.slots.remove(0));
        self.slots.push(slot);
        (false, out)
    }

    fn drop_entry(&mut self, slot: Slot) {
        self.slots.retain(|&s| s != slot);
    }
}

impl Osp {
    /// A core's store needs the translation of a page. Returns how long it waits for it.
    #[inline]
    pub(super) fn translate(&mut self, port: &mut Port<'_>, core: u32, slot: Slot) -> Cycle {
        let capacity = self.config.tlb_entries as usize;
        let (hit, out) = self.tlbs[core as usize].access(slot, capacity);
        if hit {
            return 0;
        }
        port.emit(Event::TranslationMissed);
        self.pages.get_mut(slot).cores |= 1 << core;
        if let Some(out) = out {
            let page = self.pages.get_mut(out);
            page.cores &= !(1 << core);
            if page.cores == 0 {
                self.inactive(port, out);
            }
        }
        self.config.metadata_cycles.into()
    }

    /// A page that no TLB holds is inactive: it is consolidated, if the configuration says so.
    pub(super) fn inactive(&mut self, port: &mut Port<'_>, slot: Slot) {
        if self.config.consolidation == Consolidation::Inactive {
            self.queue_page(slot);
            self.consolidate_next(port);
        }
    }

    /// The mapping of a page has changed, by a core if it was one. Cores with an old translation are
    /// interrupted and lose it. Returns how long the one that changed it waits for them.
    pub(super) fn shoot_down(&mut self, port: &mut Port<'_>, slot: Slot, by: Option<u32>) -> Cycle {
        let own = by.map_or(0, |core| 1 << core);
        let page = self.pages.get_mut(slot);
        let others = page.cores & !own;
        page.cores &= own;
        if others == 0 {
            return 0;
        }
        port.emit(Event::ShotDown { slot, cores: others });
        for (core, tlb) in self.tlbs.iter_mut().enumerate() {
            if others >> core & 1 != 0 {
                tlb.drop_entry(slot);
            }
        }
        for (thread, state) in self.threads.iter().enumerate() {
            if state.core.is_some_and(|core| others >> core & 1 != 0) {
                port.interrupt(thread as ThreadId, self.config.shootdown_cycles.into());
            }
        }
        self.config.shootdown_wait_cycles.into()
    }

    /// A line's current bit has flipped, by a store of a core.
    pub(super) fn flipped(&mut self, port: &mut Port<'_>, slot: Slot, core: u32) -> Cycle {
        port.emit(Event::Flipped);
        let cost = Cycle::from(self.config.flip_cycles);
        if self.config.shootdown == Shootdown::Store {
            return cost + self.shoot_down(port, slot, Some(core));
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_translation_not_used_for_longest_leaves() {
        let mut tlb = Tlb::default();
        let used: Vec<_> = [1, 2, 1, 3, 2, 1].map(|slot| tlb.access(slot, 2)).to_vec();
        let (hit, miss) = ((true, None), |out| (false, out));
        assert_eq!(
            used,
            [miss(None), miss(None), hit, miss(Some(2)), miss(Some(1)), miss(Some(3))]
        );
        tlb.drop_entry(2);
        assert_eq!(tlb.slots, [1]);
    }
}
