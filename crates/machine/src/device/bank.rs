//! One bank: when it is free, and which row its buffer holds.

use graven_base::time::Cycle;

use super::timing::Timing;

/// State in which an access finds the row buffer of its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The row is open.
    Open,
    /// No row is open.
    Closed,
    /// Another row is open.
    Conflict,
}

/// One bank: when it is free, and the row that its buffer holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bank {
    /// Busy until then.
    pub free_at: Cycle,
    /// The open row.
    pub open_row: Option<u64>,
    /// Accesses since it was opened that found it open.
    pub row_hits: u32,
}

impl Bank {
    /// State in which an access to a row would find the row buffer.
    pub(super) fn find(&self, row: u64) -> Found {
        match self.open_row {
            Some(open) if open == row => Found::Open,
            None => Found::Closed,
            Some(_) => Found::Conflict,
        }
    }

    /// Occupies the bank for `cycles` cycles, after which this row is open. Returns when it is
    /// done.
    pub(super) fn work(&mut self, row: u64, now: Cycle, cycles: Cycle) -> Cycle {
        assert!(self.free_at <= now, "a busy bank is not given work");
        self.row_hits =
            if self.open_row == Some(row) { self.row_hits.saturating_add(1) } else { 0 };
        self.open_row = Some(row);
        self.free_at = now + cycles;
        self.free_at
    }

    /// Starts a read after a number of cycles of other work; returns when the array has delivered
    /// it. The bank can take the next access to the row earlier: those of an open row overlap.
    pub(super) fn read(&mut self, row: u64, now: Cycle, before: Cycle, timing: &Timing) -> Cycle {
        let found = self.find(row);
        self.work(row, now, before + timing.until_open(found) + timing.column);
        now + before + timing.until_read(found)
    }
}
