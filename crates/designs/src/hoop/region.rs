//! OOP blocks and what a controller knows of them: allocation in round robin, states, the slice bitmap.

use super::Rules;
use super::event::Event;
use super::layout::{BlockState, Geometry, Header, NEXT_MAX, Sequence, SliceNumber, index_entry};
use super::protocol::{Port, Write};
use graven_base::memory::Addr;
use graven_machine::request::{self, WriteClass, WriteOrder};

/// A place for a commit record.
#[derive(Clone, Copy, Debug)]
pub struct Reserved {
    /// In which block.
    pub block: u32,
    pub addr: Addr,
    /// The transaction's place in commit order.
    pub sequence: Sequence,
    /// The block's header and index entry must be durable before the record.
    pub after: WriteOrder,
}

/// Knowledge of the controller about a block. All of it is lost with power.
#[derive(Clone, Debug)]
struct Block {
    state: BlockState,
    /// True if it is about to be free: header and index entry are on their way.
    leaving: bool,
    /// The sequence number with which it was opened.
    opened: Sequence,
    /// Header and index entry, in the order of writes.
    ready: WriteOrder,
    slices_used: u32,
    records_used: u32,
    /// Records of transactions that are not complete.
    incomplete: u32,
    /// The slice bitmap: data memory slices whose words are not at home yet.
    bitmap: Vec<u64>,
    live: u32,
    /// Reads of its slices under way for misses.
    readers: u32,
}

/// One controller's OOP region.
#[derive(Debug)]
pub struct Region {
    /// Places in the region.
    pub geometry: Geometry,
    blocks: Vec<Block>,
    /// In use or full, in the order in which they were opened.
    opened: Vec<u32>,
    /// Collected, and needed still.
    collected: Vec<u32>,
    current: Option<u32>,
    /// Block at which round robin continues.
    next: u32,
    free: u32,
    sequence: Sequence,
    rules: Rules,
}

impl Region {
    /// A region whose blocks are all free.
    pub fn new(geometry: Geometry, sequence: Sequence, rules: Rules) -> Region {
        let block = Block {
            state: BlockState::Unused,
            leaving: false,
            opened: sequence,
            ready: WriteOrder::NONE,
            slices_used: 0,
            records_used: 0,
            incomplete: 0,
            bitmap: Vec::new(),
            live: 0,
            readers: 0,
        };
        Region {
            blocks: vec![block; geometry.blocks as usize],
            opened: Vec::new(),
            collected: Vec::new(),
            current: None,
            next: 0,
            free: geometry.blocks,
            sequence,
            geometry,
            rules,
        }
    }

    /// The next sequence number is this one: the region has been in use before.
    pub fn go_on_from(&mut self, sequence: Sequence) {
        self.sequence = sequence;
    }

    /// The next data memory slice; opens a block for it if need be. `None`: there is no free one. `from`: the
    /// slice before it in its transaction.
    pub fn allocate(
        &mut self,
        port: &mut Port<'_>,
        from: Option<SliceNumber>,
    ) -> Option<SliceNumber> {
        let room = |b: &Block, data_slices| b.slices_used < data_slices;
        let data_slices = self.geometry.data_slices();
        let block = match self.current.filter(|&b| room(&self.blocks[b as usize], data_slices)) {
            Some(block) => block,
            None => self.open(port)?,
        };
        let used = &mut self.blocks[block as usize];
        let slice = self.geometry.data_slice(block, used.slices_used);
        if from.is_some_and(|from| self.geometry.distance(from, slice).abs() > NEXT_MAX) {
            port.fail(format!(
                "slices of one transaction lie more than {NEXT_MAX} slices apart: blocks that are not free come between"
            ));
            return None;
        }
        let at = (slice - self.geometry.first_data_slice(block)) as usize;
        used.slices_used += 1;
        used.bitmap[at / 64] |= 1 << (at % 64);
        used.live += 1;
        Some(slice)
    }

