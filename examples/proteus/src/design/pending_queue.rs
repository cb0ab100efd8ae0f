//! The log pending queue of the controller: what it accepts is durable. It is written to PM late, or never.

use std::collections::VecDeque;

use graven::ids::ThreadId;
use graven::memory::WORD_BYTES;
use graven::request::{self, WriteClass};
use graven::surviving::SurvivingImage;

use super::event::Event;
use super::log_area::{ENTRY_WORDS, Number};
use super::logging::Flush;
use super::protocol::{Port, Proteus, Timer, Write};
use super::{EndEntry, Mutant, ProteusConfig};

/// How far an entry is on its way to PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is written only if places are needed.
    Idle,
    /// It is to be written when the write queue has a place.
    Wanted,
    /// It has been sent, with this as its word 0.
    Sent(Number),
}

/// A place of the queue in use.
#[derive(Clone, Copy, Debug)]
struct Held {
    thread: ThreadId,
    flush: Flush,
    stage: Stage,
}

/// The log pending queue.
#[derive(Clone, Debug)]
pub(super) struct PendingQueue {
    places: usize,
    /// Entries that stay when nothing asks for places.
    quiet: usize,
    /// Oldest first.
    held: Vec<Held>,
    /// Log-flushes that find no place.
    outside: VecDeque<(ThreadId, Flush)>,
    /// How many of the entries are wanted in PM, and sent.
    wanted: usize,
    sent: usize,
    /// A timer is set to try again.
    tries_again: bool,
}

impl PendingQueue {
    pub(super) fn new(config: &ProteusConfig) -> PendingQueue {
        let places = config.lpq_entries as usize;
        let spills_at = (places * config.lpq_spill_percent as usize).div_ceil(100);
        PendingQueue {
            places,
            quiet: spills_at.max(1) - 1,
            held: Vec::new(),
            outside: VecDeque::new(),
            wanted: 0,
            sent: 0,
            tries_again: false,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.wanted == 0 && self.sent == 0 && self.outside.is_empty()
    }

    fn find(&self, t: ThreadId, slot: u64) -> Option<usize> {
        self.held.iter().position(|held| held.thread == t && held.flush.slot == slot)
    }

    /// The next entry that is to be written to PM: one that is wanted there, or the oldest if places are needed.
    fn next(&self) -> Option<usize> {
        if self.wanted > 0 {
            return self.held.iter().position(|held| held.stage == Stage::Wanted);
        }
        let stays = self.held.len() + self.outside.len() - self.sent;
        if stays <= self.quiet {
            return None;
        }
        self.held.iter().position(|held| held.stage == Stage::Idle)
    }
}

impl Proteus {
    // ---- log-flushes ---------------------------------------------------------------------------

    /// A log-flush has reached the controller.
    pub(super) fn receive(&mut self, port: &mut Port<'_>, t: ThreadId, slot: u64) {
        let queue = &self.threads[t as usize].queue;
        let flush = *queue.iter().find(|flush| flush.slot == slot).expect("it is in the log queue");
        if self.pending.places == 0 {
            self.write_through(port, t, &flush);
            return;
        }
        self.pending.outside.push_back((t, flush));
        self.admit(port);
        if !self.pending.outside.is_empty() {
            port.emit(Event::PendingQueueFull);
            if self.mutants.has(Mutant::AcknowledgedOutside) {
                self.acknowledge(port, t, slot);
            }
        }
        self.spill(port);
    }

    /// Log-flushes at the controller take free places; what has one is durable.
    fn admit(&mut self, port: &mut Port<'_>) {
        while self.pending.held.len() < self.pending.places {
            let Some((thread, flush)) = self.pending.outside.pop_front() else { return };
            self.pending.held.push(Held { thread, flush, stage: Stage::Idle });
            port.durable_state_changed();
            port.emit(Event::Accepted { thread, flush, held: self.pending.held.len() });
            if self.threads[thread as usize].queue.iter().any(|f| f.slot == flush.slot) {
                self.acknowledge(port, thread, flush.slot);
            }
        }
    }

