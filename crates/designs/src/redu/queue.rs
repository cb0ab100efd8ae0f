//! The log queue of the controller: entries and headers on their way to PM.

use std::collections::VecDeque;

use super::event::Event;
use super::front::Message;
use super::protocol::{Hold, Port, Redu, Write};
use super::record::Logged;
use super::transaction::{Record, TxId, Written};
use crate::lalea::ENTRIES;
use graven_base::memory::{LineAddr, LineData};
use graven_machine::request::{self, WriteClass};

/// Requests for a place: a write of one line each.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Entry(Message),
    /// A line of the header of a record.
    Header {
        id: TxId,
        record: usize,
        line: LineAddr,
        data: LineData,
    },
}

/// The queue. A place is held until its write is durable.
#[derive(Debug)]
pub(super) struct LogQueue {
    places: usize,
    used: usize,
    /// Requests that found no place, oldest first.
    outside: VecDeque<Request>,
}

impl LogQueue {
    pub(super) fn new(places: u32) -> LogQueue {
        LogQueue { places: places as usize, used: 0, outside: VecDeque::new() }
    }

    /// Places that are taken.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    fn is_full(&self) -> bool {
        self.used == self.places
    }

    /// Gives the oldest request outside a place, if both exist.
    fn admit(&mut self) -> Option<Request> {
        if self.is_full() {
            return None;
        }
        let request = self.outside.pop_front()?;
        self.used += 1;
        Some(request)
    }
}

impl Redu {
    /// Asks for a place; what finds the queue full waits outside.
    pub(super) fn request(&mut self, port: &mut Port<'_>, request: Request) {
        if self.queue.is_full() || !self.queue.outside.is_empty() {
            port.emit(Event::QueueFull);
        }
        self.queue.outside.push_back(request);
        self.admit(port);
    }

    /// Requests get places, and are issued at once.
    fn admit(&mut self, port: &mut Port<'_>) {
        while let Some(request) = self.queue.admit() {
            port.emit(Event::Admitted { used: self.queue.used });
            match request {
                Request::Entry(message) => self.issue_entry(port, message),
                Request::Header { id, record, line, data } => {
                    let write = request::Write::line(WriteClass::Metadata, line, data);
                    port.write_reported(write, Write::Header { id, record }, 0);
                }
            }
        }
    }

    /// Writes an entry, the next of its transaction's records. The first of a record opens it; the record before is
    /// sealed by that.
    fn issue_entry(&mut self, port: &mut Port<'_>, Message { id, entry }: Message) {
        let transaction = &mut self.transactions[id];
        let t = transaction.thread as usize;
        self.threads[t].outside -= 1;
        let (record, index) = (transaction.admitted / ENTRIES, transaction.admitted % ENTRIES);
        let opens = index == 0;
        if opens {
            transaction.records.push(Record::default());
        }
        let (at, other_bank) = self.place_entry(port, id, record, index);
        let transaction = &mut self.transactions[id];
        let of = &mut transaction.records[record];
        of.logged[index] = Logged { home: entry.home, words: entry.words };
        of.entries[index] = at;
        of.len += 1;
        transaction.admitted += 1;
        if self.threads[t].outside == 0 {
            self.wake(port, &[Hold::Queue]);
        }
        if opens {
            self.place_header(port, id, record);
        }
        port.emit(Event::EntryIssued { home: entry.home, at, other_bank });
        let write = request::Write::line(WriteClass::Log, at, entry.data);
        port.write_reported(write, Write::Entry { id, record }, 0);
        if opens && record > 0 {
            self.write_header_if_ready(port, id, record - 1);
        }
    }

    /// Returns the line that an entry of a record is written to, and whether its bank is another
    /// than that of the one before.
    fn place_entry(
        &mut self,
        port: &Port<'_>,
        id: TxId,
        record: usize,
        index: usize,
    ) -> (LineAddr, bool) {
        let transaction = &self.transactions[id];
        let Some(blocks) = &mut self.blocks else {
            let area = &self.threads[transaction.thread as usize].area;
            return (area.entry(transaction.first + record as u64, index), false);
        };
        self.reserved_entries -= 1;
        let at = blocks.entry(port).expect("the store saw that one was free");
        let Some(before) = index.checked_sub(1) else { return (at, false) };
        let before = transaction.records[record].entries[before];
        let other_bank = blocks.regions().bank_of(before) != blocks.regions().bank_of(at);
        (if self.rules.each_entry_has_a_block() { at } else { before }, other_bank)
    }

    /// A log entry is durable.
    pub(super) fn entry_durable(&mut self, port: &mut Port<'_>, id: TxId, record: usize) {
        self.queue.used -= 1;
        self.admit(port);
        // Only a mutant does not wait for it.
        let Some(transaction) = self.transactions.find_mut(id) else { return };
        transaction.durable += 1;
        transaction.records[record].durable += 1;
        self.write_header_if_ready(port, id, record);
        self.commit_if_ready(port, id);
    }

    /// A line of a header is durable.
    pub(super) fn header_durable(&mut self, port: &mut Port<'_>, id: TxId, record: usize) {
        self.queue.used -= 1;
        self.admit(port);
        let Some(transaction) = self.transactions.find_mut(id) else { return };
        let of = &mut transaction.records[record];
        let Written::Underway(lines) = &mut of.written else { return };
        *lines -= 1;
        if *lines > 0 {
            return;
        }
        of.written = Written::Durable;
        if std::mem::take(&mut of.buffered) {
            self.free_adr_entries(port, 1);
        }
        self.commit_if_ready(port, id);
        self.retire(port);
    }
}
