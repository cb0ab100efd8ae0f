//! Coherent caches, a persist queue for each line, the medium.

use super::super::program::{Outcome, Program, REGISTERS_MAX, WORDS_MAX};

/// An entry of a persist queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Entry {
    Nothing,
    Write {
        word: u8,
        value: u8,
    },
    /// A flush that a thread waits for.
    Marker {
        thread: u8,
    },
}

/// Memory of up to `WORDS` words in `LINES` lines, with queues of up to `DEPTH` entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Memory<const WORDS: usize, const LINES: usize, const DEPTH: usize> {
    caches: [u8; WORDS],
    medium: [u8; WORDS],
    queues: [[Entry; DEPTH]; LINES],
    counts: [u8; LINES],
}

impl<const WORDS: usize, const LINES: usize, const DEPTH: usize> Memory<WORDS, LINES, DEPTH> {
    pub fn new(program: &Program) -> Self {
        let mut words = [0; WORDS];
        words[..program.initial.len()].copy_from_slice(&program.initial);
        Memory {
            caches: words,
            medium: words,
            queues: [[Entry::Nothing; DEPTH]; LINES],
            counts: [0; LINES],
        }
    }

    pub fn load(&self, word: u8) -> u8 {
        self.caches[usize::from(word)]
    }

    fn push(&mut self, line: u8, entry: Entry) {
        let count = &mut self.counts[usize::from(line)];
        self.queues[usize::from(line)][usize::from(*count)] = entry;
        *count += 1;
    }

    /// A store reaches the caches, and will reach the medium some time.
    pub fn write(&mut self, line: u8, word: u8, value: u8) {
        self.caches[usize::from(word)] = value;
        self.push(line, Entry::Write { word, value });
    }

    /// A store reaches caches and medium at once; only a line whose queue is empty takes it.
    pub fn write_through(&mut self, word: u8, value: u8) {
        self.caches[usize::from(word)] = value;
        self.medium[usize::from(word)] = value;
    }

    pub fn mark(&mut self, line: u8, thread: u8) {
        self.push(line, Entry::Marker { thread });
    }

    pub fn is_drained(&self, line: u8) -> bool {
        self.counts[usize::from(line)] == 0
    }

    /// Tells if a thread waits for no flush.
    pub fn has_no_marker_of(&self, thread: u8) -> bool {
        !self.queues.iter().flatten().any(|entry| *entry == Entry::Marker { thread })
    }

    /// The memory after the oldest entry of a line's queue has left it.
    pub fn persisted(&self, line: usize) -> Option<Self> {
        if self.counts[line] == 0 {
            return None;
        }
        let mut next = *self;
        if let Entry::Write { word, value } = next.queues[line][0] {
            next.medium[usize::from(word)] = value;
        }
        next.queues[line].copy_within(1.., 0);
        next.queues[line][DEPTH - 1] = Entry::Nothing;
        next.counts[line] -= 1;
        Some(next)
    }

    pub fn outcome(&self, registers: [u8; REGISTERS_MAX], done: bool) -> Outcome {
        let mut image = [0; WORDS_MAX];
        image[..WORDS].copy_from_slice(&self.medium);
        Outcome { image, registers, done }
    }
}
