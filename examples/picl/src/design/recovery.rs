//! Recovery after a power failure: PM becomes what it was at the end of the persisted epoch.

use graven::design::{DesignContext, Mutants, RecoveryReport};
use graven::memory::{LINE_BYTES, WordMask};
use graven::surviving::{Slots, SurvivingImage, Work};

use super::Mutant;
use super::log::{ENTRIES, Layout, RECORD_BYTES, Record};
use super::undo_buffer::Entry;

/// Applies the entries that were valid at the end of the persisted epoch, newest first: of several of a line the oldest has the
/// content that counts.
pub(super) fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mutants: Mutants<Mutant> = context.mutants();
    let layout = Layout::of(context);
    let persisted = image.load(layout.persisted);
    let counts = |entry: &Entry| {
        let till = entry.till + u64::from(mutants.has(Mutant::ValidTooLong));
        entry.from <= persisted && persisted < till
    };
    let mut report = RecoveryReport::default();
    let mut slots = Slots::new(layout.start, RECORD_BYTES, layout.records);
    let mut entries: Vec<(u32, usize, Entry)> = Vec::new();
    while let Some(place) = slots.next_used(image) {
        let header = layout.header(place);
        let words = image.load_line(header);
        let mut lines = [[0; 8]; ENTRIES];
        for (number, line) in (1..).zip(&mut lines) {
            // Of a record with fewer entries, fewer lines count.
            if words[number as usize + 1] != 0 {
                *line = image.load_line(header.addr().plus(number * LINE_BYTES).line());
            }
        }
        report.records_scanned += 1;
        let (record, whole) = Record::parse(words, &lines);
        if whole || mutants.has(Mutant::TornRecordTaken) {
            let numbered = record.entries.into_iter().enumerate().filter(|(_, e)| counts(e));
            entries.extend(numbered.map(|(place, entry)| (record.number, place, entry)));
        }
    }
    image.work(Work::Record, report.records_scanned);
    image.work_of_sort(entries.len());
    entries.sort_by_key(|&(record, place, _)| std::cmp::Reverse((record, place)));
    if mutants.has(Mutant::OldestFirst) {
        entries.reverse();
    }
    for (.., entry) in entries {
        image.store_line(entry.line, WordMask::MAX, &entry.old);
        report.words_undone += entry.old.len() as u64;
    }
    report
}
