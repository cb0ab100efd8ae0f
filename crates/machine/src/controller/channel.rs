//! One channel of PM: requests arrive, are scheduled, keep banks busy, and finish.
//!
//! One request is issued per burst time, which is how the data bus limits throughput. Which one is the
//! scheduler's business; when a write is durable that of [`durability`](super::durability).

use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE, WordMask};
use graven_base::time::{Cycle, NEVER};

use super::accounts::Accounts;
use super::data_bus::{DataBus, Moves};
use super::lists::Request;
use super::read_queue::{QueuedRead, ReadQueue, serves};
use super::scheduler::{Choice, Drain, Scheduler, View};
use super::shared::{Notice, Shared};
use super::waiting_writes::{Arrival, WaitingWrite};
use super::write_queue::{Arrived, WriteQueue};
use crate::clock::Event;
use crate::config::{DataBusHeld, SchedulerKind};
use crate::device::{BankSpec, Banks, Block, LINES_PER_MEDIA_LINE, PmBuffer};
use crate::media::{Effort, overlay};
use crate::request::{Mapping, Place, Read, ReadPurpose, Write};
use crate::stats::conservation::UnderWay;
use crate::stats::{Work, WorkKind};

/// Parameters of a channel.
#[derive(Clone, Copy, Debug)]
pub struct ChannelSpec {
    /// Number, for events.
    pub number: u32,
    /// Banks.
    pub banks: BankSpec,
    /// True if a write occupies the data bus only for the words that it writes.
    pub short_bursts: bool,
    /// Mapping of lines.
    pub mapping: Mapping,
    /// Capacity of the read queue.
    pub read_queue: usize,
    /// Capacity of the write queue.
    pub write_queue: usize,
    /// Policy that chooses the next request.
    pub scheduler: SchedulerKind,
    /// Accesses to an open row after which requests for other rows go first; 0: any number.
    pub row_hit_limit: u32,
    /// Age from which on a request goes before younger ones; [`NEVER`]: none does.
    pub age_limit: Cycle,
    /// Occupancy at which draining begins.
    pub drain_high: usize,
    /// Occupancy at which it ends, below the high one.
    pub drain_low: usize,
    /// Hold time of the data bus by a request.
    pub data_bus: DataBusHeld,
    /// Cycles from a read on the data bus to a write there at least.
    pub turnaround: Cycle,
    /// Lines of the on-PM buffer; 0: none.
    pub buffer_lines: u32,
    /// Share of them that may stay dirty.
    pub buffer_spill_percent: u32,
}

/// A memory channel.
pub struct Channel {
    spec: ChannelSpec,
    accounts: Accounts,
    reads: ReadQueue,
    writes: WriteQueue,
    scheduler: Scheduler,
    /// Per bank, requests that are queued or that it is working on.
    load_of_bank: Vec<u32>,
    /// Reads that have been issued.
    in_service: slab::Slab<QueuedRead>,
    bus: DataBus,
    next_wake: Cycle,
    /// Requests that have arrived.
    arrivals: u64,
    banks: Banks,
    /// Programming effort of the unbuffered writes under way, by their slots.
    efforts: Vec<Option<Effort>>,
    buffer: Option<PmBuffer>,
}

impl Channel {
    /// An idle channel.
    pub fn new(spec: ChannelSpec) -> Self {
        let banks = spec.banks.banks;
        let buffer = (spec.buffer_lines > 0)
            .then(|| PmBuffer::new(spec.buffer_lines, spec.buffer_spill_percent, banks));
        Self {
            accounts: Accounts::new(spec.number as usize * banks),
            reads: ReadQueue::new(spec.read_queue, banks),
            writes: WriteQueue::new(spec.write_queue, banks, buffer.is_some()),
            scheduler: Scheduler::new(spec.scheduler, Drain::new(spec.drain_high, spec.drain_low)),
            load_of_bank: vec![0; banks],
            in_service: slab::Slab::new(),
            bus: DataBus::new(spec.data_bus, spec.turnaround),
            next_wake: NEVER,
            arrivals: 0,
            banks: Banks::new(spec.banks),
            efforts: vec![None; spec.write_queue],
            buffer,
            spec,
        }
    }

    // ---- what others ask -----------------------------------------------------------------------

