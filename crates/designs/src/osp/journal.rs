//! The metadata journal: records of commits and consolidations, and its checkpoints.

use std::collections::VecDeque;

use super::cover::Cover;
use super::layout::{ENTRIES_PER_LINE, ENTRY_BYTES, JournalEntry, Layout, Slot, home_word};
use super::{About, Mutant, Osp};
use graven_machine::machine::Machine;
use graven_machine::media::overlay;
use graven_machine::request::{OrderSeq, Write, WriteClass};

/// What a record is of.
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
    /// Its last line, to be sent when the others are durable.
    marker: Option<Write>,
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
    /// What waits for room, or for its page, oldest first.
    waiting: VecDeque<Of>,
    checkpoint: Option<Checkpoint>,
    /// Records of which something is not durable.
    records_underway: u32,
    /// Home words on their way into the table.
    home_words: u32,
    /// Entries of the record being put together: page and bitmap.
    entries: Vec<(Slot, u64)>,
}

/// Whether a record could be sent.
enum Sent {
    Yes,
    /// Its page has another one on its way.
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

    /// Whether nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.checkpoint.is_none() && !self.will_change_pages()
    }

    /// Whether a page is about to become quiet, or free.
    pub(super) fn will_change_pages(&self) -> bool {
        self.home_words + self.records_underway > 0
    }

    pub(super) fn wait(&mut self, of: Of) {
        self.waiting.push_back(of);
    }

    /// What waits is given up.
    pub(super) fn give_up(&mut self, of: Of) {
        self.waiting.retain(|&waiting| waiting != of);
    }
}

impl Osp {
    /// Sends the records that can be sent.
    pub(super) fn send_records(&mut self, m: &mut Machine) {
        let mut at = 0;
        while let Some(&of) = self.journal.waiting.get(at) {
            match self.send_record(m, of) {
                Sent::Yes => {
                    self.journal.waiting.remove(at);
                }
                Sent::NotYet => at += 1,
                Sent::NoRoom => {
                    m.cover(Cover::JournalFull as usize);
                    if let Of::Commit(key) = of {
                        let since = &mut self.commits[key].full_since;
                        *since = (*since).min(m.now());
                    }
                    self.checkpoint(m, true);
                    return;
                }
            }
        }
    }

    fn send_record(&mut self, m: &mut Machine, of: Of) -> Sent {
        self.journal.entries.clear();
        let order = match of {
            Of::Commit(key) => {
                let commit = &self.commits[key];
                for of_page in commit.lines.chunk_by(|a, b| a.slot == b.slot) {
                    let (slot, (set, mask)) = (of_page[0].slot, self.bits(of_page));
                    let page = self.pages.get(slot);
                    if page.pending && !self.mutants.has(Mutant::RecordsOfAPageTogether) {
                        m.cover(Cover::RecordWaitsForPage as usize);
                        return Sent::NotYet;
                    }
                    self.journal.entries.push((slot, page.durable & !mask | set));
                }
                commit.order
            }
            Of::Consolidation(slot) => {
                self.journal.entries.push((slot, 0));
                0
            }
        };
        let entries = self.journal.entries.len() as u64;
        if entries > self.journal.layout.entries {
            m.fail(format!(
                "a transaction changes {entries} pages, and osp.journal_bytes holds the entries of {}",
                self.journal.layout.entries
            ));
            return Sent::Yes;
        }
        if self.journal.next + entries > self.journal.head + self.journal.layout.entries {
            return Sent::NoRoom;
        }
        let order = match of {
            Of::Commit(key) => {
                let since = self.commits[key].full_since;
                m.count().gc_stall_cycles += m.now().saturating_sub(since);
                order
            }
            Of::Consolidation(slot) => self.consolidation_recorded(m, slot),
        };
        self.append(m, of, order);
        Sent::Yes
    }

    /// Writes the entries, all but the last line of them at once.
    fn append(&mut self, m: &mut Machine, of: Of, order: OrderSeq) {
        let layout = self.journal.layout;
        let first = self.journal.next;
        let entries = self.journal.entries.len() as u64;
        self.journal.next += entries;
        let token = About::Journal.number(first);
        let mut writes: Vec<Write> = Vec::new();
        for at in 0..entries {
            let (slot, committed) = self.journal.entries[at as usize];
            let number = first + at;
            self.journal.slots[(number % layout.entries) as usize] = slot;
            self.pages.get_mut(slot).pending = true;
            let (first, last) = (at == 0, at + 1 == entries);
            let entry = JournalEntry { number, slot, first, last, committed };
            let words = entry.words(layout.torn(number));
            let write = Write::words(WriteClass::Metadata, layout.journal_entry(number), &words);
            match writes.last_mut().filter(|w| w.line == write.line) {
                Some(same) => {
                    overlay(&mut same.data, &write.data, write.mask);
                    same.mask |= write.mask;
                }
                None => writes.push(Write { token, ..write }),
            }
        }
        if first + entries > layout.entries {
            m.cover(Cover::JournalWrapped as usize);
        }
        m.count().log_entries += entries;
        m.note(|| format!("{of:?}: journal entries {first} to {}", first + entries - 1));
        let last = writes.last_mut().expect("a record has entries");
        last.order = order;
        let mut marker = None;
        if writes.len() > 1 {
            m.cover(Cover::RecordOfLines as usize);
            if !self.mutants.has(Mutant::MarkerOvertakesRecord) {
                marker = writes.pop();
            }
        }
        let sent = writes.len() as u32 + u32::from(marker.is_some());
        self.journal.records.push_back(Record { of, first, entries, writes: sent, marker });
        self.journal.records_underway += 1;
        writes.into_iter().for_each(|write| m.write(write, 0));
        if let Of::Consolidation(slot) = of
            && self.mutants.has(Mutant::PageReusedEarly)
        {
            self.release_page(m, slot);
        }
        if let Of::Commit(key) = of
            && self.mutants.has(Mutant::RecordNotAwaited)
        {
            self.acknowledge(m, self.commits[key].thread as usize, 0);
        }
    }

