//! Recovery: the transactions that have committed and are not known to be at home are redone in commit order.

use super::record::{Area, Header, RECORDS_MAX};
use super::{ReduConfig, Sabotage};
use crate::lalea::{ENTRIES, Links, Lr, Regions};
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, WordMask};
use graven_base::surviving::Medium;
use graven_machine::design::{RecoveryReport, Site};

/// A record of a committed transaction.
struct Found {
    header: Header,
    entries: [LineAddr; ENTRIES],
}

/// A committed transaction.
struct Committed {
    sequence: u64,
    thread: ThreadId,
    records: Vec<Found>,
}

/// Clears the headers of circular log areas, so that what is written there first can be told from what was there. With
/// load-aware allocation nothing is reached but what LR points to.
pub(super) fn format(site: &Site, medium: &mut Medium) {
    let circular = !site.config.get::<ReduConfig>().load_aware_allocation;
    if circular && !site.sabotages.has(Sabotage::LogNotCleared) {
        (0..site.threads).for_each(|thread| Area::of(site, thread).clear(medium));
    }
}

pub(super) fn recover(site: &Site, registers: &[u64], medium: &mut Medium) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    let mut committed = if site.config.get::<ReduConfig>().load_aware_allocation {
        follow_registers(site, registers, medium, &mut report)
    } else {
        search_areas(site, registers[0], medium, &mut report)
    };
    if !site.sabotages.has(Sabotage::RedoneThreadByThread) {
        committed.sort_by_key(|transaction| transaction.sequence);
    }
    if site.sabotages.has(Sabotage::RedoneNewestFirst) {
        committed.reverse();
    }
    for Committed { sequence, thread, records } in committed {
        medium.note(|| format!("thread {thread}: commit {sequence}, {} records", records.len()));
        for record in records {
            report.words_redone += redo(site, &record, medium);
        }
    }
    report
}

fn redo(site: &Site, record: &Found, medium: &mut Medium) -> u64 {
    let logged = record.header.logged.iter().zip(&record.entries).take(record.header.valid);
    let whole = site.sabotages.has(Sabotage::WholeLinesRedone);
    let words = |of: WordMask| if whole { WordMask::MAX } else { of };
    logged.map(|(l, &entry)| medium.copy_words(entry, l.home, words(l.words))).sum()
}

/// All slots of all areas are looked at for the last headers of transactions whose commit sequence numbers the truncation
/// register has not passed. The records before such a header are its transaction's.
fn search_areas(
    site: &Site,
    retired: u64,
    medium: &mut Medium,
    report: &mut RecoveryReport,
) -> Vec<Committed> {
    let mut committed = Vec::new();
    for thread in 0..site.threads {
        let area = Area::of(site, thread);
        report.records_scanned += area.slots;
        for slot in 0..area.slots {
            let Some(last) = area.read(medium, slot) else { continue };
            let open = site.sabotages.has(Sabotage::UncommittedRedone) && last.sequence == 0;
            if open || last.last && last.sequence > retired {
                let records = records_before(&area, &last, medium);
                let sequence = if open { u64::MAX } else { last.sequence };
                committed.push(Committed { sequence, thread, records });
            }
        }
    }
    committed
}

/// The records of a transaction, by its last.
fn records_before(area: &Area, last: &Header, medium: &mut Medium) -> Vec<Found> {
    let numbers = last.number.saturating_sub(last.index.min(area.slots))..=last.number;
    let read = |number| {
        let header = area.read(medium, number).filter(|header| header.number == number)?;
        let entries = std::array::from_fn(|index| area.entry(number, index));
        Some(Found { header, entries })
    };
    numbers.filter_map(read).collect()
}

/// From the LR register of each thread along its chain of headers: so many transactions as the register says,
/// newest first.
fn follow_registers(
    site: &Site,
    registers: &[u64],
    medium: &mut Medium,
    report: &mut RecoveryReport,
) -> Vec<Committed> {
    let regions = Regions::of(site);
    let mut committed = Vec::new();
    for (thread, &bits) in registers.iter().enumerate() {
        let Lr { newest: mut at, mut count } = Lr::parse(bits);
        if site.sabotages.has(Sabotage::OlderNotFollowed) {
            count = count.min(1);
        }
        for _ in 0..count {
            let (records, before) = follow_transaction(site, &regions, at, medium);
            report.records_scanned += records.len() as u64;
            let sequence = records.last().map_or(0, |last| last.header.sequence);
            committed.push(Committed { sequence, thread: thread as ThreadId, records });
            at = before;
        }
    }
    committed
}

/// The records of a transaction from its first header on, and the first header of the one before.
fn follow_transaction(
    site: &Site,
    regions: &Regions,
    mut at: LineAddr,
    medium: &mut Medium,
) -> (Vec<Found>, LineAddr) {
    let mut records = Vec::new();
    while at != LineAddr(0) && records.len() < RECORDS_MAX {
        let Some(header) = Header::parse(medium.load_line(at)) else { break };
        let links = Links::parse(medium.load_line(regions.second_line(at)));
        records.push(Found { header, entries: links.entries });
        at = links.next;
        if header.last || site.sabotages.has(Sabotage::NextNotFollowed) {
            return (records, at);
        }
    }
    (records, LineAddr(0))
}