    /// Returns true if the write queue has a place. (Writes that wait outside nevertheless wait for
    /// ordered ones, and others pass them.)
    #[inline]
    pub fn has_room_for_write(&self) -> bool {
        self.writes.has_room() && self.shared_queue_has_room() && self.scheduler.accepts_writes()
    }

    /// Returns true if there is room where reads and writes share a queue.
    #[inline]
    fn shared_queue_has_room(&self) -> bool {
        !self.scheduler.has_one_queue()
            || self.reads.len() + self.writes.len() < self.spec.write_queue
    }

    /// Returns true if a read would find a place in the queue.
    #[inline]
    pub fn has_room_for_read(&self) -> bool {
        self.reads.has_room() && self.shared_queue_has_room()
    }

    /// Adds what is queued, and what has been answered and is not there yet.
    pub fn add_under_way(&self, to: &mut UnderWay) {
        to.reads_queued += (self.reads.len() + self.reads.waiting().count()) as u64;
        to.reads_in_service += self.in_service.len() as u64;
        to.writes_queued += self.writes.len() as u64;
    }

    /// Writes waiting outside a full queue.
    pub fn writes_waiting(&self) -> usize {
        self.writes.waiting().len()
    }

    /// Returns true if a write to the line waits outside the queue, not accepted yet.
    pub fn has_waiting_write(&self, line: LineAddr) -> bool {
        self.writes.waiting().has(line)
    }

    /// The newest write of a line that is here and not durable: outside the queue, or in it without ADR.
    pub fn newest_undurable(&mut self, line: LineAddr, adr: bool) -> Option<&mut Write> {
        if self.writes.waiting().has(line) {
            return self.writes.waiting_mut().newest_mut(line);
        }
        self.writes.newest_mut(line).filter(|_| !adr)
    }

    /// Adds to each bank's count its pending requests, and those that wait for a queue.
    pub fn add_pending(&self, counts: &mut [u32]) {
        counts.iter_mut().zip(&self.load_of_bank).for_each(|(count, load)| *count += load);
        let writes = self.writes.waiting().of_bank();
        counts.iter_mut().zip(writes).for_each(|(count, waiting)| *count += waiting);
        self.reads.waiting().for_each(|read| counts[read.place.bank as usize] += 1);
    }