    /// Returns true if a commit record finds a place.
    pub fn can_reserve(&self) -> bool {
        let room = |b: u32| self.blocks[b as usize].records_used < self.geometry.records();
        self.current.is_some_and(room) || self.free > 0
    }

    /// Reserves the next place for a commit record, and with it a place in commit order.
    pub fn reserve(&mut self, port: &mut Port<'_>) -> Reserved {
        let room = |b: &u32| self.blocks[*b as usize].records_used < self.geometry.records();
        let block = match self.current.filter(room) {
            Some(block) => block,
            None => self.open(port).expect("the caller has asked"),
        };
        let used = &mut self.blocks[block as usize];
        let addr = self.geometry.record(block, used.records_used);
        used.records_used += 1;
        used.incomplete += 1;
        let sequence = self.sequence;
        self.sequence = sequence.next();
        let after = if self.rules.record_follows_index() { used.ready } else { WriteOrder::NONE };
        Reserved { block, addr, sequence, after }
    }

    /// Opens the next free block, round robin, and closes the one that was in use.
    fn open(&mut self, port: &mut Port<'_>) -> Option<u32> {
        let blocks = self.geometry.blocks;
        if self.free == 0 {
            return None;
        }
        let free = |b: &u32| self.blocks[*b as usize].state == BlockState::Unused;
        let number = (0..blocks).map(|i| (self.next + i) % blocks).find(free)?;
        let wraps = !self.blocks[number as usize].bitmap.is_empty();
        let skips = number != self.next;
        self.next = (number + 1) % blocks;
        self.free -= 1;
        if let Some(current) = self.current.take() {
            self.close(port, current, number);
        }
        port.emit(Event::BlockOpened { block: number, sequence: self.sequence, wraps, skips });
        let ready = self.write_opened(port, number);
        let words = (self.geometry.data_slices() as usize).div_ceil(64);
        let block = &mut self.blocks[number as usize];
        block.state = BlockState::InUse;
        (block.opened, block.ready) = (self.sequence, ready);
        (block.slices_used, block.records_used) = (0, 0);
        block.bitmap.clear();
        block.bitmap.resize(words, 0);
        self.opened.push(number);
        self.current = Some(number);
        Some(number)
    }

    /// Writes the header of a block that is opened, then its index entry; returns the latter's place in the order of
    /// writes.
    fn write_opened(&self, port: &mut Port<'_>, number: u32) -> WriteOrder {
        let start = self.geometry.block(number);
        let header = Header { number, next: 0, state: BlockState::InUse };
        let words = [header.word(), self.sequence.bits()];
        let (first, ready) = (port.order(), port.order());
        let header = request::Write::words(WriteClass::Metadata, start, &words);
        let (at, entry) = (self.geometry.index(number), [index_entry(start)]);
        let index = request::Write::words(WriteClass::Metadata, at, &entry);
        port.write(header.ordered(first), 0);
        port.write(index.ordered(ready).after(first), 0);
        ready
    }

    /// The block in use has no room: its header says so, and which block comes next.
    fn close(&mut self, port: &mut Port<'_>, number: u32, next: u32) {
        self.blocks[number as usize].state = BlockState::Full;
        let next = self.geometry.slice_of_block(next).into();
        let header = Header { number, next, state: BlockState::Full };
        self.write_header(port, header, WriteOrder::NONE, None);
    }

    /// Closes the block in use, so that it can be collected, if it has a record and another block is free.
    /// Returns whether it did.
    pub fn close_early(&mut self, port: &mut Port<'_>) -> bool {
        let has_records = |b: u32| self.blocks[b as usize].records_used > 0;
        self.current.is_some_and(has_records) && self.open(port).is_some()
    }

