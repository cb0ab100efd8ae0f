//! What the system does to the log before a run and after a power failure.

use graven::design::{DesignContext, RecoveryReport};
use graven::memory::{Addr, WORD_BYTES};
use graven::surviving::{SurvivingImage, Work};

use super::Mutant;
use super::log_area::{Area, Entry, Number};

/// No slot holds an entry.
pub(super) fn format(context: &DesignContext, image: &mut SurvivingImage) {
    if context.mutants().has(Mutant::LogNotCleared) {
        return;
    }
    for area in Area::all(context) {
        (0..area.slots).for_each(|slot| image.store(area.slot(slot), 0));
    }
}

/// Takes back what the transaction after each thread's last committed one has logged, newest entry first. Open
/// transactions have no words in common, so the order of threads does not matter.
pub(super) fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mutants = context.mutants();
    let mut report = RecoveryReport::default();
    for (thread, area) in Area::all(context).enumerate() {
        report.records_scanned += area.slots;
        image.work(Work::Record, area.slots);
        let mut numbers: Vec<(u64, Number)> = (0..area.slots)
            .filter_map(|slot| Some((slot, Number::parse(image.load(area.slot(slot)))?)))
            .collect();
        let mut ended = numbers.iter().filter(|(_, number)| number.end);
        let committed = if mutants.has(Mutant::NewestByPlace) {
            ended.next_back().map(|(_, number)| number.transaction)
        } else {
            ended.map(|(_, number)| number.transaction).max()
        };
        if !mutants.has(Mutant::CommittedUndone) {
            numbers.retain(|(_, number)| Some(number.transaction) > committed);
        }
        let mut entries: Vec<Entry> =
            numbers.iter().filter_map(|&(slot, _)| read(image, area.slot(slot))).collect();
        image.work_of_sort(entries.len());
        entries.sort_by_key(|entry| (entry.number.transaction, entry.index));
        if !mutants.has(Mutant::UndoOldestFirst) {
            entries.reverse();
        }
        for entry in entries {
            image.note(|| format!("log area {thread}: {entry}"));
            for (addr, old) in entry.old_words() {
                image.store(addr, old);
                report.words_undone += 1;
            }
        }
    }
    report
}

fn read(image: &mut SurvivingImage, slot: Addr) -> Option<Entry> {
    Entry::parse(std::array::from_fn(|word| image.load(slot.plus(word as u64 * WORD_BYTES))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven::config::Config;
    use graven::memory::Image;

    fn config() -> Config {
        let mut registry = graven::standard();
        crate::register(&mut registry);
        let mut config = registry.defaults();
        config.set("proteus.log_bytes_per_thread", "256").expect("a valid size");
        config
    }

    fn context(threads: u32) -> DesignContext {
        DesignContext::new(config(), threads, Addr(1 << 20), Addr(2 << 20))
    }

    fn entry(transaction: u64, end: bool, index: u64, words: u8, old: u64) -> Entry {
        let number = Number { transaction, end };
        Entry { number, index, from: Addr(64), words, old: [old; 4] }
    }

    fn recovered(entries: &[(u64, Entry)]) -> (RecoveryReport, [u64; 2]) {
        let context = context(1);
        let area = Area::of(&context, 0);
        let mut image = SurvivingImage::new(Image::new());
        for (slot, entry) in entries {
            for (at, word) in (0..).zip(entry.encode()) {
                image.store(area.slot(*slot).plus(at * WORD_BYTES), word);
            }
        }
        let report = recover(&context, &[], &mut image);
        (report, [64, 72].map(|addr| image.peek(Addr(addr))))
    }

    /// The area has four slots: an end, an open transaction that comes round, and its oldest entry wins.
    #[test]
    fn entries_after_the_newest_end_are_undone_newest_first() {
        let (report, words) = recovered(&[
            (1, entry(7, true, 0, 0b11, 1)),
            (2, entry(8, false, 0, 0b01, 2)),
            (3, entry(8, false, 1, 0b10, 3)),
            (4, entry(8, false, 2, 0b11, 4)),
        ]);
        assert_eq!((report.records_scanned, report.words_undone), (4, 4));
        assert_eq!(words, [2, 3]);
    }

    #[test]
    fn entries_up_to_the_newest_end_are_none() {
        let (report, words) = recovered(&[
            (0, entry(9, true, 1, 0b01, 1)),
            (3, entry(9, false, 0, 0b10, 2)),
            (2, entry(8, true, 0, 0b11, 3)),
        ]);
        assert_eq!((report.words_undone, words), (0, [0, 0]));
    }

    #[test]
    fn a_first_transaction_without_an_end_is_undone() {
        assert_eq!(recovered(&[(0, entry(0, false, 0, 0b01, 5))]).1, [5, 0]);
        assert_eq!(recovered(&[]).0.words_undone, 0);
    }

    #[test]
    fn a_formatted_area_has_no_entry() {
        let context = context(2);
        let mut noise = Image::new();
        for area in Area::all(&context) {
            (0..area.slots).for_each(|slot| _ = noise.store(area.slot(slot), u64::MAX));
        }
        let mut image = SurvivingImage::new(noise);
        format(&context, &mut image);
        assert_eq!(recover(&context, &[], &mut image).words_undone, 0);
    }
}
