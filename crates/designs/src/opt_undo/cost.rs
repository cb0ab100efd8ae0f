//! Cost of Opt-Undo: `cost.toml`, with the sizes and widths that code gives.

use crate::cost::items;
use graven_base::cost::Costs;

pub(super) const COSTS: Costs =
    Costs::on("hoop", |config| items(include_str!("cost.toml"), config, &[])).remarks(&[
    "The papers that compare with ATOM give no widths but those of headers: the others are those that Graven keeps.",
]);