    /// Writes the first word of a header; returns its place in the order of writes.
    pub fn write_header(
        &self,
        port: &mut Port<'_>,
        header: Header,
        after: WriteOrder,
        about: Option<Write>,
    ) -> WriteOrder {
        let start = self.geometry.block(header.number);
        let write = request::Write::words(WriteClass::Metadata, start, &[header.word()]);
        let order = port.order();
        port.write_maybe_reported(write.ordered(order).after(after), about, 0);
        order
    }

    /// The full blocks whose records may be collected: the oldest ones, as far as all transactions with
    /// records in them are complete.
    pub fn collectable(&self) -> Vec<u32> {
        let incomplete = !self.rules.incomplete_blocks_wait();
        let ready = |b: &&u32| {
            let block = &self.blocks[**b as usize];
            block.state == BlockState::Full && (block.incomplete == 0 || incomplete)
        };
        self.opened.iter().take_while(ready).copied().collect()
    }

    /// Places of records in a block that have been given out.
    pub fn records_used(&self, block: u32) -> u32 {
        self.blocks[block as usize].records_used
    }

    /// The sequence number with which a block was opened.
    pub fn opened(&self, block: u32) -> Sequence {
        self.blocks[block as usize].opened
    }

    /// The transaction of a reserved place is complete: all its records are durable.
    pub fn complete(&mut self, block: u32) {
        self.blocks[block as usize].incomplete -= 1;
    }

    /// A block's records are void, durably.
    pub fn voided(&mut self, block: u32) {
        self.blocks[block as usize].state = BlockState::Gc;
        self.opened.retain(|&b| b != block);
        self.collected.push(block);
    }

    /// The words of a slice are at home.
    pub fn migrated(&mut self, slice: SliceNumber) {
        let block = self.geometry.block_of(slice);
        let at = slice - self.geometry.first_data_slice(block);
        let (word, bit) = (at as usize / 64, 1 << (at % 64));
        let block = &mut self.blocks[block as usize];
        if !self.rules.open_slices_keep_blocks() && block.bitmap[word] & bit == 0 {
            return;
        }
        assert!(block.bitmap[word] & bit != 0, "a slice goes home once");
        block.bitmap[word] &= !bit;
        // A block that was freed with open slices has lost their number.
        block.live = block.live.saturating_sub(1);
    }

    /// A miss begins to read a slice: its block stays.
    pub fn pin(&mut self, slice: SliceNumber) {
        self.blocks[self.geometry.block_of(slice) as usize].readers += 1;
    }

    /// Ends the reading of a slice.
    pub fn unpin(&mut self, slice: SliceNumber) {
        self.blocks[self.geometry.block_of(slice) as usize].readers -= 1;
    }

    /// The collected blocks that nothing is needed of any more: their headers are about to say so.
    pub fn take_unneeded(&mut self, port: &mut Port<'_>) -> Vec<u32> {
        let mut unneeded = Vec::new();
        for &number in &self.collected {
            let block = &mut self.blocks[number as usize];
            if block.leaving {
                continue;
            }
            if block.live > 0 && self.rules.open_slices_keep_blocks() {
                port.emit(Event::BlockKeptForSlices);
            } else if block.readers > 0 {
                port.emit(Event::BlockKeptForReaders);
            } else {
                block.leaving = true;
                unneeded.push(number);
            }
        }
        unneeded
    }

    /// A block is free, durably.
    pub fn freed(&mut self, number: u32) {
        self.collected.retain(|&b| b != number);
        let block = &mut self.blocks[number as usize];
        block.state = BlockState::Unused;
        block.leaving = false;
        block.live = 0;
        self.free += 1;
    }

    /// Number of blocks that are not free.
    pub fn blocks_taken(&self) -> u32 {
        self.geometry.blocks - self.free
    }