    /// Returns true if nothing is queued or under way (the on-PM buffer may hold lines).
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty()
            && self.reads.waiting().next().is_none()
            && self.in_service.is_empty()
            && self.writes.is_empty()
            && self.writes.waiting().len() == 0
    }

    /// When bus and banks are done with what has been issued so far: lines that move, and spills of the on-PM buffer.
    pub fn idle_at(&self) -> Cycle {
        self.bus.idle_at().max(self.banks.idle_at())
    }

    /// The newest content of a line below the caches: cells, row buffers, on-PM buffer, queues.
    pub fn content(&self, line: LineAddr, shared: &Shared) -> LineData {
        let mut content = shared.cell_content(line);
        if self.banks.keep_rows() {
            self.banks.overlay(self.spec.mapping.place(line).bank, line, &mut content);
        }
        if let Some(buffer) = &self.buffer {
            buffer.overlay(line, &mut content);
        }
        for w in self.writes.of_line(line) {
            overlay(&mut content, &w.data, w.mask);
        }
        self.writes.waiting().overlay(line, &mut content);
        content
    }

    /// Content that survives a power failure beside the cells, to be laid over them in this order:
    /// the row buffers, the on-PM buffer, and with ADR the write queue.
    pub fn surviving(&self, adr: bool) -> Vec<(LineAddr, WordMask, LineData)> {
        let buffered = self.buffer.iter().flat_map(PmBuffer::contents);
        let device = self.banks.contents().chain(buffered).map(|(l, m, d)| (l, m, *d));
        let queued = self.writes.writes().filter(|_| adr).map(|w| (w.line, w.mask, w.data));
        device.chain(queued).collect()
    }

    /// Banks, and arrivals, of the accepted writes in the queue, by their places in it.
    pub fn accepted(&self) -> impl Iterator<Item = (u32, Cycle)> + '_ {
        let lists = self.writes.lists();
        lists.oldest_first().map(|slot| (lists.get(slot).bank, self.writes.get(slot).arrived))
    }

    /// Content of the lines of these accepted writes below the caches if the writes are lost, by
    /// their places in the queue.
    pub fn without(&self, lost: &[usize], shared: &Shared) -> Vec<(LineAddr, LineData)> {
        let writes: Vec<&Write> = self.writes.writes().collect();
        let content = |at: &usize| {
            let line = writes[*at].line;
            let mut content = shared.cell_content(line);
            if self.banks.keep_rows() {
                self.banks.overlay(self.spec.mapping.place(line).bank, line, &mut content);
            }
            if let Some(buffer) = &self.buffer {
                buffer.overlay(line, &mut content);
            }
            let kept =
                writes.iter().enumerate().filter(|(i, w)| w.line == line && !lost.contains(i));
            kept.for_each(|(_, w)| overlay(&mut content, &w.data, w.mask));
            (line, content)
        };
        lost.iter().map(content).collect()
    }

    /// Writes that are not durable yet, those of one line in their order: what waits outside the queue,
    /// and without ADR what is in it.
    pub fn unaccepted(&self, adr: bool) -> impl Iterator<Item = &Write> {
        let queued = self.writes.writes().filter(move |_| !adr);
        queued.chain(self.writes.waiting().iter().map(|w| &w.write))
    }

    fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    // ---- reads arrive --------------------------------------------------------------------------

    /// A read arrives.
    pub fn read(&mut self, read: Read, shared: &mut Shared) {
        let place = self.spec.mapping.place(read.line);
        let number = self.next_arrival();
        let mut queued = QueuedRead { read, place, forwarded: false, number };
        self.accounts.read_arrives(&mut shared.stats);
        if self.writes.words_of(read.line) == WordMask::MAX {
            self.accounts.read_forwarded(&mut shared.stats);
            queued.forwarded = true;
            let slot = self.in_service.insert(queued) as u32;
            shared.events.push(shared.now + 1, Event::ReadDone(self.tag(slot)));
        } else if self.has_room_for_read() {
            self.enqueue_read(queued, shared);
        } else {
            self.reads.wait(queued);
        }
    }

    /// Takes in waiting reads as far as there is room, oldest first.
    fn admit_reads(&mut self, shared: &mut Shared) {
        while self.reads.has_place() && self.shared_queue_has_room() {
            let Some(next) = self.reads.take_waiting() else { break };
            self.enqueue_read(next, shared);
        }
    }

    fn enqueue_read(&mut self, queued: QueuedRead, shared: &mut Shared) {
        let buffered = self.buffer.as_ref().is_some_and(|b| serves(b, queued.read.line));
        self.load_changes(queued.place.bank, 1, shared);
        self.reads.push(queued, buffered);
        self.accounts.reads_queued(self.reads.len(), &mut shared.stats);
        self.wake_at(shared.now, shared);
    }

    /// A bank has got a request, or is done with one.
    fn load_changes(&mut self, bank: u32, by: i32, shared: &mut Shared) {
        let load = &mut self.load_of_bank[bank as usize];
        *load = load.checked_add_signed(by).expect("a bank is done with what it got");
        self.accounts.bank_load(bank, *load, shared.now, &mut shared.stats);
    }

    fn tag(&self, slot: u32) -> u32 {
        assert!(slot < 1 << 24 && self.spec.number < 256, "slots and channels share 32 bits");
        self.spec.number << 24 | slot
    }

    // ---- writes arrive -------------------------------------------------------------------------

    /// A write arrives.
    pub fn write(&mut self, write: &Write, shared: &mut Shared) {
        let place = self.spec.mapping.place(write.line);
        let number = self.next_arrival();
        if self.may_accept(write, shared) && !self.writes.waiting().has(write.line) {
            self.accept(write, Arrived { at: shared.now, number }, &place, shared);
        } else {
            let held = self.has_place_for(write.line, shared);
            self.accounts.write_waits(held, &mut shared.stats);
            let write = Write { arrived: shared.now, ..*write };
            self.writes.waiting_mut().push(WaitingWrite { write, place, number, held });
        }
    }

    /// A write enters the queue only when the ordered writes that it waits for are durable: otherwise it
    /// could take the place that one of them needs.
    fn may_accept(&self, write: &Write, shared: &Shared) -> bool {
        shared.durability.order.allows(write) && self.has_place_for(write.line, shared)
    }

    fn has_place_for(&self, line: LineAddr, shared: &Shared) -> bool {
        self.has_room_for_write()
            || self.scheduler.accepts_writes() && self.mergeable(line, shared).is_some()
    }

    /// An accepted write of the same line that has not been given to a bank. (In PM without ADR each
    /// write keeps its own place, since each becomes durable by itself.)
    fn mergeable(&self, line: LineAddr, shared: &Shared) -> Option<u32> {
        if !shared.durability.adr {
            return None;
        }
        self.writes.newest_unissued(line)
    }

    /// A write has left the queue: takes in what waits for its place.
    #[inline]
    fn refill(&mut self, shared: &mut Shared) {
        if self.reads.has_waiting() || self.writes.waiting().len() > 0 {
            self.take_in(shared);
        }
    }

    fn take_in(&mut self, shared: &mut Shared) {
        if self.scheduler.has_one_queue() {
            let read = self.reads.waiting().next().map(|queued| queued.read.arrived);
            let write = self.writes.waiting().iter().next().map(|queued| queued.write.arrived);
            if read.is_some_and(|read| write.is_none_or(|write| read <= write)) {
                self.admit_reads(shared);
            }
            self.admit(shared);
            self.admit_reads(shared);
        } else {
            self.admit(shared);
        }
    }

    /// Takes in waiting writes as far as there is room, oldest first. While there is room, those that stay wait for
    /// ordered writes (of which a later one may be one), and only older ones of the same line must go first.
    pub fn admit(&mut self, shared: &mut Shared) {
        if self.writes.waiting().len() == 0 {
            return;
        }
        let mut from = 0;
        while let Some(next) = self.writes.waiting_mut().next_ready(from, &shared.durability.order)
        {
            if !self.have_place_up_to(from, next, shared) {
                break;
            }
            from = next + 1;
            let WaitingWrite { write, place, number, held } = self.writes.waiting_mut().take(next);
            let waited = shared.now - write.arrived;
            self.accounts.write_has_waited(held, waited, &mut shared.stats);
            self.accept(&write, Arrived { at: write.arrived, number }, &place, shared);
        }
    }

    /// Returns true if each write outside that arrived from one to another finds a place: a full
    /// queue is passed by none.
    fn have_place_up_to(&self, from: Arrival, to: Arrival, shared: &Shared) -> bool {
        let mut between = self.writes.waiting().between(from, to);
        self.has_room_for_write()
            || between.all(|queued| self.has_place_for(queued.write.line, shared))
    }

    /// A write is accepted.
    fn accept(&mut self, write: &Write, arrived: Arrived, place: &Place, shared: &mut Shared) {
        assert!(
            shared.durability.order.allows(write),
            "a write is accepted after the ordered writes and the gate that it waits for"
        );
        assert!(arrived.at <= shared.now, "a write is accepted after its arrival");
        self.accounts.write_accepted(write, &mut shared.stats);
        match self.mergeable(write.line, shared) {
            Some(slot) => {
                self.accounts.write_merged(&mut shared.stats);
                self.writes.merge(slot, write);
            }
            None => {
                let buffered = self.buffer.as_ref().is_some_and(|b| b.holds(write.line));
                self.writes.push(write, arrived, shared.now, place, buffered);
                self.load_changes(place.bank, 1, shared);
                self.accounts.writes_queued(self.writes.len(), &mut shared.stats);
            }
        }
        if shared.durability.adr {
            shared.durable(write, arrived.at);
        }
        self.wake_at(shared.now, shared);
    }

    // ---- scheduling ----------------------------------------------------------------------------

    #[inline]
    fn wake_at(&mut self, at: Cycle, shared: &mut Shared) {
        let at = at.max(self.bus.free_at()).max(shared.now);
        if at < self.next_wake {
            self.set_wake(at, shared);
        }
    }

    fn set_wake(&mut self, at: Cycle, shared: &mut Shared) {
        self.next_wake = at;
        shared.events.push(at, Event::Channel(self.spec.number));
    }

    /// Something outside has changed: look again.
    pub fn poke(&mut self, shared: &mut Shared) {
        if !self.writes.is_empty() {
            self.wake_at(shared.now, shared);
        }
    }

    /// Tries to issue; called at the time set by an earlier wake-up.
    #[inline]
    pub fn wake(&mut self, shared: &mut Shared) {
        if self.next_wake == shared.now {
            self.next_wake = NEVER;
            self.issue_one(shared);
        }
    }

    fn issue_one(&mut self, shared: &mut Shared) {
        let (drains, accepted) = (self.scheduler.drains(), self.scheduler.accepts_writes());
        self.banks.advance(shared.now);
        let worked = self.banks.take_worked();
        self.reads.banks_changed(worked);
        self.writes.banks_changed(worked);
        let (scheduler, mut view) = self.view(shared);
        let choice = scheduler.choose(&mut view, &mut shared.adversary);
        self.accounts.drains(self.scheduler.drains() - drains, &mut shared.stats);
        if let Some(choice) = choice {
            match choice {
                Choice::Read(slot) => self.issue_read(slot, shared),
                Choice::Write(slot) if self.buffer.is_some() => self.move_to_buffer(slot, shared),
                Choice::Write(slot) => self.start_write(slot, shared),
            }
        }
        self.scheduler.issued(self.writes.len());
        if !accepted && self.scheduler.accepts_writes() {
            self.admit(shared);
        }
        self.start_spills(shared);
        self.schedule_next(shared);
    }

    /// The programs have ended: nothing stays in the queues.
    pub fn end(&mut self, shared: &mut Shared) {
        self.scheduler.end();
        self.poke(shared);
    }

    /// Cycles for which a queued write occupies the data bus.
    fn burst_of_write(&self, slot: u32) -> Cycle {
        let burst = self.spec.banks.timing.burst;
        if !self.spec.short_bursts {
            return burst;
        }
        let mask = self.writes.get(slot).mask;
        (burst * Cycle::from(mask.count_ones())).div_ceil(WORDS_PER_LINE as Cycle)
    }

    /// The policy, and what it is shown.
    #[inline]
    fn view(&mut self, shared: &Shared) -> (&mut Scheduler, View<'_>) {
        let view = View {
            now: shared.now,
            reads: &mut self.reads,
            writes: &mut self.writes,
            banks: &self.banks,
            buffer: self.buffer.as_ref(),
            adr: shared.durability.adr,
            row_hit_limit: self.spec.row_hit_limit,
            age_limit: self.spec.age_limit,
        };
        (&mut self.scheduler, view)
    }

    /// The next time at which anything could be issued, or the on-PM buffer can spill.
    fn schedule_next(&mut self, shared: &mut Shared) {
        let (scheduler, view) = self.view(shared);
        let mut at = scheduler.next_at(&view);
        let next = shared.now + 1;
        if at > next
            && let Some(buffer) = &self.buffer
        {
            at = at.min(buffer.spill_wake(&self.banks));
        }
        if at != NEVER {
            self.wake_at(at.max(next), shared);
        }
    }

    // ---- the device works ----------------------------------------------------------------------

    fn issue_read(&mut self, slot: u32, shared: &mut Shared) {
        let (&queued, buffered) = self.reads.take(slot);
        let timing = &self.spec.banks.timing;
        let (burst, row_hit) = (timing.burst, timing.row_hit);
        let data_at = if buffered {
            shared.stats.counters.pm_buffer_read_hits += 1;
            shared.now + self.bus.issue_to_buffer(shared.now, burst, Moves::Read) + timing.buffer
        } else {
            let data_at = self.banks.read(queued.place, shared.now, &mut shared.media());
            let wait = self.bus.issue(shared.now, data_at - row_hit, burst, Moves::Read);
            self.banks.wait(queued.place.bank, wait);
            data_at + wait
        };
        let from = shared.now;
        self.accounts.works(&mut shared.stats, || Work {
            bank: (!buffered).then_some(queued.place.bank),
            kind: WorkKind::Read,
            line: queued.read.line,
            arrived: queued.read.arrived,
            from,
            until: data_at + burst,
        });
        let slot = self.in_service.insert(queued) as u32;
        shared.events.push(data_at + burst, Event::ReadDone(self.tag(slot)));
        if self.scheduler.has_one_queue() {
            self.refill(shared);
        } else {
            self.admit_reads(shared);
        }
    }

    fn move_to_buffer(&mut self, slot: u32, shared: &mut Shared) {
        let burst = self.burst_of_write(slot);
        let wait = self.bus.issue_to_buffer(shared.now, burst, Moves::Write);
        let place = self.remove_write(slot, shared);
        let write = self.writes.get(slot);
        let line = write.line;
        let from = shared.now;
        self.accounts
            .works(&mut shared.stats, || Work::of_write(write, None, from..from + wait + burst));
        let buffer = self.buffer.as_mut().expect("the caller saw a buffer");
        buffer.write(write, place, self.banks.energy(), &mut shared.stats);
        if !shared.durability.adr {
            shared.durable(write, write.arrived);
        }
        self.buffer_changed(line.0 / LINES_PER_MEDIA_LINE as u64);
        self.refill(shared);
    }

    fn start_write(&mut self, slot: u32, shared: &mut Shared) {
        let burst = self.burst_of_write(slot);
        self.writes.issue(slot);
        let place = self.place_of(self.writes.lists().get(slot));
        let block = Block::of(self.writes.get(slot));
        let now = shared.now;
        let begun = self.banks.begin_write(place, now, &block, false, &mut shared.media());
        self.efforts[slot as usize] = begun.effort;
        let wait = self.bus.issue(now, begun.row_open_at, burst, Moves::Write);
        self.banks.wait(place.bank, wait);
        let done = begun.done;
        let (from, writes) = (shared.now, &self.writes);
        self.accounts.works(&mut shared.stats, || {
            Work::of_write(writes.get(slot), Some(place.bank), from..done + wait)
        });
        shared.events.push(done + wait, Event::WriteDone(self.tag(slot)));
    }

    /// A bank has finished a write.
    pub fn write_done(&mut self, slot: u32, shared: &mut Shared) {
        assert!(self.writes.lists().is_issued(slot), "only an issued write is finished");
        let place = self.remove_write(slot, shared);
        let write = self.writes.get(slot);
        let effort = self.efforts[slot as usize].take();
        self.banks.finish_write(place.bank, &Block::of(write), effort, &mut shared.media());
        if !shared.durability.adr {
            shared.durable(write, write.arrived);
        }
        self.refill(shared);
        self.wake_at(shared.now, shared);
    }

    /// A write leaves the queue; it is in its slot until another comes. Returns its place in the device.
    fn remove_write(&mut self, slot: u32, shared: &mut Shared) -> Place {
        let request = self.writes.remove(slot);
        self.accounts.write_served(&mut shared.stats);
        self.load_changes(request.bank, -1, shared);
        self.place_of(&request)
    }

    fn place_of(&self, queued: &Request) -> Place {
        Place { channel: self.spec.number, bank: queued.bank, row: queued.row }
    }

    fn start_spills(&mut self, shared: &mut Shared) {
        let Some(buffer) = &mut self.buffer else { return };
        let avoid = self.reads.banks();
        let never = match shared.now.checked_sub(self.spec.age_limit) {
            Some(since) => self.reads.overdue_banks(since),
            None => 0,
        };
        loop {
            let may = buffer.may_spill(&self.banks, avoid, never);
            if may == 0 {
                break;
            }
            let (slot, done) = buffer.spill(may, shared.now, &mut self.banks, &mut shared.media());
            let from = shared.now;
            self.accounts.works(&mut shared.stats, || {
                let (bank, line) = buffer.content_of(slot);
                Work {
                    bank: Some(bank),
                    kind: WorkKind::Spill,
                    line,
                    arrived: from,
                    from,
                    until: done,
                }
            });
            shared.events.push(done, Event::SpillDone(self.spec.number, slot));
        }
    }

    /// A spill of the on-PM buffer has finished.
    pub fn spill_done(&mut self, slot: u32, shared: &mut Shared) {
        let buffer = self.buffer.as_mut().expect("only a buffer spills");
        let media_line = buffer.spill_done(slot, &mut self.banks, &mut shared.media());
        self.buffer_changed(media_line);
        self.wake_at(shared.now, shared);
    }

    /// The on-PM buffer has taken, spilled or dropped parts of a media line.
    fn buffer_changed(&mut self, media_line: u64) {
        let buffer = self.buffer.as_ref().expect("it has changed");
        self.reads.buffer_changed(buffer, media_line);
        self.writes.buffer_changed(buffer, media_line);
    }

    /// A read's data has arrived.
    pub fn read_done(&mut self, slot: u32, shared: &mut Shared) {
        let queued = self.in_service.remove(slot as usize);
        if !queued.forwarded {
            self.load_changes(queued.place.bank, -1, shared);
        }
        self.accounts.read_served(&queued.read, shared.now, &mut shared.stats);
        if queued.read.purpose != ReadPurpose::Trace {
            shared.notices.push_back(Notice::ReadDone(queued.read, queued.place));
        }
    }
}
