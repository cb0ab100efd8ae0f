//! Log entries, their headers, and what lines wait for.

use super::cover::Cover;
use super::record::{Header, Logged};
use super::{Mutant, OptUndo};
use graven_base::memory::{LineAddr, WordMask};
use graven_base::time::Cycle;
use graven_machine::design::Store;
use graven_machine::machine::Machine;
use graven_machine::request::{OrderSeq, Write, WriteClass};

impl OptUndo {
    /// The controller does not know of a store to this word: it joins the entry of its line, or the line is
    /// logged, as it is before the store.
    pub(super) fn log(&mut self, m: &mut Machine, store: &Store) {
        let (t, line) = (store.tx.thread as usize, store.addr.line());
        if self.own(t, line) && self.mutants.has(Mutant::OwnerIgnored) {
            return;
        }
        let mut words: WordMask = store.addr.word_mask();
        if self.mutants.has(Mutant::LinesLoggedWhole) {
            words = WordMask::MAX;
        }
        let thread = &mut self.threads[t];
        thread.told = m.now() + m.bypass_cycles();
        let stored = thread.lines.take_in(line);
        let (remembered, logged_before) = (stored.known != 0, stored.header != 0);
        stored.known |= words;
        if remembered {
            if let Some(place) = stored.entry {
                m.count().log_entries_merged += 1;
                m.cover(Cover::WordJoined as usize);
                if !self.mutants.has(Mutant::JoinedWordNotMasked) {
                    thread.collected.join(place, words);
                }
                return;
            }
            m.cover(Cover::ClosedRecord as usize);
            if self.mutants.has(Mutant::ClosedRecordJoined) {
                return;
            }
        } else if logged_before || stored.entry.is_some() {
            m.cover(Cover::LoggedAgain as usize);
        }
        self.append(m, t, Logged { home: line, words });
    }

    /// What the L1 remembers of the line is this thread's from now on. Returns whether it was another's.
    fn own(&mut self, t: usize, line: LineAddr) -> bool {
        let (core, mut others) = (self.threads[t].core, false);
        for (other, thread) in self.threads.iter_mut().enumerate() {
            if other != t && thread.core == core {
                others |= thread.lines.forget(line);
            }
        }
        others
    }

    fn append(&mut self, m: &mut Machine, t: usize, logged: Logged) {
        if self.threads[t].collected.entries().len() == self.entries_per_record {
            m.cover(Cover::RecordFull as usize);
            self.write_header(m, t, m.bypass_cycles());
        }
        let thread = &mut self.threads[t];
        if thread.collected.entries().is_empty() {
            if thread.records_of_tx == thread.area.slots {
                return m.fail(format!(
                    "transaction {} of thread {t} has more records than opt-undo.log_bytes_per_thread holds ({})",
                    thread.tx, thread.area.slots
                ));
            }
            thread.records_of_tx += 1;
            if thread.record >= thread.area.slots {
                m.cover(Cover::LogWrapped as usize);
            }
        }
        let place = thread.collected.push(logged);
        thread.lines.take_in(logged.home).entry = Some(place);
        thread.last_entry = m.order();
        let (line, old) = (thread.area.entry(thread.record, place), m.line(logged.home));
        let write = Write::line(WriteClass::Log, line, old);
        let c = m.count();
        c.log_entries += 1;
        c.log_buffer_max = c.log_buffer_max.max(place as u64 + 1);
        m.note(|| {
            let (home, number) = (logged.home.addr(), thread.record);
            format!("thread {t} logs line {home} (entry {place} of record {number})")
        });
        m.write(Write { order: thread.last_entry, ..write }, m.bypass_cycles());
    }

    /// The record that a thread collects is closed: its header is written, after its entries.
    pub(super) fn write_header(&mut self, m: &mut Machine, t: usize, delay: Cycle) {
        let thread = &mut self.threads[t];
        let collected = std::mem::take(&mut thread.collected);
        if collected.entries().is_empty() {
            return;
        }
        let order = m.order();
        for logged in collected.entries() {
            let stored = thread.lines.find_mut(logged.home).expect("it was stored to");
            (stored.entry, stored.header) = (None, order);
        }
        let header = Header { index: thread.records_of_tx - 1, tx: thread.number, collected };
        let (number, after) = (thread.record, thread.last_entry);
        thread.record += 1;
        let (line, words) = (thread.area.header(number), header.words(thread.area.torn(number)));
        let after = if self.mutants.has(Mutant::HeaderOvertakesEntries) { 0 } else { after };
        m.note(|| {
            let entries = collected.entries().len();
            format!("the header of record {number} of thread {t} is sent ({entries} entries)")
        });
        m.write(Write { order, after, ..Write::line(WriteClass::Metadata, line, words) }, delay);
    }

    /// A line leaves the caches: what it must wait for. Headers with entries of it that are being collected are
    /// written now, as soon as the controller knows of all stores.
    pub(super) fn headers_of(&mut self, m: &mut Machine, line: LineAddr) -> OrderSeq {
        let (mut newest, mut open) = (0, 0);
        for t in 0..self.threads.len() {
            let Some(stored) = self.threads[t].lines.find(line) else { continue };
            open += 1;
            if stored.entry.is_some() && !self.mutants.has(Mutant::HeaderNotForced) {
                self.force_header(m, t);
            }
            let stored = self.threads[t].lines.find(line).expect("it was just found");
            newest = newest.max(stored.header);
        }
        if open > 1 {
            m.cover(Cover::SeveralHeadersAwaited as usize);
        }
        newest
    }

    fn force_header(&mut self, m: &mut Machine, t: usize) {
        m.cover(Cover::HeaderForced as usize);
        let thread = &self.threads[t];
        let (entries, delay) =
            (thread.collected.entries().len(), thread.told.saturating_sub(m.now()));
        m.count().log_entries_hurried += entries as u64;
        self.write_header(m, t, delay);
    }
}
