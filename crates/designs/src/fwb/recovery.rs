//! Recovery (§IV-F), from the bytes of the log alone.
//!
//! From the head on, records are read until one is not there that should be: its torn bits are mixed or those
//! of the pass before. In either format the records are the same, and what is done with them, too. Nothing after that first hole matters, even if whole
//! records lie there, because three things wait until every record before them is durable: a line's
//! write to its home (for the records of its stores), the acknowledgement of a commit, and the head.
//! So the stores after a hole have reached no home, and their transactions were not acknowledged. (To
//! undo one of them would be wrong: its undo word may be a value that an earlier record, lost in the
//! hole, wrote.) No tail pointer is needed.
//!
//! A thread runs one transaction after the other and each ends with a commit record, so a thread's
//! records belong to committed transactions up to its last commit record. Ids may wrap around: nothing
//! depends on them.
//!
//! Redo goes first, forward, then undo, newest first. Since the log is truncated from its head only,
//! records of a word that are left are its newest ones, and the last committed one of them is the
//! newest committed value. The head moves last, so a recovery that is cut short starts over and does
//! the same; one that completed leaves an empty log. Before the system uses that log again, it creates
//! it anew (`log_create`, §IV-A), which clears it: whole records may lie behind the hole.
//!
//! Records of one value are redone or undone only. That is not enough, and known not to be.

use std::collections::BTreeSet;

use super::log::{Log, Remains};
use super::record::LogValues;
use super::{FwbConfig, Rules};
use crate::fields::THREAD_BITS;
use crate::packed_log::{Kind, Record};
use crate::settling::Oldest;
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport, Settlement, Stores};

pub fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let rules = Rules::of(context);
    let log = Log::of(context);
    let mut report = RecoveryReport::default();
    let Remains { records, end, examined } = log.scan(image);
    report.records_scanned = examined;
    for (place, record) in &records {
        image.note(|| format!("place {place}: {record}"));
    }
    if records.is_empty() {
        return report;
    }
    if !rules.recovery_moves_head_last() {
        log.empty(image, end);
    }

    let (mut redo, mut undo) = split(&records, context, image);
    if !rules.redo_oldest_first() {
        redo.reverse();
    }
    let values = context.config.get::<FwbConfig>().log_values;
    if !rules.redo_is_replayed() || values == LogValues::Undo {
        redo.clear();
    }
    if values == LogValues::Redo {
        undo.clear();
    }
    // Step 3: "The generated writes bypass the caches and go directly to NVRAM."
    image.bypass_caches(true);
    (report.words_redone, report.words_undone) = (redo.len() as u64, undo.len() as u64);
    image.store_all(redo.iter().map(|record| (record.addr, record.redo)));
    if rules.undo_newest_first() {
        undo.reverse();
    }
    image.store_all(undo.iter().map(|record| (record.addr, record.undo)));
    image.bypass_caches(false);
    image.fence();
    log.empty(image, end);
    report
}

/// Replays the oldest records ahead, as far as their transactions have committed, and moves the head past them. Redo goes forward and
/// before undo, so that a recovery from the new head on leaves the same.
pub fn settle(context: &DesignContext, image: &mut SurvivingImage) -> Option<Settlement> {
    if context.config.get::<FwbConfig>().log_values != LogValues::Both {
        return None;
    }
    let log = Log::of(context);
    let Remains { records, end, .. } = log.scan(image);
    let oldest = Oldest::of(&records, |place| log.can_begin(image, place))?;
    let settled = records[..oldest.records].iter().map(|(_, record)| record);
    let redo: Vec<_> =
        settled.filter(|r| r.kind == Kind::UndoRedo).map(|r| (r.addr, r.redo)).collect();
    let stores = Stores::OfRecords(redo.len() as u64);
    image.store_all(redo);
    image.store(log.head(), oldest.head(&records));
    let depends_on = log.bytes_of(oldest.known_places(&records, end));
    Some(Settlement { depends_on, stores, hides_records: false })
}

/// The entries of committed transactions and those of others, each in their order.
fn split<'a>(
    records: &'a [(u64, Record)],
    context: &DesignContext,
    image: &mut SurvivingImage,
) -> (Vec<&'a Record>, Vec<&'a Record>) {
    let rules = Rules::of(context);
    let mut committed_until = [0; 1 << THREAD_BITS];
    let mut committed_ids = BTreeSet::new();
    let of = |kind| records.iter().map(|(_, r)| r).enumerate().filter(move |(_, r)| r.kind == kind);
    for (i, record) in of(Kind::Commit) {
        committed_until[record.thread as usize] = i;
        if !rules.commit_follows_records() {
            committed_ids.insert((record.thread, record.tx));
        }
    }
    // Of each record its thread's last commit is looked up.
    image.work(Work::Table, records.len() as u64);
    let (mut redo, mut undo) = (Vec::with_capacity(records.len()), Vec::new());
    for (i, record) in of(Kind::UndoRedo) {
        let is_committed = if !rules.commit_record_decides() {
            true
        } else if !rules.home_tells_nothing() {
            image.load(record.addr) == record.redo
        } else if !rules.commit_follows_records() {
            committed_ids.contains(&(record.thread, record.tx))
        } else {
            i < committed_until[record.thread as usize]
        };
        (if is_committed { &mut redo } else { &mut undo }).push(record);
    }
    (redo, undo)
}
