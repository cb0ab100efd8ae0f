//! Headers: where they are kept, and when they are written to PM; BLOM's ADR entries.

use super::cover::Cover;
use super::queue::Request;
use super::record::SEQUENCE_MAX;
use super::transaction::{Phase, Transaction, TxId, Written};
use super::{Mutant, Redu};
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::surviving::SurvivingImage;
use graven_base::time::Cycle;
use graven_machine::machine::Machine;

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

    fn set_used(&mut self, m: &mut Machine, used: usize) {
        let now = m.now();
        let c = m.count();
        c.adr_entry_cycles += self.used as u64 * (now - self.since);
        (self.used, self.since) = (used, now);
        c.adr_entries_max = c.adr_entries_max.max(used as u64);
        m.durable_state_changed();
    }
}

impl Redu {
    /// Lines of a header.
    pub(super) fn header_lines(&self) -> usize {
        if self.blocks.is_some() { 2 } else { 1 }
    }

    /// A record begins: its header is kept in ADR entries if there are any.
    pub(super) fn place_header(&mut self, m: &mut Machine, id: TxId, record: usize) {
        if !self.config.buffered_headers || self.buffer_header(m, id, record) {
            return;
        }
        m.cover(Cover::HeaderOverflows as usize);
        m.count().adr_overflows += 1;
        self.unbuffered.push_back((id, record));
        self.write_headers_of_somebody(m);
    }

    /// Puts a header into ADR entries. Returns whether there was room.
    fn buffer_header(&mut self, m: &mut Machine, id: TxId, record: usize) -> bool {
        let used = self.adr.used + self.header_lines();
        if used > self.adr.entries {
            return false;
        }
        // What a power failure writes must have its place.
        self.place_in_pm(m, id, record);
        let transaction = self.transactions.get_mut(&id).expect("the caller has it");
        transaction.records[record].buffered = true;
        self.adr.set_used(m, used);
        true
    }

    /// Where a header is, or will be, in PM. It is allocated when it is asked for first.
    pub(super) fn place_in_pm(&mut self, m: &Machine, id: TxId, record: usize) -> LineAddr {
        let transaction = self.transactions.get_mut(&id).expect("the caller has it");
        let number = transaction.first + record as u64;
        let area = self.threads[transaction.thread as usize].area;
        *transaction.records[record].place.get_or_insert_with(|| match &mut self.blocks {
            None => area.header(number),
            Some(blocks) => {
                self.reserved_headers -= 1;
                blocks.header(m).expect("the store saw that one was free")
            }
        })
    }

    /// The ADR entries of so many headers are free: those that found none get them.
    pub(super) fn free_adr_entries(&mut self, m: &mut Machine, headers: usize) {
        let used = self.adr.used - headers * self.header_lines();
        self.adr.set_used(m, used);
        while let Some(&(id, record)) = self.unbuffered.front() {
            let waits = |t: &Transaction| {
                matches!(t.phase, Phase::Running | Phase::Ended)
                    && t.records[record].written == Written::No
            };
            if self.transactions.get(&id).is_some_and(waits) {
                if !self.buffer_header(m, id, record) {
                    return;
                }
                m.cover(Cover::HeaderPlacedLate as usize);
                self.unbuffered.pop_front();
                self.commit_if_ready(m, id);
            } else {
                self.unbuffered.pop_front();
            }
        }
    }

    /// The buffered headers of a transaction are not needed any more.
    pub(super) fn discard_headers(&mut self, m: &mut Machine, id: TxId) {
        let transaction = self.transactions.get_mut(&id).expect("the caller has it");
        let buffered = transaction.records.iter_mut().filter(|record| record.buffered);
        let discarded = buffered.map(|record| record.buffered = false).count();
        if discarded > 0 {
            self.free_adr_entries(m, discarded);
        }
    }

