//! States of the design that are worth reaching.

graven_machine::cover_points! {
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
