//! What log-structured memory costs: no hardware, but DRAM for its index and write sets, and its log in PM.

use super::LsmConfig;
use super::protocol::SLOT_BYTES;
use graven_base::config::Config;
use graven_base::cost::{Costs, Formula, Item, Place, Unit};
use graven_machine::quantities::{hardware_threads, parameter};

pub(super) const COSTS: Costs =
    Costs::on("hoop", items).remarks(&["Software alone: no hardware is added, but DRAM is used."]);

fn items(config: &Config) -> Vec<Item> {
    let megabyte = 1 << 20;
    let log = if config.get::<LsmConfig>().log_bytes.0 == 0 {
        parameter(config, "pm.log_region_bytes")
    } else {
        parameter(config, "lsm.log_bytes")
    };
    vec![
        Item::new(
            "index",
            "nodes of the skip list, at most",
            Place::Dram,
            parameter(config, "lsm.index_bytes") / megabyte,
            Unit::Megabytes,
        ),
        Item::new(
            "write-set",
            "the words of a running transaction",
            Place::Dram,
            parameter(config, "lsm.write_set_slots") * Formula::constant("slot", SLOT_BYTES),
            Unit::Bytes,
        )
        .per("thread", hardware_threads(config)),
        Item::new("log", "all data", Place::Pm, log / megabyte, Unit::Megabytes),
    ]
}