    /// Without a log pending queue: the entry is an ordinary write. Power may fail with any words of a write there, so
    /// the word that makes it an entry follows the others. (Writes of one line keep their order.)
    fn write_through(&mut self, port: &mut Port<'_>, t: ThreadId, flush: &Flush) {
        let slot = self.threads[t as usize].area.slot(flush.slot);
        let words: [u64; ENTRY_WORDS] = flush.entry.encode();
        let mut last = request::Write::words(WriteClass::Log, slot, &words);
        if !self.mutants.has(Mutant::NumberWithRest) {
            let rest = slot.plus(WORD_BYTES);
            port.write(request::Write::words(WriteClass::Log, rest, &words[1..]), 0);
            last = request::Write::words(WriteClass::Log, slot, &words[..1]);
        }
        port.write_reported(last, Write::Logged { thread: t, slot: flush.slot }, 0);
    }

    // ---- on the way to PM ----------------------------------------------------------------------

    /// Entries are written while places are needed or an end is to be written, behind everything else that the
    /// write queue has to take.
    fn spill(&mut self, port: &mut Port<'_>) {
        while let Some(at) = self.pending.next() {
            let Held { thread, flush, .. } = self.pending.held[at];
            let line = self.threads[thread as usize].area.slot(flush.slot).line();
            if !port.has_room_for_write(line) {
                port.emit(Event::SpillWaits);
                if !std::mem::replace(&mut self.pending.tries_again, true) {
                    port.set_timer(port.next_change(), Timer::Spill);
                }
                return;
            }
            self.send(port, at);
        }
    }

    /// The write queue may have a place now.
    pub(super) fn spill_later(&mut self, port: &mut Port<'_>) {
        self.pending.tries_again = false;
        self.spill(port);
    }

    /// The system shuts down: everything that the queue holds is written.
    pub(super) fn spill_all(&mut self, port: &mut Port<'_>) {
        let mut at = 0;
        while let Some(held) = self.pending.held.get(at) {
            if matches!(held.stage, Stage::Sent(_)) {
                at += 1;
            } else {
                self.send(port, at);
            }
        }
    }

    /// An entry is sent to its slot. It keeps its place until it is durable there.
    fn send(&mut self, port: &mut Port<'_>, at: usize) {
        let held = &mut self.pending.held[at];
        let (thread, flush) = (held.thread, held.flush);
        self.pending.wanted -= usize::from(held.stage == Stage::Wanted);
        held.stage = Stage::Sent(flush.entry.number);
        self.pending.sent += 1;
        port.emit(Event::Spills { thread, flush });
        let slot = self.threads[thread as usize].area.slot(flush.slot);
        let write = request::Write::words(WriteClass::Log, slot, &flush.entry.encode());
        port.write_reported(write, Write::Spilled { thread, slot: flush.slot }, 0);
        if self.mutants.has(Mutant::PlaceFreedEarly) {
            self.free(port, at);
        }
    }

    /// An entry is durable in its slot; if its transaction has ended meanwhile, the mark follows.
    pub(super) fn spilled(&mut self, port: &mut Port<'_>, t: ThreadId, slot: u64) {
        let Some(at) = self.pending.find(t, slot) else {
            assert!(self.mutants.has(Mutant::PlaceFreedEarly), "it keeps its place");
            return;
        };
        let held = &mut self.pending.held[at];
        let number = held.flush.entry.number;
        if held.stage == Stage::Sent(number) || self.mutants.has(Mutant::MarkOvertaken) {
            self.free(port, at);
            return;
        }
        held.stage = Stage::Sent(number);
        port.emit(Event::MarkFollows);
        self.write_number(port, t, slot, number, Some(Write::Spilled { thread: t, slot }));
    }

