//! Armv8: threads whose instructions are executed out of order.
//!
//! An instruction is executed when no earlier one of its thread, not yet executed, holds it back. A load takes the value of its
//! thread's newest earlier store to the word that is not executed yet, or of memory.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashSet;

use super::super::happening::Fence;
use super::super::model::{Domain, Model};
use super::super::prefixes;
use super::super::program::{How, Op, Outcome, Program, REGISTERS_MAX, UNSET, Value};
use super::memory::{Memory, Queue};
use super::{nothing_yet, reach};

/// One instruction, or one store of an instruction that makes several.
#[derive(Clone, Debug)]
struct Instruction {
    op: Op,
    /// The word that it stores to.
    word: u8,
    condition: Option<(u8, u8)>,
    /// The instructions of its thread that it waits for, as a set.
    waits_for: u32,
    /// True if the thread has not ended before it is executed. Stores may wait in a store buffer after that.
    is_awaited: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State<Q, const WORDS: usize, const LINES: usize, const THREADS: usize> {
    memory: Memory<Q, WORDS, LINES>,
    /// Instructions that have been executed, as a set for each thread.
    executed: [u32; THREADS],
    registers: [u8; REGISTERS_MAX],
    locks: u8,
}

impl<Q: Queue, const W: usize, const L: usize, const T: usize> Hash for State<Q, W, L, T> {
    /// Locks are left out: they hardly differ alone.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.memory.hash(hasher);
        let executed = self.executed.iter().fold(0, |all, &set| all << 16 ^ u64::from(set));
        hasher.write_u64(u64::from_le_bytes(self.registers).rotate_left(4) ^ executed);
    }
}

#[derive(Debug)]
struct Machine {
    program: Program,
    threads: Vec<Vec<Instruction>>,
    model: Model,
}

fn instructions(op: &Op) -> impl Iterator<Item = Instruction> {
    let (condition, op) = match op {
        Op::If { register, value, then } => (Some((*register, *value)), &**then),
        op => (None, op),
    };
    let words = match op {
        Op::Store { words, .. } => words.clone(),
        _ => vec![0],
    };
    words.into_iter().map(move |word| Instruction {
        op: op.clone(),
        word,
        condition,
        waits_for: 0,
        is_awaited: false,
    })
}

pub fn enumerate<Q: Queue, const W: usize, const L: usize, const T: usize>(
    model: &Model,
    program: &Program,
) -> FxHashSet<Outcome> {
    let machine = Machine::new(model, program.clone());
    let start = machine.start::<Q, W, L, T>();
    let mut outcomes = FxHashSet::default();
    reach(start, |state, next| {
        let is_done = (0..machine.threads.len()).all(|thread| {
            let end = machine.threads[thread].len();
            machine.has_ended(state, thread, end)
        });
        let outcome = state.memory.outcome(state.registers, is_done);
        outcomes.extend([outcome, Outcome { done: false, ..outcome }]);
        persisted(state, &mut |state| next.push(state));
        for thread in 0..machine.threads.len() {
            for at in 0..machine.threads[thread].len() {
                next.extend(machine.executed(state, thread, at));
            }
        }
    });
    outcomes
}

/// Finds the states after an entry has left a persist queue.
fn persisted<Q: Queue, const W: usize, const L: usize, const T: usize>(
    state: &State<Q, W, L, T>,
    found: &mut impl FnMut(State<Q, W, L, T>),
) {
    for memory in (0..L).filter_map(|line| state.memory.persisted(line)) {
        found(State { memory, ..*state });
    }
}

impl Machine {
    fn new(model: &Model, program: Program) -> Machine {
        let threads = program.threads.iter();
        let threads = threads.map(|ops| ops.iter().flat_map(instructions).collect()).collect();
        let mut machine = Machine { program, threads, model: model.clone() };
        for thread in 0..machine.threads.len() {
            for at in 0..machine.threads[thread].len() {
                machine.prepare(thread, at);
            }
        }
        machine
    }

    /// Finds what an instruction waits for, and if the end of its thread waits for it.
    fn prepare(&mut self, thread: usize, at: usize) {
        let instructions = &self.threads[thread];
        let waits_for = (0..at)
            .filter(|&earlier| self.holds_back(instructions, earlier, at))
            .fold(0, |set, earlier| set | 1 << earlier);
        let is_awaited = match &instructions[at].op {
            Op::Load { .. } | Op::Await { .. } | Op::Lock(_) | Op::Fence(Fence::Dsb) => true,
            Op::Told => self.model.told_drains,
            Op::Store { how, .. } => *how == How::Locked,
            _ => false,
        };
        let instruction = &mut self.threads[thread][at];
        (instruction.waits_for, instruction.is_awaited) = (waits_for, is_awaited);
    }

