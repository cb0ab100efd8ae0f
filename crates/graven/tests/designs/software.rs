//! Designs that are partly software: the code that they put into threads, and misses that they answer.
//!
//! Bug class: the code costs nothing, or something else than the same instructions of a program; a load waits for
//! a load of the code instead of the program's own; a value of the code's loads reaches the program; a line that is
//! handed over wrong passes for a refusal; a store that is deferred is forgotten, or performed after its transaction.

use crate::common::registry;
use std::cell::RefCell;

use crate::common::script::{cycles_of, load, load_after, run, script_with, store};
use crate::common::{finished, programs, spec_of, test_workload, tiny_config};
use graven::config::Config;
use graven::design::{
    Code, Design, DesignInfo, Fill, Miss, NoEvent, OpAction, Port, SoftwareDesign, Unused, plug,
};
use graven::ids::ThreadId;
use graven::memory::{Addr, LineAddr, LineData};
use graven::program::{Load, Memory, Op, Ptr, spawn};
use graven::sim::{SimError, Simulation};
use graven::workload::WorkloadInfo;

/// A step of the code.
#[derive(Clone, Copy)]
enum Step {
    Compute(u32),
    Load(u64),
    Chase(u64),
    Store(u64, u64),
}
use Step::{Chase, Compute};

thread_local! {
    /// The code before each load of PM.
    static CODE: RefCell<Vec<Step>> = const { RefCell::new(Vec::new()) };
}

/// A design that persists nothing and has code.
static WITH_CODE: DesignInfo = DesignInfo {
    name: "with-code",
    summary: "code before each load of PM",
    paper: "none",
    build: |_| Ok(plug(WithCode).with_software().into()),
    ..DesignInfo::DEFAULT
};

struct WithCode;

impl Design for WithCode {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;
}

