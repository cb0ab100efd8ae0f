//! Recovery (§III-E), from the bytes of the logs alone.
//!
//! Each log is read from its head to its first hole. A thread's records up to a commit record belong to that
//! transaction; what it logs for it afterwards is marked late and bears its id. Commits are put in order: by
//! their places in the one log, or by their numbers.
//!
//! A transaction counts if its commit record is durable; with delay-persistence also all the redo data that its
//! ulog counter announces, and all transactions that committed before it count, too. Redo goes first, in
//! the order of commits: per word the newest, and nothing for a word that a later record says is at home. Then
//! undo, newest first: of transactions that never committed, then of those that do not count, the last
//! commit first. The heads move last. With several logs that cannot be done at once: first the void flag says
//! that all are empty.

use super::logs::Places;
use super::{LogType, MorlogConfig, Rules};
use crate::packed_log::{Kind, Record, Scan};
use crate::settling::Oldest;
use graven_base::codecs::mask_of_bytes;
use graven_base::ids::ThreadId;
use graven_base::memory::{WordMap, words_in};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport, Settlement, Stores};

/// Makes empty logs of whatever the region holds.
pub fn format(context: &DesignContext, image: &mut SurvivingImage) {
    let places = Places::of(context);
    places.logs.iter().for_each(|log| log.create(image));
    image.store(places.horizon, 0);
    image.store(places.void, 0);
}

/// Records of a transaction for which memory is allocated at once.
const RECORDS_EXPECTED: usize = 32;

/// Transactions for which memory is allocated at once.
const TRANSACTIONS_EXPECTED: usize = 12;

/// Words that are redone, and pieces of memory that they lie in, for which memory is allocated at
/// once.
const REDONE_EXPECTED: (usize, usize) = (128, 3);

/// Threads for whose open transactions memory is allocated at once.
const THREADS_EXPECTED: usize = 8;

/// A transaction, as its records describe it.
#[derive(Debug)]
struct Transaction<'a> {
    id: u16,
    /// Undo+redo and redo records, oldest first.
    records: Vec<&'a Record>,
    /// Place among commits, and number of words that it announced, once it has a commit record.
    commit: Option<(u64, u32)>,
    /// Words that came late.
    late: u32,
}

impl Transaction<'_> {
    /// One without records yet.
    fn empty() -> Self {
        let records = Vec::with_capacity(RECORDS_EXPECTED);
        Transaction { id: 0, records, commit: None, late: 0 }
    }
}

/// Content of the logs.
struct Found {
    places: Places,
    scans: Vec<Scan>,
    /// Records in all logs.
    records: u64,
    /// There are several logs.
    several: bool,
    /// The void flag is set.
    is_void: bool,
}

impl Found {
    fn read(context: &DesignContext, image: &mut SurvivingImage) -> Found {
        let places = Places::of(context);
        let several = places.logs.len() > 1;
        let is_void = several && image.load(places.void) != 0;
        let scans: Vec<_> = places.logs.iter().map(|log| log.scan(image)).collect();
        let records = scans.iter().map(|s| s.records.len() as u64).sum();
        Found { places, scans, records, several, is_void }
    }

    /// Leaves the logs empty, with their heads where they end. The void flag is set while some have moved and others not.
    fn move_heads(&self, image: &mut SurvivingImage) {
        if self.several && self.records > 0 {
            image.store(self.places.void, 1);
            image.fence();
        }
        for (log, scan) in self.places.logs.iter().zip(&self.scans) {
            if image.load(log.head()) != scan.end {
                log.seal(image, scan.end);
                image.store(log.head(), scan.end);
            }
        }
        image.fence();
        if self.several && (self.is_void || self.records > 0) {
            image.store(self.places.void, 0);
        }
    }

    /// The transactions, in the order of their commits, and then those that are open.
    fn transactions(&self, rules: Rules, image: &mut SurvivingImage) -> Vec<Transaction<'_>> {
        let mut transactions = Vec::with_capacity(TRANSACTIONS_EXPECTED);
        for (log, scan) in self.scans.iter().enumerate() {
            for (group, record) in &scan.records {
                image.note(|| format!("log {log}, group {group}: {record}"));
            }
            let records = scan.records.iter().map(|(_, record)| record);
            collect(self.several, records, &mut transactions);
        }
        // Each record is entered with its transaction.
        image.work(Work::Table, self.records);
        if rules.redo_in_commit_order() {
            image.work_of_sort(transactions.len());
            transactions.sort_by_key(|t| t.commit.map_or(u64::MAX, |(number, _)| number));
        }
        transactions
    }
}

