//! One memory channel: its controller's queues and scheduler, its data bus, and its banks.
//!
//! First-ready, first-come-first-served: among the requests whose bank is free, one that finds its row
//! open goes first, then the oldest. Reads go before writes, except while the write queue drains: from
//! the high watermark down to the low one. With no read waiting, writes go whenever they can. One
//! request is issued per burst time, which is how the data bus limits throughput.
//!
//! Fault model: with ADR, a write is durable when the write queue accepts it. Without, when the on-PM
//! buffer has it, or the cells where there is none. A write that finds no place, or is held back for
//! ordered writes, waits outside the queue and is volatile there. Writes of one line are accepted in the
//! order of their arrival; those of other lines may go past one that is held back.

use std::collections::VecDeque;

use super::adversary::Adversary;
use crate::clock::{Event, EventQueue};
use crate::device::{
    Bank, EnergyModel, LINES_PER_MEDIA_LINE, PmBuffer, Timing, finish_direct_write, position,
    start_direct_write,
};
use crate::media::{Effort, PmCells, overlay};
use crate::request::{Mapping, Order, Place, Read, ReadPurpose, Token, Write, WriteClass};
use crate::stats::Stats;
use graven_base::memory::{Image, LineAddr, LineData, WordMask};
use graven_base::thread_set::ThreadSet;
use graven_base::time::{Cycle, NEVER};

/// What the memory tells the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A write that carried a token is durable.
    Persisted(Token),
    /// A write that fences of these threads wait for is durable.
    DurableForFences(ThreadSet),
    /// A line of data (class [`WriteClass::Data`], all words) was accepted by a write queue.
    LineAccepted(LineAddr),
    /// A read is complete.
    ReadDone(Read, Place),
}

/// Everything that channels share.
pub struct Shared {
    /// The present.
    pub now: Cycle,
    /// What happens later.
    pub events: EventQueue,
    /// What is counted.
    pub stats: Stats,
    /// What the PM cells hold.
    pub media: Image,
    /// The cells themselves.
    pub cells: PmCells,
    /// What must be told to the machine, oldest first.
    pub notices: VecDeque<Notice>,
    /// Durability of ordered writes.
    pub order: Order,
    /// Whether write queues survive a power failure.
    pub adr: bool,
    /// Set when ordered writes became durable: writes held back for them may go on.
    pub order_moved: bool,
    /// Counts durable-state changes, so that crash points can be enumerated.
    pub durable_changes: u64,
    /// Makes the choices that the rules leave open, if not the scheduler.
    pub adversary: Option<Adversary>,
    /// Writes that became durable and have not been looked at, if anybody wants to know.
    pub durable_writes: Option<Vec<(LineAddr, WordMask, LineData)>>,
}

impl Shared {
    fn durable(&mut self, write: &Write) {
        self.durable_changes += 1;
        if write.class == WriteClass::Log {
            self.stats.log_persist_latency.record(self.now - write.arrived);
        }
        if let Some(writes) = &mut self.durable_writes {
            writes.push((write.line, write.mask, write.data));
        }
        if write.token != 0 {
            self.notices.push_back(Notice::Persisted(write.token));
        }
        if write.fences != 0 {
            self.notices.push_back(Notice::DurableForFences(write.fences));
        }
        if write.order != 0 && self.order.durable(write.order) {
            self.order_moved = true;
        }
    }
}

/// How a channel is built.
#[derive(Clone, Copy, Debug)]
pub struct ChannelSpec {
    /// Its number, for events.
    pub number: u32,
    /// PM, or volatile DRAM.
    pub persistent: bool,
    /// Device timing.
    pub timing: Timing,
    /// Device energy.
    pub energy: EnergyModel,
    /// Where lines lie.
    pub mapping: Mapping,
    /// Capacity of the read queue.
    pub read_queue: usize,
    /// Capacity of the write queue.
    pub write_queue: usize,
    /// Occupancy at which draining begins.
    pub drain_high: usize,
    /// Occupancy at which it ends, below the high one.
    pub drain_low: usize,
    /// Lines of the on-PM buffer; 0: none.
    pub buffer_lines: u32,
    /// Share of them that may stay dirty.
    pub buffer_spill_percent: u32,
}

