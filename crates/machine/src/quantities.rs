//! Quantities of the machine that cost sheets of several designs count by.

use crate::config::{CoreConfig, L2Config};
use graven_base::config::Config;
use graven_base::cost::{Item, Quantities, parameter, read};
use graven_base::memory::{LINE_BYTES, WORD_BYTES};

/// Sizes that records and buffers of all designs are made of; `register` has a word.
const CONSTANTS: [(&str, u64); 4] = [
    ("line", LINE_BYTES),
    ("word", 8 * WORD_BYTES),
    ("word-bytes", WORD_BYTES),
    ("register", WORD_BYTES),
];

/// Reads the items of a cost sheet, which may name `constants`, those above, and quantities of
/// the machine such as `hardware-threads`.
///
/// # Panics
/// If the sheet is broken ([`read`]).
pub fn items(sheet: &str, config: &Config, constants: &[(&str, u64)]) -> Vec<Item> {
    let constants = constants.iter().chain(&CONSTANTS).copied().collect();
    read(sheet, &Quantities { config, constants, shorthands: shorthands(config) })
}

/// Returns the item of a design whose threads have a log area each, of the size that parameter `key` gives.
pub fn thread_areas(config: &Config, key: &str) -> Item {
    let sheet = format!("{}formula = \"{key} / 1024\"", include_str!("log_area.toml"));
    items(&sheet, config, &[]).remove(0)
}

/// Lists formulas of quantities of the machine. Factors of one and caches that it has not are left out.
fn shorthands(config: &Config) -> Vec<(&'static str, String)> {
    let banks = ["controller.channels", "pm.ranks", "pm.banks"];
    let several: Vec<&str> = banks.into_iter().filter(|key| parameter(config, key) > 1.0).collect();
    let pm_banks = if several.is_empty() { "pm.banks".into() } else { several.join(" * ") };
    let threads = match config.get::<CoreConfig>().threads_per_core {
        1 => "core.count",
        _ => "core.count * core.threads_per_core",
    };
    let (caches, behind_l1, traversal) = if config.get::<L2Config>().bytes.0 > 0 {
        (
            "core.count * (l1.bytes + l2.bytes) + llc.bytes",
            "core.count * l2.bytes + llc.bytes",
            "l1.latency_cycles + l2.latency_cycles + llc.latency_cycles",
        )
    } else {
        ("core.count * l1.bytes + llc.bytes", "llc.bytes", "l1.latency_cycles + llc.latency_cycles")
    };
    vec![
        ("hardware-threads", threads.into()),
        ("l1-lines", "core.count * l1.bytes / line".into()),
        ("cache-bytes", caches.into()),
        ("cache-lines", format!("({caches}) / line")),
        ("bytes-behind-l1", behind_l1.into()),
        // Cycles in which a line passes through the caches of all levels.
        ("traversal-cycles", traversal.into()),
        ("pm-banks", pm_banks),
    ]
}
