//! Units of memory at an instant, each with the stores that a power failure may lose.
//!
//! A *unit* is what becomes durable apart from all else: a cache line of a processor's persistency model, a sector of the page
//! cache, the length of a file. A [`Pick`] is one of the states that a unit may be left in; any combination of picks may be left.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use graven_base::memory::{Addr, Image};
use graven_persistency::happening::{Fence, Happening, Persist, Seq};
use graven_persistency::history::History;
use graven_persistency::model::Model;
use graven_persistency::promise::Judge as _;
use rustc_hash::FxHashMap;

use crate::story::{Event, EventId, Story, What};

/// Most stores of a unit whose sets are picked, not only their beginnings.
const MASK_STORES: usize = 64;
/// Most picks of a unit that are listed as sets.
const MASKS_MAX: usize = 128;
/// Length units stand at the end of addresses, the first file's last.
const LENGTHS_AT: u64 = u64::MAX;

/// A store, or a change of a length, that may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The event.
    pub event: EventId,
    /// The number of the unit's first stores without which it is not left.
    pub after: u32,
}

/// A part of memory that becomes durable apart from all else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The first byte; of a file's length a number behind all addresses.
    pub start: u64,
    /// The stores that may be missing, in order.
    pub stores: Vec<Version>,
}

/// A state that a unit may be left in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pick {
    /// A number of first stores.
    First(u32),
    /// These of at most 64 stores: a bit each.
    These(u64),
}

impl Unit {
    /// The pick with all stores.
    pub fn newest(&self) -> Pick {
        Pick::First(self.stores.len() as u32)
    }

    /// The pick with the stores before an event.
    pub fn before(&self, event: EventId) -> Pick {
        Pick::First(self.stores.partition_point(|store| store.event < event) as u32)
    }

    /// Tells whether a pick has a store.
    pub fn has(pick: Pick, store: usize) -> bool {
        match pick {
            Pick::First(count) => store < count as usize,
            Pick::These(mask) => mask >> store & 1 != 0,
        }
    }

    /// The stores of a pick.
    pub fn left(&self, pick: Pick) -> impl Iterator<Item = EventId> + '_ {
        let all = self.stores.iter().enumerate();
        all.filter(move |&(at, _)| Unit::has(pick, at)).map(|(_, store)| store.event)
    }

    /// The stores that a pick leaves out.
    pub fn missing(&self, pick: Pick) -> impl Iterator<Item = EventId> + '_ {
        let all = self.stores.iter().enumerate();
        all.filter(move |&(at, _)| !Unit::has(pick, at)).map(|(_, store)| store.event)
    }

    /// Tells whether some of its stores are left only in their order.
    fn is_ordered(&self) -> bool {
        self.stores.iter().enumerate().all(|(at, store)| store.after as usize >= at)
    }

    /// All picks; of a unit with many stores in no order, only its beginnings. The second value says whether these are all.
    pub fn picks(&self, story: &Story) -> (Vec<Pick>, bool) {
        let firsts = || (0..=self.stores.len() as u32).map(Pick::First).collect();
        if self.is_ordered() {
            return (firsts(), true);
        }
        match self.masks(story) {
            Some(masks) => (masks.into_iter().map(Pick::These).collect(), true),
            None => (firsts(), false),
        }
    }

    /// All sets that may be left, as masks; none: there are too many.
    fn masks(&self, story: &Story) -> Option<Vec<u64>> {
        if self.stores.len() > MASK_STORES {
            return None;
        }
        let mut sets = vec![0u64];
        for (at, store) in self.stores.iter().enumerate() {
            let needed = self.needed(story, at, *store);
            let more: Vec<u64> = sets
                .iter()
                .filter(|&&set| set & needed == needed)
                .map(|set| set | 1 << at)
                .collect();
            sets.extend(more);
            if sets.len() > MASKS_MAX {
                return None;
            }
        }
        Some(sets)
    }

    /// The stores without which one is not left: those that it comes after, and those to its word.
    fn needed(&self, story: &Story, at: usize, store: Version) -> u64 {
        let first = (1u64 << store.after.min(at as u32)) - 1;
        let word = story.address(store.event);
        let of_word = (0..at).filter(|&other| story.address(self.stores[other].event) == word);
        of_word.fold(first, |mask, other| mask | 1 << other)
    }

    /// The file whose length this is.
    pub fn file(&self, story: &Story) -> Option<u32> {
        let number = LENGTHS_AT - self.start;
        (number < story.files.len() as u64).then_some(number as u32)
    }

    /// Calls `each` with the words that a pick leaves otherwise than they are visible.
    pub fn differences(&self, story: &Story, pick: Pick, mut each: impl FnMut(Addr, u64)) {
        if pick == self.newest() {
            return;
        }
        let mut words: Vec<(Addr, u64, u64)> = Vec::new();
        for (at, store) in self.stores.iter().enumerate() {
            let What::Store { addr, old, new, .. } = story.events[store.event as usize].what else {
                continue;
            };
            let word = match words.iter_mut().find(|(of, ..)| *of == addr) {
                Some(word) => word,
                None => {
                    words.push((addr, old, old));
                    words.last_mut().expect("it was just added")
                }
            };
            word.2 = new;
            if Unit::has(pick, at) {
                word.1 = new;
            }
        }
        for (addr, left, visible) in words {
            if left != visible {
                each(addr, left);
            }
        }
    }

    /// The length that a pick leaves.
    pub fn length(&self, story: &Story, pick: Pick) -> Option<u64> {
        let of = |event: EventId| match story.events[event as usize].what {
            What::Length { old, new, .. } => Some((old, new)),
            _ => None,
        };
        match self.left(pick).last() {
            Some(event) => of(event).map(|(_, new)| new),
            None => of(self.stores.first()?.event).map(|(old, _)| old),
        }
    }
}

