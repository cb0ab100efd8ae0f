//! Recovery: the transactions that have committed and are not known to be at home are redone in commit order.

use std::ops::Range;

use super::record::{Area, Header, Logged, RECORDS_MAX};
use super::{ReduConfig, Rules};
use crate::lalea::{ENTRIES, Links, Lr, second_line};
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, WordMask};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport};
use graven_machine::request::Mapping;

/// Log entries for which memory is allocated at once.
const ENTRIES_EXPECTED: usize = 32;

/// Words of a line that a log entry holds.
struct Redone {
    entry: LineAddr,
    logged: Logged,
}

/// A committed transaction.
struct Committed {
    sequence: u64,
    thread: ThreadId,
    /// Number of its records.
    records: usize,
    /// Range of its records' entries among all log entries that were found.
    entries: Range<usize>,
}

/// Committed transactions that were found.
#[derive(Default)]
struct Found {
    committed: Vec<Committed>,
    /// The log entries of all.
    entries: Vec<Redone>,
}

impl Found {
    /// Another record, with its log entries at these lines.
    #[inline]
    fn add(&mut self, header: &Header, entries: impl IntoIterator<Item = LineAddr>) {
        let logged = header.logged.iter().zip(entries).take(header.valid);
        self.entries.extend(logged.map(|(&logged, entry)| Redone { entry, logged }));
    }

    /// All log entries from one on are those of a committed transaction.
    fn commit(&mut self, sequence: u64, thread: ThreadId, records: usize, first: usize) {
        let entries = first..self.entries.len();
        self.committed.push(Committed { sequence, thread, records, entries });
    }
}

/// Clears the headers of circular log areas, so that the first headers written there are distinguishable from earlier
/// content. With load-aware allocation nothing is reached but what LR points to.
pub(super) fn format(context: &DesignContext, image: &mut SurvivingImage) {
    let circular = !context.config.get::<ReduConfig>().load_aware_allocation;
    if circular && Rules::of(context).log_is_cleared() {
        (0..context.threads).for_each(|thread| Area::of(context, thread).clear(image));
    }
}

pub(super) fn recover(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    let found = if context.config.get::<ReduConfig>().load_aware_allocation {
        follow_registers(context, registers, image, &mut report)
    } else {
        search_areas(context, registers[0], image, &mut report)
    };
    let Found { mut committed, entries } = found;
    if Rules::of(context).redone_in_commit_order() {
        image.work_of_sort(committed.len());
        committed.sort_by_key(|transaction| transaction.sequence);
    }
    if !Rules::of(context).redone_oldest_first() {
        committed.reverse();
    }
    for Committed { sequence, thread, records, entries: of_it } in committed {
        image.note(|| format!("thread {thread}: commit {sequence}, {records} records"));
        for &Redone { entry, logged: Logged { home, words } } in &entries[of_it] {
            let words =
                if Rules::of(context).only_own_words_are_redone() { words } else { WordMask::MAX };
            report.words_redone += image.copy_words(entry, home, words);
        }
    }
    report
}

/// All slots of all areas are looked at for the last headers of transactions whose commit sequence numbers the truncation
/// register has not passed. The records before such a header are its transaction's.
fn search_areas(
    context: &DesignContext,
    retired: u64,
    image: &mut SurvivingImage,
    report: &mut RecoveryReport,
) -> Found {
    let mut found = Found::default();
    for thread in 0..context.threads {
        let area = Area::of(context, thread);
        report.records_scanned += area.slots;
        for slot in 0..area.slots {
            let Some(last) = area.read(image, slot) else { continue };
            let open = !Rules::of(context).only_committed_is_redone() && last.sequence == 0;
            if open || last.last && last.sequence > retired {
                let first = found.entries.len();
                let records = add_records(&area, &last, image, &mut found);
                let sequence = if open { u64::MAX } else { last.sequence };
                found.commit(sequence, thread, records, first);
            }
        }
    }
    found
}

/// Adds the records of a transaction, by its last; returns how many there are.
fn add_records(area: &Area, last: &Header, image: &mut SurvivingImage, found: &mut Found) -> usize {
    let numbers = last.number.saturating_sub(last.index.min(area.slots))..=last.number;
    let mut records = 0;
    for number in numbers {
        let header = area.read(image, number).filter(|header| header.number == number);
        if let Some(header) = header {
            found.add(&header, (0..ENTRIES).map(|index| area.entry(number, index)));
            records += 1;
        }
    }
    records
}

/// Follows the chain of headers from the LR register of each thread: as many transactions as the
/// register counts, newest first.
fn follow_registers(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
    report: &mut RecoveryReport,
) -> Found {
    let mapping = Mapping::of(&context.config);
    let mut found = Found::default();
    found.entries.reserve(ENTRIES_EXPECTED);
    for (thread, &bits) in registers.iter().enumerate() {
        let Lr { newest: mut at, mut count } = Lr::parse(bits);
        if !Rules::of(context).older_is_followed() {
            count = count.min(1);
        }
        image.addresses_known();
        for _ in 0..count {
            let first = found.entries.len();
            let followed = follow_transaction(context, &mapping, at, image, &mut found);
            report.records_scanned += followed.records as u64;
            found.commit(followed.sequence, thread as ThreadId, followed.records, first);
            at = followed.before;
        }
    }
    image.addresses_known();
    found
}

/// A transaction whose records were followed.
struct Followed {
    records: usize,
    /// The commit sequence number that its last header has.
    sequence: u64,
    /// The first header of the transaction before it.
    before: LineAddr,
}

/// Adds the records of a transaction, from its first header on.
fn follow_transaction(
    context: &DesignContext,
    mapping: &Mapping,
    mut at: LineAddr,
    image: &mut SurvivingImage,
    found: &mut Found,
) -> Followed {
    let (mut records, mut sequence) = (0, 0);
    while at != LineAddr(0) && records < RECORDS_MAX {
        let Some(header) = Header::parse(image.load_line(at)) else { break };
        let links = Links::parse(image.load_line(second_line(mapping, at)));
        image.work(Work::Record, 1);
        // The next header's address is in these links.
        image.follow();
        found.add(&header, links.entries);
        (records, sequence, at) = (records + 1, header.sequence, links.next);
        if header.last || !Rules::of(context).next_is_followed() {
            return Followed { records, sequence, before: at };
        }
    }
    Followed { records, sequence, before: LineAddr(0) }
}
