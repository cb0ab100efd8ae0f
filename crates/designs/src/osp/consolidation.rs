//! Page consolidation: what is committed in a shadow page is copied home, and the page is free.

use super::event::Event;
use super::journal::Of;
use super::layout::Slot;
use super::protocol::{Osp, Port, Read, Thread, Write};
use graven_base::ids::ThreadId;
use graven_base::memory::LineData;
use graven_machine::design::Stall;
use graven_machine::request::{self, WriteClass, WriteOrder};

/// A page that is being consolidated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copying {
    slot: Slot,
    /// Lines that are to be read.
    left: u64,
    /// Lines being read.
    reads: u32,
    /// Lines on their way home.
    writes: u32,
}

impl Osp {
    /// A page is to be consolidated when its turn comes.
    pub(super) fn queue_page(&mut self, slot: Slot) {
        let page = self.pages.get_mut(slot);
        if !page.queued {
            page.queued = true;
            self.queue.push_back(slot);
        }
    }

    /// Begins with the next page, one at a time. While stores wait for a shadow page, the page not stored to
    /// for longest is next when no inactive one is.
    pub(super) fn consolidate_next(&mut self, port: &mut Port<'_>) {
        while self.copying.is_none() {
            let Some(slot) = self.next_page() else { return self.give_up_if_stuck(port) };
            let page = self.pages.get(slot);
            if page.committed == 0 {
                port.emit(Event::FreedUncopied);
                self.release_page(port, slot);
                continue;
            }
            let (lines, on_demand) = (page.committed, !self.waiting.is_empty());
            port.emit(Event::ConsolidationBegins { slot, lines, on_demand });
            self.copying = Some(Copying { slot, left: lines, reads: 0, writes: 0 });
            self.generation += 1;
            self.copy_lines(port);
        }
    }

    /// The next page that is to be consolidated, if there is any.
    fn next_page(&mut self) -> Option<Slot> {
        while let Some(slot) = self.queue.pop_front() {
            let Some(page) = self.pages.find_mut(slot) else { continue };
            let was_queued = std::mem::take(&mut page.queued);
            if was_queued && page.cores == 0 && page.is_quiet() {
                return Some(slot);
            }
        }
        if self.waiting.is_empty() {
            return None;
        }
        let quiet = self.pages.iter().filter(|(_, page)| page.is_quiet());
        quiet.min_by_key(|(_, page)| page.stored).map(|(slot, _)| slot)
    }

    /// Reads lines of the shadow page, as many as may be on their way.
    fn copy_lines(&mut self, port: &mut Port<'_>) {
        let Some(copying) = &mut self.copying else { return };
        while copying.left != 0 && copying.reads + copying.writes < self.config.copies_in_flight {
            let index = u64::from(copying.left.trailing_zeros());
            copying.left &= copying.left - 1;
            copying.reads += 1;
            let home = self.pages.get(copying.slot).home_line(index);
            let place = self.pages.place(copying.slot, home, true);
            port.read(place, Read::Copy { generation: self.generation, index }, 0);
        }
    }

    /// The consolidation under way, if it is this one.
    fn copying(&mut self, generation: u64) -> Option<&mut Copying> {
        self.copying.as_mut().filter(|_| generation == self.generation)
    }

    /// A line of the shadow page was read: it goes home, unless the consolidation was stopped.
    pub(super) fn line_read(
        &mut self,
        port: &mut Port<'_>,
        generation: u64,
        index: u64,
        content: &LineData,
    ) {
        let is_awaited = self.rules.copies_are_awaited();
        let Some(copying) = self.copying(generation) else { return };
        copying.reads -= 1;
        copying.writes += u32::from(is_awaited);
        let slot = copying.slot;
        let home = self.pages.get(slot).home_line(index);
        port.emit(Event::LineCopied);
        let about = is_awaited.then_some(Write::Copied { generation });
        let write = request::Write::line(WriteClass::Gc, home, *content);
        port.write_maybe_reported(write, about, 0);
        self.copied(port);
    }

