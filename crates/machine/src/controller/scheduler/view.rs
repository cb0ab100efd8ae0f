//! What a policy is shown of its channel, and the rules that policies share.

use graven_base::time::{Cycle, NEVER};

use crate::controller::adversary::Adversary;
use crate::controller::read_queue::{QueuedRead, ReadQueue};
use crate::controller::write_queue::WriteQueue;
use crate::device::{Bank, PmBuffer};
use crate::request::Place;

/// The queues and banks of a channel in this cycle.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The current cycle.
    pub now: Cycle,
    /// The read queue.
    pub reads: &'a ReadQueue,
    /// The write queue.
    pub writes: &'a WriteQueue,
    /// The banks.
    pub banks: &'a [Bank],
    /// The on-PM buffer, if there is one: writes go there, not to banks.
    pub buffer: Option<&'a PmBuffer>,
    /// Whether write queues survive a power failure: then writes of a line are merged.
    pub adr: bool,
    /// Accesses to an open row after which requests for other rows go first; 0: any number.
    pub row_hit_limit: u32,
}

/// So many requests are looked at themselves, rather than all banks.
const FEW: usize = 4;

/// What decides between requests whose banks are free, the smallest first: the class, and the cycle of arrival.
pub type Rank = (Class, Cycle);

/// Why a request goes before others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It wants another row of a bank whose row has been hit as often as it may be.
    Starved,
    /// Its row is open, or the on-PM buffer serves it.
    Hit,
    /// Neither.
    Miss,
}

