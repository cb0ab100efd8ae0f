//! First-ready, first-come-first-served with one queue for reads and writes (NVMain's FRFCFS).
//!
//! Among the requests whose bank is free, one that finds its row open goes first, then the oldest in the order of arrival,
//! reads and writes alike. The queue has as many entries as the write queue otherwise (`controller.write_queue_entries`), and nothing is
//! accepted while it is full.

use graven_base::time::{Cycle, NEVER};

use super::{Choice, Kept, Policy, View};
use crate::controller::adversary::Adversary;

/// The policy, which keeps nothing.
pub struct OneQueue;

impl Policy for OneQueue {
    const HAS_ONE_QUEUE: bool = true;

    #[inline(always)]
    fn choose(
        _: &mut Kept,
        view: &mut View<'_>,
        adversary: &mut Option<Adversary>,
    ) -> Option<Choice> {
        if let Some(overdue) = view.overdue(true) {
            return Some(overdue);
        }
        let read = view.first_ready_read();
        let write = view.first_ready_write(adversary);
        let (read, write) = match (read, write) {
            (Some(read), Some(write)) => (read, write),
            (read, write) => return read.map(Choice::read).or(write.map(Choice::write)),
        };
        let read_first = view.rank_of_read(read) < view.rank_of_write(write);
        Some(if read_first { Choice::read(read) } else { Choice::write(write) })
    }

    #[inline]
    fn next_at(_: &Kept, view: &View<'_>) -> Cycle {
        let write = if view.writes.is_empty() { NEVER } else { view.next_write_at() };
        if write <= view.now { write } else { write.min(view.next_read_at()) }
    }
}
