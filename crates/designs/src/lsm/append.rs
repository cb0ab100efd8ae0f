//! The end of a transaction: entries into the log, then the commit record.

use super::cover::Cover;
use super::log::{CommitRecord, PAYLOAD_WORDS, Sequence, encode, runs};
use super::{About, Lsm, Mutant};
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, WORD_BYTES};
use graven_machine::design::Stall;
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

/// A transaction on its way into the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Append {
    pub(super) record: CommitRecord,
    /// Where its commit record goes.
    at: Addr,
    /// Lines of entries that are not durable yet.
    lines_left: u64,
}

impl Lsm {
    pub(super) fn end(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        let thread = tx.thread as usize;
        if self.threads[thread].words.is_empty() {
            return Stall::None;
        }
        let mut split = std::mem::take(&mut self.runs);
        let words = self.threads[thread].words.iter().map(|&(addr, _)| addr);
        runs(words, self.config.entry_words_max as usize, &mut split);
        self.runs = split;
        let payload = self.runs.last().map_or(0, |run| run.offset + run.words);
        if self.refuses(m, tx, payload) {
            return Stall::None;
        }
        let lines = payload.div_ceil(PAYLOAD_WORDS);
        if !self.has_room(m, thread, lines) {
            self.threads[thread].waits_since.get_or_insert(m.now());
            self.threads[thread].waits = true;
            self.collect(m, true);
            return Stall::Retry;
        }
        if let Some(since) = self.threads[thread].waits_since.take() {
            let waited = m.now() - since;
            m.count().gc_stall_cycles += waited;
        }
        self.append(m, tx.thread, payload, lines);
        Stall::UntilReleased
    }

    /// Ends the run if a transaction can never fit.
    fn refuses(&self, m: &mut Machine, tx: Tx, payload: u64) -> bool {
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
        m.fail(format!("transaction {} of thread {} has {why}", tx.number, tx.thread));
        true
    }

    /// The home addresses of the ending transaction's entries, from and to.
    fn ranges(&self) -> impl Iterator<Item = (Addr, Addr)> + '_ {
        self.runs.iter().map(|run| (run.home, run.home.plus(run.words * WORD_BYTES)))
    }

    /// Whether the thread has an open segment with so many lines left, and the index has room for the entries.
    fn has_room(&mut self, m: &mut Machine, thread: usize, lines: u64) -> bool {
        if !self.index.has_room(self.ranges()) {
            m.cover(Cover::WaitsForIndex as usize);
            return false;
        }
        let open = &mut self.threads[thread].open;
        if let Some(segment) = open.take_if(|s| self.segments.used(*s) + lines > self.log.lines) {
            self.segments.close(segment);
            m.cover(Cover::SegmentFull as usize);
        }
        if open.is_none() {
            *open = self.segments.open(self.next_sequence);
            match *open {
                None => m.cover(Cover::WaitsForSegment as usize),
                Some(segment) if self.segments.is_reused(segment) => {
                    m.cover(Cover::SegmentReused as usize);
                }
                Some(_) => {}
            }
        }
        open.is_some()
    }

    fn append(&mut self, m: &mut Machine, id: ThreadId, payload: u64, lines: u64) {
        let thread = &mut self.threads[id as usize];
        let segment = thread.open.expect("the caller saw that there is room");
        let record = CommitRecord { sequence: self.next_sequence, payload };
        self.next_sequence += 1;
        let first = self.segments.take(segment, lines);
        encode(&thread.words, &self.runs, &mut self.payload);
        thread.words.clear();
        let at = self.log.line(segment, first).addr();
        thread.append = Some(Append { record, at, lines_left: lines });
        m.note(|| {
            let (entries, sequence) = (self.runs.len(), record.sequence);
            format!("thread {id} appends {entries} entries at {at}, to commit as {sequence}")
        });
        let awaited = !self.mutants.has(Mutant::RecordOvertakesEntries);
        let token = if awaited { About::Entries(id).token() } else { 0 };
        for (line, words) in (first..).zip(self.payload.chunks(PAYLOAD_WORDS as usize)) {
            let at = self.log.line(segment, line).word(1);
            let write = Write::words(WriteClass::Log, at, words);
            m.write(Write { token, ..write }, m.bypass_cycles());
        }
        let position = self.log.position(segment, first);
        for run in &self.runs {
            if self.index.insert(run.home, run.words, position + run.offset) {
                m.cover(Cover::RangeCut as usize);
            }
        }
        let c = m.count();
        c.log_entries += self.runs.len() as u64;
        c.mapping_entries_max = c.mapping_entries_max.max(self.index.len() as u64);
        if !awaited {
            self.send_record(m, id);
        }
    }

    pub(super) fn entries_durable(&mut self, m: &mut Machine, id: ThreadId) {
        let append = self.threads[id as usize].append.as_mut();
        let append = append.expect("its thread waits for it");
        append.lines_left -= 1;
        if append.lines_left == 0 {
            self.send_record(m, id);
        }
    }

    fn send_record(&mut self, m: &mut Machine, id: ThreadId) {
        let append = self.threads[id as usize].append.expect("its thread waits for it");
        if self.mutants.has(Mutant::CommitRecordMissing) {
            return self.record_durable(m, id);
        }
        let mut token = About::Record(id).token();
        m.note(|| format!("thread {id} sends its commit record ({})", append.record.sequence));
        let unawaited = self.mutants.has(Mutant::RecordNotAwaited);
        if unawaited {
            token = 0;
        }
        let write = Write::words(WriteClass::Metadata, append.at, &[append.record.word()]);
        m.write(Write { token, ..write }, m.bypass_cycles());
        if unawaited {
            self.record_durable(m, id);
        }
    }

    /// The transaction has committed.
    pub(super) fn record_durable(&mut self, m: &mut Machine, id: ThreadId) {
        self.threads[id as usize].append = None;
        if self.collection.is_some() {
            m.cover(Cover::CommitDuringCollection as usize);
        }
        m.release(id);
        self.appended(m);
    }

    /// Whether a transaction with a lower number is on its way into the log.
    pub(super) fn is_appending_before(&self, limit: Sequence) -> bool {
        let mut appends = self.threads.iter().filter_map(|t| t.append);
        appends.any(|append| append.record.sequence < limit)
    }
}
