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

use super::GcScope;
use super::event::Event;
use super::layout::{BlockState, Header, Record, Slice, SliceNumber};
use super::packing::Phase;
use super::protocol::{Controller, Hoop, Port, Read, Write};
use super::region::Region;
use graven_base::memory::{Addr, LineAddr, LineData, WORDS_PER_LINE, WordMask};
use graven_machine::request::{self, WriteClass, WriteOrder};
use slab::Slab;

/// Why a collection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The period is over.
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
    /// Number of its slice in the transaction.
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
    /// Slices with versions of its words.
    slices: Vec<SliceNumber>,
}

/// Stages of a collection.
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
    chains: Slab<Chain>,
    found: Vec<Found>,
    /// Lines to be written home, the next one last.
    going: Vec<Going>,
    /// Slices whose words are home when this unit is done.
    migrated: Vec<SliceNumber>,
}

impl Collection {
    /// One of these blocks, of which none is begun.
    fn of(blocks: Vec<u32>) -> Collection {
        Collection {
            blocks,
            unit: Vec::new(),
            stage: Stage::Records,
            underway: 0,
            record_lines: Vec::new(),
            records: Vec::new(),
            chains: Slab::new(),
            found: Vec::new(),
            going: Vec::new(),
            migrated: Vec::new(),
        }
    }

    /// A version of a word goes home, in the same line as the word before it or in a new one; these are all that were
    /// found.
    fn add_going(going: &mut Vec<Going>, version: &Found, all: &[Found]) {
        let line = version.home.line();
        if going.last().is_none_or(|g| g.line != line) {
            let (words, data) = (0, [0; WORDS_PER_LINE]);
            going.push(Going { line, words, data, slices: Vec::new() });
        }
        let last = going.last_mut().expect("it was just pushed");
        last.words |= version.home.word_mask();
        last.data[version.home.word_in_line()] = version.word;
        for found in all {
            if !last.slices.contains(&found.slice) {
                last.slices.push(found.slice);
            }
        }
    }
}

impl Hoop {
    /// Begins a collection of a controller's region; returns whether one is under way then.
    pub(super) fn collect(
        &mut self,
        port: &mut Port<'_>,
        controller: usize,
        reason: Reason,
    ) -> bool {
        if self.controllers[controller].collection.is_some() {
            return true;
        }
        let mut blocks = self.controllers[controller].region.collectable();
        if blocks.is_empty() {
            return false;
        }
        let while_open = self.threads.iter().any(|t| t.phase == Phase::Running);
        let collected = blocks.clone();
        port.emit(Event::CollectionBegins { controller, blocks: collected, reason, while_open });
        if self.rules.oldest_block_goes_first() {
            blocks.reverse();
        }
        self.controllers[controller].collection = Some(Collection::of(blocks));
        self.next_unit(port, controller);
        true
    }

    /// A controller's collection, which is under way, and the region that it collects.
    fn collecting(&mut self, controller: usize) -> (&mut Collection, &mut Region) {
        let Controller { collection, region, .. } = &mut self.controllers[controller];
        (collection.as_mut().expect("one is under way"), region)
    }

    /// The next blocks; or the collection is over.
    fn next_unit(&mut self, port: &mut Port<'_>, controller: usize) {
        let all = self.config.gc_scope == GcScope::All;
        let (collection, region) = self.collecting(controller);
        collection.unit = if all {
            collection.blocks.drain(..).rev().collect()
        } else {
            collection.blocks.pop().into_iter().collect()
        };
        if collection.unit.is_empty() {
            self.controllers[controller].collection = None;
            port.emit(Event::Collected { controller });
            return self.room_at(port, controller);
        }
        collection.stage = Stage::Records;
        for &block in &collection.unit {
            let lines = (0..region.records_used(block)).step_by(WORDS_PER_LINE);
            collection.record_lines.extend(lines.map(|first| (block, first)));
        }
        self.read_records(port, controller);
    }

    // ---- reading -------------------------------------------------------------------------------

    /// Reads lines of address memory slices, as many as may be under way; then come the chains.
    fn read_records(&mut self, port: &mut Port<'_>, controller: usize) {
        let reads_max = self.config.gc_reads as usize;
        let (collection, region) = self.collecting(controller);
        loop {
            if collection.underway >= reads_max {
                return;
            }
            let Some((block, first)) = collection.record_lines.pop() else { break };
            collection.underway += 1;
            let line = region.geometry.record(block, first).line();
            port.read(line, Read::Records { controller, block, first }, 0);
        }
        if collection.underway == 0 {
            // Algorithm 1 goes from the latest start address back: it is taken from the end.
            collection.records.sort_unstable_by_key(|&(commit, _)| commit);
            collection.stage = Stage::Chains;
            self.follow_chains(port, controller);
        }
    }

