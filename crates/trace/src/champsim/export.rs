//! A thread of a program trace made a trace for ChampSim.
//!
//! - **Accesses** are instructions of their own, with the byte address that they have in PM; volatile memory begins at 2^47.
//! - **Dependences.** Load n writes register 64 + n mod 192; what it produced the address of reads that register, as long as
//!   no later load has written it.
//! - **Instructions without memory** have no registers. Begin and end of a transaction are such.
//! - **Locks.** Lock and unlock load and store one word, 2^46 + 64 times the lock's number.
//! - **Addresses of instructions** are made up: 0x400000, and 4 more with each instruction since the last transaction
//!   began, so that what is done in the same place of each transaction has the same. Nothing is a branch.
//!
//! Values, and where transactions are, are lost.

use std::io::{Read, Seek, Write};

use super::Instruction;
use crate::program::{Reader, TraceError, volatile_offset};
use graven_base::control::Control;
use graven_machine::program::{Op, Ptr};

const CODE_START: u64 = 0x40_0000;
const LOCKS_START: u64 = 1 << 46;
const VOLATILE_START: u64 = 1 << 47;
/// The first register that loads write, and how many they take turns with.
const REGISTERS: (u32, u32) = (64, 192);
/// Operations between looks at [`Control`].
const OPERATIONS_PER_LOOK: u64 = 4096;

/// The part of a thread that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The thread.
    pub thread: u32,
    /// The first transaction that is written, from 0.
    pub first_transaction: u64,
    /// The number of transactions; none: all that follow, and what comes after the last.
    pub transactions: Option<u64>,
}

/// Writes a thread as a trace for ChampSim; returns the instructions.
///
/// # Errors
/// A thread or transaction that does not exist; a trace that is broken; those of `out`.
pub fn export<R: Read + Seek>(
    reader: &Reader<R>,
    part: Part,
    out: &mut impl Write,
    control: &Control,
) -> Result<u64, TraceError> {
    let threads = &reader.contents().threads;
    let Some(summary) = threads.get(part.thread as usize) else {
        let what = format!("there is no thread {}: the trace has {}", part.thread, threads.len());
        return Err(TraceError::Unsupported(what));
    };
    if part.first_transaction > 0 && part.first_transaction >= summary.transactions {
        return Err(TraceError::Unsupported(format!(
            "there is no transaction {}: thread {} has {}",
            part.first_transaction, part.thread, summary.transactions
        )));
    }
    let mut stream = reader.thread(part.thread);
    if part.first_transaction > 0 {
        stream.seek_transaction(part.first_transaction)?;
    }
    let loads = stream.loads_before_next();
    let mut export = Export { out, ip: CODE_START, instructions: 0, loads };
    let (mut begun, mut operations) = (0, 0u64);
    while let Some(op) = stream.next_operation()? {
        if op == Op::TxBegin {
            if part.transactions.is_some_and(|most| begun == most) {
                break;
            }
            begun += 1;
        }
        export.operation(op)?;
        operations += 1;
        if operations.is_multiple_of(OPERATIONS_PER_LOOK) && control.report(operations) {
            return Err(TraceError::Cancelled);
        }
    }
    control.report(operations);
    Ok(export.instructions)
}

struct Export<'a, W> {
    out: &'a mut W,
    ip: u64,
    instructions: u64,
    loads: u32,
}

impl<W: Write> Export<'_, W> {
    fn operation(&mut self, op: Op) -> Result<(), TraceError> {
        match op {
            Op::Load { at } => {
                let mut instruction = self.access(at);
                self.loads = self.loads.wrapping_add(1);
                instruction.source_memory[0] = address(at);
                instruction.destination_registers[0] = register(self.loads);
                self.write(instruction)
            }
            Op::Store { at, .. } | Op::StoreNonTemporal { at, .. } => {
                let mut instruction = self.access(at);
                instruction.destination_memory[0] = address(at);
                self.write(instruction)
            }
            Op::Compute { instructions } => {
                (0..instructions).try_for_each(|_| self.write(Instruction::default()))
            }
            Op::TxBegin => {
                self.ip = CODE_START;
                self.write(Instruction::default())
            }
            Op::TxEnd => self.write(Instruction::default()),
            Op::Lock { lock } | Op::Unlock { lock } => {
                let word = LOCKS_START + u64::from(lock) * 64;
                let mut instruction = Instruction::default();
                (instruction.source_memory[0], instruction.destination_memory[0]) = (word, word);
                self.write(instruction)
            }
            Op::Persist(_) | Op::Ending | Op::Disturb(_) | Op::Done => {
                unreachable!("no trace holds {op:?}")
            }
        }
    }

    /// An access with what it waits for.
    fn access(&self, at: Ptr) -> Instruction {
        let mut instruction = Instruction::default();
        if at.origin != 0 && self.loads.wrapping_sub(at.origin) < REGISTERS.1 {
            instruction.source_registers[0] = register(at.origin);
        }
        instruction
    }

    fn write(&mut self, instruction: Instruction) -> Result<(), TraceError> {
        self.out.write_all(&Instruction { ip: self.ip, ..instruction }.to_bytes())?;
        self.ip += 4;
        self.instructions += 1;
        Ok(())
    }
}

/// The address of an access.
fn address(at: Ptr) -> u64 {
    volatile_offset(at.addr).map_or(at.addr.0, |offset| VOLATILE_START + offset)
}

/// The register that a load writes.
fn register(load: u32) -> u8 {
    (REGISTERS.0 + load % REGISTERS.1) as u8
}
