//! The OOP data buffer (§III-C): words of a transaction are packed into memory slices.

use super::layout::{SLICE_WORDS, Slice, SliceNumber};
use super::region::Reserved;
use super::{Cover, Hoop, Pending, Reason};
use graven_base::memory::{Addr, LineAddr};
use graven_base::time::Cycle;
use graven_machine::design::{Stall, Store};
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

/// A slice in the buffer.
#[derive(Clone, Debug)]
pub struct Held {
    /// Where it goes, or is going.
    pub number: SliceNumber,
    /// Its words with their home addresses.
    pub words: Vec<(Addr, u64)>,
}

/// A core's OOP data buffer at one controller.
#[derive(Clone, Debug)]
pub struct Buffer {
    capacity: usize,
    /// The slice that takes words.
    pub open: Option<Held>,
    /// Slices that are not durable yet.
    pub sent: Vec<Held>,
    /// The transaction's first slice.
    pub first: Option<SliceNumber>,
    /// The place of its commit record.
    pub reserved: Option<Reserved>,
}

impl Buffer {
    /// An empty one of so many slices.
    pub fn new(capacity: usize) -> Buffer {
        Buffer { capacity, open: None, sent: Vec::new(), first: None, reserved: None }
    }

    fn has_room(&self) -> bool {
        self.sent.len() + usize::from(self.open.is_some()) < self.capacity
    }

    /// A slice that it holds.
    pub fn slice(&self, number: SliceNumber) -> Option<&Held> {
        self.open.iter().chain(&self.sent).find(|held| held.number == number)
    }
}

/// How far a thread's transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is none.
    Outside,
    /// It runs.
    Running,
    /// It has ended; slices are on their way.
    Flushing,
    /// Its records are on their way.
    Recording,
}

/// What the controllers know of a thread's transaction.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its number at the controllers.
    pub tx: u32,
    /// How far it is.
    pub phase: Phase,
    /// At each controller.
    pub buffers: Vec<Buffer>,
    /// Records that are not durable.
    pub records: u32,
}

impl Thread {
    /// A thread without a transaction.
    pub fn new(buffers: Vec<Buffer>) -> Thread {
        Thread { tx: 0, phase: Phase::Outside, buffers, records: 0 }
    }

    /// A transaction begins.
    pub fn begin(&mut self, tx: u32) {
        (self.tx, self.phase) = (tx, Phase::Running);
    }

    /// Whether some of its slices in the buffers have words of a line.
    pub fn has_words_of(&self, line: LineAddr) -> bool {
        let held = self.buffers.iter().flat_map(|b| b.open.iter().chain(&b.sent));
        held.flat_map(|held| &held.words).any(|(addr, _)| addr.line() == line)
    }
}

impl Hoop {
    /// A store's word reaches the controller.
    pub(super) fn pack(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let (t, c) = (store.tx.thread as usize, self.controller_of(store.addr.line()));
        let buffer = &mut self.threads[t].buffers[c];
        if let Some(open) = &mut buffer.open
            && let Some(word) = open.words.iter_mut().find(|(addr, _)| *addr == store.addr)
        {
            word.1 = store.new;
            m.count().log_entries_merged += 1;
            return Stall::None;
        }
        let line = store.addr.line();
        let open = buffer.open.as_ref().filter(|open| open.words.len() < SLICE_WORDS);
        let mapped = open.is_some_and(|o| o.words.iter().any(|(addr, _)| addr.line() == line));
        let needs_slice = open.is_none();
        // A full slice that leaves keeps its place as long as it is on its way.
        if needs_slice && !buffer.has_room() {
            m.cover(Cover::BufferFull as usize);
            return self.waiting.for_slices(t);
        }
        if !mapped && self.controllers[c].mapping.is_full() {
            m.cover(Cover::MappingFull as usize);
            return self.wait_for_collection(m, c, t, Reason::MappingFull);
        }
        if needs_slice && !self.open_slice(m, t, c) {
            return self.wait_for_collection(m, c, t, Reason::RegionFull);
        }
        let buffer = &mut self.threads[t].buffers[c];
        let open = buffer.open.as_mut().expect("it has just been seen to");
        open.words.push((store.addr, store.new));
        let number = open.number;
        self.controllers[c].mapping.insert(line, number, store.addr.word_mask());
        let entries = self.controllers.iter().map(|c| c.mapping.len() as u64).sum();
        let max = &mut m.count().mapping_entries_max;
        *max = (*max).max(entries);
        Stall::None
    }

    /// Gives the thread's transaction a slice for its next words; the one before it, full, leaves. Returns
    /// whether the region had one.
    fn open_slice(&mut self, m: &mut Machine, t: usize, c: usize) -> bool {
        let before = self.threads[t].buffers[c].open.as_ref().map(|open| open.number);
        let Some(number) = self.controllers[c].region.allocate(m, before) else { return false };
        if let Some(before) = before {
            let distance = self.controllers[c].region.geometry.distance(before, number);
            self.send_slice(m, t, c, distance as i32, m.bypass_cycles());
        }
        let buffer = &mut self.threads[t].buffers[c];
        buffer.first.get_or_insert(number);
        buffer.open = Some(Held { number, words: Vec::with_capacity(SLICE_WORDS) });
        true
    }

    /// Writes the open slice to the region.
    pub(super) fn send_slice(
        &mut self,
        m: &mut Machine,
        t: usize,
        c: usize,
        next: i32,
        delay: Cycle,
    ) {
        let thread = &mut self.threads[t];
        let (tx, buffer) = (thread.tx, &mut thread.buffers[c]);
        let Held { number, words } = buffer.open.take().expect("the caller has one");
        let slice = Slice { tx, first: buffer.first == Some(number), next, words };
        let (lines, data) =
            (self.controllers[c].region.geometry.slice_lines(number), slice.lines());
        m.count().slices_written += 1;
        m.count().slice_words += slice.words.len() as u64;
        m.note(|| format!("thread {t}: slice {number} with {} words leaves", slice.words.len()));
        buffer.sent.push(Held { number, words: slice.words });
        let pending = Pending::Slice { thread: t, controller: c, slice: number, left: 2 };
        let token = self.token(pending);
        for (class, line, data) in
            [(WriteClass::Log, lines[0], data[0]), (WriteClass::Metadata, lines[1], data[1])]
        {
            m.write(Write { token, ..Write::line(class, line, data) }, delay);
        }
    }

    /// A slice is durable: its place in the buffer is free.
    pub(super) fn slice_durable(
        &mut self,
        m: &mut Machine,
        t: usize,
        c: usize,
        number: SliceNumber,
    ) {
        let buffer = &mut self.threads[t].buffers[c];
        buffer.sent.retain(|held| held.number != number);
        self.waiting.slice_durable(m, t);
        self.record_if_flushed(m, t);
    }
}
