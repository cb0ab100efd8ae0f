//! The log manager: contexts, buckets, records. A record is collected, closed, written, and counts when the end of its log has
//! moved over it.

use std::collections::VecDeque;

use graven::design::{DesignContext, Gate, Stall, Store};
use graven::ids::ThreadId;
use graven::memory::{LineAddr, LineData, WordMask};
use graven::request::{self, WriteClass};
use graven::time::Cycle;

use super::event::Event;
use super::protocol::{Atom, Port, Write};
use super::record::{Buckets, Entry, Header, Registers, Slot};
use super::{AddressLock, HeaderOrder, Mutant};

/// Cycles in which the log manager compares the address of a line that has left the caches with those of its entries.
const LOOKUP_CYCLES: Cycle = 1;

/// A record, by its context, the number of the transaction that the context had then, and its index in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordId {
    pub(super) context: usize,
    pub(super) region: u64,
    pub(super) index: u64,
}

/// A record that locks the addresses of its entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    pub(super) record: RecordId,
    /// A gate that opens when the record counts, or its log is gone.
    pub(super) counts: Gate,
}

/// A record that does not count yet.
#[derive(Clone, Debug)]
struct Record {
    id: RecordId,
    counts: Gate,
    slot: Slot,
    entries: Vec<Entry>,
    /// Entries that are not durable.
    awaited: u32,
    /// The header may be written from then on, when all messages about it have arrived.
    known_at: Cycle,
    header_sent: bool,
    header_durable: bool,
    /// Place among all records that were closed.
    closed_as: u64,
}

/// The log of a transaction.
#[derive(Clone, Debug, Default)]
struct Context {
    thread: Option<usize>,
    /// Number of the transaction.
    region: u64,
    /// Records of the transaction so far.
    records: u64,
    /// The record that is being collected.
    open: Option<Record>,
    /// Closed records that do not count yet, oldest first.
    closed: VecDeque<Record>,
    /// Buckets that were taken.
    taken: u64,
    /// Place of the newest record.
    newest: Option<Slot>,
    registers: Registers,
}

/// The log manager.
#[derive(Clone, Debug)]
pub(super) struct LogManager {
    contexts: Vec<Context>,
    entries_per_record: usize,
    pub(super) buckets: Buckets,
    /// The bucket that was taken last.
    newest_bucket: u32,
    /// Number of records that were closed.
    closed: u64,
}

impl LogManager {
    pub(super) fn new(context: &DesignContext) -> LogManager {
        let config = context.config.get::<super::AtomConfig>();
        // A laboratory begins near the end of a round, so that buckets come round soon.
        let first = (context.first_transaction % u64::from(config.buckets)) as u32;
        LogManager {
            contexts: vec![Context::default(); config.contexts as usize],
            entries_per_record: config.entries_per_record as usize,
            buckets: Buckets::of(context),
            newest_bucket: (first + config.buckets - 1) % config.buckets,
            closed: 0,
        }
    }

    pub(super) fn registers(&self) -> impl Iterator<Item = Registers> {
        self.contexts.iter().map(|context| context.registers)
    }

    /// Entries in the fullest record that is being collected.
    pub(super) fn entries_max(&self) -> u64 {
        let open = self.contexts.iter().filter_map(|context| context.open.as_ref());
        open.map(|record| record.entries.len() as u64).max().unwrap_or(0)
    }

    /// Records in the fullest bucket that is being filled.
    pub(super) fn records_max(&self) -> u64 {
        let newest = self.contexts.iter().filter_map(|context| context.newest);
        newest.map(|slot| u64::from(slot.place) + 1).max().unwrap_or(0)
    }

    /// The number of the transaction that a context has; 0: there is none.
    pub(super) fn region(&self, context: Option<usize>) -> u64 {
        context.map_or(0, |context| self.contexts[context].region)
    }

