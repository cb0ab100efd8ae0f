//! x86: threads with store buffers.
//!
//! A thread executes its instructions in order. Loads, `mfence` and locked instructions are executed at once; stores, flushes
//! and `sfence` enter the thread's buffer, which they leave in any order in which each passes the entries before it.

use rustc_hash::FxHashSet;

use super::super::happening::Fence;
use super::super::model::{Clflush, Domain, Model};
use super::super::prefixes::{self, STEPS};
use super::super::program::{How, Op, Outcome, Program, REGISTERS_MAX, UNSET, Value};
use super::memory::Memory;
use super::{nothing_yet, reach};

/// Tells if an instruction stores to one word at most.
pub fn has_one_part(op: &Op) -> bool {
    !matches!(op.action(), Op::Store { words, .. } if words.len() > 1)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Store,
    NonTemporal,
    /// A store to a word that is not persistent: it releases a lock.
    Unlock,
    WriteBack,
    Flush,
    Sfence,
}

/// An entry of a store buffer.
#[derive(Clone, Copy)]
struct Entry {
    kind: Kind,
    /// The number of its instruction.
    at: u8,
    /// The word, or the lock.
    word: u8,
    line: u8,
    value: u8,
}

/// An entry as a number, in which states are compared and hashed faster.
type Packed = u32;

const NOTHING: Packed = 0;

impl Entry {
    const fn new(kind: Kind, at: u8) -> Entry {
        Entry { kind, at, word: 0, line: 0, value: 0 }
    }

    fn packed(self) -> Packed {
        let fields = [(self.at, 6), (self.word, 5), (self.line, 3), (self.value, 8)];
        fields
            .iter()
            .fold(self.kind as u32 + 1, |packed, &(field, bits)| packed << bits | u32::from(field))
    }

