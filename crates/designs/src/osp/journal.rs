//! The metadata journal: records of commits and consolidations, and its checkpoints.

use std::collections::VecDeque;

use super::event::Event;
use super::layout::{ENTRIES_PER_LINE, ENTRY_BYTES, JournalEntry, Layout, Slot, home_word};
use super::pages::Page;
use super::protocol::{Osp, Port, Write};
use graven_base::memory::WORDS_PER_LINE;
use graven_machine::media::overlay;
use graven_machine::request::{self, WriteClass, WriteOrder};

/// Subjects of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// The commit of this key.
    Commit(usize),
    /// The consolidation of a page.
    Consolidation(Slot),
}

/// A record in the journal.
#[derive(Clone, Debug)]
struct Record {
    of: Of,
    /// Number of its first entry.
    first: u64,
    entries: u64,
    /// Writes that are not durable.
    writes: u32,
    /// The last line, to be sent when the others are durable.
    marker: Option<request::Write>,
}

/// The table takes over what the journal says.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    /// The entries before this one need not be kept when it is over.
    upto: u64,
    writes: u32,
}

/// The journal's state.
pub(super) struct Journal {
    layout: Layout,
    /// Number of the oldest entry that is still needed.
    head: u64,
    /// Number of the next.
    next: u64,
    /// The pages of the entries, by place.
    slots: Vec<Slot>,
    /// Records that are needed, oldest first.
    records: VecDeque<Record>,
    /// Records that wait for room, or for their page, oldest first.
    waiting: VecDeque<Of>,
    checkpoint: Option<Checkpoint>,
    /// Records of which something is not durable.
    records_underway: u32,
    /// Home words on their way into the table.
    home_words: u32,
    /// Entries of the record being put together: page and bitmap.
    entries: Vec<(Slot, u64)>,
}

/// Outcomes of an attempt to send a record.
enum Sent {
    Yes,
    /// Another record of its page is on its way.
    NotYet,
    /// There is no room.
    NoRoom,
}

impl Journal {
    pub(super) fn new(layout: Layout) -> Journal {
        Journal {
            layout,
            head: 0,
            next: 0,
            slots: vec![0; layout.entries as usize],
            records: VecDeque::new(),
            waiting: VecDeque::new(),
            checkpoint: None,
            records_underway: 0,
            home_words: 0,
            entries: Vec::new(),
        }
    }

    /// Entries that are needed.
    pub(super) fn taken(&self) -> u64 {
        self.next - self.head
    }

    /// Returns true if nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.checkpoint.is_none() && !self.will_change_pages()
    }

    /// Returns true if a page is about to become quiet, or free.
    pub(super) fn will_change_pages(&self) -> bool {
        self.home_words + self.records_underway > 0
    }

    pub(super) fn wait(&mut self, of: Of) {
        self.waiting.push_back(of);
    }

    /// Gives a waiting record up.
    pub(super) fn give_up(&mut self, of: Of) {
        self.waiting.retain(|&waiting| waiting != of);
    }
}

impl Osp {
    // ---- records -------------------------------------------------------------------------------

    /// Sends the records that can be sent.
    pub(super) fn send_records(&mut self, port: &mut Port<'_>) {
        let mut at = 0;
        while let Some(&of) = self.journal.waiting.get(at) {
            match self.send_record(port, of) {
                Sent::Yes => {
                    self.journal.waiting.remove(at);
                }
                Sent::NotYet => at += 1,
                Sent::NoRoom => {
                    port.emit(Event::JournalFull);
                    if let Of::Commit(key) = of {
                        let since = &mut self.commits[key].full_since;
                        *since = (*since).min(port.now());
                    }
                    self.checkpoint(port, true);
                    return;
                }
            }
        }
    }

    /// Sends a record, if its pages have no other on its way and the journal has room.
    fn send_record(&mut self, port: &mut Port<'_>, of: Of) -> Sent {
        if !self.put_together(of) {
            port.emit(Event::RecordWaitsForPage);
            return Sent::NotYet;
        }
        let (entries, capacity) = (self.journal.entries.len() as u64, self.journal.layout.entries);
        if entries > capacity {
            port.fail(format!(
                "a transaction changes {entries} pages, and osp.journal_bytes holds the entries of {capacity}"
            ));
            return Sent::Yes;
        }
        if self.journal.next + entries > self.journal.head + capacity {
            return Sent::NoRoom;
        }
        let order = match of {
            Of::Commit(key) => {
                let cycles = port.now().saturating_sub(self.commits[key].full_since);
                port.emit(Event::RecordWaited { cycles });
                self.commits[key].order
            }
            Of::Consolidation(slot) => self.consolidation_recorded(port, slot),
        };
        self.append(port, of, order);
        Sent::Yes
    }

