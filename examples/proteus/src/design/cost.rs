//! Cost of Proteus: `cost.toml`, with the sizes and widths that code gives.

use graven::cost::Costs;
use graven::quantities::items;

use super::log_area::{BLOCK_BYTES, BLOCK_WORDS, INDEX_BITS, SLOT_BYTES};

/// Bits of an address in PM.
const ADDR_BITS: u32 = 48;

pub(super) const COSTS: Costs = Costs::on("silo", |config| {
    let constants = [
        ("slot", SLOT_BYTES),
        ("block", 8 * BLOCK_BYTES),
        ("block-addr", (ADDR_BITS - BLOCK_BYTES.trailing_zeros()).into()),
        ("words-mask", BLOCK_WORDS as u64),
        ("index", INDEX_BITS.into()),
        ("addr", ADDR_BITS.into()),
        // A transaction's number and its end, as entries in PM have them, and the number of a thread.
        ("number", 62),
        ("end", 1),
        ("thread", 8),
    ];
    items(include_str!("cost.toml"), config, &constants)
})
.remarks(&[
    "No size of a table or queue was found in public text on the paper: these are this crate's parameters.",
    "A mask of the words of a block is part of the repair; blocks that are logged whole need none.",
]);
