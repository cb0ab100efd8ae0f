//! A sparse byte image of a physical address range, zero where it was never written.
//!
//! Images that begin alike have the same host memory until one of them writes to a chunk of it ([`Image::share`]).

use std::ops::Range;

use super::chunk::{Chunk, Demand};
use super::{Addr, LINE_BYTES, LineAddr, LineData, WORD_BYTES, WORDS_PER_LINE, spread};
use crate::host;

/// Host memory is taken in chunks of this size (as a power of two) on the first write: that of a huge page. Of a chunk
/// that is not dense only the pages that are written take any.
const CHUNK_BITS: u32 = 21;

/// The same of a small image, which may be made and copied thousands of times a second.
const SMALL_CHUNK_BITS: u32 = 12;

/// Largest size of a small image.
const SMALL_BYTES: u64 = 64 << 20;

/// Bytes that a comparison looks at in one step: chunks of any size are multiples of it.
const COMPARED_BYTES: u64 = 1 << 10;

/// Bytes of a physical address range, held as words.
#[derive(Clone)]
pub struct Image {
    chunks: Vec<Chunk>,
    /// The size of a chunk, as a power of two.
    chunk_bits: u32,
    /// The last word of a chunk.
    last_word: u64,
    /// True if chunks that are written are about to be so from end to end.
    dense: bool,
}

impl Default for Image {
    fn default() -> Image {
        Image::of_chunks(CHUNK_BITS)
    }
}

/// A chunk with its number.
type Numbered = (usize, Chunk);

/// Parts of an image that threads may write to at a time.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    chunk_bits: u32,
    count: usize,
}

impl Parts {
    /// Returns the number of the chunk in which an address lies.
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

    /// Makes an image for addresses below `bytes`; higher ones are possible, too.
    pub fn of_bytes(bytes: u64) -> Self {
        Self::of_chunks(chunk_bits(bytes))
    }

    /// Host memory that an image for addresses below `bytes` takes at a time, in bytes.
    pub fn chunk_bytes_of(bytes: u64) -> u64 {
        1 << chunk_bits(bytes)
    }

    /// Host memory that an image takes to list its chunks, for addresses below `bytes`, in bytes.
    pub fn list_bytes_of(bytes: u64) -> u64 {
        // A list that grows is copied into one of twice the size.
        3 * bytes.div_ceil(Image::chunk_bytes_of(bytes)) * size_of::<Chunk>() as u64
    }

    fn of_chunks(chunk_bits: u32) -> Self {
        let last_word = (1 << chunk_bits) / WORD_BYTES - 1;
        Image { chunks: Vec::new(), chunk_bits, last_word, dense: false }
    }

    /// The same image, whose chunks are about to be written from end to end if they are written at all: it is being
    /// populated. It is until it is shared.
    pub fn to_be_populated(self) -> Self {
        Image { dense: true, ..self }
    }

