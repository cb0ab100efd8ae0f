//! Log buffers, commit, in-place updates and overflow (§III-B to §III-F).

use graven_base::config::ConfigError;
use graven_base::ids::Tx;
use graven_base::memory::{Addr, LineAddr, LineData, MEDIA_LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};
use graven_base::surviving::SurvivingImage;
use graven_base::time::Cycle;
use graven_machine::design::{
    self, Battery, Design, DesignContext, Stall, Store, Unused, Writeback,
};
use graven_machine::request::{self, WriteClass};

use super::event::Event;
use super::log_area::{Area, RECORDS_PER_BATCH, Record, TUPLE, id_of, media_line};
use super::{Rules, SiloConfig};
use crate::mechanisms::word_filter::WordFilter;

type Port<'a> = design::Port<'a, Silo>;

/// One entry of a log buffer (Fig. 6), with the controller's notes about it.
#[derive(Clone, Copy, Debug)]
struct LogEntry {
    id: u64,
    tx: u64,
    addr: Addr,
    old: u64,
    new: u64,
    /// The flush-bit: PM has `new`, or something newer.
    flushed: bool,
    committed: bool,
    /// `new` is being written home.
    writing: bool,
    /// True while its undo record is being written: the entry takes no more merges.
    overflowing: bool,
    /// The eviction that carries this value or a newer one, if its line is on its way.
    covered_by: Option<EvictionId>,
}

/// The number of an evicted line on its way home.
type EvictionId = u64;

/// One thread's log buffer and log area.
#[derive(Clone, Debug)]
struct LogBuffer {
    entries: Vec<LogEntry>,
    /// Number of them that are committed.
    committed: usize,
    area: Area,
    /// Media lines before the open transaction's first batch, over all laps of the area.
    head: u64,
    /// Media lines before the next batch.
    tail: u64,
    /// Parts of an overflow batch that are not durable yet.
    batch_parts: u32,
    /// A store waits for a free place.
    store_waits: bool,
    /// Words that the open transaction has overflowed.
    overflowed: Vec<Addr>,
}

impl LogBuffer {
    /// Removes entries; returns how many. `committed`: the words of committed ones, of all buffers.
    fn remove(&mut self, committed: &mut WordFilter, is_gone: impl Fn(&LogEntry) -> bool) -> usize {
        let before = self.entries.len();
        self.entries.retain(|entry| {
            let gone = is_gone(entry);
            if gone && entry.committed {
                self.committed -= 1;
                committed.remove(entry.addr);
            }
            !gone
        });
        before - self.entries.len()
    }
}

/// The log controller.
pub struct Silo {
    config: SiloConfig,
    capacity: usize,
    buffers: Vec<LogBuffer>,
    /// The words of committed entries.
    committed_words: WordFilter,
    /// The next number of an entry, or of an evicted line.
    next_id: u64,
    rules: Rules,
}

/// Writes to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A word written home, for an entry.
    Home { thread: usize, id: u64 },
    /// A part of an overflow batch.
    Batch { thread: usize },
    /// An evicted line.
    Line(EvictionId),
}

impl Silo {
    pub fn new(context: &DesignContext) -> Result<Silo, ConfigError> {
        let config = context.config.get::<SiloConfig>().clone();
        let key = "silo.log_bytes_per_thread";
        context.check_thread_areas(key, config.log_bytes_per_thread.0)?;
        let media_lines = failure_lines_max(&config) + 1;
        if media_lines * MEDIA_LINE_BYTES > config.log_bytes_per_thread.0 {
            let why = format!(
                "with silo.log_buffer_entries = {} a power failure may write {} B behind a batch",
                config.log_buffer_entries,
                media_lines * MEDIA_LINE_BYTES
            );
            return Err(context.config.inconsistent(&[key, "silo.log_buffer_entries"], why));
        }
        let capacity = config.log_buffer_entries as usize;
        let buffer = |thread| LogBuffer {
            entries: Vec::with_capacity(capacity),
            committed: 0,
            area: Area::of(context, thread),
            head: 0,
            tail: 0,
            batch_parts: 0,
            store_waits: false,
            overflowed: Vec::new(),
        };
        let buffers = (0..context.threads).map(buffer).collect();
        Ok(Silo {
            buffers,
            committed_words: WordFilter::default(),
            capacity,
            config,
            next_id: 0,
            rules: Rules::of(context),
        })
    }

