//! A persistent allocator: a bump pointer and one free list per size class, all in PM.
//!
//! Every block is a whole number of lines, as PM allocators hand them out so that two objects never
//! share a line. A block carries no header: its class is known to the structure that holds it, or
//! from the free list it is on. Allocation and release are ordinary stores of the running
//! transaction, so a failure takes them back together with the rest of it.
//!
//! Bytes of an arena (its header is one line of its own):
//!
//! | word of the header | content |
//! |---|---|
//! | 0 | bump: address of the first byte never handed out |
//! | 1 + c | address of the first free block of class c, or 0 |
//!
//! | word of a free block | content |
//! |---|---|
//! | 0 | address of the next free block of its class, or 0 |
//! | 1.. | whatever the last owner left |
//!
//! [`Census`] audits arenas against the structures that live in them: every line between an arena's
//! first block and its bump pointer belongs to exactly one block, reachable or free. Left out:
//! coalescing, returning memory, and more than [`CLASSES`] sizes per arena.

use super::element::Element;
use crate::costs;
use graven_base::memory::{Addr, Image, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::{BrokenInvariant, Checked};

/// Size classes of one arena, at most.
pub const CLASSES: usize = 3;

const BUMP: u64 = 0;
const FREE: u64 = 1;

/// Number of a size class within an arena.
pub type Class = usize;

/// Rounds up to whole lines: the size of the block that holds `words` words.
pub const fn block_bytes(words: u64) -> u64 {
    (words * WORD_BYTES).next_multiple_of(LINE_BYTES)
}

/// Place of one arena, and the sizes of its blocks. Its state is in PM.
#[derive(Clone, Copy, Debug)]
pub struct Arena {
    header: Addr,
    start: Addr,
    end: Addr,
    block_bytes: [u64; CLASSES],
}

impl Arena {
    /// Bytes of PM that the header takes.
    pub const HEADER_BYTES: u64 = LINE_BYTES;

    /// The arena that has its header at `header` and its blocks, of up to [`CLASSES`] sizes, in `[start, end)`; a
    /// class of 0 bytes is not used.
    pub fn new<const N: usize>(header: Addr, start: Addr, end: Addr, sizes: [u64; N]) -> Self {
        let mut block_bytes = [0; CLASSES];
        block_bytes[..N].copy_from_slice(&sizes);
        assert!(block_bytes.iter().all(|b| b.is_multiple_of(LINE_BYTES)), "blocks are whole lines");
        assert!(start.0.is_multiple_of(LINE_BYTES) && start <= end, "an arena starts on a line");
        Self { header, start, end, block_bytes }
    }

    /// Makes the arena empty.
    pub fn format<M: Memory>(&self, m: &mut M) {
        m.store(self.field(BUMP), self.start.0);
        for class in 0..CLASSES {
            m.store(self.field(FREE + class as u64), 0);
        }
    }

    fn field(&self, word: u64) -> Ptr {
        Ptr::known(self.header).word(word)
    }

    /// Bytes that have been handed out at least once.
    #[cfg(test)]
    pub fn used(&self, image: &Image) -> u64 {
        image.load(self.field(BUMP).addr) - self.start.0
    }

    /// Takes a block: the one freed last, or a new one. Its content is undefined.
    ///
    /// # Panics
    /// If the arena is full, which a workload's sizing rules out.
    pub fn allocate<M: Memory>(&self, m: &mut M, class: Class) -> Ptr {
        m.compute(costs::ALLOCATE);
        let list = self.field(FREE + class as u64);
        let free = m.load_ptr(list);
        if !free.is_null() {
            let next = m.load_ptr(free);
            m.store_ptr(list, next);
            return free;
        }
        let block = m.load_ptr(self.field(BUMP));
        let end = block.addr.plus(self.block_bytes[class]);
        assert!(end <= self.end, "the arena at {} was sized too small", self.header);
        m.store(self.field(BUMP), end.0);
        block
    }

    /// Gives a block of `class` back.
    pub fn free<M: Memory>(&self, m: &mut M, class: Class, block: Ptr) {
        m.compute(costs::FREE);
        let list = self.field(FREE + class as u64);
        let next = m.load_ptr(list);
        m.store_ptr(block, next);
        m.store_ptr(list, block);
    }
}

/// Requires that `holds`.
///
/// # Errors
/// The description `what`, if it does not.
pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// An audit of the structures in an image: the lines of each arena that have been accounted for.
pub struct Census<'a> {
    image: &'a Image,
    spans: Vec<Span>,
    structure: String,
}

/// One arena's handed-out lines, one bit each.
struct Span {
    arena: Arena,
    bump: Addr,
    seen: Vec<u64>,
}

