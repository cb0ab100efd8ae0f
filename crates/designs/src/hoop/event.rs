//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::memory::{Addr, LineAddr};
use graven_base::time::Cycle;
use graven_machine::cover_points;

use crate::events::events;
use crate::out_of_place;

use super::collect::Reason;
use super::layout::{Record, Sequence, SliceNumber};

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Stores merged into a log entry that was still buffered.
        log_entries_merged: Count, "entries";
        /// Lines of misses that were read from their home and from elsewhere in parallel.
        fills_parallel: Count, "lines";
        /// Memory slices written to an OOP region.
        slices_written: Count, "slices";
        /// Words packed into them.
        slice_words: Count, "words";
        /// Words that went from a full slice into the next one, so that their line stays in one.
        slice_words_moved: Count, "words";
        /// Largest number of lines in a design's eviction buffer.
        eviction_buffer_max: Gauge, "lines";
    }
    includes { collection: out_of_place::Counters }
}

cover_points! {
    LineMoved = "line-moved", "words of a line went from a full slice into the next one";
    BufferFull = "buffer-full", "a store waited because its slices were on their way";
    MappingFull = "mapping-full", "a store waited for an entry of the mapping table";
    ClosedEarly = "closed-early", "the block in use was closed so that it could be collected";
    RegionWrapped = "region-wrapped", "round robin came back to a block that had been in use";
    BlockSkipped = "block-skipped", "round robin passed a block that was not free";
    EvictedWhileOpen = "evicted-while-open", "a line left the caches while slices with words of it were in the buffer";
    ReadFromDataBuffer = "read-from-data-buffer", "a miss found words of its line in the OOP data buffer";
    SeveralSlicesRead = "several-slices-read", "a miss read several slices";
    EvictionBufferHit = "eviction-buffer-hit", "the eviction buffer served a miss";
    EvictionBufferFull = "eviction-buffer-full", "a collection waited for room in the eviction buffer";
    Coalesced = "coalesced", "a collection found several versions of a word";
    NewerStays = "newer-stays", "a collection brought a word home of which a younger block has a newer version";
    ChainAcrossBlocks = "chain-across-blocks", "a collection followed a transaction into another block";
    BlockKeptForSlices = "block-kept-for-slices", "a collected block stayed for slices of other transactions";
    BlockKeptForReaders = "block-kept-for-readers", "a collected block stayed because a miss was reading from it";
    CollectedWhileOpen = "collected-while-open", "a collection began while a transaction was open";
    TwoPhases = "two-phases", "a transaction committed in two phases";
    SeveralBlocks = "several-blocks", "a collection took several blocks";
}

events! {
    /// Something that happens.
    #[derive(Clone, Debug)]
    pub enum Event;

    /// A word replaced its older version in the open slice.
    WordReplaced => counts log_entries_merged += 1;
    /// A word took a place in the open slice; the mapping tables have `entries` entries now.
    WordPacked { entries: usize } =>
        raises collection.mapping_entries_max to entries as u64;
    /// Words of a line go from a full slice into the next one.
    LineMoves { line: LineAddr, words: usize } =>
        counts slice_words_moved += words as u64; covers LineMoved;
        says "{words} words of {line} go into the next slice";
    /// A store finds no room in the OOP data buffer.
    BufferFull => covers BufferFull;
    /// A store finds no entry in the mapping table.
    MappingFull => covers MappingFull;
    /// A slice of `words` words leaves for the region.
    SliceLeaves { thread: usize, slice: SliceNumber, words: usize } =>
        counts slices_written += 1, slice_words += words as u64;
        says "thread {thread}: slice {slice} with {words} words leaves";
    /// A dirty line left the caches; slices with words of it were in the buffer or not.
    Evicted { line: LineAddr, while_open: bool } =>
        covers EvictedWhileOpen if while_open;
        says "{line} leaves the caches; its words are in slices";
    /// The eviction buffer has all of a line that is missed.
    EvictionBufferHit => covers EvictionBufferHit;
    /// A slice with words of a line that is missed is in the OOP data buffer.
    ReadFromDataBuffer => covers ReadFromDataBuffer;
    /// A line that is missed is read from home, and from these slices.
    Missed { line: LineAddr, slices: Vec<SliceNumber> } =>
        counts fills_parallel += u64::from(!slices.is_empty());
        covers SeveralSlicesRead if slices.len() > 1;
        says "{line} is read from home and slices {slices:?}";
    /// A transaction has slices at several controllers.
    TwoPhases => covers TwoPhases;
    /// A record of a thread's transaction is sent.
    RecordSent { thread: usize, record: Record, addr: Addr } =>
        says "thread {thread}: record {:#x} goes to {addr}", record.word();
    /// A block is opened; it had been in use before, or others were passed that were not free.
    BlockOpened { block: u32, sequence: Sequence, wraps: bool, skips: bool } =>
        covers RegionWrapped if wraps, BlockSkipped if skips;
        says "block {block} is opened with sequence number {}", sequence.bits();
    /// The block in use was closed so that it can be collected.
    ClosedEarly => covers ClosedEarly;
    /// A thread has waited so long for a collection.
    WaitedForCollection { cycles: Cycle } => counts collection.gc_stall_cycles += cycles;
    /// A collection of these blocks begins; a transaction is open or not.
    CollectionBegins { controller: usize, blocks: Vec<u32>, reason: Reason, while_open: bool } =>
        counts collection.gc_passes += 1,
            collection.gc_on_demand += u64::from(reason != Reason::Period);
        covers SeveralBlocks if blocks.len() > 1, CollectedWhileOpen if while_open;
        says "controller {controller} collects blocks {blocks:?}: {reason:?}";
    /// A chain of slices continues in another block.
    ChainAcrossBlocks => covers ChainAcrossBlocks;
    /// Several versions of a word were found.
    Coalesced => covers Coalesced;
    /// A unit was read: `found` versions of words, of which `migrated` go home.
    UnitRead { found: u64, migrated: u64 } =>
        counts collection.gc_words_found += found, collection.gc_words_migrated += migrated;
    /// A line finds no room in the eviction buffer.
    EvictionBufferFull => covers EvictionBufferFull;
    /// A line goes home, of which younger blocks have newer words or not; `buffered` lines are in
    /// the eviction buffers.
    LineGoesHome { newer_stays: bool, buffered: usize } =>
        raises eviction_buffer_max to buffered as u64; covers NewerStays if newer_stays;
    /// A collected block stays for slices of other transactions.
    BlockKeptForSlices => covers BlockKeptForSlices;
    /// A collected block stays because a miss reads from it.
    BlockKeptForReaders => covers BlockKeptForReaders;
    /// Nothing needs a collected block any more.
    BlockUnneeded { controller: usize, block: u32 } =>
        says "controller {controller}: block {block} is about to be free";
    /// A collection is over.
    Collected { controller: usize } => says "controller {controller} has collected";
}
