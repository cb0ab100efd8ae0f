//! `base`: the plainest safe hardware logging (Silo §VI-A, *Base*).
//!
//! "A hardware logging baseline that flushes an undo+redo log entry and the corresponding updated
//! cacheline for each write." For each transactional store: the log entry goes to PM, bypassing the
//! caches; when it is durable, the updated line is written back; when that is durable, the core's
//! next store may go on. A commit record ends the transaction. Nothing is merged or skipped.
//!
//! Each thread appends to a circular log area of its own. Its records are numbered from 0 over all
//! passes: record `n` lies in slot `n mod slots`, in pass `n / slots`. A record takes 32 B:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0-1 | kind: 1 entry, 2 commit; 0: no record |
//! | 0 | 2, 3 | bit 63 of the undo word, of the redo word |
//! | 0 | 8-15 | thread id |
//! | 0 | 16-31 | transaction id (low 16 bits of its number) |
//! | 0 | 32-62 | low 31 bits of the record's number |
//! | 1 | 0-47 | home address |
//! | 1 | 48-62 | next 15 bits of the record's number |
//! | 2 | 0-62 | undo: the old word |
//! | 3 | 0-62 | redo: the new word |
//! | 0-3 | 63 | torn bit: 1 in even passes over the area, 0 in odd ones |
//!
//! A write may be there in part, word by word. A slot is always written whole, and the torn bits of
//! what it held before are the opposite ones (zeroes, before the first pass: the system clears the
//! area), so a record of which only some words were written has mixed torn bits and is none.
//!
//! Recovery finds each thread's newest record by its number. Records of one transaction are
//! consecutive; if no commit record ends them, their undo words are written back, newest first.
//! Committed transactions need nothing: their lines were durable before their commit records.
//!
//! **Undo before steal.** A thread's earlier stores have durable records, its latest may not. A line
//! may leave the caches while such a record is on its way, evicted, or flushed for another thread
//! that has stored to other words of it: its write then waits for the record.
//!
//! Left open by the paper: whether a store waits for its flushes (it does here), and how records are
//! laid out.

use super::torn;
use graven_base::config::{ConfigError, Size};
use graven_base::cost::Costs;
use graven_base::ids::Tx;
use graven_base::memory::{Addr, LineAddr, LineData, WORD_BYTES};
use graven_base::section;
use graven_base::surviving::SurvivingImage;
use graven_machine::design::{
    DesignContext, DesignInfo, Guarantee, MutantSet, Named, Plug, RawAction, RecoveryReport, Stall,
    Store,
};
use graven_machine::machine::Machine;
use graven_machine::mutants;
use graven_machine::quantities::thread_areas;
use graven_machine::request::{OrderSeq, Token, Write, WriteClass};

section! {
    /// Silo's Base: a log entry and the updated line flushed for each write.
    pub struct BaseConfig("base") {
        /// Circular log area of each thread; a transaction must fit.
        log_bytes_per_thread: Size = Size::kb(64), Size(128)..=Size::mb(64), "B";
    }
}

mutants! {
    /// A line is flushed past a record of another thread's store to it.
    FlushOvertakesRecord = "flush-overtakes-record";
    /// A line is evicted past a record of a store to it.
    EvictionOvertakesRecord = "eviction-overtakes-record";
    /// A store is done when its line is sent.
    FlushNotAwaited = "flush-not-awaited";
    /// A store is done when its line was evicted instead of flushed.
    EvictedLineNotAwaited = "evicted-line-not-awaited";
    /// A commit is acknowledged when its record is sent.
    CommitNotAwaited = "commit-not-awaited";
    /// A commit leaves no record.
    CommitRecordMissing = "commit-record-missing";
    /// Recovery undoes a transaction that a commit record ends.
    CommittedUndone = "committed-undone";
    /// Recovery undoes the oldest record first.
    UndoOldestFirst = "undo-oldest-first";
    /// Recovery leaves out the first record of the transaction.
    FirstRecordNotUndone = "first-record-not-undone";
    /// The record in the last place is taken for the newest.
    NewestByPlace = "newest-by-place";
    /// Only the first word of a record has a torn bit.
    TornBitInFirstWordOnly = "torn-bit-in-first-word-only";
    /// The torn bit is the same in all passes.
    TornBitNeverFlips = "torn-bit-never-flips";
    /// The log area is put to use as it is found.
    LogNotCleared = "log-not-cleared";
}