    /// A place behind the newest record; if its bucket is full, in the next one that is free. Returns true as well if that is not
    /// the transaction's first bucket.
    fn take_slot(&mut self, context: usize) -> Option<(Slot, bool)> {
        if let Some(Slot { bucket, place }) = self.contexts[context].newest
            && place + 1 < self.buckets.records
        {
            return Some((Slot { bucket, place: place + 1 }, false));
        }
        let taken = self.contexts.iter().fold(0, |taken, context| taken | context.taken);
        let count = self.buckets.count;
        let mut round = (1..=count).map(|ahead| (self.newest_bucket + ahead) % count);
        let bucket = round.find(|bucket| taken >> bucket & 1 == 0)?;
        self.newest_bucket = bucket;
        let further = self.contexts[context].newest.is_some();
        self.contexts[context].taken |= 1 << bucket;
        Some((Slot { bucket, place: 0 }, further))
    }

    /// Finds a record that does not count yet; one of a log that was truncated is not found.
    fn find(&mut self, id: RecordId) -> Option<&mut Record> {
        let context = &mut self.contexts[id.context];
        context.open.iter_mut().chain(&mut context.closed).find(|record| record.id == id)
    }

    /// The thread whose transaction a context has.
    pub(super) fn owner(&self, id: RecordId) -> Option<usize> {
        self.contexts[id.context].thread
    }

    /// Returns true if a record does not count yet, and its log was not truncated.
    fn is_pending(&self, id: RecordId) -> bool {
        let context = &self.contexts[id.context];
        context.open.iter().chain(&context.closed).any(|record| record.id == id)
    }
}

impl Atom {
    // ---- contexts ------------------------------------------------------------------------------

    /// Gives a free context to a thread. Returns true if it has one.
    pub(super) fn take_context(&mut self, t: usize) -> bool {
        if self.threads[t].context.is_none() {
            let free = self.log.contexts.iter().position(|context| context.thread.is_none());
            if let Some(free) = free {
                self.give_context(t, free);
            }
        }
        self.threads[t].context.is_some()
    }

    fn give_context(&mut self, t: usize, context: usize) {
        let of_log = &mut self.log.contexts[context];
        *of_log = Context { thread: Some(t), region: of_log.region + 1, ..Context::default() };
        self.threads[t].context = Some(context);
    }

    /// The log of a transaction is gone; its context goes to the thread that has waited longest.
    pub(super) fn leave_context(&mut self, port: &mut Port<'_>, t: usize) {
        let context = self.threads[t].context.take().expect("a transaction has a context");
        let of_log = &mut self.log.contexts[context];
        assert!(of_log.registers == Registers::default(), "the log was truncated");
        *of_log = Context { region: of_log.region, ..Context::default() };
        if let Some(next) = self.begins.pop_front() {
            self.give_context(next as usize, context);
            port.release(next);
        }
    }

    fn context_of(&self, t: usize) -> usize {
        self.threads[t].context.expect("a transaction that runs has a context")
    }

    // ---- entries -------------------------------------------------------------------------------

    /// The controller does not know of a store to this word: the word joins the entry of its line, or the line is logged as it
    /// is before the store.
    pub(super) fn log(&mut self, port: &mut Port<'_>, store: &Store) {
        let (t, line) = (store.tx.thread as usize, store.addr.line());
        if self.own(t, line) && self.mutants.has(Mutant::OwnerIgnored) {
            return;
        }
        let delay = port.bypass_cycles();
        let whole = self.mutants.has(Mutant::LinesLoggedWhole);
        let thread = &mut self.threads[t];
        let stored = thread.lines.take_in(line);
        if whole && stored.logged {
            return;
        }
        thread.told = port.now() + delay;
        let words = if whole { WordMask::MAX } else { store.addr.word_mask() };
        stored.known |= words;
        match (stored.entry, std::mem::replace(&mut stored.logged, true)) {
            (Some(place), true) => return self.join(port, t, place, words),
            (None, true) => {
                port.emit(Event::ClosedRecordFound);
                if self.mutants.has(Mutant::ClosedRecordJoined) {
                    return;
                }
            }
            (Some(_), false) => port.emit(Event::LoggedAgain),
            (None, false) => {}
        }
        let content = port.cached_line(line);
        self.append(port, t, Entry { home: line, words }, &content, delay);
    }

