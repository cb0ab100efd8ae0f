//! Everything below the caches: the PM's channels and the DRAM's, on one clock.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::adversary::Adversary;
use super::channel::{Channel, ChannelSpec};
use super::dram::Dram;
use super::durability::Durability;
use super::in_transit::{InTransit, WritesInTransit};
use super::shared::{Notice, Shared};
use crate::clock::{Event, EventQueue};
use crate::config::{ControllerConfig, CoreConfig, DomainConfig, PmConfig, TlcConfig};
use crate::device::{BankSpec, EnergyModel, Timing};
use crate::media::{PmCells, overlay};
use crate::request::{
    Gate, Mapping, Order, OrderSeq, Place, Read, ReadPurpose, Token, Write, WriteOrder,
};
use crate::stats::conservation::UnderWay;
use crate::stats::{BankLoads, Counters, ProcessorEnergy, Stats, TrafficEnergy};
use graven_base::config::Config;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Image, LineAddr, LineData, WordMask, words_in};
use graven_base::time::{Cycle, NEVER, cycles};

/// A request as it was sent, for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// When it arrived at the controller.
    pub cycle: Cycle,
    /// A write, or a read.
    pub write: bool,
    /// The line.
    pub line: LineAddr,
    /// The line's content after the request.
    pub data: LineData,
    /// Former content.
    pub old: LineData,
}

/// Receives every request to PM.
pub type Recorder = Box<dyn FnMut(&RequestRecord) + Send>;

/// Controllers and devices.
pub struct MemorySystem {
    /// Clock, events, statistics, PM cells.
    pub shared: Shared,
    /// Those of PM.
    channels: Vec<Channel>,
    /// The DRAM, whose channels' numbers follow.
    dram: Dram,
    mapping: Mapping,
    /// Requests between a sender and their controller.
    reads_in_transit: slab::Slab<Read>,
    writes_in_transit: WritesInTransit,
    recorder: Option<Recorder>,
}

impl MemorySystem {
    /// The memory of a configuration, with all PM cells zero.
    pub fn new(config: &Config) -> Self {
        let (core, controller) = (config.get::<CoreConfig>(), config.get::<ControllerConfig>());
        let pm = config.get::<PmConfig>();
        let mapping = Mapping::of(config);
        let energy = EnergyModel::new(pm);
        let age_limit = match controller.age_limit_ns {
            0.0 => NEVER,
            limit => cycles(limit, core.frequency_mhz),
        };
        let channels: Vec<Channel> = (0..controller.channels)
            .map(|number| {
                Channel::new(ChannelSpec {
                    number,
                    banks: BankSpec {
                        banks: mapping.banks as usize,
                        timing: Timing::pm(pm, core),
                        energy,
                        row_writes: pm.row_writes,
                        buffered: pm.buffer_lines > 0,
                    },
                    short_bursts: controller.short_bursts,
                    mapping,
                    read_queue: controller.read_queue_entries as usize,
                    write_queue: controller.write_queue_entries as usize,
                    scheduler: controller.scheduler,
                    row_hit_limit: controller.row_hit_limit,
                    age_limit,
                    drain_high: watermark(
                        controller.write_queue_entries,
                        controller.drain_high_percent,
                    ),
                    drain_low: watermark(
                        controller.write_queue_entries,
                        controller.drain_low_percent,
                    ),
                    data_bus: controller.data_bus,
                    turnaround: match controller.turnaround_ns {
                        0.0 => 0,
                        of => cycles(of, core.frequency_mhz),
                    },
                    buffer_lines: pm.buffer_lines,
                    buffer_spill_percent: pm.buffer_spill_percent,
                })
            })
            .collect();
        let banks = (mapping.channels * mapping.banks) as usize;
        let stats = Stats {
            bank_loads: BankLoads::new(banks),
            traffic: TrafficEnergy::new(pm),
            processor: ProcessorEnergy::new(config),
            ..Stats::default()
        };
        Self {
            shared: Shared {
                now: 0,
                events: EventQueue::default(),
                stats,
                media: Image::new(),
                lines: None,
                cells: PmCells::new(pm, config.get::<TlcConfig>(), core),
                notices: Default::default(),
                durability: Durability::new(DomainConfig::keeps_write_queues(config)),
                adversary: None,
            },
            channels,
            dram: Dram::new(config, controller.channels, age_limit),
            mapping,
            reads_in_transit: slab::Slab::new(),
            writes_in_transit: WritesInTransit::default(),
            recorder: None,
        }
    }

