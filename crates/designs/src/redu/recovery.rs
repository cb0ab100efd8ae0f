//! Recovery: the transactions that have committed and are not known to be at home are redone in commit order.

use super::record::{Area, Header, RECORDS_MAX};
use super::{Mutant, ReduConfig};
use crate::lalea::{ENTRIES, Links, Lr, second_line};
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, WordMask};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport};
use graven_machine::request::Mapping;

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

/// Clears the headers of circular log areas, so that the first headers written there are distinguishable from earlier
/// content. With load-aware allocation nothing is reached but what LR points to.
pub(super) fn format(context: &DesignContext, image: &mut SurvivingImage) {
    let circular = !context.config.get::<ReduConfig>().load_aware_allocation;
    if circular && !context.mutants().has(Mutant::LogNotCleared) {
        (0..context.threads).for_each(|thread| Area::of(context, thread).clear(image));
    }
}

pub(super) fn recover(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    let mut committed = if context.config.get::<ReduConfig>().load_aware_allocation {
        follow_registers(context, registers, image, &mut report)
    } else {
        search_areas(context, registers[0], image, &mut report)
    };
    if !context.mutants().has(Mutant::RedoneThreadByThread) {
        image.work_of_sort(committed.len());
        committed.sort_by_key(|transaction| transaction.sequence);
    }
    if context.mutants().has(Mutant::RedoneNewestFirst) {
        committed.reverse();
    }
    for Committed { sequence, thread, records } in committed {
        image.note(|| format!("thread {thread}: commit {sequence}, {} records", records.len()));
        for record in records {
            report.words_redone += redo(context, &record, image);
        }
    }
    report
}

fn redo(context: &DesignContext, record: &Found, image: &mut SurvivingImage) -> u64 {
    let logged = record.header.logged.iter().zip(&record.entries).take(record.header.valid);
    let whole = context.mutants().has(Mutant::WholeLinesRedone);
    let words = |of: WordMask| if whole { WordMask::MAX } else { of };
    logged.map(|(l, &entry)| image.copy_words(entry, l.home, words(l.words))).sum()
}

/// All slots of all areas are looked at for the last headers of transactions whose commit sequence numbers the truncation
/// register has not passed. The records before such a header are its transaction's.
fn search_areas(
    context: &DesignContext,
    retired: u64,
    image: &mut SurvivingImage,
    report: &mut RecoveryReport,
) -> Vec<Committed> {
    let mut committed = Vec::new();
    for thread in 0..context.threads {
        let area = Area::of(context, thread);
        report.records_scanned += area.slots;
        for slot in 0..area.slots {
            let Some(last) = area.read(image, slot) else { continue };
            let open = context.mutants().has(Mutant::UncommittedRedone) && last.sequence == 0;
            if open || last.last && last.sequence > retired {
                let records = records_before(&area, &last, image);
                let sequence = if open { u64::MAX } else { last.sequence };
                committed.push(Committed { sequence, thread, records });
            }
        }
    }
    committed
}

/// The records of a transaction, by its last.
fn records_before(area: &Area, last: &Header, image: &mut SurvivingImage) -> Vec<Found> {
    let numbers = last.number.saturating_sub(last.index.min(area.slots))..=last.number;
    let read = |number| {
        let header = area.read(image, number).filter(|header| header.number == number)?;
        let entries = std::array::from_fn(|index| area.entry(number, index));
        Some(Found { header, entries })
    };
    numbers.filter_map(read).collect()
}

/// From the LR register of each thread along its chain of headers: so many transactions as the register says,
/// newest first.
fn follow_registers(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
    report: &mut RecoveryReport,
) -> Vec<Committed> {
    let mapping = Mapping::of(&context.config);
    let mut committed = Vec::new();
    for (thread, &bits) in registers.iter().enumerate() {
        let Lr { newest: mut at, mut count } = Lr::parse(bits);
        if context.mutants().has(Mutant::OlderNotFollowed) {
            count = count.min(1);
        }
        image.addresses_known();
        for _ in 0..count {
            let (records, before) = follow_transaction(context, &mapping, at, image);
            report.records_scanned += records.len() as u64;
            let sequence = records.last().map_or(0, |last| last.header.sequence);
            committed.push(Committed { sequence, thread: thread as ThreadId, records });
            at = before;
        }
    }
    image.addresses_known();
    committed
}

/// The records of a transaction from its first header on, and the first header of the one before.
fn follow_transaction(
    context: &DesignContext,
    mapping: &Mapping,
    mut at: LineAddr,
    image: &mut SurvivingImage,
) -> (Vec<Found>, LineAddr) {
    let mut records = Vec::new();
    while at != LineAddr(0) && records.len() < RECORDS_MAX {
        let Some(header) = Header::parse(image.load_line(at)) else { break };
        let links = Links::parse(image.load_line(second_line(mapping, at)));
        image.work(Work::Record, 1);
        // The next header's address is in these links.
        image.follow();
        records.push(Found { header, entries: links.entries });
        at = links.next;
        if header.last || context.mutants().has(Mutant::NextNotFollowed) {
            return (records, at);
        }
    }
    (records, LineAddr(0))
}