impl SoftwareDesign for WithCode {
    fn before_op(
        &mut self,
        port: &mut Port<'_, WithCode>,
        _thread: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction {
        let Op::Load { at } = op else { return OpAction::Execute };
        if !port.is_pm(at.addr) {
            return OpAction::Execute;
        }
        CODE.with_borrow(|steps| {
            for step in steps {
                match *step {
                    Step::Compute(instructions) => code.compute(instructions),
                    Step::Load(addr) => code.load(Addr(addr)),
                    Step::Chase(addr) => code.load_dependent(Addr(addr)),
                    Step::Store(addr, value) => code.store(Addr(addr), value),
                }
            }
        });
        OpAction::Execute
    }
}

const CORES: [&str; 2] = ["in-order", "out-of-order"];

fn config(core: &str) -> Config {
    tiny_config(&[("core.model", core), ("core.issue_width", "4")])
}

fn with_code(config: &Config, code: &[Step], program: &[Op]) -> u64 {
    CODE.set(code.to_vec());
    cycles_of(script_with(config, &WITH_CODE, &[program]), 1)[0]
}

/// The tiny machine's DRAM begins here.
const DRAM: u64 = 64 << 20;
const PM: u64 = 8192;

/// Lines in banks of their own.
fn node(n: u64) -> u64 {
    DRAM + n * (4096 + 64)
}

#[test]
fn code_costs_what_the_same_instructions_of_a_program_cost() {
    for core in CORES {
        let config = config(core);
        let chain = [Compute(7), Chase(node(0)), Chase(node(1)), Compute(5), Chase(node(2))];
        let as_program = [
            Op::Compute { instructions: 7 },
            load(node(0)),
            load_after(1, node(1)),
            Op::Compute { instructions: 5 },
            load_after(2, node(2)),
            load_after(3, PM),
        ];
        let expected = run(&config, &[&as_program])[0];
        assert_eq!(with_code(&config, &chain, &[load(PM)]), expected, "{core}");
    }
}

/// What a step along a chain of cold lines takes.
fn step_cycles(config: &Config) -> u64 {
    let chain: Vec<Step> = (0..9).map(|n| Chase(node(n))).collect();
    let of = |nodes: usize| with_code(config, &chain[..nodes], &[load(PM)]);
    let step = of(9) - of(8);
    assert!(step > 50, "a read of DRAM takes longer than {step} cycles");
    step
}

#[test]
fn a_load_waits_for_the_chain_before_it_and_not_for_loads_beside_it() {
    for core in CORES {
        let config = config(core);
        let step = step_cycles(&config);
        let alone = with_code(&config, &[], &[load(PM)]);
        let chained = with_code(&config, &[Chase(node(0)), Chase(node(1))], &[load(PM)]);
        assert!(chained >= alone + 2 * step, "{core}: {chained}, alone {alone}, a step {step}");
        let beside = with_code(&config, &[Step::Load(node(0)), Step::Load(node(1))], &[load(PM)]);
        match core {
            "in-order" => assert_eq!(beside, chained, "loads block"),
            _ => assert!(beside < alone + step, "{beside}: they overlap with the program's own"),
        }
    }
}

#[test]
fn a_hot_chain_costs_its_hits() {
    for core in CORES {
        let config = config(core);
        let step = step_cycles(&config);
        let chain = [Chase(node(0)), Chase(node(1))];
        let program: Vec<Op> = (0..4).map(|origin| load_after(origin, PM)).collect();
        let again = |loads: usize| with_code(&config, &chain, &program[..loads]);
        let hot = again(4) - again(3);
        let l1 = u64::from(config.get::<graven::config::L1Config>().latency_cycles);
        assert!(hot >= 3 * l1 && hot < step, "{core}: {hot}, a cold step {step}");
    }
}

/// Loads of the code are numbered by the core, and not by the program.
#[test]
fn a_load_waits_for_the_programs_load_that_it_names() {
    let config = config("out-of-order");
    let (first, second) = (PM, PM + 64 * 1024);
    let code = [Step::Load(node(0))];
    let as_program = [load(node(0)), load(first), load(node(0)), load_after(2, second)];
    let expected = run(&config, &[&as_program])[0];
    let program = [load(first), load_after(1, second)];
    assert_eq!(with_code(&config, &code, &program), expected);
    let independent = [load(first), load(second)];
    assert!(with_code(&config, &code, &independent) + 50 < expected, "these overlap");
    // The chain begins where the program's pointer is known, and the load comes behind it.
    let chased = with_code(&config, &[Chase(node(0))], &program);
    let as_program =
        [load(node(0)), load_after(1, first), load_after(2, node(0)), load_after(3, second)];
    assert_eq!(chased, run(&config, &[&as_program])[0]);
}

#[test]
fn stores_of_the_code_are_in_memory_and_not_in_any_transaction() {
    for core in CORES {
        let code = [Step::Store(node(3), 77), Step::Store(node(3) + 8, 78)];
        CODE.set(code.to_vec());
        let program = [Op::TxBegin, load(PM), store(PM, 5), Op::TxEnd];
        let simulation = finished(script_with(&config(core), &WITH_CODE, &[&program]));
        let memory = simulation.machine().architectural();
        let words = [node(3), node(3) + 8, PM].map(|at| memory.load(Addr(at)));
        assert_eq!(words, [77, 78, 5], "{core}");
        let c = &simulation.stats().counters;
        assert_eq!((c.stores, c.transactional_stores), (3, 1), "{core}");
    }
}

/// A list whose nodes lie in any order; longer than a core remembers loads.
const NODES: u64 = 600;

static LIST: WorkloadInfo = test_workload("list", "a walk along a list", |request| {
    programs(
        request,
        |_, image| {
            for n in 0..NODES {
                image.store(list_node(n), if n + 1 < NODES { list_node(n + 1).0 } else { 0 });
                image.store(list_node(n).plus(8), n * n);
            }
        },
        |_, _thread| {
            spawn(|memory| {
                let (mut at, mut sum) = (Ptr::known(list_node(0)), 0);
                while !at.is_null() {
                    sum += memory.load(at.word(1));
                    at = memory.load_ptr(at);
                }
                memory.tx_begin();
                memory.store(Ptr::known(Addr(4096)), sum);
                memory.tx_end();
            })
        },
    )
});

fn list_node(n: u64) -> Addr {
    Addr(PM + n * 389 % NODES * 64)
}

fn walk(design: &'static DesignInfo, core: &str) -> Simulation {
    let spec = spec_of(&config(core), design, &LIST, 1, 1, 0);
    let mut simulation = Simulation::new(&spec).unwrap_or_else(|e| panic!("{e}"));
    simulation.run().unwrap_or_else(|e| panic!("{e}"));
    simulation
}

#[test]
fn a_program_gets_the_values_of_its_own_loads() {
    let expected: u64 = (0..NODES).map(|n| n * n).sum();
    for core in CORES {
        CODE.set(vec![Step::Store(node(5), 1), Chase(node(5)), Step::Load(node(6))]);
        let walked = walk(&WITH_CODE, core);
        assert_eq!(walked.machine().architectural().load(Addr(4096)), expected, "{core}");
        let plain = walk(registry().find_design("ideal").expect("registered"), core);
        let [with, without] = [&walked, &plain].map(|s| s.stats().counters.loads);
        assert_eq!((with, without), (3 * 2 * NODES, 2 * NODES), "{core}");
        let [with, without] = [&walked, &plain].map(|s| s.stats().counters.cycles);
        assert!(with > without + 4 * NODES, "{core}: each step of the walk waits for its chain");
    }
}

/// A design that answers a miss with something else.
static WRONG: DesignInfo = DesignInfo {
    name: "wrong",
    summary: "hands over another line",
    paper: "none",
    build: |_| Ok(plug(Wrong).into()),
    ..DesignInfo::DEFAULT
};

struct Wrong;

impl Design for Wrong {
    type Write = Unused;
    /// For the missed line.
    type Read = ();
    type Timer = Unused;
    type Event = NoEvent;

