//! Instructions that the workloads execute without touching PM, all in one place.
//!
//! Loads and stores of PM are issued one by one and count as one instruction each; everything else
//! that a compiled benchmark would execute around them is volatile work, counted by
//! [`Load::compute`](graven_machine::program::Load::compute). No paper gives instruction mixes. These are
//! the sizes of straightforward x86-64 code (`-O2`) for each step, branches included, rounded. They
//! are the same for every design, and are not tuned to any result.

/// Drawing one random key: a multiplicative generator, range reduction, and the choice of
/// operation.
pub const DRAW: u32 = 25;

/// Additional instructions of a Zipf-distributed draw: one exponential, one logarithm, rejection.
pub const DRAW_ZIPF: u32 = 60;

/// Calling an operation: arguments, saved registers, return, and the loop over operations.
pub const OPERATION: u32 = 12;

/// One step of a search: compare two keys, branch, form the next address.
pub const COMPARE: u32 = 3;

/// Hashing an 8-byte key and minimising it to a bucket.
pub const HASH: u32 = 10;

/// Copying one word between volatile memory and PM, or within PM: the load or store of the volatile
/// copy and its share of an unrolled loop. Counted ahead of each line's worth of words or each
/// shift, not between words: that would double the number of operations to simulate.
pub const WORD: u32 = 1;

/// The allocator's fast path: size class, test of the free list, test of the arena's end.
pub const ALLOCATE: u32 = 6;

/// Pushing a block on its free list.
pub const FREE: u32 = 4;

/// One case distinction of a rebalancing step (colour or fill tests and their branches).
pub const REBALANCE: u32 = 4;

/// One digit of a number as text: division by ten, a store to a volatile buffer.
pub const DIGIT: u32 = 5;
