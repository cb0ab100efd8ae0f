//! `undo-clwb`: undo logging in software (FWB §II-B, Fig. 1a; §VI), and `unsafe-undo`, the same with nothing forced.
//!
//! Before its first store to a word a transaction loads the old word and stores a record of it to the uncacheable log.
//! At its end it writes the lines of all its words back, waits until they are durable (fence), and moves the log's head
//! past its records: that one word is its commit record. When it is durable (fence), the commit is acknowledged.
//!
//! **Log before data.** FWB §II-B: "uncacheable, store-granular undo logging can eliminate the memory barrier between the
//! log and working data writes", since a store "must traverse the cache hierarchy" and a log update goes through "a
//! four to six cache-line sized entry write-combining buffer". But a record may stay in that buffer until something
//! makes it leave, and nothing keeps its line from being evicted meanwhile. `undo-clwb-literal` is the paper's;
//! `undo-clwb` has a fence between a record and its store. (A fence for several stores would need a program that says
//! in advance what it will store to; whole lines cannot be logged at their first store, since another open transaction
//! may have words in them.)
//!
//! **Recovery** writes the old words of the records from the head on back, newest first. Open transactions have no word
//! in common, so the order of threads does not matter.

use super::event::{COVER_POINTS, Event};
use super::log::{Area, Log, Record};
use super::rules::undo::{Rules, log_rules};
use super::write_set::{Found, WriteSet};
use super::{Forcing, Logging, SOFTWARE, SoftwareLogConfig, format, load_hit, places_taken};
use crate::rules::{before, named};
use graven_base::config::{Config, ConfigError};
use graven_base::ids::ThreadId;
use graven_base::memory::Addr;
use graven_base::surviving::SurvivingImage;
use graven_machine::config::DomainConfig;
use graven_machine::design::{
    self, Acknowledgement, Code, Design, DesignContext, DesignInfo, Guarantee, Leaves, OpAction,
    RecoveryReport, SoftwareDesign, Step, Unused, plug,
};
use graven_machine::program::Op;
use graven_persistency::cut::TRANSACTIONS_BUFFERED;

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "undo-clwb",
    summary: "software undo logging: uncacheable log, fences, clwb of written lines at the end",
    build: |context| Ok(plug(Undo::new(context, Forcing::Forced)?).with_software().into()),
    acknowledgement: Acknowledgement {
        source: "FWB Fig. 1(a), §VI: clwb \"to force cache write-backs after persistent transactions\", a fence, the log's head, a \
                 fence; a fence ends when the core has heard that what is before it is durable",
        steps: |config| {
            let software = config.get::<SoftwareLogConfig>();
            vec![
                load_hit(config),
                Step::Instructions(software.clwb_instructions),
                Step::Fall,
                Step::Write,
                Step::Message,
                Step::Instructions(1),
                Step::Message,
                Step::Write,
                Step::Message,
                Step::Instructions(1),
            ]
        },
    },
    format: |context, image| format(context, log_rules(context), image),
    recover,
    mutants: Rules::MUTANTS,
    // The others are states of a redo log.
    cover_points: COVER_POINTS.split_at(3).0,
    ..SOFTWARE
};

/// As published: nothing keeps a store's line behind its record.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "undo-clwb-literal",
    summary: "undo-clwb as published: no fence between a record and its store",
    default: false,
    inherent: named(Rules::MUTANTS, &["record-not-awaited"]),
    ..INFO
};

/// Without write-backs and fences.
pub const UNSAFE: DesignInfo = DesignInfo {
    name: "unsafe-undo",
    summary: "software undo logging with nothing forced to PM",
    paper: "FWB §VI (unsafe-base)",
    guarantee: |_: &Config| Guarantee::None,
    default: false,
    acknowledgement: Acknowledgement {
        source: "FWB §VI: \"software logging without forced cache write-backs\": its last instructions, which move the head",
        steps: |config| {
            let software = config.get::<SoftwareLogConfig>();
            vec![Step::Instructions(software.head_instructions + 1)]
        },
    },
    build: |context| Ok(plug(Undo::new(context, Forcing::Unforced)?).with_software().into()),
    mutants: &[],
    ..INFO
};

/// Over hardware that orders stores by itself: the log in the caches, an ordering fence between a record and its store and before the
/// commit record, a durability fence after it. It is the software of a layered design.
pub const ORDERED: DesignInfo = DesignInfo {
    name: "undo-ordered",
    summary: "software undo logging with ordering fences, over hardware that orders stores by itself",
    paper: "HOPS (ASPLOS'17), Silo §II-C",
    default: false,
    build: |context| Ok(plug(Undo::new(context, Forcing::Ordered)?).with_software().into()),
    acknowledgement: Acknowledgement {
        source: "a fence, the log's head, a fence, where stores are durable when they are performed",
        steps: |config| {
            let software = config.get::<SoftwareLogConfig>();
            vec![Step::Instructions(software.head_instructions + 3)]
        },
    },
    leaves: |_| Leaves::Dirty,
    stress: &[
        ("software_log.log_bytes_per_thread", &["2 KB", "2112", "3 KB", "64 KB"]),
        ("software_log.write_set_words", &["128", "256"]),
    ],
    // There is no write-back to leave out.
    mutants: before(Rules::MUTANTS, "write-back-missing"),
    ..INFO
};

