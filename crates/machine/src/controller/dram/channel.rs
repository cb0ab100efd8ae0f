//! One channel of DRAM: requests arrive, commands are issued for them, and they finish.

use std::collections::VecDeque;

use graven_base::memory::{LineAddr, WordMask};
use graven_base::time::{Cycle, NEVER};

use super::device::Device;
use super::queue::{Entry, Queue};
use super::timing::{Clocks, DramTiming};
use crate::clock::Event;
use crate::controller::shared::{Notice, Shared};
use crate::device::Found;
use crate::request::{Mapping, Place, Read, Write};
use crate::stats::Stats;

/// Parameters of a channel.
#[derive(Clone, Copy, Debug)]
pub struct DramSpec {
    /// Number among all channels, those of PM first, for events.
    pub number: u32,
    /// Distances of commands.
    pub timing: DramTiming,
    /// Ranks.
    pub ranks: u32,
    /// Groups of banks in a rank.
    pub bank_groups: u32,
    /// Banks in a rank.
    pub banks: u32,
    /// Mapping of lines, of addresses from the DRAM's first byte on.
    pub mapping: Mapping,
    /// The first line of the DRAM.
    pub start: LineAddr,
    /// Places for reads.
    pub read_queue: usize,
    /// Places for writes.
    pub write_queue: usize,
    /// Accesses to an open row after which requests for other rows go first; 0: any number.
    pub row_hit_limit: u32,
    /// Age from which on a request goes before younger ones; [`NEVER`]: none does.
    pub age_limit: Cycle,
    /// Number of writes from which on they go before reads.
    pub drain_high: usize,
    /// Number of writes at which reads go again.
    pub drain_low: usize,
}

/// A channel of DRAM.
pub struct DramChannel {
    spec: DramSpec,
    device: Device,
    reads: Queue,
    writes: Queue,
    /// Reads without data: queued, or their data on the way.
    under_way: slab::Slab<Read>,
    waiting_reads: VecDeque<Read>,
    waiting_writes: VecDeque<(LineAddr, WordMask)>,
    /// True while writes go.
    writing: bool,
    /// The first clock that has no command yet.
    next_clock: Clocks,
    next_wake: Cycle,
    /// End of the last data on the bus.
    data_end: Cycle,
}

impl DramChannel {
    /// An idle channel.
    pub fn new(spec: DramSpec) -> DramChannel {
        let banks = (spec.ranks * spec.banks) as usize;
        DramChannel {
            device: Device::new(spec.timing, spec.ranks, spec.bank_groups, spec.banks),
            reads: Queue::new(spec.read_queue, banks),
            writes: Queue::new(spec.write_queue, banks),
            under_way: slab::Slab::with_capacity(spec.read_queue),
            waiting_reads: VecDeque::new(),
            waiting_writes: VecDeque::new(),
            writing: false,
            next_clock: 0,
            next_wake: NEVER,
            data_end: 0,
            spec,
        }
    }

    // ---- what others ask -----------------------------------------------------------------------

    /// Returns true if a read would find a place.
    pub fn has_room_for_read(&self) -> bool {
        self.waiting_reads.is_empty() && self.reads.has_place()
    }

    /// Returns true if a write would find a place.
    pub fn has_room_for_write(&self) -> bool {
        self.waiting_writes.is_empty() && self.writes.has_place()
    }

    /// Returns true if any write waits outside the full queue.
    pub fn has_writes_waiting(&self) -> bool {
        !self.waiting_writes.is_empty()
    }

    /// Returns true if a write to the line waits outside the queue.
    pub fn has_waiting_write(&self, line: LineAddr) -> bool {
        self.waiting_writes.iter().any(|&(waiting, _)| waiting == line)
    }

