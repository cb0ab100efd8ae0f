//! Formatting of the log region before its use, and recovery.

use super::Rules;
use super::layout::{JournalEntry, Layout, Slot, home_of};
use graven_base::memory::{LineAddr, WordMask};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport, Settlement, Stores};

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
    let bitmaps = committed(context, &layout, image);
    report.records_scanned = layout.entries + u64::from(layout.pages);
    for (slot, &bitmap) in (0..layout.pages).zip(&bitmaps) {
        report.words_redone += bring_home(context, &layout, (slot, bitmap), image);
    }
    report
}

/// Brings all of it home ahead, and hides journal and table, until one of them changes: the head passes all entries, and no
/// bitmap has a bit.
pub(super) fn settle(context: &DesignContext, image: &mut SurvivingImage) -> Option<Settlement> {
    let layout = Layout::of(context);
    let bitmaps = committed(context, &layout, image);
    let mut depends_on = vec![layout.metadata()];
    let mut words = 0;
    for (slot, &bitmap) in (0..layout.pages).zip(&bitmaps) {
        let copied = bring_home(context, &layout, (slot, bitmap), image);
        if copied > 0 {
            let lines = layout.lines_of(bitmap).map(|index| layout.shadow_page(slot).0 + index);
            depends_on.extend(lines.map(|at| LineAddr(at).addr()..LineAddr(at + 1).addr()));
        }
        words += copied;
    }
    if words == 0 {
        return None;
    }
    let head = image.load(layout.head);
    image.store(layout.head, head.wrapping_add(layout.entries));
    for bitmap in (0..layout.pages).map(|slot| layout.table_bitmap(slot)) {
        if image.load(bitmap) != 0 {
            image.store(bitmap, 0);
        }
    }
    Some(Settlement { depends_on, stores: Stores::OfRecords(words), hides_records: true })
}

/// The committed bitmap of each shadow page: that of the table, or a newer one of the journal.
fn committed(context: &DesignContext, layout: &Layout, image: &mut SurvivingImage) -> Vec<u64> {
    let mut bitmaps: Vec<u64> =
        (0..layout.pages).map(|slot| image.load(layout.table_bitmap(slot))).collect();
    if !Rules::of(context).table_is_read() {
        bitmaps.fill(0);
    }
    image.work(Work::Record, layout.pages.into());
    replay(context, layout, image, &mut bitmaps);
    bitmaps
}

/// Copies the lines of a shadow page that are committed there home; returns how many words.
fn bring_home(
    context: &DesignContext,
    layout: &Layout,
    (slot, bitmap): (Slot, u64),
    image: &mut SurvivingImage,
) -> u64 {
    if bitmap == 0 {
        return 0;
    }
    let in_data = |home: &LineAddr| home.addr() < context.log_start;
    let Some(home) = home_of(image.load(layout.table_home(slot))).filter(in_data) else {
        return 0;
    };
    image.note(|| format!("shadow page {slot}: lines {bitmap:#b} of {} go home", home.addr()));
    let mut words = 0;
    for index in layout.lines_of(bitmap) {
        let from = LineAddr(layout.shadow_page(slot).0 + index);
        words += image.copy_words(from, LineAddr(home.0 + index), WordMask::MAX);
    }
    words
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
