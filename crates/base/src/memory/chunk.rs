//! Chunks of an image: equal parts of its addresses, each with host memory of its own, or with memory that it shares with
//! the same chunk of other images until one of them writes to it.
//!
//! Small chunks are on the heap. Large ones are mapped from the operating system: zero where they were not written, and of
//! host memory only the pages that were. Where a large chunk is about to be written from end to end, the operating system
//! is asked for huge pages, of 2 MB on x86-64: one page fault in place of 512, which took longer than all else in populating
//! a structure (benches/README.md has the figures). A host that has none, or does not give them, gives ordinary pages.
//!
//! Any other large chunk is *young* at first: its memory lists the pages that were written. Heaps that grow, and logs, soon
//! write all pages of a chunk; a chunk moves to huge pages as soon as the faults of its pages have cost as much as these. Young
//! chunks store a zero to each page before anything reads it: a page that is read first costs two faults, and in the second
//! the operating system interrupts the processors of the program's other threads.
//!
//! A host that has no memory left ends the computation ([`crate::host`]).

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use memmap2::MmapMut;

use crate::bits::ones;
use crate::host;

/// From this size on chunks are mapped.
const MAPPED_BYTES: usize = 1 << 20;

/// Words of a page of the host; of larger ones parts are counted.
const PAGE_WORDS: usize = 4096 / size_of::<u64>();

/// Number of written pages at which a young chunk is given huge pages: as many faults took as long as clearing a huge page.
const PAGES_OF_YOUTH: usize = 64;

/// The host memory of a chunk: kept here, read and written by the chunk.
struct HostMemory {
    place: Place,
    /// Pages that were written, if they are few and the chunk is large.
    young: Option<Pages>,
}

enum Place {
    Heap(Vec<u64>),
    Mapped(MmapMut),
}

impl HostMemory {
    /// So many words that are zero. If they are `dense`, they are about to be written from end to end.
    fn zeroed(words: usize, dense: bool) -> HostMemory {
        let bytes = words * size_of::<u64>();
        if bytes < MAPPED_BYTES {
            return HostMemory::old(Place::Heap(vec![0; words]));
        }
        let map = MmapMut::map_anon(bytes);
        let map = map.unwrap_or_else(|_| host::out_of_memory(bytes as u64));
        #[cfg(target_os = "linux")]
        if dense {
            // Without huge pages it works as well, only slower.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = dense;
        let young = (!dense).then(Pages::default);
        HostMemory { place: Place::Mapped(map), young }
    }

    /// Memory that does not list its written pages.
    fn old(place: Place) -> HostMemory {
        HostMemory { place, young: None }
    }

    /// Returns the place of its words.
    fn words(&mut self) -> NonNull<[u64]> {
        let (first, words) = match &mut self.place {
            Place::Heap(words) => (words.as_mut_ptr(), words.len()),
            // A mapping begins on a page.
            Place::Mapped(map) => (map.as_mut_ptr().cast(), map.len() / size_of::<u64>()),
        };
        let first = NonNull::new(first).expect("no memory is at address 0");
        assert!(first.is_aligned(), "words are aligned");
        NonNull::slice_from_raw_parts(first, words)
    }
}

/// Pages of a young chunk that were written, a bit for each. (Atomic, since the memory may be that of several chunks; only a
/// chunk that has it alone adds to them.)
#[derive(Default)]
struct Pages([AtomicU64; (1 << 21) / 4096 / 64]);

impl Pages {
    #[inline]
    fn has(&self, page: usize) -> bool {
        self.0[page / 64].load(Relaxed) >> (page % 64) & 1 != 0
    }

    fn add(&self, page: usize) {
        self.0[page / 64].fetch_or(1 << (page % 64), Relaxed);
    }

    fn numbers(&self) -> impl Iterator<Item = usize> {
        let words = (0..).zip(&self.0);
        words.flat_map(|(at, word)| ones(word.load(Relaxed)).map(move |bit| at * 64 + bit as usize))
    }

