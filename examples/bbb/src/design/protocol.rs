//! The hooks: what stores, departures, evictions and misses do to persist buffers, how these are drained, and what a battery saves.

use graven::config::CoreConfig;
use graven::design::{
    self, AbsorbingDesign, Cause, Departure, DepartureDesign, Design, DesignContext, Mutants,
    PersistDesign, PlainStore, PlainStoreDesign, Stall, Store, Unused, WritebackAction,
};
use graven::ids::ThreadId;
use graven::memory::{Addr, LineAddr, LineData, WordMask};
use graven::program::Persist;
use graven::request::{self, WriteClass};
use graven::surviving::SurvivingImage;

use super::buffers::{Buffers, Entry};
use super::event::{Event, Sent};
use super::{BbbConfig, Mutant};

pub(super) type Port<'a> = design::Port<'a, Bbb>;

/// The design.
pub(super) struct Bbb {
    buffers: Buffers,
    drained_from: usize,
    /// Threads whose stores wait for room, by cores.
    waiting: Vec<(u32, ThreadId)>,
    mutants: Mutants<Mutant>,
}

/// An entry whose write is durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    core: u32,
    number: u64,
}

impl Bbb {
    pub(super) fn new(context: &DesignContext) -> Bbb {
        let config = context.config.get::<BbbConfig>();
        let cores = context.config.get::<CoreConfig>().count;
        Bbb {
            buffers: Buffers::new(cores, config.persist_buffer_entries as usize),
            drained_from: config.drained_from(),
            waiting: Vec::new(),
            mutants: context.mutants(),
        }
    }

    /// A store to PM is about to be performed in a core's L1.
    fn store(
        &mut self,
        port: &mut Port<'_>,
        (thread, core): (ThreadId, u32),
        addr: Addr,
        new: u64,
    ) -> Stall {
        let (line, word) = (addr.line(), addr.word_in_line());
        let buffer = self.buffers.of(core);
        let entry = match self.mutants.has(Mutant::JoinsSentEntries) {
            true => buffer.newest(line),
            false => buffer.waiting(line),
        };
        if let Some(entry) = entry {
            entry.content[word] = new;
            port.emit(Event::Joined);
            return Stall::None;
        }
        if !self.buffers.has_room(core) {
            port.emit(Event::BufferFull);
            if self.mutants.has(Mutant::FullBufferDrops) {
                return Stall::None;
            }
            self.waiting.push((core, thread));
            return Stall::Retry;
        }
        let is_under_way = self.buffers.have(line);
        let mut content = port.cached_line(line);
        content[word] = new;
        let held = self.buffers.add(core, addr, content);
        port.emit(Event::Added { core, line, held, is_under_way });
        self.drain(port, core);
        Stall::None
    }

    /// Sends the oldest entries of a core if it has too many.
    fn drain(&mut self, port: &mut Port<'_>, core: u32) {
        while self.buffers.of(core).waiting_count() >= self.drained_from {
            self.send_oldest(port, core);
        }
    }

    fn send_oldest(&mut self, port: &mut Port<'_>, core: u32) {
        let entry = self.buffers.of(core).oldest_waiting().expect("the caller has seen one");
        let line = entry.line;
        self.send(port, core, line, Sent::Drained);
    }

    /// Sends the entry of a line, if a core has one that is not on its way.
    fn send(&mut self, port: &mut Port<'_>, core: u32, line: LineAddr, why: Sent) {
        let Some(entry) = self.buffers.of(core).waiting(line) else { return };
        entry.sent = true;
        let number = entry.number;
        let write = request::Write::line(WriteClass::Data, line, entry.content);
        port.emit(Event::Sent { core, line, why });
        port.write_reported(write, Written { core, number }, port.bypass_cycles());
        if self.mutants.has(Mutant::SentIsDurable) {
            self.buffers.remove(core, number);
        }
    }

    /// Another core takes a line, to store to it.
    fn take_along(&mut self, port: &mut Port<'_>, from: u32, to: u32, line: LineAddr) {
        if self.mutants.has(Mutant::TakenLinesLeaveEntries) {
            return;
        }
        if self.mutants.has(Mutant::TakenLinesLoseEntries) {
            return self.lose(port, from, line);
        }
        if !self.buffers.has_room(to) {
            return self.send(port, from, line, Sent::Refused);
        }
        let Some(entry) = self.buffers.of(from).take(line) else { return };
        port.emit(Event::Migrated { from, to, line });
        self.buffers.of(to).entries.push(entry);
        self.drain(port, to);
        self.let_in(port, from);
    }

