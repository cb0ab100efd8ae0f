//! Cost of PiCL: `cost.toml`, with the widths that code gives.

use graven::cost::Costs;
use graven::quantities::items;

pub(super) const COSTS: Costs = Costs::on("silo", |config| {
    let constants = [("line-addr", 42), ("epoch", 4)];
    items(include_str!("cost.toml"), config, &constants)
});
