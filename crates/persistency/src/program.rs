//! Small programs as data: a few threads of a few steps on a few words.
//!
//! Words have numbers, and lie in lines by number; values are bytes, which is enough to tell versions apart. A step is one
//! instruction; one that stores to several words makes its stores in any order.

use std::fmt;

use crate::happening::{Fence, Point};

/// The most words of a program.
pub const WORDS_MAX: usize = 20;

/// The most lines of a program.
pub const LINES_MAX: usize = 6;

/// The most registers of a program.
pub const REGISTERS_MAX: usize = 8;

/// The most threads of a program.
pub const THREADS_MAX: usize = 4;

/// The most stores of a program to one line.
pub const STORES_MAX: usize = 16;

/// The most steps of a program, each store of an instruction counted.
pub const STEPS_MAX: usize = 48;

/// The most words to which one instruction stores: its stores have no order, and all orders are explored.
pub const PARTS_MAX: usize = 6;

/// The most states of a program that are visited.
pub const STATES_MAX: usize = 2_000_000;

/// The most locks of a program.
pub const LOCKS_MAX: usize = 4;

/// The value of a register that no load has set.
pub const UNSET: u8 = u8::MAX;

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The line of each word.
    pub lines: Vec<u8>,
    /// The value of each word at first.
    pub initial: Vec<u8>,
    /// The steps of each thread.
    pub threads: Vec<Vec<Op>>,
}

/// A value that a step stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A constant, less than [`UNSET`].
    Constant(u8),
    /// The content of a register, which an earlier load of the thread sets.
    Register(u8),
}

impl From<u8> for Value {
    fn from(value: u8) -> Value {
        Value::Constant(value)
    }
}

/// The instruction of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// A usual store.
    Cached,
    /// A non-temporal store.
    NonTemporal,
    /// A locked instruction.
    Locked,
    /// A store-release of Arm.
    Release,
}

/// A step of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A store of one value to some words, in no order among them.
    Store {
        /// The words.
        words: Vec<u8>,
        /// The value.
        value: Value,
        /// The instruction.
        how: How,
    },
    /// A load to a register.
    Load {
        /// The word.
        word: u8,
        /// The register.
        into: u8,
        /// True for a load-acquire of Arm.
        acquire: bool,
    },
    /// A load that is repeated until it gives a value.
    Await {
        /// The word.
        word: u8,
        /// The value.
        value: u8,
        /// True for a load-acquire of Arm.
        acquire: bool,
    },
    /// `clwb` or `clflushopt` of a line.
    WriteBack(u8),
    /// `clflush` of a line.
    Flush(u8),
    /// A clean of a line on Arm.
    Clean(u8, Point),
    /// A fence.
    Fence(Fence),
    /// Takes a lock, by a locked instruction or a load-acquire; its word is not persistent.
    Lock(u8),
    /// Releases a lock by a store, a store-release on Arm.
    Unlock(u8),
    /// A system call that sends something out.
    Told,
    /// A step that is done if a register holds a value.
    If {
        /// The register, which an earlier load of the thread sets.
        register: u8,
        /// The value.
        value: u8,
        /// The step, no condition itself.
        then: Box<Op>,
    },
}

/// A program that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program has {found} {what}; allowed are up to {most}")]
pub struct TooLarge {
    /// The things that are counted.
    pub what: &'static str,
    /// Their number.
    pub found: usize,
    /// The largest number.
    pub most: usize,
}

impl Program {
    /// A program on words that hold 0 at first, with the line of each.
    ///
    /// # Errors
    /// More of something than is allowed.
    pub fn new(lines: Vec<u8>, threads: Vec<Vec<Op>>) -> Result<Program, TooLarge> {
        let initial = vec![0; lines.len()];
        let program = Program { lines, initial, threads };
        program.check()?;
        Ok(program)
    }

    /// Checks the sizes.
    ///
    /// # Errors
    /// More of something than is allowed.
    pub fn check(&self) -> Result<(), TooLarge> {
        let line_count = self.lines.iter().map(|&line| usize::from(line) + 1).max().unwrap_or(0);
        let ops = || self.threads.iter().flatten().map(Op::action);
        let registers = ops().map(|op| match op {
            Op::Load { into, .. } => usize::from(*into) + 1,
            _ => 0,
        });
        let locks = ops().map(|op| match op {
            Op::Lock(lock) | Op::Unlock(lock) => usize::from(*lock) + 1,
            _ => 0,
        });
        let constants = ops().map(|op| match op {
            Op::Store { value: Value::Constant(value), .. } | Op::Await { value, .. } => *value,
            _ => 0,
        });
        let stores = |line: usize| ops().map(|op| op.stores_to(&self.lines, line)).sum::<usize>();
        let counts = [
            ("words", self.lines.len(), WORDS_MAX),
            ("lines", line_count, LINES_MAX),
            ("threads", self.threads.len(), THREADS_MAX),
            ("registers", registers.max().unwrap_or(0), REGISTERS_MAX),
            ("locks", locks.max().unwrap_or(0), LOCKS_MAX),
            ("steps", ops().map(Op::steps).sum(), STEPS_MAX),
            ("words in one instruction", ops().map(Op::steps).max().unwrap_or(0), PARTS_MAX),
            ("in its largest value", constants.max().unwrap_or(0).into(), usize::from(UNSET) - 1),
            ("stores to one line", (0..line_count).map(stores).max().unwrap_or(0), STORES_MAX),
        ];
        match counts.into_iter().find(|&(_, found, most)| found > most) {
            Some((what, found, most)) => Err(TooLarge { what, found, most }),
            None => Ok(()),
        }
    }
}

impl Op {
    /// The step, done in any case or under a condition.
    pub fn action(&self) -> &Op {
        match self {
            Op::If { then, .. } => then,
            op => op,
        }
    }

    /// Steps that it counts for.
    fn steps(&self) -> usize {
        match self {
            Op::Store { words, .. } => words.len(),
            _ => 1,
        }
    }

    fn stores_to(&self, lines: &[u8], line: usize) -> usize {
        match self {
            Op::Store { words, .. } => {
                words.iter().filter(|&&word| usize::from(lines[usize::from(word)]) == line).count()
            }
            _ => 0,
        }
    }
}

/// An image that recovery may find, with what the threads knew when power failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Outcome {
    /// The words.
    pub image: [u8; WORDS_MAX],
    /// The registers, [`UNSET`] where the load has not been done.
    pub registers: [u8; REGISTERS_MAX],
    /// True if it may be found although all threads have executed all instructions: stores, flushes and `sfence` may be in store
    /// buffers even then. Each outcome is there with false, too: at some instant.
    pub done: bool,
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = if self.done { ", done" } else { "" };
        write!(f, "{:?} with registers {:?}{done}", self.image, self.registers)
    }
}
