//! The kind of an instruction: whether it stores past the caches or atomically, whether it is one of
//! those that make stores durable, or waits for other threads, and whether it is a marker.

use graven_capture::{Fence, Flush};

/// The kind of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Stores with the hint that the line will not be used again soon.
    NonTemporal,
    /// Writes a line back: the one of its operand, or of the address in this register.
    Flush(Flush, Option<u8>),
    /// Orders stores.
    Fence(Fence),
    /// Is the marker of this number.
    Marker(u8),
    /// Loads and stores atomically.
    Atomic,
    /// Loads or stores memory by which threads synchronise: a load acquires, a store releases.
    Ordered,
    /// The same, a load that an exclusive store follows.
    LoadsExclusively,
    /// Stores if no other thread has stored there since the memory was loaded.
    StoresExclusively,
    /// Makes the block zero that contains the address in this register.
    Zeroes(u8),
    /// Sets the address of the thread's own variables to the content of this register.
    ThreadPointer(u8),
    /// Loads or stores a string, element by element, as often as a register says.
    Repeated,
    /// Does nothing, in a loop that waits for other threads.
    Pause,
    /// Nothing of this.
    Other,
}

/// The manner in which a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a call.
    Call,
    /// With a return.
    Return,
    /// With anything else.
    Other,
}