    fn latency(&self) -> Cycle {
        self.config.log_buffer_latency_cycles.into()
    }

    /// From a core, whose store or commit causes it, through the log buffer to the write queue.
    fn way_out(&self, port: &Port<'_>) -> Cycle {
        port.bypass_cycles() + self.latency()
    }

    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    // ---- stores (§III-B, §III-C) ---------------------------------------------------------------

    /// *Log merging* (§III-C): a store to a word that has an entry of the same transaction only updates it. What the
    /// line has carried home was the earlier value, so the flush-bit goes back to 0.
    fn merge(&mut self, port: &mut Port<'_>, store: &Store) -> bool {
        let (buffer, rules) = (store.tx.thread as usize, self.rules);
        let takes_merge = |e: &&mut LogEntry| {
            e.addr == store.addr
                && (!e.committed || !rules.committed_take_no_merges())
                && (!e.overflowing || !rules.overflowing_take_no_merges())
        };
        let Some(entry) = self.buffers[buffer].entries.iter_mut().find(takes_merge) else {
            return false;
        };
        let (after_flush, under_line) = (entry.flushed, entry.covered_by.is_some());
        entry.new = store.new;
        if rules.merge_clears_flush_bit() {
            entry.flushed = false;
            entry.covered_by = None;
        }
        port.durable_state_changed();
        port.emit(Event::Merged { buffer, store: *store, after_flush, under_line });
        true
    }

    /// A new entry, unless there is no place for it.
    fn append(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let thread = store.tx.thread as usize;
        let entries = &self.buffers[thread].entries;
        // When numbers have come round (records have 16 bits of them, Fig. 6), the id tuple of an entry that has committed
        // would be one of this transaction, too.
        let id = id_of(store.tx.number);
        let has_same_id = self.buffers[thread].committed > 0
            && entries.iter().any(|entry| entry.committed && id_of(entry.tx) == id)
            && self.rules.ids_are_awaited();
        if entries.len() == self.capacity || has_same_id {
            self.make_room(port, thread);
            return Stall::Retry;
        }
        self.drop_committed(port, store.addr);
        let id = self.next_id();
        let buffer = &mut self.buffers[thread];
        buffer.entries.push(LogEntry {
            id,
            tx: store.tx.number,
            addr: store.addr,
            old: store.old,
            new: store.new,
            flushed: false,
            committed: false,
            writing: false,
            overflowing: false,
            covered_by: None,
        });
        let occupied = buffer.entries.len();
        let after_overflow = buffer.overflowed.contains(&store.addr);
        port.durable_state_changed();
        port.emit(Event::Appended { buffer: thread, store: *store, occupied, after_overflow });
        Stall::None
    }

    /// A new entry of a word has the committed value as its old word: committed entries of that word
    /// are not needed any more. (One that is on its way home arrives before anything newer of its line.)
    fn drop_committed(&mut self, port: &mut Port<'_>, addr: Addr) {
        if !self.committed_words.may_have(addr) || !self.rules.new_entry_drops_twins() {
            return;
        }
        for buffer in 0..self.buffers.len() {
            if self.buffers[buffer].committed == 0 {
                continue;
            }
            let is_twin = |e: &LogEntry| e.committed && e.addr == addr;
            let dropped = self.buffers[buffer].remove(&mut self.committed_words, is_twin);
            if dropped > 0 {
                port.durable_state_changed();
                port.emit(Event::CommittedDropped { buffer, addr, entries: dropped });
                self.let_store_go_on(port, buffer);
            }
        }
    }