    /// An image that holds the same. Host memory is copied, chunk by chunk, when one of the two writes to it.
    pub fn share(&mut self) -> Image {
        self.dense = false;
        let chunks = self.chunks.iter_mut().map(Chunk::share).collect();
        Image { chunks, ..*self }
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

    #[inline]
    fn demand(&self) -> Demand {
        Demand { words: self.last_word as usize + 1, dense: self.dense }
    }

    /// The words of a chunk; none if it was never written.
    #[inline]
    fn chunk(&self, chunk: usize) -> &[u64] {
        self.chunks.get(chunk).map_or(&[], Chunk::words)
    }

    /// All chunks that have been written, with the address at which they begin.
    fn written(&self) -> impl Iterator<Item = (u64, &[u64])> {
        let bytes = self.chunk_bytes();
        let chunks = (0..).map(move |index| index * bytes).zip(&self.chunks);
        chunks.filter(|(_, chunk)| chunk.is_present()).map(|(base, chunk)| (base, chunk.words()))
    }

    /// Returns true if host memory was taken for the part of the image in which an address lies. If not, all of it is zero.
    #[inline]
    pub fn is_present(&self, addr: Addr) -> bool {
        self.chunks.get(self.locate(addr).0).is_some_and(Chunk::is_present)
    }

    /// Their words that lie in `[start, end)`, with the address at which those of each chunk begin.
    fn written_in(&self, start: Addr, end: Addr) -> impl Iterator<Item = (Addr, &[u64])> {
        let bytes = self.chunk_bytes();
        let first = start.0 / bytes;
        let last = self.chunks.len().min(end.0.div_ceil(bytes) as usize);
        let chunks = self.chunks.get(first as usize..last).unwrap_or_default();
        let bases = (first..).map(move |index| index * bytes);
        bases.zip(chunks).filter(|(_, chunk)| chunk.is_present()).map(move |(base, chunk)| {
            let range = self.words_of_chunk(base, start, end);
            (Addr(base + range.start as u64 * WORD_BYTES), &chunk.words()[range])
        })
    }

    /// The word at a word-aligned address.
    #[inline]
    pub fn load(&self, addr: Addr) -> u64 {
        assert!(addr.is_word_aligned(), "unaligned load at {addr}");
        let (chunk, word) = self.locate(addr);
        self.chunk(chunk).get(word).copied().unwrap_or(0)
    }

    /// Replaces the word at a word-aligned address and returns the former one.
    #[inline]
    pub fn store(&mut self, addr: Addr, value: u64) -> u64 {
        assert!(addr.is_word_aligned(), "unaligned store at {addr}");
        let (chunk, word) = self.locate(addr);
        std::mem::replace(&mut self.chunk_mut(chunk, word)[word], value)
    }

    /// Parts of the image, for [`Image::store_parallel`].
    pub fn parts(&self, count: usize) -> Parts {
        Parts { chunk_bits: self.chunk_bits, count }
    }

    /// Stores words, each batch on a thread of its own, and returns the former ones. Batch `i` has
    /// the words of part `i` ([`Image::parts`]), in the order of their addresses.
    pub fn store_parallel(&mut self, batches: &[Vec<(Addr, u64)>]) -> Vec<Vec<u64>> {
        let last = batches.iter().filter_map(|b| b.last()).map(|&(addr, _)| self.locate(addr).0);
        let needed = last.max().map_or(0, |chunk| chunk + 1);
        if needed > self.chunks.len() {
            self.chunks.resize_with(needed, Chunk::default);
        }
        let (shape, demand) = (Image::of_chunks(self.chunk_bits), self.demand());
        let place = |word: &(Addr, u64)| shape.locate(word.0);
        let in_one_chunk = |a: &(Addr, u64), b: &(Addr, u64)| place(a).0 == place(b).0;
        // Each thread gets the chunks that it writes to, and gives them back.
        let mut take = |number: usize, part: usize| {
            assert_eq!(number % batches.len(), part, "a batch has the words of its part");
            (number, std::mem::take(&mut self.chunks[number]))
        };
        let parts: Vec<Vec<Numbered>> = (0..)
            .zip(batches)
            .map(|(part, batch)| {
                assert!(batch.is_sorted_by_key(|&(addr, _)| addr), "a batch is in order");
                let numbers = batch.chunk_by(in_one_chunk).map(|words| place(&words[0]).0);
                numbers.map(|number| take(number, part)).collect()
            })
            .collect();
        let store = |batch: &[(Addr, u64)], mut part: Vec<Numbered>| {
            let mut old = Vec::with_capacity(batch.len());
            for (new, (_, chunk)) in batch.chunk_by(in_one_chunk).zip(&mut part) {
                let words = chunk.all_words_mut(demand);
                old.extend(
                    new.iter().map(|new| std::mem::replace(&mut words[place(new).1], new.1)),
                );
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
            threads.into_iter().map(host::joined).collect()
        });
        let put_back = |(old, part): (Vec<u64>, Vec<Numbered>)| {
            part.into_iter().for_each(|(number, chunk)| self.chunks[number] = chunk);
            old
        };
        stored.into_iter().map(put_back).collect()
    }

    /// Loads `N` words from an aligned address on, none of them behind the line.
    #[inline]
    pub fn load_words<const N: usize>(&self, addr: Addr) -> [u64; N] {
        assert!(addr.has_words_in_line(N), "no {N} words of a line at {addr}");
        let (chunk, word) = self.locate(addr);
        let words = self.chunk(chunk).get(word..).and_then(|words| words.first_chunk());
        words.copied().unwrap_or([0; N])
    }

    /// Counts the words, `stride` bytes apart from an aligned address on, that are zero before the
    /// first that is not; of `most`.
    pub fn zeros(&self, first: Addr, stride: u64, most: u64) -> u64 {
        assert!(stride > 0 && stride.is_multiple_of(WORD_BYTES), "words are not {stride} B apart");
        let mut zeros = 0;
        while zeros < most {
            let (chunk, word) = self.locate(first.plus(zeros * stride));
            let left = self.chunk_bytes() - word as u64 * WORD_BYTES;
            let here = left.div_ceil(stride).min(most - zeros);
            let words = self.chunk(chunk).get(word..).unwrap_or_default();
            let mut those =
                words.iter().step_by((stride / WORD_BYTES) as usize).take(here as usize);
            if let Some(before) = those.position(|&word| word != 0) {
                return zeros + before as u64;
            }
            zeros += here;
        }
        most
    }

    /// Returns `words` words from an aligned address on, if they lie in a part of the image that
    /// has been written.
    #[inline]
    pub fn written_words(&self, addr: Addr, words: usize) -> Option<&[u64]> {
        assert!(addr.is_word_aligned(), "unaligned load at {addr}");
        let (chunk, first) = self.locate(addr);
        self.chunk(chunk).get(first..first + words)
    }

    /// The eight words of a line.
    #[inline]
    pub fn load_line(&self, line: LineAddr) -> LineData {
        self.load_words(line.addr())
    }

    /// Replaces the eight words of a line.
    #[inline]
    pub fn store_line(&mut self, line: LineAddr, data: &LineData) {
        *self.line_mut(line) = *data;
    }

    /// The eight words of a line, to be changed; it takes host memory even if none is.
    #[inline]
    pub fn line_mut(&mut self, line: LineAddr) -> &mut LineData {
        let (chunk, word) = self.locate(line.addr());
        let words = self.chunk_mut(chunk, word)[word..].first_chunk_mut();
        words.expect("a chunk has whole lines")
    }

    /// The same where host memory was taken for the line.
    #[inline]
    pub fn written_line_mut(&mut self, line: LineAddr) -> Option<&mut LineData> {
        let (chunk, word) = self.locate(line.addr());
        let demand = self.demand();
        let chunk = self.chunks.get_mut(chunk).filter(|chunk| chunk.is_present())?;
        chunk.words_mut(word, demand)[word..].first_chunk_mut()
    }

    /// Asks the host to bring a line near, ahead of its use.
    #[inline]
    pub fn prefetch(&self, line: LineAddr) {
        let (chunk, word) = self.locate(line.addr());
        if let Some(first) = self.chunk(chunk).get(word) {
            host::prefetch(first);
        }
    }

    /// Words of a chunk, for a write to `word` or to others of its line.
    #[inline]
    fn chunk_mut(&mut self, chunk: usize, word: usize) -> &mut [u64] {
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, Chunk::default);
        }
        let demand = self.demand();
        self.chunks[chunk].words_mut(word, demand)
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
        let digests = self.nonzero_words_in(start, end).map(|(addr, word)| word_digest(addr, word));
        digests.fold(0, u64::wrapping_add)
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
            let words = ((step_end - at) / WORD_BYTES) as usize;
            let both = [self, other].map(|image| image.written_words(Addr(at), words));
            let equal = match both.into() {
                (Some(a), Some(b)) => std::ptr::eq(a, b) || a == b,
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
        self.nonzero_words_in(Addr(0), Addr(u64::MAX))
    }

