//! What an instruction is, as far as that matters: whether it stores past the caches or atomically, whether it is one of
//! those that make stores durable, or waits for other threads, and whether it is a marker.

/// What matters of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It stores with the hint that the line will not be used again soon.
    NonTemporal,
    /// It writes a line back.
    Flush,
    /// It orders stores.
    Fence,
    /// It is the marker of this number.
    Marker(u8),
    /// It loads and stores atomically.
    Atomic,
    /// It loads or stores that by which threads synchronise: a load acquires, a store releases.
    Ordered,
    /// The same, a load that an exclusive store follows.
    LoadsExclusively,
    /// It stores if nobody else has stored there since it was loaded.
    StoresExclusively,
    /// It makes the block zero that the address in this register is in.
    Zeroes(u8),
    /// It says where the thread's own variables are: what this register has.
    ThreadPointer(u8),
    /// It loads or stores a string, element by element, as often as a register says.
    Repeated,
    /// It does nothing, in a loop that waits for others.
    Pause,
    /// Nothing of this.
    Other,
}
