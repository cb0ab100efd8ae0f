//! Lines that leave the caches go to their current places, and lines that are missed are read from there.

use super::event::Event;
use super::layout::Physical;
use super::protocol::{Osp, Port, Read, Write};
use graven_base::memory::{LineAddr, LineData};
use graven_base::time::Cycle;
use graven_machine::design::{Fill, Writeback, WritebackAction};
use graven_machine::request::{self, WriteClass, WriteOrder};

impl Osp {
    /// A dirty line leaves the caches for its current place, when that is not needed for what is committed any more.
    /// The commit of its words waits for it.
    pub(super) fn evict(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        content: &LineData,
    ) -> WritebackAction<Write> {
        let Some(slot) = self.pages.slot_of(line) else {
            return WritebackAction::Send(Writeback::FREE);
        };
        let was_stopped = self.stop_consolidation(port, slot);
        let in_shadow = if self.rules.evicted_beside_committed() {
            self.pages.is_current_in_shadow(slot, line)
        } else {
            self.pages.is_committed_in_shadow(slot, line)
        };
        let place = self.pages.place(slot, line, in_shadow);
        let barrier = self.barrier(line, slot);
        let (held, to_shadow) = (!barrier.is_none(), in_shadow.then_some(slot));
        let uncommitted = self.threads.iter().any(|thread| thread.writes.find(line).is_some());
        if uncommitted {
            self.leaving.add(place);
        }
        port.emit(Event::Evicted { line, to_shadow, held, uncommitted });
        let after = if self.rules.eviction_follows_record() { barrier } else { WriteOrder::NONE };
        let report = uncommitted.then_some(Write::Leaving { place });
        let action = if in_shadow {
            let write = request::Write::line(WriteClass::Data, place, *content).after(after);
            port.write_maybe_reported(write, report, 0);
            WritebackAction::Absorb
        } else {
            WritebackAction::Send(Writeback { report, ..Writeback::after(after) })
        };
        if was_stopped {
            // No transaction did, whose commit would have the page's turn come again: the line was stored to outside.
            self.queue_page(slot);
            self.consolidate_next(port);
        }
        action
    }

    /// A line that is missed is read from its current place.
    pub(super) fn miss(&mut self, port: &mut Port<'_>, line: LineAddr, delay: Cycle) -> Fill {
        let Some(slot) = self.pages.slot_of(line) else { return Fill::Home };
        let in_shadow = self.pages.is_current_in_shadow(slot, line);
        // A line that is at home and has no uncommitted words stays there while it is read.
        if !in_shadow && self.pages.get(slot).open == 0 {
            return Fill::Home;
        }
        if in_shadow {
            port.emit(Event::ReadFromShadow);
        }
        let place = self.pages.place(slot, line, in_shadow);
        port.read_for_miss(place, Read::Missed { line }, delay);
        Fill::Design
    }

    /// A missed line was read from a place. If that is not its current one any more, it is read again.
    pub(super) fn missed_read(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        place: Physical,
        content: &LineData,
    ) {
        let current = self.pages.current_place(line);
        if current == place {
            return port.deliver(line, *content, 0);
        }
        port.emit(Event::ReadAgain);
        port.read_for_miss(current, Read::Missed { line }, 0);
    }
}
