//! `queue`: a random mix of enqueue and dequeue on a linked-list queue.
//!
//! Models the Queue micro-benchmark of MorLog (Table IV), Silo (Table III: "randomly enqueue and
//! dequeue") and HOOP (Table III: 4 stores per transaction). The queue keeps its length, and numbers
//! its elements itself; [`chain_queue`](super::chain_queue) is the barer one. What both do:
//! [`fifo`](super::fifo).

use super::fifo;
use super::structures::Queue;
use graven_base::config::ConfigError;
use graven_machine::workload::{Request, Workload};

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    fifo::build::<Queue>(request)
}

#[cfg(test)]
mod tests {
    crate::testing::contract!(super::build);
}
