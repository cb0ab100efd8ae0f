//! Garbage collection (§III-E, Algorithm 1): the newest words of committed transactions go home.
//!
//! A collection takes the blocks that are full when it begins, the oldest first, as far as all
//! transactions with records in them are complete; one block at a time, or all together (`gc_scope`). For
//! each of these units it reads the address memory slices, follows each record's chain of slices (`gc_reads`
//! lines at a time), keeps the newest version of each word, and writes those home by lines (`gc_writes` at a
//! time) through the eviction buffer, removing the mapping entries for the slices that it has collected. When
//! all are durable, the blocks' headers say that their records are void, in the order of the blocks: what
//! a failure leaves valid are always the youngest records. A block that no slice of another
//! transaction needs any more, and no miss reads, is free when its header and index entry are durable.
//!
//! The oldest block must go first: its words at home then lag behind those of younger blocks, which the
//! mapping table shadows and recovery replays. The other way round recovery would bring the older back.

use super::layout::{BlockState, Header, Record, Slice, SliceNumber};
use super::packing::Phase;
use super::{Controller, Cover, GcScope, Hoop, Mutant, Pending};
use graven_base::memory::{Addr, LineAddr, LineData, WORDS_PER_LINE, WordMask};
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

/// Why a collection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its time has come.
    Period,
    /// The mapping table is full.
    MappingFull,
    /// No block is free.
    RegionFull,
}

/// A word of a committed transaction.
#[derive(Clone, Copy, Debug)]
struct Found {
    home: Addr,
    /// Commits since the oldest block of the unit was opened.
    commit: u64,
    /// Which slice of its transaction.
    nth: u32,
    slice: SliceNumber,
    word: u64,
}

/// A transaction whose slices are being read.
#[derive(Clone, Copy, Debug)]
struct Chain {
    commit: u64,
    slice: SliceNumber,
    nth: u32,
    lines: [Option<LineData>; 2],
}

/// A line to be written home.
#[derive(Clone, Debug)]
struct Going {
    line: LineAddr,
    words: WordMask,
    data: LineData,
    /// Where versions of its words were found.
    slices: Vec<SliceNumber>,
}

/// What a collection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Records,
    Chains,
    Homes,
    Voiding,
}

/// A collection that is under way.
#[derive(Debug)]
pub struct Collection {
    /// Blocks that are not begun, the next one last.
    blocks: Vec<u32>,
    /// Those that are collected together now, oldest first.
    unit: Vec<u32>,
    stage: Stage,
    /// Requests that have not been answered.
    underway: usize,
    /// Lines of address memory slices to be read: block and first record.
    record_lines: Vec<(u32, u32)>,
    /// Records to be followed, and how many commits after the unit's beginning.
    records: Vec<(u64, Record)>,
    chains: slab::Slab<Chain>,
    found: Vec<Found>,
    /// Lines to be written home, the next one last.
    going: Vec<Going>,
    /// Slices whose words are home when this unit is done.
    migrated: Vec<SliceNumber>,
}

impl Hoop {
    /// Begins a collection of a controller's region; returns whether one is under way then.
    pub(super) fn collect(&mut self, m: &mut Machine, c: usize, reason: Reason) -> bool {
        if self.controllers[c].collection.is_some() {
            return true;
        }
        let mut blocks = self.controllers[c].region.collectable();
        if blocks.is_empty() {
            return false;
        }
        m.count().gc_passes += 1;
        m.count().gc_on_demand += u64::from(reason != Reason::Period);
        if blocks.len() > 1 {
            m.cover(Cover::SeveralBlocks as usize);
        }
        if self.threads.iter().any(|t| t.phase == Phase::Running) {
            m.cover(Cover::CollectedWhileOpen as usize);
        }
        m.note(|| format!("controller {c} collects blocks {blocks:?}: {reason:?}"));
        if !self.mutants.has(Mutant::NewestBlockFirst) {
            blocks.reverse();
        }
        self.controllers[c].collection = Some(Collection {
            blocks,
            unit: Vec::new(),
            stage: Stage::Records,
            underway: 0,
            record_lines: Vec::new(),
            records: Vec::new(),
            chains: slab::Slab::new(),
            found: Vec::new(),
            going: Vec::new(),
            migrated: Vec::new(),
        });
        self.next_unit(m, c);
        true
    }

