//! Banks, groups of banks and ranks of a channel: which rows are open, and when each command may be issued.
//!
//! Every command moves the first clock at which others may follow, in its bank, its group, its rank and the other ranks;
//! a command may be issued once all of these have come. Banks are numbered through all ranks; the groups of a rank take
//! turns, so that neighbouring banks are in different ones.

use super::timing::{Clocks, DramTiming};

/// A row that no bank has.
const NO_ROW: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Bank {
    row: u64,
    /// Accesses since the row was opened.
    accesses: u32,
    activate: Clocks,
    access: Clocks,
    precharge: Clocks,
}

/// First clocks of commands in a group, or in a rank as a whole.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    activate: Clocks,
    read: Clocks,
    write: Clocks,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rank {
    shared: Shared,
    /// When its last four rows were opened, each moved by tFAW; the oldest is at `oldest`.
    four: [Clocks; 4],
    oldest: usize,
    /// Refreshes so far.
    refreshes: u64,
}

/// The device of one channel.
#[derive(Clone, Debug)]
pub struct Device {
    timing: DramTiming,
    banks: Vec<Bank>,
    groups: Vec<Shared>,
    ranks: Vec<Rank>,
    banks_per_rank: u32,
    groups_per_rank: u32,
}

impl Device {
    /// Makes a device whose rows are all closed.
    pub fn new(
        timing: DramTiming,
        ranks: u32,
        groups_per_rank: u32,
        banks_per_rank: u32,
    ) -> Device {
        let bank = Bank { row: NO_ROW, accesses: 0, activate: 0, access: 0, precharge: 0 };
        Device {
            timing,
            banks: vec![bank; (ranks * banks_per_rank) as usize],
            groups: vec![Shared::default(); (ranks * groups_per_rank) as usize],
            ranks: vec![Rank::default(); ranks as usize],
            banks_per_rank,
            groups_per_rank,
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// The rank of a bank.
    #[inline]
    pub fn rank(&self, bank: u32) -> u32 {
        bank / self.banks_per_rank
    }

    #[inline]
    fn group(&self, bank: u32) -> usize {
        let (rank, within) = (bank / self.banks_per_rank, bank % self.banks_per_rank);
        (rank * self.groups_per_rank + within % self.groups_per_rank) as usize
    }

    /// The banks of a rank.
    pub fn banks_of(&self, rank: u32) -> std::ops::Range<u32> {
        rank * self.banks_per_rank..(rank + 1) * self.banks_per_rank
    }

    /// The row that is open in a bank.
    #[inline]
    pub fn open_row(&self, bank: u32) -> Option<u64> {
        let row = self.banks[bank as usize].row;
        (row != NO_ROW).then_some(row)
    }

    /// Returns true if this row is open in a bank.
    #[inline]
    pub fn is_open(&self, bank: u32, row: u64) -> bool {
        self.banks[bank as usize].row == row
    }

    /// Accesses to a bank since its row was opened.
    #[inline]
    pub fn accesses(&self, bank: u32) -> u32 {
        self.banks[bank as usize].accesses
    }

    // ---- when commands may be issued -------------------------------------------------------------

    /// The first clock for a read or a write of the open row of a bank.
    #[inline]
    pub fn access_at(&self, bank: u32, write: bool) -> Clocks {
        let group = &self.groups[self.group(bank)];
        let rank = &self.ranks[self.rank(bank) as usize].shared;
        let shared = if write { group.write.max(rank.write) } else { group.read.max(rank.read) };
        shared.max(self.banks[bank as usize].access)
    }

    /// The first clock for opening a row of a bank.
    #[inline]
    pub fn activate_at(&self, bank: u32) -> Clocks {
        let rank = &self.ranks[self.rank(bank) as usize];
        let shared = rank.shared.activate.max(rank.four[rank.oldest]);
        shared.max(self.groups[self.group(bank)].activate).max(self.banks[bank as usize].activate)
    }

    /// The first clock for closing the row of a bank.
    #[inline]
    pub fn precharge_at(&self, bank: u32) -> Clocks {
        self.banks[bank as usize].precharge
    }

    /// The first clock for refreshing a rank, all of whose rows are closed.
    pub fn refresh_at(&self, rank: u32) -> Clocks {
        let banks = self.banks_of(rank);
        banks.map(|bank| self.banks[bank as usize].activate).fold(0, Clocks::max)
    }

    /// When the next refresh of a rank is due. Those of several ranks are spread over the time between two of one.
    #[inline]
    pub fn refresh_due(&self, rank: u32) -> Clocks {
        let stagger = self.timing.refi * u64::from(rank) / self.ranks.len() as u64;
        (self.ranks[rank as usize].refreshes + 1) * self.timing.refi + stagger
    }

    // ---- commands ----------------------------------------------------------------------------------

    /// Opens a row.
    pub fn activate(&mut self, bank: u32, row: u64, now: Clocks) {
        let time = self.timing;
        let open = &mut self.banks[bank as usize];
        (open.row, open.accesses) = (row, 0);
        open.access = now + time.rcd;
        open.precharge = now + time.ras;
        open.activate = now + time.ras + time.rp;
        let group = self.group(bank);
        later(&mut self.groups[group].activate, now + time.rrd_l);
        let rank = &mut self.ranks[(bank / self.banks_per_rank) as usize];
        later(&mut rank.shared.activate, now + time.rrd_s);
        rank.four[rank.oldest] = now + time.faw;
        rank.oldest = (rank.oldest + 1) % rank.four.len();
    }

    /// Closes the row of a bank.
    pub fn precharge(&mut self, bank: u32, now: Clocks) {
        let bank = &mut self.banks[bank as usize];
        bank.row = NO_ROW;
        later(&mut bank.activate, now + self.timing.rp);
    }

    /// Reads a line, or writes one; returns the end of its data on the bus.
    pub fn access(&mut self, bank: u32, write: bool, now: Clocks) -> Clocks {
        let time = self.timing;
        let latency = if write { time.cwl } else { time.cl };
        let end = now + latency + time.burst;
        let open = &mut self.banks[bank as usize];
        open.accesses += 1;
        later(&mut open.precharge, if write { end + time.wr } else { now + time.rtp });
        let (group, own) = (self.group(bank), self.rank(bank) as usize);
        let group = &mut self.groups[group];
        if write {
            later(&mut group.write, now + time.ccd_l_write);
            later(&mut group.read, end + time.wtr_l);
        } else {
            later(&mut group.read, now + time.ccd_l);
            later(&mut group.write, now + time.ccd_l);
        }
        // Data of the next access begin so long after a command.
        let next_read = |gap: Clocks| (end + gap).saturating_sub(time.cl);
        let next_write = |gap: Clocks| (end + gap).saturating_sub(time.cwl);
        for (number, rank) in self.ranks.iter_mut().enumerate() {
            let shared = &mut rank.shared;
            let (read, written) = match (number == own, write) {
                (true, false) => (now + time.ccd_s.max(time.burst), next_write(time.turn)),
                (true, true) => (end + time.wtr_s, now + time.ccd_s.max(time.burst)),
                (false, false) => (next_read(time.rtrs), next_write(time.turn.max(time.rtrs))),
                (false, true) => (next_read(time.rtrs), next_write(time.rtrs)),
            };
            later(&mut shared.read, read);
            later(&mut shared.write, written);
        }
        end
    }

    /// Refreshes a rank, all of whose rows are closed.
    pub fn refresh(&mut self, rank: u32, now: Clocks) {
        self.ranks[rank as usize].refreshes += 1;
        let busy_until = now + self.timing.rfc;
        for bank in self.banks_of(rank) {
            later(&mut self.banks[bank as usize].activate, busy_until);
        }
    }

    /// Time has gone on to `now` without requests: each rank was refreshed whenever that was due. Returns the number of
    /// refreshes.
    pub fn rest(&mut self, now: Clocks) -> u64 {
        let mut refreshed = 0;
        for rank in 0..self.ranks() {
            let first = self.refresh_due(rank);
            if first >= now {
                continue;
            }
            for bank in self.banks_of(rank) {
                if self.open_row(bank).is_some() {
                    self.precharge(bank, first.max(self.precharge_at(bank)));
                }
            }
            // Of several the last one alone may still be under way.
            let more = (now - 1 - first) / self.timing.refi;
            self.ranks[rank as usize].refreshes += more;
            refreshed += more + 1;
            let due = self.refresh_due(rank);
            self.refresh(rank, due.max(self.refresh_at(rank)));
        }
        refreshed
    }
}

#[inline]
fn later(at: &mut Clocks, new: Clocks) {
    *at = (*at).max(new);
}
