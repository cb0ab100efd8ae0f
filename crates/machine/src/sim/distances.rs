//! Distances between stores of a transaction to the same word (MorLog §II-B, Fig. 3).
//!
//! The write distance of a store is the number of stores between it and the one before to the same
//! word in the same transaction, in the order in which they are performed; the first store to a
//! word has none. Transactional stores to PM are followed, whatever the design. What it leaves out:
//! Fig. 3 does not say whether stores narrower than a word are distinguished; here there are none.

use crate::stats::Counters;
use graven_base::ids::Tx;
use graven_base::memory::{Addr, WORD_BYTES};

/// Slots of a new table; a power of two.
const SLOTS: usize = 64;

/// Follows the stores of each thread's present transaction.
pub struct Distances {
    threads: Vec<Written>,
}

impl Distances {
    /// Makes the counters of `threads` threads.
    pub fn new(threads: u32) -> Self {
        Self { threads: (0..threads).map(|_| Written::new()).collect() }
    }

    /// Bytes of the different words that a transaction stored to so far.
    pub fn stored_bytes(&self, tx: Tx) -> u64 {
        let written = &self.threads[tx.thread as usize];
        if written.tx == Some(tx.number) { written.words as u64 * WORD_BYTES } else { 0 }
    }

    /// Counts the next store of a transaction. A thread has one transaction at a time.
    pub fn store(&mut self, tx: Tx, addr: Addr, counters: &mut Counters) {
        let written = &mut self.threads[tx.thread as usize];
        if written.tx != Some(tx.number) {
            written.begin(tx.number);
        }
        match written.store(addr) {
            None => {
                counters.words_written += 1;
                counters.write_distance_first += 1;
            }
            Some(Before { distance, only }) => {
                counters.words_written_again += u64::from(only);
                *bucket(counters, distance) += 1;
            }
        }
    }
}

/// The counter of a distance: powers of two, as they double in Fig. 3 up to 31.
fn bucket(c: &mut Counters, distance: u64) -> &mut u64 {
    match distance {
        0 => &mut c.write_distance_0,
        1 => &mut c.write_distance_1,
        2..=3 => &mut c.write_distance_2_3,
        4..=7 => &mut c.write_distance_4_7,
        8..=15 => &mut c.write_distance_8_15,
        16..=31 => &mut c.write_distance_16_31,
        32.. => &mut c.write_distance_over_31,
    }
}

/// The store before to the same word.
struct Before {
    /// Stores between.
    distance: u64,
    /// There was only one store to the word so far.
    only: bool,
}

/// The words that one thread's present transaction has stored to: an open-addressing table whose
/// slots of earlier transactions count as empty, so that beginning a transaction costs nothing.
struct Written {
    tx: Option<u64>,
    /// Number of the present transaction among those followed, from 1.
    generation: u64,
    /// Stores of the present transaction.
    stores: u64,
    /// Words of the present transaction: at most half as many as there are slots.
    words: usize,
    /// A power of two of them.
    slots: Vec<Slot>,
}

/// A word and the last store to it.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// The transaction that it is of.
    generation: u64,
    addr: Addr,
    /// Number of the last store to it.
    last: u64,
    /// True if that was not the first.
    again: bool,
}

impl Written {
    fn new() -> Self {
        Self { tx: None, generation: 0, stores: 0, words: 0, slots: vec![Slot::default(); SLOTS] }
    }

    fn begin(&mut self, number: u64) {
        self.tx = Some(number);
        self.generation += 1;
        (self.stores, self.words) = (0, 0);
    }

    /// Takes the next store, and says where the one before to the same word was.
    fn store(&mut self, addr: Addr) -> Option<Before> {
        let number = self.stores;
        self.stores += 1;
        let index = self.find(addr);
        let slot = &mut self.slots[index];
        if slot.generation == self.generation {
            let before = Before { distance: number - slot.last - 1, only: !slot.again };
            (slot.last, slot.again) = (number, true);
            return Some(before);
        }
        *slot = Slot { generation: self.generation, addr, last: number, again: false };
        self.words += 1;
        if self.words * 2 > self.slots.len() {
            self.grow();
        }
        None
    }

    /// The slot of a word, or the empty one where it belongs.
    fn find(&self, addr: Addr) -> usize {
        let mask = self.slots.len() - 1;
        let hash = (addr.0 / WORD_BYTES).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut index = (hash >> 32) as usize & mask;
        while self.slots[index].generation == self.generation && self.slots[index].addr != addr {
            index = (index + 1) & mask;
        }
        index
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = vec![Slot::default(); 2 * self.slots.len()];
        let slots = std::mem::replace(&mut self.slots, doubled);
        for slot in slots.into_iter().filter(|slot| slot.generation == self.generation) {
            let index = self.find(slot.addr);
            self.slots[index] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::stats::CounterSet;
    use proptest::prelude::*;

    fn stored(distances: &mut Distances, c: &mut Counters, (thread, number): (u32, u64), at: u64) {
        distances.store(Tx { thread, number }, Addr(at * WORD_BYTES), c);
    }

    #[test]
    fn the_number_of_stores_between_decides() {
        for (between, counted) in [
            (0, "write_distance_0"),
            (1, "write_distance_1"),
            (2, "write_distance_2_3"),
            (3, "write_distance_2_3"),
            (4, "write_distance_4_7"),
            (7, "write_distance_4_7"),
            (8, "write_distance_8_15"),
            (15, "write_distance_8_15"),
            (16, "write_distance_16_31"),
            (31, "write_distance_16_31"),
            (32, "write_distance_over_31"),
            (1000, "write_distance_over_31"),
        ] {
            let (mut distances, mut c) = (Distances::new(1), Counters::default());
            for at in (0..=between).chain([0]) {
                stored(&mut distances, &mut c, (0, 7), at);
            }
            let expected = |name: &str| match name {
                "write_distance_first" | "words_written" => between + 1,
                name => u64::from(name == counted || name == "words_written_again"),
            };
            for (declared, value) in Counters::DECLARATIONS.iter().zip(c.values()) {
                assert_eq!(value, expected(declared.name), "{} of {between}", declared.name);
            }
        }
    }

    /// Counts the words of one transaction, the slow way.
    fn count(words: &[u64], c: &mut Counters) {
        for (number, word) in words.iter().enumerate() {
            match words[..number].iter().rposition(|w| w == word) {
                None => {
                    c.write_distance_first += 1;
                    c.words_written += 1;
                    let times = words.iter().filter(|w| *w == word).count();
                    c.words_written_again += u64::from(times > 1);
                }
                Some(last) => *bucket(c, (number - last - 1) as u64) += 1,
            }
        }
    }

    proptest! {
        #[test]
        fn any_stores_of_any_threads_are_counted(
            transactions in prop::collection::vec((0..3u32, prop::collection::vec(0..150u64, 0..400)), 0..20),
            first in prop_oneof![Just(0), Just(u64::MAX - 30)],
        ) {
            let mut distances = Distances::new(3);
            let (mut found, mut expected) = (Counters::default(), Counters::default());
            let mut numbers = [first; 3];
            for (thread, words) in transactions {
                let number = numbers[thread as usize];
                numbers[thread as usize] += 1;
                for &word in &words {
                    stored(&mut distances, &mut found, (thread, number), word << (word % 40));
                }
                let words: Vec<u64> = words.iter().map(|word| word << (word % 40)).collect();
                count(&words, &mut expected);
            }
            prop_assert_eq!(found, expected);
        }
    }
}
