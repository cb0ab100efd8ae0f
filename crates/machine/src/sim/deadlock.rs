//! Threads that can never proceed, and the cause.
//!
//! A program is at fault if some of its threads wait for locks and signals that only threads among
//! them could release and give, or threads that have ended: they wait for ever, whatever design and
//! memory do. In every other case a wake-up was lost: by a design that holds the thread with the
//! lock, or by a machine that has lost a message.

use std::fmt;

use super::disturb::Signals;
use super::error::SimError;
use super::locks::Locks;
use super::run::Simulation;
use super::threads::{Cause, Head, State, Thread};
use crate::program::{Disturbance, LockId, Op};
use graven_base::ids::ThreadId;
use graven_base::time::Cycle;

/// The threads of a program that wait for each other for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramDeadlock {
    /// Waits of the threads.
    pub waits: Vec<Wait>,
}

/// A thread, and what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread.
    pub thread: ThreadId,
    /// The step at which it waits, of a program that numbers its steps ([`Program::step`](crate::program::Program::step)).
    pub step: Option<usize>,
    /// Number of transactions it has begun.
    pub transactions: u64,
    /// Since when it waits.
    pub since: Cycle,
    /// Event that it waits for.
    pub awaited: Awaited,
}

/// Event of another thread of the program that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// To release a lock.
    Lock {
        /// The lock.
        lock: LockId,
        /// The thread that has it.
        holder: ThreadId,
        /// The holder has ended and keeps it.
        has_ended: bool,
    },
    /// To give a signal.
    Signal(u32),
}

impl ProgramDeadlock {
    /// The waits in a circle, each for a lock that the next has, if there is one: others only wait for these.
    fn circle(&self) -> Option<Vec<Wait>> {
        let of = |thread: ThreadId| self.waits.iter().find(|wait| wait.thread == thread);
        let mut path: Vec<Wait> = vec![*self.waits.first()?];
        loop {
            let Awaited::Lock { holder, .. } = path.last()?.awaited else { return None };
            if let Some(first) = path.iter().position(|wait| wait.thread == holder) {
                return Some(path.split_off(first));
            }
            path.push(*of(holder)?);
        }
    }
}

impl fmt::Display for ProgramDeadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = self.circle().unwrap_or_else(|| self.waits.clone());
        for (nth, wait) in waits.iter().enumerate() {
            let Wait { thread, transactions, since, awaited, .. } = wait;
            let separator = if nth == 0 { "" } else { "; " };
            write!(f, "{separator}thread {thread} ({transactions} transactions begun) has waited")?;
            write!(f, " since cycle {since} for ")?;
            match awaited {
                Awaited::Lock { lock, holder, has_ended: false } => {
                    write!(f, "lock {lock}, which thread {holder} holds")?;
                }
                Awaited::Lock { lock, holder, has_ended: true } => {
                    write!(f, "lock {lock}, which thread {holder} has ended with")?;
                }
                Awaited::Signal(signal) => write!(f, "signal {signal}, which nobody can give")?,
            }
        }
        Ok(())
    }
}

impl Thread {
    /// Event of another thread of the program that it waits for, if nothing else keeps it.
    fn awaited(&self, locks: &Locks, signals: &Signals) -> Option<Awaited> {
        let State::Blocked(Cause::Lock, _) = self.state else { return None };
        match self.op? {
            Op::Lock { lock } => {
                // Without a holder, or as the holder, it waits for the lock's line.
                let holder = locks.holder_before(lock, self.id)?;
                Some(Awaited::Lock { lock, holder, has_ended: false })
            }
            Op::Disturb(Disturbance::Await(signal)) if !signals.is_given(signal) => {
                Some(Awaited::Signal(signal))
            }
            _ => None,
        }
    }