pub fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let rules = Rules::of(context);
    let found = Found::read(context, image);
    let mut report = RecoveryReport { records_scanned: found.records, ..Default::default() };
    if found.is_void || found.records == 0 {
        found.move_heads(image);
        return report;
    }
    if !rules.recovery_moves_head_last() {
        found.move_heads(image);
    }
    let transactions = found.transactions(rules, image);
    let horizon = found.several.then(|| image.load(found.places.horizon));
    let counts = whole(&transactions, horizon, context);
    let (count, others): (Vec<_>, Vec<_>) =
        transactions.iter().zip(counts).partition(|(_, counts)| *counts);
    report.words_redone = redo(count.into_iter().map(|(t, _)| t), horizon, image);
    report.words_undone = undo(others.into_iter().map(|(t, _)| t), context, image);
    image.bypass_caches(false);
    image.fence();
    if rules.recovery_moves_head_last() {
        found.move_heads(image);
    }
    report
}

/// Replays the oldest records of the one log ahead, as far as their transactions have committed, and moves the head past them.
/// Nothing is done ahead where redo data come after commit records, or where there are several logs.
pub fn settle(context: &DesignContext, image: &mut SurvivingImage) -> Option<Settlement> {
    let config = context.config.get::<MorlogConfig>();
    if config.delay_persistence || config.log_type != LogType::Centralised {
        return None;
    }
    let log = Places::of(context).logs.remove(0);
    let Scan { records, end, .. } = log.scan(image);
    let oldest = Oldest::of(&records, |group| log.can_begin(image, group))?;
    let mut newest = WordMap::with_capacity(REDONE_EXPECTED.0, REDONE_EXPECTED.1);
    let mut open: Vec<Vec<&Record>> = Vec::new();
    for (at, (_, record)) in records[..oldest.known_by].iter().enumerate() {
        let thread = record.thread as usize;
        open.resize_with(open.len().max(thread + 1), Vec::new);
        match record.kind {
            _ if record.late => return None,
            Kind::InPlace => return None,
            Kind::Commit => {
                let committed = std::mem::take(&mut open[thread]);
                if needs_home(&committed, &newest) {
                    return None;
                }
                lay(&committed, &mut newest, image);
            }
            Kind::UndoRedo | Kind::Redo if at < oldest.records => open[thread].push(record),
            Kind::UndoRedo | Kind::Redo => {}
        }
    }
    image.store_all(newest.in_order(|word| word));
    image.store(log.head(), oldest.head(&records));
    let depends_on = log.bytes_of(oldest.known_places(&records, end));
    Some(Settlement { depends_on, stores: Stores::OfWords, hides_records: false })
}

/// Writes the newest word that these transactions have of each home address, past the caches from here on. Returns how
/// many. What has committed up to the horizon is at home.
fn redo<'a>(
    transactions: impl Iterator<Item = &'a Transaction<'a>>,
    horizon: Option<u64>,
    image: &mut SurvivingImage,
) -> u64 {
    let mut newest = WordMap::with_capacity(REDONE_EXPECTED.0, REDONE_EXPECTED.1);
    for transaction in transactions {
        let commit = transaction.commit.map(|(number, _)| number);
        if horizon.is_none() || commit.is_none() || commit > horizon {
            lay(&transaction.records, &mut newest, image);
        }
    }
    // §III-E: "the same steps as the prior undo+redo hardware logging", FWB's, whose writes bypass the caches.
    image.bypass_caches(true);
    let words = newest.in_order(|word| word);
    let count = words.len() as u64;
    image.store_all(words);
    count
}

/// Writes the old words of these transactions back, newest first. Returns how many.
fn undo<'a>(
    transactions: impl Iterator<Item = &'a Transaction<'a>>,
    context: &DesignContext,
    image: &mut SurvivingImage,
) -> u64 {
    let records = transactions.flat_map(|t| &t.records).filter(|r| r.kind == Kind::UndoRedo);
    let mut records: Vec<&Record> = records.copied().collect();
    if Rules::of(context).undo_newest_first() {
        records.reverse();
    }
    for record in &records {
        let value = undo_value(record, context, image);
        image.store(record.addr, value);
    }
    records.len() as u64
}

