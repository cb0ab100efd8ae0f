//! Log entries, their headers, and what lines wait for.

use graven_base::memory::{LineAddr, WordMask};
use graven_base::time::Cycle;
use graven_machine::design::Store;
use graven_machine::request::{Write, WriteClass, WriteOrder};

use super::event::Event;
use super::protocol::{OptUndo, Port};
use super::record::{Header, Logged};

impl OptUndo {
    /// The controller does not know of a store to this word: it joins the entry of its line, or the line is
    /// logged, as it is before the store.
    pub(super) fn log(&mut self, port: &mut Port<'_>, store: &Store) {
        let (t, line) = (store.tx.thread as usize, store.addr.line());
        if self.own(t, line) && !self.rules.owners_are_compared() {
            return;
        }
        let mut words: WordMask = store.addr.word_mask();
        if !self.rules.only_own_words_are_logged() {
            words = WordMask::MAX;
        }
        let thread = &mut self.threads[t];
        thread.told = port.now() + port.bypass_cycles();
        let stored = thread.lines.take_in(line);
        let (remembered, entry) = (stored.known != 0, stored.entry);
        let was_logged = entry.is_some() || !stored.header.is_none();
        stored.known |= words;
        match entry {
            Some(place) if remembered => return self.join(port, t, place, words),
            None if remembered => {
                port.emit(Event::ClosedRecordFound);
                if !self.rules.closed_records_are_final() {
                    return;
                }
            }
            _ if was_logged => port.emit(Event::LoggedAgain),
            _ => {}
        }
        self.append(port, t, Logged { home: line, words });
    }

    /// Makes the L1's memory of the line this thread's. Returns whether it was another's.
    fn own(&mut self, t: usize, line: LineAddr) -> bool {
        let (core, mut others) = (self.threads[t].core, false);
        for (other, thread) in self.threads.iter_mut().enumerate() {
            if other != t && thread.core == core {
                others |= thread.lines.forget(line);
            }
        }
        others
    }

    /// A store joins an entry whose header is not written.
    fn join(&mut self, port: &mut Port<'_>, t: usize, place: usize, words: WordMask) {
        port.emit(Event::WordJoined);
        if self.rules.joined_word_is_masked() {
            self.threads[t].collected.join(place, words);
        }
    }

    /// The old content of a line goes to the log area, in the record that is being collected or in a new one.
    fn append(&mut self, port: &mut Port<'_>, t: usize, logged: Logged) {
        if self.threads[t].collected.entries().len() == self.entries_per_record {
            port.emit(Event::RecordFull);
            self.write_header(port, t, port.bypass_cycles());
        }
        if self.threads[t].collected.entries().is_empty() && !self.begin_record(port, t) {
            return;
        }
        let thread = &mut self.threads[t];
        let (line, record) = (logged.home, thread.record);
        let place = thread.collected.push(logged);
        thread.lines.take_in(line).entry = Some(place);
        thread.last_entry = port.order();
        port.emit(Event::Logged { thread: t, line, place, record });
        let at = thread.area.entry(record, place);
        let write = Write::line(WriteClass::Log, at, port.cached_line(line));
        port.write(write.ordered(thread.last_entry), port.bypass_cycles());
    }

    /// The transaction has one record more, if the log area has a slot for it.
    fn begin_record(&mut self, port: &mut Port<'_>, t: usize) -> bool {
        let thread = &mut self.threads[t];
        let slots = thread.area.slots;
        if thread.records_of_tx == slots {
            port.fail(format!(
                "transaction {} of thread {t} has more records than opt-undo.log_bytes_per_thread holds ({slots})",
                thread.tx
            ));
            return false;
        }
        thread.records_of_tx += 1;
        if thread.record >= slots {
            port.emit(Event::LogWraps);
        }
        true
    }

    /// The record that a thread collects is closed: its header is written, after its entries.
    pub(super) fn write_header(&mut self, port: &mut Port<'_>, t: usize, delay: Cycle) {
        let thread = &mut self.threads[t];
        let collected = std::mem::take(&mut thread.collected);
        let entries = collected.entries();
        if entries.is_empty() {
            return;
        }
        let order = port.order();
        for logged in entries {
            let stored = thread.lines.find_mut(logged.home).expect("it was stored to");
            (stored.entry, stored.header) = (None, order);
        }
        let mut after = thread.last_entry;
        if !self.rules.header_follows_entries() {
            after = WriteOrder::NONE;
        }
        let record = thread.record;
        thread.record += 1;
        port.emit(Event::HeaderSent { thread: t, record, entries: entries.len() });
        let header = Header { index: thread.records_of_tx - 1, tx: thread.number, collected };
        let words = header.words(thread.area.torn(record));
        let write = Write::line(WriteClass::Metadata, thread.area.header(record), words);
        port.write(write.ordered(order).after(after), delay);
    }

    /// A line leaves the caches: what it must wait for. Headers with entries of it that are being collected are
    /// written now, as soon as the controller knows of all stores.
    pub(super) fn headers_of(&mut self, port: &mut Port<'_>, line: LineAddr) -> WriteOrder {
        let (mut newest, mut open) = (WriteOrder::NONE, 0);
        for t in 0..self.threads.len() {
            let Some(stored) = self.threads[t].lines.find(line) else { continue };
            open += 1;
            if stored.entry.is_some() && self.rules.header_is_forced() {
                self.force_header(port, t);
            }
            let stored = self.threads[t].lines.find(line).expect("it was just found");
            newest = newest.max(stored.header);
        }
        if open > 1 {
            port.emit(Event::SeveralHeadersAwaited);
        }
        newest
    }

    /// A header is written before its record is full.
    fn force_header(&mut self, port: &mut Port<'_>, t: usize) {
        let thread = &self.threads[t];
        port.emit(Event::HeaderForced { entries: thread.collected.entries().len() });
        let delay = thread.told.saturating_sub(port.now());
        self.write_header(port, t, delay);
    }
}
