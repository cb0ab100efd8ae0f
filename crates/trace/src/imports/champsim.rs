//! ChampSim's traces made a program trace: each file is a thread with memory of its own.
//!
//! - **Addresses.** Each page of 4 KB that a thread touches gets the next page of PM, from its first data page on; the
//!   threads one after the other. An access is to the word that its address lies in.
//! - **Instructions.** One with k > 0 addresses becomes k accesses, loads first, of one instruction each; one without
//!   becomes an instruction that touches no memory. Branches are instructions.
//! - **Dependences.** An access waits for the newest load that its source registers hold something of, be it directly or
//!   through instructions between. Stack pointer, flags and instruction pointer carry nothing: else each pop would wait for
//!   the one before.
//! - **Values.** ChampSim has none. Store n of a thread (from 1) to address a stores `spread(a, n)`: bits as of nothing
//!   in particular, half of which change. PM begins with zeros.
//! - **Transactions.** ChampSim has none. They are made only when asked for: one begins before a store, and ends with
//!   the so-many-th. Without, no guarantee holds for any
//!   store, and designs that keep a write set, or take every word from slices, end the run.
//! - **Stores below address 256** are numbers of registers, which ChampSim's tracer writes there when an instruction has more
//!   registers than a record: they are left out, and counted.

use std::io::Read;
use std::io::Write;

use super::layout::{Layout, Taken};
use super::{FLAGS, INSTRUCTION_POINTER, STACK_POINTER};
use crate::frames::{Frames, PAGE_BYTES};
use crate::program::{Header, Origin, TraceError, Writer};
use graven_base::control::Control;
use graven_base::memory::{Addr, spread};
use graven_machine::program::{Op, Ptr};

/// Most pages of all threads: 64 GB.
const PAGES_MAX: u64 = 1 << 24;
/// Instructions that are read at a time.
const CHUNK_INSTRUCTIONS: usize = 4096;
/// The first address that no number of a register can be.
const REGISTERS: u64 = 256;

/// The settings of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Stores of a transaction; none: no transactions.
    pub transaction_stores: Option<u32>,
    /// Instructions of each file that are taken, from its first on; none: all.
    pub instructions: Option<u64>,
    /// The layout of all files; none: ChampSim's own, and files that look like another are refused.
    pub layout: Option<Layout>,
}

/// A program trace, and what was odd about its sources.
#[derive(Debug)]
pub struct Imported<W> {
    /// The program trace.
    pub out: W,
    /// The oddities of all sources.
    pub oddities: Oddities,
}

/// Counts of what a tracer should not have written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Stores below address 256, left out.
    pub register_stores: u64,
    /// Instructions of address 0.
    pub without_ip: u64,
}

/// Makes a program trace of ChampSim's traces, one for each thread.
///
/// # Errors
/// Sources that are no traces, with the file's number from 1 and the byte; more than 64 GB of pages; those of `out`.
pub fn import<R: Read, W: Write>(
    sources: &mut [R],
    how: How,
    out: W,
    control: &Control,
) -> Result<Imported<W>, TraceError> {
    let header = Header::without_machine(Origin::ChampSim, sources.len() as u32, PAGE_BYTES);
    let mut writer = Writer::new(out, &header)?;
    let (mut next_page, mut before) = (1, 0);
    let mut oddities = Oddities::default();
    for (thread, source) in sources.iter_mut().enumerate() {
        let mut import = Import {
            thread: thread as u32,
            how,
            writer: &mut writer,
            frames: Frames::from(next_page),
            instructions: 0,
            loads: 0,
            stores: 0,
            loaded_by: [0; 256],
            in_transaction: 0,
            oddities: &mut oddities,
        };
        before += import.file(source, control, before)?;
        next_page = import.frames.end();
    }
    Ok(Imported { out: writer.finish()?, oddities })
}

/// One thread on its way.
struct Import<'a, W> {
    thread: u32,
    how: How,
    writer: &'a mut Writer<W>,
    /// Pages of PM by pages of the trace.
    frames: Frames,
    /// Without memory, not yet written.
    instructions: u32,
    loads: u32,
    stores: u64,
    /// The newest load that each register holds something of.
    loaded_by: [u32; 256],
    /// Stores of the running transaction.
    in_transaction: u32,
    oddities: &'a mut Oddities,
}