#[derive(Clone, Copy, Debug)]
struct QueuedRead {
    read: Read,
    place: Place,
    /// The on-PM buffer has the whole line.
    buffered: bool,
    /// The write queue has it.
    forwarded: bool,
}

/// A write that has found no place yet.
#[derive(Clone, Copy, Debug)]
struct WaitingWrite {
    write: Write,
    place: Place,
    /// There was a place, but ordered writes, or an older write of the line that waits for them, had to
    /// go first.
    held: bool,
}

/// A place in the write queue: what the scheduler looks at. The write itself lies elsewhere, so that
/// the whole queue fits into few lines of the host's cache.
#[derive(Clone, Copy, Debug)]
struct QueuedWrite {
    line: LineAddr,
    row: u64,
    bank: u32,
    /// Where the write itself is.
    slot: u32,
    /// Given to a bank; it leaves when the cells have it.
    issued: bool,
    /// The on-PM buffer has its media line and takes it even when it is full.
    buffered: bool,
}

/// The adversary's choice of several.
fn choose(adversary: &mut Option<Adversary>, candidates: &[usize]) -> Option<usize> {
    let adversary = adversary.as_mut()?;
    (!candidates.is_empty()).then(|| candidates[adversary.choose(candidates.len())])
}

/// A memory channel.
pub struct Channel {
    spec: ChannelSpec,
    reads: Vec<QueuedRead>,
    /// Their line numbers, for a fast search.
    read_lines: Vec<u64>,
    /// Per bank, requests that are queued or that it is working on.
    load_of_bank: Vec<u32>,
    /// Per bank, the queued reads.
    reads_of_bank: Vec<u32>,
    /// How many of them the on-PM buffer serves.
    reads_buffered: usize,
    waiting_reads: VecDeque<QueuedRead>,
    /// Places in order of acceptance.
    writes: Vec<QueuedWrite>,
    /// Their line numbers, for a fast search.
    write_lines: Vec<u64>,
    write_slots: slab::Slab<Write>,
    /// Per bank, the queued writes that have not been given to it.
    writes_of_bank: Vec<u32>,
    /// How many writes find their media line in the on-PM buffer.
    writes_buffered: usize,
    waiting_writes: VecDeque<WaitingWrite>,
    in_service: slab::Slab<QueuedRead>,
    draining: bool,
    bus_free_at: Cycle,
    next_wake: Cycle,
    banks: Vec<Bank>,
    /// What the unbuffered writes under way program, by their slots: at most one for each bank.
    efforts: Vec<(u32, Effort)>,
    buffer: Option<PmBuffer>,
}

impl Channel {
    /// An idle channel.
    pub fn new(spec: ChannelSpec) -> Self {
        let banks = spec.mapping.banks as usize;
        Self {
            reads: Vec::with_capacity(spec.read_queue),
            read_lines: Vec::with_capacity(spec.read_queue),
            load_of_bank: vec![0; banks],
            reads_of_bank: vec![0; banks],
            reads_buffered: 0,
            waiting_reads: VecDeque::new(),
            writes: Vec::with_capacity(spec.write_queue),
            write_lines: Vec::with_capacity(spec.write_queue),
            write_slots: slab::Slab::with_capacity(spec.write_queue),
            writes_of_bank: vec![0; banks],
            writes_buffered: 0,
            waiting_writes: VecDeque::new(),
            in_service: slab::Slab::new(),
            draining: false,
            bus_free_at: 0,
            next_wake: NEVER,
            banks: vec![Bank::default(); banks],
            efforts: Vec::with_capacity(banks),
            buffer: (spec.buffer_lines > 0)
                .then(|| PmBuffer::new(spec.buffer_lines, spec.buffer_spill_percent, banks)),
            spec,
        }
    }

    /// Whether the write queue has a place. (Writes that wait outside nevertheless wait for ordered ones,
    /// and others pass them.)
    pub fn has_room_for_write(&self) -> bool {
        self.writes.len() < self.spec.write_queue
    }