/// The rules of what may be missing.
#[derive(Clone, Copy, Debug)]
pub enum Rules {
    /// A processor's persistency model.
    Processor(&'static Model),
    /// The kernel's page cache, which writes sectors as a whole.
    PageCache {
        /// Bytes of a sector.
        sector: u64,
    },
}

impl Rules {
    /// Begins a story.
    pub fn begin(self) -> Frontier {
        match self {
            Rules::Processor(model) => Frontier::Lines(Box::new(History::new(model)), model),
            Rules::PageCache { sector } => {
                Frontier::Pages(PageCache { sector, ..PageCache::default() })
            }
        }
    }
}

/// The units at an instant of a story, which is told event by event.
#[derive(Clone, Debug)]
pub enum Frontier {
    /// Lines of a processor.
    Lines(Box<History>, &'static Model),
    /// Sectors of the page cache.
    Pages(PageCache),
}

impl Frontier {
    /// Takes in an event.
    pub fn saw(&mut self, id: EventId, event: &Event) {
        match self {
            Frontier::Lines(history, model) => {
                // An atomic instruction of Arm completes no clean.
                let locked = What::Persist(Persist::Fence(Fence::Locked));
                if model.is_arm() && event.what == locked {
                    return;
                }
                if let Some(happening) = happening(event) {
                    history.saw(Seq::from(id), &happening);
                }
            }
            Frontier::Pages(pages) => pages.saw(id, event),
        }
    }

    /// Number of stores that have become durable.
    pub fn settled(&self) -> u64 {
        match self {
            Frontier::Lines(history, _) => history.settled(),
            Frontier::Pages(pages) => pages.settled,
        }
    }

    /// Number of units with stores that may be missing.
    pub fn open(&self) -> usize {
        match self {
            Frontier::Lines(history, _) => history.open().len(),
            Frontier::Pages(pages) => {
                let lengths = pages.lengths.values().filter(|(_, stores)| !stores.is_empty());
                pages.dirty.len() + lengths.count()
            }
        }
    }

    /// The units with stores that may be missing, by their addresses. A unit that is as `before` has it is shared with that.
    pub fn units(&self, before: &[Arc<Unit>]) -> Vec<Arc<Unit>> {
        let mut units: Vec<Unit> = match self {
            Frontier::Lines(history, _) => history
                .open()
                .map(|open| {
                    let first = open.range.at_least;
                    let stores = open.stores.iter().map(|store| Version {
                        event: store.at as EventId,
                        after: store.after.saturating_sub(first),
                    });
                    Unit { start: open.line.addr().0, stores: stores.collect() }
                })
                .collect(),
            Frontier::Pages(pages) => pages.units(),
        };
        units.sort_unstable_by_key(|unit| unit.start);
        let shared = |unit: Unit| {
            let at = before.binary_search_by_key(&unit.start, |known| known.start);
            match at.ok().map(|at| &before[at]).filter(|known| ***known == unit) {
                Some(known) => Arc::clone(known),
                None => Arc::new(unit),
            }
        };
        units.into_iter().map(shared).collect()
    }
}

pub(crate) fn happening(event: &Event) -> Option<Happening> {
    let thread = event.thread;
    Some(match event.what {
        What::Store { addr, old, new, path, continues } => {
            Happening::Store { thread, addr, old, new, path, continues }
        }
        What::Load { addr } => Happening::Load { thread, addr },
        What::Persist(op) => Happening::Persist { thread, op },
        What::Told => Happening::Told { thread },
        What::Synced { start, end, before } => {
            Happening::Synced { start, end, before: before.into() }
        }
        What::Length { .. } | What::Begins | What::Ends => return None,
    })
}

/// The page cache of a kernel. A dirty sector may be written at any time, in any order with others, and holds then all that was
/// stored to it so far; a call that synchronises it has written it.
///
/// Reading: a sector is written as it is at one instant. A disk that reads it while the program stores may get a mixture.
#[derive(Clone, Debug, Default)]
pub struct PageCache {
    sector: u64,
    dirty: FxHashMap<u64, VecDeque<EventId>>,
    /// Addresses of files, and changes of their lengths.
    lengths: FxHashMap<u32, (Range<u64>, VecDeque<EventId>)>,
    settled: u64,
}

impl PageCache {
    fn saw(&mut self, id: EventId, event: &Event) {
        match event.what {
            What::Store { addr, .. } => {
                self.dirty.entry(addr.0 / self.sector).or_default().push_back(id);
            }
            What::Length { file, .. } => self.lengths.entry(file).or_default().1.push_back(id),
            What::Synced { start, end, before } => self.synced(start, end, before),
            _ => {}
        }
    }

