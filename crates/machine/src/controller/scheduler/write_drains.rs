//! First-ready, first-come-first-served with two queues, of which one is served at a time (NVMain's FRFCFS-WQF).
//!
//! Until the write queue is as full as its high watermark only reads are issued; from there down to the low watermark only
//! writes are, and no write is accepted. Where the write queue does not survive a power failure, writes are durable
//! only when they have left it: then they also go while no read is waiting, for what waits for them would wait for ever.
//! So do those that are left at the end of a run.

use graven_base::time::{Cycle, NEVER};

use super::{Choice, Kept, Policy, View};
use crate::controller::adversary::Adversary;

/// The policy.
pub struct WriteDrains;

#[inline]
fn writes_may_go(kept: &Kept, view: &View<'_>) -> bool {
    kept.drain.is_active() || (view.reads.is_empty() && (kept.ends || !view.adr))
}

impl Policy for WriteDrains {
    const REFUSES_WHILE_DRAINING: bool = true;

    #[inline(always)]
    fn choose(
        kept: &mut Kept,
        view: &mut View<'_>,
        adversary: &mut Option<Adversary>,
    ) -> Option<Choice> {
        kept.drain.update(view.writes.len());
        if let Some(overdue) = view.overdue(writes_may_go(kept, view) || !view.adr) {
            return Some(overdue);
        }
        if writes_may_go(kept, view) {
            view.first_ready_write(adversary).map(Choice::write)
        } else {
            view.first_ready_read().map(Choice::read)
        }
    }

    #[inline]
    fn next_at(kept: &Kept, view: &View<'_>) -> Cycle {
        if !writes_may_go(kept, view) {
            let read = view.next_read_at();
            return if view.adr { read } else { read.min(view.next_overdue_write_at()) };
        }
        let write = if view.writes.is_empty() { NEVER } else { view.next_write_at() };
        write.min(view.next_overdue_read_at())
    }
}