    fn unpacked(packed: Packed) -> Entry {
        let field = |shift: u32, bits: u32| (packed >> shift & ((1 << bits) - 1)) as u8;
        let kind = match packed >> 22 {
            1 => Kind::Store,
            2 => Kind::NonTemporal,
            3 => Kind::Unlock,
            4 => Kind::WriteBack,
            5 => Kind::Flush,
            6 => Kind::Sfence,
            _ => unreachable!("a place of the buffer that is taken"),
        };
        Entry { kind, at: field(16, 6), word: field(11, 5), line: field(8, 3), value: field(0, 8) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State<
    const WORDS: usize,
    const LINES: usize,
    const DEPTH: usize,
    const THREADS: usize,
    const BUFFER: usize,
> {
    memory: Memory<WORDS, LINES, DEPTH>,
    /// The instruction that each thread executes next.
    next: [u8; THREADS],
    buffers: [[Packed; BUFFER]; THREADS],
    counts: [u8; THREADS],
    registers: [u8; REGISTERS_MAX],
    locks: u8,
}

#[derive(Debug)]
struct Machine {
    program: Program,
    is_amd: bool,
    caches_survive: bool,
    told_drains: bool,
}

pub fn enumerate<
    const WORDS: usize,
    const LINES: usize,
    const DEPTH: usize,
    const THREADS: usize,
    const BUFFER: usize,
>(
    model: &Model,
    program: &Program,
) -> FxHashSet<Outcome> {
    let machine = Machine::new(model, program.clone());
    let start = machine.start::<WORDS, LINES, DEPTH, THREADS, BUFFER>();
    let mut outcomes = FxHashSet::default();
    reach(start, |state, next| {
        let outcome = machine.outcome(state);
        outcomes.extend([outcome, Outcome { done: false, ..outcome }]);
        machine.drained(state, &mut |state| next.push(state));
        for thread in 0..program.threads.len() {
            next.extend(machine.executed(state, thread));
        }
    });
    outcomes
}

impl Machine {
    fn new(model: &Model, program: Program) -> Machine {
        Machine {
            program,
            is_amd: model.clflush == Clflush::ByFullFence,
            caches_survive: model.domain == Domain::Caches,
            told_drains: model.told_drains,
        }
    }

    fn start<const W: usize, const L: usize, const D: usize, const T: usize, const B: usize>(
        &self,
    ) -> State<W, L, D, T, B> {
        State {
            memory: Memory::new(&self.program),
            next: [0; T],
            buffers: [[NOTHING; B]; T],
            counts: [0; T],
            registers: [UNSET; REGISTERS_MAX],
            locks: 0,
        }
    }

    /// Finds the states after an entry has left a persist queue or a store buffer.
    fn drained<const W: usize, const L: usize, const D: usize, const T: usize, const B: usize>(
        &self,
        state: &State<W, L, D, T, B>,
        found: &mut impl FnMut(State<W, L, D, T, B>),
    ) {
        for memory in (0..L).filter_map(|line| state.memory.persisted(line)) {
            found(State { memory, ..*state });
        }
        for thread in 0..T {
            let places = 0..usize::from(state.counts[thread]);
            places.filter_map(|place| self.left(state, thread, place)).for_each(&mut *found);
        }
    }

    fn outcome<const W: usize, const L: usize, const D: usize, const T: usize, const B: usize>(
        &self,
        state: &State<W, L, D, T, B>,
    ) -> Outcome {
        let mut threads = self.program.threads.iter().zip(state.next);
        let done = threads.all(|(ops, next)| usize::from(next) == ops.len());
        state.memory.outcome(state.registers, done)
    }

    /// The state after a thread's next instruction, if it can be executed.
    fn executed<const W: usize, const L: usize, const D: usize, const T: usize, const B: usize>(
        &self,
        state: &State<W, L, D, T, B>,
        thread: usize,
    ) -> Option<State<W, L, D, T, B>> {
        let at = state.next[thread];
        let op = self.program.threads[thread].get(usize::from(at))?;
        let mut next = *state;
        next.next[thread] += 1;
        let op = match op {
            Op::If { register, value, .. } if state.registers[usize::from(*register)] != *value => {
                return Some(next);
            }
            Op::If { then, .. } => then,
            op => op,
        };
        let packed = &state.buffers[thread][..usize::from(state.counts[thread])];
        let buffer = packed.iter().map(|&entry| Entry::unpacked(entry));
        let has_waited = state.memory.has_no_marker_of(thread as u8);
        let is_past = |entry: Entry| self.is_amd && entry.kind == Kind::Flush;
        let may_lock = has_waited && buffer.clone().all(is_past);
        let is_empty = has_waited && packed.is_empty();
        let read = |word: u8| {
            let stores = |entry: &Entry| {
                matches!(entry.kind, Kind::Store | Kind::NonTemporal) && entry.word == word
            };
            let own = buffer.clone().rev().find(stores);
            own.map_or_else(|| state.memory.load(word), |entry| entry.value)
        };
        match *op {
            Op::Store { ref words, value, how } => {
                let value = match value {
                    Value::Constant(value) => value,
                    Value::Register(register) => state.registers[usize::from(register)],
                };
                let kind = if how == How::NonTemporal { Kind::NonTemporal } else { Kind::Store };
                for &word in words {
                    let line = self.program.lines[usize::from(word)];
                    if how == How::Locked {
                        if !may_lock {
                            return None;
                        }
                        self.write(&mut next.memory, line, word, value);
                    } else {
                        next.push(thread, Entry { kind, at, word, line, value });
                    }
                }
            }
            Op::Load { word, into, .. } => next.registers[usize::from(into)] = read(word),
            Op::Await { word, value, .. } => {
                if read(word) != value {
                    return None;
                }
            }
            Op::WriteBack(line) => {
                next.push(thread, Entry { line, ..Entry::new(Kind::WriteBack, at) })
            }
            Op::Flush(line) => next.push(thread, Entry { line, ..Entry::new(Kind::Flush, at) }),
            Op::Fence(Fence::Store) => next.push(thread, Entry::new(Kind::Sfence, at)),
            Op::Fence(Fence::Full) if !is_empty => return None,
            Op::Fence(Fence::Locked) if !may_lock => return None,
            Op::Told if self.told_drains && !is_empty => return None,
            Op::Fence(_) | Op::Told => {}
            Op::Lock(lock) => {
                if !may_lock || state.locks >> lock & 1 != 0 {
                    return None;
                }
                next.locks |= 1 << lock;
            }
            Op::Unlock(lock) => {
                next.push(thread, Entry { word: lock, ..Entry::new(Kind::Unlock, at) })
            }
            Op::Clean(..) | Op::If { .. } => unreachable!("no instruction of x86"),
        }
        Some(next)
    }

    /// The state after an entry has left a thread's buffer, if it passes those before it.
    fn left<const W: usize, const L: usize, const D: usize, const T: usize, const B: usize>(
        &self,
        state: &State<W, L, D, T, B>,
        thread: usize,
        place: usize,
    ) -> Option<State<W, L, D, T, B>> {
        let entry = Entry::unpacked(state.buffers[thread][place]);
        let before = &state.buffers[thread][..place];
        if !before.iter().all(|&earlier| self.passes(&entry, &Entry::unpacked(earlier))) {
            return None;
        }
        let mut next = *state;
        next.buffers[thread].copy_within(place + 1.., place);
        next.buffers[thread][B - 1] = NOTHING;
        next.counts[thread] -= 1;
        let memory = &mut next.memory;
        match entry.kind {
            Kind::Store => self.write(memory, entry.line, entry.word, entry.value),
            Kind::NonTemporal if !memory.is_drained(entry.line) => return None,
            Kind::NonTemporal => memory.write_through(entry.word, entry.value),
            Kind::Unlock => next.locks &= !(1 << entry.word),
            Kind::WriteBack if self.caches_survive => {}
            Kind::WriteBack => memory.mark(entry.line, thread as u8),
            Kind::Flush if !memory.is_drained(entry.line) => return None,
            Kind::Sfence if !memory.has_no_marker_of(thread as u8) => return None,
            Kind::Flush | Kind::Sfence => {}
        }
        Some(next)
    }

    fn write<const W: usize, const L: usize, const D: usize>(
        &self,
        memory: &mut Memory<W, L, D>,
        line: u8,
        word: u8,
        value: u8,
    ) {
        if self.caches_survive {
            memory.write_through(word, value);
        } else {
            memory.write(line, word, value);
        }
    }

    /// Tells if an entry may leave the buffer before an earlier one: the table of reorderings of Px86.
    fn passes(&self, later: &Entry, earlier: &Entry) -> bool {
        use Kind::{Flush, NonTemporal, Sfence, Store, Unlock, WriteBack};
        let elsewhere = later.line != earlier.line;
        let in_one_instruction = later.at == earlier.at;
        match (later.kind, earlier.kind) {
            (Flush, _) | (_, Flush) if self.is_amd => true,
            (Sfence, _) | (_, Sfence) => false,
            (_, WriteBack) if later.kind != Flush => true,
            (Store | NonTemporal, Store | NonTemporal) if in_one_instruction => true,
            (Store | Unlock, Store | Unlock) => false,
            (Store | Unlock, Flush) | (Flush, Store | Unlock | Flush) => false,
            // A lock lies in a line of its own.
            (Unlock, _) | (_, Unlock) => true,
            _ => elsewhere,
        }
    }
}

impl<const W: usize, const L: usize, const D: usize, const T: usize, const B: usize>
    State<W, L, D, T, B>
{
    fn push(&mut self, thread: usize, entry: Entry) {
        let count = &mut self.counts[thread];
        self.buffers[thread][usize::from(*count)] = entry.packed();
        *count += 1;
    }
}

/// The machine of x86 for programs that grow: two threads of one-word instructions, on two lines.
#[derive(Debug)]
pub struct Growing(Machine);

impl Growing {
    /// No step yet of programs on these lines, of words that hold 0.
    pub fn new(model: &Model, lines: &[u8]) -> Growing {
        Growing(Machine::new(model, nothing_yet(lines)))
    }
}

impl prefixes::Machine for Growing {
    type State = State<4, 2, { 2 * STEPS }, 2, STEPS>;

    const IN_ORDER: bool = true;

    fn replace(&mut self, thread: usize, at: usize, op: &Op) {
        self.0.program.threads[thread][at] = op.clone();
    }

    fn start(&self) -> Self::State {
        self.0.start()
    }

    fn step(&self, state: &Self::State, thread: usize, at: usize) -> Option<Self::State> {
        debug_assert_eq!(usize::from(state.next[thread]), at);
        self.0.executed(state, thread)
    }

    fn drift(&self, state: &Self::State, found: &mut impl FnMut(Self::State)) {
        self.0.drained(state, found);
    }

    fn outcomes(&self, state: &Self::State, found: &mut impl FnMut(Outcome)) {
        found(state.memory.outcome(state.registers, false));
    }

    fn is_done(&self, state: &Self::State, lengths: [usize; 2]) -> bool {
        state.next.map(usize::from) == lengths
    }

    /// A program is done when all its instructions have been executed.
    fn is_awaited(&self, _: usize, _: usize) -> bool {
        true
    }
}