    fn start<Q: Queue, const W: usize, const L: usize, const T: usize>(&self) -> State<Q, W, L, T> {
        State {
            memory: Memory::new(&self.program),
            executed: [0; T],
            registers: [UNSET; REGISTERS_MAX],
            locks: 0,
        }
    }

    /// Tells if loads and DSB have been executed, of a thread's instructions before `end`.
    fn has_ended<Q: Queue, const W: usize, const L: usize, const T: usize>(
        &self,
        state: &State<Q, W, L, T>,
        thread: usize,
        end: usize,
    ) -> bool {
        let instructions = self.threads[thread][..end].iter().enumerate();
        instructions
            .into_iter()
            .all(|(at, i)| !i.is_awaited || state.executed[thread] >> at & 1 != 0)
    }

    fn line(&self, word: u8) -> u8 {
        self.program.lines[usize::from(word)]
    }

    fn executed<Q: Queue, const W: usize, const L: usize, const T: usize>(
        &self,
        state: &State<Q, W, L, T>,
        thread: usize,
        at: usize,
    ) -> Option<State<Q, W, L, T>> {
        let instructions = &self.threads[thread];
        let instruction = &instructions[at];
        if state.executed[thread] >> at & 1 != 0 {
            return None;
        }
        if instruction.waits_for & !state.executed[thread] != 0 {
            return None;
        }
        let mut next = *state;
        next.executed[thread] |= 1 << at;
        if let Some((register, value)) = instruction.condition
            && state.registers[usize::from(register)] != value
        {
            return Some(next);
        }
        let has_waited = || state.memory.has_no_marker_of(thread as u8);
        match instruction.op {
            Op::Store { value, .. } => {
                let value = value_of(state, value);
                next.memory.write(self.line(instruction.word), instruction.word, value);
            }
            Op::Load { word, into, .. } => {
                next.registers[usize::from(into)] = self.read(state, thread, at, word)?;
            }
            Op::Await { word, value, .. } => {
                if self.read(state, thread, at, word)? != value {
                    return None;
                }
            }
            Op::Clean(line, point) => {
                let survives = match self.model.domain {
                    Domain::Reached(least) => point >= least,
                    _ => unreachable!("a model of Arm"),
                };
                if survives {
                    next.memory.mark(line, thread as u8);
                }
            }
            Op::Fence(Fence::Dsb) if !has_waited() => return None,
            Op::Told if self.model.told_drains && !has_waited() => return None,
            Op::Lock(lock) => {
                if state.locks >> lock & 1 != 0 {
                    return None;
                }
                next.locks |= 1 << lock;
            }
            Op::Unlock(lock) => next.locks &= !(1 << lock),
            Op::Fence(_) | Op::Told => {}
            Op::WriteBack(_) | Op::Flush(_) | Op::If { .. } => {
                unreachable!("no instruction of Arm")
            }
        }
        Some(next)
    }

    /// The value that a load takes now, if it is known.
    fn read<Q: Queue, const W: usize, const L: usize, const T: usize>(
        &self,
        state: &State<Q, W, L, T>,
        thread: usize,
        at: usize,
        loaded: u8,
    ) -> Option<u8> {
        for earlier in (0..at).rev() {
            let instruction = &self.threads[thread][earlier];
            let Op::Store { value, how: How::Cached | How::Release, .. } = instruction.op else {
                continue;
            };
            if instruction.word != loaded {
                continue;
            }
            if state.executed[thread] >> earlier & 1 != 0 {
                break;
            }
            match instruction
                .condition
                .map(|(register, value)| (state.registers[usize::from(register)], value))
            {
                Some((UNSET, _)) => return None,
                Some((found, value)) if found != value => continue,
                _ => return Some(value_of(state, value)).filter(|&value| value != UNSET),
            }
        }
        Some(state.memory.load(loaded))
    }

    /// Tells if an instruction waits for an earlier one.
    fn holds_back(&self, instructions: &[Instruction], earlier: usize, later: usize) -> bool {
        let (first, second) = (&instructions[earlier], &instructions[later]);
        // Registers: data, conditions, and stores after a decision.
        if let Op::Load { into, .. } = first.op {
            let is_newest = !instructions[earlier + 1..later]
                .iter()
                .any(|i| matches!(i.op, Op::Load { into: other, .. } if other == into));
            let tests = |i: &Instruction| i.condition.is_some_and(|(register, _)| register == into);
            let stores_it = matches!(second.op, Op::Store { value: Value::Register(register), .. } if register == into);
            if is_newest && (tests(second) || stores_it) {
                return true;
            }
            let tested = (earlier + 1..later).any(|at| {
                let reloaded = instructions[earlier + 1..at]
                    .iter()
                    .any(|i| matches!(i.op, Op::Load { into: other, .. } if other == into));
                tests(&instructions[at]) && !reloaded
            });
            if tested && is_store(&second.op) {
                return true;
            }
        }
        if matches!(first.op, Op::Await { .. } | Op::Lock(_)) && is_store(&second.op) {
            return true;
        }
        self.keeps_order(first, second)
    }

