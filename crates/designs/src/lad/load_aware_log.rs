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

use super::Rules;
use super::chained_record::{self, Entry};
use super::event::Event;
use super::protocol::{self, Port};
use super::undo_log::{Undo, UndoLog};
use crate::lalea::{BankTable, ENTRIES, word_of};
use graven_base::config::ConfigError;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_machine::design::DesignContext;
use graven_machine::request::{Write, WriteClass};

/// A line of a record.
#[derive(Clone, Copy, Debug)]
struct Undone {
    home: LineAddr,
    words: WordMask,
    /// The undo block, once it has one.
    block: Option<LineAddr>,
}

/// A record that is not in the chain yet.
#[derive(Clone, Debug, Default)]
struct Record {
    lines: Vec<Undone>,
    /// More lines may join it.
    is_open: bool,
    /// Number of its blocks that are not durable.
    blocks_coming: usize,
    /// Once it is sent.
    header: Option<LineAddr>,
    /// Number of the header's lines that are not durable.
    header_coming: usize,
    /// True if it has found no free header.
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
pub(super) struct Place {
    thread: usize,
    /// The number of its record.
    record: u64,
    index: usize,
}

/// Writes of the log.
#[derive(Clone, Copy, Debug)]
pub(super) enum LogWrite {
    /// An undo block.
    Block(Place),
    /// A line of a record's header.
    Header { thread: usize, record: u64 },
}

/// The log of all threads.
pub(super) struct LoadAwareLog {
    table: BankTable,
    chains: Vec<Chain>,
    /// Lines that have found no free block, oldest first.
    waiting: VecDeque<(Place, LineData)>,
    rules: Rules,
}

impl LoadAwareLog {
    // ---- blocks --------------------------------------------------------------------------------

    /// Writes an undo block, if one is free.
    fn write_block(&mut self, port: &mut Port<'_, Self>, place: Place, old: &LineData) -> bool {
        let Some(block) = self.table.entry(port) else { return false };
        let chain = &mut self.chains[place.thread];
        chain.blocks.push(block);
        let record = &mut chain.coming[(place.record - chain.number) as usize];
        record.lines[place.index].block = Some(block);
        let write = Write::line(WriteClass::Log, block, *old);
        port.write_reported(write, protocol::Write::Log(LogWrite::Block(place)), 0);
        true
    }

    /// An undo block is durable: when all of its record are, the header's turn may have come.
    fn block_durable(
        &mut self,
        port: &mut Port<'_, Self>,
        place: Place,
        logged: &mut Vec<LineAddr>,
    ) {
        let Some(record) = self.chains[place.thread].record(place.record) else { return };
        record.blocks_coming -= 1;
        if !self.rules.header_is_awaited() {
            logged.push(record.lines[place.index].home);
        }
        self.send_headers(port, place.thread);
    }

    /// Blocks are free again: those who wait get them.
    fn serve_waiting(&mut self, port: &mut Port<'_, Self>) {
        while let Some(&(place, old)) = self.waiting.front() {
            if !self.write_block(port, place, &old) {
                break;
            }
            self.waiting.pop_front();
        }
        for thread in 0..self.chains.len() {
            if self.chains[thread].waits_for_header {
                self.send_headers(port, thread);
            }
        }
    }

    // ---- headers and chains --------------------------------------------------------------------

    /// Sends the headers whose turn it is: of records that are closed and have durable blocks, oldest first.
    fn send_headers(&mut self, port: &mut Port<'_, Self>, thread: usize) {
        let chain = &mut self.chains[thread];
        chain.waits_for_header = false;
        for (record, number) in chain.coming.iter_mut().zip(chain.number..) {
            if record.header.is_some() {
                continue;
            }
            let overtakes = !self.rules.header_follows_data()
                && record.lines.iter().all(|line| line.block.is_some());
            if record.is_open || record.blocks_coming > 0 && !overtakes {
                return;
            }
            let Some(header) = self.table.header(port) else {
                port.emit(Event::WaitsForBlock { again: record.has_waited });
                record.has_waited = true;
                chain.waits_for_header = true;
                return;
            };
            let lines = [header, self.table.regions().second_line(header)];
            record.send(port, LogWrite::Header { thread, record: number }, lines, chain.newest);
            chain.headers.push(header);
            chain.newest = Some(header);
            if !self.rules.chain_follows_header() {
                port.durable_state_changed();
                chain.first = Some(header);
            }
        }
    }

    /// A line of a header is durable.
    fn header_line_durable(
        &mut self,
        port: &mut Port<'_, Self>,
        thread: usize,
        number: u64,
        logged: &mut Vec<LineAddr>,
    ) {
        let chain = &mut self.chains[thread];
        let is_oldest = number == chain.number;
        let Some(record) = chain.record(number) else { return };
        record.header_coming =
            if self.rules.second_line_is_awaited() { record.header_coming - 1 } else { 0 };
        if !is_oldest && record.header_coming == 0 {
            port.emit(Event::DurableBeforeOlder);
            if !self.rules.line_follows_chain() {
                logged.extend(record.lines.drain(..).map(|line| line.home));
            }
        }
        self.extend_chain(port, thread, logged);
    }

