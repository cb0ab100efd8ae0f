//! Program of a simulated thread: a stream of operations on words, transactions and locks.
//!
//! A [`Program`] is pulled by a core, one [`Op`] at a time, and is handed the value of each load when
//! the core has it. Workloads are written as ordinary Rust over the [`Memory`] trait; [`spawn`] turns
//! such a function into a program by running it on a stack of its own, suspended at every load. (What
//! it does between two loads needs no answer and is handed over at once, in order; so programs share
//! nothing but simulated memory.) The same code runs without a machine over [`Direct`], which is how data structures are populated
//! before a measurement and walked after a recovery.
//!
//! Pointers carry where they came from: a [`Ptr`] that was loaded remembers the load, so that an
//! out-of-order core knows which accesses must wait for which (pointer chasing), without guessing.

use std::cell::RefCell;
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::request::WriteClass;
use graven_base::host;
use graven_base::memory::{Addr, Image, LineAddr, WORD_BYTES};
use graven_persistency::cut::Operation;

/// A program's number for one of its locks, starting at 0.
pub type LockId = u32;

/// An address together with the load that produced it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ptr {
    /// The byte address.
    pub addr: Addr,
    /// Sequence number (from 1, per thread, modulo 2^32) of the load that returned this pointer; 0 for an
    /// address the thread knew without loading it.
    pub origin: u32,
}

impl Ptr {
    /// The null pointer.
    pub const NULL: Ptr = Ptr::known(Addr(0));

    /// A pointer that the thread knows without a load.
    pub const fn known(addr: Addr) -> Ptr {
        Ptr { addr, origin: 0 }
    }

    /// Returns true if the address is zero.
    pub const fn is_null(self) -> bool {
        self.addr.0 == 0
    }

    /// The field `words` words further up; waits for the same load.
    pub const fn word(self, words: u64) -> Ptr {
        Ptr { addr: Addr(self.addr.0 + words * WORD_BYTES), origin: self.origin }
    }
}

/// Two pointers are equal if their addresses are, wherever they came from.
impl PartialEq for Ptr {
    fn eq(&self, other: &Ptr) -> bool {
        self.addr == other.addr
    }
}
impl Eq for Ptr {}

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Load the word at `at`; the program receives its value.
    Load {
        /// Address.
        at: Ptr,
    },
    /// Store `value` to the word at `at`.
    Store {
        /// Address.
        at: Ptr,
        /// The new word.
        value: u64,
    },
    /// The same, with the hint that the word will not be used again soon (movnti): where the design has a way
    /// for such stores, it bypasses the caches.
    StoreNonTemporal {
        /// Address.
        at: Ptr,
        /// The new word.
        value: u64,
    },
    /// `instructions` instructions that touch no memory.
    Compute {
        /// Number of instructions.
        instructions: u32,
    },
    /// A failure-atomic region begins.
    TxBegin,
    /// The transaction ends: the thread proceeds when the design has acknowledged the commit.
    TxEnd,
    /// Acquire a lock, waiting for it if need be (first come, first served).
    Lock {
        /// The lock.
        lock: LockId,
    },
    /// Release it.
    Unlock {
        /// The lock.
        lock: LockId,
    },
    /// An instruction for persistence or order: of a program that says by itself what must be durable when, or of the code of a
    /// design that is software.
    Persist(Persist),
    /// Not an instruction, and no program has it: the running transaction may be durable when what comes after it in
    /// the store queue takes effect.
    Ending,
    /// Not an instruction: what is done to the machine at this point of a directed test.
    Disturb(Disturbance),
    /// The thread has finished.
    Done,
}

/// Instructions for persistence or order. They retire into the thread's store queue and take effect in program order
/// there; loads and what touches no memory go past them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persist {
    /// A dirty line of PM is written back and stays (clwb).
    WriteBack(LineAddr),
    /// Later stores and persistence instructions wait until all write-backs and uncacheable stores of the thread
    /// before it are durable (sfence).
    Fence,
    /// A store of a word of PM that no cache holds, through the core's write-combining buffer (movnti to
    /// write-combining memory).
    StoreUncached {
        /// Address.
        addr: Addr,
        /// The new word.
        value: u64,
        /// Class of the writes.
        class: WriteClass,
    },
    /// A store of a design's code to a word of the log region, through the caches. The program has none.
    StoreOwn {
        /// Address.
        addr: Addr,
        /// The new word.
        value: u64,
    },
    /// An operation that no processor of today has and a design brings along
    /// ([`PersistDesign`](crate::design::PersistDesign)).
    Order(Operation),
}

