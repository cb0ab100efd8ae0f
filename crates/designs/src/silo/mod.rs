//! `silo`: speculative hardware logging, log as data (Silo, HPCA'23).
//!
//! | file | what | paper |
//! |---|---|---|
//! | `mod` | log buffers, commit, in-place updates, overflow; mutants | §III-B to §III-F |
//! | `log_area` | records in PM | §III-B, §III-F, Table I |
//! | `recovery` | recovery | §III-G |
//! | `cost` | what the hardware costs | Table I, Table IV |
//! | `cover` | states worth reaching | |
//!
//! Undo+redo entries stay in a small battery-backed log buffer per thread (§III-B). A store that does
//! not change its word makes no entry (*log ignorance*); a store to a word that has an entry of the same
//! transaction is merged into it (*log merging*, §III-C). The commit is a message and its answer; the
//! *new* words of the entries are then written to their homes in the background (§III-D, "log as
//! data"), where the on-PM buffer coalesces them (§III-E). Logs are written only when the buffer
//! overflows (undo records of the ⌊S/18⌋ oldest entries, in a batch, §III-F) or power fails (undo records
//! of open transactions, redo records and an id tuple of committed ones, §III-G).
//!
//! An undo, redo or tuple record takes 18 B in the thread's log area (Fig. 6 without the second word):
//!
//! | bits | content |
//! |---|---|
//! | 0 | flush-bit |
//! | 1-8 | thread id |
//! | 9-24 | transaction id (low 16 bits of its number) |
//! | 25-72 | home address; all ones for an id tuple |
//! | 80-143 | old word (undo), new word (redo), 0 (tuple) |
//!
//! Records lie in media lines, 14 to each, a zero address ending a line that is not full. The area is
//! circular. Two non-volatile registers per thread (Table I) hold its head and tail: the media lines
//! between them are the open transaction's overflow batches, and what the battery added behind them. The
//! commit moves the head to the tail, which deletes the overflowed records durably.
//!
//! **What the paper leaves open, and what had to be repaired** (the field's rule: newest wins; `silo-literal` is
//! the text without the repairs, and `docs/findings.md` has the counterexamples):
//! - *Repair.* A merge sets the flush-bit back to 0: the line that set it held the earlier value.
//! - *Repair.* A new entry drops any committed entry of the same word, in whichever thread's buffer: the
//!   committed value is the new entry's old word, so it is kept either way. Two transactions that hand a
//!   word to each other would otherwise write it home in either order, or over a newer line.
//! - *Repair.* Undo records are applied newest first: a word may have overflowed and been logged again.
//! - The flush-bit of an entry is set when the line is *durable*, for the value that the entry had when
//!   the line left the caches. A merge in between keeps it at 0.
//! - An entry whose line is on its way is not written home, and an evicted line settles committed entries,
//!   too. Both save a write and no more: the memory keeps the order of a line's writes, and committed
//!   entries that are older than the line have been dropped.
//! - Entries are for aligned words, so stores never overlap in part (Fig. 9 case 1 cannot arise).
//! - Entries of the previous transaction may still be on their way home when the next begins. New entries
//!   take free places; with none free they wait for the committed ones, and do not overflow.

mod cost;
mod cover;
mod log_area;
mod recovery;

use graven_base::config::{ConfigError, Size};
use graven_base::ids::Tx;
use graven_base::memory::{Addr, LineAddr, LineData, MEDIA_LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};
use graven_base::section;
use graven_base::surviving::SurvivingImage;
use graven_base::time::Cycle;
use graven_machine::design::{
    Design, DesignContext, DesignInfo, Guarantee, Mutants, RecoveryReport, Stall, Store,
    WritebackAction,
};
use graven_machine::machine::Machine;
use graven_machine::mutants;
use graven_machine::request::{Token, Write, WriteClass};

use cover::{COVER_POINTS, Cover};
use log_area::{Area, RECORDS_PER_BATCH, Record, TUPLE, media_line};
use recovery::recover;

