//! `redo-clwb`: redo logging in software, like Mnemosyne's (FWB §II-B, Fig. 1b; §VI), and `unsafe-redo`, the same with
//! nothing forced.
//!
//! A transactional store goes to the thread's write set in DRAM, and a record of its new word to the uncacheable log;
//! loads of the transaction look into the write set first. At the end a commit record follows; when all of the log is
//! durable (one fence: torn bits reveal what is not there), the words are stored in place through the caches, and their
//! lines written back. FWB §II-B: "we must use memory barriers to complete the redo log of A before any
//! stores of A reach NVRAM". Then the commit is acknowledged; the write-backs are not waited for.
//!
//! **Truncation** needs them durable. The thread waits (fence), moves the log's head past what it has committed, and
//! waits again (fence), when the log has no slot for a record, and before it lets go of a lock after a commit: another
//! thread may then store to the same words and truncate its own log, and a record that is still there would take its
//! words back. So committed transactions that recovery finds in different logs have no words in common, and need no
//! common order; in one log they lie in theirs. (Tests hand words over by signals, which count as locks.)
//!
//! **Recovery** reads each log from the head on and writes the words of transactions whose commit record is durable,
//! oldest first.

use super::event::{COVER_POINTS, Event};
use super::log::{Area, Log, Record};
use super::rules::redo::{Rules, log_rules};
use super::write_set::{Found, WriteSet};
use super::{Forcing, Logging, SOFTWARE, SoftwareLogConfig, format, load_hit, places_taken};

use graven_base::config::{Config, ConfigError};
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, WORD_BYTES};
use graven_base::surviving::SurvivingImage;
use graven_machine::design::{
    self, Acknowledgement, Code, Design, DesignContext, DesignInfo, Guarantee, OpAction,
    RecoveryReport, SoftwareDesign, Step, Unused, plug,
};
use graven_machine::program::{Disturbance, Op};

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "redo-clwb",
    summary: "software redo logging: write set in DRAM, uncacheable log, stores in place and clwb after it",
    build: |context| Ok(plug(Redo::new(context, Forcing::Forced)?).with_software().into()),
    acknowledgement: Acknowledgement {
        source: "FWB §II-B: \"we must use memory barriers to complete the redo log of A before any stores of A reach NVRAM\": one fence \
                 behind the log; loads of the write set go on beside it, stores in place and clwb wait for it, and are not waited for",
        steps: |config| {
            let software = config.get::<SoftwareLogConfig>();
            let record = Step::Instructions(software.record_instructions + 2);
            let written = [
                Step::Instructions(1),
                load_hit(config),
                Step::Instructions(software.clwb_instructions + 1),
            ];
            let executed = in_place(config).into_iter().chain(written).collect();
            let fenced = [record, Step::Message, Step::Write, Step::Message, Step::Instructions(2)];
            vec![Step::Both(executed, fenced.into())]
        },
    },
    format: |context, image| format(context, log_rules(context), image),
    recover,
    mutants: Rules::MUTANTS,
    cover_points: COVER_POINTS,
    ..SOFTWARE
};

/// Without write-backs and fences.
pub const UNSAFE: DesignInfo = DesignInfo {
    name: "unsafe-redo",
    summary: "software redo logging with nothing forced to PM",
    paper: "FWB §VI (unsafe-base)",
    guarantee: |_: &Config| Guarantee::None,
    default: false,
    acknowledgement: Acknowledgement {
        source: "FWB §VI: \"software logging without forced cache write-backs\": its last instructions, the stores in place",
        steps: in_place,
    },
    build: |context| Ok(plug(Redo::new(context, Forcing::Unforced)?).with_software().into()),
    mutants: &[],
    ..INFO
};

/// The commit record, and a word that is stored in place.
fn in_place(config: &Config) -> Vec<Step> {
    let software = config.get::<SoftwareLogConfig>();
    vec![
        Step::Instructions(software.record_instructions + 2),
        load_hit(config),
        load_hit(config),
        Step::Instructions(software.home_instructions + 1),
    ]
}

type Port<'a> = design::Port<'a, Redo>;

/// One thread's software.
struct Thread {
    log: Log,
    words: WriteSet,
    in_transaction: bool,
    /// Number of the running transaction.
    number: u64,
    /// Records before this are of transactions that have stored in place.
    committed: u64,
    /// True if some of these are not truncated.
    owes: bool,
}

/// Redo logging.
struct Redo {
    logging: Logging,
    threads: Vec<Thread>,
    rules: Rules,
}

impl Redo {
    fn new(context: &DesignContext, forcing: Forcing) -> Result<Redo, ConfigError> {
        let (logging, threads) = Logging::new(context, forcing, log_rules(context))?;
        let thread = |(log, words)| Thread {
            log,
            words,
            in_transaction: false,
            number: context.first_transaction,
            committed: 0,
            owes: false,
        };
        let threads = threads.into_iter().map(thread).collect();
        Ok(Redo { logging, threads, rules: Rules::of(context) })
    }

    /// Truncates the log: the lines that the thread has committed are durable, then the head moves
    /// past their records.
    fn truncate(&mut self, port: &mut Port<'_>, thread: usize, awaited: bool, code: &mut Code) {
        if self.rules.write_backs_are_awaited() {
            self.logging.fence(code);
        }
        let t = &self.threads[thread];
        if self.rules.head_moves() {
            port.emit(Event::HeadMoves { thread, to: t.committed });
            t.log.move_head(&self.logging.config, t.committed, code);
        }
        if awaited {
            self.logging.fence(code);
        }
        let t = &mut self.threads[thread];
        t.log.truncate(t.committed);
        t.owes = false;
    }

