//! Recovery: committed transactions that are not known to be at home are replayed in commit order.

use super::Sabotage;
use super::record::{Area, Kind, Metadata};
use crate::crash::Medium;
use crate::designs::{RecoveryReport, Site, ThreadId};
use crate::memory::{WORDS_PER_LINE, WordMask};

/// A commit record that was found.
struct Commit {
    sequence: u64,
    thread: ThreadId,
    /// Number of the record.
    number: u64,
    updates: u64,
}

/// Clears the log areas, so that what is written there first can be told from what was there.
pub(super) fn format(site: &Site, medium: &mut Medium) {
    if site.sabotages.has(Sabotage::LogNotCleared) {
        return;
    }
    (0..site.threads).for_each(|thread| Area::of(site, thread).clear(medium));
}

pub(super) fn recover(site: &Site, _registers: &[u64], medium: &mut Medium) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    let mut commits = Vec::new();
    for thread in 0..site.threads {
        find_commits(site, thread, medium, &mut commits);
        report.records_scanned += Area::of(site, thread).slots;
    }
    if !site.sabotages.has(Sabotage::ReplayedThreadByThread) {
        commits.sort_unstable_by_key(|commit| commit.sequence);
    }
    for Commit { sequence, thread, number, updates } in commits {
        let area = Area::of(site, thread);
        medium.note(|| format!("log area {thread}: commit {sequence}, {updates} updates"));
        for number in number.saturating_sub(updates.min(area.slots))..number {
            report.words_redone += replay(site, &area, number, medium);
        }
    }
    report
}

/// The commit records of an area that the truncation word has not passed. All slots are looked at: which of them
/// are in use is in no durable pointer.
fn find_commits(site: &Site, thread: ThreadId, medium: &mut Medium, commits: &mut Vec<Commit>) {
    let area = Area::of(site, thread);
    let whose = if site.sabotages.has(Sabotage::TruncatedThreadByThread) { thread } else { 0 };
    let retired = medium.load(Area::of(site, whose).header());
    let mut newest = None;
    for slot in 0..area.slots {
        let Some(Metadata { kind, number, .. }) = area.read(medium, slot) else { continue };
        let Kind::Commit { sequence, updates } = kind else { continue };
        newest = newest.max(Some(number));
        if sequence > retired {
            commits.push(Commit { sequence, thread, number, updates });
        }
    }
    if site.sabotages.has(Sabotage::UncommittedReplayed) {
        let first = newest.map_or(0, |newest| newest + 1);
        let open = (first..first + area.slots).take_while(|&number| {
            area.read(medium, number).is_some_and(|metadata| metadata.number == number)
        });
        let updates = open.count() as u64;
        commits.push(Commit { sequence: u64::MAX, thread, number: first + updates, updates });
    }
}

/// Writes the words of an update record home; returns how many.
fn replay(site: &Site, area: &Area, number: u64, medium: &mut Medium) -> u64 {
    let metadata = area.read(medium, number).filter(|metadata| metadata.number == number);
    let Some(Metadata { kind: Kind::Update { home, words }, .. }) = metadata else { return 0 };
    let whole = site.sabotages.has(Sabotage::WholeLinesReplayed);
    let words = if whole { WordMask::MAX } else { words };
    let data = area.data(number);
    for word in (0..WORDS_PER_LINE).filter(|word| words >> word & 1 != 0) {
        let new = medium.load(data.word(word));
        medium.store(home.word(word), new);
    }
    u64::from(words.count_ones())
}
