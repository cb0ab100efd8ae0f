//! Cost of LAD: `cost.toml`, with the sizes and widths that code gives.

use super::LadConfig;
use crate::{cost, lalea};
use graven_base::config::Config;
use graven_base::cost::{Costs, Item};

pub(super) const COSTS: Costs = Costs::on("silo", items).remarks(WIDTHS);

/// With LALEA's allocator.
pub(super) const WITH_LALEA: Costs = Costs::on("lalea", items).remarks(WIDTHS);

const WIDTHS: &[&str] = &[
    "The papers that compare with LAD give the entries of its pool and no layout: widths are those that Graven keeps.",
];

fn items(config: &Config) -> Vec<Item> {
    let mut items = cost::items(include_str!("cost.toml"), config, &[]);
    if config.get::<LadConfig>().load_aware_log {
        items.extend(lalea::cost_items(config));
    }
    items
}