impl Span {
    fn bit(&self, addr: u64) -> (usize, u64) {
        let line = (addr - self.arena.start.0) / LINE_BYTES;
        ((line / 64) as usize, 1 << (line % 64))
    }
}

impl<'a> Census<'a> {
    /// Starts the audit of `structure`, which lives in `arenas`, by walking their free lists.
    ///
    /// # Errors
    /// A bump pointer outside its arena; a free list that leaves the arena or meets itself.
    pub fn begin(structure: String, image: &'a Image, arenas: &[Arena]) -> Checked<Self> {
        let mut census = Census { image, spans: Vec::with_capacity(arenas.len()), structure };
        for arena in arenas {
            let bump = Addr(image.load(arena.field(BUMP).addr));
            let used = bump.0.wrapping_sub(arena.start.0);
            let is_line =
                (arena.start..=arena.end).contains(&bump) && used.is_multiple_of(LINE_BYTES);
            census.ensure(is_line, || {
                let Arena { header, start, end, .. } = arena;
                format!(
                    "bump pointer {bump} of the arena at {header} is not a line in {start}..{end}"
                )
            })?;
            let words = used.div_ceil(LINE_BYTES).div_ceil(64) as usize;
            census.spans.push(Span { arena: *arena, bump, seen: vec![0; words] });
        }
        for arena in arenas {
            for class in 0..CLASSES {
                let mut at = arena.field(FREE + class as u64).addr;
                loop {
                    let block = census.address(at);
                    if block.0 == 0 {
                        break;
                    }
                    census.claim(block, class, "free block")?;
                    at = block;
                }
            }
        }
        Ok(census)
    }

    /// Audits the structure of this name, which `walk` walks, and returns what that does.
    ///
    /// # Errors
    /// As [`Census::begin`], `walk` and [`Census::finish`].
    pub fn audit<T>(
        structure: String,
        image: &'a Image,
        arenas: &[Arena],
        walk: impl FnOnce(&mut Census<'a>) -> Checked<T>,
    ) -> Checked<T> {
        let mut census = Census::begin(structure, image, arenas)?;
        let found = walk(&mut census)?;
        census.finish()?;
        Ok(found)
    }

    /// Accounts for a block that was reached as `role`.
    ///
    /// # Errors
    /// It lies outside every arena's handed-out part, is misaligned, or was accounted for before
    /// (which also ends the walk of any cycle).
    pub fn claim(&mut self, block: Addr, class: Class, role: &str) -> Checked {
        let span = self.spans.iter_mut().find(|s| (s.arena.start..s.bump).contains(&block));
        let Some(span) = span else {
            return Err(self.broken(format!("{role} {block} lies outside every arena")));
        };
        let bytes = span.arena.block_bytes[class];
        if bytes == 0 || !block.0.is_multiple_of(LINE_BYTES) || span.bump.0 - block.0 < bytes {
            return Err(self.broken(format!("{role} {block} is no place for {bytes} B")));
        }
        for addr in (block.0..block.0 + bytes).step_by(LINE_BYTES as usize) {
            let (word, mask) = span.bit(addr);
            if span.seen[word] & mask != 0 {
                let what = format!("{role} {block} overlaps a block met before, at {}", Addr(addr));
                return Err(self.broken(what));
            }
            span.seen[word] |= mask;
        }
        Ok(())
    }

    /// Ends the audit: what was handed out must be accounted for.
    ///
    /// # Errors
    /// A line that is neither reachable nor free.
    pub fn finish(self) -> Checked {
        for span in &self.spans {
            let lines = (span.bump.0 - span.arena.start.0) / LINE_BYTES;
            for (index, &word) in span.seen.iter().enumerate() {
                let present = (lines - index as u64 * 64).min(64);
                let missing = !word & (u64::MAX >> (64 - present));
                self.ensure(missing == 0, || {
                    let line = index as u64 * 64 + u64::from(missing.trailing_zeros());
                    let at = span.arena.start.plus(line * LINE_BYTES);
                    format!("the block at {at} has leaked: neither reachable nor free")
                })?;
            }
        }
        Ok(())
    }

    /// The image under audit.
    pub fn image(&self) -> &'a Image {
        self.image
    }

    /// Loads a word.
    pub fn load(&self, at: Addr) -> u64 {
        self.image.load(at)
    }

    /// Loads a word that is an address.
    pub fn address(&self, at: Addr) -> Addr {
        Addr(self.image.load(at))
    }

    /// Accounts for the block of an element, which must be whole and that of `key`.
    ///
    /// # Errors
    /// As [`Census::claim`] and [`Element::check_of`].
    pub fn claim_element(
        &mut self,
        (at, class): (Addr, Class),
        element: Element,
        key: u64,
    ) -> Checked {
        self.claim(at, class, "element")?;
        element.check_of(self.image, at, key).map_err(|what| self.broken(what))
    }

