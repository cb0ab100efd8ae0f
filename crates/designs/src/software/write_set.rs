//! The table in DRAM of the words that a transaction has stored to.

use super::SoftwareLogConfig;
use super::event::Event;
use graven_base::memory::{Addr, Field, WORD_BYTES, mix};
use graven_machine::design::{Code, Design, Port};

const ENTRY_BYTES: u64 = 16;

const ENTRY: Field = Field::new("entry", 32, 0);
const TRANSACTION: Field = ENTRY.then("transaction", 32);

/// A bucket: the transaction that filled it, and its entry.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    transaction: u64,
    entry: u32,
}

/// One thread's write set.
#[derive(Clone, Debug)]
pub(super) struct WriteSet {
    /// A power of two, at least twice as many as words.
    buckets: Vec<Bucket>,
    words_max: usize,
    /// In the order in which they came.
    words: Vec<(Addr, u64)>,
    /// Number of the running transaction: what others filled is empty, as is what none has filled (0).
    transaction: u64,
    /// Address in the design's DRAM.
    base: Addr,
}

/// Results of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The entry of the word.
    Entry(usize),
    /// The bucket where it belongs.
    Empty(usize),
}

impl WriteSet {
    /// Makes an empty write set, `offset` bytes behind the beginning of the design's DRAM.
    pub fn new(words_max: u32, offset: u64) -> WriteSet {
        WriteSet {
            buckets: vec![Bucket::default(); WriteSet::buckets(words_max)],
            words_max: words_max as usize,
            words: Vec::new(),
            transaction: 1,
            base: Addr(offset),
        }
    }

    fn buckets(words_max: u32) -> usize {
        (2 * words_max as usize).next_power_of_two()
    }

    /// Bytes of a write set of `words_max` words.
    pub fn bytes(words_max: u32) -> u64 {
        WriteSet::buckets(words_max) as u64 * WORD_BYTES + u64::from(words_max) * ENTRY_BYTES
    }

    /// The design's DRAM begins here.
    pub fn set_base(&mut self, heap: Addr) {
        self.base = heap.plus(self.base.0);
    }

    /// A transaction begins.
    pub fn begin(&mut self) {
        self.transaction += 1;
        self.words.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Words that it holds.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn is_full(&self) -> bool {
        self.words.len() == self.words_max
    }

    fn bucket(&self, index: usize) -> Addr {
        self.base.plus(index as u64 * WORD_BYTES)
    }

    fn entry(&self, index: usize) -> Addr {
        self.bucket(self.buckets.len()).plus(index as u64 * ENTRY_BYTES)
    }

    /// The entries: where each is, its home address and its newest value.
    pub fn entries(&self) -> impl Iterator<Item = (Addr, Addr, u64)> + '_ {
        let each = self.words.iter().enumerate();
        each.map(|(index, &(home, value))| (self.entry(index), home, value))
    }

    /// Looks a word up.
    pub fn search<D: Design<Event = Event>>(
        &self,
        port: &mut Port<'_, D>,
        config: &SoftwareLogConfig,
        home: Addr,
        code: &mut Code,
    ) -> Found {
        code.compute(config.search_instructions);
        let mask = self.buckets.len() - 1;
        let first = mix(home.0 / WORD_BYTES) as usize & mask;
        let mut index = first;
        loop {
            if index != first {
                port.emit(Event::Collision);
            }
            code.load_independent(self.bucket(index));
            code.compute(config.bucket_instructions);
            let bucket = self.buckets[index];
            if bucket.transaction != self.transaction {
                return Found::Empty(index);
            }
            let entry = bucket.entry as usize;
            code.load_independent(self.entry(entry));
            code.compute(config.entry_instructions);
            if self.words[entry].0 == home {
                port.emit(Event::FoundAgain);
                return Found::Entry(entry);
            }
            index = (index + 1) & mask;
        }
    }

    /// Inserts a word into the empty bucket that a search has found; `value`: if entries have one.
    pub fn insert(
        &mut self,
        config: &SoftwareLogConfig,
        bucket: usize,
        home: Addr,
        value: Option<u64>,
        code: &mut Code,
    ) {
        assert!(!self.is_full(), "the caller has looked");
        let entry = self.words.len();
        code.compute(config.insert_instructions);
        code.store(self.entry(entry), home.0);
        if let Some(value) = value {
            code.store(self.entry(entry).plus(WORD_BYTES), value);
        }
        let word = ENTRY.put(entry as u64) | TRANSACTION.put(self.transaction);
        code.store(self.bucket(bucket), word);
        self.buckets[bucket] = Bucket { transaction: self.transaction, entry: entry as u32 };
        self.words.push((home, value.unwrap_or(0)));
    }

    /// Gives a word a new value.
    pub fn update(&mut self, entry: usize, value: u64, code: &mut Code) {
        code.store(self.entry(entry).plus(WORD_BYTES), value);
        self.words[entry].1 = value;
    }

    /// Loads the value of a word that was found.
    pub fn load(&self, entry: usize, code: &mut Code) -> u64 {
        code.load_independent(self.entry(entry).plus(WORD_BYTES));
        self.words[entry].1
    }
}
