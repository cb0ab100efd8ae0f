//! Coherent caches, a persist queue for each line, the medium.

use super::super::program::{Outcome, Program, REGISTERS_MAX, WORDS_MAX};

/// An entry of a persist queue, as a number: states are compared and hashed more often than anything else is done.
type Entry = u16;

const NOTHING: Entry = 0;

/// A store of a value, less than 256, to a word, less than 64.
const fn write_entry(word: u8, value: u8) -> Entry {
    1 << 15 | (word as u16) << 8 | value as u16
}

/// A flush that a thread waits for.
const fn marker(thread: u8) -> Entry {
    1 << 14 | thread as u16
}

/// The word and the value of a store.
const fn written(entry: Entry) -> Option<(u8, u8)> {
    if entry >> 15 == 0 { None } else { Some(((entry >> 8) as u8 & 63, entry as u8)) }
}

/// Memory of up to `WORDS` words in `LINES` lines, with queues of up to `DEPTH` entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
            queues: [[NOTHING; DEPTH]; LINES],
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
        self.push(line, write_entry(word, value));
    }

    /// A store reaches caches and medium at once; only a line whose queue is empty takes it.
    pub fn write_through(&mut self, word: u8, value: u8) {
        self.caches[usize::from(word)] = value;
        self.medium[usize::from(word)] = value;
    }

    pub fn mark(&mut self, line: u8, thread: u8) {
        self.push(line, marker(thread));
    }

    pub fn is_drained(&self, line: u8) -> bool {
        self.counts[usize::from(line)] == 0
    }

    /// Tells if a thread waits for no flush.
    pub fn has_no_marker_of(&self, thread: u8) -> bool {
        !self.queues.iter().flatten().any(|entry| *entry == marker(thread))
    }

    /// The memory after the oldest entry of a line's queue has left it.
    pub fn persisted(&self, line: usize) -> Option<Self> {
        if self.counts[line] == 0 {
            return None;
        }
        let mut next = *self;
        if let Some((word, value)) = written(next.queues[line][0]) {
            next.medium[usize::from(word)] = value;
        }
        next.queues[line].copy_within(1.., 0);
        next.queues[line][DEPTH - 1] = NOTHING;
        next.counts[line] -= 1;
        Some(next)
    }

    pub fn outcome(&self, registers: [u8; REGISTERS_MAX], done: bool) -> Outcome {
        let mut image = [0; WORDS_MAX];
        image[..WORDS].copy_from_slice(&self.medium);
        Outcome { image, registers, done }
    }
}
