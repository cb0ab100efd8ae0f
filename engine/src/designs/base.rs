//! `base`: the plainest safe hardware logging (Silo §VI-A, *Base*).
//!
//! "A hardware logging baseline that flushes an undo+redo log entry and the corresponding updated
//! cacheline for each write." For each transactional store: the log entry goes to PM, bypassing the
//! caches; when it is durable, the updated line is written back; when that is durable, the core's
//! next store may go on. A commit record ends the transaction. Nothing is merged or skipped.
//!
//! Each thread appends to a circular log area of its own. A record takes 32 B:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0-7 | kind: 1 entry, 2 commit |
//! | 0 | 8-15 | thread id |
//! | 0 | 16-31 | transaction id (low 16 bits of its number) |
//! | 0 | 32-63 | sequence number of the record, from 1, per thread |
//! | 1 | 0-47 | home address |
//! | 2 | 0-63 | undo: the old word |
//! | 3 | 0-63 | redo: the new word |
//!
//! Recovery finds each thread's newest record by its sequence number. Records of one transaction are
//! consecutive; if no commit record ends them, their undo words are written back, newest first.
//! Committed transactions need nothing: their lines were durable before their commit records.
//!
//! Left open by the paper: whether a store waits for its flushes (it does here), and how records are
//! laid out.

use super::{Design, Entry, Eviction, Flow, PLAIN, Promise, RecoveryReport, Site, Store, Tx};
use crate::config::{ConfigError, Size};
use crate::crash::Medium;
use crate::machine::{Machine, OrderSeq, Token, Write, WriteClass};
use crate::memory::{Addr, LineAddr, LineData, WORD_BYTES};
use crate::section;

section! {
    /// Silo's Base: a log entry and the updated line flushed for each write.
    pub struct BaseConfig("base") {
        /// Circular log area of each thread; a transaction must fit.
        log_bytes_per_thread: Size = Size::kb(64), Size(128)..=Size::mb(64), "B";
    }
}

/// The design's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "base",
    summary: "flushes an undo+redo entry and the updated line for each write",
    paper: "Silo §VI-A (Base)",
    promise: |_| Promise::Durable,
    section: Some(|| Box::new(BaseConfig::default())),
    build: |site| Ok(Box::new(Base::new(site)?)),
    recover,
    ..PLAIN
};

const RECORD_BYTES: u64 = 32;
const KIND_ENTRY: u64 = 1;
const KIND_COMMIT: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    kind: u64,
    thread: u32,
    tx: u16,
    sequence: u32,
    addr: Addr,
    undo: u64,
    redo: u64,
}

impl Record {
    fn words(&self) -> [u64; 4] {
        let head = self.kind
            | u64::from(self.thread) << 8
            | u64::from(self.tx) << 16
            | u64::from(self.sequence) << 32;
        [head, self.addr.0, self.undo, self.redo]
    }

    fn parse(words: [u64; 4]) -> Option<Record> {
        let [head, addr, undo, redo] = words;
        let record = Record {
            kind: head & 0xff,
            thread: (head >> 8 & 0xff) as u32,
            tx: (head >> 16) as u16,
            sequence: (head >> 32) as u32,
            addr: Addr(addr),
            undo,
            redo,
        };
        (matches!(record.kind, KIND_ENTRY | KIND_COMMIT) && record.sequence != 0).then_some(record)
    }
}

/// One thread's log area.
#[derive(Clone, Copy, Debug)]
struct Area {
    start: Addr,
    slots: u64,
}

impl Area {
    fn of(site: &Site, thread: u32) -> Area {
        let bytes =
            site.config.get::<BaseConfig>().log_bytes_per_thread.0 / RECORD_BYTES * RECORD_BYTES;
        Area { start: site.thread_area(thread, bytes), slots: bytes / RECORD_BYTES }
    }

    fn slot(&self, sequence: u32) -> Addr {
        self.start.plus(u64::from(sequence) % self.slots * RECORD_BYTES)
    }
}

#[derive(Clone, Debug)]
struct Thread {
    area: Area,
    sequence: u32,
    records_of_tx: u64,
    /// The line whose flush the current store waits for.
    line: LineAddr,
}

struct Base {
    threads: Vec<Thread>,
    last_entry: OrderSeq,
}

