//! A litmus program as a workload: its variables laid out, its steps as operations.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{Level, Litmus, Persist, Placement, Step, Word};
use graven_base::memory::{Addr, Image, LINE_BYTES, LineAddr, WORD_BYTES};
use graven_machine::program::{self, Disturbance, Op, Program, Ptr};
use graven_machine::workload;
use graven_machine::workload::{BrokenInvariant, Workload};

/// Why a program cannot be laid out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Nothing is free behind a variable in its line.
    #[error("variable {name}: the line of {with} is full; a line has 8 words")]
    LineFull {
        /// The variable.
        name: String,
        /// Behind which it was to lie.
        with: String,
    },
    /// Two variables lie in one place.
    #[error("variable {name} lies where {other} does, at offset {offset:#x}")]
    Overlap {
        /// The variable.
        name: String,
        /// The other.
        other: String,
        /// The distance from the start of the data region.
        offset: u64,
    },
    /// Beyond the data region.
    #[error("variable {name} ends at offset {end:#x}, beyond the data region of {room:#x} bytes")]
    TooFar {
        /// The variable.
        name: String,
        /// The end.
        end: u64,
        /// Bytes of the region.
        room: u64,
    },
}

/// The places of a program's variables.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    variables: BTreeMap<String, (Addr, u32)>,
    /// Per word, its name.
    names: BTreeMap<Addr, String>,
}

impl Layout {
    /// Lays out a program's variables in `[start, end)`.
    ///
    /// # Errors
    /// Variables that do not fit.
    pub fn new(litmus: &Litmus, start: Addr, end: Addr) -> Result<Layout, LayoutError> {
        let mut layout = Layout::default();
        // Those with a place of their choice first: the others go around them.
        let fixed = |v: &&super::Variable| matches!(v.place, Placement::At(_));
        for v in litmus.variables.iter().filter(fixed) {
            let Placement::At(offset) = v.place else { continue };
            layout.place(v, start.plus(offset), start, end)?;
        }
        for v in litmus.variables.iter().filter(|v| !fixed(v)) {
            let at = match &v.place {
                Placement::With(with) => {
                    let (first, words) = layout.variables[with];
                    let line = first.plus(u64::from(words.max(1) - 1) * WORD_BYTES).line();
                    let used = layout.names.range(line.addr()..line.addr().plus(LINE_BYTES));
                    let last = used.last().map_or(line.addr(), |(&addr, _)| addr);
                    let next = last.plus(WORD_BYTES);
                    if next.line() != line {
                        let (name, with) = (v.name.clone(), with.clone());
                        return Err(LayoutError::LineFull { name, with });
                    }
                    next
                }
                Placement::OwnLine | Placement::At(_) => {
                    let used = layout.names.keys().next_back();
                    used.map_or(start, |&addr| LineAddr(addr.line().0 + 1).addr())
                }
            };
            layout.place(v, at, start, end)?;
        }
        Ok(layout)
    }

    fn place(
        &mut self,
        variable: &super::Variable,
        at: Addr,
        start: Addr,
        end: Addr,
    ) -> Result<(), LayoutError> {
        let words = variable.words.unwrap_or(1);
        let last = at.0.saturating_add(u64::from(words) * WORD_BYTES);
        let name = variable.name.clone();
        if last > end.0 {
            let room = end.0 - start.0;
            return Err(LayoutError::TooFar { name, end: last - start.0, room });
        }
        for index in 0..words {
            let addr = at.plus(u64::from(index) * WORD_BYTES);
            let word = match variable.words {
                Some(_) => format!("{name}[{index}]"),
                None => name.clone(),
            };
            if let Some(other) = self.names.insert(addr, word) {
                return Err(LayoutError::Overlap { name, other, offset: addr.0 - start.0 });
            }
        }
        self.variables.insert(name, (at, words));
        Ok(())
    }

    /// The address of a word.
    pub fn addr(&self, word: &Word) -> Addr {
        let (first, _) = self.variables[&word.name];
        first.plus(u64::from(word.index.unwrap_or(0)) * WORD_BYTES)
    }

    /// The word's name, if it has one.
    pub fn name(&self, addr: Addr) -> Option<&str> {
        self.names.get(&addr).map(String::as_str)
    }

    /// All words with their names.
    pub fn words(&self) -> impl Iterator<Item = (Addr, &str)> {
        self.names.iter().map(|(&addr, name)| (addr, name.as_str()))
    }
}

/// The workload of a litmus program.
pub struct LitmusWorkload {
    initial: Vec<(Addr, u64)>,
    threads: Vec<Vec<Planned>>,
}

/// Stands for litmus programs where a workload is named.
pub static WORKLOAD: workload::WorkloadInfo = workload::WorkloadInfo {
    name: "litmus",
    group: "litmus",
    sections: &[],
    settings: &[],
    summary: "a litmus program",
    build: |_| unreachable!("a litmus program is built from its text"),
};

