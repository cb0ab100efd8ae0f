//! A sparse byte image of a physical address range, zero where it was never written.

use std::ops::Range;

use super::{Addr, LINE_BYTES, LineAddr, LineData, WORD_BYTES, WORDS_PER_LINE, spread};

/// Host memory is taken in chunks of this size (as a power of two) on the first write: large enough to come zeroed
/// from the operating system, small enough that sparse images stay so.
const CHUNK_BITS: u32 = 18;

/// The same of a small image, which may be made and copied thousands of times a second.
const SMALL_CHUNK_BITS: u32 = 12;

/// Images of so many bytes are small.
const SMALL_BYTES: u64 = 64 << 20;

/// Bytes that a comparison looks at in one step: chunks of any size are multiples of it.
const COMPARED_BYTES: u64 = 1 << 10;

/// Bytes of a physical address range, held as words.
#[derive(Clone)]
pub struct Image {
    chunks: Vec<Option<Box<[u64]>>>,
    /// The size of a chunk, as a power of two.
    chunk_bits: u32,
    /// The last word of a chunk.
    last_word: u64,
}

impl Default for Image {
    fn default() -> Image {
        Image::of_chunks(CHUNK_BITS)
    }
}

/// A chunk, if it has been written, with its number.
type Numbered = (usize, Option<Box<[u64]>>);

/// Parts of an image that threads may write to at a time.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    chunk_bits: u32,
    count: usize,
}

impl Parts {
    /// Which of them an address lies in.
    #[inline]
    pub fn of(self, addr: Addr) -> usize {
        (addr.0 >> self.chunk_bits) as usize % self.count
    }
}

impl Image {
    /// An all-zero image. It grows with the addresses that are written.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, for addresses below so many bytes; those above are possible, too.
    pub fn of_bytes(bytes: u64) -> Self {
        Self::of_chunks(if bytes <= SMALL_BYTES { SMALL_CHUNK_BITS } else { CHUNK_BITS })
    }

    fn of_chunks(chunk_bits: u32) -> Self {
        let last_word = (1 << chunk_bits) / WORD_BYTES - 1;
        Image { chunks: Vec::new(), chunk_bits, last_word }
    }

    #[inline]
    fn chunk_bytes(&self) -> u64 {
        1 << self.chunk_bits
    }

    #[inline]
    fn locate(&self, addr: Addr) -> (usize, usize) {
        let chunk = (addr.0 >> self.chunk_bits) as usize;
        let word = (addr.0 / WORD_BYTES) & self.last_word;
        (chunk, word as usize)
    }

    /// An all-zero chunk.
    fn chunk(chunk_bits: u32) -> Box<[u64]> {
        vec![0; (1 << chunk_bits) / WORD_BYTES as usize].into_boxed_slice()
    }

    /// So many bytes from an address on, within a chunk, if that has been written.
    fn words(&self, at: Addr, bytes: u64) -> Option<&[u64]> {
        let (chunk, first) = self.locate(at);
        let words = self.chunks.get(chunk)?.as_ref()?;
        Some(&words[first..first + (bytes / WORD_BYTES) as usize])
    }

    /// The word at a word-aligned address.
    #[inline]
    pub fn load(&self, addr: Addr) -> u64 {
        assert!(addr.is_word_aligned(), "unaligned load at {addr}");
        let (chunk, word) = self.locate(addr);
        match self.chunks.get(chunk) {
            Some(Some(words)) => words[word],
            _ => 0,
        }
    }

    /// Replaces the word at a word-aligned address and returns what was there.
    #[inline]
    pub fn store(&mut self, addr: Addr, value: u64) -> u64 {
        assert!(addr.is_word_aligned(), "unaligned store at {addr}");
        let (chunk, word) = self.locate(addr);
        match self.chunks.get_mut(chunk) {
            Some(Some(words)) => std::mem::replace(&mut words[word], value),
            _ => self.first_store(chunk, word, value),
        }
    }

    /// Stores a word of a chunk that has not been written.
    #[cold]
    fn first_store(&mut self, chunk: usize, word: usize, value: u64) -> u64 {
        std::mem::replace(&mut self.chunk_mut(chunk)[word], value)
    }

    /// Parts of the image, for [`Image::store_parallel`].
    pub fn parts(&self, count: usize) -> Parts {
        Parts { chunk_bits: self.chunk_bits, count }
    }

