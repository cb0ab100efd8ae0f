//! Truncation by a transaction table (§III-F): the alternative to scans.
//!
//! An entry per transaction counts the lines that hold data of it and are not durable at home. When the
//! transaction is persistent and the count is 0, its records may go; a log's head moves to the first record
//! of the oldest transaction that is left. (The paper's entry has the addresses of its first and last log entries; the
//! head needs the first only.)
//!
//! Left open by the paper, and decided here. Lines go home when caches evict them, which may take for ever: when
//! a log is full, or the table, the lines of the oldest persistent transactions are forced home. A head moves
//! when half of its log is in use, or a thread waits for room, since each move is a write.

use std::collections::BTreeMap;

use graven_base::ids::ThreadId;
use graven_base::memory::LineAddr;

use super::event::Event;
use super::line_state::Owner;
use super::protocol::{DataWriteNumber, Morlog, Port};

/// Transactions whose lines are forced home at a time.
const FORCED_AT_A_TIME: usize = 4;

/// Holders of data of a transaction: a line in the caches, or its parked words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    Cached(LineAddr),
    Parked(LineAddr, ThreadId),
}

/// A transaction with records in a log.
#[derive(Clone, Copy, Debug)]
struct TableEntry {
    owner: Owner,
    first_group: u64,
    /// Holders of its data that are not durable at home.
    counter: u32,
    /// Number among commits, once that is persistent.
    commit: Option<u64>,
}

/// The table.
#[derive(Debug)]
pub struct TransactionTable {
    entries: Vec<Option<TableEntry>>,
    /// Number of entries that are taken.
    taken: usize,
    /// Entries leave in the order of commits: with several logs, a transaction's redo data must not be left
    /// when a later one's is gone.
    in_order: bool,
    /// Entries that have data in a holder.
    holders: BTreeMap<Holder, Vec<usize>>,
    /// The same of data on its way home, by the number of its write.
    leaving: BTreeMap<DataWriteNumber, Vec<usize>>,
}

impl TransactionTable {
    /// An empty table. `in_order`: entries leave in the order of commits.
    pub fn new(entries: u32, in_order: bool) -> Self {
        let entries = vec![None; entries as usize];
        Self { entries, taken: 0, in_order, holders: BTreeMap::new(), leaving: BTreeMap::new() }
    }

    /// The entry of a transaction that is not persistent; one that is may have had the same id.
    fn of(&self, owner: Owner) -> Option<usize> {
        let is = |e: &TableEntry| e.owner == owner && e.commit.is_none();
        self.entries.iter().position(|e| e.as_ref().is_some_and(is))
    }

    /// Number of entries that are taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Returns true if no entry is free.
    pub fn is_full(&self) -> bool {
        self.taken == self.entries.len()
    }

    /// A transaction has its first record.
    pub fn add(&mut self, owner: Owner, first_group: u64) {
        let free = self.entries.iter_mut().find(|e| e.is_none()).expect("the caller looks first");
        *free = Some(TableEntry { owner, first_group, counter: 0, commit: None });
        self.taken += 1;
    }

    /// A holder has data of a transaction.
    pub fn touched(&mut self, owner: Owner, holder: Holder) {
        let Some(at) = self.of(owner) else { return };
        let of_holder = self.holders.entry(holder).or_default();
        if !of_holder.contains(&at) {
            of_holder.push(at);
            self.entries[at].as_mut().expect("just found").counter += 1;
        }
    }

    /// Notes that the data of a holder leaves for home.
    pub fn leaves(&mut self, holder: Holder, number: DataWriteNumber) {
        if let Some(entries) = self.holders.remove(&holder) {
            self.leaving.insert(number, entries);
        }
    }

    /// A write is durable at home. Returns whether an entry is free now.
    pub fn durable(&mut self, number: DataWriteNumber) -> bool {
        for at in self.leaving.remove(&number).into_iter().flatten() {
            self.entries[at].as_mut().expect("its counter keeps it").counter -= 1;
        }
        self.forget()
    }

    /// A transaction is persistent. Returns whether an entry is free now.
    pub fn persistent(&mut self, owner: Owner, commit: u64) -> bool {
        if let Some(at) = self.of(owner) {
            self.entries[at].as_mut().expect("just found").commit = Some(commit);
        }
        self.forget()
    }

