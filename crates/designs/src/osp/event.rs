//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven_base::counters;
use graven_base::memory::{LineAddr, WORDS_PER_LINE};
use graven_base::time::Cycle;
use graven_machine::cover_points;

use crate::events::events;
use crate::out_of_place;

use super::journal::Of;
use super::layout::Slot;

counters! {
    /// Counters of the design.
    pub struct Counters {
        /// Log entries created.
        log_entries: Count, "entries";
        /// Records truncated from the log.
        log_records_truncated: Count, "records";
        /// Translations that a core's TLB lacked, of those that carry a design's metadata.
        translation_misses: Count, "accesses";
        /// Times a line's newest version got another place in memory than the one before.
        lines_remapped: Count, "lines";
    }
    includes { collection: out_of_place::Counters }
}

cover_points! {
    EvictedBeforeCommit = "evicted-before-commit", "a line with uncommitted words went to the place that is not committed";
    EvictionHeld = "eviction-held", "a line was evicted to the place that an unfinished commit still needs";
    ReadFromShadow = "read-from-shadow", "a miss was served from a shadow page";
    ReadAgain = "read-again", "a line had moved to its other place while it was read";
    CommitWaitsForEviction = "commit-waits-for-eviction", "a commit waited for a line that had been evicted before";
    SharedLineCommitted = "shared-line-committed", "a line was committed without the words of another open transaction";
    SharedLineInMemory = "shared-line-in-memory", "it had left the caches, so that those words had to move to its other place";
    RecordWaitsForPage = "record-waits-for-page", "a record waited for an earlier one, or the home word, of its page";
    RecordOfLines = "record-of-lines", "a journal record took more than one line";
    JournalWrapped = "journal-wrapped", "an entry took the place of an older one";
    JournalFull = "journal-full", "a record waited for room in the journal";
    Checkpoint = "checkpoint", "the table took over what the journal said";
    ShotDown = "shot-down", "translations were shot down";
    Consolidated = "consolidated", "lines of a shadow page were copied home";
    FreedUncopied = "freed-uncopied", "a shadow page was free without a copy";
    ConsolidationStopped = "consolidation-stopped", "a store to the page stopped its consolidation";
    StoreWhileRecorded = "store-while-recorded", "a page was stored to while the record of its consolidation was on its way";
    StoreWaitsForPage = "store-waits-for-page", "a store waited for a free shadow page";
    ShadowPageReused = "shadow-page-reused", "a shadow page went to another home page";
}

events! {
    /// Something that happens; `slot` is the number of a shadow page.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum Event;

    /// A page got a shadow page, which another may have had before; `in_use` are in use.
    PageAllotted { in_use: usize, reused: bool } =>
        raises collection.mapping_entries_max to in_use as u64; covers ShadowPageReused if reused;
    /// A store waits for a free shadow page.
    StoreWaitsForPage => covers StoreWaitsForPage;
    /// A store has waited so long for a free shadow page.
    StoreWaited { cycles: Cycle } => counts collection.gc_stall_cycles += cycles;
    /// A page is stored to while the record of its consolidation is on its way.
    StoreWhileRecorded => covers StoreWhileRecorded;
    /// A line's current bit has flipped.
    Flipped => counts lines_remapped += 1;
    /// A TLB has fetched a page's metadata.
    TranslationMissed => counts translation_misses += 1;
    /// Cores with an old translation of a page lose it; bit i is core i.
    ShotDown { slot: Slot, cores: u64 } =>
        covers ShotDown;
        says "shadow page {slot}: translations of cores {cores:#b} are shot down";
    /// A dirty line left the caches, for its place at home or in a shadow page. It may be held back for a commit that
    /// still needs the content of that place, and have uncommitted words.
    Evicted { line: LineAddr, to_shadow: Option<Slot>, held: bool, uncommitted: bool } =>
        covers EvictionHeld if held, EvictedBeforeCommit if uncommitted;
        does |to| if let Some(slot) = to_shadow {
            to.explain(|| format!("line {} goes to shadow page {slot}", line.addr()));
        };
    /// A line that is missed is read from a shadow page.
    ReadFromShadow => covers ReadFromShadow;
    /// A line that was read had moved to its other place meanwhile.
    ReadAgain => covers ReadAgain;
    /// A dirty line of a commit leaves the L1.
    Flushed => does |to| to.count_forced_writebacks(1);
    /// A line is committed without the words of other open transactions; a cache holds it dirty, or it is in memory.
    SharedLineCommitted { dirty: bool } =>
        counts lines_remapped += 1; covers SharedLineCommitted, SharedLineInMemory if !dirty;
        does |to| to.count_forced_writebacks(u64::from(dirty));
    /// A commit waits for a line that was evicted before.
    CommitWaitsForEviction => covers CommitWaitsForEviction;
    /// A commit has sent its lines.
    LinesSent { thread: usize, lines: usize } => says "thread {thread} sends {lines} lines";
    /// A record waits for an earlier one, or the home word, of its page.
    RecordWaitsForPage => covers RecordWaitsForPage;
    /// A record finds no room in the journal.
    JournalFull => covers JournalFull;
    /// A commit's record has waited so long for room in the journal.
    RecordWaited { cycles: Cycle } => counts collection.gc_stall_cycles += cycles;
    /// A record goes to the journal: its first entry, how many there are, and in how many lines. Older ones may have
    /// been in its place.
    RecordSent { of: Of, first: u64, entries: u64, lines: usize, wraps: bool } =>
        counts log_entries += entries; covers JournalWrapped if wraps, RecordOfLines if lines > 1;
        says "{of:?}: journal entries {first} to {}", first + entries - 1;
    /// A commit's record is durable.
    Recorded { thread: usize } => says "the record of thread {thread}'s commit is durable";
    /// The table takes over what the journal says before this entry.
    CheckpointBegins { upto: u64, on_demand: bool } =>
        counts collection.gc_passes += 1, collection.gc_on_demand += u64::from(on_demand);
        covers Checkpoint;
        says "checkpoint of the journal up to entry {upto}";
    /// Journal entries are not needed any longer.
    Truncated { entries: u64 } => counts log_records_truncated += entries;
    /// A page has nothing in its shadow page, which is free without a copy.
    FreedUncopied => covers FreedUncopied;
    /// These lines of a shadow page are to be copied home; stores wait for it or not.
    ConsolidationBegins { slot: Slot, lines: u64, on_demand: bool } =>
        counts collection.gc_passes += 1, collection.gc_on_demand += u64::from(on_demand);
        says "shadow page {slot} is consolidated: lines {lines:#b}";
    /// A line of a shadow page goes home.
    LineCopied =>
        counts collection.gc_words_found += WORDS_PER_LINE as u64,
            collection.gc_words_migrated += WORDS_PER_LINE as u64;
    /// A page is written to while it is consolidated.
    ConsolidationStopped => covers ConsolidationStopped;
    /// The record of a consolidation is durable.
    Consolidated => covers Consolidated;
    /// A shadow page is free.
    PageFree { slot: Slot } => says "shadow page {slot} is free";
}
