//! Events of the design: the counters, the cover points and the timeline's sentence of each.

use graven::design::{DesignEvent, Observation};
use graven::ids::ThreadId;
use graven::memory::LineAddr;
use graven::stats::{Derived, derived};
use graven::{counters, cover_points};

use super::undo_buffer::Entry;

counters! {
    /// Counters of the design.
    pub(super) struct Counters {
        /// Epochs that have ended: snapshots.
        snapshots: Count, "epochs";
        /// Epochs that PM can be brought back to the end of.
        snapshots_persisted: Count, "epochs";
        /// Times a store waited because the next epoch could not begin before a scan had ended.
        snapshot_waits: Count, "events";
        /// Undo entries: the first store of an epoch to a line.
        undo_entries: Count, "entries";
        /// Undo entries of lines that were dirty from an older epoch.
        undo_entries_across: Count, "entries";
        /// Bursts in which the undo buffer was written to the log.
        undo_bursts: Count, "events";
        /// Bursts because a line was to leave whose entry the filter had.
        undo_bursts_for_line: Count, "events";
        /// Such bursts for a line that had no entry in the buffer.
        undo_filter_false_hits: Count, "events";
        /// Records of the log: a header and up to six old lines.
        log_records: Count, "records";
        /// Superblocks of the log that were free again.
        log_superblocks_freed: Count, "superblocks";
        /// Times a store found the log full.
        log_full: Count, "events";
        /// Complete scans of the caches.
        scans: Count, "scans";
        /// Lines that scans wrote home.
        scan_lines: Count, "lines";
    }
}

/// Entries that a burst takes to the log.
pub(super) const ENTRIES_PER_BURST: Derived = Derived {
    declaration: derived(
        "undo_entries_per_burst",
        "entries",
        "Undo entries per burst of the undo buffer.",
    ),
    of: |c| c.ratio("undo_entries", "undo_bursts"),
};

cover_points! {
    BufferFull = "undo-buffer-found-full", "a store found the undo buffer full";
    BurstForLine = "line-waits-for-burst", "a line left the caches whose entry was in the undo buffer";
    FalseHit = "filter-hits-falsely", "the undo buffer was written for a line that had no entry in it";
    Across = "line-of-older-epoch", "a store found a line that was dirty from an older epoch";
    StoredDuringScan = "stored-ahead-of-scan", "a store took a line that a scan under way was to write home";
    ScanWrites = "scan-writes", "a scan wrote a line home";
    ScanPauses = "scan-pauses", "a scan paused because too many writes were under way";
    EpochWaits = "epoch-waits", "an epoch could not end before a scan had ended";
    LogFull = "log-found-full", "a store found the log full";
    Freed = "superblock-freed", "a superblock was free again";
    TagsRound = "tags-come-round", "an epoch had the tag of an earlier one";
}

/// A reason to write the undo buffer to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Every place is taken.
    Full,
    /// The filter has a line that is to go home.
    Line { line: LineAddr, has_entry: bool },
    /// A scan has visited all tags.
    Scan,
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// An epoch ends.
    Snapshot { epoch: u64, round: bool },
    /// It cannot yet.
    SnapshotWaits { thread: ThreadId },
    /// A store makes an undo entry: of a line that was dirty from an older epoch; which a scan under way was to write home.
    Entry { entry: Entry, across: bool, scanned: bool },
    /// The undo buffer is written to the log.
    Burst { cause: Cause, entries: usize },
    /// A record is sent to the log.
    Record,
    /// A store finds the log full.
    LogFull { thread: ThreadId },
    /// A superblock is free.
    Freed,
    /// A scan begins.
    ScanBegins { epoch: u64 },
    /// A scan writes a line home.
    ScanWrites { line: LineAddr, epoch: u64 },
    /// A scan pauses.
    ScanPauses,
    /// A scan has visited all tags.
    ScanEnds,
    /// PM can be brought back to the end of an epoch; so many more than before.
    Persisted { epoch: u64, more: u64 },
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::Snapshot { epoch, round } => {
                to.count().snapshots += 1;
                to.cover_if(round, Cover::TagsRound);
                to.explain(|| format!("epoch {epoch} ends"));
            }
            Event::SnapshotWaits { thread } => {
                to.count().snapshot_waits += 1;
                to.cover(Cover::EpochWaits);
                to.explain(|| format!("thread {thread} waits for a scan before the epoch can end"));
            }
            Event::Entry { entry: Entry { line, from, till, .. }, across, scanned } => {
                to.count().undo_entries += 1;
                to.count().undo_entries_across += u64::from(across);
                to.cover_if(across, Cover::Across);
                to.cover_if(scanned, Cover::StoredDuringScan);
                to.explain(|| format!("old content of {line}: from epoch {from}, till {till}"));
            }
            Event::Burst { cause, entries } => {
                to.count().undo_bursts += 1;
                if let Cause::Line { has_entry, .. } = cause {
                    to.count().undo_bursts_for_line += 1;
                    to.count().undo_filter_false_hits += u64::from(!has_entry);
                    to.cover(if has_entry { Cover::BurstForLine } else { Cover::FalseHit });
                }
                to.cover_if(cause == Cause::Full, Cover::BufferFull);
                to.explain(|| {
                    let why = match cause {
                        Cause::Full => "it is full".into(),
                        Cause::Line { line, .. } => format!("{line} is to go home"),
                        Cause::Scan => "the scan has visited all tags".into(),
                    };
                    format!("the undo buffer goes to the log with {entries} entries: {why}")
                });
            }
            Event::Record => to.count().log_records += 1,
            Event::LogFull { thread } => {
                to.count().log_full += 1;
                to.cover(Cover::LogFull);
                to.explain(|| format!("thread {thread} finds the log full"));
            }
            Event::Freed => {
                to.count().log_superblocks_freed += 1;
                to.cover(Cover::Freed);
            }
            Event::ScanBegins { epoch } => {
                to.explain(|| format!("a scan for epochs up to {epoch} begins"));
            }
            Event::ScanWrites { line, epoch } => {
                to.count().scan_lines += 1;
                to.cover(Cover::ScanWrites);
                to.explain(|| format!("the scan writes {line} of epoch {epoch} home"));
            }
            Event::ScanPauses => to.cover(Cover::ScanPauses),
            Event::ScanEnds => to.count().scans += 1,
            Event::Persisted { epoch, more } => {
                to.count().snapshots_persisted += more;
                to.explain(|| format!("epoch {epoch} is persisted"));
            }
        }
    }
}