    /// Checks that the element at `at` is whole and that of `key`; `holder` names what it is in.
    ///
    /// # Errors
    /// As [`Element::check`], and the key that it has instead.
    pub fn check_element(
        &self,
        element: Element,
        at: Addr,
        key: u64,
        holder: impl FnOnce() -> String,
    ) -> Checked {
        let found = element.check(self.image, at).map_err(|torn| self.broken(torn))?;
        self.ensure(found == key, || format!("{} holds the element of key {found}", holder()))
    }

    /// Requires that `holds`.
    ///
    /// # Errors
    /// The violation described by `what`, if it does not.
    pub fn ensure(&self, holds: bool, what: impl FnOnce() -> String) -> Checked {
        ensure(holds, what).map_err(|what| self.broken(what))
    }

    /// Requires that no two of these numbers, in ascending order, are equal.
    ///
    /// # Errors
    /// The violation that `what` describes for one that is there twice.
    pub fn no_twins(&self, sorted: &[u64], what: impl FnOnce(u64) -> String) -> Checked {
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twins) => Err(self.broken(what(twins[0]))),
            None => Ok(()),
        }
    }

    /// A violation of the structure under audit.
    pub fn broken(&self, what: String) -> BrokenInvariant {
        BrokenInvariant { structure: self.structure.clone(), what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_machine::program::Direct;
    use proptest::prelude::*;

    const HEADER: Addr = Addr(4096);
    const START: Addr = Addr(4160);

    fn arena() -> Arena {
        Arena::new(HEADER, START, Addr(1 << 20), [64, 256, 128])
    }

    fn audit(image: &Image, held: &[(Ptr, Class)]) -> Checked {
        let mut census = Census::begin("test".into(), image, &[arena()])?;
        for &(block, class) in held {
            census.claim(block.addr, class, "block")?;
        }
        census.finish()
    }

    proptest! {
        #[test]
        fn every_line_is_held_or_free(steps in prop::collection::vec((0..3u8, 0..1000usize), 0..200)) {
            let mut image = Image::new();
            let arena = arena();
            arena.format(&mut Direct::new(&mut image));
            let mut held: Vec<(Ptr, Class)> = Vec::new();
            for (kind, pick) in steps {
                let mut m = Direct::new(&mut image);
                if kind < 2 || held.is_empty() {
                    let class = pick % CLASSES;
                    let block = arena.allocate(&mut m, class);
                    m.store(block, u64::MAX);
                    held.push((block, class));
                } else {
                    let (block, class) = held.swap_remove(pick % held.len());
                    arena.free(&mut m, class, block);
                }
                prop_assert_eq!(audit(&image, &held), Ok(()));
            }
        }
    }

    fn three_blocks() -> (Image, Vec<(Ptr, Class)>) {
        let mut image = Image::new();
        let mut m = Direct::new(&mut image);
        arena().format(&mut m);
        let held = (0..3).map(|_| (arena().allocate(&mut m, 0), 0)).collect();
        (image, held)
    }

    #[test]
    fn a_leak_a_double_use_and_a_wild_pointer_are_seen() {
        let (image, mut held) = three_blocks();
        let text = |held: &[(Ptr, Class)]| audit(&image, held).unwrap_err().what;
        assert_eq!(text(&held[..2]), "the block at 0x10c0 has leaked: neither reachable nor free");
        held.push(held[1]);
        assert_eq!(text(&held), "block 0x1080 overlaps a block met before, at 0x1080");
        held[3].0 = Ptr::known(Addr(1 << 19));
        assert_eq!(text(&held), "block 0x80000 lies outside every arena");
        held[3].0 = Ptr::known(Addr(START.0 + 8));
        assert_eq!(text(&held), "block 0x1048 is no place for 64 B");
    }

    #[test]
    fn broken_metadata_is_seen() {
        let (mut image, mut held) = three_blocks();
        let mut m = Direct::new(&mut image);
        for (block, class) in held.drain(1..) {
            arena().free(&mut m, class, block);
        }
        assert_eq!(audit(&image, &held), Ok(()));
        // The last of the free list points at the first: a cycle.
        let (first, last) = (image.load(HEADER.plus(8)), Addr(START.0 + 64));
        image.store(last, first);
        assert!(audit(&image, &held).unwrap_err().what.contains("overlaps a block met before"));
        image.store(last, 0);
        image.store(HEADER, START.0 - 64);
        assert!(audit(&image, &held).unwrap_err().what.starts_with("bump pointer 0x1000"));
    }
}