/// The same without the durability fence: a commit is ordered, and not awaited.
pub const BUFFERED: DesignInfo = DesignInfo {
    name: "undo-ordered-buffered",
    summary: "undo-ordered whose commits are ordered and not awaited: the newest transactions may be lost",
    guarantee: |_: &Config| Guarantee::Order(&TRANSACTIONS_BUFFERED),
    build: |context| Ok(plug(Undo::new(context, Forcing::Buffered)?).with_software().into()),
    mutants: &[],
    ..ORDERED
};

/// `undo-ordered` where caches survive.
pub const EADR: DesignInfo = DesignInfo {
    name: "undo-eadr",
    summary: "software undo logging in caches that survive a power failure: no write-backs, and fences wait for nothing",
    paper: "Silo §II-C",
    settings: &[("domain.caches", "all")],
    build: |context| {
        if context.config.get::<DomainConfig>().keeps_caches() {
            return (ORDERED.build)(context);
        }
        let why = "undo-eadr has no write-backs, so that caches must survive: domain.caches = all";
        Err(context.config.inconsistent(&["domain.caches"], why.into()))
    },
    // Stores are durable in the order of the program: no fence can be missing.
    mutants: before(Rules::MUTANTS, "record-not-awaited"),
    ..ORDERED
};

type Port<'a> = design::Port<'a, Undo>;

/// One thread's software.
struct Thread {
    log: Log,
    words: WriteSet,
    in_transaction: bool,
}

/// Undo logging.
struct Undo {
    logging: Logging,
    threads: Vec<Thread>,
    rules: Rules,
}

impl Undo {
    fn new(context: &DesignContext, forcing: Forcing) -> Result<Undo, ConfigError> {
        let (logging, threads) = Logging::new(context, forcing, log_rules(context))?;
        let thread = |(log, words)| Thread { log, words, in_transaction: false };
        let threads = threads.into_iter().map(thread).collect();
        Ok(Undo { logging, threads, rules: Rules::of(context) })
    }

    /// Before a transactional store: the old word is logged, unless it is already.
    fn log(&mut self, port: &mut Port<'_>, thread: usize, home: Addr, code: &mut Code) {
        let t = &mut self.threads[thread];
        let Found::Empty(bucket) = t.words.search(port, &self.logging.config, home, code) else {
            return;
        };
        if t.words.is_full() || !t.log.has_room() {
            port.fail(format!(
                "a transaction of thread {thread} stores to more words than \
                 software_log.write_set_words and software_log.log_bytes_per_thread allow"
            ));
            return;
        }
        t.words.insert(&self.logging.config, bucket, home, None, code);
        if !self.rules.stores_have_records() {
            return;
        }
        code.load_independent(home);
        let old = port.cached_word(home);
        let appended = t.log.append(&self.logging.config, Record::Word(home, old), code);
        port.emit(Event::OldWordLogged { thread, home, old, appended });
        if self.rules.record_is_awaited() {
            self.logging.order(code);
        }
    }

    /// At the end of a transaction: its lines are written back, then the head moves past its records, which commits it.
    fn commit(&mut self, port: &mut Port<'_>, thread: usize, code: &mut Code) {
        let early = !self.rules.commit_follows_write_backs();
        let t = &mut self.threads[thread];
        t.in_transaction = false;
        if t.words.is_empty() {
            return;
        }
        t.log.truncate(t.log.next);
        let t = &self.threads[thread];
        if early {
            code.end();
            t.log.move_head(&self.logging.config, t.log.next, code);
        }
        if self.logging.is_forced() && self.rules.lines_are_written_back() {
            self.logging.write_back(&t.words, code);
        }
        if self.rules.write_backs_are_awaited() {
            self.logging.order(code);
        }
        if !early {
            code.end();
            if self.rules.commit_leaves_record() {
                port.emit(Event::HeadMoves { thread, to: t.log.next });
                t.log.move_head(&self.logging.config, t.log.next, code);
            }
        }
        if self.rules.commit_is_awaited() {
            self.logging.fence(code);
        }
    }
}

impl Design for Undo {
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

impl SoftwareDesign for Undo {
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
                if self.rules.write_set_is_emptied() {
                    t.words.begin();
                }
            }
            Op::Store { at, .. } | Op::StoreNonTemporal { at, .. }
                if self.threads[thread].in_transaction && port.is_pm(at.addr) =>
            {
                self.log(port, thread, at.addr, code);
            }
            Op::TxEnd => self.commit(port, thread, code),
            _ => {}
        }
        OpAction::Execute
    }
}

/// Writes the old words of the records from each log's head on back, newest first.
fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    for (thread, area) in Area::all(context, log_rules(context)).enumerate() {
        let mut records = area.read(image);
        report.records_scanned += records.len() as u64 + 1;
        if !Rules::of(context).newest_is_undone() {
            records.pop();
        }
        let skipped = usize::from(!Rules::of(context).oldest_is_undone());
        for record in records.into_iter().skip(skipped).rev() {
            // Another kind is not written, and is noise.
            let Record::Word(home, old) = record else { continue };
            image.note(|| format!("log of thread {thread}: {home} undone"));
            image.store(home, old);
            report.words_undone += 1;
        }
    }
    report
}