    /// Copies these pages from one chunk to another, where all others are zero.
    fn copy(&self, from: &[u64], to: &mut [u64]) {
        for page in self.numbers() {
            let range = page * PAGE_WORDS..(page + 1) * PAGE_WORDS;
            to[range.clone()].copy_from_slice(&from[range]);
        }
    }
}

/// A chunk of an image: a slice of words, empty if the chunk was never written.
///
/// It has the address of its words besides the memory that they are in, so that reading and writing need not ask what kind
/// of memory that is and whether other chunks have it. With an enumeration of the kinds and `match`, and without `unsafe`,
/// populating a B+ tree took 14 % more host instructions, and the crashes of Silo 9 % (`populate/btree` and `crash/silo` of
/// `benches/counts.toml`, against chunks that could not be shared).
pub(super) struct Chunk {
    /// Inside `memory`, all of it; empty, and dangling, if there is none.
    words: NonNull<[u64]>,
    /// No other chunk has this memory, and it is not young: it is written without a look.
    owned: bool,
    /// So is this page, if the chunk is young: no other chunk has its memory, and the page was written.
    known: u32,
    memory: Option<Arc<HostMemory>>,
}

/// A number that no page of a chunk has.
const NO_PAGE: u32 = u32::MAX;

// SAFETY: the words are memory that the chunk owns, or that it and others only read, as an `Arc<[u64]>` is.
#[allow(unsafe_code)]
unsafe impl Send for Chunk {}
// SAFETY: as above; they are written through `&mut` only.
#[allow(unsafe_code)]
unsafe impl Sync for Chunk {}

/// Memory that a chunk takes when it is first written to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// Number of words.
    pub(super) words: usize,
    /// True if it is about to be written from end to end.
    pub(super) dense: bool,
}

impl Default for Chunk {
    /// One that was never written.
    fn default() -> Chunk {
        let words = NonNull::slice_from_raw_parts(NonNull::dangling(), 0);
        Chunk { words, owned: false, known: NO_PAGE, memory: None }
    }
}

impl Chunk {
    fn of(mut memory: HostMemory) -> Chunk {
        let (words, owned) = (memory.words(), memory.young.is_none());
        Chunk { words, owned, known: NO_PAGE, memory: Some(Arc::new(memory)) }
    }

    /// Returns true if it was ever written.
    pub(super) fn is_present(&self) -> bool {
        self.memory.is_some()
    }

