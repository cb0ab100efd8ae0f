//! Which request a channel issues next.
//!
//! A policy is a file: it implements [`Policy`] over what it is shown ([`View`]), and has a variant of [`Scheduler`], an
//! enum so that the choice costs no indirect call. Policies share the rules that most of them are made of
//! ([`View::first_ready_read`], [`View::first_ready_write`]).

mod fr_fcfs;
mod view;

pub use fr_fcfs::FrFcfs;
pub use view::View;

use graven_base::time::Cycle;

use crate::controller::adversary::Adversary;

/// A request, by its place in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A read.
    Read(usize),
    /// A write.
    Write(usize),
}

/// A rule of scheduling.
pub trait Policy {
    /// The request that is issued now, if any can be. Called once per burst time at most.
    fn choose(&mut self, view: &View<'_>, adversary: &mut Option<Adversary>) -> Option<Choice>;

    /// The next cycle at which the policy could choose something, as far as banks and queues determine it;
    /// [`NEVER`](graven_base::time::NEVER) if something must arrive or finish first.
    fn next_at(&self, view: &View<'_>) -> Cycle;
}

/// The policies there are.
#[derive(Debug)]
pub enum Scheduler {
    /// See [`FrFcfs`].
    FrFcfs(FrFcfs),
}

impl Scheduler {
    /// See [`Policy::choose`].
    #[inline]
    pub fn choose(&mut self, view: &View<'_>, adversary: &mut Option<Adversary>) -> Option<Choice> {
        match self {
            Scheduler::FrFcfs(policy) => policy.choose(view, adversary),
        }
    }

    /// See [`Policy::next_at`].
    #[inline]
    pub fn next_at(&self, view: &View<'_>) -> Cycle {
        match self {
            Scheduler::FrFcfs(policy) => policy.next_at(view),
        }
    }

    /// How often draining of the write queue began.
    pub fn drains(&self) -> u64 {
        match self {
            Scheduler::FrFcfs(policy) => policy.drains(),
        }
    }
}
