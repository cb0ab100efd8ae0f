//! MorLog: what becomes of each store, in counters and in the bytes of the log; and hostile machines.
//!
//! Bug class: a word is taken for one whose undo data is in the log, or whose newest redo data is; an entry is
//! dropped that was the only one; the log forgets what it still owes.

use crate::common::campaign;
use crate::common::find;
use crate::common::registry;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use crate::common::churn::{CHURN, STREAMING_CHURN};
use crate::common::shared_lines::SHARED_LINES;
use crate::common::{CELLS, Part, crash_often, refusal, spec_of, tiny_config};
use graven::config::Config;
use graven::cost::Sheet;
use graven::design::{Guarantee, MutantSet};
use graven::lab::campaign::guarantee_text;

use graven::designs::morlog::{LogType, MorlogConfig};
use graven::lab::case::Case;
use graven::lab::explorer::{Outcome, Thoroughness};
use graven::lab::litmus::{Litmus, parse};
use graven::memory::{Addr, Image};
use graven::program::{Disturbance, Op, Program, Ptr};
use graven::sim::{Observer, SimError, Simulation, Spec};
use graven::stats::Counts;
use graven::time::{Cycle, NEVER};
use graven::trace_event::TraceEvent;
use graven::workload::{BrokenInvariant, Workload};

// ---- given steps, and what is seen of them -------------------------------------------------------

/// A step of a thread: an operation, or a look at everything.
#[derive(Clone, Copy)]
enum Step {
    Do(Op),
    Look,
}

const HOME: u64 = 4096;

/// The word of a line.
fn at(line: u64, word: u64) -> Addr {
    Addr(HOME + line * 64 + word * 8)
}

/// Steps from a text: `A`, `B`, `C` and `D` are the first four lines, `A1` the second word of the first. A store or
/// load has been performed when the next step comes, but for `A:=1`. `l1 A` and `evict A`: the line leaves
/// the L1, or all caches. `nt A=1`: a non-temporal store. `scan`: one, and the time that it takes.
fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let disturb = |what| Step::Do(Op::Disturb(what));
    let barrier = disturb(Disturbance::Signal(1000));
    for step in text.split(';').map(str::trim).filter(|step| !step.is_empty()) {
        let (what, of) = step.split_once(' ').unwrap_or((step, ""));
        let number = || of.parse().unwrap_or_else(|_| panic!("{step}: a number"));
        let line = || word(of).line();
        match what {
            "begin" => steps.push(Step::Do(Op::TxBegin)),
            "end" => steps.push(Step::Do(Op::TxEnd)),
            "wait" => steps.extend([Step::Do(Op::Compute { instructions: number() }), barrier]),
            "load" => steps.extend([Step::Do(Op::Load { at: Ptr::known(word(of)) }), barrier]),
            "l1" => steps.push(disturb(Disturbance::Evict(line(), 1))),
            "evict" => steps.push(disturb(Disturbance::Evict(line(), 3))),
            "signal" => steps.push(disturb(Disturbance::Signal(number()))),
            "await" => steps.push(disturb(Disturbance::Await(number()))),
            "settle" => steps.push(disturb(Disturbance::Settle)),
            "scan" => {
                let time = Step::Do(Op::Compute { instructions: 5000 });
                steps.extend([disturb(Disturbance::Maintenance), time, barrier]);
            }
            "look" => steps.push(Step::Look),
            _ => {
                let (name, value) = step
                    .trim_start_matches("nt ")
                    .split_once('=')
                    .unwrap_or_else(|| panic!("{step}: a step"));
                let at = Ptr::known(word(name.trim_end_matches(':')));
                let digits = value.replace('_', "");
                let value = match digits.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16),
                    None => digits.parse(),
                };
                let value = value.unwrap_or_else(|e| panic!("{step}: {e}"));
                steps.push(Step::Do(match what {
                    "nt" => Op::StoreNonTemporal { at, value },
                    _ => Op::Store { at, value },
                }));
                if !name.ends_with(':') {
                    steps.push(barrier);
                }
            }
        }
    }
    steps
}

/// A word by its name.
fn word(name: &str) -> Addr {
    let line = u64::from(name.as_bytes()[0] - b'A');
    at(line, name[1..].parse().unwrap_or(0))
}

struct Steps {
    threads: Vec<Vec<Step>>,
    looks: Rc<Cell<usize>>,
}

struct Run {
    steps: std::vec::IntoIter<Step>,
    looks: Rc<Cell<usize>>,
}

impl Program for Run {
    fn next(&mut self, _value: u64) -> Op {
        match self.steps.next() {
            None => Op::Done,
            Some(Step::Do(op)) => op,
            Some(Step::Look) => {
                self.looks.set(self.looks.get() + 1);
                Op::Disturb(Disturbance::Signal(1000))
            }
        }
    }
}

impl Workload for Steps {
    /// The third line holds 3s, all others 0.
    fn populate(&self, image: &mut Image) {
        (0..8).for_each(|word| _ = image.store(at(2, word), 3));
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let steps = self.threads[thread as usize].clone().into_iter();
        Box::new(Run { steps, looks: Rc::clone(&self.looks) })
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// A record as the bytes of the log have it, by the table in `packed_log`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    log: usize,
    group: u64,
    torn: bool,
    kind: u64,
    thread: u64,
    tx: u64,
    addr: Addr,
    encoding: u64,
    /// Records in its block.
    count: u64,
    dirty: u64,
    ulog: u64,
    continues: bool,
    late: bool,
    /// Its words of data.
    words: Vec<u64>,
}

const UNDO_REDO: u64 = 0;
const REDO: u64 = 1;
const COMMIT: u64 = 2;
const IN_PLACE: u64 = 3;

fn bits(word: u64, from: u32, count: u32) -> u64 {
    word >> from & ((1 << count) - 1)
}

/// Reads a log of so many groups from its head on.
fn read_log(peek: &impl Fn(Addr) -> u64, log: usize, start: Addr, groups: u64) -> Vec<Record> {
    let (head, mut records, mut next) = (peek(start), Vec::new(), 0);
    let block = |group: u64| start.plus(64 + group % groups * 128);
    for group in head..head + groups {
        let mut count = 1;
        let mut place = 0;
        while place < count {
            let metadata = block(group).plus(place * 16);
            let [first, second] = [metadata, metadata.plus(8)].map(peek);
            let torn = first >> 63 == 1;
            let expected = (group / groups).is_multiple_of(2);
            if torn != expected || (second >> 63 == 1) != expected {
                return records;
            }
            count = bits(first, 61, 2) + 1;
            let continues = bits(second, 37, 1) == 1;
            if place == 0 && !continues {
                next = group * 8;
            }
            let kind = bits(first, 48, 2);
            let mut word = || {
                next += 1;
                peek(block((next - 1) / 8).plus(64 + (next - 1) % 8 * 8))
            };
            let words = (0..[2, 1, 0, 0][kind as usize]).map(|_| word()).collect();
            records.push(Record {
                log,
                group,
                torn,
                kind,
                thread: bits(first, 50, 8),
                tx: bits(second, 0, 16),
                addr: Addr(bits(first, 0, 48)),
                encoding: bits(first, 58, 3),
                count,
                dirty: bits(second, 16, 8),
                ulog: bits(second, 24, 13),
                continues,
                late: bits(second, 38, 1) == 1,
                words,
            });
            place += 1;
        }
    }
    records
}

/// What was seen in one look.
struct Seen {
    notes: Vec<String>,
    counters: Counts,
    /// What the logs hold, from their heads on.
    records: Vec<Record>,
    /// Heads of the logs.
    heads: Vec<u64>,
    /// The first four lines in PM, before recovery,
    survives: BTreeMap<Addr, u64>,
    /// and after it.
    recovered: BTreeMap<Addr, u64>,
    /// Which transactions have been acknowledged.
    acknowledged: usize,
    cycle: Cycle,
}

impl Seen {
    /// Records as kind, address and words.
    fn log(&self) -> Vec<(u64, Addr, Vec<u64>)> {
        self.records.iter().map(|r| (r.kind, r.addr, r.words.clone())).collect()
    }

