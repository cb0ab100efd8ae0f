//! A workload's run as a litmus program: every operation that its threads were asked for in each life, with the values
//! that it stored, and the words that it touched with what they held at first.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::litmus::{Life, Litmus, MACHINE, Persist, Placement, Step, Variable, Word};
use graven_base::memory::{Addr, Image};
use graven_machine::program::{self, Op, Program};
use graven_machine::registry::Registry;
use graven_machine::sim::Spec;
use graven_machine::workload::{BrokenInvariant, Extent, Workload};

/// Runs of more steps are not turned into a program, which could be neither minimised nor read.
const STEPS_MAX: usize = 60_000;

/// The recorded operations.
#[derive(Clone, Default)]
pub struct Log {
    threads: Rc<RefCell<Vec<Vec<Op>>>>,
    initial: Rc<RefCell<Image>>,
}

/// A workload whose operations are recorded.
pub struct Recording {
    workload: Box<dyn Workload>,
    log: Log,
}

impl Recording {
    /// A recording of a workload with `threads`.
    pub fn of(workload: Box<dyn Workload>, threads: u32) -> Recording {
        let log = Log::default();
        log.threads.borrow_mut().resize_with(threads as usize, Vec::new);
        Recording { workload, log }
    }

    /// The record, when the run is over.
    pub fn log(&self) -> Log {
        self.log.clone()
    }
}

impl Workload for Recording {
    fn populate(&self, image: &mut Image) {
        self.workload.populate(image);
        *self.log.initial.borrow_mut() = image.clone();
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let (program, log) = (self.workload.program(thread), self.log.clone());
        Box::new(Recorded { program, log, thread: thread as usize })
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        self.workload.check(image)
    }

    fn begins_again(&self) -> bool {
        self.workload.begins_again()
    }

    fn extent(&self) -> Option<Extent> {
        self.workload.extent()
    }
}

struct Recorded {
    program: Box<dyn Program>,
    log: Log,
    thread: usize,
}

impl Program for Recorded {
    fn next(&mut self, value: u64) -> Op {
        let op = self.program.next(value);
        self.log.threads.borrow_mut()[self.thread].push(op);
        op
    }
}

/// The program of a run, whose lives were recorded one after the other, unless it is too long.
pub fn to_litmus(lives: &[Log], registry: &Registry, spec: &Spec, what: &str) -> Option<Litmus> {
    let steps = |log: &Log| log.threads.borrow().iter().map(Vec::len).sum::<usize>();
    if lives.iter().map(steps).sum::<usize>() > STEPS_MAX {
        return None;
    }
    let mut touched = BTreeSet::new();
    let volatile_from = spec.volatile_region().0;
    let programs = lives.iter().enumerate().map(|(number, log)| {
        let threads = log.threads.borrow();
        let threads = threads.iter().map(|ops| steps_of(ops, volatile_from, &mut touched));
        Life {
            adversary: spec.crash_options.adversary.clone().filter(|_| number == 0),
            first_transaction: spec.crash_options.first_transaction,
            threads: threads.collect(),
            ..Life::default()
        }
    });
    let programs = programs.collect();
    let (start, _) = spec.data_region();
    let initial = lives[0].initial.borrow();
    let (machine, settings) = machine(registry, spec);
    let variable = |&addr: &Addr| Variable {
        name: word(addr).name,
        words: None,
        initial: initial.load(addr),
        place: Placement::At(addr.0 - start.0),
    };
    Some(Litmus {
        title: format!("{} on {}: {what}", spec.design.name, spec.workload.name),
        designs: vec![spec.design.name.into()],
        machine: Some(machine),
        settings,
        mutant: mutant(spec),
        garbage: spec.crash_options.garbage,
        variables: touched.iter().map(variable).collect(),
        lives: programs,
        ..Litmus::default()
    })
}

/// The name of a word.
fn word(addr: Addr) -> Word {
    Word { name: format!("w{:x}", addr.0), index: None }
}