    /// "The memory controller writes the buffered metadata block of a selected transaction to PM" (§III-B): of the oldest
    /// committed one, or else of the oldest open one as far as its records are complete and durable.
    fn write_headers_of_somebody(&mut self, m: &mut Machine) {
        let rests = |t: &Transaction, record: usize| {
            t.records[record].buffered && t.records[record].written == Written::No
        };
        let committed = self.ordered.iter().copied().find(|id| {
            let t = &self.transactions[id];
            t.has_committed() && (0..t.records.len()).any(|record| rests(t, record))
        });
        let may = |t: &Transaction, record: usize| {
            let of = &t.records[record];
            let complete = record + 1 < t.records.len() && of.durable == of.len;
            rests(t, record) && (complete || t.has_committed())
        };
        let open = || {
            let mut open = self.transactions.iter().filter(|(_, t)| t.phase <= Phase::Ended);
            let found = open.find(|(_, t)| (0..t.records.len()).any(|record| may(t, record)));
            found.map(|(&id, _)| id)
        };
        let Some(id) = committed.or_else(open) else { return };
        m.cover(match committed {
            Some(_) => Cover::CommittedWritten,
            None => Cover::OpenWritten,
        } as usize);
        for record in 0..self.transactions[&id].records.len() {
            if may(&self.transactions[&id], record) {
                self.write_header(m, id, record);
                if self.mutants.has(Mutant::AdrFreedAtSending) {
                    let transaction = self.transactions.get_mut(&id).expect("it was chosen");
                    transaction.records[record].buffered = false;
                    self.free_adr_entries(m, 1);
                }
            }
        }
    }

    /// Intra-record order: a header that is not buffered is written when its entries are durable, and none comes any more.
    /// In a circular area, the last header of a transaction waits for all others: it commits
    /// ([`Redu::commit_if_ready`]).
    pub(super) fn write_header_if_ready(&mut self, m: &mut Machine, id: TxId, record: usize) {
        let transaction = &self.transactions[&id];
        let of = &transaction.records[record];
        let decides = self.blocks.is_none() && transaction.is_last(record);
        let early = self.mutants.has(Mutant::HeaderOvertakesEntries);
        let ready = transaction.is_sealed(record) && (of.durable == of.len || early);
        if ready && !decides && !of.buffered && of.written == Written::No {
            self.write_header(m, id, record);
        }
    }

    /// Sends a header to its place in PM.
    pub(super) fn write_header(&mut self, m: &mut Machine, id: TxId, record: usize) {
        let place = self.place_in_pm(m, id, record);
        if self.blocks.is_some() && record + 1 < self.transactions[&id].records.len() {
            self.place_in_pm(m, id, record + 1);
        }
        let last = self.transactions[&id].is_last(record);
        if last {
            self.enter_commit_order(id);
        }
        let lines = self.header_lines();
        let transaction = self.transactions.get_mut(&id).expect("the caller has it");
        transaction.records[record].written = Written::Underway(lines as u8);
        let (header, links) = (transaction.header(record, last), transaction.links(record));
        m.note(|| format!("header {record} of thread {} is written", transaction.thread));
        let torn = match &self.blocks {
            Some(_) => false,
            None => {
                let thread = &mut self.threads[transaction.thread as usize];
                let slot = &mut thread.torn[(header.number % thread.area.slots) as usize];
                *slot = !*slot;
                *slot
            }
        };
        self.request(m, Request::Header(id, record, place, header.line(torn)));
        if let Some(blocks) = &self.blocks {
            let second = blocks.regions().second_line(place);
            self.request(m, Request::Header(id, record, second, links.line()));
        }
    }

    /// ADR writes the headers of transactions that have committed, or are about to by a header in PM.
    pub(super) fn save_headers(&self, image: &mut SurvivingImage) {
        for transaction in self.transactions.values() {
            let open = transaction.phase <= Phase::Ended;
            if open && !self.mutants.has(Mutant::OpenHeadersSaved) {
                continue;
            }
            for record in 0..transaction.records.len() {
                let first = record == 0 && self.mutants.has(Mutant::FirstHeaderNotSaved);
                if transaction.records[record].buffered && !first {
                    self.save_header(image, transaction, record, open);
                }
            }
        }
    }

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
        let torn =
            self.blocks.is_none() && !thread.torn[(header.number % thread.area.slots) as usize];
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
