//! Cost of MorLog: `cost.toml`, with the sizes and widths that code gives.

use super::logs;
use crate::fields::ADDR_BITS;
use crate::{cost, packed_log};
use graven_base::codecs::slde::{DIRTY_FLAG_BITS, PAIR_FLAG_BITS, REDO_FLAG_BITS};
use graven_base::config::Config;
use graven_base::cost::{Costs, Item};

pub(super) const COSTS: Costs = Costs::on("morlog", items).remarks(&[
    "Table I is for one undo+redo and one redo buffer, which all cores share. Gates, latency and energy of the SLDE encoder \
     are the paper's, from synthesis: reported, not derived.",
]);

fn items(config: &Config) -> Vec<Item> {
    let constants = [
        ("type", packed_log::TYPE_BITS.into()),
        ("ulog-counter", packed_log::ULOG_BITS.into()),
        ("first-address", ADDR_BITS.into()),
        ("last-address", ADDR_BITS.into()),
        ("dirty-flag", DIRTY_FLAG_BITS.into()),
        ("encoding-type-pair", PAIR_FLAG_BITS.into()),
        ("encoding-type-redo", REDO_FLAG_BITS.into()),
        ("log-bytes", logs::bytes(config)),
    ];
    cost::items(include_str!("cost.toml"), config, &constants)
}