    /// Words of the chunk; none if it was never written.
    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        // SAFETY: `memory` keeps the words for as long as the chunk exists, or they are an empty slice. Whoever writes to
        // them has this chunk as `&mut`, and no other chunk has them then (`owned`).
        #[allow(unsafe_code)]
        unsafe {
            self.words.as_ref()
        }
    }

    /// Words of the chunk, for a write to `word` or to others of its line: the chunk has memory of its own afterwards.
    #[inline]
    pub(super) fn words_mut(&mut self, word: usize, demand: Demand) -> &mut [u64] {
        if !self.owned && self.known != (word / PAGE_WORDS) as u32 {
            self.prepare(word, demand);
        }
        self.own_words()
    }

    /// Words of the chunk, for writes to any of them: the chunk has memory of its own afterwards.
    pub(super) fn all_words_mut(&mut self, demand: Demand) -> &mut [u64] {
        if !self.owned {
            self.become_owner(demand);
            let memory = self.memory.as_mut().and_then(Arc::get_mut);
            memory.expect("no other chunk has this memory").young = None;
            self.owned = true;
        }
        self.own_words()
    }

    /// Words that no other chunk has.
    #[inline]
    fn own_words(&mut self) -> &mut [u64] {
        // SAFETY: `memory` keeps the words for as long as the chunk exists. No other chunk has them: the callers have made
        // this one an owner, by a copy, or as the last that has them, and those that share memory are not `owned`.
        #[allow(unsafe_code)]
        unsafe {
            self.words.as_mut()
        }
    }

    #[cold]
    #[inline(never)]
    fn prepare(&mut self, word: usize, demand: Demand) {
        self.become_owner(demand);
        let Some(pages) = self.pages() else {
            self.owned = true;
            return;
        };
        let page = word / PAGE_WORDS;
        if !pages.has(page) {
            pages.add(page);
            if pages.numbers().count() >= PAGES_OF_YOUTH {
                *self = self.copied_to(HostMemory::zeroed(demand.words, true));
                return;
            }
            // The page is zero as it is: this store has the host bring it once, for writing.
            self.own_words()[page * PAGE_WORDS] = 0;
        }
        self.known = page as u32;
    }

    /// Sees to it that no other chunk has its memory.
    #[inline]
    fn become_owner(&mut self, demand: Demand) {
        match &self.memory {
            None => *self = Chunk::of(HostMemory::zeroed(demand.words, demand.dense)),
            // The last one that has it need not copy it.
            Some(memory) if Arc::strong_count(memory) == 1 => {}
            Some(_) => *self = self.copied(),
        }
    }

    fn copied(&self) -> Chunk {
        let words = self.words();
        if size_of_val(words) < MAPPED_BYTES {
            return Chunk::of(HostMemory::old(Place::Heap(words.to_vec())));
        }
        let young = self.pages();
        let copy = self.copied_to(HostMemory::zeroed(words.len(), young.is_none()));
        if let (Some(written), Some(pages)) = (young, copy.pages()) {
            written.numbers().for_each(|page| pages.add(page));
        }
        copy
    }

    /// Pages that were written, if it is young.
    fn pages(&self) -> Option<&Pages> {
        self.memory.as_ref()?.young.as_ref()
    }

    /// A copy in memory that is zero.
    fn copied_to(&self, memory: HostMemory) -> Chunk {
        let mut copy = Chunk::of(memory);
        match self.pages() {
            Some(pages) => pages.copy(self.words(), copy.own_words()),
            None => copy.own_words().copy_from_slice(self.words()),
        }
        copy
    }

    /// A chunk with the same memory, which is copied when one of the two is written to.
    pub(super) fn share(&mut self) -> Chunk {
        (self.owned, self.known) = (false, NO_PAGE);
        self.clone()
    }
}

