//! The hooks: what stores, fences, loads, evictions and misses do to persist buffers, and how these are flushed.

use graven::design::{
    self, AbsorbingDesign, Design, DesignContext, Fill, LoadDesign, Miss, Mutants, Operation,
    PersistDesign, PlainStore, PlainStoreDesign, Stall, Store, Writeback, WritebackAction,
};
use graven::ids::ThreadId;
use graven::memory::{Addr, LineAddr, LineData};
use graven::program::Persist;
use graven::request::{self, WriteClass};

use super::event::Event;
use super::persist_buffer::{Epoch, PersistBuffer};
use super::{HopsConfig, Mutant};

pub(super) type Port<'a> = design::Port<'a, Hops>;

/// The design.
pub(super) struct Hops {
    config: HopsConfig,
    pub(super) buffers: Vec<PersistBuffer>,
    /// Misses that wait until no persist buffer has their line.
    misses: Vec<LineAddr>,
    mutants: Mutants<Mutant>,
}

/// An entry whose write is durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flushed {
    thread: ThreadId,
    number: u64,
}

/// A read for a miss that waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held;

impl Hops {
    pub(super) fn new(context: &DesignContext) -> Hops {
        Hops {
            config: context.config.get::<HopsConfig>().clone(),
            buffers: vec![PersistBuffer::default(); context.threads as usize],
            misses: Vec::new(),
            mutants: context.mutants(),
        }
    }

    /// A store to PM is about to be performed.
    fn store(&mut self, port: &mut Port<'_>, thread: ThreadId, addr: Addr, new: u64) -> Stall {
        let line = addr.line();
        let word = addr.word_in_line();
        let joins_older = self.mutants.has(Mutant::JoinsOlderEpochs);
        let full = self.config.persist_buffer_entries as usize;
        // A dependence first: it may split the epoch of another thread, never this one's.
        if !self.mutants.has(Mutant::StoresDependOnNothing) {
            self.depend(port, thread, line, false);
        }
        let buffer = &mut self.buffers[thread as usize];
        if let Some(entry) = buffer.joined_by_store(line, joins_older) {
            // Other words of the line may have changed since; they are in entries of their own.
            entry.content[word] = new;
            entry.words |= 1 << word;
            port.emit(Event::Joined);
            return Stall::None;
        }
        if buffer.entries.len() >= full {
            port.emit(Event::BufferFull);
            if self.mutants.has(Mutant::FullBufferDrops) {
                return Stall::None;
            }
            buffer.urgency.store_waits = true;
            self.flush(port, thread);
            return Stall::Retry;
        }
        let mut content = port.cached_line(line);
        content[word] = new;
        buffer.add(addr, content);
        let (epoch, held) = (buffer.epoch, buffer.entries.len());
        if held >= self.config.flush_at as usize {
            buffer.urgency.up_to = Some(epoch);
        }
        port.emit(Event::Added { thread, epoch, line, held });
        self.flush(port, thread);
        Stall::None
    }

    /// A thread stores to a line or loads from it: it depends on those whose persist buffers have it.
    fn depend(&mut self, port: &mut Port<'_>, thread: ThreadId, line: LineAddr, by_load: bool) {
        for other in 0..self.buffers.len() {
            if other == thread as usize {
                continue;
            }
            let Some(epoch) = self.buffers[other].epoch_of(line) else { continue };
            let on = other as ThreadId;
            if self.buffers[thread as usize].depend(on, epoch) {
                // The other thread's later stores are of another epoch: the two never wait for each other.
                let of_other = &mut self.buffers[other];
                of_other.epoch = of_other.epoch.max(epoch + 1);
                port.emit(Event::Depends { thread, on, epoch, by_load });
            }
        }
    }

    fn next_epoch(&mut self, port: &mut Port<'_>, thread: ThreadId) {
        if self.mutants.has(Mutant::OrderingFenceIgnored) {
            return;
        }
        let buffer = &mut self.buffers[thread as usize];
        buffer.epoch += 1;
        port.emit(Event::OrderingFence { thread, epoch: buffer.epoch });
    }