    /// A line is durable at home.
    pub(super) fn line_home(&mut self, port: &mut Port<'_>, generation: u64) {
        let Some(copying) = self.copying(generation) else { return };
        copying.writes -= 1;
        self.copied(port);
    }

    /// When all lines are home, the record that says so can be sent.
    fn copied(&mut self, port: &mut Port<'_>) {
        self.copy_lines(port);
        let Some(Copying { slot, left: 0, reads: 0, writes: 0 }) = self.copying else { return };
        if !self.rules.consolidation_is_recorded() {
            self.copying = None;
            self.release_page(port, slot);
            return self.consolidate_next(port);
        }
        self.journal.wait(Of::Consolidation(slot));
        self.send_records(port);
    }

    /// The record is being sent: from now on everything counts as committed at home. Returns its place in the
    /// order of writes, for which writes to the shadow page wait.
    pub(super) fn consolidation_recorded(&mut self, port: &mut Port<'_>, slot: Slot) -> WriteOrder {
        let order = port.order();
        let page = self.pages.get_mut(slot);
        (page.committed, page.current, page.consolidating) = (0, 0, order);
        self.copying = None;
        order
    }

    /// The record is durable: the shadow page is free, unless the page has been stored to again.
    pub(super) fn consolidated(&mut self, port: &mut Port<'_>, slot: Slot) {
        port.emit(Event::Consolidated);
        if self.rules.page_free_when_recorded() {
            let page = self.pages.get_mut(slot);
            (page.durable, page.pending, page.consolidating) = (0, false, WriteOrder::NONE);
            if page.is_quiet() && page.committed == 0 {
                self.release_page(port, slot);
            }
        }
        self.consolidate_next(port);
    }

    /// A shadow page is free; stores that wait for one are tried again.
    pub(super) fn release_page(&mut self, port: &mut Port<'_>, slot: Slot) {
        port.emit(Event::PageFree { slot });
        self.shoot_down(port, slot, None);
        self.pages.free(slot);
        for thread in std::mem::take(&mut self.waiting) {
            let cycles = port.now() - self.threads[thread as usize].waits_since;
            port.emit(Event::StoreWaited { cycles });
            port.release(thread);
        }
    }

    /// The page is written to: what has been read of it may be old when it comes home. Returns whether it was being
    /// consolidated.
    pub(super) fn stop_consolidation(&mut self, port: &mut Port<'_>, slot: Slot) -> bool {
        if self.copying.is_none_or(|c| c.slot != slot) {
            return false;
        }
        port.emit(Event::ConsolidationStopped);
        if !self.rules.stores_stop_consolidation() {
            return false;
        }
        self.journal.give_up(Of::Consolidation(slot));
        self.copying = None;
        self.generation += 1;
        true
    }

    /// No shadow page is free: the store is tried again when one is.
    pub(super) fn wait_for_page(&mut self, port: &mut Port<'_>, thread: ThreadId) -> Stall {
        port.emit(Event::StoreWaitsForPage);
        self.threads[thread as usize].waits_since = port.now();
        self.waiting.push(thread);
        self.consolidate_next(port);
        Stall::Retry
    }

    /// All pages have lines of open transactions, and each of these waits for another page.
    fn give_up_if_stuck(&mut self, port: &mut Port<'_>) {
        let waits = |t: usize| self.waiting.contains(&(t as ThreadId));
        let running = |(t, thread): (usize, &Thread)| thread.in_transaction && !waits(t);
        let others = self.threads.iter().enumerate().any(running);
        if self.waiting.is_empty() || others || self.journal.will_change_pages() {
            return;
        }
        port.fail(format!(
            "all osp.shadow_pages = {} have lines of open transactions, which wait for more",
            self.config.shadow_pages
        ));
    }
}
