//! Formatting of the log before a run, and recovery after a power failure.

use super::Rules;
use super::record::{Area, ENTRIES_MAX, Header};
use crate::mechanisms::torn;
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, WORDS_PER_LINE, WordMask};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport};

/// Clears the headers, so that the first headers written there are distinguishable from earlier content.
pub(super) fn format(context: &DesignContext, image: &mut SurvivingImage) {
    if !Rules::of(context).log_is_cleared() {
        return;
    }
    for area in (0..context.threads).map(|thread| Area::of(context, thread)) {
        for slot in 0..area.slots {
            image.store_line(area.header(slot), WordMask::MAX, &[0; WORDS_PER_LINE]);
        }
    }
}

/// Writes back what the transactions that have not committed have logged, newest entry first.
pub(super) fn recover(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    for (thread, &uncommitted) in registers.iter().enumerate() {
        let area = Area::of(context, thread as ThreadId);
        report.records_scanned += area.slots;
        let mut records: Vec<(u64, Header)> = (0..area.slots)
            .filter_map(|slot| Some((slot, read_header(context, image, area.header(slot))?)))
            .filter(|(_, h)| {
                h.is_of(uncommitted) || !Rules::of(context).only_uncommitted_is_undone()
            })
            .collect();
        if Rules::of(context).newest_by_number() {
            image.work_of_sort(records.len());
            records.sort_by_key(|(_, header)| header.index);
        }
        let mut entries: Vec<(u64, usize)> = (0..records.len() as u64)
            .flat_map(|record| (0..ENTRIES_MAX).map(move |place| (record, place)))
            .collect();
        if Rules::of(context).undo_newest_first() {
            entries.reverse();
        }
        for (record, place) in entries {
            let (slot, header) = &records[record as usize];
            let Some(logged) = header.collected.entries().get(place) else { continue };
            let (words, home) = (logged.words, logged.home);
            image.note(|| format!("log area {thread}: words {words:#010b} of {}", home.addr()));
            report.words_undone += image.copy_words(area.entry(*slot, place), home, words);
        }
    }
    report
}

fn read_header(
    context: &DesignContext,
    image: &mut SurvivingImage,
    at: LineAddr,
) -> Option<Header> {
    let mut line = image.load_line(at);
    image.work(Work::Record, 1);
    if !Rules::of(context).torn_bits_are_checked() {
        line = torn::as_the_first(line);
    }
    Header::parse(line)
}
