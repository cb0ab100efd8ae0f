//! Cost of HOOP: `cost.toml`, with the sizes and widths that code gives.

use super::HoopConfig;
use super::eviction_buffer::EVICTED_LINE_BYTES;
use super::layout::{
    BLOCK_NUMBER_BITS, COUNT_BITS, FIRST_BITS, FLAG_BITS, Geometry, HOME_BITS, NEXT_BITS,
    NEXT_SLICE_BITS, SLICE_TX_BITS, SLICE_WORDS, STATE_BITS,
};
use super::mapping::MAPPING_ENTRY_BYTES;
use crate::cost;
use graven_base::config::Config;
use graven_base::cost::{Costs, Item};
use graven_base::memory::Addr;
use graven_machine::config::PmConfig;

pub(super) const COSTS: Costs = Costs::on("hoop", items).remarks(&[
    "§III-H names the mapping table, the OOP data buffers, the eviction buffer and the persistent bits. What else the text \
     needs has a note.",
]);

fn items(config: &Config) -> Vec<Item> {
    let constants = [
        ("words", SLICE_WORDS as u64),
        ("mapping-entry", MAPPING_ENTRY_BYTES),
        ("evicted-line", EVICTED_LINE_BYTES),
        ("blocks", blocks(config)),
        ("home", HOME_BITS.into()),
        ("slice-tx", SLICE_TX_BITS.into()),
        ("first", FIRST_BITS.into()),
        ("count", COUNT_BITS.into()),
        ("flag", FLAG_BITS.into()),
        ("next", NEXT_BITS.into()),
        ("block-number", BLOCK_NUMBER_BITS.into()),
        ("next-block", NEXT_SLICE_BITS.into()),
        ("state", STATE_BITS.into()),
    ];
    cost::items(include_str!("cost.toml"), config, &constants)
}

/// Returns the number of blocks in the region, which is divided evenly between controllers.
fn blocks(config: &Config) -> u64 {
    let hoop = config.get::<HoopConfig>();
    let controllers = u64::from(hoop.controllers);
    let share = config.get::<PmConfig>().log_region_bytes.0 / controllers;
    u64::from(Geometry::within(Addr(0), share, hoop.block_bytes.0).blocks) * controllers
}