impl<W: Write> Import<'_, W> {
    /// Takes a whole file; returns its instructions. `before`: those of the files before.
    fn file(
        &mut self,
        source: &mut impl Read,
        control: &Control,
        before: u64,
    ) -> Result<u64, TraceError> {
        let most = self.how.instructions.unwrap_or(u64::MAX);
        let layout = self.how.layout.unwrap_or_default();
        let mut chunk = vec![0; CHUNK_INSTRUCTIONS * layout.bytes()];
        let mut taken = 0;
        while taken < most {
            let bytes = fill(source, &mut chunk).map_err(|error| self.unread(&error))?;
            let is_whole = bytes < chunk.len();
            if taken == 0 && self.how.layout.is_none() {
                self.check_layout(layout, &chunk[..bytes], is_whole)?;
            }
            let records = chunk[..bytes].chunks_exact(layout.bytes());
            let rest = records.remainder().len();
            for record in records.take(usize::try_from(most - taken).unwrap_or(usize::MAX)) {
                self.record(Taken::parse(record, layout), taken * layout.bytes() as u64)?;
                taken += 1;
            }
            if taken < most && rest > 0 {
                let expected = format!("an instruction of {} bytes", layout.bytes());
                let found = format!("{rest} bytes, then the end");
                return Err(self.malformed(taken * layout.bytes() as u64, &expected, &found));
            }
            if control.report(before + taken) {
                return Err(TraceError::Cancelled);
            }
            if is_whole {
                break;
            }
        }
        if taken == 0 {
            return Err(self.malformed(0, "an instruction", "the end of the trace"));
        }
        self.flush()?;
        if self.in_transaction > 0 {
            self.push(Op::TxEnd)?;
        }
        self.push(Op::Done)?;
        Ok(taken)
    }

    /// Refuses a file whose beginning another layout explains.
    fn check_layout(&self, layout: Layout, bytes: &[u8], is_whole: bool) -> Result<(), TraceError> {
        let Some(odd) = layout.contradicted_by(bytes, is_whole) else { return Ok(()) };
        let expected = format!("an instruction of {} bytes", layout.bytes());
        let found = "what looks like records of 96 bytes, those of CloudSuite (--layout cloudsuite reads them, \
                     --layout champsim reads it as it is)";
        Err(self.malformed((odd * layout.bytes()) as u64, &expected, found))
    }

    /// Takes an instruction, which is at a byte of its file.
    fn record(&mut self, taken: Taken, offset: u64) -> Result<(), TraceError> {
        if !taken.is_canonical() {
            let found = format!("{:#x}, which no processor has", taken.ip);
            return Err(self.malformed(offset, "the address of an instruction", &found));
        }
        self.oddities.without_ip += u64::from(taken.ip == 0);
        self.instruction(&taken)
    }

    fn unread(&self, error: &std::io::Error) -> TraceError {
        TraceError::Io(format!("in file {}: {error}", self.thread + 1))
    }

    fn malformed(&self, offset: u64, expected: &str, found: &str) -> TraceError {
        TraceError::malformed(offset, format!("in file {}: {expected}", self.thread + 1), found)
    }

    fn push(&mut self, op: Op) -> Result<(), TraceError> {
        self.writer.push(self.thread, op)
    }

    /// Writes the instructions without memory that have come together.
    fn flush(&mut self) -> Result<(), TraceError> {
        match std::mem::take(&mut self.instructions) {
            0 => Ok(()),
            instructions => self.push(Op::Compute { instructions }),
        }
    }

    fn instruction(&mut self, instruction: &Taken) -> Result<(), TraceError> {
        let sources = instruction.source_registers.map(|r| self.loaded_by[usize::from(r)]);
        let newest = sources.into_iter().max().expect("there are four");
        let mut touches = false;
        for &address in instruction.source_memory.iter().filter(|&&a| a != 0) {
            self.flush()?;
            let at = Ptr { addr: self.place(address)?, origin: newest };
            self.push(Op::Load { at })?;
            self.loads = self.loads.wrapping_add(1);
            touches = true;
        }
        let result = if touches { self.loads } else { newest };
        for &address in instruction.destination_memory.iter().filter(|&&a| a != 0) {
            if address < REGISTERS {
                self.oddities.register_stores += 1;
                continue;
            }
            self.flush()?;
            let at = Ptr { addr: self.place(address)?, origin: newest };
            self.store(at)?;
            touches = true;
        }
        if !touches {
            if self.instructions == u32::MAX {
                self.flush()?;
            }
            self.instructions += 1;
        }
        for register in instruction.destination_registers {
            if !matches!(register, 0 | STACK_POINTER | FLAGS | INSTRUCTION_POINTER) {
                self.loaded_by[usize::from(register)] = result;
            }
        }
        Ok(())
    }

    fn store(&mut self, at: Ptr) -> Result<(), TraceError> {
        self.stores += 1;
        let value = spread(at.addr.0, self.stores);
        let Some(most) = self.how.transaction_stores else {
            return self.push(Op::Store { at, value });
        };
        if self.in_transaction == 0 {
            self.push(Op::TxBegin)?;
        }
        self.push(Op::Store { at, value })?;
        self.in_transaction += 1;
        if self.in_transaction >= most {
            self.in_transaction = 0;
            self.push(Op::TxEnd)?;
        }
        Ok(())
    }

    /// The word of PM that an address stands for.
    fn place(&mut self, address: u64) -> Result<Addr, TraceError> {
        let place = self.frames.place(address);
        if place / PAGE_BYTES > PAGES_MAX {
            let what = "the traces touch more than 64 GB of pages: take fewer instructions of each";
            return Err(TraceError::Unsupported(what.into()));
        }
        Ok(Addr(place / 8 * 8))
    }
}

/// Reads until the buffer is full or the source ends.
fn fill(source: &mut impl Read, out: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match source.read(&mut out[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
