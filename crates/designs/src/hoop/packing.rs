//! The OOP data buffer (§III-C): words of a transaction are packed into memory slices.
//!
//! A line's words that are in the newest slice when it is full and the next of them comes go along into the next slice.
//! A full slice leaves when the next one is opened, or is held (`hoop.held_slices`): words that are stored again are replaced
//! where they are held.

use super::collect::Reason;
use super::event::Event;
use super::layout::{SLICE_WORDS, Slice, SliceNumber};
use super::protocol::{Controller, Hoop, Port, Write};
use super::region::Reserved;
use graven_base::memory::{Addr, LineAddr};
use graven_machine::design::{Stall, Store};
use graven_machine::request::{self, WriteClass};
use std::collections::VecDeque;

/// A slice in the buffer.
#[derive(Clone, Debug)]
pub struct Held {
    /// Number of the slice that it becomes.
    pub number: SliceNumber,
    /// The distance to the transaction's next slice; 0 as long as there is none.
    next: i32,
    /// Words with their home addresses.
    pub words: Vec<(Addr, u64)>,
}

/// A core's OOP data buffer at one controller.
#[derive(Clone, Debug)]
pub struct Buffer {
    capacity: usize,
    /// Most slices that have not left.
    held_max: usize,
    /// Full slices that have not left, the oldest first.
    full: VecDeque<Held>,
    /// The slice that takes words.
    pub open: Option<Held>,
    /// Slices that have left, and are not durable yet.
    pub sent: Vec<Held>,
    /// The transaction's first slice.
    pub first: Option<SliceNumber>,
    /// The place of its commit record.
    pub reserved: Option<Reserved>,
}

impl Buffer {
    /// Makes an empty buffer of `capacity` slices, which holds back at most `held_max` of them.
    pub fn new(capacity: usize, held_max: usize) -> Buffer {
        let (sent, full) = (Vec::new(), VecDeque::new());
        Buffer { capacity, held_max, full, open: None, sent, first: None, reserved: None }
    }

    fn has_room(&self) -> bool {
        self.len() < self.capacity
    }

    /// Slices that it holds.
    pub fn len(&self) -> usize {
        self.full.len() + usize::from(self.open.is_some()) + self.sent.len()
    }

    fn slices(&self) -> impl Iterator<Item = &Held> {
        self.full.iter().chain(&self.open).chain(&self.sent)
    }

    /// A slice that it holds.
    pub fn slice(&self, number: SliceNumber) -> Option<&Held> {
        self.slices().find(|held| held.number == number)
    }
}

/// Phases of a thread's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is none.
    Outside,
    /// The transaction runs.
    Running,
    /// The transaction has ended; slices are on their way.
    Flushing,
    /// Commit records are on their way.
    Recording,
}

/// Knowledge of the controllers about a thread's transaction.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Number of the transaction at the controllers.
    pub tx: u32,
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

    /// Slices in the fullest of its buffers.
    pub fn slices_max(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.len() as u64).max().unwrap_or(0)
    }

    /// Returns true if some of its slices in the buffers have words of a line.
    pub fn has_words_of(&self, line: LineAddr) -> bool {
        let held = self.buffers.iter().flat_map(Buffer::slices);
        held.flat_map(|held| &held.words).any(|(addr, _)| addr.line() == line)
    }
}

/// A slice on its way to the region. Its writes carry a key of its own: a block that a mutant frees too early may be
/// given out again, and its slices sent again, while writes of the earlier use are under way.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    thread: usize,
    controller: usize,
    slice: SliceNumber,
    /// Number of its lines that are not durable.
    lines: u8,
}

impl Hoop {
    /// A store's word reaches the controller.
    pub(super) fn pack(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let line = store.addr.line();
        let (thread, controller) = (store.tx.thread as usize, self.controller_of(line));
        if self.replace(thread, controller, store) {
            port.emit(Event::WordReplaced);
            return Stall::None;
        }
        let buffer = &self.threads[thread].buffers[controller];
        let is_of_line = |held: &Held| held.words.iter().any(|(addr, _)| addr.line() == line);
        let needs_slice = buffer.open.as_ref().is_none_or(|o| o.words.len() == SLICE_WORDS);
        // The line's words in a full slice go along into the next one, and so does their entry.
        let moves = needs_slice && self.config.line_in_one_slice;
        let is_mapped = buffer.open.as_ref().is_some_and(is_of_line) && (!needs_slice || moves);
        // A full slice that leaves keeps its place as long as it is on its way.
        if needs_slice && !buffer.has_room() {
            if buffer.sent.is_empty() {
                self.send_oldest(port, thread, controller);
            }
            port.emit(Event::BufferFull);
            return self.waiting.for_slices(thread);
        }
        if !is_mapped && self.controllers[controller].mapping.is_full() {
            port.emit(Event::MappingFull);
            return self.wait_for_collection(port, controller, thread, Reason::MappingFull);
        }
        if needs_slice && !self.open_slice(port, thread, controller, moves.then_some(line)) {
            return self.wait_for_collection(port, controller, thread, Reason::RegionFull);
        }
        self.append(port, thread, controller, store);
        Stall::None
    }

