//! Headers: where they are kept, and when they are written to PM; BLOM's ADR entries.

use super::event::Event;
use super::protocol::{Port, Redu};
use super::queue::Request;
use super::record::SEQUENCE_MAX;
use super::transaction::{Phase, Record, Transaction, TxId, Written};
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::surviving::SurvivingImage;
use graven_base::time::Cycle;

/// The ADR entries that headers are kept in.
#[derive(Debug)]
pub(super) struct Adr {
    entries: usize,
    used: usize,
    /// When that changed.
    since: Cycle,
}

impl Adr {
    pub(super) const fn new(entries: usize) -> Adr {
        Adr { entries, used: 0, since: 0 }
    }

    /// Entries that are taken.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    fn set_used(&mut self, port: &mut Port<'_>, used: usize) {
        let now = port.now();
        let cycles = self.used as u64 * (now - self.since);
        (self.used, self.since) = (used, now);
        port.durable_state_changed();
        port.emit(Event::AdrEntriesUsed { cycles, used });
    }
}

impl Redu {
    /// Lines of a header.
    fn header_lines(&self) -> usize {
        if self.blocks.is_some() { 2 } else { 1 }
    }

    // ---- ADR entries (BLOM §III-B) -------------------------------------------------------------

    /// A record begins: its header is kept in ADR entries if there are any.
    pub(super) fn place_header(&mut self, port: &mut Port<'_>, id: TxId, record: usize) {
        if !self.config.buffered_headers || self.buffer_header(port, id, record) {
            return;
        }
        port.emit(Event::HeaderOverflows);
        self.unbuffered.push_back((id, record));
        self.write_headers_of_somebody(port);
    }

    /// Puts a header into ADR entries. Returns whether there was room.
    fn buffer_header(&mut self, port: &mut Port<'_>, id: TxId, record: usize) -> bool {
        let used = self.adr.used + self.header_lines();
        if used > self.adr.entries {
            return false;
        }
        // What a power failure writes must have its place.
        self.place_in_pm(port, id, record);
        self.transactions[id].records[record].buffered = true;
        self.adr.set_used(port, used);
        true
    }

    /// Frees the ADR entries of `headers` headers: those that found none get them.
    pub(super) fn free_adr_entries(&mut self, port: &mut Port<'_>, headers: usize) {
        let used = self.adr.used - headers * self.header_lines();
        self.adr.set_used(port, used);
        while let Some(&(id, record)) = self.unbuffered.front() {
            let transaction = self.transactions.find(id);
            let waits = transaction.is_some_and(|transaction| transaction.waits_for_adr(record));
            if waits && !self.buffer_header(port, id, record) {
                return;
            }
            self.unbuffered.pop_front();
            if waits {
                port.emit(Event::HeaderPlacedLate);
                self.commit_if_ready(port, id);
            }
        }
    }

    /// The buffered headers of a transaction are not needed any more.
    pub(super) fn discard_headers(&mut self, port: &mut Port<'_>, id: TxId) {
        let buffered = self.transactions[id].records.iter_mut().filter(|record| record.buffered);
        let discarded = buffered.map(|record| record.buffered = false).count();
        if discarded > 0 {
            self.free_adr_entries(port, discarded);
        }
    }

    /// "The memory controller writes the buffered metadata block of a selected transaction to PM" (§III-B): of the oldest
    /// committed one, or else of the oldest open one as far as its records are complete and durable.
    fn write_headers_of_somebody(&mut self, port: &mut Port<'_>) {
        let committed = self.oldest_committed_in_adr();
        let Some(id) = committed.or_else(|| self.oldest_open_in_adr()) else { return };
        port.emit(Event::HeadersDisplaced { committed: committed.is_some() });
        for record in 0..self.transactions[id].records.len() {
            if !self.transactions[id].may_leave_adr(record) {
                continue;
            }
            self.write_header(port, id, record);
            if !self.rules.adr_free_when_durable() {
                self.transactions[id].records[record].buffered = false;
                self.free_adr_entries(port, 1);
            }
        }
    }

    /// The oldest committed transaction with headers that rest in ADR entries.
    fn oldest_committed_in_adr(&self) -> Option<TxId> {
        let mut ordered = self.ordered.iter().copied();
        ordered.find(|&id| {
            let transaction = &self.transactions[id];
            transaction.has_committed() && transaction.records.iter().any(Record::rests_in_adr)
        })
    }

