//! What can be wrong with a trace, said so that a person finds the place.

use std::io;

use thiserror::Error;

/// How much of an offending text a message shows.
const SHOWN_CHARS: usize = 40;

/// A trace was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A line is not as its format demands.
    #[error("line {line}: expected {expected}, found `{found}`")]
    Malformed {
        /// Number of the line, from 1.
        line: u64,
        /// What should be there.
        expected: &'static str,
        /// What is there, shortened.
        found: String,
    },
    /// An address that the machine does not have.
    #[error(
        "line {line}: address {addr:#x} lies beyond the {memory}, whose addresses end at {end:#x}; a larger {}.capacity_bytes would do",
        memory.to_lowercase()
    )]
    BeyondMemory {
        /// Number of the line, from 1.
        line: u64,
        /// The address.
        addr: u64,
        /// The first address that does not exist.
        end: u64,
        /// PM, or DRAM.
        memory: &'static str,
    },
    /// The text cannot be read.
    #[error("line {line}: {message}")]
    Io {
        /// Number of the line, from 1.
        line: u64,
        /// The operating system's message.
        message: String,
    },
    /// Nothing in it but white space and a header.
    #[error("the trace holds no request")]
    Empty,
    /// Somebody asked the replay to stop.
    #[error("cancelled")]
    Cancelled,
}

impl TraceError {
    /// A malformed line. Bytes that are no text are shown as such.
    pub(super) fn malformed(line: u64, expected: &'static str, found: &[u8]) -> TraceError {
        // A character takes four bytes at most: enough is kept to see that there are too many.
        let text = String::from_utf8_lossy(&found[..found.len().min(4 * SHOWN_CHARS + 4)]);
        let mut shown: String =
            text.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
        if text.chars().nth(SHOWN_CHARS).is_some() {
            shown.push('…');
        }
        TraceError::Malformed { line, expected, found: shown }
    }

    pub(super) fn io(line: u64, error: &io::Error) -> TraceError {
        TraceError::Io { line, message: error.to_string() }
    }
}