    /// The next blocks; or the collection is over.
    fn next_unit(&mut self, m: &mut Machine, c: usize) {
        let all = self.config.gc_scope == GcScope::All;
        let Controller { region, collection, .. } = &mut self.controllers[c];
        let collection = collection.as_mut().expect("one is under way");
        collection.unit = if all {
            collection.blocks.drain(..).rev().collect()
        } else {
            collection.blocks.pop().into_iter().collect()
        };
        if collection.unit.is_empty() {
            self.controllers[c].collection = None;
            m.note(|| format!("controller {c} has collected"));
            return self.room_at(m, c);
        }
        collection.stage = Stage::Records;
        for &block in &collection.unit {
            let lines = (0..region.records_used(block)).step_by(WORDS_PER_LINE);
            collection.record_lines.extend(lines.map(|first| (block, first)));
        }
        self.go_on_collecting(m, c);
    }

    /// Sends what may be sent; goes on to the next stage when this one is done.
    fn go_on_collecting(&mut self, m: &mut Machine, c: usize) {
        match self.controllers[c].collection.as_ref().expect("one is under way").stage {
            Stage::Records => self.read_records(m, c),
            Stage::Chains => self.follow_chains(m, c),
            Stage::Homes => self.send_home(m, c),
            Stage::Voiding => {}
        }
    }

    fn read_records(&mut self, m: &mut Machine, c: usize) {
        loop {
            let Controller { region, collection, .. } = &mut self.controllers[c];
            let collection = collection.as_mut().expect("one is under way");
            if collection.underway >= self.config.gc_reads as usize {
                return;
            }
            let Some((block, first)) = collection.record_lines.pop() else { break };
            collection.underway += 1;
            let line = region.geometry.record(block, first).line();
            let token = self.token(Pending::Records { controller: c, block, first });
            m.read(line, token, 0);
        }
        let collection = self.controllers[c].collection.as_mut().expect("one is under way");
        if collection.underway == 0 {
            // Algorithm 1 goes from the latest start address back: it is taken from the end.
            collection.records.sort_unstable_by_key(|&(commit, _)| commit);
            collection.stage = Stage::Chains;
            self.follow_chains(m, c);
        }
    }

    /// A line of an address memory slice has been read.
    pub(super) fn records_read(
        &mut self,
        m: &mut Machine,
        c: usize,
        block: u32,
        first: u32,
        content: &LineData,
    ) {
        let Controller { region, collection, .. } = &mut self.controllers[c];
        let collection = collection.as_mut().expect("it reads records");
        let oldest = region.opened(collection.unit[0]);
        let places = first..region.records_used(block).min(first + WORDS_PER_LINE as u32);
        for place in places {
            let record = Record::parse(content[(place - first) as usize]).filter(|r| r.committed);
            let commit = record.and_then(|r| r.sequence.since(oldest));
            if let (Some(record), Some(commit)) = (record, commit) {
                collection.records.push((commit, record));
            }
        }
        collection.underway -= 1;
        self.read_records(m, c);
    }

    fn follow_chains(&mut self, m: &mut Machine, c: usize) {
        loop {
            let collection = self.controllers[c].collection.as_mut().expect("one is under way");
            if collection.underway + 2 > self.config.gc_reads as usize {
                return;
            }
            let Some((commit, record)) = collection.records.pop() else { break };
            let chain = Chain { commit, slice: record.start, nth: 0, lines: [None; 2] };
            let chain = collection.chains.insert(chain);
            self.read_slice(m, c, chain);
        }
        let collection = self.controllers[c].collection.as_ref().expect("one is under way");
        if collection.underway == 0 {
            self.coalesce(m, c);
        }
    }

    fn read_slice(&mut self, m: &mut Machine, c: usize, chain: usize) {
        let Controller { region, collection, .. } = &mut self.controllers[c];
        let collection = collection.as_mut().expect("one is under way");
        collection.underway += 2;
        let lines = region.geometry.slice_lines(collection.chains[chain].slice);
        for (line, addr) in lines.into_iter().enumerate() {
            let token = self.token(Pending::Chain { controller: c, chain, line });
            m.read(addr, token, 0);
        }
    }