/// Intervention of a directed test at some point of a thread, when everything that the thread did
/// before has been performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// A line is evicted from a level and those inside it: 1 the L1s, 2 the L2s, 3 the LLC.
    Evict(LineAddr, u8),
    /// A line is written back and stays (clwb).
    WriteBack(LineAddr),
    /// The design's periodic work begins.
    Maintenance,
    /// The thread waits until memory, and the design's work for finished transactions, are idle.
    Settle,
    /// Marks a crash step for those who crash the run; the thread proceeds.
    Crash(u32),
    /// Releases threads that wait for this number.
    Signal(u32),
    /// The thread waits until this number was signalled.
    Await(u32),
}

/// A source of operations for one hardware thread.
pub trait Program {
    /// The next operation. `value` is what the last [`Op::Load`] returned (0 after any other).
    /// After [`Op::Done`] it is not called again.
    fn next(&mut self, value: u64) -> Op;

    /// The number, from 0, of the step that its last operation comes from, for messages; none of a program that does not
    /// number its steps.
    fn step(&self) -> Option<usize> {
        None
    }
}

/// Word-granular reading of memory, as searches and checkers need it.
pub trait Load {
    /// The word at `at`.
    fn load(&mut self, at: Ptr) -> u64;

    /// The pointer stored at `at`; remembers that it was loaded.
    fn load_ptr(&mut self, at: Ptr) -> Ptr;

    /// Counts instructions that touch no memory (comparisons, hashing, key generation).
    fn compute(&mut self, instructions: u32);
}

/// Word-granular access to memory, as data structures see it.
pub trait Memory: Load {
    /// Stores a word.
    fn store(&mut self, at: Ptr, value: u64);

    /// Stores a word that will not be used again soon.
    fn store_non_temporal(&mut self, at: Ptr, value: u64) {
        self.store(at, value);
    }

    /// Stores a pointer.
    fn store_ptr(&mut self, at: Ptr, value: Ptr) {
        self.store(at, value.addr.0);
    }
}

impl Load for &Image {
    #[inline]
    fn load(&mut self, at: Ptr) -> u64 {
        Image::load(self, at.addr)
    }

    #[inline]
    fn load_ptr(&mut self, at: Ptr) -> Ptr {
        Ptr::known(Addr(Image::load(self, at.addr)))
    }

    fn compute(&mut self, _instructions: u32) {}
}

/// [`Memory`] straight on an image: no machine, no time.
pub struct Direct<'a> {
    image: &'a mut Image,
}

impl<'a> Direct<'a> {
    /// Access to `image`.
    pub fn new(image: &'a mut Image) -> Self {
        Self { image }
    }
}

impl Load for Direct<'_> {
    #[inline]
    fn load(&mut self, at: Ptr) -> u64 {
        self.image.load(at.addr)
    }

    #[inline]
    fn load_ptr(&mut self, at: Ptr) -> Ptr {
        Ptr::known(Addr(self.image.load(at.addr)))
    }

    fn compute(&mut self, _instructions: u32) {}
}

impl Memory for Direct<'_> {
    #[inline]
    fn store(&mut self, at: Ptr, value: u64) {
        self.image.store(at.addr, value);
    }
}

/// Operations that a running function has decided on and its core has not yet asked for.
type Decided = Rc<RefCell<Vec<Op>>>;

/// Most operations that a function may be ahead of its core.
const DECIDED_MAX: usize = 64;

/// A running thread's handle: [`Memory`], and transactions and locks besides.
pub struct Thread<'a> {
    yielder: &'a Yielder<u64, ()>,
    decided: Decided,
    instructions: u32,
    loads: u32,
}

impl Thread<'_> {
    /// Decides on an operation that needs no answer.
    #[inline]
    fn issue(&mut self, op: Op) {
        let mut decided = self.decided.borrow_mut();
        if self.instructions > 0 {
            let instructions = std::mem::take(&mut self.instructions);
            decided.push(Op::Compute { instructions });
        }
        decided.push(op);
        if decided.len() >= DECIDED_MAX {
            drop(decided);
            self.yielder.suspend(());
        }
    }

    /// Begins a failure-atomic region.
    pub fn tx_begin(&mut self) {
        self.issue(Op::TxBegin);
    }

    /// Commits it. Returns at once: the function runs ahead of its core, up to its next load or 64
    /// operations, so the return says neither that the commit is acknowledged nor that simulated time has
    /// come so far. Threads must not share Rust state: it would be seen too early.
    pub fn tx_end(&mut self) {
        self.issue(Op::TxEnd);
    }

    /// Acquires a lock. Returns at once, as [`Thread::tx_end`] does; what follows is executed when the
    /// thread has it.
    pub fn lock(&mut self, lock: LockId) {
        self.issue(Op::Lock { lock });
    }

    /// Releases a lock.
    pub fn unlock(&mut self, lock: LockId) {
        self.issue(Op::Unlock { lock });
    }
}