    /// Makes the log bit of a line in the L1 this thread's. Returns true if it was another's.
    fn own(&mut self, t: usize, line: LineAddr) -> bool {
        let (core, mut others) = (self.threads[t].core, false);
        for (other, thread) in self.threads.iter_mut().enumerate() {
            if other != t && thread.core == core {
                others |= thread.lines.forget(line);
            }
        }
        others
    }

    /// A store joins an entry whose header is not written.
    fn join(&mut self, port: &mut Port<'_>, t: usize, place: usize, words: WordMask) {
        let masked = !self.mutants.has(Mutant::JoinedWordNotMasked);
        let context = self.context_of(t);
        let record = self.log.contexts[context].open.as_mut().expect("its entry is in it");
        let entry = &mut record.entries[place];
        port.emit(Event::WordJoined { at_source: entry.words == 0 });
        if masked {
            entry.words |= words;
        }
    }

    /// The controller logs a line that it has read for a store: which words the store is to is not known yet.
    pub(super) fn log_at_source(
        &mut self,
        port: &mut Port<'_>,
        t: usize,
        line: LineAddr,
        content: &LineData,
    ) {
        let whole = self.mutants.has(Mutant::LinesLoggedWhole);
        let words = if whole { WordMask::MAX } else { 0 };
        port.emit(Event::LoggedAtSource { thread: t, line });
        self.append(port, t, Entry { home: line, words }, content, 0);
        self.comes_with_its_log_bit(t, line);
    }

    /// A line is on its way up with its log bit set.
    pub(super) fn comes_with_its_log_bit(&mut self, t: usize, line: LineAddr) {
        let stored = self.threads[t].lines.take_in(line);
        stored.logged = true;
        if stored.entry.is_none() {
            // A mutant has made no entry: all words are taken for known.
            stored.known = WordMask::MAX;
        }
    }

    /// An entry goes to the log, in the record that is being collected or in a new one.
    fn append(
        &mut self,
        port: &mut Port<'_>,
        t: usize,
        entry: Entry,
        content: &LineData,
        delay: Cycle,
    ) {
        let context = self.context_of(t);
        let entries_per_record = self.log.entries_per_record;
        if let Some(record) = &self.log.contexts[context].open
            && record.entries.len() == entries_per_record
        {
            port.emit(Event::RecordFull);
            self.close(port, context, port.now() + delay);
        }
        if self.log.contexts[context].open.is_none() && !self.open_record(port, context) {
            return;
        }
        let record = self.log.contexts[context].open.as_mut().expect("it was just opened");
        let (id, place) = (record.id, record.entries.len());
        record.entries.push(entry);
        record.awaited += 1;
        let at = self.log.buckets.entry(record.slot, place);
        self.threads[t].lines.take_in(entry.home).entry = Some(place);
        port.emit(Event::Logged { thread: t, line: entry.home, place, record: id.index });
        let write = request::Write::line(WriteClass::Log, at, *content);
        port.write_reported(write, Write::Entry(id), delay);
    }

    /// The transaction has one record more, if there is a bucket for it.
    fn open_record(&mut self, port: &mut Port<'_>, context: usize) -> bool {
        let Some((slot, further)) = self.log.take_slot(context) else {
            port.fail(
                "the open transactions have more log records than atom.buckets of \
                 atom.bucket_bytes hold"
                    .into(),
            );
            return false;
        };
        if further {
            port.emit(Event::FurtherBucket);
        }
        let of_log = &mut self.log.contexts[context];
        of_log.newest = Some(slot);
        let id = RecordId { context, region: of_log.region, index: of_log.records };
        of_log.records += 1;
        of_log.open = Some(Record {
            id,
            counts: port.gate(),
            slot,
            entries: Vec::new(),
            awaited: 0,
            known_at: 0,
            header_sent: false,
            header_durable: false,
            closed_as: 0,
        });
        true
    }