    /// Whether a read would find a place in the queue.
    pub fn has_room_for_read(&self) -> bool {
        self.waiting_reads.is_empty() && self.reads.len() < self.spec.read_queue
    }

    /// Writes waiting outside a full queue.
    pub fn writes_waiting(&self) -> usize {
        self.waiting_writes.len()
    }

    /// Whether a write to the line waits outside the queue, not accepted yet.
    pub fn has_waiting_write(&self, line: LineAddr) -> bool {
        self.waiting_writes.iter().any(|w| w.write.line == line)
    }

    /// The newest write of a line that is here and not durable: outside the queue, or in it without ADR.
    pub fn newest_undurable(&mut self, line: LineAddr, adr: bool) -> Option<&mut Write> {
        let of_line = |w: &&mut WaitingWrite| w.write.line == line;
        if let Some(waiting) = self.waiting_writes.iter_mut().rev().find(of_line) {
            return Some(&mut waiting.write);
        }
        let newest = self.write_lines.iter().rposition(|&l| l == line.0).filter(|_| !adr)?;
        Some(&mut self.write_slots[self.writes[newest].slot as usize])
    }

    /// A bank has got a request, or is done with one.
    fn load_changes(&mut self, bank: u32, by: i32, shared: &mut Shared) {
        let load = &mut self.load_of_bank[bank as usize];
        *load = load.checked_add_signed(by).expect("a bank is done with what it got");
        if self.spec.persistent {
            let number = u64::from(self.spec.number) * self.spec.mapping.banks + u64::from(bank);
            shared.stats.bank_loads.set(number as usize, *load, shared.now);
        }
    }

    /// Adds to each bank's count its pending requests, and those that wait for a queue.
    pub fn add_pending(&self, counts: &mut [u32]) {
        counts.iter_mut().zip(&self.load_of_bank).for_each(|(count, load)| *count += load);
        let reads = self.waiting_reads.iter().map(|read| read.place.bank);
        let writes = self.waiting_writes.iter().map(|write| write.place.bank);
        reads.chain(writes).for_each(|bank| counts[bank as usize] += 1);
    }