    fn durability_fence(&mut self, port: &mut Port<'_>, thread: ThreadId) -> Stall {
        self.next_epoch(port, thread);
        let sent_is_enough = self.mutants.has(Mutant::DurabilityFenceAwaitsSending);
        let buffer = &mut self.buffers[thread as usize];
        let waits = buffer.entries.iter().any(|entry| !(sent_is_enough && entry.sent));
        port.emit(Event::DurabilityFence { waits });
        if !waits || self.mutants.has(Mutant::DurabilityFenceIgnored) {
            return Stall::None;
        }
        buffer.urgency.fence_waits = true;
        self.flush(port, thread);
        if sent_is_enough && self.buffers[thread as usize].entries.iter().all(|e| e.sent) {
            self.buffers[thread as usize].urgency.fence_waits = false;
            return Stall::None;
        }
        Stall::UntilReleased
    }

    // ---- flushing ------------------------------------------------------------------------------

    /// Sends what may be sent of a thread's persist buffer, if somebody waits for it or enough is there, and of those that it
    /// waits for.
    fn flush(&mut self, port: &mut Port<'_>, thread: ThreadId) {
        let mut left = vec![thread];
        while let Some(thread) = left.pop() {
            for (other, epoch) in self.flush_one(port, thread) {
                let urgency = &mut self.buffers[other as usize].urgency;
                if urgency.up_to < Some(epoch) {
                    urgency.up_to = Some(epoch);
                    left.push(other);
                }
            }
        }
    }

    /// The same of one thread. Returns the epochs of others that it waits for.
    fn flush_one(&mut self, port: &mut Port<'_>, thread: ThreadId) -> Vec<(ThreadId, Epoch)> {
        let buffer = &self.buffers[thread as usize];
        let urgency = buffer.urgency;
        let all = urgency.store_waits || urgency.fence_waits;
        let mut awaited = Vec::new();
        for at in 0..self.buffers[thread as usize].entries.len() {
            let buffer = &self.buffers[thread as usize];
            let entry = &buffer.entries[at];
            if entry.sent || !all && urgency.up_to.is_none_or(|up_to| entry.epoch > up_to) {
                continue;
            }
            let is_older = |e: &super::persist_buffer::Entry| {
                e.epoch < entry.epoch && !(e.sent && self.mutants.has(Mutant::SentIsDurable))
            };
            if buffer.entries.iter().any(is_older)
                && !self.mutants.has(Mutant::OlderEpochsNotAwaited)
            {
                port.emit(Event::WaitsForOlder);
                break;
            }
            if buffer.line_is_under_way(at) {
                port.emit(Event::LineUnderWay);
                continue;
            }
            let forgets = self.mutants.has(Mutant::DependencesForgotten);
            let before: Vec<_> = buffer
                .dependences
                .iter()
                .filter(|d| d.from == entry.epoch || d.from < entry.epoch && !forgets)
                .filter(|d| !self.buffers[d.thread as usize].is_durable(d.epoch))
                .map(|d| (d.thread, d.epoch))
                .collect();
            if !before.is_empty() {
                port.emit(Event::WaitsForOther);
                awaited.extend(before);
                continue;
            }
            self.send(port, thread, at);
        }
        awaited
    }

    fn send(&mut self, port: &mut Port<'_>, thread: ThreadId, at: usize) {
        let entry = &mut self.buffers[thread as usize].entries[at];
        entry.sent = true;
        port.emit(Event::Flushed { thread, epoch: entry.epoch, line: entry.line });
        let write = request::Write::line(WriteClass::Data, entry.line, entry.content);
        let (write, number) = (write.masked(entry.words), entry.number);
        port.write_reported(write, Flushed { thread, number }, port.bypass_cycles());
    }

    /// A thread's core hears that an entry is durable.
    fn acknowledged(&mut self, port: &mut Port<'_>, Flushed { thread, number }: Flushed) {
        let buffer = &mut self.buffers[thread as usize];
        buffer.durable(number);
        let is_empty = buffer.entries.is_empty();
        if buffer.urgency.store_waits {
            buffer.urgency.store_waits = false;
            port.release_here(thread);
        } else if buffer.urgency.fence_waits && is_empty {
            buffer.urgency.fence_waits = false;
            port.release_here(thread);
        }
        self.forget_dependences();
        for thread in 0..self.buffers.len() as ThreadId {
            self.flush(port, thread);
        }
        self.answer_misses(port);
    }

