//! `chain-queue`: a random mix of enqueue and dequeue on a chained queue.
//!
//! Models ChainQueue of LALEA (§IV-A), of which the paper gives no more than the name. We take it for
//! the chained queue of textbooks: nodes that are allocated one by one, a head node without an
//! element, a front and a rear. What distinguishes it from [`queue`](super::queue): no length and no number
//! of the next element are kept, so that a transaction stores four words beside an element that it
//! puts in, and three or four to take one out, the allocator's included; and putting in always reaches
//! the youngest node through a pointer. What both do: [`fifo`](super::fifo).

use super::fifo;
use super::structures::ChainQueue;
use graven_base::config::ConfigError;
use graven_machine::workload::{Request, Workload};

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    fifo::build::<ChainQueue>(request)
}

#[cfg(test)]
mod tests {
    crate::testing::contract!(super::build);
}
