//! Cost of load-aware allocation: `cost.toml`, with the sizes and widths that code gives.

use super::bank_table::COUNTER_BITS;
use super::links::ENTRIES;
use crate::cost;
use graven_base::config::Config;
use graven_base::cost::Item;

/// Returns the items for designs that compose with the allocator.
pub fn items(config: &Config) -> Vec<Item> {
    let constants = [("counter", COUNTER_BITS.into()), ("entries", ENTRIES as u64)];
    cost::items(include_str!("cost.toml"), config, &constants)
}
