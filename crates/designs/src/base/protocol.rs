//! Entries, flushes and commits.

use graven_base::config::ConfigError;
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{LineAddr, LineData};
use graven_machine::design::{self, Design, DesignContext, Stall, Store, Unused, Writeback};
use graven_machine::request::{self, WriteClass, WriteOrder};

use super::event::Event;
use super::record::{Area, Kind, Record};
use super::{BaseConfig, Rules};

type Port<'a> = design::Port<'a, Base>;

/// A thread's log and the state of its transaction.
#[derive(Clone, Debug)]
struct Thread {
    area: Area,
    /// Number of the next record.
    number: u64,
    records_of_tx: u64,
    /// The line of the latest store.
    line: LineAddr,
    /// The place of its record in the order of writes, until that is durable.
    record: WriteOrder,
}

/// The design.
pub struct Base {
    threads: Vec<Thread>,
    rules: Rules,
}

/// A write to memory that the thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The entry of a store.
    Entry(ThreadId),
    /// The updated line of a store.
    Line(ThreadId),
    /// A commit record.
    Commit(ThreadId),
}

/// The message that the entry of a thread's store is durable, at the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryDurable(ThreadId);

impl Base {
    pub fn new(context: &DesignContext) -> Result<Base, ConfigError> {
        let bytes = context.config.get::<BaseConfig>().log_bytes_per_thread;
        context.check_thread_areas("base.log_bytes_per_thread", bytes.0)?;
        let thread = |t| Thread {
            area: Area::of(context, t),
            number: 0,
            records_of_tx: 0,
            line: LineAddr(0),
            record: WriteOrder::NONE,
        };
        let threads = (0..context.threads).map(thread).collect();
        Ok(Base { threads, rules: Rules::of(context) })
    }

    /// The number of a transaction's next record. There is none if its records fill the log area: the run fails.
    fn next_number(&mut self, port: &mut Port<'_>, tx: Tx) -> Option<u64> {
        let thread = &mut self.threads[tx.thread as usize];
        let (number, slots) = (thread.number, thread.area.slots);
        if thread.records_of_tx == slots {
            port.fail(format!(
                "transaction {} of thread {} has more records than base.log_bytes_per_thread holds ({slots})",
                tx.number, tx.thread
            ));
            return None;
        }
        thread.number += 1;
        thread.records_of_tx += 1;
        if number >= slots {
            port.emit(Event::AreaWraps);
        }
        Some(number)
    }

    /// Sends a record to the log area, past the caches; returns its place in the order of writes.
    fn append(
        &mut self,
        port: &mut Port<'_>,
        thread: ThreadId,
        record: &Record,
        about: Option<Write>,
    ) -> WriteOrder {
        let area = &self.threads[thread as usize].area;
        let class = match record.kind {
            Kind::Entry => WriteClass::Log,
            Kind::Commit => WriteClass::Metadata,
        };
        let words = record.words(area.torn(record.number));
        let order = port.order();
        let write = request::Write::words(class, area.slot(record.number), &words).ordered(order);
        port.write_maybe_reported(write, about, port.bypass_cycles());
        order
    }

    /// The newest record on its way of a store to a line, which may not be durable before it.
    fn newest_record_of(&self, line: LineAddr) -> WriteOrder {
        let of_line = self.threads.iter().filter(|t| t.line == line);
        of_line.map(|t| t.record).max().unwrap_or(WriteOrder::NONE)
    }

    /// The core hears that the entry of a thread's store is durable: it flushes the updated line.
    fn flush(&mut self, port: &mut Port<'_>, thread: ThreadId) {
        self.threads[thread as usize].record = WriteOrder::NONE;
        let line = self.threads[thread as usize].line;
        let mut after = self.newest_record_of(line);
        port.emit(Event::Flushed { thread, line, held: !after.is_none() });
        if !self.rules.flush_follows_record() {
            after = WriteOrder::NONE;
        }
        let awaited = self.rules.flush_is_awaited();
        if !awaited {
            port.release_here(thread);
        }
        let about = awaited.then_some(Write::Line(thread));
        if !port.write_back(line, after, about) {
            self.flush_evicted(port, thread, after, about);
        }
    }

    /// The line to be flushed was evicted meanwhile and may still be on its way: another write follows it.
    fn flush_evicted(
        &mut self,
        port: &mut Port<'_>,
        thread: ThreadId,
        after: WriteOrder,
        about: Option<Write>,
    ) {
        port.emit(Event::EvictedBeforeFlush);
        if about.is_some() && !self.rules.evicted_line_is_awaited() {
            return port.release_here(thread);
        }
        let line = self.threads[thread as usize].line;
        let write = request::Write::line(WriteClass::Data, line, port.cached_line(line));
        port.write_maybe_reported(write.after(after), about, port.bypass_cycles());
    }
}

impl Design for Base {
    type Write = Write;
    type Read = Unused;
    type Timer = EntryDurable;
    type Event = Event;

    fn on_tx_begin(&mut self, _port: &mut Port<'_>, tx: Tx) -> Stall {
        self.threads[tx.thread as usize].records_of_tx = 0;
        Stall::None
    }

    /// An undo+redo entry is sent; the next store waits until it and the updated line are durable.
    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let thread = store.tx.thread;
        let Some(number) = self.next_number(port, store.tx) else { return Stall::UntilReleased };
        port.emit(Event::Logged { store: *store, record: number });
        let entry = Record::entry(number, store);
        let order = self.append(port, thread, &entry, Some(Write::Entry(thread)));
        let thread = &mut self.threads[thread as usize];
        (thread.line, thread.record) = (store.addr.line(), order);
        Stall::UntilReleased
    }

    /// A commit record ends the transaction, whose lines are durable.
    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        let thread = tx.thread;
        if !self.rules.commit_leaves_record() {
            return Stall::None;
        }
        let awaited = self.rules.commit_is_awaited();
        if let Some(number) = self.next_number(port, tx) {
            port.emit(Event::CommitSent { thread, record: number });
            let commit = Record::commit(number, tx);
            self.append(port, thread, &commit, awaited.then_some(Write::Commit(thread)));
        }
        if awaited { Stall::UntilReleased } else { Stall::None }
    }

    /// *Undo before steal*: a line waits for the records of stores to it.
    fn on_llc_eviction(
        &mut self,
        _port: &mut Port<'_>,
        line: LineAddr,
        _content: &LineData,
    ) -> Writeback<Write> {
        if !self.rules.eviction_follows_record() {
            return Writeback::FREE;
        }
        Writeback::after(self.newest_record_of(line))
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Entry(thread) => port.send_to_core(0, EntryDurable(thread)),
            Write::Line(thread) | Write::Commit(thread) => port.release(thread),
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_>, EntryDurable(thread): EntryDurable) {
        self.flush(port, thread);
    }

    fn places_taken(&self, _log: usize) -> u64 {
        self.threads.iter().map(|thread| thread.records_of_tx).max().unwrap_or(0)
    }
}
