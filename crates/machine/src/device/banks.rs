//! The banks of one channel with their row buffers: how long accesses take, and what they cost.
//!
//! Opening a row reads all of its bits from the cells; what follows in the open row costs the row buffer alone. What a
//! write does to the row buffer is a parameter ([`RowWrites`]):
//!
//! | | row open | row not open | cells are programmed |
//! |---|---|---|---|
//! | `program` | programming | programming | by each write |
//! | `activate` | programming | precharge, activation, programming | by each write |
//! | `hit-or-conflict` | `row_hit_ns` | `write_ns` | when another row is opened, in the time of that access |
//! | `write-back` | `column_ns` | closing, activation, `column_ns` | when another row is opened, before that |
//!
//! Accesses to an open row overlap: a bank takes the next one after `column_ns`, while data is still on its way.
//!
//! A row that closes programs all of its changed lines at once, as long as the slowest takes. What a row buffer holds
//! survives a power failure, as the on-PM buffer does: the device writes it to the cells on its own energy.

use graven_base::bits::ones;
use graven_base::memory::{LINE_BYTES, LineAddr, LineData, MEDIA_LINE_BYTES, WordMask};
use graven_base::time::{Cycle, NEVER};

use super::bank::{Bank, Found};
use super::programming::{Block, Media, programmed};
use super::row_content::RowContent;
use super::timing::{EnergyModel, Timing};
use crate::config::RowWrites;
use crate::media::Effort;
use crate::request::Place;
use crate::stats::{Counters, Stats};

/// The most banks that a channel may have: sets of banks are bits of a word.
const BANKS_MAX: usize = u64::BITS as usize;

/// Parameters of the banks of a channel.
#[derive(Clone, Copy, Debug)]
pub struct BankSpec {
    /// Number of banks.
    pub banks: usize,
    /// Latencies.
    pub timing: Timing,
    /// Energies.
    pub energy: EnergyModel,
    /// Effect of a write on the row buffer.
    pub row_writes: RowWrites,
    /// True if an on-PM buffer lies before them, which has counted the energy of taking a write.
    pub buffered: bool,
}

/// A write that a bank has begun.
#[derive(Clone, Copy, Debug)]
pub struct BegunWrite {
    /// When the row takes the line.
    pub row_open_at: Cycle,
    /// When the bank is done.
    pub done: Cycle,
    /// Effort of programming the cells; `None` if it changes the row buffer alone.
    pub effort: Option<Effort>,
}

/// The banks of one channel.
#[derive(Clone, Debug)]
pub struct Banks {
    spec: BankSpec,
    /// As many as a channel may have: those behind the last are idle.
    banks: Box<[Bank; BANKS_MAX]>,
    /// Banks that were not free yet when it was last looked, a bit for each.
    busy: u64,
    /// Banks that have got work since it was last asked, a bit for each.
    worked: u64,
    /// The first of those that are busy is free then.
    busy_until: Cycle,
    /// Content of the row buffers that is not in the cells; empty where each write programs the
    /// cells.
    rows: Vec<RowContent>,
}

impl Banks {
    /// Idle banks without an open row.
    pub fn new(spec: BankSpec) -> Banks {
        assert!(spec.banks <= BANKS_MAX, "a channel has 64 banks at most");
        let rows = if spec.row_writes.stay_in_row() { spec.banks } else { 0 };
        Banks {
            spec,
            banks: Box::new([Bank::default(); BANKS_MAX]),
            busy: 0,
            worked: 0,
            busy_until: NEVER,
            rows: vec![RowContent::default(); rows],
        }
    }

    /// The bank with a number.
    #[inline]
    pub fn get(&self, bank: u32) -> &Bank {
        &self.banks[bank as usize % BANKS_MAX]
    }

    #[inline]
    fn get_mut(&mut self, bank: u32) -> &mut Bank {
        &mut self.banks[bank as usize % BANKS_MAX]
    }

    /// Time has gone on: looks which banks are free now.
    #[inline]
    pub fn advance(&mut self, now: Cycle) {
        if self.busy_until <= now {
            self.look(now);
        }
    }

