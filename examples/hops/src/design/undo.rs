//! Software undo logging with ordering fences: no `clwb`, no `sfence`.
//!
//! | act | code |
//! |---|---|
//! | first store to a word in a transaction | record of the old word; `ofence`; the store |
//! | end | `dfence`: records and data are durable; the commit record; `dfence` (`ofence` if `hops.commit` is `buffered`) |
//!
//! # Bytes
//!
//! Each thread has a log area: a line whose first word is the number of the last committed transaction, plus 1, then records of 32 B.
//! A transaction's records begin at the first place.
//!
//! | word of a record | content |
//! |---|---|
//! | 0 | address of the word |
//! | 1 | the word as it was |
//! | 2 | number of the transaction, plus 1 |
//! | 3 | a mix of the three: a record that was written in part is none |
//!
//! **Recovery** undoes, newest first, the records of a transaction after the committed one: those from the first place on that have
//! its number. It changes nothing in the log.

use std::collections::BTreeSet;

use graven::design::{Code, DesignContext, Mutants, Operation, RecoveryReport};
use graven::ids::ThreadId;
use graven::memory::{Addr, LINE_BYTES, WORD_BYTES, mix};
use graven::mutants;
use graven::program::Op;
use graven::surviving::{SurvivingImage, Work};

use super::event::Event;
use super::protocol::Port;
use super::{Commit, HopsConfig, Software};

const RECORD_WORDS: u64 = 4;
const RECORD_BYTES: u64 = RECORD_WORDS * WORD_BYTES;

mutants! {
    /// A store does not wait in order behind its record.
    RecordNotOrdered = "record-not-ordered";
    /// The commit record does not wait for the data.
    CommitOvertakesData = "commit-overtakes-data";
    /// The acknowledgement does not wait for the commit record.
    CommitNotAwaited = "commit-not-awaited";
    /// Recovery undoes the oldest record first, and words are logged at each store.
    UndoneOldestFirst = "undone-oldest-first";
    /// Recovery believes records that were written in part.
    PartsBelieved = "parts-believed";
    /// Recovery undoes committed transactions, too.
    CommittedUndone = "committed-undone";
    /// The log is put to use as it is found.
    LogNotCleared = "log-not-cleared";
}

/// The mutants of the software's designs.
pub(super) const MUTANTS: &[graven::design::Named] = Mutant::NAMED;

/// A thread's log area.
#[derive(Clone, Copy, Debug)]
struct Area {
    start: Addr,
    records: u64,
}

impl Area {
    fn of(context: &DesignContext, thread: ThreadId) -> Area {
        let bytes = context.config.get::<HopsConfig>().log_bytes_per_thread.0;
        let records = bytes.saturating_sub(LINE_BYTES) / RECORD_BYTES;
        Area { start: context.thread_area(thread, bytes), records }
    }

    fn all(context: &DesignContext) -> impl Iterator<Item = Area> {
        (0..context.threads).map(move |thread| Area::of(context, thread))
    }

    fn committed(self) -> Addr {
        self.start
    }

    fn word(self, record: u64, word: u64) -> Addr {
        self.start.plus(LINE_BYTES + record * RECORD_BYTES + word * WORD_BYTES)
    }
}

fn check_word(home: u64, old: u64, number: u64) -> u64 {
    mix(home ^ mix(old ^ mix(number)))
}

struct Thread {
    area: Area,
    /// Number of the transaction, plus 1.
    number: u64,
    is_open: bool,
    logged: BTreeSet<Addr>,
    records: u64,
}

/// The software.
pub(super) struct Undo {
    threads: Vec<Thread>,
    instructions: u32,
    commit: Commit,
    mutants: Mutants<Mutant>,
}

impl Undo {
    pub fn new(context: &DesignContext) -> Undo {
        let config = context.config.get::<HopsConfig>();
        let thread = |thread| Thread {
            area: Area::of(context, thread),
            number: context.first_transaction,
            is_open: false,
            logged: BTreeSet::new(),
            records: 0,
        };
        Undo {
            threads: (0..context.threads).map(thread).collect(),
            instructions: config.record_instructions,
            commit: config.commit,
            mutants: context.mutants(),
        }
    }

