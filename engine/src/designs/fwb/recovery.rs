//! Recovery (§IV-F), from the bytes of the log alone.
//!
//! From the head on, records are read until a slot does not hold the record that it should: its torn
//! bits are mixed or those of the pass before. Nothing after that first hole matters, even if whole
//! records lie there, because three things wait until every record before them is durable: a line's
//! write to its home (for the records of its stores), the acknowledgement of a commit, and the head.
//! So the stores after a hole have reached no home, and their transactions were not acknowledged. (To
//! undo one of them would be wrong: its undo word may be a value that an earlier record, lost in the
//! hole, wrote.) No tail pointer is needed.
//!
//! A thread runs one transaction after the other and each ends with a commit record, so a thread's
//! records belong to committed transactions up to its last commit record. Ids may come round: nothing
//! depends on them.
//!
//! Redo goes first, forward, then undo, newest first. Since the log is truncated from its head only,
//! records of a word that are left are its newest ones, and the last committed one of them is the
//! newest committed value. The head moves last, so a recovery that is cut short starts over and does
//! the same; one that completed leaves an empty log. Before the system uses that log again, it creates
//! it anew (`log_create`, §IV-A), which clears the slots: whole records may lie behind the hole.

use std::collections::BTreeSet;

use super::Sabotage;
use super::log::{Kind, Log, Record};
use crate::crash::Medium;
use crate::designs::{RecoveryReport, Site};

pub fn recover(site: &Site, _registers: &[u64], medium: &mut Medium) -> RecoveryReport {
    let has = |sabotage| site.sabotages.has(sabotage);
    let log = Log::of(site);
    let mut report = RecoveryReport::default();
    let head = medium.load(log.head());
    let (records, scanned) = live_records(&log, head, site, medium);
    report.records_scanned = scanned;
    for (number, record) in (head..).zip(&records) {
        medium.note(|| format!("record {number}: {record}"));
    }
    if records.is_empty() {
        return report;
    }
    let new_head = head + records.len() as u64;
    if has(Sabotage::RecoveryMovesHeadFirst) {
        medium.store(log.head(), new_head);
    }

    let (mut redo, mut undo) = split(&records, site, medium);
    if has(Sabotage::RedoNewestFirst) {
        redo.reverse();
    }
    if has(Sabotage::RedoLeftOut) {
        redo.clear();
    }
    for record in redo {
        medium.store(record.addr, record.redo);
        report.words_redone += 1;
    }
    if !has(Sabotage::UndoOldestFirst) {
        undo.reverse();
    }
    for record in undo {
        medium.store(record.addr, record.undo);
        report.words_undone += 1;
    }
    medium.store(log.head(), new_head);
    report
}

/// The entries of committed transactions and those of others, each in their order.
fn split<'a>(
    records: &'a [Record],
    site: &Site,
    medium: &mut Medium,
) -> (Vec<&'a Record>, Vec<&'a Record>) {
    let has = |sabotage| site.sabotages.has(sabotage);
    let mut committed_until = [0; 1 << u8::BITS];
    let mut committed_ids = BTreeSet::new();
    for (i, record) in records.iter().enumerate().filter(|(_, r)| r.kind == Kind::Commit) {
        committed_until[usize::from(record.thread)] = i;
        if has(Sabotage::IdTellsCommit) {
            committed_ids.insert((record.thread, record.tx));
        }
    }
    let (mut redo, mut undo) = (Vec::new(), Vec::new());
    for (i, record) in records.iter().enumerate().filter(|(_, r)| r.kind == Kind::Entry) {
        let is_committed = if has(Sabotage::WholeMeansCommitted) {
            true
        } else if has(Sabotage::HomeTellsCommit) {
            medium.load(record.addr) == record.redo
        } else if has(Sabotage::IdTellsCommit) {
            committed_ids.contains(&(record.thread, record.tx))
        } else {
            i < committed_until[usize::from(record.thread)]
        };
        (if is_committed { &mut redo } else { &mut undo }).push(record);
    }
    (redo, undo)
}

/// The records from the head to the first hole, and the number of slots read.
fn live_records(log: &Log, head: u64, site: &Site, medium: &mut Medium) -> (Vec<Record>, u64) {
    let mut records = Vec::new();
    for number in head..head + log.slots {
        match log.read(medium, number) {
            Some(record) => records.push(record),
            None if site.sabotages.has(Sabotage::HolesAreSkipped) => {}
            None => return (records, number - head + 1),
        }
    }
    (records, log.slots)
}
