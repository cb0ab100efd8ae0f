//! First-ready, first-come-first-served with two queues: reads first, writes in batches.
//!
//! Among the requests whose bank is free, one that finds its row open goes first, then the oldest. Reads go before
//! writes, except while the write queue drains: from the high watermark down to the low one. With no read waiting,
//! writes go whenever they can.

use graven_base::time::Cycle;

use super::{Choice, Kept, Policy, View};
use crate::controller::adversary::Adversary;

/// The policy.
pub struct ReadsFirst;

impl Policy for ReadsFirst {
    #[inline(always)]
    fn choose(
        kept: &mut Kept,
        view: &mut View<'_>,
        adversary: &mut Option<Adversary>,
    ) -> Option<Choice> {
        kept.drain.update(view.writes.len());
        if let Some(overdue) = view.overdue(kept.drain.is_active() || !view.adr) {
            return Some(overdue);
        }
        let read = |view: &mut View<'_>| view.first_ready_read().map(Choice::read);
        if kept.drain.is_active() {
            let write = view.first_ready_write(adversary).map(Choice::write);
            return write.or_else(|| read(view));
        }
        if view.reads.is_empty() {
            return view.first_ready_write(adversary).map(Choice::write);
        }
        read(view)
    }

    #[inline]
    fn next_at(kept: &Kept, view: &View<'_>) -> Cycle {
        let read = view.next_read_at();
        if !(view.reads.is_empty() || kept.drain.is_active()) || view.writes.is_empty() {
            return if view.adr { read } else { read.min(view.next_overdue_write_at()) };
        }
        read.min(view.next_write_at())
    }
}
