//! The eviction buffer (§III-C): lines that garbage collection has sent home, for misses that come meanwhile.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE, WordMask};
use graven_machine::media::overlay;

/// Bytes of a line in it: the line and its home address.
pub const EVICTED_LINE_BYTES: u64 = 72;

#[derive(Clone, Copy, Debug)]
struct Held {
    words: WordMask,
    data: LineData,
    /// Writes of it that are not durable at home yet.
    underway: u32,
}

/// A buffer of lines. The oldest whose words are durable at home makes room for a new one.
#[derive(Debug)]
pub struct EvictionBuffer {
    capacity: usize,
    lines: FxHashMap<LineAddr, Held>,
    /// In the order in which they came.
    order: VecDeque<LineAddr>,
}

impl EvictionBuffer {
    /// Makes an empty buffer of `capacity` lines.
    pub fn new(capacity: usize) -> EvictionBuffer {
        EvictionBuffer { capacity, lines: FxHashMap::default(), order: VecDeque::new() }
    }

    /// Lines in it.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// The words of a line that it holds.
    pub fn get(&self, line: LineAddr) -> Option<(WordMask, LineData)> {
        self.lines.get(&line).map(|held| (held.words, held.data))
    }

    /// Takes words of a line that are on their way home. Returns whether there was room.
    pub fn insert(&mut self, line: LineAddr, words: WordMask, data: &LineData) -> bool {
        if let Some(held) = self.lines.get_mut(&line) {
            overlay(&mut held.data, data, words);
            held.words |= words;
            held.underway += 1;
            return true;
        }
        if self.lines.len() >= self.capacity {
            let settled = |line: &LineAddr| self.lines[line].underway == 0;
            let Some(oldest) = self.order.iter().position(settled) else { return false };
            let line = self.order.remove(oldest).expect("it was just found");
            self.lines.remove(&line);
        }
        let mut held = Held { words, data: [0; WORDS_PER_LINE], underway: 1 };
        overlay(&mut held.data, data, words);
        self.lines.insert(line, held);
        self.order.push_back(line);
        true
    }

    /// A write of the line is durable at home.
    pub fn at_home(&mut self, line: LineAddr) {
        self.lines.get_mut(&line).expect("it stays until it is home").underway -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_leaves_for_another_when_it_is_home() {
        let mut buffer = EvictionBuffer::new(2);
        let data = |n| [n; WORDS_PER_LINE];
        assert!(buffer.insert(LineAddr(1), 1, &data(5)) && buffer.insert(LineAddr(2), 1, &data(6)));
        assert!(!buffer.insert(LineAddr(3), 1, &data(7)), "both are on their way");
        buffer.at_home(LineAddr(2));
        assert!(buffer.insert(LineAddr(3), 1, &data(7)));
        assert_eq!((buffer.get(LineAddr(2)), buffer.len()), (None, 2));
    }

    #[test]
    fn newer_words_join_what_it_holds() {
        let mut buffer = EvictionBuffer::new(1);
        buffer.insert(LineAddr(1), 0b11, &[5; WORDS_PER_LINE]);
        buffer.insert(LineAddr(1), 0b110, &[6; WORDS_PER_LINE]);
        assert_eq!(buffer.get(LineAddr(1)), Some((0b111, [5, 6, 6, 0, 0, 0, 0, 0])));
        buffer.at_home(LineAddr(1));
        assert!(!buffer.insert(LineAddr(2), 1, &[0; WORDS_PER_LINE]), "one is still on its way");
    }
}