    fn kinds(&self) -> Vec<u64> {
        self.records.iter().map(|r| r.kind).collect()
    }

    /// Undo+redo entries, merged stores, redo entries.
    fn entries(&self) -> (u64, u64, u64) {
        let c = &self.counters;
        (c["log_entries"], c["log_entries_merged"], c["log_redo_entries"])
    }

    fn says(&self, what: &str) -> bool {
        self.notes.iter().any(|note| note.contains(what))
    }
}

/// Looks when a thread asks for it.
struct Looker {
    looks: Rc<Cell<usize>>,
    seen: Vec<Seen>,
    notes: Vec<String>,
    acknowledged: usize,
}

impl Looker {
    fn take(&mut self, simulation: &mut Simulation) {
        for (_, event) in simulation.take_trace() {
            match event {
                TraceEvent::Note(note) => self.notes.push(note),
                TraceEvent::Acknowledged(_) => self.acknowledged += 1,
                _ => {}
            }
        }
        let (config, threads) = (simulation.spec().config.clone(), simulation.spec().threads);
        let context = simulation.spec().context();
        let morlog = config.get::<MorlogConfig>();
        let share = morlog.log_bytes.0 / u64::from(threads) / 64 * 64;
        let logs: Vec<(Addr, u64)> = match morlog.log_type {
            LogType::Centralised => vec![(context.log_start, morlog.log_bytes.0)],
            LogType::PerThread => {
                (0..threads).map(|t| (context.thread_area(t, share), share)).collect()
            }
        };
        let counters = simulation.counts();
        let cycle = simulation.machine().now();
        let mut crash = simulation.crash();
        let words = || (0..4).flat_map(|line| (0..8).map(move |word| at(line, word)));
        let peek = |addr| crash.image.peek(addr);
        let records = logs
            .iter()
            .enumerate()
            .flat_map(|(log, &(start, bytes))| read_log(&peek, log, start, (bytes - 64) / 128));
        let records = records.collect();
        let heads = logs.iter().map(|&(start, _)| peek(start)).collect();
        let survives = words().map(|addr| (addr, peek(addr))).collect();
        crash.recover();
        graven::lab::checker::check(&crash).unwrap_or_else(|verdict| panic!("{verdict}"));
        let recovered = words().map(|addr| (addr, crash.image.peek(addr))).collect();
        drop(crash);
        let (notes, acknowledged) = (std::mem::take(&mut self.notes), self.acknowledged);
        self.seen.push(Seen {
            notes,
            counters,
            records,
            heads,
            survives,
            recovered,
            acknowledged,
            cycle,
        });
    }
}

impl Observer for Looker {
    fn after_action(&mut self, simulation: &mut Simulation) {
        if self.looks.get() > self.seen.len() {
            self.take(simulation);
        }
    }
}

/// MorLog on its paper's machine, but two cores, a smaller LLC (a scan takes 2,176 cycles), one controller, a log of
/// 64 KB and no scan unless asked for.
fn machine(settings: &[(&str, &str)]) -> Config {
    let base = [
        ("controller.scheduler", "reads-first"),
        ("core.count", "2"),
        ("llc.bytes", "1 MB"),
        ("controller.channels", "1"),
        ("pm.capacity_bytes", "64 MB"),
        ("pm.log_region_bytes", "4 MB"),
        ("dram.capacity_bytes", "1 MB"),
        ("morlog.log_bytes", "64 KB"),
        ("morlog.scan_interval_cycles", "1000000000"),
    ];
    crate::common::machine("morlog", &[&base, settings].concat())
}

/// Runs threads; what was seen in each look, and at the end.
fn watch(settings: &[(&str, &str)], threads: &[&str]) -> Vec<Seen> {
    let design = find("morlog").expect("registered");
    let spec = spec_of(&machine(settings), design, &CELLS, threads.len() as u32, 1, 0);
    let looks = Rc::new(Cell::new(0));
    let threads = threads.iter().map(|text| steps(text)).collect();
    let workload = Box::new(Steps { threads, looks: Rc::clone(&looks) });
    let mut simulation =
        Simulation::with_workload(&spec, workload).unwrap_or_else(|e| panic!("{e}"));
    graven::lab::checker::attach(&mut simulation);
    simulation.keep_trace();
    simulation.keep_notes();
    let mut looker = Looker { looks, seen: Vec::new(), notes: Vec::new(), acknowledged: 0 };
    let done = simulation.advance_observed(NEVER, &mut looker);
    assert!(done.unwrap_or_else(|e| panic!("{e}")), "it runs to its end");
    looker.take(&mut simulation);
    looker.seen
}

/// One thread, and what is seen at its end.
fn told(settings: &[(&str, &str)], steps: &str) -> Seen {
    watch(settings, &[steps]).pop().expect("there is an end")
}

const FLAGS: (&str, &str) = ("morlog.dirty_flags", "true");
const SLDE: (&str, &str) = ("pm.codec", "slde");
const PACKED: (&str, &str) = ("pm.log_packing", "always");
const DELAYED: (&str, &str) = ("morlog.delay_persistence", "true");
const PER_THREAD: (&str, &str) = ("morlog.log_type", "per-thread");

// ---- the state machine of Fig. 8 -----------------------------------------------------------------

/// Claim `morlog-state-machine`: Clean → Dirty → URLog → ULog, by how far apart two stores of a word are. An entry
/// leaves the buffer of 16 after 16 cycles; 8 more are the way to the controller.
#[test]
fn what_a_second_store_does_depends_on_how_long_ago_the_first_was() {
    let a = at(0, 0);
    // Cycles between the stores: what they make, and the undo+redo and redo records that follow.
    for (cycles, entries, records) in [
        (1, (1, 1, 0), vec![(UNDO_REDO, a, vec![0, 2])]),
        (10, (1, 1, 0), vec![(UNDO_REDO, a, vec![0, 2])]),
        // On its way and not durable: still Dirty, but too late to merge.
        (18, (2, 0, 0), vec![(UNDO_REDO, a, vec![0, 1]), (UNDO_REDO, a, vec![1, 2])]),
        // Durable: URLog, and the redo data of the second stays in the L1 until the commit.
        (40, (1, 0, 1), vec![(UNDO_REDO, a, vec![0, 1]), (REDO, a, vec![2])]),
    ] {
        let steps = format!("begin; A=1; wait {cycles}; A=2; end; settle");
        let seen = told(&[], &steps);
        assert_eq!(seen.entries(), entries, "{cycles} cycles apart");
        let (commit, others) =
            seen.log().split_last().map(|(c, o)| (c.clone(), o.to_vec())).expect("a log");
        assert_eq!(others, records, "{cycles} cycles apart");
        assert_eq!((commit.0, commit.2), (COMMIT, vec![]));
        assert_eq!(seen.recovered[&a], 2);
        assert_eq!(seen.says("is ULog"), cycles == 40);
    }
}

/// ULog → ULog: however often the word is stored to, one redo entry with the newest value.
#[test]
fn stores_to_a_ulog_word_leave_one_redo_entry() {
    let a = at(0, 0);
    let more: Vec<String> = (2..50).map(|value| format!("A={value}; wait 30; ")).collect();
    let seen = told(&[], &format!("begin; A=1; wait 40; {}end", more.concat()));
    assert_eq!(seen.entries(), (1, 0, 1));
    assert_eq!(seen.log()[..2], [(UNDO_REDO, a, vec![0, 1]), (REDO, a, vec![49])]);
    assert_eq!(seen.counters["transactional_stores"], 49);
}

/// Write distance: entries of other words push the first one out of a small buffer, long before its time.
#[test]
fn other_words_push_an_entry_out_of_a_full_buffer() {
    let buffer = [("morlog.undo_redo_entries", "4")];
    for (others, entries) in [
        ("", (1, 1, 0)),
        ("B:=7; B1:=7; ", (3, 1, 0)),
        ("B:=7; B1:=7; B2:=7; wait 20; ", (4, 0, 1)),
    ] {
        let text = format!("load A; load B; begin; A:=1; {others}A=2; end");
        assert_eq!(told(&buffer, &text).entries(), entries, "{others}");
    }
}

/// §III-B: states are lost with the line. Dirty and URLog words need no record; ULog words a redo entry.
#[test]
fn a_line_that_leaves_the_l1_loses_its_states() {
    let a = at(0, 0);
    // URLog: nothing; the next store is the first again, with an undo value of the transaction's own.
    let urlog = "begin; A=1; wait 40; l1 A; load A; A=2; end";
    let seen = told(&[], urlog);
    assert_eq!(seen.entries(), (2, 0, 0));
    assert_eq!(seen.log()[..2], [(UNDO_REDO, a, vec![0, 1]), (UNDO_REDO, a, vec![1, 2])]);
    // Undone newest first, that is harmless.
    let open = "begin; A=1; wait 40; l1 A; load A; A=2; evict A; wait 500; look; end";
    let seen = watch(&[], &[open]);
    assert_eq!((seen[0].survives[&a], seen[0].recovered[&a]), (2, 0));
    // Dirty, its entry in the buffer: nothing either; a store that comes soon is merged all the same.
    let dirty = "begin; A=1; l1 A; load A; A=2; end";
    let seen = told(&[("morlog.undo_redo_entries", "43")], dirty);
    assert_eq!(seen.entries(), (1, 1, 0));
    // ULog: a redo entry of the newest value, and not of the word beside it, which is URLog.
    let ulog = "begin; A=1; A1=5; wait 40; A=2; l1 A; wait 9; look; end";
    let seen = watch(&[], &[ulog]);
    assert!(seen[0].says("redo entry of 0x1000: 0x2"), "{:?}", seen[0].notes);
    assert_eq!(seen[0].entries(), (2, 0, 1));
    assert_eq!(seen[0].kinds(), [UNDO_REDO, UNDO_REDO], "it waits in the redo buffer");
    assert_eq!(seen[1].kinds(), [UNDO_REDO, UNDO_REDO, REDO, COMMIT]);
    assert_eq!(seen[1].records[2].words, [2]);
}

/// The end of a strict transaction clears its states; with delay-persistence the next one takes them over.
#[test]
fn another_transaction_finds_no_valid_state() {
    let a = at(0, 0);
    let steps = "begin; A=1; wait 40; A=2; end; begin; A=3; wait 40; look; A=4; end; settle";
    let strict = watch(&[], &[steps]);
    let first = vec![(UNDO_REDO, a, vec![0, 1]), (REDO, a, vec![2]), (COMMIT, Addr(1), vec![])];
    let second = vec![(UNDO_REDO, a, vec![2, 3]), (REDO, a, vec![4]), (COMMIT, Addr(2), vec![])];
    let without_commits = |log: Vec<(u64, Addr, Vec<u64>)>| -> Vec<_> {
        log.into_iter().filter(|r| r.0 != COMMIT).collect()
    };
    assert_eq!(
        strict[1].kinds(),
        [first.clone(), second.clone()].concat().iter().map(|r| r.0).collect::<Vec<_>>()
    );
    assert_eq!(without_commits(strict[1].log()), without_commits([first, second].concat()));
    assert_eq!(strict[0].recovered[&a], 2);
    // The first's word is ULog when the second stores to it: a redo entry, late, and a new undo+redo entry.
    let delayed = watch(&[DELAYED], &[steps]);
    assert!(delayed[0].says("redo entry of 0x1000: 0x2"));
    assert!(delayed[0].says("undo+redo entry of 0x1000: 0x2 -> 0x3"));
    assert_eq!(delayed[0].recovered[&a], 0, "the redo entry is in the buffer only");
    assert_eq!(delayed[1].entries(), (2, 0, 1), "the second's redo data is still in the L1");
}

/// Another core's store takes the line out of the L1.
#[test]
fn a_line_that_another_core_takes_leaves_its_redo_data() {
    let (a, b) = (at(0, 0), at(0, 1));
    let one = "begin; A=1; wait 40; A=2; signal 1; await 2; A=3; end; settle";
    let other = "await 1; begin; A1=7; end; signal 2; look";
    let seen = watch(&[], &[one, other]);
    assert!(seen[0].says("redo entry of 0x1000: 0x2"), "{:?}", seen[0].notes);
    assert_eq!((seen[0].recovered[&a], seen[0].recovered[&b]), (0, 7));
    // The first core's line has no states any more: a second entry, and the redo entry is superseded.
    assert!(seen[1].says("undo+redo entry of 0x1000: 0x2 -> 0x3"));
    assert_eq!(seen[1].counters["redo_discarded_stored_again"], 1);
    assert_eq!(seen[1].recovered[&a], 3);
}

/// Two threads of one core share its L1, and each line has one owner.
#[test]
fn threads_of_one_core_take_lines_over_from_each_other() {
    let (a, b) = (at(0, 0), at(0, 1));
    let one = "begin; A=1; wait 40; A=2; signal 1; await 2; A=3; end; settle";
    let other = "await 1; begin; A1=7; wait 40; A1=8; signal 2; end";
    let seen = watch(&[("core.count", "1"), ("core.threads_per_core", "2")], &[one, other]);
    let end = seen.last().expect("an end");
    assert_eq!((end.recovered[&a], end.recovered[&b]), (3, 8));
    assert_eq!(end.counters["log_entries"], 3, "0 -> 1, 2 -> 3; 0 -> 7");
}

// ---- Fig. 2 and Fig. 11 --------------------------------------------------------------------------

/// Claim `morlog-fig2-recovery-example`: of A0, A1, A2 only the oldest undo and the newest redo data is logged.
#[test]
fn figure_2_logs_neither_undo_a1_nor_redo_a1() {
    let (a, b) = (at(0, 0), at(1, 0));
    let steps = "load B; begin; A=0xa1; A=0xa2; B=0xb1; look; end; settle";
    let seen = watch(&[], &[steps]);
    assert_eq!((seen[0].recovered[&a], seen[0].recovered[&b]), (0, 0));
    assert_eq!((seen[1].recovered[&a], seen[1].recovered[&b]), (0xa2, 0xb1));
    let expected = [(UNDO_REDO, a, vec![0, 0xa2]), (UNDO_REDO, b, vec![0, 0xb1])];
    assert_eq!(seen[1].log()[..2], expected);
}

/// Claims `morlog-fig11-step-a1`, `morlog-fig11-step-b1`, `morlog-fig11-step-a2`, `morlog-fig11-step-c1`,
/// `morlog-fig11-step-commit`, `morlog-slde-selection-rule`, `morlog-slde-not-both-dldc`.
#[test]
fn figure_11_step_by_step() {
    let (a, c) = (at(0, 0), at(2, 0));
    let (a1, a2) = (0x00aa_00bb_00cc_00dd, 0x00aa_00bb_01cc_00ee);
    for delayed in [false, true] {
        let settings = [
            ("morlog.undo_redo_entries", "1"),
            FLAGS,
            SLDE,
            ("morlog.delay_persistence", if delayed { "true" } else { "false" }),
        ];
        let steps = format!(
            "load B; load C; begin; A={a1}; look; B=0x1234_5678_9abc_def1; wait 40; look; A={a2}; look; \
             C=3; l1 A; look; evict A; wait 500; look; end; look; wait 500"
        );
        let seen = watch(&settings, &[&steps]);
        let [write_a1, write_b1, write_a2, write_c1, llc, commit, end] = &seen[..] else {
            panic!("{} looks", seen.len())
        };
        // Write A1: Dirty, and an undo+redo entry. (A buffer of one is full with it, so that it leaves at once.)
        assert!(write_a1.says("undo+redo entry of 0x1000: 0x0 -> 0xaa00bb00cc00dd"));
        // Write B1: A's entry is in PM; undo by FPC, redo by DLDC in the bytes of 0x55, which are not zero.
        let record = &write_b1.records[0];
        assert_eq!((record.kind, record.addr, record.dirty), (UNDO_REDO, a, 0x55));
        assert_eq!(record.words, [0, a1], "the clean bytes of A1 are zero anyway");
        assert_eq!(record.encoding, 2, "redo by DLDC without a pattern, undo by FPC");
        assert_eq!(write_b1.recovered[&a], 0);
        // Write A2: ULog, no entry. (The paper has ULog in the step before, too: it is URLog there.)
        assert!(write_a2.says("is ULog"));
        assert_eq!(write_a2.counters["log_entries"], write_b1.counters["log_entries"]);
        assert_eq!(write_a2.counters["log_redo_entries"], 0);
        // Write C1 is silent: no entry. A out of the L1: a redo entry.
        assert_eq!(write_c1.counters["log_entries_ignored"], 1);
        assert!(!write_c1.says("entry of 0x1080") && write_c1.says("redo entry of 0x1000"));
        assert_eq!(write_c1.counters["log_redo_entries"], 1);
        assert_eq!(write_c1.survives[&a], 0);
        // A out of the LLC: the data is written, the redo entry need not be.
        assert_eq!(llc.counters["redo_discarded_at_home"], 1);
        assert_eq!((llc.survives[&a], llc.recovered[&a]), (a2, 0));
        assert_eq!(llc.kinds(), [UNDO_REDO, UNDO_REDO]);
        // Commit: nothing waits with delay-persistence; else all is durable. No redo data of A2 was written.
        assert_eq!(commit.acknowledged, 1);
        if !delayed {
            assert_eq!(commit.recovered[&a], a2);
            assert_eq!(end.kinds(), [UNDO_REDO, UNDO_REDO, IN_PLACE, COMMIT]);
            assert_eq!((end.records[2].addr, end.records[2].dirty), (a, 1), "A's line, its word 0");
            assert_eq!(end.recovered[&a], a2);
        } else {
            assert_eq!(end.kinds(), [UNDO_REDO, UNDO_REDO, COMMIT]);
            assert_eq!(end.records[2].ulog, 1, "the record that A is in place is still to come");
            assert_eq!(end.recovered[&a], 0);
        }
        for record in end.records.iter().filter(|r| r.kind == UNDO_REDO) {
            assert!(record.encoding <= 4, "one flag names one word");
        }
        assert_eq!(end.counters["log_words"], 4);
        assert_eq!(end.recovered[&c], 3);
    }
}

/// `morlog-fig11-step-a2`, §IV-A: the flag of a redo record says which bytes have changed since its undo+redo record.
#[test]
fn dirty_flags_add_up_until_they_are_logged() {
    let a = at(0, 0);
    let steps = "begin; A=0x5b; wait 40; A=0x2_0000_0000; A=0x5d_0000_0000_0000; end; settle";
    let seen = told(&[FLAGS, SLDE], steps);
    assert_eq!((seen.records[0].dirty, seen.records[1].dirty), (0b1, 0b0101_0001));
    assert_eq!(seen.recovered[&a], 0x005d_0000_0000_0000);
    // Without flags all bytes are dirty.
    let seen = told(&[], steps);
    assert_eq!((seen.records[0].dirty, seen.records[1].dirty), (0xff, 0xff));
}

/// Claim `morlog-silent-log-writes`.
#[test]
fn silent_stores_are_not_logged() {
    let c = at(2, 0);
    let silent = "begin; C=3; C1=3; end; settle";
    let seen = told(&[FLAGS, SLDE], silent);
    assert_eq!((seen.records.len(), seen.counters["log_entries"]), (0, 0));
    assert_eq!((seen.counters["log_entries_ignored"], seen.counters["log_words"]), (2, 0));
    // An entry that becomes silent in the buffer: its word is as if it had not been stored to.
    let returned = "begin; C=4; C=3; wait 40; look; C=5; end; settle";
    let seen = watch(&[FLAGS, SLDE], &[returned]);
    assert_eq!(seen[0].records.len(), 0);
    assert_eq!(seen[1].log()[0], (UNDO_REDO, c, vec![3, 5]));
    // Without flags nobody sees that.
    let seen = told(&[], silent);
    assert_eq!(seen.kinds(), [UNDO_REDO, UNDO_REDO, COMMIT]);
    assert_eq!(seen.log()[0], (UNDO_REDO, c, vec![3, 3]));
}

// ---- redo entries that are dropped ----------------------------------------------------------------

/// Claim `morlog-redo-discard-rules`.
#[test]
fn redo_entries_that_are_superseded_never_reach_the_log() {
    let (a, b) = (at(0, 0), at(0, 1));
    let start = "begin; A=1; A1=1; wait 40; A=2; A1=2; l1 A";
    // The line leaves the LLC: both words, one record of that.
    let home = format!("{start}; evict A; wait 500; look; end; settle");
    let seen = watch(&[], &[&home]);
    assert_eq!(seen[0].counters["redo_discarded_at_home"], 2);
    assert_eq!(seen[1].kinds(), [UNDO_REDO, UNDO_REDO, IN_PLACE, COMMIT]);
    assert_eq!((seen[1].records[2].addr, seen[1].records[2].dirty), (a, 0b11));
    assert_eq!(seen[1].counters["redo_in_place_records"], 1);
    assert_eq!((seen[1].recovered[&a], seen[1].recovered[&b]), (2, 2));
    // One word is stored to again: its entry only, not its line's.
    let again = format!("{start}; load A; A=3; end; settle");
    let seen = told(&[], &again);
    assert_eq!(seen.counters["redo_discarded_stored_again"], 1);
    let expected = [
        (UNDO_REDO, a, vec![0, 1]),
        (UNDO_REDO, b, vec![0, 1]),
        (UNDO_REDO, a, vec![2, 3]),
        (REDO, b, vec![2]),
    ];
    assert_eq!(seen.log()[..4], expected);
    assert_eq!((seen.recovered[&a], seen.recovered[&b]), (3, 2));
    // Neither: both are logged at the commit.
    let seen = told(&[], &format!("{start}; end; settle"));
    assert_eq!(seen.log()[2..4], [(REDO, a, vec![2]), (REDO, b, vec![2])]);
}

/// An undo+redo entry without a changed byte is not dropped if redo data was dropped in its favour.
#[test]
fn an_entry_pays_the_debt_of_the_one_that_was_dropped_for_it() {
    let a = at(0, 0);
    let steps = "begin; A=2; wait 40; A=3; l1 A; load A; A=4; A=3; wait 40; end; settle";
    let seen = told(&[FLAGS, SLDE], steps);
    assert_eq!(seen.log()[..2], [(UNDO_REDO, a, vec![0, 2]), (UNDO_REDO, a, vec![3, 3])]);
    assert_eq!((seen.records[1].dirty, seen.recovered[&a]), (0, 3));
}

/// The redo buffer is a FIFO that writes its oldest four when it is full.
#[test]
fn a_full_redo_buffer_writes_its_oldest() {
    let all = |value| (0..6).map(|word| format!("A{word}={value}; ")).collect::<String>();
    let steps = format!("begin; {}wait 40; {}l1 A; wait 100; look; end; settle", all(1), all(2));
    let seen = watch(&[("morlog.redo_entries", "4")], &[&steps]);
    assert_eq!(seen[0].kinds()[6..], [REDO; 4]);
    assert_eq!(seen[1].kinds()[6..], [REDO, REDO, REDO, REDO, REDO, REDO, COMMIT]);
    let redone: Vec<Addr> = seen[1].records[6..12].iter().map(|r| r.addr).collect();
    assert_eq!(redone, [0, 1, 2, 3, 4, 5].map(|word| at(0, word)));
}

// ---- commits --------------------------------------------------------------------------------------

/// A commit takes its own entries out of both buffers and the L1, and what is before them in the FIFO.
#[test]
fn a_commit_flushes_its_own_entries_and_no_others() {
    let (b, c) = (at(1, 0), at(2, 0));
    // In the redo buffer, in the L1, in the undo+redo buffer.
    let own = "begin; A=1; B=1; wait 40; A=2; B=2; l1 A; signal 1; await 2; B1=5; end; look; signal 3; settle";
    let others = "await 1; begin; C=1; D=1; wait 40; C=2; D=2; l1 C; signal 2; await 3; end";
    let seen = watch(&[], &[own, others]);
    let of = |thread: u64, seen: &Seen| -> Vec<u64> {
        seen.records.iter().filter(|r| r.thread == thread).map(|r| r.kind).collect()
    };
    assert_eq!(of(0, &seen[0]), [UNDO_REDO, UNDO_REDO, UNDO_REDO, REDO, REDO, COMMIT]);
    assert_eq!(of(1, &seen[0]), [UNDO_REDO, UNDO_REDO], "its redo data stays where it is");
    assert_eq!((seen[0].recovered[&b], seen[0].recovered[&c]), (2, 3));
    let end = seen.last().expect("an end");
    assert_eq!(of(1, end), [UNDO_REDO, UNDO_REDO, REDO, REDO, COMMIT]);
    assert_eq!(end.recovered[&c], 2);
}

/// §III-B names no cost of finding a transaction's words in the L1: a strict end has none, unless it is asked for.
#[test]
fn a_strict_commit_walks_through_the_l1_only_if_asked_to() {
    let run = |settings: &[(&str, &str)]| told(settings, "begin; A=1; end").cycle;
    let walk = |sets| run(&[("morlog.walk_sets_per_cycle", sets)]);
    let (none, slow, fast) = (run(&[]), walk("1"), walk("64"));
    assert_eq!(none, walk("0"), "the default");
    // The machine's L1 has 64 sets. The entry is still in the buffer after a cycle.
    assert_eq!((slow - none, fast - none), (64, 1), "{none}, {slow} and {fast}");
    // Nothing stored, nothing to look for.
    let seen = told(&[], "begin; load A; end");
    assert_eq!(seen.records, []);
    assert_eq!(seen.acknowledged, 1);
}

/// Class of bug: an end that lets its entries leave the buffer first, so that the commit record needs blocks of its own.
#[test]
fn a_commit_record_travels_with_the_entries_of_its_transaction() {
    let blocks = |settings: &[(&str, &str)], workload: &str| {
        let seen = told(settings, workload);
        let commit = seen.records.iter().find(|r| r.kind == COMMIT).expect("a commit record");
        let entries = seen.records.iter().filter(|r| r.kind == UNDO_REDO);
        (commit.group, entries.map(|r| r.group).max().expect("an entry"))
    };
    // Three entries and a commit record are a metadata block.
    let three = "load A; load B; load C; wait 400; begin; A=1; B=1; C=1; end; look";
    let (commit, last) = blocks(&[], three);
    assert_eq!(commit, last);
    // A walk of 64 cycles is longer than the 16 that entries stay in the buffer.
    let (commit, last) = blocks(&[("morlog.walk_sets_per_cycle", "1")], three);
    assert_eq!(commit, last + 1);
}

/// Claims `morlog-fig11-step-commit`, `morlog-dp-atomicity-only`: with delay-persistence the end returns at once, its
/// record carries the number of words to come, and the transaction counts when all of them are there.
#[test]
fn delay_persistence_returns_at_once_and_counts_what_is_to_come() {
    let (a, b) = (at(0, 0), at(1, 0));
    let words = |value| format!("A={value}; A1={value}; B={value}");
    // The second transaction is whole by itself.
    let text = format!(
        "load B; begin; {}; wait 60; {}; l1 B; end; look; wait 100; look; begin; D=9; end; wait 200; look; \
         l1 A; scan; look",
        words(1),
        words(2)
    );
    let seen = watch(&[DELAYED], &[&text]);
    assert_eq!(seen[0].acknowledged, 1, "at once");
    assert!(!seen[0].kinds().contains(&COMMIT), "its record is still in the buffer");
    let commit = seen[1].records.iter().find(|r| r.kind == COMMIT).expect("by now");
    assert_eq!(commit.ulog, 3, "two words of A's line, and B in the redo buffer");
    assert_eq!((seen[1].recovered[&a], seen[1].recovered[&b]), (0, 0));
    // Nothing of a transaction behind one that is not persistent counts.
    assert_eq!(seen[2].kinds().iter().filter(|&&kind| kind == COMMIT).count(), 2);
    assert_eq!((seen[2].acknowledged, seen[2].recovered[&at(3, 0)]), (2, 0));
    // The end of a scan sends late entries.
    let late: Vec<u64> = seen[3].records.iter().filter(|r| r.late).map(|r| r.kind).collect();
    assert_eq!(late, [REDO, REDO, REDO]);
    assert_eq!((seen[3].recovered[&a], seen[3].recovered[&b]), (2, 2));
    assert_eq!(seen[3].recovered[&at(3, 0)], 9);
}

#[test]
fn what_it_promises_depends_on_its_configuration() {
    let guarantee = |settings: &[(&str, &str)]| {
        (find("morlog").expect("registered").guarantee)(&machine(settings))
    };
    assert_eq!(guarantee(&[]), Guarantee::Durable);
    assert!(guarantee(&[DELAYED]).is_of_order());
    let large = ("morlog.undo_redo_entries", "44");
    assert_eq!(guarantee(&[large, DELAYED]), Guarantee::None);
}

// ---- the log ---------------------------------------------------------------------------------------

/// Claim `morlog-entry-field-widths`: the fields of Fig. 7 where the table of `packed_log` says; four records per
/// metadata block, words dense.
#[test]
fn records_are_packed_as_the_table_says() {
    // Ten words of two lines, stored in turn and committed at once: ten undo+redo records and the commit.
    let words: Vec<Addr> = (0..10).map(|i| at(i / 8, i % 8)).collect();
    let stores = (0..10).map(|i| format!("{}{}:={}; ", ["A", "B"][i / 8], i % 8, i + 1));
    let steps =
        format!("load A; load B; begin; end; begin; {}end; settle", stores.collect::<String>());
    let seen = told(&[("morlog.undo_redo_entries", "43")], &steps);
    assert_eq!(seen.records.len(), 11);
    for (i, record) in seen.records.iter().enumerate() {
        let block = i as u64 / 4;
        assert_eq!((record.group, record.continues), (block, block > 0), "{record:?}");
        assert_eq!(record.count, if block < 2 { 4 } else { 3 });
        assert_eq!((record.thread, record.tx, record.torn), (0, 1, true));
        if i < 10 {
            assert_eq!((record.kind, record.addr), (UNDO_REDO, words[i]));
            assert_eq!(record.words, [0, i as u64 + 1]);
        } else {
            assert_eq!((record.kind, record.ulog, record.addr), (COMMIT, 0, Addr(1)));
        }
    }
    // Eleven records: three metadata blocks; twenty words: three data blocks. 2 + 8 + 16 + 48 bits and the torn bit
    // of an undo+redo record, and what SLDE adds (8 + 3), fit the two words that each has.
    assert_eq!(seen.counters["log_entries"], 10);
    assert_eq!(seen.heads, [0]);
}

/// Redo records take one word each, commits and in-place records none.
#[test]
fn words_of_a_batch_lie_one_after_the_other() {
    let all = |value| format!("A={value}; B={value}; D={value}");
    let steps = format!("begin; {}; wait 60; {}; A1=9; end; settle", all(1), all(2));
    let seen = told(&[], &steps);
    let batch = &seen.records[3..];
    let kinds: Vec<u64> = batch.iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [UNDO_REDO, REDO, REDO, REDO, COMMIT]);
    let words: Vec<u64> = batch.iter().flat_map(|r| r.words.clone()).collect();
    assert_eq!(words, [0, 9, 2, 2, 2]);
    assert_eq!(batch[4].group, batch[0].group + 1, "the fifth opens a metadata block");
    assert_eq!(batch[4].count, 1);
}