/// A thread's steps, and the words that it touches. Litmus programs have no volatile memory, which lies from an address on:
/// instructions stand for what is loaded and stored there.
fn steps_of(ops: &[Op], volatile_from: Addr, touched: &mut BTreeSet<Addr>) -> Vec<Step> {
    let (mut steps, mut open, mut held) = (Vec::new(), false, Vec::new());
    for op in ops {
        match *op {
            Op::Load { at } | Op::Store { at, .. } | Op::StoreNonTemporal { at, .. }
                if at.addr >= volatile_from =>
            {
                match steps.last_mut() {
                    Some(Step::Compute(instructions)) if *instructions < u32::MAX => {
                        *instructions += 1;
                    }
                    _ => steps.push(Step::Compute(1)),
                }
            }
            Op::Load { at } => {
                touched.insert(at.addr);
                steps.push(Step::Load(word(at.addr)));
            }
            Op::Store { at, value } => {
                touched.insert(at.addr);
                steps.push(stored(Step::Store(word(at.addr), value), open));
            }
            Op::StoreNonTemporal { at, value } => {
                touched.insert(at.addr);
                steps.push(stored(Step::StoreNonTemporal(word(at.addr), value), open));
            }
            Op::Compute { instructions } => steps.push(Step::Compute(instructions)),
            Op::TxBegin | Op::TxEnd => {
                open = *op == Op::TxBegin;
                steps.push(if open { Step::Begin } else { Step::Commit });
            }
            Op::Lock { lock } => {
                held.push(lock);
                steps.push(Step::Lock(format!("m{lock}")));
            }
            Op::Unlock { lock } => {
                held.retain(|&l| l != lock);
                steps.push(Step::Unlock(format!("m{lock}")));
            }
            Op::Persist(what) => steps.extend(persisted(what, volatile_from, touched)),
            Op::Ending | Op::Disturb(_) | Op::Done => {}
        }
    }
    // The run stopped somewhere; what follows only completes the text.
    steps.extend(open.then_some(Step::Commit));
    steps.extend(held.iter().rev().map(|lock| Step::Unlock(format!("m{lock}"))));
    steps
}

/// An instruction for persistence or order as a step, if programs have it.
fn persisted(
    what: program::Persist,
    volatile_from: Addr,
    touched: &mut BTreeSet<Addr>,
) -> Option<Step> {
    let what = match what {
        program::Persist::WriteBack(line) if line.addr() >= volatile_from => return None,
        program::Persist::WriteBack(line) => {
            touched.insert(line.addr());
            Persist::WriteBack(word(line.addr()))
        }
        program::Persist::Fence => Persist::Fence,
        program::Persist::Order(operation) => Persist::Order(operation),
        program::Persist::StoreUncached { .. } | program::Persist::StoreOwn { .. } => return None,
    };
    Some(Step::Persist(what))
}

/// A store, in a transaction or outside.
fn stored(store: Step, in_transaction: bool) -> Step {
    if in_transaction { store } else { Step::Outside(Box::new(store)) }
}

/// The preset that a program starts from, and what is different from it. A machine of the user's own has
/// no name that a program could give, so it is written out.
fn machine(registry: &Registry, spec: &Spec) -> (String, Vec<(String, String)>) {
    let named = registry.presets().iter().find(|preset| preset.name == spec.config.machine);
    let base = named.map_or(MACHINE, |preset| preset.name);
    let preset = registry.machine(base).expect("presets are tested").annotations();
    let own = spec.config.annotations().into_iter().zip(preset);
    let differs = own.filter(|(a, b)| a.value != b.value && !a.key.starts_with("workload."));
    (base.into(), differs.map(|(a, _)| (a.key, a.value.trim_matches('"').to_owned())).collect())
}

fn mutant(spec: &Spec) -> Option<String> {
    if let Some(operator) = &spec.crash_options.operator {
        return Some(operator.to_string());
    }
    let named = spec.design.mutants.iter().enumerate();
    let mut in_force = named.filter(|&(i, _)| spec.crash_options.mutants.has(i));
    in_force.next().map(|(_, s)| s.name.into())
}
