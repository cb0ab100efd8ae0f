//! The state after transactions without time, which simulations that begin alike share.
//!
//! These transactions are the same under every design ([`super::fast_forward`]), and take a third of the time of a region in steady state. So the
//! first of such simulations executes them, and the others have memory and caches as it left them. A program's place
//! is on a stack of its own, which cannot be copied: each simulation runs its own programs up to there, told what the first
//! one's had loaded.

use std::sync::Arc;

use super::error::SimError;
use super::fast_forward::Told;
use super::locks::Locks;
use super::run::Simulation;
use super::threads::Thread;
use crate::caches::hierarchy::Hierarchy;
use crate::program::Op;
use crate::stats::region::RegionConfig;
use graven_base::memory::Image;

/// Memory, caches and programs after transactions without time, before a design has had a say.
pub(super) struct Aged {
    arch: Image,
    /// PM, which has a line's stores once the caches have evicted it.
    home: Image,
    caches: Hierarchy,
    locks: Locks,
    threads: Arc<[Place]>,
    transactions: u64,
}

/// Progress of a thread's program.
struct Place {
    told: Told,
    /// The value of its last load, if the program has not received it yet.
    value: u64,
    /// The operation that it has asked for and that is not executed, such as a lock that another has.
    op: Option<Op>,
    transactions: u64,
}

impl Place {
    fn of(thread: &Thread, told: Told) -> Place {
        Place { told, value: thread.value, op: thread.op, transactions: thread.transactions }
    }

    /// Runs a thread's program, from its beginning, up to here.
    fn lead(&self, thread: &mut Thread) {
        let mut loaded = self.told.loaded.iter();
        let mut value = 0;
        for _ in 0..self.told.operations {
            if let Op::Load { .. } = thread.program.next(std::mem::take(&mut value)) {
                value = *loaded.next().expect("it loads what the first one loaded");
                thread.load_without_time();
            }
        }
        (thread.value, thread.op, thread.transactions) = (self.value, self.op, self.transactions);
    }
}

impl Aged {
    /// The same for one simulation more.
    pub fn share(&mut self) -> Aged {
        Aged {
            arch: self.arch.share(),
            home: self.home.share(),
            caches: self.caches.clone(),
            locks: self.locks.clone(),
            threads: Arc::clone(&self.threads),
            transactions: self.transactions,
        }
    }

    /// Number of transactions that have been executed.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Host memory that it takes, the caches' tags aside.
    pub fn host_bytes(&self) -> u64 {
        let loads: usize = self.threads.iter().map(|place| place.told.loaded.capacity()).sum();
        self.arch.host_bytes() + self.home.host_bytes() + (loads * size_of::<u64>()) as u64
    }
}

impl Simulation {
    /// Transactions without time before what is measured, and how many they were.
    ///
    /// # Errors
    /// The watcher has cancelled the run.
    pub(super) fn age(&mut self) -> Result<u64, SimError> {
        let beginning = self.beginning.take();
        if self.spec.config.get::<RegionConfig>().fast_forward_transactions == 0 {
            return Ok(0);
        }
        let transactions = match beginning {
            Some(beginning) => beginning.age(self)?,
            None => self.fast_forward(None)?,
        };
        self.leave_lines();
        Ok(transactions)
    }

    /// Transactions without time, which others may have as well.
    ///
    /// # Errors
    /// The watcher has cancelled the run.
    pub(super) fn age_for_others(&mut self) -> Result<Aged, SimError> {
        let mut told: Vec<Told> = self.threads.iter().map(|_| Told::default()).collect();
        let transactions = self.fast_forward(Some(&mut told))?;
        let places = self.threads.iter().zip(told).map(|(thread, told)| Place::of(thread, told));
        let threads = places.collect();
        let (arch, home) = self.machine.share_images();
        let (caches, locks) = (self.machine.caches.clone(), self.locks.clone());
        Ok(Aged { arch, home, caches, locks, threads, transactions })
    }

    /// Begins with what another one has executed; returns how many transactions that was.
    pub(super) fn adopt(&mut self, aged: Aged) -> u64 {
        for (thread, place) in self.threads.iter_mut().zip(&*aged.threads) {
            place.lead(thread);
        }
        self.machine.begin_with(aged.arch, aged.home, aged.caches);
        self.machine.caches.report_l1_evictions(self.design.wants_departures());
        self.locks = aged.locks;
        aged.transactions
    }
}