    /// A word that is in a slice that has not left is replaced there. Returns whether it was.
    fn replace(&mut self, thread: usize, controller: usize, store: &Store) -> bool {
        let Buffer { full, open, .. } = &mut self.threads[thread].buffers[controller];
        // The newest first: where the words of a line do not go along, an older slice has an older version.
        let held = open.iter_mut().chain(full.iter_mut().rev());
        let older = held.flat_map(|slice| &mut slice.words).find(|(addr, _)| *addr == store.addr);
        let Some((_, word)) = older else { return false };
        *word = store.new;
        true
    }

    /// A word takes the next place in the open slice, which the mapping table then has as its newest place.
    fn append(&mut self, port: &mut Port<'_>, thread: usize, controller: usize, store: &Store) {
        let buffer = &mut self.threads[thread].buffers[controller];
        let open = buffer.open.as_mut().expect("it has just been seen to");
        open.words.push((store.addr, store.new));
        let (line, word) = (store.addr.line(), store.addr.word_mask());
        self.controllers[controller].mapping.insert(line, open.number, word);
        let entries = self.controllers.iter().map(|c| c.mapping.len()).sum();
        port.emit(Event::WordPacked { entries });
    }

    /// Gives the thread's transaction a slice for its next words; the one before it, full, leaves or is held, but for
    /// words of a line that are to be together with the next ones (§III-C: "As for multiple updates in the same cache line
    /// happened in a transaction, HOOP will pack them in the same memory slice"). Returns whether the region had one.
    fn open_slice(
        &mut self,
        port: &mut Port<'_>,
        thread: usize,
        controller: usize,
        moves: Option<LineAddr>,
    ) -> bool {
        let before = self.threads[thread].buffers[controller].open.as_ref().map(|o| o.number);
        let Controller { region, mapping, .. } = &mut self.controllers[controller];
        let Some(number) = region.allocate(port, before) else { return false };
        let mut words = Vec::with_capacity(SLICE_WORDS);
        if let Some(before) = before {
            let distance = region.geometry.distance(before, number);
            if let Some(line) = moves {
                let open = &mut self.threads[thread].buffers[controller].open;
                let open = open.as_mut().expect("it has a number");
                words.extend(open.words.extract_if(.., |(addr, _)| addr.line() == line));
                let mask = words.iter().fold(0, |mask, (addr, _)| mask | addr.word_mask());
                if mask != 0 {
                    mapping.insert(line, number, mask);
                    port.emit(Event::LineMoves { line, words: words.len() });
                }
            }
            let buffer = &mut self.threads[thread].buffers[controller];
            let mut full = buffer.open.take().expect("it has a number");
            full.next = i32::try_from(distance).expect("regions are smaller");
            buffer.full.push_back(full);
            // With the one that is opened now.
            if buffer.full.len() == buffer.held_max {
                self.send_oldest(port, thread, controller);
            }
        }
        let buffer = &mut self.threads[thread].buffers[controller];
        buffer.first.get_or_insert(number);
        buffer.open = Some(Held { number, next: 0, words });
        true
    }

    /// A transaction's end: what is left in the buffer leaves; no slice follows the last.
    pub(super) fn flush(&mut self, port: &mut Port<'_>, thread: usize, controller: usize) {
        while !self.threads[thread].buffers[controller].full.is_empty() {
            self.send_oldest(port, thread, controller);
        }
        let last = self.threads[thread].buffers[controller].open.take();
        if let Some(last) = last.filter(|_| self.rules.last_slice_is_flushed()) {
            self.send_slice(port, thread, controller, last);
        }
    }

    /// The oldest full slice leaves.
    fn send_oldest(&mut self, port: &mut Port<'_>, thread: usize, controller: usize) {
        let oldest = self.threads[thread].buffers[controller].full.pop_front();
        self.send_slice(port, thread, controller, oldest.expect("the caller has seen one"));
    }

    /// Writes a slice to the region.
    fn send_slice(&mut self, port: &mut Port<'_>, thread: usize, controller: usize, held: Held) {
        let Thread { tx, buffers, .. } = &mut self.threads[thread];
        let buffer = &mut buffers[controller];
        let Held { number, next, words } = held;
        let slice = Slice { tx: *tx, first: buffer.first == Some(number), next, words };
        let lines = self.controllers[controller].region.geometry.slice_lines(number);
        let [data, metadata] = slice.lines();
        port.emit(Event::SliceLeaves { thread, slice: number, words: slice.words.len() });
        buffer.sent.push(Held { number, next, words: slice.words });
        let leaving = Leaving { thread, controller, slice: number, lines: lines.len() as u8 };
        let about = Write::Slice { leaving: self.leaving.insert(leaving) };
        let delay = port.bypass_cycles();
        for write in [
            request::Write::line(WriteClass::Log, lines[0], data),
            request::Write::line(WriteClass::Metadata, lines[1], metadata),
        ] {
            port.write_reported(write, about, delay);
        }
    }

    /// A line of a slice is durable. When both are, so is the slice, and its place in the buffer is free.
    pub(super) fn slice_line_durable(&mut self, port: &mut Port<'_>, key: usize) {
        self.leaving[key].lines -= 1;
        if self.leaving[key].lines > 0 {
            return;
        }
        let Leaving { thread, controller, slice, .. } = self.leaving.remove(key);
        self.threads[thread].buffers[controller].sent.retain(|held| held.number != slice);
        self.waiting.slice_durable(port, thread);
        self.record_if_flushed(port, thread);
    }
}