impl Clone for Chunk {
    fn clone(&self) -> Chunk {
        if self.owned || self.known != NO_PAGE {
            return self.copied();
        }
        // Whoever writes to it looks first whether another has it.
        Chunk { words: self.words, owned: false, known: NO_PAGE, memory: self.memory.clone() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZES: [usize; 3] = [512, MAPPED_BYTES / 8, MAPPED_BYTES / 4];

    fn demands() -> impl Iterator<Item = Demand> {
        let of = |words| [false, true].map(|dense| Demand { words, dense });
        SIZES.into_iter().flat_map(of)
    }

    #[test]
    fn a_chunk_of_any_size_begins_zero_and_is_copied_whole() {
        for demand in demands() {
            let mut chunk = Chunk::default();
            assert!(!chunk.is_present() && chunk.words().is_empty());
            assert!(!chunk.clone().is_present() && !chunk.share().is_present());
            assert!(*chunk.all_words_mut(demand) == vec![0; demand.words]);
            chunk.words_mut(demand.words - 1, demand)[demand.words - 1] = 7;
            let copy = chunk.clone();
            chunk.words_mut(0, demand)[0] = 9;
            assert_eq!(copy.words()[0], 0);
            assert!(copy.words()[1..] == chunk.words()[1..]);
        }
    }

    #[test]
    fn the_last_that_has_a_chunk_writes_to_it_without_a_copy() {
        for demand in demands() {
            let mut one = Chunk::default();
            one.words_mut(3, demand)[3] = 1;
            let (mut other, third) = (one.share(), one.share());
            let at = one.words().as_ptr();
            assert!(other.words().as_ptr() == at && third.words().as_ptr() == at);
            other.words_mut(3, demand)[3] = 2;
            assert_ne!(other.words().as_ptr(), at);
            drop(one);
            let mut last = third;
            assert_eq!(last.words_mut(3, demand)[3], 1);
            assert_eq!(last.words().as_ptr(), at);
            // An owner that shares no longer writes in place.
            let kept = last.share();
            last.words_mut(3, demand)[3] = 3;
            assert_eq!((kept.words()[3], last.words()[3], other.words()[3]), (1, 3, 2));
        }
    }

    #[test]
    fn threads_may_have_the_same_chunk() {
        let demand = Demand { words: 512, dense: false };
        let mut one = Chunk::default();
        one.words_mut(0, demand)[0] = 1;
        std::thread::scope(|scope| {
            for thread in 2..6 {
                let mut other = one.share();
                scope.spawn(move || {
                    let old = std::mem::replace(&mut other.words_mut(0, demand)[0], thread);
                    assert_eq!((old, other.words()[0]), (1, thread));
                });
            }
        });
        assert_eq!(one.words()[0], 1);
    }

    #[test]
    fn a_young_chunk_is_given_huge_pages_once_it_is_not_sparse() {
        let demand = Demand { words: SIZES[2], dense: false };
        let mut chunk = Chunk::default();
        let words = |page| [0, 7, PAGE_WORDS - 1].map(|at| page * PAGE_WORDS + at);
        let write = |chunk: &mut Chunk, page| {
            for word in words(page) {
                chunk.words_mut(word, demand)[word] = word as u64 + 1;
            }
        };
        (1..PAGES_OF_YOUTH).for_each(|page| write(&mut chunk, page));
        let at = chunk.words().as_ptr();
        write(&mut chunk, 1);
        assert!(!chunk.owned && chunk.words().as_ptr() == at, "it is young");
        let copy = chunk.clone();
        write(&mut chunk, PAGES_OF_YOUTH);
        assert!(chunk.owned && chunk.words().as_ptr() != at, "it is young no more");
        for (chunk, pages) in [(&copy, PAGES_OF_YOUTH), (&chunk, PAGES_OF_YOUTH + 1)] {
            let mut expected = vec![0; demand.words];
            (1..pages).flat_map(words).for_each(|word| expected[word] = word as u64 + 1);
            assert!(chunk.words() == expected);
        }
    }

    proptest! {
        #[test]
        fn young_chunks_and_their_copies_hold_what_was_written(
            writes in prop::collection::vec((0..3usize, 0..100usize, 0..PAGE_WORDS, 0..4u8), 1..300),
        ) {
            let demand = Demand { words: SIZES[2], dense: false };
            let mut chunks: [Chunk; 3] = Default::default();
            let mut models = vec![std::collections::BTreeMap::new(); 3];
            for (number, (which, page, at, what)) in (1..).zip(writes) {
                let other = (which + 1) % 3;
                match what {
                    0 if page < 3 => {
                        chunks[other] = chunks[which].share();
                        models[other] = models[which].clone();
                    }
                    0 if page < 6 => {
                        chunks[other] = chunks[which].clone();
                        models[other] = models[which].clone();
                    }
                    0 if page < 7 => {
                        chunks[which].all_words_mut(demand)[at] = number;
                        models[which].insert(at, number);
                    }
                    _ => {
                        let word = page * PAGE_WORDS + at;
                        chunks[which].words_mut(word, demand)[word] = number;
                        models[which].insert(word, number);
                    }
                }
            }
            for (chunk, model) in chunks.iter().zip(models) {
                let words = chunk.words().iter().enumerate().filter(|(_, word)| **word != 0);
                prop_assert!(words.map(|(at, word)| (at, *word)).eq(model));
            }
        }
    }
}