impl View<'_> {
    /// Among the reads whose bank is free, the oldest that finds its row open, or is served by the on-PM buffer;
    /// otherwise the oldest.
    pub fn first_ready_read(&self) -> Option<usize> {
        let nothing_buffered = self.reads.buffered() == 0;
        if self.reads.is_empty() || (nothing_buffered && self.next_bank_of_reads() > self.now) {
            return None;
        }
        let free = self.free_banks();
        if self.row_hit_limit == 0 {
            return self.first_hit_or_oldest_read(free);
        }
        let mut best: Option<(Class, usize)> = None;
        for (i, read) in self.reads.reads().iter().enumerate() {
            if !read.buffered && free >> read.place.bank & 1 == 0 {
                continue;
            }
            let class = self.class_of_read(read);
            if best.is_none_or(|(of_best, _)| class < of_best) {
                if class == self.best_class() {
                    return Some(i);
                }
                best = Some((class, i));
            }
        }
        best.map(|(_, i)| i)
    }

    /// The same where the hits of a row are not limited, which a long queue shows in the host's time.
    fn first_hit_or_oldest_read(&self, free: u64) -> Option<usize> {
        let mut oldest = None;
        for (i, read) in self.reads.reads().iter().enumerate() {
            let Place { bank, row, .. } = read.place;
            let is_ready = free >> bank & 1 != 0;
            if read.buffered || (is_ready && self.banks[bank as usize].open_row == Some(row)) {
                return Some(i);
            }
            if is_ready && oldest.is_none() {
                oldest = Some(i);
            }
        }
        oldest
    }

    /// The banks that are free now, a bit for each.
    #[inline]
    fn free_banks(&self) -> u64 {
        assert!(self.banks.len() <= u64::BITS as usize, "a channel has 64 banks at most");
        let bits = (0..).zip(self.banks).map(|(bank, b)| u64::from(b.free_at <= self.now) << bank);
        bits.fold(0, |set, bit| set | bit)
    }

    /// The class of which nothing can be better.
    fn best_class(&self) -> Class {
        if self.row_hit_limit > 0 { Class::Starved } else { Class::Hit }
    }

    /// How a row is found by a request for it.
    #[inline]
    fn class(&self, bank: u32, row: u64) -> Class {
        let bank = &self.banks[bank as usize];
        match bank.open_row {
            Some(open) if open == row => Class::Hit,
            Some(_) if self.row_hit_limit > 0 && bank.row_hits >= self.row_hit_limit => {
                Class::Starved
            }
            _ => Class::Miss,
        }
    }

    #[inline]
    fn class_of_read(&self, read: &QueuedRead) -> Class {
        if read.buffered { Class::Hit } else { self.class(read.place.bank, read.place.row) }
    }

    /// The rank of a read.
    pub fn rank_of_read(&self, index: usize) -> Rank {
        let read = &self.reads.reads()[index];
        (self.class_of_read(read), read.read.arrived)
    }

    /// The rank of a write.
    pub fn rank_of_write(&self, index: usize) -> Rank {
        let place = &self.writes.places()[index];
        let class =
            if self.buffer.is_some() { Class::Hit } else { self.class(place.bank, place.row) };
        (class, self.writes.write(place).arrived)
    }

    /// The write that goes next: to the on-PM buffer, the oldest that finds a place there; to a bank, among those
    /// whose bank is free the oldest that finds its row open, or the oldest. An adversary chooses among all that may go.
    pub fn first_ready_write(&self, adversary: &mut Option<Adversary>) -> Option<usize> {
        if self.writes.is_empty() {
            return None;
        }
        match self.buffer {
            Some(buffer) => self.first_for_buffer(buffer, adversary),
            None => self.first_for_bank(adversary),
        }
    }

    fn first_for_buffer(
        &self,
        buffer: &PmBuffer,
        adversary: &mut Option<Adversary>,
    ) -> Option<usize> {
        let full = buffer.is_full();
        if full && self.writes.buffered() == 0 {
            return None;
        }
        let places = self.writes.places().iter().enumerate();
        let may = places.filter(|&(i, w)| (!full || w.buffered) && self.may_issue(i));
        first_or_any(may.map(|(i, _)| i), adversary)
    }

    fn first_for_bank(&self, adversary: &mut Option<Adversary>) -> Option<usize> {
        if adversary.is_some() {
            let places = self.writes.places().iter().enumerate();
            let ready = places.filter(|&(i, w)| {
                let free = self.banks[w.bank as usize].free_at <= self.now;
                !w.issued && free && self.may_issue(i)
            });
            return first_or_any(ready.map(|(i, _)| i), adversary);
        }
        if self.earliest_bank(self.writes.of_bank()) > self.now {
            return None;
        }
        let mut best: Option<(Class, usize)> = None;
        let free = self.free_banks();
        for (i, w) in self.writes.places().iter().enumerate() {
            if w.issued || free >> w.bank & 1 == 0 {
                continue;
            }
            let class = self.class(w.bank, w.row);
            if best.is_none_or(|(of_best, _)| class < of_best) && self.may_issue(i) {
                if class == self.best_class() {
                    return Some(i);
                }
                best = Some((class, i));
            }
        }
        best.map(|(_, i)| i)
    }

    /// A write waits for older ones of its line. (With ADR there is at most one: merging leaves only one
    /// that a bank is working on.)
    fn may_issue(&self, index: usize) -> bool {
        (self.adr && self.buffer.is_some()) || !self.writes.has_older(index)
    }

    /// When a read could be issued: at once if the on-PM buffer serves one, else when a bank that one waits for is free.
    pub fn next_read_at(&self) -> Cycle {
        if self.reads.buffered() > 0 {
            self.now
        } else if self.reads.is_empty() {
            NEVER
        } else {
            self.next_bank_of_reads()
        }
    }

    /// When the first of the banks for which there are reads is free.
    fn next_bank_of_reads(&self) -> Cycle {
        let reads = self.reads.reads();
        if reads.len() > FEW {
            return self.earliest_bank(self.reads.of_bank());
        }
        let free_at = reads.iter().map(|read| self.banks[read.place.bank as usize].free_at);
        free_at.fold(NEVER, Cycle::min)
    }

    /// Writes wait for a bank, or for room in the on-PM buffer, which the end of a spill announces.
    pub fn next_write_at(&self) -> Cycle {
        match self.buffer {
            Some(buffer) if buffer.is_full() && self.writes.buffered() == 0 => NEVER,
            Some(_) => self.now,
            None => self.earliest_bank(self.writes.of_bank()),
        }
    }

    /// When the first of the banks that have requests is free.
    fn earliest_bank(&self, requests: &[u32]) -> Cycle {
        let free_at = |(bank, &n): (&Bank, &u32)| if n > 0 { bank.free_at } else { NEVER };
        self.banks.iter().zip(requests).map(free_at).fold(NEVER, Cycle::min)
    }
}

/// The first of the candidates, or the adversary's choice.
fn first_or_any(
    mut candidates: impl Iterator<Item = usize>,
    adversary: &mut Option<Adversary>,
) -> Option<usize> {
    let Some(adversary) = adversary else { return candidates.next() };
    let candidates: Vec<usize> = candidates.collect();
    (!candidates.is_empty()).then(|| candidates[adversary.choose(candidates.len())])
}
