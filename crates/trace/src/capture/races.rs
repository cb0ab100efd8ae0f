//! Races: two accesses of different threads to the same bytes of persistent memory, at least one of them a store, neither of
//! which happens before the other.
//!
//! Happens-before is what the program's synchronisation says, not the order in which the threads have executed: vector
//! clocks ([`super::clocks`]). Of each byte the last store is known, and of each thread the last load since, if it has not
//! happened before a later one (FastTrack: Flanagan and Freund, PLDI 2009, whose epochs these are). So a byte has a race
//! here if and only if it has one; of several races of a byte, not all are found.
//!
//! *Memory.* Four bytes for each word of the pages of 4 KB that are accessed, and 20 bytes for each access that is known;
//! a clock of four bytes for each thread and for each object that threads synchronise by.
//!
//! What an atomic instruction accesses is accessed atomically by all other instructions, too: on x86-64 there is no
//! telling an atomic load or store from an ordinary one, on AArch64 none from one that is relaxed. Such bytes have no races.

use graven_base::memory::{Addr, WORD_BYTES};
use graven_capture::{SYNCHRONISED_BYTES, synchronised};
use rustc_hash::FxHashMap;

use super::clocks::{Clocks, Object};
use super::memory::words;
use super::report::NAMED_MAX;
use super::roles::Role;

/// No access.
const NONE: u32 = u32::MAX;

/// Words of a page.
const PAGE_WORDS: u64 = 512;

/// One of two accesses that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Party {
    pub thread: usize,
    /// None: outside transactions.
    pub transaction: Option<u64>,
    pub address: u64,
    pub bytes: u64,
    pub is_store: bool,
}

/// An access to a word.
#[derive(Clone, Copy, Debug)]
struct Past {
    thread: u32,
    /// The thread's own time.
    time: u32,
    /// One more than its number; 0: none.
    transaction: u32,
    /// The next one of the same word.
    next: u32,
    /// Bytes of the word.
    bytes: u8,
    is_store: bool,
}

/// Finds races in accesses and synchronisations that it is told in an order in which they have happened.
#[derive(Debug)]
pub(super) struct Races {
    clocks: Clocks,
    /// The first access of each word that is known.
    pages: FxHashMap<u64, Box<[u32; PAGE_WORDS as usize]>>,
    pasts: Vec<Past>,
    /// The first of those that are free.
    free: u32,
    /// Bytes of words that are accessed atomically.
    atomic: FxHashMap<Addr, u8>,
    /// Bytes of words that have a race.
    racing: FxHashMap<Addr, u8>,
    /// Accesses that race with an earlier one.
    pub accesses: u64,
    /// The first ones, of different words.
    pub first: Vec<(Party, Party)>,
}

impl Races {
    /// The races of `threads`.
    pub fn new(threads: usize) -> Races {
        Races {
            clocks: Clocks::new(threads),
            pages: FxHashMap::default(),
            pasts: Vec::new(),
            free: NONE,
            atomic: FxHashMap::default(),
            racing: FxHashMap::default(),
            accesses: 0,
            first: Vec::new(),
        }
    }

    /// The number of bytes that have a race.
    pub fn bytes(&self) -> u64 {
        self.racing.values().map(|bytes| u64::from(bytes.count_ones())).sum()
    }

    /// A thread begins that another has made.
    pub fn begins(&mut self, thread: usize, by: u32) {
        self.clocks.begins(thread, by as usize);
    }

    /// A function is entered. `is_alone`: the thread holds its lock, and no other thread does.
    pub fn entered(&mut self, thread: usize, role: Role, argument: u64, is_alone: bool) {
        let object = match role {
            Role::Unlock if !is_alone => Object::Shared(argument),
            Role::Unlock | Role::Wait => Object::Lock(argument),
            Role::Order | Role::Release => Object::Met(argument),
            _ => return,
        };
        self.clocks.releases(thread, object);
    }

    /// A function has returned.
    pub fn returned(&mut self, thread: usize, role: Role, argument: u64, result: u64) {
        match role {
            Role::Lock if Role::has_locked(result) => {
                self.clocks.acquires(thread, Object::Lock(argument));
                self.clocks.acquires(thread, Object::Shared(argument));
            }
            Role::LockShared if Role::has_locked(result) => {
                self.clocks.acquires(thread, Object::Lock(argument));
            }
            Role::Wait => {
                self.clocks.acquires(thread, Object::Lock(argument));
            }
            Role::Acquire if result as u32 == 0 => {
                self.clocks.acquires(thread, Object::Met(argument));
            }
            Role::Order => self.clocks.acquires(thread, Object::Met(argument)),
            _ => {}
        }
    }

