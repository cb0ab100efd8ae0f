//! Persist buffers: what each core has stored and PM has not.

use graven::memory::{Addr, LineAddr, LineData};

/// A line with content that PM has not.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Distinguishes entries.
    pub number: u64,
    pub line: LineAddr,
    pub content: LineData,
    /// The word that was stored to first.
    pub first_word: usize,
    /// It is on its way to PM.
    pub sent: bool,
}

/// The buffer of a core.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffer {
    /// Oldest first.
    pub entries: Vec<Entry>,
}

impl Buffer {
    /// The entry of a line that is not on its way.
    pub fn waiting(&mut self, line: LineAddr) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.line == line && !entry.sent)
    }

    /// The newest entry of a line.
    pub fn newest(&mut self, line: LineAddr) -> Option<&mut Entry> {
        self.entries.iter_mut().rev().find(|entry| entry.line == line)
    }

    /// Takes the entry of a line out that is not on its way.
    pub fn take(&mut self, line: LineAddr) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.line == line && !entry.sent)?;
        Some(self.entries.remove(at))
    }

    /// Entries that are not on their way.
    pub fn waiting_count(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.sent).count()
    }

    /// The oldest entry that is not on its way.
    pub fn oldest_waiting(&mut self) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| !entry.sent)
    }
}

/// The buffers of all cores.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    of_cores: Vec<Buffer>,
    room: usize,
    next: u64,
}

impl Buffers {
    pub fn new(cores: u32, room: usize) -> Buffers {
        Buffers { of_cores: vec![Buffer::default(); cores as usize], room, next: 0 }
    }

    pub fn of(&mut self, core: u32) -> &mut Buffer {
        &mut self.of_cores[core as usize]
    }

    pub fn cores(&self) -> u32 {
        self.of_cores.len() as u32
    }

    pub fn has_room(&self, core: u32) -> bool {
        self.of_cores[core as usize].entries.len() < self.room
    }

    /// Entries in the fullest buffer.
    pub fn fullest(&self) -> usize {
        self.of_cores.iter().map(|buffer| buffer.entries.len()).max().unwrap_or(0)
    }

    /// Returns true if a buffer has a line, on its way or not.
    pub fn have(&self, line: LineAddr) -> bool {
        self.all().any(|entry| entry.line == line)
    }

    /// All entries, by cores.
    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.of_cores.iter().flat_map(|buffer| &buffer.entries)
    }

    /// A new entry of a core, for which there is room.
    pub fn add(&mut self, core: u32, addr: Addr, content: LineData) -> usize {
        self.next += 1;
        let (line, first_word) = (addr.line(), addr.word_in_line());
        let entries = &mut self.of_cores[core as usize].entries;
        entries.push(Entry { number: self.next, line, content, first_word, sent: false });
        entries.len()
    }

    /// An entry leaves.
    pub fn remove(&mut self, core: u32, number: u64) {
        self.of_cores[core as usize].entries.retain(|entry| entry.number != number);
    }
}