    pub fn before_op(&mut self, port: &mut Port<'_>, thread: ThreadId, op: &Op, code: &mut Code) {
        let t = &mut self.threads[thread as usize];
        match *op {
            Op::TxBegin => {
                t.number += 1;
                t.is_open = true;
                t.records = 0;
                t.logged.clear();
            }
            Op::Store { at, .. } | Op::StoreNonTemporal { at, .. }
                if t.is_open && port.is_pm(at.addr) =>
            {
                self.log(port, thread, at.addr, code);
            }
            Op::TxEnd => self.commit(thread, code),
            _ => {}
        }
    }

    fn log(&mut self, port: &mut Port<'_>, thread: ThreadId, home: Addr, code: &mut Code) {
        let again = self.mutants.has(Mutant::UndoneOldestFirst);
        let t = &mut self.threads[thread as usize];
        code.compute(self.instructions);
        if !t.logged.insert(home) && !again {
            return;
        }
        if t.records == t.area.records {
            port.fail(format!(
                "a transaction of thread {thread} has more records than hops.log_bytes_per_thread holds ({})",
                t.area.records
            ));
            return;
        }
        // What the thread itself has stored and not performed is newer than what the caches have.
        let old = port.cached_word(home);
        port.emit(Event::Logged { thread, home, old });
        code.load_independent(home);
        code.compute(self.instructions);
        let words = [home.0, old, t.number, check_word(home.0, old, t.number)];
        for (word, value) in words.into_iter().enumerate() {
            code.store_own(t.area.word(t.records, word as u64), value);
        }
        t.records += 1;
        if !self.mutants.has(Mutant::RecordNotOrdered) {
            code.order(Operation::OrderingFence);
        }
    }

    fn commit(&mut self, thread: ThreadId, code: &mut Code) {
        let t = &mut self.threads[thread as usize];
        t.is_open = false;
        if !self.mutants.has(Mutant::CommitOvertakesData) {
            code.order(match self.commit {
                Commit::Durable => Operation::DurabilityFence,
                Commit::Buffered => Operation::OrderingFence,
            });
        }
        code.end();
        code.compute(1);
        code.store_own(t.area.committed(), t.number);
        if !self.mutants.has(Mutant::CommitNotAwaited) {
            code.order(match self.commit {
                Commit::Durable => Operation::DurabilityFence,
                Commit::Buffered => Operation::OrderingFence,
            });
        }
    }
}

/// No transaction after the first one's number has committed, and no place has a record.
pub(super) fn format(context: &DesignContext, image: &mut SurvivingImage) {
    let config = context.config.get::<HopsConfig>();
    let mutants: Mutants<Mutant> = context.mutants();
    if config.software == Software::None || mutants.has(Mutant::LogNotCleared) {
        return;
    }
    for area in Area::all(context) {
        image.store(area.committed(), context.first_transaction);
        for record in 0..area.records {
            // All of it: a new number beside the rest of an old record of that number would be a whole record.
            (0..RECORD_WORDS).for_each(|word| image.store(area.word(record, word), 0));
        }
    }
}

/// Undoes the open transaction of each thread. Open transactions have no words in common, so the order of threads does not
/// matter.
pub(super) fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    if context.config.get::<HopsConfig>().software == Software::None {
        return report;
    }
    let mutants: Mutants<Mutant> = context.mutants();
    for (thread, area) in Area::all(context).enumerate() {
        let committed = image.load(area.committed());
        let mut open = None;
        let mut records = Vec::new();
        for record in 0..area.records {
            let [home, old, number, check] =
                [0, 1, 2, 3].map(|word| image.load(area.word(record, word)));
            report.records_scanned += 1;
            image.work(Work::Record, 1);
            let is_whole =
                check == check_word(home, old, number) || mutants.has(Mutant::PartsBelieved);
            let is_later =
                number > committed || mutants.has(Mutant::CommittedUndone) && number == committed;
            if !is_whole || !is_later || *open.get_or_insert(number) != number {
                break;
            }
            records.push((Addr(home), old));
        }
        if !mutants.has(Mutant::UndoneOldestFirst) {
            records.reverse();
        }
        for (home, old) in records {
            image.note(|| format!("log of thread {thread}: {home} undone"));
            image.store(home, old);
            report.words_undone += 1;
        }
    }
    report
}