    fn look(&mut self, now: Cycle) {
        let (mut busy, mut busy_until) = (0, NEVER);
        for bank in ones(self.busy) {
            let free_at = self.get(bank).free_at;
            if free_at > now {
                busy |= 1 << bank;
                busy_until = busy_until.min(free_at);
            }
        }
        (self.busy, self.busy_until) = (busy, busy_until);
    }

    /// A bank has got work, which may take no time.
    #[inline]
    fn occupied(&mut self, bank: u32, now: Cycle) {
        let free_at = self.get(bank).free_at;
        self.worked |= 1 << bank;
        if free_at > now {
            self.busy |= 1 << bank;
            self.busy_until = self.busy_until.min(free_at);
        }
    }

    /// Banks that have got work since the last call, a bit for each: another row is open, or was hit once more.
    #[inline]
    pub fn take_worked(&mut self) -> u64 {
        std::mem::take(&mut self.worked)
    }

    /// A bank that has got work is free later than it was.
    #[cold]
    fn delayed(&mut self, bank: u32) {
        self.busy |= 1 << bank;
        self.busy_until = self.first_free(self.busy);
    }

    fn first_free(&self, banks: u64) -> Cycle {
        ones(banks).map(|bank| self.get(bank).free_at).fold(NEVER, Cycle::min)
    }

    /// The banks that were free when it was last looked ([`Banks::advance`]) and have got no work since, a bit for each.
    /// (There may be bits behind that of the last bank.)
    #[inline]
    pub fn free(&self) -> u64 {
        !self.busy
    }

    /// When the first of some banks is free; of those that are already, at the beginning of time. [`NEVER`] if there is none.
    #[inline]
    pub fn earliest(&self, banks: u64) -> Cycle {
        if banks & !self.busy != 0 {
            0
        } else if banks == self.busy {
            self.busy_until
        } else {
            self.first_free(banks)
        }
    }

    /// When the last of them is free.
    pub fn idle_at(&self) -> Cycle {
        self.banks.iter().map(|bank| bank.free_at).fold(0, Cycle::max)
    }

    /// Their energies.
    pub fn energy(&self) -> &EnergyModel {
        &self.spec.energy
    }

    /// A bank that has begun an access waits for the bus, its row open.
    #[inline]
    pub fn wait(&mut self, bank: u32, cycles: Cycle) {
        if cycles > 0 {
            self.get_mut(bank).free_at += cycles;
            self.delayed(bank);
        }
    }

    /// Starts a read of a line of PM; returns when the array has delivered it.
    pub fn read(&mut self, place: Place, now: Cycle, media: &mut Media<'_>) -> Cycle {
        let found = self.get(place.bank).find(place.row);
        let c = &mut media.stats.counters;
        *row_counter(c, found) += 1;
        c.media_reads += 1;
        media.stats.read_energy.add_bits(self.spec.energy.row_read, LINE_BYTES * 8);
        let closing = self.open(place, found, media);
        let at = self.banks[place.bank as usize % BANKS_MAX].read(
            place.row,
            now,
            closing,
            &self.spec.timing,
        );
        self.occupied(place.bank, now);
        at
    }

    /// Starts a write of PM. `fetch`: it is part of a media line, whose rest is read first if the cells are programmed.
    pub fn begin_write(
        &mut self,
        place: Place,
        now: Cycle,
        block: &Block<'_>,
        fetch: bool,
        media: &mut Media<'_>,
    ) -> BegunWrite {
        let found = self.get(place.bank).find(place.row);
        media.stats.counters.write_row_hits += u64::from(found == Found::Open);
        let closing = self.open(place, found, media);
        let timing = &self.spec.timing;
        let (before, work, effort) = match self.spec.row_writes {
            RowWrites::Program | RowWrites::Activate => {
                if fetch {
                    self.count_fetch(media.stats);
                }
                let effort = block.program(media);
                let before = match self.spec.row_writes {
                    // If no cell changes, comparing is all there is to do.
                    _ if fetch || effort.latency == 0 => timing.until_read(found),
                    RowWrites::Activate => timing.until_open(found),
                    _ => 0,
                };
                (before, effort.latency, Some(effort))
            }
            RowWrites::HitOrConflict if found == Found::Open => (0, timing.row_hit, None),
            RowWrites::HitOrConflict => (0, timing.write, None),
            RowWrites::WriteBack => (closing + timing.until_open(found), timing.column, None),
        };
        let done = self.get_mut(place.bank).work(place.row, now, before + work);
        self.occupied(place.bank, now);
        BegunWrite { row_open_at: now + before, done, effort }
    }

