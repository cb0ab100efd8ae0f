//! Armv8: threads whose instructions are executed out of order.
//!
//! An instruction is executed when no earlier one of its thread, not yet executed, holds it back. A load takes the value of its
//! thread's newest earlier store to the word that is not executed yet, or of memory.

use rustc_hash::FxHashSet;

use super::super::happening::Fence;
use super::super::model::{Domain, Model};
use super::super::program::{How, Op, Outcome, Program, REGISTERS_MAX, THREADS_MAX, UNSET, Value};
use super::memory::Memory;
use super::reach;

/// One instruction, or one store of an instruction that makes several.
struct Instruction<'a> {
    op: &'a Op,
    /// The word that it stores to.
    word: u8,
    condition: Option<(u8, u8)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State<const WORDS: usize, const LINES: usize, const DEPTH: usize> {
    memory: Memory<WORDS, LINES, DEPTH>,
    /// Instructions that have been executed, as a set for each thread.
    executed: [u32; THREADS_MAX],
    registers: [u8; REGISTERS_MAX],
    locks: u8,
}

struct Machine<'a> {
    program: &'a Program,
    threads: Vec<Vec<Instruction<'a>>>,
    model: &'a Model,
}

fn instructions(op: &Op) -> impl Iterator<Item = Instruction<'_>> {
    let (condition, op) = match op {
        Op::If { register, value, then } => (Some((*register, *value)), &**then),
        op => (None, op),
    };
    let words = match op {
        Op::Store { words, .. } => words.clone(),
        _ => vec![0],
    };
    words.into_iter().map(move |word| Instruction { op, word, condition })
}

pub fn enumerate<const WORDS: usize, const LINES: usize, const DEPTH: usize>(
    model: &Model,
    program: &Program,
) -> FxHashSet<Outcome> {
    let threads = program.threads.iter().map(|ops| ops.iter().flat_map(instructions).collect());
    let threads = threads.collect();
    let machine = Machine { program, threads, model };
    let start = State::<WORDS, LINES, DEPTH> {
        memory: Memory::new(program),
        executed: [0; THREADS_MAX],
        registers: [UNSET; REGISTERS_MAX],
        locks: 0,
    };
    let mut outcomes = FxHashSet::default();
    reach(start, |state, next| {
        let outcome = state.memory.outcome(state.registers, machine.is_done(state));
        outcomes.extend([outcome, Outcome { done: false, ..outcome }]);
        next.extend(
            (0..LINES)
                .filter_map(|line| Some(State { memory: state.memory.persisted(line)?, ..*state })),
        );
        for thread in 0..machine.threads.len() {
            for at in 0..machine.threads[thread].len() {
                next.extend(machine.executed(state, thread, at));
            }
        }
    });
    outcomes
}