    /// A line of an address memory slice has been read: a block's records from the first in it on.
    pub(super) fn records_read(
        &mut self,
        port: &mut Port<'_>,
        controller: usize,
        (block, first): (u32, u32),
        content: &LineData,
    ) {
        let (collection, region) = self.collecting(controller);
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
        self.read_records(port, controller);
    }

    /// Begins with the chains of records, as many as may be under way; when all have been read, their words coalesce.
    fn follow_chains(&mut self, port: &mut Port<'_>, controller: usize) {
        let reads_max = self.config.gc_reads as usize;
        loop {
            let (collection, _) = self.collecting(controller);
            if collection.underway + 2 > reads_max {
                return;
            }
            let Some((commit, record)) = collection.records.pop() else { break };
            let chain = Chain { commit, slice: record.start, nth: 0, lines: [None; 2] };
            let chain = collection.chains.insert(chain);
            self.read_slice(port, controller, chain);
        }
        let (collection, _) = self.collecting(controller);
        if collection.underway == 0 {
            self.coalesce(port, controller);
        }
    }

    /// Reads both lines of the slice that a chain has come to.
    fn read_slice(&mut self, port: &mut Port<'_>, controller: usize, chain: usize) {
        let (collection, region) = self.collecting(controller);
        collection.underway += 2;
        let lines = region.geometry.slice_lines(collection.chains[chain].slice);
        for (line, addr) in lines.into_iter().enumerate() {
            port.read(addr, Read::Chain { controller, chain, line }, 0);
        }
    }

    /// Takes a line of a slice that has been read. With both, its words are found, and the chain
    /// continues.
    pub(super) fn chain_read(
        &mut self,
        port: &mut Port<'_>,
        controller: usize,
        (key, line): (usize, usize),
        content: &LineData,
    ) {
        let (collection, region) = self.collecting(controller);
        collection.underway -= 1;
        let chain = &mut collection.chains[key];
        chain.lines[line] = Some(*content);
        let Chain { commit, slice, nth, lines: [Some(data), Some(metadata)] } = *chain else {
            return;
        };
        let Some(Slice { words, next, .. }) = Slice::parse(&data, &metadata) else {
            return port.fail(format!("slice {slice} of a committed transaction is none"));
        };
        collection.migrated.push(slice);
        let found = words.into_iter().map(|(home, word)| Found { home, commit, nth, slice, word });
        collection.found.extend(found);
        if next == 0 {
            collection.chains.remove(key);
            return self.follow_chains(port, controller);
        }
        let next = region.geometry.next(slice, next);
        if region.geometry.block_of(next) != region.geometry.block_of(slice) {
            port.emit(Event::ChainAcrossBlocks);
        }
        *chain = Chain { commit, slice: next, nth: nth + 1, lines: [None; 2] };
        self.read_slice(port, controller, key);
    }

    // ---- words go home -------------------------------------------------------------------------

    /// Everything has been read: of each word, the newest version goes home.
    fn coalesce(&mut self, port: &mut Port<'_>, controller: usize) {
        let oldest_wins = !self.rules.newest_version_wins();
        let (Collection { found, going, stage, .. }, _) = self.collecting(controller);
        found.sort_unstable_by_key(|f| (f.home, f.commit, f.nth));
        let mut migrated = 0;
        for versions in found.chunk_by(|a, b| a.home == b.home) {
            let newest = if oldest_wins { versions.first() } else { versions.last() };
            if versions.len() > 1 {
                port.emit(Event::Coalesced);
            }
            migrated += 1;
            Collection::add_going(going, newest.expect("no chunk is empty"), versions);
        }
        port.emit(Event::UnitRead { found: found.len() as u64, migrated });
        found.clear();
        going.reverse();
        *stage = Stage::Homes;
        self.send_home(port, controller);
    }

    /// Sends lines home; when all have arrived, their records are void.
    fn send_home(&mut self, port: &mut Port<'_>, controller: usize) {
        let all_sent = self.send_lines_home(port, controller);
        self.entries_removed(port, controller);
        let (collection, _) = self.collecting(controller);
        let all_home = collection.underway == 0;
        if all_sent && (all_home || !self.rules.home_is_awaited()) {
            self.void_records(port, controller);
        }
    }

