//! The design that `docs/tutorials/design.md` walks through: it is compiled, and keeps the contract.
//!
//! Bug class: the guide to the interface shows code that does not compile, or that loses data.

use crate::common::registry;

// --- listing begins ---
use std::collections::BTreeSet;

use graven::config::ConfigError;
use graven::design::{
    self, Acknowledgement, Design, DesignContext, DesignEvent, DesignInfo, Guarantee, Mutants,
    Observation, RecoveryReport, Stall, Step, Store, Unused, Writeback, plug,
};
use graven::ids::{ThreadId, Tx};
use graven::memory::{Addr, LINE_BYTES, LineAddr, LineData, WORD_BYTES};
use graven::request::{self, WriteClass, WriteOrder};
use graven::stats::CounterSet;
use graven::surviving::{SurvivingImage, Work};
use graven::{counters, cover_points, mutants};

/// The design's entry in the registry.
static INFO: DesignInfo = DesignInfo {
    name: "undo",
    summary: "logs the old word of each first store; writes the lines back at the commit",
    paper: "docs/tutorials/design.md",
    guarantee: |_| Guarantee::Durable,
    build: |context| Ok(plug(Undo::new(context)?).into()),
    format,
    recover,
    mutants: Mutant::NAMED,
    counters: Counters::declarations,
    cover_points: COVER_POINTS,
    acknowledgement: Acknowledgement {
        source: "the controller has the lines written back, writes the commit count, and answers",
        steps: |_| vec![Step::Fall, Step::Write, Step::Write, Step::Message],
    },
    ..DesignInfo::DEFAULT
};

mutants! {
    /// A line may overtake the records of its stores.
    LineOvertakes = "line-overtakes";
    /// A record's number is sent with the rest of it.
    NumberWithRest = "number-with-rest";
    /// The log is put to use as it is found.
    LogNotCleared = "log-not-cleared";
}

counters! {
    /// What the design counts.
    pub struct Counters {
        /// Records of old words that were sent.
        log_entries: Count, "entries";
    }
}

cover_points! {
    StoredAgain = "stored-again", "a store found a record of its word";
    LineStolen = "line-stolen", "a line was evicted with words of an open transaction";
    EvictedBeforeEnd = "evicted-before-end", "a line had been evicted when its transaction ended";
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A store finds a record of its word.
    StoredAgain,
    /// The record of a store is sent.
    Logged { addr: Addr, old: u64 },
    /// A line is evicted with words of an open transaction.
    LineStolen,
    /// A line of an ending transaction has been evicted.
    EvictedBeforeEnd,
}

impl DesignEvent for Event {
    type Counters = Counters;
    type Cover = Cover;

    fn observe(self, to: &mut Observation<'_, Event>) {
        match self {
            Event::StoredAgain => to.cover(Cover::StoredAgain),
            Event::Logged { addr, old } => {
                to.count().log_entries += 1;
                to.explain(|| format!("logs {addr}: {old:#x}"));
            }
            Event::LineStolen => to.cover(Cover::LineStolen),
            Event::EvictedBeforeEnd => to.cover(Cover::EvictedBeforeEnd),
        }
    }
}

/// Log area of each thread: one line for the commit count, then the slots of the records.
const AREA_BYTES: u64 = 16 << 10;
/// A record takes three words; the fourth keeps it within one line.
const SLOT_BYTES: u64 = 32;
/// Records of one transaction, at most.
const SLOTS: u64 = (AREA_BYTES - LINE_BYTES) / SLOT_BYTES;

fn area(context: &DesignContext, thread: ThreadId) -> Addr {
    context.log_start.plus(u64::from(thread) * AREA_BYTES)
}

fn slot(area: Addr, index: u64) -> Addr {
    area.plus(LINE_BYTES + index * SLOT_BYTES)
}

/// What a write to memory is, as far as the design wants to hear of it.
#[derive(Clone, Copy, Debug)]
enum Write {
    /// A line of an ending transaction.
    Line(Tx),
    /// The commit count that ends it.
    CommitCount(Tx),
}

struct Thread {
    area: Addr,
    /// Words that the open transaction has stored to; each has a record.
    words: BTreeSet<Addr>,
    /// Lines that are being written back at its end.
    under_way: usize,
}

struct Undo {
    threads: Vec<Thread>,
    /// The newest record of any thread.
    newest: WriteOrder,
    mutants: Mutants<Mutant>,
}

type Port<'a> = design::Port<'a, Undo>;

impl Undo {
    fn new(context: &DesignContext) -> Result<Undo, ConfigError> {
        if AREA_BYTES * u64::from(context.threads) > context.log_bytes() {
            let why = format!("{} threads need {AREA_BYTES} B each", context.threads);
            return Err(context.config.inconsistent(&["pm.log_region_bytes"], why));
        }
        let thread = |t| Thread { area: area(context, t), words: BTreeSet::new(), under_way: 0 };
        let threads = (0..context.threads).map(thread).collect();
        Ok(Undo { threads, newest: WriteOrder::NONE, mutants: context.mutants() })
    }

