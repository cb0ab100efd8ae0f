//! The log queue of the controller: entries and headers on their way to PM.

use std::collections::VecDeque;

use super::cover::Cover;
use super::front::Message;
use super::record::Logged;
use super::transaction::{Record, TxId, Written};
use super::{About, Hold, Mutant, Redu};
use crate::lalea::ENTRIES;
use graven_base::memory::{LineAddr, LineData};
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

/// What asks for a place: a write of one line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Entry(Message),
    /// A line of the header of a record.
    Header(TxId, usize, LineAddr, LineData),
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
}

impl Redu {
    pub(super) fn request(&mut self, m: &mut Machine, request: Request) {
        if self.queue.used == self.queue.places || !self.queue.outside.is_empty() {
            m.cover(Cover::QueueFull as usize);
            m.count().log_queue_full += 1;
        }
        self.queue.outside.push_back(request);
        self.admit(m);
    }

    /// Requests get places, and are issued at once.
    fn admit(&mut self, m: &mut Machine) {
        while self.queue.used < self.queue.places {
            let Some(request) = self.queue.outside.pop_front() else { return };
            self.queue.used += 1;
            let max = &mut m.count().log_queue_max;
            *max = (*max).max(self.queue.used as u64);
            match request {
                Request::Entry(message) => self.issue_entry(m, message),
                Request::Header(id, record, line, data) => {
                    let write = Write::line(WriteClass::Metadata, line, data);
                    m.write(Write { token: About::Header.of(id, record), ..write }, 0);
                }
            }
        }
    }

    fn issue_entry(&mut self, m: &mut Machine, Message { id, entry }: Message) {
        let transaction = self.transactions.get_mut(&id).expect("it waits for its entries");
        let thread = &mut self.threads[transaction.thread as usize];
        thread.outside -= 1;
        let opens = transaction.admitted.is_multiple_of(ENTRIES);
        let (record, index) = (transaction.admitted / ENTRIES, transaction.admitted % ENTRIES);
        let number = transaction.first + record as u64;
        let mut at = match &mut self.blocks {
            None => thread.area.entry(number, index),
            Some(blocks) => {
                self.reserved_entries -= 1;
                blocks.entry(m).expect("the store saw that one was free")
            }
        };
        if opens {
            transaction.records.push(Record::new());
        } else if let Some(blocks) = &self.blocks {
            let before = transaction.records[record].entries[index - 1];
            if blocks.regions().bank_of(before) != blocks.regions().bank_of(at) {
                m.cover(Cover::SeveralBanks as usize);
            }
            if self.mutants.has(Mutant::BlockAllocatedTwice) {
                at = before;
            }
        }
        let of = &mut transaction.records[record];
        of.logged[index] = Logged { home: entry.home, words: entry.words };
        of.entries[index] = at;
        of.len += 1;
        transaction.admitted += 1;
        if thread.outside == 0 {
            self.wake(m, &[Hold::Queue]);
        }
        if opens {
            self.place_header(m, id, record);
        }
        m.note(|| format!("the log queue takes the entry of {}: {at}", entry.home));
        let write = Write::line(WriteClass::Log, at, entry.data);
        m.write(Write { token: About::Entry.of(id, record), ..write }, 0);
        if opens && record > 0 {
            self.write_header_if_ready(m, id, record - 1);
        }
    }

    /// A log entry is durable.
    pub(super) fn entry_durable(&mut self, m: &mut Machine, id: TxId, record: usize) {
        self.queue.used -= 1;
        self.admit(m);
        // Only a mutant does not wait for it.
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        transaction.durable += 1;
        transaction.records[record].durable += 1;
        self.write_header_if_ready(m, id, record);
        self.commit_if_ready(m, id);
    }

    /// A line of a header is durable.
    pub(super) fn header_durable(&mut self, m: &mut Machine, id: TxId, record: usize) {
        self.queue.used -= 1;
        self.admit(m);
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        let of = &mut transaction.records[record];
        let Written::Underway(lines) = &mut of.written else { return };
        *lines -= 1;
        if *lines > 0 {
            return;
        }
        of.written = Written::Durable;
        if of.buffered {
            of.buffered = false;
            self.free_adr_entries(m, 1);
        }
        self.commit_if_ready(m, id);
        self.retire(m);
    }
}