    /// A line of the record that begins with this entry is durable.
    pub(super) fn entries_durable(&mut self, m: &mut Machine, first: u64) {
        let at = self.journal.records.partition_point(|r| r.first < first);
        let record = &mut self.journal.records[at];
        debug_assert_eq!(record.first, first, "a record is kept until it is durable");
        record.writes -= 1;
        if record.writes == 1
            && let Some(marker) = record.marker.take()
        {
            return m.write(marker, 0);
        }
        if record.writes > 0 {
            return;
        }
        self.journal.records_underway -= 1;
        match record.of {
            Of::Commit(key) => self.recorded(m, key),
            Of::Consolidation(slot) => self.consolidated(m, slot),
        }
        let used = self.journal.next - self.journal.head;
        if used * 100 >= self.journal.layout.entries * u64::from(self.config.checkpoint_percent) {
            self.checkpoint(m, false);
        }
        self.send_records(m);
    }

    /// Writes into the table what the durable records say that are oldest, so that the journal need not keep
    /// them.
    pub(super) fn checkpoint(&mut self, m: &mut Machine, on_demand: bool) {
        let journal = &mut self.journal;
        let durable = journal.records.iter().take_while(|r| r.writes == 0);
        let upto = durable.last().map_or(journal.head, |r| r.first + r.entries);
        if journal.checkpoint.is_some() || upto == journal.head {
            return;
        }
        let place = |number| (number % journal.layout.entries) as usize;
        let mut slots: Vec<Slot> = (journal.head..upto).map(|n| journal.slots[place(n)]).collect();
        slots.sort_unstable();
        slots.dedup();
        m.cover(Cover::Checkpoint as usize);
        m.count().gc_passes += 1;
        m.count().gc_on_demand += u64::from(on_demand);
        m.note(|| format!("checkpoint of the journal up to entry {upto}"));
        let token = About::Checkpoint.number(0);
        let same_line = |a: &Slot, b: &Slot| {
            u64::from(*a) / ENTRIES_PER_LINE == u64::from(*b) / ENTRIES_PER_LINE
        };
        let mut writes = 0;
        for of_line in slots.chunk_by(same_line) {
            let line = journal.layout.table_bitmap(of_line[0]).line();
            let mut write = Write { mask: 0, token, ..Write::line(WriteClass::Gc, line, [0; 8]) };
            for &slot in of_line {
                // A page that has lost its shadow page has nothing in it.
                let ahead = self.mutants.has(Mutant::CheckpointAhead);
                let bits = |p: &super::pages::Page| if ahead { p.committed } else { p.durable };
                let word = journal.layout.table_bitmap(slot).word_in_line();
                write.data[word] = self.pages.find(slot).map_or(0, bits);
                write.mask |= 1 << word;
            }
            writes += 1;
            m.write(write, 0);
        }
        journal.checkpoint = Some(Checkpoint { upto, writes });
        if self.mutants.has(Mutant::CheckpointNotAwaited) {
            self.truncate(m, upto);
        }
    }

    /// A line of the table has taken over what the journal says.
    pub(super) fn checkpoint_durable(&mut self, m: &mut Machine) {
        let checkpoint = self.journal.checkpoint.as_mut().expect("one is under way");
        checkpoint.writes -= 1;
        if checkpoint.writes > 0 {
            return;
        }
        let (upto, layout) = (checkpoint.upto, self.journal.layout);
        let write = Write::words(WriteClass::Gc, layout.head, &[upto]);
        m.write(Write { token: About::Head.number(0), ..write }, 0);
        if self.mutants.has(Mutant::HeadNotAwaited) {
            self.truncate(m, upto);
        }
    }

    /// The journal begins at the checkpoint: what is before it may be overwritten.
    pub(super) fn head_durable(&mut self, m: &mut Machine) {
        let checkpoint = self.journal.checkpoint.take().expect("one is under way");
        self.truncate(m, checkpoint.upto);
    }

    /// The entries before this one are not needed any longer.
    fn truncate(&mut self, m: &mut Machine, upto: u64) {
        let journal = &mut self.journal;
        m.count().log_records_truncated += upto.saturating_sub(journal.head);
        journal.head = journal.head.max(upto);
        while journal.records.front().is_some_and(|r| r.first < upto) {
            journal.records.pop_front();
        }
        self.send_records(m);
    }

    /// A home page has got a shadow page: the table is told.
    pub(super) fn write_home_word(&mut self, m: &mut Machine, slot: Slot) {
        let (page, layout) = (self.pages.get_mut(slot), self.journal.layout);
        let addr = layout.table_home(slot);
        let write = Write::words(WriteClass::Metadata, addr, &[home_word(page.home)]);
        let token = About::HomeWord.number(slot.into());
        if self.mutants.has(Mutant::HomeWordNotAwaited) {
            page.pending = false;
        }
        self.journal.home_words += 1;
        m.write(Write { token, ..write }, m.bypass_cycles());
    }

    /// The table knows it.
    pub(super) fn home_word_durable(&mut self, m: &mut Machine, slot: Slot) {
        self.journal.home_words -= 1;
        if !self.mutants.has(Mutant::HomeWordNotAwaited) {
            self.pages.get_mut(slot).pending = false;
        }
        self.send_records(m);
        self.consolidate_next(m);
    }
}

/// Bytes of the shortest journal: one line.
pub(super) const JOURNAL_BYTES_MIN: u64 = ENTRIES_PER_LINE * ENTRY_BYTES;
