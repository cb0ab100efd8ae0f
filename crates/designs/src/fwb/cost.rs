//! Cost of FWB: `cost.toml`, with the sizes and widths that code gives.

use super::log::{is_packed, lines};
use super::record::SHORT_ID_BITS;
use crate::{cost, packed_log};
use graven_base::codecs::slde::DIRTY_FLAG_BITS;
use graven_base::config::Config;
use graven_base::cost::{Costs, Item};

pub(super) const COSTS: Costs = Costs::on("fwb", items);

/// As MorLog compares with it.
pub(super) const IN_MORLOG: Costs = Costs::on("morlog", items);

fn items(config: &Config) -> Vec<Item> {
    let constants = [
        ("short-transaction-id", SHORT_ID_BITS.into()),
        ("dirty-flag", DIRTY_FLAG_BITS.into()),
        ("type", packed_log::TYPE_BITS.into()),
        ("log-lines", lines(config)),
        ("packed-log", is_packed(config).into()),
    ];
    cost::items(include_str!("cost.toml"), config, &constants)
}
