//! The end of a transaction: entries into the log, then the commit record.

use super::super::event::Event;
use super::super::log::{CommitRecord, PAYLOAD_WORDS, Position, Sequence, encode, runs};
use super::{Lsm, Port, Timer, Write};
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, WORD_BYTES};
use graven_machine::design::Stall;
use graven_machine::request::{self, WriteClass};

/// A transaction on its way into the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Append {
    pub(super) record: CommitRecord,
    /// Address of its commit record.
    at: Addr,
    /// Lines of entries that are not durable yet.
    lines_left: u64,
}

impl Lsm {
    /// The words of its write set go into the log, as soon as there is room for them.
    pub(super) fn end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        let thread = tx.thread as usize;
        if self.threads[thread].words.is_empty() {
            return Stall::None;
        }
        let mut split = std::mem::take(&mut self.runs);
        let words = self.threads[thread].words.iter().map(|&(addr, _)| addr);
        runs(words, self.config.entry_words_max as usize, &mut split);
        self.runs = split;
        let payload = self.runs.last().map_or(0, |run| run.offset + run.words);
        if self.refuses(port, tx, payload) {
            return Stall::None;
        }
        let lines = payload.div_ceil(PAYLOAD_WORDS);
        if !self.has_room(port, thread, lines) {
            self.threads[thread].waits_since.get_or_insert(port.now());
            self.threads[thread].waits = true;
            self.collect(port, true);
            return Stall::Retry;
        }
        if let Some(since) = self.threads[thread].waits_since.take() {
            port.emit(Event::Waited { cycles: port.now() - since });
        }
        self.append(port, tx.thread, payload, lines);
        Stall::UntilReleased
    }

    /// Ends the run if a transaction can never fit.
    fn refuses(&self, port: &mut Port<'_>, tx: Tx, payload: u64) -> bool {
        let why = if payload > self.log.payload_max() {
            format!(
                "{payload} words of log entries, and lsm.segment_bytes = {} holds {}",
                self.config.segment_bytes,
                self.log.payload_max()
            )
        } else if !self.index.has_room(self.ranges()) && !self.index.could_have_room(self.ranges())
        {
            format!(
                "{} entries, more than the index has nodes for (lsm.index_bytes)",
                self.runs.len()
            )
        } else {
            return false;
        };
        port.fail(format!("transaction {} of thread {} has {why}", tx.number, tx.thread));
        true
    }

    /// The home addresses of the ending transaction's entries, from and to.
    fn ranges(&self) -> impl Iterator<Item = (Addr, Addr)> + '_ {
        self.runs.iter().map(|run| (run.home, run.home.plus(run.words * WORD_BYTES)))
    }

    /// Returns true if the thread has an open segment with `lines` lines left, and the index has
    /// room for the entries.
    fn has_room(&mut self, port: &mut Port<'_>, thread: usize, lines: u64) -> bool {
        if !self.index.has_room(self.ranges()) {
            port.emit(Event::WaitsForIndex);
            return false;
        }
        let open = &mut self.threads[thread].open;
        if let Some(segment) = open.take_if(|s| self.segments.used(*s) + lines > self.log.lines) {
            self.segments.close(segment);
            port.emit(Event::SegmentFull);
        }
        if open.is_none() {
            *open = self.segments.open(self.next_sequence);
            match *open {
                None => port.emit(Event::WaitsForSegment),
                Some(segment) if self.segments.is_reused(segment) => {
                    port.emit(Event::SegmentReused);
                }
                Some(_) => {}
            }
        }
        open.is_some()
    }

    /// Entries go into the log and into the index; the commit record follows when they are durable.
    fn append(&mut self, port: &mut Port<'_>, id: ThreadId, payload: u64, lines: u64) {
        let thread = &mut self.threads[id as usize];
        let segment = thread.open.expect("the caller saw that there is room");
        let record = CommitRecord { sequence: self.next_sequence, payload };
        self.next_sequence += 1;
        let first = self.segments.take(segment, lines);
        encode(&thread.words, &self.runs, &mut self.payload);
        thread.words.clear();
        let at = self.log.line(segment, first).addr();
        thread.append = Some(Append { record, at, lines_left: lines });
        let (entries, sequence) = (self.runs.len(), record.sequence);
        port.emit(Event::Appends { thread: id, entries, at, sequence });
        let awaited = self.rules.record_follows_entries();
        self.send_entries(port, segment, first, awaited.then_some(Write::Entries(id)));
        self.map_entries(port, self.log.position(segment, first));
        if !awaited {
            self.send_record(port, id);
        }
    }

    /// Writes entries into the lines of a segment from one on.
    fn send_entries(&self, port: &mut Port<'_>, segment: usize, first: u64, about: Option<Write>) {
        for (line, words) in (first..).zip(self.payload.chunks(PAYLOAD_WORDS as usize)) {
            let at = self.log.line(segment, line).word(1);
            let write = request::Write::words(WriteClass::Log, at, words);
            port.write_maybe_reported(write, about, port.bypass_cycles());
        }
    }

    /// The index maps the home addresses of entries to where they lie, from a position of the log on.
    fn map_entries(&mut self, port: &mut Port<'_>, position: Position) {
        for run in &self.runs {
            if self.index.insert(run.home, run.words, position + run.offset) {
                port.emit(Event::RangeCut);
            }
        }
        port.emit(Event::Mapped { ranges: self.index.len() });
    }

    /// A line of entries is durable; when its core hears of the last, the thread sends the commit record.
    pub(super) fn entries_durable(&mut self, port: &mut Port<'_>, id: ThreadId) {
        let append = self.threads[id as usize].append.as_mut();
        let append = append.expect("its thread waits for it");
        append.lines_left -= 1;
        if append.lines_left == 0 {
            port.send_to_core(0, Timer::EntriesDurable(id));
        }
    }

    /// One word makes the transaction a committed one.
    pub(super) fn send_record(&mut self, port: &mut Port<'_>, id: ThreadId) {
        let append = self.threads[id as usize].append.expect("its thread waits for it");
        if !self.rules.commit_leaves_record() {
            return self.record_durable(port, id);
        }
        port.emit(Event::RecordSent { thread: id, sequence: append.record.sequence });
        let awaited = self.rules.record_is_awaited();
        let write = request::Write::words(WriteClass::Metadata, append.at, &[append.record.word()]);
        let about = awaited.then_some(Write::Record(id));
        port.write_maybe_reported(write, about, port.bypass_cycles());
        if !awaited {
            self.record_durable(port, id);
        }
    }

    /// The transaction has committed.
    pub(super) fn record_durable(&mut self, port: &mut Port<'_>, id: ThreadId) {
        self.threads[id as usize].append = None;
        if self.collection.is_some() {
            port.emit(Event::CommittedDuringCollection);
        }
        port.release(id);
        self.appended(port);
    }

    /// Returns true if a transaction with a lower number is on its way into the log.
    pub(super) fn is_appending_before(&self, limit: Sequence) -> bool {
        let mut appends = self.threads.iter().filter_map(|t| t.append);
        appends.any(|append| append.record.sequence < limit)
    }
}
