//! Recovery, from the bytes of the log alone.

use super::Rules;
use super::log::{Log, Logged, Sequence};
use graven_base::memory::WordMap;
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport};

/// Words, and pieces of memory that they lie in, for which memory is allocated at once.
const WORDS_EXPECTED: usize = 1024;
const PIECES_EXPECTED: usize = 64;

/// Writes the newest version of each word home that committed transactions at or behind the head have written, and
/// then moves the head past them. Until it has moved, all of this can be done again.
pub(super) fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let log = Log::of(context);
    let mut report = RecoveryReport::default();
    let head = match image.load(log.head()) {
        _ if !Rules::of(context).head_is_respected() => 0,
        head => head,
    };
    // The newest version of each word so far, with its sequence number. Words of one transaction come in their order.
    let mut newest: WordMap<(Sequence, u64)> =
        WordMap::with_capacity(WORDS_EXPECTED, PIECES_EXPECTED);
    let (mut found, mut last) = (0, None);
    let in_commit_order = Rules::of(context).recovery_in_commit_order();
    let mut keep = |Logged { sequence, home, value }: Logged| {
        found += 1;
        last = last.max(Some(sequence));
        newest.update(home, |known| match known {
            Some(known) if in_commit_order && known.0 > sequence => known,
            _ => (sequence, value),
        });
    };
    for segment in 0..log.segments {
        let read = |line, word| {
            // Where a commit record lies depends on the length of the one before.
            match (line, word) {
                (0, 0) => image.addresses_known(),
                (_, 0) => image.follow(),
                _ => {}
            }
            image.load(log.line(segment, line).word(word))
        };
        let (transactions, _) = log.read_segment(head, read, &mut keep);
        image.work(Work::Record, 1 + transactions);
        report.records_scanned += 1 + transactions;
    }
    let Some(last) = last else { return report };
    if in_commit_order {
        image.work_of_sort(found);
    }
    image.work(Work::Table, found as u64);
    if !Rules::of(context).recovery_moves_head_last() {
        image.store(log.head(), last + 1);
    }
    for (home, value) in newest.in_order(|(_, value)| value) {
        image.note(|| format!("{home} is written home: {value:#x}"));
        image.store(home, value);
        report.words_redone += 1;
    }
    image.fence();
    image.store(log.head(), last + 1);
    report
}

#[cfg(test)]
mod tests {
    use super::super::log::CommitRecord;
    use super::*;

    use graven_base::memory::{Addr, Image};

    fn context() -> DesignContext {
        let mut config = crate::testing::defaults();
        config.set("lsm.segment_bytes", "512").expect("a valid size");
        DesignContext::new(config, 2, Addr(1 << 20), Addr((1 << 20) + 4096))
    }

    /// Lays one transaction of single words into a line of a segment.
    fn lay(cells: &mut Image, segment: usize, line: u64, sequence: u64, words: &[(u64, u64)]) {
        let log = Log::of(&context());
        let at = log.line(segment, line);
        let payload = 2 * words.len() as u64;
        cells.store(at.addr(), CommitRecord { sequence, payload }.word());
        for (i, &(home, value)) in words.iter().enumerate() {
            cells.store(at.word(1 + 2 * i), home | 1 << 48);
            cells.store(at.word(2 + 2 * i), value);
        }
    }

    #[test]
    fn the_newest_committed_version_of_each_word_goes_home_once() {
        let context = context();
        let log = Log::of(&context);
        assert_eq!((log.segments, log.lines), (7, 8));
        let mut cells = Image::new();
        cells.store(log.head(), 5);
        // An open segment with an older and a newer one; another one; one that has gone home.
        lay(&mut cells, 3, 0, 6, &[(4096, 60), (4104, 61)]);
        lay(&mut cells, 3, 1, 9, &[(4112, 90)]);
        lay(&mut cells, 1, 0, 7, &[(4096, 70)]);
        lay(&mut cells, 2, 0, 4, &[(4104, 40), (4120, 41)]);
        let mut image = SurvivingImage::new(cells);
        let report = recover(&context, &[], &mut image);
        assert_eq!((report.words_redone, report.words_undone), (3, 0));
        let words = [4096, 4104, 4112, 4120].map(|at| image.peek(Addr(at)));
        assert_eq!(words, [70, 61, 90, 0]);
        assert_eq!(image.peek(log.head()), 10);
        let written = image.words_written();
        assert_eq!(recover(&context, &[], &mut image).words_redone, 0);
        assert_eq!(image.words_written(), written, "the log is empty");
    }

    #[test]
    fn recovery_that_is_cut_off_at_any_word_is_done_again() {
        let (context, mut cells) = (context(), Image::new());
        lay(&mut cells, 0, 0, 1, &[(4096, 1), (4104, 2)]);
        lay(&mut cells, 1, 0, 2, &[(4096, 3), (8192, 4)]);
        for power in 0..5 {
            let mut image = SurvivingImage::new(cells.clone());
            image.set_power(Some(power));
            recover(&context, &[], &mut image);
            image.set_power(None);
            recover(&context, &[], &mut image);
            let words = [4096, 4104, 8192].map(|at| image.peek(Addr(at)));
            assert_eq!(words, [3, 2, 4], "cut off after {power} words");
        }
    }
}