    /// A line of a slice has been read.
    pub(super) fn chain_read(
        &mut self,
        m: &mut Machine,
        c: usize,
        number: usize,
        line: usize,
        content: &LineData,
    ) {
        let Controller { region, collection, .. } = &mut self.controllers[c];
        let collection = collection.as_mut().expect("it follows chains");
        collection.underway -= 1;
        let chain = &mut collection.chains[number];
        chain.lines[line] = Some(*content);
        let [Some(data), Some(metadata)] = chain.lines else { return };
        let Some(slice) = Slice::parse(&data, &metadata) else {
            return m.fail(format!("slice {} of a committed transaction is none", chain.slice));
        };
        let Chain { commit, slice: number_of_slice, nth, .. } = *chain;
        collection.migrated.push(number_of_slice);
        collection.found.extend(slice.words.iter().map(|&(home, word)| Found {
            home,
            commit,
            nth,
            slice: number_of_slice,
            word,
        }));
        if slice.next == 0 {
            collection.chains.remove(number);
            return self.follow_chains(m, c);
        }
        let next = region.geometry.next(number_of_slice, slice.next);
        if region.geometry.block_of(next) != region.geometry.block_of(number_of_slice) {
            m.cover(Cover::ChainAcrossBlocks as usize);
        }
        *chain = Chain { commit, slice: next, nth: nth + 1, lines: [None; 2] };
        self.read_slice(m, c, number);
    }

    /// Everything has been read: of each word, the newest version goes home.
    fn coalesce(&mut self, m: &mut Machine, c: usize) {
        let oldest_wins = self.mutants.has(Mutant::OldestVersionWins);
        let collection = self.controllers[c].collection.as_mut().expect("one is under way");
        let mut found = std::mem::take(&mut collection.found);
        found.sort_unstable_by_key(|f| (f.home, f.commit, f.nth));
        m.count().gc_words_found += found.len() as u64;
        let mut going: Vec<Going> = Vec::new();
        let mut words = 0;
        for versions in found.chunk_by(|a, b| a.home == b.home) {
            let newest = if oldest_wins { versions.first() } else { versions.last() };
            let newest = newest.expect("no chunk is empty");
            if versions.len() > 1 {
                m.cover(Cover::Coalesced as usize);
            }
            words += 1;
            let line = newest.home.line();
            if going.last().is_none_or(|g| g.line != line) {
                let (words, data) = (0, [0; WORDS_PER_LINE]);
                going.push(Going { line, words, data, slices: Vec::new() });
            }
            let last = going.last_mut().expect("it was just pushed");
            last.words |= newest.home.word_mask();
            last.data[newest.home.word_in_line()] = newest.word;
            for version in versions {
                if !last.slices.contains(&version.slice) {
                    last.slices.push(version.slice);
                }
            }
        }
        m.count().gc_words_migrated += words;
        collection.found = found;
        collection.found.clear();
        going.reverse();
        collection.going = going;
        collection.stage = Stage::Homes;
        self.send_home(m, c);
    }

    fn send_home(&mut self, m: &mut Machine, c: usize) {
        let all_sent = self.send_lines_home(m, c);
        self.entries_removed(m, c);
        let collection = self.controllers[c].collection.as_ref().expect("one is under way");
        if all_sent && (collection.underway == 0 || self.mutants.has(Mutant::HomeNotAwaited)) {
            self.void_records(m, c);
        }
    }

