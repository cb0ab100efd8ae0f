//! What happens in the design: what is counted of it, which cover points it reaches, what a timeline says.

use graven_base::counters;
use graven_base::memory::{Addr, LineAddr};
use graven_base::time::Cycle;
use graven_machine::cover_points;
use graven_machine::design::{DesignEvent, Observation};

use crate::out_of_place;

use super::collect::Reason;
use super::layout::{Record, Sequence, SliceNumber};

counters! {
    /// What the design counts.
    pub struct Counters {
        /// Stores merged into a log entry that was still buffered.
        log_entries_merged: Count, "entries";
        /// Of the lines, those read from their home and from elsewhere in parallel.
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

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// A word replaced its older version in the open slice.
    WordReplaced,
    /// A word took a place in the open slice; the mapping tables have so many entries now.
    WordPacked { entries: usize },
    /// So many words of a line go from a full slice into the next one.
    LineMoves { line: LineAddr, words: usize },
    /// A store finds no room in the OOP data buffer.
    BufferFull,
    /// A store finds no entry in the mapping table.
    MappingFull,
    /// A slice of so many words leaves for the region.
    SliceLeaves { thread: usize, slice: SliceNumber, words: usize },
    /// A dirty line left the caches; slices with words of it were in the buffer or not.
    Evicted { line: LineAddr, while_open: bool },
    /// The eviction buffer has all of a line that is missed.
    EvictionBufferHit,
    /// A slice with words of a line that is missed is in the OOP data buffer.
    ReadFromDataBuffer,
    /// A line that is missed is read from home, and from these slices.
    Missed { line: LineAddr, slices: Vec<SliceNumber> },
    /// A transaction has slices at several controllers.
    TwoPhases,
    /// A record of a thread's transaction is sent.
    RecordSent { thread: usize, record: Record, addr: Addr },
    /// A block is opened; it had been in use before, or others were passed that were not free.
    BlockOpened { block: u32, sequence: Sequence, wraps: bool, skips: bool },
    /// The block in use was closed so that it can be collected.
    ClosedEarly,
    /// A thread has waited so long for a collection.
    WaitedForCollection { cycles: Cycle },
    /// A collection of these blocks begins; a transaction is open or not.
    CollectionBegins { controller: usize, blocks: Vec<u32>, reason: Reason, while_open: bool },
    /// A chain of slices goes on in another block.
    ChainAcrossBlocks,
    /// Several versions of a word were found.
    Coalesced,
    /// So many words were found, and so many of them go home.
    UnitRead { found: u64, migrated: u64 },
    /// A line finds no room in the eviction buffer.
    EvictionBufferFull,
    /// A line goes home, of which younger blocks have newer words or not; so many are in the eviction buffers.
    LineGoesHome { newer_stays: bool, buffered: usize },
    /// A collected block stays for slices of other transactions.
    BlockKeptForSlices,
    /// A collected block stays because a miss reads from it.
    BlockKeptForReaders,
    /// Nothing needs a collected block any more.
    BlockUnneeded { controller: usize, block: u32 },
    /// A collection is over.
    Collected { controller: usize },
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    #[inline(always)]
    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::WordReplaced => to.count().log_entries_merged += 1,
            Event::WordPacked { entries } => {
                let max = &mut to.count().collection.mapping_entries_max;
                *max = (*max).max(entries as u64);
            }
            Event::LineMoves { line, words } => {
                to.count().slice_words_moved += words as u64;
                to.cover(Cover::LineMoved);
                to.explain(|| format!("{words} words of {line} go into the next slice"));
            }
            Event::BufferFull => to.cover(Cover::BufferFull),
            Event::MappingFull => to.cover(Cover::MappingFull),
            Event::SliceLeaves { thread, slice, words } => {
                to.count().slices_written += 1;
                to.count().slice_words += words as u64;
                to.explain(|| format!("thread {thread}: slice {slice} with {words} words leaves"));
            }
            Event::Evicted { line, while_open } => {
                to.cover_if(while_open, Cover::EvictedWhileOpen);
                to.explain(|| format!("{line} leaves the caches; its words are in slices"));
            }
            Event::EvictionBufferHit => to.cover(Cover::EvictionBufferHit),
            Event::ReadFromDataBuffer => to.cover(Cover::ReadFromDataBuffer),
            Event::Missed { line, slices } => {
                to.count().fills_parallel += u64::from(!slices.is_empty());
                to.cover_if(slices.len() > 1, Cover::SeveralSlicesRead);
                to.explain(|| format!("{line} is read from home and slices {slices:?}"));
            }
            Event::TwoPhases => to.cover(Cover::TwoPhases),
            Event::RecordSent { thread, record, addr } => {
                to.explain(|| {
                    format!("thread {thread}: record {:#x} goes to {addr}", record.word())
                });
            }
            Event::BlockOpened { block, sequence, wraps, skips } => {
                to.cover_if(wraps, Cover::RegionWrapped);
                to.cover_if(skips, Cover::BlockSkipped);
                to.explain(|| {
                    format!("block {block} is opened with sequence number {}", sequence.bits())
                });
            }
            Event::ClosedEarly => to.cover(Cover::ClosedEarly),
            Event::WaitedForCollection { cycles } => {
                to.count().collection.gc_stall_cycles += cycles
            }
            Event::CollectionBegins { controller, blocks, reason, while_open } => {
                to.count().collection.gc_passes += 1;
                to.count().collection.gc_on_demand += u64::from(reason != Reason::Period);
                to.cover_if(blocks.len() > 1, Cover::SeveralBlocks);
                to.cover_if(while_open, Cover::CollectedWhileOpen);
                to.explain(|| {
                    format!("controller {controller} collects blocks {blocks:?}: {reason:?}")
                });
            }
            Event::ChainAcrossBlocks => to.cover(Cover::ChainAcrossBlocks),
            Event::Coalesced => to.cover(Cover::Coalesced),
            Event::UnitRead { found, migrated } => {
                to.count().collection.gc_words_found += found;
                to.count().collection.gc_words_migrated += migrated;
            }
            Event::EvictionBufferFull => to.cover(Cover::EvictionBufferFull),
            Event::LineGoesHome { newer_stays, buffered } => {
                let max = &mut to.count().eviction_buffer_max;
                *max = (*max).max(buffered as u64);
                to.cover_if(newer_stays, Cover::NewerStays);
            }
            Event::BlockKeptForSlices => to.cover(Cover::BlockKeptForSlices),
            Event::BlockKeptForReaders => to.cover(Cover::BlockKeptForReaders),
            Event::BlockUnneeded { controller, block } => {
                to.explain(|| {
                    format!("controller {controller}: block {block} is about to be free")
                });
            }
            Event::Collected { controller } => {
                to.explain(|| format!("controller {controller} has collected"));
            }
        }
    }
}
