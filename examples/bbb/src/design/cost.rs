//! Cost of BBB: `cost.toml`, with the widths that code gives.

use graven::cost::Costs;
use graven::quantities::items;

pub(super) const COSTS: Costs = Costs::on("silo", |config| {
    let constants = [("line", 64), ("line-addr", 42), ("state", 1)];
    items(include_str!("cost.toml"), config, &constants)
})
.remarks(&[
    "The battery is that of Silo Table IV, whose numbers for BBB and eADR this sheet derives.",
]);
