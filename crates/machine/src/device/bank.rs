//! One bank: when it is free, and which row its buffer holds.

use graven_base::time::Cycle;

use super::timing::Timing;

/// State in which an access finds the row buffer of its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
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
    /// Cycle before which the row of a DRAM cannot be closed, as what was written to it recovers.
    recovered_at: Cycle,
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

    /// Starts a read of DRAM; returns when the array has delivered it.
    pub(super) fn read_volatile(&mut self, row: u64, now: Cycle, timing: &Timing) -> Cycle {
        let before = self.until_recovered(row, now);
        self.read(row, now, before, timing)
    }

    /// Starts a write of DRAM, which has no cells to compare; returns when the bank is free. Writes to an open row follow
    /// each other as reads do; closing it waits until they have recovered.
    pub(super) fn write_volatile(&mut self, row: u64, now: Cycle, timing: &Timing) -> Cycle {
        let before = self.until_recovered(row, now);
        let opening = timing.until_open(self.find(row));
        let done = self.work(row, now, before + opening + timing.column);
        self.recovered_at = done + timing.write;
        done
    }

    /// The write of DRAM that began last waits for the bus, its row open.
    pub(super) fn write_later(&mut self, cycles: Cycle) {
        self.free_at += cycles;
        self.recovered_at += cycles;
    }

    /// Cycles that a row waits for writes to the one that it closes.
    fn until_recovered(&self, row: u64, now: Cycle) -> Cycle {
        match self.find(row) {
            Found::Conflict => self.recovered_at.saturating_sub(now),
            Found::Open | Found::Closed => 0,
        }
    }
}