/// States worth reaching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cover {
    AreaWrapped,
    EvictedBeforeFlush,
    FlushHeld,
}

const COVER_POINTS: &[Named] = &[
    Named { name: "area-wrapped", summary: "a record took the slot of an older one" },
    Named {
        name: "evicted-before-flush",
        summary: "a line was evicted between a store's record and its flush",
    },
    Named {
        name: "flush-held",
        summary: "a line was flushed while a record of another thread's store to it was on its way",
    },
];

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "base",
    summary: "flushes an undo+redo entry and the updated line for each write",
    paper: "Silo §VI-A (Base)",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(BaseConfig::default())),
    build: |context| Ok(Box::new(Base::new(context)?)),
    format,
    recover,
    mutants: Mutant::NAMED,
    cover_points: COVER_POINTS,
    stress: &[("base.log_bytes_per_thread", &["3 KB", "4 KB"])],
    cost: Costs::on("silo", |config| vec![thread_areas(config, "base.log_bytes_per_thread")])
        .remarks(&["Silo §VI-A describes no buffers: an entry goes to PM before the next store."]),
    ..DesignInfo::DEFAULT
};

const RECORD_BYTES: u64 = 32;
const RECORD_WORDS: usize = (RECORD_BYTES / WORD_BYTES) as usize;

const UNDO_TOP: u32 = 2;
const REDO_TOP: u32 = 3;
const ADDR_MASK: u64 = (1 << 48) - 1;
const KIND_MASK: u64 = 3;
const NUMBER_LOW: u32 = 31;
const NUMBER_LOW_MASK: u64 = (1 << NUMBER_LOW) - 1;
const NUMBER_MASK: u64 = (1 << 46) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Entry = 1,
    Commit = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    kind: Kind,
    thread: u8,
    tx: u16,
    number: u64,
    addr: Addr,
    undo: u64,
    redo: u64,
}

impl Record {
    fn words(&self, torn: bool) -> [u64; RECORD_WORDS] {
        debug_assert!(self.addr.0 <= ADDR_MASK, "home addresses have 48 bits");
        debug_assert!(self.number <= NUMBER_MASK, "no thread writes 2^46 records");
        let head = self.kind as u64
            | (self.undo >> 63) << UNDO_TOP
            | (self.redo >> 63) << REDO_TOP
            | u64::from(self.thread) << 8
            | u64::from(self.tx) << 16
            | (self.number & NUMBER_LOW_MASK) << 32;
        let home = self.addr.0 | self.number >> NUMBER_LOW << 48;
        torn::mark([head, home, self.undo, self.redo], torn)
    }

    /// The record, if it is one and was written whole.
    fn parse(words: [u64; RECORD_WORDS]) -> Option<Record> {
        let [head, home, undo, redo] = torn::whole(words)?;
        let kind = match head & KIND_MASK {
            1 => Kind::Entry,
            2 => Kind::Commit,
            _ => return None,
        };
        Some(Record {
            kind,
            thread: (head >> 8) as u8,
            tx: (head >> 16) as u16,
            number: head >> 32 | home >> 48 << NUMBER_LOW,
            addr: Addr(home & ADDR_MASK),
            undo: undo | (head >> UNDO_TOP & 1) << 63,
            redo: redo | (head >> REDO_TOP & 1) << 63,
        })
    }
}

/// One thread's log area.
#[derive(Clone, Copy, Debug)]
struct Area {
    start: Addr,
    slots: u64,
    mutants: MutantSet,
}

