//! Cost of log-structured memory: `cost.toml`, with the sizes and widths that code gives.

use super::protocol::SLOT_BYTES;
use crate::cost::items;
use graven_base::cost::Costs;

pub(super) const COSTS: Costs =
    Costs::on("hoop", |config| items(include_str!("cost.toml"), config, &[("slot", SLOT_BYTES)]))
        .remarks(&["Software alone: no hardware is added, but DRAM is used."]);
