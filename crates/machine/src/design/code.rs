//! Code that a design which is partly software has a thread execute: loads, stores, persistence
//! instructions, and instructions that touch no memory.

use super::Operation;
use crate::program::Persist;
use crate::request::WriteClass;
use graven_base::memory::{Addr, LineAddr};

/// One instruction, or several that touch no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// So many that touch no memory.
    Compute(u32),
    /// A load of an address that is known.
    Load(Addr),
    /// A load of an address that the load before it returned: a step along a chain.
    LoadDependent(Addr),
    /// A store.
    Store(Addr, u64),
    /// A load of an address that is known when that of the program's operation is.
    LoadIndependent(Addr),
    /// Not an instruction: the transaction may be durable from here on.
    End,
    /// A persistence instruction.
    Persist(Persist),
}

/// A piece of code, in program order.
#[derive(Clone, Debug, Default)]
pub struct Code {
    instructions: Vec<Instruction>,
    /// Number of them that have been taken out.
    taken: usize,
}

impl Code {
    /// Instructions that touch no memory.
    pub fn compute(&mut self, instructions: u32) {
        if instructions > 0 {
            self.instructions.push(Instruction::Compute(instructions));
        }
    }

    /// Loads a word whose address is known.
    pub fn load(&mut self, addr: Addr) {
        self.instructions.push(Instruction::Load(addr));
    }

    /// Loads a word whose address the load before this one returned; for the first, the address that the
    /// program's own operation is about. The program's operation then waits for the last of them.
    pub fn load_dependent(&mut self, addr: Addr) {
        self.instructions.push(Instruction::LoadDependent(addr));
    }

    /// Loads a word whose address follows from the one that the program's own operation is about; nothing waits for
    /// it (a branch on its value is predicted).
    pub fn load_independent(&mut self, addr: Addr) {
        self.instructions.push(Instruction::LoadIndependent(addr));
    }

    /// Not an instruction: when everything before is performed, the transaction has reached its end, and what comes
    /// after may make it durable. Stores to PM after it are those that were deferred ([`super::OpAction::Defer`]). Code
    /// that commits by itself has it once, before [`crate::program::Op::TxEnd`].
    pub fn end(&mut self) {
        self.instructions.push(Instruction::End);
    }

    /// Stores a word.
    pub fn store(&mut self, addr: Addr, value: u64) {
        self.instructions.push(Instruction::Store(addr, value));
    }

    /// Writes a dirty line of PM back without evicting it (clwb).
    pub fn clwb(&mut self, line: LineAddr) {
        self.persist(Persist::WriteBack(line));
    }

    /// Has later stores and persistence instructions wait until those before are durable, as far as they write to
    /// PM at once (sfence).
    pub fn fence(&mut self) {
        self.persist(Persist::Fence);
    }

    /// Stores a word of PM through the core's write-combining buffer, past the caches.
    pub fn store_uncached(&mut self, addr: Addr, value: u64, class: WriteClass) {
        self.persist(Persist::StoreUncached { addr, value, class });
    }

    /// Stores a word of the log region through the caches: a store of the design's own, of which its hooks are told as of a store
    /// outside transactions ([`super::PlainStoreDesign`]).
    pub fn store_own(&mut self, addr: Addr, value: u64) {
        self.persist(Persist::StoreOwn { addr, value });
    }

    /// An operation for order that the hardware of the design executes ([`super::PersistDesign`]).
    pub fn order(&mut self, operation: Operation) {
        self.persist(Persist::Order(operation));
    }

    fn persist(&mut self, what: Persist) {
        self.instructions.push(Instruction::Persist(what));
    }

    /// Returns true if it contains the transaction's end.
    pub(crate) fn ends(&self) -> bool {
        self.instructions.contains(&Instruction::End)
    }

    /// Everything, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Instruction> {
        self.instructions.iter()
    }

    /// Leaves out what is not to be kept.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Instruction) -> bool) {
        self.instructions.retain(keep);
    }

    /// Takes the next one out.
    #[inline]
    pub(crate) fn take_next(&mut self) -> Option<Instruction> {
        let next = self.instructions.get(self.taken).copied();
        if next.is_some() {
            self.taken += 1;
        } else {
            self.instructions.clear();
            self.taken = 0;
        }
        next
    }
}