impl Load for Thread<'_> {
    #[inline]
    fn load(&mut self, at: Ptr) -> u64 {
        self.loads = self.loads.wrapping_add(1);
        let mut decided = self.decided.borrow_mut();
        if self.instructions > 0 {
            let instructions = std::mem::take(&mut self.instructions);
            decided.push(Op::Compute { instructions });
        }
        decided.push(Op::Load { at });
        drop(decided);
        self.yielder.suspend(())
    }

    #[inline]
    fn load_ptr(&mut self, at: Ptr) -> Ptr {
        let addr = Addr(self.load(at));
        Ptr { addr, origin: self.loads }
    }

    #[inline]
    fn compute(&mut self, instructions: u32) {
        self.instructions += instructions;
    }
}

impl Memory for Thread<'_> {
    #[inline]
    fn store(&mut self, at: Ptr, value: u64) {
        self.issue(Op::Store { at, value });
    }

    #[inline]
    fn store_non_temporal(&mut self, at: Ptr, value: u64) {
        self.issue(Op::StoreNonTemporal { at, value });
    }
}

/// Host stack of one simulated thread. Touched pages only are backed by the operating system.
pub(crate) const STACK_BYTES: usize = 256 << 10;

struct Spawned {
    coroutine: Coroutine<u64, (), (), DefaultStack>,
    decided: Decided,
    /// The decided operations, being handed out.
    batch: Vec<Op>,
    next: usize,
}

impl Program for Spawned {
    #[inline]
    fn next(&mut self, value: u64) -> Op {
        if let Some(&op) = self.batch.get(self.next) {
            self.next += 1;
            return op;
        }
        self.next_batch(value)
    }
}

impl Spawned {
    fn next_batch(&mut self, value: u64) -> Op {
        self.batch.clear();
        if self.coroutine.done() {
            return Op::Done;
        }
        if let CoroutineResult::Return(()) = self.coroutine.resume(value) {
            self.decided.borrow_mut().push(Op::Done);
        }
        std::mem::swap(&mut self.batch, &mut self.decided.borrow_mut());
        self.next = 1;
        self.batch[0]
    }
}

/// Makes a program of a function over a [`Thread`].
///
/// # Panics
/// If the host has no memory for the stack, with [`host::OutOfMemory`].
pub fn spawn(body: impl FnOnce(&mut Thread<'_>) + 'static) -> Box<dyn Program> {
    let stack = DefaultStack::new(STACK_BYTES);
    let stack = stack.unwrap_or_else(|_| host::out_of_memory(STACK_BYTES as u64));
    let decided = Decided::default();
    let theirs = Rc::clone(&decided);
    let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<u64, ()>, _first: u64| {
        let mut thread = Thread { yielder, decided: theirs, instructions: 0, loads: 0 };
        body(&mut thread);
        let instructions = thread.instructions;
        if instructions > 0 {
            thread.decided.borrow_mut().push(Op::Compute { instructions });
        }
    });
    Box::new(Spawned { coroutine, decided, batch: Vec::new(), next: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_becomes_a_stream_of_operations() {
        let mut program = spawn(|thread| {
            thread.compute(3);
            let next = thread.load_ptr(Ptr::known(Addr(64)));
            thread.compute(1);
            thread.store(next.word(1), 5);
            thread.compute(2);
        });
        assert_eq!(program.next(0), Op::Compute { instructions: 3 });
        assert_eq!(program.next(0), Op::Load { at: Ptr::known(Addr(64)) });
        assert_eq!(program.next(128), Op::Compute { instructions: 1 });
        let Op::Store { at, value } = program.next(0) else { panic!("a store comes next") };
        assert_eq!((at.addr, at.origin, value), (Addr(136), 1, 5));
        assert_eq!(program.next(0), Op::Compute { instructions: 2 });
        assert_eq!(program.next(0), Op::Done);
    }

    #[test]
    fn a_program_may_be_dropped_half_way() {
        let mut program = spawn(|thread| {
            let _on_stack = vec![1u8; 1000];
            thread.load(Ptr::known(Addr(0)));
        });
        program.next(0);
    }
}