    /// Dependences whose epochs are durable hold nothing up.
    fn forget_dependences(&mut self) {
        for thread in 0..self.buffers.len() {
            let mut dependences = std::mem::take(&mut self.buffers[thread].dependences);
            dependences.retain(|d| !self.buffers[d.thread as usize].is_durable(d.epoch));
            self.buffers[thread].dependences = dependences;
        }
    }

    // ---- misses --------------------------------------------------------------------------------

    fn is_held(&self, line: LineAddr) -> bool {
        self.buffers.iter().any(|buffer| buffer.epoch_of(line).is_some())
    }

    /// Has whoever has a line flush it.
    fn hurry(&mut self, port: &mut Port<'_>, line: LineAddr) {
        for thread in 0..self.buffers.len() {
            if let Some(epoch) = self.buffers[thread].epoch_of(line) {
                let urgency = &mut self.buffers[thread].urgency;
                urgency.up_to = urgency.up_to.max(Some(epoch));
                self.flush(port, thread as ThreadId);
            }
        }
    }

    fn answer_misses(&mut self, port: &mut Port<'_>) {
        let misses = std::mem::take(&mut self.misses);
        for line in misses {
            if self.is_held(line) {
                self.misses.push(line);
            } else {
                port.read_for_miss(line, Held, port.bypass_cycles());
            }
        }
    }
}

impl Design for Hops {
    type Write = Flushed;
    type Read = Held;
    type Timer = Flushed;
    type Event = Event;

    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        self.store(port, store.tx.thread, store.addr, store.new)
    }

    fn on_llc_miss(&mut self, port: &mut Port<'_>, miss: &Miss) -> Fill {
        let line = miss.line;
        if !self.is_held(line) || self.mutants.has(Mutant::MissesReadHome) {
            return Fill::Home;
        }
        port.emit(Event::MissHeld { line });
        self.misses.push(line);
        self.hurry(port, line);
        Fill::Design
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Flushed) {
        port.send_to_core(0, write);
    }

    fn on_read(&mut self, port: &mut Port<'_>, _read: Held, line: LineAddr, content: &LineData) {
        port.deliver(line, *content, 0);
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Flushed) {
        self.acknowledged(port, timer);
    }

    /// Persist buffers are flushed.
    fn start_maintenance(&mut self, port: &mut Port<'_>) {
        for thread in 0..self.buffers.len() {
            let buffer = &mut self.buffers[thread];
            buffer.urgency.up_to = Some(buffer.epoch);
            self.flush(port, thread as ThreadId);
        }
    }

    fn is_idle(&self) -> bool {
        self.buffers.iter().all(|buffer| buffer.entries.iter().all(|entry| !entry.sent))
    }

    fn on_shutdown(&mut self, port: &mut Port<'_>) {
        self.start_maintenance(port);
    }
}

impl PlainStoreDesign for Hops {
    fn on_plain_store(&mut self, port: &mut Port<'_>, store: &PlainStore) -> Stall {
        self.store(port, store.thread, store.addr, store.new)
    }
}

impl PersistDesign for Hops {
    fn on_persist(
        &mut self,
        port: &mut Port<'_>,
        thread: ThreadId,
        _core: u32,
        what: Persist,
    ) -> Option<Stall> {
        match what {
            Persist::Order(Operation::OrderingFence) => {
                self.next_epoch(port, thread);
                Some(Stall::None)
            }
            Persist::Order(Operation::DurabilityFence) => Some(self.durability_fence(port, thread)),
            Persist::WriteBack(_) => Some(Stall::None),
            _ => None,
        }
    }
}

impl LoadDesign for Hops {
    fn on_load(&mut self, port: &mut Port<'_>, thread: ThreadId, _core: u32, addr: Addr) {
        if !self.mutants.has(Mutant::LoadsDependOnNothing) {
            self.depend(port, thread, addr.line(), true);
        }
    }
}

impl AbsorbingDesign for Hops {
    const HAS_DIRTY_WORDS: bool = true;

    fn on_dirty_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        _content: &LineData,
    ) -> WritebackAction<Flushed> {
        if self.mutants.has(Mutant::EvictionsGoHome) {
            return WritebackAction::Send(Writeback::FREE);
        }
        if self.is_held(line) {
            port.emit(Event::Dropped);
        }
        WritebackAction::Absorb
    }
}
