//! Threads that wait for room: in their OOP data buffer, in the mapping table, in the region.

use super::collect::Reason;
use super::event::Event;
use super::packing::Phase;
use super::protocol::{Controller, Hoop, Port};
use graven_base::ids::ThreadId;
use graven_base::time::Cycle;
use graven_machine::design::Stall;

/// Who waits for what.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Threads that wait until a slice of theirs is durable.
    for_slices: Vec<usize>,
    /// Threads that wait for a collection of a controller's region.
    for_collection: Vec<Waiter>,
}

/// A thread that waits for a collection.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    thread: usize,
    controller: usize,
    reason: Reason,
    since: Cycle,
}

impl Waiting {
    /// The thread's buffer has no room.
    pub fn for_slices(&mut self, thread: usize) -> Stall {
        self.for_slices.push(thread);
        Stall::Retry
    }

    /// A slice of a thread's is durable.
    pub fn slice_durable(&mut self, port: &mut Port<'_>, thread: usize) {
        if let Some(at) = self.for_slices.iter().position(|&t| t == thread) {
            self.for_slices.remove(at);
            port.release(thread as ThreadId);
        }
    }

    /// There is room for these again, perhaps.
    fn release(&mut self, port: &mut Port<'_>, which: impl Fn(&Waiter) -> bool) {
        let now = port.now();
        self.for_collection.retain(|waiter| {
            let goes_on = which(waiter);
            if goes_on {
                port.emit(Event::WaitedForCollection { cycles: now - waiter.since });
                port.release(waiter.thread as ThreadId);
            }
            !goes_on
        });
    }
}

impl Hoop {
    /// Makes a thread wait until a collection has made room.
    pub(super) fn wait_for_collection(
        &mut self,
        port: &mut Port<'_>,
        controller: usize,
        thread: usize,
        reason: Reason,
    ) -> Stall {
        let since = port.now();
        self.waiting.for_collection.push(Waiter { thread, controller, reason, since });
        self.collect_on_demand(port, controller, reason);
        Stall::Retry
    }

    /// Begins a collection for those who wait, if there is anything to collect; gives up if nothing that is
    /// under way can change that.
    fn collect_on_demand(&mut self, port: &mut Port<'_>, controller: usize, reason: Reason) {
        let Controller { region, collection, .. } = &mut self.controllers[controller];
        if collection.is_some() || region.is_freeing() {
            return;
        }
        if reason == Reason::MappingFull
            && region.collectable().is_empty()
            && region.close_early(port)
        {
            port.emit(Event::ClosedEarly);
        }
        if !self.collect(port, controller, reason) {
            self.give_up_if_stuck(port, reason);
        }
    }

    /// Nothing can be collected. If all open transactions wait, and nothing is under way, that stays so.
    fn give_up_if_stuck(&self, port: &mut Port<'_>, reason: Reason) {
        let open = self.threads.iter().filter(|t| t.phase != Phase::Outside).count();
        if self.waiting.for_collection.len() != open || self.is_collecting() {
            return;
        }
        let (what, key) = match reason {
            Reason::MappingFull => ("mapping table", "hoop.mapping_table_bytes"),
            _ => ("OOP region", "pm.log_region_bytes"),
        };
        port.fail(format!(
            "the {open} transactions under way need more of the {what} than there is, and nothing is left to collect; a larger {key} would do"
        ));
    }

    /// Returns true if collections are under way, or blocks are being freed.
    pub(super) fn is_collecting(&self) -> bool {
        self.controllers.iter().any(|c| c.collection.is_some() || c.region.is_freeing())
    }

    /// Something has become free at a controller: those who wait look again.
    pub(super) fn room_at(&mut self, port: &mut Port<'_>, controller: usize) {
        self.waiting.release(port, |w| w.controller == controller);
        self.look_after_waiting(port);
    }

    /// A collection has removed entries from a controller's mapping table: those who wait for one look again.
    pub(super) fn entries_removed(&mut self, port: &mut Port<'_>, controller: usize) {
        if !self.controllers[controller].mapping.is_full() {
            let waits = |w: &Waiter| w.controller == controller && w.reason == Reason::MappingFull;
            self.waiting.release(port, waits);
        }
    }

    /// Looks after threads that wait, once a collection has changed: there may be blocks to collect
    /// now for them, or nothing any more that could help them.
    pub(super) fn look_after_waiting(&mut self, port: &mut Port<'_>) {
        for at in 0..self.waiting.for_collection.len() {
            let Some(waiter) = self.waiting.for_collection.get(at) else { break };
            let (controller, reason) = (waiter.controller, waiter.reason);
            self.collect_on_demand(port, controller, reason);
        }
    }
}