    /// Stores words, each batch on a thread of its own, and returns what was there. Batch `i` has the words of
    /// part `i` ([`Image::parts`]), in the order of their addresses.
    pub fn store_parallel(&mut self, batches: &[Vec<(Addr, u64)>]) -> Vec<Vec<u64>> {
        let last = batches.iter().filter_map(|b| b.last()).map(|&(addr, _)| self.locate(addr).0);
        let needed = last.max().map_or(0, |chunk| chunk + 1);
        if needed > self.chunks.len() {
            self.chunks.resize_with(needed, || None);
        }
        let shape = Image::of_chunks(self.chunk_bits);
        // Each thread gets the chunks that it writes to, and gives them back.
        let parts: Vec<Vec<Numbered>> = batches
            .iter()
            .map(|batch| {
                let of_a_chunk = batch.chunk_by(|a, b| shape.locate(a.0).0 == shape.locate(b.0).0);
                let numbers = of_a_chunk.map(|words| shape.locate(words[0].0).0);
                numbers.map(|number| (number, self.chunks[number].take())).collect()
            })
            .collect();
        let store = |batch: &[(Addr, u64)], mut part: Vec<Numbered>| {
            let mut chunks = part.iter_mut();
            let (mut number, mut words): (usize, &mut [u64]) = (usize::MAX, &mut []);
            let mut old = Vec::with_capacity(batch.len());
            for &(addr, value) in batch {
                let (chunk, word) = shape.locate(addr);
                if chunk != number {
                    let (next, slot) = chunks.next().expect("a batch has a part for each chunk");
                    words = slot.get_or_insert_with(|| Image::chunk(shape.chunk_bits));
                    number = *next;
                }
                old.push(std::mem::replace(&mut words[word], value));
            }
            (old, part)
        };
        let stored: Vec<(Vec<u64>, Vec<Numbered>)> = std::thread::scope(|scope| {
            let store = &store;
            let threads: Vec<_> = batches
                .iter()
                .zip(parts)
                .map(|(batch, part)| scope.spawn(move || store(batch, part)))
                .collect();
            let joined = threads.into_iter().map(|t| t.join().expect("storing does not fail"));
            joined.collect()
        });
        let put_back = |(old, part): (Vec<u64>, Vec<Numbered>)| {
            part.into_iter().for_each(|(number, chunk)| self.chunks[number] = chunk);
            old
        };
        stored.into_iter().map(put_back).collect()
    }

    /// So many words from an aligned address on, none of them behind the line.
    #[inline]
    pub fn load_words<const N: usize>(&self, addr: Addr) -> [u64; N] {
        assert!(addr.has_words_in_line(N), "no {N} words of a line at {addr}");
        let (chunk, word) = self.locate(addr);
        match self.chunks.get(chunk) {
            Some(Some(words)) => *words[word..].first_chunk().expect("chunks consist of lines"),
            _ => [0; N],
        }
    }

    /// So many words from an aligned address on, if they lie in a part of the image that has been written.
    #[inline]
    pub fn written_words(&self, addr: Addr, words: usize) -> Option<&[u64]> {
        assert!(addr.is_word_aligned(), "unaligned load at {addr}");
        let (chunk, first) = self.locate(addr);
        self.chunks.get(chunk)?.as_ref()?.get(first..first + words)
    }

    /// The eight words of a line.
    #[inline]
    pub fn load_line(&self, line: LineAddr) -> LineData {
        self.load_words(line.addr())
    }

    /// Replaces the eight words of a line.
    #[inline]
    pub fn store_line(&mut self, line: LineAddr, data: &LineData) {
        let (chunk, word) = self.locate(line.addr());
        self.chunk_mut(chunk)[word..word + WORDS_PER_LINE].copy_from_slice(data);
    }