    /// A write is done: the cells have it, or the row buffer.
    pub fn finish_write(
        &mut self,
        bank: u32,
        block: &Block<'_>,
        effort: Option<Effort>,
        media: &mut Media<'_>,
    ) {
        if effort.is_none() || !self.spec.buffered {
            media.stats.write_energy.add_bits(self.spec.energy.row_write, block.words() * 64);
        }
        match effort {
            Some(effort) => programmed(block, &effort, media),
            None => self.rows[bank as usize].write(block),
        }
    }

    /// A row is about to be opened, if it is not: the energy of that, and what the row before has to do. Returns how
    /// long the latter takes, where it takes time of its own.
    fn open(&mut self, place: Place, found: Found, media: &mut Media<'_>) -> Cycle {
        if found == Found::Open {
            return 0;
        }
        media.stats.counters.row_activations += 1;
        media.stats.read_energy = media.stats.read_energy.and(self.spec.energy.activation);
        match self.rows.get_mut(place.bank as usize) {
            Some(row) if row.is_dirty() => {
                media.stats.counters.rows_written_back += 1;
                let programming = row.program(media);
                if self.spec.row_writes == RowWrites::WriteBack { programming } else { 0 }
            }
            _ => 0,
        }
    }

    /// Counts the fetch of a media line of which a part is about to be written.
    fn count_fetch(&self, stats: &mut Stats) {
        stats.counters.media_reads += 1;
        stats.read_energy.add_bits(self.spec.energy.row_read, MEDIA_LINE_BYTES * 8);
    }

    /// Returns true if row buffers hold what the cells do not have.
    #[inline]
    pub fn keep_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Lays what the row buffer of a bank has of a line over `content`.
    pub fn overlay(&self, bank: u32, line: LineAddr, content: &mut LineData) {
        if let Some(row) = self.rows.get(bank as usize) {
            row.overlay(line, content);
        }
    }

    /// Everything in row buffers that the cells do not have, in a fixed order.
    pub fn contents(&self) -> impl Iterator<Item = (LineAddr, WordMask, &LineData)> {
        self.rows.iter().flat_map(RowContent::lines)
    }
}

fn row_counter(counters: &mut Counters, found: Found) -> &mut u64 {
    match found {
        Found::Open => &mut counters.row_hits,
        Found::Closed => &mut counters.row_closed,
        Found::Conflict => &mut counters.row_conflicts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CoreConfig, PmConfig};
    use graven_base::bits::ones;
    use proptest::prelude::*;

    const BANKS: u32 = 4;

    proptest! {
        #[test]
        fn banks_are_free_when_their_work_is_done(
            steps in prop::collection::vec((0..BANKS, 0..200u64, 0..3u64, any::<bool>()), 0..60),
        ) {
            let config = crate::registry::Registry::new().defaults();
            let (pm, core) = (config.get::<PmConfig>(), config.get::<CoreConfig>());
            let spec = BankSpec {
                banks: BANKS as usize,
                timing: Timing::pm(pm, core),
                energy: EnergyModel::new(pm),
                row_writes: RowWrites::Program,
                buffered: false,
            };
            let (mut banks, mut now) = (Banks::new(spec), 0);
            for (bank, cycles, row, long) in steps {
                now += cycles;
                banks.advance(now);
                if banks.free() >> bank & 1 != 0 {
                    let work = if long { 50 } else { 5 };
                    banks.get_mut(bank).work(row, now, work);
                    banks.occupied(bank, now);
                    banks.wait(bank, cycles % 7);
                }
                for then in [now, now + 20] {
                    let mut banks = banks.clone();
                    banks.advance(then);
                    let free_at = |bank: u32| banks.get(bank).free_at;
                    for set in 0..1 << BANKS {
                        let free = (0..BANKS).filter(|&bank| set >> bank & 1 != 0 && free_at(bank) <= then);
                        prop_assert!(ones(banks.free() & set).eq(free));
                        let earliest = ones(set).map(free_at).min().unwrap_or(NEVER);
                        prop_assert_eq!(banks.earliest(set).max(then), earliest.max(then));
                    }
                }
            }
        }
    }
}
