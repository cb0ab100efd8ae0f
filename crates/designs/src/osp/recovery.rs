//! Formatting of the log region before its use, and recovery.

use super::Rules;
use super::layout::{JournalEntry, Layout, home_of};
use graven_base::memory::{LineAddr, WordMask};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport};

/// Clears header, journal and table.
pub(super) fn format(context: &DesignContext, image: &mut SurvivingImage) {
    if !Rules::of(context).metadata_is_cleared() {
        return;
    }
    Layout::of(context).metadata_words().for_each(|word| image.store(word, 0));
}

/// The journal entry of a number, if it was written whole.
fn read_entry(
    context: &DesignContext,
    layout: &Layout,
    number: u64,
    image: &mut SurvivingImage,
) -> Option<JournalEntry> {
    let at = layout.journal_entry(number);
    let words = image.load_words(at);
    image.work(Work::Record, 1);
    let entry = if Rules::of(context).torn_bits_are_checked() {
        JournalEntry::parse(words)
    } else {
        JournalEntry::parse_untorn(words)
    };
    entry.filter(|entry| entry.is(number))
}

/// Brings what is committed in shadow pages home. Afterwards no shadow page is needed: the free list is that
/// of a log region that is put to use anew.
pub(super) fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let layout = Layout::of(context);
    let mut report = RecoveryReport::default();
    let mut bitmaps: Vec<u64> =
        (0..layout.pages).map(|slot| image.load(layout.table_bitmap(slot))).collect();
    if !Rules::of(context).table_is_read() {
        bitmaps.fill(0);
    }
    image.work(Work::Record, layout.pages.into());
    replay(context, &layout, image, &mut bitmaps);
    report.records_scanned = layout.entries + u64::from(layout.pages);
    for (slot, &bitmap) in (0..layout.pages).zip(&bitmaps) {
        if bitmap == 0 {
            continue;
        }
        let in_data = |home: &LineAddr| home.addr() < context.log_start;
        let Some(home) = home_of(image.load(layout.table_home(slot))).filter(in_data) else {
            continue;
        };
        image.note(|| format!("shadow page {slot}: lines {bitmap:#b} of {} go home", home.addr()));
        for index in (0..layout.lines_per_page()).filter(|index| bitmap >> index & 1 != 0) {
            let from = LineAddr(layout.shadow_page(slot).0 + index);
            let to = LineAddr(home.0 + index);
            report.words_redone += image.copy_words(from, to, WordMask::MAX);
        }
    }
    report
}

/// Lays the journal's records over the table's bitmaps, from the head on. What is older may be there in part: an
/// entry without the newer one of its page, whose place a write that was torn has taken. A record of which an
/// entry is missing was not committed.
fn replay(
    context: &DesignContext,
    layout: &Layout,
    image: &mut SurvivingImage,
    bitmaps: &mut [u64],
) {
    let head = image.load(layout.head);
    let mut numbers: Vec<u64> = (0..layout.entries).map(|n| head.wrapping_add(n)).collect();
    if !Rules::of(context).replayed_by_number() {
        numbers.sort_unstable_by_key(|number| number % layout.entries);
    }
    let mut record: Vec<JournalEntry> = Vec::new();
    for number in numbers {
        let Some(entry) = read_entry(context, layout, number, image) else {
            record.clear();
            continue;
        };
        if entry.first {
            record.clear();
        } else if record.is_empty() && Rules::of(context).beheaded_records_are_left_out() {
            continue;
        }
        record.push(entry);
        if entry.last || !Rules::of(context).unfinished_records_are_left_out() {
            for entry in record.drain(..) {
                if let Some(bitmap) = bitmaps.get_mut(entry.slot as usize) {
                    *bitmap = entry.committed;
                }
            }
        }
    }
}