    /// Returns true if nothing is queued and no data are on their way to a reader.
    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty()
            && self.writes.is_empty()
            && self.waiting_reads.is_empty()
            && self.waiting_writes.is_empty()
    }

    /// When the last data so far have moved.
    pub fn idle_at(&self) -> Cycle {
        self.data_end
    }

    fn place(&self, line: LineAddr) -> Place {
        self.spec.mapping.place(LineAddr(line.0 - self.spec.start.0))
    }

    // ---- requests arrive -----------------------------------------------------------------------

    /// A read arrives.
    pub fn read(&mut self, read: Read, shared: &mut Shared) {
        shared.stats.counters.dram_reads += 1;
        let newest = self.writes.of_line_mut(read.line);
        if newest.is_some_and(|write| write.mask == WordMask::MAX) {
            let slot = self.under_way.insert(read) as u32;
            shared.events.push(shared.now + 1, Event::ReadDone(self.tag(slot)));
        } else if self.has_room_for_read() {
            self.queue_read(read, shared);
        } else {
            self.waiting_reads.push_back(read);
        }
    }

    fn queue_read(&mut self, read: Read, shared: &mut Shared) {
        let slot = self.under_way.insert(read) as u32;
        let entry = self.entry(read.line, read.arrived);
        self.rested(shared);
        self.reads.push(Entry { read: slot, ..entry }, &self.device);
        self.wake_at(shared.now, shared);
    }

    /// A write arrives. It is laid over a queued one of its line.
    pub fn write(&mut self, write: &Write, shared: &mut Shared) {
        if self.has_room_for_write() || self.writes.of_line_mut(write.line).is_some() {
            self.accept(write.line, write.mask, shared);
        } else {
            self.waiting_writes.push_back((write.line, write.mask));
        }
    }

    fn accept(&mut self, line: LineAddr, mask: WordMask, shared: &mut Shared) {
        shared.stats.counters.dram_writes += 1;
        if let Some(queued) = self.writes.of_line_mut(line) {
            queued.mask |= mask;
            return;
        }
        let entry = self.entry(line, shared.now);
        self.rested(shared);
        self.writes.push(Entry { mask, ..entry }, &self.device);
        self.wake_at(shared.now, shared);
    }

    fn entry(&self, line: LineAddr, arrived: Cycle) -> Entry {
        let Place { bank, row, .. } = self.place(line);
        Entry { line, bank, row, arrived, found: Found::Open, opened: false, mask: 0, read: 0 }
    }

    /// A request comes: if no other one waits, the device was refreshed meanwhile by itself.
    fn rested(&mut self, shared: &mut Shared) {
        if self.reads.is_empty() && self.writes.is_empty() {
            let now = self.spec.timing.ratio.clock(shared.now);
            shared.stats.counters.dram_refreshes += self.device.rest(now);
        }
    }

    fn tag(&self, slot: u32) -> u32 {
        assert!(slot < 1 << 24 && self.spec.number < 256, "slots and channels share 32 bits");
        self.spec.number << 24 | slot
    }

    // ---- commands ------------------------------------------------------------------------------

    fn wake_at(&mut self, at: Cycle, shared: &mut Shared) {
        let ratio = self.spec.timing.ratio;
        let at = ratio.cycle(ratio.clock(at).max(self.next_clock));
        if at < self.next_wake {
            self.next_wake = at;
            shared.events.push(at, Event::Channel(self.spec.number));
        }
    }

    /// Issues the commands of this cycle; called at the time set by an earlier wake-up.
    pub fn wake(&mut self, shared: &mut Shared) {
        if self.next_wake != shared.now {
            return;
        }
        self.next_wake = NEVER;
        let ratio = self.spec.timing.ratio;
        let mut clock = ratio.clock(shared.now).max(self.next_clock);
        while !(self.reads.is_empty() && self.writes.is_empty()) {
            let at = ratio.cycle(clock);
            if at > shared.now {
                self.wake_at(at, shared);
                return;
            }
            match self.issue_one(clock, shared) {
                Ok(()) => {
                    clock += 1;
                    self.next_clock = clock;
                }
                Err(next) => {
                    assert!(clock < next && next != NEVER, "requests that wait get commands");
                    clock = next;
                }
            }
        }
    }

    /// Issues the command of a clock, or tells the first clock in which one could be.
    fn issue_one(&mut self, clock: Clocks, shared: &mut Shared) -> Result<(), Clocks> {
        let mut soonest = Soonest { now: clock, next: NEVER };
        if self.serve_opened(&mut soonest, shared) {
            return Ok(());
        }
        let mut refreshed = 0;
        for rank in 0..self.device.ranks() {
            if soonest.is_now(self.device.refresh_due(rank)) {
                refreshed |= 1 << rank;
                if self.refresh(rank, &mut soonest, shared) {
                    return Ok(());
                }
            }
        }
        self.turn();
        if self.serve_queued(refreshed, &mut soonest, shared) { Ok(()) } else { Err(soonest.next) }
    }

    /// Rule 1: an access for which the row was opened.
    fn serve_opened(&mut self, soonest: &mut Soonest, shared: &mut Shared) -> bool {
        let device = &self.device;
        let mut first: Option<(Cycle, bool, usize)> = None;
        for (write, queue) in [(false, &self.reads), (true, &self.writes)] {
            if queue.unopened() == queue.len() {
                continue;
            }
            for (at, entry) in queue.entries().iter().enumerate().filter(|(_, e)| e.opened) {
                if soonest.is_now(device.access_at(entry.bank, write)) {
                    let this = (entry.arrived, write, at);
                    first = Some(first.map_or(this, |first| first.min(this)));
                    break;
                }
            }
        }
        if let Some((_, write, at)) = first {
            self.access(write, at, soonest.now, shared);
        }
        first.is_some()
    }

    /// Rule 2: closes the rows of a rank, then refreshes it.
    fn refresh(&mut self, rank: u32, soonest: &mut Soonest, shared: &mut Shared) -> bool {
        let mut open = self.device.banks_of(rank).filter(|&b| self.device.open_row(b).is_some());
        let ready = open
            .clone()
            .find(|&bank| !self.has_opened(bank) && soonest.is_now(self.device.precharge_at(bank)));
        if let Some(bank) = ready {
            self.close(bank, soonest.now);
            return true;
        }
        // Rows that were opened for requests close after those.
        let refreshes = open.next().is_none() && soonest.is_now(self.device.refresh_at(rank));
        if refreshes {
            self.device.refresh(rank, soonest.now);
            shared.stats.counters.dram_refreshes += 1;
        }
        refreshes
    }

    /// Decides whether reads or writes go.
    fn turn(&mut self) {
        let reads_wait = self.reads.unopened() > 0;
        self.writing = if self.writing {
            !self.writes.is_empty() && (self.writes.len() > self.spec.drain_low || !reads_wait)
        } else {
            self.writes.len() >= self.spec.drain_high || (!reads_wait && !self.writes.is_empty())
        };
    }

    /// Rules 3 and 4, for ranks that are not about to be refreshed.
    fn serve_queued(&mut self, refreshed: u64, soonest: &mut Soonest, shared: &mut Shared) -> bool {
        let reserved = match self.overdue(shared.now) {
            Some((write, at)) => {
                let entry = self.queue(write).entries()[at];
                if refreshed >> self.device.rank(entry.bank) & 1 == 0 {
                    let may_close = !self.has_opened(entry.bank);
                    let command = self.command_for(&entry, write, may_close);
                    if let Some((command, from)) = command
                        && soonest.is_now(from)
                    {
                        self.give(command, write, at, soonest.now, shared);
                        return true;
                    }
                }
                Some(entry.bank)
            }
            None => None,
        };
        let write = self.writing;
        let mut first = None;
        for (at, entry) in self.queue(write).entries().iter().enumerate() {
            let bank = entry.bank;
            let waits = refreshed >> self.device.rank(bank) & 1 != 0 || reserved == Some(bank);
            if entry.opened || waits {
                continue;
            }
            let tired = self.is_tired(bank, write);
            let may_close = !self.has_opened(bank) && (tired || !self.queue(write).has_hits(bank));
            let Some((command, from)) = self.command_for(entry, write, may_close) else { continue };
            let others_go = match command {
                Command::Access => tired,
                Command::Activate => {
                    self.queue(write).is_kept(bank) && entry.found != Found::Conflict
                }
                Command::Precharge => false,
            };
            if others_go || !soonest.is_now(from) {
                continue;
            }
            if command == Command::Access {
                first = Some((command, at));
                break;
            }
            first = first.or(Some((command, at)));
        }
        if let Some((command, at)) = first {
            self.give(command, write, at, soonest.now, shared);
        }
        first.is_some()
    }

    /// The oldest request that has waited for as long as any may: a read, or a write while writes go.
    fn overdue(&self, now: Cycle) -> Option<(bool, usize)> {
        let since = now.checked_sub(self.spec.age_limit)?;
        let of = |write: bool| {
            let mut entries = self.queue(write).entries().iter().enumerate();
            let (at, oldest) = entries.find(|(_, entry)| !entry.opened)?;
            (oldest.arrived <= since).then_some((write, at))
        };
        of(false).or_else(|| self.writing.then(|| of(true)).flatten())
    }

    /// Returns true if the open row of a bank was accessed as often as it may be while others wait.
    fn is_tired(&self, bank: u32, write: bool) -> bool {
        let limit = self.spec.row_hit_limit;
        limit > 0 && self.device.accesses(bank) >= limit && self.queue(write).has_misses(bank)
    }

    fn has_opened(&self, bank: u32) -> bool {
        self.reads.has_opened(bank) || self.writes.has_opened(bank)
    }

    fn queue(&self, write: bool) -> &Queue {
        if write { &self.writes } else { &self.reads }
    }

    fn queue_mut(&mut self, write: bool) -> &mut Queue {
        if write { &mut self.writes } else { &mut self.reads }
    }

    /// The command that a request needs next, and from when on it may be issued.
    #[inline]
    fn command_for(
        &self,
        entry: &Entry,
        write: bool,
        may_close: bool,
    ) -> Option<(Command, Clocks)> {
        let (device, bank) = (&self.device, entry.bank);
        match device.open_row(bank) {
            Some(row) if row == entry.row => Some((Command::Access, device.access_at(bank, write))),
            Some(_) => may_close.then(|| (Command::Precharge, device.precharge_at(bank))),
            None => Some((Command::Activate, device.activate_at(bank))),
        }
    }

    fn give(&mut self, command: Command, write: bool, at: usize, now: Clocks, shared: &mut Shared) {
        let entry = self.queue(write).entries()[at];
        match command {
            Command::Access => self.access(write, at, now, shared),
            Command::Precharge => {
                self.queue_mut(write).close(at);
                self.close(entry.bank, now);
            }
            Command::Activate => {
                self.device.activate(entry.bank, entry.row, now);
                self.queue_mut(write).open(at);
                self.row_changed(entry.bank);
            }
        }
    }

    fn close(&mut self, bank: u32, now: Clocks) {
        self.device.precharge(bank, now);
        self.row_changed(bank);
    }

    fn row_changed(&mut self, bank: u32) {
        self.reads.row_changed(bank, &self.device);
        self.writes.row_changed(bank, &self.device);
    }

    /// The line of a request moves.
    fn access(&mut self, write: bool, at: usize, now: Clocks, shared: &mut Shared) {
        let entry = self.queue_mut(write).remove(at);
        count(entry.found, &mut shared.stats);
        let end = self.device.access(entry.bank, write, now);
        let end = self.spec.timing.ratio.cycle(end);
        self.data_end = self.data_end.max(end);
        if write {
            while let Some(&(line, mask)) = self.waiting_writes.front()
                && (self.writes.has_place() || self.writes.of_line_mut(line).is_some())
            {
                self.waiting_writes.pop_front();
                self.accept(line, mask, shared);
            }
        } else {
            shared.events.push(end, Event::ReadDone(self.tag(entry.read)));
            if let Some(next) = self.waiting_reads.pop_front() {
                self.queue_read(next, shared);
            }
        }
    }

    /// A read's data have arrived.
    pub fn read_done(&mut self, slot: u32, shared: &mut Shared) {
        let read = self.under_way.remove(slot as usize);
        let place = Place { channel: self.spec.number, ..self.place(read.line) };
        shared.notices.push_back(Notice::ReadDone(read, place));
    }
}

/// Commands for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Access,
    Activate,
    Precharge,
}

/// The present clock, and the first one after it in which something could be done.
#[derive(Clone, Copy, Debug)]
struct Soonest {
    now: Clocks,
    next: Clocks,
}

impl Soonest {
    /// Returns true if a clock has come, and remembers it otherwise.
    #[inline]
    fn is_now(&mut self, at: Clocks) -> bool {
        if at > self.now {
            self.next = self.next.min(at);
        }
        at <= self.now
    }
}

fn count(found: Found, stats: &mut Stats) {
    let counters = &mut stats.counters;
    *match found {
        Found::Open => &mut counters.dram_row_hits,
        Found::Closed => &mut counters.dram_row_closed,
        Found::Conflict => &mut counters.dram_row_conflicts,
    } += 1;
}
