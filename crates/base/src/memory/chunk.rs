//! Chunks of an image: equal parts of its addresses, each with host memory of its own, or with memory that it shares with
//! the same chunk of other images until one of them writes to it.
//!
//! Small chunks are on the heap. Large ones are mapped from the operating system: zero where they were not written, and of
//! host memory only the pages that were. Where a large chunk is about to be written from end to end, the operating system
//! is asked for huge pages, of 2 MB on x86-64: one page fault in place of 512, which took longer than all else in populating
//! a structure (benches/README.md has the figures). A host that has none, or does not give them, gives ordinary pages.
//!
//! A host that has no memory left ends the computation ([`crate::host`]).

use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::MmapMut;

use crate::host;

/// From this size on chunks are mapped.
const MAPPED_BYTES: usize = 1 << 20;

/// The host memory of a chunk: kept here, read and written by the chunk.
enum HostMemory {
    Heap(Vec<u64>),
    Mapped(MmapMut),
}

impl HostMemory {
    /// So many words that are zero. If they are `dense`, they are about to be written from end to end.
    fn zeroed(words: usize, dense: bool) -> HostMemory {
        let bytes = words * size_of::<u64>();
        if bytes < MAPPED_BYTES {
            return HostMemory::Heap(vec![0; words]);
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
        HostMemory::Mapped(map)
    }

    /// Returns the place of its words.
    fn words(&mut self) -> NonNull<[u64]> {
        let (first, words) = match self {
            HostMemory::Heap(words) => (words.as_mut_ptr(), words.len()),
            // A mapping begins on a page.
            HostMemory::Mapped(map) => (map.as_mut_ptr().cast(), map.len() / size_of::<u64>()),
        };
        let first = NonNull::new(first).expect("no memory is at address 0");
        assert!(first.is_aligned(), "words are aligned");
        NonNull::slice_from_raw_parts(first, words)
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
    /// No other chunk has this memory.
    owned: bool,
    memory: Option<Arc<HostMemory>>,
}

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
        Chunk { words, owned: false, memory: None }
    }
}

impl Chunk {
    fn of(mut memory: HostMemory) -> Chunk {
        Chunk { words: memory.words(), owned: true, memory: Some(Arc::new(memory)) }
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

    /// Words of the chunk, to be written: it has memory of its own afterwards.
    #[inline]
    pub(super) fn words_mut(&mut self, demand: Demand) -> &mut [u64] {
        if !self.owned {
            self.become_owner(demand);
        }
        // SAFETY: `memory` keeps the words for as long as the chunk exists. No other chunk has them: those that share
        // memory are not `owned`, neither of them, and a chunk becomes an owner by a copy, or as the last that has it.
        #[allow(unsafe_code)]
        unsafe {
            self.words.as_mut()
        }
    }

    #[cold]
    #[inline(never)]
    fn become_owner(&mut self, demand: Demand) {
        let Some(memory) = &mut self.memory else {
            *self = Chunk::of(HostMemory::zeroed(demand.words, demand.dense));
            return;
        };
        if Arc::get_mut(memory).is_some() {
            // The last one that has it need not copy it.
            self.owned = true;
        } else {
            *self = self.copied();
        }
    }

    fn copied(&self) -> Chunk {
        let words = self.words();
        if size_of_val(words) < MAPPED_BYTES {
            return Chunk::of(HostMemory::Heap(words.to_vec()));
        }
        let demand = Demand { words: words.len(), dense: true };
        let mut copy = Chunk::of(HostMemory::zeroed(demand.words, demand.dense));
        copy.words_mut(demand).copy_from_slice(words);
        copy
    }

    /// A chunk with the same memory, which is copied when one of the two is written to.
    pub(super) fn share(&mut self) -> Chunk {
        self.owned = false;
        self.clone()
    }
}

impl Clone for Chunk {
    fn clone(&self) -> Chunk {
        if self.owned {
            return self.copied();
        }
        Chunk { words: self.words, owned: false, memory: self.memory.clone() }
    }
}

#[cfg(test)]
mod tests {
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
            assert!(*chunk.words_mut(demand) == vec![0; demand.words]);
            chunk.words_mut(demand)[demand.words - 1] = 7;
            let copy = chunk.clone();
            chunk.words_mut(demand)[0] = 9;
            assert_eq!(copy.words()[0], 0);
            assert!(copy.words()[1..] == chunk.words()[1..]);
        }
    }

    #[test]
    fn the_last_that_has_a_chunk_writes_to_it_without_a_copy() {
        for demand in demands() {
            let mut one = Chunk::default();
            one.words_mut(demand)[3] = 1;
            let (mut other, third) = (one.share(), one.share());
            let at = one.words().as_ptr();
            assert!(other.words().as_ptr() == at && third.words().as_ptr() == at);
            other.words_mut(demand)[3] = 2;
            assert_ne!(other.words().as_ptr(), at);
            drop(one);
            let mut last = third;
            assert_eq!(last.words_mut(demand)[3], 1);
            assert_eq!(last.words().as_ptr(), at);
            // An owner that shares no longer writes in place.
            let kept = last.share();
            last.words_mut(demand)[3] = 3;
            assert_eq!((kept.words()[3], last.words()[3], other.words()[3]), (1, 3, 2));
        }
    }

    #[test]
    fn threads_may_have_the_same_chunk() {
        let demand = Demand { words: 512, dense: false };
        let mut one = Chunk::default();
        one.words_mut(demand)[0] = 1;
        std::thread::scope(|scope| {
            for thread in 2..6 {
                let mut other = one.share();
                scope.spawn(move || {
                    let old = std::mem::replace(&mut other.words_mut(demand)[0], thread);
                    assert_eq!((old, other.words()[0]), (1, thread));
                });
            }
        });
        assert_eq!(one.words()[0], 1);
    }
}
