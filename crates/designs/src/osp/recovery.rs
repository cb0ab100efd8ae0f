//! What the system writes before the log region is put to use, and recovery.

use super::Sabotage;
use super::layout::{JournalEntry, Layout, home_of};
use graven_base::memory::{LineAddr, WORD_BYTES, WordMask};
use graven_base::surviving::Medium;
use graven_machine::design::{RecoveryReport, Site};

/// Clears header, journal and table.
pub(super) fn format(site: &Site, medium: &mut Medium) {
    if site.sabotages.has(Sabotage::MetadataNotCleared) {
        return;
    }
    Layout::of(site).metadata_words().for_each(|word| medium.store(word, 0));
}

/// The journal entry of a number, if it was written whole.
fn read_entry(
    site: &Site,
    layout: &Layout,
    number: u64,
    medium: &mut Medium,
) -> Option<JournalEntry> {
    let at = layout.journal_entry(number);
    let words = [medium.load(at), medium.load(at.plus(WORD_BYTES))];
    let entry = if site.sabotages.has(Sabotage::TornBitsIgnored) {
        JournalEntry::parse_untorn(words)
    } else {
        JournalEntry::parse(words)
    };
    entry.filter(|entry| entry.is(number))
}

/// Brings what is committed in shadow pages home. Afterwards no shadow page is needed: the free list is that
/// of a log region that is put to use anew.
pub(super) fn recover(site: &Site, _registers: &[u64], medium: &mut Medium) -> RecoveryReport {
    let layout = Layout::of(site);
    let mut report = RecoveryReport::default();
    let mut bitmaps: Vec<u64> =
        (0..layout.pages).map(|slot| medium.load(layout.table_bitmap(slot))).collect();
    if site.sabotages.has(Sabotage::TableNotRead) {
        bitmaps.fill(0);
    }
    replay(site, &layout, medium, &mut bitmaps);
    report.records_scanned = layout.entries + u64::from(layout.pages);
    for (slot, &bitmap) in (0..layout.pages).zip(&bitmaps) {
        if bitmap == 0 {
            continue;
        }
        let in_data = |home: &LineAddr| home.addr() < site.log_start;
        let Some(home) = home_of(medium.load(layout.table_home(slot))).filter(in_data) else {
            continue;
        };
        medium.note(|| format!("shadow page {slot}: lines {bitmap:#b} of {} go home", home.addr()));
        for index in (0..layout.lines_per_page()).filter(|index| bitmap >> index & 1 != 0) {
            let from = LineAddr(layout.shadow_page(slot).0 + index);
            let to = LineAddr(home.0 + index);
            report.words_redone += medium.copy_words(from, to, WordMask::MAX);
        }
    }
    report
}

/// Lays the journal's records over the table's bitmaps, from the head on. What is older may be there in part: an
/// entry without the newer one of its page, whose place a write that was torn has taken. A record of which an
/// entry is missing was not committed.
fn replay(site: &Site, layout: &Layout, medium: &mut Medium, bitmaps: &mut [u64]) {
    let head = medium.load(layout.head);
    let mut numbers: Vec<u64> = (0..layout.entries).map(|n| head.wrapping_add(n)).collect();
    if site.sabotages.has(Sabotage::ReplayedByPlace) {
        numbers.sort_unstable_by_key(|number| number % layout.entries);
    }
    let mut record: Vec<JournalEntry> = Vec::new();
    for number in numbers {
        let Some(entry) = read_entry(site, layout, number, medium) else {
            record.clear();
            continue;
        };
        if entry.first {
            record.clear();
        } else if record.is_empty() && !site.sabotages.has(Sabotage::BeheadedReplayed) {
            continue;
        }
        record.push(entry);
        if entry.last || site.sabotages.has(Sabotage::UnfinishedReplayed) {
            for entry in record.drain(..) {
                if let Some(bitmap) = bitmaps.get_mut(entry.slot as usize) {
                    *bitmap = entry.committed;
                }
            }
        }
    }
}
