//! Request traces: the memory's side of a run as text, in the formats of established memory
//! simulators, and the replay of such a text on the controller and device alone.
//!
//! | file | what |
//! |---|---|
//! | `reader` | any of the formats in, found out by itself |
//! | `input`, `text` | bytes in large blocks, and their lines |
//! | `ahead` | requests read ahead of their use |
//! | `batch` | what a replay needs of requests, in columns |
//! | `nvmain` | NVMain's format in and out |
//! | `binary`, `packed` | the binary format in and out: its parts, and requests in columns |
//! | `dramsim3` | DRAMsim3's format in and out |
//! | `dramsys` | formats of DRAMSys in, and `.stl` out |
//! | `ramulator` | formats of Ramulator 1 and 2 in and, but for vectors, out |
//! | `gem5` | packet traces of gem5 in and out |
//! | `out` | any of the formats out |
//! | `assumptions` | clock and levels of addresses, which a trace does not say |
//! | `fields`, `hex` | fields of a line, hexadecimal digits |
//! | `replay` | drives the memory with a trace |
//!
//! Text is read from any `Read` and written to any `Write`; whose files they are is not known here.

mod ahead;
mod assumptions;
mod batch;
mod binary;
mod dramsim3;
mod dramsys;
mod error;
mod fields;
mod gem5;
mod hex;
mod input;
mod nvmain;
mod out;
mod packed;
mod ramulator;
mod reader;
pub mod replay;
mod text;

pub use assumptions::{Assumptions, Clock};
pub use binary::{BLOCK_REQUESTS, BinaryWriter, MAGIC};
pub use dramsim3::OtherWords;
pub use error::{Place, TraceError};
pub use gem5::LeftOut;
pub use nvmain::{Version, Writer};
pub use out::{Exporter, Format, Lost};
pub use reader::Reader;

use graven_base::memory::{LineAddr, LineData};
use graven_base::time::Cycle;
use graven_machine::controller::RequestRecord;

/// The content of a line that a trace knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The format carries none (DRAMsim3, Ramulator, gem5).
    Unknown,
    /// After the request only (NVMain's first version).
    New(LineData),
    /// Before and after the request.
    OldAndNew {
        /// Before.
        old: LineData,
        /// After.
        new: LineData,
    },
}

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it reaches the controller, in core cycles.
    pub cycle: Cycle,
    /// The line. An address inside a line stands for that line.
    pub line: LineAddr,
    /// A write, or a read.
    pub write: bool,
    /// The content of the line.
    pub content: Content,
    /// The program thread that caused it; 0 if unknown.
    pub thread: u32,
}

impl Request {
    /// A request to be read over.
    const NONE: Request =
        Request { cycle: 0, line: LineAddr(0), write: false, content: Content::Unknown, thread: 0 };
}

impl From<&RequestRecord> for Request {
    fn from(r: &RequestRecord) -> Self {
        let content = Content::OldAndNew { old: r.old, new: r.data };
        Request { cycle: r.cycle, line: r.line, write: r.write, content, thread: 0 }
    }
}
