//! The errors of a program trace, with the byte at which each is.

use std::io;

use thiserror::Error;

use crate::framing::Unexpected;
use graven_base::config::ConfigError;
use graven_machine::sim::SimError;

/// A trace was refused, or could not be written or replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// The bytes are not as the format demands.
    #[error("byte {offset}: expected {expected}, found {found}")]
    Malformed {
        /// The distance from the beginning of the trace.
        offset: u64,
        /// The expected bytes.
        expected: String,
        /// The bytes that were found.
        found: String,
    },
    /// A line of a text is not as its format demands.
    #[error("line {line}: expected {expected}, found {found}")]
    MalformedLine {
        /// The line, from 1.
        line: u64,
        /// The expected text.
        expected: String,
        /// The text that was found, shortened.
        found: String,
    },
    /// An operation that no program may have.
    #[error("block at byte {offset}, thread {thread}, operation {operation}: {what}")]
    Operation {
        /// The beginning of its block.
        offset: u64,
        /// The thread.
        thread: u32,
        /// The operation's number in its thread, from 0.
        operation: u64,
        /// The error.
        what: String,
    },
    /// The machine cannot take what the trace holds, or a value is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The simulation failed.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// The simulation failed, of a trace that stores outside transactions.
    #[error(
        "{error}; the trace stores outside transactions, which not every design takes (a trace of another tool \
         can be converted with --transaction-stores)"
    )]
    OutsideTransactions {
        /// The error.
        error: SimError,
    },
    /// The trace cannot be read or written.
    #[error("{0}")]
    Io(String),
    /// The trace cannot be recorded or converted.
    #[error("{0}")]
    Unsupported(String),
    /// The caller asked it to stop.
    #[error("cancelled")]
    Cancelled,
}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> TraceError {
        TraceError::Io(error.to_string())
    }
}

impl TraceError {
    /// Returns what makes an error of something unexpected at an offset.
    pub(crate) fn at(offset: u64) -> impl FnOnce(Unexpected) -> TraceError {
        move |wrong| TraceError::malformed(offset, wrong.expected, wrong.found)
    }

    /// Malformed bytes.
    pub(crate) fn malformed(
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> TraceError {
        TraceError::Malformed { offset, expected: expected.into(), found: found.into() }
    }
}
