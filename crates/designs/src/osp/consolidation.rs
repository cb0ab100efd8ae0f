//! Page consolidation: what is committed in a shadow page is copied home, and the page is free.

use super::cover::Cover;
use super::journal::Of;
use super::layout::Slot;
use super::{About, Mutant, Osp};
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE};
use graven_machine::design::Stall;
use graven_machine::machine::Machine;
use graven_machine::request::{OrderSeq, Write, WriteClass};

/// Lines of a page have six bits of a token.
const LINE_BITS: u32 = 6;

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
    pub(super) fn consolidate_next(&mut self, m: &mut Machine) {
        while self.copying.is_none() {
            let Some(slot) = self.next_page() else { return self.give_up_if_stuck(m) };
            let page = self.pages.get(slot);
            if page.committed == 0 {
                m.cover(Cover::FreedUncopied as usize);
                self.release_page(m, slot);
                continue;
            }
            m.count().gc_passes += 1;
            m.count().gc_on_demand += u64::from(!self.waiting.is_empty());
            m.note(|| format!("shadow page {slot} is consolidated: lines {:#b}", page.committed));
            self.copying = Some(Copying { slot, left: page.committed, reads: 0, writes: 0 });
            self.generation += 1;
            self.copy_lines(m);
        }
    }

    fn next_page(&mut self) -> Option<Slot> {
        while let Some(slot) = self.queue.pop_front() {
            let Some(page) = self.pages.find(slot) else { continue };
            let wanted = page.queued && page.cores == 0 && page.is_quiet();
            self.pages.get_mut(slot).queued = false;
            if wanted {
                return Some(slot);
            }
        }
        if self.waiting.is_empty() {
            return None;
        }
        let quiet = self.pages.iter().filter(|(_, page)| page.is_quiet());
        quiet.min_by_key(|(_, page)| page.stored).map(|(slot, _)| slot)
    }

    fn copy_lines(&mut self, m: &mut Machine) {
        let Some(copying) = &mut self.copying else { return };
        while copying.left != 0 && copying.reads + copying.writes < self.config.copies_in_flight {
            let index = copying.left.trailing_zeros();
            copying.left &= copying.left - 1;
            copying.reads += 1;
            let home = LineAddr(self.pages.get(copying.slot).home.0 + u64::from(index));
            let place = self.pages.place(copying.slot, home, true);
            let number = self.generation << LINE_BITS | u64::from(index);
            m.read(place, About::Copy.number(number), 0);
        }
    }

    /// A line of the shadow page was read.
    pub(super) fn line_read(&mut self, m: &mut Machine, number: u64, content: &LineData) {
        let (generation, index) = (number >> LINE_BITS, number & ((1 << LINE_BITS) - 1));
        let Some(copying) = self.copying.as_mut().filter(|_| generation == self.generation) else {
            return;
        };
        copying.reads -= 1;
        let home = LineAddr(self.pages.get(copying.slot).home.0 + index);
        m.count().gc_words_found += WORDS_PER_LINE as u64;
        m.count().gc_words_migrated += WORDS_PER_LINE as u64;
        let mut token = About::Copied.number(generation);
        if self.mutants.has(Mutant::CopiesNotAwaited) {
            token = 0;
        } else {
            copying.writes += 1;
        }
        m.write(Write { token, ..Write::line(WriteClass::Gc, home, *content) }, 0);
        self.copied(m);
    }

    /// A line is durable at home.
    pub(super) fn line_home(&mut self, m: &mut Machine, generation: u64) {
        let Some(copying) = self.copying.as_mut().filter(|_| generation == self.generation) else {
            return;
        };
        copying.writes -= 1;
        self.copied(m);
    }

    /// When all lines are home, the record that says so can be sent.
    fn copied(&mut self, m: &mut Machine) {
        self.copy_lines(m);
        let Some(Copying { slot, left: 0, reads: 0, writes: 0 }) = self.copying else { return };
        if self.mutants.has(Mutant::ConsolidationNotRecorded) {
            self.copying = None;
            self.release_page(m, slot);
            return self.consolidate_next(m);
        }
        self.journal.wait(Of::Consolidation(slot));
        self.send_records(m);
    }

    /// The record is being sent: from now on everything counts as committed at home. Returns its place in the
    /// order of writes, for which writes to the shadow page wait.
    pub(super) fn consolidation_recorded(&mut self, m: &mut Machine, slot: Slot) -> OrderSeq {
        let order = m.order();
        let page = self.pages.get_mut(slot);
        (page.committed, page.current, page.consolidating) = (0, 0, order);
        self.copying = None;
        order
    }

    /// The record is durable: the shadow page is free, unless the page has been stored to again.
    pub(super) fn consolidated(&mut self, m: &mut Machine, slot: Slot) {
        m.cover(Cover::Consolidated as usize);
        if !self.mutants.has(Mutant::PageReusedEarly) {
            let page = self.pages.get_mut(slot);
            (page.durable, page.pending, page.consolidating) = (0, false, 0);
            if page.is_quiet() && page.committed == 0 {
                self.release_page(m, slot);
            }
        }
        self.consolidate_next(m);
    }

    /// A shadow page is free; stores that wait for one are tried again.
    pub(super) fn release_page(&mut self, m: &mut Machine, slot: Slot) {
        m.note(|| format!("shadow page {slot} is free"));
        self.shoot_down(m, slot, None);
        self.pages.free(slot);
        for thread in std::mem::take(&mut self.waiting) {
            let waited = m.now() - self.threads[thread as usize].waits_since;
            m.count().gc_stall_cycles += waited;
            m.release(thread);
        }
    }

    /// The page is written to: what has been read of it may be old when it comes home.
    pub(super) fn stop_consolidation(&mut self, m: &mut Machine, slot: Slot) {
        if self.copying.is_none_or(|c| c.slot != slot) {
            return;
        }
        m.cover(Cover::ConsolidationStopped as usize);
        if self.mutants.has(Mutant::ConsolidationGoesOn) {
            return;
        }
        self.journal.give_up(Of::Consolidation(slot));
        self.copying = None;
        self.generation += 1;
    }

    /// No shadow page is free: the store is tried again when one is.
    pub(super) fn wait_for_page(&mut self, m: &mut Machine, thread: ThreadId) -> Stall {
        m.cover(Cover::StoreWaitsForPage as usize);
        self.threads[thread as usize].waits_since = m.now();
        self.waiting.push(thread);
        self.consolidate_next(m);
        Stall::Retry
    }

    /// All pages have lines of open transactions, and each of these waits for another page.
    fn give_up_if_stuck(&mut self, m: &mut Machine) {
        let waits = |t: usize| self.waiting.contains(&(t as ThreadId));
        let running = |(t, thread): (usize, &super::Thread)| thread.in_transaction && !waits(t);
        let others = self.threads.iter().enumerate().any(running);
        if self.waiting.is_empty() || others || self.journal.will_change_pages() {
            return;
        }
        m.fail(format!(
            "all osp.shadow_pages = {} have lines of open transactions, which wait for more",
            self.config.shadow_pages
        ));
    }
}
