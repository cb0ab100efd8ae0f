//! Cost of ReDU: `cost.toml`, with the sizes and widths that code gives.

use super::ReduConfig;
use super::record::WORDS_MASK_BITS;
use crate::cost;
use crate::lalea::{self, ENTRIES};
use graven_base::config::Config;
use graven_base::cost::{Costs, Item};

pub(super) const COSTS: Costs = Costs::on("lalea", items).remarks(&[
    "LALEA gives the depths of log buffer, log queue and ADR buffer, and no layout of their entries: widths are those that \
     Graven keeps.",
]);

fn items(config: &Config) -> Vec<Item> {
    let is_load_aware = config.get::<ReduConfig>().load_aware_allocation;
    let constants = [
        ("entries", ENTRIES as u64),
        ("header-lines", if is_load_aware { 2 } else { 1 }),
        ("words-mask", WORDS_MASK_BITS.into()),
    ];
    let mut items = cost::items(include_str!("cost.toml"), config, &constants);
    if is_load_aware {
        items.extend(lalea::cost_items(config));
    }
    items
}