    fn synced(&mut self, start: u64, end: u64, before: EventId) {
        let (sector, settled) = (self.sector, &mut self.settled);
        let mut write = |stores: &mut VecDeque<EventId>| {
            let written = stores.partition_point(|&id| id < before);
            stores.drain(..written);
            *settled += written as u64;
            !stores.is_empty()
        };
        self.dirty.retain(|&number, stores| {
            let is_in = (number + 1) * sector > start && number * sector < end;
            !is_in || write(stores)
        });
        // A file's length is written with any part of it, since that cannot be read without.
        for (of, stores) in self.lengths.values_mut() {
            if of.start < end && start < of.end {
                write(stores);
            }
        }
    }

    /// Tells the addresses of a file.
    pub fn file(&mut self, file: u32, addresses: Range<u64>) {
        self.lengths.entry(file).or_default().0 = addresses;
    }

    fn units(&self) -> Vec<Unit> {
        let unit = |start, stores: &VecDeque<EventId>| {
            let versions = stores.iter().zip(0..).map(|(&event, after)| Version { event, after });
            Unit { start, stores: versions.collect() }
        };
        let lengths = self.lengths.iter().filter(|(_, (_, stores))| !stores.is_empty());
        let sectors = self.dirty.iter().map(|(&number, s)| unit(number * self.sector, s));
        sectors.chain(lengths.map(|(&f, (_, s))| unit(LENGTHS_AT - u64::from(f), s))).collect()
    }
}

/// The memory of a story at an instant, which moves along it in both directions.
pub struct Cursor {
    /// The memory.
    pub image: Image,
    /// The sum of the digests of its words, and of the lengths.
    pub digest: u64,
    /// Lengths of the files, in bytes.
    pub lengths: Vec<u64>,
    at: EventId,
}

impl Cursor {
    /// At the beginning of a story.
    pub fn new(story: &Story, before: Image) -> Cursor {
        Cursor { image: before, digest: 0, lengths: story.lengths(), at: 0 }
    }

    /// Another one at the same place.
    pub fn share(&mut self) -> Cursor {
        let (digest, lengths, at) = (self.digest, self.lengths.clone(), self.at);
        Cursor { image: self.image.share(), digest, lengths, at }
    }

    /// Goes to the instant before an event.
    pub fn seek(&mut self, story: &Story, at: EventId) {
        while self.at < at {
            let what = story.events[self.at as usize].what;
            self.at += 1;
            match what {
                What::Store { addr, old, new, .. } => self.store(addr, old, new),
                What::Length { file, new, .. } => self.lengths[file as usize] = new,
                _ => {}
            }
        }
        while self.at > at {
            self.at -= 1;
            match story.events[self.at as usize].what {
                What::Store { addr, old, new, .. } => self.store(addr, new, old),
                What::Length { file, old, .. } => self.lengths[file as usize] = old,
                _ => {}
            }
        }
    }

    fn store(&mut self, addr: Addr, before: u64, after: u64) {
        self.image.store(addr, after);
        self.digest = self.digest.wrapping_add(digest(addr, before, after));
    }
}

/// The change of an image's digest when a word changes.
pub fn digest(addr: Addr, before: u64, after: u64) -> u64 {
    let of = |word| graven_base::memory::word_digest(addr, word);
    of(after).wrapping_sub(of(before))
}
