//! Cost of shadow paging: `cost.toml`, with the sizes and widths that code gives.

use super::layout::ENTRY_BYTES;
use crate::cost::items;
use graven_base::cost::Costs;

pub(super) const COSTS: Costs = Costs::on("hoop", |config| {
    items(include_str!("cost.toml"), config, &[("entry", ENTRY_BYTES)])
})
.remarks(&[
    "HOOP gives no layout for OSP: widths are those that Graven keeps. What tells the words of transactions that share a \
     line apart is not counted.",
]);