    /// Frees the entries of persistent transactions whose data is at home; returns whether there were any.
    fn forget(&mut self) -> bool {
        let mut any = false;
        // Those that are not home; the first of them holds up the later ones if order matters.
        let first = self.first_not_home().filter(|_| self.in_order).unwrap_or(u64::MAX);
        for entry in &mut self.entries {
            let home = |e: TableEntry| e.counter == 0 && e.commit.is_some_and(|n| n < first);
            if entry.is_some_and(home) {
                *entry = None;
                self.taken -= 1;
                any = true;
            }
        }
        any
    }

    /// The first persistent commit of which not all data is at home.
    pub fn first_not_home(&self) -> Option<u64> {
        let live = self.entries.iter().flatten().filter(|e| e.counter > 0);
        live.filter_map(|e| e.commit).min()
    }

    /// The first group of the oldest transaction whose log this is.
    pub fn oldest(&self, is_of_log: impl Fn(ThreadId) -> bool) -> Option<u64> {
        let of_log = self.entries.iter().flatten().filter(|e| is_of_log(e.owner.thread));
        of_log.map(|e| e.first_group).min()
    }

    /// Cached lines of the persistent transactions that committed first, of those that are not home.
    fn lines_of_oldest(&self) -> Vec<LineAddr> {
        let mut oldest: Vec<(u64, usize)> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let not_home = entry.filter(|e| e.counter > 0);
            oldest.extend(not_home.and_then(|e| e.commit).map(|commit| (commit, at)));
        }
        oldest.sort_unstable();
        oldest.truncate(FORCED_AT_A_TIME);
        let is_oldest = |at: &usize| oldest.iter().any(|(_, of)| of == at);
        let held = self.holders.iter().filter(|(_, of)| of.iter().any(is_oldest));
        let line = |holder: &Holder| match *holder {
            Holder::Cached(line) => Some(line),
            Holder::Parked(..) => None,
        };
        held.filter_map(|(holder, _)| line(holder)).collect()
    }
}

impl Morlog {
    /// Returns true if a transaction that has no record yet can have an entry in the table, or
    /// there is no table.
    pub fn has_table_entry(&self) -> bool {
        !self.table.as_ref().is_some_and(TransactionTable::is_full)
    }

    /// The table, if there is one, hears that a holder has data of a transaction.
    pub fn touched(&mut self, owner: Owner, holder: Holder) {
        if let Some(table) = &mut self.table {
            table.touched(owner, holder);
        }
    }

    /// Forces data of the oldest persistent transactions home, and late redo data into the log, so that
    /// there will be room.
    pub fn press(&mut self, port: &mut Port<'_>) {
        self.send_late_redo(port, u64::MAX);
        let lines = self.table.as_ref().map(TransactionTable::lines_of_oldest).unwrap_or_default();
        for line in lines {
            if port.is_dirty(line) {
                port.emit(Event::PressedHome);
                self.write_line_back(port, line, false);
            }
        }
    }

    /// Uses entries of the table that are free: heads may move, and threads that wait for an entry
    /// continue.
    pub fn table_moved(&mut self, port: &mut Port<'_>) {
        self.move_heads_by_table(port);
        self.release_waiting_for_space(port);
    }

    /// Moves heads to the oldest transactions of the table, if that is worth its writes.
    pub fn move_heads_by_table(&mut self, port: &mut Port<'_>) {
        let Some(table) = &self.table else { return };
        let waits = !self.waiting_for_space.is_empty();
        let mut moves = false;
        let mut heads = Vec::new();
        for (log, end) in self.logs.ends.iter().enumerate() {
            let oldest = table.oldest(|thread| self.logs.of(thread) == log);
            let head = oldest.unwrap_or(end.packer.tail());
            let used = end.packer.tail() - end.head;
            moves |= head > end.head && (waits || 2 * used > end.packer.log().groups);
            heads.push(head);
        }
        if moves && self.truncation.is_none() {
            let not_home = table.first_not_home().map_or(u64::MAX, |n| n - 1);
            let horizon = self.persistent_commits().min(not_home);
            self.truncate(port, heads, horizon, None);
        }
    }
}
