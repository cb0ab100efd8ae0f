//! Cost of Silo: `cost.toml`, with the sizes and widths that code gives.

use super::log_area::FLUSH_BITS;
use crate::cost::items;
use graven_base::cost::Costs;
use graven_base::memory::MEDIA_LINE_BYTES;

pub(super) const COSTS: Costs = Costs::on("silo", |config| {
    let constants = [("flush-bit", FLUSH_BITS.into()), ("media-line", MEDIA_LINE_BYTES)];
    items(include_str!("cost.toml"), config, &constants)
})
.remarks(&[
    "Table IV counts the bytes of whole log buffers. It leaves out what a failure writes besides, an id tuple for each \
     thread and the log registers; undo or redo records alone are shorter than entries.",
]);
