//! Recovery: committed transactions that are not known to be at home are replayed in commit order.

use super::Sabotage;
use super::record::{Area, Kind, Metadata};
use graven_base::ids::ThreadId;
use graven_base::memory::WordMask;
use graven_base::surviving::Medium;
use graven_machine::design::{RecoveryReport, Site};

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
    medium.copy_words(area.data(number), home, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::memory::{Addr, Image, LineAddr, LineData};

    fn site() -> Site {
        let mut config = crate::testing::defaults();
        config.set("opt-redo.log_bytes_per_thread", "640").expect("a valid size");
        Site::new(config, 2, Addr(1 << 20), Addr(2 << 20))
    }

    /// Writes a record, and its line of data if it is an update.
    fn put(image: &mut Image, thread: ThreadId, number: u64, kind: Kind, data: &LineData) {
        let area = Area::of(&site(), thread);
        let metadata = Metadata { kind, thread: thread as u8, tx: 0, number };
        image.store_line(area.metadata(number), &metadata.line(area.torn(number)));
        if let Kind::Update { .. } = kind {
            image.store_line(area.data(number), data);
        }
    }

    const fn update(words: WordMask) -> Kind {
        Kind::Update { home: LineAddr(4), words }
    }

    /// Four slots per thread. The first thread's log has come round: record 3 is the update of commit 2, record 4 (in
    /// the first slot) its commit; what follows is older, or open.
    #[test]
    fn commits_that_are_not_at_home_are_replayed_in_their_order_and_words_of_others_are_not() {
        let mut image = Image::new();
        put(&mut image, 0, 1, update(0xff), &[91; 8]);
        put(&mut image, 0, 2, Kind::Commit { sequence: 1, updates: 1 }, &[0; 8]);
        put(&mut image, 0, 3, update(0b0011), &[31; 8]);
        put(&mut image, 0, 4, Kind::Commit { sequence: 3, updates: 1 }, &[0; 8]);
        put(&mut image, 1, 0, update(0b0110), &[20; 8]);
        put(&mut image, 1, 1, Kind::Commit { sequence: 2, updates: 1 }, &[0; 8]);
        put(&mut image, 1, 2, update(0b1000), &[77; 8]);
        image.store(Area::of(&site(), 0).header(), 1);
        let mut medium = Medium::new(image);
        let report = recover(&site(), &[], &mut medium);
        assert_eq!((report.records_scanned, report.words_redone), (8, 4));
        let home: Vec<u64> = (0..5).map(|word| medium.peek(LineAddr(4).word(word))).collect();
        assert_eq!(home, [31, 31, 20, 0, 0]);
        let once = medium.newest(0);
        recover(&site(), &[], &mut medium);
        assert_eq!(medium.newest(0), once);
    }

    #[test]
    fn noise_of_before_is_cleared() {
        let mut image = Image::new();
        put(&mut image, 1, 0, update(0xff), &[91; 8]);
        put(&mut image, 1, 1, Kind::Commit { sequence: 9, updates: 1 }, &[0; 8]);
        image.store(Area::of(&site(), 0).header(), 1 << 50);
        let mut medium = Medium::new(image);
        format(&site(), &mut medium);
        assert_eq!(recover(&site(), &[], &mut medium).words_redone, 0);
        assert_eq!(medium.peek(Area::of(&site(), 0).header()), 0);
    }
}
