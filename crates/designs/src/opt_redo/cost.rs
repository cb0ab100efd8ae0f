//! Cost of Opt-Redo: `cost.toml`, with the sizes and widths that code gives.

use super::record::SLOT_BYTES;
use crate::cost::items;
use graven_base::cost::Costs;

pub(super) const COSTS: Costs = Costs::on("hoop", |config| {
    items(include_str!("cost.toml"), config, &[("update-record", SLOT_BYTES)])
})
.remarks(&[
    "HOOP gives no sizes for Opt-Redo: the buffers are as large as HOOP's own. The back end's state is not counted.",
]);
