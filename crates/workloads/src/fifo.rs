//! The workload that all queues share: a random mix of enqueue and dequeue.
//!
//! Insertion is enqueue, removal dequeue, and an update writes a new version of the oldest element in
//! place. **The workload section's default of 100 % insertions and 0 % removals means 50 % enqueue
//! and 50 % dequeue here**, as no paper runs a queue that only grows; any other shares are taken as
//! given. A dequeue or update of an empty queue is a transaction without stores. The distribution of
//! keys has no meaning for a queue.
//!
//! | bytes of a partition | |
//! |---|---|
//! | 64 | root |
//! | 64 | header of the arena |
//! | rest | nodes (whole lines), as allocated |
//!
//! The initial nodes are shuffled in memory, as those of a queue that has lived for a while are.
//! Private: a partition per thread, no locks. Shared: one partition, one lock around each
//! transaction. Left out: separate locks for head and tail.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::costs;
use super::layout::{Placed, Plan};
use super::structures::keys::{POPULATION, generator};
use super::structures::{Arena, Census, Fifo};
use graven_base::config::ConfigError;
use graven_base::memory::Image;
use graven_machine::program::{Direct, Load, LockId, Program, Ptr, Thread, spawn};
use graven_machine::workload::{Checked, Extent, Request, Workload, WorkloadConfig};

/// The lock of a shared queue.
const LOCK: LockId = 0;

/// The workload of queue `Q`.
///
/// # Errors
/// If the parameters do not fit it.
pub(super) fn build<Q: Fifo>(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    let plan = Plan::new(Q::NAME, request, Q::node_bytes)?;
    let element = plan.element;
    let Placed { parts, extent } = plan.lay_out(|layout, share| {
        let root = layout.take(Q::ROOT_BYTES);
        let nodes = share.total_max().saturating_add(Q::EXTRA_NODES);
        let arena = layout.arena([(Q::node_bytes(element), nodes), (0, 0)]);
        let producers = share.threads.len() as u32;
        Part { queue: Q::new(root, element, producers), arena, producers }
    })?;
    Ok(Box::new(FifoWorkload { plan, parts, extent }))
}

/// One queue.
#[derive(Clone, Copy, Debug)]
struct Part<Q> {
    queue: Q,
    arena: Arena,
    /// Threads that put elements into it.
    producers: u32,
}

struct FifoWorkload<Q> {
    plan: Plan,
    parts: Vec<Part<Q>>,
    extent: Extent,
}

/// Shares of enqueue and dequeue, in percent.
fn mix(config: &WorkloadConfig) -> (u32, u32) {
    match (config.insert_percent, config.remove_percent) {
        (100, 0) => (50, 50),
        shares => shares,
    }
}

impl<Q: Fifo> Workload for FifoWorkload<Q> {
    fn populate(&self, image: &mut Image) {
        let mut m = Direct::new(image);
        let mut random = generator(self.plan.request.seed, POPULATION);
        for part in &self.parts {
            part.queue.format(&mut m, &part.arena);
            let elements = u64::from(part.producers) * self.plan.population;
            let mut nodes: Vec<Ptr> =
                (0..elements).map(|_| part.arena.allocate(&mut m, Q::NODE)).collect();
            for i in (1..nodes.len()).rev() {
                nodes.swap(i, random.random_range(0..=i as u64) as usize);
            }
            // Producers take turns.
            for (key, node) in (0..).zip(nodes) {
                part.queue.append(&mut m, node, key);
            }
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let request = &self.plan.request;
        let part = self.parts[self.plan.part_of(thread)];
        let producers = u64::from(part.producers);
        let mut run = Run {
            part,
            key: self.plan.population * producers + u64::from(thread) % producers,
            random: generator(request.seed, thread),
            mix: mix(&request.config),
            shared: self.plan.is_shared(),
            operations: request.config.operations_per_transaction,
        };
        let transactions = request.transactions_of(thread);
        spawn(move |thread| {
            for _ in 0..transactions {
                run.transaction(thread);
            }
        })
    }

    fn check(&self, image: &Image) -> Checked {
        for Part { queue, arena, .. } in &self.parts {
            let name = format!("{} at {}", self.plan.workload, queue.root());
            Census::audit(name, image, &[*arena], |census| queue.walk(census, &mut |_| {}))?;
        }
        Ok(())
    }

    /// Producers know the number of the next element by heart.
    fn begins_again(&self) -> bool {
        Q::NUMBERS_ELEMENTS
    }

    fn extent(&self) -> Option<Extent> {
        Some(self.extent)
    }
}

/// State of a thread.
struct Run<Q> {
    part: Part<Q>,
    /// The thread's number for the next element that it puts in.
    key: u64,
    random: Pcg64,
    mix: (u32, u32),
    shared: bool,
    operations: u32,
}

impl<Q: Fifo> Run<Q> {
    fn transaction(&mut self, thread: &mut Thread<'_>) {
        let Part { queue, arena, producers } = self.part;
        if self.shared {
            thread.lock(LOCK);
        }
        thread.tx_begin();
        for _ in 0..self.operations {
            thread.compute(costs::DRAW + costs::OPERATION);
            let percent = self.random.random_range(0..100);
            let (enqueue, dequeue) = self.mix;
            if percent < enqueue {
                queue.enqueue(thread, &arena, self.key);
                self.key += u64::from(producers);
            } else if percent < enqueue + dequeue {
                queue.dequeue(thread, &arena);
            } else {
                queue.update(thread);
            }
        }
        thread.tx_end();
        if self.shared {
            thread.unlock(LOCK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also `silo-wl-queue` (Silo, Table III): enqueue and dequeue.
    #[test]
    fn the_default_mix_is_half_and_half() {
        let config = WorkloadConfig::default();
        assert_eq!(mix(&config), (50, 50));
        let grows = WorkloadConfig { insert_percent: 99, remove_percent: 1, ..config };
        assert_eq!(mix(&grows), (99, 1));
    }
}