    /// Sends as many lines as may be on their way, through the eviction buffer; returns whether none is left.
    fn send_lines_home(&mut self, port: &mut Port<'_>, controller: usize) -> bool {
        loop {
            let Controller { evicted, collection, .. } = &mut self.controllers[controller];
            let collection = collection.as_mut().expect("one is under way");
            if collection.underway >= self.config.gc_writes as usize {
                return false;
            }
            let Some(&Going { line, words, data, .. }) = collection.going.last() else {
                return true;
            };
            let is_stale = !self.rules.eviction_buffer_is_renewed();
            let held = evicted.get(line).filter(|_| is_stale).map(|(_, old)| old);
            if !evicted.insert(line, words, &held.unwrap_or(data)) {
                port.emit(Event::EvictionBufferFull);
                return false;
            }
            let going = collection.going.pop().expect("it was just looked at");
            collection.underway += 1;
            self.send_line_home(port, controller, &going);
        }
    }

    /// Writes a line home, and removes its mapping entries for the slices that were collected.
    fn send_line_home(&mut self, port: &mut Port<'_>, controller: usize, going: &Going) {
        let Controller { mapping, .. } = &mut self.controllers[controller];
        let &Going { line, words: mask, data, .. } = going;
        for &slice in &going.slices {
            mapping.remove(line, slice);
        }
        let newer_stays = mapping.of(line).next().is_some();
        if !self.rules.newer_mappings_stay() {
            mapping.remove_line(line);
        }
        let buffered = self.controllers.iter().map(|c| c.evicted.len()).sum();
        port.emit(Event::LineGoesHome { newer_stays, buffered });
        let write = request::Write::line(WriteClass::Gc, line, data).masked(mask);
        port.write_reported(write, Write::Home { controller, line }, 0);
    }

    /// A line is durable at home.
    pub(super) fn at_home(&mut self, port: &mut Port<'_>, controller: usize, line: LineAddr) {
        let Controller { evicted, collection, .. } = &mut self.controllers[controller];
        evicted.at_home(line);
        if let Some(collection) = collection.as_mut().filter(|c| c.stage == Stage::Homes) {
            collection.underway -= 1;
            self.send_home(port, controller);
        }
    }

    // ---- blocks become free --------------------------------------------------------------------

    /// All words are at home: the headers of the unit's blocks say that their records are void.
    fn void_records(&mut self, port: &mut Port<'_>, controller: usize) {
        let any_order = !self.rules.voided_in_order();
        let (collection, region) = self.collecting(controller);
        collection.stage = Stage::Voiding;
        let (mut after, last) = (WriteOrder::NONE, collection.unit.len() - 1);
        for (i, &number) in collection.unit.iter().enumerate() {
            let header = Header { number, next: 0, state: BlockState::Gc };
            let about = (i == last).then_some(Write::Voided { controller });
            let order = region.write_header(port, header, after, about);
            after = if any_order { WriteOrder::NONE } else { order };
        }
        if !self.rules.void_is_awaited() {
            self.free_collected(port, controller);
        }
    }

    /// The records of a unit are void.
    pub(super) fn voided(&mut self, port: &mut Port<'_>, controller: usize) {
        if self.rules.void_is_awaited() {
            self.free_collected(port, controller);
        }
        let (collection, _) = self.collecting(controller);
        collection.underway = 0;
        self.room_at(port, controller);
        self.next_unit(port, controller);
    }

    /// The unit's slices are not needed any more, and its blocks are free as soon as nothing else needs them.
    fn free_collected(&mut self, port: &mut Port<'_>, controller: usize) {
        let (collection, region) = self.collecting(controller);
        for slice in collection.migrated.drain(..) {
            region.migrated(slice);
        }
        for &block in &collection.unit {
            region.voided(block);
        }
        self.free_unneeded(port, controller);
    }

    /// Frees the collected blocks that nothing needs any more: header and index entry say so.
    pub(super) fn free_unneeded(&mut self, port: &mut Port<'_>, controller: usize) {
        for block in self.controllers[controller].region.take_unneeded(port) {
            if !self.rules.void_is_awaited() {
                self.freed(port, controller, block);
                continue;
            }
            let region = &self.controllers[controller].region;
            let header = Header { number: block, next: 0, state: BlockState::Unused };
            let after = region.write_header(port, header, WriteOrder::NONE, None);
            port.emit(Event::BlockUnneeded { controller, block });
            let at = region.geometry.index(block);
            let index = request::Write::words(WriteClass::Metadata, at, &[0]).after(after);
            port.write_reported(index, Write::Freed { controller, block }, 0);
        }
    }

    /// A block is free.
    pub(super) fn freed(&mut self, port: &mut Port<'_>, controller: usize, block: u32) {
        self.controllers[controller].region.freed(block);
        self.room_at(port, controller);
    }
}
