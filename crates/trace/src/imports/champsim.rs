//! ChampSim's instructions, of either layout.
//!
//! - **Dependences.** An access waits for the newest load that its source registers hold something of, be it directly or
//!   through instructions between. Stack pointer, flags and instruction pointer carry nothing: else each pop would wait for
//!   the one before.
//! - **Branches** are instructions.
//! - **Stores below address 256** are numbers of registers, which ChampSim's tracer writes there when an instruction has more
//!   registers than a record: they are left out, and counted.

use std::io::{Read, Write};

use super::thread::Thread;
use super::{File, Oddities};
use crate::champsim::{FLAGS, INSTRUCTION_POINTER, Layout, STACK_POINTER, Taken};
use crate::program::TraceError;

/// Instructions that are read at a time.
const CHUNK_INSTRUCTIONS: usize = 4096;
/// The first address that no number of a register can be.
const REGISTERS: u64 = 256;

/// Takes a whole file; returns its instructions.
pub fn read<W: Write>(
    source: &mut impl Read,
    file: File,
    layout: Option<Layout>,
    thread: Thread<W>,
    oddities: &mut Oddities,
) -> Result<u64, TraceError> {
    let mut import = Import { thread, loaded_by: [0; 256], oddities };
    let most = file.most.unwrap_or(u64::MAX);
    let is_guessed = layout.is_none();
    let layout = layout.unwrap_or_default();
    let mut chunk = vec![0; CHUNK_INSTRUCTIONS * layout.bytes()];
    let mut taken = 0;
    while taken < most {
        let bytes = fill(source, &mut chunk).map_err(|error| file.unread(&error))?;
        let is_whole = bytes < chunk.len();
        if taken == 0 && is_guessed {
            check_layout(file, layout, &chunk[..bytes], is_whole)?;
        }
        let records = chunk[..bytes].chunks_exact(layout.bytes());
        let rest = records.remainder().len();
        for record in records.take(usize::try_from(most - taken).unwrap_or(usize::MAX)) {
            let instruction = Taken::parse(record, layout);
            if !instruction.is_canonical() {
                let found = format!("{:#x}, which no processor has", instruction.ip);
                let offset = taken * layout.bytes() as u64;
                return Err(file.malformed(offset, "the address of an instruction", &found));
            }
            import.instruction(&instruction)?;
            taken += 1;
        }
        if taken < most && rest > 0 {
            let expected = format!("an instruction of {} bytes", layout.bytes());
            let found = format!("{rest} bytes, then the end");
            return Err(file.malformed(taken * layout.bytes() as u64, &expected, &found));
        }
        file.report(taken)?;
        if is_whole {
            break;
        }
    }
    if taken == 0 {
        return Err(file.malformed(0, "an instruction", "the end of the trace"));
    }
    import.thread.end()?;
    Ok(taken)
}

/// Refuses a file whose beginning another layout explains.
fn check_layout(
    file: File,
    layout: Layout,
    bytes: &[u8],
    is_whole: bool,
) -> Result<(), TraceError> {
    let Some(odd) = layout.contradicted_by(bytes, is_whole) else { return Ok(()) };
    let expected = format!("an instruction of {} bytes", layout.bytes());
    let found = "what looks like records of 96 bytes, those of CloudSuite (--layout cloudsuite reads them, \
                 --layout champsim reads it as it is)";
    Err(file.malformed((odd * layout.bytes()) as u64, &expected, found))
}

/// One thread on its way.
struct Import<'a, W> {
    thread: Thread<'a, W>,
    /// The newest load that each register holds something of.
    loaded_by: [u32; 256],
    oddities: &'a mut Oddities,
}

impl<W: Write> Import<'_, W> {
    fn instruction(&mut self, instruction: &Taken) -> Result<(), TraceError> {
        self.oddities.without_ip += u64::from(instruction.ip == 0);
        let sources = instruction.source_registers.map(|r| self.loaded_by[usize::from(r)]);
        let newest = sources.into_iter().max().expect("there are four");
        self.thread.instruction()?;
        let mut result = newest;
        for &address in instruction.source_memory.iter().filter(|&&a| a != 0) {
            self.thread.load(address, newest)?;
            result = self.thread.loads();
        }
        for &address in instruction.destination_memory.iter().filter(|&&a| a != 0) {
            if address < REGISTERS {
                self.oddities.register_stores += 1;
                continue;
            }
            self.thread.store(address, newest)?;
        }
        for register in instruction.destination_registers {
            if !matches!(register, 0 | STACK_POINTER | FLAGS | INSTRUCTION_POINTER) {
                self.loaded_by[usize::from(register)] = result;
            }
        }
        Ok(())
    }
}

/// Reads until the buffer is full or the source ends.
pub fn fill(source: &mut impl Read, out: &mut [u8]) -> std::io::Result<usize> {
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