    /// Describes its wait.
    fn waiting(&self) -> String {
        let awaited = match (self.state, self.head) {
            (State::Ready, _) => return format!("thread {} can go on", self.id),
            (State::Finished, _) => return format!("thread {} has ended", self.id),
            (_, Head::HeldAfter | Head::HeldBefore) => "the design, which holds a store",
            (_, Head::Fence) => "its fence, before which something is not durable",
            (_, Head::Fill) => "the line of a store",
            (_, Head::Mshr) | (State::Blocked(Cause::Mshr, _), _) => "a miss register",
            (State::Blocked(Cause::Load, _), _) => "the data of a load",
            (State::Blocked(Cause::Store, _), _) => "its store queue",
            (State::Blocked(Cause::Window, _), _) => "room in its reorder buffer",
            (State::Blocked(Cause::Commit, _), _) => "the design, which has not let it commit",
            (State::Blocked(Cause::Log, _), _) => {
                "the design, which holds it at a store or the beginning of a transaction"
            }
            (State::Blocked(Cause::Lock, _), _) => return self.waiting_for_others(),
            (State::Blocked(Cause::Fence, _), _) => "a fence",
        };
        format!("thread {} waits for {awaited}{}", self.id, self.since())
    }

    /// The same where it is a lock or a signal.
    fn waiting_for_others(&self) -> String {
        let awaited = match self.op {
            Some(Op::Lock { lock }) => format!("lock {lock}"),
            Some(Op::Disturb(Disturbance::Await(signal))) => format!("signal {signal}"),
            _ => "the line of a lock".into(),
        };
        format!("thread {} waits for {awaited}{}", self.id, self.since())
    }

    fn since(&self) -> String {
        match self.state {
            State::Blocked(_, since) => format!(" since cycle {since}"),
            State::Ready | State::Finished => String::new(),
        }
    }
}

/// Keeps of threads that wait for others those that do so for ever: a thread that waits for one
/// that may proceed may proceed, too.
fn wait_for_ever(mut stuck: Vec<Option<Awaited>>, has_ended: &[bool]) -> Vec<Option<Awaited>> {
    loop {
        let all = stuck.iter().zip(has_ended).all(|(stuck, ended)| stuck.is_some() || *ended);
        let may_go_on = stuck.iter().position(|awaited| match awaited {
            None => false,
            // Any thread may be the one that gives it.
            Some(Awaited::Signal(_)) => !all,
            Some(Awaited::Lock { holder, .. }) => {
                let holder = *holder as usize;
                stuck[holder].is_none() && !has_ended[holder]
            }
        });
        match may_go_on {
            Some(thread) => stuck[thread] = None,
            None => break,
        }
    }
    for awaited in stuck.iter_mut().flatten() {
        if let Awaited::Lock { holder, has_ended: ended, .. } = awaited {
            *ended = has_ended[*holder as usize];
        }
    }
    stuck
}

impl Simulation {
    /// The threads that wait for each other for ever by the program alone, if there are some.
    pub fn program_deadlock(&self) -> Option<ProgramDeadlock> {
        let awaited = |t: &Thread| t.awaited(&self.locks, &self.signals);
        let has_ended: Vec<bool> =
            self.threads.iter().map(|t| t.state == State::Finished).collect();
        let stuck = wait_for_ever(self.threads.iter().map(awaited).collect(), &has_ended);
        let waits = self.threads.iter().zip(stuck).filter_map(|(t, awaited)| {
            let (awaited, State::Blocked(_, since)) = (awaited?, t.state) else { return None };
            let (thread, transactions) = (t.id, t.transactions);
            Some(Wait { thread, step: t.program.step(), transactions, since, awaited })
        });
        let waits: Vec<Wait> = waits.collect();
        (!waits.is_empty()).then_some(ProgramDeadlock { waits })
    }

    /// The error that no thread can ever run again.
    pub(super) fn deadlock(&self) -> SimError {
        match self.program_deadlock() {
            Some(deadlock) => SimError::ProgramDeadlock(deadlock),
            None => {
                let (cycle, design) = (self.machine.now(), self.spec.design.name);
                SimError::Deadlock { cycle, design, waiting: self.waiting() }
            }
        }
    }

