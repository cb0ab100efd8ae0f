//! Choice of the request that a channel issues next.
//!
//! A policy is a file: it implements [`Policy`] over what it is shown ([`View`]), and has its case in [`of_policy`], so that
//! the choice costs no indirect call. Policies share the rules that most of them are made of
//! ([`View::first_ready_read`], [`View::first_ready_write`]), and what they keep ([`Kept`]).

mod drain;
mod one_queue;
mod reads_first;
mod view;
mod write_drains;

pub use drain::Drain;
pub use view::View;

use graven_base::time::Cycle;

use crate::config::SchedulerKind;
use crate::controller::adversary::Adversary;
use crate::controller::lists::Candidate;
use one_queue::OneQueue;
use reads_first::ReadsFirst;
use write_drains::WriteDrains;

/// A request, by its slot in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A read.
    Read(u32),
    /// A write.
    Write(u32),
}

impl Choice {
    fn read(read: Candidate) -> Choice {
        Choice::Read(read.slot)
    }

    fn write(write: Candidate) -> Choice {
        Choice::Write(write.slot)
    }
}

/// State that a policy keeps from one choice to the next.
#[derive(Debug)]
pub struct Kept {
    /// State of draining, where the policy drains the write queue.
    drain: Drain,
    /// The run has ended: what is queued goes whenever it can.
    ends: bool,
}

/// A rule of scheduling.
pub trait Policy {
    /// True if reads and writes share the places of one queue, and take them in the order of their
    /// arrival.
    const HAS_ONE_QUEUE: bool = false;

    /// True if no write is accepted while the write queue drains.
    const REFUSES_WHILE_DRAINING: bool = false;

    /// The request that is issued now, if any can be. Called once per burst time at most.
    fn choose(
        kept: &mut Kept,
        view: &mut View<'_>,
        adversary: &mut Option<Adversary>,
    ) -> Option<Choice>;

    /// The next cycle at which the policy could choose something, as far as banks and queues determine it;
    /// [`NEVER`](graven_base::time::NEVER) if something must arrive or finish first.
    fn next_at(kept: &Kept, view: &View<'_>) -> Cycle;
}

/// A policy, and what it keeps.
#[derive(Debug)]
pub struct Scheduler {
    kind: SchedulerKind,
    has_one_queue: bool,
    refuses_while_draining: bool,
    kept: Kept,
}

/// Calls a method of the policy in use.
macro_rules! of_policy {
    ($kind:expr, $policy:ident => $what:expr) => {
        match $kind {
            SchedulerKind::ReadsFirst => {
                type $policy = ReadsFirst;
                $what
            }
            SchedulerKind::FrFcfs => {
                type $policy = OneQueue;
                $what
            }
            SchedulerKind::FrFcfsWqf => {
                type $policy = WriteDrains;
                $what
            }
        }
    };
}

impl Scheduler {
    /// The configured policy.
    pub fn new(kind: SchedulerKind, drain: Drain) -> Scheduler {
        of_policy!(kind, Of => Scheduler {
            kind,
            has_one_queue: Of::HAS_ONE_QUEUE,
            refuses_while_draining: Of::REFUSES_WHILE_DRAINING,
            kept: Kept { drain, ends: false },
        })
    }

    /// See [`Policy::choose`].
    #[inline]
    pub fn choose(
        &mut self,
        view: &mut View<'_>,
        adversary: &mut Option<Adversary>,
    ) -> Option<Choice> {
        of_policy!(self.kind, Of => Of::choose(&mut self.kept, view, adversary))
    }

    /// See [`Policy::next_at`].
    #[inline]
    pub fn next_at(&self, view: &View<'_>) -> Cycle {
        of_policy!(self.kind, Of => Of::next_at(&self.kept, view))
    }

    /// Number of times that draining of the write queue began.
    #[inline]
    pub fn drains(&self) -> u64 {
        self.kept.drain.begun()
    }

    /// Returns true if reads and writes share the places of one queue, and take them in the order
    /// of their arrival.
    #[inline]
    pub fn has_one_queue(&self) -> bool {
        self.has_one_queue
    }

    /// Returns true if writes are accepted now, if there is room.
    #[inline]
    pub fn accepts_writes(&self) -> bool {
        !(self.refuses_while_draining && self.kept.drain.is_active())
    }

    /// Tells the policy that a request has been issued, which leaves `writes` queued writes: a
    /// drain during which no write is accepted may be over.
    #[inline]
    pub fn issued(&mut self, writes: usize) {
        if self.refuses_while_draining {
            self.kept.drain.update(writes);
        }
    }

    /// The programs have ended: nothing may stay in the queues.
    pub fn end(&mut self) {
        self.kept.ends = true;
    }
}
