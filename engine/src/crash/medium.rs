//! What a power failure leaves, and what is written to it afterwards.

use std::collections::BTreeMap;

use crate::memory::{Addr, Image, LineAddr, LineData, WORD_BYTES, WordMask};

/// One word that was written: what it held before and holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Which word.
    pub addr: Addr,
    /// What it held.
    pub old: u64,
    /// What was written.
    pub new: u64,
}

/// The PM after a power failure. Every write is remembered and can be taken back, so that one image
/// serves any number of failures, at a cost proportional to what is written. Reads and writes are counted.
#[derive(Default)]
pub struct Medium {
    image: Image,
    journal: Vec<Written>,
    /// Words that may still be written; what comes after is lost.
    power: Option<u64>,
    words_read: u64,
    words_written: u64,
    /// One past the last byte of PM; 0: there is no end.
    end: Addr,
    /// The first address used that is no word of PM.
    astray: Option<Addr>,
    /// What is to be said of the writes, each before the write of this number; if it is wanted.
    notes: Option<Vec<(usize, String)>>,
}

impl Medium {
    /// The bytes that survived.
    pub fn new(image: Image) -> Self {
        Self { image, ..Self::default() }
    }

    /// The PM ends here: what is used beyond is noted ([`Medium::astray`]) and has no effect.
    pub fn set_end(&mut self, end: Addr) {
        self.end = end;
    }

    /// The first address used that is no word of PM, if any: recovery has taken noise for a record.
    pub fn astray(&self) -> Option<Addr> {
        self.astray
    }

    #[inline]
    fn is_word(&mut self, addr: Addr) -> bool {
        let is_word = addr.is_word_aligned() && (self.end.0 == 0 || addr < self.end);
        if !is_word {
            self.astray.get_or_insert(addr);
        }
        is_word
    }

    /// The word at an aligned address.
    #[inline]
    pub fn load(&mut self, addr: Addr) -> u64 {
        self.words_read += 1;
        if self.is_word(addr) { self.image.load(addr) } else { 0 }
    }

    /// The same, uncounted: for judges.
    #[inline]
    pub fn peek(&self, addr: Addr) -> u64 {
        self.image.load(addr)
    }

    /// Writes the word at an aligned address: the atomic unit.
    #[inline]
    pub fn store(&mut self, addr: Addr, new: u64) {
        if !self.is_word(addr) {
            return;
        }
        if let Some(left) = &mut self.power {
            if *left == 0 {
                return;
            }
            *left -= 1;
        }
        self.words_written += 1;
        let old = self.image.store(addr, new);
        self.journal.push(Written { addr, old, new });
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
        let (mut at, mut rest) = (addr.0, out);
        while !rest.is_empty() {
            let offset = (at % WORD_BYTES) as usize;
            let word = self.load(Addr(at - offset as u64)).to_le_bytes();
            let n = rest.len().min(WORD_BYTES as usize - offset);
            rest[..n].copy_from_slice(&word[offset..offset + n]);
            rest = &mut rest[n..];
            at += n as u64;
        }
    }

    /// Writes bytes at any alignment; the words they touch are written whole.
    pub fn write_bytes(&mut self, addr: Addr, bytes: &[u8]) {
        let (mut at, mut rest) = (addr.0, bytes);
        while !rest.is_empty() {
            let offset = (at % WORD_BYTES) as usize;
            let aligned = Addr(at - offset as u64);
            let n = rest.len().min(WORD_BYTES as usize - offset);
            let mut word = self.peek(aligned).to_le_bytes();
            word[offset..offset + n].copy_from_slice(&rest[..n]);
            self.store(aligned, u64::from_le_bytes(word));
            rest = &rest[n..];
            at += n as u64;
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

    /// The bytes as they are now.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Everything written so far, in order.
    pub fn written(&self) -> &[Written] {
        &self.journal
    }

    /// Every word written since the first `skip` writes, with its newest value.
    pub fn newest(&self, skip: usize) -> BTreeMap<Addr, u64> {
        self.journal[skip..].iter().map(|w| (w.addr, w.new)).collect()
    }

    /// Takes back the newest writes until `keep` are left.
    pub fn rewind(&mut self, keep: usize) {
        for w in self.journal.drain(keep..).rev() {
            self.image.store(w.addr, w.old);
        }
    }

    /// Power lasts for so many more writes; the others are lost. `None`: for ever.
    pub fn set_power(&mut self, writes: Option<u64>) {
        self.power = writes;
    }

    /// Keeps what designs have to say, for [`Medium::notes`].
    pub fn keep_notes(&mut self) {
        self.notes = Some(Vec::new());
    }

    /// Explains what is about to be read or written, for timelines.
    #[inline]
    pub fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push((self.journal.len(), text()));
        }
    }

    /// What designs had to say, each with the number of writes before it.
    pub fn notes(&self) -> &[(usize, String)] {
        self.notes.as_deref().unwrap_or_default()
    }

    /// Gives up the view and keeps what was written.
    pub fn into_image(self) -> Image {
        self.image
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_at_any_alignment() {
        let mut cells = Image::new();
        cells.store(Addr(8), u64::MAX);
        let mut medium = Medium::new(cells);
        medium.write_bytes(Addr(13), &[1, 2, 3, 4, 5]);
        let mut back = [0; 7];
        medium.read_bytes(Addr(12), &mut back);
        assert_eq!(back, [0xff, 1, 2, 3, 4, 5, 0]);
        assert_eq!(medium.words_written(), 2);
        assert_eq!(medium.words_read(), 2);
        assert_eq!(medium.written().len(), 2);
    }

    #[test]
    fn writes_are_taken_back_newest_first_and_stop_when_power_does() {
        let mut medium = Medium::default();
        medium.set_end(Addr(64));
        for value in 1..=3 {
            medium.store(Addr(8), value);
        }
        medium.rewind(2);
        assert_eq!(medium.peek(Addr(8)), 2);
        medium.set_power(Some(1));
        medium.store(Addr(16), 7);
        medium.store(Addr(24), 7);
        assert_eq!([16, 24].map(|a| medium.peek(Addr(a))), [7, 0]);
        assert_eq!(medium.astray(), None);
        medium.store(Addr(64), 1);
        medium.store(Addr(9), 1);
        assert_eq!((medium.load(Addr(9)), medium.astray()), (0, Some(Addr(64))));
        medium.rewind(0);
        assert_eq!([8, 16].map(|a| medium.peek(Addr(a))), [0, 0]);
    }
}