    // ---- from a closed record to one that counts -----------------------------------------------

    /// The record that is being collected, if any, gets no more entries and words. The order to close it reaches the controller
    /// at `at`.
    pub(super) fn close(&mut self, port: &mut Port<'_>, context: usize, at: Cycle) {
        let of_log = &mut self.log.contexts[context];
        let Some(mut record) = of_log.open.take() else { return };
        let thread = &mut self.threads[of_log.thread.expect("it has a record")];
        record.known_at = at.max(thread.told);
        self.log.closed += 1;
        record.closed_as = self.log.closed;
        for entry in &record.entries {
            thread.lines.close(entry.home);
        }
        let unused = record.entries.iter().filter(|entry| entry.words == 0).count();
        let id = record.id;
        port.emit(Event::Closed { record: id.index, entries: record.entries.len(), unused });
        of_log.closed.push_back(record);
        self.send_header(port, id);
    }

    /// The header of a record is sent if the record is closed and nothing more is to be awaited.
    fn send_header(&mut self, port: &mut Port<'_>, id: RecordId) {
        let behind = self.config.header == HeaderOrder::Behind
            && !self.mutants.has(Mutant::LinesOfRecordNotAwaited);
        let closed = &mut self.log.contexts[id.context].closed;
        let Some(record) = closed.iter_mut().find(|record| record.id == id) else { return };
        if record.header_sent || behind && record.awaited > 0 {
            return;
        }
        record.header_sent = true;
        let line = self.log.buckets.header(record.slot);
        let header = Header { index: id.index, entries: record.entries.clone() };
        let delay = record.known_at.saturating_sub(port.now());
        let write = request::Write::line(WriteClass::Metadata, line, header.encode());
        port.write_reported(write, Write::Header(id), delay);
        if self.mutants.has(Mutant::UnlockedWhenSent) {
            port.open(record.counts);
        }
    }

    pub(super) fn entry_is_durable(&mut self, port: &mut Port<'_>, id: RecordId) {
        let Some(record) = self.log.find(id) else { return };
        record.awaited -= 1;
        self.send_header(port, id);
        self.move_end(port, id.context);
    }

    pub(super) fn header_is_durable(&mut self, port: &mut Port<'_>, id: RecordId) {
        let Some(record) = self.log.find(id) else { return };
        record.header_durable = true;
        self.move_end(port, id.context);
    }

    /// The end of a log moves over the records that are durable, and their addresses are unlocked.
    fn move_end(&mut self, port: &mut Port<'_>, context: usize) {
        let awaits_lines = !self.mutants.has(Mutant::LinesOfRecordNotAwaited);
        let in_order = !self.mutants.has(Mutant::EndMovesOutOfOrder);
        loop {
            let of_log = &mut self.log.contexts[context];
            let is_durable =
                |record: &Record| record.header_durable && !(awaits_lines && record.awaited > 0);
            let Some(next) = of_log.closed.iter().position(is_durable) else { return };
            if next > 0 {
                port.emit(Event::EndWaits);
                if in_order {
                    return;
                }
            }
            let record = of_log.closed.remove(next).expect("it was just found");
            let Record { id, slot, counts, .. } = record;
            port.durable_state_changed();
            of_log.registers.move_over(slot);
            port.emit(Event::Counts { context, record: id.index, slot });
            unlock(port, counts);
            self.release_stores(port, id);
        }
    }

    // ---- stores that wait ----------------------------------------------------------------------

