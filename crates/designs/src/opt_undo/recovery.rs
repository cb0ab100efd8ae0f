//! What the system does to the log before a run and after a power failure.

use super::Sabotage;
use super::record::{Area, ENTRIES_MAX, Header};
use crate::torn;
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, WORDS_PER_LINE, WordMask};
use graven_base::surviving::Medium;
use graven_machine::design::{RecoveryReport, Site};

/// Clears the headers, so that those written there first can be told from what was there.
pub(super) fn format(site: &Site, medium: &mut Medium) {
    if site.sabotages.has(Sabotage::LogNotCleared) {
        return;
    }
    for area in (0..site.threads).map(|thread| Area::of(site, thread)) {
        for slot in 0..area.slots {
            medium.store_line(area.header(slot), WordMask::MAX, &[0; WORDS_PER_LINE]);
        }
    }
}

/// Writes back what the transactions that have not committed have logged, newest entry first.
pub(super) fn recover(site: &Site, registers: &[u64], medium: &mut Medium) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    for (thread, &uncommitted) in registers.iter().enumerate() {
        let area = Area::of(site, thread as ThreadId);
        report.records_scanned += area.slots;
        let mut records: Vec<(u64, Header)> = (0..area.slots)
            .filter_map(|slot| Some((slot, read_header(site, medium, area.header(slot))?)))
            .filter(|(_, h)| h.is_of(uncommitted) || site.sabotages.has(Sabotage::CommittedUndone))
            .collect();
        if !site.sabotages.has(Sabotage::NewestByPlace) {
            records.sort_by_key(|(_, header)| header.index);
        }
        let mut entries: Vec<(u64, usize)> = (0..records.len() as u64)
            .flat_map(|record| (0..ENTRIES_MAX).map(move |place| (record, place)))
            .collect();
        if !site.sabotages.has(Sabotage::UndoOldestFirst) {
            entries.reverse();
        }
        for (record, place) in entries {
            let (slot, header) = &records[record as usize];
            let Some(logged) = header.collected.entries().get(place) else { continue };
            let (words, home) = (logged.words, logged.home);
            medium.note(|| format!("log area {thread}: words {words:#010b} of {}", home.addr()));
            report.words_undone += medium.copy_words(area.entry(*slot, place), home, words);
        }
    }
    report
}

fn read_header(site: &Site, medium: &mut Medium, at: LineAddr) -> Option<Header> {
    let mut line = medium.load_line(at);
    if site.sabotages.has(Sabotage::TornBitsIgnored) {
        line = torn::as_the_first(line);
    }
    Header::parse(line)
}