    /// The oldest open transaction with headers that may be written to PM.
    fn oldest_open_in_adr(&self) -> Option<TxId> {
        let mut open = self.transactions.iter().filter(|(_, t)| t.phase <= Phase::Ended);
        let found = open.find(|(_, t)| (0..t.records.len()).any(|record| t.may_leave_adr(record)));
        found.map(|(id, _)| id)
    }

    // ---- places in PM --------------------------------------------------------------------------

    /// Place of a header in PM, allocated at the first call.
    fn place_in_pm(&mut self, port: &Port<'_>, id: TxId, record: usize) -> LineAddr {
        let transaction = &mut self.transactions[id];
        let number = transaction.first + record as u64;
        let area = self.threads[transaction.thread as usize].area;
        *transaction.records[record].place.get_or_insert_with(|| match &mut self.blocks {
            None => area.header(number),
            Some(blocks) => {
                self.reserved_headers -= 1;
                blocks.header(port).expect("the store saw that one was free")
            }
        })
    }

    /// Intra-record order: a header that is not buffered is written when its entries are durable, and none comes any more.
    /// In a circular area, the last header of a transaction waits for all others: it commits
    /// ([`Redu::commit_if_ready`]).
    pub(super) fn write_header_if_ready(&mut self, port: &mut Port<'_>, id: TxId, record: usize) {
        let transaction = &self.transactions[id];
        let of = &transaction.records[record];
        let decides = self.blocks.is_none() && transaction.is_last(record);
        let ready = transaction.is_sealed(record)
            && (of.durable == of.len || !self.rules.headers_follow_entries());
        if ready && !decides && !of.buffered && of.written == Written::No {
            self.write_header(port, id, record);
        }
    }

    /// Sends a header to its place in PM. With LALEA, it points to the place of the next, which is allocated for that.
    pub(super) fn write_header(&mut self, port: &mut Port<'_>, id: TxId, record: usize) {
        let place = self.place_in_pm(port, id, record);
        if self.blocks.is_some() && record + 1 < self.transactions[id].records.len() {
            self.place_in_pm(port, id, record + 1);
        }
        let last = self.transactions[id].is_last(record);
        if last {
            self.enter_commit_order(id);
        }
        let lines = self.header_lines();
        let transaction = &mut self.transactions[id];
        transaction.records[record].written = Written::Underway(lines as u8);
        let (header, links) = (transaction.header(record, last), transaction.links(record));
        let t = transaction.thread as usize;
        port.emit(Event::HeaderSent { thread: t, record });
        let torn = self.blocks.is_none() && self.threads[t].turn_torn_bit(header.number);
        let first = Request::Header { id, record, line: place, data: header.line(torn) };
        self.request(port, first);
        if let Some(blocks) = &self.blocks {
            let second = blocks.regions().second_line(place);
            self.request(port, Request::Header { id, record, line: second, data: links.line() });
        }
    }

    // ---- power failure -------------------------------------------------------------------------

    /// ADR writes the headers of transactions that have committed, or are about to by a header in PM.
    pub(super) fn save_headers(&self, image: &mut SurvivingImage) {
        for (_, transaction) in self.transactions.iter() {
            let open = transaction.phase <= Phase::Ended;
            if open && self.rules.only_committed_headers_are_saved() {
                continue;
            }
            for record in 0..transaction.records.len() {
                let first = record == 0 && !self.rules.all_headers_are_saved();
                if transaction.records[record].buffered && !first {
                    self.save_header(image, transaction, record, open);
                }
            }
        }
    }

    /// Writes a header to its place, as that of a transaction that has committed.
    fn save_header(
        &self,
        image: &mut SurvivingImage,
        transaction: &Transaction,
        record: usize,
        open: bool,
    ) {
        let last = record + 1 == transaction.records.len();
        let mut header = transaction.header(record, last);
        if open && last {
            header.sequence = SEQUENCE_MAX;
        }
        let thread = &self.threads[transaction.thread as usize];
        let torn = self.blocks.is_none() && !thread.torn_bit(header.number);
        let place = transaction.records[record].place.expect("a buffered header has its place");
        image.note(|| format!("ADR saves header {record} of thread {}", transaction.thread));
        let mut save = |line: LineAddr, data: &LineData| {
            image.store_line(line, WordMask::MAX, data);
        };
        save(place, &header.line(torn));
        if let Some(blocks) = &self.blocks {
            save(blocks.regions().second_line(place), &transaction.links(record).line());
        }
    }
}