/// Claim `morlog-log-truncation`: after a scan the head passes what committed before the last two scans, and never the
/// first record of a transaction that runs.
#[test]
fn truncation_takes_two_scans_and_stops_at_what_is_open() {
    let (a, b) = (at(0, 0), at(1, 0));
    let alone = "begin; A=1; end; scan; look; scan; look";
    let seen = watch(&[], &[alone]);
    assert_eq!(seen.iter().map(|s| s.heads[0]).collect::<Vec<_>>(), [0, 1, 1]);
    // The first scan flags the line, the second forces it home, and the head waits for that.
    assert_eq!((seen[0].survives[&a], seen[1].survives[&a]), (0, 1));
    assert_eq!(seen[1].records, []);
    assert_eq!(seen[1].recovered[&a], 1);
    // Another thread's transaction has its first record in the second group, and stays open.
    let open = "await 1; begin; B=1; wait 60; signal 2; await 3; look; end";
    let commits = "begin; A=1; end; signal 1; await 2";
    let more = "begin; A=2; end; scan; scan; scan; scan; signal 3";
    let thread = format!("{commits}; {more}");
    let seen = watch(&[], &[&thread, open]);
    assert_eq!(seen[0].heads, [1]);
    let kinds: Vec<(u64, u64)> = seen[0].records.iter().map(|r| (r.thread, r.kind)).collect();
    assert_eq!(kinds, [(1, UNDO_REDO), (0, UNDO_REDO), (0, COMMIT)]);
    assert_eq!((seen[0].survives[&b], seen[0].recovered[&b]), (1, 0), "its undo data is needed");
    assert_eq!(seen[0].recovered[&a], 2);
}

