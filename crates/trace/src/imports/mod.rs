//! Traces of other tools made a program trace: each file is a thread.
//!
//! | file | what |
//! |---|---|
//! | `thread` | operations of a thread, made of instructions and accesses |
//! | `champsim` | ChampSim's instructions, and CloudSuite's |
//! | `lackey` | the lines of valgrind's lackey |
//! | `drmemtrace` | the entries of DynamoRIO's drmemtrace |
//! | `ramulator` | the lines of a core of Ramulator 1 and 2 |
//! | `usimm` | the lines of a core of USIMM |
//! | `lines` | lines of a text, with their numbers |
//!
//! - **Addresses.** Each page of 4 KB that an address space touches gets the next page of PM, from its first data page on.
//!   A file has an address space of its own; files of drmemtrace with the same process share one.
//! - **Instructions.** One with k > 0 accesses becomes k accesses, loads first, of one instruction each; one without becomes
//!   an instruction that touches no memory. An access whose size is known becomes one to each word that it touches, in the
//!   order of addresses.
//! - **Values.** None of these formats has any. Store n of a thread (from 1) to address a stores `spread(a, n)`: bits as of
//!   nothing in particular, half of which change. PM begins with zeros.
//! - **Transactions.** None of these formats has any. They are made only when asked for: one begins before a store, and
//!   ends with the last of the number asked for. Without, no guarantee holds for any store, and designs that keep a write
//!   set, or take every word from slices, end the run.
//! - **Dependences.** Only ChampSim's instructions say which registers they use; elsewhere no access waits for another.

mod champsim;
mod drmemtrace;
mod lackey;
mod lines;
mod ramulator;
mod thread;
mod usimm;

use std::io::{Read, Write};

use crate::champsim::Layout;
use crate::frames::{Frames, PAGE_BYTES};
use crate::program::{Header, Origin, TraceError, Writer};
use graven_base::control::Control;
use lines::Lines;
use thread::Thread;

/// The format of the files of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format<'a> {
    /// ChampSim's instructions, of a layout; none: ChampSim's own, and files that look like another are refused.
    ChampSim(Option<Layout>),
    /// The output of `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// DynamoRIO's drmemtrace, as `raw2trace` leaves it: the thread that is taken of each file. A file of which none is
    /// named has only one.
    DrMemtrace(&'a [Option<u64>]),
    /// Traces of a core for Ramulator 1 and 2 (SimpleO3).
    Ramulator,
    /// Traces of a core for USIMM.
    Usimm,
}

impl Format<'_> {
    fn origin(self) -> Origin {
        match self {
            Format::ChampSim(_) => Origin::ChampSim,
            Format::Lackey => Origin::Lackey,
            Format::DrMemtrace(_) => Origin::DrMemtrace,
            Format::Ramulator => Origin::Ramulator,
            Format::Usimm => Origin::Usimm,
        }
    }
}

/// The settings of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Stores of a transaction; none: no transactions.
    pub transaction_stores: Option<u32>,
    /// Instructions of each file that are taken, from its first on; none: all.
    pub instructions: Option<u64>,
}

/// A program trace, and what was odd about its sources.
#[derive(Debug)]
pub struct Imported<W> {
    /// The program trace.
    pub out: W,
    /// The instructions of all sources.
    pub instructions: u64,
    /// The oddities of all sources.
    pub oddities: Oddities,
}

/// Counts of what sources had and the program trace has not, or has in another way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// ChampSim: stores below address 256, left out.
    pub register_stores: u64,
    /// ChampSim: instructions of address 0.
    pub without_ip: u64,
    /// drmemtrace: prefetches, left out.
    pub prefetches: u64,
    /// drmemtrace: flushes of caches, left out.
    pub flushes: u64,
    /// drmemtrace: accesses whose size the tracer did not know, taken for one word.
    pub unsized_accesses: u64,
    /// drmemtrace: files whose tracer left out accesses or instructions.
    pub filtered_files: u64,
}

/// Makes a program trace of traces of one format, one for each thread.
///
/// # Errors
/// Sources that are no such traces, with the file's number from 1 and the byte or line; more than 64 GB of pages; those of
/// `out`.
pub fn import<R: Read, W: Write>(
    sources: &mut [R],
    format: Format,
    how: How,
    out: W,
    control: &Control,
) -> Result<Imported<W>, TraceError> {
    let header = Header::without_machine(format.origin(), sources.len() as u32, PAGE_BYTES);
    let mut writer = Writer::new(out, &header)?;
    let mut frames = Frames::from(1);
    let mut oddities = Oddities::default();
    let (mut before, mut processes) = (0, Vec::new());
    for (number, source) in sources.iter_mut().enumerate() {
        let number = number as u32;
        let thread = Thread::begin(number, how.transaction_stores, &mut frames, &mut writer);
        let file = File { number, most: how.instructions, before, control };
        before += match format {
            Format::ChampSim(layout) => {
                champsim::read(source, file, layout, thread, &mut oddities)?
            }
            Format::Lackey => lackey::read(Lines::of(source), file, thread)?,
            Format::DrMemtrace(threads) => {
                let only = threads.get(number as usize).copied().flatten();
                drmemtrace::read(source, file, only, thread, &mut processes, &mut oddities)?
            }
            Format::Ramulator => {
                ramulator::read(Lines::of(source), file, ramulator::parse, thread)?
            }
            Format::Usimm => ramulator::read(Lines::of(source), file, usimm::parse, thread)?,
        };
    }
    Ok(Imported { out: writer.finish()?, instructions: before, oddities })
}

/// Finds the threads of a file of drmemtrace, in the order in which they begin.
///
/// # Errors
/// It is no such file; the message has the byte.
pub fn drmemtrace_threads(
    source: &mut impl Read,
    control: &Control,
) -> Result<Vec<u64>, TraceError> {
    drmemtrace::threads(source, File { number: 0, most: None, before: 0, control })
}

/// A file that is read.
#[derive(Clone, Copy)]
struct File<'a> {
    /// From 0.
    number: u32,
    /// Instructions that are taken of it; none: all.
    most: Option<u64>,
    /// Instructions of the files before.
    before: u64,
    control: &'a Control,
}

impl File<'_> {
    /// Says that no more instructions are taken than those.
    fn is_enough(&self, taken: u64) -> bool {
        self.most.is_some_and(|most| taken >= most)
    }

    /// Reports the instructions that were taken.
    fn report(&self, taken: u64) -> Result<(), TraceError> {
        if self.control.report(self.before + taken) {
            return Err(TraceError::Cancelled);
        }
        Ok(())
    }

    fn unread(&self, error: &std::io::Error) -> TraceError {
        TraceError::Io(format!("in file {}: {error}", self.number + 1))
    }

    /// Something at a byte that is not as its format demands.
    fn malformed(&self, offset: u64, expected: &str, found: &str) -> TraceError {
        TraceError::malformed(offset, format!("in file {}: {expected}", self.number + 1), found)
    }

    /// Something in a line, from 1, that is not as its format demands.
    fn malformed_line(&self, line: u64, expected: &str, found: &[u8]) -> TraceError {
        let expected = format!("in file {}: {expected}", self.number + 1);
        TraceError::MalformedLine { line, expected, found: lines::shown(found) }
    }
}
