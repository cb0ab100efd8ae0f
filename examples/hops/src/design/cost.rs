//! Cost of HOPS: `cost.toml`, with the widths that code gives.

use graven::cost::Costs;
use graven::quantities::items;

pub(super) const COSTS: Costs = Costs::on("silo", |config| {
    // A line with its address, the words that were stored to, and the number of its epoch; a dependence is a thread and an epoch.
    let constants = [("line", 512), ("line-addr", 42), ("words", 8), ("epoch", 16), ("thread", 8)];
    items(include_str!("cost.toml"), config, &constants)
})
.remarks(&["No size was found in public text on the paper: these are this crate's parameters."]);