    /// Sends every PM request to `recorder` from now on.
    pub fn record_requests(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Ends that: what follows is not part of the run.
    pub fn stop_recording(&mut self) {
        self.recorder = None;
    }

    /// Returns true if an address belongs to the PM (the DRAM follows it).
    #[inline]
    pub fn is_pm(&self, addr: Addr) -> bool {
        addr < self.dram.start()
    }

    /// The second half of the DRAM: for structures that designs keep there.
    pub fn dram_heap(&self) -> Addr {
        self.dram.start().plus(self.dram.bytes() / 2)
    }

    /// First address of the DRAM.
    pub fn dram_start(&self) -> Addr {
        self.dram.start()
    }

    /// Place of a PM line.
    pub fn place(&self, line: LineAddr) -> Place {
        self.mapping.place(line)
    }

    /// Returns true if a read of a line of PM or DRAM would find a place in its queue.
    #[inline]
    pub fn has_room_for_read(&self, line: LineAddr) -> bool {
        match self.is_pm(line.addr()) {
            true => self.channel(line).has_room_for_read(),
            false => self.dram.channel(line).has_room_for_read(),
        }
    }

    /// The same of a write.
    #[inline]
    pub fn has_room_for_write(&self, line: LineAddr) -> bool {
        match self.is_pm(line.addr()) {
            true => self.channel(line).has_room_for_write(),
            false => self.dram.channel(line).has_room_for_write(),
        }
    }

    /// Channel of a PM line.
    #[inline]
    pub fn channel(&self, line: LineAddr) -> &Channel {
        &self.channels[self.mapping.channel(line)]
    }

    /// Adds to each PM bank's count (those of the first channel first) the operations that are pending for it:
    /// on their way, waiting outside a queue, in one, or in service.
    pub fn add_pending(&self, counts: &mut [u32]) {
        let banks = self.mapping.banks as usize;
        for (channel, counts) in self.channels.iter().zip(counts.chunks_mut(banks)) {
            channel.add_pending(counts);
        }
        let reads = self.reads_in_transit.iter().map(|(_, read)| read.line);
        let writes = self.writes_in_transit.all().map(|transit| transit.write.line);
        for line in reads.chain(writes).filter(|line| self.is_pm(line.addr())) {
            let place = self.mapping.place(line);
            counts[place.channel as usize * banks + place.bank as usize] += 1;
        }
    }

    /// Sends a read that reaches its controller after `delay`.
    pub fn read(&mut self, line: LineAddr, purpose: ReadPurpose, delay: Cycle) {
        let delay = delay + self.shared.adversary.as_mut().map_or(0, Adversary::delay_of_read);
        let read = Read { line, purpose, arrived: self.shared.now + delay };
        if delay == 0 {
            self.read_arrives(read);
        } else {
            let slot = self.reads_in_transit.insert(read) as u32;
            self.shared.events.push(read.arrived, Event::ReadArrive(slot));
        }
    }

    fn read_arrives(&mut self, read: Read) {
        if self.recorder.is_some() && self.is_pm(read.line.addr()) {
            let data = self.content(read.line);
            self.record(false, read.line, data, data);
        }
        if self.is_pm(read.line.addr()) {
            let channel = self.mapping.channel(read.line);
            self.channels[channel].read(read, &mut self.shared);
        } else {
            self.dram.read(read, &mut self.shared);
        }
    }

    /// The same with a number that [`MemorySystem::take_notice`] reports when the write is durable: for those who
    /// drive memory without a design.
    pub fn write_reported(&mut self, mut write: Write, token: Token, delay: Cycle) {
        write.token = token;
        self.write(&write, delay);
    }

    /// Sends a write that reaches its controller after `delay`, and not before an earlier write of the
    /// same line that is still on its way.
    pub fn write(&mut self, write: &Write, delay: Cycle) {
        assert!(write.mask != 0, "a write writes something");
        let now = self.shared.now;
        let delay = delay + self.shared.adversary.as_mut().map_or(0, Adversary::delay);
        let earlier = self.writes_in_transit.last_of_line(write.line);
        let arrives = (now + delay).max(earlier.unwrap_or(0));
        if arrives == now && earlier.is_none() {
            self.write_arrives(write);
        } else {
            let slot = self.writes_in_transit.send(write, arrives);
            self.shared.events.push(arrives, Event::WriteArrive(slot));
        }
    }

    fn write_arrives(&mut self, write: &Write) {
        if self.recorder.is_some() {
            self.record_write(write);
        }
        if self.is_pm(write.line.addr()) {
            let channel = self.mapping.channel(write.line);
            self.channels[channel].write(write, &mut self.shared);
            self.admit_ordered();
        } else {
            self.dram.write(write, &mut self.shared);
        }
    }

    fn record_write(&mut self, write: &Write) {
        if self.is_pm(write.line.addr()) {
            // What is still on its way to the controller comes after this write.
            let old = self.channel(write.line).content(write.line, &self.shared);
            let mut data = old;
            overlay(&mut data, &write.data, write.mask);
            self.record(true, write.line, data, old);
        }
    }

    fn record(&mut self, write: bool, line: LineAddr, data: LineData, old: LineData) {
        if let Some(recorder) = &mut self.recorder {
            recorder(&RequestRecord { cycle: self.shared.now, write, line, data, old });
        }
    }

    /// Admits writes that were held back for ordered writes which became durable, in any channel.
    #[inline]
    fn admit_ordered(&mut self) {
        if self.shared.durability.order_moved {
            self.admit_in_all_channels();
        }
    }

    fn admit_in_all_channels(&mut self) {
        while std::mem::take(&mut self.shared.durability.order_moved) {
            for channel in &mut self.channels {
                channel.admit(&mut self.shared);
                channel.poke(&mut self.shared);
            }
        }
    }

    /// A place in the order that other writes can wait for.
    pub fn order(&mut self) -> WriteOrder {
        WriteOrder::from_number(self.shared.durability.order.allot())
    }

    /// The last place given out: waiting for it waits for all ordered writes sent so far.
    pub fn last_order(&self) -> OrderSeq {
        self.shared.durability.order.last()
    }

    /// The order of writes, with its gates.
    pub fn write_order(&mut self) -> &mut Order {
        &mut self.shared.durability.order
    }

    /// Opens a gate: writes that have waited behind it enter the queues, as far as there is room.
    pub fn open_gate(&mut self, gate: Gate) {
        self.shared.durability.order.gates.open(gate.number());
        self.shared.durability.order_moved = true;
        self.admit_in_all_channels();
    }

    /// A gate that is closed and behind which writes wait, and the number of those writes, if there is one.
    pub fn closed_gate(&self) -> Option<(Gate, usize)> {
        let (writes, gates) = (self.under_way(), &self.shared.durability.order.gates);
        let first = writes.iter().find(|write| !gates.is_open(write.gate))?;
        let waiting = writes.iter().filter(|write| write.gate == first.gate).count();
        Some((Gate::from_number(first.gate), waiting))
    }

    /// Handles one event of the memory's own.
    ///
    /// # Panics
    /// On an event that is not the memory's: the caller sorts them.
    #[inline]
    pub fn handle(&mut self, event: Event) {
        let shared = &mut self.shared;
        match event {
            Event::Channel(n) => match self.channels.get_mut(n as usize) {
                Some(channel) => channel.wake(shared),
                None => self.dram.channel_mut(n as usize - self.channels.len()).wake(shared),
            },
            Event::ReadDone(tag) => {
                let (n, slot) = ((tag >> 24) as usize, tag & 0xff_ffff);
                match self.channels.get_mut(n) {
                    Some(channel) => channel.read_done(slot, shared),
                    None => self.dram.channel_mut(n - self.channels.len()).read_done(slot, shared),
                }
            }
            Event::WriteDone(tag) => {
                self.channels[(tag >> 24) as usize].write_done(tag & 0xff_ffff, shared)
            }
            Event::SpillDone(n, slot) => self.channels[n as usize].spill_done(slot, shared),
            Event::ReadArrive(slot) => {
                let read = self.reads_in_transit.remove(slot as usize);
                self.read_arrives(read);
            }
            Event::WriteArrive(slot) => {
                self.writes_in_transit.arrive(slot);
                if self.recorder.is_some() {
                    let write = *self.writes_in_transit.get(slot);
                    self.record_write(&write);
                }
                let write = self.writes_in_transit.get(slot);
                if self.is_pm(write.line.addr()) {
                    let channel = self.mapping.channel(write.line);
                    self.channels[channel].write(write, &mut self.shared);
                } else {
                    self.dram.write(write, &mut self.shared);
                }
            }
            Event::StoreDrain(_)
            | Event::BufferedFill(_)
            | Event::Release(_)
            | Event::Fence(_)
            | Event::Gate(_)
            | Event::Timer(_) => unreachable!("not the memory's event"),
        }
        self.admit_ordered();
    }

    /// The newest content of a line of PM below the caches, wherever it is.
    pub fn content(&self, line: LineAddr) -> LineData {
        let mut content = self.channel(line).content(line, &self.shared);
        let mut coming: Vec<&InTransit> = self.writes_in_transit.of_line(line).collect();
        coming.sort_unstable_by_key(|t| (t.arrives, t.sequence));
        for t in coming {
            overlay(&mut content, &t.write.data, t.write.mask);
        }
        content
    }

    /// Returns true if a write to the line is on its way or waits outside a queue: sent, but not
    /// accepted.
    pub fn has_unaccepted_write(&self, line: LineAddr) -> bool {
        let waits = || match self.is_pm(line.addr()) {
            true => self.channel(line).has_waiting_write(line),
            false => self.dram.channel(line).has_waiting_write(line),
        };
        self.writes_in_transit.of_line(line).next().is_some() || waits()
    }

    /// Has a thread's fences wait for the newest write of a line that was sent and is not durable. Returns
    /// whether there is one, and they did not wait for it already.
    pub fn fence_waits_for(&mut self, line: LineAddr, thread: ThreadId) -> bool {
        if !self.is_pm(line.addr()) {
            return false;
        }
        let (channel, adr) = (self.mapping.channel(line), self.shared.durability.adr);
        let newest = self.writes_in_transit.newest_of_line_mut(line);
        let newest = newest.or_else(|| self.channels[channel].newest_undurable(line, adr));
        let Some(write) = newest else { return false };
        let new = write.fences >> thread & 1 == 0;
        write.fences |= 1 << thread;
        new
    }

    /// PM writes that wait outside the queues, for a place or for ordered writes.
    pub fn writes_waiting(&self) -> usize {
        self.channels.iter().map(Channel::writes_waiting).sum()
    }

    /// Returns true if some PM channel's write queue is full.
    pub fn has_full_write_queue(&self) -> bool {
        self.channels.iter().any(|c| !c.has_room_for_write())
    }

    /// Returns true if any write, to PM or DRAM, waits outside a queue.
    pub fn has_writes_waiting(&self) -> bool {
        self.channels.iter().any(|c| c.writes_waiting() > 0) || self.dram.has_writes_waiting()
    }

    /// Returns true if nothing is queued or on its way.
    pub fn is_idle(&self) -> bool {
        self.reads_in_transit.is_empty()
            && self.writes_in_transit.is_empty()
            && self.channels.iter().all(Channel::is_idle)
            && self.dram.is_idle()
    }

    /// Requests that have begun in PM's controllers and not ended.
    pub fn requests_under_way(&self) -> UnderWay {
        let mut sum = UnderWay::default();
        self.channels.iter().for_each(|channel| channel.add_under_way(&mut sum));
        sum
    }

    /// When buses and banks are done with what has been issued so far.
    pub fn idle_at(&self) -> Cycle {
        self.channels.iter().map(Channel::idle_at).fold(self.dram.idle_at(), Cycle::max)
    }

    /// No more programs: nothing is to stay in the queues.
    pub fn end(&mut self) {
        self.channels.iter_mut().for_each(|channel| channel.end(&mut self.shared));
    }

    /// The end of an orderly shutdown: what row buffers and on-PM buffers still hold goes to the cells, uncounted.
    pub fn flush_buffers(&mut self) {
        for channel in &self.channels {
            for (line, mask, data) in channel.surviving(false) {
                for word in words_in(mask) {
                    self.shared.media.store(line.word(word), data[word]);
                }
            }
        }
    }

    /// Content that a power failure leaves beside the cells, to be laid over them in this order.
    pub fn surviving(&self) -> Vec<(LineAddr, graven_base::memory::WordMask, LineData)> {
        let adr = self.shared.durability.adr;
        self.channels.iter().flat_map(|c| c.surviving(adr)).collect()
    }

    /// Draws further content that a power failure at this instant may leave: writes that were sent
    /// and are not durable, in an order that is legal (each line's in theirs, none before the
    /// ordered writes that it waits for), up to a point that is drawn. Some are torn: a word is the
    /// largest unit that is whole or absent.
    pub fn land_some(&self, random: &mut Pcg64) -> Vec<(LineAddr, WordMask, LineData)> {
        let mut left = self.under_way();
        let (mut order, mut landed) = (self.shared.durability.order.clone(), Vec::new());
        while !left.is_empty() && random.random_range(0..8) > 0 {
            let at = random.random_range(0..left.len());
            let write = left[at];
            let first = left[..at].iter().all(|w| w.line != write.line);
            if !first || !order.allows(write) {
                continue;
            }
            if random.random_range(0..3) == 0 {
                let part = write.mask & random.random::<WordMask>();
                if part != 0 {
                    landed.push((write.line, part, write.data));
                }
                // It is under way: nothing else of its line comes, and what waits for it does not.
                left.retain(|w| w.line != write.line);
                continue;
            }
            landed.push((write.line, write.mask, write.data));
            if write.order != 0 {
                order.durable(write.order);
            }
            left.remove(at);
        }
        landed
    }

    /// Writes to PM that were sent and are not durable, in the order in which they would arrive: those of each channel,
    /// then those on their way to one.
    fn under_way(&self) -> Vec<&Write> {
        let mut transit: Vec<&InTransit> =
            self.writes_in_transit.all().filter(|t| self.is_pm(t.write.line.addr())).collect();
        transit.sort_unstable_by_key(|t| (t.arrives, t.sequence));
        let adr = self.shared.durability.adr;
        let waiting = self.channels.iter().flat_map(|c| c.unaccepted(adr));
        waiting.chain(transit.iter().map(|t| &t.write)).collect()
    }

    /// The first place in the order of writes that was given out and that no write has, and the number of writes that wait for it;
    /// none, if no write waits for such a place.
    pub fn place_without_write(&self) -> Option<(OrderSeq, usize)> {
        let (writes, order) = (self.under_way(), &self.shared.durability.order);
        let mut places = order.missing(order.last());
        let place = places.find(|&place| writes.iter().all(|write| write.order != place))?;
        let waiting = writes.iter().filter(|write| write.after >= place).count();
        (waiting > 0).then_some((place, waiting))
    }

    /// Number of writes to PM that were sent and are not durable.
    pub fn under_way_count(&self) -> u32 {
        self.under_way().len() as u32
    }

    /// The sets of writes with which [`MemorySystem::land`] returns anything, in the order of their
    /// numbers, among those of the first `most` writes on their way. The empty one is left out.
    ///
    /// # Panics
    /// Sets of more than 16 writes are asked for.
    pub fn sets_that_may_land(&self, most: u32) -> Vec<u64> {
        assert!(most <= 16, "there are too many sets of {most} writes");
        let mut all = self.under_way();
        all.truncate(most as usize);
        let order = &self.shared.durability.order;
        // The writes that must have landed before each; none if one of these is not among them.
        let before = |(at, write): (usize, &&Write)| -> Option<u64> {
            let older = (0..at).filter(|&older| all[older].line == write.line);
            let of_line = older.fold(0, |set, older| set | 1 << older);
            if !order.gates.is_open(write.gate) {
                return None;
            }
            order.missing(write.after).try_fold(of_line, |set, place| {
                let awaited = all.iter().position(|other| other.order == place)?;
                Some(set | 1 << awaited)
            })
        };
        let before: Vec<Option<u64>> = all.iter().enumerate().map(before).collect();
        let mut may_land = vec![true; 1 << all.len()];
        for set in 1..may_land.len() {
            let is_last = |(at, before): (usize, &Option<u64>)| {
                let others = set as u64 & !(1 << at);
                let follows = before.is_some_and(|before| before & !others == 0);
                set & 1 << at != 0 && follows && may_land[others as usize]
            };
            may_land[set] = before.iter().enumerate().any(is_last);
        }
        (1..may_land.len()).filter(|&set| may_land[set]).map(|set| set as u64).collect()
    }

    /// Content that a power failure finds if, of the writes that were sent and are not durable,
    /// exactly these have landed, by their places in the order of their arrival. `None`: the order
    /// of writes does not allow it.
    pub fn land(&self, set: u64) -> Option<Vec<(LineAddr, WordMask, LineData)>> {
        let all = self.under_way();
        if all.len() < 64 && set >> all.len() != 0 {
            return None;
        }
        let (mut order, mut landed) = (self.shared.durability.order.clone(), Vec::new());
        let mut left = set;
        while left != 0 {
            let may = |&at: &usize| {
                let write = all[at];
                let missing = |&before: &usize| set & 1 << before == 0 || left & 1 << before != 0;
                let first = !(0..at).filter(missing).any(|before| all[before].line == write.line);
                left & 1 << at != 0 && first && order.allows(write)
            };
            let at = (0..all.len().min(64)).find(may)?;
            let write = all[at];
            landed.push((write.line, write.mask, write.data));
            if write.order != 0 {
                order.durable(write.order);
            }
            left &= !(1 << at);
        }
        Some(landed)
    }

    /// Content of lines if at a power failure the `count` newest of the accepted writes to PM are
    /// not drained. None without ADR.
    pub fn without_newest(&self, count: usize) -> Vec<(LineAddr, LineData)> {
        let mut accepted = self.accepted();
        accepted.sort_by_key(|&(_, place, _, arrived)| (arrived, place));
        let lost = accepted.split_off(accepted.len().saturating_sub(count));
        self.without(&lost.iter().map(|&(channel, place, ..)| (channel, place)).collect::<Vec<_>>())
    }

    /// Content of lines if at a power failure the accepted writes to a bank of PM, by its number
    /// over all channels, are not drained. None without ADR.
    pub fn without_bank(&self, bank: usize) -> Vec<(LineAddr, LineData)> {
        let banks = self.mapping.banks as usize;
        let of_bank = |&(channel, _, at, _): &(usize, usize, u32, Cycle)| {
            channel * banks + at as usize == bank
        };
        let lost = self.accepted().into_iter().filter(of_bank);
        self.without(&lost.map(|(channel, place, ..)| (channel, place)).collect::<Vec<_>>())
    }

    /// Channel, place in its queue, bank and arrival of each accepted write that is not in the device.
    fn accepted(&self) -> Vec<(usize, usize, u32, Cycle)> {
        if !self.shared.durability.adr {
            return Vec::new();
        }
        let of_channel = |(number, channel): (usize, &Channel)| {
            let accepted = channel.accepted().enumerate();
            accepted
                .map(move |(at, (bank, arrived))| (number, at, bank, arrived))
                .collect::<Vec<_>>()
        };
        self.channels.iter().enumerate().flat_map(of_channel).collect()
    }

    fn without(&self, lost: &[(usize, usize)]) -> Vec<(LineAddr, LineData)> {
        let of_channel = |(number, channel): (usize, &Channel)| {
            let places = lost.iter().filter(|&&(of, _)| of == number).map(|&(_, place)| place);
            channel.without(&places.collect::<Vec<_>>(), &self.shared)
        };
        self.channels.iter().enumerate().flat_map(of_channel).collect()
    }

    /// Runs until every queue is empty, without any program. For tests and shutdown.
    pub fn run_until_idle(&mut self) {
        while !self.is_idle() {
            let (at, event) =
                self.shared.events.pop().expect("a busy memory has something scheduled");
            self.shared.now = at;
            self.handle(event);
        }
    }

    /// Counters, to be counted up.
    #[inline]
    pub fn counters(&mut self) -> &mut Counters {
        &mut self.shared.stats.counters
    }

    /// The next notice, oldest first.
    #[inline]
    pub fn take_notice(&mut self) -> Option<Notice> {
        self.shared.notices.pop_front()
    }
}

/// Entries of a queue at which draining begins or ends.
pub(super) fn watermark(queue: u32, percent: u32) -> usize {
    queue as usize * percent as usize / 100
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::request::WriteClass;

    #[test]
    fn a_write_that_waits_for_its_turn_takes_no_place_and_one_that_waits_for_a_place_shows() {
        let mut config = crate::registry::Registry::new().defaults();
        config.set("controller.write_queue_entries", "4").expect("a valid setting");
        let mut memory = MemorySystem::new(&config);
        let line = |n: u64| Write::line(WriteClass::Data, LineAddr(n), [n; 8]);
        let order = memory.order();
        memory.write(&line(1).after(order), 0);
        assert_eq!(memory.writes_waiting(), 1);
        assert!(!memory.has_full_write_queue(), "it is held back, the queue is empty");
        for n in 2..6 {
            memory.write(&line(n), 0);
        }
        assert!(memory.has_full_write_queue());
        while let Some((at, event)) = memory.shared.events.pop() {
            memory.shared.now = at;
            memory.handle(event);
        }
        assert_eq!(memory.writes_waiting(), 1, "still");
        memory.write(&line(6).ordered(order), 0);
        assert_eq!(memory.writes_waiting(), 0, "its turn has come");
    }

    #[test]
    fn the_sets_that_may_land_are_those_that_land() {
        let mut config = crate::registry::Registry::new().defaults();
        config.set("controller.adr", "false").expect("a valid setting");
        let mut seen = [0, 0];
        for seed in 0..40 {
            let mut random = Pcg64::seed_from_u64(seed);
            let mut memory = MemorySystem::new(&config);
            let mut places = vec![WriteOrder::from_number(0)];
            for n in 0..random.random_range(1..10u64) {
                let line = LineAddr(random.random_range(0..4));
                let mut write = Write::line(WriteClass::Data, line, [n; 8]);
                // Some wait for a place that nobody has been sent with yet.
                if random.random() {
                    write = write.after(places[random.random_range(0..places.len())]);
                }
                if random.random() {
                    let order = memory.order();
                    places.push(order);
                    if random.random_range(0..4) == 0 {
                        continue;
                    }
                    write = write.ordered(order);
                }
                memory.write(&write, 0);
            }
            let under_way = memory.under_way_count();
            let most = under_way.min(random.random_range(1..9));
            let land = |&set: &u64| memory.land(set).is_some();
            let landing: Vec<u64> = (1..1 << most).filter(land).collect();
            assert_eq!(memory.sets_that_may_land(most), landing, "{seed}");
            seen[0] += landing.len();
            seen[1] += (1 << most) - 1 - landing.len();
        }
        assert!(
            seen.iter().all(|&sets| sets > 100),
            "sets that may land and that may not: {seen:?}"
        );
    }
}
