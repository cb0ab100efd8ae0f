//! View of a channel that a policy is shown, and the rules that policies share.

use graven_base::time::{Cycle, NEVER};

use super::Choice;
use crate::controller::adversary::Adversary;
use crate::controller::lists::{Candidate, Class, Lists};
use crate::controller::read_queue::ReadQueue;
use crate::controller::write_queue::WriteQueue;
use crate::device::{Banks, PmBuffer};

/// The queues and banks of a channel in this cycle.
#[derive(Debug)]
pub struct View<'a> {
    /// The current cycle.
    pub now: Cycle,
    /// The read queue.
    pub reads: &'a mut ReadQueue,
    /// The write queue.
    pub writes: &'a mut WriteQueue,
    /// The banks.
    pub banks: &'a Banks,
    /// The on-PM buffer, if there is one: writes go there, not to banks.
    pub buffer: Option<&'a PmBuffer>,
    /// True if write queues survive a power failure: then writes of a line are merged.
    pub adr: bool,
    /// Accesses to an open row after which requests for other rows go first; 0: any number.
    pub row_hit_limit: u32,
    /// Age from which on a request goes before younger ones.
    pub age_limit: Cycle,
}

/// Order of requests whose banks are free, the smallest first: the class, by its number, and the place among all
/// arrivals.
pub type Rank = (u64, u64);

