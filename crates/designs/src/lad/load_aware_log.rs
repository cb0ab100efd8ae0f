//! The undo log in LALEA's blocks: each in the bank that has the fewest pending operations (`lalea-lad`).
//!
//! - **Filling.** An undo block is allocated and written when its old line was read. It joins its
//!   transaction's open record, which is closed when it has seven blocks or no line of the transaction is being
//!   read any more: lines that give up their places together share records, one that overflows by itself
//!   has a record of its own. A header is allocated and written when its blocks are durable (LALEA §II-B) and
//!   the headers of the transaction's older records are sent.
//! - **Chain.** LR, the thread's non-volatile register of 8 B, names the newest record that is durable with all
//!   older ones of the open transaction; each header's `next_ptr` names the one before. So a header is written
//!   once, and no line goes home before LR leads to its record. (LALEA's chains begin with the oldest; for
//!   undo data that would take a write to a header that recovery already relies on.)
//! - **Commit.** LR becomes NULL together with the change of owners in the pool: that alone makes the log
//!   void. The transaction's lines are at home by then, and its blocks return to their FIFOs.
//! - **No free block.** The request waits for the commit of another transaction. If all that hold blocks wait, or
//!   wait for lines whose records do, the run ends with the reason.

use std::collections::VecDeque;

use super::chained_record::{self, Entry};
use super::cover::Cover;
use super::undo_log::{Undo, UndoLog};
use super::{About, Mutant};
use crate::lalea::{BankTable, ENTRIES};
use graven_base::config::ConfigError;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_machine::design::{DesignContext, MutantSet};
use graven_machine::machine::Machine;
use graven_machine::request::{Token, Write, WriteClass};

/// A line of a record.
#[derive(Clone, Copy, Debug)]
struct Undone {
    home: LineAddr,
    words: WordMask,
    /// Its undo block, once it has one.
    block: Option<LineAddr>,
}

/// A record that is not in the chain yet.
#[derive(Clone, Debug, Default)]
struct Record {
    lines: Vec<Undone>,
    /// More lines may join it.
    is_open: bool,
    /// Of its blocks, those not durable.
    blocks_coming: usize,
    /// Once it is sent.
    header: Option<LineAddr>,
    /// Of the header's lines, those not durable.
    header_coming: usize,
    /// It has found no free header.
    has_waited: bool,
}

/// A thread's records.
#[derive(Clone, Debug, Default)]
struct Chain {
    /// The non-volatile register LR: the record where recovery begins.
    first: Option<LineAddr>,
    /// The header sent last in this transaction.
    newest: Option<LineAddr>,
    /// Records that are not in the chain yet, oldest first.
    coming: VecDeque<Record>,
    /// Number of the oldest of them.
    number: u64,
    /// Blocks and headers of the open transaction.
    blocks: Vec<LineAddr>,
    headers: Vec<LineAddr>,
    waits_for_header: bool,
}

/// A line of a record by its place.
#[derive(Clone, Copy, Debug)]
struct Place {
    thread: usize,
    /// Of its record.
    number: u64,
    index: usize,
}

impl Place {
    const HEADER: usize = ENTRIES;

    fn token(self) -> Token {
        About::Record.number(self.number << 10 | (self.index as u64) << 7 | self.thread as u64)
    }

    fn of(number: u64) -> Place {
        let (thread, index) = ((number & 0x7f) as usize, (number >> 7 & 7) as usize);
        Place { thread, number: number >> 10, index }
    }
}

/// The log of all threads.
pub(super) struct LoadAwareLog {
    table: BankTable,
    chains: Vec<Chain>,
    /// Lines that have found no free block, oldest first.
    waiting: VecDeque<(Place, LineData)>,
    mutants: MutantSet,
}

impl LoadAwareLog {
    pub(super) fn new(context: &DesignContext) -> Result<LoadAwareLog, ConfigError> {
        Ok(LoadAwareLog {
            table: BankTable::new(context)?,
            chains: vec![Chain::default(); context.threads as usize],
            waiting: VecDeque::new(),
            mutants: context.mutants,
        })
    }