    /// Puts a record's entries together: of each page its new committed bitmap. Returns whether it may be sent: since
    /// each has the whole bitmap, records of a page go one after the other.
    fn put_together(&mut self, of: Of) -> bool {
        self.journal.entries.clear();
        let key = match of {
            Of::Commit(key) => key,
            Of::Consolidation(slot) => {
                self.journal.entries.push((slot, 0));
                return true;
            }
        };
        for of_page in self.commits[key].lines.chunk_by(|a, b| a.slot == b.slot) {
            let (slot, (set, mask)) = (of_page[0].slot, self.bits(of_page));
            let page = self.pages.get(slot);
            if page.pending && self.rules.records_of_a_page_in_turn() {
                return false;
            }
            self.journal.entries.push((slot, page.durable & !mask | set));
        }
        true
    }

    /// Writes the entries, all but the last line of them at once.
    fn append(&mut self, port: &mut Port<'_>, of: Of, order: WriteOrder) {
        let (first, entries) = (self.journal.next, self.journal.entries.len() as u64);
        self.journal.next += entries;
        let mut lines = self.lines_of_record(first);
        let wraps = first + entries > self.journal.layout.entries;
        port.emit(Event::RecordSent { of, first, entries, lines: lines.len(), wraps });
        let last = lines.last_mut().expect("a record has entries");
        *last = last.ordered(order);
        let writes = lines.len() as u32;
        let has_marker = writes > 1 && self.rules.marker_follows_record();
        let marker = if has_marker { lines.pop() } else { None };
        self.journal.records.push_back(Record { of, first, entries, writes, marker });
        self.journal.records_underway += 1;
        for line in lines {
            port.write_reported(line, Write::Journal { first }, 0);
        }
        match of {
            Of::Consolidation(slot) if !self.rules.page_free_when_recorded() => {
                self.release_page(port, slot);
            }
            Of::Commit(key) if !self.rules.record_is_awaited() => {
                self.acknowledge(port, self.commits[key].thread as usize, 0);
            }
            _ => {}
        }
    }

    /// The lines of the record whose entries have been put together, from this entry on. Its pages may have no other
    /// on its way.
    fn lines_of_record(&mut self, first: u64) -> Vec<request::Write> {
        let Journal { layout, entries, slots, .. } = &mut self.journal;
        let mut lines: Vec<request::Write> = Vec::new();
        for (at, &(slot, committed)) in entries.iter().enumerate() {
            let number = first + at as u64;
            slots[(number % layout.entries) as usize] = slot;
            self.pages.get_mut(slot).pending = true;
            let (first, last) = (at == 0, at + 1 == entries.len());
            let entry = JournalEntry { number, slot, first, last, committed };
            let (at, words) = (layout.journal_entry(number), entry.words(layout.torn(number)));
            let write = request::Write::words(WriteClass::Metadata, at, &words);
            match lines.last_mut().filter(|w| w.line == write.line) {
                Some(same) => {
                    overlay(&mut same.data, &write.data, write.mask);
                    same.mask |= write.mask;
                }
                None => lines.push(write),
            }
        }
        lines
    }

    /// A line of the record that begins with this entry is durable.
    pub(super) fn entries_durable(&mut self, port: &mut Port<'_>, first: u64) {
        let at = self.journal.records.partition_point(|r| r.first < first);
        let record = &mut self.journal.records[at];
        assert_eq!(record.first, first, "a record is kept until it is durable");
        record.writes -= 1;
        if record.writes == 1
            && let Some(marker) = record.marker.take()
        {
            return port.write_reported(marker, Write::Journal { first }, 0);
        }
        if record.writes > 0 {
            return;
        }
        self.journal.records_underway -= 1;
        match record.of {
            Of::Commit(key) => self.recorded(port, key),
            Of::Consolidation(slot) => self.consolidated(port, slot),
        }
        let used = self.journal.taken();
        if used * 100 >= self.journal.layout.entries * u64::from(self.config.checkpoint_percent) {
            self.checkpoint(port, false);
        }
        self.send_records(port);
    }

    // ---- checkpoints ---------------------------------------------------------------------------