section! {
    /// Silo: log buffers in the memory controller, logs used as data.
    pub struct SiloConfig("silo") {
        /// Entries of each thread's log buffer (Silo §VI-D, Table I).
        log_buffer_entries: u32 = 20, 1..=4096, "entries";
        /// Access time of the log buffer (Silo Table II).
        log_buffer_latency_cycles: u32 = 8, 1..=10_000, "cycles";
        /// Most undo records that overflow together; 0: as many as one media line holds (⌊S/18⌋ = 14).
        overflow_batch_entries: u32 = 0, 0..=14, "entries";
        /// Log area of each thread, for records of overflow and power failure; a transaction must fit.
        log_bytes_per_thread: Size = Size::kb(256), Size(1024)..=Size::gb(1), "B";
    }
}

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "silo",
    summary: "speculative logging: on-chip logs are written home as data after the commit",
    paper: "Silo, HPCA'23, §III",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(SiloConfig::default())),
    build: |context| Ok(Box::new(Silo::new(context)?)),
    recover,
    mutants: Mutant::NAMED,
    cover_points: COVER_POINTS,
    stress: &[
        ("silo.log_buffer_entries", &["1", "2", "3", "5", "20"]),
        ("silo.overflow_batch_entries", &["0", "1", "3"]),
        ("silo.log_bytes_per_thread", &["4 KB", "8 KB", "64 KB"]),
        ("silo.log_buffer_latency_cycles", &["1", "8", "500"]),
    ],
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The design as the paper's text has it, where that loses data (`docs/findings.md`).
pub const LITERAL: DesignInfo = DesignInfo {
    name: "silo-literal",
    summary: "silo as its text literally reads (unsafe: loses data)",
    default: false,
    inherent: Mutant::all(&[
        Mutant::MergeKeepsFlushBit,
        Mutant::TwinsStay,
        Mutant::UndoOldestFirst,
    ]),
    ..INFO
};

mutants! {
    /// A merge leaves the flush-bit as it was (literal, §III-C).
    MergeKeepsFlushBit = "merge-keeps-flush-bit";
    /// A new entry leaves committed entries of the same word in other buffers alone (literal, §III-C).
    TwinsStay = "twins-stay";
    /// Undo records are applied in the order in which they were written (literal, §III-G).
    UndoOldestFirst = "undo-oldest-first";
    /// The flush-bit is set when the line leaves the caches, not when it is durable.
    FlushBitAtEviction = "flush-bit-at-eviction";
    /// An overflowing entry still takes merges.
    MergesOverflowing = "merges-overflowing";
    /// Overflow writes the new words home, but no undo records.
    OverflowWithoutUndo = "overflow-without-undo";
    /// An overflowed entry is freed when its word is home, whether its undo record is durable or not.
    FreedBeforeUndo = "freed-before-undo";
    /// The commit does not move the head of the log area.
    HeadStays = "head-stays";
    /// The tail does not move past an overflow batch: what follows is written over it.
    TailStays = "tail-stays";
    /// At a power failure no id tuples are written.
    NoTuple = "no-tuple";
    /// At a power failure the battery writes one record too few for each thread.
    BatteryTooSmall = "battery-too-small";
    /// Entries of the next transaction are merged into committed ones.
    MergesAcrossCommit = "merges-across-commit";
    /// The commit is acknowledged, but its entries are not marked.
    CommitNotMarked = "commit-not-marked";
}

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
    /// Its undo record is being written: the entry takes no more merges.
    overflowing: bool,
    /// The eviction that carries this value or a newer one, if its line is on its way.
    covered_by: Token,
}

/// One thread's log buffer and log area.
#[derive(Clone, Debug)]
struct LogBuffer {
    entries: Vec<LogEntry>,
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

struct Silo {
    config: SiloConfig,
    capacity: usize,
    buffers: Vec<LogBuffer>,
    next_id: u64,
    mutants: Mutants,
}

/// Tokens: what became durable, in the low bits; then the thread; then a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durable {
    /// A word written home.
    Home { thread: usize, id: u64 },
    /// A part of an overflow batch.
    Batch { thread: usize },
    /// An evicted line.
    Line,
}

impl Durable {
    fn token(self) -> Token {
        match self {
            Durable::Home { thread, id } => id << 10 | (thread as u64) << 2 | 1,
            Durable::Batch { thread } => (thread as u64) << 2 | 2,
            Durable::Line => 3,
        }
    }