    /// Sends as many lines as may be on their way; returns whether none is left.
    fn send_lines_home(&mut self, m: &mut Machine, c: usize) -> bool {
        loop {
            let Controller { mapping, evicted, collection, .. } = &mut self.controllers[c];
            let collection = collection.as_mut().expect("one is under way");
            if collection.underway >= self.config.gc_writes as usize {
                return false;
            }
            let Some(going) = collection.going.last() else { return true };
            let Going { line, words, data, .. } = *going;
            let is_stale = self.mutants.has(Mutant::EvictionBufferStale);
            let held = evicted.get(line).filter(|_| is_stale).map(|(_, old)| old);
            if !evicted.insert(line, words, &held.unwrap_or(data)) {
                m.cover(Cover::EvictionBufferFull as usize);
                return false;
            }
            let going = collection.going.pop().expect("it was just looked at");
            collection.underway += 1;
            for &slice in &going.slices {
                mapping.remove(line, slice);
            }
            if mapping.of(line).next().is_some() {
                m.cover(Cover::NewerStays as usize);
                if self.mutants.has(Mutant::MappingDroppedByAddress) {
                    mapping.remove_line(line);
                }
            }
            let held: usize = self.controllers.iter().map(|c| c.evicted.len()).sum();
            let max = &mut m.count().eviction_buffer_max;
            *max = (*max).max(held as u64);
            let token = self.token(Pending::Home { controller: c, line });
            let write = Write::line(WriteClass::Gc, line, data);
            m.write(Write { mask: words, token, ..write }, 0);
        }
    }

    /// A line is durable at home.
    pub(super) fn at_home(&mut self, m: &mut Machine, c: usize, line: LineAddr) {
        let Controller { evicted, collection, .. } = &mut self.controllers[c];
        evicted.at_home(line);
        if let Some(collection) = collection.as_mut().filter(|c| c.stage == Stage::Homes) {
            collection.underway -= 1;
            self.send_home(m, c);
        }
    }

    /// All words are at home: the headers of the unit's blocks say that their records are void.
    fn void_records(&mut self, m: &mut Machine, c: usize) {
        let token = self.token(Pending::Voided { controller: c });
        let any_order = self.mutants.has(Mutant::VoidedInAnyOrder);
        let Controller { region, collection, .. } = &mut self.controllers[c];
        let collection = collection.as_mut().expect("one is under way");
        collection.stage = Stage::Voiding;
        let (mut after, last) = (0, collection.unit.len() - 1);
        for (i, &number) in collection.unit.iter().enumerate() {
            let header = Header { number, next: 0, state: BlockState::Gc };
            let token = if i == last { token } else { 0 };
            let order = region.write_header(m, header, after, token);
            after = if any_order { 0 } else { order };
        }
        if self.mutants.has(Mutant::VoidNotAwaited) {
            self.free_collected(m, c);
        }
    }

    /// The records of a unit are void.
    pub(super) fn voided(&mut self, m: &mut Machine, c: usize) {
        if !self.mutants.has(Mutant::VoidNotAwaited) {
            self.free_collected(m, c);
        }
        let collection = self.controllers[c].collection.as_mut().expect("one is under way");
        collection.underway = 0;
        self.room_at(m, c);
        self.next_unit(m, c);
    }

    fn free_collected(&mut self, m: &mut Machine, c: usize) {
        let Controller { region, collection, .. } = &mut self.controllers[c];
        let collection = collection.as_mut().expect("one is under way");
        for slice in collection.migrated.drain(..) {
            region.migrated(slice);
        }
        for &block in &collection.unit {
            region.voided(block);
        }
        self.free_unneeded(m, c);
    }

    /// Frees the collected blocks that nothing needs any more.
    pub(super) fn free_unneeded(&mut self, m: &mut Machine, c: usize) {
        for block in self.controllers[c].region.take_unneeded(m) {
            if self.mutants.has(Mutant::VoidNotAwaited) {
                self.freed(m, c, block);
                continue;
            }
            let token = self.token(Pending::Freed { controller: c, block });
            let region = &mut self.controllers[c].region;
            let header = Header { number: block, next: 0, state: BlockState::Unused };
            let after = region.write_header(m, header, 0, 0);
            m.note(|| format!("controller {c}: block {block} is about to be free"));
            let index = Write::words(WriteClass::Metadata, region.geometry.index(block), &[0]);
            m.write(Write { after, token, ..index }, 0);
        }
    }

    /// A block is free.
    pub(super) fn freed(&mut self, m: &mut Machine, c: usize, block: u32) {
        self.controllers[c].region.freed(block);
        self.room_at(m, c);
    }
}