    /// A store waits until the newest record of its transaction counts.
    pub(super) fn await_log(&mut self, port: &mut Port<'_>, t: usize) -> Stall {
        let context = self.context_of(t);
        let at = self.threads[t].told;
        let newest = self.log.contexts[context].open.as_ref().map(|record| record.id);
        self.close(port, context, at);
        let Some(newest) = newest.filter(|&id| self.log.is_pending(id)) else { return Stall::None };
        port.emit(Event::StoreWaits { thread: t as ThreadId });
        self.threads[t].store_awaits = Some(newest);
        Stall::Retry
    }

    /// The controller answers the core whose store waits for a record.
    fn release_stores(&mut self, port: &mut Port<'_>, id: RecordId) {
        for t in 0..self.threads.len() {
            if self.threads[t].store_awaits == Some(id) {
                self.threads[t].store_awaits = None;
                port.release(t as ThreadId);
            }
        }
    }

    // ---- truncation ----------------------------------------------------------------------------

    /// The buckets of a transaction are free, and its log ends where it began. Returns the number of its records.
    pub(super) fn clear_log(&mut self, port: &mut Port<'_>, t: usize) -> u64 {
        let context = self.context_of(t);
        port.durable_state_changed();
        let of_log = &mut self.log.contexts[context];
        of_log.registers = Registers::default();
        of_log.records
    }

    /// The log of a transaction is gone: what its records have locked is unlocked. (Entries that no store has joined may have locked
    /// lines of others.)
    pub(super) fn unlock_all(&mut self, port: &mut Port<'_>, t: usize) {
        let of_log = &self.log.contexts[self.context_of(t)];
        for record in of_log.closed.iter().chain(&of_log.open) {
            unlock(port, record.counts);
        }
    }

    /// Other transactions may take the buckets of a transaction.
    pub(super) fn free_buckets(&mut self, t: usize) {
        let context = self.context_of(t);
        self.log.contexts[context].taken = 0;
    }

    /// Closes the record of a transaction; the order to do so reaches the controller at `at`.
    pub(super) fn close_of(&mut self, port: &mut Port<'_>, t: usize, at: Cycle) {
        let context = self.context_of(t);
        self.close(port, context, at);
    }

    /// The newest records of each context that have an entry of a line and do not count. A record that is being collected is closed
    /// now: a line waits for it. Older content of the line may wait for more; the machine writes a line in the order of its contents.
    pub(super) fn locks_of(&mut self, port: &mut Port<'_>, line: LineAddr) -> Vec<Lock> {
        let has = |record: &Record| record.entries.iter().any(|entry| entry.home == line);
        for context in 0..self.log.contexts.len() {
            if self.log.contexts[context].open.as_ref().is_some_and(has)
                && !self.mutants.has(Mutant::OpenRecordNotLocked)
            {
                port.emit(Event::ClosedForLine);
                // The log manager finds the line's address before it writes the header.
                self.close(port, context, port.now() + LOOKUP_CYCLES);
            }
        }
        let newest = |of_log: &Context, locks: &dyn Fn(&Record) -> bool| {
            let record = of_log.closed.iter().rev().find(|record| locks(record))?;
            Some((record.closed_as, Lock { record: record.id, counts: record.counts }))
        };
        let own = self.log.contexts.iter().filter_map(|of_log| newest(of_log, &has));
        let (numbers, locks): (Vec<_>, Vec<_>) = own.unzip();
        if locks.len() > 1 {
            port.emit(Event::SeveralLocks);
        }
        match numbers.into_iter().max() {
            Some(last) if self.config.address_lock == AddressLock::Prefix => {
                let before = |record: &Record| record.closed_as <= last;
                let all = self.log.contexts.iter().filter_map(|of_log| newest(of_log, &before));
                all.map(|(_, lock)| lock).collect()
            }
            _ => locks,
        }
    }
}

/// A record locks its addresses no longer. (A mutant may have unlocked them before.)
fn unlock(port: &mut Port<'_>, counts: Gate) {
    if !port.is_open(counts) {
        port.open(counts);
    }
}
