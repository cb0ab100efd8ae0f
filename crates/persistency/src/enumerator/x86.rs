//! x86: threads with store buffers.
//!
//! A thread executes its instructions in order. Loads, `mfence` and locked instructions are executed at once; stores, flushes
//! and `sfence` enter the thread's buffer, which they leave in any order in which each passes the entries before it.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHashSet;

use super::super::happening::Fence;
use super::super::model::{Clflush, Domain, Model};
use super::super::prefixes;
use super::super::program::{How, Op, Outcome, Program, REGISTERS_MAX, UNSET, Value};
use super::memory::{Memory, Queue};
use super::{nothing_yet, reach};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    kind: Kind,
    /// The number of its instruction.
    at: u8,
    /// The word, or the lock.
    word: u8,
    line: u8,
    value: u8,
}

impl Entry {
    const fn new(kind: Kind, at: u8) -> Entry {
        Entry { kind, at, word: 0, line: 0, value: 0 }
    }

    /// The entry as a number that is not 0, with these bits for instruction, word, line and value.
    fn packed(self, bits: [u32; 4]) -> u32 {
        let fields = [self.at, self.word, self.line, self.value];
        let fields = fields.into_iter().zip(bits);
        fields.fold(self.kind as u32 + 1, |packed, (field, bits)| packed << bits | u32::from(field))
    }

    fn unpacked(packed: u32, bits: [u32; 4]) -> Entry {
        let mut rest = packed;
        let [value, line, word, at] = [bits[3], bits[2], bits[1], bits[0]].map(|bits| {
            let field = rest & ((1 << bits) - 1);
            rest >>= bits;
            field as u8
        });
        let kind = match rest {
            1 => Kind::Store,
            2 => Kind::NonTemporal,
            3 => Kind::Unlock,
            4 => Kind::WriteBack,
            5 => Kind::Flush,
            6 => Kind::Sfence,
            _ => unreachable!("a place of the buffer that is taken"),
        };
        Entry { kind, at, word, line, value }
    }
}

/// A store buffer, the oldest entry first.
pub trait Buffer: Copy + Eq + Hash + Debug {
    /// No entry.
    const EMPTY: Self;

    /// The number of entries.
    fn count(&self) -> usize;

    /// The entry at a place less than the number.
    fn get(&self, place: usize) -> Entry;

    /// Appends an entry.
    fn push(&mut self, entry: Entry);

    /// Removes the entry at a place.
    fn remove(&mut self, place: usize);
}

/// Up to four entries of 16 bits each, the oldest the lowest: of programs that are small.
impl Buffer for u64 {
    const EMPTY: Self = 0;

    fn count(&self) -> usize {
        (u64::BITS - self.leading_zeros()).div_ceil(16) as usize
    }

    fn get(&self, place: usize) -> Entry {
        Entry::unpacked((self >> (16 * place)) as u32 & 0xffff, SHORT)
    }

    fn push(&mut self, entry: Entry) {
        *self |= u64::from(entry.packed(SHORT)) << (16 * self.count());
    }

    fn remove(&mut self, place: usize) {
        let later = !0 << (16 * place);
        *self = *self & !later | *self >> 16 & later;
    }
}

/// The bits of instruction, word, line and value in an entry of a small program.
const SHORT: [u32; 4] = [4, 2, 2, 5];
/// The bits of the same in any program.
const LONG: [u32; 4] = [6, 5, 3, 8];

/// Up to `BUFFER` entries of all programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Long<const BUFFER: usize> {
    entries: [u32; BUFFER],
    count: u8,
}

impl<const BUFFER: usize> Buffer for Long<BUFFER> {
    const EMPTY: Self = Long { entries: [0; BUFFER], count: 0 };

    fn count(&self) -> usize {
        usize::from(self.count)
    }

    fn get(&self, place: usize) -> Entry {
        Entry::unpacked(self.entries[place], LONG)
    }

    fn push(&mut self, entry: Entry) {
        self.entries[usize::from(self.count)] = entry.packed(LONG);
        self.count += 1;
    }

