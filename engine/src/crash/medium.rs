//! What a power failure leaves, and what is written to it afterwards.

use std::collections::BTreeMap;

use crate::memory::{Addr, Image, LineAddr, LineData, WORD_BYTES, WordMask};

/// The PM after a power failure: the cells, untouched, under the words that were saved or recovered
/// since. Reads and writes are counted.
pub struct Medium<'a> {
    cells: &'a Image,
    written: BTreeMap<Addr, u64>,
    words_read: u64,
    words_written: u64,
}

impl<'a> Medium<'a> {
    /// The cells as they are.
    pub fn new(cells: &'a Image) -> Self {
        Self { cells, written: BTreeMap::new(), words_read: 0, words_written: 0 }
    }

    /// The word at an aligned address.
    pub fn load(&mut self, addr: Addr) -> u64 {
        self.words_read += 1;
        self.peek(addr)
    }

    /// The same, uncounted: for judges.
    pub fn peek(&self, addr: Addr) -> u64 {
        self.written.get(&addr).copied().unwrap_or_else(|| self.cells.load(addr))
    }

    /// Writes the word at an aligned address: the atomic unit.
    pub fn store(&mut self, addr: Addr, value: u64) {
        debug_assert!(addr.is_word_aligned(), "unaligned store at {addr}");
        self.words_written += 1;
        self.written.insert(addr, value);
    }

    /// Lays the words of a mask over a line.
    pub fn store_line(&mut self, line: LineAddr, mask: WordMask, data: &LineData) {
        for (i, &word) in data.iter().enumerate() {
            if mask >> i & 1 != 0 {
                self.store(line.word(i), word);
            }
        }
    }

    /// Reads bytes at any alignment.
    pub fn read_bytes(&mut self, addr: Addr, out: &mut [u8]) {
        let mut word = (Addr(u64::MAX), [0; 8]);
        for (i, byte) in out.iter_mut().enumerate() {
            let at = addr.0 + i as u64;
            let aligned = Addr(at / WORD_BYTES * WORD_BYTES);
            if word.0 != aligned {
                word = (aligned, self.load(aligned).to_le_bytes());
            }
            *byte = word.1[(at % WORD_BYTES) as usize];
        }
    }

    /// Writes bytes at any alignment; the words they touch are written whole.
    pub fn write_bytes(&mut self, addr: Addr, bytes: &[u8]) {
        let end = addr.0 + bytes.len() as u64;
        let mut at = addr.0;
        while at < end {
            let aligned = Addr(at / WORD_BYTES * WORD_BYTES);
            let mut word = self.peek(aligned).to_le_bytes();
            while at < end && at < aligned.0 + WORD_BYTES {
                word[(at - aligned.0) as usize] = bytes[(at - addr.0) as usize];
                at += 1;
            }
            self.store(aligned, u64::from_le_bytes(word));
        }
    }

    /// Words read so far.
    pub fn words_read(&self) -> u64 {
        self.words_read
    }

    /// Words written so far.
    pub fn words_written(&self) -> u64 {
        self.words_written
    }

    /// The cells below.
    pub fn cells(&self) -> &'a Image {
        self.cells
    }

    /// Every word written since the failure, in address order.
    pub fn written(&self) -> impl Iterator<Item = (Addr, u64)> + '_ {
        self.written.iter().map(|(&addr, &value)| (addr, value))
    }

    /// Gives up the view and keeps what was written.
    pub fn into_written(self) -> BTreeMap<Addr, u64> {
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_at_any_alignment_and_the_cells_stay_as_they_were() {
        let mut cells = Image::new();
        cells.store(Addr(8), u64::MAX);
        let mut medium = Medium::new(&cells);
        medium.write_bytes(Addr(13), &[1, 2, 3, 4, 5]);
        let mut back = [0; 7];
        medium.read_bytes(Addr(12), &mut back);
        assert_eq!(back, [0xff, 1, 2, 3, 4, 5, 0]);
        assert_eq!(medium.cells().load(Addr(8)), u64::MAX);
        assert_eq!(medium.words_written(), 2);
        assert_eq!(medium.words_read(), 2);
        assert_eq!(medium.written().count(), 2);
    }
}
