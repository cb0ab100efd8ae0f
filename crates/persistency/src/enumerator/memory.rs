//! Coherent caches, a persist queue for each line, the medium.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use super::super::program::{Outcome, Program, REGISTERS_MAX, WORDS_MAX};

/// An entry of a persist queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A store to a word.
    Write { word: u8, value: u8 },
    /// A flush that a thread waits for.
    Marker { thread: u8 },
}

/// The persist queue of a line. States are copied, compared and hashed more often than anything else is done: queues are short.
pub trait Queue: Copy + Eq + Hash + Debug {
    /// No entry.
    const EMPTY: Self;

    /// Appends an entry.
    fn push(&mut self, entry: Entry);

    /// Takes the oldest entry.
    fn pop(&mut self) -> Option<Entry>;

    /// Tells if an entry is in it.
    fn has(&self, entry: Entry) -> bool;
}

/// Up to eight entries of a byte each, the oldest the lowest, for words less than 4 and values less than 32.
impl Queue for u64 {
    const EMPTY: Self = 0;

    fn push(&mut self, entry: Entry) {
        let length = (u64::BITS - self.leading_zeros()).div_ceil(8);
        *self |= u64::from(byte_of(entry)) << (8 * length);
    }

    fn pop(&mut self) -> Option<Entry> {
        let byte = *self as u8;
        *self >>= 8;
        if byte >> 7 != 0 {
            Some(Entry::Write { word: byte >> 5 & 3, value: byte & 31 })
        } else if byte != 0 {
            Some(Entry::Marker { thread: byte & 31 })
        } else {
            None
        }
    }

    fn has(&self, entry: Entry) -> bool {
        self.to_le_bytes().contains(&byte_of(entry))
    }
}

/// An entry as a byte that is not 0.
fn byte_of(entry: Entry) -> u8 {
    match entry {
        Entry::Write { word, value } => 1 << 7 | word << 5 | value,
        Entry::Marker { thread } => 1 << 6 | thread,
    }
}

/// Up to `DEPTH` entries of all words and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Long<const DEPTH: usize> {
    entries: [u16; DEPTH],
    count: u8,
}

/// An entry as a number that is not 0.
fn number_of(entry: Entry) -> u16 {
    match entry {
        Entry::Write { word, value } => 1 << 15 | u16::from(word) << 8 | u16::from(value),
        Entry::Marker { thread } => 1 << 14 | u16::from(thread),
    }
}

impl<const DEPTH: usize> Queue for Long<DEPTH> {
    const EMPTY: Self = Long { entries: [0; DEPTH], count: 0 };

    fn push(&mut self, entry: Entry) {
        self.entries[usize::from(self.count)] = number_of(entry);
        self.count += 1;
    }

    fn pop(&mut self) -> Option<Entry> {
        self.count = self.count.checked_sub(1)?;
        let number = self.entries[0];
        self.entries.copy_within(1.., 0);
        self.entries[DEPTH - 1] = 0;
        Some(if number >> 15 != 0 {
            Entry::Write { word: (number >> 8) as u8 & 63, value: number as u8 }
        } else {
            Entry::Marker { thread: number as u8 }
        })
    }

    fn has(&self, entry: Entry) -> bool {
        self.entries.contains(&number_of(entry))
    }
}

/// Memory of up to `WORDS` words in `LINES` lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory<Q, const WORDS: usize, const LINES: usize> {
    caches: [u8; WORDS],
    medium: [u8; WORDS],
    queues: [Q; LINES],
}

impl<Q: Queue, const WORDS: usize, const LINES: usize> Hash for Memory<Q, WORDS, LINES> {
    /// The caches are left out: they hardly differ alone.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.queues.iter().for_each(|queue| queue.hash(hasher));
        hasher.write_u64(self.medium.iter().fold(0, |all, &value| all << 8 ^ u64::from(value)));
    }
}

impl<Q: Queue, const WORDS: usize, const LINES: usize> Memory<Q, WORDS, LINES> {
    pub fn new(program: &Program) -> Self {
        let mut words = [0; WORDS];
        words[..program.initial.len()].copy_from_slice(&program.initial);
        Memory { caches: words, medium: words, queues: [Q::EMPTY; LINES] }
    }

    pub fn load(&self, word: u8) -> u8 {
        self.caches[usize::from(word)]
    }

    /// A store reaches the caches, and will reach the medium some time.
    pub fn write(&mut self, line: u8, word: u8, value: u8) {
        self.caches[usize::from(word)] = value;
        self.queues[usize::from(line)].push(Entry::Write { word, value });
    }

    /// A store reaches caches and medium at once; only a line whose queue is empty takes it.
    pub fn write_through(&mut self, word: u8, value: u8) {
        self.caches[usize::from(word)] = value;
        self.medium[usize::from(word)] = value;
    }

    pub fn mark(&mut self, line: u8, thread: u8) {
        self.queues[usize::from(line)].push(Entry::Marker { thread });
    }

    pub fn is_drained(&self, line: u8) -> bool {
        self.queues[usize::from(line)] == Q::EMPTY
    }

    /// Tells if a thread waits for no flush.
    pub fn has_no_marker_of(&self, thread: u8) -> bool {
        !self.queues.iter().any(|queue| queue.has(Entry::Marker { thread }))
    }

    /// The memory after the oldest entry of a line's queue has left it.
    pub fn persisted(&self, line: usize) -> Option<Self> {
        let mut next = *self;
        if let Entry::Write { word, value } = next.queues[line].pop()? {
            next.medium[usize::from(word)] = value;
        }
        Some(next)
    }

    pub fn outcome(&self, registers: [u8; REGISTERS_MAX], done: bool) -> Outcome {
        let mut image = [0; WORDS_MAX];
        image[..WORDS].copy_from_slice(&self.medium);
        Outcome { image, registers, done }
    }
}