    /// Writes an undo block, if one is free.
    fn write_block(&mut self, m: &mut Machine, place: Place, old: &LineData) -> bool {
        let Some(block) = self.table.entry(m) else { return false };
        let chain = &mut self.chains[place.thread];
        chain.blocks.push(block);
        let record = &mut chain.coming[(place.number - chain.number) as usize];
        record.lines[place.index].block = Some(block);
        m.write(Write { token: place.token(), ..Write::line(WriteClass::Log, block, *old) }, 0);
        true
    }

    /// Sends the headers whose turn it is.
    fn send_headers(&mut self, m: &mut Machine, thread: usize) {
        let chain = &mut self.chains[thread];
        chain.waits_for_header = false;
        for (at, record) in chain.coming.iter_mut().enumerate() {
            if record.header.is_some() {
                continue;
            }
            let overtakes = self.mutants.has(Mutant::HeaderOvertakesData)
                && record.lines.iter().all(|line| line.block.is_some());
            if record.is_open || record.blocks_coming > 0 && !overtakes {
                return;
            }
            let Some(header) = self.table.header(m) else {
                m.count().log_space_waits += u64::from(!record.has_waited);
                record.has_waited = true;
                chain.waits_for_header = true;
                return m.cover(Cover::WaitsForBlock as usize);
            };
            let place = Place { thread, number: chain.number + at as u64, index: Place::HEADER };
            let second = self.table.regions().second_line(header);
            record.send(m, place, [header, second], chain.newest);
            chain.headers.push(header);
            chain.newest = Some(header);
            if self.mutants.has(Mutant::ChainBeforeHeader) {
                m.durable_state_changed();
                chain.first = Some(header);
            }
        }
    }

    /// A line of a header is durable.
    fn header_persisted(
        &mut self,
        m: &mut Machine,
        thread: usize,
        at: usize,
        logged: &mut Vec<LineAddr>,
    ) {
        let chain = &mut self.chains[thread];
        let record = &mut chain.coming[at];
        let one_will_do = self.mutants.has(Mutant::SecondLineNotAwaited);
        record.header_coming = if one_will_do { 0 } else { record.header_coming - 1 };
        if at > 0 && record.header_coming == 0 {
            m.cover(Cover::RecordBeforeOlder as usize);
            if self.mutants.has(Mutant::LineBeforeChain) {
                logged.extend(record.lines.drain(..).map(|line| line.home));
            }
        }
        while let Some(record) = chain.coming.front().filter(|record| record.is_durable()) {
            if chain.first.is_some() {
                m.cover(Cover::ChainOfSeveral as usize);
            }
            m.durable_state_changed();
            chain.first = record.header;
            m.note(|| format!("the chain of thread {thread} begins with the next record"));
            if !self.mutants.has(Mutant::HeaderNotAwaited) {
                logged.extend(record.lines.iter().map(|line| line.home));
            }
            if self.mutants.has(Mutant::BlocksReleasedEarly) {
                chain.blocks.drain(..).for_each(|block| self.table.release_entry(block));
            }
            chain.coming.pop_front();
            chain.number += 1;
        }
    }

    /// Blocks are free again: those who wait get them.
    fn serve_waiting(&mut self, m: &mut Machine) {
        while let Some(&(place, old)) = self.waiting.front() {
            if !self.write_block(m, place, &old) {
                break;
            }
            self.waiting.pop_front();
        }
        for thread in 0..self.chains.len() {
            if self.chains[thread].waits_for_header {
                self.send_headers(m, thread);
            }
        }
    }

    /// Lines whose records wait for a block, or come after one that does.
    fn waiting_lines(&self) -> impl Iterator<Item = LineAddr> {
        let coming = self.chains.iter().map(|chain| &chain.coming);
        let records = coming.flat_map(|records| records.iter().skip_while(|r| !r.waits()));
        records.flat_map(|record| &record.lines).map(|line| line.home)
    }
}

impl Record {
    fn waits(&self) -> bool {
        self.header.is_none()
            && (self.has_waited || self.lines.iter().any(|line| line.block.is_none()))
    }

    fn is_durable(&self) -> bool {
        self.header.is_some() && self.header_coming == 0
    }