    // ---- overflow (§III-F) ---------------------------------------------------------------------

    /// A store waits for a place: committed entries will leave one; if there are none, the oldest entries overflow.
    fn make_room(&mut self, port: &mut Port<'_>, thread: usize) {
        let buffer = &mut self.buffers[thread];
        buffer.store_waits = true;
        if buffer.entries.iter().all(|e| !e.committed && !e.overflowing) {
            self.overflow(port, thread);
        } else if buffer.entries.iter().any(|e| e.committed) {
            port.emit(Event::WaitsForCommitted);
        }
    }

    /// The oldest entries leave for the log area, and their new words for home. No order is
    /// needed between the two: the entries stay until both are durable.
    fn overflow(&mut self, port: &mut Port<'_>, thread: usize) {
        let batch = match u64::from(self.config.overflow_batch_entries) {
            0 => RECORDS_PER_BATCH,
            configured => configured,
        };
        let buffer = &mut self.buffers[thread];
        let entries = buffer.entries.len().min(batch as usize);
        let wraps = buffer.tail > 0 && buffer.tail.is_multiple_of(buffer.area.media_lines);
        port.emit(Event::Overflows { buffer: thread, entries, wraps });
        if buffer.tail - buffer.head + failure_lines_max(&self.config) >= buffer.area.media_lines {
            port.fail(format!(
                "a transaction of thread {thread} has more undo records than silo.log_bytes_per_thread = {} holds",
                self.config.log_bytes_per_thread
            ));
        }
        for entry in &mut buffer.entries[..entries] {
            entry.overflowing = true;
            buffer.overflowed.push(entry.addr);
        }
        if self.rules.overflow_writes_undo() {
            self.send_batch(port, thread, entries);
        }
        self.write_home(port, thread);
    }

    /// The undo records of the oldest entries go to the log area in one media line.
    fn send_batch(&mut self, port: &mut Port<'_>, thread: usize, entries: usize) {
        let way_out = self.way_out(port);
        let buffer = &mut self.buffers[thread];
        let undo = |entry: &LogEntry| record(true, thread, entry.tx, entry.addr.0, entry.old);
        let records: Vec<Record> = buffer.entries[..entries].iter().map(undo).collect();
        let (bytes, words) = media_line(&records);
        let words: Vec<u64> = bytes
            .chunks_exact(WORD_BYTES as usize)
            .take(words)
            .map(|word| u64::from_le_bytes(word.try_into().expect("chunks are words")))
            .collect();
        let start = buffer.area.line(buffer.tail);
        buffer.batch_parts += words.len().div_ceil(WORDS_PER_LINE) as u32;
        for (i, line) in words.chunks(WORDS_PER_LINE).enumerate() {
            let at = start.plus((i * WORDS_PER_LINE) as u64 * WORD_BYTES);
            let write = request::Write::words(WriteClass::Log, at, line);
            port.write_reported(write, Write::Batch { thread }, way_out);
        }
    }

    // ---- log as data (§III-D, §III-E) ----------------------------------------------------------

    /// Writes home the new words of entries that are committed or overflowing, in buffer order.
    fn write_home(&mut self, port: &mut Port<'_>, thread: usize) {
        let way_out = self.way_out(port);
        for entry in &mut self.buffers[thread].entries {
            let leaves = entry.committed || entry.overflowing;
            let is_home_or_under_way = entry.flushed || entry.writing || entry.covered_by.is_some();
            if leaves && !is_home_or_under_way {
                entry.writing = true;
                port.emit(Event::SentHome);
                let write = request::Write::words(WriteClass::Data, entry.addr, &[entry.new]);
                port.write_reported(write, Write::Home { thread, id: entry.id }, way_out);
            }
        }
    }

