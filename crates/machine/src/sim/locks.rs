//! Locks: words in DRAM that threads acquire, first come, first served.

use std::collections::VecDeque;

use crate::program::LockId;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LINE_BYTES};

#[derive(Clone, Debug, Default)]
struct Lock {
    holder: Option<ThreadId>,
    waiting: VecDeque<ThreadId>,
}

/// All locks of a program, each in a DRAM line of its own.
#[derive(Clone, Debug)]
pub struct Locks {
    base: Addr,
    locks: Vec<Lock>,
}

impl Locks {
    /// No locks held; lock 0 lies at `base`.
    pub fn new(base: Addr) -> Self {
        Self { base, locks: Vec::new() }
    }

    /// Address of a lock's word.
    pub fn addr(&self, lock: LockId) -> Addr {
        self.base.plus(u64::from(lock) * LINE_BYTES)
    }

    fn lock(&mut self, lock: LockId) -> &mut Lock {
        let index = lock as usize;
        if index >= self.locks.len() {
            self.locks.resize_with(index + 1, Lock::default);
        }
        &mut self.locks[index]
    }

    /// Returns true if the thread may take the lock now (it is free, or was handed to it).
    pub fn is_free_for(&mut self, lock: LockId, thread: ThreadId) -> bool {
        self.lock(lock).holder.is_none_or(|holder| holder == thread)
    }

    /// Number of locks that the thread has.
    pub fn held_by(&self, thread: ThreadId) -> u32 {
        self.locks.iter().filter(|lock| lock.holder == Some(thread)).count() as u32
    }

    /// Returns true if the thread has the lock.
    pub fn is_held_by(&self, lock: LockId, thread: ThreadId) -> bool {
        self.locks.get(lock as usize).is_some_and(|lock| lock.holder == Some(thread))
    }

    /// The thread that has the lock, if this one is queued up for it.
    pub fn holder_before(&self, lock: LockId, thread: ThreadId) -> Option<ThreadId> {
        let lock = self.locks.get(lock as usize)?;
        lock.holder.filter(|_| lock.waiting.contains(&thread))
    }

    /// The thread has the lock.
    pub fn take(&mut self, lock: LockId, thread: ThreadId) {
        self.lock(lock).holder = Some(thread);
    }

    /// The thread queues up for a lock that another holds.
    pub fn wait(&mut self, lock: LockId, thread: ThreadId) {
        self.lock(lock).waiting.push_back(thread);
    }

    /// The holder gives the lock up; the first in line has it then, and is returned.
    ///
    /// # Panics
    /// If the thread does not hold the lock: a broken program.
    pub fn release(&mut self, lock: LockId, thread: ThreadId) -> Option<ThreadId> {
        let entry = self.lock(lock);
        assert_eq!(
            entry.holder,
            Some(thread),
            "thread {thread} releases lock {lock}, which it does not hold"
        );
        entry.holder = entry.waiting.pop_front();
        entry.holder
    }
}