fn undo_value(record: &Record, context: &DesignContext, image: &mut SurvivingImage) -> u64 {
    if Rules::of(context).undo_restores_whole_words() {
        return record.undo;
    }
    let mask = mask_of_bytes(record.dirty);
    image.load(record.addr) & !mask | record.undo & mask
}

/// Deals a log's records out to transactions, in their order.
fn collect<'a>(
    numbered: bool,
    records: impl Iterator<Item = &'a Record>,
    transactions: &mut Vec<Transaction<'a>>,
) {
    let first = transactions.len();
    // By thread.
    let mut open: Vec<Option<Transaction<'_>>> = Vec::with_capacity(THREADS_EXPECTED);
    let mut committed: Vec<ThreadId> = Vec::new();
    for (place, record) in records.enumerate() {
        if record.late {
            // The last transaction of the thread that has committed under this id.
            let of = |(i, t): &(usize, &Transaction<'_>)| {
                committed[*i] == record.thread && t.id == record.tx
            };
            let found = transactions[first..].iter().enumerate().rev().find(of).map(|(i, _)| i);
            if let Some(i) = found {
                let transaction = &mut transactions[first + i];
                transaction.late += match record.kind {
                    Kind::InPlace => record.dirty.count_ones(),
                    _ => 1,
                };
                transaction.records.push(record);
            }
            continue;
        }
        let thread = record.thread as usize;
        if open.len() <= thread {
            open.resize_with(thread + 1, || None);
        }
        let transaction = open[thread].get_or_insert_with(Transaction::empty);
        transaction.id = record.tx;
        if record.kind == Kind::Commit {
            let number = if numbered { record.addr.0 } else { place as u64 };
            transaction.commit = Some((number, record.ulog));
            committed.push(record.thread);
            transactions.extend(open[thread].take());
        } else {
            transaction.records.push(record);
        }
    }
    // Open transactions of several logs have written no word of each other's: had one committed, its record
    // would be durable before the others'. So their order is of no account.
    transactions.extend(open.into_iter().flatten());
}

/// Returns for each transaction whether it counts.
fn whole(
    transactions: &[Transaction<'_>],
    horizon: Option<u64>,
    context: &DesignContext,
) -> Vec<bool> {
    let rules = Rules::of(context);
    let delayed = context.config.get::<MorlogConfig>().delay_persistence;
    let mut all_before = true;
    let mut expected = None;
    let mut counts = Vec::with_capacity(transactions.len());
    for transaction in transactions {
        let Some((number, ulog)) = transaction.commit else {
            counts.push(false);
            continue;
        };
        let behind_horizon = horizon.is_some_and(|horizon| number <= horizon);
        if !delayed || behind_horizon {
            counts.push(true);
            continue;
        }
        // A number that is missing is a transaction that committed and whose record is not there.
        if let Some(horizon) = horizon {
            all_before &=
                number == expected.unwrap_or(horizon + 1) || !rules.only_a_prefix_is_redone();
            expected = Some(number + 1);
        }
        let is_whole = transaction.late == ulog || !rules.counter_tells_whole();
        counts.push(is_whole && all_before);
        all_before &= is_whole || !rules.only_a_prefix_is_redone();
    }
    counts
}

/// Tells whether any of a transaction's redo data has to be completed by what is at home, which changes.
fn needs_home(records: &[&Record], known: &WordMap<u64>) -> bool {
    records.iter().enumerate().any(|(at, record)| {
        let is_before = || records[..at].iter().any(|before| before.addr == record.addr);
        record.partial && known.get(record.addr).is_none() && !is_before()
    })
}

/// Lays a transaction's redo data over that of those before it.
fn lay(records: &[&Record], redo: &mut WordMap<u64>, image: &mut SurvivingImage) {
    image.work(Work::Table, records.len() as u64);
    for record in records {
        match record.kind {
            Kind::UndoRedo => redo.insert(record.addr, record.redo),
            Kind::Redo if record.partial => redo.update(record.addr, |known| {
                let below = known.unwrap_or_else(|| image.load(record.addr));
                let mask = mask_of_bytes(record.dirty);
                below & !mask | record.redo & mask
            }),
            Kind::Redo => redo.insert(record.addr, record.redo),
            Kind::InPlace => {
                for word in words_in(record.dirty) {
                    redo.remove(record.addr.line().word(word));
                    image.leave(record.addr.line().word(word));
                }
            }
            Kind::Commit => {}
        }
    }
}