    /// Sends the header to its two lines.
    fn send(
        &mut self,
        m: &mut Machine,
        place: Place,
        header: [LineAddr; 2],
        next: Option<LineAddr>,
    ) {
        self.header = Some(header[0]);
        self.header_coming = 2;
        let entries = self.lines.iter().map(|line| Entry {
            home: line.home,
            words: line.words,
            block: line.block.expect("headers are sent when all blocks are allocated"),
        });
        let lines = chained_record::header(entries, next);
        for (line, data) in header.into_iter().zip(lines) {
            let write = Write::line(WriteClass::Metadata, line, data);
            m.write(Write { token: place.token(), ..write }, 0);
        }
        m.count().log_headers += 1;
        if self.lines.len() > 1 {
            m.cover(Cover::RecordOfSeveral as usize);
        }
        if self.lines.len() == ENTRIES {
            m.cover(Cover::RecordFull as usize);
        }
    }
}

impl UndoLog for LoadAwareLog {
    fn append(&mut self, m: &mut Machine, undo: &Undo) {
        let chain = &mut self.chains[undo.thread];
        if chain.coming.back().is_none_or(|record| !record.is_open) {
            chain.coming.push_back(Record { is_open: true, ..Record::default() });
        }
        let record = chain.coming.back_mut().expect("one was pushed if there was none");
        record.blocks_coming += 1;
        record.lines.push(Undone { home: undo.home, words: undo.words, block: None });
        record.is_open = record.lines.len() < ENTRIES;
        let index = record.lines.len() - 1;
        let number = chain.number + chain.coming.len() as u64 - 1;
        let place = Place { thread: undo.thread, number, index };
        if !self.waiting.is_empty() || !self.write_block(m, place, &undo.old) {
            self.waiting.push_back((place, undo.old));
            m.count().log_space_waits += 1;
            m.cover(Cover::WaitsForBlock as usize);
        }
        self.send_headers(m, undo.thread);
    }

    fn close(&mut self, m: &mut Machine, thread: usize) {
        let Some(record) = self.chains[thread].coming.back_mut().filter(|r| r.is_open) else {
            return;
        };
        record.is_open = false;
        self.send_headers(m, thread);
    }

    fn on_durable(&mut self, m: &mut Machine, number: u64, logged: &mut Vec<LineAddr>) {
        let Place { thread, number, index } = Place::of(number);
        let chain = &mut self.chains[thread];
        // Some mutants do not wait for all writes of a record.
        let Some(at) = number.checked_sub(chain.number) else { return };
        if index == Place::HEADER {
            return self.header_persisted(m, thread, at as usize, logged);
        }
        let record = &mut chain.coming[at as usize];
        record.blocks_coming -= 1;
        if self.mutants.has(Mutant::HeaderNotAwaited) {
            logged.push(record.lines[index].home);
        }
        self.send_headers(m, thread);
    }

    fn commit(&mut self, m: &mut Machine, thread: usize) {
        let chain = &mut self.chains[thread];
        m.count().log_records_truncated += chain.headers.len() as u64;
        if !self.mutants.has(Mutant::ChainNotCleared) {
            chain.first = None;
        }
        if !self.mutants.has(Mutant::ChainRunsOn) {
            chain.newest = None;
        }
        chain.blocks.drain(..).for_each(|block| self.table.release_entry(block));
        chain.headers.drain(..).for_each(|header| self.table.release_header(header));
        self.serve_waiting(m);
    }

    fn is_stuck(&self, waits_for: &dyn Fn(usize, LineAddr) -> bool) -> bool {
        let none_waits = self.waiting.is_empty() && self.chains.iter().all(|c| !c.waits_for_header);
        if none_waits {
            return false;
        }
        let lines: Vec<LineAddr> = self.waiting_lines().collect();
        (0..self.chains.len()).all(|t| {
            let chain = &self.chains[t];
            let holds_none = chain.blocks.is_empty() && chain.headers.is_empty();
            let waits = chain.coming.iter().any(Record::waits);
            holds_none || waits || lines.iter().any(|&line| waits_for(t, line))
        })
    }

    fn registers(&self) -> Vec<u64> {
        self.chains.iter().map(|chain| chain.first.unwrap_or_default().addr().0).collect()
    }
}