impl Machine<'_> {
    /// Tells if loads and DSB have been executed. Stores may wait in a store buffer after the end of the thread.
    fn is_done<const W: usize, const L: usize, const D: usize>(
        &self,
        state: &State<W, L, D>,
    ) -> bool {
        self.threads.iter().enumerate().all(|(thread, instructions)| {
            instructions.iter().enumerate().all(|(at, instruction)| {
                let waits = match instruction.op {
                    Op::Load { .. } | Op::Await { .. } | Op::Lock(_) | Op::Fence(Fence::Dsb) => {
                        true
                    }
                    Op::Told => self.model.told_drains,
                    Op::Store { how, .. } => *how == How::Locked,
                    _ => false,
                };
                !waits || state.executed[thread] >> at & 1 != 0
            })
        })
    }

    fn line(&self, word: u8) -> u8 {
        self.program.lines[usize::from(word)]
    }

    fn executed<const W: usize, const L: usize, const D: usize>(
        &self,
        state: &State<W, L, D>,
        thread: usize,
        at: usize,
    ) -> Option<State<W, L, D>> {
        let instructions = &self.threads[thread];
        let instruction = &instructions[at];
        if state.executed[thread] >> at & 1 != 0 {
            return None;
        }
        let waits_for = |earlier: usize| {
            state.executed[thread] >> earlier & 1 == 0 && self.holds_back(instructions, earlier, at)
        };
        if (0..at).any(waits_for) {
            return None;
        }
        let mut next = *state;
        next.executed[thread] |= 1 << at;
        if let Some((register, value)) = instruction.condition
            && state.registers[usize::from(register)] != value
        {
            return Some(next);
        }
        let has_waited = state.memory.has_no_marker_of(thread as u8);
        match *instruction.op {
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
            Op::Fence(Fence::Dsb) if !has_waited => return None,
            Op::Told if self.model.told_drains && !has_waited => return None,
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
    fn read<const W: usize, const L: usize, const D: usize>(
        &self,
        state: &State<W, L, D>,
        thread: usize,
        at: usize,
        loaded: u8,
    ) -> Option<u8> {
        for earlier in (0..at).rev() {
            let instruction = &self.threads[thread][earlier];
            let Op::Store { value, how: How::Cached | How::Release, .. } = *instruction.op else {
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
    fn holds_back(&self, instructions: &[Instruction<'_>], earlier: usize, later: usize) -> bool {
        let (first, second) = (&instructions[earlier], &instructions[later]);
        // Registers: data, conditions, and stores after a decision.
        if let Op::Load { into, .. } = *first.op {
            let is_newest = !instructions[earlier + 1..later]
                .iter()
                .any(|i| matches!(*i.op, Op::Load { into: other, .. } if other == into));
            let tests =
                |i: &Instruction<'_>| i.condition.is_some_and(|(register, _)| register == into);
            let stores_it = matches!(*second.op, Op::Store { value: Value::Register(register), .. } if register == into);
            if is_newest && (tests(second) || stores_it) {
                return true;
            }
            let tested = (earlier + 1..later).any(|at| {
                let reloaded = instructions[earlier + 1..at]
                    .iter()
                    .any(|i| matches!(*i.op, Op::Load { into: other, .. } if other == into));
                tests(&instructions[at]) && !reloaded
            });
            if tested && is_store(second.op) {
                return true;
            }
        }
        if matches!(first.op, Op::Await { .. } | Op::Lock(_)) && is_store(second.op) {
            return true;
        }
        self.keeps_order(first, second)
    }

    /// The table of Arm's order, as the machine has it: rows are earlier instructions.
    fn keeps_order(&self, first: &Instruction<'_>, second: &Instruction<'_>) -> bool {
        let word = |i: &Instruction<'_>| match *i.op {
            Op::Store { .. } => Some(i.word),
            Op::Load { word, .. } | Op::Await { word, .. } => Some(word),
            _ => None,
        };
        let cleaned = |i: &Instruction<'_>| match *i.op {
            Op::Clean(line, _) => Some(line),
            _ => None,
        };
        let touched = |i: &Instruction<'_>| word(i).map(|word| self.line(word));
        let loads = |i: &Instruction<'_>| matches!(i.op, Op::Load { .. } | Op::Await { .. });
        let acquires = |i: &Instruction<'_>| {
            matches!(i.op, Op::Load { acquire: true, .. } | Op::Await { acquire: true, .. })
        };
        let releases = |i: &Instruction<'_>| {
            matches!(i.op, Op::Store { how: How::Release, .. } | Op::Unlock(_))
        };
        let stops =
            |i: &Instruction<'_>| matches!(i.op, Op::Fence(Fence::Dsb | Fence::Dmb) | Op::Told);
        let is_plain_fence =
            |i: &Instruction<'_>, fence| matches!(i.op, Op::Fence(f) if *f == fence);
        if stops(first) || stops(second) || is_plain_fence(first, Fence::DmbLoad) {
            return true;
        }
        if is_plain_fence(second, Fence::DmbLoad) {
            return loads(first) || acquires(first) || matches!(first.op, Op::Lock(_));
        }
        if is_plain_fence(second, Fence::DmbStore) {
            return is_store(first.op) || matches!(first.op, Op::Lock(_));
        }
        if is_plain_fence(first, Fence::DmbStore) {
            return is_store(second.op);
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

fn value_of<const W: usize, const L: usize, const D: usize>(
    state: &State<W, L, D>,
    value: Value,
) -> u8 {
    match value {
        Value::Constant(value) => value,
        Value::Register(register) => state.registers[usize::from(register)],
    }
}