impl Area {
    fn of(context: &DesignContext, thread: u32) -> Area {
        let bytes =
            context.config.get::<BaseConfig>().log_bytes_per_thread.0 / RECORD_BYTES * RECORD_BYTES;
        let start = context.thread_area(thread, bytes);
        Area { start, slots: bytes / RECORD_BYTES, mutants: context.mutants }
    }

    fn slot(&self, number: u64) -> Addr {
        self.start.plus(number % self.slots * RECORD_BYTES)
    }

    fn torn(&self, number: u64) -> bool {
        torn::of_pass(number, self.slots) || self.mutants.has(Mutant::TornBitNeverFlips)
    }

    fn read(&self, image: &mut SurvivingImage, number: u64) -> Option<Record> {
        let slot = self.slot(number);
        let head = image.load(slot);
        if head & KIND_MASK == 0 {
            return None;
        }
        let mut words = [head, 0, 0, 0];
        for (i, word) in words.iter_mut().enumerate().skip(1) {
            *word = image.load(slot.plus(i as u64 * WORD_BYTES));
        }
        if self.mutants.has(Mutant::TornBitInFirstWordOnly) {
            words = torn::as_the_first(words);
        }
        Record::parse(words)
    }
}

#[derive(Clone, Debug)]
struct Thread {
    area: Area,
    /// Of the next record.
    number: u64,
    records_of_tx: u64,
    /// The line of the latest store.
    line: LineAddr,
    /// Its record's place in the order of writes, until that is durable; 0 then.
    record: OrderSeq,
}

struct Base {
    threads: Vec<Thread>,
    mutants: MutantSet,
}

/// What a durable write means to its thread; the token is the thread with this in the low bits.
const LOG_DURABLE: Token = 1;
const LINE_DURABLE: Token = 2;
const COMMIT_DURABLE: Token = 3;

impl Base {
    fn new(context: &DesignContext) -> Result<Base, ConfigError> {
        let bytes = context.config.get::<BaseConfig>().log_bytes_per_thread;
        context.check_thread_areas("base.log_bytes_per_thread", bytes.0)?;
        let thread = |t| Thread {
            area: Area::of(context, t),
            number: 0,
            records_of_tx: 0,
            line: LineAddr(0),
            record: 0,
        };
        let threads = (0..context.threads).map(thread).collect();
        Ok(Base { threads, mutants: context.mutants })
    }

    /// Sends a record; returns its place in the order of writes.
    fn append(&mut self, m: &mut Machine, kind: Kind, store: &Store, token: Token) -> OrderSeq {
        let tx = store.tx;
        let thread = &mut self.threads[tx.thread as usize];
        let (area, number) = (thread.area, thread.number);
        if thread.records_of_tx == area.slots {
            m.fail(format!(
                "transaction {} of thread {} has more records than base.log_bytes_per_thread holds ({})",
                tx.number, tx.thread, area.slots
            ));
            return 0;
        }
        thread.number += 1;
        thread.records_of_tx += 1;
        if number >= area.slots {
            m.cover(Cover::AreaWrapped as usize);
        }
        let record = Record {
            kind,
            thread: tx.thread as u8,
            tx: tx.number as u16,
            number,
            addr: store.addr,
            undo: store.old,
            redo: store.new,
        };
        let class = if kind == Kind::Entry { WriteClass::Log } else { WriteClass::Metadata };
        let order = m.order();
        let words = record.words(area.torn(number));
        let write = Write::words(class, area.slot(number), &words);
        m.count().log_entries += u64::from(kind == Kind::Entry);
        m.note(|| match kind {
            Kind::Entry => format!(
                "thread {} logs {}: {:#x}, to be {:#x} (record {number})",
                tx.thread, store.addr, store.old, store.new
            ),
            Kind::Commit => format!("thread {} sends its commit record ({number})", tx.thread),
        });
        m.write(Write { token, order, ..write }, m.bypass_cycles());
        order
    }