impl View<'_> {
    /// Among the reads whose bank is free, the oldest that finds its row open, or is served by the on-PM buffer;
    /// otherwise the oldest.
    #[inline(always)]
    pub fn first_ready_read(&mut self) -> Option<Candidate> {
        let buffered = self.reads.oldest_buffered();
        buffered.or_before(self.reads.first_of_free(self.banks, self.row_hit_limit)).something()
    }

    /// The rank of a read.
    #[inline]
    pub fn rank_of_read(&self, read: Candidate) -> Rank {
        (read.class(), self.reads.get(read.slot).number)
    }

    /// The rank of a write.
    #[inline]
    pub fn rank_of_write(&self, write: Candidate) -> Rank {
        (write.class(), self.writes.number(write.slot))
    }

    /// The write that goes next: to the on-PM buffer, the oldest that finds a place there; to a bank, among those
    /// whose bank is free the oldest that finds its row open, or the oldest. An adversary chooses among all that may go.
    #[inline(always)]
    pub fn first_ready_write(&mut self, adversary: &mut Option<Adversary>) -> Option<Candidate> {
        if let Some(adversary) = adversary {
            // A view of its own, so that this one can stay in registers.
            let View { now, banks, buffer, adr, row_hit_limit, age_limit, .. } = *self;
            let (reads, writes) = (&mut *self.reads, &mut *self.writes);
            let view = View { now, reads, writes, banks, buffer, adr, row_hit_limit, age_limit };
            return view.any_ready_write(adversary);
        }
        let first = match self.buffer {
            Some(buffer) => self.first_for_buffer(buffer),
            None => self.writes.first_of_free(self.banks, self.row_hit_limit),
        };
        first.something()
    }

    #[cold]
    fn any_ready_write(&self, adversary: &mut Adversary) -> Option<Candidate> {
        self.any_write(adversary, |lists, slot| self.write_may_go(lists, slot))
    }

    /// Returns true if a write has a free bank, or a place in the on-PM buffer, and none of its
    /// line goes before it.
    fn write_may_go(&self, lists: &Lists, slot: u32) -> bool {
        let Some(buffer) = self.buffer else {
            let free = self.banks.free() >> lists.get(slot).bank & 1 != 0;
            return !lists.is_issued(slot) && free && !lists.has_older(slot);
        };
        let has_place = !buffer.is_full() || lists.is_buffered(slot);
        has_place && (self.adr || !lists.has_older(slot))
    }

    /// Returns the oldest request that has waited for as long as any may, and can go now. `writes`:
    /// writes may wait no longer than that either. They may wait longer where they are durable in
    /// the queue and it does not drain: no thread waits for them then.
    #[inline]
    pub fn overdue(&self, writes: bool) -> Option<Choice> {
        // Mostly nothing is, which the oldest of each queue says.
        let since = self.now.checked_sub(self.age_limit)?;
        let is_any = self.reads.oldest_arrival() <= since
            || (writes && self.writes.oldest_entered() <= since);
        if is_any { self.first_overdue(since, writes) } else { None }
    }

    #[cold]
    fn first_overdue(&self, since: Cycle, writes: bool) -> Option<Choice> {
        let read = self.reads.first_overdue(since, self.banks);
        let read = read.map(|slot| (self.reads.get(slot).read.arrived, Choice::Read(slot)));
        let lists = self.writes.lists();
        let entered = |slot: u32| self.writes.entered(slot);
        let write = lists.oldest_first().take_while(|&slot| writes && entered(slot) <= since);
        let write = write.into_iter().find(|&slot| self.write_may_go(lists, slot));
        let write = write.map(|slot| (entered(slot), Choice::Write(slot)));
        // Of equal age, the read.
        read.into_iter().chain(write).min_by_key(|&(since, _)| since).map(|(_, choice)| choice)
    }

    /// When the oldest read goes before all others, or when one of those that do can go.
    pub fn next_overdue_read_at(&self) -> Cycle {
        let overdue_at = self.reads.oldest_arrival().saturating_add(self.age_limit);
        match self.now.checked_sub(self.age_limit) {
            Some(since) if overdue_at <= self.now => {
                if self.reads.first_overdue(since, self.banks).is_some() {
                    return self.now;
                }
                self.banks.earliest(self.reads.overdue_banks(since))
            }
            _ => overdue_at,
        }
    }

    /// The same of writes.
    pub fn next_overdue_write_at(&self) -> Cycle {
        let overdue_at = self.writes.oldest_entered().saturating_add(self.age_limit);
        if overdue_at <= self.now { self.next_write_at() } else { overdue_at }
    }

    /// Returns the first write for the buffer. An older one of their line goes before each of those
    /// that may go: the oldest of all may, and the oldest of those of which the buffer has the
    /// media line.
    #[inline(always)]
    fn first_for_buffer(&self, buffer: &PmBuffer) -> Candidate {
        let lists = self.writes.lists();
        if buffer.is_full() { lists.oldest_buffered() } else { lists.oldest() }
    }

    /// The adversary's choice among the writes that may go, in order of acceptance.
    fn any_write(
        &self,
        adversary: &mut Adversary,
        may_go: impl Fn(&Lists, u32) -> bool,
    ) -> Option<Candidate> {
        let lists = self.writes.lists();
        let candidates: Vec<u32> =
            lists.oldest_first().filter(|&slot| may_go(lists, slot)).collect();
        (!candidates.is_empty()).then(|| {
            let slot = candidates[adversary.choose(candidates.len())];
            let class = match self.buffer {
                Some(_) => Class::Hit,
                None => {
                    let bank = self.banks.get(lists.get(slot).bank);
                    lists.class(slot, bank, self.row_hit_limit)
                }
            };
            lists.candidate(slot, class)
        })
    }

    /// When a read could be issued: at once if the on-PM buffer serves one, else when a bank that one waits for is free.
    #[inline]
    pub fn next_read_at(&self) -> Cycle {
        if self.reads.has_buffered() {
            self.now
        } else {
            self.banks.earliest(self.reads.waited_for())
        }
    }

    /// Writes wait for a bank, or for room in the on-PM buffer, which the end of a spill announces.
    #[inline]
    pub fn next_write_at(&self) -> Cycle {
        let lists = self.writes.lists();
        match self.buffer {
            Some(buffer) if buffer.is_full() && !lists.has_buffered() => NEVER,
            Some(_) => self.now,
            None => self.banks.earliest(lists.banks()),
        }
    }
}