    /// Undo before steal: what a line's write must wait for.
    fn records(&self) -> WriteOrder {
        if self.mutants.has(Mutant::LineOvertakes) { WriteOrder::NONE } else { self.newest }
    }

    /// Whether an open transaction has stored to a line.
    fn is_open(&self, line: LineAddr) -> bool {
        self.threads.iter().any(|thread| thread.words.iter().any(|word| word.line() == line))
    }
}

impl Design for Undo {
    type Write = Write;
    type Read = Unused;
    type Timer = Unused;
    type Event = Event;

    /// The first store to a word sends its old value to the log; the thread does not wait for it.
    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let thread = &mut self.threads[store.tx.thread as usize];
        let index = thread.words.len() as u64;
        if !thread.words.insert(store.addr) {
            port.emit(Event::StoredAgain);
            return Stall::None;
        }
        if index == SLOTS {
            port.fail(format!("a transaction stores to more than {SLOTS} words"));
            return Stall::None;
        }
        let (slot, record) =
            (slot(thread.area, index), [store.tx.number + 1, store.addr.0, store.old]);
        let mut last = request::Write::words(WriteClass::Log, slot, &record);
        if !self.mutants.has(Mutant::NumberWithRest) {
            // Power may fail with any words of a write there. The number, which makes it a record, follows
            // the rest by itself: writes of one line keep their order.
            let rest = request::Write::words(WriteClass::Log, slot.plus(WORD_BYTES), &record[1..]);
            port.write(rest, port.bypass_cycles());
            last = request::Write::words(WriteClass::Log, slot, &record[..1]);
        }
        self.newest = port.order();
        port.emit(Event::Logged { addr: store.addr, old: store.old });
        port.write(last.ordered(self.newest), port.bypass_cycles());
        Stall::None
    }

    fn on_llc_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        _content: &LineData,
    ) -> Writeback<Write> {
        if self.is_open(line) {
            port.emit(Event::LineStolen);
        }
        Writeback::after(self.records())
    }

    /// The transaction's lines are written back. When all are durable, the controller writes the commit count.
    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        let after = self.records();
        let thread = &mut self.threads[tx.thread as usize];
        let lines: BTreeSet<LineAddr> = thread.words.iter().map(|word| word.line()).collect();
        thread.under_way = lines.len();
        for &line in &lines {
            if !port.write_back(line, after, Some(Write::Line(tx))) {
                // It was evicted and may still be on its way: this write follows it.
                port.emit(Event::EvictedBeforeEnd);
                let write = request::Write::line(WriteClass::Data, line, port.cached_line(line));
                port.write_reported(write.after(after), Write::Line(tx), port.bypass_cycles());
            }
        }
        if lines.is_empty() { Stall::None } else { Stall::UntilReleased }
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Line(tx) => {
                let thread = &mut self.threads[tx.thread as usize];
                thread.under_way -= 1;
                if thread.under_way == 0 {
                    let count = [tx.number + 1];
                    let write = request::Write::words(WriteClass::Metadata, thread.area, &count);
                    port.write_reported(write, Write::CommitCount(tx), 0);
                }
            }
            Write::CommitCount(tx) => {
                self.threads[tx.thread as usize].words.clear();
                port.release(tx.thread);
            }
        }
    }
}

/// Before the log is put to use: nothing is committed, and no slot holds a record.
fn format(context: &DesignContext, surviving: &mut SurvivingImage) {
    if context.mutants().has(Mutant::LogNotCleared) {
        return;
    }
    for area in (0..context.threads).map(|thread| area(context, thread)) {
        surviving.store(area, 0);
        (0..SLOTS).for_each(|index| surviving.store(slot(area, index), 0));
    }
}

/// Takes back what the transaction after the last committed one has logged. A word has one record at
/// most, so the order does not matter; a record that is missing protects a store that reached nothing.
fn recover(
    context: &DesignContext,
    _registers: &[u64],
    surviving: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    for area in (0..context.threads).map(|thread| area(context, thread)) {
        let committed = surviving.load(area);
        for slot in (0..SLOTS).map(|index| slot(area, index)) {
            let [number, addr, old] = [0, 1, 2].map(|i| surviving.load(slot.plus(i * WORD_BYTES)));
            surviving.work(Work::Record, 1);
            if number > committed {
                surviving.store(Addr(addr), old);
                report.words_undone += 1;
            }
        }
        report.records_scanned += SLOTS;
    }
    report
}
// --- listing ends ---

use crate::common::campaign::Campaign;
use crate::common::shared_lines::SHARED_LINES;
use crate::common::{CELLS, spec_of, tiny_config};
use graven::config::Config;
use graven::design::MutantSet;
use graven::sim::Simulation;