    /// The records on their way of stores to a line: it may not be durable before them.
    fn records_of(&self, line: LineAddr) -> OrderSeq {
        self.threads.iter().filter(|t| t.line == line).map(|t| t.record).max().unwrap_or(0)
    }

    /// A store's record is durable: its line is flushed.
    fn flush(&mut self, m: &mut Machine, thread: u32) {
        self.threads[thread as usize].record = 0;
        let line = self.threads[thread as usize].line;
        let mut after = self.records_of(line);
        if after != 0 {
            m.cover(Cover::FlushHeld as usize);
        }
        if self.mutants.has(Mutant::FlushOvertakesRecord) {
            after = 0;
        }
        let mut token = u64::from(thread) << 2 | LINE_DURABLE;
        if self.mutants.has(Mutant::FlushNotAwaited) {
            token = 0;
            m.release(thread);
        }
        m.note(|| format!("thread {thread}: record durable, flushes line {}", line.addr()));
        if m.write_back(line, |write| (write.token, write.after) = (token, after)) {
            return;
        }
        // It was evicted meanwhile and may still be on its way: this write follows it.
        m.cover(Cover::EvictedBeforeFlush as usize);
        if token != 0 && self.mutants.has(Mutant::EvictedLineNotAwaited) {
            return m.release(thread);
        }
        let write = Write::line(WriteClass::Data, line, m.line(line));
        m.write(Write { token, after, ..write }, m.bypass_cycles());
    }
}

impl Plug for Base {
    fn tx_begin(&mut self, _m: &mut Machine, tx: Tx) -> Stall {
        self.threads[tx.thread as usize].records_of_tx = 0;
        Stall::None
    }

    fn store(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let token = u64::from(store.tx.thread) << 2 | LOG_DURABLE;
        let record = self.append(m, Kind::Entry, store, token);
        let thread = &mut self.threads[store.tx.thread as usize];
        (thread.line, thread.record) = (store.addr.line(), record);
        Stall::UntilReleased
    }

    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        let nothing = Store { tx, core: 0, addr: Addr(0), old: 0, new: 0 };
        if self.mutants.has(Mutant::CommitRecordMissing) {
            return Stall::None;
        }
        if self.mutants.has(Mutant::CommitNotAwaited) {
            self.append(m, Kind::Commit, &nothing, 0);
            return Stall::None;
        }
        self.append(m, Kind::Commit, &nothing, u64::from(tx.thread) << 2 | COMMIT_DURABLE);
        Stall::UntilReleased
    }

    fn llc_evict(&mut self, _m: &mut Machine, line: LineAddr, _content: &LineData) -> RawAction {
        let overtakes = self.mutants.has(Mutant::EvictionOvertakesRecord);
        let after = if overtakes { 0 } else { self.records_of(line) };
        RawAction::Send { after, token: 0 }
    }

    fn on_durable(&mut self, m: &mut Machine, token: Token) {
        let thread = (token >> 2) as u32;
        if token & 3 == LOG_DURABLE {
            self.flush(m, thread);
        } else {
            m.release(thread);
        }
    }
}

/// Clears the log areas, so that what is written there first can be told from what was there.
fn format(context: &DesignContext, image: &mut SurvivingImage) {
    if context.mutants.has(Mutant::LogNotCleared) {
        return;
    }
    for thread in 0..context.threads {
        let area = Area::of(context, thread);
        for word in 0..area.slots * RECORD_WORDS as u64 {
            image.store(area.start.plus(word * WORD_BYTES), 0);
        }
    }
}

fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    for thread in 0..context.threads {
        let area = Area::of(context, thread);
        report.records_scanned += area.slots;
        let mut undo = records_to_undo(&area, image);
        if context.mutants.has(Mutant::UndoOldestFirst) {
            undo.reverse();
        }
        if context.mutants.has(Mutant::FirstRecordNotUndone) {
            undo.pop();
        }
        for record in undo {
            image.note(|| format!("log area {thread}: record {} undone", record.number));
            image.store(record.addr, record.undo);
            report.words_undone += 1;
        }
    }
    report
}

