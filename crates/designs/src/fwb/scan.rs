//! What FWB's scans are for (§III-C, §IV-D): truncating the log.
//!
//! At the end of a scan, stores logged before the *previous* scan began are home, or their lines'
//! writes are on their way ([`crate::force_write_back`]). Once these are durable too, the head
//! may pass the records; it stops at the first record of the oldest transaction whose commit is not
//! durable. The places behind it are used again when the new head itself is durable. (Entries that a scan's
//! beginning finds in the log buffer count as younger than it. That is more careful than need be: a line that
//! leaves takes its entries out of the buffer, so no store merges into them afterwards.)

use super::{Cover, Fwb, Meaning, Mutant};
use crate::force_write_back::{Forced, Progress};
use graven_base::time::Cycle;
use graven_machine::machine::Machine;

/// A move of the head that is waiting for data, or under way itself.
#[derive(Clone, Copy, Debug)]
pub struct Truncation {
    /// The new head.
    pub head: u64,
    /// Data writes up to the end of this epoch must be durable first.
    pub after_epoch: u64,
    /// It is on its way.
    pub sent: bool,
}

impl Fwb {
    /// A scan's timer: the next step, or the beginning of a scan.
    pub(super) fn scan_timer(&mut self, m: &mut Machine) {
        if !self.scanner.is_due(m) {
            return;
        }
        if !self.scanner.is_under_way() {
            self.begin_scan(m);
        }
        let progress = self.scanner.step(m);
        let mut lines = std::mem::take(&mut self.scanner.forced);
        for forced in lines.drain(..) {
            self.force_write_back(m, forced);
        }
        self.scanner.forced = lines;
        if let Progress::Ended(at) = progress {
            self.end_scan(m, at);
        }
    }

    fn begin_scan(&mut self, m: &mut Machine) {
        let cut = self.end.next();
        if self.running.iter().any(Option::is_some) {
            m.cover(Cover::ScanWhileOpen as usize);
        }
        m.note(|| format!("scan begins; the log ends before place {cut}"));
        self.cuts = [self.cuts[1], cut];
        self.scanner.begin(m);
    }

    fn force_write_back(&mut self, m: &mut Machine, Forced { line, came_along }: Forced) {
        if came_along {
            m.cover(Cover::BitCameAlong as usize);
        }
        let after = self.order_before(m, line);
        if after != 0 {
            m.cover(Cover::ForcedLineWaits as usize);
        }
        m.note(|| match after {
            0 => format!("scan forces {line} home"),
            after => format!("scan forces {line} home, after ordered write {after}"),
        });
        let token = Meaning::Forced.token(self.data_writes.sent());
        let was_dirty = m.write_back(line, |write| {
            write.after = after;
            write.token = token;
        });
        assert!(was_dirty, "the scan has just seen it dirty");
    }

    fn end_scan(&mut self, m: &mut Machine, at: Cycle) {
        let after_epoch = self.data_writes.close();
        let cut = self.cuts[usize::from(self.mutants.has(Mutant::OneScanIsEnough))];
        let head = cut.min(self.oldest_unfinished().unwrap_or(u64::MAX));
        m.note(|| format!("scan ends; the head may move to place {head}"));
        if self.truncation.is_none() && head > self.end.head() {
            self.truncation = Some(Truncation { head, after_epoch, sent: false });
            self.try_to_truncate(m);
        }
        let waits = !self.waiting_for_space.is_empty();
        if waits {
            self.give_up_if_stuck(m);
        }
        self.scanner.schedule_next(m, at, waits);
    }

    /// Sends the new head if nothing is in its way any more.
    pub(super) fn try_to_truncate(&mut self, m: &mut Machine) {
        let Some(truncation) = &mut self.truncation else { return };
        if truncation.sent {
            return;
        }
        if !self.data_writes.all_durable(truncation.after_epoch)
            && !self.mutants.has(Mutant::HeadDoesNotWait)
        {
            m.cover(Cover::TruncationWaits as usize);
            m.note(|| format!("the head waits for data before it moves to {}", truncation.head));
            return;
        }
        truncation.sent = true;
        let head = truncation.head;
        if self.mutants.has(Mutant::SlotsFreeEarly) {
            self.free_before(m, head);
        }
        m.note(|| format!("the head, {head}, is sent"));
        m.write(self.end.head_write(head), m.bypass_cycles());
    }

    /// The new head is durable: the places before it are free.
    pub(super) fn head_durable(&mut self, m: &mut Machine) {
        let truncation = self.truncation.take().expect("a head was on its way");
        m.cover(Cover::HeadMoved as usize);
        m.note(|| format!("the head has moved to place {}", truncation.head));
        self.free_before(m, truncation.head);
        self.truncate_behind_clwbs(m);
    }

    fn free_before(&mut self, m: &mut Machine, head: u64) {
        self.end.free_before(m, head);
        self.release_waiting_for_space(m);
    }
}