    /// A record goes to the log, which is truncated if it has no slot for it.
    fn append(&mut self, port: &mut Port<'_>, thread: usize, record: Record, code: &mut Code) {
        if !self.threads[thread].log.has_room() && self.threads[thread].owes {
            port.emit(Event::TruncatesForRoom);
            self.truncate(port, thread, self.rules.slots_wait_for_head(), code);
        }
        let t = &mut self.threads[thread];
        if !t.log.has_room() {
            port.fail(format!(
                "transaction {} of thread {thread} has more records than \
                 software_log.log_bytes_per_thread holds",
                t.number
            ));
            return;
        }
        let appended = t.log.append(&self.logging.config, record, code);
        port.emit(Event::RedoLogged { thread, record, appended });
    }

    /// In the place of a load of the transaction, if it has stored to the word.
    fn load(&self, port: &mut Port<'_>, thread: usize, home: Addr, code: &mut Code) -> OpAction {
        let t = &self.threads[thread];
        // A transaction that has stored nothing knows it.
        if t.words.is_empty() || !self.rules.write_set_is_searched() {
            return OpAction::Execute;
        }
        match t.words.search(port, &self.logging.config, home, code) {
            Found::Entry(entry) => OpAction::Return(t.words.load(entry, code)),
            Found::Empty(_) => OpAction::Execute,
        }
    }

    /// In the place of a transactional store: the word goes to the write set, and a record of it to the log.
    fn store(
        &mut self,
        port: &mut Port<'_>,
        thread: usize,
        (home, value): (Addr, u64),
        code: &mut Code,
    ) -> OpAction {
        let t = &mut self.threads[thread];
        if !t.in_transaction {
            port.fail(format!("thread {thread} stores to {home} outside a transaction"));
            return OpAction::Execute;
        }
        match t.words.search(port, &self.logging.config, home, code) {
            Found::Entry(_) if !self.rules.newest_value_is_stored() => {}
            Found::Entry(entry) => t.words.update(entry, value, code),
            Found::Empty(_) if t.words.is_full() => port.fail(format!(
                "transaction {} of thread {thread} stores to more words than \
                 software_log.write_set_words",
                t.number
            )),
            Found::Empty(bucket) => {
                t.words.insert(&self.logging.config, bucket, home, Some(value), code);
            }
        }
        self.append(port, thread, Record::Word(home, value), code);
        OpAction::Defer
    }

    /// At the end of a transaction: its commit record, then its words in place.
    fn commit(&mut self, port: &mut Port<'_>, thread: usize, code: &mut Code) {
        let t = &mut self.threads[thread];
        t.in_transaction = false;
        let number = t.number;
        t.number += 1;
        if t.words.is_empty() {
            return;
        }
        code.end();
        if self.rules.commit_leaves_record() {
            self.append(port, thread, Record::Commit(number), code);
        }
        if self.rules.log_is_awaited() {
            self.logging.fence(code);
        }
        let t = &mut self.threads[thread];
        for (entry, home, value) in t.words.entries() {
            code.load(entry);
            code.load(entry.plus(WORD_BYTES));
            code.compute(self.logging.config.home_instructions);
            code.store(home, value);
        }
        if self.logging.is_forced() && self.rules.lines_are_written_back() {
            self.logging.write_back(&t.words, code);
        }
        t.committed = t.log.next;
        t.owes = true;
    }

    /// Before the thread lets go of what others may store to.
    fn let_go(&mut self, port: &mut Port<'_>, thread: usize, code: &mut Code) {
        let t = &self.threads[thread];
        if !t.owes || t.in_transaction || !self.rules.truncated_for_lock() {
            return;
        }
        port.emit(Event::TruncatesForLock);
        self.truncate(port, thread, self.rules.head_awaited_for_lock(), code);
    }
}

impl Design for Redo {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = Event;

    fn start(&mut self, port: &mut Port<'_>) {
        let heap = port.dram_heap();
        self.threads.iter_mut().for_each(|t| t.words.set_base(heap));
    }

    fn places_taken(&self, structure: usize) -> u64 {
        places_taken(self.threads.iter().map(|t| (&t.log, &t.words)), structure)
    }
}

impl SoftwareDesign for Redo {
    fn before_op(
        &mut self,
        port: &mut Port<'_>,
        thread: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction {
        let thread = thread as usize;
        match *op {
            Op::TxBegin => {
                let t = &mut self.threads[thread];
                t.in_transaction = true;
                t.words.begin();
            }
            Op::Load { at } if self.threads[thread].in_transaction && port.is_pm(at.addr) => {
                return self.load(port, thread, at.addr, code);
            }
            Op::Store { at, value } | Op::StoreNonTemporal { at, value } if port.is_pm(at.addr) => {
                return self.store(port, thread, (at.addr, value), code);
            }
            Op::TxEnd => self.commit(port, thread, code),
            Op::Unlock { .. } | Op::Disturb(Disturbance::Signal(_)) => {
                self.let_go(port, thread, code);
            }
            _ => {}
        }
        OpAction::Execute
    }
}

/// Writes the words of each log's committed transactions home, oldest first.
fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    for (thread, area) in Area::all(context, log_rules(context)).enumerate() {
        let mut records = area.read(image);
        report.records_scanned += records.len() as u64 + 1;
        if Rules::of(context).only_committed_is_redone() {
            let commit = records.iter().rposition(|r| matches!(r, Record::Commit(_)));
            records.truncate(commit.unwrap_or(0));
        }
        if !Rules::of(context).redo_oldest_first() {
            records.reverse();
        }
        for record in records {
            let Record::Word(home, new) = record else { continue };
            image.note(|| format!("log of thread {thread}: {home} redone"));
            image.store(home, new);
            report.words_redone += 1;
        }
    }
    report
}