/// The records of a thread's last transaction, newest first, if none of them is its commit record.
fn records_to_undo(area: &Area, image: &mut SurvivingImage) -> Vec<Record> {
    let records = (0..area.slots).filter_map(|slot| area.read(image, slot));
    let mut next = if area.mutants.has(Mutant::NewestByPlace) {
        records.last()
    } else {
        records.max_by_key(|record| record.number)
    };
    let mut undo = Vec::new();
    while let Some(record) = next {
        if record.kind == Kind::Commit && !area.mutants.has(Mutant::CommittedUndone) {
            break;
        }
        undo.push(record);
        let before = record.number.checked_sub(1);
        next = before.and_then(|number| {
            area.read(image, number).filter(|r| r.number == number && r.tx == record.tx)
        });
    }
    undo
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let kind = prop_oneof![Just(Kind::Entry), Just(Kind::Commit)];
        let head = (kind, any::<u8>(), any::<u16>(), 0..=NUMBER_MASK);
        (head, 0..=ADDR_MASK, any::<u64>(), any::<u64>()).prop_map(
            |((kind, thread, tx, number), addr, undo, redo)| Record {
                kind,
                thread,
                tx,
                number,
                addr: Addr(addr),
                undo,
                redo,
            },
        )
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let record = Record {
            kind: Kind::Commit,
            thread: 0xa5,
            tx: 0xbeef,
            number: 3 << 31 | 0x1234_5678,
            addr: Addr(0x1234_5678_9abc),
            undo: 1 << 63 | 7,
            redo: 9,
        };
        let words = [0x1234_5678_beef_a506, 0x3_1234_5678_9abc, 7, 9];
        assert_eq!(record.words(false), words);
        assert_eq!(record.words(true), words.map(|word| word | 1 << 63));
        assert_eq!(Record { redo: 1 << 63, ..record }.words(false)[0], words[0] | 8);
        assert_eq!(Record { redo: 1 << 63, ..record }.words(false)[3], 0);
    }

    proptest! {
        #[test]
        fn a_record_comes_back_from_its_bytes(record in any_record(), torn: bool) {
            prop_assert_eq!(Record::parse(record.words(torn)), Some(record));
        }

        #[test]
        fn a_record_that_is_partly_written_is_none(
            new in any_record(), old in any_record(), written in 1u8..15, torn: bool,
        ) {
            let (new, old) = (new.words(torn), old.words(!torn));
            let words = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { old[i] });
            prop_assert_eq!(Record::parse(words), None);
        }

        #[test]
        fn a_record_that_is_partly_written_over_zeroes_is_none(
            new in any_record(), written in 0u8..15,
        ) {
            let new = new.words(true);
            let words = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { 0 });
            prop_assert_eq!(Record::parse(words), None);
        }

        #[test]
        fn flipping_any_used_bit_changes_the_record(record in any_record(), bit in 0usize..256) {
            let mut words = record.words(true);
            words[bit / 64] ^= 1 << (bit % 64);
            let unused = matches!(bit, 4..8);
            prop_assert_eq!(Record::parse(words) == Some(record), unused);
        }
    }

    #[test]
    fn passes_alternate_and_slots_come_round() {
        let area = Area { start: Addr(4096), slots: 3, mutants: MutantSet::NONE };
        let places: Vec<(u64, bool)> = (0..7).map(|n| (area.slot(n).0, area.torn(n))).collect();
        let [a, b, c] = [4096, 4096 + 32, 4096 + 64];
        let expected =
            [(a, true), (b, true), (c, true), (a, false), (b, false), (c, false), (a, true)];
        assert_eq!(places, expected);
    }
}