    /// A place is free.
    fn free(&mut self, port: &mut Port<'_>, at: usize) {
        self.pending.held.remove(at);
        self.pending.sent -= 1;
        self.admit(port);
        self.spill(port);
    }

    fn write_number(
        &mut self,
        port: &mut Port<'_>,
        t: ThreadId,
        slot: u64,
        number: Number,
        about: Option<Write>,
    ) {
        let addr = self.threads[t as usize].area.slot(slot);
        let write = request::Write::words(WriteClass::Log, addr, &[number.word()]);
        port.write_maybe_reported(write, about, 0);
    }

    // ---- the end of a transaction --------------------------------------------------------------

    /// The tx-end has reached the controller: entries are dropped, and the last is marked.
    pub(super) fn end(&mut self, port: &mut Port<'_>, t: ThreadId) {
        let thread = &mut self.threads[t as usize];
        let last = thread.next_slot - 1;
        if self.mutants.has(Mutant::EndOverwritten) {
            thread.next_slot = last;
        }
        let (others, all) =
            (self.mutants.has(Mutant::OthersDropped), self.mutants.has(Mutant::LastDropped));
        let before = self.pending.held.len();
        self.pending.held.retain(|held| {
            let own = held.thread == t;
            let is_last = own && held.flush.slot == last;
            held.stage != Stage::Idle || !(own || others) || is_last && !all
        });
        let dropped = before - self.pending.held.len();
        port.durable_state_changed();
        port.emit(Event::Ends { thread: t, entries: self.threads[t as usize].entries, dropped });
        let transaction = self.threads[t as usize].transaction.expect("it ends now");
        let number = Number { transaction, end: true };
        match self.pending.find(t, last) {
            Some(at) => self.mark_held(port, at, number),
            None => self.mark_written(port, t, last, number),
        }
        self.admit(port);
        self.spill(port);
    }

    /// The commit point, if the queue holds the last entry.
    fn mark_held(&mut self, port: &mut Port<'_>, at: usize, number: Number) {
        let held = &mut self.pending.held[at];
        held.flush.entry.number = number;
        let (thread, under_way) = (held.thread, held.stage != Stage::Idle);
        if !under_way && self.config.end_entry == EndEntry::Written {
            held.stage = Stage::Wanted;
            self.pending.wanted += 1;
        }
        port.emit(Event::Marked { thread, under_way });
        self.ended(port, thread);
    }

    /// The commit point is a word in PM, if the last entry is there. The queue gives up its oldest entries first, so all
    /// others of the transaction are there, too, and none was dropped before the mark is durable.
    fn mark_written(&mut self, port: &mut Port<'_>, t: ThreadId, last: u64, number: Number) {
        if self.mutants.has(Mutant::MarkMissing) || self.mutants.has(Mutant::LastDropped) {
            self.ended(port, t);
            return;
        }
        port.emit(Event::MarkWritten { thread: t });
        let awaited = !self.mutants.has(Mutant::MarkNotAwaited);
        let about = awaited.then_some(Write::Mark { thread: t });
        self.write_number(port, t, last, number, about);
        if !awaited {
            self.ended(port, t);
        }
    }

    /// The transaction is durable: the controller answers.
    pub(super) fn ended(&mut self, port: &mut Port<'_>, t: ThreadId) {
        port.send_to_core(0, Timer::Ended { thread: t });
    }

    // ---- power failures ------------------------------------------------------------------------

    pub(super) fn save(&self, image: &mut SurvivingImage) {
        let lost = usize::from(self.mutants.has(Mutant::YoungestNotSaved));
        let saved = self.pending.held.len().saturating_sub(lost);
        for Held { thread, flush, .. } in &self.pending.held[..saved] {
            image.note(|| format!("log pending queue: {}", flush.entry));
            let slot = self.threads[*thread as usize].area.slot(flush.slot);
            for (word, at) in flush.entry.encode().into_iter().zip(0..) {
                image.store(slot.plus(at * WORD_BYTES), word);
            }
        }
    }
}