impl LitmusWorkload {
    /// The workload of a laid-out program's life, from 0.
    pub fn new(litmus: &Litmus, layout: &Layout, life: usize) -> LitmusWorkload {
        let before = litmus.lives[..life].iter().flat_map(|life| life.threads.iter().flatten());
        let crashes = before.filter(|step| matches!(step, Step::Crash(_))).count() as u32;
        let mut names = Names { crashes, ..Names::default() };
        let mut initial = Vec::new();
        for v in &litmus.variables {
            let (first, words) = layout.variables[&v.name];
            let addrs = (0..words).map(|i| first.plus(u64::from(i) * WORD_BYTES));
            initial.extend(addrs.map(|addr| (addr, v.initial)));
        }
        let steps = |steps: &Vec<Step>| steps.iter().map(|s| names.plan(s, layout)).collect();
        let threads = litmus.lives[life].threads.iter().map(steps).collect();
        LitmusWorkload { initial, threads }
    }
}

/// The number of a crash step: its place among all of a program's.
pub fn crash_steps(litmus: &Litmus) -> Vec<&str> {
    let steps = litmus.steps();
    steps
        .filter_map(|s| if let Step::Crash(name) = s { Some(name.as_str()) } else { None })
        .collect()
}

/// Names of locks, signals and crash steps as numbers.
#[derive(Default)]
struct Names {
    locks: Vec<String>,
    signals: Vec<String>,
    crashes: u32,
}

fn number(names: &mut Vec<String>, name: &str) -> u32 {
    let known = names.iter().position(|n| n == name);
    known.unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    }) as u32
}

impl Names {
    fn plan(&mut self, step: &Step, layout: &Layout) -> Planned {
        match step {
            Step::If(word, value, then) => {
                let at = Ptr::known(layout.addr(word));
                Planned::If { at, value: *value, then: self.op(then, layout) }
            }
            step => Planned::Always(self.op(step, layout)),
        }
    }

    fn op(&mut self, step: &Step, layout: &Layout) -> Op {
        let at = |word: &Word| Ptr::known(layout.addr(word));
        let line = |word: &Word| layout.addr(word).line();
        match step {
            Step::Begin => Op::TxBegin,
            Step::Commit => Op::TxEnd,
            Step::Store(word, value) => Op::Store { at: at(word), value: *value },
            Step::StoreNonTemporal(word, value) => {
                Op::StoreNonTemporal { at: at(word), value: *value }
            }
            Step::Outside(store) => self.op(store, layout),
            Step::Load(word) => Op::Load { at: at(word) },
            Step::Compute(instructions) => Op::Compute { instructions: *instructions },
            Step::Lock(name) => Op::Lock { lock: number(&mut self.locks, name) },
            Step::Unlock(name) => Op::Unlock { lock: number(&mut self.locks, name) },
            Step::Signal(name) => Op::Disturb(Disturbance::Signal(number(&mut self.signals, name))),
            Step::Await(name) => Op::Disturb(Disturbance::Await(number(&mut self.signals, name))),
            Step::Evict(word, level) => {
                let level = match level {
                    Level::L1 => 1,
                    Level::L2 => 2,
                    Level::Llc => 3,
                };
                Op::Disturb(Disturbance::Evict(line(word), level))
            }
            Step::WriteBack(word) => Op::Disturb(Disturbance::WriteBack(line(word))),
            Step::Persist(Persist::WriteBack(word)) => {
                Op::Persist(program::Persist::WriteBack(line(word)))
            }
            Step::Persist(Persist::Fence) => Op::Persist(program::Persist::Fence),
            Step::Persist(Persist::Order(operation)) => {
                Op::Persist(program::Persist::Order(*operation))
            }
            Step::Maintenance => Op::Disturb(Disturbance::Maintenance),
            Step::Settle => Op::Disturb(Disturbance::Settle),
            Step::Crash(_) => {
                self.crashes += 1;
                Op::Disturb(Disturbance::Crash(self.crashes - 1))
            }
            Step::If(..) => unreachable!("a step that depends on a word is not one that may"),
        }
    }
}

/// An operation that is done, or one that depends on what a word holds.
#[derive(Clone, Copy)]
enum Planned {
    Always(Op),
    If { at: Ptr, value: u64, then: Op },
}

struct Run {
    steps: usize,
    rest: std::vec::IntoIter<Planned>,
    /// The operation if the word that is being loaded holds this value.
    pending: Option<(u64, Op)>,
}

impl Program for Run {
    fn next(&mut self, loaded: u64) -> Op {
        if let Some((value, then)) = self.pending.take()
            && value == loaded
        {
            return then;
        }
        match self.rest.next() {
            None => Op::Done,
            Some(Planned::Always(op)) => op,
            Some(Planned::If { at, value, then }) => {
                self.pending = Some((value, then));
                Op::Load { at }
            }
        }
    }

    fn step(&self) -> Option<usize> {
        (self.steps - self.rest.len()).checked_sub(1)
    }
}

impl Workload for LitmusWorkload {
    fn populate(&self, image: &mut Image) {
        for &(addr, value) in &self.initial {
            image.store(addr, value);
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let rest = self.threads[thread as usize].clone().into_iter();
        Box::new(Run { steps: rest.len(), rest, pending: None })
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}
