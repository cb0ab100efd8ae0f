//! Lengths of a captured program's files, as the program changed them: blocks behind those of operations, from version 3 on.
//!
//! A payload is an entry of 24 bytes for each change, in the order in which the program made them: thread (4), file (4),
//! number of the thread's operation before which it came (8), the file's length from then on (8).
//!
//! A length is no operation: no simulation knows of files. Who hands out recovered files asks for it ([`Reader::lengths`]).

use std::io::{Read, Seek};

use super::error::TraceError;
use super::reader::Reader;
use crate::framing::Numbers;

/// Bytes of an entry.
pub(super) const LENGTH_BYTES: usize = 24;
/// Changes of a full block.
pub(super) const BLOCK_LENGTHS: usize = 4_096;
/// Most bytes of a block.
pub(super) const RAW_BYTES_MAX: u32 = (LENGTH_BYTES * BLOCK_LENGTHS) as u32;

/// A file gets another length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthChange {
    /// The thread that changes it.
    pub thread: u32,
    /// The file, by its number among those of the program.
    pub file: u32,
    /// The number of the thread's operation, from 0, before which that happens; behind its last one, how many it has.
    pub operation: u64,
    /// The new length.
    pub bytes: u64,
}

impl LengthChange {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.thread.to_le_bytes());
        out.extend(self.file.to_le_bytes());
        out.extend(self.operation.to_le_bytes());
        out.extend(self.bytes.to_le_bytes());
    }

    fn parse(entry: &[u8]) -> LengthChange {
        let mut numbers = Numbers(entry);
        LengthChange {
            thread: numbers.u32(),
            file: numbers.u32(),
            operation: numbers.u64(),
            bytes: numbers.u64(),
        }
    }
}

impl<R: Read + Seek> Reader<R> {
    /// All changes of lengths, in the order in which the program made them; none of a trace before version 3.
    ///
    /// # Errors
    /// A block that is broken; a change of a thread that is not there, or that comes before an earlier one of its thread.
    pub fn lengths(&self) -> Result<Vec<LengthChange>, TraceError> {
        let threads = &self.contents().threads;
        let mut reached = vec![0; threads.len()];
        let mut changes = Vec::new();
        self.each_block(&self.contents().lengths, |offset, payload, count| {
            let refuse = |expected: String, found: String| {
                Err(TraceError::malformed(offset, expected, found))
            };
            let expected = count as usize * LENGTH_BYTES;
            if payload.len() != expected {
                return refuse(format!("{expected} bytes of lengths"), payload.len().to_string());
            }
            for entry in payload.chunks_exact(LENGTH_BYTES) {
                let change = LengthChange::parse(entry);
                let at = change.thread as usize;
                let Some(of) = threads.get(at) else {
                    return refuse(format!("a thread below {}", threads.len()), at.to_string());
                };
                if change.operation < reached[at] || change.operation > of.operations {
                    let expected = format!(
                        "a length before operation {} to {} of thread {at}",
                        reached[at], of.operations
                    );
                    return refuse(expected, change.operation.to_string());
                }
                reached[at] = change.operation;
                changes.push(change);
            }
            Ok(())
        })?;
        Ok(changes)
    }
}