/// What a durable write means to its thread; the token is the thread with this in the low bits.
const LOG_DURABLE: Token = 1;
const LINE_DURABLE: Token = 2;
const COMMIT_DURABLE: Token = 3;

impl Base {
    fn new(site: &Site) -> Result<Base, ConfigError> {
        let bytes = site.config.get::<BaseConfig>().log_bytes_per_thread;
        site.check_thread_areas("base.log_bytes_per_thread", bytes.0)?;
        let thread = |t| Thread {
            area: Area::of(site, t),
            sequence: 0,
            records_of_tx: 0,
            line: LineAddr(0),
        };
        Ok(Base { threads: (0..site.threads).map(thread).collect(), last_entry: 0 })
    }

    fn append(&mut self, m: &mut Machine, kind: u64, store: &Store, meaning: Token) {
        let tx = store.tx;
        let thread = &mut self.threads[tx.thread as usize];
        thread.sequence += 1;
        thread.records_of_tx += 1;
        if thread.records_of_tx > thread.area.slots {
            m.fail(format!(
                "transaction {} of thread {} has more records than base.log_bytes_per_thread holds ({})",
                tx.number, tx.thread, thread.area.slots
            ));
        }
        let record = Record {
            kind,
            thread: tx.thread,
            tx: tx.number as u16,
            sequence: thread.sequence,
            addr: store.addr,
            undo: store.old,
            redo: store.new,
        };
        let at = thread.area.slot(thread.sequence);
        let class = if kind == KIND_ENTRY { WriteClass::Log } else { WriteClass::Metadata };
        let mut write = Write::words(class, at, &record.words());
        write.token = u64::from(tx.thread) << 2 | meaning;
        write.order = m.order();
        self.last_entry = write.order;
        m.count().log_entries += u64::from(kind == KIND_ENTRY);
        m.write(write, m.path());
    }
}

impl Design for Base {
    fn tx_begin(&mut self, _m: &mut Machine, tx: Tx) -> Flow {
        self.threads[tx.thread as usize].records_of_tx = 0;
        Flow::Continue
    }

    fn store(&mut self, m: &mut Machine, store: &Store) -> Flow {
        self.threads[store.tx.thread as usize].line = store.addr.line();
        self.append(m, KIND_ENTRY, store, LOG_DURABLE);
        Flow::Wait
    }

    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Flow {
        let nothing = Store { tx, core: 0, addr: Addr(0), old: 0, new: 0 };
        self.append(m, KIND_COMMIT, &nothing, COMMIT_DURABLE);
        Flow::Wait
    }

    fn llc_evict(&mut self, _m: &mut Machine, _line: LineAddr, _content: &LineData) -> Eviction {
        Eviction::WriteBack { after: self.last_entry, token: 0 }
    }

    fn persisted(&mut self, m: &mut Machine, token: Token) {
        let thread = (token >> 2) as u32;
        if token & 3 != LOG_DURABLE {
            m.release(thread);
            return;
        }
        let line = self.threads[thread as usize].line;
        let token = u64::from(thread) << 2 | LINE_DURABLE;
        if !m.write_back(line, |write| write.token = token) {
            // It was evicted meanwhile and may still be on its way: this write follows it.
            let write = Write { token, ..Write::line(WriteClass::Data, line, m.line(line)) };
            m.write(write, m.path());
        }
    }
}

fn recover(site: &Site, _registers: &[u64], medium: &mut Medium) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    for thread in 0..site.threads {
        let area = Area::of(site, thread);
        let mut read = |slot: Addr| {
            let words = [0, 1, 2, 3].map(|i| medium.load(slot.plus(i * WORD_BYTES)));
            Record::parse(words).filter(|r| r.thread == thread && area.slot(r.sequence) == slot)
        };
        let slots = (0..area.slots).map(|i| area.start.plus(i * RECORD_BYTES));
        let newest = slots.filter_map(&mut read).max_by_key(|r| r.sequence);
        report.records_scanned += area.slots;
        let mut next = newest;
        let mut undo = Vec::new();
        while let Some(record) = next.filter(|r| r.kind == KIND_ENTRY) {
            undo.push(record);
            let before = record.sequence - 1;
            next = read(area.slot(before)).filter(|r| r.sequence == before && r.tx == record.tx);
        }
        for record in undo {
            medium.store(record.addr, record.undo);
            report.words_undone += 1;
        }
    }
    report
}
