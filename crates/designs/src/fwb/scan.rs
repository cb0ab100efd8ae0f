//! Truncation of the log by scans (§III-C, §IV-D).
//!
//! At the end of a scan, stores logged before the *previous* scan began are home, or their lines'
//! writes are on their way ([`crate::force_write_back`]). Once these are durable too, the head
//! may pass the records; it stops at the first record of the oldest transaction whose commit is not
//! durable. The places behind it are used again when the new head itself is durable. (Entries that a scan's
//! beginning finds in the log buffer count as younger than it. That is more careful than need be: a line that
//! leaves takes its entries out of the buffer, so no store merges into them afterwards.)

use graven_base::time::Cycle;
use graven_machine::request::{Write as Request, WriteClass};

use super::event::Event;
use super::protocol::{Fwb, Port, Write};
use crate::force_write_back::{Epoch, Forced, Progress};

/// A move of the head that is waiting for data, or under way itself.
#[derive(Clone, Copy, Debug)]
pub struct Truncation {
    /// The new head.
    pub head: u64,
    /// Data writes up to the end of this epoch must be durable first.
    pub after_epoch: Epoch,
    /// The write of the new head is on its way.
    pub sent: bool,
}

impl Fwb {
    // ---- scans (§III-C, §IV-D) -----------------------------------------------------------------

    /// A scan's timer: the next step, or the beginning of a scan.
    pub fn scan_timer(&mut self, port: &mut Port<'_>) {
        if !self.scanner.is_due(port) {
            return;
        }
        if !self.scanner.is_under_way() {
            self.begin_scan(port);
        }
        let progress = self.scanner.step(port);
        while let Some(forced) = self.scanner.forced.pop_front() {
            self.force_write_back(port, forced);
        }
        if let Progress::Ended(at) = progress {
            self.end_scan(port, at);
        }
    }

    fn begin_scan(&mut self, port: &mut Port<'_>) {
        let cut = self.end.next();
        let while_open = self.running.iter().any(Option::is_some);
        port.emit(Event::ScanBegins { cut, while_open });
        self.cuts = [self.cuts[1], cut];
        self.scanner.begin(port);
    }

    /// A line that two scans have found dirty is written back, behind the records of its stores.
    fn force_write_back(&mut self, port: &mut Port<'_>, Forced { line, came_along }: Forced) {
        let after = self.order_before(port, line);
        port.emit(Event::ForcedHome { line, after, came_along });
        let about = Write::Forced(self.data_writes.sent());
        let was_dirty = port.write_back(line, after, Some(about));
        assert!(was_dirty, "the scan has just seen it dirty");
    }

    /// The head may pass what was logged before the previous scan began.
    fn end_scan(&mut self, port: &mut Port<'_>, at: Cycle) {
        let after_epoch = self.data_writes.close();
        let cut = self.cuts[usize::from(!self.rules.two_scans_are_needed())];
        let head = cut.min(self.oldest_unfinished().unwrap_or(u64::MAX));
        port.emit(Event::ScanEnds { head });
        if self.truncation.is_none() && head > self.end.head() {
            self.truncate(port, head, after_epoch);
        }
        let waits = !self.waiting_for_space.is_empty();
        if waits {
            self.give_up_if_stuck(port);
        }
        self.scanner.schedule_next(port, at, waits);
    }

    // ---- truncation ----------------------------------------------------------------------------

    /// Moves the head, once data writes up to the end of an epoch are durable.
    pub fn truncate(&mut self, port: &mut Port<'_>, head: u64, after_epoch: Epoch) {
        self.truncation = Some(Truncation { head, after_epoch, sent: false });
        self.try_to_truncate(port);
    }

    /// Sends the new head if nothing is in its way any more.
    pub fn try_to_truncate(&mut self, port: &mut Port<'_>) {
        let Some(truncation) = &mut self.truncation else { return };
        if truncation.sent {
            return;
        }
        let head = truncation.head;
        if self.rules.head_waits_for_data() && !self.data_writes.all_durable(truncation.after_epoch)
        {
            port.emit(Event::HeadWaits { head });
            return;
        }
        truncation.sent = true;
        if !self.rules.slots_free_when_durable() {
            self.free_before(port, head);
        }
        port.emit(Event::HeadSent { head });
        let write = Request::words(WriteClass::Metadata, self.end.log().head(), &[head]);
        port.write_reported(write, Write::Head, port.bypass_cycles());
    }

    /// The new head is durable: the places before it are free.
    pub fn head_durable(&mut self, port: &mut Port<'_>) {
        let Truncation { head, .. } = self.truncation.take().expect("a head was on its way");
        port.emit(Event::HeadMoved { head });
        self.free_before(port, head);
        self.truncate_behind_clwbs(port);
    }

    /// Places before the new head may be written again.
    fn free_before(&mut self, port: &mut Port<'_>, head: u64) {
        self.end.free_before(port, head);
        self.release_waiting_for_space(port);
    }
}