    /// Whether nothing is queued or under way (the on-PM buffer may hold lines).
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty()
            && self.waiting_reads.is_empty()
            && self.in_service.is_empty()
            && self.writes.is_empty()
            && self.waiting_writes.is_empty()
    }

    /// A read arrives.
    pub fn read(&mut self, read: Read, shared: &mut Shared) {
        let place = self.spec.mapping.place(read.line);
        let mut queued = QueuedRead { read, place, buffered: false, forwarded: false };
        if self.spec.persistent {
            shared.stats.counters.controller_read_requests += 1;
        } else {
            shared.stats.counters.dram_reads += 1;
        }
        if self.forwarded_mask(read.line) == WordMask::MAX {
            if self.spec.persistent {
                shared.stats.counters.controller_reads_forwarded += 1;
            }
            queued.forwarded = true;
            let slot = self.in_service.insert(queued) as u32;
            shared.events.push(shared.now + 1, Event::ReadDone(self.tag(slot)));
            return;
        }
        if self.has_room_for_read() {
            self.enqueue_read(queued, shared);
        } else {
            self.waiting_reads.push_back(queued);
        }
    }

    fn enqueue_read(&mut self, mut queued: QueuedRead, shared: &mut Shared) {
        queued.buffered =
            self.buffer.as_ref().is_some_and(|b| b.mask(queued.read.line) == WordMask::MAX);
        self.reads_of_bank[queued.place.bank as usize] += 1;
        self.load_changes(queued.place.bank, 1, shared);
        self.reads_buffered += usize::from(queued.buffered);
        self.read_lines.push(queued.read.line.0);
        self.reads.push(queued);
        if self.spec.persistent {
            let max = &mut shared.stats.counters.read_queue_max;
            *max = (*max).max(self.reads.len() as u64);
        }
        self.wake_at(shared.now, shared);
    }

    fn tag(&self, slot: u32) -> u32 {
        debug_assert!(slot < 1 << 24 && self.spec.number < 256, "slots and channels share 32 bits");
        self.spec.number << 24 | slot
    }

    /// Which words of a line the queues hold.
    fn forwarded_mask(&self, line: LineAddr) -> WordMask {
        let waiting = self.waiting_writes.iter().map(|w| &w.write).filter(|w| w.line == line);
        self.queued_of_line(line).chain(waiting).fold(0, |mask, w| mask | w.mask)
    }

    /// Queued writes of a line, oldest first.
    fn queued_of_line(&self, line: LineAddr) -> impl Iterator<Item = &Write> {
        let first = position(&self.write_lines, line.0).unwrap_or(self.writes.len());
        let of_line = self.writes[first..].iter().filter(move |w| w.line == line);
        of_line.map(|w| &self.write_slots[w.slot as usize])
    }

    /// A write arrives.
    pub fn write(&mut self, mut write: Write, shared: &mut Shared) {
        write.arrived = shared.now;
        let place = self.spec.mapping.place(write.line);
        let mut queued = WaitingWrite { write, place, held: false };
        if self.may_accept(&queued, shared) && self.may_pass_all_waiting(&queued) {
            self.accept(queued, shared);
        } else {
            queued.held = self.has_place_for(&queued, shared);
            if self.spec.persistent {
                let c = &mut shared.stats.counters;
                *(if queued.held { &mut c.write_order_held } else { &mut c.write_queue_full }) += 1;
            }
            self.waiting_writes.push_back(queued);
        }
    }

    /// A write enters the queue only when the ordered writes that it waits for are durable: otherwise it
    /// could take the place that one of them needs.
    fn may_accept(&self, queued: &WaitingWrite, shared: &Shared) -> bool {
        shared.order.reached(queued.write.after) && self.has_place_for(queued, shared)
    }

    fn has_place_for(&self, queued: &WaitingWrite, shared: &Shared) -> bool {
        self.writes.len() < self.spec.write_queue
            || self.mergeable(queued.write.line, shared).is_some()
    }

    /// An accepted write of the same line that has not been given to a bank. (In PM without ADR each
    /// write keeps its own place, since each becomes durable by itself.)
    fn mergeable(&self, line: LineAddr, shared: &Shared) -> Option<usize> {
        if self.spec.persistent && !shared.adr {
            return None;
        }
        let first = position(&self.write_lines, line.0)?;
        let newest = self.writes[first..].iter().rposition(|w| w.line == line && !w.issued)?;
        Some(first + newest)
    }

    /// Whether a write may go before those that wait: while there is room, they wait for ordered writes
    /// (of which this may be one), and only older ones of the same line must go first.
    fn may_pass_all_waiting(&self, queued: &WaitingWrite) -> bool {
        self.waiting_writes.iter().all(|w| w.write.line != queued.write.line)
    }

    /// Takes in waiting writes as far as there is room, oldest first.
    pub fn admit(&mut self, shared: &mut Shared) {
        let mut held_back = 0;
        while let Some(&queued) = self.waiting_writes.get(held_back) {
            if !self.has_place_for(&queued, shared) {
                break;
            }
            let line = queued.write.line;
            let older_of_line =
                self.waiting_writes.iter().take(held_back).any(|w| w.write.line == line);
            if older_of_line || !shared.order.reached(queued.write.after) {
                held_back += 1;
                continue;
            }
            self.waiting_writes.remove(held_back);
            if self.spec.persistent {
                let c = &mut shared.stats.counters;
                let cycles = if queued.held {
                    &mut c.write_order_held_cycles
                } else {
                    &mut c.write_queue_full_cycles
                };
                *cycles += shared.now - queued.write.arrived;
            }
            self.accept(queued, shared);
        }
    }

    fn accept(&mut self, queued: WaitingWrite, shared: &mut Shared) {
        let write = queued.write;
        if self.spec.persistent {
            self.count_accepted(&write, shared);
        } else {
            shared.stats.counters.dram_writes += 1;
        }
        match self.mergeable(write.line, shared) {
            Some(at) => {
                if self.spec.persistent {
                    shared.stats.counters.write_queue_merges += 1;
                }
                let older = &mut self.write_slots[self.writes[at].slot as usize];
                overlay(&mut older.data, &write.data, write.mask);
                older.codings.overlay(&write.codings, write.mask);
                older.mask |= write.mask;
                older.class = older.class.min(write.class);
            }
            None => {
                self.enqueue_write(&queued);
                self.load_changes(queued.place.bank, 1, shared);
                if self.spec.persistent {
                    let max = &mut shared.stats.counters.write_queue_max;
                    *max = (*max).max(self.writes.len() as u64);
                }
            }
        }
        if self.spec.persistent {
            if write.class == WriteClass::Data && write.mask == WordMask::MAX {
                shared.notices.push_back(Notice::LineAccepted(write.line));
            }
            if shared.adr {
                shared.durable(&write);
            }
        }
        self.wake_at(shared.now, shared);
    }

    fn enqueue_write(&mut self, queued: &WaitingWrite) {
        let WaitingWrite { write, place, .. } = queued;
        let buffered = self.buffer.as_ref().is_some_and(|b| b.holds(write.line));
        self.writes_buffered += usize::from(buffered);
        self.writes_of_bank[place.bank as usize] += 1;
        self.write_lines.push(write.line.0);
        self.writes.push(QueuedWrite {
            line: write.line,
            row: place.row,
            bank: place.bank,
            slot: self.write_slots.insert(*write) as u32,
            issued: false,
            buffered,
        });
    }

    /// Takes a write out of the queue.
    fn remove_write(&mut self, index: usize) -> (Write, Place) {
        let w = self.writes.remove(index);
        self.write_lines.remove(index);
        self.writes_buffered -= usize::from(w.buffered);
        self.writes_of_bank[w.bank as usize] -= u32::from(!w.issued);
        let place = Place { channel: self.spec.number, bank: w.bank, row: w.row };
        (self.write_slots.remove(w.slot as usize), place)
    }

    /// The on-PM buffer has taken, spilled or dropped parts of a media line.
    fn buffer_changed(&mut self, media_line: u64) {
        let buffer = self.buffer.as_ref().expect("it has changed");
        let of_line = |line: &u64| line / LINES_PER_MEDIA_LINE as u64 == media_line;
        // All of them are compared, which needs no branches: mostly there is none.
        let any = |lines: &[u64]| lines.iter().fold(false, |any, line| any | of_line(line));
        let (reads, writes) = (any(&self.read_lines), any(&self.write_lines));
        let reads = if reads { &mut self.reads[..] } else { &mut [] };
        for r in reads.iter_mut().filter(|r| of_line(&r.read.line.0)) {
            self.reads_buffered -= usize::from(r.buffered);
            r.buffered = buffer.mask(r.read.line) == WordMask::MAX;
            self.reads_buffered += usize::from(r.buffered);
        }
        let writes = if writes { &mut self.writes[..] } else { &mut [] };
        for w in writes.iter_mut().filter(|w| of_line(&w.line.0)) {
            self.writes_buffered -= usize::from(w.buffered);
            w.buffered = buffer.holds(w.line);
            self.writes_buffered += usize::from(w.buffered);
        }
    }

    fn count_accepted(&self, write: &Write, shared: &mut Shared) {
        let c = &mut shared.stats.counters;
        c.controller_write_requests += 1;
        let bytes = u64::from(write.mask.count_ones()) * 8;
        match write.class {
            WriteClass::Data => {
                c.controller_write_requests_data += 1;
                c.written_bytes_data += bytes;
            }
            WriteClass::Log => {
                c.controller_write_requests_log += 1;
                c.written_bytes_log += bytes;
                c.log_bytes_written += bytes;
            }
            WriteClass::Metadata => {
                c.controller_write_requests_metadata += 1;
                c.written_bytes_metadata += bytes;
                c.log_bytes_written += bytes;
            }
            WriteClass::Gc => {
                c.controller_write_requests_gc += 1;
                c.written_bytes_gc += bytes;
            }
        }
    }

    fn wake_at(&mut self, at: Cycle, shared: &mut Shared) {
        let at = at.max(self.bus_free_at).max(shared.now);
        if at < self.next_wake {
            self.next_wake = at;
            shared.events.push(at, Event::Channel(self.spec.number));
        }
    }

    /// Something outside has changed: look again.
    pub fn poke(&mut self, shared: &mut Shared) {
        if !self.writes.is_empty() {
            self.wake_at(shared.now, shared);
        }
    }

    /// Tries to issue; called at the time set by an earlier wake-up.
    pub fn wake(&mut self, shared: &mut Shared) {
        if self.next_wake != shared.now {
            return;
        }
        self.next_wake = NEVER;
        self.update_drain(shared);
        let issued = if self.draining {
            self.issue_write(shared) || self.issue_read(shared)
        } else {
            self.issue_read(shared) || (self.reads.is_empty() && self.issue_write(shared))
        };
        if issued {
            self.bus_free_at = shared.now + self.spec.timing.burst;
        }
        self.start_spills(shared);
        self.schedule_next(shared);
    }

    fn update_drain(&mut self, shared: &mut Shared) {
        if self.writes.len() >= self.spec.drain_high {
            if !self.draining && self.spec.persistent {
                shared.stats.counters.write_drains += 1;
            }
            self.draining = true;
        } else if self.writes.len() <= self.spec.drain_low {
            self.draining = false;
        }
    }

    fn start_spills(&mut self, shared: &mut Shared) {
        let Some(buffer) = &mut self.buffer else { return };
        let reads = &self.reads_of_bank;
        while let Some((slot, done)) = buffer.spill(
            shared.now,
            &mut self.banks,
            |bank| reads[bank as usize] > 0,
            (&shared.media, &mut shared.cells),
            (&self.spec.timing, &self.spec.energy),
            &mut shared.stats,
        ) {
            shared.events.push(done, Event::SpillDone(self.spec.number, slot));
        }
    }

    /// The next time at which anything could be issued: a bank that someone waits for becomes free.
    fn schedule_next(&mut self, shared: &mut Shared) {
        let now = shared.now;
        let mut at = if self.reads_buffered > 0 {
            now
        } else if self.reads.is_empty() {
            NEVER
        } else {
            self.earliest_bank(&self.reads_of_bank)
        };
        if (self.reads.is_empty() || self.draining) && !self.writes.is_empty() {
            at = at.min(self.next_write_at(shared));
        }
        if let Some(spill) = self.buffer.as_ref().and_then(|b| b.spill_wake(&self.banks)) {
            at = at.min(spill.max(now + 1));
        }
        if at != NEVER {
            self.wake_at(at.max(now + 1), shared);
        }
    }

    /// When the first of the banks that have requests is free.
    fn earliest_bank(&self, requests: &[u32]) -> Cycle {
        let free_at = |(bank, &n): (&Bank, &u32)| if n > 0 { bank.free_at } else { NEVER };
        self.banks.iter().zip(requests).map(free_at).fold(NEVER, Cycle::min)
    }

    /// Writes wait for a bank, or for room in the on-PM buffer, which the end of a spill announces.
    fn next_write_at(&self, shared: &Shared) -> Cycle {
        match &self.buffer {
            Some(buffer) if buffer.is_full() && self.writes_buffered == 0 => NEVER,
            Some(_) => shared.now,
            None => self.earliest_bank(&self.writes_of_bank),
        }
    }

    fn issue_read(&mut self, shared: &mut Shared) -> bool {
        let now = shared.now;
        if self.reads.is_empty()
            || (self.reads_buffered == 0 && self.earliest_bank(&self.reads_of_bank) > now)
        {
            return false;
        }
        let mut best = None;
        for (i, r) in self.reads.iter().enumerate() {
            let bank = &self.banks[r.place.bank as usize];
            if !r.buffered && bank.free_at > now {
                continue;
            }
            if r.buffered || bank.open_row == Some(r.place.row) {
                best = Some(i);
                break;
            }
            best = best.or(Some(i));
        }
        let Some(i) = best else { return false };
        let queued = self.reads.remove(i);
        self.read_lines.remove(i);
        self.reads_of_bank[queued.place.bank as usize] -= 1;
        self.reads_buffered -= usize::from(queued.buffered);
        let timing = self.spec.timing;
        let data_at = if queued.buffered {
            shared.stats.counters.pm_buffer_read_hits += 1;
            now + timing.buffer
        } else {
            let bank = &mut self.banks[queued.place.bank as usize];
            if self.spec.persistent {
                bank.read(queued.place.row, now, &timing, &self.spec.energy, &mut shared.stats)
            } else {
                bank.read_volatile(queued.place.row, now, &timing)
            }
        };
        let slot = self.in_service.insert(queued) as u32;
        shared.events.push(data_at + timing.burst, Event::ReadDone(self.tag(slot)));
        if let Some(next) = self.waiting_reads.pop_front() {
            self.enqueue_read(next, shared);
        }
        true
    }

    fn issue_write(&mut self, shared: &mut Shared) -> bool {
        if self.writes.is_empty() {
            return false;
        }
        match &self.buffer {
            Some(buffer) => {
                let full = buffer.is_full();
                if full && self.writes_buffered == 0 {
                    return false;
                }
                let may = |&(i, w): &(usize, &QueuedWrite)| {
                    (!full || w.buffered) && self.may_issue(i, w, shared)
                };
                let mut candidates = self.writes.iter().enumerate().filter(may).map(|(i, _)| i);
                let next = if shared.adversary.is_none() {
                    candidates.next()
                } else {
                    let candidates: Vec<usize> = candidates.collect();
                    choose(&mut shared.adversary, &candidates)
                };
                let Some(i) = next else { return false };
                self.move_to_buffer(i, shared);
            }
            None => {
                let Some(i) = self.first_ready_write(shared) else { return false };
                self.start_write(i, shared);
            }
        }
        true
    }

    /// The write that goes to its bank next: one that finds its row open, or the oldest.
    fn first_ready_write(&self, shared: &mut Shared) -> Option<usize> {
        let now = shared.now;
        if shared.adversary.is_some() {
            let may = |&(i, w): &(usize, &QueuedWrite)| {
                let free = self.banks[w.bank as usize].free_at <= now;
                !w.issued && free && self.may_issue(i, w, shared)
            };
            let ready: Vec<usize> =
                self.writes.iter().enumerate().filter(may).map(|(i, _)| i).collect();
            return choose(&mut shared.adversary, &ready);
        }
        if self.earliest_bank(&self.writes_of_bank) > now {
            return None;
        }
        let mut best = None;
        for (i, w) in self.writes.iter().enumerate() {
            let bank = &self.banks[w.bank as usize];
            if w.issued || bank.free_at > now {
                continue;
            }
            let open = bank.open_row == Some(w.row);
            if (open || best.is_none()) && self.may_issue(i, w, shared) {
                best = Some(i);
                if open {
                    break;
                }
            }
        }
        best
    }

    /// A write waits for older ones of its line. (With ADR there is at most one: merging leaves only one
    /// that a bank is working on.)
    fn may_issue(&self, index: usize, w: &QueuedWrite, shared: &Shared) -> bool {
        let older = &self.write_lines[..index];
        (shared.adr && self.buffer.is_some()) || position(older, w.line.0).is_none()
    }

    fn move_to_buffer(&mut self, index: usize, shared: &mut Shared) {
        let (write, place) = self.remove_write(index);
        self.load_changes(place.bank, -1, shared);
        let buffer = self.buffer.as_mut().expect("the caller saw a buffer");
        buffer.write(&write, place, &self.spec.energy, &mut shared.stats);
        self.buffer_changed(write.line.0 / LINES_PER_MEDIA_LINE as u64);
        if !shared.adr {
            shared.durable(&write);
        }
        self.admit(shared);
    }

    fn start_write(&mut self, index: usize, shared: &mut Shared) {
        let w = &mut self.writes[index];
        w.issued = true;
        let (slot, row) = (w.slot, w.row);
        self.writes_of_bank[w.bank as usize] -= 1;
        let bank = &mut self.banks[w.bank as usize];
        let timing = &self.spec.timing;
        let done = if self.spec.persistent {
            let write = &self.write_slots[slot as usize];
            let cells = (&shared.media, &mut shared.cells);
            let (done, effort) = start_direct_write(bank, row, shared.now, write, cells, timing);
            self.efforts.push((slot, effort));
            done
        } else {
            bank.write_volatile(row, shared.now, timing)
        };
        shared.events.push(done, Event::WriteDone(self.tag(slot)));
    }

    /// A bank has finished a write.
    pub fn write_done(&mut self, slot: u32, shared: &mut Shared) {
        let at = self
            .writes
            .iter()
            .position(|w| w.slot == slot)
            .expect("an issued write stays queued until it is done");
        debug_assert!(self.writes[at].issued, "only an issued write is finished");
        let (w, place) = self.remove_write(at);
        self.load_changes(place.bank, -1, shared);
        if self.spec.persistent {
            let of_slot = |&(of, _): &(u32, Effort)| of == slot;
            let at = self.efforts.iter().position(of_slot).expect("it was started");
            let (_, effort) = self.efforts.swap_remove(at);
            let (media, stats) = (&mut shared.media, &mut shared.stats);
            finish_direct_write(media, &w, &effort, &self.spec.energy, stats);
            if !shared.adr {
                shared.durable(&w);
            }
        }
        self.admit(shared);
        self.wake_at(shared.now, shared);
    }

    /// A spill of the on-PM buffer has finished.
    pub fn spill_done(&mut self, slot: u32, shared: &mut Shared) {
        let buffer = self.buffer.as_mut().expect("only a buffer spills");
        let media_line = buffer.spill_done(slot, &mut shared.media, &mut shared.stats);
        self.buffer_changed(media_line);
        self.wake_at(shared.now, shared);
    }

    /// A read's data has arrived.
    pub fn read_done(&mut self, slot: u32, shared: &mut Shared) {
        let queued = self.in_service.remove(slot as usize);
        if !queued.forwarded {
            self.load_changes(queued.place.bank, -1, shared);
        }
        if self.spec.persistent {
            let latency = shared.now - queued.read.arrived;
            shared.stats.counters.reads_served += 1;
            shared.stats.counters.read_latency_cycles_sum += latency;
            shared.stats.read_latency.record(latency);
        }
        if queued.read.purpose != ReadPurpose::Trace {
            shared.notices.push_back(Notice::ReadDone(queued.read, queued.place));
        }
    }

    /// The newest content of a line below the caches: cells, on-PM buffer, queues.
    pub fn content(&self, line: LineAddr, media: &Image) -> LineData {
        let mut content = media.load_line(line);
        if let Some(buffer) = &self.buffer {
            buffer.overlay(line, &mut content);
        }
        let waiting = self.waiting_writes.iter().map(|w| &w.write).filter(|w| w.line == line);
        for w in self.queued_of_line(line).chain(waiting) {
            overlay(&mut content, &w.data, w.mask);
        }
        content
    }

    /// What survives a power failure beside the cells, to be laid over them in this order: the
    /// on-PM buffer, and with ADR the write queue.
    pub fn surviving(&self, adr: bool) -> Vec<(LineAddr, WordMask, LineData)> {
        let buffered = self.buffer.iter().flat_map(PmBuffer::contents).map(|(l, m, d)| (l, m, *d));
        let queued = self.writes.iter().filter(|_| adr).map(|w| {
            let write = &self.write_slots[w.slot as usize];
            (write.line, write.mask, write.data)
        });
        buffered.chain(queued).collect()
    }

    /// Writes that are not durable yet, those of one line in their order: what waits outside the queue,
    /// and without ADR what is in it.
    pub fn unaccepted(&self, adr: bool) -> impl Iterator<Item = &Write> {
        let queued = self.writes.iter().filter(move |_| !adr);
        let queued = queued.map(|w| &self.write_slots[w.slot as usize]);
        queued.chain(self.waiting_writes.iter().map(|w| &w.write))
    }
}