    fn on_llc_miss(&mut self, port: &mut Port<'_, Wrong>, miss: &Miss) -> Fill {
        port.read(miss.line, (), miss.delay);
        Fill::Design
    }

    fn on_read(&mut self, port: &mut Port<'_, Wrong>, (): (), line: LineAddr, content: &LineData) {
        let mut content = *content;
        content[3] ^= 1;
        port.deliver(line, content, 5);
    }
}

#[test]
fn a_line_that_is_handed_over_wrong_fails_the_run_and_is_no_refusal() {
    let mut simulation = script_with(&config("in-order"), &WRONG, &[&[load(PM)]]);
    let error = simulation.run().expect_err("the line is wrong");
    let SimError::ReadCheck { addr, read: 1, stored: 0, .. } = error else { panic!("{error}") };
    assert_eq!(addr, Addr(PM + 24));
}

/// What the design below answers to a load of the word that it has.
#[derive(Clone, Copy)]
enum Answer {
    Newest,
    Another,
    Nothing,
}

thread_local! {
    static ANSWER: RefCell<Answer> = const { RefCell::new(Answer::Newest) };
}

/// A design that performs the newest store to a word of each transaction at its end.
static DEFERS: DesignInfo = DesignInfo {
    name: "defers",
    summary: "stores at the end",
    paper: "none",
    build: |_| Ok(plug(Defers { newest: None }).with_software().into()),
    ..DesignInfo::DEFAULT
};

struct Defers {
    newest: Option<(Addr, u64)>,
}

impl Design for Defers {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;
}

impl SoftwareDesign for Defers {
    fn before_op(
        &mut self,
        _port: &mut Port<'_, Defers>,
        _thread: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction {
        match (*op, self.newest) {
            (Op::Store { at, value }, _) => {
                self.newest = Some((at.addr, value));
                return OpAction::Defer;
            }
            (Op::Load { at }, Some((addr, value))) if at.addr == addr => {
                match ANSWER.with_borrow(|answer| *answer) {
                    Answer::Newest => return OpAction::Return(value),
                    Answer::Another => return OpAction::Return(value + 1),
                    Answer::Nothing => {}
                }
            }
            (Op::TxEnd, Some((addr, value))) => {
                code.end();
                code.store(addr, value);
                self.newest = None;
            }
            _ => {}
        }
        OpAction::Execute
    }
}

fn deferred(answer: Answer) -> (Result<u64, SimError>, Simulation) {
    ANSWER.set(answer);
    let program = [
        vec![Op::TxBegin, store(PM, 4), load(PM), store(PM, 5), load(PM), Op::TxEnd, load(PM)],
        vec![Op::TxBegin, store(PM, 5), Op::TxEnd],
    ];
    let mut simulation = script_with(&config("out-of-order"), &DEFERS, &[&program.concat()]);
    graven::lab::checker::attach(&mut simulation);
    (simulation.run(), simulation)
}

#[test]
fn deferred_stores_are_performed_by_the_end_and_counted_when_they_are_deferred() {
    let (result, simulation) = deferred(Answer::Newest);
    result.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(simulation.machine().architectural().load(Addr(PM)), 5);
    let c = &simulation.stats().counters;
    assert_eq!((c.stores, c.loads), (2, 1), "performed once per transaction, answered twice");
    assert_eq!((c.transactional_stores, c.silent_stores), (3, 1));
}

#[test]
fn a_wrong_answer_or_none_is_a_line_that_is_read_wrong() {
    let found = |answer| match deferred(answer).0 {
        Err(SimError::ReadCheck { addr: Addr(PM), read, stored, .. }) => (read, stored),
        other => panic!("{other:?}"),
    };
    assert_eq!(found(Answer::Another), (5, 4));
    assert_eq!(found(Answer::Nothing), (0, 4));
}