    fn remove(&mut self, place: usize) {
        self.entries.copy_within(place + 1.., place);
        self.entries[BUFFER - 1] = 0;
        self.count -= 1;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State<Q, B, const WORDS: usize, const LINES: usize, const THREADS: usize> {
    memory: Memory<Q, WORDS, LINES>,
    /// The instruction that each thread executes next.
    next: [u8; THREADS],
    buffers: [B; THREADS],
    registers: [u8; REGISTERS_MAX],
    locks: u8,
}

impl<Q: Queue, B: Buffer, const W: usize, const L: usize, const T: usize> Hash
    for State<Q, B, W, L, T>
{
    /// Locks are left out: they hardly differ alone.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.memory.hash(hasher);
        self.buffers.iter().for_each(|buffer| buffer.hash(hasher));
        let next = self.next.iter().fold(0, |all, &next| all << 8 ^ u64::from(next));
        hasher.write_u64(u64::from_le_bytes(self.registers).rotate_left(4) ^ next);
    }
}

#[derive(Debug)]
struct Machine {
    program: Program,
    is_amd: bool,
    caches_survive: bool,
    told_drains: bool,
}

pub fn enumerate<Q: Queue, B: Buffer, const W: usize, const L: usize, const T: usize>(
    model: &Model,
    program: &Program,
) -> FxHashSet<Outcome> {
    let machine = Machine::new(model, program.clone());
    let start = machine.start::<Q, B, W, L, T>();
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

    fn start<Q: Queue, B: Buffer, const W: usize, const L: usize, const T: usize>(
        &self,
    ) -> State<Q, B, W, L, T> {
        State {
            memory: Memory::new(&self.program),
            next: [0; T],
            buffers: [B::EMPTY; T],
            registers: [UNSET; REGISTERS_MAX],
            locks: 0,
        }
    }

    /// Finds the states after an entry has left a persist queue or a store buffer.
    fn drained<Q: Queue, B: Buffer, const W: usize, const L: usize, const T: usize>(
        &self,
        state: &State<Q, B, W, L, T>,
        found: &mut impl FnMut(State<Q, B, W, L, T>),
    ) {
        for memory in (0..L).filter_map(|line| state.memory.persisted(line)) {
            found(State { memory, ..*state });
        }
        for thread in 0..T {
            let places = 0..state.buffers[thread].count();
            places.filter_map(|place| self.left(state, thread, place)).for_each(&mut *found);
        }
    }

    fn outcome<Q: Queue, B: Buffer, const W: usize, const L: usize, const T: usize>(
        &self,
        state: &State<Q, B, W, L, T>,
    ) -> Outcome {
        let mut threads = self.program.threads.iter().zip(state.next);
        let done = threads.all(|(ops, next)| usize::from(next) == ops.len());
        state.memory.outcome(state.registers, done)
    }

    /// The state after a thread's next instruction, if it can be executed.
    fn executed<Q: Queue, B: Buffer, const W: usize, const L: usize, const T: usize>(
        &self,
        state: &State<Q, B, W, L, T>,
        thread: usize,
    ) -> Option<State<Q, B, W, L, T>> {
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
        let entries = &state.buffers[thread];
        let buffer = (0..entries.count()).map(|place| entries.get(place));
        let has_waited = || state.memory.has_no_marker_of(thread as u8);
        let is_past = |entry: Entry| self.is_amd && entry.kind == Kind::Flush;
        let may_lock = || has_waited() && buffer.clone().all(is_past);
        let is_empty = || has_waited() && *entries == B::EMPTY;
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
                        if !may_lock() {
                            return None;
                        }
                        self.write(&mut next.memory, line, word, value);
                    } else {
                        next.buffers[thread].push(Entry { kind, at, word, line, value });
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
                next.buffers[thread].push(Entry { line, ..Entry::new(Kind::WriteBack, at) })
            }
            Op::Flush(line) => {
                next.buffers[thread].push(Entry { line, ..Entry::new(Kind::Flush, at) })
            }
            Op::Fence(Fence::Store) => next.buffers[thread].push(Entry::new(Kind::Sfence, at)),
            Op::Fence(Fence::Full) if !is_empty() => return None,
            Op::Fence(Fence::Locked) if !may_lock() => return None,
            Op::Told if self.told_drains && !is_empty() => return None,
            Op::Fence(_) | Op::Told => {}
            Op::Lock(lock) => {
                if !may_lock() || state.locks >> lock & 1 != 0 {
                    return None;
                }
                next.locks |= 1 << lock;
            }
            Op::Unlock(lock) => {
                next.buffers[thread].push(Entry { word: lock, ..Entry::new(Kind::Unlock, at) })
            }
            Op::Clean(..) | Op::If { .. } => unreachable!("no instruction of x86"),
        }
        Some(next)
    }

    /// The state after an entry has left a thread's buffer, if it passes those before it.
    fn left<Q: Queue, B: Buffer, const W: usize, const L: usize, const T: usize>(
        &self,
        state: &State<Q, B, W, L, T>,
        thread: usize,
        place: usize,
    ) -> Option<State<Q, B, W, L, T>> {
        let buffer = &state.buffers[thread];
        let entry = buffer.get(place);
        if !(0..place).all(|earlier| self.passes(&entry, &buffer.get(earlier))) {
            return None;
        }
        let mut next = *state;
        next.buffers[thread].remove(place);
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

    fn write<Q: Queue, const W: usize, const L: usize>(
        &self,
        memory: &mut Memory<Q, W, L>,
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
    type State = State<u64, u64, 4, 2, 2>;

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
