//! Cost of ATOM: `cost.toml`, with the sizes and widths that code gives.

use graven::cost::Costs;
use graven::memory::{LINE_BYTES, WORDS_PER_LINE};
use graven::quantities::items;

use super::record::{END_BUCKET, END_RECORDS, HOME};

pub(super) const COSTS: Costs = Costs::on("silo", |config| {
    let constants = [
        ("words-mask", WORDS_PER_LINE as u64),
        ("thread", 8),
        ("line-addr", (HOME.bits() - LINE_BYTES.trailing_zeros()).into()),
        ("end", (END_BUCKET.bits() + END_RECORDS.bits()).into()),
    ];
    items(include_str!("cost.toml"), config, &constants)
})
.remarks(&[
    "No number of contexts or buckets was found in public text on the paper: these are this crate's parameters.",
    "ATOM has one log bit in each line of the L1s; eight, and the number of a thread, are part of the repair.",
    "No public text says how many lines a controller can hold back; the statistic lines_held_back_max says how many there were.",
]);
