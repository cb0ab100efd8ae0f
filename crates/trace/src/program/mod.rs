//! Program traces: what each program thread does, operation by operation, and the memory that it begins
//! with. Enough to run a program again, bit for bit, without the program.
//!
//! | file | what |
//! |---|---|
//! | `layout` | magic numbers, block heads, index, trailer: the bytes around the data |
//! | `header` | what was recorded: configuration, threads, transactions |
//! | `volatile` | addresses of volatile memory |
//! | `columns`, `decoder` | operations of a block in columns, and back in batches |
//! | `picture` | the populated words in blocks |
//! | `history` | what a captured program does for persistence, and which instructions store, in blocks |
//! | `lengths` | lengths of a captured program's files in blocks |
//! | `writer`, `record` | a trace written; a workload that is recorded while it runs |
//! | `reader`, `verify` | a trace opened and read from anywhere; all of it looked through |
//! | `replay` | a trace as a workload |
//! | `properties` | what its programs are like, as papers describe theirs |
//!
//! `docs/guides/traces.md` has the format byte by byte. Values of loads are not in it: a load finds in simulated memory
//! what it found when it was recorded, as far as the machine orders the stores of several threads to one word as it
//! did then. Loads say which earlier load their address came from ([`graven_machine::program::Ptr::origin`]).

mod columns;
mod decoder;
mod error;
mod header;
mod history;
mod layout;
mod lengths;
mod picture;
mod properties;
mod reader;
mod record;
mod replay;
mod verify;
mod volatile;
mod writer;

pub use decoder::BATCH_OPERATIONS;
pub use error::TraceError;
pub use graven_capture::{Asked, Call, Fence, Flush, Place};
pub use header::{Header, Origin};
pub use history::{Happened, Happening, History, How, Line, Site, Stack};
pub use layout::{BLOCK_OPERATIONS, FORMAT_VERSION, MAGIC};
pub use lengths::LengthChange;
pub use reader::{Contents, Reader, Stream, ThreadSummary};
pub use record::Recorder;
pub use replay::{Replay, UNREGISTERED};
pub use volatile::{VOLATILE_BYTES_MAX, VOLATILE_START, volatile_offset};
pub use writer::Writer;
