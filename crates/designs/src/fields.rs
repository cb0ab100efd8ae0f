//! Widths of the fields that the log records of FWB (§III-A), MorLog (§III-B, Fig. 7) and Silo (§III-B, Fig. 6) have in
//! common, in bits. The records lay out by them, and so do the buffers whose cost is derived.

use graven_base::memory::{Field, WordMask};

/// Bits of a thread's id.
pub const THREAD_BITS: u32 = 8;
/// Most bits of a transaction's id.
pub const TX_BITS: u32 = 16;
/// Bits of a home address.
pub const ADDR_BITS: u32 = 48;

/// A home address, in the low bits of its word.
pub const HOME: Field = Field::new("home address", ADDR_BITS, 0);
/// Behind the home address of a line, which of its words are meant.
pub const WORDS: Field = HOME.then("words", WordMask::BITS);
