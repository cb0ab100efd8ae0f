//! What happens in the design: what is counted of it, which cover points it reaches, what a timeline says.

use graven_base::counters;
use graven_base::memory::{LineAddr, WORDS_PER_LINE};
use graven_base::time::Cycle;
use graven_machine::cover_points;
use graven_machine::design::{DesignEvent, Observation};

use crate::out_of_place;

use super::journal::Of;
use super::layout::Slot;

counters! {
    /// What the design counts.
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

/// Something that happens; `slot` is the number of a shadow page.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A page got a shadow page, which another may have had before; so many are in use.
    PageAllotted { in_use: usize, reused: bool },
    /// A store waits for a free shadow page.
    StoreWaitsForPage,
    /// A store has waited so long for a free shadow page.
    StoreWaited { cycles: Cycle },
    /// A page is stored to while the record of its consolidation is on its way.
    StoreWhileRecorded,
    /// A line's current bit has flipped.
    Flipped,
    /// A TLB has fetched a page's metadata.
    TranslationMissed,
    /// Cores with an old translation of a page lose it; bit i is core i.
    ShotDown { slot: Slot, cores: u64 },
    /// A dirty line left the caches, for its place at home or in a shadow page. It may be held back for a commit that
    /// still needs what is there, and have uncommitted words.
    Evicted { line: LineAddr, to_shadow: Option<Slot>, held: bool, uncommitted: bool },
    /// A line that is missed is read from a shadow page.
    ReadFromShadow,
    /// A line that was read had moved to its other place meanwhile.
    ReadAgain,
    /// A dirty line of a commit leaves the L1.
    Flushed,
    /// A line is committed without the words of other open transactions; a cache holds it dirty, or it is in memory.
    SharedLineCommitted { dirty: bool },
    /// A commit waits for a line that was evicted before.
    CommitWaitsForEviction,
    /// A commit has sent so many lines.
    LinesSent { thread: usize, lines: usize },
    /// A record waits for an earlier one, or the home word, of its page.
    RecordWaitsForPage,
    /// A record finds no room in the journal.
    JournalFull,
    /// A commit's record has waited so long for room in the journal.
    RecordWaited { cycles: Cycle },
    /// A record goes to the journal: its first entry, how many there are, and in how many lines. Older ones may have
    /// been in its place.
    RecordSent { of: Of, first: u64, entries: u64, lines: usize, wraps: bool },
    /// A commit's record is durable.
    Recorded { thread: usize },
    /// The table takes over what the journal says before this entry.
    CheckpointBegins { upto: u64, on_demand: bool },
    /// So many journal entries are not needed any longer.
    Truncated { entries: u64 },
    /// A page has nothing in its shadow page, which is free without a copy.
    FreedUncopied,
    /// These lines of a shadow page are to be copied home; stores wait for it or not.
    ConsolidationBegins { slot: Slot, lines: u64, on_demand: bool },
    /// A line of a shadow page goes home.
    LineCopied,
    /// A page is written to while it is consolidated.
    ConsolidationStopped,
    /// The record of a consolidation is durable.
    Consolidated,
    /// A shadow page is free.
    PageFree { slot: Slot },
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    #[inline(always)]
    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::PageAllotted { in_use, reused } => {
                let max = &mut to.count().collection.mapping_entries_max;
                *max = (*max).max(in_use as u64);
                to.cover_if(reused, Cover::ShadowPageReused);
            }
            Event::StoreWaitsForPage => to.cover(Cover::StoreWaitsForPage),
            Event::StoreWaited { cycles } | Event::RecordWaited { cycles } => {
                to.count().collection.gc_stall_cycles += cycles;
            }
            Event::StoreWhileRecorded => to.cover(Cover::StoreWhileRecorded),
            Event::Flipped => to.count().lines_remapped += 1,
            Event::TranslationMissed => to.count().translation_misses += 1,
            Event::ShotDown { slot, cores } => {
                to.cover(Cover::ShotDown);
                to.explain(|| {
                    format!("shadow page {slot}: translations of cores {cores:#b} are shot down")
                });
            }
            Event::Evicted { line, to_shadow, held, uncommitted } => {
                to.cover_if(held, Cover::EvictionHeld);
                to.cover_if(uncommitted, Cover::EvictedBeforeCommit);
                if let Some(slot) = to_shadow {
                    to.explain(|| format!("line {} goes to shadow page {slot}", line.addr()));
                }
            }
            Event::ReadFromShadow => to.cover(Cover::ReadFromShadow),
            Event::ReadAgain => to.cover(Cover::ReadAgain),
            Event::Flushed => to.count_forced_writebacks(1),
            Event::SharedLineCommitted { dirty } => {
                to.count_forced_writebacks(u64::from(dirty));
                to.count().lines_remapped += 1;
                to.cover(Cover::SharedLineCommitted);
                to.cover_if(!dirty, Cover::SharedLineInMemory);
            }
            Event::CommitWaitsForEviction => to.cover(Cover::CommitWaitsForEviction),
            Event::LinesSent { thread, lines } => {
                to.explain(|| format!("thread {thread} sends {lines} lines"));
            }
            Event::RecordWaitsForPage => to.cover(Cover::RecordWaitsForPage),
            Event::JournalFull => to.cover(Cover::JournalFull),
            Event::RecordSent { of, first, entries, lines, wraps } => {
                to.count().log_entries += entries;
                to.cover_if(wraps, Cover::JournalWrapped);
                to.cover_if(lines > 1, Cover::RecordOfLines);
                to.explain(|| {
                    format!("{of:?}: journal entries {first} to {}", first + entries - 1)
                });
            }
            Event::Recorded { thread } => {
                to.explain(|| format!("the record of thread {thread}'s commit is durable"));
            }
            Event::CheckpointBegins { upto, on_demand } => {
                to.count().collection.gc_passes += 1;
                to.count().collection.gc_on_demand += u64::from(on_demand);
                to.cover(Cover::Checkpoint);
                to.explain(|| format!("checkpoint of the journal up to entry {upto}"));
            }
            Event::Truncated { entries } => to.count().log_records_truncated += entries,
            Event::FreedUncopied => to.cover(Cover::FreedUncopied),
            Event::ConsolidationBegins { slot, lines, on_demand } => {
                to.count().collection.gc_passes += 1;
                to.count().collection.gc_on_demand += u64::from(on_demand);
                to.explain(|| format!("shadow page {slot} is consolidated: lines {lines:#b}"));
            }
            Event::LineCopied => {
                to.count().collection.gc_words_found += WORDS_PER_LINE as u64;
                to.count().collection.gc_words_migrated += WORDS_PER_LINE as u64;
            }
            Event::ConsolidationStopped => to.cover(Cover::ConsolidationStopped),
            Event::Consolidated => to.cover(Cover::Consolidated),
            Event::PageFree { slot } => to.explain(|| format!("shadow page {slot} is free")),
        }
    }
}
