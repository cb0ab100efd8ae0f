//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LineAddr, WordMask};
use graven_base::time::Cycle;
use graven_machine::cover_points;

use crate::events::events;
use crate::out_of_place;

use super::log::Sequence;

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
        /// Stores merged into a log entry that was still buffered.
        log_entries_merged: Count, "entries";
        /// Records truncated from the log.
        log_records_truncated: Count, "records";
        /// Lines of misses that were read from their home and from elsewhere in parallel.
        fills_parallel: Count, "lines";
        /// Searches of a design's index in DRAM that threads executed, for their loads and to update it.
        index_lookups: Count, "searches";
        /// Nodes of the index that these visited.
        index_nodes_visited: Count, "nodes";
    }
    includes { collection: out_of_place::Counters }
}

cover_points! {
    FillFromSeveralLines = "fill-from-several-lines", "a line was read from several lines of the log";
    FillFromHomeToo = "fill-from-home-too", "a line was read from its home and the log in parallel";
    FillOfOpenWords = "fill-of-open-words", "a line was read that has words of an open transaction";
    FillOfCommittingWords = "fill-of-committing-words", "a line was read whose words are on their way into the log";
    RangeCut = "range-cut", "a newer range of home addresses cut an older one";
    SegmentFull = "segment-full", "a transaction found no room in its thread's segment";
    SegmentReused = "segment-reused", "a segment was opened for the second time";
    WaitsForSegment = "waits-for-segment", "a thread waited for a free segment";
    WaitsForIndex = "waits-for-index", "a thread waited for room in the index";
    WaitsForAppends = "waits-for-appends", "a collection waited for transactions on their way into the log";
    CommitDuringCollection = "commit-during-collection", "a transaction committed while a collection was under way";
    OlderVersionFound = "older-version-found", "a collection found two versions of a word";
    NewerVersionStays = "newer-version-stays", "a word went home of which the log has a newer version";
    FreedWhileRead = "freed-while-read", "a segment was collected while a line of it was being read";
    OpenSegmentCollected = "open-segment-collected", "a collection closed a segment that was not full";
}

events! {
    /// Something that happens.
    #[derive(Clone, Copy, Debug)]
    pub enum Event;

    /// A transaction stored again to a word of its write set.
    Overwritten => counts log_entries_merged += 1;
    /// A thread looked a home address up in the index, and visited `nodes` nodes.
    LookedUp { nodes: u32 } => counts index_lookups += 1, index_nodes_visited += u64::from(nodes);
    /// A transaction has to wait for a collection: the index has no room for its entries.
    WaitsForIndex => covers WaitsForIndex;
    /// A transaction has to wait for a collection: no segment is free.
    WaitsForSegment => covers WaitsForSegment;
    /// A transaction found no room in its thread's segment.
    SegmentFull => covers SegmentFull;
    /// A segment is opened that was in use before.
    SegmentReused => covers SegmentReused;
    /// A transaction has waited for collections so long.
    Waited { cycles: Cycle } => counts collection.gc_stall_cycles += cycles;
    /// A thread appends entries to the log, from an address on.
    Appends { thread: ThreadId, entries: usize, at: Addr, sequence: Sequence } =>
        counts log_entries += entries as u64;
        says "thread {thread} appends {entries} entries at {at}, to commit as {sequence}";
    /// An entry's range of home addresses cuts an older one in the index.
    RangeCut => covers RangeCut;
    /// The entries are in the index, which has `ranges` ranges now.
    Mapped { ranges: usize } => raises collection.mapping_entries_max to ranges as u64;
    /// A thread sends its commit record.
    RecordSent { thread: ThreadId, sequence: Sequence } =>
        says "thread {thread} sends its commit record ({sequence})";
    /// A transaction committed while a collection was under way.
    CommittedDuringCollection => covers CommitDuringCollection;
    /// A line of memory is read for a missed line; a write to it is or is not on its way into the log.
    ReadForMiss { missed: LineAddr, from: LineAddr, committing: bool } =>
        covers FillOfCommittingWords if committing;
        says "{missed} is read from {from}";
    /// All reads for a missed line are sent: `lines`, of which `of_log` go to the log; some words
    /// are at home, some in write sets, or none.
    MissSent { lines: u32, of_log: u32, at_home: bool, open: bool } =>
        counts fills_parallel += u64::from(lines > 1 && at_home);
        covers FillOfOpenWords if open, FillFromHomeToo if of_log > 0 && at_home,
            FillFromSeveralLines if of_log > 1;
    /// A collection closed a segment that was not full.
    OpenSegmentClosed => covers OpenSegmentCollected;
    /// A collection of segments begins; it may have to wait for transactions on their way into the
    /// log.
    CollectionBegins { segments: usize, limit: Sequence, on_demand: bool, waits: bool } =>
        counts collection.gc_passes += 1, collection.gc_on_demand += u64::from(on_demand);
        covers WaitsForAppends if waits;
        says "a collection of {segments} segments begins, up to transaction {limit}";
    /// A collection has found `versions` versions of `words` words.
    NewestChosen { versions: u64, words: u64 } =>
        counts collection.gc_words_found += versions, collection.gc_words_migrated += words;
        covers OlderVersionFound if versions > words;
    /// These words of a line go home.
    WordsGoHome { line: LineAddr, mask: WordMask } => says "words {mask:#010b} of {line} go home";
    /// The head moves to a transaction.
    HeadMoves { to: Sequence } => says "the head moves to transaction {to}";
    /// A word went home of which the log has a newer version.
    NewerVersionStays => covers NewerVersionStays;
    /// A collected segment is not free yet: a line of it is being read.
    FreedWhileRead => covers FreedWhileRead;
    /// A collection of transactions is over.
    CollectionOver { transactions: u64 } =>
        counts log_records_truncated += transactions;
        says "the collection is over";
}
