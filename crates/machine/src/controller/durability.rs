//! The persistence domain's boundary: when a write is durable, and who is notified.
//!
//! With ADR, a write is durable when the write queue accepts it. Without, when the on-PM buffer has it, or the cells
//! where there is none.

use graven_base::memory::{LineAddr, LineData, WordMask};

use crate::request::{Order, Write};

/// A write that became durable.
pub type DurableWrite = (LineAddr, WordMask, LineData);

/// State of ordered writes, and counts for users who crash a run.
#[derive(Debug)]
pub struct Durability {
    /// True if write queues survive a power failure.
    pub adr: bool,
    /// Durability of ordered writes.
    pub order: Order,
    /// Set when ordered writes became durable or a gate was opened: writes held back for them may proceed.
    pub order_moved: bool,
    /// Counts durable-state changes, so that crash points can be enumerated.
    pub changes: u64,
    /// Writes that became durable and have not been looked at, if anybody wants to know.
    pub writes: Option<Vec<DurableWrite>>,
}

impl Durability {
    /// With or without ADR; nothing was written yet.
    pub fn new(adr: bool) -> Durability {
        Durability { adr, order: Order::default(), order_moved: false, changes: 0, writes: None }
    }

    /// A write has crossed the boundary.
    pub fn cross(&mut self, write: &Write) {
        assert!(
            self.order.allows(write),
            "a write is durable only after every ordered write and gate that it waits for"
        );
        self.changes += 1;
        if let Some(writes) = &mut self.writes {
            writes.push((write.line, write.mask, write.data));
        }
        if write.order != 0 && self.order.durable(write.order) {
            self.order_moved = true;
        }
    }
}
