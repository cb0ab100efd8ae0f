//! The asynchronous cache scan: lines of an epoch that has ended go home while threads run on.
//!
//! A scan visits all tags, a set per cycle, inner levels before the LLC. Changes move outwards only, so it meets every line that was
//! dirty when it began, unless the line has left the caches or has been stored to since: then its old content has an undo entry. At
//! its end the undo buffer goes to the log for these. When the lines of its epochs and the log are durable, the scan writes the
//! number of the persisted epoch.

use graven::request::{self, WriteClass, WriteOrder};

use super::Mutant;
use super::event::{Cause, Event};
use super::protocol::{Picl, Port, Timer, Write};

/// Sets that are visited in one go.
const SETS_PER_STEP: usize = 64;

/// Progress of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scan {
    /// None is under way.
    None,
    /// It visits tags: the next step begins with this slot of this cache.
    Visits { epoch: u64, cache: usize, slot: usize },
    /// It has visited all tags, and waits for lines on their way home, and for the log up to here.
    Waits { epoch: u64, log: WriteOrder },
    /// The number of the persisted epoch is on its way.
    Records { epoch: u64 },
}

impl Picl {
    /// Begins the scan that is due, unless one is under way.
    pub(super) fn start_scan(&mut self, port: &mut Port<'_>) {
        if let (Scan::None, Some(epoch)) = (self.scan, self.epochs.due()) {
            port.emit(Event::ScanBegins { epoch });
            let inside_out = !self.mutants.has(Mutant::ScanFromOutside);
            let first = if inside_out { 0 } else { port.cache_count() - 1 };
            self.scan = Scan::Visits { epoch, cache: first, slot: 0 };
            port.set_timer(port.now() + 1, Timer::Scan);
        }
    }

    /// Visits some sets.
    pub(super) fn step_scan(&mut self, port: &mut Port<'_>) {
        let Scan::Visits { epoch, cache, slot } = self.scan else {
            unreachable!("a scan that visits has the timer set")
        };
        if port.has_full_write_queue() || self.scanned_under_way >= self.scanned_under_way_max {
            port.emit(Event::ScanPauses);
            return port.set_timer(port.now() + SETS_PER_STEP as u64, Timer::Scan);
        }
        let (slots, ways) = (port.cache(cache).slots(), port.cache(cache).ways());
        let end = slots.min((slot / ways + SETS_PER_STEP) * ways);
        let next = self.visit(port, epoch, cache, slot..end);
        let sets = (next - slot).div_ceil(ways).max(1);
        if next < slots {
            self.scan = Scan::Visits { epoch, cache, slot: next };
        } else if let Some(cache) = self.cache_after(cache, port.cache_count()) {
            self.scan = Scan::Visits { epoch, cache, slot: 0 };
        } else {
            return self.end_visits(port, epoch);
        }
        port.set_timer(port.now() + sets as u64, Timer::Scan);
    }

    fn cache_after(&self, cache: usize, caches: usize) -> Option<usize> {
        if self.mutants.has(Mutant::ScanFromOutside) {
            return cache.checked_sub(1);
        }
        (cache + 1 < caches).then_some(cache + 1)
    }

    /// Writes the dirty lines of the epochs in these slots of a cache home. Returns the slot that the next step begins with.
    fn visit(
        &mut self,
        port: &mut Port<'_>,
        epoch: u64,
        cache: usize,
        slots: std::ops::Range<usize>,
    ) -> usize {
        let end = slots.end;
        let dirty: Vec<_> = port.cache(cache).dirty_in(slots).collect();
        for (slot, line) in dirty {
            let of = self.epochs.of_tag(port.tag(line).unwrap_or_default());
            if !port.is_pm(line.addr())
                || of > epoch
                || self.mutants.has(Mutant::ScanWritesNothing)
                || self.mutants.has(Mutant::ScanSkipsPrivateCaches)
                    && cache + 1 < port.cache_count()
            {
                continue;
            }
            if self.scanned_under_way >= self.scanned_under_way_max {
                return slot;
            }
            let unordered = self.mutants.has(Mutant::ScanUnordered);
            let after = if unordered { WriteOrder::NONE } else { self.before_home(port, line) };
            if port.write_back(line, after, Some(Write::Home { epoch: of, scanned: true })) {
                self.epochs.line_leaves(of);
                self.scanned_under_way += 1;
                port.emit(Event::ScanWrites { line, epoch: of });
            }
        }
        end
    }

    fn end_visits(&mut self, port: &mut Port<'_>, epoch: u64) {
        port.emit(Event::ScanEnds);
        if self.buffer.len() > 0 && !self.mutants.has(Mutant::ScanLeavesTheBuffer) {
            self.burst(port, Cause::Scan);
        }
        self.scan = Scan::Waits { epoch, log: self.log_end };
        self.go_on_with_scan(port);
    }

    /// Something is durable that a scan may wait for.
    pub(super) fn go_on_with_scan(&mut self, port: &mut Port<'_>) {
        let Scan::Waits { epoch, log } = self.scan else { return };
        let are_home = self.epochs.are_home(epoch) || self.mutants.has(Mutant::HomesNotAwaited);
        let is_logged = port.is_durable(log) || self.mutants.has(Mutant::LogNotAwaited);
        if !are_home || !is_logged {
            return;
        }
        let epoch = epoch + u64::from(self.mutants.has(Mutant::ScanOneTooFar));
        self.scan = Scan::Records { epoch };
        if self.mutants.has(Mutant::FreedBeforePersisted) {
            self.free_superblocks(port, epoch);
        }
        let write = request::Write::words(WriteClass::Log, self.layout.persisted, &[epoch]);
        port.write_reported(write, Write::Persisted, port.bypass_cycles());
    }

    /// The number of the persisted epoch is durable.
    pub(super) fn end_scan(&mut self, port: &mut Port<'_>) {
        let Scan::Records { epoch } = self.scan else { unreachable!("a scan has written it") };
        self.scan = Scan::None;
        port.emit(Event::Persisted { epoch, more: epoch - self.epochs.persisted() });
        self.epochs.persist(epoch);
        self.free_superblocks(port, epoch);
        for thread in std::mem::take(&mut self.waiting) {
            port.release(thread);
        }
        self.start_scan(port);
    }

    fn free_superblocks(&mut self, port: &mut Port<'_>, epoch: u64) {
        for _ in 0..self.superblocks.free_up_to(epoch) {
            port.emit(Event::Freed);
        }
    }
}
