//! Which request a channel issues next.
//!
//! A policy is a file: it implements [`Policy`] over what it is shown ([`View`]), and has a variant of [`Scheduler`], an
//! enum so that the choice costs no indirect call. Policies share the rules that most of them are made of
//! ([`View::first_ready_read`], [`View::first_ready_write`], [`Drain`]).

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

/// A rule of scheduling.
pub trait Policy {
    /// The request that is issued now, if any can be. Called once per burst time at most.
    fn choose(&mut self, view: &mut View<'_>, adversary: &mut Option<Adversary>) -> Option<Choice>;

    /// The next cycle at which the policy could choose something, as far as banks and queues determine it;
    /// [`NEVER`](graven_base::time::NEVER) if something must arrive or finish first.
    fn next_at(&self, view: &View<'_>) -> Cycle;

    /// How often draining of the write queue began.
    fn drains(&self) -> u64;

    /// Whether reads and writes share the places of one queue, and take them in the order of their arrival.
    fn has_one_queue(&self) -> bool {
        false
    }

    /// Whether writes are accepted now, if there is room.
    fn accepts_writes(&self) -> bool {
        true
    }

    /// A request has been issued, and so many writes are queued now.
    fn issued(&mut self, _writes: usize) {}

    /// The programs have ended: nothing may stay in the queues.
    fn end(&mut self) {}
}

/// The policies there are.
#[derive(Debug)]
pub enum Scheduler {
    /// See [`ReadsFirst`].
    ReadsFirst(ReadsFirst),
    /// See [`OneQueue`].
    OneQueue(OneQueue),
    /// See [`WriteDrains`].
    WriteDrains(WriteDrains),
}

/// What any of the policies does.
macro_rules! of_policy {
    ($scheduler:expr, $policy:ident => $what:expr) => {
        match $scheduler {
            Scheduler::ReadsFirst($policy) => $what,
            Scheduler::OneQueue($policy) => $what,
            Scheduler::WriteDrains($policy) => $what,
        }
    };
}

impl Scheduler {
    /// The configured policy.
    pub fn new(kind: SchedulerKind, drain: Drain) -> Scheduler {
        match kind {
            SchedulerKind::ReadsFirst => Scheduler::ReadsFirst(ReadsFirst::new(drain)),
            SchedulerKind::FrFcfs => Scheduler::OneQueue(OneQueue),
            SchedulerKind::FrFcfsWqf => Scheduler::WriteDrains(WriteDrains::new(drain)),
        }
    }

    /// See [`Policy::choose`].
    #[inline]
    pub fn choose(
        &mut self,
        view: &mut View<'_>,
        adversary: &mut Option<Adversary>,
    ) -> Option<Choice> {
        of_policy!(self, policy => policy.choose(view, adversary))
    }

    /// See [`Policy::next_at`].
    #[inline]
    pub fn next_at(&self, view: &View<'_>) -> Cycle {
        of_policy!(self, policy => policy.next_at(view))
    }

    /// See [`Policy::drains`].
    pub fn drains(&self) -> u64 {
        of_policy!(self, policy => policy.drains())
    }

    /// See [`Policy::has_one_queue`].
    #[inline]
    pub fn has_one_queue(&self) -> bool {
        of_policy!(self, policy => policy.has_one_queue())
    }

    /// See [`Policy::accepts_writes`].
    #[inline]
    pub fn accepts_writes(&self) -> bool {
        of_policy!(self, policy => policy.accepts_writes())
    }

    /// See [`Policy::issued`].
    #[inline]
    pub fn issued(&mut self, writes: usize) {
        of_policy!(self, policy => policy.issued(writes));
    }

    /// See [`Policy::end`].
    pub fn end(&mut self) {
        of_policy!(self, policy => policy.end());
    }
}