    /// What no rule of the protocol does.
    fn lose(&mut self, port: &mut Port<'_>, core: u32, line: LineAddr) {
        self.buffers.of(core).take(line);
        self.let_in(port, core);
    }

    /// Stores that found no room in a core's buffer are tried again.
    fn let_in(&mut self, port: &mut Port<'_>, core: u32) {
        let (here, elsewhere) = self.waiting.iter().partition(|&&(at, _)| at == core);
        self.waiting = elsewhere;
        let here: Vec<(u32, ThreadId)> = here;
        here.into_iter().for_each(|(_, thread)| port.release_here(thread));
    }

    /// A core hears that an entry is durable.
    fn written(&mut self, port: &mut Port<'_>, Written { core, number }: Written) {
        self.buffers.remove(core, number);
        self.let_in(port, core);
    }

    /// Writes an entry by the energy of the battery.
    fn save(&self, entry: &Entry, image: &mut SurvivingImage) {
        let words = match self.mutants.has(Mutant::FirstWordsSaved) {
            true => 1 << entry.first_word,
            false => WordMask::MAX,
        };
        image.store_line(entry.line, words, &entry.content);
    }
}

impl Design for Bbb {
    type Write = Written;
    type Read = Unused;
    type Timer = Written;
    type Event = Event;

    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        self.store(port, (store.tx.thread, store.core), store.addr, store.new)
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Written) {
        port.send_to_core(0, write);
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Written) {
        self.written(port, timer);
    }

    /// Buffers are drained.
    fn start_maintenance(&mut self, port: &mut Port<'_>) {
        for core in 0..self.buffers.cores() {
            while self.buffers.of(core).waiting_count() > 0 {
                self.send_oldest(port, core);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.buffers.all().all(|entry| !entry.sent)
    }

    fn on_shutdown(&mut self, port: &mut Port<'_>) {
        self.start_maintenance(port);
    }

    /// What is on its way is older than what waits, and is written before it.
    fn on_power_failure(&self, image: &mut SurvivingImage) {
        let sent_first = !self.mutants.has(Mutant::SentSavedLast);
        for sent in [sent_first, !sent_first] {
            if sent && self.mutants.has(Mutant::SentNotSaved) {
                continue;
            }
            let mut entries: Vec<_> = self.buffers.all().filter(|e| e.sent == sent).collect();
            // A line that is on its way twice was sent by one core after the other.
            entries.sort_by_key(|entry| entry.number);
            entries.into_iter().for_each(|entry| self.save(entry, image));
        }
    }

    fn places_taken(&self, _structure: usize) -> u64 {
        self.buffers.fullest() as u64
    }
}

impl PlainStoreDesign for Bbb {
    fn on_plain_store(&mut self, port: &mut Port<'_>, store: &PlainStore) -> Stall {
        self.store(port, (store.thread, store.core), store.addr, store.new)
    }
}

impl PersistDesign for Bbb {
    fn on_persist(
        &mut self,
        _port: &mut Port<'_>,
        _thread: ThreadId,
        _core: u32,
        what: Persist,
    ) -> Option<Stall> {
        match what {
            Persist::Order(_) | Persist::WriteBack(_) => Some(Stall::None),
            _ => None,
        }
    }
}

impl DepartureDesign for Bbb {
    fn on_departure(&mut self, port: &mut Port<'_>, departure: &Departure) {
        let &Departure { core, line, cause, .. } = departure;
        if self.buffers.of(core).waiting(line).is_none() {
            return;
        }
        match cause {
            Cause::Invalidated { by } => self.take_along(port, core, by, line),
            Cause::Downgraded { .. } if self.mutants.has(Mutant::ReadLinesLoseEntries) => {
                self.lose(port, core, line);
            }
            Cause::Downgraded { .. } => port.emit(Event::Read),
            Cause::Replaced | Cause::Inclusion
                if self.mutants.has(Mutant::ReplacedLinesLoseEntries) =>
            {
                self.lose(port, core, line);
            }
            Cause::Replaced | Cause::Inclusion => self.send(port, core, line, Sent::Evicted),
        }
    }
}

impl AbsorbingDesign for Bbb {
    const HAS_DIRTY_WORDS: bool = true;

    fn on_dirty_eviction(
        &mut self,
        port: &mut Port<'_>,
        _line: LineAddr,
        _content: &LineData,
    ) -> WritebackAction<Written> {
        port.emit(Event::Dropped);
        WritebackAction::Absorb
    }
}