fn simulation(
    config: &Config,
    design: &'static DesignInfo,
    workload: &'static graven::workload::WorkloadInfo,
    seed: u64,
) -> Simulation {
    let spec = spec_of(config, design, workload, 4, 80, seed);
    Simulation::new(&spec).unwrap_or_else(|e| panic!("{e}"))
}

/// Crashes a run about a hundred times at random cycles; returns the violations that the durability checker found.
fn crash_often(new: impl Fn() -> Simulation) -> Vec<String> {
    let mut whole = new();
    whole.run().unwrap_or_else(|e| panic!("{e}"));
    let step_max = whole.stats().counters.cycles / 50;
    let mut simulation = new();
    crate::common::crash_often(&mut simulation, 1, step_max).broken
}

/// Caches that hold a line for a few misses, and domains, queues and cores of several kinds.
fn machines() -> Vec<Config> {
    let machines: [&[(&str, &str)]; 5] = [
        &[],
        &[("controller.write_queue_entries", "4"), ("pm.buffer_lines", "2")],
        &[("controller.channels", "4"), ("controller.interleave", "line")],
        &[("controller.adr", "false"), ("pm.buffer_lines", "0")],
        &[("core.model", "out-of-order"), ("core.issue_width", "4")],
    ];
    let tiny =
        [("llc.bytes", "2 KB"), ("workload.footprint_bytes", "128 KB"), ("echo.batch_puts", "2")];
    machines.map(|settings| tiny_config(&[&tiny, settings].concat())).into()
}

#[test]
fn the_design_recovers_to_a_committed_state_at_any_cycle() {
    for (machine, config) in machines().iter().enumerate() {
        for sharing in ["private", "shared"] {
            let mut config = config.clone();
            config.set("workload.sharing", sharing).expect("a known choice");
            for workload in registry().programs().chain([&CELLS]) {
                let broken = crash_often(|| simulation(&config, &INFO, workload, 3));
                let shown = &broken[..broken.len().min(3)];
                assert!(broken.is_empty(), "machine {machine}, {}: {shown:#?}", workload.name);
            }
        }
    }
}

#[test]
fn the_design_changes_nothing_but_time() {
    for config in machines() {
        let ideal = registry().find_design("ideal").expect("a registered design");
        let digest =
            |design| simulation(&config, design, &CELLS, 7).run().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(digest(&INFO), digest(ideal));
    }
}

/// Caches that hold next to nothing, and a queue of four writes.
const CRAMPED: Campaign = Campaign {
    workload: &SHARED_LINES,
    settings: &[
        ("l1.bytes", "128 B"),
        ("l1.ways", "1"),
        ("l2.bytes", "256 B"),
        ("llc.bytes", "1 KB"),
        ("llc.ways", "2"),
        ("controller.write_queue_entries", "4"),
    ],
    transactions: 56,
    first_transaction: (1 << 32) - 4,
    runs: 4,
};

/// Every crash point, torn and with writes on their way, over noise.
#[test]
fn no_crash_point_breaks_its_guarantee_and_each_of_its_mutants_is_killed() {
    let mut reached = vec![0; COVER_POINTS.len()];
    for workload in [&SHARED_LINES, &CELLS] {
        let intact = Campaign { workload, ..CRAMPED }.examine(&INFO, MutantSet::NONE);
        assert_eq!(intact.what(), None, "{}", workload.name);
        assert!(intact.tally.torn > 1000 && intact.tally.in_flight > 500, "{:?}", intact.tally);
        reached.iter_mut().zip(&intact.cover_points).for_each(|(sum, n)| *sum += n);
    }
    for (point, times) in COVER_POINTS.iter().zip(&reached) {
        assert!(*times > 0, "{} was never reached", point.name);
    }
    for mutant in INFO.mutants {
        let found = CRAMPED.examine(&INFO, INFO.mutant(mutant.name).expect("its own"));
        assert!(found.violation.is_some(), "{} was never noticed", mutant.name);
        assert!(found.tally.crash_points < 500, "{}: {:?}", mutant.name, found.tally);
    }
}

#[test]
fn the_documentation_shows_this_file() {
    let between = |text: &'static str, begin: &str, end: &str| {
        let (_, rest) = text.split_once(begin).expect("the listing begins");
        rest.split_once(end).expect("the listing ends").0
    };
    let ours = between(
        include_str!("walkthrough.rs"),
        "// --- listing begins ---\n",
        "// --- listing ends ---\n",
    );
    let documented = between(
        include_str!("../../../../docs/tutorials/design.md"),
        "<!-- listing: crates/graven/tests/designs/walkthrough.rs -->\n```rust\n",
        "```\n<!-- end of listing -->",
    );
    assert!(
        ours == documented,
        "the listing in docs/tutorials/design.md is not the code in crates/graven/tests/designs/walkthrough.rs"
    );
}