    /// Asks the host to bring a line near, ahead of its use.
    #[inline]
    pub fn prefetch(&self, line: LineAddr) {
        #[cfg(target_arch = "x86_64")]
        {
            let (chunk, word) = self.locate(line.addr());
            if let Some(Some(words)) = self.chunks.get(chunk) {
                // SAFETY: `word` lies inside the chunk, and a prefetch has no architectural effect.
                #[allow(unsafe_code)]
                unsafe {
                    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                    _mm_prefetch(words.as_ptr().add(word).cast::<i8>(), _MM_HINT_T0);
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = line;
    }

    #[inline]
    fn chunk_mut(&mut self, chunk: usize) -> &mut [u64] {
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let chunk_bits = self.chunk_bits;
        self.chunks[chunk].get_or_insert_with(|| Image::chunk(chunk_bits))
    }

    /// Reads bytes at any alignment.
    pub fn read_bytes(&self, addr: Addr, out: &mut [u8]) {
        for (i, byte) in out.iter_mut().enumerate() {
            let at = addr.0 + i as u64;
            let word = self.load(Addr(at / WORD_BYTES * WORD_BYTES));
            *byte = word.to_le_bytes()[(at % WORD_BYTES) as usize];
        }
    }

    /// Writes bytes at any alignment, little endian within a word.
    pub fn write_bytes(&mut self, addr: Addr, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            let at = addr.0 + i as u64;
            let word_addr = Addr(at / WORD_BYTES * WORD_BYTES);
            let mut word = self.load(word_addr).to_le_bytes();
            word[(at % WORD_BYTES) as usize] = *byte;
            self.store(word_addr, u64::from_le_bytes(word));
        }
    }

    /// Digest of the bytes in `[start, end)`: equal for equal content whatever the order of the
    /// writes, and updatable word by word (the sum of [`word_digest`] over all words).
    pub fn digest(&self, start: Addr, end: Addr) -> u64 {
        let mut sum = 0u64;
        for (index, chunk) in self.chunks.iter().enumerate() {
            let Some(words) = chunk else { continue };
            let base = index as u64 * self.chunk_bytes();
            if base + self.chunk_bytes() <= start.0 || base >= end.0 {
                continue;
            }
            let range = self.words_of_chunk(base, start, end);
            for (i, &word) in (range.start..).zip(&words[range]) {
                if word != 0 {
                    let at = base + i as u64 * WORD_BYTES;
                    sum = sum.wrapping_add(word_digest(Addr(at), word));
                }
            }
        }
        sum
    }

    /// First word in `[start, end)` in which two images differ: `(address, ours, theirs)`.
    pub fn first_difference(
        &self,
        other: &Image,
        start: Addr,
        end: Addr,
    ) -> Option<(Addr, u64, u64)> {
        let written = |image: &Image| image.chunks.len() as u64 * image.chunk_bytes();
        let last = end.0.min(written(self).max(written(other)));
        let least = 1 << self.chunk_bits.min(other.chunk_bits);
        let mut at = start.0;
        while at < last {
            // In steps, so that walking many differences of a chunk does not compare all of it each time.
            let step_end = ((at / COMPARED_BYTES + 1) * COMPARED_BYTES).min(last);
            let bytes = step_end - at;
            let equal = match (self.words(Addr(at), bytes), other.words(Addr(at), bytes)) {
                (Some(a), Some(b)) => a == b,
                (Some(one), None) | (None, Some(one)) => one.iter().all(|&w| w == 0),
                (None, None) => {
                    at = (at / least + 1) * least;
                    continue;
                }
            };
            if !equal {
                let differs = |at: &u64| self.load(Addr(*at)) != other.load(Addr(*at));
                let at = (at..step_end).step_by(WORD_BYTES as usize).find(differs)?;
                return Some((Addr(at), self.load(Addr(at)), other.load(Addr(at))));
            }
            at = step_end;
        }
        None
    }

    /// Every word in `[start, end)` in which two images differ, in order: `(address, ours, theirs)`.
    pub fn differences<'a>(
        &'a self,
        other: &'a Image,
        start: Addr,
        end: Addr,
    ) -> impl Iterator<Item = (Addr, u64, u64)> + 'a {
        let mut from = start;
        std::iter::from_fn(move || {
            let found = self.first_difference(other, from, end)?;
            from = found.0.plus(WORD_BYTES);
            Some(found)
        })
    }