    fn parse(token: Token) -> Durable {
        let thread = (token >> 2 & 0xff) as usize;
        match token & 3 {
            1 => Durable::Home { thread, id: token >> 10 },
            2 => Durable::Batch { thread },
            _ => Durable::Line,
        }
    }
}

impl Silo {
    fn new(context: &DesignContext) -> Result<Silo, ConfigError> {
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
            area: Area::of(context, thread),
            head: 0,
            tail: 0,
            batch_parts: 0,
            store_waits: false,
            overflowed: Vec::new(),
        };
        let buffers = (0..context.threads).map(buffer).collect();
        Ok(Silo { buffers, capacity, config, next_id: 0, mutants: context.mutants })
    }

    /// The log controller looks for an entry to merge with; if there is none it appends one.
    fn log(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let thread = store.tx.thread as usize;
        let buffer = &mut self.buffers[thread];
        let has = |mutant| self.mutants.has(mutant);
        let mergeable = |e: &&mut LogEntry| {
            e.addr == store.addr
                && (!e.committed || has(Mutant::MergesAcrossCommit))
                && (!e.overflowing || has(Mutant::MergesOverflowing))
        };
        if let Some(entry) = buffer.entries.iter_mut().find(mergeable) {
            entry.new = store.new;
            let under_line = entry.covered_by != 0;
            let after_flush = entry.flushed;
            if !has(Mutant::MergeKeepsFlushBit) {
                entry.flushed = false;
                entry.covered_by = 0;
            }
            m.durable_state_changed();
            m.count().log_entries_merged += 1;
            if after_flush {
                m.cover(Cover::MergeAfterFlush as usize);
            }
            if under_line {
                m.cover(Cover::MergeUnderLine as usize);
            }
            m.note(|| format!("buffer {thread}: entry of {} merged, {:#x}", store.addr, store.new));
            return Stall::None;
        }
        if buffer.entries.len() == self.capacity {
            buffer.store_waits = true;
            if buffer.entries.iter().all(|e| !e.committed && !e.overflowing) {
                self.overflow(m, thread);
            } else if buffer.entries.iter().any(|e| e.committed) {
                m.cover(Cover::WaitsForCommitted as usize);
            }
            return Stall::Retry;
        }
        self.drop_committed(m, store.addr);
        self.next_id += 1;
        let buffer = &mut self.buffers[thread];
        buffer.entries.push(LogEntry {
            id: self.next_id,
            tx: store.tx.number,
            addr: store.addr,
            old: store.old,
            new: store.new,
            flushed: false,
            committed: false,
            writing: false,
            overflowing: false,
            covered_by: 0,
        });
        let occupied = buffer.entries.len() as u64;
        if buffer.overflowed.contains(&store.addr) {
            m.cover(Cover::AgainAfterOverflow as usize);
        }
        m.durable_state_changed();
        m.note(|| {
            format!(
                "buffer {thread}: entry of {}, {:#x} -> {:#x}",
                store.addr, store.old, store.new
            )
        });
        let c = m.count();
        c.log_entries += 1;
        c.log_buffer_max = c.log_buffer_max.max(occupied);
        Stall::None
    }

    /// A new entry of a word has the committed value as its old word: committed entries of that word
    /// are not needed any more. (One that is on its way home arrives before anything newer of its line.)
    fn drop_committed(&mut self, m: &mut Machine, addr: Addr) {
        if self.mutants.has(Mutant::TwinsStay) {
            return;
        }
        for thread in 0..self.buffers.len() {
            let entries = &mut self.buffers[thread].entries;
            let before = entries.len();
            entries.retain(|e| !(e.committed && e.addr == addr));
            let dropped = before - entries.len();
            if dropped > 0 {
                m.count().log_entries_discarded += dropped as u64;
                m.durable_state_changed();
                m.cover(Cover::TwinDropped as usize);
                m.note(|| format!("buffer {thread}: committed entry of {addr} dropped"));
                self.let_store_go_on(m, thread);
            }
        }
    }

    /// The oldest entries leave for the log area, and their new words for home (§III-F). No order is
    /// needed between the two: the entries stay until both are durable.
    fn overflow(&mut self, m: &mut Machine, thread: usize) {
        let limit = match u64::from(self.config.overflow_batch_entries) {
            0 => RECORDS_PER_BATCH,
            configured => configured,
        };
        let latency = self.latency();
        let buffer = &mut self.buffers[thread];
        let count = buffer.entries.len().min(limit as usize);
        m.count().log_overflows += 1;
        m.cover(Cover::Overflow as usize);
        m.note(|| format!("buffer {thread}: {count} entries overflow"));
        if buffer.tail - buffer.head + failure_lines_max(&self.config) >= buffer.area.media_lines {
            m.fail(format!(
                "a transaction of thread {thread} has more undo records than silo.log_bytes_per_thread = {} holds",
                self.config.log_bytes_per_thread
            ));
        }
        let mut records = Vec::with_capacity(count);
        for entry in &mut buffer.entries[..count] {
            entry.overflowing = true;
            buffer.overflowed.push(entry.addr);
            records.push(Record {
                flush_bit: true,
                thread: thread as u32,
                tx: entry.tx as u16,
                addr: entry.addr.0,
                data: entry.old,
            });
        }
        let (bytes, words) = media_line(&records);
        let words: Vec<u64> = bytes
            .chunks_exact(WORD_BYTES as usize)
            .take(words)
            .map(|word| u64::from_le_bytes(word.try_into().expect("chunks are words")))
            .collect();
        if buffer.tail > 0 && buffer.tail.is_multiple_of(buffer.area.media_lines) {
            m.cover(Cover::AreaWrapped as usize);
        }
        if self.mutants.has(Mutant::OverflowWithoutUndo) {
            return self.write_home(m, thread);
        }
        let start = buffer.area.line(buffer.tail);
        buffer.batch_parts += words.len().div_ceil(WORDS_PER_LINE) as u32;
        for (i, line) in words.chunks(WORDS_PER_LINE).enumerate() {
            let at = start.plus((i * WORDS_PER_LINE) as u64 * WORD_BYTES);
            let token = Durable::Batch { thread }.token();
            m.write(Write { token, ..Write::words(WriteClass::Log, at, line) }, latency);
        }
        self.write_home(m, thread);
    }

    /// Writes home the new words of entries that are committed or overflowing, in buffer order.
    fn write_home(&mut self, m: &mut Machine, thread: usize) {
        let latency = self.latency();
        for entry in &mut self.buffers[thread].entries {
            let due = (entry.committed || entry.overflowing)
                && !(entry.flushed || entry.writing)
                && entry.covered_by == 0;
            if due {
                entry.writing = true;
                let token = Durable::Home { thread, id: entry.id }.token();
                m.count().in_place_updates += 1;
                m.write(
                    Write { token, ..Write::words(WriteClass::Data, entry.addr, &[entry.new]) },
                    latency,
                );
            }
        }
    }

    /// Frees entries that nobody needs any more: committed and at home, or overflowed and at home.
    fn free(&mut self, m: &mut Machine, thread: usize) {
        let buffer = &mut self.buffers[thread];
        let batch_durable = buffer.batch_parts == 0 || self.mutants.has(Mutant::FreedBeforeUndo);
        let before = buffer.entries.len();
        buffer
            .entries
            .retain(|e| !(e.flushed && (e.committed || (e.overflowing && batch_durable))));
        if buffer.entries.len() < before {
            m.durable_state_changed();
            self.let_store_go_on(m, thread);
        }
    }

    fn let_store_go_on(&mut self, m: &mut Machine, thread: usize) {
        if std::mem::take(&mut self.buffers[thread].store_waits) {
            m.release(thread as u32);
        }
    }

    fn latency(&self) -> Cycle {
        self.config.log_buffer_latency_cycles.into()
    }

    /// What the battery writes behind the records that the area holds already (§III-G): redo records
    /// and id tuples of committed transactions, undo records of open ones.
    fn failure_records(&self, thread: usize) -> Vec<Record> {
        let (entries, id) = (&self.buffers[thread].entries, thread as u32);
        let mut records = Vec::with_capacity(2 * entries.len());
        let record = |flush_bit, tx: u64, addr, data| Record {
            flush_bit,
            thread: id,
            tx: tx as u16,
            addr,
            data,
        };
        let to_redo = |e: &&LogEntry| e.committed && !e.flushed;
        let redo = entries.iter().filter(to_redo);
        records.extend(redo.clone().map(|e| record(false, e.tx, e.addr.0, e.new)));
        if !self.mutants.has(Mutant::NoTuple) {
            let mut last = None;
            let first_of_tx = redo.filter(|e| last.replace(e.tx) != Some(e.tx));
            records.extend(first_of_tx.map(|e| record(false, e.tx, TUPLE, 0)));
        }
        let open = entries.iter().filter(|e| !e.committed);
        records.extend(open.map(|e| record(e.flushed, e.tx, e.addr.0, e.old)));
        if self.mutants.has(Mutant::BatteryTooSmall) {
            records.pop();
        }
        records
    }
}