    /// LR names the newest record that is durable with all older ones: their lines may go home.
    fn extend_chain(
        &mut self,
        port: &mut Port<'_, Self>,
        thread: usize,
        logged: &mut Vec<LineAddr>,
    ) {
        let chain = &mut self.chains[thread];
        while let Some(record) = chain.coming.front().filter(|record| record.is_durable()) {
            port.durable_state_changed();
            port.emit(Event::ChainGrown { thread, older: chain.first.is_some() });
            chain.first = record.header;
            if self.rules.header_is_awaited() {
                logged.extend(record.lines.iter().map(|line| line.home));
            }
            if !self.rules.blocks_stay_until_commit() {
                chain.blocks.drain(..).for_each(|block| self.table.release_entry(block));
            }
            chain.coming.pop_front();
            chain.number += 1;
        }
    }

    // ---- waiting -------------------------------------------------------------------------------

    /// Lines whose records wait for a block, or come after one that does.
    fn waiting_lines(&self) -> impl Iterator<Item = LineAddr> {
        let coming = self.chains.iter().map(|chain| &chain.coming);
        let records = coming.flat_map(|records| records.iter().skip_while(|r| !r.waits()));
        records.flat_map(|record| &record.lines).map(|line| line.home)
    }
}

impl Chain {
    /// A record that is not in the chain yet. Some mutants do not wait for all writes of one: it may be there already.
    fn record(&mut self, number: u64) -> Option<&mut Record> {
        let at = number.checked_sub(self.number)?;
        Some(&mut self.coming[at as usize])
    }

    /// The record that the next line joins.
    fn open_record(&mut self) -> &mut Record {
        if self.coming.back().is_none_or(|record| !record.is_open) {
            self.coming.push_back(Record { is_open: true, ..Record::default() });
        }
        self.coming.back_mut().expect("one was pushed if there was none")
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

    /// A line joins it; the record is closed when it has all its blocks. Returns which of its lines this is.
    fn join(&mut self, home: LineAddr, words: WordMask) -> usize {
        self.blocks_coming += 1;
        self.lines.push(Undone { home, words, block: None });
        self.is_open = self.lines.len() < ENTRIES;
        self.lines.len() - 1
    }

    /// Sends the header to its two lines.
    fn send(
        &mut self,
        port: &mut Port<'_, LoadAwareLog>,
        about: LogWrite,
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
            port.write_reported(write, protocol::Write::Log(about), 0);
        }
        port.emit(Event::HeaderSent { blocks: self.lines.len() });
    }
}

impl UndoLog for LoadAwareLog {
    type Write = LogWrite;

    fn new(context: &DesignContext) -> Result<LoadAwareLog, ConfigError> {
        Ok(LoadAwareLog {
            table: BankTable::new(context)?,
            chains: vec![Chain::default(); context.threads as usize],
            waiting: VecDeque::new(),
            rules: Rules::of(context),
        })
    }

    /// The line joins its transaction's open record, and its undo block is written as soon as one is free.
    fn append(&mut self, port: &mut Port<'_, Self>, undo: &Undo) {
        let Undo { thread, home, words, .. } = *undo;
        let chain = &mut self.chains[thread];
        let index = chain.open_record().join(home, words);
        let record = chain.number + chain.coming.len() as u64 - 1;
        let place = Place { thread, record, index };
        if !self.waiting.is_empty() || !self.write_block(port, place, &undo.old) {
            self.waiting.push_back((place, undo.old));
            port.emit(Event::WaitsForBlock { again: false });
        }
        self.send_headers(port, thread);
    }

    fn close(&mut self, port: &mut Port<'_, Self>, thread: usize) {
        let Some(record) = self.chains[thread].coming.back_mut().filter(|r| r.is_open) else {
            return;
        };
        record.is_open = false;
        self.send_headers(port, thread);
    }

    fn on_durable(
        &mut self,
        port: &mut Port<'_, Self>,
        write: LogWrite,
        logged: &mut Vec<LineAddr>,
    ) {
        match write {
            LogWrite::Block(place) => self.block_durable(port, place, logged),
            LogWrite::Header { thread, record } => {
                self.header_line_durable(port, thread, record, logged);
            }
        }
    }

    /// LR becomes NULL, and the blocks return to their FIFOs.
    fn commit(&mut self, port: &mut Port<'_, Self>, thread: usize) {
        let chain = &mut self.chains[thread];
        port.emit(Event::Truncated { records: chain.headers.len() as u64 });
        if self.rules.commit_clears_chain() {
            chain.first = None;
        }
        if self.rules.chain_ends_with_transaction() {
            chain.newest = None;
        }
        chain.blocks.drain(..).for_each(|block| self.table.release_entry(block));
        chain.headers.drain(..).for_each(|header| self.table.release_header(header));
        self.serve_waiting(port);
    }

    fn is_stuck(&self, waits_for: impl Fn(usize, LineAddr) -> bool) -> bool {
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
        self.chains.iter().map(|chain| word_of(chain.first.unwrap_or_default())).collect()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        match structure {
            0 => 0,
            1 => self.table.entries_taken(),
            _ => self.table.headers_taken(),
        }
    }
}