    /// Describes the waits of each thread and of memory.
    pub fn waiting(&self) -> String {
        let threads = self.threads.iter().map(Thread::waiting);
        let memory = &self.machine.memory;
        let memory = match memory.place_without_write() {
            Some((place, waiting)) => format!(
                "memory is at work: {waiting} writes wait for place {place} in the order of writes, which the design has asked for \
                 (Port::order) and given to no write"
            ),
            None if let Some((gate, waiting)) = memory.closed_gate() => format!(
                "memory is at work: {waiting} writes wait behind gate {}, which the design has not opened (Port::open)",
                gate.number()
            ),
            None if memory.is_idle() => "memory is idle".into(),
            None => "memory is at work".into(),
        };
        threads.chain([memory]).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(lock: LockId, holder: ThreadId) -> Option<Awaited> {
        Some(Awaited::Lock { lock, holder, has_ended: false })
    }

    fn stuck(awaited: &[Option<Awaited>], ended: &[usize]) -> Vec<usize> {
        let ended: Vec<bool> = (0..awaited.len()).map(|thread| ended.contains(&thread)).collect();
        let stuck = wait_for_ever(awaited.to_vec(), &ended);
        (0..stuck.len()).filter(|&thread| stuck[thread].is_some()).collect()
    }

    /// A design that holds the thread with the lock is not excused by those who wait for the lock.
    #[test]
    fn threads_wait_for_ever_if_nobody_else_can_wake_them() {
        let signal = Some(Awaited::Signal(7));
        assert_eq!(stuck(&[lock(0, 1), lock(1, 0)], &[]), [0, 1]);
        assert_eq!(stuck(&[lock(0, 1), None], &[]), [0; 0], "1 waits for something else");
        assert_eq!(stuck(&[lock(0, 1), lock(1, 2), None], &[]), [0; 0]);
        assert_eq!(stuck(&[lock(0, 1), None], &[1]), [0], "1 has ended");
        assert_eq!(stuck(&[lock(0, 1), lock(1, 0), lock(0, 1)], &[]), [0, 1, 2]);
        assert_eq!(stuck(&[lock(0, 1), lock(1, 0), None], &[]), [0, 1], "whatever 2 does");
        assert_eq!(stuck(&[signal, signal], &[]), [0, 1]);
        assert_eq!(stuck(&[signal, lock(0, 0), None], &[2]), [0, 1]);
        assert_eq!(stuck(&[signal, lock(0, 0), None], &[]), [0; 0], "2 may give it");
    }

    /// A thread whose lock is free, or was handed to it, has been forgotten by the machine.
    #[test]
    fn nobody_waits_for_a_lock_that_is_free_or_its_own() {
        let mut locks = Locks::new(graven_base::memory::Addr(0));
        assert_eq!(locks.holder_before(3, 0), None);
        locks.take(3, 0);
        assert_eq!(locks.holder_before(3, 1), None, "it is not queued up");
        locks.wait(3, 1);
        assert_eq!(locks.holder_before(3, 1), Some(0));
        assert_eq!(locks.release(3, 0), Some(1));
        assert_eq!(locks.holder_before(3, 1), None);
        assert_eq!(locks.release(3, 1), None);
        assert_eq!(locks.holder_before(3, 1), None);
    }

    #[test]
    fn a_circle_is_told_without_those_who_wait_for_it() {
        let wait = |thread, awaited: Option<Awaited>| Wait {
            thread,
            step: None,
            transactions: 3,
            since: 70,
            awaited: awaited.expect("it waits"),
        };
        let of = |waits: &[Wait]| ProgramDeadlock { waits: waits.to_vec() }.to_string();
        assert_eq!(
            of(&[wait(0, lock(5, 2)), wait(1, lock(4, 2)), wait(2, lock(6, 1))]),
            "thread 2 (3 transactions begun) has waited since cycle 70 for lock 6, which thread 1 holds; thread 1 (3 transactions begun) has \
             waited since cycle 70 for lock 4, which thread 2 holds"
        );
        assert_eq!(
            of(&[wait(0, Some(Awaited::Lock { lock: 5, holder: 1, has_ended: true }))]),
            "thread 0 (3 transactions begun) has waited since cycle 70 for lock 5, which thread 1 has ended with"
        );
    }
}