    /// Every word that is not zero, in the order of addresses.
    pub fn nonzero_words(&self) -> impl Iterator<Item = (Addr, u64)> + '_ {
        self.chunks.iter().enumerate().filter_map(|(i, chunk)| Some((i, chunk.as_ref()?))).flat_map(
            move |(index, words)| {
                let base = index as u64 * self.chunk_bytes();
                let at = move |i: usize| Addr(base + i as u64 * WORD_BYTES);
                let nonzero = words.iter().enumerate().filter(|&(_, &word)| word != 0);
                nonzero.map(move |(i, &word)| (at(i), word))
            },
        )
    }

    /// The same of those in `[start, end)`.
    pub fn nonzero_words_in(
        &self,
        start: Addr,
        end: Addr,
    ) -> impl Iterator<Item = (Addr, u64)> + '_ {
        let chunks = self.chunks.iter().enumerate();
        chunks.filter_map(|(i, chunk)| Some((i, chunk.as_ref()?))).flat_map(
            move |(index, words)| {
                let base = index as u64 * self.chunk_bytes();
                let range = self.words_of_chunk(base, start, end);
                let first = Addr(base + range.start as u64 * WORD_BYTES);
                let words = (0..).zip(&words[range]).filter(|&(_, &word)| word != 0);
                words.map(move |(i, &word)| (first.plus(i * WORD_BYTES), word))
            },
        )
    }

    /// Which words of the chunk that begins there lie in `[start, end)`.
    fn words_of_chunk(&self, base: u64, start: Addr, end: Addr) -> Range<usize> {
        let place = |addr: Addr| {
            let inside = addr.0.clamp(base, base + self.chunk_bytes()) - base;
            inside.div_ceil(WORD_BYTES) as usize
        };
        place(start)..place(end).max(place(start))
    }

    /// Number of lines that hold anything but zero.
    pub fn nonzero_lines(&self) -> u64 {
        let lines =
            self.chunks.iter().flatten().flat_map(|words| words.chunks_exact(WORDS_PER_LINE));
        lines.filter(|line| line.iter().any(|&word| word != 0)).count() as u64
    }

    /// Bytes of host memory taken so far.
    pub fn host_bytes(&self) -> u64 {
        self.chunks.iter().flatten().count() as u64 * self.chunk_bytes()
    }
}

/// What one word contributes to [`Image::digest`]; a zero word contributes nothing.
#[inline]
pub fn word_digest(addr: Addr, word: u64) -> u64 {
    if word == 0 { 0 } else { spread(word, addr.0) }
}

const _: () = assert!(COMPARED_BYTES.is_multiple_of(LINE_BYTES));
const _: () = assert!((1u64 << SMALL_CHUNK_BITS).is_multiple_of(COMPARED_BYTES));

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK_BYTES: u64 = 1 << CHUNK_BITS;

    #[test]
    fn images_of_any_size_of_chunks_compare_word_by_word() {
        let (mut small, mut large) = (Image::of_bytes(1 << 20), Image::new());
        let end = Addr(8 << 20);
        for at in [8, 4096, 4096 * 3 + 16, CHUNK_BYTES, CHUNK_BYTES * 3 + 8, 5 << 20] {
            small.store(Addr(at), at + 1);
            assert_eq!(small.first_difference(&large, Addr(0), end), Some((Addr(at), at + 1, 0)));
            assert_eq!(large.first_difference(&small, Addr(0), end), Some((Addr(at), 0, at + 1)));
            large.store(Addr(at), at + 1);
            assert_eq!(small.first_difference(&large, Addr(0), end), None);
        }
        assert_eq!(small.digest(Addr(0), end), large.digest(Addr(0), end));
        assert!(small.nonzero_words().eq(large.nonzero_words()));
        assert!(small.host_bytes() < large.host_bytes());
    }

    #[test]
    fn what_was_never_written_is_zero() {
        let mut image = Image::new();
        assert_eq!(image.load(Addr(1 << 40)), 0);
        assert_eq!(image.store(Addr(64), 7), 0);
        assert_eq!(image.store(Addr(64), 9), 7);
        assert_eq!(image.load_line(LineAddr(1)), [9, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn bytes_and_words_agree_at_any_alignment() {
        let mut image = Image::new();
        let bytes: Vec<u8> = (1..=26).collect();
        image.write_bytes(Addr(61), &bytes);
        let mut back = [0; 26];
        image.read_bytes(Addr(61), &mut back);
        assert_eq!(back[..], bytes[..]);
        assert_eq!(image.load(Addr(64)).to_le_bytes()[0], 4);
    }

    #[test]
    fn the_digest_is_the_sum_of_its_words_and_sees_position() {
        let (mut a, mut b) = (Image::new(), Image::new());
        a.store(Addr(8), 5);
        a.store(Addr(CHUNK_BYTES * 3), 6);
        b.store(Addr(CHUNK_BYTES * 3), 6);
        b.store(Addr(8), 1);
        b.store(Addr(8), 5);
        let end = Addr(CHUNK_BYTES * 8);
        assert_eq!(a.digest(Addr(0), end), b.digest(Addr(0), end));
        assert_eq!(
            a.digest(Addr(0), end),
            word_digest(Addr(8), 5).wrapping_add(word_digest(Addr(CHUNK_BYTES * 3), 6))
        );
        b.store(Addr(8), 0);
        b.store(Addr(16), 5);
        assert_ne!(a.digest(Addr(0), end), b.digest(Addr(0), end));
        assert_eq!(a.first_difference(&b, Addr(0), end), Some((Addr(8), 5, 0)));
        assert_eq!(a.first_difference(&b, Addr(CHUNK_BYTES), end), None);
    }
}
