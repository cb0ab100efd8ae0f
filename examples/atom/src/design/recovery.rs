//! Recovery after a power failure. Buckets need no formatting: recovery reads nothing behind the end of a log.

use graven::design::{DesignContext, Mutants, RecoveryReport};
use graven::surviving::{SurvivingImage, Work};

use super::Mutant;
use super::record::{Buckets, Header, Registers, Slot};

/// Writes back what the transactions that have not committed have logged, newest entry first.
pub(super) fn recover(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mutants: Mutants<Mutant> = context.mutants();
    let buckets = Buckets::of(context);
    let mut report = RecoveryReport::default();
    for (number, context) in registers.chunks_exact(2).enumerate() {
        let mut registers = Registers { buckets: context[0], end: context[1] };
        if mutants.has(Mutant::EndIgnored) && registers.buckets != 0 {
            // The end lies behind the last record of its bucket.
            let bucket = registers.buckets.trailing_zeros();
            registers.move_over(Slot { bucket, place: buckets.records - 1 });
        }
        let mut records: Vec<(Slot, Header)> = registers
            .slots(buckets.records)
            .map(|slot| (slot, Header::parse(image.load_line(buckets.header(slot)))))
            .collect();
        report.records_scanned += records.len() as u64;
        image.work(Work::Record, records.len() as u64);
        if !mutants.has(Mutant::NewestByBucket) {
            image.work_of_sort(records.len());
            records.sort_by_key(|(_, header)| header.index);
        }
        let entries_of = |(slot, header): &(Slot, Header)| {
            let slot = *slot;
            let entries: Vec<_> = header.entries.iter().copied().enumerate().collect();
            entries.into_iter().map(move |(place, entry)| (slot, place, entry))
        };
        let mut entries: Vec<_> = records.iter().flat_map(entries_of).collect();
        if !mutants.has(Mutant::UndoOldestFirst) {
            entries.reverse();
        }
        for (slot, place, entry) in entries {
            if entry.words == 0 {
                continue;
            }
            let home = entry.home;
            image.note(|| {
                format!("context {number}: words {:#010b} of {}", entry.words, home.addr())
            });
            report.words_undone += image.copy_words(buckets.entry(slot, place), home, entry.words);
        }
    }
    report
}
