//! Recovery: committed transactions that are not known to be at home are replayed in commit order.

use super::Rules;
use super::record::{Area, Kind, Metadata};
use graven_base::ids::ThreadId;
use graven_base::memory::WordMask;
use graven_base::surviving::SurvivingImage;
use graven_machine::design::{DesignContext, RecoveryReport};

/// A commit record that was found.
struct Commit {
    sequence: u64,
    thread: ThreadId,
    /// Number of the record.
    number: u64,
    updates: u64,
}

/// Clears the log areas, so that the first records written there are distinguishable from earlier content.
pub(super) fn format(context: &DesignContext, surviving: &mut SurvivingImage) {
    if !Rules::of(context).log_is_cleared() {
        return;
    }
    (0..context.threads).for_each(|thread| Area::of(context, thread).clear(surviving));
}

pub(super) fn recover(
    context: &DesignContext,
    _registers: &[u64],
    surviving: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    let mut commits = Vec::new();
    for thread in 0..context.threads {
        find_commits(context, thread, surviving, &mut commits);
        report.records_scanned += Area::of(context, thread).slots;
    }
    if Rules::of(context).replayed_in_commit_order() {
        surviving.work_of_sort(commits.len());
        commits.sort_unstable_by_key(|commit| commit.sequence);
    }
    for Commit { sequence, thread, number, updates } in commits {
        let area = Area::of(context, thread);
        surviving.note(|| format!("log area {thread}: commit {sequence}, {updates} updates"));
        for number in number.saturating_sub(updates.min(area.slots))..number {
            report.words_redone += replay(context, &area, number, surviving);
        }
    }
    report
}

/// The commit records of an area that the truncation word has not passed. All slots are looked at: which of them
/// are in use is in no durable pointer.
fn find_commits(
    context: &DesignContext,
    thread: ThreadId,
    surviving: &mut SurvivingImage,
    commits: &mut Vec<Commit>,
) {
    let area = Area::of(context, thread);
    let whose = if Rules::of(context).truncated_together() { 0 } else { thread };
    let retired = surviving.load(Area::of(context, whose).header());
    let mut newest = None;
    area.visit_all(surviving, |Metadata { kind, number, .. }| {
        let Kind::Commit { sequence, updates } = kind else { return };
        newest = newest.max(Some(number));
        if sequence > retired {
            commits.push(Commit { sequence, thread, number, updates });
        }
    });
    if !Rules::of(context).only_committed_is_replayed() {
        let first = newest.map_or(0, |newest| newest + 1);
        let open = (first..first + area.slots).take_while(|&number| {
            area.read(surviving, number).is_some_and(|metadata| metadata.number == number)
        });
        let updates = open.count() as u64;
        commits.push(Commit { sequence: u64::MAX, thread, number: first + updates, updates });
    }
}

/// Writes the words of an update record home; returns how many.
fn replay(
    context: &DesignContext,
    area: &Area,
    number: u64,
    surviving: &mut SurvivingImage,
) -> u64 {
    let metadata = area.read(surviving, number).filter(|metadata| metadata.number == number);
    let Some(Metadata { kind: Kind::Update { home, words }, .. }) = metadata else { return 0 };
    let words =
        if Rules::of(context).only_own_words_are_replayed() { words } else { WordMask::MAX };
    surviving.copy_words(area.data(number), home, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::memory::{Addr, Image, LineAddr, LineData};

    fn context() -> DesignContext {
        let mut config = crate::testing::defaults();
        config.set("opt-redo.log_bytes_per_thread", "640").expect("a valid size");
        DesignContext::new(config, 2, Addr(1 << 20), Addr(2 << 20))
    }

    /// Writes a record, and its line of data if it is an update.
    fn put(image: &mut Image, thread: ThreadId, number: u64, kind: Kind, data: &LineData) {
        let area = Area::of(&context(), thread);
        let metadata = Metadata { kind, thread, tx: 0, number };
        image.store_line(area.metadata(number), &metadata.line(area.torn(number)));
        if let Kind::Update { .. } = kind {
            image.store_line(area.data(number), data);
        }
    }

    const fn update(words: WordMask) -> Kind {
        Kind::Update { home: LineAddr(4), words }
    }

    /// Four slots per thread. The first thread's log has wrapped around: record 3 is the update of commit 2, record 4 (in
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
        image.store(Area::of(&context(), 0).header(), 1);
        let mut surviving = SurvivingImage::new(image);
        let report = recover(&context(), &[], &mut surviving);
        assert_eq!((report.records_scanned, report.words_redone), (8, 4));
        let home: Vec<u64> = (0..5).map(|word| surviving.peek(LineAddr(4).word(word))).collect();
        assert_eq!(home, [31, 31, 20, 0, 0]);
        let once = surviving.newest(0);
        recover(&context(), &[], &mut surviving);
        assert_eq!(surviving.newest(0), once);
    }

    #[test]
    fn noise_of_before_is_cleared() {
        let mut image = Image::new();
        put(&mut image, 1, 0, update(0xff), &[91; 8]);
        put(&mut image, 1, 1, Kind::Commit { sequence: 9, updates: 1 }, &[0; 8]);
        image.store(Area::of(&context(), 0).header(), 1 << 50);
        let mut surviving = SurvivingImage::new(image);
        format(&context(), &mut surviving);
        assert_eq!(recover(&context(), &[], &mut surviving).words_redone, 0);
        assert_eq!(surviving.peek(Area::of(&context(), 0).header()), 0);
    }
}
