//! Formatting of the log before a run, and recovery after a power failure.

use graven_base::memory::WORD_BYTES;
use graven_base::surviving::SurvivingImage;
use graven_machine::design::{DesignContext, RecoveryReport};

use super::Rules;
use super::record::{Area, Kind, RECORD_WORDS, Record};

/// Clears the log areas, so that the first records written there are distinguishable from earlier content.
pub fn format(context: &DesignContext, image: &mut SurvivingImage) {
    if !Rules::of(context).log_is_cleared() {
        return;
    }
    for thread in 0..context.threads {
        let area = Area::of(context, thread);
        let words = area.slots * RECORD_WORDS as u64;
        image.clear(area.start, area.start.plus(words * WORD_BYTES));
    }
}

/// Undoes the transaction of each thread that no commit record ends.
pub fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let rules = Rules::of(context);
    let mut report = RecoveryReport::default();
    for thread in 0..context.threads {
        let area = Area::of(context, thread);
        report.records_scanned += area.slots;
        let mut undo = records_to_undo(&area, rules, image);
        if !rules.undo_newest_first() {
            undo.reverse();
        }
        if !rules.first_record_is_undone() {
            undo.pop();
        }
        for record in undo {
            image.note(|| format!("log area {thread}: record {} undone", record.number));
            image.store(record.addr, record.undo);
            report.words_undone += 1;
        }
    }
    report
}

/// The records of a thread's last transaction, newest first, if none of them is its commit record.
fn records_to_undo(area: &Area, rules: Rules, image: &mut SurvivingImage) -> Vec<Record> {
    let mut next = area.newest(image);
    let mut undo = Vec::new();
    while let Some(record) = next {
        if record.kind == Kind::Commit && rules.only_uncommitted_is_undone() {
            break;
        }
        undo.push(record);
        let before = record.number.checked_sub(1);
        next = before.and_then(|number| {
            area.read(image, number).filter(|r| r.number == number && r.tx == record.tx)
        });
    }
    undo
}