    /// Returns true if blocks are being freed.
    pub fn is_freeing(&self) -> bool {
        self.collected.iter().any(|&b| self.blocks[b as usize].leaving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use graven_base::memory::Image;
    use graven_machine::design::{DesignContext, plug};
    use graven_machine::machine::Machine;

    use super::super::protocol::Hoop;

    /// A test with a region of four blocks of six slices of data each.
    fn with_region(test: impl FnOnce(&mut Region, &mut Port<'_>)) {
        let config = crate::testing::defaults();
        let mut machine = Machine::new(&config, Image::new());
        let context = DesignContext::new(config, 1, Addr(1 << 30), Addr(2 << 30));
        let mut hoop = plug(Hoop::new(&context).expect("the region is large enough"));
        let geometry = Geometry::within(Addr(4096), 5 << 10, 1 << 10);
        assert_eq!((geometry.blocks, geometry.data_slices()), (4, 6));
        let mut region = Region::new(geometry, Sequence::of(0), Rules::of(&context));
        test(&mut region, &mut hoop.parts(&mut machine).1);
    }

    fn allocate(region: &mut Region, port: &mut Port<'_>, slices: usize) -> Vec<SliceNumber> {
        (0..slices).map(|_| region.allocate(port, None).expect("there is room")).collect()
    }

    fn collect(region: &mut Region, port: &mut Port<'_>) -> Vec<u32> {
        for block in region.collectable() {
            region.voided(block);
        }
        region.take_unneeded(port)
    }

    #[test]
    fn a_collected_block_stays_for_slices_and_readers() {
        with_region(|region, port| {
            let slices = allocate(region, port, 7);
            assert_eq!(region.collectable(), [0], "the seventh is in block 1, which is in use");
            region.pin(slices[5]);
            for &slice in &slices[..5] {
                region.migrated(slice);
            }
            assert!(collect(region, port).is_empty(), "the sixth slice is not at home");
            region.migrated(slices[5]);
            assert!(region.take_unneeded(port).is_empty(), "a miss reads it");
            region.unpin(slices[5]);
            assert_eq!(region.take_unneeded(port), [0]);
            assert!(region.take_unneeded(port).is_empty() && region.is_freeing());
            region.freed(0);
            assert!(!region.is_freeing());
        });
    }

    /// Claim `hoop-wear-round-robin`.
    #[test]
    fn all_blocks_are_used_alike() {
        with_region(|region, port| {
            let mut uses = [0; 4];
            for _ in 0..40 {
                let slices = allocate(region, port, 6);
                uses[region.geometry.block_of(slices[0]) as usize] += 1;
                slices.into_iter().for_each(|slice| region.migrated(slice));
                for block in collect(region, port) {
                    region.freed(block);
                }
            }
            assert_eq!(uses, [10; 4]);
        });
    }

    #[test]
    fn records_that_a_block_has_no_room_for_go_to_the_next() {
        with_region(|region, port| {
            assert_eq!((region.geometry.records(), region.can_reserve()), (16, true));
            let places: Vec<u32> = (0..64).map(|_| region.reserve(port).block).collect();
            assert!(places.iter().enumerate().all(|(i, &block)| block == i as u32 / 16));
            assert!(!region.can_reserve(), "four blocks of sixteen");
        });
    }

    #[test]
    fn blocks_are_collected_in_order_and_only_when_their_transactions_are_complete() {
        with_region(|region, port| {
            let fill = |region: &mut Region, port: &mut Port<'_>| {
                allocate(region, port, 6);
                region.reserve(port)
            };
            let first = fill(region, port);
            let second = fill(region, port);
            fill(region, port);
            assert_eq!((first.block, second.block), (0, 1));
            assert_eq!(second.sequence.since(first.sequence), Some(1));
            region.complete(second.block);
            assert!(
                region.collectable().is_empty(),
                "block 0 has a transaction that is not complete"
            );
            region.complete(first.block);
            assert_eq!(region.collectable(), [0, 1]);
            assert!(region.close_early(port), "block 2 has a record");
            assert!(!region.close_early(port), "block 3 has none");
        });
    }
}