    /// The same of those in `[start, end)`.
    pub fn nonzero_words_in(
        &self,
        start: Addr,
        end: Addr,
    ) -> impl Iterator<Item = (Addr, u64)> + '_ {
        self.written_in(start, end).flat_map(|(first, words)| {
            // Most are zero: eight are looked at together.
            let parts = (0..).zip(words.chunks(WORDS_PER_LINE));
            let parts = parts.filter(|(_, part)| part.iter().fold(0, |any, word| any | word) != 0);
            parts.flat_map(move |(number, part)| {
                let words = (number * WORDS_PER_LINE as u64..).zip(part);
                let words = words.filter(|&(_, &word)| word != 0);
                words.map(move |(i, &word)| (first.plus(i * WORD_BYTES), word))
            })
        })
    }

    /// Bits that are set in any of the lines `[start, end)`, word by word of a line.
    pub fn bits_in(&self, start: LineAddr, end: LineAddr) -> LineData {
        let mut bits = [0; WORDS_PER_LINE];
        for (_, words) in self.written_in(start.addr(), end.addr()) {
            for line in words.as_chunks().0 {
                let line: &LineData = line;
                bits.iter_mut().zip(line).for_each(|(all, word)| *all |= word);
            }
        }
        bits
    }

    /// Words at a place of the lines `[start, end)` that have any of these bits, in the order of addresses.
    pub fn marked_in(
        &self,
        (start, end): (LineAddr, LineAddr),
        place: usize,
        bits: u64,
    ) -> impl Iterator<Item = (Addr, u64)> + '_ {
        self.written_in(start.addr(), end.addr()).flat_map(move |(first, words)| {
            let lines: &[LineData] = words.as_chunks().0;
            let marked = (first.line().0..).zip(lines).filter(move |(_, l)| l[place] & bits != 0);
            marked.map(move |(line, words)| (LineAddr(line).word(place), words[place]))
        })
    }

    /// Words of the chunk that begins at `base` that lie in `[start, end)`.
    fn words_of_chunk(&self, base: u64, start: Addr, end: Addr) -> Range<usize> {
        let place = |addr: Addr| {
            let inside = addr.0.clamp(base, base + self.chunk_bytes()) - base;
            inside.div_ceil(WORD_BYTES) as usize
        };
        place(start)..place(end).max(place(start))
    }

    /// Number of lines that hold anything but zero.
    pub fn nonzero_lines(&self) -> u64 {
        let nonzero =
            |line: &&[u64; WORDS_PER_LINE]| line.iter().fold(0, |all, word| all | word) != 0;
        let lines = |words: &[u64]| words.as_chunks().0.iter().filter(nonzero).count() as u64;
        self.written().map(|(_, words)| lines(words)).sum()
    }

    /// Bytes of host memory taken so far, whether other images have it, too, or not.
    pub fn host_bytes(&self) -> u64 {
        self.written().count() as u64 * self.chunk_bytes()
    }
}