    /// Writes into the table what the durable records say that are oldest, so that the journal need not keep
    /// them.
    pub(super) fn checkpoint(&mut self, port: &mut Port<'_>, on_demand: bool) {
        let Journal { layout, head, records, slots, checkpoint, .. } = &self.journal;
        let durable = records.iter().take_while(|r| r.writes == 0);
        let upto = durable.last().map_or(*head, |r| r.first + r.entries);
        if checkpoint.is_some() || upto == *head {
            return;
        }
        let slot_of = |number: u64| slots[(number % layout.entries) as usize];
        let mut slots: Vec<Slot> = (*head..upto).map(slot_of).collect();
        slots.sort_unstable();
        slots.dedup();
        port.emit(Event::CheckpointBegins { upto, on_demand });
        let line_of = |slot: Slot| u64::from(slot) / ENTRIES_PER_LINE;
        let mut writes = 0;
        for of_line in slots.chunk_by(|&a, &b| line_of(a) == line_of(b)) {
            writes += 1;
            port.write_reported(self.line_of_table(of_line), Write::Checkpoint, 0);
        }
        self.journal.checkpoint = Some(Checkpoint { upto, writes });
        if !self.rules.checkpoint_is_awaited() {
            self.truncate(port, upto);
        }
    }

    /// Builds the line of the table that these pages share, from what the journal durably says of
    /// them.
    fn line_of_table(&self, slots: &[Slot]) -> request::Write {
        let layout = self.journal.layout;
        let line = layout.table_bitmap(slots[0]).line();
        let empty = request::Write::line(WriteClass::Gc, line, [0; WORDS_PER_LINE]);
        let mut write = empty.masked(0);
        let bits = |page: &Page| {
            if self.rules.checkpoint_follows_journal() { page.durable } else { page.committed }
        };
        for &slot in slots {
            let at = layout.table_bitmap(slot);
            // A page that has lost its shadow page has nothing in it.
            write.data[at.word_in_line()] = self.pages.find(slot).map_or(0, bits);
            write.mask |= at.word_mask();
        }
        write
    }

    /// A line of the table has taken over what the journal says. With the last one the header is moved.
    pub(super) fn checkpoint_durable(&mut self, port: &mut Port<'_>) {
        let checkpoint = self.journal.checkpoint.as_mut().expect("one is under way");
        checkpoint.writes -= 1;
        if checkpoint.writes > 0 {
            return;
        }
        let (upto, layout) = (checkpoint.upto, self.journal.layout);
        let write = request::Write::words(WriteClass::Gc, layout.head, &[upto]);
        port.write_reported(write, Write::Head, 0);
        if !self.rules.head_is_awaited() {
            self.truncate(port, upto);
        }
    }

    /// The journal begins at the checkpoint: what is before it may be overwritten.
    pub(super) fn head_durable(&mut self, port: &mut Port<'_>) {
        let checkpoint = self.journal.checkpoint.take().expect("one is under way");
        self.truncate(port, checkpoint.upto);
    }

    /// The entries before this one are not needed any longer.
    fn truncate(&mut self, port: &mut Port<'_>, upto: u64) {
        let journal = &mut self.journal;
        port.emit(Event::Truncated { entries: upto.saturating_sub(journal.head) });
        journal.head = journal.head.max(upto);
        while journal.records.front().is_some_and(|r| r.first < upto) {
            journal.records.pop_front();
        }
        self.send_records(port);
    }

    // ---- home words ----------------------------------------------------------------------------

    /// A home page has got a shadow page: the table is updated.
    pub(super) fn write_home_word(&mut self, port: &mut Port<'_>, slot: Slot) {
        let (page, layout) = (self.pages.get_mut(slot), self.journal.layout);
        let (at, word) = (layout.table_home(slot), home_word(page.home));
        if !self.rules.home_word_is_awaited() {
            page.pending = false;
        }
        self.journal.home_words += 1;
        let write = request::Write::words(WriteClass::Metadata, at, &[word]);
        port.write_reported(write, Write::HomeWord { slot }, port.bypass_cycles());
    }

    /// The table knows it.
    pub(super) fn home_word_durable(&mut self, port: &mut Port<'_>, slot: Slot) {
        self.journal.home_words -= 1;
        if self.rules.home_word_is_awaited() {
            self.pages.get_mut(slot).pending = false;
        }
        self.send_records(port);
        self.consolidate_next(port);
    }
}

/// Bytes of the shortest journal: one line.
pub(super) const JOURNAL_BYTES_MIN: u64 = ENTRIES_PER_LINE * ENTRY_BYTES;