/// Scans force a line home while its transaction runs; its redo data stays in the L1, in a clean line that no
/// scan will look at again. After the commit that must not hold up the log for ever.
#[test]
fn late_redo_data_in_clean_lines_does_not_hold_up_the_log() {
    let steps = "begin; A=1; wait 60; A=2; scan; scan; look; end; scan; scan; scan; scan; look";
    let seen = watch(&[DELAYED], &[steps]);
    assert_eq!((seen[0].survives[&at(0, 0)], seen[0].counters["log_redo_entries"]), (2, 0));
    assert_eq!(seen[1].counters["log_redo_entries"], 1);
    assert!(seen[1].heads[0] > 0, "{:?}", seen[1].heads);
    assert_eq!(seen[1].recovered[&at(0, 0)], 2);
}

/// Logs wrap around, and the torn bit turns.
#[test]
fn the_torn_bit_turns_with_each_pass() {
    // Six groups.
    let small = [("morlog.log_bytes", "832")];
    let a = at(0, 0);
    let once = |value| format!("begin; A={value}; end; scan; scan; scan; ");
    let steps: Vec<String> = (1..10).map(once).collect();
    let steps = format!("{}begin; A=99; end", steps.concat());
    let seen = told(&small, &steps);
    assert_eq!(seen.records.iter().map(|r| (r.group, r.torn)).collect::<Vec<_>>(), [(9, false); 2]);
    assert_eq!((seen.heads[0], seen.recovered[&a]), (9, 99));
    assert_eq!(seen.counters["log_groups_truncated"], 9);
}