    /// Frees entries that are not needed any more: committed and at home, or overflowed and at
    /// home.
    fn free(&mut self, port: &mut Port<'_>, thread: usize) {
        let buffer = &mut self.buffers[thread];
        let batch_durable = buffer.batch_parts == 0 || !self.rules.freed_after_undo();
        let is_free = |e: &LogEntry| e.flushed && (e.committed || (e.overflowing && batch_durable));
        if buffer.remove(&mut self.committed_words, is_free) > 0 {
            port.durable_state_changed();
            self.let_store_go_on(port, thread);
        }
    }

    /// The same of a committed entry that has just come home, where none of the open transaction has overflowed: the others that
    /// are free were freed when they became so.
    fn free_committed(&mut self, port: &mut Port<'_>, thread: usize, place: usize) {
        let buffer = &mut self.buffers[thread];
        let entry = buffer.entries.remove(place);
        buffer.committed -= 1;
        self.committed_words.remove(entry.addr);
        port.durable_state_changed();
        self.let_store_go_on(port, thread);
    }

    fn let_store_go_on(&mut self, port: &mut Port<'_>, thread: usize) {
        if std::mem::take(&mut self.buffers[thread].store_waits) {
            port.release(thread as u32);
        }
    }

    // ---- power failure (§III-G) ----------------------------------------------------------------

    /// Records that the battery writes behind those that the area holds already: redo records and
    /// id tuples of committed transactions, undo records of open ones.
    fn failure_records(&self, thread: usize) -> Vec<Record> {
        let entries = &self.buffers[thread].entries;
        let mut records = Vec::with_capacity(2 * entries.len());
        let redo = entries.iter().filter(|e| e.committed && !e.flushed);
        records.extend(redo.clone().map(|e| record(false, thread, e.tx, e.addr.0, e.new)));
        if self.rules.battery_writes_tuples() {
            let mut last = None;
            let first_of_tx = redo.filter(|e| last.replace(e.tx) != Some(e.tx));
            records.extend(first_of_tx.map(|e| record(false, thread, e.tx, TUPLE, 0)));
        }
        let open = entries.iter().filter(|e| !e.committed);
        records.extend(open.map(|e| record(e.flushed, thread, e.tx, e.addr.0, e.old)));
        if !self.rules.battery_writes_all() {
            records.pop();
        }
        records
    }
}

impl Design for Silo {
    type Write = Write;
    type Read = Unused;
    type Timer = Unused;
    type Event = Event;