fn chunk_bits(bytes: u64) -> u32 {
    if bytes <= SMALL_BYTES { SMALL_CHUNK_BITS } else { CHUNK_BITS }
}

/// Contribution of one word to [`Image::digest`]; none of a zero word.
#[inline]
pub fn word_digest(addr: Addr, word: u64) -> u64 {
    if word == 0 { 0 } else { spread(word, addr.0) }
}

const _: () = assert!(COMPARED_BYTES.is_multiple_of(LINE_BYTES));
const _: () = assert!((1u64 << SMALL_CHUNK_BITS).is_multiple_of(COMPARED_BYTES));

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

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

    /// Steps of a test on one of several images.
    #[derive(Clone, Debug)]
    enum Step {
        Store(Addr, u64),
        StoreLine(LineAddr, LineData),
        StoreParallel(Vec<(Addr, u64)>),
        Share,
        Clone,
        Drop,
    }

    fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
        // Few chunks, of large images, too.
        let addr = || {
            (0..4u64, 0..6u64).prop_map(|(chunk, word)| Addr(chunk * CHUNK_BYTES + word * 8 + 4080))
        };
        let words = prop::collection::btree_map(addr(), any::<u64>(), 0..8);
        let step = prop_oneof![
            6 => (addr(), 0..3u64).prop_map(|(addr, value)| Step::Store(addr, value)),
            2 => (addr(), any::<LineData>()).prop_map(|(addr, data)| Step::StoreLine(addr.line(), data)),
            1 => words.prop_map(|words| Step::StoreParallel(words.into_iter().collect())),
            2 => Just(Step::Share),
            1 => Just(Step::Clone),
            1 => Just(Step::Drop),
        ];
        prop::collection::vec((0..8usize, step), 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn zeros_end_at_the_first_word_that_is_none(
            stores in prop::collection::vec((0..600_u64, 0..2_u64), 0..20),
            (small, far) in any::<(bool, bool)>(),
            (word, stride, most) in (0..600_u64, 1..40_u64, 0..100_u64),
        ) {
            // Around the end of a chunk.
            let base = if far { CHUNK_BYTES - 300 * WORD_BYTES } else { 0 };
            let mut image = if small { Image::of_bytes(1 << 20) } else { Image::new() };
            let at = |word: u64| Addr(base + word * WORD_BYTES);
            stores.iter().for_each(|&(word, value)| _ = image.store(at(word), value));
            let zero = |i: &u64| image.load(at(word + i * stride)) == 0;
            let expected = (0..most).take_while(zero).count() as u64;
            prop_assert_eq!(image.zeros(at(word), stride * WORD_BYTES, most), expected);
        }

        #[test]
        fn bits_of_lines_are_those_of_their_words(
            stores in prop::collection::vec((0..3 * CHUNK_BYTES / WORD_BYTES, any::<u64>()), 0..20),
            (first, last) in (0..3 * CHUNK_BYTES / LINE_BYTES, 0..3 * CHUNK_BYTES / LINE_BYTES),
        ) {
            let (mut image, mut expected) = (Image::new(), [0; WORDS_PER_LINE]);
            stores.iter().for_each(|&(word, value)| _ = image.store(Addr(word * WORD_BYTES), value));
            let (start, end) = (LineAddr(first.min(last)), LineAddr(first.max(last)));
            for (addr, value) in image.nonzero_words_in(start.addr(), end.addr()) {
                expected[addr.word_in_line()] |= value;
            }
            prop_assert_eq!(image.bits_in(start, end), expected);
        }

        #[test]
        fn images_that_share_memory_are_as_if_each_had_its_own(
            steps in steps(),
            small in any::<bool>(),
            populated in any::<bool>(),
        ) {
            let first = if small { Image::of_bytes(1 << 20) } else { Image::new() };
            let first = if populated { first.to_be_populated() } else { first };
            let mut images = vec![(first, BTreeMap::<Addr, u64>::new())];
            for (which, step) in steps {
                let which = which % images.len();
                let (image, model) = &mut images[which];
                match step {
                    Step::Store(addr, value) => {
                        let old = model.insert(addr, value).unwrap_or(0);
                        prop_assert_eq!(image.store(addr, value), old);
                    }
                    Step::StoreLine(line, data) => {
                        let held = image.load_line(line);
                        let written = image.written_line_mut(line).copied();
                        prop_assert_eq!(written.unwrap_or_default(), held);
                        image.store_line(line, &data);
                        model.extend((0..).zip(data).map(|(i, word)| (line.addr().plus(i * 8), word)));
                    }
                    Step::StoreParallel(words) => {
                        let parts = image.parts(2);
                        let mut batches = vec![Vec::new(); 2];
                        words.iter().for_each(|&(addr, word)| batches[parts.of(addr)].push((addr, word)));
                        let old = image.store_parallel(&batches);
                        for (&(addr, word), old) in batches.iter().flatten().zip(old.iter().flatten()) {
                            prop_assert_eq!(model.insert(addr, word).unwrap_or(0), *old);
                        }
                    }
                    Step::Share => {
                        let both = (image.share(), model.clone());
                        images.push(both);
                    }
                    Step::Clone => {
                        let both = (image.clone(), model.clone());
                        images.push(both);
                    }
                    Step::Drop if images.len() > 1 => _ = images.swap_remove(which),
                    Step::Drop => {}
                }
            }
            let end = Addr(5 * CHUNK_BYTES);
            let summed = |model: &BTreeMap<Addr, u64>, from: Addr| {
                let words = model.range(from..).map(|(&addr, &word)| word_digest(addr, word));
                words.fold(0, u64::wrapping_add)
            };
            for (image, model) in &images {
                let held = model.iter().map(|(&addr, &word)| (addr, word)).filter(|&(_, word)| word != 0);
                prop_assert!(image.nonzero_words().eq(held.clone()));
                let lines: BTreeSet<LineAddr> = held.clone().map(|(addr, _)| addr.line()).collect();
                prop_assert_eq!(image.nonzero_lines(), lines.len() as u64);
                let region = (LineAddr(0), LineAddr(CHUNK_BYTES * 5 / LINE_BYTES));
                let at_place = held.filter(|(addr, word)| addr.word_in_line() == 7 && word & 2 != 0);
                prop_assert!(image.marked_in(region, 7, 2).eq(at_place));
                prop_assert!(model.iter().all(|(&addr, &word)| image.load(addr) == word));
                for from in [Addr(0), Addr(4096 + 8), Addr(CHUNK_BYTES), Addr(2 * CHUNK_BYTES + 4088)] {
                    prop_assert_eq!(image.digest(from, end), summed(model, from));
                }
                let (other, others) = &images[0];
                let differing = image.differences(other, Addr(0), end).map(|(addr, ..)| addr);
                let all: BTreeSet<Addr> = model.keys().chain(others.keys()).copied().collect();
                let differs = |addr: &Addr| model.get(addr).unwrap_or(&0) != others.get(addr).unwrap_or(&0);
                prop_assert!(differing.eq(all.into_iter().filter(differs)));
            }
        }
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