    /// A thread accesses a place by which threads synchronise; `address`: of persistent memory that it accesses atomically, where it
    /// is.
    pub fn synchronises(
        &mut self,
        thread: usize,
        place: (u64, u64),
        address: Option<u64>,
        (acquires, releases): (bool, bool),
    ) {
        let units = || synchronised(place.0, place.1).map(Object::Unit);
        if acquires {
            units().for_each(|unit| self.clocks.acquires(thread, unit));
        }
        if releases {
            units().for_each(|unit| self.clocks.releases(thread, unit));
        }
        // An ordinary access may reach beyond the units that are atomic.
        if let Some(address) = address {
            let start = address / SYNCHRONISED_BYTES * SYNCHRONISED_BYTES;
            let bytes = (address + place.1).next_multiple_of(SYNCHRONISED_BYTES) - start;
            for word in words(start, bytes) {
                *self.atomic.entry(word).or_default() |= mask(word, start, bytes);
            }
        }
    }

    /// Bytes are another's from now on, whose accesses do not race with those so far.
    pub fn forget(&mut self, start: u64, end: u64) {
        let (first, last) = (start.div_ceil(WORD_BYTES), end / WORD_BYTES);
        self.atomic.retain(|word, _| !(first..last).contains(&(word.0 / WORD_BYTES)));
        for (&page, words) in &mut self.pages {
            let numbers = page * PAGE_WORDS..;
            for (_, head) in
                numbers.zip(words.iter_mut()).filter(|(n, _)| (first..last).contains(n))
            {
                let mut at = std::mem::replace(head, NONE);
                while at != NONE {
                    let past = &mut self.pasts[at as usize];
                    (at, past.next, self.free) = (past.next, self.free, at);
                }
            }
        }
    }

    /// A thread accesses persistent memory.
    pub fn access(&mut self, party: Party) {
        let mut races = false;
        for word in words(party.address, party.bytes) {
            let mut bytes = mask(word, party.address, party.bytes);
            if !self.atomic.is_empty() {
                bytes &= !self.atomic.get(&word).copied().unwrap_or(0);
            }
            if bytes != 0 {
                races |= self.touch(&party, word, bytes);
            }
        }
        self.accesses += u64::from(races);
    }

    /// The thread accesses bytes of a word; returns whether that races with earlier accesses.
    fn touch(&mut self, party: &Party, word: Addr, bytes: u8) -> bool {
        let &Party { thread, is_store, .. } = party;
        let transaction = party.transaction.map_or(0, |number| number as u32 + 1);
        let time = self.clocks.now(thread);
        let (mut races, mut racing) = (0, None);
        let number = word.0 / WORD_BYTES;
        let page = self.pages.entry(number / PAGE_WORDS);
        let first =
            &mut page.or_insert_with(|| Box::new([NONE; _]))[(number % PAGE_WORDS) as usize];
        let (mut at, mut before) = (*first, NONE);
        while at != NONE {
            let past = &mut self.pasts[at as usize];
            let (this, next, common) = (at, past.next, past.bytes & bytes);
            at = next;
            if common == 0 {
                before = this;
                continue;
            }
            let other = past.thread as usize;
            let is_mine = other == thread;
            let is_known = is_mine
                && (past.time, past.transaction) == (time, transaction)
                && common == bytes
                && (past.is_store || !is_store);
            if is_known && races == 0 {
                return false;
            }
            let is_before = is_mine || self.clocks.has_seen(thread, other, past.time);
            if !is_before && (is_store || past.is_store) {
                races |= common;
                racing.get_or_insert(*past);
            }
            // Whatever races with the earlier one races with this one, or there is a race already.
            if is_store || is_before && !past.is_store {
                past.bytes &= !bytes;
            }
            if past.bytes != 0 {
                before = this;
                continue;
            }
            past.next = self.free;
            self.free = this;
            match before {
                NONE => *first = next,
                before => self.pasts[before as usize].next = next,
            }
        }
        let past = Past { thread: thread as u32, time, transaction, next: *first, bytes, is_store };
        match self.free {
            NONE => {
                *first = self.pasts.len() as u32;
                self.pasts.push(past);
            }
            free => {
                let room = &mut self.pasts[free as usize];
                self.free = room.next;
                *room = past;
                *first = free;
            }
        }
        if let Some(earlier) = racing {
            self.found(word, races, earlier, party);
        }
        races != 0
    }

    #[cold]
    fn found(&mut self, word: Addr, bytes: u8, earlier: Past, later: &Party) {
        let known = self.racing.entry(word).or_default();
        let is_first = *known == 0;
        *known |= bytes;
        if is_first && self.first.len() < NAMED_MAX {
            // Of the earlier one, what is known of this word.
            let earlier = Party {
                thread: earlier.thread as usize,
                transaction: u64::from(earlier.transaction).checked_sub(1),
                address: word.0 + u64::from(earlier.bytes.trailing_zeros()),
                bytes: u64::from(
                    8 - earlier.bytes.leading_zeros() - earlier.bytes.trailing_zeros(),
                ),
                is_store: earlier.is_store,
            };
            self.first.push((earlier, *later));
        }
    }
}

/// The bytes of a word among `bytes` from an address on.
fn mask(word: Addr, address: u64, bytes: u64) -> u8 {
    let from = address.max(word.0) - word.0;
    let to = (address + bytes).min(word.0 + WORD_BYTES) - word.0;
    ((1u16 << to) - (1 << from)) as u8
}

#[cfg(test)]
mod tests;