    /// *Log ignorance* (§III-C): a store that does not change its word makes no entry.
    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        if self.config.log_ignorance && store.old == store.new {
            port.emit(Event::Ignored);
            return Stall::None;
        }
        if self.merge(port, store) { Stall::None } else { self.append(port, store) }
    }

    /// The commit is a message and its answer (§III-D); it deletes the overflowed records by moving the head.
    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        let thread = tx.thread as usize;
        let buffer = &mut self.buffers[thread];
        let mut at_home = 0;
        if self.rules.commit_marks_entries() {
            for entry in buffer.entries.iter_mut().filter(|e| e.tx == tx.number) {
                at_home += u64::from(entry.flushed);
                if !entry.committed {
                    entry.committed = true;
                    buffer.committed += 1;
                    self.committed_words.add(entry.addr);
                }
            }
        }
        buffer.overflowed.clear();
        port.durable_state_changed();
        port.emit(Event::Committed { buffer: thread, transaction: tx.number, at_home });
        if self.rules.commit_moves_head() {
            buffer.head = buffer.tail;
        }
        self.write_home(port, thread);
        self.free(port, thread);
        Stall::Answered(self.config.cycles_before_answer())
    }

    fn on_llc_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        _content: &LineData,
    ) -> Writeback<Write> {
        let eviction = self.next_id();
        let mut covers = false;
        let entries = self.buffers.iter_mut().flat_map(|b| &mut b.entries);
        // A line that is on its way already carries an entry's value, and is there before anything that was stored to the word
        // since.
        for entry in entries.filter(|e| e.addr.line() == line && e.covered_by.is_none()) {
            entry.covered_by = Some(eviction);
            covers = true;
            if entry.committed {
                port.emit(Event::LineSettlesCommitted);
            }
            if !self.rules.flush_bit_when_durable() {
                entry.flushed = true;
                port.durable_state_changed();
            }
        }
        Writeback { report: covers.then_some(Write::Line(eviction)), ..Writeback::FREE }
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Home { thread, id } => {
                let buffer = &mut self.buffers[thread];
                let Some(place) = buffer.entries.iter().position(|e| e.id == id) else {
                    return self.free(port, thread);
                };
                let entry = &mut buffer.entries[place];
                entry.flushed = true;
                port.durable_state_changed();
                port.emit(Event::Home { buffer: thread, addr: entry.addr });
                let others_stay =
                    buffer.overflowed.is_empty() && self.rules.flush_bit_when_durable();
                if entry.committed && others_stay {
                    self.free_committed(port, thread, place);
                } else {
                    self.free(port, thread);
                }
            }
            Write::Batch { thread } => {
                let buffer = &mut self.buffers[thread];
                buffer.batch_parts -= 1;
                // The store that brought it about waits for it, so its transaction is still open.
                if buffer.batch_parts == 0 && self.rules.batch_moves_tail() {
                    buffer.tail += 1;
                    port.durable_state_changed();
                    port.emit(Event::BatchDurable { buffer: thread });
                }
                self.free(port, thread);
            }
            Write::Line(eviction) => {
                for buffer in 0..self.buffers.len() {
                    for entry in &mut self.buffers[buffer].entries {
                        if entry.covered_by == Some(eviction) {
                            entry.covered_by = None;
                            entry.flushed = true;
                            port.durable_state_changed();
                            port.emit(Event::LineDurable { buffer, addr: entry.addr });
                        }
                    }
                    self.free(port, buffer);
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.buffers.iter().all(|b| b.entries.iter().all(|e| !e.committed))
    }

    fn places_taken(&self, _log_buffer: usize) -> u64 {
        self.buffers.iter().map(|buffer| buffer.entries.len() as u64).max().unwrap_or(0)
    }

    fn on_power_failure(&self, image: &mut SurvivingImage) {
        for (thread, buffer) in self.buffers.iter().enumerate() {
            let records = self.failure_records(thread);
            for record in &records {
                image.note(|| format!("battery, buffer {thread}: {}", record.describe()));
            }
            for (number, records) in (buffer.tail..).zip(records.chunks(RECORDS_PER_BATCH as usize))
            {
                let (bytes, words) = media_line(records);
                let used = &bytes[..words * WORD_BYTES as usize];
                image.write_bytes(buffer.area.line(number), used);
            }
        }
    }

    /// Per thread: head and tail of the log area, in media lines (Table I).
    fn registers(&self) -> Vec<u64> {
        let of = |(thread, buffer): (usize, &LogBuffer)| {
            let added = match buffer.entries.as_slice() {
                [] => 0,
                _ => self.failure_records(thread).len() as u64,
            };
            [buffer.head, buffer.tail + added.div_ceil(RECORDS_PER_BATCH)]
        };
        self.buffers.iter().enumerate().flat_map(of).collect()
    }
}

fn record(flush_bit: bool, thread: usize, tx: u64, addr: u64, data: u64) -> Record {
    Record { flush_bit, thread: thread as u32, tx, addr, data }
}

/// The log buffer is behind a battery: of each entry a record and an id tuple are written (§III-G). Head and tail of each
/// log area are registers (Table I).
pub(super) fn battery(context: &DesignContext) -> Battery {
    let config = context.config.get::<SiloConfig>();
    let threads = context.threads as usize;
    Battery {
        bytes: threads as u64 * failure_lines_max(config) * MEDIA_LINE_BYTES,
        registers: 2 * threads,
        register_bits: 64,
    }
}

/// Most media lines that a power failure adds: a record and an id tuple for each entry.
fn failure_lines_max(config: &SiloConfig) -> u64 {
    (2 * u64::from(config.log_buffer_entries)).div_ceil(RECORDS_PER_BATCH)
}