/// §III-F: a log per thread; the commit records have the order.
#[test]
fn logs_per_thread_number_their_commits() {
    let (a, b) = (at(0, 0), at(1, 0));
    let one = "begin; A=1; end; signal 1; await 2; begin; A=2; end";
    let other = "await 1; begin; B=1; end; signal 2";
    for settings in [&[PER_THREAD][..], &[PER_THREAD, DELAYED]] {
        let one = format!("{one}; settle");
        let seen = watch(settings, &[&one, other]);
        let end = seen.last().expect("an end");
        let commits: Vec<(usize, u64, Addr)> = end
            .records
            .iter()
            .filter(|r| r.kind == COMMIT)
            .map(|r| (r.log, r.thread, r.addr))
            .collect();
        assert_eq!(commits, [(0, 0, Addr(1)), (0, 0, Addr(3)), (1, 1, Addr(2))]);
        assert!(end.records.iter().all(|r| r.log as u64 == r.thread));
        assert_eq!((end.recovered[&a], end.recovered[&b]), (2, 1));
    }
}

// ---- configurations ----------------------------------------------------------------------------------

/// Claims `morlog-safe-n-bound` and `morlog-cfg-fwb-unsafe-buffer`: N < 4 + 12 + 28; 16 + 32 entries are too many.
#[test]
fn a_buffer_as_deep_as_the_caches_is_refused() {
    let mut config = registry().machine("morlog").expect("the preset loads");
    for entries in ["44", "48", "256"] {
        config.set("morlog.undo_redo_entries", entries).expect("in range");
        let why = refusal(&config, "morlog");
        assert!(why.contains("44 cycles") && why.contains("allow_unsafe_buffer"), "{why}");
    }
    config.set("morlog.undo_redo_entries", "43").expect("in range");
    let simulation = Simulation::new(&of_array(&config)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(simulation.machine().caches.miss_path_cycles(), 44);
    // Fig. 11's is safe, too; and what is not can be asked for, and violates its guarantee.
    config.set("morlog.undo_redo_entries", "1").expect("in range");
    assert_eq!((find("morlog").expect("registered").guarantee)(&config), Guarantee::Durable);
    let unsafe_buffer = "morlog.undo_redo_entries=48 morlog.allow_unsafe_buffer=true";
    let run = |seed| exhaust(&CHURN, MutantSet::NONE, unsafe_buffer, seed);
    let violated = (0..4).any(|seed| !run(seed).violations.is_empty());
    assert!(violated, "data never overtook its log entry");
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    for (settings, word) in [
        (&[("morlog.log_bytes", "8 MB")][..], "pm.log_region_bytes = 4 MB"),
        (
            &[("morlog.log_bytes", "2 KB"), PACKED],
            "15 groups of 128 B for 4 threads, which need at least 16",
        ),
        (&[("morlog.log_bytes", "2 KB"), PACKED, PER_THREAD], "need at least 4"),
        (&[("morlog.log_bytes", "512")], "14 groups of 32 B for 4 threads, which need at least 16"),
        (&[("morlog.log_bytes", "4 MB"), PER_THREAD], "pm.log_region_bytes"),
    ] {
        let why = refusal(&tiny_config(settings), "morlog");
        assert!(why.contains(word), "{why}");
    }
}

/// The ulog counter has 13 bits, not 10 (`morlog-ulog-counter-width`): what an L1 and the redo buffer can hold must fit.
#[test]
fn an_l1_with_more_words_than_the_ulog_counter_counts_is_refused() {
    let large = [
        ("l1.bytes", "64 KB"),
        ("l2.bytes", "256 KB"),
        ("llc.bytes", "8 MB"),
        ("workload.footprint_bytes", "1 MB"),
    ];
    let strict = Simulation::new(&of_array(&tiny_config(&large)));
    assert!(strict.is_ok(), "{:?}: strict commits do not count", strict.err());
    let why = refusal(&tiny_config(&[&large[..], &[DELAYED]].concat()), "morlog");
    assert!(why.contains("8191 words"), "{why}");
}

fn of_array(config: &Config) -> Spec {
    registry()
        .spec(config.clone(), "morlog", "array", Some(1), Some(1), 0)
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_transaction_that_the_log_cannot_hold_ends_the_run() {
    for format in [&[("morlog.log_bytes", "3200"), PACKED][..], &[("morlog.log_bytes", "832")]] {
        let mut simulation =
            crate::common::simulation(&tiny_config(format), "morlog", &CELLS, 4, 400, 1);
        let error = simulation.run().expect_err("it cannot fit");
        let SimError::Design { design: "morlog", why } = &error else { panic!("{error}") };
        assert!(why.contains("24 groups") && why.contains("morlog.log_bytes"), "{why}");
    }
}

/// Redo entries that leave a buffer of one take a group each, and room for all of them is kept.
#[test]
fn a_full_log_is_not_run_over_by_redo_entries() {
    let text = "graven litmus 1\ntitle \"six groups\"\nset pm.log_packing = always\nset morlog.log_bytes = 832\n\
        set morlog.redo_entries = 1\n\
        A[8] = 1\nthread\nbegin\nA[0] = 2\nA[1] = 2\nA[2] = 2\nA[3] = 2\ncompute 1000\n\
        A[4] = 2\nA[5] = 2\nA[6] = 2\ncompute 1000\n\
        A[0] = 3\nA[1] = 3\nA[2] = 3\nA[3] = 3\nA[4] = 3\nevict A[0] from l1\ncommit\n";
    let litmus = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let case = Case::new(registry(), &litmus, find("morlog").expect("registered"));
    let outcome = case.unwrap_or_else(|e| panic!("{e}")).run().expect("not cancelled");
    assert_eq!(outcome.violations, []);
    assert!(outcome.refused.is_some_and(|why| why.contains("6 groups")));
}

/// Claim morlog-ulog-counter-width: 10 bits count the 512 lines of an L1 (Table I's figures are in `tests/cost.rs`); its
/// words, and those in the redo buffer, need 13, which is what commit records and counters have.
#[test]
fn a_counter_of_words_has_13_bits() {
    let config = registry().machine("morlog").expect("the preset loads");
    let lines = config.get::<graven::config::L1Config>().bytes.0 / 64;
    let redo = u64::from(config.get::<MorlogConfig>().redo_entries);
    let width = |largest: u64| u64::BITS - largest.leading_zeros();
    let sheet =
        Sheet::of(registry(), find("morlog-dp").expect("registered"), config).expect("it is valid");
    let cost = |name| sheet.item(name).map(|item| (item.value(), item.count()));
    assert_eq!(cost("ulog-counter-width"), Some((f64::from(width(lines)), 1.0)));
    let words = f64::from(width(lines * 8 + redo)) / 8.0;
    assert_eq!(cost("ulog-counters"), Some((words, 8.0)));
}

/// Claims `morlog-cfg-cores`, `morlog-cfg-l1`, `morlog-cfg-l2`, `morlog-cfg-l3`, `morlog-cfg-memory`,
/// `morlog-cfg-read-latency`, `morlog-cfg-buffer-sizes`, `morlog-cfg-fwb-interval`, `morlog-cfg-dirty-flag-granularity`.
#[test]
fn the_machine_of_table_3() {
    let config = registry().machine("morlog").expect("the preset loads");
    for (key, value) in [
        ("core.count", "8"),
        ("core.frequency_mhz", "3000"),
        ("core.model", "in-order"),
        ("l1.bytes", "32 KB"),
        ("l1.ways", "8"),
        ("l1.latency_cycles", "4"),
        ("l2.bytes", "256 KB"),
        ("l2.ways", "8"),
        ("l2.latency_cycles", "12"),
        ("llc.bytes", "8 MB"),
        ("llc.ways", "16"),
        ("llc.latency_cycles", "28"),
        ("controller.channels", "4"),
        ("controller.write_queue_entries", "64"),
        ("controller.drain_high_percent", "80"),
        ("pm.capacity_bytes", "8 GB"),
        ("pm.ranks", "1"),
        ("pm.banks", "8"),
        ("pm.read_ns", "25"),
        ("morlog.undo_redo_entries", "16"),
        ("morlog.redo_entries", "32"),
        ("morlog.scan_interval_cycles", "3000000"),
    ] {
        let mut same = config.clone();
        same.set(key, value).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(same.to_json(), config.to_json(), "{key} is not {value}");
    }
    // One bit of the dirty flag per byte: a change of one byte sets one.
    for byte in 0..8 {
        let steps = format!("begin; A={:#x}; end; settle", 0x80_u64 << (8 * byte));
        assert_eq!(told(&[FLAGS, SLDE], &steps).records[0].dirty, 1 << byte);
    }
}

/// Claim `morlog-nontemporal-redo-only`: no undo data, all bytes dirty, and no word at home before the commit;
/// what is read of the line meanwhile has the word all the same.
#[test]
fn non_temporal_stores_are_parked_until_the_commit() {
    let (a, a1) = (at(0, 0), at(0, 1));
    let steps =
        "begin; A1=5; wait 60; nt A=7; look; load A; evict A; wait 600; look; end; wait 600; look";
    let seen = watch(&[FLAGS, SLDE], &[steps]);
    let c = &seen[1].counters;
    assert_eq!((c["non_temporal_stores"], c["log_entries"], c["log_redo_entries"]), (1, 1, 1));
    assert_eq!(c["dram_writes"], 1);
    assert_eq!(c["dram_reads"], 1, "the load finds the word in DRAM");
    // The line went home for the store, and again from the caches: without the word each time.
    assert_eq!((seen[0].survives[&a], seen[1].survives[&a], seen[1].survives[&a1]), (0, 0, 5));
    assert_eq!((seen[1].recovered[&a], seen[1].recovered[&a1]), (0, 0));
    let last = &seen[2];
    assert_eq!((last.survives[&a], last.recovered[&a]), (7, 7), "it goes home after the commit");
    assert_eq!(last.kinds(), [UNDO_REDO, REDO, COMMIT]);
    assert_eq!((last.records[1].addr, last.records[1].dirty), (a, 0xff));
}

/// Where there is no room in DRAM, and where nothing waits for a commit's record, they are stores like others.
#[test]
fn non_temporal_stores_go_through_the_caches_where_they_must() {
    for settings in [[("morlog.dram_lines", "0")], [DELAYED]] {
        let c = told(&settings, "begin; nt A=7; end; settle").counters;
        assert_eq!((c["non_temporal_stores"], c["log_entries"], c["log_redo_entries"]), (0, 1, 0));
    }
    let c =
        told(&[("morlog.dram_lines", "1")], "begin; nt A=7; nt A1=8; nt B=9; end; settle").counters;
    assert_eq!((c["non_temporal_stores"], c["log_entries"]), (2, 1), "B finds the only line taken");
}

/// §III-F's second option: records go when their transaction's lines are home, without scans.
#[test]
fn a_transaction_table_knows_when_records_may_go() {
    let table = [("morlog.truncation", "transaction-table"), ("morlog.log_bytes", "2 KB")];
    // 15 groups; each of these takes one. The lines of the first go home, those of the second do not.
    let fill = (0..8).map(|i| format!("begin; C={i}; end; ")).collect::<String>();
    let steps = format!(
        "begin; A=1; end; begin; B=1; end; evict A; wait 600; {fill} evict C; wait 600; look"
    );
    let seen = watch(&table, &[&steps]);
    assert_eq!(seen[0].counters["scans"], 0);
    assert_eq!(seen[0].heads, [1], "behind A's transaction; B's is not home");
    assert_eq!(seen[0].survives[&at(1, 0)], 0);
    let steps = format!("{steps}; evict B; wait 600; look");
    let seen = watch(&table, &[&steps]);
    assert!(seen[1].heads[0] > 1, "{:?}", seen[1].heads);
    assert_eq!(seen[1].recovered[&at(1, 0)], 1);
}

/// A log that is full forces lines of the oldest transactions home.
#[test]
fn a_full_log_presses_lines_home() {
    let table = [("morlog.truncation", "transaction-table"), ("morlog.log_bytes", "2 KB")];
    let steps = (0..60).map(|i| format!("begin; A={i}; B={i}; end; ")).collect::<String>();
    let seen = told(&table, &steps);
    assert!(seen.counters["log_overflows"] > 0 && seen.counters["forced_writebacks"] > 0);
    assert_eq!(seen.recovered[&at(0, 0)], 59);
}

/// Claims `morlog-cfg-buffer-sizes`, `morlog-cfg-fwb-crade-buffer`, `morlog-cfg-fwb-interval`, `morlog-cfg-micro-threads`,
/// `morlog-cfg-dataset-sizes`, and §VI-A's list of designs.
#[test]
fn the_six_designs_are_what_their_names_say() {
    let machine = registry().machine("morlog").expect("the preset loads");
    for (name, codec, guarantee) in [
        ("fwb-crade", "crade", "durable"),
        ("fwb-unsafe", "crade", "none"),
        ("fwb-slde", "slde", "durable"),
        ("morlog-crade", "crade", "durable"),
        ("morlog-slde", "slde", "durable"),
        ("morlog-dp", "slde", "prefix"),
    ] {
        let design = find(name).expect("registered");
        let config = design.configured(machine.clone()).to_json();
        assert_eq!(config["pm"]["codec"], codec, "{name}");
        assert_eq!(guarantee_text(design.guarantee_in(&machine)), guarantee, "{name}");
        let of = if name.starts_with("fwb") { &config["fwb"] } else { &config["morlog"] };
        assert_eq!(of["scan_interval_cycles"], 3_000_000, "{name}");
        assert_eq!(of["dirty_flags"], codec == "slde", "{name}");
        let buffers = match name {
            "fwb-unsafe" => (of["log_buffer_entries"].as_u64(), Some(48)),
            "fwb-crade" | "fwb-slde" => (of["log_buffer_entries"].as_u64(), Some(16)),
            _ => (of["undo_redo_entries"].as_u64(), Some(16)),
        };
        assert_eq!(buffers.0, buffers.1, "{name}");
        // What a user sets goes before the name.
        let mut own = machine.clone();
        own.set("pm.codec", "none").expect("a codec");
        assert_eq!(design.configured(own).to_json()["pm"]["codec"], "none");
    }
    assert_eq!(machine.to_json()["core"]["count"], 8, "one thread per core");
}

// ---- small logs -----------------------------------------------------------------------------------------

/// A run that is crashed wherever it can be, with a log of 16 KB and a scan every 2,000 cycles unless set otherwise.
fn exhaust(
    workload: &'static graven::workload::WorkloadInfo,
    mutants: MutantSet,
    settings: &str,
    seed: u64,
) -> Outcome {
    let settings = format!("morlog.log_bytes=16KB morlog.scan_interval_cycles=2000 {settings}");
    campaign::exhaust("morlog", workload, 160, (mutants, &settings, seed), Thoroughness::LONG)
}

type Choice = (&'static str, &'static str, &'static str);

fn all(a: [&'static str; 11], b: [&'static str; 4], c: [&'static str; 3]) -> Vec<Choice> {
    let pairs = |a| b.into_iter().flat_map(move |b| c.into_iter().map(move |c| (a, b, c)));
    a.into_iter().flat_map(pairs).collect()
}

/// Every edit tries one machine in this number.
const MACHINES_ONE_IN: usize = 5;

#[test]
fn small_logs_keep_every_promise_on_some_hostile_machines() {
    keep_on_hostile_machines(Part::Edit);
}

#[test]
#[ignore = "long: every crash point of the others of 264 runs"]
fn small_logs_keep_every_promise_on_all_other_hostile_machines() {
    keep_on_hostile_machines(Part::Long);
}

/// Claims `morlog-recovery-non-dp`, `morlog-dp-atomicity-only`: every crash point of these machines.
fn keep_on_hostile_machines(part: Part) {
    let cover_points = find("morlog").expect("registered").cover_points;
    let mut reached = vec![0; cover_points.len()];
    let machines = [
        "",
        "controller.adr=false adversary=1",
        "controller.adr=false controller.channels=4 controller.interleave=line adversary=2",
        "controller.channels=4 controller.interleave=line garbage=3",
        "morlog.scan_interval_cycles=1000000",
        "morlog.undo_redo_entries=1 morlog.redo_entries=1 adversary=4",
        "morlog.undo_redo_entries=43 morlog.redo_entries=4 llc.bytes=1KB l2.bytes=512 adversary=5",
        "morlog.transaction_id_bits=2 first=65530",
        "core.count=2 core.threads_per_core=2 morlog.scan_interval_cycles=0",
        "morlog.truncation=transaction-table",
        "morlog.truncation=transaction-table morlog.transaction_table_entries=4 adversary=6",
    ];
    let designs = [
        "morlog.log_type=centralised morlog.delay_persistence=false",
        "morlog.log_type=centralised morlog.delay_persistence=true",
        "morlog.log_type=per-thread morlog.delay_persistence=false",
        "morlog.log_type=per-thread morlog.delay_persistence=true",
    ];
    let codecs = ["", "pm.log_packing=always", "morlog.dirty_flags=true pm.codec=slde"];
    // Logs just large enough for the largest transactions; a slot is a quarter of a packed group.
    let workloads = [(&STREAMING_CHURN, [32, 32]), (&SHARED_LINES, [40, 64])];
    let machines = all(machines, designs, codecs).into_iter().enumerate();
    let machines = machines.filter(|&(number, _)| part.has(number, MACHINES_ONE_IN));
    for (number, (machine, design, codec)) in machines {
        let seed = number as u64 + 1;
        for (workload, sizes) in workloads {
            let packed = sizes[usize::from(design.contains("per-thread"))];
            let size = if codec.is_empty() { packed / 4 } else { packed };
            let settings = format!("{machine} {design} {codec} morlog.log_bytes={size}KB");
            let what = format!("{}, {settings}, seed {seed}", workload.name);
            let outcome = exhaust(workload, MutantSet::NONE, &settings, seed);
            let found = outcome.violations.first();
            assert!(found.is_none(), "{what}: {found:#?}");
            assert_eq!(outcome.refused, None, "{what}");
            assert!(outcome.tally.crash_points > 500, "{what}: {:?}", outcome.tally);
            reached.iter_mut().zip(outcome.cover_points).for_each(|(sum, n)| *sum += n);
        }
    }
    for (cover, count) in cover_points.iter().zip(reached) {
        assert!(count > 0, "never reached: {}", cover.name);
    }
}

/// Transactions of seventy words, random words, crashes at random cycles; the structures are checked, too.
#[test]
fn logs_wrap_and_are_truncated_without_losing_anything() {
    for (name, settings) in [
        ("strict", &[PACKED][..]),
        ("slots", &[("morlog.log_bytes", "12 KB")]),
        ("per thread, slots", &[PER_THREAD, ("morlog.log_bytes", "24 KB")]),
        ("per thread", &[PER_THREAD, PACKED, ("morlog.log_bytes", "96 KB")]),
        ("delayed, SLDE", &[DELAYED, FLAGS, SLDE]),
        ("no ADR", &[("controller.adr", "false"), ("pm.buffer_lines", "0"), FLAGS, SLDE]),
        ("tlc cells", &[FLAGS, SLDE, ("pm.cells", "tlc-rram"), ("pm.buffer_lines", "0")]),
    ] {
        let small = [("morlog.log_bytes", "48 KB"), ("morlog.scan_interval_cycles", "2000")];
        let config = tiny_config(&[&small[..], settings].concat());
        let mut simulation = crate::common::simulation(&config, "morlog", &CELLS, 4, 240, 5);
        let crashes = crash_often(&mut simulation, 7, 1500);
        assert!(crashes.broken.is_empty(), "{name}: {:#?}", crashes.broken);
        assert_eq!(crashes.recovered_again, 0, "{name}: the log is empty after recovery");
        assert!(crashes.number > 50, "{name}: only {} crashes", crashes.number);
        let c = simulation.counts();
        assert!(c["log_groups_truncated"] > 300, "{name}: {}", c["log_groups_truncated"]);
        simulation.run().unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

// ---- programs of the library -------------------------------------------------------------------------------

fn program(name: &str) -> Litmus {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/morlog").join(name);
    let text = std::fs::read_to_string(file.with_extension("litmus")).expect("readable");
    parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn violates(program: &Litmus, design: &str, mutant: Option<&str>) -> bool {
    let program = Litmus { mutant: mutant.map(str::to_owned), ..program.clone() };
    let case = Case::new(registry(), &program, find(design).expect("registered"));
    let outcome = case.unwrap_or_else(|e| panic!("{e}")).run().expect("not cancelled");
    assert_eq!(outcome.refused, None, "{}", program.title);
    !outcome.violations.is_empty()
}

/// Each program for a place of the text violates that literal reading, and (but where two meet) no other.
#[test]
fn each_literal_reading_violates_by_its_own_program() {
    let literal: BTreeSet<&str> = LITERAL.iter().map(|&(_, mutant)| mutant).collect();
    for &(name, own) in LITERAL {
        let program = program(name);
        assert!(violates(&program, "morlog-literal", None), "{name}");
        assert!(!violates(&program, "morlog", None), "{name}");
        assert!(violates(&program, "morlog", Some(own)), "{name} is not violated by {own}");
        for other in literal.iter().filter(|&&other| other != own) {
            // The undo program leaves the line's redo entry to be dropped when it commits.
            let both = (name, *other) == ("undo-in-dirty-bytes", "discard-leaves-nothing");
            assert_eq!(violates(&program, "morlog", Some(other)), both, "{name}, {other}");
        }
    }
}

const LITERAL: &[(&str, &str)] = &[
    ("redo-discarded", "discard-leaves-nothing"),
    ("flag-of-last-store", "flag-of-last-store"),
    ("debt-is-forgotten", "debt-is-forgotten"),
    ("undo-in-dirty-bytes", "undo-in-dirty-bytes"),
    ("words-of-a-line", "lines-are-counted"),
    ("redo-before-the-commit", "lines-are-counted"),
    ("states-outlive-ids", "states-outlive-ids"),
];
