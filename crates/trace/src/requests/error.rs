//! The errors of a trace, worded so that a person finds the place.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

use crate::framing::Unexpected;
use graven_machine::stats::conservation::Broken;

/// The length of an offending text in a message.
const SHOWN_CHARS: usize = 40;

/// A place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text, from 1.
    Line(u64),
    /// A byte of a binary trace, from 0.
    Byte(u64),
    /// A request of a binary trace, from 1.
    Request(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(number) => write!(out, "line {number}"),
            Place::Byte(offset) => write!(out, "byte {offset}"),
            Place::Request(number) => write!(out, "request {number}"),
        }
    }
}

/// A trace was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// Something is not as its format demands.
    #[error("{place}: expected {expected}, found {found}")]
    Malformed {
        /// The place.
        place: Place,
        /// The expected text.
        expected: Cow<'static, str>,
        /// The text that was found, shortened.
        found: String,
    },
    /// An address that the machine does not have.
    #[error(
        "{place}: address {addr:#x} lies beyond the {memory}, whose addresses end at {end:#x}; a larger {}.capacity_bytes would do",
        memory.to_lowercase()
    )]
    BeyondMemory {
        /// The place.
        place: Place,
        /// The address.
        addr: u64,
        /// The first address that does not exist.
        end: u64,
        /// PM, or DRAM.
        memory: &'static str,
    },
    /// The trace cannot be read.
    #[error("{place}: {message}")]
    Io {
        /// The place.
        place: Place,
        /// The operating system's message.
        message: String,
    },
    /// Nothing in it but white space and a header.
    #[error("the trace holds no request")]
    Empty,
    /// The counts cannot all be right: a fault of the simulator.
    #[error(transparent)]
    Conservation(#[from] Broken),
    /// The caller asked the replay to stop.
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
        TraceError::Malformed {
            place: Place::Line(line),
            expected: expected.into(),
            found: format!("`{shown}`"),
        }
    }

    /// Returns what makes an error of something unexpected at an offset of a binary trace.
    pub(super) fn at(offset: u64) -> impl FnOnce(Unexpected) -> TraceError {
        move |wrong| TraceError::damaged(offset, wrong.expected, wrong.found)
    }

    /// Malformed bytes of a binary trace.
    pub(super) fn damaged(
        offset: u64,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<String>,
    ) -> TraceError {
        let (expected, found) = (expected.into(), found.into());
        TraceError::Malformed { place: Place::Byte(offset), expected, found }
    }
}