impl Design for Silo {
    fn store(&mut self, m: &mut Machine, store: &Store) -> Stall {
        if store.old == store.new {
            m.count().log_entries_ignored += 1;
            return Stall::None;
        }
        self.log(m, store)
    }

    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        let thread = tx.thread as usize;
        let buffer = &mut self.buffers[thread];
        let mark = !self.mutants.has(Mutant::CommitNotMarked);
        for entry in buffer.entries.iter_mut().filter(|e| e.tx == tx.number && mark) {
            m.count().log_entries_discarded += u64::from(entry.flushed);
            entry.committed = true;
        }
        buffer.overflowed.clear();
        m.durable_state_changed();
        m.note(|| format!("buffer {thread}: entries of transaction {} are committed", tx.number));
        if !self.mutants.has(Mutant::HeadStays) {
            buffer.head = buffer.tail;
        }
        self.write_home(m, thread);
        self.free(m, thread);
        Stall::For(2 * m.bypass_cycles() + self.latency())
    }

    fn llc_evict(
        &mut self,
        m: &mut Machine,
        line: LineAddr,
        _content: &LineData,
    ) -> WritebackAction {
        self.next_id += 1;
        let token = self.next_id << 2 | Durable::Line.token();
        let mut covers = false;
        for entry in self.buffers.iter_mut().flat_map(|b| &mut b.entries) {
            if entry.addr.line() == line {
                entry.covered_by = token;
                covers = true;
                if entry.committed {
                    m.cover(Cover::LineSettlesCommitted as usize);
                }
                if self.mutants.has(Mutant::FlushBitAtEviction) {
                    entry.flushed = true;
                    m.durable_state_changed();
                }
            }
        }
        WritebackAction::Send { after: 0, token: if covers { token } else { 0 } }
    }

    fn on_durable(&mut self, m: &mut Machine, token: Token) {
        match Durable::parse(token) {
            Durable::Home { thread, id } => {
                if let Some(entry) = self.buffers[thread].entries.iter_mut().find(|e| e.id == id) {
                    entry.flushed = true;
                    m.durable_state_changed();
                    m.note(|| format!("buffer {thread}: {} is home", entry.addr));
                }
                self.free(m, thread);
            }
            Durable::Batch { thread } => {
                let buffer = &mut self.buffers[thread];
                buffer.batch_parts -= 1;
                // The store that brought it about waits for it, so its transaction is still open.
                if buffer.batch_parts == 0 && !self.mutants.has(Mutant::TailStays) {
                    buffer.tail += 1;
                    m.durable_state_changed();
                    m.note(|| format!("buffer {thread}: its overflow batch is in the log area"));
                }
                self.free(m, thread);
            }
            Durable::Line => {
                for thread in 0..self.buffers.len() {
                    for entry in &mut self.buffers[thread].entries {
                        if entry.covered_by == token {
                            entry.covered_by = 0;
                            entry.flushed = true;
                            m.durable_state_changed();
                            m.note(|| format!("buffer {thread}: flush-bit of {} set", entry.addr));
                        }
                    }
                    self.free(m, thread);
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.buffers.iter().all(|b| b.entries.iter().all(|e| !e.committed))
    }

    fn power_failure(&self, image: &mut SurvivingImage) {
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

    /// Per thread: head and tail of the log area, in media lines.
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

/// Most media lines that a power failure adds: a record and an id tuple for each entry.
fn failure_lines_max(config: &SiloConfig) -> u64 {
    (2 * u64::from(config.log_buffer_entries)).div_ceil(RECORDS_PER_BATCH)
}