    /// The table of Arm's order, as the machine has it: rows are earlier instructions.
    fn keeps_order(&self, first: &Instruction, second: &Instruction) -> bool {
        let word = |i: &Instruction| match i.op {
            Op::Store { .. } => Some(i.word),
            Op::Load { word, .. } | Op::Await { word, .. } => Some(word),
            _ => None,
        };
        let cleaned = |i: &Instruction| match i.op {
            Op::Clean(line, _) => Some(line),
            _ => None,
        };
        let touched = |i: &Instruction| word(i).map(|word| self.line(word));
        let loads = |i: &Instruction| matches!(i.op, Op::Load { .. } | Op::Await { .. });
        let acquires = |i: &Instruction| {
            matches!(i.op, Op::Load { acquire: true, .. } | Op::Await { acquire: true, .. })
        };
        let releases =
            |i: &Instruction| matches!(i.op, Op::Store { how: How::Release, .. } | Op::Unlock(_));
        let stops = |i: &Instruction| matches!(i.op, Op::Fence(Fence::Dsb | Fence::Dmb) | Op::Told);
        let is_plain_fence = |i: &Instruction, fence| matches!(i.op, Op::Fence(f) if f == fence);
        if stops(first) || stops(second) || is_plain_fence(first, Fence::DmbLoad) {
            return true;
        }
        if is_plain_fence(second, Fence::DmbLoad) {
            return loads(first) || acquires(first) || matches!(first.op, Op::Lock(_));
        }
        if is_plain_fence(second, Fence::DmbStore) {
            return is_store(&first.op) || matches!(first.op, Op::Lock(_));
        }
        if is_plain_fence(first, Fence::DmbStore) {
            return is_store(&second.op);
        }
        if (acquires(first) || matches!(first.op, Op::Lock(_))) && cleaned(second).is_none() {
            return true;
        }
        if releases(second) && cleaned(first).is_none() || releases(first) && acquires(second) {
            return true;
        }
        match (cleaned(first), cleaned(second)) {
            (Some(line), None) => touched(second) == Some(line),
            (None, Some(line)) => touched(first) == Some(line),
            (Some(_), Some(_)) => false,
            (None, None) => {
                word(first).is_some()
                    && word(first) == word(second)
                    && (loads(first) || !loads(second))
            }
        }
    }
}

fn is_store(op: &Op) -> bool {
    matches!(op, Op::Store { .. } | Op::Unlock(_))
}

fn value_of<Q: Queue, const W: usize, const L: usize, const T: usize>(
    state: &State<Q, W, L, T>,
    value: Value,
) -> u8 {
    match value {
        Value::Constant(value) => value,
        Value::Register(register) => state.registers[usize::from(register)],
    }
}

/// The machine of Arm for programs that grow: two threads of one-word instructions, on two lines.
#[derive(Debug)]
pub struct Growing(Machine);

impl Growing {
    /// No step yet of programs on these lines, of words that hold 0.
    pub fn new(model: &Model, lines: &[u8]) -> Growing {
        Growing(Machine::new(model, nothing_yet(lines)))
    }
}

impl prefixes::Machine for Growing {
    type State = State<u64, 4, 2, 2>;

    const IN_ORDER: bool = false;

    fn replace(&mut self, thread: usize, at: usize, op: &Op) {
        self.0.threads[thread].splice(at..=at, instructions(op));
        self.0.prepare(thread, at);
    }

    fn start(&self) -> Self::State {
        self.0.start()
    }

    fn step(&self, state: &Self::State, thread: usize, at: usize) -> Option<Self::State> {
        self.0.executed(state, thread, at)
    }

    fn drift(&self, state: &Self::State, found: &mut impl FnMut(Self::State)) {
        persisted(state, found);
    }

    fn outcomes(&self, state: &Self::State, found: &mut impl FnMut(Outcome)) {
        found(state.memory.outcome(state.registers, false));
    }

    fn is_done(&self, state: &Self::State, lengths: [usize; 2]) -> bool {
        let mut threads = lengths.into_iter().enumerate();
        threads.all(|(thread, length)| self.0.has_ended(state, thread, length))
    }

    fn is_awaited(&self, thread: usize, at: usize) -> bool {
        self.0.threads[thread][at].is_awaited
    }
}
